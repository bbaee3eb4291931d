/* Fits of points with known parameters, 5% noise and 2% outliers: what is recovered, and what intervals hold. */
#include "tests/support.h"

#include "calib/fit/fit.h"
#include "calib/profile/profile.h"
#include "engine/alloc.h"

#include <math.h>

/* ---- noise ---- */

static double between(test_random *random, double low, double high) {
    return low * exp(test_draw_unit(random) * log(high / low));
}

static double normal(test_random *random) {
    double u = test_draw_unit(random), v = test_draw_unit(random);
    return sqrt(-2.0 * log(u > 0.0 ? u : 0x1p-53)) * cos(6.283185307179586 * v);
}

/* 5%, of the logarithm or of the value itself. */
static double noisy(test_random *random, double seconds, bool is_lognormal) {
    double error = 0.05 * normal(random);
    return seconds * (is_lognormal ? exp(error) : 1.0 + error);
}

static double with_outliers(test_random *random, double seconds, bool is_lognormal) {
    double x = noisy(random, seconds, is_lognormal);
    return test_draw_unit(random) < 0.02 ? x * between(random, 3.0, 10.0) : x;
}

/* ---- a truth and points of it ---- */

typedef struct truth {
    pc_fit_key key;
    int processors, dimensions, count; /* of points */
    double (*seconds)(const double *x);
    void (*draw)(test_random *random, double *x);
    int parameters;
    double parameter[16]; /* NaN: not one that was put in */
} truth;

typedef struct points {
    double *x, *seconds;
} points;

static points draw_points(const truth *t, test_random *random, bool is_lognormal) {
    points p = {calloc((size_t)(t->count * t->dimensions), sizeof(double)), calloc((size_t)t->count, sizeof(double))};
    for (int i = 0; i < t->count; i++) {
        t->draw(random, p.x + i * t->dimensions);
        p.seconds[i] = with_outliers(random, t->seconds(p.x + i * t->dimensions), is_lognormal);
    }
    return p;
}

static void free_points(points *p) {
    free(p->x);
    free(p->seconds);
}

static void make_fit(const truth *t, const points *p, pc_fit *fit) {
    pc_error error = {0};
    if (pc_fit_make(&t->key, t->processors, p->x, p->seconds, t->count, fit, &error)) fail_msg("%s", error.message);
}

static void check_parameters(const truth *t, const pc_fit *fit, uint64_t seed) {
    if (fit->parameter_count != t->parameters)
        fail_msg("seed %d: %d parameters; expected %d", (int)seed, (int)fit->parameter_count, t->parameters);
    for (int i = 0; i < t->parameters; i++)
        if (fabs(fit->parameter[i] / t->parameter[i] - 1.0) > 0.03)
            fail_msg("seed %d: %s is %g; expected %g within 3%%", (int)seed, fit->parameter_name[i], fit->parameter[i],
                     t->parameter[i]);
}

/* The part of fresh points, none of them outliers, that their 95% interval holds. */
static double coverage(const truth *t, const pc_fit *fit, test_random *random, bool is_lognormal) {
    enum { FRESH = 4000 };
    int held = 0;
    for (int i = 0; i < FRESH; i++) {
        double x[PC_FIT_DIMENSIONS], low, high;
        t->draw(random, x);
        double seconds = noisy(random, t->seconds(x), is_lognormal);
        pc_fit_interval(fit, x, 0.95, &low, &high);
        held += seconds >= low && seconds <= high;
    }
    return (double)held / FRESH;
}

/* How wrong the parameters are, in their standard errors, squared and summed over *count of them: 1 each if these are
 * right. Where a jump is found between two sizes its error is no bell. */
static double squared_errors(const truth *t, const pc_fit *fit, int *count) {
    double sum = 0.0;
    for (int i = 0; i < t->parameters; i++) {
        bool is_jump = t->key.form == PC_FIT_TRANSFER && strncmp(fit->parameter_name[i], "begin", 5) == 0;
        if (isnan(t->parameter[i]) || is_jump) continue;
        double away = fit->parameter[i] - t->parameter[i];
        sum += away * away / fit->covariance[i * fit->parameter_count + i];
        ++*count;
    }
    return sum;
}

