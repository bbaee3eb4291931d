/* Files of measured passes: the same in YAML, JSON and CSV; written and read back; refusals; and times laid over the
 * parts of schedules with other chunks. */
#include "engine/alloc.h"
#include "models/schedule/pass_times.h"
#include "scenarios/pass_times_file.h"
#include "tests/support.h"

static const char yaml[] =
    "pass_times: ours\n"
    "placement: v\n"
    "transfer: 0.4 ms\n"
    "transfer_size: 32 MiB\n"
    "stages:\n"
    "  - {stage: 0, chunk: 0, F: 10 ms, B: 11 ms, W: 7 ms, F_scatter: 0.02, F_count: 8, activation: 1 "
    "GiB, freed_by_b: 256 MiB, held: 30 GiB}\n"
    "  - {stage: 1, chunk: 0, F: 12 ms, B: 13 ms, W: 8 ms, activation: 2 GiB}\n"
    "  - {stage: 0, chunk: 1, F: 14 ms, BW: 29 ms, activation: 1 GiB}\n"
    "  - {stage: 1, chunk: 1, F: 9 ms, B: 9 ms, W: 9 ms, R: 8 ms, activation: 1 GiB}\n";
static const char json[] =
    "{\"placement\": \"v\", \"transfer_us\": 400, \"transfer_size_mib\": 32, \"stages\": [\n"
    "{\"stage\": 0, \"chunk\": 0, \"F_ms\": 10.0, \"B_us\": 11000, \"W_ms\": 7, \"F_scatter\": 0.02, \"F_count\": 8, "
    "\"activation_gib\": 1, \"freed_by_b_mib\": 256, \"held_gib\": 30},\n"
    "{\"stage\": 1, \"chunk\": 0, \"F_ms\": 12, \"B_ms\": 13, \"W_ms\": 8, \"activation_bytes\": 2147483648},\n"
    "{\"stage\": 0, \"chunk\": 1, \"F_ms\": 14, \"BW_ms\": 29, \"activation_gib\": 1},\n"
    "{\"stage\": 1, \"chunk\": 1, \"F_ms\": 9, \"B_ms\": 9, \"W_ms\": 9, \"R_ms\": 8, \"activation_gib\": 1}]}\n";
static const char csv[] = "stage,chunk,F_ms,B_ms,W_ms,BW_ms,R,F_scatter,F_count,activation_gib,freed_by_b,held,"
                          "placement,transfer,transfer_size\n"
                          "0,0,10,11,7,,,0.02,8,1,256 MiB,30 GiB,v,0.4 ms,32 MiB\n"
                          "1,0,12,13,8,,,,,2,,,,,\n"
                          "0,1,14,,,29,,,,1,,,v,,\n"
                          "1,1,9,9,9,,8 ms,,,1,,,,,\n";

static pc_pass_times read_good(const char *text, bool is_csv) {
    pc_error error = {0};
    pc_pass_times times;
    pc_code code = pc_pass_times_read_text("own", text, is_csv, &times, &error);
    if (code) print_error("%s\n", error.message);
    assert_int_equal(code, PC_OK);
    return times;
}

static void check_same(const pc_pass_times *a, const pc_pass_times *b) {
    assert_int_equal(a->devices, b->devices);
    assert_int_equal(a->chunks, b->chunks);
    assert_int_equal(a->placement, b->placement);
    assert_int_equal(a->transfer_ps, b->transfer_ps);
    assert_int_equal(a->transfer_bytes, b->transfer_bytes);
    assert_memory_equal(a->parts, b->parts, (size_t)(a->devices * a->chunks) * sizeof *a->parts);
    assert_memory_equal(a->held_bytes, b->held_bytes, (size_t)a->devices * sizeof *a->held_bytes);
}

static void test_forms(void **state) {
    (void)state;
    pc_pass_times a = read_good(yaml, false), b = read_good(json, false), c = read_good(csv, true);
    assert_int_equal(a.devices, 2);
    assert_int_equal(a.chunks, 2);
    assert_int_equal(pc_pass_times_at(&a, 0, 0)->time_ps[PC_PASS_B], 11 * MS);
    assert_int_equal(pc_pass_times_at(&a, 0, 1)->time_ps[PC_PASS_BW], 29 * MS);
    assert_int_equal(a.held_bytes[0], INT64_C(30) << 30);
    assert_int_equal(a.held_bytes[1], PC_BYTES_NOT_GIVEN);
    check_same(&a, &b);
    check_same(&a, &c);
    pc_pass_times_free(&a);
    pc_pass_times_free(&b);
    pc_pass_times_free(&c);
}

