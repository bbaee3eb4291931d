/* A schedule run by the engine, event by event: the same as over longest paths, to the last bit, for every named
 * schedule; what the engine says of links, flows, memory and queues. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/engine_check.h"
#include "tests/memory_limits.h"
#include "tests/random_schedule.h"
#include "tests/refusals.h"
#include "tests/same_replay.h"

/* ---- the two ways ---- */

/* What must hold of any run that was done, however it was done. */
typedef struct expectation {
    pc_engine_way way;
    bool out_of_memory;
} expectation;

static void expect(const pc_replay *replay, expectation expected) {
    assert_int_equal(replay->way, expected.way);
    assert_int_equal(replay->out_of_memory, expected.out_of_memory);
    assert_int_equal(replay->engine.event_count > 0, expected.way == PC_WAY_EVENTS);
    assert_int_equal(replay->engine.queue_count > 0, expected.way == PC_WAY_EVENTS && !expected.out_of_memory);
}

/* Longest paths where they can be, and every event; and passes that might wait, and need not. Returns whether it fit.
 */
static bool judge(const pc_schedule *s, const pc_costs *costs, const test_limits *limits) {
    bool is_full = is_too_small(s, costs, limits), has_paths = costs->transfer.mode == PC_TRANSFER_DELAY && !is_full;
    pc_engine_way usual = has_paths ? PC_WAY_PATHS : PC_WAY_EVENTS;
    pc_replay paths = replay_of(s, costs, limits, PC_ENGINE_AUTO, false);
    pc_replay events = replay_of(s, costs, limits, PC_ENGINE_EVENTS, false);
    expect(&paths, (expectation){usual, is_full});
    expect(&events, (expectation){PC_WAY_EVENTS, is_full});
    check_same_replay(&paths, &events);
    if (!is_full) {
        pc_replay waits = replay_of(s, costs, limits, PC_ENGINE_AUTO, true);
        pc_replay waits_by_events = replay_of(s, costs, limits, PC_ENGINE_EVENTS, true);
        expect(&waits, (expectation){usual, false});
        expect(&waits_by_events, (expectation){PC_WAY_EVENTS, false});
        check_same_replay(&waits, &events);
        check_same_replay(&waits_by_events, &events);
        pc_replay_free(&waits);
        pc_replay_free(&waits_by_events);
    }
    pc_replay_free(&paths);
    pc_replay_free(&events);
    return !is_full;
}

static void draw_pairs(test_random *random, pc_costs *costs) {
    assert_int_equal(pc_costs_add_pairs(costs, NULL), PC_OK);
    for (int64_t i = 0; i < 2 * (int64_t)costs->devices * costs->chunks * costs->chunks; i++)
        if (test_between(random, 0, 3)) costs->pair_ps[i] = test_between(random, 0, 5000);
}

/* All shapes that the generator makes of p devices, with few microbatches and more; searched for the costs that they
 * are replayed at, or for equal ones. */
static long judge_named(const pc_generator *generator, test_random *random, int devices, long *full) {
    long judged = 0;
    for (int k = 0; k < 3; k++) {
        int microbatches = k == 0 ? 1 : k == 1 ? devices : 2 * devices + (generator->mixes ? 2 : 1);
        int64_t no_passes[16] = {0};
        pc_schedule shape = {.devices = devices, .chunks = generator->chunks_default, .offsets = no_passes}, s;
        pc_costs costs;
        draw_costs(random, &shape, &costs);
        if (generator->recomputes) costs.recomputes_in_b = false; /* R do it */
        pc_generate_request request = {.devices = devices,
                                       .microbatches = microbatches,
                                       .chunks = shape.chunks,
                                       .costs = &costs,
                                       .threads = 1,
                                       .making = test_between(random, 0, 1) ? PC_MAKING_EQUAL : PC_MAKING_COSTS};
        if (pc_generate(generator, &request, &s, NULL, NULL) == PC_OK) {
            test_limits limits = test_limit_all(PC_NO_LIMIT);
            if (s.pairs) draw_pairs(random, &costs);
            judge(&s, &costs, &limits);
            limit_memory(random, &s, &costs, &limits);
            *full += !judge(&s, &costs, &limits);
            over_links(random, &costs);
            judge(&s, &costs, &limits);
            judged++;
            pc_schedule_free(&s);
        }
        pc_costs_free(&costs);
    }
    return judged;
}

static void test_named_schedules(void **state) {
    (void)state;
    test_random random = {91};
    int count, most = (int)test_part(4, 8);
    const pc_generator *generators = pc_generators(&count);
    long full = 0, judged = 0;
    for (int g = 0; g < count; g++) {
        long of_this = 0;
        for (int devices = 1; devices <= most; devices++)
            of_this += judge_named(&generators[g], &random, devices, &full);
        if (of_this < 2) fail_msg("%s: %ld shapes", generators[g].name, of_this);
        judged += of_this;
    }
    assert_true(full > judged / 20 && full < judged);
}

