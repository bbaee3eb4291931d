/* What an iteration takes in one order of its passes: by closed costs, over flows, and event by event. */
#include "models/training/iteration_private.h"

#include "engine/alloc.h"
#include "models/schedule/timing.h"
#include "models/training/events.h"
#include "models/training/expand_replicas.h"
#include "models/training/finish.h"
#include "models/training/footprint.h"
#include "models/training/lower.h"
#include "models/training/memory_kinds.h"
#include "models/training/outline.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_pairs.h"
#include "models/training/stage_sums.h"

#include <string.h>

/* ---- the workspace ---- */

pc_code pc_iteration_open_timing(pc_iteration_work *run, pc_error *error) {
    size_t devices = (size_t)run->outline.devices;
    pc_code code = pc_timing_create(&run->timing, error);
    if (!code) code = pc_timing_create(&run->held, error);
    if (!code) code = pc_ends_create(run->outline.devices, run->outline.chunks, &run->ends, error);
    if (!code && run->spec->expands) code = pc_ends_add_buckets(&run->outline, &run->schedule, &run->ends, error);
    if (code) return code;
    run->done_ps = pc_alloc((4 + (size_t)run->outline.chunks) * devices, sizeof *run->done_ps);
    if (!run->done_ps) return pc_error_no_memory(error);
    run->backlog_ps = run->done_ps + devices;
    run->begin_ps = run->backlog_ps + devices;
    run->period_ps = run->begin_ps + devices;
    run->ready_ps = run->period_ps + devices;
    return PC_OK;
}

/* ---- closed costs ---- */

/* From the ends of all pipelines to the iteration's; end_ps: of the passes of the only replica, where it is. */
static pc_code end_pipelines(pc_iteration_work *run, int without, const pc_time *end_ps, pc_time *iteration_ps,
                             pc_error *error) {
    if (run->ends.pass_ps) end_ps = run->ends.pass_ps;
    pc_outline_find_backlog(&run->outline, &run->schedule, end_ps, run->backlog_ps);
    pc_outline_reduce_gradients(&run->outline, without, &run->ends, run->backlog_ps, run->done_ps);
    return pc_outline_finish(&run->outline, without, run->ends.begin_ps, run->done_ps, iteration_ps, error);
}

/* Times all pipelines, all stages beginning at once, and the end. */
typedef pc_code time_pipelines(pc_iteration_work *run, pc_timing *timing, const pc_costs *costs, int without,
                               pc_timing_result *result, pc_time *iteration_ps, pc_error *error);

static pc_code time_folded(pc_iteration_work *run, pc_timing *timing, const pc_costs *costs, int without,
                           pc_timing_result *result, pc_time *iteration_ps, pc_error *error) {
    pc_code code = pc_timing_run(timing, &run->schedule, costs, result, error);
    if (code) return code;
    pc_ends_clear(&run->ends);
    pc_ends_take(&run->schedule, costs, result->start_ps, result->end_ps, &run->ends);
    return end_pipelines(run, without, result->end_ps, iteration_ps, error);
}

/* Every replica for itself: the end waits for the latest; the trace is the first one's. */
static pc_code time_expanded(pc_iteration_work *run, pc_timing *timing, const pc_costs *costs, int without,
                             pc_timing_result *result, pc_time *iteration_ps, pc_error *error) {
    const pc_iteration_spec *spec = run->spec;
    int threads = spec->threads > 0 ? spec->threads : 1; /* runs go on beside each other */
    pc_expansion expansion = {.replicas = run->outline.cut.dp,
                              .jitter = spec->jitter,
                              .seed = spec->seed,
                              .threads = threads,
                              .outline = &run->outline,
                              .without = without};
    size_t passes = (size_t)run->schedule.offsets[run->outline.devices];
    pc_time *duration_ps = pc_alloc(passes, sizeof *duration_ps);
    if (!duration_ps) return pc_error_no_memory(error);
    pc_ends_clear(&run->ends);
    pc_code code = pc_expand_run(&run->schedule, costs, &expansion, &run->ends, duration_ps, error);
    if (!code) code = pc_timing_run_passes(timing, &run->schedule, costs, duration_ps, result, error);
    pc_free(duration_ps);
    return code ? code : end_pipelines(run, without, result->end_ps, iteration_ps, error);
}

