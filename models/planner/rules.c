/* What a choice has to keep to be an iteration at all. */
#include "models/planner/space.h"

#include "models/training/iteration_spec.h"
#include "models/training/offload_spec.h"
#include "models/training/outline.h"
#include "models/training/outline_fit.h"
#include "models/workload/layout.h"
#include "models/workload/offload_check.h"

#include <inttypes.h>

/* ---- specs ---- */

pc_iteration_spec pc_plan_spec(const pc_plan_space *space, const pc_plan_choice *choice) {
    pc_iteration_spec spec = space->bases[choice->base].spec;
    spec.cut.tp = choice->tp;
    spec.cut.pp = choice->pp;
    spec.cut.dp = choice->dp;
    spec.cut.cp = choice->cp;
    spec.cut.cp_comm = choice->cp_comm;
    pc_iteration_fill_exchange(&spec);
    spec.cut.ep = choice->ep;
    spec.cut.etp = choice->etp;
    spec.cut.dispatcher = choice->dispatcher;
    if (choice->dispatcher < PC_DISPATCHER_DEEPEP) spec.cut.fp8_dispatch = false;
    spec.cut.chunks = choice->chunks;
    spec.cut.slices = choice->slices;
    spec.cut.layout = choice->layout;
    spec.cut.microbatch_size = choice->microbatch_size;
    spec.cut.microbatches = choice->microbatches;
    spec.cut.recompute = choice->recompute;
    spec.cut.recompute_layers = choice->recompute_layers;
    spec.cut.recompute_modules = choice->recompute_modules;
    spec.cut.offload.kinds = choice->offload;
    if (!(choice->offload & PC_OFFLOAD_FINE_GRAINED)) spec.cut.offload.modules = 0; /* they are for that alone */
    spec.cut.zero = choice->zero;
    spec.cut.shard_group = choice->shard_group;
    spec.cut.sequence_parallel = choice->sequence_parallel;
    spec.generator = choice->generator;
    spec.order = choice->order;
    spec.overlaps_tp = choice->overlaps_tp;
    spec.overlaps_gradients = choice->overlaps_gradients;
    spec.overlaps_parameters = choice->overlaps_parameters;
    spec.overlaps_p2p = choice->overlaps_p2p;
    spec.overlaps_pairs = spec.overlaps_pairs && pc_iteration_can_pair(&spec); /* elsewhere as if it were not asked */
    spec.delays_weights = spec.delays_weights && spec.overlaps_pairs;
    return spec;
}

/* ---- rules ---- */

static pc_code break_rule(pc_plan_rule *broken, pc_plan_rule rule) {
    *broken = rule;
    return PC_ERROR_INPUT;
}

/* With one chunk, or more of them on the only stage, nothing is interleaved, and no framework offers it; but for F
 * beside BW on an only stage. */
static bool interleaves_nothing(const pc_plan_choice *choice) {
    bool has_choice = choice->generator->chunks_min != choice->generator->chunks_max;
    if (choice->generator->placement == PC_PLACEMENT_SLICES) return false;
    int parts = choice->slices > 0 ? choice->chunks / choice->slices : choice->chunks;
    if (choice->pp == 1 && parts == 1 && pc_generator_pairs(choice->generator, 1, 1)) return false;
    return (choice->pp == 1 && parts > 1) || (has_choice && parts == 1);
}

bool plan_layout_divides(const pc_plan_space *space, const pc_plan_choice *choice, pc_cut_layout layout) {
    bool has_two = choice->generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
    int parts = plan_parts_of(choice);
    if (parts > PC_PARTS_MAX || (pc_layout_is_balanced(layout) && has_two)) return false;
    return pc_layout_divides(layout, space->bases[choice->base].spec.model.layers, parts);
}

pc_code plan_check_frame(const pc_plan_space *space, const pc_plan_choice *choice, pc_plan_rule *broken) {
    if (choice->dp == 0) return break_rule(broken, PC_PLAN_RULE_GPUS);
    if (interleaves_nothing(choice)) return break_rule(broken, PC_PLAN_RULE_INTERLEAVING);
    if (!plan_layout_divides(space, choice, choice->layout)) return break_rule(broken, PC_PLAN_RULE_LAYERS);
    if (!plan_experts_divide(space, choice)) return break_rule(broken, PC_PLAN_RULE_EXPERTS);
    return PC_OK;
}

/* Of a spec that cannot be: which of the rules of iterations it breaks first, and what its check says. */
static pc_plan_rule find_rule(const pc_iteration_spec *spec, int parts, pc_error *error) {
    const pc_cut *cut = &spec->cut;
    if (pc_generator_check(spec->generator, cut->pp, cut->microbatches, cut->chunks, error) ||
        pc_generator_check_making(spec->generator, spec->making, error) ||
        pc_generator_check_goal(spec->generator, spec->making, spec->goal, error))
        return PC_PLAN_RULE_SCHEDULE;
    if (pc_offload_can_be(spec, error) || pc_offload_check(&spec->model, cut, error)) return PC_PLAN_RULE_OFFLOAD;
    if (pc_cut_check(&spec->model, cut, parts, error)) return PC_PLAN_RULE_TENSOR;
    if (error) (void)pc_outline_check(spec, error);
    return PC_PLAN_RULE_SIZE;
}

void plan_check_words(const pc_plan_space *space, const pc_plan_choice *choice, pc_error *error) {
    const pc_iteration_spec spec = pc_plan_spec(space, choice);
    (void)find_rule(&spec, plan_parts_of(choice), error);
}

pc_code plan_check_rules(const pc_plan_space *space, const pc_plan_choice *choice, pc_plan_rule *broken) {
    pc_code code = plan_check_frame(space, choice, broken);
    if (code) return code;
    if (choice->microbatches == 0) return break_rule(broken, PC_PLAN_RULE_BATCH);
    pc_iteration_spec spec = pc_plan_spec(space, choice);
    if (choice->layout == PC_CUT_BALANCED_MEMORY && pc_outline_fits_by_costs(&spec))
        return break_rule(broken, PC_PLAN_RULE_LAYERS);
    code = pc_outline_check(&spec, NULL);
    return code == PC_ERROR_INPUT ? break_rule(broken, find_rule(&spec, plan_parts_of(choice), NULL)) : code;
}
