/* How good the answers of searches are: with limits down to the last byte, by other names, for other costs, with more
 * memory. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/longest_path.h"
#include "tests/memory_limits.h"
#include "tests/searched.h"

/* ---- limits to the last byte ---- */

static pc_time span_of(const char *name, int p, int m, const pc_costs *costs, const test_limits *limits) {
    pc_generate_request request = {
        .devices = p, .microbatches = m, .costs = costs, .memory_limit = test_limit(limits), .threads = 1};
    const pc_replay_options options = {.memory_limit = test_limit(limits)};
    pc_schedule s;
    pc_replay replay;
    pc_error error = {0};
    if (pc_generate(pc_generator_find(name), &request, &s, NULL, &error)) fail_msg("%s", error.message);
    assert_int_equal(pc_replay_run(&s, costs, &options, &replay, NULL), PC_OK);
    assert_false(replay.out_of_memory);
    pc_time span = replay.span_ps;
    pc_replay_free(&replay);
    pc_schedule_free(&s);
    return span;
}

/* Two chunks of 50 bytes: one microbatch takes 100 on every device. On device 0 it takes F down p devices, F up, B
 * down, B up, 4p cells, and then the W of chunk 0, that of chunk 1 having run in between: 4p + 1. The next F of chunk 0
 * must wait for the W of chunk 1, before which come F up (2p - 1 cells after F of chunk 0 started), B and W itself: 2p
 * + 2 cells. So no span is shorter than 4p + 1 + (m-1)(2p + 2). No block of this interval is free of collisions: 2p + 4
 * is what is reached. One device alone works all the time. */
static void test_least_memory(void **state) {
    (void)state;
    const pc_generator *adaptive = pc_generator_find("v-adaptive");
    for (int p = 1; p <= 6; p++) {
        pc_costs costs = searched_costs(p, 2, 50);
        test_limits limits = test_limit_all(100);
        for (int d = 0; d < p; d++) assert_int_equal(pc_generator_least_memory(adaptive, &costs, d), 100);
        for (int m = 1; m <= 9; m += 4) {
            pc_time span = span_of("v-adaptive", p, m, &costs, &limits);
            assert_true(span >= (p == 1 ? 6 * m : 4 * p + 1 + (m - 1) * (2 * p + 2)));
            assert_true(span <= (p == 1 ? 6 * m : 4 * p + 1 + (m - 1) * (2 * p + 4)));
        }
        for (int d = 0; d < p; d++) {
            char expected[200];
            pc_error error = {0};
            pc_schedule s;
            pc_generate_request request = {
                .devices = p, .microbatches = 4, .costs = &costs, .memory_limit = test_limit(&limits), .threads = 1};
            limits.bytes[d] = 99;
            snprintf(expected, sizeof expected,
                     "v-adaptive: device %d has 99 bytes for activations; expected at least 100, which one microbatch "
                     "takes",
                     d);
            assert_int_equal(pc_generate(adaptive, &request, &s, NULL, &error), PC_ERROR_INPUT);
            assert_string_equal(error.message, expected);
            limits.bytes[d] = 100;
        }
        pc_costs_free(&costs);
    }
}

/* With more memory on some devices only, the schedule is no longer than with the least one on all, and no shorter than
 * with the most on all. A schedule that keeps tight limits keeps loose ones, so the search should see to both. */
static void test_limits_of_devices(void **state) {
    (void)state;
    enum { P = 4, M = 9 };
    pc_costs costs = searched_costs(P, 2, 50);
    pc_time span[3];
    for (int i = 0; i < 3; i++) {
        test_limits limits = test_limit_all(i == 0 ? 200 : 400);
        for (int d = 1; d < P && i == 1; d += 2) limits.bytes[d] = 200;
        span[i] = span_of("v-adaptive", P, M, &costs, &limits);
    }
    assert_true(span[0] >= span[1] && span[1] >= span[2]);
    assert_true(span[0] > span[2]);
    assert_int_equal(span[2], 6 * M); /* p microbatches: no bubble, for m >= 2p */
    pc_costs_free(&costs);
}

/* A replica's chunks are visited by every second microbatch each: one microbatch needs the larger chunk only. */
static void test_least_memory_of_others(void **state) {
    (void)state;
    pc_costs costs = searched_costs(2, 2, 50);
    costs.activation_bytes[1] = 70;
    assert_int_equal(pc_generator_least_memory(pc_generator_find("gems"), &costs, 0), 70);
    assert_int_equal(pc_generator_least_memory(pc_generator_find("v-min"), &costs, 0), 120);
    assert_int_equal(pc_generator_least_memory(pc_generator_find("1f1b-interleaved"), &costs, 1), 100);
    pc_costs_free(&costs);
}