static void test_random_schedules(void **state) {
    (void)state;
    test_random random = {92};
    long full = 0, cases = test_cases(250, 10000);
    for (long i = 0; i < cases; i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 8, 6, 3, &s);
        draw_costs(&random, &s, &costs);
        test_limits limits = test_limit_all(PC_NO_LIMIT);
        if (test_between(&random, 0, 1)) limit_memory(&random, &s, &costs, &limits);
        if (test_between(&random, 0, 2) == 0) over_links(&random, &costs);
        full += !judge(&s, &costs, &limits);
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
    assert_true(full > 0 && full < cases);
}

/* ---- what the engine saw ---- */

static void test_engine_traces(void **state) {
    (void)state;
    test_random random = {93};
    for (long i = 0; i < test_cases(125, 10000); i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 6, 6, 3, &s);
        draw_costs(&random, &s, &costs);
        if (i % 2) over_links(&random, &costs);
        const test_limits none = test_limit_all(PC_NO_LIMIT);
        pc_replay replay = replay_of(&s, &costs, &none, PC_ENGINE_EVENTS, false);
        check_engine_trace(&s, &costs, &none, &replay);
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
}

static void two_stages(pc_schedule *schedule, pc_costs *costs) {
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 2, 2, 0, schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(2, 1, costs, NULL), PC_OK);
    for (int d = 0; d < 2; d++) {
        costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_F] = 1;
        costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_BW] = 2;
        costs->activation_bytes[d] = 6;
    }
}

/* Two stages, 1F1B, two microbatches, F = 1, BW = 2, transfers of latency 1 that fill the link for 10: see
 * test_links.c. To stage 1: F0's leaves at 1 and fills the link from 2 to 12; F1's could leave at 2, and leaves at 11,
 * so that its bytes follow at 12: the link is full from 2 to 22. Back: BW0's leaves at 15 and fills from 16 to 26,
 * BW1's at 25, from 26 to 36. Stage 0's BW0 could run at 26, its BW1 at 36; stage 1's F1 at 22. */
static void test_links_by_hand(void **state) {
    (void)state;
    static const pc_time flow_ready[] = {1, 2, 15, 25}, flow_start[] = {1, 11, 15, 25}, flow_end[] = {12, 22, 26, 36};
    static const pc_time load_time[] = {2, 16, 22, 36}, queue_ready[] = {0, 0, 26, 36, 12, 13, 22, 23};
    static const int32_t load_link[] = {1, 0, 1, 0}, microbatch[] = {0, 1, 0, 1};
    static const double load[] = {1e12, 1e12, 0, 0};
    pc_schedule schedule;
    pc_costs costs;
    two_stages(&schedule, &costs);
    costs.transfer =
        (pc_transfer){.mode = PC_TRANSFER_LINK, .latency_ps = 1, .bandwidth_bytes_per_s = 1e12, .size_bytes = 10};
    test_limits limits = test_limit_all(PC_NO_LIMIT);
    limits.bytes[0] = 12;
    pc_replay replay = replay_of(&schedule, &costs, &limits, PC_ENGINE_EVENTS, false);
    const pc_engine_trace *x = &replay.engine;
    assert_int_equal(x->link_count, 2);
    assert_int_equal(x->link_device[1], 0); /* in the order of those who wait: stage 0's come first */
    assert_int_equal(x->link_peer[1], 1);
    assert_int_equal(x->flow_count, 4);
    assert_memory_equal(x->flow_ready_ps, flow_ready, sizeof flow_ready);
    assert_memory_equal(x->flow_start_ps, flow_start, sizeof flow_start);
    assert_memory_equal(x->flow_end_ps, flow_end, sizeof flow_end);
    assert_memory_equal(x->flow_microbatch, microbatch, sizeof microbatch);
    assert_int_equal(x->load_count, 4);
    assert_memory_equal(x->load_time_ps, load_time, sizeof load_time);
    assert_memory_equal(x->load_link, load_link, sizeof load_link);
    assert_memory_equal(x->load_bytes_per_s, load, sizeof load);
    assert_memory_equal(x->queue_ready_ps, queue_ready, sizeof queue_ready);
    assert_int_equal(x->memory_capacity_bytes[0], 12);
    assert_int_equal(x->memory_capacity_bytes[1], PC_NO_LIMIT);
    assert_int_equal(x->event_count, 2 * (8 + 4)); /* a start and an end of every pass and every transfer */
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

static void test_allocations_refused(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    two_stages(&schedule, &costs);
    test_limits limits = test_limit_all(PC_NO_LIMIT);
    limits.bytes[0] = 6;
    for (int k = 0; k < 2; k++) {
        const pc_replay_options options = {.with_trace = true,
                                           .engine = PC_ENGINE_EVENTS,
                                           .waits_for_memory = true,
                                           .memory_limit = test_limit(&limits)};
        pc_replay replay = {0};
        if (k)
            costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK, .bandwidth_bytes_per_s = 1e12, .size_bytes = 10};
        for (refusals x = {.most = 300}; next_refusal(&x);)
            x.code = pc_replay_run(&schedule, &costs, &options, &replay, NULL);
        assert_false(replay.out_of_memory);
        pc_replay_free(&replay);
    }
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_schedules),     cmocka_unit_test(test_random_schedules),
        cmocka_unit_test(test_engine_traces),       cmocka_unit_test(test_links_by_hand),
        cmocka_unit_test(test_allocations_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
