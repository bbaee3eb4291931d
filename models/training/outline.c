#include "models/training/outline.h"

#include "engine/alloc.h"
#include "models/cost/roofline.h"
#include "models/cost/spread.h"
#include "models/training/offload_spec.h"
#include "models/training/outline_balance.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_fit.h"
#include "models/training/outline_memo.h"
#include "models/training/outline_restate.h"
#include "models/training/pass_costs.h"
#include "models/training/state.h"

#include <string.h>

pc_code pc_outline_time(const char *what, double seconds, int32_t times, pc_time *time, pc_error *error) {
    if (seconds * times <= PC_OUTLINE_SECONDS_MAX && pc_time_from_seconds(seconds, time)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %g s; expected at most %d s", what, seconds * times,
                        PC_OUTLINE_SECONDS_MAX);
}

/* ---- what can be ---- */

static int chunks_of_spec(const pc_iteration_spec *spec) {
    return (int)pc_generator_chunks(spec->generator, spec->cut.chunks, spec->cut.slices);
}

/* Where the schedule recomputes, parts do; the spec need not say it twice. */
static pc_cut full_cut(const pc_iteration_spec *spec) {
    pc_cut cut = spec->cut;
    cut.chunks = chunks_of_spec(spec);
    bool has_slices = pc_placement_has_slices(spec->generator->placement);
    cut.slices = has_slices ? pc_generator_slices(spec->generator, cut.chunks, spec->cut.slices) : 0;
    if (spec->generator->barriers != PC_BARRIERS_NONE) {
        cut.vocab_stages = cut.pp;
        cut.vocab_barriers = (int)spec->generator->barriers;
    }
    if (spec->generator->recomputes && cut.recompute == PC_RECOMPUTE_NONE) cut.recompute = PC_RECOMPUTE_FULL;
    return cut;
}

static pc_rank_counts counts_of(const pc_cut *cut) {
    return (pc_rank_counts){cut->tp, cut->pp, cut->dp, pc_cut_cp(cut)};
}

static pc_code check_shard_group(const pc_iteration_spec *spec, pc_error *error) {
    const pc_cut *cut = &spec->cut;
    if (cut->shard_group == 0) return PC_OK;
    if (cut->shard_group < 0 || pc_cut_replicas(cut) % cut->shard_group)
        return pc_error_set(error, PC_ERROR_INPUT, "shard_group %d with dp %d%s; expected a divisor of dp%s",
                            cut->shard_group, pc_cut_replicas(cut), pc_cut_cp(cut) > 1 ? " x cp" : "",
                            pc_cut_cp(cut) > 1 ? " x cp" : "");
    if (cut->zero == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "shard_group %d with zero 0, which shards nothing; expected zero 1 to 3", cut->shard_group);
    if (spec->generator->placement == PC_PLACEMENT_BIDIRECTIONAL)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "shard_group %d with %s, whose two replicas share state; expected another schedule",
                            cut->shard_group, spec->generator->name);
    return PC_OK;
}

/* What only units have is refused without them. */
static pc_code check_units(const pc_iteration_spec *spec, pc_error *error) {
    bool has_units = spec->cut.zero == 3 && spec->unit == PC_UNIT_LAYER;
    if (has_units || spec->cut.zero != 3) return PC_OK;
    if (spec->reshard_after_forward != PC_RESHARD_DEFAULT)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "reshard_after_forward with fsdp_unit bucket, which gathers for every pass; expected "
                            "fsdp_unit: layer");
    if (spec->gradient_sync != PC_GRADIENT_SYNC_DEFAULT)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "gradient_sync with fsdp_unit bucket, which reduces in every backward pass; expected "
                            "fsdp_unit: layer");
    return PC_OK;
}

/* A loss in pieces has no logits left for T, and T is of tables that are trained. ZeRO 3 would gather tables between
 * the layers' passes. Copies to the host hide behind passes of layers. */
