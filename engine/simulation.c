#include "engine/simulation_internal.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <string.h>

/* ---- memory of the simulation ---- */

bool pc_fit_arrays(const array_spec *specs, size_t spec_count, size_t count, size_t *capacity) {
    if (count <= *capacity) return true;
    for (size_t i = 0; i < spec_count; i++) {
        void *block = pc_realloc(*specs[i].array, count, specs[i].size);
        if (!block) return false;
        *specs[i].array = block;
    }
    *capacity = count;
    return true;
}

static bool fit(pc_simulation *s, size_t tasks, size_t processors, size_t memories) {
    const array_spec of_tasks[] = {ARRAY(s->waiting), ARRAY(s->ready), ARRAY(s->start), ARRAY(s->end),
                                   ARRAY(s->queue_next)};
    const array_spec of_processors[] = {ARRAY(s->queue_first), ARRAY(s->queue_last), ARRAY(s->is_busy),
                                        ARRAY(s->free_at)};
    const array_spec of_memories[] = {ARRAY(s->level), ARRAY(s->peak)};
    return FIT(of_tasks, tasks, &s->task_capacity) && FIT(of_processors, processors, &s->processor_capacity) &&
           FIT(of_memories, memories, &s->memory_capacity);
}

static bool prepare(pc_simulation *s, const pc_program *program, bool with_trace) {
    size_t tasks = (size_t)program->task_count, processors = (size_t)program->processor_count;
    size_t memories = (size_t)program->memory_count;
    s->program = program;
    /* One more than needed, so that no array is a null pointer. */
    if (!fit(s, tasks + 1, processors + 1, memories + 1) || !pc_flow_prepare(s)) return false;
    memcpy(s->waiting, program->predecessor_count, tasks * sizeof *s->waiting);
    memset(s->ready, 0, tasks * sizeof *s->ready);
    memset(s->start, 0xff, tasks * sizeof *s->start); /* -1 */
    memset(s->end, 0xff, tasks * sizeof *s->end);
    memset(s->is_busy, 0, processors * sizeof *s->is_busy);
    memset(s->free_at, 0, processors * sizeof *s->free_at);
    s->latest_end = 0;
    memset(s->level, 0, memories * sizeof *s->level);
    memset(s->peak, 0, memories * sizeof *s->peak);
    for (size_t p = 0; p < processors; p++) s->queue_first[p] = program->first_in_order[p];
    s->with_trace = with_trace;
    s->no_memory = s->ran_over = s->gave_too_much = false;
    s->outcome = PC_OUTCOME_DONE;
    s->done_count = 0;
    s->levels.count = s->loads.count = 0;
    pc_engine_clear(s->engine);
    return true;
}

/* ---- memory of the machine ---- */

void pc_simulation_fail(pc_simulation *simulation, bool *fault) {
    *fault = true;
    pc_engine_stop(simulation->engine);
}

static void record_level(pc_simulation *s, int32_t memory) {
    level_rows *rows = &s->levels;
    if (!s->with_trace) return;
    const array_spec columns[] = {ARRAY(rows->memory), ARRAY(rows->time_ps), ARRAY(rows->level_bytes)};
    if (rows->count == rows->capacity && !FIT(columns, more_rows(rows->capacity), &rows->capacity)) {
        pc_simulation_fail(s, &s->no_memory);
        return;
    }
    rows->memory[rows->count] = memory;
    rows->time_ps[rows->count] = pc_engine_now(s->engine);
    rows->level_bytes[rows->count++] = s->level[memory];
}

/* False, and the run over, where it does not fit. */
static bool take(pc_simulation *s, int32_t task) {
    const pc_task *t = &s->program->tasks[task];
    if (t->memory == PC_NO_RESOURCE || t->take_bytes == 0) return true;
    int64_t room = s->program->memory_capacity_bytes[t->memory] - s->level[t->memory];
    if (t->take_bytes > room) {
        s->outcome = PC_OUTCOME_OUT_OF_MEMORY;
        s->stopped_by = task;
        s->stopped_at = pc_engine_now(s->engine);
        s->stopped_level = s->level[t->memory];
        pc_engine_stop(s->engine);
        return false;
    }
    s->level[t->memory] += t->take_bytes;
    if (s->level[t->memory] > s->peak[t->memory]) s->peak[t->memory] = s->level[t->memory];
    record_level(s, t->memory);
    return true;
}

static void give(pc_simulation *s, int32_t task) {
    const pc_task *t = &s->program->tasks[task];
    if (t->memory == PC_NO_RESOURCE || t->give_bytes == 0) return;
    if (t->give_bytes > s->level[t->memory]) {
        s->stopped_by = task;
        pc_simulation_fail(s, &s->gave_too_much);
        return;
    }
    s->level[t->memory] -= t->give_bytes;
    record_level(s, t->memory);
}

