/* Robust orders: the judge against the timing, the better order by algebra, what holds for any draws, what is refused.
 */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/robust.h"
#include "models/schedule/timing.h"
#include "models/training/scatter.h"
#include "tests/memory_limits.h"
#include "tests/random_schedule.h"

#include <math.h>

/* ---- draws of tests ---- */

/* 1, 2 or 3, from all that a factor goes by. */
static int whole_factor(int64_t number, int64_t at, int what) {
    return 1 + (int)(pc_seed_of(pc_seed_of((uint64_t)number) + 2 * (uint64_t)at + (uint64_t)what) % 3);
}

static pc_code draw_whole(const void *context, int64_t number, const pc_costs *costs, int microbatches, double *pass,
                          double *transfer, pc_error *error) {
    (void)context;
    (void)error;
    for (int64_t i = 0; i < pc_drawn_factors(costs, microbatches); i++) {
        pass[i] = whole_factor(number, i, 0);
        if (transfer) transfer[i] = whole_factor(number, i, 1);
    }
    return PC_OK;
}

static pc_code draw_nothing(const void *context, int64_t number, const pc_costs *costs, int microbatches, double *pass,
                            double *transfer, pc_error *error) {
    (void)context, (void)number, (void)costs, (void)microbatches, (void)pass, (void)transfer;
    return pc_error_set(error, PC_ERROR_INPUT, "nothing is drawn");
}

/* ---- the judge ---- */

enum { FIRST_JUDGED = 33 }; /* draws to judge by are numbered from two to the power of this */

/* What each pass and its transfer take in a draw, for orders in which the k-th pass of a type is microbatch k. */
static void times_of_draw(const pc_schedule *s, const pc_costs *costs, int64_t number, pc_time *duration,
                          pc_time *delay) {
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
            pc_pass pass = s->passes[i];
            int row = pass.kind == PC_PASS_F ? 0 : pass.kind == PC_PASS_W ? 2 : 1;
            int64_t at =
                ((int64_t)(d * PC_DRAWN_KINDS + row) * s->chunks + pass.chunk) * s->microbatches + pass.microbatch;
            duration[i] = pc_costs_duration(costs, d, pass.chunk, pass.kind) * whole_factor(number, at, 0);
            delay[i] = pass.kind == PC_PASS_W ? 0 : costs->transfer.delay_ps * whole_factor(number, at, 1);
        }
}

/* The delay counts only where the pass waits for another device. */
static void clear_own_delays(const pc_schedule *s, pc_time *delay) {
    int parts = pc_placement_parts(s->placement, s->devices, s->chunks);
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
            pc_pass pass = s->passes[i];
            int part = pc_placement_part(s->placement, s->devices, d, pass.chunk);
            int from = pass.kind == PC_PASS_F ? part - 1 : part + 1;
            if (from < 0 || from == parts || pc_placement_stage(s->placement, s->devices, from, 0) == d) delay[i] = 0;
        }
}

static void check_judge(const char *name, int p, int m, test_random *random) {
    enum { SAMPLES = 19 }; /* not a multiple of what is timed at once */
    pc_schedule s, same;
    pc_costs costs;
    pc_robustness found;
    pc_timing *timing;
    pc_timing_result result;
    assert_int_equal(pc_schedule_generate(pc_generator_find(name), p, m, 0, &s, NULL), PC_OK);
    random_costs(random, &s, &costs);
    costs.recomputes_in_b = false;
    const pc_robust_request request = {
        .schedule = &s, .costs = &costs, .draw = draw_whole, .draws_transfers = true, .samples = SAMPLES, .threads = 1};
    assert_int_equal(pc_schedule_robust(&request, &same, &found, NULL), PC_OK);
    assert_false(found.is_changed);
    assert_ptr_equal(found.given_ps, found.chosen_ps);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    size_t passes = (size_t)s.offsets[p];
    pc_time *duration = calloc(passes, sizeof *duration), *delay = calloc(passes, sizeof *delay);
    for (int64_t k = 0; k < SAMPLES; k++) {
        times_of_draw(&s, &costs, (INT64_C(1) << FIRST_JUDGED) + k, duration, delay);
        clear_own_delays(&s, delay);
        assert_int_equal(pc_timing_run_each(timing, &s, &costs, duration, delay, &result, NULL), PC_OK);
        assert_true(found.given_ps[k] == (double)result.totals.span_ps);
    }
    free(duration);
    free(delay);
    pc_timing_free(timing);
    pc_robustness_free(&found);
    pc_costs_free(&costs);
    pc_schedule_free(&same);
    pc_schedule_free(&s);
}

