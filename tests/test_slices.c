/* Schedules of slices: a microbatch cut along its sequence (Seq1F1B, arXiv 2406.03488): the checker, and the closed
 * forms of span and memory. */
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/timing.h"

#include <string.h>

/* ---- the order of slices ---- */

/* One device, one microbatch of two slices, in this order. */
static pc_code check_order(const pc_pass *passes, int count, pc_error *error) {
    const int64_t lengths[] = {count};
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay = {0};
    pc_error words = {0};
    assert_int_equal(pc_schedule_create("x", 1, 1, 2, PC_PLACEMENT_SLICES, lengths, &schedule, NULL), PC_OK);
    memcpy(schedule.passes, passes, (size_t)count * sizeof *passes);
    pc_code code = pc_schedule_check(&schedule, error);
    assert_int_equal(pc_costs_create(1, 2, &costs, NULL), PC_OK);
    for (int i = 0; i < 2 * PC_PASS_KINDS; i++) costs.duration_ps[i] = 1;
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, &words), code); /* the walk finds the same */
    if (code) assert_string_equal(words.message, error->message);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
    return code;
}

static void test_order(void **state) {
    (void)state;
    pc_error error = {0};
    const pc_pass fine[] = {{0, 0, PC_PASS_F}, {0, 1, PC_PASS_F}, {0, 1, PC_PASS_BW}, {0, 0, PC_PASS_BW}};
    const pc_pass late_f[] = {{0, 1, PC_PASS_F}, {0, 0, PC_PASS_F}, {0, 1, PC_PASS_BW}, {0, 0, PC_PASS_BW}};
    const pc_pass early_b[] = {{0, 0, PC_PASS_F}, {0, 1, PC_PASS_F}, {0, 0, PC_PASS_BW}, {0, 1, PC_PASS_BW}};
    const pc_pass split[] = {{0, 0, PC_PASS_F}, {0, 1, PC_PASS_F}, {0, 1, PC_PASS_B},
                             {0, 0, PC_PASS_B}, {0, 0, PC_PASS_W}, {0, 1, PC_PASS_W}};
    assert_int_equal(check_order(fine, 4, &error), PC_OK);
    assert_int_equal(check_order(split, 6, &error), PC_OK); /* W of slices in any order */
    assert_int_equal(check_order(late_f, 4, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "F0.1 waits for F0.0 of stage 0, place 1, which comes later on that stage"));
    assert_int_equal(check_order(early_b, 4, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "BW0.0 waits for BW0.1 of stage 0, place 3"));
}

/* ---- closed forms ---- */

enum { F_PS = 1000, B_PS = 1700, W_PS = 1000, SLICE_BYTES = 1 };

/* Slices that all take as long, and transfers no time. */
static void equal_costs(int p, int k, pc_time f, pc_time b, pc_time w, pc_costs *costs) {
    assert_int_equal(pc_costs_create(p, k, costs, NULL), PC_OK);
    for (int i = 0; i < p * k; i++) {
        pc_time *x = &costs->duration_ps[i * PC_PASS_KINDS];
        x[PC_PASS_F] = f;
        x[PC_PASS_B] = b;
        x[PC_PASS_W] = w;
        x[PC_PASS_BW] = b;
        costs->activation_bytes[i] = SLICE_BYTES;
    }
}

static void replay_of(const char *name, int p, int m, int k, pc_costs *costs, pc_replay *replay) {
    const pc_generator *generator = pc_generator_find(name);
    pc_generate_request request = {.devices = p, .microbatches = m, .chunks = k};
    pc_schedule schedule;
    assert_non_null(generator);
    assert_int_equal(pc_generate(generator, &request, &schedule, NULL, NULL), PC_OK);
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    assert_int_equal(pc_replay_run(&schedule, costs, NULL, replay, NULL), PC_OK);
    pc_schedule_free(&schedule);
    pc_costs_free(costs);
}

/* 1F1B and GPipe: mk units of f + b on the last stage, behind p-1 F and before p-1 B. Stage d of 1F1B holds its warm-up
 * and one more, of all that there are; of GPipe all. */
