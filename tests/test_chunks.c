/* Searches over three and four chunks in a V, and over interleaved chunks. Their orders are legal, within every limit
 * and no longer than the orders that look at no costs. What others ask for does not change them; and what they save.
 */
#include "tests/support.h"

#include "tests/longest_path.h"
#include "tests/memory_limits.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/improve.h"
#include "models/schedule/search/dispatch.h"
#include "models/schedule/search/reorder.h"

#include <stdlib.h>

/* ---- random requests ---- */

typedef struct example {
    const pc_generator *generator;
    pc_costs costs;
    test_limits limits;
    pc_generate_request request;
} example;

static int64_t stage_bytes(const pc_costs *costs, int device) {
    int64_t bytes = 0;
    for (int c = 0; c < costs->chunks; c++) bytes += costs->activation_bytes[device * costs->chunks + c];
    return bytes;
}

/* Of any times (0 too), BW as long as B and W, B giving back a part; limits from one microbatch up, or none. */
static void draw_example(test_random *random, example *e) {
    bool is_v = test_between(random, 0, 1), is_equal = test_between(random, 0, 2) == 0;
    int p = (int)test_between(random, 1, 5), v = (int)test_between(random, is_v ? 3 : 2, 4);
    *e = (example){.generator = pc_generator_find(is_v ? "v-adaptive" : "interleaved-adaptive")};
    assert_int_equal(pc_costs_create(p, v, &e->costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)p * v; i++) {
        pc_time *times = &e->costs.duration_ps[i * PC_PASS_KINDS];
        /* cppcheck-suppress objectIndex ; duration_ps is an array */
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) times[kind] = is_equal ? 5 : test_between(random, 0, 9);
        /* cppcheck-suppress objectIndex ; likewise */
        times[PC_PASS_BW] = times[PC_PASS_B] + times[PC_PASS_W];
        e->costs.activation_bytes[i] = is_equal ? 10 : test_between(random, 0, 20);
        e->costs.activation_b_bytes[i] = test_between(random, 0, e->costs.activation_bytes[i]);
    }
    e->costs.transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 12);
    e->limits = test_limit_all(PC_NO_LIMIT);
    bool is_limited = test_between(random, 0, 4) > 0, is_wide = test_between(random, 0, 2) == 0;
    for (int d = 0; d < p && is_limited; d++)
        e->limits.bytes[d] = stage_bytes(&e->costs, d) * (is_wide ? 8 * p : test_between(random, 4, 4 * p + 4)) / 4;
    e->request = (pc_generate_request){.devices = p,
                                       .microbatches = test_between(random, 1, test_between(random, 0, 9) ? 9 : 30),
                                       .chunks = v,
                                       .costs = &e->costs,
                                       .memory_limit = test_limit(&e->limits),
                                       .threads = 1};
}

/* ---- counted again ---- */

static pc_time span_of(const pc_schedule *s, const pc_costs *costs) {
    int64_t passes = s->offsets[s->devices];
    pc_time *start = calloc((size_t)passes, sizeof *start), *end = calloc((size_t)passes, sizeof *end), span = 0;
    assert_true(longest_path(s, costs, start, end));
    for (int d = 0; d < s->devices; d++) {
        pc_time of_device = end[s->offsets[d + 1] - 1] - start[s->offsets[d]];
        if (of_device > span) span = of_device;
    }
    free(start);
    free(end);
    return span;
}

/* Pass by pass: F takes all, B gives back its part and W the rest, BW all. */
static bool keeps(const pc_schedule *s, const pc_costs *costs, const test_limits *limits) {
    for (int d = 0; d < s->devices; d++) {
        int64_t level = 0;
        for (int64_t k = s->offsets[d]; k < s->offsets[d + 1]; k++) {
            int64_t i = (int64_t)d * s->chunks + s->passes[k].chunk, kind = s->passes[k].kind;
            int64_t all = costs->activation_bytes[i], by_b = costs->activation_b_bytes[i];
            level += kind == PC_PASS_F ? all : kind == PC_PASS_B ? -by_b : kind == PC_PASS_W ? by_b - all : -all;
            if (level > limits->bytes[d]) return false;
        }
        assert_int_equal(level, 0);
    }
    return true;
}

