#include "engine/program_internal.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

pc_code pc_program_create(pc_program **program, pc_error *error) {
    pc_program *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    *program = made;
    return PC_OK;
}

void pc_program_free(pc_program *program) {
    if (!program) return;
    void *arrays[] = {program->processor_order, program->memories,
                      program->links,           program->route_offset,
                      program->route_links,     program->tasks,
                      program->edges,           program->successor_offset,
                      program->successors,      program->predecessor_count,
                      program->next_in_order,   program->first_in_order};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_free(program);
}

void pc_program_clear(pc_program *program) {
    program->processor_count = program->memory_count = program->link_count = 0;
    program->route_count = program->route_link_count = program->task_count = 0;
    program->edge_count = 0;
    program->is_sealed = false;
}

/* ---- adding ---- */

/* Makes room for `wanted` elements in *array by doubling. */
static pc_code make_room(void **array, int32_t *capacity, int64_t wanted, size_t size, pc_error *error) {
    if (wanted <= *capacity) return PC_OK;
    int64_t grown = *capacity < 8 ? 16 : 2 * (int64_t)*capacity;
    if (grown < wanted) grown = wanted;
    if (grown > INT32_MAX) return pc_error_no_memory(error);
    void *block = pc_realloc(*array, (size_t)grown, size);
    if (!block) return pc_error_no_memory(error);
    *array = block;
    *capacity = (int32_t)grown;
    return PC_OK;
}

#define MAKE_ROOM(array, capacity, wanted) make_room((void **)&(array), &(capacity), (wanted), sizeof *(array), error)

pc_code pc_program_add_processor(pc_program *program, pc_processor_order order, int32_t *processor, pc_error *error) {
    program->is_sealed = false;
    pc_code code = MAKE_ROOM(program->processor_order, program->processor_capacity, program->processor_count + 1);
    if (code) return code;
    program->processor_order[program->processor_count] = (uint8_t)order;
    *processor = program->processor_count++;
    return PC_OK;
}

pc_code pc_program_add_memory(pc_program *program, int64_t capacity_bytes, pc_memory_policy policy, int32_t *memory,
                              pc_error *error) {
    program->is_sealed = false;
    if (capacity_bytes < 0)
        return pc_error_set(error, PC_ERROR_INPUT, "memory: a capacity of %" PRId64 " bytes; expected none below zero",
                            capacity_bytes);
    pc_code code = MAKE_ROOM(program->memories, program->memory_capacity, program->memory_count + 1);
    if (code) return code;
    program->memories[program->memory_count].capacity_bytes = capacity_bytes;
    program->memories[program->memory_count].policy = policy;
    *memory = program->memory_count++;
    return PC_OK;
}

pc_code pc_program_add_link(pc_program *program, const pc_link *link, int32_t *number, pc_error *error) {
    program->is_sealed = false;
    if (!(link->bandwidth_bytes_per_s > 0.0) || !isfinite(link->bandwidth_bytes_per_s) || link->latency_ps < 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "link: bandwidth %g bytes/s, latency %" PRId64
                            " ps; expected a bandwidth above zero and a latency not below",
                            link->bandwidth_bytes_per_s, link->latency_ps);
    pc_code code = MAKE_ROOM(program->links, program->link_capacity, program->link_count + 1);
    if (code) return code;
    program->links[program->link_count] = *link;
    *number = program->link_count++;
    return PC_OK;
}

static bool is_route(const pc_program *program, const int32_t *links, int32_t link_count) {
    for (int32_t i = 0; i < link_count; i++) {
        if (links[i] < 0 || links[i] >= program->link_count) return false;
        for (int32_t j = 0; j < i; j++)
            if (links[i] == links[j]) return false;
    }
    return link_count > 0;
}

pc_code pc_program_add_route(pc_program *program, const int32_t *links, int32_t link_count, int32_t *route,
                             pc_error *error) {
    program->is_sealed = false;
    if (!is_route(program, links, link_count))
        return pc_error_set(error, PC_ERROR_INPUT, "route: expected one link or more, all known, none twice");
    int64_t used = program->route_link_count + (int64_t)link_count;
    pc_code code = MAKE_ROOM(program->route_offset, program->route_capacity, program->route_count + 2);
    if (!code) code = MAKE_ROOM(program->route_links, program->route_link_capacity, used);
    if (code) return code;
    memcpy(program->route_links + program->route_link_count, links, (size_t)link_count * sizeof *links);
    program->route_offset[program->route_count] = program->route_link_count;
    program->route_link_count = (int32_t)used;
    program->route_offset[program->route_count + 1] = (int32_t)used;
    *route = program->route_count++;
    return PC_OK;
}

