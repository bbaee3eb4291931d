#include "models/training/graph_pools.h"

#include "engine/numbers.h"
#include "models/training/outline_pairs.h"
#include "models/training/pass_costs.h"
#include "models/workload/memory_kinds.h"

void pc_graph_pools_share(const pc_outline *outline, pc_part_cost *part) {
    int32_t graphs = outline->cut.graphs;
    part->pooled = part->hidden = graphs & (int32_t)PC_GRAPHS_ITERATION ? part->activation.taken : 0;
    if (!(graphs & (int32_t)PC_GRAPHS_LAYER)) return;
    pc_activation_bytes taken = pc_part_kinds_of(&outline->spec->model, &outline->cut, &part->part,
                                                 pc_outline_forms(outline), &part->activation)
                                    .taken;
    if (graphs & (int32_t)PC_GRAPHS_ATTN) part->hidden += taken.of[PC_ACTIVATION_ATTENTION];
    if (graphs & (int32_t)PC_GRAPHS_MLP) part->hidden += taken.of[PC_ACTIVATION_MLP];
    part->pooled = part->hidden + taken.of[PC_ACTIVATION_NORMS]; /* each half's input, which is the other's output */
}

/* Of a pair in a graph of the whole iteration, what F takes where the backward pass has given it back before, as in
 * pc_costs_shared. A layer's graphs have their own buffers for each microbatch. */
static int64_t shared_of(const pc_outline *outline, const pc_schedule *schedule, int device, int64_t position) {
    int64_t at = pc_schedule_is_second(schedule, position) ? position - 1 : position;
    bool is_whole = outline->cut.graphs & (int32_t)PC_GRAPHS_ITERATION;
    if (!is_whole || !pc_outline_has_pairs(outline) || !pc_schedule_pairs_at(schedule, at)) return 0;
    const pc_part_cost *f = pc_outline_part(outline, device, schedule->passes[at].chunk);
    const pc_part_cost *back = pc_outline_part(outline, device, schedule->passes[at + 1].chunk);
    int64_t layer = pc_divide_up(f->pooled, pc_max(f->part.layers, 1));
    return pc_max(pc_min(f->pooled, back->pooled) - layer, 0);
}

pc_graph_pools pc_graph_pools_of(const pc_outline *outline, const pc_schedule *schedule, int device) {
    pc_graph_pools level = {0}, most = {0};
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        const pc_part_cost *part = pc_outline_part(outline, device, pass.chunk);
        bool begins = pass.kind == PC_PASS_F, ends = pass.kind == PC_PASS_BW || pass.kind == PC_PASS_W;
        int sign = begins ? 1 : ends ? -1 : 0;
        int64_t shared = shared_of(outline, schedule, device, i);
        level.held += sign * (part->pooled - shared);
        level.hidden += sign * (part->hidden - shared);
        level.outside += sign * (part->activation.taken - part->hidden);
        most.held = pc_max(most.held, level.held);
        most.hidden = pc_max(most.hidden, level.hidden);
        most.outside = pc_max(most.outside, level.outside);
    }
    return most;
}
