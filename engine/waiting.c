/* Tasks that wait for memory.
 *
 * In a program with a memory for which tasks wait, what starts is decided anew at every instant at which something
 * ended or got ready: a processor has no task until one starts. First come those that were put aside, in their order,
 * of a memory of which bytes were given back (a retry) or of a processor that is free again (its turn), then the
 * processor's next ones.
 */
#include "engine/simulation_internal.h"

enum { MANY_MEMORIES = -2 };

static void post(pc_simulation *s, pc_time delay, uint16_t priority, uint32_t kind, int32_t target) {
    pc_event event = {kind, (uint32_t)target, 0};
    pc_engine_post(s->engine, delay, priority, &event, NULL);
}

void pc_waiting_begin(pc_simulation *simulation) {
    pc_simulation *s = simulation;
    for (int32_t m = 0; m < s->program->memory_count; m++)
        s->parked[m] = (parked_tasks){.first = NO_TASK, .last = NO_TASK, .least_bytes = INT64_MAX};
    for (int32_t p = 0; p < s->program->processor_count; p++) s->turn[p] = (processor_turn){0};
}

/* ---- put aside, and taken up again ---- */

static void park(pc_simulation *s, int32_t task) {
    const pc_task *t = &s->program->tasks[task];
    parked_tasks *list = &s->parked[t->memory];
    s->parked_at[task] = pc_engine_now(s->engine);
    s->queue_next[task] = NO_TASK;
    if (list->first == NO_TASK)
        list->first = task;
    else
        s->queue_next[list->last] = task;
    list->last = task;
    if (t->take_bytes < list->least_bytes) list->least_bytes = t->take_bytes;
    if (t->processor == PC_NO_RESOURCE) return;
    processor_turn *turn = &s->turn[t->processor];
    turn->parked_in = turn->parked_count++ == 0 || turn->parked_in == t->memory ? t->memory : MANY_MEMORIES;
}

/* `before`: the one before it in its memory's list, or NO_TASK. */
static void unpark(pc_simulation *s, int32_t task, int32_t before) {
    const pc_task *t = &s->program->tasks[task];
    parked_tasks *list = &s->parked[t->memory];
    if (before == NO_TASK)
        list->first = s->queue_next[task];
    else
        s->queue_next[before] = s->queue_next[task];
    if (list->last == task) list->last = before;
    if (list->first == NO_TASK) list->least_bytes = INT64_MAX;
    if (t->processor != PC_NO_RESOURCE) s->turn[t->processor].parked_count--;
}

static void go(pc_simulation *s, int32_t task) {
    int32_t p = s->program->tasks[task].processor;
    if (p != PC_NO_RESOURCE) s->is_busy[p] = 1;
    pc_task_begin(s, task);
}

static bool has_room(const pc_simulation *s, int32_t number) {
    return s->parked[number].least_bytes <= s->program->memories[number].capacity_bytes - s->level[number];
}

void pc_waiting_retry(pc_simulation *simulation, int32_t number) {
    parked_tasks *list = &simulation->parked[number];
    if (list->first == NO_TASK || list->is_retried) return;
    list->is_retried = true;
    post(simulation, 0, PRIORITY_RETRY, EVENT_RETRY, number);
}

void pc_waiting_on_retry(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t number = (int32_t)event->target, before = NO_TASK, next;
    s->parked[number].is_retried = false;
    for (int32_t task = s->parked[number].first; task != NO_TASK && has_room(s, number); task = next) {
        int32_t p = s->program->tasks[task].processor;
        next = s->queue_next[task];
        if ((p != PC_NO_RESOURCE && s->is_busy[p]) || !pc_memory_lets_start(s, task)) {
            before = task;
            continue;
        }
        unpark(s, task, before);
        go(s, task);
    }
}

/* ---- turns ---- */

static void call_turn(pc_simulation *s, int32_t p) {
    if (s->is_busy[p] || s->turn[p].is_called) return;
    s->turn[p].is_called = true;
    post(s, 0, PRIORITY_START, EVENT_TURN, p);
}

