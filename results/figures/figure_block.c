#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/figures/figure_private.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    REPEATED_LEAST = 4,                     /* microbatches */
    REPEATED_MAX = PC_FIGURE_PASSES_MAX / 4 /* the timeline needs its share */
};

/* --- the block and its repetitions as a trace --- */

typedef struct extent {
    int64_t first, last; /* in cells */
    int64_t passes;
} extent;

/* Walks microbatch by microbatch, device by device: the order of `start`. */
typedef struct block_cursor {
    int microbatch, device, chunk, kind;
} block_cursor;

static bool advance(const pc_block *block, block_cursor *at) {
    if (++at->kind < PC_PASS_KINDS) return true;
    at->kind = 0;
    if (++at->chunk < block->chunks) return true;
    at->chunk = 0;
    if (++at->device < block->devices) return true;
    at->device = 0;
    return ++at->microbatch < block->microbatches;
}

static int64_t start_at(const pc_block *block, const block_cursor *at) {
    return block->start[pc_block_index(block, at->microbatch, at->device, at->chunk, at->kind)];
}

static extent measure(const pc_block *block) {
    extent found = {INT64_MAX, INT64_MIN, 0};
    block_cursor at = {0};
    do {
        int64_t start = start_at(block, &at), end = start + block->duration[at.kind];
        if (start == PC_TIME_NOT_GIVEN) continue;
        if (start < found.first) found.first = start;
        if (end > found.last) found.last = end;
        found.passes++;
    } while (advance(block, &at));
    return found;
}

/* Half as many as overlap with the block: then the pattern is there before and where it is in full swing. A few at
 * least, but of a long block that holds several microbatches one is enough. */
static int64_t count_repetitions(const pc_block *block, const extent *found) {
    if (block->interval <= 0 || found->passes == 0) return 0;
    int64_t wanted = (found->last - found->first) / block->interval / 2, most = REPEATED_MAX / found->passes;
    int64_t least = pc_divide_up(REPEATED_LEAST, block->microbatches);
    if (wanted < least) wanted = least;
    return wanted < most ? wanted : most;
}

static bool allocate(pc_replay_trace *trace, int64_t count) {
    size_t passes = (size_t)count;
    trace->pass_device = pc_alloc(passes, sizeof *trace->pass_device);
    trace->pass = pc_alloc(passes, sizeof *trace->pass);
    trace->pass_start_ps = pc_alloc(passes, sizeof *trace->pass_start_ps);
    trace->pass_end_ps = pc_alloc(passes, sizeof *trace->pass_end_ps);
    return trace->pass_device && trace->pass && trace->pass_start_ps && trace->pass_end_ps;
}

static void add_block(const pc_block *block, const extent *found, pc_replay_trace *trace) {
    block_cursor at = {0};
    do {
        int64_t start = start_at(block, &at), i = trace->pass_count;
        if (start == PC_TIME_NOT_GIVEN) continue;
        trace->pass_device[i] = at.device;
        trace->pass[i] = (pc_pass){.microbatch = at.microbatch, .chunk = (int16_t)at.chunk, .kind = (int16_t)at.kind};
        trace->pass_start_ps[i] = start - found->first;
        trace->pass_end_ps[i] = start - found->first + block->duration[at.kind];
        trace->pass_count++;
    } while (advance(block, &at));
}

/* What was added last once more, an interval later. Microbatches count on, as they do in the schedule. Of the passes,
 * not of the block's places: most of these may be empty. */
static void add_repetition(const pc_block *block, int64_t passes, pc_replay_trace *trace) {
    for (int64_t end = trace->pass_count + passes; trace->pass_count < end; trace->pass_count++) {
        int64_t i = trace->pass_count, before = i - passes;
        trace->pass_device[i] = trace->pass_device[before];
        trace->pass[i] = trace->pass[before];
        trace->pass[i].microbatch += block->microbatches;
        trace->pass_start_ps[i] = trace->pass_start_ps[before] + block->interval;
        trace->pass_end_ps[i] = trace->pass_end_ps[before] + block->interval;
    }
}

pc_code pc_figure_repeat_block(const pc_block *block, pc_replay_trace *trace, int64_t *full, pc_error *error) {
    extent found = measure(block);
    int64_t repetitions = count_repetitions(block, &found);
    *trace = (pc_replay_trace){0};
    if (!allocate(trace, found.passes * (repetitions + 1))) return pc_error_no_memory(error);
    add_block(block, &found, trace);
    for (int64_t i = 0; i < repetitions; i++) add_repetition(block, found.passes, trace);
    *full = found.passes;
    return PC_OK;
}

void pc_figure_block_free(pc_replay_trace *trace) {
    pc_free(trace->pass_device);
    pc_free(trace->pass);
    pc_free(trace->pass_start_ps);
    pc_free(trace->pass_end_ps);
    *trace = (pc_replay_trace){0};
}

/* --- the interval --- */

enum { MARK_ABOVE = 9, MARK_TICK = 5, MARK_TEXT_GAP = 8 };

void pc_figure_add_interval(const pc_figure *figure, pc_text *script) {
    const pc_figure_panel *panel = &figure->block;
    int64_t interval = figure->timeline->block->interval;
    if (interval <= 0) return;
    double left = figure->margin_left, right = left + (double)interval * panel->pixels_per_unit;
    double above = panel->top - pc_figure_length(figure, MARK_ABOVE), y = pc_figure_screen_y(figure, above);
    pc_text_printf(script,
                   "set arrow from screen %.6f,%.6f to screen %.6f,%.6f heads size screen %.6f,90 linewidth 1.5 "
                   "linecolor rgb '#222222'\n",
                   pc_figure_screen_x(figure, left), y, pc_figure_screen_x(figure, right), y,
                   pc_figure_screen_x(figure, pc_figure_length(figure, MARK_TICK)));
    char text[64];
    snprintf(text, sizeof text, "interval: %" PRId64 " cells", interval);
    pc_figure_add_text(figure, script, text, right + pc_figure_length(figure, MARK_TEXT_GAP), above, PC_STYLE_TEXT_FONT,
                       "");
}
