/* Searched schedules at equal times: what their names promise of memory, and closed forms of their idle time. One cell
 * is the time of an F, a B or a W of a chunk; a BW takes two; transfers are free; every chunk's activation counts 1. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/timing.h"
#include "tests/memory_limits.h"
#include "tests/searched.h"

/* All is measured in one workspace; `limit` chunks fit on a device, 0 for any number. */
static pc_timing_totals measure_within(pc_timing *timing, const char *name, int p, int m, int v, int64_t limit) {
    pc_costs costs;
    pc_schedule s;
    pc_timing_result result;
    pc_error error = {0};
    const pc_generator *g = pc_generator_find(name);
    int chunks = v ? v : g->chunks_default;
    assert_int_equal(pc_costs_create(p, chunks, &costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)p * chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs.duration_ps[i * PC_PASS_KINDS + kind] = kind == PC_PASS_BW ? 2 : 1;
        costs.activation_bytes[i] = 1;
    }
    const test_limits limits = test_limit_all(limit ? limit : PC_NO_LIMIT);
    pc_generate_request request = {.devices = p,
                                   .microbatches = m,
                                   .chunks = v,
                                   .costs = &costs,
                                   .memory_limit = test_limit(&limits),
                                   .threads = 1};
    if (pc_generate(g, &request, &s, NULL, &error)) fail_msg("%s p=%d m=%d: %s", name, p, m, error.message);
    if (pc_timing_run(timing, &s, &costs, &result, &error)) fail_msg("%s p=%d m=%d: %s", name, p, m, error.message);
    if (pc_timing_exceeds(result.stages, p, test_limit(&limits)))
        fail_msg("%s p=%d m=%d: over %lld", name, p, m, (long long)limit);
    pc_schedule_free(&s);
    pc_costs_free(&costs);
    return result.totals;
}

/* ---- what the names promise ---- */

/* The memory of the name; and, with p microbatches of memory and enough of them to run, no idle time: 3 cells of work
 * for each chunk of a microbatch, and a span of no more than that. */
static void check_promise(pc_timing *timing, const char *name, int p, int m) {
    const pc_generator *g = pc_generator_find(name);
    int64_t v = g->chunks_default, most = v * searched_microbatches(name, p);
    bool is_full = strcmp(name, "v-zb") == 0 || strcmp(name, "zb-v") == 0;
    pc_timing_totals totals = measure_within(timing, name, p, m, 0, 0);
    if (totals.peak_bytes > most)
        fail_msg("%s p=%d m=%d: holds %lld chunks, expected at most %lld", name, p, m, (long long)totals.peak_bytes,
                 (long long)most);
    if (is_full && m >= 2 * p && totals.span_ps != 3 * v * m)
        fail_msg("%s p=%d m=%d: span %lld, expected %lld", name, p, m, (long long)totals.span_ps,
                 (long long)(3 * v * m));
}

static const char *const quick_names[] = {"v-min", "v-half", "v-zb", "zb-v", "zb-1p", "zb-2p", "zb-two-thirds"};
enum { QUICK_NAMES = sizeof quick_names / sizeof *quick_names };

/* The larger, the more is tried: with 10,000 and more, in the slow suite, up to 64 devices; with fewer than the usual
 * 1000, where all runs slowly, up to 6. */
static int by_effort(int slow, int usual, int brief) {
    long cases = test_cases(50, 1000);
    return cases >= 10000 ? slow : cases >= 1000 ? usual : brief;
}

/* How far apart the m are that are tried. */
static int stride_for(int p) {
    int slow = p <= 16 ? 1 : p <= 32 ? p / 4 : 2 * p - 3;
    return by_effort(slow, p <= 6 ? 1 : 3, 3);
}

static void test_promises(void **state) {
    (void)state;
    pc_timing *timing;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int n = 0; n < QUICK_NAMES; n++)
        for (int p = 2; p <= by_effort(64, 10, 6); p++)
            for (int m = 1; m <= 4 * p; m += stride_for(p)) check_promise(timing, quick_names[n], p, m);
    pc_timing_free(timing);
}

static void test_promises_of_many_devices(void **state) {
    (void)state;
    static const int devices[] = {13, 16, 24, 32, 64};
    pc_timing *timing;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int n = 0; n < QUICK_NAMES; n++)
        for (size_t i = 0; i < (size_t)by_effort(5, 5, 2); i++) {
            int p = devices[i];
            check_promise(timing, quick_names[n], p, p / 2);
            check_promise(timing, quick_names[n], p, 2 * p + 1);
        }
    pc_timing_free(timing);
}