static pc_code check_vocab(const pc_iteration_spec *spec, pc_error *error) {
    const pc_cut *cut = &spec->cut;
    const char *name = spec->generator->name;
    if (spec->generator->barriers == PC_BARRIERS_NONE) return PC_OK;
    if (cut->cross_entropy == PC_CROSS_ENTROPY_CHUNKED)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "cross_entropy chunked with %s, which keeps the logits from S to T; expected fused, or "
                            "another schedule",
                            name);
    if (cut->zero == 3 && pc_cut_replicas(cut) > 1)
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "zero 3 with %s, whose stages keep their slices of the vocabulary; expected zero 0 to 2, or "
            "another schedule",
            name);
    if (pc_cut_frozen(cut) & (int32_t)(PC_FROZEN_EMBEDDING | PC_FROZEN_HEAD))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s with %s, whose T is the gradient of both ends; expected another schedule",
                            cut->lora.rank > 0 ? "lora" : "frozen", name);
    if (pc_offload_is_beside_passes(&cut->offload))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offload beside passes with %s, which has S and T; expected fine-grained, or another "
                            "schedule",
                            name);
    return PC_OK;
}

/* Where nobody shares state, what ZeRO would cut is whole. */
static pc_code check_optimizer(const pc_iteration_spec *spec, pc_error *error) {
    bool has_units = spec->cut.zero == 3 && spec->unit == PC_UNIT_LAYER;
    bool is_separate = spec->optimizer_kernels == PC_OPTIMIZER_SEPARATE;
    pc_cut cut = spec->cut;
    bool is_alone = pc_cut_replicas(&cut) == 1 && spec->generator->placement != PC_PLACEMENT_BIDIRECTIONAL;
    if (is_alone) {
        cut.zero = 1;
        cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    }
    bool has_shards = has_units && !is_alone && spec->fsdp_version != PC_FSDP_MEGATRON;
    return pc_optimizer_check(&cut, is_separate, has_shards, error);
}

pc_code pc_outline_check(const pc_iteration_spec *spec, pc_error *error) {
    pc_cut cut = full_cut(spec);
    pc_ranks ranks;
    if (cut.tp < 1 || cut.pp < 1 || cut.dp < 1)
        return pc_error_set(error, PC_ERROR_INPUT, "cut: tp %d, pp %d, dp %d; expected each to be at least 1", cut.tp,
                            cut.pp, cut.dp);
    pc_code code = check_shard_group(spec, error);
    if (!code) code = check_units(spec, error);
    if (!code) code = pc_outline_check_balanced(spec, error);
    if (!code) code = check_optimizer(spec, error);
    if (!code) code = pc_offload_can_be(spec, error);
    if (!code) code = check_vocab(spec, error);
    if (!code) code = pc_generator_check(spec->generator, cut.pp, cut.microbatches, cut.chunks, error);
    if (!code) code = pc_generator_check_slices(spec->generator, cut.chunks, cut.slices, error);
    if (!code) code = pc_generator_check_making(spec->generator, spec->making, error);
    if (!code) code = pc_generator_check_goal(spec->generator, spec->making, spec->goal, error);
    if (code) return code;
    pc_placement placement = pc_generator_placement(spec->generator, cut.chunks, cut.slices);
    int parts = pc_placement_parts(placement, cut.pp, cut.chunks);
    code = pc_cut_check(&spec->model, &cut, parts, error);
    if (!code) code = pc_ranks_place(&spec->machine, spec->order, counts_of(&cut), &ranks, error);
    if (!code) code = pc_outline_check_experts(spec, &cut, &ranks, error);
    if (code || cut.shard_group == 0 || pc_ranks_join(&ranks, PC_AXIS_DP, PC_AXIS_CP, NULL)) return code;
    return pc_error_set(
        error, PC_ERROR_INPUT,
        "shard_group %d with a rank order in which cp and dp are no neighbours; expected another order, "
        "such as tp-cp-dp-pp",
        cut.shard_group);
}

/* ---- parts ---- */