static void check_truth(const truth *t, long seeds) {
    int errors = 0;
    double squared = 0.0;
    double least = 1.0, most = 0.0, sum = 0.0, worst = 0.0;
    for (long seed = 0; seed < seeds; seed++) {
        test_random random = {(uint64_t)seed * 977 + (uint64_t)t->key.form * 131 + (uint64_t)t->parameters};
        bool is_lognormal = seed % 2 == 0;
        points p = draw_points(t, &random, is_lognormal);
        pc_fit fit;
        make_fit(t, &p, &fit);
        check_parameters(t, &fit, (uint64_t)seed);
        for (int i = 0; i < t->parameters; i++)
            if (fabs(fit.parameter[i] / t->parameter[i] - 1.0) > worst)
                worst = fabs(fit.parameter[i] / t->parameter[i] - 1.0);
        squared += squared_errors(t, &fit, &errors);
        double held = coverage(t, &fit, &random, is_lognormal);
        if (held < 0.93 || held > 0.97) fail_msg("seed %ld: intervals hold %g of fresh points", seed, held);
        if (held < least) least = held;
        if (held > most) most = held;
        sum += held;
        free_points(&p);
        pc_fit_free(&fit);
    }
    print_message("%s: parameters within %.2f%%, %.2f standard errors; intervals hold %.3f to %.3f, on average %.4f\n",
                  t->key.subject, 100.0 * worst, sqrt(squared / errors), least, most, sum / (double)seeds);
    if (!(squared / errors > 0.2 && squared / errors < 2.5)) fail_msg("%g standard errors", sqrt(squared / errors));
}

/* ---- transfers ---- */

static void draw_size(test_random *random, double *x) {
    *x = between(random, 1024.0, 1073741824.0);
}

static double one_line(const double *x) {
    return 20e-6 + *x / 180e9;
}

/* A jump down at 256 KiB (44.8 to 34.4 us) and one down at 8 MiB (169.8 to 101.9 us). */
static double three_lines(const double *x) {
    if (*x <= 262144.0) return 12e-6 + *x / 8e9;
    if (*x <= 8388608.0) return 30e-6 + *x / 60e9;
    return 60e-6 + *x / 200e9;
}

/* From a cache of 40 MB and beyond: seconds go on where they are, at half the rate. */
static double two_rates(const double *x) {
    return *x <= 40e6 ? 4e-6 + *x / 4e12 : 4e-6 + 40e6 / 4e12 + (*x - 40e6) / 1.5e12;
}

static void draw_bytes(test_random *random, double *x) {
    *x = between(random, 1e6, 2e9);
}

static void one_line_is_recovered(void **state) {
    (void)state;
    truth t = {.key = {.form = PC_FIT_TRANSFER, .subject = "all_reduce", .ranks = 8, .link = "nvlink"},
               .dimensions = 1,
               .count = 1000,
               .seconds = one_line,
               .draw = draw_size,
               .parameters = 3,
               .parameter = {20e-6, 180e9, NAN}};
    check_truth(&t, test_cases(1, 2));
}

static void three_lines_are_recovered(void **state) {
    (void)state;
    truth t = {.key = {.form = PC_FIT_TRANSFER, .subject = "all_gather", .ranks = 8, .link = "nvlink"},
               .dimensions = 1,
               .count = 2500,
               .seconds = three_lines,
               .draw = draw_size,
               .parameters = 11,
               .parameter = {12e-6, 8e9, NAN, 262144.0, 30e-6, 60e9, NAN, 8388608.0, 60e-6, 200e9, NAN}};
    check_truth(&t, test_cases(1, 2));
}

static void a_corner_is_recovered(void **state) {
    (void)state;
    truth t = {.key = {.form = PC_FIT_MEMORY, .subject = "layer_norm_forward", .dtype = "bf16"},
               .dimensions = 1,
               .count = 2500,
               .seconds = two_rates,
               .draw = draw_bytes,
               .parameters = 7,
               .parameter = {4e-6, 4e12, NAN, 40e6, NAN, 1.5e12, NAN}};
    check_truth(&t, test_cases(1, 2));
}

/* ---- products and attention ---- */