static bool has_sizes(const pc_costs *costs) {
    for (int i = 0; i < costs->devices * costs->chunks; i++)
        if (costs->activation_bytes[i] > 0) return true;
    return false;
}

static const char *const fixed[] = {"1f1b-interleaved",
                                    "1f1b-interleaved-overlap",
                                    "1f1b-interleaved-low-memory",
                                    "looped-bfs",
                                    "zb-interleaved",
                                    "gis",
                                    "gis-h",
                                    "gis-uniform",
                                    "gis-h-uniform"};

/* Whole backward passes that take what their B and W do are no shorter than those apart. */
static int check_fixed(const example *e, pc_time span) {
    int counted = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        pc_schedule s;
        const pc_generator *g = pc_generator_find(fixed[i]);
        if (pc_generator_check(g, e->request.devices, e->request.microbatches, e->request.chunks, NULL)) continue;
        assert_int_equal(pc_generate(g, &e->request, &s, NULL, NULL), PC_OK);
        if (keeps(&s, &e->costs, &e->limits)) {
            if (span_of(&s, &e->costs) < span)
                fail_msg("%s: p %d, m %d, v %d: %d, and the search has %d", fixed[i], s.devices, s.microbatches,
                         s.chunks, (int)span_of(&s, &e->costs), (int)span);
            counted++;
        }
        pc_schedule_free(&s);
    }
    return counted;
}

/* Where no device has a limit of its own, what 1f1b-interleaved holds on the first device is that of all. */
static void test_random_requests(void **state) {
    (void)state;
    test_random random = {81};
    int counted = 0;
    for (long i = 0; i < test_cases(30, 400); i++) {
        example e;
        pc_schedule s;
        pc_block block;
        pc_error error = {0};
        draw_example(&random, &e);
        if (pc_generate(e.generator, &e.request, &s, &block, &error)) fail_msg("%s", error.message);
        if (pc_schedule_check(&s, &error)) fail_msg("%s", error.message);
        assert_int_equal(s.chunks, e.request.chunks);
        assert_int_equal(s.placement, e.generator->placement);
        if (has_sizes(&e.costs)) assert_true(keeps(&s, &e.costs, &e.limits));
        bool is_all = e.limits.bytes[0] != PC_NO_LIMIT;
        if (is_all && has_sizes(&e.costs) && e.generator->placement == PC_PLACEMENT_INTERLEAVED)
            counted += check_fixed(&e, span_of(&s, &e.costs));
        pc_block_free(&block);
        pc_schedule_free(&s);
        pc_costs_free(&e.costs);
    }
    assert_true(test_saw(counted, 10));
}

/* ---- orders of rules ---- */

/* Every rule's order runs, within every limit that has room for one microbatch; with less there is none. */
static void test_rules(void **state) {
    (void)state;
    test_random random = {82};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        example e;
        pc_instance instance;
        pc_instance_order order;
        pc_reorder *room;
        pc_dispatch *dispatch;
        draw_example(&random, &e);
        int m = (int)e.request.microbatches;
        assert_int_equal(pc_instance_create(&e.costs, e.generator->placement, test_between(&random, 0, 1), m,
                                            e.request.memory_limit, &instance, NULL),
                         PC_OK);
        assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
        assert_int_equal(pc_reorder_create(&instance, &room, NULL), PC_OK);
        assert_int_equal(pc_dispatch_create(&instance, &dispatch, NULL), PC_OK);
        pc_dispatch_rule rule = {.group = (int)test_between(&random, 1, 2 * instance.devices),
                                 .first = (pc_dispatch_first)test_between(&random, 0, 2),
                                 .waiting = (int)test_between(&random, 1, 6),
                                 .under_way = (int)test_between(&random, 1, m)};
        assert_true(pc_dispatch_run(dispatch, &rule, &order));
        assert_true(pc_reorder_squeeze(room, &order));
        int device = (int)test_between(&random, 0, instance.devices - 1);
        if (stage_bytes(&e.costs, device) > 1) {
            instance.limit[device] = stage_bytes(&e.costs, device) - 1;
            assert_false(pc_dispatch_run(dispatch, &rule, &order));
        }
        pc_dispatch_free(dispatch);
        pc_reorder_free(room);
        pc_instance_order_free(&order);
        pc_instance_free(&instance);
        pc_costs_free(&e.costs);
    }
}

