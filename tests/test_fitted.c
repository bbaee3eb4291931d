/* Blocks in the instance's own times: repeated they keep every limit and no order takes longer than the blocks put down
 * one after the other. Kicks make no order longer. And spans at low limits, and more memory that never takes longer. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/schedule/search/fitted.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/timing.h"

/* ---- random instances ---- */

typedef struct example {
    pc_costs costs;
    pc_instance instance;
    pc_instance_order order;
    int64_t limit[6];
} example;

static void draw_example(test_random *random, int chunks, example *e) {
    int p = (int)test_between(random, 1, 6), m = (int)test_between(random, 1, 12);
    bool splits = test_between(random, 0, 3) > 0;
    assert_int_equal(pc_costs_create(p, chunks, &e->costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)p * chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            e->costs.duration_ps[i * PC_PASS_KINDS + kind] = test_between(random, 1, 9);
        e->costs.activation_bytes[i] = test_between(random, 1, 9);
        e->costs.activation_b_bytes[i] = test_between(random, 0, e->costs.activation_bytes[i]);
    }
    e->costs.transfer.delay_ps = test_between(random, 0, 4);
    for (int d = 0; d < p; d++) e->limit[d] = test_between(random, 9, 40) * chunks;
    assert_int_equal(pc_instance_create(&e->costs, chunks == 2 ? PC_PLACEMENT_V : PC_PLACEMENT_LINEAR, splits, m,
                                        (pc_memory_limit){e->limit}, &e->instance, NULL),
                     PC_OK);
    assert_int_equal(pc_instance_order_create(&e->instance, &e->order, NULL), PC_OK);
}

static void free_example(example *e) {
    pc_instance_order_free(&e->order);
    pc_instance_free(&e->instance);
    pc_costs_free(&e->costs);
}

/* ---- fitted blocks ---- */

/* As many intervals as there are blocks but one, and the time from the first start of a block to its last end: where
 * all passes start as they do in the blocks, that is when the last one ends. Squeezed, none starts later. */
static pc_time end_of_blocks(const pc_instance *instance, const pc_fitted_block *block) {
    int blocks = (instance->microbatches + block->microbatches - 1) / block->microbatches;
    int cells = instance->devices * instance->types;
    pc_time last = 0;
    for (int i = 0; i < block->microbatches * cells; i++) {
        pc_time end = block->start[i] + instance->cells[i % cells].duration;
        if (end > last) last = end;
    }
    return (blocks - 1) * block->interval + last;
}

static void test_fitted_blocks(void **state) {
    (void)state;
    test_random random = {71};
    int found = 0;
    for (long i = 0; i < test_cases(100, 500); i++) {
        example e;
        draw_example(&random, 1 + (int)(i % 2), &e);
        pc_reorder *room;
        pc_fitted fitted, again;
        assert_int_equal(pc_reorder_create(&e.instance, &room, NULL), PC_OK);
        assert_int_equal(pc_fitted_find(&e.instance, 3, 20, false, &fitted, NULL), PC_OK);
        assert_int_equal(pc_fitted_find(&e.instance, 3, 20, false, &again, NULL), PC_OK);
        assert_int_equal(fitted.count, again.count);
        found += fitted.count;
        for (int k = 0; k < fitted.count; k++) {
            pc_fitted_repeat(&fitted.blocks[k], &e.instance, &e.order);
            assert_true(pc_reorder_squeeze(room, &e.order));
            assert_true(e.order.makespan <= end_of_blocks(&e.instance, &fitted.blocks[k]));
            assert_true(fitted.blocks[k].interval == again.blocks[k].interval);
            pc_time span = e.order.span;
            pc_reorder_kick(room, 20, 20, k, 0, &e.order);
            assert_true(e.order.span <= span);
            span = e.order.span;
            assert_true(pc_reorder_squeeze(room, &e.order) && e.order.span <= span);
        }
        pc_fitted_free(&fitted);
        pc_fitted_free(&again);
        pc_reorder_free(room);
        free_example(&e);
    }
    assert_true(found > 0);
}