/* The first task of the memory's that the processor can take up again, and the one before it. */
static int32_t find_parked(const pc_simulation *s, int32_t number, int32_t p, int32_t *before) {
    *before = NO_TASK;
    if (!has_room(s, number)) return NO_TASK;
    int32_t task = s->parked[number].first;
    for (; task != NO_TASK; task = s->queue_next[task]) {
        if (s->program->tasks[task].processor == p && pc_memory_lets_start(s, task)) break;
        *before = task;
    }
    return task;
}

static bool is_earlier(const pc_simulation *s, int32_t a, int32_t b) {
    if (b == NO_TASK) return true;
    return s->parked_at[a] != s->parked_at[b] ? s->parked_at[a] < s->parked_at[b] : a < b;
}

static bool take_up(pc_simulation *s, int32_t p) {
    const processor_turn *turn = &s->turn[p];
    int32_t found = NO_TASK, before = NO_TASK;
    if (turn->parked_count == 0) return false;
    bool has_many = turn->parked_in == MANY_MEMORIES;
    int32_t first = has_many ? 0 : turn->parked_in, behind = has_many ? s->program->memory_count : first + 1;
    for (int32_t number = first; number < behind; number++) {
        int32_t other_before, other = find_parked(s, number, p, &other_before);
        if (other == NO_TASK || !is_earlier(s, other, found)) continue;
        found = other;
        before = other_before;
    }
    if (found == NO_TASK) return false;
    unpark(s, found, before);
    go(s, found);
    return true;
}

static bool is_ready(const pc_simulation *s, int32_t task) {
    return s->waiting[task] == 0 && s->ready[task] <= pc_engine_now(s->engine);
}

void pc_waiting_on_turn(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t p = (int32_t)event->target, task;
    bool is_in_order = s->program->processor_order[p] == PC_PROCESSOR_IN_ORDER;
    s->turn[p].is_called = false;
    if (s->is_busy[p] || take_up(s, p)) return;
    while ((task = s->queue_first[p]) != NO_TASK && is_ready(s, task)) {
        s->queue_first[p] = is_in_order ? s->program->next_in_order[task] : s->queue_next[task];
        if (pc_memory_lets_start(s, task)) {
            go(s, task);
            return;
        }
        park(s, task);
    }
}

/* ---- what the simulation tells ---- */

static void queue_up(pc_simulation *s, int32_t task, int32_t p) {
    s->queue_next[task] = NO_TASK;
    if (s->queue_first[p] == NO_TASK)
        s->queue_first[p] = task;
    else
        s->queue_next[s->queue_last[p]] = task;
    s->queue_last[p] = task;
}

void pc_waiting_ready(pc_simulation *simulation, int32_t task) {
    pc_simulation *s = simulation;
    int32_t p = s->program->tasks[task].processor;
    if (p == PC_NO_RESOURCE) {
        post(s, 0, PRIORITY_START, EVENT_START, task);
        return;
    }
    if (s->program->processor_order[p] != PC_PROCESSOR_IN_ORDER) queue_up(s, task, p);
    if (s->queue_first[p] == task) call_turn(s, p);
}

void pc_waiting_arrive(pc_simulation *simulation, int32_t task) {
    pc_time now = pc_engine_now(simulation->engine);
    if (simulation->ready[task] > now)
        post(simulation, simulation->ready[task] - now, PRIORITY_START, EVENT_READY, task);
    else
        pc_waiting_ready(simulation, task);
}

void pc_waiting_start(pc_simulation *simulation, int32_t task) {
    if (pc_memory_lets_start(simulation, task))
        pc_task_begin(simulation, task);
    else
        park(simulation, task);
}

void pc_waiting_release(pc_simulation *simulation, int32_t processor) {
    simulation->is_busy[processor] = 0;
    call_turn(simulation, processor);
}

int32_t pc_waiting_first(const pc_simulation *simulation) {
    const pc_simulation *s = simulation;
    int32_t first = NO_TASK;
    for (int32_t m = 0; s->program->may_wait && m < s->program->memory_count; m++)
        for (int32_t task = s->parked[m].first; task != NO_TASK; task = s->queue_next[task])
            if (is_earlier(s, task, first)) first = task;
    return first;
}
