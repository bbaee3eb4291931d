#include "models/training/plan.h"

#include "engine/alloc.h"
#include "models/cost/roofline.h"
#include "models/cost/spread.h"
#include "models/training/expand_replicas.h"
#include "models/training/pass_costs.h"
#include "models/training/plan_memo.h"
#include "models/training/state.h"

#include <string.h>

pc_code pc_plan_time(const char *what, double seconds, int32_t times, pc_time *time, pc_error *error) {
    if (seconds * times <= PC_PLAN_SECONDS_MAX && pc_time_from_seconds(seconds, time)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %g s; expected at most %d s", what, seconds * times,
                        PC_PLAN_SECONDS_MAX);
}

/* ---- what can be ---- */

static int chunks_of_spec(const pc_iteration_spec *spec) {
    return spec->cut.chunks > 0 ? spec->cut.chunks : spec->generator->chunks_default;
}

/* Where the schedule recomputes, parts do; the spec need not say it twice. */
static pc_cut full_cut(const pc_iteration_spec *spec) {
    pc_cut cut = spec->cut;
    cut.chunks = chunks_of_spec(spec);
    if (spec->generator->recomputes && cut.recompute == PC_RECOMPUTE_NONE) cut.recompute = PC_RECOMPUTE_FULL;
    return cut;
}

pc_code pc_iteration_plan_check(const pc_iteration_spec *spec, pc_error *error) {
    pc_cut cut = full_cut(spec);
    pc_ranks ranks;
    if (cut.tp < 1 || cut.pp < 1 || cut.dp < 1)
        return pc_error_set(error, PC_ERROR_INPUT, "cut: tp %d, pp %d, dp %d; expected each to be at least 1", cut.tp,
                            cut.pp, cut.dp);
    pc_code code = pc_generator_check(spec->generator, cut.pp, cut.microbatches, cut.chunks, error);
    if (code) return code;
    int parts = pc_placement_parts(spec->generator->placement, cut.pp, cut.chunks);
    code = pc_cut_check(&spec->model, &cut, parts, error);
    if (!code) code = pc_ranks_place(&spec->machine, spec->order, cut.tp, cut.pp, cut.dp, &ranks, error);
    return code;
}

/* ---- parts ---- */

static bool is_same_part(const pc_part *a, const pc_part *b) {
    return a->layers == b->layers && a->has_embedding == b->has_embedding && a->has_head == b->has_head &&
           a->recompute == b->recompute;
}

static pc_code add_part(pc_iteration_plan *plan, pc_collective_memo *memo, int device, int chunk, pc_error *error) {
    int number = pc_placement_part(plan->placement, plan->devices, device, chunk), sort = 0;
    pc_part part = pc_cut_part(&plan->spec->model, &plan->cut, plan->parts, number);
    while (sort < plan->sort_count && !is_same_part(&plan->part_costs[sort].part, &part)) sort++;
    plan->chunks_of[(int64_t)device * plan->chunks + chunk].sort = sort;
    if (sort < plan->sort_count) return PC_OK;
    plan->sort_count++;
    plan->part_costs[sort].part = part;
    if (plan->memo) return pc_plan_memo_find_part(plan, &plan->part_costs[sort], error);
    return pc_part_cost_make(plan, memo, &plan->part_costs[sort], error);
}

static pc_code add_parts(pc_iteration_plan *plan, pc_error *error) {
    pc_collective_memo memo = {.machine = &plan->spec->machine, .group = &plan->tp};
    pc_code code = PC_OK;
    for (int d = 0; !code && d < plan->devices; d++)
        for (int c = 0; !code && c < plan->chunks; c++) code = add_part(plan, &memo, d, c, error);
    return code;
}

/* ---- transfers ---- */

