/* Bad days: what may be asked for, what is drawn, and quantiles with their intervals. */
#include "tests/support.h"

#include "engine/order.h"
#include "models/training/bad_days.h"
#include "models/training/draws.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* ---- what may be ---- */

static void expect_error(const pc_bad_days *days, const char *what) {
    pc_error error = {0};
    assert_int_equal(pc_bad_days_check(days, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, what)) fail_msg("'%s' is not in '%s'", what, error.message);
    assert_non_null(strstr(error.message, "expected"));
}

static void numbers_out_of_range_are_named(void **state) {
    (void)state;
    static const double falls[] = {0.9, 1.1, 1.0}, one[] = {1.0}, zero[] = {0.0, 1.0}, none[] = {0.5, NAN};
    expect_error(&(pc_bad_days){.samples = -1}, "samples: -1");
    expect_error(&(pc_bad_days){.samples = 1, .gpu_jitter = -0.1}, "gpu_jitter: -0.1");
    expect_error(&(pc_bad_days){.samples = 1, .gpu_jitter = NAN}, "gpu_jitter");
    expect_error(&(pc_bad_days){.samples = 1, .link_jitter = 11}, "link_jitter: 11");
    expect_error(&(pc_bad_days){.samples = 1, .slow_gpus = 2, .slow_factor = 0.5}, "slow_factor: 0.5");
    expect_error(&(pc_bad_days){.samples = 1, .has_slow_stage = true, .slow_factor = 0}, "slow_factor: 0");
    expect_error(&(pc_bad_days){.samples = 1, .has_slow_stage = true, .slow_factor = 2, .slow_stage = -1},
                 "slow_stage: -1");
    expect_error(&(pc_bad_days){.samples = 1, .bad_links = 1, .bad_factor = 0}, "bad_factor: 0");
    expect_error(&(pc_bad_days){.samples = 1, .bad_links = 1, .bad_factor = 1.5}, "bad_factor: 1.5");
    expect_error(&(pc_bad_days){.samples = 1, .mtbf_s = -5}, "mtbf: -5");
    expect_error(&(pc_bad_days){.samples = 1, .horizon_s = INFINITY}, "horizon: inf");
    expect_error(&(pc_bad_days){.samples = 1, .passes = {one, 1}}, "1 quantiles");
    expect_error(&(pc_bad_days){.samples = 1, .passes = {falls, 3}}, "1 as quantile 2");
    expect_error(&(pc_bad_days){.samples = 1, .passes = {zero, 2}}, "0 as quantile 0");
    expect_error(&(pc_bad_days){.samples = 1, .passes = {none, 2}}, "nan as quantile 1");
    expect_error(&(pc_bad_days){.gpu_jitter = 0.1}, "samples: 0");
    expect_error(&(pc_bad_days){.mtbf_s = 1e9}, "samples: 0");
}

static void a_good_day_is_fine(void **state) {
    (void)state;
    static const double quantiles[] = {0.9, 1.0, 1.0, 1.1};
    const pc_bad_days good = {0}, all = {.samples = 100,
                                         .gpu_jitter = 0.02,
                                         .link_jitter = 0.1,
                                         .passes = {quantiles, 4},
                                         .slow_gpus = 1,
                                         .slow_factor = 1.3,
                                         .bad_links = 1,
                                         .bad_factor = 0.5,
                                         .has_slow_stage = true,
                                         .other_nodes = 2,
                                         .mtbf_s = 1e9};
    assert_int_equal(pc_bad_days_check(&good, NULL), PC_OK);
    assert_int_equal(pc_bad_days_check(&all, NULL), PC_OK);
    assert_false(pc_bad_days_of_iteration(&good) || pc_bad_days_of_job(&good));
    assert_true(pc_bad_days_of_iteration(&all) && pc_bad_days_of_job(&all));
    assert_true(isnan(pc_bad_days_none().iteration_p95_s.high) && pc_bad_days_none().samples == 0);
}

/* ---- quantiles ---- */

enum { MOST = 400 };

/* Of the numbers 1 .. n the bounds are their own ranks: exactly the largest and the smallest with at most 2.5% beyond
 * them, by GSL's binomial distribution. The rank l is above the quantile where fewer than l of n numbers are not, and u
 * is below it where u or more are. */
