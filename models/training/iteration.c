#include "models/training/iteration.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "models/schedule/timing.h"
#include "models/training/events.h"
#include "models/training/expand_replicas.h"
#include "models/training/finish.h"
#include "models/training/footprint.h"
#include "models/training/iteration_spec.h"
#include "models/training/lower.h"
#include "models/training/memory_kinds.h"
#include "models/training/outline.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_pairs.h"
#include "models/training/robust_order.h"
#include "models/training/sample.h"
#include "models/training/stage_sums.h"
#include "models/training/tails.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SCHEDULES_MOST = 6 }; /* that a run times */

/* One run's things; all owned where nothing else is said, but for the outline's spec. */
typedef struct iteration_run {
    pc_outline outline;
    pc_costs costs;
    pc_schedule schedule;
    pc_search_memo *memo, *own_memo; /* of searches: the spec's, or its own, which alone is owned */
    pc_hash timed[SCHEDULES_MOST];   /* of the schedules that were timed */
    int timed_count;
    pc_timing *timing, *held; /* held: of runs beside the one that counts */
    pc_pipeline_ends ends;
    pc_time *done_ps, *backlog_ps, *begin_ps, *period_ps; /* [devices]; one block, with the next */
    pc_time *ready_ps;                                    /* [devices][chunks] */
    int64_t *room_bytes;                                  /* [devices]: for activations */
    pc_time alone_ps;                                     /* the folded iteration by closed costs */
    pc_time met_ps;                                       /* what it takes longer for what meets on links */
} iteration_run;

static void close_run(iteration_run *run) {
    pc_ends_free(&run->ends);
    pc_free(run->done_ps);
    pc_free(run->room_bytes);
    pc_timing_free(run->timing);
    pc_timing_free(run->held);
    pc_schedule_free(&run->schedule);
    pc_costs_free(&run->costs);
    pc_outline_free(&run->outline);
    pc_search_memo_free(run->own_memo);
}

/* ---- before the passes ---- */

static void note_infeasible(pc_iteration *iteration, const char *why) {
    iteration->status = PC_RUN_INFEASIBLE;
    snprintf(iteration->message, sizeof iteration->message, "%.*s", (int)sizeof iteration->message - 1, why);
}

static pc_code find_room(iteration_run *run, pc_error *error) {
    run->room_bytes = pc_alloc((size_t)run->outline.devices, sizeof *run->room_bytes);
    if (!run->room_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < run->outline.devices; d++) run->room_bytes[d] = pc_outline_room(&run->outline, d);
    return PC_OK;
}

/* Makes the outline, the costs and the room; where the spec cannot be, or what it holds all the time does not fit, says
 * so in the iteration's status. */
static pc_code prepare(const pc_iteration_spec *spec, const pc_cost_model *cost, iteration_run *run,
                       pc_iteration *iteration, pc_error *error) {
    pc_error why = {0};
    pc_code code = pc_iteration_spec_check(spec, error);
    if (code) return code;
    code = pc_outline_check(spec, &why);
    if (!code) code = pc_samples_check(spec, &why);
    if (code == PC_ERROR_INPUT) {
        note_infeasible(iteration, why.message);
        return PC_OK;
    }
    if (code) return pc_error_copy(error, &why);
    code = pc_outline_make(spec, cost, &run->outline, error);
    if (!code) pc_samples_limit_memory(&run->outline);
    if (!code) code = pc_footprint_fixed(&run->outline, iteration, error);
    if (code || iteration->status) return code;
    code = pc_outline_costs(&run->outline, 0, &run->costs, error);
    if (!code) code = find_room(run, error);
    if (!code && spec->generator->adapts) pc_footprint_least(&run->outline, &run->costs, iteration);
    return code;
}

/* What a search is to give: what the spec asks for (of the costs the shortest of its answers); its answer for equal
 * times; the one that it finds first. All minimise the span; of these the one of the spec's goal does not. */