pc_code pc_program_add_task(pc_program *program, const pc_task *task, int32_t *number, pc_error *error) {
    program->is_sealed = false;
    pc_code code = MAKE_ROOM(program->tasks, program->task_capacity, program->task_count + (int64_t)1);
    if (code) return code;
    program->tasks[program->task_count] = *task;
    *number = program->task_count++;
    return PC_OK;
}

pc_code pc_program_add_edge(pc_program *program, int32_t from, int32_t to, pc_time delay_ps, pc_error *error) {
    program->is_sealed = false;
    if (program->edge_count == program->edge_capacity) {
        int64_t grown = program->edge_capacity < 8 ? 16 : 2 * program->edge_capacity;
        edge *edges = pc_realloc(program->edges, (size_t)grown, sizeof *edges);
        if (!edges) return pc_error_no_memory(error);
        program->edges = edges;
        program->edge_capacity = grown;
    }
    program->edges[program->edge_count++] = (edge){from, to, delay_ps};
    return PC_OK;
}

pc_code pc_program_reserve(pc_program *program, int64_t tasks, int64_t edges, pc_error *error) {
    if (tasks > program->task_capacity && tasks <= INT32_MAX) {
        pc_task *block = pc_realloc(program->tasks, (size_t)tasks, sizeof *block);
        if (!block) return pc_error_no_memory(error);
        program->tasks = block;
        program->task_capacity = (int32_t)tasks;
    }
    if (edges > program->edge_capacity) {
        edge *block = pc_realloc(program->edges, (size_t)edges, sizeof *block);
        if (!block) return pc_error_no_memory(error);
        program->edges = block;
        program->edge_capacity = edges;
    }
    return PC_OK;
}

int32_t pc_program_task_count(const pc_program *program) {
    return program->task_count;
}

/* ---- sealing ---- */

static bool is_number(int32_t number, int32_t count) {
    return number >= 0 && number < count;
}

static bool is_number_or_none(int32_t number, int32_t count) {
    return number == PC_NO_RESOURCE || is_number(number, count);
}

static bool is_task(const pc_program *program, const pc_task *task) {
    return is_number_or_none(task->processor, program->processor_count) &&
           is_number_or_none(task->memory, program->memory_count) &&
           is_number_or_none(task->route, program->route_count) && task->duration_ps >= 0 && task->take_bytes >= 0 &&
           task->give_bytes >= 0 && task->flow_bytes >= 0;
}

static bool is_part_of(const pc_program *program, int32_t task) {
    const pc_task *x = &program->tasks[task];
    return task > 0 && program->tasks[task - 1].route != PC_NO_RESOURCE && x->route != PC_NO_RESOURCE &&
           x->processor == PC_NO_RESOURCE && x->memory == PC_NO_RESOURCE;
}

static pc_code refuse_part(int32_t task, pc_error *error) {
    return pc_error_set(
        error, PC_ERROR_INPUT,
        "task %" PRId32 ": a part; expected one with a route alone, behind a task with a route, and no edges", task);
}

static pc_code check(const pc_program *program, pc_error *error) {
    for (int32_t t = 0; t < program->task_count; t++) {
        if (!is_task(program, &program->tasks[t]))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "task %" PRId32 ": an unknown resource, or a negative time or size", t);
        if (program->tasks[t].is_part && !is_part_of(program, t)) return refuse_part(t, error);
    }
    for (int64_t e = 0; e < program->edge_count; e++) {
        const edge *x = &program->edges[e];
        if (!is_number(x->from, program->task_count) || !is_number(x->to, program->task_count) || x->delay_ps < 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "edge %" PRId64 ": from task %" PRId32 " to task %" PRId32 " after %" PRId64
                                " ps; expected tasks below %" PRId32 " and no negative delay",
                                e, x->from, x->to, x->delay_ps, program->task_count);
        if (program->tasks[x->from].is_part) return refuse_part(x->from, error);
        if (program->tasks[x->to].is_part) return refuse_part(x->to, error);
    }
    return PC_OK;
}

