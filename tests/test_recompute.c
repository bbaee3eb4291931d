/* Recomputation: what F keeps, what R takes, and the closed forms of 1F1B with it. */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

enum { WHOLE = 34, KEPT = 2 };

static pc_costs make_costs(int p, pc_time f, pc_time bw) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, 1, &costs, NULL), PC_OK);
    for (int i = 0; i < p; i++) {
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_F] = costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_R] = f;
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = bw;
        costs.activation_bytes[i] = WHOLE;
        costs.activation_kept_bytes[i] = KEPT;
    }
    return costs;
}

static pc_schedule make_schedule(const char *name, int p, int m) {
    pc_schedule schedule;
    pc_error error = {0};
    if (pc_schedule_generate(pc_generator_find(name), p, m, 0, &schedule, &error)) fail_msg("%s", error.message);
    return schedule;
}

/* The last stage has F, R and BW of every microbatch and never waits: m(2F+BW). Before it, p-1 F; after it the last
 * backward pass goes up p-1 stages, whose R are done while it is on its way. Stage 0 starts first and ends last.
 * Stage d keeps the inputs of the p-1-d F of its warm-up and of one more, and while it is at a BW the rest of one. */
static void check_1f1b_r(int p, int m, pc_time f, pc_time bw) {
    pc_schedule schedule = make_schedule("1f1b-r", p, m);
    pc_costs costs = make_costs(p, f, bw);
    pc_replay replay;
    int64_t peaks[16];
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    assert_int_equal(replay.makespan_ps, (p - 1) * (f + bw) + m * (2 * f + bw));
    assert_int_equal(replay.span_ps, replay.makespan_ps);
    assert_int_equal(replay.device_busy_ps[0], m * (2 * f + bw));
    assert_int_equal(pc_schedule_peaks(&schedule, &costs, peaks, NULL), PC_OK);
    for (int d = 0; d < p; d++) {
        assert_int_equal(peaks[d], pc_min(m, p - d) * KEPT + (WHOLE - KEPT));
        assert_int_equal(replay.device_peak_bytes[d], peaks[d]);
    }
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

static void test_1f1b_r(void **state) {
    (void)state;
    for (int p = 1; p <= 12; p++)
        for (int m = 1; m <= 4 * p; m++) {
            check_1f1b_r(p, m, 1, 2);
            check_1f1b_r(p, m, 1, 1);
            check_1f1b_r(p, m, 3, 5);
            check_1f1b_r(p, m, 3, 1);
        }
}

/* F and BW stand in the order of 1F1B, and every BW has its R right before it. */
static void test_order(void **state) {
    (void)state;
    pc_schedule plain = make_schedule("1f1b", 5, 11), with_r = make_schedule("1f1b-r", 5, 11);
    for (int d = 0; d < 5; d++) {
        const pc_pass *next = with_r.passes + with_r.offsets[d];
        for (int64_t i = plain.offsets[d]; i < plain.offsets[d + 1]; i++) {
            pc_pass expected = plain.passes[i], r = expected;
            r.kind = PC_PASS_R;
            if (expected.kind == PC_PASS_BW) assert_memory_equal(next++, &r, sizeof r);
            assert_memory_equal(next++, &expected, sizeof expected);
        }
        assert_ptr_equal(next, with_r.passes + with_r.offsets[d + 1]);
    }
    pc_schedule_free(&plain);
    pc_schedule_free(&with_r);
}

/* One of two microbatches recomputes: F0 F1 R1 BW1 BW0 on one stage hold 34, 36, 68, 68, 34. What the costs keep
 * concerns no F that has no R. */
static void test_each_microbatch_of_its_own(void **state) {
    (void)state;
    static const pc_pass order[] = {
        {0, 0, PC_PASS_F}, {1, 0, PC_PASS_F}, {1, 0, PC_PASS_R}, {1, 0, PC_PASS_BW}, {0, 0, PC_PASS_BW}};
    static const int64_t lengths[] = {5}, levels[] = {34, 36, 68, 34, 0};
    pc_schedule schedule;
    pc_replay replay;
    pc_costs costs = make_costs(1, 1, 2);
    assert_int_equal(pc_schedule_create("mixed", 1, 2, 1, PC_PLACEMENT_LINEAR, lengths, &schedule, NULL), PC_OK);
    memcpy(schedule.passes, order, sizeof order);
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    assert_int_equal(pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, NULL), PC_OK);
    assert_int_equal(replay.peak_bytes, 68);
    assert_int_equal(replay.trace.level_count, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(replay.trace.level_bytes[i], levels[i]);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* Two stages, two microbatches: stage 0 keeps 2 and 2, and its first R asks for 32 more, at the end of the two F. */
static void test_r_out_of_memory(void **state) {
    (void)state;
    pc_schedule schedule = make_schedule("1f1b-r", 2, 2);
    pc_costs costs = make_costs(2, 10, 20);
    pc_replay replay;
    int64_t limit_bytes[] = {36, 36};
    const pc_replay_options options = {.memory_limit = {limit_bytes}};
    assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
    assert_false(replay.out_of_memory);
    pc_replay_free(&replay);
    limit_bytes[0] = 35;
    assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
    assert_true(replay.out_of_memory);
    assert_int_equal(replay.oom.device, 0);
    assert_int_equal(replay.oom.pass.kind, PC_PASS_R);
    assert_int_equal(replay.oom.time_ps, 20);
    assert_int_equal(replay.oom.level_bytes, 4);
    assert_int_equal(replay.oom.requested_bytes, 32);
    limit_bytes[0] = 3; /* and now already the second F */
    pc_replay_free(&replay);
    assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
    assert_int_equal(replay.oom.pass.kind, PC_PASS_F);
    assert_int_equal(replay.oom.requested_bytes, 2);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

static void test_csv_knows_no_r(void **state) {
    (void)state;
    pc_error error = {0};
    pc_schedule schedule = make_schedule("1f1b-r", 2, 2);
    assert_int_equal(pc_schedule_write_torch_csv(&schedule, stdout, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "1f1b-r: has recompute passes; expected only F, B, W and BW, which PyTorch's "
                                       "runtime knows");
    pc_schedule_free(&schedule);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_1f1b_r),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_each_microbatch_of_its_own),
        cmocka_unit_test(test_r_out_of_memory),
        cmocka_unit_test(test_csv_knows_no_r),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
