/* The least span of an instance, orders made longer, and rounder times. */
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/coarse.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/pattern.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/search/repeat.h"
#include "models/schedule/search/stretch.h"
#include "tests/instance_example.h"
#include "tests/longest_path.h"

/* ---- the least span ---- */

static pc_instance equal_instance(int p, pc_placement placement, bool splits, int m, int64_t limit, pc_costs *costs) {
    pc_instance instance;
    int chunks = placement == PC_PLACEMENT_V ? 2 : 1;
    int64_t limits[16];
    assert_int_equal(pc_costs_create(p, chunks, costs, NULL), PC_OK);
    for (int i = 0; i < p * chunks; i++) {
        static const pc_time times[PC_PASS_KINDS] = {3, 4, 2, 6, 3};
        memcpy(costs->duration_ps + (size_t)i * PC_PASS_KINDS, times, sizeof times);
        costs->activation_bytes[i] = 1;
    }
    costs->transfer.delay_ps = 5;
    for (int d = 0; d < p; d++) limits[d] = limit ? limit : PC_NO_LIMIT;
    assert_int_equal(pc_instance_create(costs, placement, splits, m, (pc_memory_limit){limits}, &instance, NULL),
                     PC_OK);
    return instance;
}

/* F 3, B 4, W 2, transfers 5; a microbatch takes 1, and W gives it back. One microbatch: device 0 runs F, waits p-1 F
 * and p-1 B and 2(p-1) transfers, then runs B and W: 9 + 17(p-1). Without a limit, m of them: F fills the wait if there
 * are enough, so 9m + max(0, 17(p-1) - 3(m-1)). With memory for x < m: only x F fill it; and the wait between the last
 * microbatch's F and its B is another one, which only B and W of the x-1 others that are held fill:
 * 17(p-1) + 4 + 2 - 6x.
 *
 * Each microbatch is held for 17(p-1) + 9 on device 0, so that m of them and x at once take m(17(p-1) + 9)/x. After the
 * first F, memory fills no faster than 1 every 3, and before the last W empties no faster than 1 every 2: (x-1)/2 are
 * missing on average for 5(x-1). */
static void test_least_span(void **state) {
    (void)state;
    for (int p = 1; p <= 6; p++)
        for (int m = 1; m <= 12; m++)
            for (int x = 0; x <= 12; x++) {
                pc_costs costs;
                pc_instance instance = equal_instance(p, PC_PLACEMENT_LINEAR, true, m, x, &costs);
                int most = x == 0 || x > m ? m : x, wait = 17 * (p - 1) - 3 * (most - 1),
                    out = 17 * (p - 1) + 6 - 6 * x;
                int span = 9 * m + (wait > 0 ? wait : 0) + (0 < x && x < m && out > 0 ? out : 0);
                int held = x == 0 ? 0 : m * (17 * (p - 1) + 9), ramps = 5 * (x - 1);
                int twice = 2 * held + ramps * (x - 1) >= 2 * x * ramps ? 2 * held + ramps * (x - 1) : 2 * held;
                int hold = x == 0 ? 0 : (twice + 2 * x - 1) / (2 * x);
                assert_int_equal(pc_instance_least_span(&instance), span > hold ? span : hold);
                pc_instance_free(&instance);
                pc_costs_free(&costs);
            }
}

/* ---- longer orders ---- */

/* The block, with its own starts instead of squeezed ones: periodic from the first microbatch to the last. */
static void repeat_exactly(const pc_instance *instance, const pc_block *b, pc_instance_order *order) {
    pc_repeat_block(instance, b, order);
    for (int64_t k = 0; k < instance->devices * instance->passes; k++) {
        pc_pass pass = pc_instance_to_pass(instance, order->pass[k]);
        order->start[k] =
            pass.microbatch / b->microbatches * b->interval +
            pc_block_start(b, pass.microbatch % b->microbatches, (int)(k / instance->passes), pass.chunk, pass.kind);
    }
}