typedef enum search_for { SEARCH_AS_TOLD, SEARCH_EQUAL, SEARCH_ONCE, SEARCH_GOAL } search_for;

/* Of the schedules that are searched, only one adapts to the memory that there is; the others are what their name says,
 * whether that fits or not, and so get no limit. */
static pc_code generate_with(const iteration_run *run, const pc_costs *costs, search_for what, const pc_tails *tails,
                             bool with_block, pc_schedule *schedule, pc_iteration *iteration, pc_error *error) {
    pc_error why = {0};
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the outline is made where the status is OK */
    pc_memory_limit limit = {run->outline.spec->generator->adapts ? run->room_bytes : NULL};
    pc_generate_request request = {.devices = run->outline.devices,
                                   .microbatches = run->outline.cut.microbatches,
                                   .chunks = run->outline.chunks,
                                   .slices = run->outline.cut.slices,
                                   .costs = costs,
                                   .memory_limit = limit,
                                   .threads = 1, /* runs go on beside each other */
                                   .making = what == SEARCH_EQUAL ? PC_MAKING_EQUAL : run->outline.spec->making,
                                   .goal = what == SEARCH_GOAL ? run->outline.spec->goal : PC_GOAL_SPAN,
                                   .tails = tails,
                                   .searches_once = what == SEARCH_ONCE,
                                   .effort = run->outline.spec->effort,
                                   .memo = run->memo};
    pc_code code =
        pc_generate(run->outline.spec->generator, &request, schedule, with_block ? &iteration->block : NULL, &why);
    if (code == PC_ERROR_INPUT) {
        note_infeasible(iteration, why.message);
        return PC_OK;
    }
    return code ? pc_error_copy(error, &why) : PC_OK;
}

static pc_code generate(const iteration_run *run, const pc_costs *costs, search_for what, bool with_block,
                        pc_schedule *schedule, pc_iteration *iteration, pc_error *error) {
    return generate_with(run, costs, what, NULL, with_block, schedule, iteration, error);
}

static pc_code open_memo(iteration_run *run, pc_error *error) {
    pc_code code = PC_OK;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the outline is made where the status is OK */
    if (!run->outline.spec->memo) code = pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &run->own_memo, error);
    run->memo = run->outline.spec->memo ? run->outline.spec->memo : run->own_memo;
    return code;
}

