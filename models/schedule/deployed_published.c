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

static pc_code check_given(const pc_generator *self, const pc_costs *costs, pc_error *error) {
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++)
            for (int kind = 0; kind < PC_PUBLISHED_KINDS; kind++)
                if (pc_costs_duration(costs, d, c, kind) < 0)
                    return pc_error_set(error, PC_ERROR_INPUT,
                                        "%s: the time of %s of chunk %d on device %d is not given; expected one, for "
                                        "the schedule is made for it",
                                        self->name, pc_pass_kind_name((pc_pass_kind)kind), c, d);
    return PC_OK;
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

pc_code pc_published_times_of(const pc_generator *self, const pc_generate_request *request, pc_published_times *times,
                              pc_error *error) {
    const pc_costs *costs = request->costs;
    pc_code code = check_given(self, costs, error);
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

static bool has_activations(const pc_costs *costs) {
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++)
        if (costs->activation_bytes[i] > 0) return true;
    return false;
}

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

static pc_code memory_of(const pc_generator *self, const pc_generate_request *request, pc_published_memory *memory,
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

pc_code pc_published_memory_of(const pc_generator *self, const pc_generate_request *request,
                               pc_published_memory *memory, pc_error *error) {
    const pc_costs *costs = request->costs;
    pc_generate_request counted = *request;
    pc_costs chunks;
    pc_code code = pc_generator_check_memory(self, costs, request->memory_limit, error);
    if (code) return code;
    if (has_activations(costs)) return memory_of(self, request, memory, error);
    code = pc_costs_create(costs->devices, costs->chunks, &chunks, error);
    if (code) return code;
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) chunks.activation_bytes[i] = 1;
    counted.costs = &chunks;
    counted.memory_limit = (pc_memory_limit){NULL};
    code = memory_of(self, &counted, memory, error);
    pc_costs_free(&chunks);
    return code;
}

/* ---- the answer ---- */

pc_code pc_published_write(const pc_generator *self, const pc_generate_request *request, const uint8_t *types,
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

pc_code pc_published_make(const pc_generator *self, const pc_generate_request *request, pc_generate_rule *rule,
                          pc_schedule *schedule, pc_error *error) {
    if (request->costs->recomputes_in_b) return pc_generate_recomputing(self, request, rule, schedule, NULL, error);
    return rule(self, request, schedule, NULL, error);
}

pc_code pc_published_fail(const pc_generator *self, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: its published generator gives no order within the memory limit; expected more of it, or "
                        "another making",
                        self->name);
}
