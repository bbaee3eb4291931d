/* simulation_internal.h: the state of a running program; for simulation.c and flow.c only. */
#ifndef PC_ENGINE_SIMULATION_INTERNAL_H
#define PC_ENGINE_SIMULATION_INTERNAL_H

#include "engine/engine.h"
#include "engine/program_internal.h"
#include "engine/simulation.h"

/* Kinds of events. At one instant ends come before starts (priority), so that what is given back can be taken. */
enum {
    EVENT_END,
    EVENT_FLOW_END,
    EVENT_FLOW_BEGIN,
    EVENT_READY,
    EVENT_START,
    EVENT_RETRY,
    EVENT_ASIDE,
    EVENT_TURN,
    EVENT_SHARE,
    EVENT_STOP
};
enum { PRIORITY_END = 0, PRIORITY_RETRY = 1, PRIORITY_START = 2, PRIORITY_SHARE = 3, PRIORITY_STOP = 4 };

/* A flow that is under way. */
typedef struct flow {
    double rate;  /* bytes per second */
    double left;  /* bytes, at `since` */
    double bound; /* the least bandwidth of its unshared links; INFINITY where there is none */
    pc_time since;
    pc_event_handle end_event;
    int32_t number; /* of the task that it is; which is `task`, or a part of that */
    int32_t task;
    int32_t route;
    uint32_t epoch;    /* in which it was last collected */
    int32_t next_free; /* where it is none, but a place for one */
} flow;

/* A flow on one of its links, and its neighbours there: numbers of hops, or -1. A flow has as many as the longest route
 * has links. */
typedef struct hop {
    int32_t next, prev, flow;
} hop;

/* How flows share links. Arrays are by places of flows unless said otherwise. */
typedef struct flow_state {
    flow *flows;
    int32_t flow_count, free; /* places that were ever taken; one of them that is free again, or -1 */
    hop *hops;
    int32_t *link_first; /* a number a link: a hop on it, or -1 */
    uint32_t epoch, *link_epoch;
    int32_t *touched; /* links whose flows came or went at this instant */
    int32_t touched_count;
    uint8_t *is_touched; /* a number a link */
    bool is_called;      /* there is an event to share them anew */
    double *load;        /* a number a link: what was recorded last */
    int64_t *key;        /* scratch of sorting */
    /* The flows that influence each other at a change, with the links numbered anew from 0. */
    int32_t *noticing, *links, *local_link, *local_offset, *local_route, *local_waiting;
    double *local_capacity, *local_rate, *local_left;
    size_t flow_capacity, offset_capacity, hop_capacity, link_capacity, local_links_capacity;
} flow_state;

/* A growing array of rows, kept from run to run. */
typedef struct level_rows {
    size_t count, capacity;
    int32_t *memory;
    pc_time *time_ps;
    int64_t *level_bytes;
} level_rows;

typedef struct load_rows {
    size_t count, capacity;
    int32_t *link;
    pc_time *time_ps;
    double *bytes_per_s;
} load_rows;

/* Neighbours in a list of tasks; and where the list begins and ends. PC_NO_TASK: none. */
typedef struct task_links {
    int32_t next, prev;
} task_links;

typedef struct task_list {
    int32_t first, last;
} task_list;

enum { OF_MEMORY, OF_PROCESSOR, TASK_LISTS };

/* A task of a program whose tasks may wait for memory. */
typedef struct waiter {
    task_links links[TASK_LISTS]; /* among those that wait for its memory; among those that its processor put aside */
    pc_time parked_at;            /* since when it waits for memory */
    int32_t held_by;              /* how many of those that it waits for were put aside, or are held up in turn */
    uint8_t state;                /* see waiting.c */
} waiter;

/* The tasks that wait for a memory, in the order in which they asked. */
typedef struct parked_tasks {
    task_list tasks;
    int64_t least_bytes; /* no fewer are asked for by any */
    int32_t processor;   /* theirs, where it is one */
    bool is_called;      /* there is an event to try them again */
} parked_tasks;

/* A processor of a program whose tasks may wait for memory. */
typedef struct processor_turn {
    task_list aside;      /* its tasks that were put aside, in their order */
    int32_t ready_count;  /* of those, the ones that got ready and were not asked since */
    int32_t parked_count; /* and the ones that wait for memory */
    int32_t memory;       /* for which, where it is one */
    bool is_called;       /* there is an event for its turn */
    bool aside_is_called; /* and for those that were put aside */
    int32_t
        next_piece; /* that goes on with what it has begun, and before which nothing else can start; or PC_NO_TASK */
} processor_turn;

