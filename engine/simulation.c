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
    const array_spec of_tasks[] = {ARRAY(s->waiting),    ARRAY(s->ready),  ARRAY(s->start), ARRAY(s->end),
                                   ARRAY(s->queue_next), ARRAY(s->waiter), ARRAY(s->stack)};
    const array_spec of_processors[] = {ARRAY(s->queue_first), ARRAY(s->queue_last), ARRAY(s->is_busy),
                                        ARRAY(s->free_at), ARRAY(s->turn)};
    const array_spec of_memories[] = {ARRAY(s->level), ARRAY(s->peak), ARRAY(s->overdrawn), ARRAY(s->parked)};
    return FIT(of_tasks, tasks, &s->task_capacity) && FIT(of_processors, processors, &s->processor_capacity) &&
           FIT(of_memories, memories, &s->memory_capacity);
}

static bool prepare(pc_simulation *s, const pc_program *program, pc_simulation_options options) {
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
    memset(s->overdrawn, 0xff, memories * sizeof *s->overdrawn); /* -1 */
    for (size_t p = 0; p < processors; p++) s->queue_first[p] = program->first_in_order[p];
    if (program->may_wait) pc_waiting_begin(s);
    s->with_trace = options.with_trace;
    s->every_event = options.every_event;
    s->is_ahead = program->is_ordered && !options.every_event;
    s->no_memory = s->ran_over = s->gave_too_much = false;
    s->outcome = PC_OUTCOME_DONE;
    s->done_count = 0;
    s->levels.count = s->loads.count = 0;
    pc_engine_clear(s->engine);
    return true;
}

void pc_simulation_fail(pc_simulation *simulation, bool *fault) {
    *fault = true;
    pc_engine_stop(simulation->engine);
}

/* ---- tasks ---- */

static void post(pc_simulation *s, pc_time delay, uint16_t priority, uint32_t kind, int32_t task) {
    pc_event event = {kind, (uint32_t)task, 0};
    pc_engine_post(s->engine, delay, priority, &event, NULL);
}

void pc_task_begin(pc_simulation *simulation, int32_t task) {
    const pc_task *t = &simulation->program->tasks[task];
    if (!pc_memory_take(simulation, task)) return;
    simulation->start[task] = pc_engine_now(simulation->engine);
    if (t->route != PC_NO_RESOURCE)
        pc_flow_start(simulation, task, 0);
    else
        post(simulation, t->duration_ps, PRIORITY_END, EVENT_END, task);
}

/* The processor is the task's from now on; the task starts at its ready time. Where nothing happens at the start but
 * its being noted, one event for start and end is enough, unless every one is wanted. */