/* ---- known spans ---- */

/* A chunk takes `times` in all of F, B, W, and a microbatch of it 1 byte. */
static pc_costs chunk_costs(int p, int v, const pc_time times[3], pc_time delay) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, v, &costs, NULL), PC_OK);
    for (int i = 0; i < p * v; i++) {
        for (int kind = 0; kind < 3; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = times[kind];
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = times[PC_PASS_B] + times[PC_PASS_W];
        costs.activation_bytes[i] = 1;
    }
    costs.transfer.delay_ps = delay;
    return costs;
}

static pc_time searched_span(const char *name, int p, int m, const pc_costs *costs, int64_t chunks_held) {
    test_limits limits = test_limit_all(chunks_held);
    pc_generate_request request = {.devices = p,
                                   .microbatches = m,
                                   .chunks = costs->chunks,
                                   .costs = costs,
                                   .memory_limit = test_limit(&limits),
                                   .threads = 1};
    pc_schedule s;
    pc_error error = {0};
    if (pc_generate(pc_generator_find(name), &request, &s, NULL, &error)) fail_msg("%s", error.message);
    assert_true(keeps(&s, costs, &limits));
    pc_time span = span_of(&s, costs);
    pc_schedule_free(&s);
    return span;
}

/* Passes of one cell, memory of 1F1B (pv chunks), m = 2p. A W ends where it begins, on the first device: as in V-ZB no
 * device needs to idle, for the first B is there after the pv F of the first microbatch, and pv chunks fit until then:
 * 3vm. An N and what is interleaved end on the last device. Its first B there comes after pv F, and the first device's
 * after p-1 more B: 3vm + p-1, zb-interleaved's own idle time (docs/schedules.md). */
static void test_no_more_idle_time_than_needed(void **state) {
    (void)state;
    const pc_time cells[] = {1, 1, 1};
    for (int p = 2; p <= 4; p++)
        for (int v = 3; v <= 4; v++) {
            pc_costs costs = chunk_costs(p, v, cells, 0);
            int m = 2 * p, idle = v % 2 == 0 ? 0 : p - 1;
            assert_int_equal(searched_span("v-adaptive", p, m, &costs, (int64_t)p * v), 3 * v * m + idle);
            assert_int_equal(searched_span("interleaved-adaptive", p, m, &costs, (int64_t)p * v), 3 * v * m + p - 1);
            pc_costs_free(&costs);
        }
}

/* zb-interleaved does not look at times; where F, B, W of a chunk take 3, 4 and 2 and a transfer 2, it waits for every
 * one of them. In its memory the search saves 7% at the least (413 to 381), device by device more than 5%. */
static void test_saves(void **state) {
    (void)state;
    const pc_time times[] = {3, 4, 2};
    pc_costs costs = chunk_costs(4, 3, times, 2);
    pc_generate_request request = {.devices = 4, .microbatches = 12, .chunks = 3, .costs = &costs, .threads = 1};
    pc_schedule s, improved;
    pc_improvement how;
    assert_int_equal(pc_generate(pc_generator_find("zb-interleaved"), &request, &s, NULL, NULL), PC_OK);
    pc_time fixed_span = span_of(&s, &costs), found = searched_span("interleaved-adaptive", 4, 12, &costs, 12);
    assert_true(100 * found < 93 * fixed_span);
    pc_improve_request improve = {.schedule = &s, .costs = &costs, .threads = 1};
    assert_int_equal(pc_schedule_improve(&improve, &improved, &how, NULL), PC_OK);
    assert_true(how.is_changed && 100 * span_of(&improved, &costs) < 95 * fixed_span);
    pc_improvement_free(&how);
    pc_schedule_free(&improved);
    pc_schedule_free(&s);
    pc_costs_free(&costs);
}

