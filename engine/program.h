/* program.h: what is to be simulated: tasks, what they wait for, and the resources that they hold.
 *
 * A task waits for its predecessors (each edge may add a delay) and for its processor, holds what it asks for, and then
 * releases its successors. It lasts `duration_ps`, or, where it has a route, as long as `flow_bytes` take over it. What
 * goes over several routes side by side is a task with parts, which are the tasks right behind it: their bytes begin
 * with its own, and it ends when they have, too. A part has a route, and neither edges, processor nor memory.
 * Resources:
 *
 *   processor  one task at a time: IN_ORDER in the order in which its tasks were added, whether or not a later one
 *              could go first; FIRST_COME in the order in which they become ready.
 *   link       latency, then bandwidth, shared max-min fair among the flows that cross it; on an unshared one every
 *              flow has all of it, as if alone. Several make a route.
 *   memory     a capacity and a level: a task takes bytes when it starts and gives bytes back when it ends. What is
 *              given back at an instant is there for what starts at that instant. Its policy says what happens to a
 *              task for which there is too little.
 *
 * A program is plain data: built once, run any number of times (simulation.h), by several threads at once if they like.
 */
#ifndef PC_ENGINE_PROGRAM_H
#define PC_ENGINE_PROGRAM_H

#include "engine/error.h"
#include "engine/simtime.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_NO_RESOURCE = -1, PC_NO_TASK = -1 };

typedef enum pc_processor_order { PC_PROCESSOR_IN_ORDER, PC_PROCESSOR_FIRST_COME } pc_processor_order;

typedef struct pc_link {
    pc_time latency_ps;
    double bandwidth_bytes_per_s; /* more than zero */
    bool is_unshared;             /* its load may be more than its bandwidth */
} pc_link;

/* When a task asks for more than is left.
 *
 * FAIL: the run ends with that instant; of several, the task with the least number is told of.
 *
 * NOTE: the level goes beyond the capacity, and the run goes on; the result says when.
 *
 * WAIT: the task is put aside, and its processor goes on with the next one of its order. That one may be put aside in
 * turn. So is one that is not ready because it waits, itself or over others, for one that waits for memory. If it is
 * merely not ready yet, the processor waits for it. When bytes are given back, and when the processor is free again,
 * the tasks that were put aside are tried first, in their order; what goes on with one of them comes right behind it.
 * If nothing goes on any more and some wait for memory, the run was out of it. */
typedef enum pc_memory_policy { PC_MEMORY_FAIL, PC_MEMORY_WAIT, PC_MEMORY_NOTE } pc_memory_policy;

typedef struct pc_task {
    int32_t processor; /* or PC_NO_RESOURCE */
    int32_t memory;    /* or PC_NO_RESOURCE */
    int32_t route;     /* or PC_NO_RESOURCE */
    bool is_part;      /* a flow of the task before it, or of the one that that is a part of: see above */
    bool goes_on; /* with what the task before it in its processor's order began, in one piece: see PC_MEMORY_WAIT */
    pc_time duration_ps;
    int64_t take_bytes, give_bytes; /* of `memory`, at start and at end; not negative */
    int64_t flow_bytes;             /* over `route`; not negative */
} pc_task;

/* A task that needs nothing and takes no time. */
static inline pc_task pc_task_default(void) {
    pc_task task = {PC_NO_RESOURCE, PC_NO_RESOURCE, PC_NO_RESOURCE, false, false, 0, 0, 0, 0};
    return task;
}

typedef struct pc_program pc_program;

pc_code pc_program_create(pc_program **program, pc_error *error);
void pc_program_free(pc_program *program);

/* Takes everything out; keeps the memory. */
void pc_program_clear(pc_program *program);

/* Room for so many before the next allocation. */
pc_code pc_program_reserve(pc_program *program, int64_t tasks, int64_t edges, pc_error *error);

/* Each adds one thing and writes its number, counted from 0 for each sort. */
pc_code pc_program_add_processor(pc_program *program, pc_processor_order order, int32_t *processor, pc_error *error);
pc_code pc_program_add_memory(pc_program *program, int64_t capacity_bytes, pc_memory_policy policy, int32_t *memory,
                              pc_error *error);
pc_code pc_program_add_link(pc_program *program, const pc_link *link, int32_t *number, pc_error *error);
pc_code pc_program_add_route(pc_program *program, const int32_t *links, int32_t link_count, int32_t *route,
                             pc_error *error);
pc_code pc_program_add_task(pc_program *program, const pc_task *task, int32_t *number, pc_error *error);

/* `to` starts no earlier than `delay_ps` after the end of `from`. Any order of tasks; cycles are found by the run. */
pc_code pc_program_add_edge(pc_program *program, int32_t from, int32_t to, pc_time delay_ps, pc_error *error);

/* Checks all numbers and makes the program ready to run; what is added later breaks the seal. PC_ERROR_INPUT if a
 * task or an edge names something that is not there or has a negative time or size, or a part is none. */
pc_code pc_program_seal(pc_program *program, pc_error *error);

int32_t pc_program_task_count(const pc_program *program);

#ifdef __cplusplus
}
#endif
#endif
