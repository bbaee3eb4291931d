/* The trace of a replay: passes, changes of levels, and what goes between stages. */
#include "models/schedule/replay_private.h"

#include "engine/alloc.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/replay_transfers.h"

#include <string.h>

static bool make_trace_arrays(pc_replay_trace *trace, int64_t passes, int64_t levels) {
    trace->pass_device = pc_alloc((size_t)passes, sizeof *trace->pass_device);
    trace->pass = pc_alloc((size_t)passes, sizeof *trace->pass);
    trace->pass_start_ps = pc_alloc((size_t)passes, sizeof *trace->pass_start_ps);
    trace->pass_end_ps = pc_alloc((size_t)passes, sizeof *trace->pass_end_ps);
    trace->level_device = pc_alloc((size_t)levels, sizeof *trace->level_device);
    trace->level_time_ps = pc_alloc((size_t)levels, sizeof *trace->level_time_ps);
    trace->level_bytes = pc_alloc((size_t)levels, sizeof *trace->level_bytes);
    trace->pass_count = passes;
    trace->level_count = levels;
    return trace->pass_device && trace->pass && trace->pass_start_ps && trace->pass_end_ps && trace->level_device &&
           trace->level_time_ps && trace->level_bytes;
}

/* Of a pair both passes start with the first. */
static void copy_passes(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_times *found,
                        pc_replay_trace *trace) {
    size_t passes = (size_t)trace->pass_count;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) trace->pass_device[i] = d;
    memcpy(trace->pass, schedule->passes, passes * sizeof *trace->pass);
    memcpy(trace->pass_start_ps, found->start_ps, passes * sizeof *trace->pass_start_ps);
    memcpy(trace->pass_end_ps, found->end_ps, passes * sizeof *trace->pass_end_ps);
    for (size_t i = 1; costs->pair_ps && schedule->pairs && i < passes; i++)
        if (schedule->pairs[i - 1]) trace->pass_start_ps[i] = trace->pass_start_ps[i - 1];
}

/* The engine's rows are in time order over all devices; ours are device by device. */
static bool copy_levels(const pc_level_trace *levels, int devices, pc_replay_trace *trace) {
    int64_t *next = pc_alloc((size_t)devices + 1, sizeof *next);
    if (!next) return false;
    for (int64_t i = 0; i < levels->count; i++) next[levels->memory[i] + 1]++;
    for (int d = 0; d < devices; d++) next[d + 1] += next[d];
    for (int64_t i = 0; i < levels->count; i++) {
        int64_t row = next[levels->memory[i]]++;
        trace->level_device[row] = levels->memory[i];
        trace->level_time_ps[row] = levels->time_ps[i];
        trace->level_bytes[row] = levels->level_bytes[i];
    }
    pc_free(next);
    return true;
}

static int64_t count_level_changes(const pc_schedule *schedule, const pc_pass_index *index, const pc_costs *costs) {
    int64_t count = 0;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            count += (pc_costs_taken_at(costs, schedule, d, i, pc_pass_is_recomputed(index, d, pass)) > 0) +
                     (pc_costs_given_at(costs, schedule, d, i) > 0);
        }
    return count;
}

/* A stage runs its passes one by one, so that its levels follow from its order. */
static void derive_levels(const pc_schedule *schedule, const pc_pass_index *index, const pc_costs *costs,
                          const pc_replay_times *found, pc_replay_trace *trace) {
    int64_t row = 0;
    for (int d = 0; d < schedule->devices; d++) {
        int64_t level = 0;
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            const int64_t changes[] = {pc_costs_taken_at(costs, schedule, d, i, pc_pass_is_recomputed(index, d, pass)),
                                       -pc_costs_given_at(costs, schedule, d, i)};
            const pc_time times[] = {found->start_ps[i], found->end_ps[i]};
            for (int k = 0; k < 2; k++) {
                if (changes[k] == 0) continue;
                trace->level_device[row] = d;
                trace->level_time_ps[row] = times[k];
                trace->level_bytes[row++] = level += changes[k];
            }
        }
    }
}

pc_code pc_replay_keep_trace(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_times *found,
                             pc_replay_trace *trace, pc_error *error) {
    pc_pass_index index;
    pc_code code = pc_pass_index_create(schedule, &index, error);
    if (code) return code;
    int64_t levels = found->levels ? found->levels->count : count_level_changes(schedule, &index, costs);
    bool made = make_trace_arrays(trace, schedule->offsets[schedule->devices], levels);
    if (made) copy_passes(schedule, costs, found, trace);
    if (made && found->levels)
        made = copy_levels(found->levels, schedule->devices, trace);
    else if (made)
        derive_levels(schedule, &index, costs, found, trace);
    code = made ? pc_trace_add_transfers(&index, costs, found->arrival_ps, trace, error) : pc_error_no_memory(error);
    pc_pass_index_free(&index);
    return code;
}