/* Sixteen draws in one walk are, each, what the timing of one order gives: whole picoseconds below 2^53, exactly. */
static void test_the_judge_is_the_timing(void **state) {
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b", "1f1b-interleaved", "zb-h1", "zb-1p", "v-half"};
    test_random random = {5};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_judge(names[i], 3, 9, &random);
    check_judge("1f1b", 1, 4, &random);
}

/* ---- by algebra ---- */

/* Two devices, two microbatches, all passes of device 1 take 10, on device 0 F take 10, B and W nothing. In every other
 * draw F of microbatch 1 on device 0 takes 40. */
static pc_code draw_late(const void *context, int64_t number, const pc_costs *costs, int microbatches, double *pass,
                         double *transfer, pc_error *error) {
    (void)context, (void)transfer, (void)error;
    for (int64_t i = 0; i < pc_drawn_factors(costs, microbatches); i++) pass[i] = 1;
    if (number % 2 == 1) pass[1] = 4; /* device 0, F, chunk 0, microbatch 1 */
    return PC_OK;
}

static void write_passes(pc_schedule *s, int device, const char *kinds) {
    int done[PC_PASS_KINDS] = {0};
    for (int64_t i = s->offsets[device]; i < s->offsets[device + 1]; i++) {
        int kind = kinds[i - s->offsets[device]] == 'F'   ? PC_PASS_F
                   : kinds[i - s->offsets[device]] == 'B' ? PC_PASS_B
                                                          : PC_PASS_W;
        s->passes[i] = (pc_pass){done[kind]++, 0, (int16_t)kind};
    }
}

static void make_late(pc_schedule *s, pc_costs *costs) {
    const int64_t lengths[] = {6, 6};
    assert_int_equal(pc_schedule_create("late", 2, 2, 1, PC_PLACEMENT_LINEAR, lengths, s, NULL), PC_OK);
    write_passes(s, 0, "FFBWBW");
    write_passes(s, 1, "FBFBWW");
    assert_int_equal(pc_costs_create(2, 1, costs, NULL), PC_OK);
    for (int d = 0; d < 2; d++) {
        costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_F] = 10;
        costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_B] = costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_W] = 10 * d;
        costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_BW] = 20 * d;
        costs->activation_bytes[d] = 1;
    }
}

/* At the costs device 1 does F0 at 10, B0, and F1, for which device 0 is ready at 20, without a wait: six passes, a
 * span of 60, whatever its order; device 0 ends with B1. Where F1 comes at 50 only, there is time for W0 before it.
 * Device 1 in the order F B W F B W ends at 80, a span of 70, and that is the least, for F1, B1 and W1 are still to
 * come at 50. In the order F B F B W W W0 comes after them: 80. So the means of both draws are 65 and 70, the worse
 * halves 70 and 80, and at the costs none is better than the other. */
