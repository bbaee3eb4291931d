#include "results/memory_curve.h"

#include <string.h>

bool pc_memory_curve_is_known(const pc_trace_record *record) {
    return record->memory && record->replay.trace.level_kinds;
}

void pc_memory_curve_fixed(const pc_trace_record *record, int device, int64_t bytes[PC_MEMORY_KINDS]) {
    memcpy(bytes, record->memory[device].kinds, sizeof record->memory[device].kinds);
    for (int kind = 0; kind < PC_ACTIVATION_KINDS; kind++) bytes[PC_MEMORY_ATTENTION + kind] = 0;
}

void pc_memory_curve_at(const pc_trace_record *record, int64_t level, int64_t bytes[PC_MEMORY_KINDS]) {
    const pc_replay_trace *trace = &record->replay.trace;
    pc_memory_curve_fixed(record, trace->level_device[level], bytes);
    memcpy(bytes + PC_MEMORY_ATTENTION, trace->level_kinds[level].of, sizeof trace->level_kinds[level].of);
}

int64_t pc_memory_curve_sum(const int64_t bytes[PC_MEMORY_KINDS]) {
    int64_t sum = 0;
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++) sum += bytes[kind];
    return sum;
}
