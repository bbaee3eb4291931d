/* Samples of bad days: how they are distributed, that threads do not show, that worse is never better, and what cannot
 * be. */
#include "engine/order.h"
#include "models/training/outline.h"
#include "tests/iteration_example.h"
#include "tests/refusals.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* ---- distributions ---- */

enum { DRAWN = 2000 };

/* No tied embedding, nothing that overlaps, stages that step each for itself; no GPU group is larger than asked for. */
static pc_iteration_spec plain_spec(int tp, int pp, int dp) {
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = tp;
    spec.cut.pp = pp;
    spec.cut.dp = dp;
    spec.cut.zero = 0;
    spec.cut.sequence_parallel = false;
    spec.model.is_tied = false;
    spec.overlaps_gradients = false;
    spec.step = PC_STEP_POST_VALIDATION;
    spec.memory_limit_bytes = INT64_C(1) << 40;
    spec.bad_days.samples = DRAWN;
    return spec;
}

/* Of mean 1 and standard deviation 0.1, the largest of `count`. */
static double below(double x, int count) {
    double variance = log1p(0.01);
    return pow(gsl_cdf_lognormal_P(x, -0.5 * variance, sqrt(variance)), count);
}

/* Kolmogorov and Smirnov: 1.63 / sqrt(n) is exceeded once in a hundred. `part_s` of the good iteration is multiplied by
 * the largest of `count` factors of standard deviation 0.1. */
static void expect_largest(const pc_iteration *iteration, double part_s, int count) {
    double factors[DRAWN], most = 0;
    for (int i = 0; i < DRAWN; i++)
        factors[i] = 1 + (pc_time_to_seconds(iteration->sample_ps[i]) - iteration->bad_days.good_s) / part_s;
    pc_sort_reals(factors, DRAWN);
    for (int i = 0; i < DRAWN; i++) {
        double p = below(factors[i], count);
        most = fmax(most, fmax(p - (double)i / DRAWN, (i + 1.0) / DRAWN - p));
    }
    if (most >= 1.63 / sqrt(DRAWN)) fail_msg("a distance of %g", most);
}

/* One GPU does all of an iteration; of a tensor group the slowest counts, in its passes and its step. */
static void test_speeds_of_gpus(void **state) {
    (void)state;
    for (int tp = 1; tp <= 4; tp += 3) {
        pc_iteration_spec spec = plain_spec(tp, 1, 1);
        spec.bad_days.gpu_jitter = 0.1;
        pc_iteration iteration = run_spec(&spec);
        expect_largest(&iteration, iteration.bad_days.good_s, tp);
        pc_iteration_free(&iteration);
    }
}

/* The collectives of four replicas take as long as the slowest one's share; passes and step stay. */
static void test_shares_of_collectives(void **state) {
    (void)state;
    pc_iteration_spec spec = plain_spec(1, 1, 4);
    pc_outline outline;
    spec.bad_days.link_jitter = 0.1;
    pc_iteration iteration = run_spec(&spec);
    assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
    pc_time collectives = outline.chunks_of[0].buckets * outline.chunks_of[0].reduce_ps + outline.loss_ps;
    expect_largest(&iteration, pc_time_to_seconds(collectives), 4);
    pc_outline_free(&outline);
    pc_iteration_free(&iteration);
}

/* Mean 0 and the given standard deviation of what samples take longer than the good iteration: four standard errors of
 * both, of numbers that are nearly normal. */
