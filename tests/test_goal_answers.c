/* What searches answer for each goal: none is beaten by what was searched for another, within limits of devices, over
 * links, and in iterations; what a memo keeps apart; and allocations that fail. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/search/links.h"
#include "models/schedule/search/objective.h"
#include "models/training/outline.h"
#include "models/training/tails.h"
#include "tests/goal_example.h"
#include "tests/iteration_example.h"
#include "tests/longest_path.h"

/* ---- answers ---- */

static void check_limits(const goal_example *e, const pc_schedule *schedule) {
    const pc_replay_options how = {.memory_limit = {(int64_t *)e->limit}};
    pc_replay replay;
    assert_int_equal(pc_replay_run(schedule, &e->costs, &how, &replay, NULL), PC_OK);
    assert_false(replay.out_of_memory);
    pc_replay_free(&replay);
}

/* For its own goal each is at least as good as those for the others; with one memo for all, they are the same. */
static void test_no_goal_is_beaten(void **state) {
    (void)state;
    test_random random = {74};
    long better = 0;
    for (long i = 0, cases = test_cases(8, 50); i < cases; i++) {
        goal_example e;
        pc_search_memo *memo;
        goal_counted of[PC_GOALS];
        goal_example_any(&random, 4, &e);
        assert_int_equal(pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &memo, NULL), PC_OK);
        for (pc_goal goal = 0; goal < PC_GOALS; goal++) {
            pc_schedule schedule = goal_example_schedule(&e, goal, &e.costs, memo),
                        again = goal_example_schedule(&e, goal, &e.costs, NULL);
            size_t passes = (size_t)schedule.offsets[schedule.devices];
            assert_memory_equal(schedule.passes, again.passes, passes * sizeof *again.passes);
            check_limits(&e, &schedule);
            of[goal] = goal_count(&e, &schedule, goal == PC_GOAL_ITERATION);
            if (goal != PC_GOAL_ITERATION) of[goal].iteration = goal_count(&e, &schedule, true).iteration;
            pc_schedule_free(&schedule);
            pc_schedule_free(&again);
        }
        assert_true(of[PC_GOAL_MAKESPAN].makespan <= of[PC_GOAL_SPAN].makespan);
        assert_true(of[PC_GOAL_ITERATION].iteration <= of[PC_GOAL_SPAN].iteration);
        better += of[PC_GOAL_ITERATION].iteration < of[PC_GOAL_SPAN].iteration;
        e.own[0] += 100; /* other tails, another answer of the memo */
        pc_schedule schedule = goal_example_schedule(&e, PC_GOAL_ITERATION, &e.costs, memo),
                    again = goal_example_schedule(&e, PC_GOAL_ITERATION, &e.costs, NULL);
        assert_memory_equal(schedule.passes, again.passes,
                            (size_t)schedule.offsets[schedule.devices] * sizeof *again.passes);
        pc_schedule_free(&schedule);
        pc_schedule_free(&again);
        pc_search_memo_free(memo);
        goal_example_free(&e);
    }
    assert_true(better > 0);
}

/* Of a V the first and the last part, embedding and head, take longer and are on device 0. */
static void lengthen_ends(test_random *random, goal_example *e) {
    for (int chunk = 0; chunk < e->costs.chunks; chunk++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            e->costs.duration_ps[chunk * PC_PASS_KINDS + kind] += test_between(random, 0, 12);
}

static pc_time span_within(goal_example *e, const int64_t *limit) {
    memcpy(e->limit, limit, sizeof e->limit);
    pc_schedule schedule = goal_example_schedule(e, PC_GOAL_SPAN, &e->costs, NULL);
    check_limits(e, &schedule);
    pc_time span = goal_count(e, &schedule, false).span;
    pc_schedule_free(&schedule);
    return span;
}

/* Within limits of their own, which they keep, devices that differ take no longer than with the smallest of them
 * everywhere; some take less. */
static void test_limits_by_device(void **state) {
    (void)state;
    test_random random = {80};
    long better = 0;
    for (long i = 0, cases = test_cases(20, 50); i < cases; i++) {
        goal_example e;
        int64_t own[GOAL_DEVICES_MOST] = {0}, least[GOAL_DEVICES_MOST];
        int p = (int)test_between(&random, 2, 4);
        goal_example_draw(&random, "v-adaptive", p, (int)test_between(&random, 2, 8), &e);
        lengthen_ends(&random, &e);
        for (int d = 0; d < p; d++) own[d] = 12 * test_between(&random, 2, 2 * p);
        for (int d = 0; d < GOAL_DEVICES_MOST; d++) least[d] = own[0];
        for (int d = 1; d < p; d++)
            for (int other = 0; other < GOAL_DEVICES_MOST; other++)
                if (own[d] < least[other]) least[other] = own[d];
        pc_time by_device = span_within(&e, own), everywhere = span_within(&e, least);
        assert_true(by_device <= everywhere);
        better += by_device < everywhere;
        goal_example_free(&e);
    }
    assert_true(better > 0);
}

/* ---- over links ---- */

static void draw_links(test_random *random, goal_example *e) {
    e->costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                      .latency_ps = test_between(random, 0, 5),
                                      .bandwidth_bytes_per_s = 1e12,
                                      .size_bytes = test_between(random, 1, 30)};
}

