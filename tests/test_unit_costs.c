/* Costs as people say them, in picoseconds and bytes. */
#include "models/schedule/unit_costs.h"

#include "tests/support.h"

#include <math.h>

static const pc_unit_shape shape = {
    .devices = 4, .microbatches = 8, .chunks = 2, .placement = PC_PLACEMENT_INTERLEAVED};

/* 10^9 ticks a unit; the two chunks of a stage sum up to the stage's time, and each has half of its activation given
 * back as said. */
static void test_a_stage_is_shared_by_its_chunks(void **state) {
    (void)state;
    pc_costs costs;
    pc_unit_costs units = {.times = {1, 2, 3}, .comm = 0.5, .release_b = 0.25, .keep = 0.125};
    double ticks = pc_unit_ticks(&units, &shape);
    assert_true(ticks == 1e9);
    assert_int_equal(pc_unit_costs_make(&units, &shape, ticks, &costs, NULL), PC_OK);
    for (int kind = 0; kind < 3; kind++) {
        static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W};
        const pc_time *of_first = costs.duration_ps + pc_costs_index(&costs, 3, 0) * PC_PASS_KINDS;
        const pc_time *of_second = costs.duration_ps + pc_costs_index(&costs, 3, 1) * PC_PASS_KINDS;
        assert_int_equal(of_first[kinds[kind]] + of_second[kinds[kind]], (kind + 1) * INT64_C(1000000000));
    }
    assert_int_equal(costs.transfer.delay_ps, 500000000);
    assert_int_equal(costs.activation_bytes[0], PC_UNIT_CHUNK_BYTES);
    assert_int_equal(costs.activation_b_bytes[0], PC_UNIT_CHUNK_BYTES / 4);
    assert_int_equal(costs.activation_kept_bytes[0], PC_UNIT_CHUNK_BYTES / 8);
    pc_costs_free(&costs);
}

/* The shortest pass has 10^6 ticks at least: 10^-9 over two chunks has them at 10^16 a unit; where all passes together,
 * 4 devices times 8 microbatches times 3 * 10^20, must stay below 2^61, there are fewer: 10^-4. */
static void test_ticks_suit_the_times(void **state) {
    (void)state;
    pc_unit_costs small = {.times = {1e-9, 1e-9, 1e-9}}, large = {.times = {1e20, 1e20, 1e20}};
    assert_true(fabs(pc_unit_ticks(&small, &shape) / 1e16 - 1) < 1e-9);
    assert_true(fabs(pc_unit_ticks(&large, &shape) / 1e-4 - 1) < 1e-9);
}

/* 1 and 10^19 times that: 10^19 ticks do not fit into the clock. */
static void test_times_too_far_apart(void **state) {
    (void)state;
    pc_unit_costs units = {.times = {1, 1e19, 1}};
    assert_true(pc_unit_ticks(&units, &shape) == 0);
}

/* Two devices of a V hold parts 0 and 3, 1 and 2: a list of four is the parts in the model's order; one of two is the
 * stages, whose chunks take half each. Three suit nobody. A list's times may be too far apart as
 * well. */
static void test_stages_have_times_of_their_own(void **state) {
    (void)state;
    static const double parts[4][3] = {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {3, 2, 3}};
    const pc_unit_shape v = {.devices = 2, .microbatches = 8, .chunks = 2, .placement = PC_PLACEMENT_V};
    const pc_unit_costs by_part = {.part_count = 4, .part_times = parts},
                        by_stage = {.part_count = 2, .part_times = parts + 2},
                        by_nobody = {.part_count = 3, .part_times = parts};
    pc_costs costs;
    assert_true(pc_unit_costs_suit(&by_part, &v) && pc_unit_costs_suit(&by_stage, &v));
    assert_false(pc_unit_costs_suit(&by_nobody, &v));
    assert_int_equal(pc_unit_costs_make(&by_part, &v, pc_unit_ticks(&by_part, &v), &costs, NULL), PC_OK);
    assert_int_equal(pc_costs_duration(&costs, 0, 1, PC_PASS_F), INT64_C(3000000000));
    assert_int_equal(pc_costs_duration(&costs, 1, 1, PC_PASS_F), INT64_C(1000000000));
    assert_int_equal(pc_costs_duration(&costs, 0, 1, PC_PASS_BW), INT64_C(5000000000));
    pc_costs_free(&costs);
    assert_int_equal(pc_unit_costs_make(&by_stage, &v, pc_unit_ticks(&by_stage, &v), &costs, NULL), PC_OK);
    assert_int_equal(pc_costs_duration(&costs, 0, 1, PC_PASS_F), INT64_C(500000000));
    assert_int_equal(pc_costs_duration(&costs, 1, 0, PC_PASS_F), INT64_C(1500000000));
    pc_costs_free(&costs);
    const double far[1][3] = {{1, 1e19, 1}};
    const pc_unit_costs too_far = {.part_count = 1, .part_times = far};
    assert_true(pc_unit_ticks(&too_far, &(pc_unit_shape){.devices = 1, .microbatches = 8, .chunks = 1}) == 0);
}

/* Four slices of 1, 2, 3 and 4 tenths of a stage. The shortest pass still has 10^6 ticks: 10^-7 of a unit, a tenth of
 * it 10^14 times. */
static void test_slices_have_times_of_their_own(void **state) {
    (void)state;
    static const double tenths[] = {0.5, 1, 1.5, 2};
    const pc_unit_shape slices = {.devices = 2, .microbatches = 2, .chunks = 4, .placement = PC_PLACEMENT_SLICES};
    const pc_unit_costs units = {.times = {10, 20, 0}, .slice_times = tenths},
                        short_ones = {.times = {1e-7, 1e-7, 1e-7}, .slice_times = tenths};
    pc_costs costs;
    double ticks = pc_unit_ticks(&units, &slices);
    assert_int_equal(pc_unit_costs_make(&units, &slices, ticks, &costs, NULL), PC_OK);
    for (int c = 0; c < 4; c++) {
        assert_int_equal(pc_costs_duration(&costs, 1, c, PC_PASS_F), (c + 1) * INT64_C(1000000000));
        assert_int_equal(pc_costs_duration(&costs, 0, c, PC_PASS_BW), (c + 1) * INT64_C(2000000000));
        assert_int_equal(costs.activation_bytes[c], PC_UNIT_CHUNK_BYTES);
    }
    pc_costs_free(&costs);
    assert_true(pc_unit_ticks(&short_ones, &slices) * 1e-8 >= 1e6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stage_is_shared_by_its_chunks),
        cmocka_unit_test(test_ticks_suit_the_times),
        cmocka_unit_test(test_times_too_far_apart),
        cmocka_unit_test(test_stages_have_times_of_their_own),
        cmocka_unit_test(test_slices_have_times_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