static void expect_moments(const pc_iteration *iteration, double deviation_s) {
    double sum = 0, squares = 0, good_s = iteration->bad_days.good_s;
    for (int i = 0; i < DRAWN; i++) {
        double longer = pc_time_to_seconds(iteration->sample_ps[i]) - good_s;
        sum += longer;
        squares += longer * longer;
    }
    double measured = sqrt(squares / DRAWN);
    assert_true(fabs(sum / DRAWN) < 4 * deviation_s / sqrt(DRAWN));
    assert_true(fabs(measured / deviation_s - 1) < 4 / sqrt(2.0 * DRAWN));
    /* The summary is of these numbers. */
    assert_true(fabs(iteration->bad_days.iteration_mean_s - good_s - sum / DRAWN) < 1e-12);
    assert_true(fabs(iteration->bad_days.iteration_mean_error_s / (measured / sqrt(DRAWN)) - 1) < 0.01);
}

/* Of m passes of either kind on one GPU each has its own factor: variances add up. */
static void test_noise_of_passes(void **state) {
    (void)state;
    pc_iteration_spec spec = plain_spec(1, 1, 1);
    spec.jitter = 0.1;
    pc_iteration iteration = run_spec(&spec);
    double f = pc_time_to_seconds(iteration.longest_ps[PC_PASS_F]),
           b = pc_time_to_seconds(iteration.longest_ps[PC_PASS_BW]);
    expect_moments(&iteration, 0.1 * sqrt(spec.cut.microbatches * (f * f + b * b)));
    pc_iteration_free(&iteration);
}

/* One microbatch over two stages goes F, transfer, F, BW, transfer, BW: two transfers, each with its factor, whether
 * the stages wait for them or not. */
static void test_noise_of_transfers(void **state) {
    (void)state;
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        pc_iteration_spec spec = plain_spec(1, 2, 1);
        pc_outline outline;
        spec.overlaps_p2p = overlaps;
        spec.cut.microbatches = 1;
        spec.bad_days.link_jitter = 0.1;
        pc_iteration iteration = run_spec(&spec);
        assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
        double f = pc_time_to_seconds(outline.device[0].hop_ps), b = pc_time_to_seconds(outline.device[1].hop_ps);
        assert_true(f > 0 && b > 0);
        expect_moments(&iteration, 0.1 * sqrt(f * f + b * b));
        pc_outline_free(&outline);
        pc_iteration_free(&iteration);
    }
}

/* ---- what must not show ---- */

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

/* All that there is at once. */
static pc_iteration_spec worst_spec(test_random *random, int64_t samples) {
    static const double quantiles[] = {0.9, 0.95, 1.0, 1.15};
    pc_iteration_spec spec = random_spec(random);
    if (spec.cut.dp > 1 && toss(random)) spec.cut.zero = (int)test_between(random, 2, 3);
    int64_t gpus = (int64_t)spec.cut.tp * spec.cut.pp * pc_cut_replicas(&spec.cut);
    spec.seed = test_draw(random);
    spec.jitter = toss(random) ? 0.05 : 0;
    spec.bad_days = (pc_bad_days){.samples = samples,
                                  .gpu_jitter = toss(random) ? 0.03 : 0,
                                  .link_jitter = toss(random) ? 0.2 : 0,
                                  .slow_gpus = test_between(random, 0, gpus < 3 ? gpus : 3),
                                  .slow_factor = 1.4,
                                  .bad_links = test_between(random, 0, gpus < 5 ? gpus : 5),
                                  .bad_factor = 0.3,
                                  .has_slow_stage = toss(random),
                                  .slow_stage = spec.cut.pp - 1,
                                  .other_nodes = toss(random)};
    if (toss(random)) spec.bad_days.passes = (pc_empirical){quantiles, 4};
    spec.bad_days.other_gpu = spec.machine.gpu;
    spec.bad_days.other_gpu.matrix_flops_per_s *= 0.8;
    return spec;
}