/* The one schedule with the most effort behind it. */
static void test_promise_of_1f1b_v(void **state) {
    (void)state;
    pc_timing *timing;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int p = 2; p <= by_effort(16, 7, 4); p++)
        for (int m = 1; m <= 4 * p; m += p) check_promise(timing, "1f1b-v", p, m);
    pc_timing_free(timing);
}

/* ---- closed forms ---- */

static int64_t idle_time(pc_timing *timing, const char *name, int p, int m, int64_t limit) {
    const pc_generator *g = pc_generator_find(name);
    return measure_within(timing, name, p, m, 0, limit).span_ps - (int64_t)3 * g->chunks_default * m;
}

static void expect_idle(const char *name, int p, int64_t idle, int64_t least, int64_t most) {
    if (idle < least || idle > most)
        fail_msg("%s p=%d: idle for %lld, expected %lld to %lld", name, p, (long long)idle, (long long)least,
                 (long long)most);
}

/* With F = B = W = 1 and m = 2p + 5. The first device of 1F1B and ZB-H1 waits, between its last F of the warm-up and
 * the first backward pass, (p-1)(F + B + W) and (p-1)(F + B - W) ('Zero Bubble', arXiv 2401.10241, table 2): 3(p-1),
 * p-1. The others are those of the public schedules; ours may be better, so they bound from above. None is below 0, nor
 * may it be where their form is (v-half, p = 2). */
static void test_idle_time(void **state) {
    (void)state;
    pc_timing *timing;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int p = 2; p <= 10; p++) {
        int m = 2 * p + 5;
        expect_idle("1f1b", p, idle_time(timing, "1f1b", p, m, 0), 3 * (p - 1), 3 * (p - 1));
        expect_idle("zb-h1", p, idle_time(timing, "zb-h1", p, m, 0), p - 1, p - 1);
        expect_idle("zb-1p", p, idle_time(timing, "zb-1p", p, m, 0), 0, p - 1);
        expect_idle("zb-2p", p, idle_time(timing, "zb-2p", p, m, 0), 0, 0);
        expect_idle("v-half", p, idle_time(timing, "v-half", p, m, 0), 0, p % 2 ? 3 * p - 4 : p == 2 ? 0 : 3 * p - 7);
        expect_idle("v-min", p, idle_time(timing, "v-min", p, m, 0), 0, p % 3 ? 4 * p - 5 : 4 * p - 7);
    }
    pc_timing_free(timing);
}

/* The adaptive schedule within x chunks, from what the public one needs up: it idles 6p - 1 - 3x where x <= 2p - 2, 3
 * at 2p - 1 and not at all at 2p. */
static void test_idle_time_within_limits(void **state) {
    (void)state;
    pc_timing *timing;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int p = 2; p <= 10; p++)
        for (int x = 2 * ((p + 4) / 3); x <= 2 * p; x++) {
            int64_t most = x <= 2 * p - 2 ? 6 * p - 1 - 3 * x : x == 2 * p - 1 ? 3 : 0;
            expect_idle("v-adaptive", p, idle_time(timing, "v-adaptive", p, 2 * p + 5, x), 0, most);
        }
    pc_timing_free(timing);
}

/* Interleaved 1F1B and its twin with less warm-up: both idle (p-1)(F + BW) of a chunk; the twin holds p-1 + (v-1)p + 1
 * = vp chunks on the first device, and where v > 1 the other one p-1 more. */
static void test_interleaved(void **state) {
    (void)state;
    pc_timing *timing;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int p = 2; p <= 8; p++)
        for (int v = 2; v <= 4; v++)
            for (int m = 2 * p; m <= 4 * p; m += p) {
                pc_timing_totals usual = measure_within(timing, "1f1b-interleaved", p, m, v, 0);
                pc_timing_totals low = measure_within(timing, "1f1b-interleaved-low-memory", p, m, v, 0);
                assert_int_equal(usual.span_ps, 3 * v * m + 3 * (p - 1));
                assert_int_equal(low.span_ps, usual.span_ps);
                assert_int_equal(low.peak_bytes, v * p);
                assert_int_equal(usual.peak_bytes, v * p + p - 1);
            }
    pc_timing_free(timing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_promises_of_many_devices),
        cmocka_unit_test(test_promise_of_1f1b_v),
        cmocka_unit_test(test_idle_time),
        cmocka_unit_test(test_idle_time_within_limits),
        cmocka_unit_test(test_interleaved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
