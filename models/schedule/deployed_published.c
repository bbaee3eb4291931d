#include "models/schedule/deployed_published.h"

#include "engine/alloc.h"
#include "models/schedule/search/instance.h"

#include <stdlib.h>

_Static_assert(PC_PASS_F == 0 && PC_PASS_B == 1 && PC_PASS_W == 2, "the kinds of a published order");

/* ---- times ---- */

static int compare_times(const void *a, const void *b) {
    pc_time first = *(const pc_time *)a, second = *(const pc_time *)b;
    return (first > second) - (first < second);
}

/* Of `count` times, which it sorts; 0 of none. */
static pc_time middle_of(pc_time *times, int count) {
    if (count == 0) return 0;
    qsort(times, (size_t)count, sizeof *times, compare_times);
    return times[count / 2];
}

/* Rounded down; the sum may be larger than a number can be. */
static pc_time mean_over_chunks(const pc_costs *costs, int device, pc_pass_kind kind) {
    pc_time whole = 0, rest = 0;
    for (int c = 0; c < costs->chunks; c++) {
        pc_time time = pc_costs_duration(costs, device, c, kind);
        whole += time / costs->chunks;
        rest += time % costs->chunks;
    }
    return whole + rest / costs->chunks;
}

/* No path through a schedule is longer than all passes one after the other, with a transfer each. */
static pc_code check_countable(const pc_generator *self, const pc_generate_request *request,
                               const pc_published_times *times, pc_error *error) {
    pc_time sum = 0, whole = 0;
    bool over = times->transfer_ps < 0 || __builtin_mul_overflow(times->transfer_ps, (pc_time)2, &sum);
    for (int kind = 0; kind < PC_PUBLISHED_KINDS; kind++)
        over = over || __builtin_add_overflow(sum, times->pass_ps[kind], &sum);
    over = over || __builtin_mul_overflow(sum, request->devices * request->microbatches * request->chunks, &whole);
    if (!over) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: times run over; expected all passes to end within 106 days of simulated time", self->name);
}

/* Refuses a time that is not given, is negative, or is so long that the passes of all devices, one after the other, run
 * over. Of an even number of devices the middle is the longer one of two. A transfer that shares its link is counted as
 * if it were alone. */
static pc_code times_of(const pc_generator *self, const pc_generate_request *request, pc_published_times *times,
                        pc_error *error) {
    const pc_costs *costs = request->costs;
    static const bool needs[PC_PASS_KINDS] = {[PC_PASS_F] = true, [PC_PASS_B] = true, [PC_PASS_W] = true};
    pc_code code = pc_costs_check_times(costs, needs, self->name, "the schedule is made for it", error);
    if (code) return code;
    pc_time *sorted = pc_alloc((size_t)costs->devices, sizeof *sorted);
    if (!sorted) return pc_error_no_memory(error);
    for (int kind = 0; kind < PC_PUBLISHED_KINDS; kind++) {
        for (int d = 0; d < costs->devices; d++) sorted[d] = mean_over_chunks(costs, d, (pc_pass_kind)kind);
        times->pass_ps[kind] = middle_of(sorted, costs->devices);
    }
    for (int d = 0; d + 1 < costs->devices; d++) sorted[d] = pc_costs_delay_alone(costs, d, d + 1);
    times->transfer_ps = middle_of(sorted, costs->devices - 1);
    pc_free(sorted);
    return check_countable(self, request, times, error);
}

/* ---- memory ---- */

/* Until B a chunk holds what F adds, and then, until W, what both do. */
static void fill_added(const pc_costs *costs, int device, int64_t added_bytes[PC_PUBLISHED_KINDS]) {
    int64_t before_b = 0, after_b = 0;
    for (int c = 0; c < costs->chunks; c++) {
        pc_pass f = {.chunk = (int16_t)c, .kind = PC_PASS_F}, b = {.chunk = (int16_t)c, .kind = PC_PASS_B};
        int64_t by_f = pc_costs_taken(costs, device, f, false);
        int64_t by_both = by_f + pc_costs_taken(costs, device, b, false) - pc_costs_given(costs, device, b);
        if (by_f > before_b) before_b = by_f;
        if (by_both > after_b) after_b = by_both;
    }
    added_bytes[PC_PASS_F] = before_b;
    added_bytes[PC_PASS_B] = after_b - before_b;
    added_bytes[PC_PASS_W] = -after_b;
}