/* The same bits for any number of threads; and of fewer samples, the first ones. */
static void test_threads_do_not_show(void **state) {
    (void)state;
    test_random random = {5};
    for (long i = 0; i < test_cases(20, 100); i++) {
        pc_iteration_spec spec = worst_spec(&random, 13);
        pc_iteration one = run_spec(&spec), few;
        static const int threads[] = {2, 8};
        for (int k = 0; k < 2; k++) {
            spec.threads = threads[k];
            pc_iteration many = run_spec(&spec);
            assert_memory_equal(one.sample_ps, many.sample_ps, 13 * sizeof *one.sample_ps);
            assert_memory_equal(&one.bad_days.iteration_p95_s, &many.bad_days.iteration_p95_s, sizeof(pc_quantile));
            assert_true(one.bad_days.iteration_mean_s == many.bad_days.iteration_mean_s);
            pc_iteration_free(&many);
        }
        spec.bad_days.samples = 5;
        few = run_spec(&spec);
        assert_memory_equal(one.sample_ps, few.sample_ps, 5 * sizeof *one.sample_ps);
        pc_iteration_free(&few);
        pc_iteration_free(&one);
    }
}

/* A replica timed because another is like it, and all of them timed because their passes' factors, always 1, are drawn:
 * to the picosecond the same. */
static void test_folding_does_not_show(void **state) {
    (void)state;
    static const double ones[] = {1, 1};
    test_random random = {6};
    for (long i = 0; i < test_cases(40, 200); i++) {
        pc_iteration_spec spec = worst_spec(&random, 7);
        spec.jitter = spec.bad_days.gpu_jitter = spec.bad_days.link_jitter = 0;
        spec.bad_days.passes = (pc_empirical){NULL, 0};
        pc_iteration folded = run_spec(&spec);
        spec.bad_days.passes = (pc_empirical){ones, 2};
        pc_iteration each = run_spec(&spec);
        assert_memory_equal(folded.sample_ps, each.sample_ps, 7 * sizeof *each.sample_ps);
        pc_iteration_free(&folded);
        pc_iteration_free(&each);
    }
}

static void test_threads_do_not_show_in_expanded_replicas(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.expands = true;
    spec.jitter = 0.1;
    pc_iteration one = run_spec(&spec);
    spec.threads = 3;
    pc_iteration many = run_spec(&spec);
    assert_true(one.iteration_s == many.iteration_s && one.replay.trace_hash == many.replay.trace_hash);
    pc_iteration_free(&one);
    pc_iteration_free(&many);
}

/* ---- worse is never better ---- */

static void expect_no_shorter(const pc_iteration_spec *better, const pc_iteration_spec *worse) {
    pc_iteration a = run_spec(better), b = run_spec(worse);
    for (int64_t i = 0; i < a.bad_days.samples; i++) assert_true(a.sample_ps[i] <= b.sample_ps[i]);
    assert_true(a.bad_days.good_s == b.bad_days.good_s);
    pc_iteration_free(&a);
    pc_iteration_free(&b);
}

/* The orders are fixed, and the same numbers are drawn: each time is a maximum of sums of what got longer. */
static void test_worse_is_never_better(void **state) {
    (void)state;
    test_random random = {7};
    for (long i = 0; i < test_cases(25, 125); i++) {
        pc_iteration_spec spec = worst_spec(&random, 5), worse = spec;
        spec.step = worse.step = PC_STEP_NORM;
        worse.bad_days.slow_factor = 1.9;
        expect_no_shorter(&spec, &worse);
        worse = spec;
        worse.bad_days.bad_factor = 0.1;
        expect_no_shorter(&spec, &worse);
        worse = spec;
        worse.bad_days.has_slow_stage = true;
        expect_no_shorter(&spec, &worse);
    }
}

/* ---- what cannot be ---- */

static void expect_status(const pc_iteration_spec *spec, pc_run_status status, const char *what) {
    pc_iteration iteration;
    assert_int_equal(pc_iteration_run(spec, NULL, false, &iteration, NULL), PC_OK);
    assert_int_equal(iteration.status, status);
    if (!strstr(iteration.message, what)) fail_msg("'%s' is not in '%s'", what, iteration.message);
    assert_true(!iteration.sample_ps && iteration.bad_days.samples == 0 && isnan(iteration.bad_days.good_s));
    assert_true(isnan(iteration.bad_days.iteration_mean_s) && isnan(iteration.bad_days.iteration_p99_s.value));
    pc_iteration_free(&iteration);
}

