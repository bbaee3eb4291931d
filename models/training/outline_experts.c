#include "models/training/outline_experts.h"

#include "models/cost/dispatch.h"

static const pc_axis of_ep = (pc_axis)PC_AXIS_EP;

bool pc_cut_folds_experts(const pc_model *model, const pc_cut *cut) {
    return pc_model_has_experts(model) && (pc_cut_ep(cut) > 1 || pc_cut_etp(cut) != cut->tp);
}

/* A group that shares state has all of it, and so all experts, on ranks in a row. */
static pc_code check_state(const pc_iteration_spec *spec, const pc_cut *cut, pc_error *error) {
    int64_t ranks = (int64_t)cut->shard_group * cut->tp, sharing = (int64_t)pc_cut_etp(cut) * pc_cut_ep(cut);
    if (ranks == 0) return PC_OK;
    if (ranks % sharing)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "shard_group %d x tp %d with etp %d x ep %d; expected a multiple, so that each group has "
                            "all experts",
                            cut->shard_group, cut->tp, pc_cut_etp(cut), pc_cut_ep(cut));
    if (cut->tp == 1 || spec->order.axis[0] == PC_AXIS_TP) return PC_OK;
    return pc_error_set(
        error, PC_ERROR_INPUT,
        "shard_group %d with ep %d and a rank order that does not begin with tp; expected one that does",
        cut->shard_group, pc_cut_ep(cut));
}

int pc_cut_replicas_in_step(const pc_model *model, const pc_cut *cut) {
    int64_t stage = (int64_t)cut->tp * pc_cut_cp(cut), sharing = (int64_t)pc_cut_etp(cut) * pc_cut_ep(cut);
    int64_t a = stage, b = sharing;
    if (!pc_cut_folds_experts(model, cut)) return 1;
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return (int)(sharing / a);
}

static pc_code check_dispatch(const pc_cut *cut, pc_error *error) {
    bool is_flex = cut->dispatcher == PC_DISPATCHER_DEEPEP || cut->dispatcher == PC_DISPATCHER_HYBRIDEP;
    if (is_flex || !cut->fp8_dispatch) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "moe_fp8_dispatch with a dispatcher of collectives, which sends 16 bits; expected "
                        "moe_token_dispatcher_type flex");
}

/* As Megatron-LM's arguments. */
static pc_code check_shared(const pc_model *model, const pc_cut *cut, pc_error *error) {
    const char *wrong = NULL;
    if (!cut->overlaps_shared) return PC_OK;
    if (model->experts.shared_ffn_hidden == 0)
        wrong = "a model without shared experts; expected moe_shared_expert_intermediate_size";
    else if (cut->dispatcher == PC_DISPATCHER_ALLGATHER)
        wrong = "dispatcher allgather; expected alltoall or flex";
    else if (cut->recompute_modules & PC_RECOMPUTES_SHARED_EXPERTS)
        wrong = "recompute_modules shared_experts; expected one of the two";
    if (!wrong) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "moe_shared_expert_overlap with %s", wrong);
}

pc_code pc_outline_check_experts(const pc_iteration_spec *spec, const pc_cut *cut, const pc_ranks *ranks,
                                 pc_error *error) {
    pc_ranks experts;
    pc_code code = check_shared(&spec->model, cut, error);
    if (code || !pc_cut_folds_experts(&spec->model, cut)) return code;
    code = check_dispatch(cut, error);
    if (!code) code = check_state(spec, cut, error);
    return code ? code : pc_ranks_place_experts(ranks, spec->order, pc_cut_etp(cut), pc_cut_ep(cut), &experts, error);
}

pc_expert_places pc_outline_place_experts(const pc_outline *outline) {
    const pc_machine *machine = &outline->spec->machine;
    const pc_cut *cut = &outline->cut;
    pc_ranks x;
    pc_ranks_place_experts(&outline->ranks, outline->spec->order, pc_cut_etp(cut), pc_cut_ep(cut), &x, NULL);
    return (pc_expert_places){.ep = pc_group_of(machine, &x, of_ep),
                              .etp = pc_group_of(machine, &x, PC_AXIS_TP),
                              .replicas = pc_group_of(machine, &x, PC_AXIS_DP)};
}

/* ---- dispatch and combine ---- */

/* Gradients of what the experts made go to them as tokens do. */
static double row_bytes(const pc_outline *outline, const pc_operation *x) {
    return pc_dispatched_bytes((double)x->k, outline->cut.fp8_dispatch && x->kind == PC_OPERATION_DISPATCH);
}

/* Rows of the fullest rank, those that it gets of others that cut its experts among them, over the mean. */
static double load_of(const pc_outline *outline, const pc_operation *x) {
    double mean = (double)x->m * (double)x->n * pc_cut_etp(&outline->cut);
    return x->rows > 0 && mean > 0 ? (double)x->rows / mean : 1;
}

pc_collective_course pc_outline_exchange(const pc_outline *outline, const pc_operation *operation) {
    const pc_experts *experts = &outline->spec->model.experts;
    const pc_dispatch what = {.dispatcher = outline->cut.dispatcher,
                              .is_combine = operation->kind == PC_OPERATION_COMBINE,
                              .tokens = (double)operation->m,
                              .token_bytes = row_bytes(outline, operation),
                              .routing = {.experts = (double)experts->num_experts,
                                          .topk = (double)experts->topk,
                                          .groups = (int)experts->router_groups,
                                          .group_topk = (int)experts->router_group_topk},
                              .load = load_of(outline, operation)};
    return pc_dispatch_course(&outline->spec->machine, &outline->experts.ep, &what);
}