static bool is_same_part(const pc_part *a, const pc_part *b) {
    return a->layers == b->layers && a->expert_layers == b->expert_layers && a->mtp_layers == b->mtp_layers &&
           a->mtp_heads == b->mtp_heads && a->wide_layers == b->wide_layers && a->local_layers == b->local_layers &&
           a->has_embedding == b->has_embedding && a->has_head == b->has_head && a->has_vocab == b->has_vocab &&
           a->recompute == b->recompute && a->recompute_layers == b->recompute_layers &&
           a->recompute_modules == b->recompute_modules && a->offloaded_layers == b->offloaded_layers &&
           a->slice == b->slice;
}

static pc_code add_part(pc_outline *outline, pc_collective_memo *memo, int device, int chunk, pc_error *error) {
    int number = pc_placement_part(outline->placement, outline->devices, device, chunk), sort = 0;
    pc_part part = pc_cut_part(&outline->spec->model, &outline->cut, outline->parts, number);
    if (outline->cut.slices > 0) part.slice = chunk % outline->cut.slices;
    while (sort < outline->sort_count && !is_same_part(&outline->part_costs[sort].part, &part)) sort++;
    outline->chunks_of[(int64_t)device * outline->chunks + chunk].sort = sort;
    if (sort < outline->sort_count) return PC_OK;
    outline->sort_count++;
    outline->part_costs[sort].part = part;
    if (outline->memo) return pc_outline_memo_find_part(outline, &outline->part_costs[sort], error);
    return pc_part_cost_make(outline, memo, &outline->part_costs[sort], error);
}

static pc_code add_parts(pc_outline *outline, pc_error *error) {
    pc_collective_memo memo = {.outline = outline};
    pc_code code = PC_OK;
    for (int d = 0; !code && d < outline->devices; d++)
        for (int c = 0; !code && c < outline->chunks; c++) code = add_part(outline, &memo, d, c, error);
    return code;
}

pc_code pc_outline_divide_again(pc_outline *outline, pc_error *error) {
    memset(outline->part_costs, 0, (size_t)outline->sort_count * sizeof *outline->part_costs);
    memset(outline->chunks_of, 0, (size_t)outline->devices * (size_t)outline->chunks * sizeof *outline->chunks_of);
    outline->sort_count = 0;
    pc_code code = add_parts(outline, error);
    return code ? code : pc_outline_share_state(outline, error);
}

/* ---- transfers ---- */

pc_alone pc_outline_alone(const pc_machine *machine, const pc_group *group, pc_collective collective,
                          double size_bytes) {
    return pc_outline_alone_by(pc_collective_course_of(machine, group, collective, PC_ALGORITHM_BEST, size_bytes));
}

pc_alone pc_outline_alone_by(pc_collective_course course) {
    pc_alone alone = {.seconds = course.seconds};
    for (int i = 0; i < course.phase_count; i++)
        alone.sent_bytes += course.phase[i].domain_bytes + course.phase[i].network_bytes;
    return alone;
}

static bool is_same_hop(const pc_hop *a, const pc_hop *b) {
    return a->in_domain == b->in_domain && a->crosses_leaves == b->crosses_leaves && a->bytes_per_s == b->bytes_per_s &&
           a->latency_s == b->latency_s;
}

/* Where the boundary tensor is scattered over TP ranks that do not cut the sequence, its receivers gather it again. */
static pc_alone gathering(const pc_outline *outline) {
    const pc_iteration_spec *spec = outline->spec;
    if (outline->cut.tp == 1 || outline->cut.sequence_parallel || !spec->scatters_boundary) return (pc_alone){0};
    double bytes = (double)pc_boundary_bytes(&spec->model, &outline->cut, false);
    return pc_outline_alone(&spec->machine, &outline->tp, PC_COLLECTIVE_ALL_GATHER, bytes);
}