static void check_stretch(const pc_pattern *pattern, int p, int brief_m, int full_m) {
    int chunks = pc_pattern_chunks(pattern->family);
    pc_placement placement = chunks == 2 ? PC_PLACEMENT_V : PC_PLACEMENT_LINEAR;
    pc_costs costs[2];
    pc_block b;
    pc_instance brief = equal_instance(p, placement, pattern->splits, brief_m, 0, &costs[0]);
    pc_instance full = equal_instance(p, placement, pattern->splits, full_m, 0, &costs[1]);
    pc_instance_order short_one, long_one, expected;
    assert_int_equal(pc_block_create(placement, p, chunks, pc_pattern_microbatches(pattern->family), &b, NULL), PC_OK);
    assert_true(pc_pattern_build(pattern, &b));
    assert_int_equal(pc_instance_order_create(&brief, &short_one, NULL), PC_OK);
    assert_int_equal(pc_instance_order_create(&full, &long_one, NULL), PC_OK);
    assert_int_equal(pc_instance_order_create(&full, &expected, NULL), PC_OK);
    repeat_exactly(&brief, &b, &short_one);
    repeat_exactly(&full, &b, &expected);
    for (int attempt = 0; attempt < PC_STRETCH_ATTEMPTS; attempt++) {
        assert_int_equal(pc_stretch(&brief, &short_one, attempt, &full, &long_one, NULL), PC_OK);
        assert_memory_equal(long_one.pass, expected.pass, (size_t)(full.devices * full.passes) * sizeof *long_one.pass);
    }
    pc_instance_order_free(&short_one);
    pc_instance_order_free(&long_one);
    pc_instance_order_free(&expected);
    pc_instance_free(&brief);
    pc_instance_free(&full);
    pc_costs_free(&costs[0]);
    pc_costs_free(&costs[1]);
    pc_block_free(&b);
}

/* V, one chunk, whole backward passes, and pairs, whose middle repeats itself every second microbatch only. */
static void test_stretch_of_periodic_orders(void **state) {
    (void)state;
    static const pc_pattern patterns[] = {
        {.family = PC_PATTERN_V_FREE, .interval = 12, .f1 = 7, .b1 = 8, .b0 = 3, .splits = true},
        {.family = PC_PATTERN_LINEAR_WARM,
         .interval = 3,
         .b0 = 1,
         .shift = 8,
         .shift_after = 4,
         .turn = 100,
         .splits = true},
        {.family = PC_PATTERN_LINEAR_FREE, .interval = 3, .b0 = 1},
        {.family = PC_PATTERN_LINEAR_PAIR, .interval = 6, .splits = true}};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        for (int p = 1; p <= 4; p++)
            for (int m = 8; m <= 20; m++)
                for (int added = 12; added <= 36; added += 12) check_stretch(&patterns[i], p, m, m + added);
}

/* The middle of a reordered, squeezed order is rarely periodic; a stretched one has every pass once, and each type in
 * the order of its microbatches, all the same. */
static void test_stretch_of_random_orders(void **state) {
    (void)state;
    test_random random = {43};
    for (int i = 0; i < 300; i++) {
        instance_example e;
        pc_reorder *reorder;
        pc_instance full;
        pc_instance_order longer;
        pc_schedule s;
        instance_example_draw(&random, &e);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        assert_int_equal(pc_instance_create(&e.costs, e.placement, e.splits, e.microbatches + 12,
                                            (pc_memory_limit){e.limit}, &full, NULL),
                         PC_OK);
        assert_int_equal(pc_instance_order_create(&full, &longer, NULL), PC_OK);
        if (e.microbatches > 1) {
            assert_int_equal(pc_stretch(&e.instance, &e.order, (int)test_between(&random, 0, 2), &full, &longer, NULL),
                             PC_OK);
            assert_int_equal(pc_instance_to_schedule(&full, &longer, "longer", &s, NULL), PC_OK);
            pc_pass_index index;
            assert_int_equal(pc_pass_index_create(&s, &index, NULL), PC_OK);
            assert_int_equal(pc_schedule_check_complete(&index, NULL), PC_OK);
            pc_pass_index_free(&index);
            pc_schedule_free(&s);
        }
        pc_instance_order_free(&longer);
        pc_instance_free(&full);
        pc_reorder_free(reorder);
        instance_example_free(&e);
    }
}