/* Every start is that of the replay, event by event. */
static void test_links_are_those_of_the_replay(void **state) {
    (void)state;
    test_random random = {75};
    for (long i = 0, cases = test_cases(150, 600); i < cases; i++) {
        goal_example e;
        goal_example_any(&random, 5, &e);
        draw_links(&random, &e);
        const pc_objective objective = {e.costs.ready_ps, NULL};
        pc_instance instance = goal_example_instance(&e, &objective);
        pc_instance_order order;
        pc_stage_links *links;
        pc_schedule schedule;
        pc_replay replay;
        const pc_replay_options how = {.with_trace = true};
        assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
        goal_example_order(&random, &instance, &order);
        assert_int_equal(pc_stage_links_create(&instance, &e.costs.transfer, &links, NULL), PC_OK);
        pc_stage_links_squeeze(links, &order);
        assert_int_equal(pc_instance_to_schedule(&instance, &order, "drawn", &schedule, NULL), PC_OK);
        assert_int_equal(pc_replay_run(&schedule, &e.costs, &how, &replay, NULL), PC_OK);
        assert_int_equal(order.makespan, replay.makespan_ps);
        for (int64_t k = 0; k < replay.trace.pass_count; k++)
            assert_int_equal(order.start[k], replay.trace.pass_start_ps[k]);
        pc_replay_free(&replay);
        pc_schedule_free(&schedule);
        pc_stage_links_free(links);
        pc_instance_order_free(&order);
        pc_instance_free(&instance);
        goal_example_free(&e);
    }
}

static pc_time span_over_links(const goal_example *e, const pc_schedule *schedule) {
    pc_replay replay;
    pc_costs costs = e->costs;
    costs.ready_ps = NULL;
    assert_int_equal(pc_replay_run(schedule, &costs, NULL, &replay, NULL), PC_OK);
    pc_time span = replay.span_ps;
    pc_replay_free(&replay);
    return span;
}

/* An order that is chosen over links is never longer there than the one chosen as if every transfer were alone. */
static void test_links_choose(void **state) {
    (void)state;
    test_random random = {76};
    long better = 0, cases = test_cases(20, 100);
    for (long i = 0; i < cases; i++) {
        goal_example e;
        goal_example_any(&random, 4, &e);
        draw_links(&random, &e);
        pc_costs alone = e.costs;
        alone.transfer = (pc_transfer){.mode = PC_TRANSFER_DELAY, .delay_ps = pc_costs_delay_alone(&e.costs, 0, 1)};
        pc_schedule delays = goal_example_schedule(&e, PC_GOAL_SPAN, &alone, NULL),
                    links = goal_example_schedule(&e, PC_GOAL_SPAN, &e.costs, NULL);
        pc_time by_delays = span_over_links(&e, &delays), by_links = span_over_links(&e, &links);
        assert_true(by_links <= by_delays);
        better += by_links < by_delays;
        pc_schedule_free(&delays);
        pc_schedule_free(&links);
        goal_example_free(&e);
    }
    assert_true(better > 0);
}

/* ---- allocations ---- */

/* Every one fails once, with tails and over links; in a quick run one in 29, for each is a search anew. */
static void test_every_allocation_fails_once(void **state) {
    (void)state;
    test_random random = {79};
    goal_example e;
    long count = 1;
    goal_example_draw(&random, "v-min", 2, 2, &e);
    draw_links(&random, &e);
    const pc_generate_request request = {
        .devices = 2, .microbatches = 2, .costs = &e.costs, .threads = 1, .goal = PC_GOAL_ITERATION, .tails = &e.tails};
    for (long i = -1; i < count; i += i < 0 ? 1 : test_part(29, 1)) {
        pc_schedule schedule = {0};
        pc_error error = {0};
        long before = pc_alloc_count();
        pc_alloc_fail_after(i);
        pc_code code = pc_generate(e.generator, &request, &schedule, NULL, &error);
        pc_alloc_fail_after(-1);
        assert_int_equal(code, i < 0 ? PC_OK : PC_ERROR_NO_MEMORY);
        if (i < 0) count = pc_alloc_count() - before;
        if (i >= 0) assert_null(schedule.passes);
        pc_schedule_free(&schedule);
    }
    goal_example_free(&e);
}

