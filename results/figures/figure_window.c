/* Part of a timeline: what a window of time, devices or microbatches has of a trace. */
#include "results/figures/figure_private.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <inttypes.h>
#include <stdio.h>

bool pc_figure_has_window(const pc_timeline *timeline) {
    const pc_timeline_window *window = &timeline->window;
    return window->has_time || window->has_devices || window->has_microbatches;
}

static bool is_device_in(const pc_timeline_window *window, int device) {
    return !window->has_devices || (device >= window->first_device && device <= window->last_device);
}

static bool is_microbatch_in(const pc_timeline_window *window, int32_t microbatch) {
    return !window->has_microbatches ||
           (microbatch >= window->first_microbatch && microbatch <= window->last_microbatch);
}

bool pc_figure_is_pale(const pc_figure_panel *panel, int64_t pass) {
    return pass >= panel->full ||
           (panel->window && !is_microbatch_in(panel->window, panel->trace->pass[pass].microbatch));
}

const char *pc_figure_window_heading(pc_figure *figure) {
    const pc_timeline_window *window = figure->passes.window;
    bool is_one = window->first_microbatch == window->last_microbatch;
    char last[24] = "";
    if (!is_one) snprintf(last, sizeof last, " to %" PRId32, window->last_microbatch);
    snprintf(figure->timeline_heading, sizeof figure->timeline_heading,
             "Timeline: microbatch%s %" PRId32 "%s; others pale", is_one ? "" : "es", window->first_microbatch, last);
    return figure->timeline_heading;
}

/* --- times --- */

static bool runs(const pc_replay_trace *trace, int64_t i) {
    return trace->pass_start_ps[i] >= 0 && trace->pass_end_ps[i] > trace->pass_start_ps[i];
}

static bool is_meant(const pc_timeline *timeline, int64_t i) {
    const pc_replay_trace *trace = timeline->trace;
    return runs(trace, i) && is_device_in(&timeline->window, trace->pass_device[i]) &&
           is_microbatch_in(&timeline->window, trace->pass[i].microbatch);
}

static bool overlaps(const pc_replay_trace *trace, int64_t i, pc_time from, pc_time to) {
    return trace->pass_start_ps[i] < to && trace->pass_end_ps[i] > from;
}

static bool has_pass(const pc_timeline *timeline, pc_time from, pc_time to) {
    for (int64_t i = 0; i < timeline->trace->pass_count; i++)
        if (is_meant(timeline, i) && overlaps(timeline->trace, i, from, to)) return true;
    return false;
}

static pc_time end_of(const pc_replay_trace *trace) {
    pc_time last = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) last = pc_max(last, trace->pass_end_ps[i]);
    return last;
}

pc_code pc_figure_window_times(const pc_timeline *timeline, pc_time *from, pc_time *to, pc_error *error) {
    const pc_timeline_window *window = &timeline->window;
    const pc_replay_trace *trace = timeline->trace;
    pc_time first = INT64_MAX, last = 0;
    if (window->has_devices && window->last_device >= timeline->devices)
        return pc_error_set(error, PC_ERROR_INPUT, "there is no device %d; expected at most %d", window->last_device,
                            timeline->devices - 1);
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!is_meant(timeline, i)) continue;
        if (trace->pass_start_ps[i] < first) first = trace->pass_start_ps[i];
        if (trace->pass_end_ps[i] > last) last = trace->pass_end_ps[i];
    }
    if (!window->has_microbatches) first = 0; /* devices alone: the axis of the whole */
    *from = window->has_time ? window->from_ps : first;
    *to = window->has_time ? pc_min(window->to_ps, end_of(trace)) : last;
    if (has_pass(timeline, *from, *to)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "no pass is in that window; expected a part of %d devices and %.6g s",
                        timeline->devices, (double)end_of(trace) / (double)PC_PICOSECONDS_PER_SECOND);
}

/* --- the part of a trace --- */

static bool allocate(pc_replay_trace *cut, int64_t passes, int64_t levels) {
    size_t pass_count = (size_t)passes, level_count = (size_t)levels;
    *cut = (pc_replay_trace){.pass_device = pc_alloc(pass_count, sizeof *cut->pass_device),
                             .pass = pc_alloc(pass_count, sizeof *cut->pass),
                             .pass_start_ps = pc_alloc(pass_count, sizeof *cut->pass_start_ps),
                             .pass_end_ps = pc_alloc(pass_count, sizeof *cut->pass_end_ps),
                             .level_device = pc_alloc(level_count, sizeof *cut->level_device),
                             .level_time_ps = pc_alloc(level_count, sizeof *cut->level_time_ps),
                             .level_bytes = pc_alloc(level_count, sizeof *cut->level_bytes)};
    return cut->pass_device && cut->pass && cut->pass_start_ps && cut->pass_end_ps && cut->level_device &&
           cut->level_time_ps && cut->level_bytes;
}

static void cut_passes(const pc_timeline *timeline, pc_time from, pc_time to, pc_replay_trace *cut) {
    const pc_replay_trace *trace = timeline->trace;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!runs(trace, i) || !is_device_in(&timeline->window, trace->pass_device[i])) continue;
        if (!overlaps(trace, i, from, to)) continue;
        int64_t at = cut->pass_count++;
        cut->pass_device[at] = trace->pass_device[i];
        cut->pass[at] = trace->pass[i];
        cut->pass_start_ps[at] = trace->pass_start_ps[i];
        cut->pass_end_ps[at] = trace->pass_end_ps[i];
    }
}

static void add_level(pc_replay_trace *cut, int32_t device, pc_time time, int64_t bytes) {
    int64_t at = cut->level_count++;
    cut->level_device[at] = device;
    cut->level_time_ps[at] = time;
    cut->level_bytes[at] = bytes;
}

/* Levels of a device, from `first` on; returns the first of the next device. */
static int64_t cut_device(const pc_figure_levels *levels, int64_t first, bool is_in, pc_time from, pc_time to,
                          pc_replay_trace *cut) {
    int32_t device = levels->device[first];
    int64_t i = first, held = 0;
    for (; i < levels->count && levels->device[i] == device && levels->time_ps[i] < from; i++) held = levels->bytes[i];
    if (is_in && i > first) add_level(cut, device, from, held);
    for (; i < levels->count && levels->device[i] == device; i++)
        if (is_in && levels->time_ps[i] <= to) add_level(cut, device, levels->time_ps[i], levels->bytes[i]);
    return i;
}

pc_code pc_figure_cut(const pc_timeline *timeline, const pc_figure_levels *levels, pc_time from, pc_time to,
                      pc_replay_trace *cut, pc_error *error) {
    if (!allocate(cut, timeline->trace->pass_count, levels->count)) return pc_error_no_memory(error);
    cut_passes(timeline, from, to, cut);
    for (int64_t i = 0; i < levels->count;)
        i = cut_device(levels, i, is_device_in(&timeline->window, levels->device[i]), from, to, cut);
    return PC_OK;
}

void pc_figure_cut_free(pc_replay_trace *cut) {
    pc_free(cut->pass_device);
    pc_free(cut->pass);
    pc_free(cut->pass_start_ps);
    pc_free(cut->pass_end_ps);
    pc_free(cut->level_device);
    pc_free(cut->level_time_ps);
    pc_free(cut->level_bytes);
    *cut = (pc_replay_trace){0};
}
