/* Tasks that wait for memory.
 *
 * In a program with a memory for which tasks wait, what starts is decided anew at every instant at which something
 * ended or got ready: a processor has no task until one starts. A task for which there is no room is put aside. So is
 * one whose turn it is while it waits, over however many others, for one that was put aside: its processor need not
 * wait for what waits for memory. Those that were put aside come first when bytes are given back and when the processor
 * is free, in their order; then come the next ones of the processor's order.
 *
 * At one instant, first all ends give back and free their processors, and all that is sent arrives; then those that
 * were put aside are tried; then come turns. So what starts does not depend on the order in which the processors are
 * asked, but where they ask for one memory, or tasks take no time.
 */
#include "engine/simulation_internal.h"

enum { MANY = -2 };

/* Where a task is: nowhere in particular; aside, and not ready; aside, ready, and not asked since; aside, for there was
 * no room for it. */
enum { FREE, HELD, READY, PARKED };

static void post(pc_simulation *s, pc_time delay, uint16_t priority, uint32_t kind, int32_t target) {
    pc_event event = {kind, (uint32_t)target, 0};
    pc_engine_post(s->engine, delay, priority, &event, NULL);
}

void pc_waiting_begin(pc_simulation *simulation) {
    pc_simulation *s = simulation;
    for (int32_t m = 0; m < s->program->memory_count; m++)
        s->parked[m] = (parked_tasks){{PC_NO_TASK, PC_NO_TASK}, INT64_MAX, PC_NO_TASK, false};
    for (int32_t p = 0; p < s->program->processor_count; p++)
        s->turn[p] = (processor_turn){.aside = {PC_NO_TASK, PC_NO_TASK}, .next_piece = PC_NO_TASK};
    for (int32_t t = 0; t < s->program->task_count; t++) s->waiter[t] = (waiter){.state = FREE};
}

/* ---- lists of tasks ---- */

static void append(pc_simulation *s, task_list *list, int32_t task, int which) {
    task_links *links = &s->waiter[task].links[which];
    *links = (task_links){.prev = list->last, .next = PC_NO_TASK};
    if (list->last == PC_NO_TASK)
        list->first = task;
    else
        s->waiter[list->last].links[which].next = task;
    list->last = task;
}

static void cut_out(pc_simulation *s, task_list *list, int32_t task, int which) {
    const task_links *links = &s->waiter[task].links[which];
    if (links->prev == PC_NO_TASK)
        list->first = links->next;
    else
        s->waiter[links->prev].links[which].next = links->next;
    if (links->next == PC_NO_TASK)
        list->last = links->prev;
    else
        s->waiter[links->next].links[which].prev = links->prev;
}

static int32_t next_in(const pc_simulation *s, int32_t task, int which) {
    return s->waiter[task].links[which].next;
}

/* ---- calls ---- */

static void call_turn(pc_simulation *s, int32_t p) {
    if (s->is_busy[p] || s->turn[p].is_called) return;
    s->turn[p].is_called = true;
    post(s, 0, PRIORITY_START, EVENT_TURN, p);
}

static void call_those_aside(pc_simulation *s, int32_t p) {
    if (s->is_busy[p] || s->turn[p].aside_is_called || s->turn[p].aside.first == PC_NO_TASK) return;
    s->turn[p].aside_is_called = true;
    post(s, 0, PRIORITY_RETRY, EVENT_ASIDE, p);
}

/* ---- what comes in pieces ---- */

static bool is_in_order(const pc_simulation *s, int32_t p) {
    return p != PC_NO_RESOURCE && s->program->processor_order[p] == PC_PROCESSOR_IN_ORDER;
}

/* The task that goes on with what this one of an in-order processor begins, or PC_NO_TASK. */
static int32_t next_piece(const pc_simulation *s, int32_t task) {
    if (!is_in_order(s, s->program->tasks[task].processor)) return PC_NO_TASK;
    int32_t next = s->program->next_in_order[task];
    return next != PC_NO_TASK && s->program->tasks[next].goes_on ? next : PC_NO_TASK;
}

/* The next one of the order behind all that goes on with this one. */
static int32_t next_whole(const pc_simulation *s, int32_t task) {
    int32_t next = s->program->next_in_order[task];
    while (next != PC_NO_TASK && s->program->tasks[next].goes_on) next = s->program->next_in_order[next];
    return next;
}