/* Random times, in whole picoseconds and bytes, come back as they were; scatter to four digits. */
static void test_written_reads_back(void **state) {
    (void)state;
    test_random random = {5};
    for (long i = 0; i < test_cases(50, 2000); i++) {
        pc_pass_times times;
        pc_text text = {.data = NULL};
        int devices = (int)test_between(&random, 1, 5), chunks = (int)test_between(&random, 1, 3);
        pc_placement several = test_draw(&random) % 2 ? PC_PLACEMENT_V : PC_PLACEMENT_INTERLEAVED;
        assert_int_equal(
            pc_pass_times_create(devices, chunks, chunks == 1 ? PC_PLACEMENT_LINEAR : several, &times, NULL), PC_OK);
        for (int k = 0; k < devices * chunks; k++) {
            pc_part_times *part = &times.parts[k];
            for (int kind = 0; kind < PC_PASS_S; kind++) {
                part->time_ps[kind] = test_between(&random, 0, 1 << 30) * test_between(&random, 1, 1 << 20);
                part->scatter[kind] = (double)test_between(&random, 0, 5000) / 10000;
                part->count[kind] = test_between(&random, 0, 100);
            }
            part->activation_bytes = test_between(&random, 0, INT64_C(1) << 40);
            part->b_bytes = test_between(&random, 0, part->activation_bytes);
        }
        for (int d = 0; d < devices; d++) times.held_bytes[d] = test_between(&random, 0, INT64_C(1) << 40);
        times.transfer_ps = test_between(&random, 0, INT64_C(1) << 50);
        pc_pass_times_write(&times, "made \"up\": {a}", &text);
        pc_pass_times again = read_good(text.data, false);
        check_same(&times, &again);
        pc_pass_times_free(&again);
        pc_pass_times_free(&times);
        pc_text_free(&text);
    }
}