/* Times that a search needs must be given; and costs must have the request's shape. */
static void test_incomplete_costs(void **state) {
    (void)state;
    pc_costs costs = searched_costs(3, 2, 50);
    pc_generate_request request = {.devices = 3, .microbatches = 4, .costs = &costs, .threads = 1};
    pc_schedule s;
    pc_error error = {0};
    costs.duration_ps[(2 * 2 + 1) * PC_PASS_KINDS + PC_PASS_W] = PC_TIME_NOT_GIVEN;
    assert_int_equal(pc_generate(pc_generator_find("v-half"), &request, &s, NULL, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "the time of W of chunk 1 on device 2 is not given"));
    assert_int_equal(pc_generate(pc_generator_find("1f1b-v"), &request, &s, NULL, &error), PC_OK);
    pc_schedule_free(&s);
    request.devices = 4;
    assert_int_equal(pc_generate(pc_generator_find("1f1b-v"), &request, &s, NULL, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "1f1b-v: costs for 3 devices and 2 chunks; expected 4 and 2");
    request.costs = NULL;
    assert_int_equal(pc_generate(pc_generator_find("zb-1p"), &request, &s, NULL, &error), PC_ERROR_INPUT);
    pc_costs_free(&costs);
}

/* ---- hops ---- */

/* Where hops have delays of their own, those count, and the common one does not: with all of them 0 the schedule is
 * that of free transfers, whatever transfer.delay_ps is; with all of them equal, that of the common delay. Also where
 * no activation has a size, for those are counted at costs of their own. */
static void test_hop_delays(void **state) {
    (void)state;
    enum { P = 4, M = 12 };
    for (int i = 0; i < 4; i++) {
        pc_costs common = searched_costs(P, 2, i < 2 ? 50 : 0), hops = searched_costs(P, 2, i < 2 ? 50 : 0);
        pc_generate_request request = {.devices = P, .microbatches = M, .costs = &common, .threads = 1};
        pc_schedule a, b;
        common.transfer.delay_ps = i % 2;
        assert_int_equal(pc_costs_add_hop_delays(&hops, NULL), PC_OK);
        for (int d = 0; d < P; d++) hops.hop_delay_ps[d] = i % 2;
        hops.transfer.delay_ps = 9;
        assert_int_equal(pc_generate(pc_generator_find("v-half"), &request, &a, NULL, NULL), PC_OK);
        request.costs = &hops;
        assert_int_equal(pc_generate(pc_generator_find("v-half"), &request, &b, NULL, NULL), PC_OK);
        assert_memory_equal(a.passes, b.passes, (size_t)a.offsets[P] * sizeof *a.passes);
        pc_schedule_free(&a);
        pc_schedule_free(&b);
        pc_costs_free(&common);
        pc_costs_free(&hops);
    }
}

/* ---- no answer is better than the one that is given ---- */

/* Costs of a generator's shape: F, B and W of every chunk of their own and BW as long as both, or the same for all;
 * sizes of every device; a delay, and in half of the cases one for every hop. */
static pc_costs contest_costs(test_random *random, int p, int chunks) {
    pc_costs costs;
    bool by_stage = test_between(random, 0, 3) > 0;
    assert_int_equal(pc_costs_create(p, chunks, &costs, NULL), PC_OK);
    for (int i = 0; i < p * chunks; i++) {
        pc_time *times = costs.duration_ps + (ptrdiff_t)i * PC_PASS_KINDS;
        for (int kind = PC_PASS_F; kind <= PC_PASS_W; kind++)
            times[kind] = by_stage || i == 0 ? test_between(random, 1, 20) : costs.duration_ps[kind];
        times[PC_PASS_BW] = times[PC_PASS_B] + times[PC_PASS_W];
        costs.activation_bytes[i] = 100;
        costs.activation_b_bytes[i] = 40;
    }
    costs.transfer.delay_ps = test_between(random, 0, 8);
    if (test_between(random, 0, 1)) {
        assert_int_equal(pc_costs_add_hop_delays(&costs, NULL), PC_OK);
        for (int d = 0; d < p; d++) costs.hop_delay_ps[d] = test_between(random, 0, 8);
    }
    return costs;
}

/* The span, at `costs`, of what a name makes for `planned`. */
static pc_time span_planned(const char *name, int m, const pc_costs *costs, const pc_costs *planned, bool equal) {
    pc_generate_request request = {.devices = costs->devices,
                                   .microbatches = m,
                                   .costs = planned,
                                   .threads = 1,
                                   .making = equal ? PC_MAKING_EQUAL : PC_MAKING_COSTS};
    pc_schedule s;
    pc_replay replay;
    pc_error error = {0};
    if (pc_generate(pc_generator_find(name), &request, &s, NULL, &error)) fail_msg("%s: %s", name, error.message);
    assert_int_equal(pc_replay_run(&s, costs, NULL, &replay, NULL), PC_OK);
    pc_time span = replay.span_ps;
    pc_replay_free(&replay);
    pc_schedule_free(&s);
    return span;
}

/* All stages take the mean of all, and all hops the mean of the hops; rounded down. */
static pc_costs mean_costs(const pc_costs *costs) {
    pc_costs mean;
    int cells = costs->devices * costs->chunks;
    assert_int_equal(pc_costs_create(costs->devices, costs->chunks, &mean, NULL), PC_OK);
    for (int kind = 0; kind < PC_PASS_R; kind++) {
        pc_time sum = 0;
        for (int i = 0; i < cells; i++) sum += costs->duration_ps[i * PC_PASS_KINDS + kind];
        for (int i = 0; i < cells; i++) mean.duration_ps[i * PC_PASS_KINDS + kind] = sum / cells;
    }
    for (int i = 0; i < cells; i++) {
        mean.activation_bytes[i] = costs->activation_bytes[i];
        mean.activation_b_bytes[i] = costs->activation_b_bytes[i];
    }
    mean.transfer = costs->transfer;
    if (costs->hop_delay_ps && costs->devices > 1) {
        pc_time sum = 0;
        for (int d = 0; d < costs->devices - 1; d++) sum += costs->hop_delay_ps[d];
        mean.transfer.delay_ps = sum / (costs->devices - 1);
    }
    return mean;
}

/* Names of one placement, each of which may hold what those before it may. No name that searches, and has B and W
 * apart, is beaten by one before it, nor by itself planned for equal times or for the mean stage. Of names with the
 * same limits none is beaten by another at all.
 */
static void check_contest(test_random *random, const char *const *names, int count, int chunks, bool with_mean) {
    int p = (int)test_between(random, 1, 5), m = (int)test_between(random, 1, 14);
    pc_costs costs = contest_costs(random, p, chunks), mean = mean_costs(&costs);
    pc_time span[8];
    for (int i = 0; i < count; i++) {
        span[i] = span_planned(names[i], m, &costs, &costs, false);
        if (with_mean && span[i] > span_planned(names[i], m, &costs, &costs, true))
            fail_msg("%s, p=%d m=%d: beaten by itself for equal times", names[i], p, m);
        if (with_mean && span[i] > span_planned(names[i], m, &costs, &mean, false))
            fail_msg("%s, p=%d m=%d: beaten by itself for the mean stage", names[i], p, m);
        bool is_beatable = !pc_generator_find(names[i])->searches || !pc_generator_find(names[i])->splits;
        for (int k = 0; k < i && !is_beatable; k++)
            if (searched_microbatches(names[k], p) <= searched_microbatches(names[i], p) && span[i] > span[k])
                fail_msg("%s, p=%d m=%d: %lld, but %s %lld", names[i], p, m, (long long)span[i], names[k],
                         (long long)span[k]);
    }
    for (int i = 1; i < count; i++)
        if (pc_generator_find(names[i])->searches && pc_generator_find(names[i - 1])->searches &&
            pc_generator_find(names[i])->splits == pc_generator_find(names[i - 1])->splits &&
            searched_microbatches(names[i], p) == searched_microbatches(names[i - 1], p))
            assert_int_equal(span[i], span[i - 1]);
    pc_costs_free(&costs);
    pc_costs_free(&mean);
}

static void test_no_name_is_beaten(void **state) {
    (void)state;
    static const char *const folded[] = {"v-min", "v-half", "1f1b-v", "v-zb", "zb-v", "v-adaptive"};
    static const char *const split[] = {"v-min", "v-half", "v-zb", "v-adaptive"};
    static const char *const linear[] = {"1f1b", "zb-h1", "zb-two-thirds", "zb-1p", "zb-2p"};
    static const char *const ahead[] = {"zb-h2", "eager-1f1b", "zb-2p"};
    static const char *const searched[] = {"zb-two-thirds", "zb-1p", "zb-2p"};
    test_random random = {29};
    long cases = test_cases(50, 400) / 50; /* some 50 searches each */
    for (long i = 0; i < cases; i++) {
        check_contest(&random, split, 4, 2, true);
        check_contest(&random, searched, 3, 1, true);
        check_contest(&random, linear, 5, 1, false);
        check_contest(&random, ahead, 3, 1, false);
        if (i % 8 == 0) check_contest(&random, folded, 6, 2, false);
    }
}

/* With more memory no schedule is longer, whatever a search finds: limits go up by the least amount that a device can
 * hold more of, a chunk or, where B gives a half back, half of one. Devices may have some chunks more than others. */
static void check_levels(test_random *random, const char *name, int chunks) {
    enum { CHUNK = 60 };
    int p = (int)test_between(random, 2, 5), m = (int)test_between(random, p, 3 * p), step;
    pc_costs costs = contest_costs(random, p, chunks);
    bool gives = test_between(random, 0, 3) == 0;
    for (int i = 0; i < p * chunks; i++) {
        costs.activation_bytes[i] = CHUNK;
        costs.activation_b_bytes[i] = gives ? CHUNK / 2 : 0;
    }
    step = gives ? CHUNK / 2 : CHUNK;
    test_limits limits;
    for (int d = 0; d < p; d++)
        limits.bytes[d] = (int64_t)chunks * CHUNK + (test_between(random, 0, 3) == 0 ? CHUNK : 0);
    pc_time before = INT64_MAX;
    for (int level = 0; level <= p * chunks * CHUNK / step; level++) {
        pc_time span = span_of(name, p, m, &costs, &limits);
        if (span > before)
            fail_msg("%s, p=%d m=%d, %d steps more memory: %lld after %lld", name, p, m, level, (long long)span,
                     (long long)before);
        before = span;
        for (int d = 0; d < p; d++) limits.bytes[d] += step;
    }
    pc_costs_free(&costs);
}

static void test_more_memory_is_no_longer(void **state) {
    (void)state;
    static const char *const folded[] = {"v-adaptive", "v-half", "v-min", "v-zb"};
    static const char *const linear[] = {"zb-1p", "zb-2p", "zb-two-thirds"};
    test_random random = {41};
    long cases = test_cases(100, 600) / 50; /* a dozen searches each */
    for (long i = 0; i < cases; i++) {
        check_levels(&random, folded[i % 4], 2);
        check_levels(&random, linear[i % 3], 1);
    }
}

/* 4 devices, 8 microbatches, passes of 10, transfers of 10, room for 5 chunks: 820 is the optimum by constraint
 * programming, and sweeps and kicks end at 830. */
static void test_walk_to_optimum(void **state) {
    (void)state;
    pc_costs costs = searched_costs(4, 2, 50);
    for (int i = 0; i < 8; i++)
        for (int kind = PC_PASS_F; kind <= PC_PASS_W; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = 10;
    costs.transfer.delay_ps = 10;
    const test_limits limits = test_limit_all(250);
    assert_int_equal(span_of("v-adaptive", 4, 8, &costs, &limits), 820);
    pc_costs_free(&costs);
}

/* The setting of figure 9 of 'Controllable Memory' where v-adaptive was beaten by v-half, which holds less: 32 stages
 * with 28.3B's pass times and 256 microbatches, a limit of 0.575 of 1F1B's memory; v-half holds 17 of 32. */
static void test_adaptive_within_more(void **state) {
    (void)state;
    enum { P = 32, M = 256 };
    if (!test_part(0, 1)) return;
    pc_costs costs = searched_costs(P, 2, 50);
    for (int i = 0; i < P * 2; i++) {
        pc_time *times = costs.duration_ps + (ptrdiff_t)i * PC_PASS_KINDS;
        times[PC_PASS_F] = 9469;
        times[PC_PASS_B] = 9744;
        times[PC_PASS_W] = 7306;
    }
    costs.transfer.delay_ps = 892;
    const test_limits none = test_limit_all(PC_NO_LIMIT);
    pc_time half = span_of("v-half", P, M, &costs, &none);
    const test_limits limits = test_limit_all(575 * 100 * P / 1000);
    assert_true(span_of("v-adaptive", P, M, &costs, &limits) <= half);
    pc_costs_free(&costs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_memory),
        cmocka_unit_test(test_limits_of_devices),
        cmocka_unit_test(test_least_memory_of_others),
        cmocka_unit_test(test_incomplete_costs),
        cmocka_unit_test(test_hop_delays),
        cmocka_unit_test(test_no_name_is_beaten),
        cmocka_unit_test(test_more_memory_is_no_longer),
        cmocka_unit_test(test_walk_to_optimum),
        cmocka_unit_test(test_adaptive_within_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
