#include "models/training/events.h"

#include "engine/alloc.h"
#include "models/training/expand_replicas.h"
#include "models/training/finish.h"

#include <stdlib.h>
#include <string.h>

/* ---- at its own pace ---- */

typedef struct held_program {
    const pc_outline *outline;
    const pc_schedule *schedule;
    pc_flows_spec how;
    pc_error *error;
} held_program;

static pc_code time_held(void *context, int device, pc_time held_ps, pc_time *step_end_ps) {
    held_program *x = context;
    pc_flows_result found;
    x->how.held_device = device;
    x->how.held_ps = held_ps;
    pc_code code = pc_flows_run(x->outline, x->schedule, &x->how, &found, x->error);
    if (code) return code;
    *step_end_ps = found.step_end_ps[device];
    pc_flows_free(&found);
    return PC_OK;
}

/* Where flows meet, a stage that is held back may meet more: what all take without is a pace, too. */
static pc_code find_pace(held_program *program, const pc_flows_result *result, pc_time *iteration_ps) {
    int devices = program->outline->devices;
    pc_time *period_ps = pc_alloc((size_t)devices, sizeof *period_ps), longest = 0;
    if (!period_ps) return pc_error_no_memory(program->error);
    for (int d = 0; d < devices; d++) {
        period_ps[d] = result->step_end_ps[d] - result->begin_ps[d];
        if (period_ps[d] > longest) longest = period_ps[d];
    }
    pc_time most_ps = *iteration_ps = longest + program->outline->spec->overhead_ps;
    program->how.with_trace = false;
    pc_code code = pc_outline_own_pace(program->outline, result->begin_ps, period_ps, time_held, program, iteration_ps);
    if (*iteration_ps > most_ps) *iteration_ps = most_ps;
    pc_free(period_ps);
    return code;
}

pc_code pc_events_run(const pc_outline *outline, const pc_schedule *schedule, const pc_flows_spec *how,
                      pc_flows_result *result, pc_time *iteration_ps, pc_error *error) {
    held_program held = {outline, schedule, *how, error};
    pc_flows_result made;
    *iteration_ps = 0;
    pc_code code = pc_flows_run(outline, schedule, how, &made, error);
    if (code) return code;
    *iteration_ps = made.whole_ps;
    if (!made.is_stuck) code = pc_outline_check_end(made.whole_ps, error);
    if (!code && !made.is_stuck && outline->spec->step == PC_STEP_POST_VALIDATION)
        code = find_pace(&held, &made, iteration_ps);
    if (code)
        pc_flows_free(&made);
    else
        *result = made;
    return code;
}

/* ---- replicas ---- */

pc_code pc_events_draw(const pc_outline *outline, const pc_schedule *schedule, bool is_closed, pc_replica_times **times,
                       pc_time **block, pc_error *error) {
    int without = is_closed ? 0 : PC_WITHOUT_TRANSFERS;
    size_t replicas = (size_t)outline->cut.dp, passes = (size_t)schedule->offsets[schedule->devices];
    pc_expansion expansion = {.replicas = outline->cut.dp,
                              .jitter = outline->spec->jitter,
                              .seed = outline->spec->seed,
                              .outline = outline,
                              .without = without};
    pc_costs costs = {0};
    pc_replica_times *made = pc_alloc(replicas, sizeof *made);
    pc_time *durations = pc_alloc(replicas * passes, sizeof *durations);
    pc_code code = made && durations ? pc_outline_costs(outline, without, &costs, error) : pc_error_no_memory(error);
    if (!code) code = pc_expand_draw(schedule, &costs, &expansion, durations, error);
    for (size_t r = 0; !code && r < replicas; r++) made[r].duration_ps = durations + r * passes;
    pc_costs_free(&costs);
    if (code) {
        pc_free(made);
        pc_free(durations);
        return code;
    }
    *times = made;
    *block = durations;
    return PC_OK;
}

/* ---- the order in which passes ran ---- */

typedef struct ran {
    pc_time start_ps, end_ps;
    int64_t position;
} ran;

/* Passes of no time that start at once keep their order. */
static int compare_ran(const void *a, const void *b) {
    const ran *x = a, *y = b;
    if (x->start_ps != y->start_ps) return x->start_ps < y->start_ps ? -1 : 1;
    if (x->end_ps != y->end_ps) return x->end_ps < y->end_ps ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* Puts the elements of `size` bytes into that order. */
static bool reorder(void *elements, size_t size, const ran *order, int64_t count) {
    char *moved = pc_alloc((size_t)count, size);
    for (int64_t i = 0; moved && i < count; i++)
        memcpy(moved + (size_t)i * size, (char *)elements + (size_t)order[i].position * size, size);
    if (moved) memcpy(elements, moved, (size_t)count * size);
    pc_free(moved);
    return moved;
}

static bool reorder_times(pc_time *times_ps, const ran *order, int64_t count) {
    return reorder(times_ps, sizeof *times_ps, order, count);
}

/* Two passes that others came between are no pair any more. */
static bool reorder_pairs(uint8_t *pairs, const ran *order, int64_t count) {
    if (!reorder(pairs, sizeof *pairs, order, count)) return false;
    for (int64_t i = 0; i < count; i++)
        if (i + 1 == count || order[i + 1].position != order[i].position + 1) pairs[i] = 0;
    return true;
}

pc_code pc_events_reorder(pc_schedule *schedule, bool has_pairs, pc_flows_result *result, pc_error *error) {
    int64_t passes = schedule->offsets[schedule->devices];
    ran *order = pc_alloc((size_t)passes, sizeof *order);
    if (!order) return pc_error_no_memory(error);
    for (int64_t i = 0; i < passes; i++) {
        bool is_second = pc_schedule_is_second(schedule, i); /* it follows the first */
        order[i] = (ran){result->start_ps[is_second && has_pairs ? i - 1 : i], result->end_ps[i], i};
    }
    for (int d = 0; d < schedule->devices; d++)
        qsort(order + schedule->offsets[d], (size_t)(schedule->offsets[d + 1] - schedule->offsets[d]), sizeof *order,
              compare_ran);
    bool moved = reorder(schedule->passes, sizeof *schedule->passes, order, passes) &&
                 (!schedule->pairs || reorder_pairs(schedule->pairs, order, passes)) &&
                 reorder_times(result->start_ps, order, passes) && reorder_times(result->end_ps, order, passes) &&
                 reorder_times(result->arrival_ps, order, passes) &&
                 (result->trace.queue_count == 0 || reorder_times(result->trace.queue_ready_ps, order, passes));
    pc_free(order);
    return moved ? PC_OK : pc_error_no_memory(error);
}
