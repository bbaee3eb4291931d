#include "models/schedule/pass_times.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

pc_code pc_pass_times_create(int devices, int chunks, pc_placement placement, pc_pass_times *times, pc_error *error) {
    pc_pass_times made = {.devices = devices,
                          .chunks = chunks,
                          .placement = placement,
                          .transfer_ps = PC_TIME_NOT_GIVEN,
                          .transfer_bytes = PC_BYTES_NOT_GIVEN};
    pc_code code = pc_schedule_check_size(devices, 1, chunks, error);
    if (code) return code;
    made.parts = pc_alloc((size_t)devices * (size_t)chunks, sizeof *made.parts);
    made.held_bytes = pc_alloc((size_t)devices, sizeof *made.held_bytes);
    if (!made.parts || !made.held_bytes) {
        pc_pass_times_free(&made);
        return pc_error_no_memory(error);
    }
    for (int64_t i = 0; i < (int64_t)devices * chunks; i++) {
        made.parts[i].activation_bytes = made.parts[i].b_bytes = PC_BYTES_NOT_GIVEN;
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) made.parts[i].time_ps[kind] = PC_TIME_NOT_GIVEN;
    }
    for (int d = 0; d < devices; d++) made.held_bytes[d] = PC_BYTES_NOT_GIVEN;
    *times = made;
    return PC_OK;
}

void pc_pass_times_free(pc_pass_times *times) {
    pc_free(times->parts);
    pc_free(times->held_bytes);
    memset(times, 0, sizeof *times);
}

bool pc_pass_times_have_activations(const pc_pass_times *times) {
    for (int64_t i = 0; i < (int64_t)times->devices * times->chunks; i++)
        if (times->parts[i].activation_bytes == PC_BYTES_NOT_GIVEN) return false;
    return true;
}

double pc_pass_times_scatter(const pc_pass_times *times) {
    double variance = 0.0, all = 0.0;
    for (int64_t i = 0; i < (int64_t)times->devices * times->chunks; i++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            const pc_part_times *part = &times->parts[i];
            if (part->time_ps[kind] <= 0) continue;
            variance += part->scatter[kind] * part->scatter[kind] * (double)part->time_ps[kind];
            all += (double)part->time_ps[kind];
        }
    return all > 0.0 ? sqrt(variance / all) : 0.0;
}

/* ---- the shape of a schedule ---- */

pc_code pc_pass_times_suit(const pc_pass_times *times, int devices, int chunks, pc_placement placement,
                           pc_error *error) {
    if (times->devices != devices)
        return pc_error_set(error, PC_ERROR_INPUT, "times of %d stages for %d devices; expected one stage a device",
                            times->devices, devices);
    if (!pc_placement_is_plain(placement))
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "times of measured passes, and placement %s; expected a schedule without replicas and slices",
            pc_placement_name(placement));
    if (chunks % times->chunks == 0 || times->chunks % chunks == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "times of %d chunks a stage for a schedule with %d; expected one number to divide the other",
                        times->chunks, chunks);
}

/* The part of the model of this number, as it was measured. */
static const pc_part_times *measured_part(const pc_pass_times *times, int part) {
    int stage = pc_placement_stage(times->placement, times->devices, part, 0);
    return pc_pass_times_at(times, stage, pc_placement_chunk(times->placement, times->devices, part, 0));
}

/* What a schedule's part takes of the measured ones: some, or the share of one from `share` / `shares` on. */
typedef struct part_share {
    int first, count, share, shares;
} part_share;

static part_share share_of_part(int part, int parts, int measured) {
    if (parts <= measured) return (part_share){part * (measured / parts), measured / parts, 0, 1};
    int shares = parts / measured;
    return (part_share){part / shares, 1, part % shares, shares};
}

static bool add_share(int64_t whole, const part_share *share, int64_t *sum) {
    __int128 to = (__int128)whole * (share->share + 1) / share->shares,
             from = (__int128)whole * share->share / share->shares;
    return !__builtin_add_overflow(*sum, (int64_t)(to - from), sum);
}

/* BW is B + W, and R is F, where they were not measured. */
static pc_time time_of(const pc_part_times *part, int kind) {
    pc_time time = part->time_ps[kind], sum;
    if (time != PC_TIME_NOT_GIVEN) return time;
    if (kind == PC_PASS_R) return part->time_ps[PC_PASS_F];
    pc_time b = part->time_ps[PC_PASS_B], w = part->time_ps[PC_PASS_W];
    if (kind != PC_PASS_BW || b == PC_TIME_NOT_GIVEN || w == PC_TIME_NOT_GIVEN) return PC_TIME_NOT_GIVEN;
    return pc_time_add(b, w, &sum) ? sum : PC_TIME_NOT_GIVEN;
}

/* Of one kind over the measured parts; false if it is too much. */
static bool sum_times(const pc_pass_times *times, const part_share *share, int kind, pc_time *sum) {
    *sum = 0;
    for (int i = 0; i < share->count; i++) {
        pc_time time = time_of(measured_part(times, share->first + i), kind);
        if (time == PC_TIME_NOT_GIVEN) return *sum = PC_TIME_NOT_GIVEN, true;
        if (!add_share(time, share, sum)) return false;
    }
    return true;
}

/* What nobody gave is zero: no memory is counted. */
static bool sum_bytes(const pc_pass_times *times, const part_share *share, int64_t *taken, int64_t *b_bytes) {
    *taken = *b_bytes = 0;
    for (int i = 0; i < share->count; i++) {
        const pc_part_times *part = measured_part(times, share->first + i);
        int64_t all = part->activation_bytes == PC_BYTES_NOT_GIVEN ? 0 : part->activation_bytes;
        int64_t by_b = part->b_bytes == PC_BYTES_NOT_GIVEN ? 0 : part->b_bytes;
        if (!add_share(all, share, taken) || !add_share(by_b < all ? by_b : all, share, b_bytes)) return false;
    }
    if (*b_bytes > *taken) *b_bytes = *taken;
    return true;
}

pc_code pc_pass_times_fill(const pc_pass_times *times, pc_placement placement, pc_costs *costs, pc_error *error) {
    bool is_counted = true;
    int parts = costs->devices * costs->chunks, measured = times->devices * times->chunks;
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++) {
            int64_t i = pc_costs_index(costs, d, c);
            part_share share = share_of_part(pc_placement_part(placement, costs->devices, d, c), parts, measured);
            for (int kind = 0; kind < PC_PASS_S; kind++)
                is_counted =
                    sum_times(times, &share, kind, &costs->duration_ps[i * PC_PASS_KINDS + kind]) && is_counted;
            is_counted =
                sum_bytes(times, &share, &costs->activation_bytes[i], &costs->activation_b_bytes[i]) && is_counted;
        }
    if (times->transfer_ps != PC_TIME_NOT_GIVEN)
        costs->transfer = (pc_transfer){.mode = PC_TRANSFER_DELAY, .delay_ps = times->transfer_ps};
    if (is_counted) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "times or bytes too large to count; expected less than 2^63 in all");
}
