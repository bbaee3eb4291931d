#include "models/schedule/replay.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/copy_levels.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/replay_private.h"
#include "models/schedule/timing.h"

#include <string.h>

const char *pc_engine_way_name(pc_engine_way way) {
    static const char *const names[] = {"paths", "flows", "events"};
    return names[way];
}

const char *pc_engine_way_words(pc_engine_way way) {
    static const char *const words[] = {
        "longest paths; nothing shares a link or waits for memory, so events would give the same, to the picosecond",
        ("events for flows, which share links; nothing waits for memory, so all between flows follows from the "
         "devices' orders, and events for all would give the same, to the picosecond"),
        "events for everything: passes, transfers, links and memories"};
    return words[way];
}

/* ---- what came of it ---- */

bool pc_replay_make_arrays(pc_replay *replay, int devices) {
    size_t count = (size_t)devices;
    replay->devices = devices;
    replay->device_start_ps = pc_alloc(count, sizeof *replay->device_start_ps);
    replay->device_end_ps = pc_alloc(count, sizeof *replay->device_end_ps);
    replay->device_busy_ps = pc_alloc(count, sizeof *replay->device_busy_ps);
    replay->device_peak_bytes = pc_alloc(count, sizeof *replay->device_peak_bytes);
    return replay->device_start_ps && replay->device_end_ps && replay->device_busy_ps && replay->device_peak_bytes;
}

static double bubble_rate(pc_time work, pc_time whole) {
    return whole > 0 ? 1.0 - (double)work / (double)whole : 0.0;
}

static void sum_up(const pc_schedule *schedule, const pc_replay_times *found, pc_replay *replay) {
    pc_timing_totals totals = pc_timing_sum(found->stages, schedule->devices);
    for (int d = 0; d < schedule->devices; d++) {
        replay->device_start_ps[d] = found->stages[d].start_ps;
        replay->device_end_ps[d] = found->stages[d].end_ps;
        replay->device_busy_ps[d] = found->stages[d].busy_ps;
        replay->device_peak_bytes[d] = found->stages[d].peak_bytes;
    }
    replay->span_ps = totals.span_ps;
    replay->makespan_ps = totals.makespan_ps;
    replay->peak_bytes = totals.peak_bytes;
    replay->bubble_rate_span = bubble_rate(totals.work_ps, totals.span_ps);
    replay->bubble_rate_makespan = bubble_rate(totals.work_ps, totals.makespan_ps);
}

pc_code pc_replay_fill_in(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_times *found,
                          bool with_trace, pc_replay *replay, pc_error *error) {
    if (!pc_replay_make_arrays(replay, schedule->devices)) return pc_error_no_memory(error);
    sum_up(schedule, found, replay);
    return with_trace ? pc_replay_keep_trace(schedule, costs, found, &replay->trace, error) : PC_OK;
}

/* ---- as longest paths ---- */

/* Fills in `replay` where it can; false where the engine has to say what is wrong, or what did not fit and when. */
static bool run_as_paths(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *how,
                         pc_replay *replay, pc_code *code, pc_error *error) {
    pc_timing *timing = NULL;
    pc_timing_result result;
    *code = pc_timing_create(&timing, NULL); /* no words yet: the engine may find others, or none */
    if (!*code) *code = pc_timing_run(timing, schedule, costs, &result, NULL);
    bool fits = *code == PC_OK && !pc_timing_exceeds(result.stages, schedule->devices, how->memory_limit);
    bool is_settled = *code == PC_ERROR_NO_MEMORY || fits;
    if (*code == PC_ERROR_NO_MEMORY) pc_error_no_memory(error);
    if (fits) {
        pc_replay_times found = {result.start_ps, result.end_ps, result.stages, NULL, NULL};
        *code = pc_replay_fill_in(schedule, costs, &found, how->with_trace, replay, error);
        replay->trace_hash = pc_trace_hash(result.start_ps, result.end_ps, schedule->offsets[schedule->devices]);
    }
    pc_timing_free(timing);
    return is_settled;
}

/* ---- of given times ---- */

