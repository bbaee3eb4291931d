/* Squeezing and reordering at random instances, against the longest path; the instance's mirror, its least span, and an
 * order made longer. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/coarse.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/pattern.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/search/repeat.h"
#include "models/schedule/search/stretch.h"
#include "models/schedule/search/tournament.h"
#include "tests/longest_path.h"

/* ---- random instances ---- */

typedef struct example {
    pc_costs costs;
    pc_placement placement;
    bool splits;
    int microbatches;
    pc_instance instance;
    pc_instance_order order;
    int64_t limit[8];
} example;

static void draw_costs(test_random *random, const example *e) {
    int64_t longest = test_between(random, 0, 3) ? 20 : 2;
    bool is_equal = test_between(random, 0, 4) == 0;
    for (int64_t i = 0; i < (int64_t)e->costs.devices * e->costs.chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            e->costs.duration_ps[i * PC_PASS_KINDS + kind] = is_equal ? 7 : test_between(random, 0, longest);
        e->costs.activation_bytes[i] = test_between(random, 0, 30);
        e->costs.activation_b_bytes[i] = test_between(random, 0, e->costs.activation_bytes[i]);
    }
}

/* Of each type of a device the microbatches in turn; a pass when those that it waits for have run. The next pass is
 * drawn from all that can run. */
static void draw_order(test_random *random, const pc_instance *instance, pc_instance_order *order) {
    int cells = instance->devices * instance->types, *done = calloc((size_t)cells, sizeof *done);
    int64_t *filled = calloc((size_t)instance->devices, sizeof *filled);
    for (int64_t left = instance->devices * instance->passes; left > 0;) {
        int i = (int)test_between(random, 0, cells - 1), device = i / instance->types;
        const pc_instance_cell *cell = &instance->cells[i];
        bool waits = (cell->before != PC_INSTANCE_NONE && done[cell->before] <= done[i]) ||
                     (cell->own != PC_INSTANCE_NONE && done[cell->own] <= done[i]);
        if (done[i] == instance->microbatches || waits) continue;
        order->pass[device * instance->passes + filled[device]++] =
            pc_instance_pass_make(i % instance->types, done[i]++);
        left--;
    }
    free(done);
    free(filled);
}

static int64_t peak_on(const pc_costs *costs, const pc_schedule *s, int device) {
    int64_t level = 0, peak = 0;
    for (int64_t k = s->offsets[device]; k < s->offsets[device + 1]; k++) {
        int64_t i = (int64_t)device * s->chunks + s->passes[k].chunk, kind = s->passes[k].kind;
        int64_t whole = costs->activation_bytes[i], by_b = costs->activation_b_bytes[i];
        level += kind == PC_PASS_F ? whole : kind == PC_PASS_B ? -by_b : kind == PC_PASS_W ? by_b - whole : -whole;
        if (level > peak) peak = level;
    }
    return peak;
}

static pc_schedule schedule_of(const example *e) {
    pc_schedule s;
    assert_int_equal(pc_instance_to_schedule(&e->instance, &e->order, "example", &s, NULL), PC_OK);
    return s;
}

/* With limits that the order needs: just these, or a share more. */
static void draw_limits(test_random *random, example *e) {
    pc_schedule s = schedule_of(e);
    int64_t more = test_between(random, 0, 2) * 10;
    pc_instance_free(&e->instance);
    for (int d = 0; d < s.devices; d++) {
        int64_t peak = peak_on(&e->costs, &s, d);
        e->limit[d] = test_between(random, 0, 5) ? peak + peak * test_between(random, 0, more) / 20 : PC_NO_LIMIT;
    }
    pc_schedule_free(&s);
    assert_int_equal(pc_instance_create(&e->costs, e->placement, e->splits, e->microbatches,
                                        (pc_memory_limit){e->limit}, &e->instance, NULL),
                     PC_OK);
}

static void draw_example(test_random *random, example *e) {
    static const pc_placement two[] = {PC_PLACEMENT_V, PC_PLACEMENT_INTERLEAVED};
    int p = (int)test_between(random, 1, 6), chunks = (int)test_between(random, 1, 2);
    memset(e, 0, sizeof *e);
    e->placement = chunks == 1 ? PC_PLACEMENT_LINEAR : two[test_between(random, 0, 1)];
    e->splits = test_between(random, 0, 1);
    e->microbatches = (int)test_between(random, 1, 10);
    assert_int_equal(pc_costs_create(p, chunks, &e->costs, NULL), PC_OK);
    draw_costs(random, e);
    e->costs.transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 12);
    assert_int_equal(pc_instance_create(&e->costs, e->placement, e->splits, e->microbatches, (pc_memory_limit){NULL},
                                        &e->instance, NULL),
                     PC_OK);
    assert_int_equal(pc_instance_order_create(&e->instance, &e->order, NULL), PC_OK);
    draw_order(random, &e->instance, &e->order);
    draw_limits(random, e);
}

static void free_example(example *e) {
    pc_instance_order_free(&e->order);
    pc_instance_free(&e->instance);
    pc_costs_free(&e->costs);
}

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
static void check_order(const example *e, bool starts_too) {
    pc_schedule s = schedule_of(e);
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
        int64_t of_device = peak_on(&e->costs, &s, d);
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
        example e;
        pc_reorder *reorder;
        pc_instance_order first;
        draw_example(&random, &e);
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
        free_example(&e);
    }
    assert_true(shorter > test_cases(250, 2500)); /* of six times as many */
}