/* ---- tasks ---- */

static void post(pc_simulation *s, pc_time delay, uint16_t priority, uint32_t kind, int32_t task) {
    pc_event event = {kind, (uint32_t)task, 0};
    pc_engine_post(s->engine, delay, priority, &event, NULL);
}

static void begin(pc_simulation *s, int32_t task) {
    if (!take(s, task)) return;
    s->start[task] = pc_engine_now(s->engine);
    if (s->program->tasks[task].route != PC_NO_RESOURCE)
        pc_flow_start(s, task, 0, PRIORITY_END);
    else
        post(s, s->program->tasks[task].duration_ps, PRIORITY_END, EVENT_END, task);
}

/* The processor is the task's from now on; the task starts at its ready time. Where nothing happens at the start but
 * its being noted, one event for start and end is enough. */
static void dispatch(pc_simulation *s, int32_t task) {
    const pc_task *t = &s->program->tasks[task];
    pc_time now = pc_engine_now(s->engine), wait = s->ready[task] > now ? s->ready[task] - now : 0, delay;
    if (t->processor != PC_NO_RESOURCE) s->is_busy[t->processor] = 1;
    if (t->take_bytes > 0 || (t->route != PC_NO_RESOURCE && wait > 0)) {
        post(s, wait, PRIORITY_START, EVENT_START, task);
    } else if (wait == 0) {
        begin(s, task);
    } else if (pc_time_add(wait, t->duration_ps, &delay)) {
        s->start[task] = s->ready[task];
        post(s, delay, PRIORITY_END, EVENT_END, task);
    } else {
        pc_simulation_fail(s, &s->ran_over);
    }
}

/* A first-come processor gets a task that is ready now. */
static void enqueue(pc_simulation *s, int32_t task) {
    int32_t p = s->program->tasks[task].processor;
    if (!s->is_busy[p]) {
        dispatch(s, task);
        return;
    }
    s->queue_next[task] = NO_TASK;
    if (s->queue_first[p] == NO_TASK)
        s->queue_first[p] = task;
    else
        s->queue_next[s->queue_last[p]] = task;
    s->queue_last[p] = task;
}

/* All predecessors have ended: s->ready[task] is known, and may lie ahead. */
static void arrive(pc_simulation *s, int32_t task) {
    int32_t p = s->program->tasks[task].processor;
    if (p == PC_NO_RESOURCE) {
        dispatch(s, task);
    } else if (s->program->processor_order[p] == PC_PROCESSOR_IN_ORDER) {
        if (!s->is_busy[p] && s->queue_first[p] == task) dispatch(s, task);
    } else {
        pc_time now = pc_engine_now(s->engine);
        if (s->ready[task] > now)
            post(s, s->ready[task] - now, PRIORITY_START, EVENT_READY, task);
        else
            enqueue(s, task);
    }
}

/* The processor of a task that has ended takes its next one, where that can go. */
static void release_processor(pc_simulation *s, int32_t task) {
    int32_t p = s->program->tasks[task].processor;
    if (p == PC_NO_RESOURCE) return;
    s->is_busy[p] = 0;
    if (s->program->processor_order[p] == PC_PROCESSOR_IN_ORDER) {
        int32_t next = s->program->next_in_order[task];
        s->queue_first[p] = next;
        if (next != NO_TASK && s->waiting[next] == 0) dispatch(s, next);
    } else if (s->queue_first[p] != NO_TASK) {
        int32_t next = s->queue_first[p];
        s->queue_first[p] = s->queue_next[next];
        dispatch(s, next);
    }
}

static void release_successors(pc_simulation *s, int32_t task) {
    const pc_program *program = s->program;
    pc_time now = pc_engine_now(s->engine), arrival;
    for (int64_t i = program->successor_offset[task]; i < program->successor_offset[task + 1]; i++) {
        const successor *next = &program->successors[i];
        if (!pc_time_add(now, next->delay_ps, &arrival)) {
            pc_simulation_fail(s, &s->ran_over);
            return;
        }
        if (arrival > s->ready[next->task]) s->ready[next->task] = arrival;
        if (--s->waiting[next->task] == 0) arrive(s, next->task);
    }
}

void pc_task_finish(pc_simulation *simulation, int32_t task) {
    if (simulation->program->is_ordered) {
        pc_ahead_finish(simulation, task);
        return;
    }
    simulation->end[task] = pc_engine_now(simulation->engine);
    simulation->done_count++;
    give(simulation, task);
    release_processor(simulation, task);
    release_successors(simulation, task);
}

static void on_end(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_task_finish(context, (int32_t)event->target);
}

static void on_start(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    begin(context, (int32_t)event->target);
}

static void on_ready(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    enqueue(context, (int32_t)event->target);
}

/* ---- the run ---- */

