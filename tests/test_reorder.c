/* Squeezing and reordering at random instances, against the longest path; the instance's mirror. */
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/pattern.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/search/repeat.h"
#include "models/schedule/search/tournament.h"
#include "tests/instance_example.h"
#include "tests/longest_path.h"

/* ---- what an order must be ---- */

static void find_span(const pc_schedule *s, const pc_time *start, const pc_time *end, pc_time *span,
                      pc_time *makespan) {
    *span = *makespan = 0;
    for (int d = 0; d < s->devices; d++) {
        pc_time last = end[s->offsets[d + 1] - 1], of_device = last - start[s->offsets[d]];
        if (of_device > *span) *span = of_device;
        if (last > *makespan) *makespan = last;
    }
}

/* Valid, within the limits, timed as the longest path says. */
static void check_order(const instance_example *e, bool starts_too) {
    pc_schedule s = instance_example_schedule(e);
    pc_error error = {0};
    if (pc_schedule_check(&s, &error)) fail_msg("%s", error.message);
    int64_t passes = s.offsets[s.devices], peak = 0;
    pc_time *start = calloc((size_t)passes, sizeof *start), *end = calloc((size_t)passes, sizeof *end), span, makespan,
            bound;
    assert_true(longest_path(&s, &e->costs, start, end));
    find_span(&s, start, end, &span, &makespan);
    assert_int_equal(e->order.span, span);
    assert_int_equal(e->order.makespan, makespan);
    if (starts_too) assert_memory_equal(e->order.start, start, (size_t)passes * sizeof *start);
    for (int d = 0; d < s.devices; d++) {
        int64_t of_device = instance_example_peak(&e->costs, &s, d);
        assert_true(of_device <= e->limit[d]);
        if (of_device > peak) peak = of_device;
    }
    assert_int_equal(e->order.peak, peak);
    assert_int_equal(pc_instance_bound(&e->instance, &bound, NULL), PC_OK);
    assert_true(bound <= span && pc_instance_least_span(&e->instance) <= bound);
    free(start);
    free(end);
    pc_schedule_free(&s);
}

static void test_improve(void **state) {
    (void)state;
    test_random random = {23};
    long shorter = 0;
    for (long i = 0; i < test_cases(250, 2500); i++) {
        instance_example e;
        pc_reorder *reorder;
        pc_instance_order first;
        instance_example_draw(&random, &e);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        check_order(&e, true);
        assert_int_equal(pc_instance_order_create(&e.instance, &first, NULL), PC_OK);
        pc_instance_order_copy(&e.instance, &e.order, &first);
        for (int seed = 0; seed < 3; seed++)
            for (int way = pc_reorder_drawn(seed); way <= (pc_reorder_drawn(seed) | PC_REORDER_STRICT); way++) {
                pc_instance_order_copy(&e.instance, &first, &e.order);
                pc_time enough = test_between(&random, 0, 1) ? pc_instance_least_span(&e.instance) : 0;
                pc_reorder_improve(reorder, (int)test_between(&random, 1, 8), way, enough, &e.order);
                check_order(&e, false);
                assert_true(e.order.span <= first.span);
                shorter += e.order.span < first.span;
            }
        pc_instance_order_free(&first);
        pc_reorder_free(reorder);
        instance_example_free(&e);
    }
    assert_true(shorter > test_cases(250, 2500)); /* of six times as many */
}

/* Orders as a search starts from them: a block, repeated; here one of two microbatches, at random costs. */
static void test_improve_pairs(void **state) {
    (void)state;
    const pc_pattern pair = {.family = PC_PATTERN_LINEAR_PAIR, .interval = 6, .splits = true};
    test_random random = {53};
    for (int i = 0; i < 200; i++) {
        instance_example e = {.placement = PC_PLACEMENT_LINEAR, .splits = true};
        for (int d = 0; d < 8; d++) e.limit[d] = PC_NO_LIMIT;
        pc_reorder *reorder;
        pc_block b;
        int p = (int)test_between(&random, 1, 7);
        e.microbatches = (int)test_between(&random, 1, 12);
        assert_int_equal(pc_costs_create(p, 1, &e.costs, NULL), PC_OK);
        instance_example_costs(&random, &e);
        assert_int_equal(
            pc_instance_create(&e.costs, e.placement, true, e.microbatches, (pc_memory_limit){NULL}, &e.instance, NULL),
            PC_OK);
        assert_int_equal(pc_instance_order_create(&e.instance, &e.order, NULL), PC_OK);
        assert_int_equal(pc_block_create(e.placement, p, 1, 2, &b, NULL), PC_OK);
        assert_true(pc_pattern_build(&pair, &b));
        pc_repeat_block(&e.instance, &b, &e.order);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        check_order(&e, true);
        pc_reorder_improve(reorder, 6, PC_REORDER_EAGER, 0, &e.order);
        check_order(&e, false);
        pc_reorder_free(reorder);
        pc_block_free(&b);
        instance_example_free(&e);
    }
}