static void check_span(int p, int m, int k) {
    pc_costs costs;
    pc_replay replay;
    equal_costs(p, k, F_PS, B_PS, 0, &costs);
    replay_of("seq-1f1b", p, m, k, &costs, &replay);
    assert_int_equal(replay.makespan_ps, (int64_t)(m * k + p - 1) * (F_PS + B_PS));
    for (int d = 0; d < p; d++) {
        int units = p - d + k - 1 < m * k ? p - d + k - 1 : m * k;
        assert_int_equal(replay.device_peak_bytes[d], units * SLICE_BYTES);
    }
    pc_replay_free(&replay);
    equal_costs(p, k, F_PS, B_PS, 0, &costs);
    replay_of("seq-gpipe", p, m, k, &costs, &replay);
    assert_int_equal(replay.makespan_ps, (int64_t)(m * k + p - 1) * (F_PS + B_PS));
    assert_int_equal(replay.peak_bytes, m * k * SLICE_BYTES);
    pc_replay_free(&replay);
}

/* ZB-H1 of F = B = W and 2p units at least: on the last stage mk of the three, behind p-1 F and before p-1 B, in which
 * it does p-1 of the W put off. */
static void check_zb(int p, int m, int k) {
    pc_costs costs;
    pc_replay replay;
    equal_costs(p, k, F_PS, F_PS, F_PS, &costs);
    replay_of("seq-zb-h1", p, m, k, &costs, &replay);
    assert_int_equal(replay.makespan_ps, (int64_t)(3 * m * k + p - 1) * F_PS);
    for (int d = 0; d < p; d++) assert_int_equal(replay.device_peak_bytes[d], (p + k - 1) * SLICE_BYTES);
    pc_replay_free(&replay);
}

/* ---- several parts a stage ---- */

enum { V_MAX = 3 };

/* In groups of whole microbatches: as many as have p slices or, of m, all. The least that leaves no smaller rest. */
static int group_of(int p, int m, int k) {
    int group = 1;
    while (group < m && (group * k < p || (m % group != 0 && m % group * k < p))) group++;
    return group * k;
}

/* As interleaved 1F1B's: the last stage works mkv units of f + b, behind p-1 F and before p-1 BW. Stage d holds its
 * warm-up and one more. ZB of F = B = W: three passes a unit, of which p-1 W put off fill the end but for one each. */
static void check_parts(const char *name, int p, int m, int v, int k) {
    bool splits = strcmp(name, "seq-zb-interleaved") == 0;
    int n = group_of(p, m, k), units = m * k * v;
    pc_generate_request request = {.devices = p, .microbatches = m, .chunks = v * k, .slices = k};
    pc_costs costs;
    pc_schedule schedule;
    pc_replay replay;
    equal_costs(p, v * k, F_PS, splits ? F_PS : B_PS, splits ? F_PS : 0, &costs);
    assert_int_equal(pc_generate(pc_generator_find(name), &request, &schedule, NULL, NULL), PC_OK);
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    pc_time all = splits ? (int64_t)(3 * units + p - 1) * F_PS : (int64_t)(units + p - 1) * (F_PS + B_PS);
    bool is_full = n >= p && (!splits || units >= 3 * (p + (v - 1) * n + k));
    if (is_full) assert_int_equal(replay.makespan_ps, all);
    for (int d = 0; d < p; d++) {
        int held = splits ? p + (v - 1) * n + k - 1 : (v > 1 ? 2 : 1) * (p - 1 - d) + (v - 1) * n + k;
        if (is_full || !splits) assert_int_equal(replay.device_peak_bytes[d], (held < units ? held : units));
    }
    pc_replay_free(&replay);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
}

static void test_parts(void **state) {
    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 9; m++)
            for (int v = 1; v <= V_MAX; v++)
                for (int k = 1; k <= 6; k++) {
                    check_parts("seq-1f1b-interleaved", p, m, v, k);
                    check_parts("seq-zb-interleaved", p, m, v, k);
                }
}

/* p = 2, v = 2, k = 2, m = 1: chunks 0 and 1 are slices of part d, 2 and 3 of part 2 + d. The last stage has done F of
 * all four before the first BW, that of the last slice of the last part. */
static void test_order_of_parts(void **state) {
    (void)state;
    static const int chunks[] = {0, 1, 2, 3, 3, 2, 1, 0};
    pc_generate_request request = {.devices = 2, .microbatches = 1, .chunks = 4, .slices = 2};
    pc_schedule schedule;
    assert_int_equal(pc_generate(pc_generator_find("seq-1f1b-interleaved"), &request, &schedule, NULL, NULL), PC_OK);
    assert_int_equal(schedule.placement, PC_PLACEMENT_OF_SLICES(2));
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 8; i++) assert_int_equal(schedule.passes[schedule.offsets[d] + i].chunk, chunks[i]);
    assert_int_equal(pc_placement_part(schedule.placement, 2, 1, 3), 3);
    assert_int_equal(pc_placement_parts(schedule.placement, 2, 4), 4);
    assert_int_equal(pc_placement_chunk(schedule.placement, 2, 3, 0), 2);
    pc_schedule_free(&schedule);
}

