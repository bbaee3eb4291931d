/* Times that follow without events.
 *
 * If no task takes or gives memory and every processor has its order, a task's start depends only on the ends of those
 * before it. As soon as these are known, though they may lie ahead, so is its own start and, unless it is a flow, its
 * end. Only flows need events, for others may change how long they last: one to begin, one to end.
 */
#include "engine/simulation_internal.h"

/* Tasks whose start is known wait on a stack, which lies in queue_next: nothing queues for a processor in order. A task
 * comes there once, when the last of what it waits for is known. */
static inline void wait_for_turn(pc_simulation *s, int32_t task, int32_t *depth) {
    int32_t p = s->program->tasks[task].processor;
    if (s->waiting[task] == 0 && (p == PC_NO_RESOURCE || s->queue_first[p] == task)) s->queue_next[(*depth)++] = task;
}

/* The task ends at `end`: its processor's next task, and those that wait for it. */
static inline void end_task(pc_simulation *s, int32_t task, pc_time end, int32_t *depth) {
    const pc_program *program = s->program;
    int32_t p = program->tasks[task].processor;
    s->end[task] = end;
    s->done_count++;
    if (end > s->latest_end) s->latest_end = end;
    if (p != PC_NO_RESOURCE) {
        int32_t next = program->next_in_order[task];
        s->queue_first[p] = next;
        s->free_at[p] = end;
        if (next != PC_NO_TASK) wait_for_turn(s, next, depth);
    }
    const successor *next = program->successors + program->successor_offset[task];
    const successor *behind = program->successors + program->successor_offset[task + 1];
    for (; next < behind; next++) {
        pc_time arrival;
        if (!pc_time_add(end, next->delay_ps, &arrival)) {
            pc_simulation_fail(s, &s->ran_over);
            return;
        }
        if (arrival > s->ready[next->task]) s->ready[next->task] = arrival;
        s->waiting[next->task]--;
        wait_for_turn(s, next->task, depth);
    }
}

static inline void start_task(pc_simulation *s, int32_t task, int32_t *depth) {
    const pc_task *t = &s->program->tasks[task];
    pc_time start = s->ready[task], end;
    if (t->processor != PC_NO_RESOURCE && s->free_at[t->processor] > start) start = s->free_at[t->processor];
    s->start[task] = start;
    if (t->route != PC_NO_RESOURCE)
        pc_flow_start(s, task, start - pc_engine_now(s->engine));
    else if (pc_time_add(start, t->duration_ps, &end))
        end_task(s, task, end, depth);
    else
        pc_simulation_fail(s, &s->ran_over);
}

static void work_off(pc_simulation *s, int32_t depth) {
    while (depth > 0 && !s->ran_over) start_task(s, s->queue_next[--depth], &depth);
}

void pc_ahead_begin(pc_simulation *simulation) {
    const pc_program *program = simulation->program;
    for (int32_t t = 0; t < program->task_count; t++) {
        int32_t depth = 0;
        if (program->predecessor_count[t] == 0 && !program->tasks[t].is_part && simulation->start[t] < 0)
            wait_for_turn(simulation, t, &depth);
        work_off(simulation, depth);
    }
}

void pc_ahead_finish(pc_simulation *simulation, int32_t task) {
    int32_t depth = 0;
    end_task(simulation, task, pc_engine_now(simulation->engine), &depth);
    work_off(simulation, depth);
}
