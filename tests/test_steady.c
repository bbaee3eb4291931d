/* The middle of a schedule: cycle ratios against all cycles of small graphs; intervals of known schedules by algebra;
 * and of all others by longer and longer iterations. */
#include "tests/support.h"

#include "models/schedule/cycle_ratio.h"
#include "models/schedule/generate.h"
#include "models/schedule/steady.h"
#include "models/schedule/timing.h"

/* ---- cycle ratios ---- */

enum { EVENTS_MAX = 6, EDGES_MAX = 14 };

typedef struct graph {
    pc_event_edge edges[EDGES_MAX];
    int edges_count, events;
    bool is_on_way[EVENTS_MAX];
    bool waits_for_itself, goes_back; /* by a cycle of no turns and some time; of turns below zero and no time */
    pc_cycle_ratio greatest;
} graph;

/* Goes every way from `start` through events above it that comes back to it. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are events */
static void go_on(graph *g, int start, int at, pc_cycle_ratio way) {
    for (int e = 0; e < g->edges_count; e++) {
        const pc_event_edge *edge = &g->edges[e];
        pc_cycle_ratio longer = {way.time + edge->time, way.turns + edge->turns};
        if (edge->from != at || edge->to < start || (edge->to != start && g->is_on_way[edge->to])) continue;
        if (edge->to != start) {
            g->is_on_way[edge->to] = true;
            go_on(g, start, edge->to, longer);
            g->is_on_way[edge->to] = false;
        } else if (longer.turns <= 0) {
            g->waits_for_itself = g->waits_for_itself || longer.time > 0;
            g->goes_back = g->goes_back || longer.turns < 0;
        } else if (g->greatest.turns == 0 || longer.time * g->greatest.turns > g->greatest.time * longer.turns) {
            g->greatest = longer;
        }
    }
}

static void draw_graph(test_random *random, graph *g) {
    *g = (graph){.events = (int)test_between(random, 1, EVENTS_MAX),
                 .edges_count = (int)test_between(random, 1, EDGES_MAX)};
    for (int e = 0; e < g->edges_count; e++)
        g->edges[e] = (pc_event_edge){.from = (int32_t)test_between(random, 0, g->events - 1),
                                      .to = (int32_t)test_between(random, 0, g->events - 1),
                                      .turns = (int32_t)test_between(random, -1, 4),
                                      .time = test_between(random, 0, 9)};
}

static void test_cycle_ratios(void **state) {
    (void)state;
    test_random random = {5};
    int found = 0, impossible = 0;
    for (long i = 0; i < test_cases(2000, 6000); i++) {
        graph g;
        pc_cycle_ratio ratio;
        draw_graph(&random, &g);
        for (int v = 0; v < g.events; v++) go_on(&g, v, v, (pc_cycle_ratio){0});
        assert_int_equal(pc_cycle_ratio_find(g.edges, g.edges_count, g.events, &ratio, NULL), PC_OK);
        if (g.waits_for_itself || (g.goes_back && g.greatest.time > 0) || g.greatest.turns == 0) {
            assert_int_equal(ratio.turns, 0);
            impossible++;
        } else {
            assert_int_equal(ratio.time * g.greatest.turns, g.greatest.time * ratio.turns);
            found++;
        }
    }
    assert_true(found > impossible / 20 && impossible > found / 20);
}

/* ---- schedules ---- */

/* Times of a chunk, F, B and W, BW both of the last, R as F, S and T as W; and a delay. */
static void make_costs(int p, int chunks, const int times[3], int delay, pc_costs *costs) {
    assert_int_equal(pc_costs_create(p, chunks, costs, NULL), PC_OK);
    for (int i = 0; i < p * chunks; i++) {
        for (int kind = 0; kind < 3; kind++) costs->duration_ps[i * PC_PASS_KINDS + kind] = times[kind];
        costs->duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = times[1] + times[2];
        costs->duration_ps[i * PC_PASS_KINDS + PC_PASS_R] = times[0];
        for (int kind = PC_PASS_S; kind <= PC_PASS_T; kind++) costs->duration_ps[i * PC_PASS_KINDS + kind] = times[2];
        costs->activation_bytes[i] = 100;
    }
    costs->transfer.delay_ps = delay;
}

static void draw_times(test_random *random, int times[3]) {
    for (int kind = 0; kind < 3; kind++) times[kind] = (int)test_between(random, 1, 9);
}

static void make(const char *name, int p, int m, int chunks, pc_making making, const pc_costs *costs,
                 pc_schedule *schedule) {
    const pc_generate_request request = {
        .devices = p, .microbatches = m, .chunks = chunks, .costs = costs, .threads = 1, .making = making};
    assert_int_equal(pc_generate(pc_generator_find(name), &request, schedule, NULL, NULL), PC_OK);
}

