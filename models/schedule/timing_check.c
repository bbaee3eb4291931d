/* Whether costs are such as the walk needs them: of the schedule's shape, given, and countable. */
#include "models/schedule/timing_private.h"

#include <inttypes.h>

pc_code pc_timing_check_shape(const pc_schedule *schedule, const pc_costs *costs, pc_error *error) {
    if (schedule->devices == costs->devices && schedule->chunks == costs->chunks) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "costs: for %d devices and %d chunks; expected the schedule's %d devices and %d chunks",
                        costs->devices, costs->chunks, schedule->devices, schedule->chunks);
}

pc_code pc_timing_check_given(const pc_schedule *schedule, const pc_costs *costs, pc_error *error) {
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            if (pc_costs_duration(costs, d, pass.chunk, pass.kind) == PC_TIME_NOT_GIVEN)
                return pc_error_set(error, PC_ERROR_INPUT,
                                    "%s: the time of %s of chunk %d on device %d is not given; expected one, for the "
                                    "schedule has such passes",
                                    schedule->name, pc_pass_kind_name((pc_pass_kind)pass.kind), pass.chunk, d);
        }
    return PC_OK;
}

/* A stage holds at most every microbatch of every chunk at once. Where no size is negative and so much can be counted,
 * levels need no check. */
static bool is_countable(const pc_schedule *schedule, const pc_costs *costs, int stage) {
    int64_t whole = 0, of_chunk;
    bool has_vocab = schedule->barriers != PC_BARRIERS_NONE;
    if (has_vocab && (costs->vocab.held_bytes < 0 ||
                      __builtin_mul_overflow(costs->vocab.held_bytes, (int64_t)schedule->microbatches, &whole)))
        return false;
    for (int chunk = 0; chunk < schedule->chunks; chunk++) {
        int64_t i = pc_costs_index(costs, stage, chunk), bytes = costs->activation_bytes[i];
        int64_t by_b = costs->activation_b_bytes[i], kept = costs->activation_kept_bytes[i];
        if (by_b < 0 || kept < 0 || by_b > bytes || kept > bytes) return false;
        if (__builtin_mul_overflow(bytes, (int64_t)schedule->microbatches, &of_chunk) ||
            __builtin_add_overflow(whole, of_chunk, &whole))
            return false;
    }
    return true;
}

static pc_code check_optional_times(const pc_costs *costs, int device, pc_error *error) {
    if (costs->hop_delay_ps && costs->hop_delay_ps[device] < 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "costs: device %d: a delay to the next of %" PRId64 " ps; expected none below zero", device,
                            costs->hop_delay_ps[device]);
    for (int c = 0; costs->ready_ps && c < costs->chunks; c++)
        if (pc_costs_ready(costs, device, c) < 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "costs: device %d: chunk %d ready at %" PRId64 " ps; expected none below zero", device,
                                c, pc_costs_ready(costs, device, c));
    return PC_OK;
}

pc_code pc_timing_check_costs(const pc_schedule *schedule, const pc_costs *costs, pc_error *error) {
    pc_code code = pc_timing_check_shape(schedule, costs, error);
    if (code) return code;
    if (costs->transfer.mode != PC_TRANSFER_DELAY)
        return pc_error_set(error, PC_ERROR_INPUT, "costs: transfers over links; expected delays");
    if (costs->transfer.delay_ps < 0)
        return pc_error_set(error, PC_ERROR_INPUT, "costs: a delay of %" PRId64 " ps; expected none below zero",
                            costs->transfer.delay_ps);
    if (costs->vocab.broadcast_ps < 0 || costs->vocab.exchange_ps < 0 || costs->vocab.reduce_ps < 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "costs: a collective of less than no time; expected none below zero");
    for (int d = 0; d < schedule->devices; d++) {
        code = check_optional_times(costs, d, error);
        if (code) return code;
        if (!is_countable(schedule, costs, d))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "costs: activations of device %d: expected those of all microbatches to be less than "
                                "2^63 bytes, and no part of them to be negative or more than the whole",
                                d);
    }
    return PC_OK;
}
