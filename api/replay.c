#include "api/handles.h"

#include "engine/alloc.h"

#include <math.h>

static double time_of(const pipecast_replay *replay, pc_time time_ps) {
    return (double)time_ps / replay->time_unit_ps;
}

static double memory_of(const pipecast_replay *replay, int64_t bytes) {
    return (double)bytes / replay->memory_unit_bytes;
}

void pipecast_replay_free(pipecast_replay *replay) {
    if (replay) pc_trace_record_free(&replay->record);
    pc_free(replay);
}

double pipecast_replay_number(const pipecast_replay *replay, int number) {
    const pc_replay *of = &replay->record.replay;
    switch (number) {
    case PIPECAST_SPAN:
        return time_of(replay, of->span_ps);
    case PIPECAST_MAKESPAN:
        return time_of(replay, of->makespan_ps);
    case PIPECAST_BUBBLE_RATE_SPAN:
        return of->bubble_rate_span;
    case PIPECAST_BUBBLE_RATE_MAKESPAN:
        return of->bubble_rate_makespan;
    case PIPECAST_PEAK:
        return memory_of(replay, of->peak_bytes);
    default:
        return NAN;
    }
}

int64_t pipecast_replay_devices(const pipecast_replay *replay, double *start, double *end, double *busy, double *peak) {
    const pc_replay *of = &replay->record.replay;
    for (int d = 0; d < of->devices; d++) {
        if (start) start[d] = time_of(replay, of->device_start_ps[d]);
        if (end) end[d] = time_of(replay, of->device_end_ps[d]);
        if (busy) busy[d] = time_of(replay, of->device_busy_ps[d]);
        if (peak) peak[d] = memory_of(replay, of->device_peak_bytes[d]);
    }
    return of->devices;
}

int64_t pipecast_replay_passes(const pipecast_replay *replay, int64_t *device, int64_t *kind, int64_t *chunk,
                               int64_t *microbatch, double *start, double *end) {
    const pc_replay_trace *trace = &replay->record.replay.trace;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (device) device[i] = trace->pass_device[i];
        if (kind) kind[i] = trace->pass[i].kind;
        if (chunk) chunk[i] = trace->pass[i].chunk;
        if (microbatch) microbatch[i] = trace->pass[i].microbatch;
        if (start) start[i] = time_of(replay, trace->pass_start_ps[i]);
        if (end) end[i] = time_of(replay, trace->pass_end_ps[i]);
    }
    return trace->pass_count;
}

int64_t pipecast_replay_levels(const pipecast_replay *replay, int64_t *device, double *time, double *level) {
    const pc_replay_trace *trace = &replay->record.replay.trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        if (device) device[i] = trace->level_device[i];
        if (time) time[i] = time_of(replay, trace->level_time_ps[i]);
        if (level) level[i] = memory_of(replay, trace->level_bytes[i]);
    }
    return trace->level_count;
}

int64_t pipecast_replay_transfers(const pipecast_replay *replay, int64_t *from, int64_t *to, double *start,
                                  double *end) {
    const pc_replay_trace *trace = &replay->record.replay.trace;
    for (int64_t i = 0; i < trace->transfer_count; i++) {
        if (from) from[i] = trace->transfer_from[i];
        if (to) to[i] = trace->transfer_to[i];
        if (start) start[i] = time_of(replay, trace->transfer_start_ps[i]);
        if (end) end[i] = time_of(replay, trace->transfer_end_ps[i]);
    }
    return trace->transfer_count;
}