/* Whole backward passes over several chunks have no name that searches, and are searched all the same. In half of what
 * 1f1b-interleaved holds, sweeps from one microbatch after the other end at 690. */
static void test_improves_whole_backward_passes(void **state) {
    (void)state;
    const pc_time times[] = {3, 4, 2};
    pc_costs costs = chunk_costs(8, 2, times, 1);
    test_limits limits = test_limit_all(12);
    pc_generate_request request = {.devices = 8, .microbatches = 24, .chunks = 2, .costs = &costs, .threads = 1};
    pc_schedule s, improved;
    pc_improvement how;
    assert_int_equal(pc_generate(pc_generator_find("1f1b-interleaved"), &request, &s, NULL, NULL), PC_OK);
    assert_false(keeps(&s, &costs, &limits));
    pc_improve_request improve = {.schedule = &s, .costs = &costs, .memory_limit = test_limit(&limits), .threads = 1};
    assert_int_equal(pc_schedule_improve(&improve, &improved, &how, NULL), PC_OK);
    assert_false(pc_schedule_has(&improved, PC_PASS_W));
    assert_true(keeps(&improved, &costs, &limits));
    assert_true(span_of(&improved, &costs) <= 650);
    pc_improvement_free(&how);
    pc_schedule_free(&improved);
    pc_schedule_free(&s);
    pc_costs_free(&costs);
}

/* ---- without a limit ---- */

/* The first device of 1f1b-interleaved holds 2(p-1) + (v-1)p + 1 chunks: p = 4, v = 3: 15. */
static void test_default_limit(void **state) {
    (void)state;
    const pc_time times[] = {3, 4, 2};
    pc_costs costs = chunk_costs(4, 3, times, 1);
    pc_generate_request request = {.devices = 4, .microbatches = 12, .chunks = 3, .costs = &costs, .threads = 1};
    test_limits limits = test_limit_all(15), less = test_limit_all(14);
    pc_schedule s;
    assert_int_equal(pc_generate(pc_generator_find("1f1b-interleaved"), &request, &s, NULL, NULL), PC_OK);
    assert_true(keeps(&s, &costs, &limits) && !keeps(&s, &costs, &less));
    pc_time fixed_span = span_of(&s, &costs);
    pc_schedule_free(&s);
    assert_int_equal(pc_generate(pc_generator_find("interleaved-adaptive"), &request, &s, NULL, NULL), PC_OK);
    assert_true(keeps(&s, &costs, &limits));
    assert_true(span_of(&s, &costs) < fixed_span);
    pc_schedule_free(&s);
    pc_costs_free(&costs);
}

/* ---- the hop from the last device to the first ---- */

/* What a memo knows of a ring of three devices is no answer to one whose last hop takes longer. */
static void test_ring(void **state) {
    (void)state;
    const pc_time times[] = {3, 4, 2};
    pc_costs costs = chunk_costs(3, 2, times, 1);
    pc_search_memo *memo;
    pc_generate_request request = {.devices = 3, .microbatches = 6, .chunks = 2, .costs = &costs, .threads = 1};
    assert_int_equal(pc_costs_add_hop_delays(&costs, NULL), PC_OK);
    assert_int_equal(pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &memo, NULL), PC_OK);
    for (int i = 0; i < 2; i++) {
        pc_schedule with, without;
        costs.hop_delay_ps[2] = 1 + 20 * i;
        request.memo = memo;
        assert_int_equal(pc_generate(pc_generator_find("interleaved-adaptive"), &request, &with, NULL, NULL), PC_OK);
        request.memo = NULL;
        assert_int_equal(pc_generate(pc_generator_find("interleaved-adaptive"), &request, &without, NULL, NULL), PC_OK);
        assert_memory_equal(with.passes, without.passes, (size_t)with.offsets[3] * sizeof *with.passes);
        pc_schedule_free(&with);
        pc_schedule_free(&without);
    }
    pc_search_memo_free(memo);
    pc_costs_free(&costs);
}

