#include "tests/same_replay.h"

void check_column(const void *a, const void *b, int64_t count, size_t size) {
    if (count > 0) assert_memory_equal(a, b, (size_t)count * size);
}

#define CHECK_COLUMN(a, b, field, count) check_column((a)->field, (b)->field, (count), sizeof *(a)->field)

void check_same_transfers(const pc_replay_trace *a, const pc_replay_trace *b) {
    assert_int_equal(a->transfer_count, b->transfer_count);
    CHECK_COLUMN(a, b, transfer_from, a->transfer_count);
    CHECK_COLUMN(a, b, transfer_to, a->transfer_count);
    CHECK_COLUMN(a, b, transfer_pass, a->transfer_count);
    CHECK_COLUMN(a, b, transfer_start_ps, a->transfer_count);
    CHECK_COLUMN(a, b, transfer_end_ps, a->transfer_count);
}

void check_same_trace(const pc_replay_trace *a, const pc_replay_trace *b) {
    assert_int_equal(a->pass_count, b->pass_count);
    assert_int_equal(a->level_count, b->level_count);
    CHECK_COLUMN(a, b, pass_device, a->pass_count);
    CHECK_COLUMN(a, b, pass, a->pass_count);
    CHECK_COLUMN(a, b, pass_start_ps, a->pass_count);
    CHECK_COLUMN(a, b, pass_end_ps, a->pass_count);
    CHECK_COLUMN(a, b, level_device, a->level_count);
    CHECK_COLUMN(a, b, level_time_ps, a->level_count);
    CHECK_COLUMN(a, b, level_bytes, a->level_count);
    check_same_transfers(a, b);
}

static void check_same_oom(const pc_out_of_memory *a, const pc_out_of_memory *b) {
    assert_int_equal(a->device, b->device);
    assert_memory_equal(&a->pass, &b->pass, sizeof a->pass);
    assert_int_equal(a->time_ps, b->time_ps);
    assert_int_equal(a->requested_bytes, b->requested_bytes);
    assert_int_equal(a->level_bytes, b->level_bytes);
    assert_int_equal(a->capacity_bytes, b->capacity_bytes);
}

void check_same_replay(const pc_replay *a, const pc_replay *b) {
    assert_int_equal(a->devices, b->devices);
    assert_int_equal(a->span_ps, b->span_ps);
    assert_int_equal(a->makespan_ps, b->makespan_ps);
    assert_memory_equal(&a->bubble_rate_span, &b->bubble_rate_span, sizeof(double));
    assert_memory_equal(&a->bubble_rate_makespan, &b->bubble_rate_makespan, sizeof(double));
    CHECK_COLUMN(a, b, device_start_ps, a->devices);
    CHECK_COLUMN(a, b, device_end_ps, a->devices);
    CHECK_COLUMN(a, b, device_busy_ps, a->devices);
    CHECK_COLUMN(a, b, device_peak_bytes, a->devices);
    assert_int_equal(a->peak_bytes, b->peak_bytes);
    assert_true(a->trace_hash == b->trace_hash);
    assert_int_equal(a->out_of_memory, b->out_of_memory);
    check_same_oom(&a->oom, &b->oom);
    check_same_trace(&a->trace, &b->trace);
}
