/* What passes take: on the GPU, kernels one after the other and the collectives of tensor parallelism between or beside
 * them; or on the host, the launches of both, where those take longer.
 *
 * The host launches ahead and waits for nothing, neither for kernels nor for collectives. So a pass has two timelines
 * and lasts as long as the longer one: max(L, K + E). L is the launches, K the kernels, and E what collectives last
 * longer than the kernels beside them. A pass that is bound by its launches thus has its GPU idle for L - K, and hides
 * collectives there, too, of whichever kind.
 *
 * No faster kernel or collective makes that longer. Of a kernel k with a collective a beside it, K + E counts
 * k + max(a - k, 0) = max(k, a), and of all others their sum. So the pass is made of sums and maxima of times alone.
 * (Windows of length k against a pass of max(L, K) would not do: a shorter k would hide less of a, and L stay. Nor
 * windows stretched to L k / K: where k alone gets shorter, so does its part of L.) */
#include "models/training/pass_costs.h"

#include <stddef.h>

bool pc_outline_has_kind(const pc_generator *generator, pc_pass_kind kind) {
    return pc_generator_has_kind(generator, kind);
}

bool pc_operation_is_collective(const pc_operation *operation, pc_collective *collective) {
    switch (operation->kind) {
    case PC_OPERATION_ALL_REDUCE:
        *collective = PC_COLLECTIVE_ALL_REDUCE;
        return true;
    case PC_OPERATION_ALL_GATHER:
        *collective = PC_COLLECTIVE_ALL_GATHER;
        return true;
    case PC_OPERATION_REDUCE_SCATTER:
        *collective = PC_COLLECTIVE_REDUCE_SCATTER;
        return true;
    default:
        return false;
    }
}

static pc_alone remember(pc_collective_memo *memo, pc_collective collective, int64_t size_bytes) {
    for (int i = 0; i < memo->count; i++)
        if (memo->known[i].collective == collective && memo->known[i].size_bytes == size_bytes)
            return memo->known[i].alone;
    pc_alone alone = pc_outline_alone(memo->machine, memo->group, collective, (double)size_bytes);
    if (memo->count < PC_COLLECTIVE_MEMO) {
        memo->known[memo->count].collective = collective;
        memo->known[memo->count].size_bytes = size_bytes;
        memo->known[memo->count++].alone = alone;
    }
    return alone;
}

const pc_operation *pc_operation_beside(const pc_operations *operations, int number) {
    pc_collective collective;
    bool is_last = number + 1 == operations->count;
    if (!operations->list[number].can_overlap || is_last) return NULL;
    const pc_operation *next = &operations->list[number + 1];
    bool is_kernel = !pc_operation_is_collective(next, &collective);
    return is_kernel && next->repeat == operations->list[number].repeat ? next : NULL;
}

/* The collectives of a pass: what they send; and what they take, less what the kernels last that run beside them, and
 * less what the GPU waits for launches in all. */
static void add_collectives(const pc_outline *outline, pc_collective_memo *memo, const pc_operations *operations,
                            double idle_s, pc_pass_cost *pass) {
    pc_collective collective;
    double exposed_s = 0;
    for (int i = 0; i < operations->count; i++) {
        const pc_operation *x = &operations->list[i];
        if (!pc_operation_is_collective(x, &collective)) continue;
        const pc_operation *beside = outline->spec->overlaps_tp ? pc_operation_beside(operations, i) : NULL;
        pc_alone alone = remember(memo, collective, x->size_bytes);
        double hidden_s = beside ? outline->cost.kernel(outline->cost.self, beside).seconds : 0;
        if (alone.seconds > hidden_s) exposed_s += (double)x->repeat * (alone.seconds - hidden_s);
        pass->tp_bytes += (double)x->repeat * alone.sent_bytes;
    }
    pass->tp_s = exposed_s > idle_s ? exposed_s - idle_s : 0;
}

static pc_code make_pass(const pc_outline *outline, pc_collective_memo *memo, const pc_part *part, pc_pass_kind kind,
                         pc_pass_cost *pass, pc_error *error) {
    pc_operations operations;
    bool has_r = outline->spec->generator->recomputes;
    pc_code code = pc_pass_operations(&outline->spec->model, &outline->cut, part, kind, has_r, &operations, error);
    if (code) return code;
    pc_pass_estimate sum = pc_cost_pass(&outline->cost, &operations);
    double compute_s = sum.kernel_s > sum.launch_bound_s ? sum.kernel_s : sum.launch_bound_s;
    *pass = (pc_pass_cost){.kernel_s = sum.kernel_s,
                           .compute_s = compute_s,
                           .standard_error_s = sum.standard_error,
                           .flops = (double)pc_operations_sum(&operations).flops};
    add_collectives(outline, memo, &operations, compute_s - sum.kernel_s, pass);
    return PC_OK;
}

pc_code pc_part_cost_make(const pc_outline *outline, pc_collective_memo *memo, pc_part_cost *made, pc_error *error) {
    const pc_iteration_spec *spec = outline->spec;
    const pc_generator *generator = spec->generator;
    const pc_pass_forms forms = {
        .has_r = generator->recomputes, .splits = generator->splits, .mixes = generator->mixes};
    pc_code code = PC_OK;
    for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
        if (pc_outline_has_kind(generator, (pc_pass_kind)kind))
            code = make_pass(outline, memo, &made->part, (pc_pass_kind)kind, &made->pass[kind], error);
    if (!code) code = pc_part_activations(&spec->model, &outline->cut, &made->part, forms, &made->activation, error);
    if (!code) made->low_weights = pc_part_low_weights(&spec->model, &outline->cut, &made->part);
    if (!code)
        made->parameters = pc_part_parameters(&spec->model, &outline->cut, &made->part, outline->shares_embedding);
    return code;
}
