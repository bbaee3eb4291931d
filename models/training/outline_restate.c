#include "models/training/outline_restate.h"

#include "models/training/outline_memo.h"
#include "models/training/state.h"

/* A shard group's ranks have all experts, each on as many of them: so many replicas of an expert share its state
 * (torchtitan's torchtitan/distributed/parallel_dims.py: efsdp = dp_shard * cp * tp / (etp * ep), within each of
 * dp_replicate groups). */
static void split_experts(pc_outline *outline, int first, int all) {
    const pc_machine *machine = &outline->spec->machine;
    const pc_cut *cut = &outline->cut;
    pc_expert_places *x = &outline->experts;
    pc_ranks experts, inner, outer;
    int sharing = (int)((int64_t)first * cut->tp / ((int64_t)pc_cut_ep(cut) * pc_cut_etp(cut)));
    x->shard = x->replicas;
    x->replicate = (pc_group){.ranks = 1, .in_domain = 1, .domains = 1, .in_leaf = 1};
    if (x->ep.ranks == 0 || first == all) return;
    pc_ranks_place_experts(&outline->ranks, outline->spec->order, pc_cut_etp(cut), pc_cut_ep(cut), &experts, NULL);
    pc_ranks_split(&experts, PC_AXIS_DP, sharing, &inner, &outer);
    x->shard = pc_group_of(machine, &inner, PC_AXIS_DP);
    x->replicate = pc_group_of(machine, &outer, PC_AXIS_DP);
}

void pc_outline_split_replicas(pc_outline *outline) {
    const pc_machine *machine = &outline->spec->machine;
    int first = outline->cut.shard_group;
    pc_ranks joined, inner, outer;
    outline->shard = outline->dp;
    outline->replicate = (pc_group){.ranks = 1, .in_domain = 1, .domains = 1, .in_leaf = 1};
    int all = pc_cut_replicas(&outline->cut);
    split_experts(outline, first > 0 ? first : all, all);
    if (first == 0 || first == all) return;
    pc_ranks_join(&outline->ranks, PC_AXIS_DP, PC_AXIS_CP, &joined);
    pc_ranks_split(&joined, PC_AXIS_DP, first, &inner, &outer);
    outline->shard = pc_group_of(machine, &inner, PC_AXIS_DP);
    outline->replicate = pc_group_of(machine, &outer, PC_AXIS_DP);
}

static pc_cut cut_with_state_of(const pc_outline *outline, const pc_iteration_spec *spec) {
    pc_cut cut = outline->cut;
    cut.zero = spec->cut.zero;
    cut.shard_group = spec->cut.shard_group;
    cut.offload.kinds = spec->cut.offload.kinds;
    return cut;
}

bool pc_outline_can_restate(const pc_outline *outline, const pc_iteration_spec *spec) {
    pc_outline other = *outline;
    if (spec->cut.layout == PC_CUT_BALANCED_MEMORY) return false;
    other.spec = spec;
    other.cut = cut_with_state_of(outline, spec);
    return pc_outline_memo_has_same_parts(outline, &other);
}

pc_code pc_outline_restate(pc_outline *outline, const pc_iteration_spec *spec, pc_error *error) {
    outline->spec = spec;
    outline->cut = cut_with_state_of(outline, spec);
    pc_outline_split_replicas(outline);
    return pc_outline_share_state(outline, error);
}
