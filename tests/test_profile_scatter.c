/* How a profile's kernels scatter, from samples of which the distribution is known. */
#include "tests/support.h"

#include "calib/profile/profile_cost.h"
#include "engine/alloc.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

enum { LAST = PC_SCATTER_QUANTILES - 1, POINTS = 3 };

static void add_point(pc_profile *profile, const char *kernel, const double *samples, int64_t count, double median) {
    pc_kernel_measurement x = {.seconds = {.count = count, .median = median}};
    snprintf(x.kernel, sizeof x.kernel, "%s", kernel);
    assert_int_equal(pc_profile_add_kernel(profile, &x, samples, NULL), PC_OK);
}

static double mean_of(const double *quantiles) {
    double sum = (quantiles[0] + quantiles[LAST]) / 2;
    for (int i = 1; i < LAST; i++) sum += quantiles[i];
    return sum / LAST;
}

static void scatter(const pc_profile *profile, double *quantiles) {
    assert_int_equal(pc_profile_scatter(profile, quantiles, NULL), PC_OK);
    assert_true(fabs(mean_of(quantiles) - 1) < 1e-12);
    for (int i = 0; i < LAST; i++) assert_true(quantiles[i] <= quantiles[i + 1]);
}

/* Points of 1 ms, 10 ms and 100 ms, each with as many samples as it likes, evenly over the probabilities of a lognormal
 * distribution of 5% around its median: so are the factors, less their mean exp(sigma^2 / 2). */
static void test_lognormal(void **state) {
    static const int64_t counts[POINTS] = {3000, 20000, 500};
    const double sigma = 0.05;
    (void)state;
    pc_profile profile = {.kernel_count = 0};
    for (int p = 0; p < POINTS; p++) {
        double median = 1e-3 * pow(10, p), *samples = calloc((size_t)counts[p], sizeof *samples);
        for (int64_t i = 0; i < counts[p]; i++)
            samples[counts[p] - 1 - i] =
                median * exp(sigma * gsl_cdf_ugaussian_Pinv(((double)i + 0.5) / (double)counts[p]));
        add_point(&profile, "gemm_forward", samples, counts[p], median);
        free(samples);
    }
    double quantiles[PC_SCATTER_QUANTILES];
    scatter(&profile, quantiles);
    for (int i = 5; i <= LAST - 5; i++) {
        double expected = exp(sigma * gsl_cdf_ugaussian_Pinv((double)i / LAST) - sigma * sigma / 2);
        assert_true(fabs(quantiles[i] - expected) < 0.001);
    }
    pc_profile_free(&profile);
}

/* A point of 100 samples counts as much as one of 900: half of all factors are 1, a quarter 0.5, a quarter 1.5. */
static void test_points_weigh_the_same(void **state) {
    (void)state;
    pc_profile profile = {.kernel_count = 0};
    double samples[900];
    for (int i = 0; i < 900; i++) samples[i] = 2;
    add_point(&profile, "layernorm", samples, 900, 2);
    for (int i = 0; i < 100; i++) samples[i] = i < 50 ? 1.5 : 4.5;
    add_point(&profile, "gemm_forward", samples, 100, 3);
    double quantiles[PC_SCATTER_QUANTILES];
    scatter(&profile, quantiles);
    assert_true(fabs(quantiles[240] - 0.5) < 0.002 && fabs(quantiles[260] - 1) < 0.002);
    assert_true(fabs(quantiles[740] - 1) < 0.002 && fabs(quantiles[760] - 1.5) < 0.002);
    pc_profile_free(&profile);
}

/* Of 10,000 samples one is 51 times as long. The ten longest have a mean of 6, so the last thousandth goes from 1 to
 * 11; the mean of all is 1.005, as that of the samples. */
static void test_outlier_keeps_its_weight(void **state) {
    enum { COUNT = 10000 };
    (void)state;
    pc_profile profile = {.kernel_count = 0};
    double *samples = calloc(COUNT, sizeof *samples), quantiles[PC_SCATTER_QUANTILES];
    for (int i = 0; i < COUNT; i++) samples[i] = 7;
    samples[123] = 7 * 51;
    add_point(&profile, "gemm_forward", samples, COUNT, 7);
    scatter(&profile, quantiles);
    assert_true(fabs(quantiles[0] - 1 / 1.005) < 1e-12 && fabs(quantiles[LAST - 1] - 1 / 1.005) < 1e-12);
    assert_true(fabs(quantiles[LAST] - 11 / 1.005) < 1e-9);
    free(samples);
    pc_profile_free(&profile);
}

/* Two samples are a straight line between them. */
static void test_two_samples(void **state) {
    (void)state;
    pc_profile profile = {.kernel_count = 0};
    const double samples[] = {3, 1};
    double quantiles[PC_SCATTER_QUANTILES];
    add_point(&profile, "gemm_forward", samples, 2, 2);
    scatter(&profile, quantiles);
    for (int i = 0; i <= LAST; i++) assert_true(fabs(quantiles[i] - (0.5 + (double)i / LAST)) < 1e-12);
    pc_profile_free(&profile);
}

/* Imports, single samples, and what only watches for drift say nothing. */
static void test_nothing_is_known(void **state) {
    (void)state;
    pc_profile profile = {.kernel_count = 0};
    pc_error error = {0};
    const double samples[] = {1, 2, 3};
    double quantiles[PC_SCATTER_QUANTILES];
    add_point(&profile, "gemm_forward", NULL, 1, 2);
    add_point(&profile, "gemm_forward", samples, 1, 1);
    add_point(&profile, "sentinel_gemm", samples, 3, 2);
    assert_int_equal(pc_profile_scatter(&profile, quantiles, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "no kernel has raw samples, so nothing is known of how their times scatter; "
                                       "expected a profile of `pipecast calibrate`");
    add_point(&profile, "layernorm", samples, 3, 0);
    assert_int_equal(pc_profile_scatter(&profile, quantiles, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "layernorm: a median of 0 s; expected samples above zero");
    add_point(&profile, "gemm_forward", samples, 3, 2);
    pc_alloc_fail_after(0);
    assert_int_equal(pc_profile_scatter(&profile, quantiles, &error), PC_ERROR_NO_MEMORY);
    pc_alloc_fail_after(-1);
    pc_profile_free(&profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lognormal),
        cmocka_unit_test(test_points_weigh_the_same),
        cmocka_unit_test(test_outlier_keeps_its_weight),
        cmocka_unit_test(test_two_samples),
        cmocka_unit_test(test_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