/* Grows one of seal's arrays; what it held is not kept. */
static bool fit(void **array, size_t count, size_t size) {
    void *block = pc_realloc(*array, count, size);
    if (!block) return false;
    *array = block;
    return true;
}

static bool make_arrays(pc_program *program) {
    size_t tasks = (size_t)program->task_count + 1, processors = (size_t)program->processor_count;
    if (tasks > program->task_array_capacity) {
        if (!fit((void **)&program->successor_offset, tasks, sizeof *program->successor_offset) ||
            !fit((void **)&program->predecessor_count, tasks, sizeof *program->predecessor_count) ||
            !fit((void **)&program->next_in_order, tasks, sizeof *program->next_in_order))
            return false;
        program->task_array_capacity = tasks;
    }
    if ((size_t)program->edge_count > program->successor_capacity) {
        if (!fit((void **)&program->successors, (size_t)program->edge_count, sizeof *program->successors)) return false;
        program->successor_capacity = (size_t)program->edge_count;
    }
    if (processors > program->first_capacity) {
        if (!fit((void **)&program->first_in_order, processors, sizeof *program->first_in_order)) return false;
        program->first_capacity = processors;
    }
    return true;
}

/* Counting sort of the edges by where they come from, stable. */
static void sort_edges(pc_program *program) {
    int64_t *offset = program->successor_offset;
    memset(offset, 0, ((size_t)program->task_count + 1) * sizeof *offset);
    memset(program->predecessor_count, 0, (size_t)program->task_count * sizeof *program->predecessor_count);
    for (int64_t e = 0; e < program->edge_count; e++) offset[program->edges[e].from + 1]++;
    for (int32_t t = 0; t < program->task_count; t++) offset[t + 1] += offset[t];
    for (int64_t e = program->edge_count; e-- > 0;) { /* backwards: offset[t + 1] comes down to the start of t's */
        const edge *x = &program->edges[e];
        program->successors[--offset[x->from + 1]] = (successor){x->to, x->delay_ps};
        program->predecessor_count[x->to]++;
    }
    memmove(offset, offset + 1, (size_t)program->task_count * sizeof *offset);
    offset[program->task_count] = program->edge_count;
}

/* Links the tasks of each in-order processor in the order of their numbers. */
static void chain_tasks(pc_program *program) {
    for (int32_t p = 0; p < program->processor_count; p++) program->first_in_order[p] = -1;
    for (int32_t t = program->task_count; t-- > 0;) {
        int32_t p = program->tasks[t].processor;
        program->next_in_order[t] = -1;
        if (p == PC_NO_RESOURCE || program->processor_order[p] != PC_PROCESSOR_IN_ORDER) continue;
        program->next_in_order[t] = program->first_in_order[p];
        program->first_in_order[p] = t;
    }
}

static int32_t longest_route(const pc_program *program) {
    int32_t longest = 0;
    for (int32_t r = 0; r < program->route_count; r++) {
        int32_t count = program->route_offset[r + 1] - program->route_offset[r];
        if (count > longest) longest = count;
    }
    return longest;
}

static bool is_ordered(const pc_program *program) {
    for (int32_t p = 0; p < program->processor_count; p++)
        if (program->processor_order[p] != PC_PROCESSOR_IN_ORDER) return false;
    for (int32_t t = 0; t < program->task_count; t++)
        if (program->tasks[t].memory != PC_NO_RESOURCE) return false;
    return true;
}

static bool may_wait(const pc_program *program) {
    for (int32_t t = 0; t < program->task_count; t++) {
        const pc_task *x = &program->tasks[t];
        if (x->take_bytes > 0 && x->memory != PC_NO_RESOURCE && program->memories[x->memory].policy == PC_MEMORY_WAIT)
            return true;
    }
    return false;
}

pc_code pc_program_seal(pc_program *program, pc_error *error) {
    pc_code code = check(program, error);
    if (code) return code;
    if (!make_arrays(program)) return pc_error_no_memory(error);
    sort_edges(program);
    chain_tasks(program);
    program->longest_route = longest_route(program);
    program->is_ordered = is_ordered(program);
    program->may_wait = may_wait(program);
    program->is_sealed = true;
    return PC_OK;
}
