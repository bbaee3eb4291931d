#include "models/training/finish.h"

/* What is longer runs over: a few of these can be added. */
#define TIME_MOST (PC_TIME_MAX / 4)

static pc_time later(pc_time a, pc_time b) {
    return a > b ? a : b;
}

/* ---- gradients ---- */

/* The chunk whose last backward pass ends next after that of `chunk`, of equal ones in the order of their numbers; the
 * first of all where that is -1. */
static int next_to_end(const pc_iteration_plan *plan, const pc_time *last_end_ps, int chunk) {
    int found = -1;
    for (int c = 0; c < plan->chunks; c++) {
        bool is_later =
            chunk < 0 || last_end_ps[c] > last_end_ps[chunk] || (c > chunk && last_end_ps[c] == last_end_ps[chunk]);
        if (is_later && (found < 0 || last_end_ps[c] < last_end_ps[found])) found = c;
    }
    return found;
}

/* The stage's stream, as far as it carries the gradients of all passes but each chunk's last one: first in, first out.
 */
static pc_time carry_earlier(const pc_iteration_plan *plan, const pc_schedule *schedule, const pc_time *end_ps, int d) {
    int64_t first = schedule->offsets[d], behind = schedule->offsets[d + 1], last[PC_CHUNKS_MAX];
    pc_time stream = 0;
    for (int64_t i = first; i < behind; i++)
        if (pc_pass_adds_gradients(schedule->passes[i])) last[schedule->passes[i].chunk] = i;
    for (int64_t i = first; i < behind && stream < TIME_MOST; i++) {
        pc_pass pass = schedule->passes[i];
        const pc_chunk_plan *x = &plan->chunks_of[(int64_t)d * plan->chunks + pass.chunk];
        /* cppcheck-suppress uninitvar ; the loop above has met this pass */
        if (pc_pass_adds_gradients(pass) && last[pass.chunk] != i)
            stream = later(stream, end_ps[i]) + x->buckets * x->reduce_ps;
    }
    return stream;
}

void pc_plan_find_backlog(const pc_iteration_plan *plan, const pc_schedule *schedule, const pc_time *end_ps,
                          pc_time *backlog_ps) {
    for (int d = 0; d < plan->devices; d++) {
        backlog_ps[d] = 0;
        if (plan->cut.zero == 2 && pc_plan_reduces_behind(plan))
            backlog_ps[d] = carry_earlier(plan, schedule, end_ps, d);
    }
}

/* One bucket after the other, each when its share of the chunk's last pass is over. */
static pc_time reduce_stage(const pc_iteration_plan *plan, int d, const pc_pipeline_ends *ends, pc_time backlog_ps) {
    const pc_time *last_start = ends->last_start_ps + (int64_t)d * plan->chunks;
    const pc_time *last_end = ends->last_end_ps + (int64_t)d * plan->chunks;
    pc_time stream = backlog_ps;
    for (int c = next_to_end(plan, last_end, -1); c >= 0; c = next_to_end(plan, last_end, c)) {
        const pc_chunk_plan *x = &plan->chunks_of[(int64_t)d * plan->chunks + c];
        pc_time share = (last_end[c] - last_start[c]) / x->buckets;
        for (int32_t k = 0; k < x->buckets; k++) {
            pc_time ready =
                plan->spec->overlaps_gradients ? last_end[c] - share * (x->buckets - 1 - k) : ends->stage_end_ps[d];
            stream = later(stream, ready) + x->reduce_ps;
        }
    }
    return stream;
}

void pc_plan_reduce_gradients(const pc_iteration_plan *plan, int without, const pc_pipeline_ends *ends,
                              const pc_time *backlog_ps, pc_time *done_ps) {
    bool reduces = pc_plan_reduces_behind(plan) && !(without & PC_WITHOUT_DATA_PARALLEL);
    for (int d = 0; d < plan->devices; d++)
        done_ps[d] =
            reduces ? later(reduce_stage(plan, d, ends, backlog_ps[d]), ends->stage_end_ps[d]) : ends->stage_end_ps[d];
}

/* ---- the end ---- */

/* Both ends of the model wait for each other with the tied embedding's gradient, and the last one reduces the loss. */
static void meet_ends(const pc_iteration_plan *plan, int without, pc_time *done_ps) {
    int first = pc_placement_stage(plan->placement, plan->devices, 0, 0);
    int last = pc_placement_stage(plan->placement, plan->devices, plan->parts - 1, 0);
    if (plan->tied_ps > 0 && !(without & PC_WITHOUT_TRANSFERS))
        done_ps[first] = done_ps[last] = later(done_ps[first], done_ps[last]) + plan->tied_ps;
    done_ps[last] += plan->loss_ps;
}

void pc_plan_own_ready(const pc_iteration_plan *plan, const pc_costs *costs, pc_time *own_ready_ps) {
    for (int d = 0; d < plan->devices; d++) {
        own_ready_ps[d] = PC_TIME_MAX;
        for (int c = 0; c < plan->chunks; c++)
            if (pc_costs_ready(costs, d, c) < own_ready_ps[d]) own_ready_ps[d] = pc_costs_ready(costs, d, c);
    }
}

/* NORM: all stages wait for the last one's gradients. POST_VALIDATION: nobody waits, and iterations follow each other
 * at the pace of the stage whose own work takes longest, from when its parameters alone would let it begin. Over flows
 * F may start before that, and wait on its way. */
static pc_time last_step(const pc_iteration_plan *plan, const pc_time *own_ready_ps, const pc_time *start_ps,
                         const pc_time *done_ps) {
    pc_time end = 0, slowest = 0;
    for (int d = 0; d < plan->devices; d++) {
        pc_time step = plan->device[d].step_ps;
        if (plan->spec->step == PC_STEP_POST_VALIDATION) {
            end = later(end, done_ps[d] + step - later(start_ps[d] - own_ready_ps[d], 0));
        } else {
            end = later(end, done_ps[d]);
            slowest = later(slowest, step);
        }
    }
    return plan->spec->step == PC_STEP_POST_VALIDATION ? end : end + plan->norm_ps + slowest;
}

pc_code pc_plan_finish(const pc_iteration_plan *plan, int without, const pc_time *own_ready_ps, const pc_time *start_ps,
                       pc_time *done_ps, pc_time *iteration_ps, pc_error *error) {
    pc_time end = 0;
    for (int d = 0; d < plan->devices; d++) end = later(end, done_ps[d]);
    if (end >= TIME_MOST || plan->spec->overhead_ps >= TIME_MOST)
        return pc_error_set(error, PC_ERROR_INPUT, "iteration: runs over; expected one under 26 days");
    meet_ends(plan, without, done_ps);
    *iteration_ps = last_step(plan, own_ready_ps, start_ps, done_ps) + plan->spec->overhead_ps;
    return PC_OK;
}

pc_time pc_plan_step_ps(const pc_iteration_plan *plan) {
    pc_time slowest = 0;
    for (int d = 0; d < plan->devices; d++) slowest = later(slowest, plan->device[d].step_ps);
    return slowest + (plan->spec->step == PC_STEP_NORM ? plan->norm_ps : 0);
}