/* Sizes as training has them, mostly multiples of 64. */
static double draw_extent(test_random *random, double low, double high) {
    return 64.0 * ceil(between(random, low, high) / 64.0);
}

/* Any; a few rows, where the memory sets the pace; large with a short k, where the ramp does. */
static void draw_gemm(test_random *random, double *x) {
    double sort = test_draw_unit(random);
    x[0] = 1.0;
    for (int d = 1; d < 4; d++) x[d] = draw_extent(random, 64.0, 16384.0);
    if (sort < 0.3) x[1] = ceil(between(random, 1.0, 64.0));
    if (sort < 0.65) return;
    for (int d = 1; d < 3; d++) x[d] = draw_extent(random, 2048.0, 8192.0);
    x[3] = draw_extent(random, 32.0, 512.0);
}

/* The formula once more: 6 us and the longer of 1.6 TB/s and whole waves of tiles on 108 processors. Those reach 250
 * TFLOP/s where k has no end and half of it at k = 150, each shape by the tile and the split of k that suit it best. */
static double gemm_truth(const double *x) {
    static const double tiles[][2] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
    double m = x[1], n = x[2], k = x[3], best = HUGE_VAL;
    for (int i = 0; i < 6; i++)
        for (int split = 1; split <= 16; split++) {
            double blocks = x[0] * ceil(m / tiles[i][0]) * ceil(n / tiles[i][1]) * split;
            if (split > 1 && blocks > 108) break;
            double tile = 2.0 * tiles[i][0] * tiles[i][1] * (k / split + 150.0) / (250e12 / 108);
            double parts = split > 1 ? 8.0 * split * x[0] * m * n / 1.6e12 : 0.0;
            double seconds = ceil(blocks / 108) * tile + parts;
            if (seconds < best) best = seconds;
        }
    return 6e-6 + fmax(best, 2.0 * x[0] * (m * k + k * n + m * n) / 1.6e12);
}

static void gemm_is_recovered(void **state) {
    (void)state;
    truth t = {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "bf16"},
               .processors = 108,
               .dimensions = 4,
               .count = 1200,
               .seconds = gemm_truth,
               .draw = draw_gemm,
               .parameters = 4,
               .parameter = {250e12, 150.0, 1.6e12, 6e-6}};
    check_truth(&t, test_cases(2, 2));
}

/* Causal, forward, on 108 processors: blocks of 128 queries, each with the keys up to its end; 180 TFLOP/s, as much as
 * 256 keys beside each block, 5 us. A wave is no shorter than its longest block. */
static double attention_truth(const double *x) {
    double rows = ceil(x[1] / 128.0), seen = x[2] * (rows + 1.0) / (2.0 * rows), waves = ceil(x[0] * rows / 108.0);
    double key = 4.0 * fmin(x[1], 128.0) * x[3] / (180e12 / 108.0);
    double compute = key * (fmax(waves * seen, x[2]) + waves * 256.0);
    return 5e-6 + fmax(compute, 2.0 * 2.0 * x[0] * x[3] * (x[1] + x[2]) / 0.6e12);
}

/* A fifth so small that hardly more than the launch shows, two fifths of one short wave, where the ramp does. */
static void draw_attention(test_random *random, double *x) {
    double sort = test_draw_unit(random);
    x[0] = ceil(between(random, 1.0, sort < 0.2 ? 16.0 : sort < 0.6 ? 50.0 : 1024.0));
    x[1] = 128.0 * ceil(between(random, 32.0, sort < 0.6 ? 256.0 : 8192.0) / 128.0);
    if (sort < 0.2) x[1] = ceil(between(random, 8.0, 64.0));
    x[2] = x[1];
    x[3] = test_draw_unit(random) < 0.5 ? 64.0 : 128.0;
}

static void attention_is_recovered(void **state) {
    (void)state;
    truth t = {.key = {.form = PC_FIT_ATTENTION, .subject = "attention_forward", .dtype = "bf16", .is_causal = true},
               .processors = 108,
               .dimensions = 4,
               .count = 1600,
               .seconds = attention_truth,
               .draw = draw_attention,
               .parameters = 4,
               .parameter = {180e12, 256.0, 0.6e12, 5e-6}};
    check_truth(&t, test_cases(1, 2));
}

