/* What passes take: on the GPU, kernels one after the other and the collectives of tensor and context parallelism
 * between or beside them; or on the host, the launches of both, where those take longer. Activations that go to the
 * host and come back (offload_layers) are a third timeline, which counts as the launches do.
 *
 * The host launches ahead and waits for nothing, neither for kernels nor for collectives. So a pass has two timelines
 * and lasts as long as the longer one: max(L, K + E). L is the launches, K the kernels, and E what collectives last
 * longer than the kernels beside them. Of an eager program L has its Python, too (host_time.h). A pass that is bound by
 * its launches thus has its GPU idle for L - K, and hides collectives there, too, of whichever kind.
 *
 * Where the host waits for counts of tokens (host_waits.h), K has what the GPU waits for it then, in which no
 * collective hides: max(L, K + W + E).
 *
 * No faster kernel or collective makes that longer. Of a kernel k with a collective a beside it, K + E counts
 * k + max(a - k, 0) = max(k, a), and of all others their sum. So the pass is made of sums and maxima of times alone.
 * (Windows of length k against a pass of max(L, K) would not do: a shorter k would hide less of a, and L stay. Nor
 * windows stretched to L k / K: where k alone gets shorter, so does its part of L.) */
#include "models/training/pass_costs.h"

#include "models/cost/dispatch.h"
#include "models/training/graph_pools.h"
#include "models/training/host_time.h"
#include "models/training/host_waits.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_units.h"
#include "models/workload/offload_choice.h"

#include <math.h>
#include <stddef.h>

bool pc_outline_has_kind(const pc_generator *generator, pc_pass_kind kind) {
    return pc_generator_has_kind(generator, kind);
}

bool pc_operation_is_collective(const pc_operation *operation) {
    return operation->kind >= PC_OPERATION_ALL_REDUCE;
}

bool pc_operation_is_exchange(const pc_operation *operation) {
    return operation->kind == PC_OPERATION_DISPATCH || operation->kind == PC_OPERATION_COMBINE;
}

const pc_group *pc_outline_group(const pc_outline *outline, const pc_operation *collective) {
    if (collective->group == PC_GROUP_EP) return &outline->experts.ep;
    if (collective->group == PC_GROUP_ETP) return &outline->experts.etp;
    return collective->group == PC_GROUP_TP ? &outline->tp : &outline->cp_groups[collective->group];
}

pc_collective_course pc_outline_course(const pc_outline *outline, const pc_operation *collective) {
    static const pc_collective collectives[PC_OPERATION_KINDS] = {
        [PC_OPERATION_ALL_REDUCE] = PC_COLLECTIVE_ALL_REDUCE,
        [PC_OPERATION_ALL_GATHER] = PC_COLLECTIVE_ALL_GATHER,
        [PC_OPERATION_REDUCE_SCATTER] = PC_COLLECTIVE_REDUCE_SCATTER,
        [PC_OPERATION_ALL_TO_ALL] = PC_COLLECTIVE_ALL_TO_ALL,
    };
    const pc_machine *machine = &outline->spec->machine;
    double bytes = (double)collective->size_bytes;
    if (pc_operation_is_exchange(collective)) return pc_outline_exchange(outline, collective);
    if (collective->kind == PC_OPERATION_RING) return pc_message_course(machine, &outline->cp_hop, bytes);
    return pc_collective_course_of(machine, pc_outline_group(outline, collective), collectives[collective->kind],
                                   PC_ALGORITHM_BEST, bytes);
}

/* Exchanges of one model and cut differ in their rows alone. */
static bool is_known(const pc_collective_memo *memo, int number, const pc_operation *x) {
    return memo->known[number].kind == x->kind && memo->known[number].group == x->group &&
           memo->known[number].size_bytes == x->size_bytes && memo->known[number].rows == x->rows;
}

static pc_alone remember(pc_collective_memo *memo, const pc_operation *x) {
    for (int i = 0; i < memo->count; i++)
        if (is_known(memo, i, x)) return memo->known[i].alone;
    pc_alone alone = pc_outline_alone_by(pc_outline_course(memo->outline, x));
    if (memo->count < PC_COLLECTIVE_MEMO) {
        memo->known[memo->count].kind = x->kind;
        memo->known[memo->count].group = x->group;
        memo->known[memo->count].size_bytes = x->size_bytes;
        memo->known[memo->count].rows = x->rows;
        memo->known[memo->count++].alone = alone;
    }
    return alone;
}

int pc_operation_beside(const pc_outline *outline, const pc_operations *operations, int number) {
    const pc_operation *x = &operations->list[number];
    int wanted = x->beside > 0 ? x->beside : 1, found = 0;
    if (!x->can_overlap || (x->group == PC_GROUP_TP && !outline->spec->overlaps_tp)) return 0;
    while (found < wanted && number + found + 1 < operations->count) {
        const pc_operation *next = &operations->list[number + found + 1];
        if (pc_operation_is_collective(next) || next->repeat != x->repeat) break;
        found++;
    }
    return found;
}