static void dispatch(pc_simulation *s, int32_t task) {
    const pc_task *t = &s->program->tasks[task];
    pc_time now = pc_engine_now(s->engine), wait = s->ready[task] > now ? s->ready[task] - now : 0, delay;
    if (t->processor != PC_NO_RESOURCE) s->is_busy[t->processor] = 1;
    if (s->every_event || t->take_bytes > 0 || (t->route != PC_NO_RESOURCE && wait > 0)) {
        post(s, wait, PRIORITY_START, EVENT_START, task);
    } else if (wait == 0) {
        pc_task_begin(s, task);
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
    if (s->is_busy[p])
        pc_task_queue_up(s, task, p);
    else
        dispatch(s, task);
}

/* All predecessors have ended: s->ready[task] is known, and may lie ahead. */
static void arrive(pc_simulation *s, int32_t task) {
    int32_t p = s->program->tasks[task].processor;
    if (s->program->may_wait) {
        pc_waiting_arrive(s, task);
    } else if (p == PC_NO_RESOURCE) {
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
    if (s->program->may_wait) {
        pc_waiting_release(s, p);
        return;
    }
    s->is_busy[p] = 0;
    if (s->program->processor_order[p] == PC_PROCESSOR_IN_ORDER) {
        int32_t next = s->program->next_in_order[task];
        s->queue_first[p] = next;
        if (next != PC_NO_TASK && s->waiting[next] == 0) dispatch(s, next);
    } else if (s->queue_first[p] != PC_NO_TASK) {
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
    if (simulation->is_ahead) {
        pc_ahead_finish(simulation, task);
        return;
    }
    simulation->end[task] = simulation->latest_end = pc_engine_now(simulation->engine);
    simulation->done_count++;
    pc_memory_give(simulation, task);
    release_processor(simulation, task);
    release_successors(simulation, task);
}

static void on_end(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_task_finish(context, (int32_t)event->target);
}

static void on_start(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    if (s->program->may_wait)
        pc_waiting_start(s, (int32_t)event->target);
    else
        pc_task_begin(s, (int32_t)event->target);
}

static void on_ready(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    if (s->program->may_wait)
        pc_waiting_ready(s, (int32_t)event->target);
    else
        enqueue(s, (int32_t)event->target);
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
    pc_engine_set_handler(made->engine, EVENT_RETRY, pc_waiting_on_retry, made);
    pc_engine_set_handler(made->engine, EVENT_ASIDE, pc_waiting_on_aside, made);
    pc_engine_set_handler(made->engine, EVENT_TURN, pc_waiting_on_turn, made);
    pc_engine_set_handler(made->engine, EVENT_FLOW_BEGIN, pc_flow_on_begin, made);
    pc_engine_set_handler(made->engine, EVENT_FLOW_END, pc_flow_on_end, made);
    pc_engine_set_handler(made->engine, EVENT_SHARE, pc_flow_on_share, made);
    pc_engine_set_handler(made->engine, EVENT_STOP, pc_memory_on_stop, made);
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
                      s->waiter,
                      s->stack,
                      s->queue_first,
                      s->queue_last,
                      s->is_busy,
                      s->free_at,
                      s->turn,
                      s->level,
                      s->peak,
                      s->overdrawn,
                      s->parked,
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

/* Where not all predecessors have ended, or the run was over before what they sent was there, a task was never ready.
 */
static void finish_ready_times(pc_simulation *s) {
    bool has_stopped = s->outcome == PC_OUTCOME_OUT_OF_MEMORY;
    if (s->outcome == PC_OUTCOME_DONE) return;
    for (int32_t t = 0; t < s->program->task_count; t++) {
        if (s->program->tasks[t].is_part)
            s->ready[t] = s->ready[t - 1];
        else if (s->start[t] < 0 && (s->waiting[t] > 0 || (has_stopped && s->ready[t] > s->stopped_at)))
            s->ready[t] = -1;
    }
}

static void settle_outcome(pc_simulation *s) {
    if (s->outcome == PC_OUTCOME_OUT_OF_MEMORY) {
        forget_later_starts(s);
        return;
    }
    s->stopped_at = s->latest_end;
    s->stopped_by = PC_NO_TASK;
    if (s->done_count == s->program->task_count) return;
    int32_t parked = pc_waiting_first(s);
    if (parked != PC_NO_TASK) {
        pc_memory_stop(s, parked);
        pc_time asked = s->waiter[parked].parked_at;
        s->stopped_at = asked > s->latest_end ? asked : s->latest_end;
        return;
    }
    s->outcome = PC_OUTCOME_DEADLOCK;
    s->stopped_by = first_left(s);
}

static pc_simulation_result make_result(pc_simulation *s) {
    settle_outcome(s);
    finish_ready_times(s);
    return (pc_simulation_result){
        .outcome = s->outcome,
        .task = s->stopped_by,
        .time_ps = s->stopped_at,
        .level_bytes = s->stopped_level,
        .event_count = pc_engine_event_count(s->engine),
        .start_ps = s->start,
        .end_ps = s->end,
        .ready_ps = s->ready,
        .peak_bytes = s->peak,
        .overdrawn_ps = s->overdrawn,
        .trace_hash = pc_trace_hash(s->start, s->end, s->program->task_count),
        .levels = {(int64_t)s->levels.count, s->levels.memory, s->levels.time_ps, s->levels.level_bytes},
        .loads = {(int64_t)s->loads.count, s->loads.link, s->loads.time_ps, s->loads.bytes_per_s},
    };
}

pc_code pc_simulation_run(pc_simulation *simulation, const pc_program *program, const pc_simulation_options *options,
                          pc_simulation_result *result, pc_error *error) {
    static const pc_simulation_options neither = {false, false};
    if (!program->is_sealed)
        return pc_error_set(error, PC_ERROR_INPUT, "program: not sealed; expected pc_program_seal before the run");
    if (!prepare(simulation, program, options ? *options : neither)) return pc_error_no_memory(error);
    if (simulation->is_ahead)
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