/* ---- iterations ---- */

/* What the order of a run comes to by the second way, with the run's own tails. */
static pc_time count_iteration(const pc_outline *outline, const pc_outline_tails *made, const pc_costs *costs) {
    goal_example e = {.costs = *costs, .tails = made->tails};
    size_t cells = (size_t)costs->devices * (size_t)costs->chunks;
    pc_time *none = calloc(cells, sizeof *none);
    pc_schedule schedule;
    memcpy(e.stream, made->tails.stream_ps, cells * sizeof *e.stream);
    memcpy(e.after, made->tails.after_ps, cells * sizeof *e.after);
    memcpy(e.own, made->tails.own_ps, (size_t)costs->devices * sizeof *e.own);
    if (!e.costs.ready_ps) e.costs.ready_ps = none;
    assert_int_equal(pc_schedule_generate(outline->spec->generator, costs->devices, outline->cut.microbatches,
                                          costs->chunks, &schedule, NULL),
                     PC_OK);
    pc_time value = goal_count(&e, &schedule, true).iteration;
    pc_schedule_free(&schedule);
    free(none);
    return value;
}

/* All that finish.c adds to one pipeline is in the tails, but for what all stages wait for, and for what tails.h leaves
 * out. An iteration, closed, is what its order comes to, and the norm, the slowest step and the overhead. */
static void test_tails_are_those_of_iterations(void **state) {
    (void)state;
    test_random random = {77};
    long found = 0;
    for (long i = 0, cases = test_cases(150, 500); i < cases; i++) {
        pc_iteration_spec spec = random_spec(&random);
        pc_outline outline;
        pc_outline_tails made;
        pc_costs costs;
        pc_time slowest = 0;
        if (spec.model.is_tied || spec.step != PC_STEP_NORM) continue;
        pc_iteration iteration = run_spec(&spec);
        assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
        assert_int_equal(pc_outline_costs(&outline, 0, &costs, NULL), PC_OK);
        assert_int_equal(pc_outline_tails_make(&outline, &costs, &made, NULL), PC_OK);
        for (int d = 0; d < outline.devices; d++)
            if (outline.device[d].step_ps > slowest) slowest = outline.device[d].step_ps;
        pc_time whole = count_iteration(&outline, &made, &costs) + outline.norm_ps + slowest + spec.overhead_ps;
        assert_true(iteration.iteration_s == pc_time_to_seconds(whole));
        pc_outline_tails_free(&made);
        pc_costs_free(&costs);
        pc_outline_free(&outline);
        pc_iteration_free(&iteration);
        found++;
    }
    assert_true(test_saw(found, 10));
}

/* No iteration is longer for another goal; some are shorter. */
static void test_iterations_are_no_longer(void **state) {
    (void)state;
    static const pc_network_mode networks[] = {PC_NETWORK_CLOSED, PC_NETWORK_CLOSED, PC_NETWORK_AUTO};
    test_random random = {78};
    long better = 0;
    for (long i = 0, cases = test_cases(6, 30); i < cases; i++) {
        pc_iteration_spec spec = random_spec(&random);
        double seconds[PC_GOALS];
        spec.generator = pc_generator_find(goal_names[test_between(&random, 0, 4)]);
        spec.cut.chunks = spec.generator->chunks_default;
        spec.network = networks[test_between(&random, 0, 2)];
        assert_int_equal(pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &spec.memo, NULL), PC_OK);
        for (spec.goal = 0; spec.goal < PC_GOALS; spec.goal++) {
            pc_iteration iteration = run_spec(&spec);
            seconds[spec.goal] = iteration.iteration_s;
            pc_iteration_free(&iteration);
        }
        pc_search_memo_free(spec.memo);
        assert_true(seconds[PC_GOAL_MAKESPAN] <= seconds[PC_GOAL_SPAN]);
        assert_true(seconds[PC_GOAL_ITERATION] <= seconds[PC_GOAL_SPAN]);
        better += seconds[PC_GOAL_ITERATION] < seconds[PC_GOAL_SPAN];
    }
    assert_true(better > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_goal_is_beaten),
        cmocka_unit_test(test_limits_by_device),
        cmocka_unit_test(test_links_are_those_of_the_replay),
        cmocka_unit_test(test_links_choose),
        cmocka_unit_test(test_every_allocation_fails_once),
        cmocka_unit_test(test_tails_are_those_of_iterations),
        cmocka_unit_test(test_iterations_are_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
