/* Two replicas that run opposite ways: the placement, the checker, and the closed forms of GEMS and Chimera. */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

/* ---- the placement ---- */

/* Whatever the placement: a microbatch finds every part once, and the chunk where it finds it holds that part. */
static void check_placement(pc_placement placement, int p, int v, int microbatch) {
    int seen[64] = {0}, visited = 0;
    for (int part = 0; part < pc_placement_parts(placement, p, v); part++) {
        int stage = pc_placement_stage(placement, p, part, microbatch);
        int chunk = pc_placement_chunk(placement, p, part, microbatch);
        assert_in_range(stage, 0, p - 1);
        assert_in_range(chunk, 0, v - 1);
        assert_int_equal(pc_placement_part(placement, p, stage, chunk), part);
        assert_true(pc_placement_visits(placement, chunk, microbatch));
        assert_int_equal(seen[stage * v + chunk]++, 0);
    }
    for (int chunk = 0; chunk < v; chunk++) visited += pc_placement_visits(placement, chunk, microbatch);
    assert_int_equal(visited, pc_placement_visited(placement, v));
}

static void test_placements(void **state) {
    (void)state;
    for (int p = 1; p <= 9; p++)
        for (int microbatch = 0; microbatch < 4; microbatch++) {
            check_placement(PC_PLACEMENT_LINEAR, p, 1, microbatch);
            check_placement(PC_PLACEMENT_BIDIRECTIONAL, p, 2, microbatch);
            for (int v = 1; v <= 4; v++) check_placement(PC_PLACEMENT_INTERLEAVED, p, v, microbatch);
            for (int v = 1; v <= 4; v++) check_placement(PC_PLACEMENT_V, p, v, microbatch);
        }
    /* Microbatch 2 enters on device 0 and microbatch 3 on the last. */
    assert_int_equal(pc_placement_stage(PC_PLACEMENT_BIDIRECTIONAL, 5, 0, 2), 0);
    assert_int_equal(pc_placement_stage(PC_PLACEMENT_BIDIRECTIONAL, 5, 0, 3), 4);
    assert_int_equal(pc_placement_part(PC_PLACEMENT_BIDIRECTIONAL, 5, 1, 1), 3);
}

/* ---- the checker ---- */

/* One device, one microbatch: F and BW in this chunk. */
static pc_code check_chunk(int chunks, int16_t chunk, pc_error *error) {
    const int64_t lengths[] = {2};
    pc_schedule schedule;
    assert_int_equal(pc_schedule_create("x", 1, 1, chunks, PC_PLACEMENT_BIDIRECTIONAL, lengths, &schedule, NULL),
                     PC_OK);
    schedule.passes[0] = (pc_pass){0, chunk, PC_PASS_F};
    schedule.passes[1] = (pc_pass){0, chunk, PC_PASS_BW};
    pc_code code = pc_schedule_check(&schedule, error);
    pc_schedule_free(&schedule);
    return code;
}