/* ---- what is left of rooflines and pieces ---- */

/* A library that is slower in one corner: 60% where m is small and n large, smoothly. */
static double bent_gemm_truth(const double *x) {
    double a = log(x[1] / 256.0), b = log(x[2] / 8192.0);
    return gemm_truth(x) * (1.0 + 0.6 * exp(-(a * a + b * b) / 8.0));
}

static double median_error(const truth *t, const pc_fit *fit, test_random *random) {
    enum { FRESH = 500 };
    double error[FRESH];
    for (int i = 0; i < FRESH; i++) {
        double x[PC_FIT_DIMENSIONS];
        t->draw(random, x);
        error[i] = fabs(pc_fit_predict(fit, x).seconds / t->seconds(x) - 1.0);
    }
    int below = 0;
    double middle = 0.0;
    for (int i = 0; i < FRESH; i++) {
        below = 0;
        for (int j = 0; j < FRESH; j++) below += error[j] < error[i];
        if (below == FRESH / 2) middle = error[i];
    }
    return middle;
}

/* The surface follows the bend, and far away there is nothing of it, but all of its variance. */
static void a_surface_follows_what_is_left(void **state) {
    (void)state;
    truth t = {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "bf16"},
               .processors = 108,
               .dimensions = 4,
               .count = 400,
               .seconds = bent_gemm_truth,
               .draw = draw_gemm};
    test_random random = {3};
    points p = draw_points(&t, &random, true);
    pc_fit fit, base;
    make_fit(&t, &p, &fit);
    assert_non_null(fit.weight);
    double held = coverage(&t, &fit, &random, true), with = median_error(&t, &fit, &random);
    base = fit;
    base.weight = NULL;
    double without = median_error(&t, &base, &random);
    if (with > 0.03 || with > 0.6 * without) fail_msg("median error %g with the surface, %g without", with, without);
    if (held < 0.92 || held > 0.98) fail_msg("intervals hold %g", held);
    const double far[] = {1.0, 1e17, 1e17, 1e17}, variance = fit.surface_amplitude * fit.surface_amplitude;
    pc_estimate there = pc_fit_predict(&fit, far), base_there = pc_fit_predict(&base, far);
    assert_true(fabs(there.seconds / base_there.seconds - 1.0) < 0.01);
    double more = pow(there.standard_error / there.seconds, 2) - pow(base_there.standard_error / base_there.seconds, 2);
    assert_true(fabs(more / variance - 1.0) < 0.01);
    free_points(&p);
    pc_fit_free(&fit);
}

/* Teeth of 6% every 24 MB are no pieces, but neighbours foretell each other. */
static double teeth(const double *x) {
    return (50e-6 + *x / 100e9) * (1.0 + 0.06 * (*x / 24e6 - floor(*x / 24e6)));
}

static void draw_even(test_random *random, double *x) {
    *x = 1e6 + 1e9 * test_draw_unit(random);
}

static double quiet(test_random *random, double seconds) {
    return seconds * exp(0.001 * normal(random));
}

static void teeth_are_followed(void **state) {
    (void)state;
    enum { COUNT = 1500 };
    truth t = {.dimensions = 1, .seconds = teeth, .draw = draw_even};
    test_random random = {4};
    static double x[COUNT], seconds[COUNT];
    pc_fit_key key = {.form = PC_FIT_TRANSFER, .subject = "all_reduce"};
    pc_fit fit, base;
    for (int i = 0; i < COUNT; i++) {
        draw_even(&random, &x[i]);
        seconds[i] = quiet(&random, teeth(&x[i]));
    }
    assert_int_equal(pc_fit_make(&key, 0, x, seconds, COUNT, &fit, NULL), PC_OK);
    assert_non_null(fit.weight);
    base = fit;
    base.weight = NULL;
    double with = median_error(&t, &fit, &random), without = median_error(&t, &base, &random);
    if (with > 0.003 || with > 0.5 * without) fail_msg("median error %g, %g of the lines alone", with, without);
    pc_fit_free(&fit);
}

