/* program_internal.h: how a program lies in memory; for program.c and the simulation only. */
#ifndef PC_ENGINE_PROGRAM_INTERNAL_H
#define PC_ENGINE_PROGRAM_INTERNAL_H

#include "engine/program.h"

#include <stddef.h>

typedef struct edge {
    int32_t from, to;
    pc_time delay_ps;
} edge;

typedef struct successor {
    int32_t task;
    pc_time delay_ps;
} successor;

typedef struct memory_spec {
    int64_t capacity_bytes;
    pc_memory_policy policy;
} memory_spec;

/* Growing arrays have a count and a capacity; the arrays of the second half are made by seal. */
struct pc_program {
    int32_t processor_count, processor_capacity;
    uint8_t *processor_order;
    int32_t memory_count, memory_capacity;
    memory_spec *memories;
    int32_t link_count, link_capacity;
    pc_link *links;
    int32_t route_count, route_capacity;
    int32_t *route_offset; /* route r: route_links[route_offset[r]] to [route_offset[r+1] - 1] */
    int32_t route_link_count, route_link_capacity;
    int32_t *route_links;
    int32_t task_count, task_capacity;
    pc_task *tasks;
    int64_t edge_count, edge_capacity;
    edge *edges;

    bool is_sealed;
    bool is_ordered; /* every processor has its order, and no task takes or gives memory */
    bool may_wait;   /* some task takes bytes of a memory for which tasks wait */
    size_t successor_capacity, task_array_capacity;
    int64_t *successor_offset; /* a number a task, and one more */
    successor *successors;
    int32_t *predecessor_count;
    int32_t *next_in_order;  /* the task that an in-order processor runs after this one, or -1 */
    int32_t *first_in_order; /* a number a processor: its first task, or -1 */
    size_t first_capacity;
    int32_t longest_route; /* links of the longest one; 0 if there is none */
};

#endif