static pc_code add_hops(pc_outline *outline, const pc_outline_places *places, pc_error *error) {
    const pc_iteration_spec *spec = outline->spec;
    double bytes =
        (double)pc_boundary_bytes(&spec->model, &outline->cut, spec->scatters_boundary && outline->cut.tp > 1);
    if (outline->devices == 1) return PC_OK;
    pc_alone behind = gathering(outline);
    outline->transfer_bytes = bytes + behind.sent_bytes;
    pc_code code = pc_outline_time("transfer", behind.seconds, 1, &outline->gathering_ps, error);
    for (int d = 0; !code && d < outline->devices; d++) {
        pc_device_outline *x = &outline->device[d];
        x->hop =
            places ? places->hop[d] : pc_hop_between(&spec->machine, &outline->ranks, d, (d + 1) % outline->devices);
        bool is_as_before = d > 0 && is_same_hop(&x->hop, &outline->device[d - 1].hop);
        x->message_s =
            is_as_before ? outline->device[d - 1].message_s : pc_message_seconds(&spec->machine, &x->hop, bytes);
        code = pc_outline_time("transfer", x->message_s, 1, &x->hop_ps, error);
        x->hop_ps += outline->gathering_ps;
    }
    return code;
}

/* ---- the outline ---- */

/* Two replicas in one pipeline reduce a part's gradients together, those of folded experts among them: every rank and
 * its counterpart on the stage across, taken for those of the two stages farthest apart. */
static pc_group gradient_group(const pc_outline *outline, pc_group group) {
    if (outline->placement != PC_PLACEMENT_BIDIRECTIONAL || outline->devices == 1) return group;
    pc_group pair = pc_outline_pair(outline, 0, outline->devices - 1);
    if (group.ranks == 1) return pair;
    bool has_rate =
        group.nic_bytes_per_s > 0 && !(pair.nic_bytes_per_s > 0 && pair.nic_bytes_per_s < group.nic_bytes_per_s);
    if (!has_rate) group.nic_bytes_per_s = pair.nic_bytes_per_s;
    group.ranks *= 2;
    group.in_domain *= pair.in_domain;
    group.domains *= pair.domains;
    group.in_leaf *= pair.in_leaf;
    group.crosses_leaves = group.crosses_leaves || pair.crosses_leaves;
    return group;
}

static bool make_arrays(pc_outline *outline) {
    size_t devices = (size_t)outline->devices, cells = devices * (size_t)outline->chunks;
    size_t sorts = (size_t)outline->parts * (size_t)pc_cut_slices(&outline->cut);
    outline->part_costs = pc_alloc(sorts, sizeof *outline->part_costs);
    outline->chunks_of = pc_alloc(cells, sizeof *outline->chunks_of);
    outline->device = pc_alloc(devices, sizeof *outline->device);
    return outline->part_costs && outline->chunks_of && outline->device;
}

static pc_group group_on(const pc_outline *outline, const pc_outline_places *places, pc_axis axis) {
    return places ? places->group[axis] : pc_group_of(&outline->spec->machine, &outline->ranks, axis);
}

/* Groups of context parallelism, and of those who have the same parameters. */
static pc_group place_replicas(pc_outline *outline, const pc_outline_places *places) {
    pc_outline_places own;
    if (pc_cut_cp(&outline->cut) == 1) return group_on(outline, places, PC_AXIS_DP);
    if (!places) pc_outline_place_context(outline, &own);
    const pc_outline_places *found = places ? places : &own;
    memcpy(outline->cp_groups, found->cp_groups, sizeof outline->cp_groups);
    outline->cp_hop = found->cp_hop;
    return found->replicas;
}

