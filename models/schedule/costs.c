#include "models/schedule/costs.h"

#include "engine/alloc.h"

#include <string.h>

pc_code pc_costs_create(int devices, int chunks, pc_costs *costs, pc_error *error) {
    size_t cells = (size_t)devices * (size_t)chunks;
    pc_costs made = {.devices = devices, .chunks = chunks, .transfer.mode = PC_TRANSFER_DELAY};
    made.duration_ps = pc_alloc(cells * PC_PASS_KINDS, sizeof *made.duration_ps);
    made.activation_bytes = pc_alloc(cells, sizeof *made.activation_bytes);
    made.activation_b_bytes = pc_alloc(cells, sizeof *made.activation_b_bytes);
    made.activation_kept_bytes = pc_alloc(cells, sizeof *made.activation_kept_bytes);
    made.memory_capacity_bytes = pc_alloc((size_t)devices, sizeof *made.memory_capacity_bytes);
    if (!made.duration_ps || !made.activation_bytes || !made.activation_b_bytes || !made.activation_kept_bytes ||
        !made.memory_capacity_bytes) {
        pc_costs_free(&made);
        return pc_error_no_memory(error);
    }
    for (size_t i = 0; i < cells * PC_PASS_KINDS; i++) made.duration_ps[i] = PC_TIME_NOT_GIVEN;
    *costs = made;
    return PC_OK;
}

void pc_costs_free(pc_costs *costs) {
    pc_free(costs->duration_ps);
    pc_free(costs->activation_bytes);
    pc_free(costs->activation_b_bytes);
    pc_free(costs->activation_kept_bytes);
    pc_free(costs->memory_capacity_bytes);
    memset(costs, 0, sizeof *costs);
}
