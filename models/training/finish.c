#include "models/training/finish.h"

#include "engine/numbers.h"

/* What is longer runs over: a few of these can be added. */
#define TIME_MOST (PC_TIME_MAX / 4)

/* ---- gradients ---- */

/* The chunk whose last backward pass ends next after that of `chunk`, of equal ones in the order of their numbers; the
 * first of all where that is -1. */
static int next_to_end(const pc_outline *outline, const pc_time *last_end_ps, int chunk) {
    int found = -1;
    for (int c = 0; c < outline->chunks; c++) {
        bool is_later =
            chunk < 0 || last_end_ps[c] > last_end_ps[chunk] || (c > chunk && last_end_ps[c] == last_end_ps[chunk]);
        if (is_later && (found < 0 || last_end_ps[c] < last_end_ps[found])) found = c;
    }
    return found;
}

/* The stage's stream, as far as it carries the gradients of all passes but each chunk's last one: first in, first out.
 */
static pc_time carry_earlier(const pc_outline *outline, const pc_schedule *schedule, const pc_time *end_ps, int d) {
    int64_t first = schedule->offsets[d], behind = schedule->offsets[d + 1], last[PC_CHUNKS_MAX];
    pc_time stream = 0;
    for (int64_t i = first; i < behind; i++)
        if (pc_pass_adds_gradients(schedule->passes[i])) last[schedule->passes[i].chunk] = i;
    for (int64_t i = first; i < behind && stream < TIME_MOST; i++) {
        pc_pass pass = schedule->passes[i];
        const pc_chunk_outline *x = &outline->chunks_of[(int64_t)d * outline->chunks + pass.chunk];
        /* cppcheck-suppress uninitvar ; the loop above has met this pass */
        if (pc_pass_adds_gradients(pass) && last[pass.chunk] != i)
            stream = pc_max(stream, end_ps[i]) + x->buckets * x->reduce_ps;
    }
    return stream;
}

void pc_outline_find_backlog(const pc_outline *outline, const pc_schedule *schedule, const pc_time *end_ps,
                             pc_time *backlog_ps) {
    for (int d = 0; d < outline->devices; d++) {
        backlog_ps[d] = 0;
        if (outline->cut.zero == 2 && pc_outline_reduces_behind(outline))
            backlog_ps[d] = carry_earlier(outline, schedule, end_ps, d);
    }
}

/* One bucket after the other, each when its share of the chunk's last pass is over. */
static pc_time reduce_stage(const pc_outline *outline, int d, const pc_pipeline_ends *ends, pc_time backlog_ps) {
    const pc_time *last_start = ends->last_start_ps + (int64_t)d * outline->chunks;
    const pc_time *last_end = ends->last_end_ps + (int64_t)d * outline->chunks;
    pc_time stream = backlog_ps;
    for (int c = next_to_end(outline, last_end, -1); c >= 0; c = next_to_end(outline, last_end, c)) {
        int64_t row = (int64_t)d * outline->chunks + c;
        const pc_chunk_outline *x = &outline->chunks_of[row];
        const pc_time *known = ends->bucket ? ends->bucket_ps + ends->bucket[row] : NULL;
        pc_time share = (last_end[c] - last_start[c]) / x->buckets;
        for (int32_t k = 0; k < x->buckets; k++) {
            pc_time ready = known ? known[k] : last_end[c] - share * (x->buckets - 1 - k);
            stream =
                pc_max(stream, pc_outline_overlaps_gradients(outline) ? ready : ends->stage_end_ps[d]) + x->reduce_ps;
        }
    }
    return stream;
}

void pc_outline_reduce_gradients(const pc_outline *outline, int without, const pc_pipeline_ends *ends,
                                 const pc_time *backlog_ps, pc_time *done_ps) {
    bool has_dp = !(without & PC_WITHOUT_DATA_PARALLEL), reduces = pc_outline_reduces_behind(outline) && has_dp;
    for (int d = 0; d < outline->devices; d++) {
        done_ps[d] = reduces ? pc_max(reduce_stage(outline, d, ends, backlog_ps[d]), ends->stage_end_ps[d])
                             : ends->stage_end_ps[d];
        if (has_dp) done_ps[d] += outline->device[d].slowed_ps;
    }
}