static pc_code place(pc_outline *outline, const pc_outline_places **found, pc_error *error) {
    const pc_iteration_spec *spec = outline->spec;
    const pc_cut *cut = &outline->cut;
    pc_code code = pc_ranks_place(&spec->machine, spec->order, counts_of(cut), &outline->ranks, error);
    if (!code && outline->memo) code = pc_outline_memo_find_places(outline->memo, outline, found, error);
    if (code) return code;
    const pc_outline_places *places = *found;
    outline->tp = group_on(outline, places, PC_AXIS_TP);
    outline->pp = group_on(outline, places, PC_AXIS_PP);
    outline->dp = gradient_group(outline, place_replicas(outline, places));
    outline->experts.etp = outline->tp;
    pc_outline_know_load(outline);
    if (pc_cut_folds_experts(&spec->model, cut))
        outline->experts = places ? places->experts : pc_outline_place_experts(outline);
    if (outline->experts.ep.ranks > 0) outline->experts.replicas = gradient_group(outline, outline->experts.replicas);
    pc_outline_split_replicas(outline);
    return PC_OK;
}

bool pc_outline_has_parts_of(const pc_outline *outline, const pc_iteration_spec *spec) {
    pc_outline other = *outline;
    const pc_outline_places *places = NULL;
    other.spec = spec;
    other.cut = full_cut(spec);
    return !place(&other, &places, NULL) && pc_outline_memo_has_same_parts(outline, &other);
}

static pc_code fill_in(pc_outline *outline, pc_error *error) {
    const pc_outline_places *places = NULL;
    if (!make_arrays(outline)) return pc_error_no_memory(error);
    pc_code code = place(outline, &places, error);
    if (!code) code = pc_outline_balance(outline, error);
    if (!code) code = add_parts(outline, error);
    if (!code) code = add_hops(outline, places, error);
    if (!code) code = pc_outline_add_state(outline, error);
    return code || outline->spec->cut.layout != PC_CUT_BALANCED_MEMORY ? code : pc_outline_fit(outline, error);
}

/* All wait for each other sooner or later: the slowest one's pace is everybody's. */
static double pace_of(const pc_iteration_spec *spec) {
    int64_t gpus = (int64_t)spec->cut.tp * spec->cut.pp * pc_cut_replicas(&spec->cut);
    return (1 + spec->pass_overhead) * (1 + spec->machine.speed_variation * pc_expected_largest(gpus));
}

pc_code pc_outline_make(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_outline *outline,
                        pc_error *error) {
    return pc_outline_make_with(spec, cost, NULL, outline, error);
}

pc_code pc_outline_make_with(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_outline_memo *memo,
                             pc_outline *outline, pc_error *error) {
    pc_outline made = {.spec = spec,
                       .memo = memo,
                       .cut = full_cut(spec),
                       .cost = cost ? *cost : pc_roofline(&spec->machine.gpu),
                       .pace = pace_of(spec),
                       .placement = pc_generator_placement(spec->generator, spec->cut.chunks, spec->cut.slices),
                       .devices = spec->cut.pp,
                       .chunks = chunks_of_spec(spec)};
    if (spec->cut.graphs & (int32_t)PC_GRAPHS_ITERATION) made.cost.launch_s = 0;
    made.parts = pc_placement_parts(made.placement, made.devices, made.chunks);
    made.shares_embedding = pc_placement_stage(made.placement, made.devices, 0, 0) ==
                            pc_placement_stage(made.placement, made.devices, made.parts - 1, 0);
    pc_code code = fill_in(&made, error);
    if (code)
        pc_outline_free(&made);
    else
        *outline = made;
    return code;
}

void pc_outline_free(pc_outline *outline) {
    pc_free(outline->layers_of_part);
    pc_free(outline->part_costs);
    pc_free(outline->chunks_of);
    pc_free(outline->device);
    memset(outline, 0, sizeof *outline);
}

int64_t pc_outline_fixed(const pc_outline *outline, int device) {
    const pc_device_outline *x = &outline->device[device];
    return x->fixed_parameters + x->fixed_gradients + x->fixed_optimizer + x->fixed_buffers;
}

int64_t pc_outline_room(const pc_outline *outline, int device) {
    int64_t room = outline->device[device].capacity_bytes - pc_outline_fixed(outline, device);
    return room > 0 ? room : 0;
}
