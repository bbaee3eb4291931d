#include "models/training/traffic.h"

#include "models/training/pass_costs.h"

/* How often in an iteration a chunk goes through the passes of a kind. */
static double count_passes(const pc_iteration_plan *plan) {
    return (double)plan->cut.microbatches * pc_placement_visited(plan->placement, plan->chunks) / plan->chunks;
}

/* Of the n passes of each kind, which of them gather the chunk's parameters and reduce its gradients: ZeRO 3's all;
 * ZeRO 2's all reduce; otherwise it is once an iteration. */
static double sent_for_chunk(const pc_iteration_plan *plan, const pc_chunk_plan *x, double n) {
    int zero = plan->cut.zero, forwards = plan->spec->generator->recomputes ? 2 : 1;
    double gathers = zero == 3 ? n * (forwards + 1) : zero > 0 ? 1 : 0, reduces = zero >= 2 ? n : 1;
    return x->buckets * (gathers * x->gather_bytes + reduces * x->reduce_bytes);
}

static void add_passes(const pc_iteration_plan *plan, int device, int chunk, double n, pc_sent *sum) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        if (!pc_plan_has_kind(plan->spec->generator, (pc_pass_kind)kind)) continue;
        sum->tp_bytes += n * pc_plan_part(plan, device, chunk)->pass[kind].tp_bytes;
        pc_pass pass = {0, (int16_t)chunk, (int16_t)kind};
        if (pc_plan_receiver(plan, device, pass) >= 0) sum->pp_bytes += n * plan->transfer_bytes;
    }
}

pc_sent pc_plan_sent(const pc_iteration_plan *plan) {
    double n = count_passes(plan);
    pc_sent sum = {.pp_bytes = 2 * plan->tied_bytes};
    for (int d = 0; d < plan->devices; d++)
        for (int c = 0; c < plan->chunks; c++) {
            add_passes(plan, d, c, n, &sum);
            sum.dp_bytes += sent_for_chunk(plan, &plan->chunks_of[(int64_t)d * plan->chunks + c], n);
        }
    return (pc_sent){sum.tp_bytes / plan->devices, sum.pp_bytes / plan->devices, sum.dp_bytes / plan->devices};
}