static void test_a_pass_that_comes_late(void **state) {
    (void)state;
    pc_schedule given, chosen;
    pc_costs costs;
    pc_robustness found;
    make_late(&given, &costs);
    for (pc_robust goal = PC_ROBUST_MEAN; goal < PC_ROBUSTS; goal++) {
        const pc_robust_request request = {
            .schedule = &given, .costs = &costs, .goal = goal, .draw = draw_late, .samples = 100, .threads = 2};
        assert_int_equal(pc_schedule_robust(&request, &chosen, &found, NULL), PC_OK);
        assert_true(found.is_changed && found.span_before_ps == 60);
        assert_true(pc_robust_mean(found.given_ps, 100).mean_ps == 70);
        assert_true(pc_robust_mean(found.chosen_ps, 100).mean_ps == 65);
        for (int k = 0; k < 100; k++) {
            assert_true(found.given_ps[k] == (k % 2 ? 80 : 60));
            assert_true(found.chosen_ps[k] == (k % 2 ? 70 : 60));
        }
        /* The gain is 0 and 10 in turn: a mean of 5, a deviation of 5 sqrt(100/99), over sqrt(100). */
        assert_true(pc_robust_gain(&found).mean_ps == 5);
        assert_true(fabs(pc_robust_gain(&found).error_ps - 5 / sqrt(99)) < 1e-12);
        pc_robustness_free(&found);
        pc_schedule_free(&chosen);
    }
    pc_costs_free(&costs);
    pc_schedule_free(&given);
}

/* ---- for any draws ---- */

static bool is_same(const pc_schedule *a, const pc_schedule *b) {
    int64_t count = a->offsets[a->devices];
    return count == b->offsets[b->devices] && memcmp(a->passes, b->passes, (size_t)count * sizeof *a->passes) == 0;
}