static int processors_taken(const pc_cut *cut) {
    int said = cut->dispatcher == PC_DISPATCHER_DEEPEP     ? cut->deepep_sms
               : cut->dispatcher == PC_DISPATCHER_HYBRIDEP ? cut->hybridep_sms
                                                           : 0;
    return said > 0 ? said : pc_dispatch_processors(cut->dispatcher);
}

double pc_outline_processor_share(const pc_outline *outline, const pc_group *group) {
    int all = outline->spec->machine.gpu.processors, taken = processors_taken(&outline->cut);
    if (group != &outline->experts.ep || all < 1) return 0;
    return 1 - 1 / pc_stretch_beside(all, taken);
}

static double kernels_s(const pc_outline *outline, const pc_operations *operations, int number, int count) {
    double sum = 0;
    for (int i = 1; i <= count; i++)
        sum += outline->cost.kernel(outline->cost.self, &operations->list[number + i]).seconds;
    return sum;
}

double pc_outline_beside_s(const pc_outline *outline, const pc_operations *operations, int number, double seconds) {
    int count = pc_operation_beside(outline, operations, number);
    double alone_s = kernels_s(outline, operations, number, count);
    double share = pc_outline_processor_share(outline, pc_outline_group(outline, &operations->list[number]));
    return share > 0 ? alone_s + share * fmin(seconds, alone_s / (1 - share)) : alone_s;
}

/* The product that a gather feeds, or whose sums are scattered; NULL where there is none next to it. */
static const pc_operation *product_of(const pc_operations *operations, int number) {
    const pc_operation *x = &operations->list[number];
    if (x->group != PC_GROUP_TP) return NULL;
    int at = x->kind == PC_OPERATION_ALL_GATHER ? number + 1 : x->kind == PC_OPERATION_REDUCE_SCATTER ? number - 1 : -1;
    if (at < 0 || at >= operations->count) return NULL;
    const pc_operation *product = &operations->list[at];
    return product->kind == PC_OPERATION_GEMM && product->repeat == x->repeat ? product : NULL;
}

/* How much longer product and collective take than the product alone, in as many pieces as ranks: a rank multiplies
 * what it has while the next piece comes, or sends the last one while it multiplies the next. So the longer of both,
 * and one piece of the shorter. */
static double exposed_in_pieces(double product_s, double collective_s, int ranks) {
    double piece_s = fmin(product_s, collective_s) / ranks;
    return fmax(product_s, collective_s) + piece_s - product_s;
}

double pc_outline_exposed_s(const pc_outline *outline, const pc_operations *operations, int number, double seconds) {
    const pc_iteration_spec *spec = outline->spec;
    const pc_operation *product = spec->pipelines_tp ? product_of(operations, number) : NULL;
    int beside = pc_operation_beside(outline, operations, number);
    if (beside)
        return fmax(seconds, pc_outline_beside_s(outline, operations, number, seconds)) -
               kernels_s(outline, operations, number, beside);
    if (!product) return seconds;
    return exposed_in_pieces(outline->cost.kernel(outline->cost.self, product).seconds, seconds, outline->cut.tp);
}

/* What is left of `seconds` where the GPU waits for *idle_s anyway, which gets shorter by the rest. */
static double hide(double seconds, double *idle_s) {
    double hidden_s = fmin(seconds, *idle_s);
    *idle_s -= hidden_s;
    return seconds - hidden_s;
}

/* The collectives of a pass: what they send; and what they take, less what the kernels last that run beside them, and
 * less what the GPU waits for launches in all, first of tensor parallelism's. */
static void add_collectives(const pc_outline *outline, pc_collective_memo *memo, const pc_operations *operations,
                            double idle_s, pc_pass_cost *pass) {
    double tp_s = 0, cp_s = 0, ep_s = 0;
    for (int i = 0; i < operations->count; i++) {
        const pc_operation *x = &operations->list[i];
        if (!pc_operation_is_collective(x)) continue;
        pc_alone alone = remember(memo, x);
        bool is_tp = x->group == PC_GROUP_TP, is_ep = x->group >= PC_GROUP_EP;
        double exposed_s = pc_outline_exposed_s(outline, operations, i, alone.seconds);
        *(is_ep ? &ep_s : is_tp ? &tp_s : &cp_s) += (double)x->repeat * exposed_s;
        *(is_ep ? &pass->ep_bytes : is_tp ? &pass->tp_bytes : &pass->cp_bytes) += (double)x->repeat * alone.sent_bytes;
    }
    pass->tp_s = hide(tp_s, &idle_s);
    pass->cp_s = hide(cp_s, &idle_s);
    pass->ep_s = hide(ep_s, &idle_s);
}