pc_code pc_simulation_create(pc_simulation **simulation, pc_error *error) {
    pc_simulation *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = pc_engine_create(0, &made->engine, error);
    if (code) {
        pc_free(made);
        return code;
    }
    pc_engine_set_handler(made->engine, EVENT_END, on_end, made);
    pc_engine_set_handler(made->engine, EVENT_START, on_start, made);
    pc_engine_set_handler(made->engine, EVENT_READY, on_ready, made);
    pc_engine_set_handler(made->engine, EVENT_FLOW_BEGIN, pc_flow_on_begin, made);
    pc_engine_set_handler(made->engine, EVENT_FLOW_END, pc_flow_on_end, made);
    *simulation = made;
    return PC_OK;
}

void pc_simulation_free(pc_simulation *simulation) {
    if (!simulation) return;
    pc_simulation *s = simulation;
    void *arrays[] = {s->waiting,
                      s->ready,
                      s->start,
                      s->end,
                      s->queue_next,
                      s->queue_first,
                      s->queue_last,
                      s->is_busy,
                      s->free_at,
                      s->level,
                      s->peak,
                      s->levels.memory,
                      s->levels.time_ps,
                      s->levels.level_bytes,
                      s->loads.link,
                      s->loads.time_ps,
                      s->loads.bytes_per_s};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_flow_free(&s->flow);
    pc_engine_free(s->engine);
    pc_free(s);
}

static void release_roots(pc_simulation *s) {
    for (int32_t t = 0; t < s->program->task_count; t++)
        if (s->program->predecessor_count[t] == 0 && !s->program->tasks[t].is_part) arrive(s, t);
}

static int32_t first_left(const pc_simulation *s) {
    int32_t task = 0;
    while (s->end[task] >= 0) task++;
    return task;
}

/* FNV-1a (Fowler, Noll, Vo) over 64-bit words, with a final mix (murmur3's) so that all bits depend on all words. */
uint64_t pc_trace_hash(const pc_time *start_ps, const pc_time *end_ps, int64_t count) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int64_t i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)start_ps[i]) * UINT64_C(1099511628211);
        hash = (hash ^ (hash >> 29) ^ (uint64_t)end_ps[i]) * UINT64_C(1099511628211);
        hash ^= hash >> 32;
    }
    hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ (hash >> 33);
}

/* A start that was noted ahead, by a task that the run did not come to. */
static void forget_later_starts(pc_simulation *s) {
    for (int32_t t = 0; t < s->program->task_count; t++)
        if (s->end[t] < 0 && s->start[t] > s->stopped_at) s->start[t] = -1;
}

static pc_simulation_result make_result(pc_simulation *s) {
    if (s->outcome == PC_OUTCOME_OUT_OF_MEMORY) forget_later_starts(s);
    if (s->outcome == PC_OUTCOME_DONE) {
        s->stopped_at = s->program->is_ordered ? s->latest_end : pc_engine_now(s->engine);
        s->stopped_by = NO_TASK;
        if (s->done_count < s->program->task_count) {
            s->outcome = PC_OUTCOME_DEADLOCK;
            s->stopped_by = first_left(s);
        }
    }
    return (pc_simulation_result){
        .outcome = s->outcome,
        .task = s->stopped_by,
        .time_ps = s->stopped_at,
        .level_bytes = s->stopped_level,
        .event_count = pc_engine_event_count(s->engine),
        .start_ps = s->start,
        .end_ps = s->end,
        .peak_bytes = s->peak,
        .trace_hash = pc_trace_hash(s->start, s->end, s->program->task_count),
        .levels = {(int64_t)s->levels.count, s->levels.memory, s->levels.time_ps, s->levels.level_bytes},
        .loads = {(int64_t)s->loads.count, s->loads.link, s->loads.time_ps, s->loads.bytes_per_s},
    };
}

pc_code pc_simulation_run(pc_simulation *simulation, const pc_program *program, bool with_trace,
                          pc_simulation_result *result, pc_error *error) {
    if (!program->is_sealed)
        return pc_error_set(error, PC_ERROR_INPUT, "program: not sealed; expected pc_program_seal before the run");
    if (!prepare(simulation, program, with_trace)) return pc_error_no_memory(error);
    if (program->is_ordered)
        pc_ahead_begin(simulation);
    else
        release_roots(simulation);
    pc_code code = pc_engine_run(simulation->engine, PC_TIME_MAX, error);
    if (code) return code;
    if (simulation->no_memory) return pc_error_no_memory(error);
    if (simulation->gave_too_much)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "task %" PRId32 ": gives back more bytes than its memory holds; expected at most those",
                            simulation->stopped_by);
    if (simulation->ran_over)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "simulated time: runs over; expected everything to end within 106 days of simulated time");
    *result = make_result(simulation);
    return PC_OK;
}