static pc_code fill_memory(const pc_generator *self, const pc_generate_request *request, pc_published_memory *memory,
                           pc_error *error) {
    int devices = request->costs->devices;
    int64_t *named_bytes = pc_alloc((size_t)devices, sizeof *named_bytes);
    if (!named_bytes) return pc_error_no_memory(error);
    pc_searched_limits(self, request, named_bytes);
    for (int d = 0; d < devices; d++) {
        memory[d].named_bytes = named_bytes[d];
        memory[d].asked_bytes = pc_memory_limit_of(request->memory_limit, d);
        fill_added(request->costs, d, memory[d].added_bytes);
    }
    pc_free(named_bytes);
    return PC_OK;
}

/* Of costs without any activation it counts chunks. */
static pc_code memory_of(const pc_generator *self, const pc_generate_request *request, pc_published_memory *memory,
                         pc_error *error) {
    const pc_costs *costs = request->costs;
    pc_generate_request counted = *request;
    pc_costs chunks;
    pc_code code = pc_generator_check_memory(self, costs, request->memory_limit, error);
    if (code) return code;
    if (pc_costs_have_activations(costs)) return fill_memory(self, request, memory, error);
    code = pc_costs_create(costs->devices, costs->chunks, &chunks, error);
    if (code) return code;
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) chunks.activation_bytes[i] = 1;
    counted.costs = &chunks;
    counted.memory_limit = (pc_memory_limit){NULL};
    code = fill_memory(self, &counted, memory, error);
    pc_costs_free(&chunks);
    return code;
}

/* ---- the answer ---- */

/* Passes of one type run their microbatches in turn. */
static pc_code write_order(const pc_generator *self, const pc_generate_request *request, const uint8_t *types,
                           pc_schedule *schedule, pc_error *error) {
    int p = (int)request->devices, m = (int)request->microbatches, v = (int)request->chunks;
    int64_t each = (int64_t)PC_PUBLISHED_KINDS * m * v;
    int64_t *lengths = pc_alloc((size_t)p, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < p; d++) lengths[d] = each;
    pc_code code = pc_schedule_create(self->name, p, m, v, self->placement, lengths, schedule, error);
    pc_free(lengths);
    if (code) return code;
    for (int d = 0; d < p; d++) {
        int32_t next[PC_PUBLISHED_TYPES_MAX] = {0};
        for (int64_t i = d * each; i < (d + 1) * each; i++)
            schedule->passes[i] = (pc_pass){
                .microbatch = next[types[i]]++, .chunk = (int16_t)(types[i] % v), .kind = (int16_t)(types[i] / v)};
    }
    return PC_OK;
}

static pc_code fail(const pc_generator *self, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: its published generator gives no order within the memory limit; expected more of it, or "
                        "another making",
                        self->name);
}

static pc_code solve(const pc_generator *self, const pc_generate_request *request, pc_published_solver *solver,
                     pc_published_task *task, pc_error *error) {
    pc_code code = memory_of(self, request, task->memory, error);
    bool is_solved = false;
    if (!code) code = solver(task, &is_solved, error);
    if (!code && !is_solved) code = fail(self, error);
    return code;
}

pc_code pc_published_find(const pc_generator *self, const pc_generate_request *request, pc_published_solver *solver,
                          pc_schedule *schedule, pc_error *error) {
    size_t devices = (size_t)request->devices, passes = devices * (size_t)(request->microbatches * request->chunks);
    pc_published_task task = {.devices = (int)devices, .microbatches = (int)request->microbatches};
    pc_code code = times_of(self, request, &task.times, error);
    if (code) return code;
    task.memory = pc_alloc(devices, sizeof *task.memory);
    task.order = pc_alloc(passes, PC_PUBLISHED_KINDS);
    task.best = pc_alloc(passes, PC_PUBLISHED_KINDS);
    bool has_all = task.memory && task.order && task.best;
    code = has_all ? solve(self, request, solver, &task, error) : pc_error_no_memory(error);
    if (!code) code = write_order(self, request, task.best, schedule, error);
    pc_free(task.best);
    pc_free(task.order);
    pc_free(task.memory);
    return code;
}

void pc_published_keep(pc_published_task *task) {
    uint8_t *order = task->best;
    task->best = task->order;
    task->order = order;
}

pc_code pc_published_make(const pc_generator *self, const pc_generate_request *request, pc_generate_rule *rule,
                          pc_schedule *schedule, pc_error *error) {
    if (request->costs->recomputes_in_b) return pc_generate_recomputing(self, request, rule, schedule, NULL, error);
    return rule(self, request, schedule, NULL, error);
}