/* What a stage that is held back takes. */
typedef struct held_run {
    pc_iteration_work *run;
    time_pipelines *time;
    const pc_costs *costs;
    int without;
    pc_error *error;
} held_run;

static pc_code time_held(void *context, int device, pc_time held_ps, pc_time *step_end_ps) {
    const held_run *x = context;
    pc_costs costs = *x->costs;
    pc_timing_result unused;
    pc_time iteration_ps;
    costs.ready_ps = x->run->ready_ps;
    pc_outline_hold(x->costs, device, held_ps, costs.ready_ps);
    pc_code code = x->time(x->run, x->run->held, &costs, x->without, &unused, &iteration_ps, x->error);
    *step_end_ps = x->run->done_ps[device];
    return code;
}

static pc_code run_pipelines(pc_iteration_work *run, time_pipelines *time, const pc_costs *costs, int without,
                             pc_timing_result *result, pc_time *iteration_ps, pc_error *error) {
    size_t bytes = (size_t)run->outline.devices * sizeof *run->begin_ps;
    held_run held = {run, time, costs, without, error};
    pc_code code = time(run, run->timing, costs, without, result, iteration_ps, error);
    if (code || run->spec->step != PC_STEP_POST_VALIDATION) return code;
    memcpy(run->begin_ps, run->ends.begin_ps, bytes);
    memcpy(run->period_ps, run->done_ps, bytes);
    return pc_outline_own_pace(&run->outline, run->begin_ps, run->period_ps, time_held, &held, iteration_ps);
}

/* The iteration where everything takes what it takes alone, at `costs`, which leave out what `without` says. */
static pc_code run_closed(pc_iteration_work *run, const pc_costs *costs, int without, pc_timing_result *result,
                          pc_time *iteration_ps, pc_error *error) {
    return run_pipelines(run, time_folded, costs, without, result, iteration_ps, error);
}

static pc_code run_without(pc_iteration_work *run, int without, pc_time *iteration_ps, pc_error *error) {
    pc_costs costs = {0};
    pc_timing_result result;
    pc_code code = pc_outline_costs(&run->outline, without, &costs, error);
    if (!code) code = run_closed(run, &costs, without, &result, iteration_ps, error);
    pc_costs_free(&costs);
    return code;
}

/* ---- results ---- */

static double positive(double number) {
    return number > 0 ? number : 0;
}

/* Times of passes, whoever found them; the iteration. */
typedef struct timed {
    const pc_time *start_ps, *end_ps, *arrival_ps; /* arrivals: NULL if the costs say them */
    pc_time whole_ps;
} timed;

/* Of experts that are shared out exchanges alone hide; else all collectives, each kind in proportion. */
static void hide_in_pairs(const pc_iteration_work *run, pc_exposed *x) {
    const pc_outline *outline = &run->outline;
    double hidden = pc_outline_hidden_s(outline, &run->schedule, &run->costs);
    bool has_experts = pc_cut_folds_experts(&outline->spec->model, &outline->cut);
    double within = has_experts ? x->ep : x->tp + x->cp + x->ep;
    if (!(hidden > 0 && within > 0)) return;
    double left = positive(1 - hidden / within);
    x->ep *= left;
    if (has_experts) return;
    x->tp *= left;
    x->cp *= left;
}

/* Pipeline and data parallelism: what an iteration loses where these take no time, everything alone. What it takes
 * longer for meetings on links is data parallelism's; the wait for the slowest replica is a bubble. */