/* ---- who waits for those that wait ---- */

static bool is_next(const pc_simulation *s, int32_t task) {
    int32_t p = s->program->tasks[task].processor;
    return p != PC_NO_RESOURCE && s->queue_first[p] == task;
}

static void hold_up(pc_simulation *s, int32_t task, int32_t by, int32_t *depth) {
    int32_t *held_by = &s->waiter[task].held_by;
    bool has_changed = (*held_by == 0) != (*held_by + by == 0);
    *held_by += by;
    if (!has_changed) return;
    s->stack[(*depth)++] = task;
    if (by > 0 && is_next(s, task)) call_turn(s, s->program->tasks[task].processor);
}

/* All that wait for the task, and those that wait for them, have one more, or one less, among those that they wait for
 * that are held up. */
static void spread(pc_simulation *s, int32_t task, int32_t by) {
    const pc_program *program = s->program;
    int32_t depth = 0, piece;
    s->stack[depth++] = task;
    while (depth > 0) {
        task = s->stack[--depth];
        for (int64_t i = program->successor_offset[task]; i < program->successor_offset[task + 1]; i++)
            hold_up(s, program->successors[i].task, by, &depth);
        if ((piece = next_piece(s, task)) != PC_NO_TASK) hold_up(s, piece, by, &depth);
    }
}

/* ---- put aside, and taken up again ---- */

static void put_aside(pc_simulation *s, int32_t task, uint8_t state) {
    int32_t p = s->program->tasks[task].processor;
    s->waiter[task].state = state;
    if (p != PC_NO_RESOURCE) append(s, &s->turn[p].aside, task, OF_PROCESSOR);
}

/* There was no room for it. It is among those that were put aside, if it has a processor. */
static void park(pc_simulation *s, int32_t task) {
    const pc_task *t = &s->program->tasks[task];
    parked_tasks *parked = &s->parked[t->memory];
    s->waiter[task].state = PARKED;
    s->waiter[task].parked_at = pc_engine_now(s->engine);
    parked->processor = parked->tasks.first == PC_NO_TASK || parked->processor == t->processor ? t->processor : MANY;
    append(s, &parked->tasks, task, OF_MEMORY);
    if (t->take_bytes < parked->least_bytes) parked->least_bytes = t->take_bytes;
    if (t->processor != PC_NO_RESOURCE) {
        processor_turn *turn = &s->turn[t->processor];
        turn->memory = turn->parked_count++ == 0 || turn->memory == t->memory ? t->memory : MANY;
    }
    spread(s, task, 1);
}

static void unpark(pc_simulation *s, int32_t task) {
    parked_tasks *parked = &s->parked[s->program->tasks[task].memory];
    cut_out(s, &parked->tasks, task, OF_MEMORY);
    if (parked->tasks.first == PC_NO_TASK) parked->least_bytes = INT64_MAX;
    spread(s, task, -1);
}

static void go(pc_simulation *s, int32_t task) {
    int32_t p = s->program->tasks[task].processor;
    uint8_t state = s->waiter[task].state;
    s->waiter[task].state = FREE;
    if (state == PARKED) unpark(s, task);
    if (p != PC_NO_RESOURCE) {
        if (state != FREE) cut_out(s, &s->turn[p].aside, task, OF_PROCESSOR);
        s->turn[p].parked_count -= state == PARKED;
        s->turn[p].ready_count -= state == READY;
        s->turn[p].next_piece = next_piece(s, task);
        s->is_busy[p] = 1;
    }
    pc_task_begin(s, task);
}

static bool has_room(const pc_simulation *s, int32_t number) {
    return s->parked[number].least_bytes <= s->program->memories[number].capacity_bytes - s->level[number];
}

/* Whether any that the processor put aside may have become able to go. */
static bool is_worth_asking(const pc_simulation *s, int32_t p) {
    const processor_turn *turn = &s->turn[p];
    if (turn->ready_count > 0) return true;
    return turn->parked_count > 0 && (turn->memory == MANY || has_room(s, turn->memory));
}

/* Starts the first that the processor put aside and that can go now; whether there is one. */
static bool take_up(pc_simulation *s, int32_t p) {
    int32_t next;
    if (s->is_busy[p] || s->turn[p].next_piece != PC_NO_TASK || !is_worth_asking(s, p)) return false;
    for (int32_t task = s->turn[p].aside.first; task != PC_NO_TASK; task = next) {
        next = next_in(s, task, OF_PROCESSOR);
        if (s->waiter[task].state == HELD) continue;
        if (pc_memory_lets_start(s, task)) {
            go(s, task);
            return true;
        }
        if (s->waiter[task].state == PARKED) continue;
        s->turn[p].ready_count--;
        park(s, task);
    }
    return false;
}