static pc_stage_timing sum_stage_of_times(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                                          const pc_time *end_ps, int d) {
    pc_stage_timing sums = {0};
    int64_t first = schedule->offsets[d], last = schedule->offsets[d + 1];
    for (int64_t i = first; i < last; i++) {
        bool is_second = costs->pair_ps && pc_schedule_is_second(schedule, i); /* whose time is the first one's */
        pc_time duration = is_second ? 0 : end_ps[i] - start_ps[i];
        sums.busy_ps += duration;
        if (schedule->passes[i].kind != PC_PASS_R) sums.work_ps += duration;
    }
    if (first == last) return sums;
    sums.start_ps = start_ps[first];
    sums.end_ps = end_ps[last - 1];
    return sums;
}

static pc_code fill_in_times(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                             const pc_time *end_ps, const pc_time *arrival_ps, bool with_trace, pc_replay *replay,
                             pc_error *error) {
    size_t devices = (size_t)schedule->devices;
    pc_stage_timing *stages = pc_alloc(devices, sizeof *stages);
    int64_t *peak_bytes = pc_alloc(devices, sizeof *peak_bytes);
    pc_copy_levels levels = {0};
    pc_level_trace trace;
    pc_replay_times found = {start_ps, end_ps, stages, NULL, arrival_ps};
    pc_code code = stages && peak_bytes ? PC_OK : pc_error_no_memory(error);
    if (!code) code = pc_schedule_peaks(schedule, costs, peak_bytes, error);
    if (!code && pc_costs_have_copies(costs)) {
        code = pc_copy_levels_make(schedule, costs, start_ps, end_ps, &levels, error);
        if (!code) memcpy(peak_bytes, levels.peak_bytes, devices * sizeof *peak_bytes);
        trace = pc_copy_levels_trace(&levels);
        if (!code) found.levels = &trace;
    }
    for (int d = 0; !code && d < schedule->devices; d++) {
        stages[d] = sum_stage_of_times(schedule, costs, start_ps, end_ps, d);
        stages[d].peak_bytes = peak_bytes[d];
    }
    if (!code) code = pc_replay_fill_in(schedule, costs, &found, with_trace, replay, error);
    pc_copy_levels_free(&levels);
    pc_free(peak_bytes);
    pc_free(stages);
    return code;
}

pc_code pc_replay_from_times(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                             const pc_time *end_ps, const pc_time *arrival_ps, bool with_trace, pc_replay *replay,
                             pc_error *error) {
    pc_replay made = {0};
    pc_code code = fill_in_times(schedule, costs, start_ps, end_ps, arrival_ps, with_trace, &made, error);
    if (code) {
        pc_replay_free(&made);
        return code;
    }
    made.trace_hash = pc_trace_hash(start_ps, end_ps, schedule->offsets[schedule->devices]);
    *replay = made;
    return PC_OK;
}

/* ---- the run ---- */

static bool wants_engine(const pc_costs *costs, const pc_replay_options *options) {
    return options->engine == PC_ENGINE_EVENTS || costs->transfer.mode != PC_TRANSFER_DELAY;
}

pc_code pc_replay_run(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *options,
                      pc_replay *replay, pc_error *error) {
    static const pc_replay_options usual = {.engine = PC_ENGINE_AUTO};
    const pc_replay_options *how = options ? options : &usual;
    pc_replay made = {0};
    pc_code code = pc_timing_check_shape(schedule, costs, error);
    if (!code) code = pc_memory_limit_check(how->memory_limit, schedule->devices, error);
    if (code) return code;
    if (wants_engine(costs, how) || !run_as_paths(schedule, costs, how, &made, &code, error))
        code = pc_replay_on_engine(schedule, costs, how, &made, error);
    if (code)
        pc_replay_free(&made);
    else
        *replay = made;
    return code;
}

void pc_replay_free(pc_replay *replay) {
    pc_replay_trace *trace = &replay->trace;
    void *arrays[] = {replay->device_start_ps, replay->device_end_ps, replay->device_busy_ps, replay->device_peak_bytes,
                      trace->pass_device,      trace->pass,           trace->pass_start_ps,   trace->pass_end_ps,
                      trace->level_device,     trace->level_time_ps,  trace->level_bytes,     trace->level_kinds,
                      trace->transfer_from,    trace->transfer_to,    trace->transfer_pass,   trace->transfer_start_ps,
                      trace->transfer_end_ps};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_engine_trace_free(&replay->engine);
    memset(replay, 0, sizeof *replay);
}