static pc_code fill_in_exposed(pc_iteration_work *run, pc_iteration *iteration, pc_error *error) {
    const pc_outline *outline = &run->outline;
    pc_stage_sums sums = pc_outline_sum_busiest(outline, &run->schedule);
    pc_exposed *x = &iteration->exposed;
    pc_time without_pp, without_dp;
    pc_code code = run_without(run, PC_WITHOUT_TRANSFERS, &without_pp, error);
    if (!code) code = run_without(run, PC_WITHOUT_DATA_PARALLEL, &without_dp, error);
    if (code) return code;
    x->tp = sums.tp_s;
    x->cp = sums.cp_s;
    x->ep = sums.ep_s;
    hide_in_pairs(run, x);
    x->pp = positive(pc_time_to_seconds(run->alone_ps - without_pp));
    x->dp = positive(pc_time_to_seconds(run->alone_ps - without_dp + run->met_ps));
    x->optimizer = pc_time_to_seconds(pc_outline_step_ps(outline));
    double known = sums.compute_s + x->tp + x->cp + x->ep + x->pp + x->dp + x->optimizer +
                   pc_time_to_seconds(outline->spec->overhead_ps);
    x->bubble = positive(iteration->iteration_s - known);
    double relative = sums.compute_s > 0 ? sums.standard_error_s / sums.compute_s : 0;
    iteration->standard_error_s = relative * (sums.compute_s + x->bubble);
    return PC_OK;
}

static pc_code finish(pc_iteration_work *run, const timed *times, bool with_trace, pc_iteration *iteration,
                      pc_error *error) {
    iteration->iteration_s = pc_time_to_seconds(times->whole_ps);
    pc_code code = pc_replay_from_times(&run->schedule, &run->costs, times->start_ps, times->end_ps, times->arrival_ps,
                                        with_trace, &iteration->replay, error);
    if (!code) pc_outline_fill_in_rates(&run->outline, &run->schedule, &run->costs, iteration);
    return code;
}

static pc_code conclude(pc_iteration_work *run, const timed *times, const pc_memory_seen *seen, bool with_trace,
                        pc_iteration *iteration, pc_error *error) {
    pc_code code = pc_footprint_activations(&run->outline, &run->schedule, &run->costs, times->start_ps, times->end_ps,
                                            seen, iteration, error);
    if (code || iteration->status) return code;
    code = finish(run, times, with_trace, iteration, error);
    if (!code) code = pc_memory_kinds_fill_in(&run->outline, &run->schedule, &run->costs, with_trace, iteration, error);
    return code ? code : fill_in_exposed(run, iteration, error);
}

/* ---- on the engine ---- */

bool pc_iteration_wants_flows(const pc_iteration_work *run) {
    const pc_iteration_spec *spec = run->spec;
    if (spec->network != PC_NETWORK_AUTO || spec->expands) return spec->network == PC_NETWORK_FLOWS;
    return spec->granularity == PC_GRANULARITY_OPERATIONS || pc_outline_meets(&run->outline);
}

/* By closed costs, all stages as they are: folded again, where passes ran in another order; and expanded, where over
 * flows replicas differ. */
static pc_code find_met(pc_iteration_work *run, const pc_flows_spec *how, pc_time whole_ps, pc_error *error) {
    pc_timing_result unused;
    pc_time closed_ps = run->alone_ps;
    pc_code code = PC_OK;
    if (how->waits_for_memory) code = run_closed(run, &run->costs, 0, &unused, &run->alone_ps, error);
    if (!code && run->spec->expands && !how->is_closed)
        code = run_pipelines(run, time_expanded, &run->costs, 0, &unused, &closed_ps, error);
    else
        closed_ps = run->alone_ps;
    run->met_ps = how->is_closed ? 0 : whole_ps - closed_ps;
    return code;
}

static pc_engine_way way_of(const pc_flows_spec *how) {
    return how->has_memory ? PC_WAY_EVENTS : PC_WAY_FLOWS;
}