pc_alone pc_plan_alone(const pc_machine *machine, const pc_group *group, pc_collective collective, double size_bytes) {
    pc_collective_plan plan = pc_collective_plan_for(machine, group, collective, PC_ALGORITHM_BEST, size_bytes);
    pc_alone alone = {.seconds = plan.seconds};
    for (int i = 0; i < plan.phase_count; i++)
        alone.sent_bytes += plan.phase[i].domain_bytes + plan.phase[i].network_bytes;
    return alone;
}

static bool is_same_hop(const pc_hop *a, const pc_hop *b) {
    return a->in_domain == b->in_domain && a->crosses_leaves == b->crosses_leaves && a->bytes_per_s == b->bytes_per_s &&
           a->latency_s == b->latency_s;
}

/* Where the boundary tensor is scattered over TP ranks that do not cut the sequence, its receivers gather it again. */
static pc_alone gathering(const pc_iteration_plan *plan) {
    const pc_iteration_spec *spec = plan->spec;
    if (plan->cut.tp == 1 || plan->cut.sequence_parallel || !spec->scatters_boundary) return (pc_alone){0};
    double bytes = (double)pc_boundary_bytes(&spec->model, &plan->cut, false);
    return pc_plan_alone(&spec->machine, &plan->tp, PC_COLLECTIVE_ALL_GATHER, bytes);
}

static pc_code add_hops(pc_iteration_plan *plan, const pc_plan_places *places, pc_error *error) {
    const pc_iteration_spec *spec = plan->spec;
    double bytes = (double)pc_boundary_bytes(&spec->model, &plan->cut, spec->scatters_boundary && plan->cut.tp > 1);
    if (plan->devices == 1) return PC_OK;
    pc_alone behind = gathering(plan);
    plan->transfer_bytes = bytes + behind.sent_bytes;
    pc_code code = pc_plan_time("transfer", behind.seconds, 1, &plan->gathering_ps, error);
    for (int d = 0; !code && d < plan->devices; d++) {
        pc_device_plan *x = &plan->device[d];
        x->hop = places ? places->hop[d] : pc_hop_between(&spec->machine, &plan->ranks, d, (d + 1) % plan->devices);
        bool is_as_before = d > 0 && is_same_hop(&x->hop, &plan->device[d - 1].hop);
        x->message_s =
            is_as_before ? plan->device[d - 1].message_s : pc_message_seconds(&spec->machine, &x->hop, bytes);
        code = pc_plan_time("transfer", x->message_s, 1, &x->hop_ps, error);
        x->hop_ps += plan->gathering_ps;
    }
    return code;
}

/* ---- the plan ---- */

/* Two replicas in one pipeline reduce a part's gradients together: every rank and its counterpart on the stage across,
 * taken for those of the two stages farthest apart. */