static pc_code open_timing(iteration_run *run, pc_error *error) {
    size_t devices = (size_t)run->outline.devices;
    pc_code code = pc_timing_create(&run->timing, error);
    if (!code) code = pc_timing_create(&run->held, error);
    if (!code) code = pc_ends_create(run->outline.devices, run->outline.chunks, &run->ends, error);
    if (!code && run->outline.spec->expands)
        code = pc_ends_add_buckets(&run->outline, &run->schedule, &run->ends, error);
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
static pc_code end_pipelines(iteration_run *run, int without, const pc_time *end_ps, pc_time *iteration_ps,
                             pc_error *error) {
    if (run->ends.pass_ps) end_ps = run->ends.pass_ps;
    pc_outline_find_backlog(&run->outline, &run->schedule, end_ps, run->backlog_ps);
    pc_outline_reduce_gradients(&run->outline, without, &run->ends, run->backlog_ps, run->done_ps);
    return pc_outline_finish(&run->outline, without, run->ends.begin_ps, run->done_ps, iteration_ps, error);
}

/* Times all pipelines, all stages beginning at once, and the end. */
typedef pc_code time_pipelines(iteration_run *run, pc_timing *timing, const pc_costs *costs, int without,
                               pc_timing_result *result, pc_time *iteration_ps, pc_error *error);

static pc_code time_folded(iteration_run *run, pc_timing *timing, const pc_costs *costs, int without,
                           pc_timing_result *result, pc_time *iteration_ps, pc_error *error) {
    pc_code code = pc_timing_run(timing, &run->schedule, costs, result, error);
    if (code) return code;
    pc_ends_clear(&run->ends);
    pc_ends_take(&run->schedule, costs, result->start_ps, result->end_ps, &run->ends);
    return end_pipelines(run, without, result->end_ps, iteration_ps, error);
}

/* What a stage that is held back takes. */
typedef struct held_run {
    iteration_run *run;
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

static pc_code run_pipelines(iteration_run *run, time_pipelines *time, const pc_costs *costs, int without,
                             pc_timing_result *result, pc_time *iteration_ps, pc_error *error) {
    size_t bytes = (size_t)run->outline.devices * sizeof *run->begin_ps;
    held_run held = {run, time, costs, without, error};
    pc_code code = time(run, run->timing, costs, without, result, iteration_ps, error);
    if (code || run->outline.spec->step != PC_STEP_POST_VALIDATION) return code;
    memcpy(run->begin_ps, run->ends.begin_ps, bytes);
    memcpy(run->period_ps, run->done_ps, bytes);
    return pc_outline_own_pace(&run->outline, run->begin_ps, run->period_ps, time_held, &held, iteration_ps);
}

/* The iteration where everything takes what it takes alone, at `costs`, which leave out what `without` says. */
static pc_code run_closed(iteration_run *run, const pc_costs *costs, int without, pc_timing_result *result,
                          pc_time *iteration_ps, pc_error *error) {
    return run_pipelines(run, time_folded, costs, without, result, iteration_ps, error);
}

static pc_code run_without(iteration_run *run, int without, pc_time *iteration_ps, pc_error *error) {
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
static void hide_in_pairs(const iteration_run *run, pc_exposed *x) {
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
static pc_code fill_in_exposed(iteration_run *run, pc_iteration *iteration, pc_error *error) {
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

static pc_code finish(iteration_run *run, const timed *times, bool with_trace, pc_iteration *iteration,
                      pc_error *error) {
    iteration->iteration_s = pc_time_to_seconds(times->whole_ps);
    pc_code code = pc_replay_from_times(&run->schedule, &run->costs, times->start_ps, times->end_ps, times->arrival_ps,
                                        with_trace, &iteration->replay, error);
    if (!code) pc_outline_fill_in_rates(&run->outline, &run->schedule, &run->costs, iteration);
    return code;
}

/* ---- the run ---- */

/* Every replica for itself: the end waits for the latest; the trace is the first one's. */
static pc_code time_expanded(iteration_run *run, pc_timing *timing, const pc_costs *costs, int without,
                             pc_timing_result *result, pc_time *iteration_ps, pc_error *error) {
    const pc_iteration_spec *spec = run->outline.spec;
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

static pc_code conclude(iteration_run *run, const timed *times, const pc_memory_seen *seen, bool with_trace,
                        pc_iteration *iteration, pc_error *error) {
    pc_code code = pc_footprint_activations(&run->outline, &run->schedule, &run->costs, times->start_ps, times->end_ps,
                                            seen, iteration, error);
    if (code || iteration->status) return code;
    code = finish(run, times, with_trace, iteration, error);
    if (!code) code = pc_memory_kinds_fill_in(&run->outline, &run->schedule, &run->costs, with_trace, iteration, error);
    return code ? code : fill_in_exposed(run, iteration, error);
}

static bool wants_flows(const iteration_run *run) {
    const pc_iteration_spec *spec = run->outline.spec;
    if (spec->network != PC_NETWORK_AUTO || spec->expands) return spec->network == PC_NETWORK_FLOWS;
    return spec->granularity == PC_GRANULARITY_OPERATIONS || pc_outline_meets(&run->outline);
}

/* ---- on the engine ---- */

/* By closed costs, all stages as they are: folded again, where passes ran in another order; and expanded, where over
 * flows replicas differ. */
static pc_code find_met(iteration_run *run, const pc_flows_spec *how, pc_time whole_ps, pc_error *error) {
    pc_timing_result unused;
    pc_time closed_ps = run->alone_ps;
    pc_code code = PC_OK;
    if (how->waits_for_memory) code = run_closed(run, &run->costs, 0, &unused, &run->alone_ps, error);
    if (!code && run->outline.spec->expands && !how->is_closed)
        code = run_pipelines(run, time_expanded, &run->costs, 0, &unused, &closed_ps, error);
    else
        closed_ps = run->alone_ps;
    run->met_ps = how->is_closed ? 0 : whole_ps - closed_ps;
    return code;
}

static pc_engine_way way_of(const pc_flows_spec *how) {
    return how->has_memory ? PC_WAY_EVENTS : PC_WAY_FLOWS;
}

static pc_code take_found(iteration_run *run, const pc_flows_spec *how, pc_flows_result *found, pc_time whole_ps,
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

static pc_code run_program(iteration_run *run, const pc_flows_spec *how, bool with_trace, pc_iteration *iteration,
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

static pc_code run_on_engine(iteration_run *run, bool is_whole, bool with_trace, pc_iteration *iteration,
                             pc_error *error) {
    const pc_iteration_spec *spec = run->outline.spec;
    pc_flows_spec how = {.replicas = spec->expands ? run->outline.cut.dp : 1,
                         .is_closed = !wants_flows(run),
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
static pc_code time_schedule(iteration_run *run, bool with_trace, pc_iteration *iteration, pc_error *error) {
    const pc_iteration_spec *spec = run->outline.spec;
    pc_timing_result result;
    pc_time whole_ps;
    pc_code code = run_closed(run, &run->costs, 0, &result, &run->alone_ps, error);
    if (code) return code;
    bool fits = !pc_timing_exceeds(result.stages, run->outline.devices, (pc_memory_limit){run->room_bytes});
    bool waits = spec->waits_for_memory && !fits, is_whole = spec->engine == PC_ENGINE_EVENTS || waits;
    run->met_ps = 0;
    if (is_whole || wants_flows(run)) return run_on_engine(run, is_whole, with_trace, iteration, error);
    whole_ps = run->alone_ps;
    if (spec->expands) code = run_pipelines(run, time_expanded, &run->costs, 0, &result, &whole_ps, error);
    timed x = {result.start_ps, result.end_ps, NULL, whole_ps};
    return code ? code : conclude(run, &x, NULL, with_trace, iteration, error);
}

static void clear(pc_iteration *iteration) {
    double none = NAN;
    *iteration = (pc_iteration){.iteration_s = none,
                                .sequences = none,
                                .model_flops = none,
                                .hardware_flops = none,
                                .tflops_per_gpu = none,
                                .mfu = none,
                                .hfu = none,
                                .standard_error_s = none,
                                .exposed = pc_exposed_none(),
                                .sent = pc_sent_none(),
                                .link_utilisation_max = none,
                                .bad_days = pc_bad_days_none()};
}

/* ---- other schedules ---- */

/* What a searched schedule is made for. */
typedef pc_code search_schedule(const iteration_run *run, bool with_block, pc_schedule *schedule,
                                pc_iteration *iteration, pc_error *error);

static pc_code search_first(const iteration_run *run, bool with_block, pc_schedule *schedule, pc_iteration *iteration,
                            pc_error *error) {
    return generate(run, &run->costs, SEARCH_AS_TOLD, with_block, schedule, iteration, error);
}

/* Searches take messages for delays, however many are under way. Where that was wrong, because the iteration takes more
 * than a hundredth longer over flows than by closed costs, what is searched as if stages waited for what they send may
 * be better: it has them send less at once. */
static bool wants_waiting(const iteration_run *run, const pc_iteration *iteration) {
    const pc_iteration_spec *spec = run->outline.spec;
    return spec->generator->searches && spec->making == PC_MAKING_COSTS && spec->overlaps_p2p &&
           spec->effort == PC_EFFORT_FULL && run->outline.devices > 1 && wants_flows(run) &&
           iteration->iteration_s > 1.01 * pc_time_to_seconds(run->alone_ps);
}

static pc_code search_waiting(const iteration_run *run, bool with_block, pc_schedule *schedule, pc_iteration *iteration,
                              pc_error *error) {
    pc_iteration_spec waiting = *run->outline.spec;
    pc_outline outline = run->outline;
    pc_costs costs;
    waiting.overlaps_p2p = false;
    outline.spec = &waiting;
    pc_code code = pc_outline_costs(&outline, 0, &costs, error);
    if (code) return code;
    code = generate(run, &costs, SEARCH_AS_TOLD, with_block, schedule, iteration, error);
    pc_costs_free(&costs);
    return code;
}

/* Searches go by the span of the passes; what comes before and after them, and meetings of flows, can make a longer one
 * the shorter iteration. Made for equal times, one is found soon, and is what one would compare with; and over flows,
 * made as if every hop took as long as the slowest, stages wait less for messages that meet others. */
static bool wants_others(const iteration_run *run) {
    const pc_iteration_spec *spec = run->outline.spec;
    return spec->generator->searches && spec->making == PC_MAKING_COSTS && run->outline.devices > 1 &&
           spec->effort == PC_EFFORT_FULL;
}

static pc_code search_equal(const iteration_run *run, bool with_block, pc_schedule *schedule, pc_iteration *iteration,
                            pc_error *error) {
    return generate(run, &run->costs, SEARCH_EQUAL, with_block, schedule, iteration, error);
}

static pc_code search_slowest_hop(const iteration_run *run, bool with_block, pc_schedule *schedule,
                                  pc_iteration *iteration, pc_error *error) {
    pc_costs costs = run->costs;
    costs.hop_delay_ps = NULL; /* transfer.delay_ps is the slowest one's */
    return generate(run, &costs, SEARCH_ONCE, with_block, schedule, iteration, error);
}

/* What the goal finds stands beside all that the span finds, so that no iteration is longer for it. */
static bool wants_goal(const iteration_run *run) {
    const pc_iteration_spec *spec = run->outline.spec;
    return spec->goal != PC_GOAL_SPAN && spec->generator->searches && spec->making == PC_MAKING_COSTS &&
           run->outline.devices > 1;
}

static pc_code search_goal(const iteration_run *run, bool with_block, pc_schedule *schedule, pc_iteration *iteration,
                           pc_error *error) {
    pc_outline_tails made;
    pc_code code = pc_outline_tails_make(&run->outline, &run->costs, &made, error);
    if (code) return code;
    code = generate_with(run, &run->costs, SEARCH_GOAL, &made.tails, with_block, schedule, iteration, error);
    pc_outline_tails_free(&made);
    return code;
}

/* Notes a schedule that is to be timed; false if one of the same passes was: it would take as long. */
static bool add_timed(iteration_run *run, const pc_schedule *schedule) {
    pc_hash hash = {UINT64_C(0x7061737365732069), UINT64_C(0x6e206f7264657273)};
    pc_hash_add_bytes(&hash, schedule->passes, (size_t)schedule->offsets[schedule->devices] * sizeof *schedule->passes);
    for (int i = 0; i < run->timed_count; i++)
        if (pc_hash_equal(run->timed[i], hash)) return false;
    run->timed[run->timed_count++] = hash;
    return true;
}

static void swap_schedules(pc_schedule *a, pc_schedule *b) {
    pc_schedule other = *a;
    *a = *b;
    *b = other;
}

/* The shorter one stays. */
static pc_code try_another(iteration_run *run, search_schedule *search, bool with_trace, pc_iteration *iteration,
                           pc_error *error) {
    pc_iteration other;
    pc_schedule schedule = {0};
    clear(&other);
    pc_code code = pc_footprint_fixed(&run->outline, &other, error);
    if (!code) code = search(run, with_trace, &schedule, &other, error);
    bool is_timed = !code && !other.status && add_timed(run, &schedule);
    swap_schedules(&run->schedule, &schedule);
    if (is_timed) code = time_schedule(run, with_trace, &other, error);
    if (is_timed && !code && !other.status && other.iteration_s < iteration->iteration_s) {
        pc_iteration_free(iteration);
        *iteration = other;
    } else {
        swap_schedules(&run->schedule, &schedule);
        pc_iteration_free(&other);
    }
    pc_schedule_free(&schedule);
    return code;
}

/* The order that is best on bad days takes the place of the good day's, with the good day that it has. */
static pc_code try_robust(iteration_run *run, bool with_trace, pc_iteration *iteration, pc_error *error) {
    const pc_order_given given = {&run->schedule, &run->costs, &iteration->replay, run->room_bytes, run->memo};
    pc_schedule schedule = {0};
    pc_iteration other;
    bool is_other = false;
    clear(&other);
    pc_code code = pc_robust_order_find(&run->outline, &given, &schedule, &is_other, error);
    if (code || !is_other) return code;
    swap_schedules(&run->schedule, &schedule);
    code = pc_footprint_fixed(&run->outline, &other, error);
    if (!code) code = time_schedule(run, with_trace, &other, error);
    if (!code && with_trace && !other.status) code = pc_block_of_schedule(&run->schedule, &other.block, error);
    if (!code && !other.status) {
        pc_iteration_free(iteration);
        *iteration = other;
    } else {
        swap_schedules(&run->schedule, &schedule);
        pc_iteration_free(&other);
    }
    pc_schedule_free(&schedule);
    return code;
}

pc_code pc_iteration_run(const pc_iteration_spec *spec, const pc_cost_model *cost, bool with_trace,
                         pc_iteration *iteration, pc_error *error) {
    pc_iteration made;
    iteration_run run = {0};
    clear(&made);
    pc_code code = prepare(spec, cost, &run, &made, error);
    if (!code && !made.status && spec->generator->searches) code = open_memo(&run, error);
    if (!code && !made.status) code = search_first(&run, with_trace, &run.schedule, &made, error);
    if (!code && !made.status) code = pc_footprint_order(&run.outline, &run.schedule, &run.costs, &made, error);
    if (!code && !made.status) code = open_timing(&run, error);
    if (!code && !made.status && spec->generator->searches) add_timed(&run, &run.schedule);
    if (!code && !made.status) code = time_schedule(&run, with_trace, &made, error);
    if (!code && !made.status && wants_waiting(&run, &made))
        code = try_another(&run, search_waiting, with_trace, &made, error);
    if (!code && !made.status && wants_others(&run)) code = try_another(&run, search_equal, with_trace, &made, error);
    if (!code && !made.status && wants_others(&run) && wants_flows(&run))
        code = try_another(&run, search_slowest_hop, with_trace, &made, error);
    if (!code && !made.status && wants_goal(&run)) code = try_another(&run, search_goal, with_trace, &made, error);
    if (!code && !made.status && pc_robust_order_is_wanted(&run.outline))
        code = try_robust(&run, with_trace, &made, error);
    if (!code && !made.status && spec->bad_days.samples > 0)
        code = pc_samples_run(&run.outline, &run.schedule, &made, error);
    close_run(&run);
    if (code)
        pc_iteration_free(&made);
    else
        *iteration = made;
    return code;
}

void pc_iteration_free(pc_iteration *iteration) {
    pc_free(iteration->memory);
    pc_replay_free(&iteration->replay);
    pc_block_free(&iteration->block);
    pc_free(iteration->sample_ps);
    memset(iteration, 0, sizeof *iteration);
}

pc_code pc_iteration_costs(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_costs *costs, pc_error *error) {
    pc_outline outline;
    pc_code code = pc_iteration_spec_check(spec, error);
    if (!code) code = pc_outline_check(spec, error);
    if (!code) code = pc_outline_make(spec, cost, &outline, error);
    if (code) return code;
    pc_samples_limit_memory(&outline);
    code = pc_outline_costs(&outline, 0, costs, error);
    pc_outline_free(&outline);
    return code;
}