static void bounds_are_those_of_the_binomial_distribution(void **state) {
    (void)state;
    static const double qs[] = {0.001, 0.05, 0.5, 0.7, 0.95, 0.99};
    double numbers[MOST];
    for (int i = 0; i < MOST; i++) numbers[i] = i + 1;
    for (size_t i = 0; i < sizeof qs / sizeof *qs; i++)
        for (unsigned n = 1; n <= MOST; n++) {
            double q = qs[i];
            unsigned low = 0, high = n + 1;
            while (gsl_cdf_binomial_P(low, q, n) <= 0.025) low++;
            while (high >= 2 && gsl_cdf_binomial_Q(high - 2, q, n) <= 0.025) high--;
            pc_quantile found = pc_quantile_of(numbers, n, q);
            assert_true(low == 0 ? isnan(found.low) : found.low == low);
            assert_true(high == n + 1 ? isnan(found.high) : found.high == high);
            assert_true(found.value == ceil(n * q - 1e-9));
            assert_true(isnan(found.low) || found.low <= found.value);
            assert_true(isnan(found.high) || found.high >= found.value);
        }
}

/* Numbers 1/n .. 1, so many that a sum of all chances would take long: the bounds are about 1.96 standard deviations of
 * sqrt(q(1-q)/n) away. */
static void bounds_of_many_are_normal(void **state) {
    (void)state;
    enum { COUNT = 1000000 };
    double *numbers = malloc(COUNT * sizeof *numbers), deviation = sqrt(0.95 * 0.05 / COUNT);
    for (int i = 0; i < COUNT; i++) numbers[i] = (i + 1) / (double)COUNT;
    pc_quantile found = pc_quantile_of(numbers, COUNT, 0.95);
    assert_true(fabs(found.value - 0.95) < 1e-9);
    assert_true(fabs((found.value - found.low) / deviation - 1.96) < 0.02);
    assert_true(fabs((found.high - found.value) / deviation - 1.96) < 0.02);
    free(numbers);
    found = pc_quantile_of(NULL, 0, 0.5);
    assert_true(isnan(found.value) && isnan(found.low) && isnan(found.high));
}

/* Of 4000 draws of 100 even numbers in 0 .. 1, the interval holds the quantile in at least 95%, three standard errors
 * of that aside. */
static void intervals_hold_the_quantile(void **state) {
    (void)state;
    enum { DRAWS = 4000, COUNT = 100 };
    static const double qs[] = {0.05, 0.5, 0.9};
    test_random random = {3};
    int held[3] = {0};
    for (int i = 0; i < DRAWS; i++) {
        double numbers[COUNT];
        for (int k = 0; k < COUNT; k++) numbers[k] = test_draw_unit(&random);
        pc_sort_reals(numbers, COUNT);
        for (int k = 0; k < 3; k++) {
            pc_quantile found = pc_quantile_of(numbers, COUNT, qs[k]);
            held[k] += found.low <= qs[k] && qs[k] <= found.high;
        }
    }
    for (int k = 0; k < 3; k++) {
        assert_true(held[k] >= DRAWS * 0.95 - 3 * sqrt(DRAWS * 0.95 * 0.05));
        assert_true(held[k] < DRAWS); /* and not because they are wide */
    }
}

/* ---- draws ---- */

enum { DRAWN = 20000 };

/* Kolmogorov and Smirnov's distance of DRAWN numbers from a distribution; 1.63 / sqrt(n) is exceeded once in a hundred.
 */
static void expect_distribution(double *drawn, double (*below)(double)) {
    double most = 0;
    pc_sort_reals(drawn, DRAWN);
    for (int i = 0; i < DRAWN; i++) {
        double p = below(drawn[i]);
        most = fmax(most, fmax(p - (double)i / DRAWN, (i + 1.0) / DRAWN - p));
    }
    assert_true(most < 1.63 / sqrt(DRAWN));
}

static void draw_many(const pc_factors *factors, double *drawn) {
    gsl_rng rng;
    assert_int_equal(pc_draws_open(&rng, NULL), PC_OK);
    for (int i = 0; i < DRAWN; i++) {
        if (i % 100 == 0) pc_draws_begin(&rng, 42, i, PC_DRAWN_PASSES, i % 7, i % 3); /* of streams that are new */
        drawn[i] = pc_factors_draw(factors, &rng);
    }
    pc_draws_close(&rng);
}