/* ---- the end ---- */

/* Two stages wait for each other with the embedding's gradient, and the last one reduces the loss. */
static void meet_ends(const pc_outline *outline, int without, pc_time *done_ps) {
    int first = pc_placement_stage(outline->placement, outline->devices, 0, 0);
    int last = pc_placement_stage(outline->placement, outline->devices, outline->parts - 1, 0);
    int other = outline->tied_stage;
    if (outline->tied_ps > 0 && !(without & PC_WITHOUT_TRANSFERS))
        done_ps[first] = done_ps[other] = pc_max(done_ps[first], done_ps[other]) + outline->tied_ps;
    done_ps[last] += outline->loss_ps;
}

/* NORM: all stages wait for the last one's gradients. POST_VALIDATION: nobody waits, and iterations follow each other
 * at the pace of the stage whose own work takes longest. */
static pc_time last_step(const pc_outline *outline, const pc_time *begin_ps, pc_time *done_ps) {
    pc_time end = 0, slowest = 0;
    for (int d = 0; d < outline->devices; d++) {
        pc_time step = outline->device[d].step_ps;
        if (outline->spec->step == PC_STEP_POST_VALIDATION)
            done_ps[d] += step - begin_ps[d];
        else
            slowest = pc_max(slowest, step);
        end = pc_max(end, done_ps[d]);
    }
    return outline->spec->step == PC_STEP_POST_VALIDATION ? end : end + outline->norm_ps + slowest;
}

pc_code pc_outline_check_end(pc_time end_ps, pc_error *error) {
    if (end_ps < TIME_MOST) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "iteration: runs over; expected one under 26 days");
}

pc_code pc_outline_finish(const pc_outline *outline, int without, const pc_time *begin_ps, pc_time *done_ps,
                          pc_time *iteration_ps, pc_error *error) {
    pc_time end = 0;
    for (int d = 0; d < outline->devices; d++) end = pc_max(end, done_ps[d]);
    pc_code code = pc_outline_check_end(pc_max(end, outline->spec->overhead_ps), error);
    if (code) return code;
    meet_ends(outline, without, done_ps);
    *iteration_ps = last_step(outline, begin_ps, done_ps) + outline->spec->overhead_ps;
    return PC_OK;
}

/* ---- at its own pace ---- */

void pc_outline_hold(const pc_costs *costs, int device, pc_time held_ps, pc_time *ready_ps) {
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++)
            ready_ps[pc_costs_index(costs, d, c)] = pc_costs_ready(costs, d, c) + (d == device ? held_ps : 0);
}

static int find_longest(const pc_time *times_ps, int count) {
    int longest = 0;
    for (int i = 1; i < count; i++)
        if (times_ps[i] > times_ps[longest]) longest = i;
    return longest;
}

pc_code pc_outline_own_pace(const pc_outline *outline, const pc_time *begin_ps, pc_time *period_ps,
                            pc_time_held *time_held, void *context, pc_time *iteration_ps) {
    pc_time pace_ps = 0, step_end_ps;
    pc_time held_ps =
        begin_ps[find_longest(begin_ps, outline->devices)] + period_ps[find_longest(period_ps, outline->devices)];
    if (held_ps >= TIME_MOST / 2) return PC_OK;
    for (;;) {
        int d = find_longest(period_ps, outline->devices);
        if (period_ps[d] <= pace_ps) break;
        pc_code code = time_held(context, d, held_ps, &step_end_ps);
        if (code) return code;
        pace_ps = pc_max(pace_ps, step_end_ps - held_ps);
        period_ps[d] = 0;
    }
    *iteration_ps = pace_ps + outline->spec->overhead_ps;
    return PC_OK;
}

pc_time pc_outline_step_ps(const pc_outline *outline) {
    pc_time slowest = 0;
    for (int d = 0; d < outline->devices; d++) slowest = pc_max(slowest, outline->device[d].step_ps);
    return slowest + (outline->spec->step == PC_STEP_NORM ? outline->norm_ps : 0);
}