/* ---- spans of names ---- */

/* Of v-adaptive; times are a chunk's. `chunks` fit on a device. */
static pc_time span_of(int p, int m, const int times[3], int delay, int chunks) {
    const pc_generator *g = pc_generator_find("v-adaptive");
    pc_costs costs;
    pc_schedule s;
    pc_timing *timing;
    pc_timing_result result;
    int64_t limit[32];
    assert_int_equal(pc_costs_create(p, 2, &costs, NULL), PC_OK);
    for (int i = 0; i < 2 * p; i++) {
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_F] = times[0];
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_B] = times[1];
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_W] = times[2];
        costs.activation_bytes[i] = 100;
    }
    costs.transfer.delay_ps = delay;
    for (int d = 0; d < p; d++) limit[d] = 100 * chunks;
    const pc_generate_request request = {
        .devices = p, .microbatches = m, .costs = &costs, .memory_limit = {limit}, .threads = 1};
    assert_int_equal(pc_generate(g, &request, &s, NULL, NULL), PC_OK);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run(timing, &s, &costs, &result, NULL), PC_OK);
    assert_true(result.totals.peak_bytes <= 100 * chunks);
    pc_time span = result.totals.span_ps;
    pc_timing_free(timing);
    pc_schedule_free(&s);
    pc_costs_free(&costs);
    return span;
}

/* Two devices with room for three chunks, where orders from cells of equal length took 50 and 94, and 576 and 1,096.
 * Times are a chunk's. The best orders (constraint programming has proved 48) have a microbatch every 11 where a device
 * works 2 (2 + 2 + 1) = 10: F0 of the second next microbatch comes right after W1 of the next one, before B0 and W0 of
 * the one that is on, and the device waits for 1. The first one takes 15 on it: 15 + 11 (m - 1). The others have an
 * interval of 122 for work of 2 (20 + 24 + 14) = 116, and 174 for the first. */
static void test_low_limits(void **state) {
    (void)state;
    const int short_w[3] = {2, 2, 1}, real[3] = {20, 24, 14};
    assert_true(span_of(2, 4, short_w, 0, 3) <= 15 + 3 * 11);
    assert_true(span_of(2, 8, short_w, 0, 3) <= 15 + 7 * 11);
    assert_true(span_of(2, 4, real, 0, 3) <= 174 + 3 * 122);
    assert_true(span_of(2, 8, real, 0, 3) <= 174 + 7 * 122);
}

/* With a chunk more of memory no schedule is longer. */
static void test_monotone(void **state) {
    (void)state;
    test_random random = {72};
    for (long i = 0; i < test_cases(3, 15); i++) {
        int p = (int)test_between(&random, 2, 4), m = (int)test_between(&random, 2, 8),
            delay = (int)test_between(&random, 0, 3);
        const int times[3] = {(int)test_between(&random, 1, 12), (int)test_between(&random, 1, 12),
                              (int)test_between(&random, 1, 12)};
        pc_time before = INT64_MAX;
        for (int chunks = 2; chunks <= 2 * p; chunks++) {
            pc_time span = span_of(p, m, times, delay, chunks);
            assert_true(span <= before);
            before = span;
        }
    }
}

/* Equal passes: 6 m passes, and 6 p - 1 - 3 x idle with room for x chunks; the last two have more than
 * 8,192 passes, so that the search ends there. */
static void test_known(void **state) {
    (void)state;
    const int equal[3] = {1, 1, 1};
    assert_int_equal(span_of(8, 16, equal, 0, 10), 6 * 16 + 47 - 30);
    assert_int_equal(span_of(8, 192, equal, 0, 12), 6 * 192 + 47 - 36);
    assert_int_equal(span_of(32, 96, equal, 0, 57), 6 * 96 + 191 - 171); /* 597 before */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fitted_blocks),
        cmocka_unit_test(test_low_limits),
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