/* Mean 1 and standard deviation 0.3: sigma^2 = ln(1 + 0.09), mu = -sigma^2 / 2. */
static double below_lognormal(double x) {
    double variance = log(1.09);
    return gsl_cdf_lognormal_P(x, -0.5 * variance, sqrt(variance));
}

static void lognormal_factors_are(void **state) {
    (void)state;
    pc_factors factors = pc_factors_lognormal(0.3), none = pc_factors_lognormal(0);
    double *drawn = malloc(DRAWN * sizeof *drawn), sum = 0;
    draw_many(&factors, drawn);
    for (int i = 0; i < DRAWN; i++) sum += drawn[i];
    assert_true(fabs(sum / DRAWN - 1) < 4 * 0.3 / sqrt(DRAWN));
    expect_distribution(drawn, below_lognormal);
    assert_true(pc_factors_vary(&factors) && !pc_factors_vary(&none));
    draw_many(&none, drawn);
    for (int i = 0; i < DRAWN; i++) assert_true(drawn[i] == 1);
    free(drawn);
}

/* Quantiles 0.8, 0.9, 1.3: a straight line to 1/2 at 0.9, another to 1 at 1.3. */
static double below_empirical(double x) {
    return x < 0.8 ? 0 : x < 0.9 ? (x - 0.8) / 0.1 * 0.5 : x < 1.3 ? 0.5 + (x - 0.9) / 0.4 * 0.5 : 1;
}

static void empirical_factors_are(void **state) {
    (void)state;
    static const double quantiles[] = {0.8, 0.9, 1.3};
    pc_factors factors = {.empirical = {quantiles, 3}};
    double *drawn = malloc(DRAWN * sizeof *drawn);
    draw_many(&factors, drawn);
    expect_distribution(drawn, below_empirical);
    free(drawn);
}

/* Three of seven places: all are different, and each of the 35 sets comes as often: chi^2 of 34 degrees of freedom is
 * under 56 but once in a hundred. */
static void places_are_any(void **state) {
    (void)state;
    enum { ALL = 7, COUNT = 3, ROUNDS = 35000, SETS = 35 };
    uint8_t marks[ALL] = {0};
    int64_t places[COUNT];
    int times[1 << ALL] = {0};
    gsl_rng rng;
    assert_int_equal(pc_draws_open(&rng, NULL), PC_OK);
    for (int i = 0; i < ROUNDS; i++) {
        int set = 0;
        pc_draws_begin(&rng, 5, i, PC_DRAWN_SLOW_GPUS, 0, 0);
        pc_draw_places(&rng, ALL, COUNT, 2, marks, places);
        for (int k = 0; k < COUNT; k++) {
            assert_true(places[k] >= 0 && places[k] < ALL && marks[places[k]] == 2);
            set |= 1 << places[k];
            marks[places[k]] = 0;
        }
        times[set]++;
    }
    double chi = 0, expected = (double)ROUNDS / SETS;
    int seen = 0;
    for (int set = 0; set < 1 << ALL; set++) {
        if (__builtin_popcount((unsigned)set) != COUNT) assert_int_equal(times[set], 0);
        seen += times[set] > 0;
        if (times[set] > 0) chi += (times[set] - expected) * (times[set] - expected) / expected;
    }
    assert_int_equal(seen, SETS);
    assert_true(chi < 56);
    pc_draws_close(&rng);
}

static void a_time_too_long_is_still_one(void **state) {
    (void)state;
    assert_int_equal(pc_time_drawn(2.5e6 + 0.6), 2500001);
    assert_int_equal(pc_time_drawn(1e30), PC_TIME_MAX / 4);
    assert_int_equal(pc_time_drawn(INFINITY), PC_TIME_MAX / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_out_of_range_are_named),
        cmocka_unit_test(a_good_day_is_fine),
        cmocka_unit_test(bounds_are_those_of_the_binomial_distribution),
        cmocka_unit_test(bounds_of_many_are_normal),
        cmocka_unit_test(intervals_hold_the_quantile),
        cmocka_unit_test(lognormal_factors_are),
        cmocka_unit_test(empirical_factors_are),
        cmocka_unit_test(places_are_any),
        cmocka_unit_test(a_time_too_long_is_still_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