/* Orders as a search starts from them: a block, repeated; here one of two microbatches, at random costs. */
static void test_improve_pairs(void **state) {
    (void)state;
    const pc_pattern pair = {.family = PC_PATTERN_LINEAR_PAIR, .interval = 6, .splits = true};
    test_random random = {53};
    for (int i = 0; i < 200; i++) {
        example e = {.placement = PC_PLACEMENT_LINEAR, .splits = true};
        for (int d = 0; d < 8; d++) e.limit[d] = PC_NO_LIMIT;
        pc_reorder *reorder;
        pc_block b;
        int p = (int)test_between(&random, 1, 7);
        e.microbatches = (int)test_between(&random, 1, 12);
        assert_int_equal(pc_costs_create(p, 1, &e.costs, NULL), PC_OK);
        draw_costs(&random, &e);
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
        free_example(&e);
    }
}

/* The same order again, from a room that was used for something else in between. */
static void test_improve_is_repeatable(void **state) {
    (void)state;
    test_random random = {29};
    for (int i = 0; i < 50; i++) {
        example e;
        pc_instance_order again;
        pc_reorder *reorder;
        draw_example(&random, &e);
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
        free_example(&e);
    }
}

static bool is_same_order(const example *e, const pc_instance_order *a, const pc_instance_order *b) {
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
        example e;
        pc_instance_order before;
        pc_reorder *reorder;
        int way = (int)test_between(&random, PC_REORDER_EAGER, PC_REORDER_STRICT);
        draw_example(&random, &e);
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
        free_example(&e);
    }
    assert_true(stuck > 200);
}

/* A heat gives every entry what it would come to alone: with entries that are the same, and after a heat before. */
static void test_heats(void **state) {
    (void)state;
    enum { ENTRIES = 6 };
    test_random random = {61};
    for (int i = 0; i < 100; i++) {
        example e;
        pc_tournament t;
        pc_reorder *reorder;
        draw_example(&random, &e);
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
        free_example(&e);
    }
}

/* An order that is no longer than is wanted stays as it is. */
static void test_enough_is_enough(void **state) {
    (void)state;
    test_random random = {31};
    for (int i = 0; i < 50; i++) {
        example e;
        pc_reorder *reorder;
        draw_example(&random, &e);
        assert_int_equal(pc_reorder_create(&e.instance, &reorder, NULL), PC_OK);
        assert_true(pc_reorder_squeeze(reorder, &e.order));
        pc_reorder_improve(reorder, 6, PC_REORDER_EAGER, e.order.span, &e.order);
        check_order(&e, true); /* starts are those of the squeezed order */
        pc_reorder_free(reorder);
        free_example(&e);
    }
}

/* ---- orders that cannot run, or do not fit ---- */

/* The types of a device merged at random, whatever they wait for: squeezing says no just where the longest path has a
 * cycle or a device holds too much. */
static void shuffle_device(test_random *random, const example *e, int device) {
    int next[PC_INSTANCE_TYPES_MAX] = {0};
    for (int64_t k = 0; k < e->instance.passes;) {
        int type = (int)test_between(random, 0, e->instance.types - 1);
        if (next[type] == e->microbatches) continue;
        e->order.pass[device * e->instance.passes + k++] = pc_instance_pass_make(type, next[type]++);
    }
}

static bool fits(const example *e, const pc_schedule *s) {
    for (int d = 0; d < s->devices; d++)
        if (peak_on(&e->costs, s, d) > e->limit[d]) return false;
    return true;
}

static void test_squeeze_refuses(void **state) {
    (void)state;
    test_random random = {37};
    long runs = 0, deadlocks = 0, too_large = 0;
    for (long i = 0; i < test_cases(500, 2500); i++) {
        example e;
        pc_reorder *reorder;
        draw_example(&random, &e);
        shuffle_device(&random, &e, (int)test_between(&random, 0, e.instance.devices - 1));
        pc_schedule s = schedule_of(&e);
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
        free_example(&e);
    }
    long cases = test_cases(500, 2500); /* tools that make tests slow draw few */
    assert_true(cases < 100 || (runs > 0 && deadlocks > 0 && (too_large > 0 || cases < 500)));
}

/* ---- the mirror ---- */

static void test_mirror_of_mirror(void **state) {
    (void)state;
    test_random random = {41};
    for (int i = 0; i < 200; i++) {
        example e;
        pc_instance mirror, again;
        draw_example(&random, &e);
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
        free_example(&e);
    }
}

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
        example e;
        pc_reorder *reorder;
        pc_instance full;
        pc_instance_order longer;
        pc_schedule s;
        draw_example(&random, &e);
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
        free_example(&e);
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
        cmocka_unit_test(test_improve),
        cmocka_unit_test(test_improve_pairs),
        cmocka_unit_test(test_improve_is_repeatable),
        cmocka_unit_test(test_stuck_for_good),
        cmocka_unit_test(test_heats),
        cmocka_unit_test(test_enough_is_enough),
        cmocka_unit_test(test_squeeze_refuses),
        cmocka_unit_test(test_mirror_of_mirror),
        cmocka_unit_test(test_least_span),
        cmocka_unit_test(test_stretch_of_periodic_orders),
        cmocka_unit_test(test_stretch_of_random_orders),
        cmocka_unit_test(test_stretch_length),
        cmocka_unit_test(test_coarse_plans),
        cmocka_unit_test(test_times_in_other_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