/* ---- what is refused ---- */

static void expect_refused(const char *name, int p, int v, pc_making making, int64_t limit, const char *message) {
    const pc_time times[] = {1, 1, 1};
    pc_costs costs = chunk_costs(p, v, times, 0);
    test_limits limits = test_limit_all(limit);
    pc_generate_request request = {.devices = p,
                                   .microbatches = 4,
                                   .chunks = v,
                                   .costs = &costs,
                                   .memory_limit = test_limit(&limits),
                                   .threads = 1,
                                   .making = making};
    pc_schedule s;
    pc_error error;
    assert_int_equal(pc_generate(pc_generator_find(name), &request, &s, NULL, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
    pc_costs_free(&costs);
}

static void test_refused(void **state) {
    (void)state;
    expect_refused("v-adaptive", 2, 5, PC_MAKING_COSTS, 99, "v-adaptive: 5 chunks a device; expected 2 to 4");
    expect_refused("interleaved-adaptive", 2, 1, PC_MAKING_COSTS, 99,
                   "interleaved-adaptive: 1 chunks a device; expected 2 to 8");
    expect_refused("v-adaptive", 2, 3, PC_MAKING_COSTS, 2,
                   "v-adaptive: device 0 has 2 bytes for activations; expected at least 3, which one microbatch takes");
    expect_refused("interleaved-adaptive", 2, 4, PC_MAKING_EQUAL, 3,
                   "interleaved-adaptive: device 0 has 3 bytes for activations; expected at least 4, which one "
                   "microbatch takes");
    expect_refused("v-adaptive", 2, 3, PC_MAKING_PUBLISHED, 9,
                   "v-adaptive: making published: 3 chunks a device; expected 2, for the public generator has no order "
                   "of others");
}

/* ---- threads, and memory that is refused ---- */

static void test_threads(void **state) {
    (void)state;
    test_random random = {83};
    for (long i = 0; i < test_cases(2, 20); i++) {
        example e;
        draw_example(&random, &e);
        pc_schedule one, several;
        assert_int_equal(pc_generate(e.generator, &e.request, &one, NULL, NULL), PC_OK);
        e.request.threads = 3;
        assert_int_equal(pc_generate(e.generator, &e.request, &several, NULL, NULL), PC_OK);
        assert_memory_equal(one.passes, several.passes, (size_t)one.offsets[one.devices] * sizeof *one.passes);
        pc_schedule_free(&one);
        pc_schedule_free(&several);
        pc_costs_free(&e.costs);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    const pc_time times[] = {3, 4, 2};
    pc_costs costs = chunk_costs(2, 3, times, 1);
    test_limits limits = test_limit_all(4);
    pc_generate_request request = {.devices = 2,
                                   .microbatches = 3,
                                   .chunks = 3,
                                   .costs = &costs,
                                   .memory_limit = test_limit(&limits),
                                   .threads = 1,
                                   .searches_once = true};
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long i = 0; code; i++) {
        pc_schedule s = {0};
        pc_alloc_fail_after(i);
        code = pc_generate(pc_generator_find("interleaved-adaptive"), &request, &s, NULL, NULL);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
        if (!code) pc_schedule_free(&s);
    }
    pc_costs_free(&costs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_requests),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_no_more_idle_time_than_needed),
        cmocka_unit_test(test_saves),
        cmocka_unit_test(test_improves_whole_backward_passes),
        cmocka_unit_test(test_default_limit),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