static pc_group gradient_group(const pc_iteration_plan *plan, pc_group group) {
    if (plan->placement != PC_PLACEMENT_BIDIRECTIONAL || plan->devices == 1) return group;
    pc_group pair = pc_plan_pair(plan, 0, plan->devices - 1);
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

static bool make_arrays(pc_iteration_plan *plan) {
    size_t devices = (size_t)plan->devices, cells = devices * (size_t)plan->chunks;
    plan->part_costs = pc_alloc((size_t)plan->parts, sizeof *plan->part_costs);
    plan->chunks_of = pc_alloc(cells, sizeof *plan->chunks_of);
    plan->device = pc_alloc(devices, sizeof *plan->device);
    return plan->part_costs && plan->chunks_of && plan->device;
}

static pc_group group_on(const pc_iteration_plan *plan, const pc_plan_places *places, pc_axis axis) {
    return places ? places->group[axis] : pc_group_of(&plan->spec->machine, &plan->ranks, axis);
}

static pc_code fill_in(pc_iteration_plan *plan, pc_error *error) {
    const pc_iteration_spec *spec = plan->spec;
    const pc_cut *cut = &plan->cut;
    pc_code code = pc_ranks_place(&spec->machine, spec->order, cut->tp, cut->pp, cut->dp, &plan->ranks, error);
    if (code) return code;
    if (!make_arrays(plan)) return pc_error_no_memory(error);
    const pc_plan_places *places = NULL;
    if (plan->memo) code = pc_plan_memo_find_places(plan->memo, plan, &places, error);
    if (code) return code;
    plan->tp = group_on(plan, places, PC_AXIS_TP);
    plan->pp = group_on(plan, places, PC_AXIS_PP);
    plan->dp = gradient_group(plan, group_on(plan, places, PC_AXIS_DP));
    code = add_parts(plan, error);
    if (!code) code = add_hops(plan, places, error);
    if (!code) code = pc_plan_add_state(plan, error);
    return code;
}

/* All wait for each other sooner or later: the slowest one's pace is everybody's. */
static double pace_of(const pc_iteration_spec *spec) {
    int64_t gpus = (int64_t)spec->cut.tp * spec->cut.pp * spec->cut.dp;
    return (1 + spec->pass_overhead) * (1 + spec->machine.speed_variation * pc_expected_largest(gpus));
}

pc_code pc_iteration_plan_make(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_iteration_plan *plan,
                               pc_error *error) {
    return pc_iteration_plan_make_with(spec, cost, NULL, plan, error);
}

pc_code pc_iteration_plan_make_with(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_plan_memo *memo,
                                    pc_iteration_plan *plan, pc_error *error) {
    pc_iteration_plan made = {.spec = spec,
                              .memo = memo,
                              .cut = full_cut(spec),
                              .cost = cost ? *cost : pc_roofline(&spec->machine.gpu),
                              .pace = pace_of(spec),
                              .placement = spec->generator->placement,
                              .devices = spec->cut.pp,
                              .chunks = chunks_of_spec(spec)};
    made.parts = pc_placement_parts(made.placement, made.devices, made.chunks);
    made.shares_embedding = pc_placement_stage(made.placement, made.devices, 0, 0) ==
                            pc_placement_stage(made.placement, made.devices, made.parts - 1, 0);
    pc_code code = fill_in(&made, error);
    if (code)
        pc_iteration_plan_free(&made);
    else
        *plan = made;
    return code;
}

void pc_iteration_plan_free(pc_iteration_plan *plan) {
    pc_free(plan->part_costs);
    pc_free(plan->chunks_of);
    pc_free(plan->device);
    memset(plan, 0, sizeof *plan);
}

int64_t pc_iteration_plan_fixed(const pc_iteration_plan *plan, int device) {
    const pc_device_plan *x = &plan->device[device];
    return x->fixed_parameters + x->fixed_gradients + x->fixed_optimizer + x->fixed_buffers;
}

int64_t pc_iteration_plan_room(const pc_iteration_plan *plan, int device) {
    int64_t room = plan->device[device].capacity_bytes - pc_iteration_plan_fixed(plan, device);
    return room > 0 ? room : 0;
}

/* ---- the passes' costs ---- */

double pc_iteration_plan_pass_s(const pc_iteration_plan *plan, int device, pc_pass pass) {
    const pc_pass_cost *x = &pc_plan_part(plan, device, pass.chunk)->pass[pass.kind];
    return (x->compute_s + x->tp_s) * plan->pace;
}

pc_time pc_plan_with_zero(const pc_iteration_plan *plan, int device, pc_pass pass, pc_time alone_ps) {
    const pc_chunk_plan *x = &plan->chunks_of[(int64_t)device * plan->chunks + pass.chunk];
    bool gathers = plan->cut.zero == 3 && pass.kind != PC_PASS_W;
    bool reduces = pc_pass_adds_gradients(pass) && (plan->cut.zero == 3 || !plan->spec->overlaps_gradients);
    pc_time gather_ps = gathers ? x->buckets * x->gather_ps : 0, reduce_ps = reduces ? x->buckets * x->reduce_ps : 0;
    pc_time beside_ps =
        (plan->spec->overlaps_parameters ? gather_ps : 0) + (plan->spec->overlaps_gradients ? reduce_ps : 0);
    return (alone_ps > beside_ps ? alone_ps : beside_ps) + gather_ps + reduce_ps - beside_ps;
}

int pc_plan_receiver(const pc_iteration_plan *plan, int device, pc_pass pass) {
    int part = pc_placement_part(plan->placement, plan->devices, device, pass.chunk), next;
    if (pass.kind == PC_PASS_F)
        next = part + 1;
    else if (pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW)
        next = part - 1;
    else
        return -1;
    if (next < 0 || next == plan->parts) return -1;
    int to = pc_placement_stage(plan->placement, plan->devices, next, pass.chunk);
    return to == device ? -1 : to;
}

static pc_time with_collectives(const pc_iteration_plan *plan, int device, pc_pass pass, int without,
                                pc_time alone_ps) {
    bool has_zero = plan->cut.zero >= 2 && !(without & PC_WITHOUT_DATA_PARALLEL);
    return has_zero ? pc_plan_with_zero(plan, device, pass, alone_ps) : alone_ps;
}

/* Where stages wait for what they send. */
static pc_time wait_behind(const pc_iteration_plan *plan, int device, pc_pass pass) {
    int to = pc_plan_receiver(plan, device, pass);
    return to < 0 ? 0 : plan->device[pc_plan_hop(plan, device, to)].hop_ps;
}

pc_time pc_plan_whole_pass(const pc_iteration_plan *plan, int device, pc_pass pass, int without, pc_time alone_ps) {
    bool waits = !plan->spec->overlaps_p2p && !(without & PC_WITHOUT_TRANSFERS);
    return with_collectives(plan, device, pass, without, alone_ps) + (waits ? wait_behind(plan, device, pass) : 0);
}

static pc_code set_duration(const pc_iteration_plan *plan, int device, pc_pass pass, int without, pc_costs *costs,
                            pc_error *error) {
    pc_time time;
    double seconds = pc_iteration_plan_pass_s(plan, device, pass);
    pc_code code = pc_plan_time(pc_pass_kind_name((pc_pass_kind)pass.kind), seconds, 1, &time, error);
    if (code) return code;
    costs->duration_ps[pc_costs_index(costs, device, pass.chunk) * PC_PASS_KINDS + pass.kind] =
        with_collectives(plan, device, pass, without, time);
    return PC_OK;
}

static pc_code set_chunk(const pc_iteration_plan *plan, int device, int chunk, int without, pc_costs *costs,
                         pc_error *error) {
    const pc_part_activation *held = &pc_plan_part(plan, device, chunk)->activation;
    int64_t row = pc_costs_index(costs, device, chunk);
    pc_code code = PC_OK;
    costs->activation_bytes[row] = held->taken;
    costs->activation_b_bytes[row] = held->b_frees;
    costs->activation_kept_bytes[row] = held->kept;
    for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
        if (pc_plan_has_kind(plan->spec->generator, (pc_pass_kind)kind))
            code = set_duration(plan, device, (pc_pass){0, (int16_t)chunk, (int16_t)kind}, without, costs, error);
    return code;
}

/* Searches go by the slowest hop; the way from the last stage back to the first is like one of the others. */
static pc_code set_hops(const pc_iteration_plan *plan, pc_costs *costs, pc_error *error) {
    pc_code code = pc_costs_add_hop_delays(costs, error);
    for (int d = 0; !code && d < plan->devices; d++) {
        pc_time delay = costs->hop_delay_ps[d] = plan->device[d].hop_ps;
        if (delay > costs->transfer.delay_ps) costs->transfer.delay_ps = delay;
    }
    return code;
}

int pc_plan_nth_chunk(const pc_iteration_plan *plan, int device, int n) {
    bool is_reversed = plan->placement == PC_PLACEMENT_BIDIRECTIONAL && 2 * device >= plan->devices;
    return is_reversed ? plan->chunks - 1 - n : n;
}

void pc_plan_set_ready(const pc_iteration_plan *plan, int device, pc_costs *costs) {
    pc_time stream_ps = 0;
    for (int i = 0; i < plan->chunks; i++) {
        int c = pc_plan_nth_chunk(plan, device, i);
        const pc_chunk_plan *x = &plan->chunks_of[(int64_t)device * plan->chunks + c];
        pc_time f_ps = pc_costs_duration(costs, device, c, PC_PASS_F), latest = 0;
        for (int32_t k = 0; k < x->buckets; k++) {
            stream_ps += x->gather_ps;
            pc_time ready = stream_ps - f_ps / x->buckets * k;
            if (ready > latest) latest = ready;
        }
        costs->ready_ps[pc_costs_index(costs, device, c)] = latest;
    }
    for (int c = 0; !plan->spec->overlaps_parameters && c < plan->chunks; c++)
        costs->ready_ps[pc_costs_index(costs, device, c)] = stream_ps;
}

bool pc_plan_gathers_first(const pc_iteration_plan *plan) {
    return (plan->cut.zero == 1 || plan->cut.zero == 2) && plan->dp.ranks > 1;
}

bool pc_plan_reduces_behind(const pc_iteration_plan *plan) {
    bool in_passes = plan->cut.zero == 3 || (plan->cut.zero == 2 && !plan->spec->overlaps_gradients);
    return plan->dp.ranks > 1 && !in_passes;
}

/* Where stages wait for what they send, that is part of the pass; but parameters come on the way of its kernels. */
static void add_waits(const pc_iteration_plan *plan, int device, pc_costs *costs) {
    for (int c = 0; c < plan->chunks; c++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            pc_time *duration_ps = &costs->duration_ps[pc_costs_index(costs, device, c) * PC_PASS_KINDS + kind];
            if (*duration_ps >= 0) *duration_ps += wait_behind(plan, device, (pc_pass){0, (int16_t)c, (int16_t)kind});
        }
}

static pc_code set_transfers(const pc_iteration_plan *plan, pc_costs *costs, pc_error *error) {
    if (plan->spec->overlaps_p2p) return set_hops(plan, costs, error);
    for (int d = 0; d < plan->devices; d++) add_waits(plan, d, costs);
    return PC_OK;
}

bool pc_plan_recomputes_in_b(const pc_iteration_plan *plan) {
    for (int i = 0; i < plan->sort_count && !plan->spec->generator->recomputes; i++)
        if (plan->part_costs[i].activation.kept < plan->part_costs[i].activation.taken) return true;
    return false;
}

static pc_code fill_in_costs(const pc_iteration_plan *plan, int without, pc_costs *costs, pc_error *error) {
    bool gathers = pc_plan_gathers_first(plan) && !(without & PC_WITHOUT_DATA_PARALLEL);
    pc_code code = gathers ? pc_costs_add_ready(costs, error) : PC_OK;
    costs->recomputes_in_b = pc_plan_recomputes_in_b(plan);
    for (int d = 0; !code && d < plan->devices; d++) {
        for (int c = 0; !code && c < plan->chunks; c++) code = set_chunk(plan, d, c, without, costs, error);
        if (!code && gathers) pc_plan_set_ready(plan, d, costs);
    }
    return code || without & PC_WITHOUT_TRANSFERS ? code : set_transfers(plan, costs, error);
}

pc_code pc_iteration_plan_costs(const pc_iteration_plan *plan, int without, pc_costs *costs, pc_error *error) {
    pc_costs made;
    pc_code code = pc_costs_create(plan->devices, plan->chunks, &made, error);
    if (code) return code;
    code = fill_in_costs(plan, without, &made, error);
    if (code)
        pc_costs_free(&made);
    else
        *costs = made;
    return code;
}