/* Two points of one size and one of another say nothing of a line, and seven shapes nothing of a roofline. */
static void too_few(void **state) {
    (void)state;
    const double x[] = {1.0, 1.0, 2.0, 2.0, 2.0, 2.0}, seconds[] = {1.0, 1.0, 2.0, 2.0, 2.0, 2.0};
    pc_fit_key key = {.form = PC_FIT_TRANSFER}, gemm = {.form = PC_FIT_GEMM};
    pc_error error;
    pc_fit fit;
    assert_int_equal(pc_fit_make(&key, 0, x, seconds, 6, &fit, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "6 points of 2 sizes; expected at least 5 points of 3 sizes"));
    assert_int_equal(pc_fit_make(&key, 0, x, seconds, 0, &fit, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_fit_make(&gemm, 108, x, seconds, 1, &fit, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "1 shapes; expected at least 8"));
    const double bad[] = {1.0, NAN, 3.0, 4.0, 5.0}, late[] = {1.0, 1.0, 1.0, 1.0, 0.0};
    assert_int_equal(pc_fit_make(&key, 0, bad, seconds, 5, &fit, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "point 2"));
    assert_int_equal(pc_fit_make(&key, 0, x, late, 5, &fit, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "point 5"));
}

/* Exact points of a line, few or many: the line, to the last digits, whatever order they come in. */
static void exact_points(void **state) {
    (void)state;
    for (int count = 5; count < 60; count += 9) {
        double x[64], seconds[64], turned_x[64], turned_seconds[64];
        pc_fit_key key = {.form = PC_FIT_TRANSFER, .subject = "send_recv"};
        pc_fit fit, turned;
        for (int i = 0; i < count; i++) {
            x[i] = turned_x[count - 1 - i] = 1024.0 * pow(1.5, i % 30) + i;
            seconds[i] = turned_seconds[count - 1 - i] = 7e-6 + x[i] / 12e9;
        }
        assert_int_equal(pc_fit_make(&key, 0, x, seconds, count, &fit, NULL), PC_OK);
        assert_int_equal(pc_fit_make(&key, 0, turned_x, turned_seconds, count, &turned, NULL), PC_OK);
        assert_int_equal(fit.parameter_count, 3);
        assert_true(fabs(fit.parameter[0] / 7e-6 - 1.0) < 1e-5 && fabs(fit.parameter[1] / 12e9 - 1.0) < 1e-5);
        assert_memory_equal(fit.parameter, turned.parameter, sizeof fit.parameter);
        assert_memory_equal(fit.covariance, turned.covariance, sizeof fit.covariance);
        assert_memory_equal(fit.residual, turned.residual, (size_t)count * sizeof(double));
        pc_fit_free(&fit);
        pc_fit_free(&turned);
    }
}

/* Half of a measured range below it and three times beyond it. */
static void distances(void **state) {
    (void)state;
    pc_fit fit = {.dimensions = 4, .least = {1, 10, 100, 64}, .most = {1, 1000, 1000, 64}};
    const double inside[] = {1, 500, 1000, 64}, below[] = {1, 5, 999, 64}, beyond[] = {2, 10, 3000, 64};
    int dimension;
    assert_true(pc_fit_distance(&fit, inside, &dimension) == 1.0 && dimension == 0);
    assert_true(pc_fit_distance(&fit, below, &dimension) == 2.0 && dimension == 1);
    assert_true(pc_fit_distance(&fit, beyond, &dimension) == 3.0 && dimension == 2);
}

/* Any positive numbers, sensible or not: a fit whose answers are sound, or a refusal. */
static void any_points(void **state) {
    (void)state;
    test_random random = {6};
    for (long i = test_cases(2, 20); i > 0; i--) {
        double x[PC_FIT_DIMENSIONS * 40], seconds[40], low, high;
        pc_fit_key key = {.form = (pc_fit_form)test_between(&random, 0, PC_FIT_FORMS - 1), .subject = "gemm_forward"};
        int count = (int)test_between(&random, 0, 40), dimensions;
        pc_fit_form_dimensions(key.form, &dimensions);
        double spread = pow(10.0, (double)test_between(&random, 0, 9));
        bool is_flat = test_between(&random, 0, 3) == 0;
        for (int j = 0; j < count * dimensions; j++) x[j] = ceil(between(&random, 1.0, spread));
        for (int j = 0; j < count; j++) seconds[j] = is_flat ? 1e-5 : between(&random, 1e-9, 1e-9 * spread);
        pc_fit fit;
        pc_error error;
        pc_code code = pc_fit_make(&key, 132, x, seconds, count, &fit, &error);
        assert_true(code == PC_OK || code == PC_ERROR_INPUT);
        if (code) continue;
        for (int j = 0; j < 20; j++) {
            double at[PC_FIT_DIMENSIONS];
            for (int d = 0; d < PC_FIT_DIMENSIONS; d++) at[d] = ceil(between(&random, 1.0, 10.0 * spread));
            pc_estimate estimate = pc_fit_predict(&fit, at);
            pc_fit_interval(&fit, at, 0.95, &low, &high);
            assert_true(estimate.seconds > 0.0 && isfinite(estimate.seconds) && estimate.standard_error >= 0.0);
            assert_true(low <= estimate.seconds && estimate.seconds <= high);
        }
        for (int a = 0; a < fit.parameter_count * fit.parameter_count; a++) assert_true(isfinite(fit.covariance[a]));
        pc_fit_free(&fit);
    }
}

/* Of an interval at 95% a standard error is half of a half, near enough, and a wider one holds a narrower. */
static void intervals(void **state) {
    (void)state;
    double x[50], seconds[50], low, high, low99, high99;
    test_random random = {9};
    pc_fit_key key = {.form = PC_FIT_MEMORY, .subject = "adam", .dtype = "fp32"};
    pc_fit fit;
    for (int i = 0; i < 50; i++) {
        draw_bytes(&random, &x[i]);
        seconds[i] = 5e-6 + x[i] / 1e12 * exp(0.02 * normal(&random));
    }
    assert_int_equal(pc_fit_make(&key, 0, x, seconds, 50, &fit, NULL), PC_OK);
    pc_estimate at = pc_fit_predict(&fit, x);
    pc_fit_interval(&fit, x, 0.95, &low, &high);
    pc_fit_interval(&fit, x, 0.99, &low99, &high99);
    assert_true(low99 < low && low < at.seconds && at.seconds < high && high < high99);
    assert_true(fabs(log(high / low) / 4.0 / (at.standard_error / at.seconds) - 1.0) < 0.05);
    pc_fit_free(&fit);
}

static void names(void **state) {
    (void)state;
    const pc_fit_key keys[] = {
        {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "bf16", .cache = PC_CACHE_COLD},
        {.form = PC_FIT_ATTENTION, .subject = "attention_backward", .dtype = "bf16", .is_causal = true, .cache = 1},
        {.form = PC_FIT_TRANSFER, .subject = "all_reduce", .ranks = 8, .nodes = 1, .link = "nvlink"},
        {.form = PC_FIT_TRANSFER, .subject = "all_to_all", .ranks = 16, .nodes = 2, .link = "network"}};
    const char *const right[] = {"gemm_forward bf16 cold", "attention_backward bf16 causal hot",
                                 "all_reduce, 8 ranks, nvlink", "all_to_all, 16 ranks, 2 nodes, network"};
    char name[128], small[8];
    for (int i = 0; i < 4; i++) {
        pc_fit_name(&keys[i], name, sizeof name);
        assert_string_equal(name, right[i]);
    }
    pc_fit_name(&keys[0], small, sizeof small);
    assert_string_equal(small, "gemm_fo");
}

/* ---- a whole profile ---- */

static void add_kernels(pc_profile *profile, const char *family, pc_operation_kind kind, pc_cache_state cache,
                        int count) {
    for (int i = 0; i < count; i++) {
        pc_kernel_measurement x = {.kind = kind, .cache = cache, .dtype = "bf16", .batch = 1, .n = 1024, .k = 1024};
        snprintf(x.kernel, sizeof x.kernel, "%s", family);
        x.m = 128 * (i + 1);
        x.bytes = 1000000 * (i + 1);
        x.seconds.median = 5e-6 + 1e-6 * (i + 1);
        assert_int_equal(pc_profile_add_kernel(profile, &x, NULL, NULL), PC_OK);
    }
}

static void add_transfers(pc_profile *profile, const char *collective, int ranks, int count) {
    for (int i = 0; i < count; i++) {
        pc_transfer_measurement x = {.ranks = ranks, .nodes = 1, .link = "nvlink", .size_bytes = 1000.0 * (i + 1)};
        snprintf(x.collective, sizeof x.collective, "%s", collective);
        x.seconds.median = 5e-6 + 1e-6 * (i + 1);
        assert_int_equal(pc_profile_add_transfer(profile, &x, NULL, NULL), PC_OK);
    }
}

/* Families, cache states, ranks apart; four points of a copy, a time of nothing, three transfers and a wrong one are
 * left out; sentinels are not for fits. */
static void a_profile_is_fitted(void **state) {
    (void)state;
    pc_profile p = {.device.processors = 108};
    int64_t left_out = -1;
    add_kernels(&p, "gemm_forward", PC_OPERATION_GEMM, PC_CACHE_COLD, 12);
    add_kernels(&p, "copy", PC_OPERATION_ELEMENTWISE, PC_CACHE_COLD, 4);
    add_kernels(&p, "layer_norm_forward", PC_OPERATION_NORM, PC_CACHE_HOT, 6);
    add_kernels(&p, "layer_norm_forward", PC_OPERATION_NORM, PC_CACHE_COLD, 7);
    add_kernels(&p, "sentinel_copy", PC_OPERATION_ELEMENTWISE, PC_CACHE_COLD, 9);
    add_transfers(&p, "all_reduce", 8, 9);
    add_transfers(&p, "all_reduce", 4, 3);
    p.kernel[12].seconds.median = 0.0;
    p.transfer[2].wrong = 1;
    assert_int_equal(pc_profile_fit(&p, &left_out, NULL), PC_OK);
    assert_int_equal(left_out, 4 + 3 + 1);
    assert_int_equal(p.fit[3].count, 8);
    assert_int_equal(p.fit_count, 4);
    assert_int_equal(p.fit[0].key.form, PC_FIT_GEMM);
    assert_int_equal(p.fit[0].count, 12);
    assert_int_equal(p.fit[1].key.cache, PC_CACHE_HOT);
    assert_int_equal(p.fit[2].count, 7);
    assert_int_equal(p.fit[3].key.ranks, 8);
    assert_int_equal(pc_profile_fit(&p, &left_out, NULL), PC_OK); /* in place of those that are there */
    assert_int_equal(p.fit_count, 4);
    pc_error error;
    p.device.processors = 0;
    assert_int_equal(pc_profile_fit(&p, &left_out, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "processors"));
    assert_int_equal(p.fit_count, 4);
    pc_profile_free(&p);
}

static void without_memory(void **state) {
    (void)state;
    pc_profile p = {.device.processors = 108};
    bool is_done = false;
    add_kernels(&p, "gemm_forward", PC_OPERATION_GEMM, PC_CACHE_COLD, 12);
    add_transfers(&p, "all_reduce", 8, 9);
    for (long after = 0; !is_done; after += 1 + after / 8) {
        int64_t left_out;
        pc_alloc_fail_after(after);
        pc_code code = pc_profile_fit(&p, &left_out, NULL);
        pc_alloc_fail_after(-1);
        is_done = code == PC_OK;
        if (!is_done) assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_int_equal(p.fit_count, is_done ? 2 : 0);
    }
    pc_profile_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_is_recovered),
        cmocka_unit_test(three_lines_are_recovered),
        cmocka_unit_test(a_corner_is_recovered),
        cmocka_unit_test(gemm_is_recovered),
        cmocka_unit_test(attention_is_recovered),
        cmocka_unit_test(a_surface_follows_what_is_left),
        cmocka_unit_test(teeth_are_followed),
        cmocka_unit_test(too_few),
        cmocka_unit_test(exact_points),
        cmocka_unit_test(any_points),
        cmocka_unit_test(distances),
        cmocka_unit_test(intervals),
        cmocka_unit_test(names),
        cmocka_unit_test(a_profile_is_fitted),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