static pc_code take_found(pc_iteration_work *run, const pc_flows_spec *how, pc_flows_result *found, pc_time whole_ps,
                          bool with_trace, pc_iteration *iteration, pc_error *error) {
    const pc_memory_seen seen = {found->peak_bytes, found->overdrawn_ps};
    pc_code code = how->waits_for_memory ? pc_events_reorder(&run->schedule, run->costs.pair_ps, found, error) : PC_OK;
    timed x = {found->start_ps, found->end_ps, found->arrival_ps, whole_ps};
    if (!code) code = find_met(run, how, whole_ps, error);
    if (!code) code = conclude(run, &x, how->has_memory ? &seen : NULL, with_trace, iteration, error);
    if (code) return code;
    iteration->replay.way = way_of(how);
    if (iteration->status) return PC_OK;
    if (!how->is_closed)
        iteration->link_utilisation_max = whole_ps > 0 ? (double)found->link_filled_ps / (double)whole_ps : 0;
    iteration->replay.engine = found->trace;
    found->trace = (pc_engine_trace){0};
    return PC_OK;
}

static pc_code run_program(pc_iteration_work *run, const pc_flows_spec *how, bool with_trace, pc_iteration *iteration,
                           pc_error *error) {
    pc_flows_result found;
    pc_time whole_ps;
    pc_code code = pc_events_run(&run->outline, &run->schedule, how, &found, &whole_ps, error);
    if (code) return code;
    iteration->replay.way = way_of(how);
    if (found.is_stuck)
        pc_footprint_stuck(&run->outline, &run->schedule, &run->costs, &found.stuck, iteration);
    else
        code = take_found(run, how, &found, whole_ps, with_trace, iteration, error);
    pc_flows_free(&found);
    return code;
}

static pc_code run_on_engine(pc_iteration_work *run, bool is_whole, bool with_trace, pc_iteration *iteration,
                             pc_error *error) {
    const pc_iteration_spec *spec = run->spec;
    pc_flows_spec how = {.replicas = spec->expands ? run->outline.cut.dp : 1,
                         .is_closed = !pc_iteration_wants_flows(run),
                         .has_memory = is_whole,
                         .waits_for_memory = is_whole && spec->waits_for_memory,
                         .with_trace = is_whole && with_trace};
    pc_replica_times *times = NULL;
    pc_time *block = NULL;
    pc_code code = PC_OK;
    if (spec->expands) code = pc_events_draw(&run->outline, &run->schedule, how.is_closed, &times, &block, error);
    how.times = times;
    if (!code) code = run_program(run, &how, with_trace, iteration, error);
    pc_free(times);
    pc_free(block);
    return code;
}

/* ---- one schedule ---- */

/* The engine is asked where the network is flows, where all of it is to be run there, and where passes wait for memory
 * that they have not: a shortcut knows neither. */
pc_code pc_iteration_time(pc_iteration_work *run, bool with_trace, pc_iteration *iteration, pc_error *error) {
    const pc_iteration_spec *spec = run->spec;
    pc_timing_result result;
    pc_time whole_ps;
    pc_code code = run_closed(run, &run->costs, 0, &result, &run->alone_ps, error);
    if (code) return code;
    bool fits = !pc_timing_exceeds(result.stages, run->outline.devices, (pc_memory_limit){run->room_bytes});
    bool waits = spec->waits_for_memory && !fits, is_whole = spec->engine == PC_ENGINE_EVENTS || waits;
    run->met_ps = 0;
    if (is_whole || pc_iteration_wants_flows(run)) return run_on_engine(run, is_whole, with_trace, iteration, error);
    whole_ps = run->alone_ps;
    if (spec->expands) code = run_pipelines(run, time_expanded, &run->costs, 0, &result, &whole_ps, error);
    timed x = {result.start_ps, result.end_ps, NULL, whole_ps};
    return code ? code : conclude(run, &x, NULL, with_trace, iteration, error);
}