double pc_outline_host_s(const pc_outline *outline, const pc_part_cost *part, pc_pass_kind kind,
                         double launch_bound_s) {
    bool is_within = part->activation.offloaded > 0 && !pc_offload_is_beside_passes(&outline->cut.offload);
    bool copies = is_within && kind != PC_PASS_R && kind != PC_PASS_W;
    double copies_s = copies ? (double)part->activation.offloaded / pc_machine_host_link(&outline->spec->machine) : 0;
    return copies_s > launch_bound_s ? copies_s : launch_bound_s;
}

static pc_code make_pass(const pc_outline *outline, pc_collective_memo *memo, const pc_part_cost *part,
                         pc_pass_kind kind, pc_pass_cost *pass, pc_error *error) {
    pc_operations operations;
    bool has_r = outline->spec->generator->recomputes;
    pc_code code =
        pc_pass_operations(&outline->spec->model, &outline->cut, &part->part, kind, has_r, &operations, error);
    if (code) return code;
    pc_pass_estimate sum = pc_cost_pass(&outline->cost, &operations);
    double host_s = pc_outline_host_s(outline, part, kind, pc_host_pass_s(outline, &operations));
    double waits_s = pc_host_waits_s(outline, &operations), idle_s = fmax(host_s - sum.kernel_s, 0);
    double compute_s = sum.kernel_s + fmax(idle_s, waits_s);
    *pass = (pc_pass_cost){.kernel_s = sum.kernel_s,
                           .compute_s = compute_s,
                           .standard_error_s = sum.standard_error,
                           .flops = (double)pc_operations_sum(&operations).flops};
    add_collectives(outline, memo, &operations, fmax(idle_s - waits_s, 0), pass);
    return pc_outline_has_units(outline) ? pc_outline_share_kernels(outline, &part->part, kind, pass, error) : PC_OK;
}

pc_pass_forms pc_outline_forms(const pc_outline *outline) {
    const pc_generator *generator = outline->spec->generator;
    return (pc_pass_forms){.has_r = generator->recomputes, .splits = generator->splits, .mixes = generator->mixes};
}

/* What lies at least between a part's backward passes, one of them: B and W, or BW, of a schedule that mixes them
 * whichever is shorter. In the cool-down, where no F comes between, it is all that hides a copy back. */
static double backward_s(const pc_outline *outline, const pc_part_cost *part) {
    double seconds[PC_PASS_KINDS] = {0};
    const pc_generator *generator = outline->spec->generator;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        const pc_pass_cost *pass = &part->pass[kind];
        if (pc_outline_has_kind(generator, (pc_pass_kind)kind))
            seconds[kind] = pass->compute_s + pass->tp_s + pass->cp_s;
    }
    double apart = seconds[PC_PASS_B] + seconds[PC_PASS_W], whole = seconds[PC_PASS_BW];
    return generator->mixes ? fmin(apart, whole) : apart + whole;
}

/* As many bytes go as the link carries in that time. */
static void limit_offload(const pc_outline *outline, pc_part_cost *made) {
    if (!(outline->cut.offload.kinds & PC_OFFLOAD_TENSORS)) return;
    double most = backward_s(outline, made) * pc_machine_host_link(&outline->spec->machine);
    if (most >= (double)made->activation.offloaded) return;
    pc_offload_limit(&outline->spec->model, &outline->cut, &made->part, (int64_t)most, &made->activation);
}

pc_code pc_part_cost_make(const pc_outline *outline, pc_collective_memo *memo, pc_part_cost *made, pc_error *error) {
    const pc_iteration_spec *spec = outline->spec;
    const pc_generator *generator = spec->generator;
    pc_code code = pc_part_activations(&spec->model, &outline->cut, &made->part, pc_outline_forms(outline),
                                       &made->activation, error);
    if (!code) pc_graph_pools_share(outline, made);
    for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
        if (pc_outline_has_kind(generator, (pc_pass_kind)kind))
            code = make_pass(outline, memo, made, (pc_pass_kind)kind, &made->pass[kind], error);
    if (!code) limit_offload(outline, made);
    if (!code) made->low_weights = pc_part_low_weights(&spec->model, &outline->cut, &made->part);
    if (!code)
        made->parameters = pc_part_parameters(&spec->model, &outline->cut, &made->part, outline->shares_embedding);
    if (!code) made->trained = pc_part_trained(&spec->model, &outline->cut, &made->part, outline->shares_embedding);
    if (code || !pc_cut_folds_experts(&spec->model, &outline->cut)) return code;
    made->expert_parameters = pc_part_experts(&spec->model, &outline->cut, &made->part);
    made->expert_trained = pc_part_experts_trained(&spec->model, &outline->cut, &made->part);
    return code;
}