static void test_more_than_there_is(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.bad_days = (pc_bad_days){.samples = 2, .slow_gpus = 65, .slow_factor = 2};
    expect_status(&spec, PC_RUN_INFEASIBLE, "slow_gpus: 65; expected at most 64");
    spec.bad_days = (pc_bad_days){.samples = 2, .bad_links = 65, .bad_factor = 0.5};
    expect_status(&spec, PC_RUN_INFEASIBLE, "bad_links: 65");
    spec.bad_days = (pc_bad_days){.samples = 2, .other_nodes = 9, .other_gpu = spec.machine.gpu};
    expect_status(&spec, PC_RUN_INFEASIBLE, "other_nodes: 9; expected at most 8");
    spec.bad_days = (pc_bad_days){.samples = 2, .has_slow_stage = true, .slow_stage = 4, .slow_factor = 2};
    expect_status(&spec, PC_RUN_INFEASIBLE, "slow_stage: 4; expected at most 3");
}

static void test_bad_input(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration iteration;
    pc_error error = {0};
    spec.bad_days = (pc_bad_days){.samples = 2, .slow_gpus = 1, .slow_factor = 0.9};
    assert_int_equal(pc_iteration_run(&spec, NULL, false, &iteration, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "slow_factor"));
    spec.bad_days = (pc_bad_days){.samples = 2, .other_nodes = 1}; /* a GPU of no speed */
    assert_int_equal(pc_iteration_run(&spec, NULL, false, &iteration, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "gpu: matrix"));
}

/* Ranks lie as TP, DP, PP: the last node has ranks of the last stage. There less memory is too little, by as much as
 * the message says; a limit of the spec's own is what it is. */
static void test_memory_of_the_other_gpu(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration good = run_spec(&spec);
    int64_t peak = good.memory[3].peak_bytes;
    pc_iteration_free(&good);
    spec.bad_days = (pc_bad_days){.samples = 1, .other_nodes = 1, .other_gpu = spec.machine.gpu};
    spec.bad_days.other_gpu.memory_reserved_bytes = 0;
    spec.bad_days.other_gpu.memory_bytes = peak;
    good = run_spec(&spec);
    assert_int_equal(good.memory[3].capacity_bytes, peak);
    assert_int_equal(good.memory[2].capacity_bytes, pc_iteration_capacity(&spec));
    pc_iteration_free(&good);
    spec.bad_days.other_gpu.memory_bytes = peak - 1;
    expect_status(&spec, PC_RUN_OUT_OF_MEMORY, "stage 3: activations");
    spec.memory_limit_bytes = peak * 2;
    good = run_spec(&spec);
    pc_iteration_free(&good);
}

static void test_a_lack_of_memory_is_said(void **state) {
    (void)state;
    test_random random = {9};
    pc_iteration_spec spec = worst_spec(&random, 3);
    spec.cut.dp = 2;
    for (refusals x = {0}; next_refusal(&x);) {
        pc_iteration iteration;
        pc_error error = {0};
        x.code = pc_iteration_run(&spec, NULL, false, &iteration, &error);
        if (x.code == PC_OK) pc_iteration_free(&iteration);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speeds_of_gpus),
        cmocka_unit_test(test_shares_of_collectives),
        cmocka_unit_test(test_noise_of_passes),
        cmocka_unit_test(test_noise_of_transfers),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_folding_does_not_show),
        cmocka_unit_test(test_threads_do_not_show_in_expanded_replicas),
        cmocka_unit_test(test_worse_is_never_better),
        cmocka_unit_test(test_more_than_there_is),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_memory_of_the_other_gpu),
        cmocka_unit_test(test_a_lack_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