/* The short length is at least what is asked for and a whole number of dozens shorter; a short iteration is its own. */
static void test_stretch_length(void **state) {
    (void)state;
    for (int least = 1; least <= 40; least++)
        for (int m = 1; m <= 200; m++) {
            int length = pc_stretch_length(least, m);
            if (m <= least) {
                assert_int_equal(length, m);
            } else {
                assert_in_range(length, least, least + 11);
                assert_int_equal((m - length) % 12, 0);
            }
        }
}

/* ---- rounder times ---- */

/* Shortest pass 8, so that a half is 4 and a quarter 2: 13 is 3 halves (12) and 7 quarters (14, the nearer ones). */
static void test_coarse_plans(void **state) {
    (void)state;
    static const pc_time quanta[PC_COARSE_KINDS][3] = {{0}, {1, 1, 2}, {2, 3, 5}, {4, 7, 10}};
    pc_costs costs;
    pc_instance instance = equal_instance(2, PC_PLACEMENT_V, false, 2, 0, &costs);
    for (int i = 0; i < instance.devices * instance.types; i++) {
        instance.cells[i].duration = i % instance.types < 2 ? (i % 2 ? 13 : 8) : 20;
        if (instance.cells[i].before_delay) instance.cells[i].before_delay = 13;
    }
    for (int kind = 1; kind < PC_COARSE_KINDS; kind++) {
        pc_instance coarse;
        assert_int_equal(pc_instance_coarsen(&instance, kind, &coarse, NULL), PC_OK);
        for (int i = 0; i < instance.devices * instance.types; i++) {
            int which = i % instance.types < 2 ? i % 2 : 2;
            assert_int_equal(coarse.cells[i].duration, quanta[kind][which]);
            if (instance.cells[i].before_delay)
                assert_int_equal(coarse.cells[i].before_delay, kind == PC_COARSE_CELLS ? 0 : quanta[kind][1]);
            assert_int_equal(coarse.cells[i].taken, instance.cells[i].taken);
            assert_int_equal(coarse.cells[i].before, instance.cells[i].before);
            assert_int_equal(coarse.cells[i].after, instance.cells[i].after);
        }
        assert_false(pc_instance_has_times_of(&instance, &coarse));
        assert_true(pc_instance_has_times_of(&coarse, &coarse));
        pc_instance_mirror_free(&coarse);
    }
    pc_instance_free(&instance);
    pc_costs_free(&costs);
}

/* Three times as long in everything is the same instance in another unit; one time more is not. */
static void test_times_in_other_units(void **state) {
    (void)state;
    pc_costs costs[2];
    pc_instance a = equal_instance(3, PC_PLACEMENT_V, true, 2, 0, &costs[0]);
    pc_instance b = equal_instance(3, PC_PLACEMENT_V, true, 2, 0, &costs[1]);
    for (int i = 0; i < b.devices * b.types; i++) {
        b.cells[i].duration *= 3;
        b.cells[i].before_delay *= 3;
    }
    assert_true(pc_instance_has_times_of(&a, &b) && pc_instance_takes_time(&a));
    b.cells[4].before_delay++;
    assert_false(pc_instance_has_times_of(&a, &b));
    for (int i = 0; i < a.devices * a.types; i++) a.cells[i].duration = 0;
    assert_false(pc_instance_takes_time(&a));
    for (int i = 0; i < 2; i++) pc_costs_free(&costs[i]);
    pc_instance_free(&a);
    pc_instance_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_span),
        cmocka_unit_test(test_stretch_of_periodic_orders),
        cmocka_unit_test(test_stretch_of_random_orders),
        cmocka_unit_test(test_stretch_length),
        cmocka_unit_test(test_coarse_plans),
        cmocka_unit_test(test_times_in_other_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