static void test_checker(void **state) {
    (void)state;
    pc_error error = {0};
    assert_int_equal(check_chunk(2, 0, &error), PC_OK);
    assert_int_equal(check_chunk(2, 1, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "schedule: stage 0, microbatch 0, chunk 0: F is missing; expected F once and either "
                        "BW, or B and W, once");
    assert_int_equal(check_chunk(3, 0, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "schedule: placement bidirectional with 3 chunks; expected 2, one a replica");
}

/* A microbatch that goes both ways. */
static void test_checker_finds_the_wrong_replica(void **state) {
    (void)state;
    const int64_t lengths[] = {4};
    pc_schedule schedule;
    pc_error error = {0};
    assert_int_equal(pc_schedule_create("x", 1, 1, 2, PC_PLACEMENT_BIDIRECTIONAL, lengths, &schedule, NULL), PC_OK);
    for (int16_t i = 0; i < 4; i++) schedule.passes[i] = (pc_pass){0, i / 2, i % 2 ? PC_PASS_BW : PC_PASS_F};
    assert_int_equal(pc_schedule_check(&schedule, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "schedule: stage 0, microbatch 0, chunk 1: has passes; expected none, for that "
                                       "microbatch goes through the other replica (placement bidirectional)");
    pc_schedule_free(&schedule);
}

static void test_csv_knows_one_replica(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_error error = {0};
    char text[16] = "";
    assert_int_equal(pc_schedule_generate(pc_generator_find("gems"), 2, 2, 0, &schedule, NULL), PC_OK);
    FILE *stream = fmemopen(text, sizeof text, "w");
    assert_int_equal(pc_schedule_write_torch_csv(&schedule, stream, &error), PC_ERROR_INPUT);
    fclose(stream);
    assert_string_equal(text, "");
    assert_string_equal(error.message,
                        "gems: has two replicas of the model; expected one, which PyTorch's runtime knows");
    pc_schedule_free(&schedule);
}

/* ---- closed forms ---- */

/* Times of F and BW, in any unit. */
static const struct { pc_time f, bw; } times[] = {{1, 1}, {1, 2}, {2, 3}, {3, 2}, {5, 1}, {1, 7}};
enum { TIMES = sizeof times / sizeof *times };

static pc_replay replay_of(const char *name, int p, int m, pc_time f, pc_time bw) {
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    pc_error error = {0};
    if (pc_schedule_generate(pc_generator_find(name), p, m, 0, &schedule, &error)) fail_msg("%s", error.message);
    assert_int_equal(pc_costs_create(p, 2, &costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)p * 2; i++) {
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_F] = f;
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = bw;
        costs.activation_bytes[i] = 1;
    }
    if (pc_replay_run(&schedule, &costs, NULL, &replay, &error)) fail_msg("%s", error.message);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
    return replay;
}

/* Microbatch 0 goes in, p F, and m-1 times the next one turns. A turn: the backward passes of i start on the device d
 * where the F of i ended and go away from it; F of i+1 starts there BW later and follows them. On the k-th device after
 * d it starts once both the F before it and the backward pass here are done. So it ends on the last one, where the next
 * turn is, BW + F + (p-1) max(F, BW) after the turn began. At last the p backward passes of m-1. The last device to be
 * done is device 0 where m-1 is even, and it was the first to start. Otherwise device d starts at d F and ends (p-1-d)
 * BW before the end, and the one with the longest span loses (p-1) min(F, BW). */
static void check_gems(int p, int m, pc_time f, pc_time bw) {
    pc_replay replay = replay_of("gems", p, m, f, bw);
    int64_t makespan = (m - 1) * (f + bw + (p - 1) * pc_max(f, bw)) + p * (f + bw);
    assert_int_equal(replay.makespan_ps, makespan);
    assert_int_equal(replay.span_ps, makespan - (m % 2 == 0 ? (p - 1) * pc_min(f, bw) : 0));
    for (int d = 0; d < p; d++) assert_int_equal(replay.device_peak_bytes[d], 1);
    pc_replay_free(&replay);
}

static void test_gems(void **state) {
    (void)state;
    for (int p = 1; p <= 12; p++)
        for (int m = 1; m <= 4 * p; m++)
            for (int t = 0; t < TIMES; t++) check_gems(p, m, times[t].f, times[t].bw);
}

/* Chimera of even p, m = k p. Count in slots of one pass each (F = BW). The first pass of a unit of p microbatches is
 * in slot 0 (device 0, and p-1 for the other way). The last is in slot 3p-3, the backward pass that comes out last.
 * That makes 3p-2 slots for 2p passes of a device, p-2 idle. The next unit starts 2p slots after and finds them free,
 * so that k units idle no more. For other times, p-2 times the longer kind, and |BW-F| more for each of them and each
 * further unit: that is what the replay gives, and stands here so that it stays. For odd p, p+1 in place of p. Device d
 * is in the first half of the one replica, and holds all p/2 of its microbatches; the other has 1 + min(d, p-1-d) parts
 * from there on, and holds as many. */
static void check_chimera(int p, int k, pc_time f, pc_time bw) {
    int even = p + p % 2, m = k * even;
    pc_replay replay = replay_of("chimera", p, m, f, bw);
    int64_t longer = pc_max(f, bw), idle = (even - 2) * (longer + (k - 1) * (longer - pc_min(f, bw)));
    assert_int_equal(replay.makespan_ps, m * (f + bw) + idle);
    assert_int_equal(replay.span_ps, replay.makespan_ps);
    for (int d = 0; d < p; d++)
        assert_int_equal(replay.device_peak_bytes[d], pc_min(p, even / 2 + 1 + pc_min(d, p - 1 - d)));
    pc_replay_free(&replay);
}

static void test_chimera(void **state) {
    (void)state;
    for (int p = 1; p <= 16; p++)
        for (int k = 1; k <= 5; k++)
            for (int t = 0; t < TIMES; t++) check_chimera(p, k, times[t].f, times[t].bw);
}

/* A unit that is not full: no device holds more than p, nor more than there are. */
static void test_chimera_never_holds_more_than_p(void **state) {
    (void)state;
    for (int p = 1; p <= 12; p++)
        for (int m = 1; m <= 4 * p; m++) {
            pc_replay replay = replay_of("chimera", p, m, 1, 2);
            assert_true(replay.peak_bytes <= pc_min(p, m));
            pc_replay_free(&replay);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placements),
        cmocka_unit_test(test_checker),
        cmocka_unit_test(test_checker_finds_the_wrong_replica),
        cmocka_unit_test(test_csv_knows_one_replica),
        cmocka_unit_test(test_gems),
        cmocka_unit_test(test_chimera),
        cmocka_unit_test(test_chimera_never_holds_more_than_p),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