/* What a request leaves open; and what cannot be. */
static void test_shapes(void **state) {
    (void)state;
    const pc_generator *generator = pc_generator_find("seq-1f1b-interleaved");
    pc_generate_request request = {.devices = 2, .microbatches = 4, .chunks = 6, .slices = 4};
    pc_error error = {0};
    pc_schedule schedule;
    assert_int_equal(pc_generator_chunks(generator, 0, 0), 8);
    assert_int_equal(pc_generator_slices(generator, 0, 0), 4);
    assert_int_equal(pc_generator_chunks(generator, 0, 3), 6);
    assert_int_equal(pc_generator_slices(generator, 6, 0), 2); /* the most of the usual 4 that divide them */
    assert_int_equal(pc_generator_placement(generator, 4, 4), PC_PLACEMENT_SLICES);
    assert_int_equal(pc_generator_placement(pc_generator_find("1f1b"), 1, 0), PC_PLACEMENT_LINEAR);
    assert_int_equal(pc_generate(generator, &request, &schedule, NULL, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "6 chunks of 4 slices; expected a multiple of the slices"));
    for (int k = 1; k <= 4; k++) assert_true(pc_placement_is_known(PC_PLACEMENT_OF_SLICES(k), 12));
    assert_false(pc_placement_is_known(PC_PLACEMENT_OF_SLICES(5), 12));
    assert_false(pc_placement_is_known(PC_PLACEMENT_OF_SLICES(2) + 1, 12));
    assert_false(pc_placement_is_known(-12, 12));
}

static void test_closed_forms(void **state) {
    (void)state;
    for (int p = 1; p <= 9; p++)
        for (int m = 1; m <= 9; m++)
            for (int k = 1; k <= 6; k++) {
                check_span(p, m, k);
                if (m * k >= 2 * p + k) check_zb(p, m, k);
            }
}

/* One slice is 1F1B, GPipe and ZB-H1, pass by pass. */
static void test_one_slice(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"seq-1f1b", "1f1b"},
                                           {"seq-gpipe", "gpipe"},
                                           {"seq-zb-h1", "zb-h1"},
                                           {"seq-1f1b-interleaved", "1f1b"},
                                           {"seq-zb-interleaved", "zb-h1"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        pc_schedule cut, whole;
        assert_int_equal(pc_schedule_generate(pc_generator_find(pairs[i][0]), 5, 9, 1, &cut, NULL), PC_OK);
        assert_int_equal(pc_schedule_generate(pc_generator_find(pairs[i][1]), 5, 9, 1, &whole, NULL), PC_OK);
        assert_int_equal(cut.offsets[5], whole.offsets[5]);
        assert_memory_equal(cut.passes, whole.passes, (size_t)cut.offsets[5] * sizeof *cut.passes);
        pc_schedule_free(&cut);
        pc_schedule_free(&whole);
    }
}

/* The last slice's B is the first, and needs the F of all: with p = 1 and slices of 1, 2 and 4 in F, twice that in B,
 * the trace is F 0 1 3 7, B 7 15 19 21. */
static void test_unequal_slices(void **state) {
    (void)state;
    static const pc_time starts[] = {0, 1, 3, 7, 15, 19};
    pc_costs costs;
    pc_schedule schedule;
    pc_timing *timing;
    pc_timing_result found;
    assert_int_equal(pc_costs_create(1, 3, &costs, NULL), PC_OK);
    for (int j = 0; j < 3; j++) {
        costs.duration_ps[j * PC_PASS_KINDS + PC_PASS_F] = 1 << j;
        costs.duration_ps[j * PC_PASS_KINDS + PC_PASS_BW] = 2 << j;
    }
    assert_int_equal(pc_schedule_generate(pc_generator_find("seq-1f1b"), 1, 1, 3, &schedule, NULL), PC_OK);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run(timing, &schedule, &costs, &found, NULL), PC_OK);
    for (int i = 0; i < 6; i++) assert_int_equal(found.start_ps[i], starts[i]);
    assert_int_equal(found.totals.makespan_ps, 21);
    pc_timing_free(timing);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_one_slice), cmocka_unit_test(test_unequal_slices),
        cmocka_unit_test(test_parts),     cmocka_unit_test(test_order_of_parts),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