static pc_steady find_in(const char *name, int p, int m, int chunks, pc_making making, const pc_costs *costs) {
    pc_schedule schedule;
    pc_steady steady;
    make(name, p, m, chunks, making, costs, &schedule);
    assert_int_equal(pc_steady_find(&schedule, costs, &steady, NULL), PC_OK);
    pc_schedule_free(&schedule);
    return steady;
}

/* The interval is time / microbatches. */
static void expect_interval(const pc_steady *steady, pc_time time, int64_t microbatches) {
    assert_true(steady->microbatches > 0);
    assert_int_equal(steady->cycle_ps * microbatches, time * steady->cycle_microbatches);
    assert_float_equal(steady->interval_ps, (double)time / (double)microbatches, 1e-9);
}

/* 1F1B holds p-d microbatches on device d: its F of one waits for the BW of the one p-d before it. From there F goes
 * down the p-d devices behind it and BW comes back, in p-d microbatches' time: F + BW + 2 c (p-d-1)/(p-d), the most on
 * the first device, of two chunks' worth of nothing but work without transfers. Eager 1F1B holds 2(p-d)-1: there that
 * way, (p-d)(F + BW) + 2 c (p-d-1), goes by in 2(p-d)-1 microbatches, which is longest where p-d = 1, unless c is long.
 */
static void test_1f1b(void **state) {
    (void)state;
    test_random random = {6};
    for (long i = 0; i < test_cases(40, 150); i++) {
        int times[3], p = (int)test_between(&random, 1, 7), c = (int)test_between(&random, 0, 60);
        pc_costs costs;
        draw_times(&random, times);
        make_costs(p, 1, times, c, &costs);
        pc_time work = times[0] + times[1] + times[2], time = work, microbatches = 1;
        pc_steady steady = find_in("1f1b", p, 4 * p + 2, 1, PC_MAKING_COSTS, &costs);
        expect_interval(&steady, p * work + 2 * (p - 1) * c, p);
        for (int d = 0; d < p; d++) assert_float_equal(pc_steady_idle_ps(&steady, d), 2.0 * (p - 1) * c / p, 1e-9);
        assert_float_equal(pc_steady_bubble_rate(&steady), 1 - (double)work / steady.interval_ps, 1e-9);
        pc_steady_free(&steady);
        for (int n = 1; n <= p; n++) {
            pc_time way = n * work + 2 * (n - 1) * c;
            if (way * microbatches <= time * (2 * n - 1)) continue;
            time = way;
            microbatches = 2 * n - 1;
        }
        steady = find_in("eager-1f1b", p, 6 * p + 2, 1, PC_MAKING_COSTS, &costs);
        expect_interval(&steady, time, microbatches);
        pc_steady_free(&steady);
        pc_costs_free(&costs);
    }
}

/* V-Min as published, with transfers that are free. Every pass stands one cell behind the one before it in the model,
 * and in six cells the pattern returns. So there is a cycle, one turn long, of six F (of the two chunks, down and up
 * three devices) and one of six B: the interval is the work, or six times the longer of the two. W, which nobody waits
 * for, makes no such cycle. With 3 and 4 a stage, p = 8: six times 2, where the work is 9. V-Half runs down two cells a
 * device: such a cycle has four F or B and the W that stands between two of them. */
static void test_published_v(void **state) {
    (void)state;
    test_random random = {7};
    for (long i = 0; i < test_cases(30, 100); i++) {
        int times[3], p = (int)test_between(&random, 4, 9);
        pc_costs costs;
        draw_times(&random, times);
        make_costs(p, 2, times, 0, &costs);
        pc_steady steady = find_in("v-min", p, 5 * p, 2, PC_MAKING_PUBLISHED, &costs);
        pc_time longest = times[0] > times[1] ? times[0] : times[1], work = 2 * (times[0] + times[1] + times[2]);
        expect_interval(&steady, 6 * longest > work ? 6 * longest : work, 1);
        pc_steady_free(&steady);
        steady = find_in("v-half", p, 5 * p, 2, PC_MAKING_PUBLISHED, &costs);
        expect_interval(&steady, 4 * longest + times[2] > work ? 4 * longest + times[2] : work, 1);
        pc_steady_free(&steady);
        pc_costs_free(&costs);
    }
}

