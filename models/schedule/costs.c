#include "models/schedule/costs.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

pc_code pc_costs_create(int devices, int chunks, pc_costs *costs, pc_error *error) {
    size_t cells = (size_t)devices * (size_t)chunks;
    pc_costs made = {.devices = devices, .chunks = chunks, .transfer.mode = PC_TRANSFER_DELAY};
    made.duration_ps = pc_alloc(cells * PC_PASS_KINDS, sizeof *made.duration_ps);
    made.activation_bytes = pc_alloc(cells, sizeof *made.activation_bytes);
    made.activation_b_bytes = pc_alloc(cells, sizeof *made.activation_b_bytes);
    made.activation_kept_bytes = pc_alloc(cells, sizeof *made.activation_kept_bytes);
    if (!made.duration_ps || !made.activation_bytes || !made.activation_b_bytes || !made.activation_kept_bytes) {
        pc_costs_free(&made);
        return pc_error_no_memory(error);
    }
    for (size_t i = 0; i < cells * PC_PASS_KINDS; i++) made.duration_ps[i] = PC_TIME_NOT_GIVEN;
    *costs = made;
    return PC_OK;
}

pc_code pc_costs_add_hop_delays(pc_costs *costs, pc_error *error) {
    if (costs->hop_delay_ps) return PC_OK;
    costs->hop_delay_ps = pc_alloc((size_t)costs->devices, sizeof *costs->hop_delay_ps);
    if (!costs->hop_delay_ps) return pc_error_no_memory(error);
    for (int d = 0; d < costs->devices; d++) costs->hop_delay_ps[d] = costs->transfer.delay_ps;
    return PC_OK;
}

pc_code pc_costs_add_ready(pc_costs *costs, pc_error *error) {
    if (costs->ready_ps) return PC_OK;
    costs->ready_ps = pc_alloc((size_t)costs->devices * (size_t)costs->chunks, sizeof *costs->ready_ps);
    return costs->ready_ps ? PC_OK : pc_error_no_memory(error);
}

pc_code pc_costs_add_copies(pc_costs *costs, pc_error *error) {
    size_t cells = (size_t)costs->devices * (size_t)costs->chunks;
    pc_copies *x = &costs->copies;
    if (x->out_ps) return PC_OK;
    x->out_ps = pc_alloc(2 * cells, sizeof *x->out_ps);
    x->bytes = pc_alloc(2 * cells, sizeof *x->bytes);
    x->ahead = pc_alloc(cells, sizeof *x->ahead);
    if (!x->out_ps || !x->bytes || !x->ahead) return pc_error_no_memory(error);
    for (size_t i = 0; i < cells; i++) x->ahead[i] = 1;
    x->back_ps = x->out_ps + cells;
    x->b_bytes = x->bytes + cells;
    return PC_OK;
}

pc_code pc_costs_add_pairs(pc_costs *costs, pc_error *error) {
    size_t cells = (size_t)costs->devices * (size_t)costs->chunks, count = 2 * cells * (size_t)costs->chunks;
    if (costs->pair_ps) return PC_OK;
    costs->pair_layer_bytes = pc_alloc(cells, sizeof *costs->pair_layer_bytes);
    if (!costs->pair_layer_bytes) return pc_error_no_memory(error);
    for (size_t i = 0; i < cells; i++) costs->pair_layer_bytes[i] = -1;
    costs->pair_ps = pc_alloc(3 * count, sizeof *costs->pair_ps);
    if (!costs->pair_ps) return pc_error_no_memory(error);
    for (size_t i = 0; i < 3 * count; i++) costs->pair_ps[i] = PC_TIME_NOT_GIVEN;
    costs->pair_own_ps = costs->pair_ps + count;
    costs->pair_apart_ps = costs->pair_own_ps + count;
    return PC_OK;
}

pc_time pc_costs_pair_ps(const pc_costs *costs, int device, pc_pass f, pc_pass back) {
    pc_time given = costs->pair_ps ? costs->pair_ps[pc_costs_pair_index(costs, device, f, back)] : PC_TIME_NOT_GIVEN;
    if (given != PC_TIME_NOT_GIVEN) return given;
    return pc_costs_duration(costs, device, f.chunk, f.kind) + pc_costs_duration(costs, device, back.chunk, back.kind);
}

pc_time pc_costs_busy_ps(const pc_costs *costs, const pc_schedule *schedule, int device, int64_t position) {
    const pc_pass *pass = &schedule->passes[position];
    pc_time own = pc_costs_duration(costs, device, pass->chunk, pass->kind);
    if (!costs->pair_ps) return own;
    if (pc_schedule_is_second(schedule, position)) return 0;
    return pc_schedule_pairs_at(schedule, position) ? pc_costs_pair_ps(costs, device, pass[0], pass[1]) : own;
}

void pc_costs_free(pc_costs *costs) {
    pc_free(costs->copies.out_ps);
    pc_free(costs->copies.bytes);
    pc_free(costs->copies.ahead);
    pc_free(costs->duration_ps);
    pc_free(costs->activation_bytes);
    pc_free(costs->activation_b_bytes);
    pc_free(costs->activation_kept_bytes);
    pc_free(costs->hop_delay_ps);
    pc_free(costs->ready_ps);
    pc_free(costs->pair_ps);
    pc_free(costs->pair_layer_bytes);
    memset(costs, 0, sizeof *costs);
}

void pc_costs_longest(const pc_costs *costs, pc_time longest_ps[PC_PASS_KINDS]) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) longest_ps[kind] = PC_TIME_NOT_GIVEN;
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                pc_time time = pc_costs_duration(costs, d, c, kind);
                if (time > longest_ps[kind]) longest_ps[kind] = time;
            }
}

bool pc_costs_have_activations(const pc_costs *costs) {
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++)
        if (costs->activation_bytes[i] > 0) return true;
    return false;
}

pc_code pc_costs_check_times(const pc_costs *costs, const bool needs[PC_PASS_KINDS], const char *name,
                             const char *purpose, pc_error *error) {
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++)
                if (needs[kind] && pc_costs_duration(costs, d, c, kind) < 0)
                    return pc_error_set(
                        error, PC_ERROR_INPUT,
                        "%s: the time of %s of chunk %d on device %d is not given; expected one, for %s", name,
                        pc_pass_kind_name((pc_pass_kind)kind), c, d, purpose);
    return PC_OK;
}

pc_time pc_costs_delay_alone(const pc_costs *costs, int from, int to) {
    const pc_transfer *transfer = &costs->transfer;
    if (transfer->mode == PC_TRANSFER_DELAY || !(transfer->bandwidth_bytes_per_s > 0.0))
        return pc_costs_delay(costs, from, to);
    double seconds = (double)transfer->size_bytes / transfer->bandwidth_bytes_per_s;
    return transfer->latency_ps + (pc_time)ceil(seconds * (double)PC_PICOSECONDS_PER_SECOND);
}
