/* The block in the middle of a schedule: two intervals of time in which all devices do the same, and what stands in the
 * first of them. A block says when the passes of one microbatch start, an interval when those of many do: the pass of
 * microbatch i that starts at t is the one of microbatch 0 that starts i intervals before.
 */
#include "models/schedule/block.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/timing.h"

/* Starts, in cells, of all passes of a row of microbatches: [count][devices][chunks][PC_PASS_KINDS], as in a block;
 * PC_TIME_NOT_GIVEN where there is no such pass. */
typedef struct window {
    int first, count;
    int64_t passes; /* of a microbatch */
    int64_t *start;
} window;

/* One more than as many microbatches as any named schedule holds, before and behind the middle. */
static window choose_window(const pc_schedule *schedule) {
    int64_t wanted = 4 * (int64_t)schedule->devices + 16;
    int count = wanted < schedule->microbatches ? (int)wanted : schedule->microbatches;
    return (window){.first = (schedule->microbatches - count) / 2,
                    .count = count,
                    .passes = (int64_t)schedule->devices * schedule->chunks * PC_PASS_KINDS};
}

static void fill_window(const pc_schedule *schedule, const int64_t *start, window *w) {
    for (int64_t i = 0; i < w->count * w->passes; i++) w->start[i] = PC_TIME_NOT_GIVEN;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t k = schedule->offsets[d]; k < schedule->offsets[d + 1]; k++) {
            pc_pass pass = schedule->passes[k];
            int64_t at = ((int64_t)d * schedule->chunks + pass.chunk) * PC_PASS_KINDS + pass.kind;
            if (pass.microbatch < w->first || pass.microbatch >= w->first + w->count) continue;
            w->start[(pass.microbatch - w->first) * w->passes + at] = start[k];
        }
}

/* Squeezes the orders at the times of cells. */
static pc_code time_window(const pc_schedule *schedule, window *w, pc_error *error) {
    pc_costs costs = {0};
    pc_timing *timing = NULL;
    pc_timing_result result;
    pc_code code = pc_costs_create(schedule->devices, schedule->chunks, &costs, error);
    for (int64_t i = 0; !code && i < w->passes; i++) costs.duration_ps[i] = i % PC_PASS_KINDS == PC_PASS_BW ? 2 : 1;
    if (!code) code = pc_timing_create(&timing, error);
    if (!code) code = pc_timing_run(timing, schedule, &costs, &result, error);
    if (!code) fill_window(schedule, result.start_ps, w);
    pc_timing_free(timing);
    pc_costs_free(&costs);
    return code;
}

/* The passes at `at` of microbatches `from`, from + step, ... in the window: the first of them that starts at `time` or
 * later; NULL where none does, or the window does not know it. They start one after the other. */
static const int64_t *first_since(const window *w, int64_t at, int from, int step, int64_t time, int *microbatch) {
    int low = 0, high = (int)pc_divide_up(w->count - from, step);
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (w->start[(from + middle * step) * w->passes + at] < time)
            low = middle + 1;
        else
            high = middle;
    }
    *microbatch = from + low * step;
    return *microbatch < w->count ? &w->start[*microbatch * w->passes + at] : NULL;
}

/* Whether a microbatch of the block has the pass at `at`. */
static bool has_pass(const pc_block *block, int microbatch, int64_t at) {
    return block->duration[at % PC_PASS_KINDS] > 0 &&
           pc_placement_visits(block->placement, (int)(at / PC_PASS_KINDS % block->chunks), microbatch);
}

/* Writes into the block, which has as many microbatches as come again every `interval`, what starts in the interval
 * from `time` on. False where the interval behind it is another one. */
static bool fill_from(const window *w, int64_t time, int64_t interval, pc_block *block) {
    int step = block->microbatches, found;
    block->interval = interval;
    for (int i = 0; i < step; i++)
        for (int64_t at = 0; at < w->passes; at++) {
            if (!has_pass(block, i, at)) continue;
            const int64_t *start = first_since(w, at, (step + i - w->first % step) % step, step, time, &found);
            if (!start || *start < time || *start >= time + interval || found + step >= w->count) return false;
            if (start[step * w->passes] != *start + interval) return false;
            block->start[i * w->passes + at] = *start - (w->first + found - i) / step * interval;
        }
    return true;
}

/* Lets the first pass start at 0. */
static void move_to_zero(const window *w, pc_block *block) {
    int64_t first = INT64_MAX, *start = block->start;
    for (int i = 0; i < block->microbatches; i++)
        for (int64_t at = 0; at < w->passes; at++)
            if (has_pass(block, i, at) && start[i * w->passes + at] < first) first = start[i * w->passes + at];
    for (int i = 0; i < block->microbatches; i++)
        for (int64_t at = 0; at < w->passes; at++)
            if (has_pass(block, i, at)) start[i * w->passes + at] -= first;
}

/* Tries the intervals that begin with an F of the first device, from the middle of the iteration outwards. */
static bool find_interval(const window *w, pc_block *block) {
    int step = block->microbatches;
    for (int k = 0; k < 2 * w->count; k++) {
        int i = w->count / 2 + (k % 2 ? -(k + 1) / 2 : k / 2);
        if (i < 0 || i + step >= w->count) continue;
        int64_t time = w->start[i * w->passes], next = w->start[(i + step) * w->passes];
        if (time == PC_TIME_NOT_GIVEN || next <= time || !fill_from(w, time, next - time, block)) continue;
        move_to_zero(w, block);
        if (pc_block_is_valid(block)) return true;
    }
    return false;
}

static pc_code find_block(const pc_schedule *schedule, const window *w, int microbatches, pc_block *block,
                          pc_error *error) {
    pc_code code =
        pc_block_create(schedule->placement, schedule->devices, schedule->chunks, microbatches, block, error);
    if (code) return code;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (pc_schedule_has(schedule, (pc_pass_kind)kind)) block->duration[kind] = kind == PC_PASS_BW ? 2 : 1;
    if (!find_interval(w, block)) pc_block_free(block);
    return PC_OK;
}

pc_code pc_block_of_schedule(const pc_schedule *schedule, pc_block *block, pc_error *error) {
    if (pc_placement_has_slices(schedule->placement)) { /* a block has no order of slices */
        *block = (pc_block){0};
        return PC_OK;
    }
    window w = choose_window(schedule);
    pc_block made = {0};
    w.start = pc_alloc((size_t)w.count * (size_t)w.passes, sizeof *w.start);
    pc_code code = w.start ? time_window(schedule, &w, error) : pc_error_no_memory(error);
    bool is_mixed = pc_schedule_has(schedule, PC_PASS_BW) && pc_schedule_has(schedule, PC_PASS_W); /* no block is */
    int least = schedule->placement == PC_PLACEMENT_BIDIRECTIONAL ? 2 : 1;
    for (int microbatches = least; !code && !is_mixed && microbatches <= 2 && made.devices == 0; microbatches++)
        code = find_block(schedule, &w, microbatches, &made, error);
    pc_free(w.start);
    if (!code) *block = made;
    return code;
}
