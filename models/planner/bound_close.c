/* Bounds that take long, for who would otherwise search or simulate: those of searches' spans, and the times of a known
 * order. */
#include "models/planner/bounder.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/planner/bound_twin.h"
#include "models/schedule/least_span.h"
#include "models/training/expand_replicas.h"
#include "models/training/outline.h"

/* ---- (5): spans ---- */

/* Of passes in operations over flows only the kernels are known to come one after the other; where stages wait for what
 * they have sent, and where passes wait for memory, orders are
 * others than those that were searched for. */
static bool knows_times(const pc_outline *outline) {
    const pc_iteration_spec *spec = outline->spec;
    if (spec->waits_for_memory) return false;
    return !plan_runs_flows(outline, SCOPE_ONE) || (spec->overlaps_p2p && spec->granularity == PC_GRANULARITY_PASS);
}

static void shave_hops(pc_costs *costs) {
    costs->transfer.delay_ps = plan_shave(costs->transfer.delay_ps);
    for (int d = 0; costs->hop_delay_ps && d < costs->devices; d++)
        costs->hop_delay_ps[d] = plan_shave(costs->hop_delay_ps[d]);
}

static pc_code find_spans(const pc_outline *outline, pc_costs *costs, bool is_close, pc_time *span_ps,
                          pc_error *error) {
    int64_t *room_bytes = pc_alloc((size_t)outline->devices, sizeof *room_bytes);
    if (!room_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < outline->devices; d++) room_bytes[d] = pc_outline_room(outline, d);
    if (plan_runs_flows(outline, SCOPE_ONE)) shave_hops(costs);
    pc_generate_request request = pc_outline_request(outline, costs);
    request.memory_limit = (pc_memory_limit){room_bytes};
    pc_code code = pc_generator_least_spans(outline->spec->generator, &request, is_close, span_ps, error);
    pc_free(room_bytes);
    return code;
}

pc_code plan_bound_spans(plan_bounder *bounder, const pc_outline *outline, bool is_close, pc_error *error) {
    pc_costs costs;
    if (!outline->spec->generator->searches || !knows_times(outline)) return PC_OK;
    pc_time *span_ps = pc_alloc((size_t)outline->devices, sizeof *span_ps);
    if (!span_ps) return pc_error_no_memory(error);
    pc_code code = pc_outline_costs(outline, 0, &costs, error);
    if (!code) {
        code = find_spans(outline, &costs, is_close, span_ps, error);
        pc_costs_free(&costs);
    }
    pc_free(bounder->span_ps);
    bounder->span_ps = code ? NULL : span_ps;
    if (code) pc_free(span_ps);
    return code ? code : plan_twin_spans(bounder, is_close, error);
}

/* ---- a known order ---- */

/* What goes over links takes less than alone only by rounding. */
static pc_time shave_flow(const pc_outline *outline, pc_time time) {
    return plan_runs_flows(outline, SCOPE_ONE) ? plan_shave(time) : time;
}

/* When a stage's passes end, each transfer on the way being rounded by less. */
static pc_time least_end(const pc_outline *outline, const pc_schedule *schedule, pc_time end_ps) {
    bool is_flows = plan_runs_flows(outline, SCOPE_ONE);
    pc_time rounding = is_flows ? (end_ps >> 15) + 16 * schedule->offsets[outline->devices] : 0;
    return pc_max(end_ps - rounding, 0);
}

/* A stage's stream carries one bucket after the other. From when the first bucket of a pass can go, it has those of
 * this pass and of all behind still to carry, in whatever order it does. */
static pc_time least_reduced(const pc_outline *outline, const pc_schedule *schedule, const pc_timing_result *result,
                             int d) {
    bool of_all = outline->cut.zero == 2, is_met[PC_CHUNKS_MAX] = {false};
    pc_time left = 0, most = 0;
    for (int64_t i = schedule->offsets[d + 1]; i-- > schedule->offsets[d] && left < PC_TIME_MAX / 16;) {
        pc_pass pass = schedule->passes[i];
        const pc_chunk_outline *x = &outline->chunks_of[(int64_t)d * outline->chunks + pass.chunk];
        bool is_last = !is_met[pass.chunk];
        if (!pc_pass_adds_gradients(pass)) continue;
        is_met[pass.chunk] = true;
        if (!is_last && !of_all) continue;
        pc_time share = (result->end_ps[i] - result->start_ps[i]) / x->buckets;
        pc_time ready = result->end_ps[i] - (is_last ? share * (x->buckets - 1) : 0);
        left += x->buckets * shave_flow(outline, x->reduce_ps);
        most = pc_max(most, least_end(outline, schedule, ready) + left);
    }
    return most;
}

static bool knows_stream(const pc_outline *outline) {
    return pc_outline_reduces_behind(outline) && pc_outline_overlaps_gradients(outline) &&
           !pc_placement_has_slices(outline->placement);
}

static pc_code run_order(plan_bounder *bounder, const pc_outline *outline, const pc_costs *costs, pc_error *error) {
    pc_schedule schedule;
    pc_timing_result result;
    const pc_generate_request request = pc_outline_request(outline, costs);
    pc_code code = pc_generate(outline->spec->generator, &request, &schedule, NULL, error);
    if (code) return code;
    if (!bounder->timing) code = pc_timing_create(&bounder->timing, error);
    if (!code) code = pc_timing_run(bounder->timing, &schedule, costs, &result, error);
    for (int d = 0; !code && d < outline->devices; d++) {
        bounder->end_ps[d] = least_end(outline, &schedule, result.stages[d].end_ps);
        bounder->reduced_ps[d] = knows_stream(outline) ? least_reduced(outline, &schedule, &result, d) : 0;
    }
    pc_schedule_free(&schedule);
    return code;
}

pc_code plan_bound_order(plan_bounder *bounder, const pc_outline *outline, pc_error *error) {
    pc_costs costs;
    if (!bounder->held || outline->spec->step != PC_STEP_NORM || !knows_times(outline)) return PC_OK;
    pc_free(bounder->end_ps);
    bounder->end_ps = pc_alloc(2 * (size_t)outline->devices, sizeof *bounder->end_ps);
    if (!bounder->end_ps) return pc_error_no_memory(error);
    bounder->reduced_ps = bounder->end_ps + outline->devices;
    pc_code code = pc_outline_costs(outline, 0, &costs, error);
    if (!code) {
        code = run_order(bounder, outline, &costs, error);
        pc_costs_free(&costs);
    }
    if (code) pc_free(bounder->end_ps);
    if (code) bounder->end_ps = NULL;
    return code;
}