/* In GPipe's middle F turn into BW, and one microbatch has no middle. */
static void test_none(void **state) {
    (void)state;
    static const int times[] = {1, 1, 1};
    pc_costs costs;
    make_costs(3, 1, times, 0, &costs);
    pc_steady steady = find_in("gpipe", 3, 12, 1, PC_MAKING_COSTS, &costs);
    assert_int_equal(steady.microbatches, 0);
    pc_steady_free(&steady);
    steady = find_in("1f1b", 3, 1, 1, PC_MAKING_COSTS, &costs);
    assert_int_equal(steady.microbatches, 0);
    pc_steady_free(&steady);
    pc_costs_free(&costs);
}

/* ---- another count: longer iterations ---- */

static pc_time span_of(const char *name, int p, int m, int chunks, pc_making making, const pc_costs *costs) {
    pc_schedule schedule;
    pc_timing *timing;
    pc_timing_result result;
    make(name, p, m, chunks, making, costs, &schedule);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run(timing, &schedule, costs, &result, NULL), PC_OK);
    pc_time span = result.totals.span_ps;
    pc_timing_free(timing);
    pc_schedule_free(&schedule);
    return span;
}

/* Once in step, an iteration that is longer by the cycle's microbatches takes the cycle's time more. The
 * orders do not look at times, so that the longer one is the shorter one with its middle put in again. Being in step
 * can take a thousand microbatches where another cycle is nearly as long. */
static void test_longer_iterations(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int chunks;
        pc_making making;
    } orders[] = {{"1f1b", 1, PC_MAKING_COSTS},
                  {"eager-1f1b", 1, PC_MAKING_COSTS},
                  {"zb-h1", 1, PC_MAKING_COSTS},
                  {"zb-h2", 1, PC_MAKING_COSTS},
                  {"1f1b-interleaved", 2, PC_MAKING_COSTS},
                  {"1f1b-interleaved", 3, PC_MAKING_COSTS},
                  {"chimera", 2, PC_MAKING_COSTS},
                  {"v-min", 2, PC_MAKING_PUBLISHED},
                  {"v-half", 2, PC_MAKING_PUBLISHED},
                  {"gis", 2, PC_MAKING_COSTS},
                  {"seq-1f1b", 3, PC_MAKING_COSTS},
                  {"seq-zb-h1", 2, PC_MAKING_COSTS},
                  {"1f1b-vocab-1", 1, PC_MAKING_COSTS},
                  {"v-half-vocab-2", 2, PC_MAKING_COSTS}};
    test_random random = {8};
    for (long i = 0; i < test_cases(28, 140); i++) {
        int which = (int)(i % (long)(sizeof orders / sizeof *orders)), chunks = orders[which].chunks;
        int times[3], p = 2 * (int)test_between(&random, 1, 2), c = (int)test_between(&random, 0, 6);
        enum { SHORT = 1200 };
        pc_costs costs;
        draw_times(&random, times);
        make_costs(p, chunks, times, c, &costs);
        pc_steady steady = find_in(orders[which].name, p, SHORT, chunks, orders[which].making, &costs);
        assert_true(steady.microbatches > 0);
        pc_time less = span_of(orders[which].name, p, SHORT, chunks, orders[which].making, &costs);
        pc_time more = span_of(orders[which].name, p, SHORT + (int)steady.cycle_microbatches, chunks,
                               orders[which].making, &costs);
        assert_int_equal(more - less, steady.cycle_ps);
        pc_steady_free(&steady);
        pc_costs_free(&costs);
    }
}

/* Of every order that looks at no costs, at every m up to where its middle must be found: no device can do with less
 * than its own work. What waits for most (slices, barriers) asks for the most room. */
static void test_every_order(void **state) {
    (void)state;
    int count, found = 0, p = 8;
    const pc_generator *all = pc_generators(&count);
    for (int n = 0; n < count; n++) {
        const pc_generator *g = &all[n];
        int times[3] = {2, 3, 1};
        pc_costs costs;
        if (g->searches) continue;
        make_costs(p, g->chunks_default, times, 1, &costs);
        for (int m = p; m <= 6 * p; m += p) {
            if (pc_generator_check(g, p, m, 0, NULL)) continue;
            pc_steady steady = find_in(g->name, p, m, g->chunks_default, PC_MAKING_COSTS, &costs);
            for (int d = 0; steady.microbatches > 0 && d < p; d++) assert_true(pc_steady_idle_ps(&steady, d) > -1e-9);
            found += steady.microbatches > 0;
            pc_steady_free(&steady);
        }
        pc_costs_free(&costs);
    }
    assert_true(found > count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cycle_ratios), cmocka_unit_test(test_1f1b),
                                       cmocka_unit_test(test_published_v),  cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_every_order),  cmocka_unit_test(test_longer_iterations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