/* The same order again, from a room that was used for something else in between. */
static void test_improve_is_repeatable(void **state) {
    (void)state;
    test_random random = {29};
    for (int i = 0; i < 50; i++) {
        instance_example e;
        pc_instance_order again;
        pc_reorder *reorder;
        instance_example_draw(&random, &e);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_int_equal(pc_instance_order_create(&e.instance, &again, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        pc_instance_order_copy(&e.instance, &e.order, &again);
        pc_reorder_improve(reorder, 6, pc_reorder_drawn(3), 0, &e.order);
        pc_reorder_improve(reorder, 6, pc_reorder_drawn(3), 0, &again);
        assert_memory_equal(again.pass, e.order.pass,
                            (size_t)(e.instance.devices * e.instance.passes) * sizeof *again.pass);
        pc_instance_order_free(&again);
        pc_reorder_free(reorder);
        instance_example_free(&e);
    }
}

static bool is_same_order(const instance_example *e, const pc_instance_order *a, const pc_instance_order *b) {
    size_t passes = (size_t)(e->instance.devices * e->instance.passes);
    return a->span == b->span && a->makespan == b->makespan && a->peak == b->peak &&
           memcmp(a->pass, b->pass, passes * sizeof *a->pass) == 0 &&
           memcmp(a->start, b->start, passes * sizeof *a->start) == 0;
}

/* Where sweeps say that they are stuck they have left the order as it was, and do so again, with any more rounds. */
static void test_stuck_for_good(void **state) {
    (void)state;
    test_random random = {59};
    int stuck = 0;
    for (int i = 0; i < 200; i++) {
        instance_example e;
        pc_instance_order before;
        pc_reorder *reorder;
        int way = (int)test_between(&random, PC_REORDER_EAGER, PC_REORDER_STRICT);
        instance_example_draw(&random, &e);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_int_equal(pc_instance_order_create(&e.instance, &before, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        for (int call = 0; call < 4; call++) {
            pc_instance_order_copy(&e.instance, &e.order, &before);
            if (!pc_reorder_improve(reorder, (int)test_between(&random, 1, 8), way, 0, &e.order)) continue;
            assert_true(is_same_order(&e, &before, &e.order));
            assert_true(pc_reorder_improve(reorder, 40, way, 0, &e.order));
            assert_true(is_same_order(&e, &before, &e.order));
            stuck++;
        }
        pc_instance_order_free(&before);
        pc_reorder_free(reorder);
        instance_example_free(&e);
    }
    assert_true(stuck > 200);
}

/* A heat gives every entry what it would come to alone: with entries that are the same, and after a heat before. */
static void test_heats(void **state) {
    (void)state;
    enum { ENTRIES = 6 };
    test_random random = {61};
    for (int i = 0; i < 100; i++) {
        instance_example e;
        pc_tournament t;
        pc_reorder *reorder;
        instance_example_draw(&random, &e);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        assert_int_equal(pc_tournament_create(&e.instance, NULL, 1 + i % 2, ENTRIES, false, &t, NULL), PC_OK);
        t.enough = 0;
        for (int k = 0; k < ENTRIES; k++) {
            pc_entry *entry = &t.entries[k];
            *entry = (pc_entry){
                .pattern = -1, .tag = k % 3, .way = k % 3, .is_made = true, .is_valid = true, .order = entry->order};
            pc_instance_order_copy(&e.instance, &e.order, &entry->order);
        }
        for (int heat = 0; heat < 3; heat++) pc_tournament_run(&t, ENTRIES, 5);
        for (int k = 0; k < ENTRIES; k++) {
            pc_instance_order alone;
            assert_int_equal(pc_instance_order_create(&e.instance, &alone, NULL), PC_OK);
            pc_instance_order_copy(&e.instance, &e.order, &alone);
            for (int heat = 0; heat < 3; heat++) pc_reorder_improve(reorder, 5, (int)t.entries[k].tag, 0, &alone);
            assert_true(is_same_order(&e, &alone, &t.entries[k].order));
            pc_instance_order_free(&alone);
        }
        pc_tournament_free(&t);
        pc_reorder_free(reorder);
        instance_example_free(&e);
    }
}

/* An order that is no longer than is wanted stays as it is. */
static void test_enough_is_enough(void **state) {
    (void)state;
    test_random random = {31};
    for (int i = 0; i < 50; i++) {
        instance_example e;
        pc_reorder *reorder;
        instance_example_draw(&random, &e);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        pc_reorder_improve(reorder, 6, PC_REORDER_EAGER, e.order.span, &e.order);
        check_order(&e, true); /* starts are those of the squeezed order */
        pc_reorder_free(reorder);
        instance_example_free(&e);
    }
}

/* ---- orders that cannot run, or do not fit ---- */

/* The types of a device merged at random, whatever they wait for: squeezing says no just where the longest path has a
 * cycle or a device holds too much. */
static void shuffle_device(test_random *random, const instance_example *e, int device) {
    int next[PC_INSTANCE_TYPES_MAX] = {0};
    for (int64_t k = 0; k < e->instance.passes;) {
        int type = (int)test_between(random, 0, e->instance.types - 1);
        if (next[type] == e->microbatches) continue;
        e->order.pass[device * e->instance.passes + k++] = pc_instance_pass_make(type, next[type]++);
    }
}

static bool fits(const instance_example *e, const pc_schedule *s) {
    for (int d = 0; d < s->devices; d++)
        if (instance_example_peak(&e->costs, s, d) > e->limit[d]) return false;
    return true;
}

static void test_squeeze_refuses(void **state) {
    (void)state;
    test_random random = {37};
    long runs = 0, deadlocks = 0, too_large = 0;
    for (long i = 0; i < test_cases(500, 2500); i++) {
        instance_example e;
        pc_reorder *reorder;
        instance_example_draw(&random, &e);
        shuffle_device(&random, &e, (int)test_between(&random, 0, e.instance.devices - 1));
        pc_schedule s = instance_example_schedule(&e);
        int64_t passes = s.offsets[s.devices];
        pc_time *start = calloc((size_t)passes, sizeof *start), *end = calloc((size_t)passes, sizeof *end);
        bool can_run = longest_path(&s, &e.costs, start, end), is_small = fits(&e, &s);
        if (pc_schedule_check(&s, NULL)) can_run = false; /* a cycle of passes that take no time */
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_int_equal(pc_reorder_squeeze(reorder, &e.order), can_run && is_small);
        runs += can_run && is_small;
        deadlocks += !can_run;
        too_large += can_run && !is_small;
        free(start);
        free(end);
        pc_schedule_free(&s);
        pc_reorder_free(reorder);
        instance_example_free(&e);
    }
    long cases = test_cases(500, 2500); /* tools that make tests slow draw few */
    assert_true(cases < 100 || (runs > 0 && deadlocks > 0 && (too_large > 0 || cases < 500)));
}

/* ---- the mirror ---- */

static void test_mirror_of_mirror(void **state) {
    (void)state;
    test_random random = {41};
    for (int i = 0; i < 200; i++) {
        instance_example e;
        pc_instance mirror, again;
        instance_example_draw(&random, &e);
        assert_int_equal(pc_instance_mirror(&e.instance, &mirror, NULL), PC_OK);
        assert_int_equal(pc_instance_mirror(&mirror, &again, NULL), PC_OK);
        for (int k = 0; k < e.instance.devices * e.instance.types; k++) {
            const pc_instance_cell *a = &e.instance.cells[k], *b = &again.cells[k], *between = &mirror.cells[k];
            assert_int_equal(a->duration, b->duration);
            assert_int_equal(a->before, b->before);
            assert_int_equal(a->before_delay, b->before_delay);
            assert_int_equal(a->own, b->own);
            assert_int_equal(a->after, b->after);
            assert_int_equal(a->taken, b->taken);
            assert_int_equal(between->taken, -a->taken);
            if (a->own != PC_INSTANCE_NONE) assert_int_equal(mirror.cells[a->own].own, k);
            if (a->before != PC_INSTANCE_NONE) assert_int_equal(mirror.cells[a->before].before, k);
        }
        pc_instance_mirror_free(&again);
        pc_instance_mirror_free(&mirror);
        instance_example_free(&e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_improve),
        cmocka_unit_test(test_improve_pairs),
        cmocka_unit_test(test_improve_is_repeatable),
        cmocka_unit_test(test_stuck_for_good),
        cmocka_unit_test(test_heats),
        cmocka_unit_test(test_enough_is_enough),
        cmocka_unit_test(test_squeeze_refuses),
        cmocka_unit_test(test_mirror_of_mirror),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
