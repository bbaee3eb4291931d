#include "models/schedule/replay_transfers.h"

#include "engine/alloc.h"

static int64_t count_transfers(const pc_pass_index *index, const pc_replay_trace *trace) {
    int64_t count = 0;
    pc_predecessor sender;
    for (int64_t i = 0; i < trace->pass_count; i++)
        count += pc_pass_sender(index, trace->pass_device[i], trace->pass[i], &sender);
    return count;
}

static bool make_arrays(pc_replay_trace *trace, int64_t count) {
    trace->transfer_from = pc_alloc((size_t)count, sizeof *trace->transfer_from);
    trace->transfer_to = pc_alloc((size_t)count, sizeof *trace->transfer_to);
    trace->transfer_pass = pc_alloc((size_t)count, sizeof *trace->transfer_pass);
    trace->transfer_start_ps = pc_alloc((size_t)count, sizeof *trace->transfer_start_ps);
    trace->transfer_end_ps = pc_alloc((size_t)count, sizeof *trace->transfer_end_ps);
    trace->transfer_count = count;
    return trace->transfer_from && trace->transfer_to && trace->transfer_pass && trace->transfer_start_ps &&
           trace->transfer_end_ps;
}

pc_code pc_trace_add_transfers(const pc_pass_index *index, const pc_costs *costs, const pc_time *arrival_ps,
                               pc_replay_trace *trace, pc_error *error) {
    if (!make_arrays(trace, count_transfers(index, trace))) return pc_error_no_memory(error);
    int64_t row = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        int stage = trace->pass_device[i];
        pc_predecessor sender;
        if (!pc_pass_sender(index, stage, trace->pass[i], &sender)) continue;
        pc_time sent_ps = trace->pass_end_ps[sender.position];
        trace->transfer_from[row] = sender.stage;
        trace->transfer_to[row] = stage;
        trace->transfer_pass[row] = trace->pass[i];
        trace->transfer_start_ps[row] = sent_ps;
        trace->transfer_end_ps[row++] =
            arrival_ps ? arrival_ps[i] : sent_ps + pc_costs_delay(costs, sender.stage, stage);
    }
    return PC_OK;
}