struct pc_simulation {
    pc_engine *engine;
    const pc_program *program;
    bool with_trace, every_event;
    bool is_ahead;                           /* see ahead.c */
    bool no_memory, ran_over, gave_too_much; /* faults that end the run */
    pc_outcome outcome;
    int32_t stopped_by;
    pc_time stopped_at;
    int64_t stopped_level;
    int32_t done_count;
    size_t task_capacity, processor_capacity, memory_capacity;
    int32_t *waiting; /* a number a task: predecessors that have not ended; then, its flows that have not */
    pc_time *ready, *start, *end;
    int32_t *queue_next;               /* the next ready task of a first-come processor */
    waiter *waiter;                    /* one a task, of a program that may_wait */
    int32_t *stack;                    /* scratch, a number a task */
    int32_t *queue_first, *queue_last; /* a number a processor; first: what it runs next, in order or queued */
    uint8_t *is_busy;
    pc_time *free_at; /* a number a processor: when its last task ended that has; where times are found ahead */
    pc_time latest_end;
    processor_turn *turn;  /* one a processor */
    int64_t *level, *peak; /* a number a memory */
    pc_time *overdrawn;    /* a number a memory: when it first was; -1: never */
    parked_tasks *parked;  /* one a memory */
    flow_state flow;
    level_rows levels;
    load_rows loads;
};

/* Arrays that grow together: where each is kept, and the size of its elements. */
typedef struct array_spec {
    void **array;
    size_t size;
} array_spec;

#define ARRAY(x)                                                                                                       \
    { (void **)&(x), sizeof *(x) }

/* Makes all of them hold `count` elements, and what they held before, where *capacity is less. False, and *capacity as
 * it was, where memory is short. */
bool pc_fit_arrays(const array_spec *specs, size_t spec_count, size_t count, size_t *capacity);

#define FIT(specs, count, capacity) pc_fit_arrays(specs, sizeof(specs) / sizeof *(specs), count, capacity)

/* The capacity to grow rows of a trace to. */
static inline size_t more_rows(size_t capacity) {
    return capacity < 64 ? 128 : 2 * capacity;
}

/* Ends the run with a fault. */
void pc_simulation_fail(pc_simulation *simulation, bool *fault);

/* The task is the last of those that wait for a first-come processor. */
static inline void pc_task_queue_up(pc_simulation *s, int32_t task, int32_t p) {
    s->queue_next[task] = PC_NO_TASK;
    if (s->queue_first[p] == PC_NO_TASK)
        s->queue_first[p] = task;
    else
        s->queue_next[s->queue_last[p]] = task;
    s->queue_last[p] = task;
}

/* In simulation.c: the task starts, or ends, now. */
void pc_task_begin(pc_simulation *simulation, int32_t task);
void pc_task_finish(pc_simulation *simulation, int32_t task);

/* In memory.c. Whether the task need not wait for its memory; takes, false and the run over where it does not fit;
 * gives back. The run is out of memory for the task. */
bool pc_memory_lets_start(const pc_simulation *simulation, int32_t task);
bool pc_memory_take(pc_simulation *simulation, int32_t task);
void pc_memory_give(pc_simulation *simulation, int32_t task);
void pc_memory_stop(pc_simulation *simulation, int32_t task);
void pc_memory_on_stop(pc_engine *engine, const pc_event *event, void *context);

/* In waiting.c, for a program that may_wait: before the run; all predecessors of a task have ended; what they sent is
 * here; a task without a processor may start; a processor is free; bytes of a memory were given back. */
void pc_waiting_begin(pc_simulation *simulation);
void pc_waiting_arrive(pc_simulation *simulation, int32_t task);
void pc_waiting_ready(pc_simulation *simulation, int32_t task);
void pc_waiting_start(pc_simulation *simulation, int32_t task);
void pc_waiting_release(pc_simulation *simulation, int32_t processor);
void pc_waiting_retry(pc_simulation *simulation, int32_t number);
void pc_waiting_on_retry(pc_engine *engine, const pc_event *event, void *context);
void pc_waiting_on_aside(pc_engine *engine, const pc_event *event, void *context);
void pc_waiting_on_turn(pc_engine *engine, const pc_event *event, void *context);

/* The task that has waited longest for memory, of those the one with the least number; or PC_NO_TASK. */
int32_t pc_waiting_first(const pc_simulation *simulation);

/* In ahead.c, for a program that is_ordered: all tasks that wait for no flow; a flow has ended now. */
void pc_ahead_begin(pc_simulation *simulation);
void pc_ahead_finish(pc_simulation *simulation, int32_t task);

/* In flow.c. */
bool pc_flow_prepare(pc_simulation *simulation);
void pc_flow_free(flow_state *flows);

/* After `wait` the latency, then the bytes. */
void pc_flow_start(pc_simulation *simulation, int32_t task, pc_time wait);
void pc_flow_on_begin(pc_engine *engine, const pc_event *event, void *context);
void pc_flow_on_end(pc_engine *engine, const pc_event *event, void *context);
void pc_flow_on_share(pc_engine *engine, const pc_event *event, void *context);

#endif