void pc_waiting_on_aside(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    s->turn[event->target].aside_is_called = false;
    take_up(s, (int32_t)event->target);
}

void pc_waiting_retry(pc_simulation *simulation, int32_t number) {
    parked_tasks *parked = &simulation->parked[number];
    if (parked->tasks.first == PC_NO_TASK || parked->is_called) return;
    parked->is_called = true;
    post(simulation, 0, PRIORITY_RETRY, EVENT_RETRY, number);
}

void pc_waiting_on_retry(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t number = (int32_t)event->target, task, next;
    parked_tasks *parked = &s->parked[number];
    parked->is_called = false;
    for (task = parked->tasks.first; task != PC_NO_TASK && has_room(s, number); task = next) {
        int32_t p = s->program->tasks[task].processor;
        next = next_in(s, task, OF_MEMORY);
        if (p != PC_NO_RESOURCE && take_up(s, p)) next = parked->tasks.first; /* it may have been any of them */
        if (p == PC_NO_RESOURCE && pc_memory_lets_start(s, task)) go(s, task);
        if (p != PC_NO_RESOURCE && parked->processor == p) return; /* all are this one's */
    }
}

/* ---- turns ---- */

static bool is_ready(const pc_simulation *s, int32_t task) {
    return s->waiting[task] == 0 && s->ready[task] <= pc_engine_now(s->engine);
}

void pc_waiting_on_turn(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t p = (int32_t)event->target, task, piece = s->turn[p].next_piece;
    s->turn[p].is_called = false;
    if (!s->is_busy[p] && piece != PC_NO_TASK && is_ready(s, piece)) go(s, piece);
    if (s->is_busy[p] || piece != PC_NO_TASK) return;
    while ((task = s->queue_first[p]) != PC_NO_TASK) {
        bool is_here = is_ready(s, task);
        if (!is_here && s->waiter[task].held_by == 0) return;
        s->queue_first[p] = is_in_order(s, p) ? next_whole(s, task) : s->queue_next[task];
        if (is_here && pc_memory_lets_start(s, task)) {
            go(s, task);
            return;
        }
        put_aside(s, task, HELD);
        if (is_here) park(s, task);
    }
}

/* ---- what the simulation tells ---- */

void pc_waiting_ready(pc_simulation *simulation, int32_t task) {
    pc_simulation *s = simulation;
    int32_t p = s->program->tasks[task].processor;
    if (p == PC_NO_RESOURCE) {
        post(s, 0, PRIORITY_START, EVENT_START, task);
    } else if (s->waiter[task].state == HELD) {
        s->waiter[task].state = READY;
        s->turn[p].ready_count++;
        call_those_aside(s, p);
    } else {
        if (s->program->processor_order[p] != PC_PROCESSOR_IN_ORDER) pc_task_queue_up(s, task, p);
        if (s->queue_first[p] == task || s->turn[p].next_piece == task) call_turn(s, p);
    }
}

void pc_waiting_arrive(pc_simulation *simulation, int32_t task) {
    pc_time now = pc_engine_now(simulation->engine);
    if (simulation->ready[task] > now)
        post(simulation, simulation->ready[task] - now, PRIORITY_END, EVENT_READY, task);
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
    call_those_aside(simulation, processor);
    call_turn(simulation, processor);
}

static bool is_earlier(const pc_simulation *s, int32_t a, int32_t b) {
    if (b == PC_NO_TASK) return true;
    pc_time of_a = s->waiter[a].parked_at, of_b = s->waiter[b].parked_at;
    return of_a != of_b ? of_a < of_b : a < b;
}

int32_t pc_waiting_first(const pc_simulation *simulation) {
    const pc_simulation *s = simulation;
    int32_t first = PC_NO_TASK;
    for (int32_t m = 0; s->program->may_wait && m < s->program->memory_count; m++)
        for (int32_t task = s->parked[m].tasks.first; task != PC_NO_TASK; task = next_in(s, task, OF_MEMORY))
            if (is_earlier(s, task, first)) first = task;
    return first;
}