static void assert_same_with_threads(const pc_robust_request *request, const pc_schedule *chosen,
                                     const pc_robustness *found) {
    pc_robust_request more = *request;
    pc_schedule other;
    pc_robustness about;
    more.threads = 3;
    assert_int_equal(pc_schedule_robust(&more, &other, &about, NULL), PC_OK);
    assert_true(is_same(chosen, &other));
    assert_memory_equal(about.given_ps, found->given_ps, (size_t)request->samples * sizeof(double));
    assert_memory_equal(about.chosen_ps, found->chosen_ps, (size_t)request->samples * sizeof(double));
    pc_robustness_free(&about);
    pc_schedule_free(&other);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest of the spans that 95 of 100 are at or below. */
static double p95_of(const double *span_ps, int64_t count) {
    double sorted[64];
    assert_true(count <= 64);
    memcpy(sorted, span_ps, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return sorted[(95 * count + 99) / 100 - 1];
}

static void assert_no_worse(const pc_robustness *x) {
    double before = pc_robust_mean(x->given_ps, x->samples).mean_ps;
    double after = pc_robust_mean(x->chosen_ps, x->samples).mean_ps;
    if (x->goal == PC_ROBUST_P95) {
        before = p95_of(x->given_ps, x->samples);
        after = p95_of(x->chosen_ps, x->samples);
    }
    assert_true(x->is_changed ? after < before : after == before);
}

/* A device's memory goes by the order of its passes: it holds the same at other times. */
static void assert_memory_at_other_times(const pc_schedule *s, const pc_costs *costs, const test_limits *limits,
                                         test_random *random) {
    pc_costs other;
    pc_replay a, b;
    random_costs(random, s, &other);
    size_t rows = (size_t)s->devices * (size_t)s->chunks;
    memcpy(other.activation_bytes, costs->activation_bytes, rows * sizeof *other.activation_bytes);
    memcpy(other.activation_b_bytes, costs->activation_b_bytes, rows * sizeof *other.activation_b_bytes);
    memcpy(other.activation_kept_bytes, costs->activation_kept_bytes, rows * sizeof *other.activation_kept_bytes);
    other.recomputes_in_b = costs->recomputes_in_b;
    assert_int_equal(pc_replay_run(s, costs, NULL, &a, NULL), PC_OK);
    assert_int_equal(pc_replay_run(s, &other, NULL, &b, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++) {
        assert_int_equal(a.device_peak_bytes[d], b.device_peak_bytes[d]);
        assert_true(a.device_peak_bytes[d] <= limits->bytes[d]);
    }
    pc_replay_free(&a);
    pc_replay_free(&b);
    pc_costs_free(&other);
}

static void check_any(const pc_schedule *given, const pc_costs *costs, test_random *random) {
    const pc_scatter scatter = {.jitter = 0.01 * (double)test_between(random, 0, 30),
                                .gpu_jitter = 0.1,
                                .gpus = 2,
                                .link_jitter = 0.2 * (double)test_between(random, 0, 1),
                                .has_slow = true,
                                .slow_stage = (int)test_between(random, -1, given->devices - 1),
                                .slow_factor = 1.2,
                                .seed = test_draw(random)};
    test_limits limits;
    pc_replay replay;
    pc_schedule chosen;
    pc_robustness found;
    assert_int_equal(pc_replay_run(given, costs, NULL, &replay, NULL), PC_OK);
    for (int d = 0; d < given->devices; d++)
        limits.bytes[d] = test_between(random, 0, 3)
                              ? replay.device_peak_bytes[d] * test_between(random, 100, 150) / 100
                              : PC_NO_LIMIT;
    pc_robust_request request = {.schedule = given,
                                 .costs = costs,
                                 .memory_limit = test_limit(&limits),
                                 .goal = test_between(random, 0, 1) ? PC_ROBUST_MEAN : PC_ROBUST_P95,
                                 .samples = test_between(random, 2, 64),
                                 .threads = 1};
    pc_scatter_fill_request(&scatter, &request);
    assert_int_equal(pc_schedule_robust(&request, &chosen, &found, NULL), PC_OK);
    assert_int_equal(pc_schedule_check(&chosen, NULL), PC_OK);
    assert_string_equal(chosen.name, given->name);
    assert_int_equal(found.span_before_ps, replay.span_ps);
    assert_true(found.is_changed || is_same(&chosen, given));
    assert_no_worse(&found);
    assert_memory_at_other_times(&chosen, costs, &limits, random);
    assert_same_with_threads(&request, &chosen, &found);
    pc_robustness_free(&found);
    pc_schedule_free(&chosen);
    pc_replay_free(&replay);
}

static void test_random_schedules(void **state) {
    (void)state;
    test_random random = {23};
    long changed = 0;
    for (long i = 0, cases = test_cases(12, 40); i < cases;) {
        pc_schedule given;
        pc_costs costs;
        random_schedule(&random, 4, 6, 2, &given);
        random_costs(&random, &given, &costs);
        bool counts = pc_placement_is_plain(given.placement) && !pc_schedule_has(&given, PC_PASS_R);
        if (counts) check_any(&given, &costs, &random);
        changed += counts;
        i += counts;
        pc_costs_free(&costs);
        pc_schedule_free(&given);
    }
    assert_true(changed > 0);
}

/* ---- what is drawn ---- */

enum { DRAWN = 2 * 3 * 2 * 5 }; /* devices, kinds, chunks, microbatches */

static void draw_scatter(const pc_scatter *scatter, int64_t number, double *pass, double *transfer) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(2, 2, &costs, NULL), PC_OK);
    assert_int_equal(pc_drawn_factors(&costs, 5), DRAWN);
    assert_int_equal(pc_scatter_draw(scatter, number, &costs, 5, pass, transfer, NULL), PC_OK);
    pc_costs_free(&costs);
}

static void test_a_slow_stage(void **state) {
    (void)state;
    double pass[DRAWN];
    pc_scatter scatter = {.has_slow = true, .slow_stage = 1, .slow_factor = 1.5};
    int first = 0;
    assert_true(pc_scatter_varies(&scatter));
    draw_scatter(&scatter, 7, pass, NULL);
    for (int i = 0; i < DRAWN; i++) assert_true(pass[i] == (i < DRAWN / 2 ? 1 : 1.5));
    scatter.slow_stage = -1;
    for (int64_t k = 0; k < 400; k++) {
        draw_scatter(&scatter, k, pass, NULL);
        for (int i = 1; i < DRAWN; i++) assert_true(pass[i] == (i < DRAWN / 2 ? pass[0] : 2.5 - pass[0]));
        first += pass[0] == 1.5;
    }
    assert_in_range(first, 150, 250); /* 200, and five standard deviations of 10 */
    scatter.slow_factor = 1;
    assert_false(pc_scatter_varies(&scatter));
}

/* Factors of mean 1 and the deviation that was asked for: of n of them, within five standard errors. A GPU's is one for
 * its passes; the same number gives the same. */
static void test_factors(void **state) {
    (void)state;
    enum { DRAWS = 500 };
    const pc_scatter scatter = {.jitter = 0.1, .link_jitter = 0.3, .seed = 3}, of_gpus = {.gpu_jitter = 0.1, .gpus = 1};
    double pass[DRAWN], transfer[DRAWN], again[DRAWN], sum = 0, squares = 0, of_links = 0, n = DRAWS * DRAWN;
    for (int64_t k = 0; k < DRAWS; k++) {
        draw_scatter(&scatter, k, pass, transfer);
        draw_scatter(&scatter, k, again, NULL);
        assert_memory_equal(pass, again, sizeof pass);
        for (int i = 0; i < DRAWN; i++) {
            sum += pass[i];
            squares += (pass[i] - 1) * (pass[i] - 1);
            of_links += transfer[i];
        }
        draw_scatter(&of_gpus, k, pass, NULL);
        for (int i = 0; i < DRAWN; i++) assert_true(pass[i] == pass[i < DRAWN / 2 ? 0 : DRAWN / 2]);
        assert_true(pass[0] != pass[DRAWN - 1]);
    }
    assert_true(fabs(sum / n - 1) < 5 * 0.1 / sqrt(n));
    assert_true(fabs(sqrt(squares / n) - 0.1) < 5 * 0.1 / sqrt(2 * n) * 1.1);
    assert_true(fabs(of_links / n - 1) < 5 * 0.3 / sqrt(n));
}

/* ---- what cannot be ---- */

static void expect_refusal(const pc_robust_request *request, const char *text) {
    pc_schedule chosen;
    pc_robustness found;
    pc_error error = {0};
    assert_int_equal(pc_schedule_robust(request, &chosen, &found, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, text)) fail_msg("'%s'; expected '%s'", error.message, text);
}

static void test_refusals(void **state) {
    (void)state;
    test_limits limits = test_limit_all(1);
    pc_schedule s, r;
    pc_costs costs;
    make_late(&s, &costs);
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b-r"), 2, 2, 0, &r, NULL), PC_OK);
    const pc_robust_request good = {
        .schedule = &s, .costs = &costs, .goal = PC_ROBUST_MEAN, .draw = draw_late, .samples = 10, .threads = 1};
    pc_robust_request bad = good;
    bad.samples = 1;
    expect_refusal(&bad, "late: 1 draws to judge by; expected 2 to 1048576");
    bad = good;
    bad.memory_limit = test_limit(&limits);
    expect_refusal(&bad, "late: holds more than the memory limit on device 0; expected an order within it");
    bad = good;
    bad.draw = draw_nothing;
    expect_refusal(&bad, "nothing is drawn");
    bad = good;
    bad.schedule = &r;
    expect_refusal(&bad, "1f1b-r recomputes, or has replicas");
    costs.transfer.mode = PC_TRANSFER_LINK;
    expect_refusal(&good, "late: transfers over links; expected delays");
    pc_costs_free(&costs);
    pc_schedule_free(&r);
    pc_schedule_free(&s);
}

/* Each allocation in turn fails, until none does. */
static void test_short_memory(void **state) {
    (void)state;
    pc_schedule s, chosen;
    pc_costs costs;
    pc_robustness found;
    pc_code code = PC_ERROR_NO_MEMORY;
    make_late(&s, &costs);
    const pc_robust_request request = {
        .schedule = &s, .costs = &costs, .goal = PC_ROBUST_P95, .draw = draw_late, .samples = 4, .threads = 1};
    for (long after = 0; code; after += 1 + after / 40) {
        pc_alloc_fail_after(after);
        code = pc_schedule_robust(&request, &chosen, &found, NULL);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
    }
    pc_robustness_free(&found);
    pc_schedule_free(&chosen);
    pc_costs_free(&costs);
    pc_schedule_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge_is_the_timing),
        cmocka_unit_test(test_a_pass_that_comes_late),
        cmocka_unit_test(test_random_schedules),
        cmocka_unit_test(test_a_slow_stage),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_short_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
