/* What came of the program: times of passes and stages, levels of memories. */
#include "models/training/lowering.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <string.h>

static bool make_result(const lowering *lowered, pc_flows_result *result) {
    size_t passes = (size_t)lowered->passes, devices = (size_t)lowered->outline->devices;
    pc_time *block = pc_alloc(3 * passes + 3 * devices, sizeof *block);
    int64_t *peaks = pc_alloc(devices, sizeof *peaks);
    *result = (pc_flows_result){.start_ps = block, .peak_bytes = peaks};
    if (!block || !peaks) return false;
    result->end_ps = block + passes;
    result->arrival_ps = block + 2 * passes;
    result->begin_ps = block + 3 * passes;
    result->step_end_ps = result->begin_ps + devices;
    result->overdrawn_ps = result->step_end_ps + devices;
    return true;
}

/* After its message, as much later as it is gathered; by closed costs that is when the transfer is over. */
static pc_time arrival_of(const lowering *lowered, const pc_simulation_result *found, int device, int64_t position) {
    pc_predecessor sender;
    pc_time later_ps = lowered->outline->gathering_ps;
    int32_t mate;
    if (lowered->message[position] == PC_NO_TASK) return 0;
    pc_time end_ps = found->end_ps[lowered->message[position]];
    if (!pc_pass_sender(&lowered->index, device, lowered->schedule->passes[position], &sender))
        return end_ps + later_ps;
    if (lowered->how.is_closed)
        later_ps = pc_lanes_gathering_ps(&lowered->lanes,
                                         lowering_message_ps(lowered, 0, sender.stage, sender.position, device));
    pc_time arrival_ps = end_ps + later_ps;
    lowering_find_mate(lowered, 0, sender.stage, sender.position, &mate, &later_ps);
    return mate == PC_NO_TASK ? arrival_ps : pc_max(arrival_ps, found->end_ps[mate] + later_ps);
}

static void read_passes(const lowering *lowered, const pc_simulation_result *found, pc_flows_result *result) {
    for (int d = 0; d < lowered->outline->devices; d++)
        for (int64_t i = lowered->schedule->offsets[d]; i < lowered->schedule->offsets[d + 1]; i++) {
            result->start_ps[i] = found->start_ps[lowered->first[i]];
            result->end_ps[i] = found->end_ps[lowered->last[i]];
            result->arrival_ps[i] = arrival_of(lowered, found, d, i);
        }
}

/* So long before the first F of each chunk as that takes to be ready by closed costs (pc_pipeline_ends). */
static pc_time begin_of(const lowering *lowered, const pc_simulation_result *found, int replica, int device) {
    pc_time begin = PC_TIME_MAX;
    for (int64_t i = lowered->schedule->offsets[device]; i < lowered->schedule->offsets[device + 1]; i++) {
        pc_pass pass = lowered->schedule->passes[i];
        if (pass.kind != PC_PASS_F) continue;
        pc_time before = found->start_ps[lowered->first[lowering_row(lowered, replica, i)]] -
                         lowering_ready_ps(lowered, replica, device, pass.chunk) - lowering_held_ps(lowered, device);
        if (before < begin) begin = before;
    }
    return pc_max(begin, 0);
}

static void read_stages(const lowering *lowered, const pc_simulation_result *found, pc_flows_result *result) {
    for (int d = 0; d < lowered->outline->devices; d++) {
        result->begin_ps[d] = PC_TIME_MAX;
        for (int r = 0; r < lowered->how.replicas; r++) {
            pc_time begin_ps = begin_of(lowered, found, r, d);
            if (begin_ps < result->begin_ps[d]) result->begin_ps[d] = begin_ps;
            result->step_end_ps[d] =
                pc_max(result->step_end_ps[d], found->end_ps[lowered->step[lowering_place(lowered, r, d)]]);
        }
    }
    for (int place = 0; place < lowered->how.replicas * lowered->outline->devices; place++) {
        int32_t last = lowered->overhead[place] == PC_NO_TASK ? lowered->step[place] : lowered->overhead[place];
        result->whole_ps = pc_max(result->whole_ps, found->end_ps[last]);
    }
}

/* The pass, of whichever replica, that waits in vain. */
static void read_stuck(const lowering *lowered, const pc_simulation_result *found, pc_flows_result *result) {
    int64_t rows = lowered->passes * lowered->how.replicas, row = 0;
    while (row < rows && lowered->first[row] != found->task) row++;
    int64_t position = row % lowered->passes;
    int device = pc_stage_of_position(lowered->schedule, position);
    pc_pass pass = lowered->schedule->passes[position];
    bool is_recomputed = pc_pass_is_recomputed(&lowered->index, device, pass);
    result->is_stuck = true;
    result->stuck = (pc_pass_stuck){
        .position = position,
        .asked_bytes = pc_costs_taken_at(&lowered->costs, lowered->schedule, device, position, is_recomputed),
        .level_bytes = found->level_bytes,
        .when_ps = found->time_ps};
}

pc_code lowering_read(const lowering *lowered, const pc_simulation_result *found, pc_flows_result *result) {
    pc_code code = PC_OK;
    if (!make_result(lowered, result)) code = pc_error_no_memory(lowered->error);
    if (!code && found->outcome == PC_OUTCOME_OUT_OF_MEMORY) {
        read_stuck(lowered, found, result);
        return PC_OK;
    }
    if (!code) {
        read_passes(lowered, found, result);
        read_stages(lowered, found, result);
        result->link_filled_ps = pc_lanes_filled_ps(&lowered->lanes);
    }
    for (int d = 0; !code && lowered->how.has_memory && d < lowered->outline->devices; d++) {
        result->peak_bytes[d] = found->peak_bytes[d];
        result->overdrawn_ps[d] = found->overdrawn_ps[d];
    }
    if (!code && lowered->how.with_trace) code = lowering_trace(lowered, found, &result->trace);
    if (code) pc_flows_free(result);
    return code;
}

void pc_flows_free(pc_flows_result *result) {
    pc_free(result->start_ps);
    pc_free(result->peak_bytes);
    pc_engine_trace_free(&result->trace);
    memset(result, 0, sizeof *result);
}