static void check_refused(const char *text, bool is_csv, const char *expected) {
    pc_error error = {0};
    pc_pass_times times;
    assert_int_equal(pc_pass_times_read_text("own", text, is_csv, &times, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, expected);
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("a: 1\n", false, "own:1: stages: missing; expected a list with a row for each stage");
    check_refused("stages: [{F: 1 ms}]\n", false, "own:1: BW: missing; expected BW, or B and W");
    check_refused("stages: [{BW: 1 ms}]\n", false, "own:1: F: missing; expected a time such as 12.96 ms");
    check_refused("stages:\n  - {F: 1 ms, BW: 2}\n", false,
                  "own:2: stages[0].BW: 2: no unit; expected a time such as 12.96 ms (ps, ns, us, ms, s, min, h)");
    check_refused("stages:\n  - {F: 1 ms, BW: 2 ms, stage: 1}\n", false,
                  "own: stage 0, chunk 0: no row; expected one for each of 1 chunks of 2 stages");
    check_refused("stages:\n  - {F: 1 ms, BW: 2 ms, stage: 60000}\n", false,
                  "own: 1 rows; expected one for each of 1 chunks of 60001 stages");
    check_refused("stage,F_ms,BW_ms\n0,1,2\n0,1,2\n", true,
                  "own:3: stage 0, chunk 0: stands twice; expected a row for each");
    check_refused("stage,F_ms,BW_ms\n0,1\n", true, "own:2: 2 fields; expected 3, as in the first line");
    check_refused("stage,F_ms,BW_ms\n0,x,2\n", true,
                  "own:2: F_ms: x ms: not a number; expected a time such as 12.96 ms (ps, ns, us, ms, s, min, h)");
    check_refused("", true, "own: is empty; expected a file of measured passes (YAML, JSON or CSV)");
}

/* ---- over schedules ---- */

/* Of two stages in a V of two chunks, parts 0 to 3 lie on stages 0, 1, 1, 0 and their F takes 10, 12, 9, 14. A linear
 * schedule of one chunk has parts {0, 1} and {2, 3}: 22 and 23. One of four chunks in a V has halves: stage 0 has parts
 * 0, 3, 4 and 7, which are the first half of 0, the second of 1, the first of 2 and the second of 3. */
static void test_parts(void **state) {
    (void)state;
    pc_pass_times times = read_good(yaml, false);
    pc_costs costs;
    assert_int_equal(pc_costs_create(2, 1, &costs, NULL), PC_OK);
    assert_int_equal(pc_pass_times_fill(&times, PC_PLACEMENT_LINEAR, &costs, NULL), PC_OK);
    assert_int_equal(pc_costs_duration(&costs, 0, 0, PC_PASS_F), 22 * MS);
    assert_int_equal(pc_costs_duration(&costs, 1, 0, PC_PASS_F), 23 * MS);
    assert_int_equal(pc_costs_duration(&costs, 0, 0, PC_PASS_BW), 39 * MS); /* 11 + 7 + 13 + 8 */
    assert_int_equal(pc_costs_duration(&costs, 1, 0, PC_PASS_BW), 47 * MS); /* 9 + 9 + 29 */
    assert_int_equal(pc_costs_duration(&costs, 1, 0, PC_PASS_B), PC_TIME_NOT_GIVEN);
    assert_int_equal(pc_costs_duration(&costs, 1, 0, PC_PASS_R), 22 * MS); /* 8, and F again: 14 */
    assert_int_equal(costs.activation_bytes[0], INT64_C(3) << 30);
    assert_int_equal(costs.activation_b_bytes[0], INT64_C(256) << 20);
    assert_int_equal(costs.transfer.delay_ps, 4 * MS / 10);
    pc_costs_free(&costs);
    assert_int_equal(pc_costs_create(2, 4, &costs, NULL), PC_OK);
    assert_int_equal(pc_pass_times_fill(&times, PC_PLACEMENT_V, &costs, NULL), PC_OK);
    const pc_time halves[] = {5 * MS, 6 * MS, 9 * MS / 2, 7 * MS};
    for (int c = 0; c < 4; c++) assert_int_equal(pc_costs_duration(&costs, 0, c, PC_PASS_F), halves[c]);
    pc_costs_free(&costs);
    pc_pass_times_free(&times);
}

static void test_suits(void **state) {
    (void)state;
    pc_error error;
    pc_pass_times times = read_good(yaml, false);
    assert_int_equal(pc_pass_times_suit(&times, 2, 4, PC_PLACEMENT_INTERLEAVED, &error), PC_OK);
    assert_int_equal(pc_pass_times_suit(&times, 2, 1, PC_PLACEMENT_LINEAR, &error), PC_OK);
    assert_int_equal(pc_pass_times_suit(&times, 2, 3, PC_PLACEMENT_INTERLEAVED, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "times of 2 chunks a stage for a schedule with 3; expected one number to divide the other");
    assert_int_equal(pc_pass_times_suit(&times, 4, 1, PC_PLACEMENT_LINEAR, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_pass_times_suit(&times, 2, 2, PC_PLACEMENT_BIDIRECTIONAL, &error), PC_ERROR_INPUT);
    pc_pass_times_free(&times);
}

/* Weighted by time: two parts of 10 ms with 0.3 and 0.4 scatter by sqrt((0.09 + 0.16) / 2). */
static void test_scatter(void **state) {
    (void)state;
    pc_pass_times times;
    assert_int_equal(pc_pass_times_create(2, 1, PC_PLACEMENT_LINEAR, &times, NULL), PC_OK);
    for (int d = 0; d < 2; d++) {
        times.parts[d].time_ps[PC_PASS_F] = 10 * MS;
        times.parts[d].scatter[PC_PASS_F] = 0.3 + 0.1 * d;
    }
    assert_true(pc_pass_times_scatter(&times) > 0.353553 && pc_pass_times_scatter(&times) < 0.353554);
    pc_pass_times_free(&times);
}

static void test_no_memory(void **state) {
    (void)state;
    for (long after = 0;; after++) {
        pc_pass_times times;
        pc_alloc_fail_after(after);
        pc_code code = pc_pass_times_read_text("own", yaml, false, &times, NULL);
        pc_alloc_fail_after(-1);
        if (!code) {
            pc_pass_times_free(&times);
            assert_true(after > 3);
            return;
        }
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),    cmocka_unit_test(test_written_reads_back),
                                       cmocka_unit_test(test_refusals), cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_suits),    cmocka_unit_test(test_scatter),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
