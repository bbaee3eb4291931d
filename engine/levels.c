/* What the tasks of a running program take of its memories, and give back. */
#include "engine/simulation_internal.h"

static void record_level(pc_simulation *s, int32_t number) {
    level_rows *rows = &s->levels;
    if (!s->with_trace) return;
    const array_spec columns[] = {ARRAY(rows->memory), ARRAY(rows->time_ps), ARRAY(rows->level_bytes)};
    if (rows->count == rows->capacity && !FIT(columns, more_rows(rows->capacity), &rows->capacity)) {
        pc_simulation_fail(s, &s->no_memory);
        return;
    }
    rows->memory[rows->count] = number;
    rows->time_ps[rows->count] = pc_engine_now(s->engine);
    rows->level_bytes[rows->count++] = s->level[number];
}

static int64_t room_of(const pc_simulation *s, int32_t number) {
    return s->program->memories[number].capacity_bytes - s->level[number];
}

bool pc_memory_lets_start(const pc_simulation *simulation, int32_t task) {
    const pc_task *t = &simulation->program->tasks[task];
    if (t->memory == PC_NO_RESOURCE || t->take_bytes == 0) return true;
    return simulation->program->memories[t->memory].policy != PC_MEMORY_WAIT ||
           t->take_bytes <= room_of(simulation, t->memory);
}

void pc_memory_stop(pc_simulation *simulation, int32_t task) {
    simulation->outcome = PC_OUTCOME_OUT_OF_MEMORY;
    simulation->stopped_by = task;
    simulation->stopped_at = pc_engine_now(simulation->engine);
    simulation->stopped_level = simulation->level[simulation->program->tasks[task].memory];
}

/* The run ends with this instant: all that starts at it, starts. Of those that do not fit, the one with the least
 * number is told of. */
static void run_out(pc_simulation *s, int32_t task) {
    if (s->outcome == PC_OUTCOME_OUT_OF_MEMORY) {
        if (task < s->stopped_by) pc_memory_stop(s, task);
        return;
    }
    pc_event event = {EVENT_STOP, 0, 0};
    pc_memory_stop(s, task);
    pc_engine_post(s->engine, 0, PRIORITY_STOP, &event, NULL);
}

void pc_memory_on_stop(pc_engine *engine, const pc_event *event, void *context) {
    (void)event;
    (void)context;
    pc_engine_stop(engine);
}

/* False if not even the sum can be written down. */
static bool note_overdraft(pc_simulation *s, const pc_task *t) {
    if (s->overdrawn[t->memory] < 0) s->overdrawn[t->memory] = pc_engine_now(s->engine);
    return t->take_bytes <= INT64_MAX - s->level[t->memory];
}

bool pc_memory_take(pc_simulation *simulation, int32_t task) {
    pc_simulation *s = simulation;
    const pc_task *t = &s->program->tasks[task];
    if (t->memory == PC_NO_RESOURCE || t->take_bytes == 0) return true;
    if (t->take_bytes > room_of(s, t->memory) &&
        (s->program->memories[t->memory].policy != PC_MEMORY_NOTE || !note_overdraft(s, t))) {
        run_out(s, task);
        return false;
    }
    s->level[t->memory] += t->take_bytes;
    if (s->level[t->memory] > s->peak[t->memory]) s->peak[t->memory] = s->level[t->memory];
    record_level(s, t->memory);
    return true;
}

void pc_memory_give(pc_simulation *simulation, int32_t task) {
    pc_simulation *s = simulation;
    const pc_task *t = &s->program->tasks[task];
    if (t->memory == PC_NO_RESOURCE || t->give_bytes == 0) return;
    if (t->give_bytes > s->level[t->memory]) {
        s->stopped_by = task;
        pc_simulation_fail(s, &s->gave_too_much);
        return;
    }
    s->level[t->memory] -= t->give_bytes;
    record_level(s, t->memory);
    if (s->program->may_wait) pc_waiting_retry(s, t->memory);
}
