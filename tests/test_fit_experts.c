/* Fits of experts: grouped products and whole layers; how full the fullest rank is; what a profile answers. */
#include "tests/support.h"

#include "calib/fit/fit_groups.h"
#include "calib/profile/profile_experts.h"
#include "calib/profile/profile_private.h"
#include "models/workload/expert_load.h"

#include <math.h>

static void check_near(double value, double expected, double part) {
    if (!(fabs(value / expected - 1.0) <= part)) fail_msg("%.9g; expected %.9g within %g", value, expected, part);
}

static double normal(test_random *random) {
    double u = test_draw_unit(random), v = test_draw_unit(random);
    return sqrt(-2.0 * log(u > 0.0 ? u : 0x1p-53)) * cos(6.283185307179586 * v);
}

/* ---- the fullest rank ---- */

static double load(double experts, double ranks, double topk, double tokens, double exponent) {
    pc_expert_spread spread = {experts, ranks, topk, tokens, exponent, 0};
    return pc_expert_load(&spread);
}

/* One rank has everything; of balanced ones none is fuller; and where every token goes to every expert. */
static void balanced_loads_are_one(void **state) {
    (void)state;
    assert_true(load(64.0, 8.0, 4.0, 4096.0, 0.0) == 1.0);
    assert_true(load(64.0, 1.0, 4.0, 4096.0, 1.2) == 1.0);
    assert_true(load(64.0, 8.0, 64.0, 4096.0, 1.2) == 1.0);
    assert_true(load(64.0, 8.0, 4.0, 1.0, 1.2) == 1.0);
}

/* A density without slope between 1 and very many is even between 0 and its greatest value. The mean of the greatest of
 * n such numbers is n/(n+1) of that, and theirs a half: 2n/(n+1) of the mean. */
static void even_popularity_has_its_order_statistic(void **state) {
    (void)state;
    for (double n = 2.0; n <= 64.0; n *= 2.0) check_near(load(n, n, 1.0, 1e9, 1e-9), 2.0 * n / (n + 1.0), 2e-3);
}

/* 8 ranks of an expert each, 4 a token: at most experts / topk = 2 times the mean; of one a token it would be 4. */
static void no_rank_has_more_than_all_tokens(void **state) {
    (void)state;
    assert_true(load(8.0, 8.0, 4.0, 4096.0, 1.2) == 2.0);
    assert_true(load(8.0, 8.0, 1.0, 4096.0, 1.2) > 4.0);
}

/* The mean over `draws` of what the sum of the fullest rank is over the mean of all, as a table's author would draw
 * it. */
static double drawn_load(test_random *random, int experts, int ranks, double tokens, double exponent, int draws) {
    double mean = 0.0, rise = 1.0 - exponent;
    for (int draw = 0; draw < draws; draw++) {
        double all = 0.0, most = 0.0, sum = 0.0;
        for (int e = 0; e < experts; e++) {
            double u = test_draw_unit(random), popularity = pow(1.0 + u * (pow(tokens, rise) - 1.0), 1.0 / rise);
            sum = e % (experts / ranks) == 0 ? popularity : sum + popularity;
            all += popularity;
            most = fmax(most, sum);
        }
        mean += most * ranks / all / draws;
    }
    return mean;
}

static void loads_are_those_of_draws(void **state) {
    (void)state;
    static const struct {
        int experts, ranks;
        double tokens, exponent;
    } cases[] = {{128, 8, 2048, 1.01}, {128, 128, 2048, 1.01}, {256, 16, 16384, 1.2},
                 {16, 4, 4096, 1.2},   {512, 32, 8192, 1.01},  {160, 2, 4096, 1.2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_random random = {i};
        double drawn = drawn_load(&random, cases[i].experts, cases[i].ranks, cases[i].tokens, cases[i].exponent, 400);
        check_near(load(cases[i].experts, cases[i].ranks, 1.0, cases[i].tokens, cases[i].exponent), drawn, 0.12);
    }
}

static void steeper_laws_and_more_ranks_are_fuller(void **state) {
    (void)state;
    double before = 1.0;
    for (double ranks = 2.0; ranks <= 128.0; ranks *= 2.0) {
        double now = load(128.0, ranks, 4.0, 4096.0, 1.1);
        assert_true(now > before && now < ranks);
        assert_true(load(128.0, ranks, 4.0, 4096.0, 1.3) > now);
        before = now;
    }
}

/* ---- seconds of groups ---- */

/* On 2 processors a group of 64 x 64 outputs and k = 100 is one tile: three groups are two waves. A tile and wave takes
 * 2 * 64 * 64 * (100 + 28) FLOPs at half the rate of all. With a rate of 2 * 64 * 64 * 128 FLOP/s and bytes that take 3
 * s beside the 4 s, the root of the squares is 5. */
static void groups_take_waves_and_bytes(void **state) {
    (void)state;
    const double parameter[] = {2.0 * 64 * 64 * 128, 28.0, 10.0};
    pc_groups shape = {3.0, 64.0, 64.0, 100.0, 2.0, 30.0};
    check_near(pc_groups_seconds(&shape, parameter, NULL), 5.0, 1e-12);
    shape.bytes = 0.0;
    check_near(pc_groups_seconds(&shape, parameter, NULL), 4.0, 1e-12);
    shape.groups = 2.0;
    check_near(pc_groups_seconds(&shape, parameter, NULL), 2.0, 1e-12);
    shape.m = 65.0; /* a second tile of each */
    check_near(pc_groups_seconds(&shape, parameter, NULL), 4.0, 1e-12);
}

/* Derivatives of a form beside differences, at points of all its regimes. */
static void check_gradient(pc_fit *fit, const double *x) {
    double gradient[PC_FIT_PARAMETERS] = {0}, scatter = 0.0;
    pc_form_of(fit->key.form)->seconds(fit, x, gradient, &scatter);
    for (int i = 0; i < fit->parameter_count; i++) {
        double at = fit->parameter[i], step = 1e-6 * at;
        fit->parameter[i] = at + step;
        double high = pc_form_of(fit->key.form)->seconds(fit, x, NULL, &scatter);
        fit->parameter[i] = at - step;
        double low = pc_form_of(fit->key.form)->seconds(fit, x, NULL, &scatter);
        fit->parameter[i] = at;
        double expected = (high - low) / (2.0 * step), whole = fabs(high) / at;
        if (fabs(gradient[i] - expected) > 1e-5 * whole)
            fail_msg("derivative %d of form %d: %g; expected %g", i, (int)fit->key.form, gradient[i], expected);
    }
}

static pc_fit grouped_truth(const char *subject, const char *out) {
    pc_fit fit = {.key = {.form = PC_FIT_GROUPED_GEMM, .dtype = "bf16"},
                  .processors = 148,
                  .dimensions = 4,
                  .parameter_count = 4,
                  .parameter = {1.2e15, 200.0, 4e12, 9e-6},
                  .residual_deviation = 0.03};
    snprintf(fit.key.subject, sizeof fit.key.subject, "%s", subject);
    snprintf(fit.key.out_dtype, sizeof fit.key.out_dtype, "%s", out);
    return fit;
}

static pc_fit layer_truth(const char *variant) {
    pc_fit fit = {.key = {.form = PC_FIT_MOE, .subject = "moe_layer", .dtype = "bf16"},
                  .processors = 132,
                  .dimensions = 5,
                  .parameter_count = 5,
                  .parameter = {7e14, 300.0, 2.8e12, 4e-5, 1.5e12},
                  .residual_deviation = 0.03};
    snprintf(fit.key.variant, sizeof fit.key.variant, "%s", variant);
    return fit;
}

static void derivatives_are_those_of_differences(void **state) {
    (void)state;
    const double grouped[][4] = {{8, 2048, 4096, 7168}, {64, 16, 4096, 7168}, {200, 8, 512, 256}};
    const double layers[][5] = {{2048, 8, 4096, 1536, 1}, {3, 64, 4096, 1536, 2}, {100, 1, 2048, 64, 1}};
    pc_fit product = grouped_truth("grouped_gemm_forward", ""), layer = layer_truth("flow");
    for (int i = 0; i < 3; i++) {
        check_gradient(&product, grouped[i]);
        check_gradient(&layer, layers[i]);
    }
}

/* 160 groups of hardly any work: the host's 9 us each. A gradient of weights reads and writes its sums: with nothing
 * else to move (k = 1) and no tiles to speak of, 8 bytes an output in fp32 take twice the time of 4 in 16 bits. */
static void hosts_and_sums_count(void **state) {
    (void)state;
    pc_fit forward = grouped_truth("grouped_gemm_forward", "");
    const double small[] = {160, 8, 64, 64}, sums[] = {8, 8192, 8192, 1};
    check_near(pc_fit_predict(&forward, small).seconds, 160 * 9e-6, 1e-12);
    pc_fit in_32 = grouped_truth("grouped_gemm_weight_gradient", "fp32");
    pc_fit in_16 = grouped_truth("grouped_gemm_weight_gradient", "bf16");
    in_32.parameter[0] = in_16.parameter[0] = 1e21;
    double outputs = 8.0 * 8192 * 8192, operands = 8.0 * 2.0 * 16384;
    check_near(pc_fit_predict(&in_32, sums).seconds, (8.0 * outputs + operands) / 4e12, 1e-6);
    check_near(pc_fit_predict(&in_16, sums).seconds, (4.0 * outputs + operands) / 4e12, 1e-6);
}

/* Without work to speak of a layer is its launch; rows are read and written in 16 bits twice each way. An infinitely
 * fast GPU that reads 8 experts' three matrices of 4096 x 1536 in 16 bits, and rows on their way in and out of both. Of
 * a row an expert in the mean, 1 - 1/e of the experts have one. */
static void layers_are_their_parts(void **state) {
    (void)state;
    pc_fit gated = layer_truth("flow"), plain = layer_truth("flow_nongated");
    double rows = 1.0 * 8.0, weights = 8.0 * (1.0 - exp(-1.0)) * 4096 * 1536 * 2.0;
    const double x[] = {1, 8, 4096, 1536, 1};
    gated.parameter[0] = plain.parameter[0] = 1e24;
    double permuted = 4e-5 + rows * 4096 * 8.0 / 1.5e12;
    double up = 2.0 * weights + rows * 2.0 * (4096 + 3072), down = weights + rows * 2.0 * (1536 + 4096);
    check_near(pc_fit_predict(&gated, x).seconds, permuted + (up + down) / 2.8e12, 1e-6);
    up = weights + rows * 2.0 * (4096 + 1536);
    check_near(pc_fit_predict(&plain, x).seconds, permuted + (up + down) / 2.8e12, 1e-6);
}

/* ---- what was put in is found again ---- */

enum { POINTS = 400 };

static void draw_grouped(test_random *random, double *x) {
    static const double sizes[] = {1024, 1536, 2048, 3072, 4096, 5120, 7168};
    x[0] = (double)test_between(random, 1, 160);
    x[1] = exp(log(32.0) + test_draw_unit(random) * log(256.0));
    x[2] = sizes[test_between(random, 0, 6)];
    x[3] = sizes[test_between(random, 0, 6)];
}

static void draw_layer(test_random *random, double *x) {
    x[0] = exp(log(16.0) + test_draw_unit(random) * log(1024.0));
    x[1] = (double)(1 << test_between(random, 0, 8));
    x[2] = 1024.0 * (double)test_between(random, 2, 8);
    x[3] = 128.0 * (double)(1 << test_between(random, 0, 6));
    x[4] = 1.0 + 0.25 * (double)test_between(random, 0, 8);
}

static void check_found(const pc_fit *truth, void (*draw)(test_random *random, double *x), double within) {
    for (uint64_t seed = 1; seed <= (uint64_t)test_part(2, 8); seed++) {
        test_random random = {seed};
        double x[POINTS * 5], seconds[POINTS];
        for (int i = 0; i < POINTS; i++) {
            draw(&random, x + i * truth->dimensions);
            seconds[i] = pc_fit_predict(truth, x + i * truth->dimensions).seconds * exp(0.03 * normal(&random));
            if (test_draw_unit(&random) < 0.02) seconds[i] *= 5.0; /* an autotuner's failures */
        }
        pc_fit fit;
        pc_error error = {0};
        if (pc_fit_make(&truth->key, truth->processors, x, seconds, POINTS, &fit, &error))
            fail_msg("%s", error.message);
        assert_int_equal(fit.parameter_count, truth->parameter_count);
        for (int i = 0; i < fit.parameter_count; i++)
            if (strcmp(fit.parameter_name[i], "ramp") != 0)
                check_near(fit.parameter[i], truth->parameter[i], within);
            else
                assert_true(fabs(fit.parameter[i] - truth->parameter[i]) < 4.0 * pc_fit_standard_error(&fit, i));
        assert_true(fit.cv_median < 0.03 && fit.cv_coverage > 0.9);
        assert_true(pc_fit_foretells(&fit) && pc_fit_has_parameters(&fit));
        pc_fit_free(&fit);
    }
}

static void grouped_products_are_found(void **state) {
    (void)state;
    pc_fit forward = grouped_truth("grouped_gemm_forward", "");
    pc_fit weights = grouped_truth("grouped_gemm_weight_gradient", "fp32");
    check_found(&forward, draw_grouped, 0.06);
    check_found(&weights, draw_grouped, 0.06);
}

static void layers_are_found(void **state) {
    (void)state;
    pc_fit layer = layer_truth("flow");
    check_found(&layer, draw_layer, 0.12);
}

/* ---- what is refused ---- */

static void too_few_shapes_are_refused(void **state) {
    (void)state;
    pc_fit truth = layer_truth("flow"), fit;
    test_random random = {5};
    double x[9 * 5], seconds[9];
    pc_error error = {0};
    for (int i = 0; i < 9; i++) {
        draw_layer(&random, x + i * 5);
        seconds[i] = pc_fit_predict(&truth, x + i * 5).seconds;
    }
    assert_int_equal(pc_fit_make(&truth.key, 132, x, seconds, 9, &fit, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "9 shapes; expected at least 10");
    pc_error other = {0};
    assert_int_equal(pc_fit_make(&truth.key, 0, x, seconds, 9, &fit, &other), PC_ERROR_INPUT);
}

/* Any set of points: refused, or times at its own shapes that are finite and no thousand times what was measured. */
static void random_points_are_never_absurd(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(30, 300); seed++) {
        test_random random = {seed * 7919};
        pc_fit truth = seed % 2 ? layer_truth("flow") : grouped_truth("grouped_gemm_forward", ""), fit;
        double x[64 * 5], seconds[64], least = HUGE_VAL, most = 0.0;
        int count = (int)test_between(&random, 8, 64), d = truth.dimensions;
        double spread = 12.0 * test_draw_unit(&random);
        pc_error error = {0};
        for (int i = 0; i < count; i++) {
            for (int j = 0; j < d; j++) x[i * d + j] = ceil(exp(10.0 * test_draw_unit(&random)));
            seconds[i] = exp(-8.0 + spread * (test_draw_unit(&random) - 0.5));
            least = fmin(least, seconds[i]), most = fmax(most, seconds[i]);
        }
        if (pc_fit_make(&truth.key, truth.processors, x, seconds, count, &fit, &error)) continue;
        for (int i = 0; i < count; i++) {
            pc_estimate told = pc_fit_predict(&fit, x + i * d);
            if (!(told.seconds > 1e-3 * least && told.seconds < 1e3 * most && told.standard_error >= 0.0))
                fail_msg("seed %d: %g s; measured were %g to %g", (int)seed, told.seconds, least, most);
        }
        pc_fit_free(&fit);
    }
}

/* ---- measurements ---- */

static void measurements_become_points(void **state) {
    (void)state;
    pc_fit_key key = {0};
    double x[PC_FIT_DIMENSIONS];
    pc_kernel_measurement layer = {.kernel = "moe_layer",
                                   .variant = "flow_cutlass balanced",
                                   .m = 4096,
                                   .n = 2048,
                                   .k = 7168,
                                   .topk = 8,
                                   .experts = 256,
                                   .moe_tp = 2,
                                   .moe_ep = 32};
    assert_true(pc_experts_point(&layer, &key, x));
    const double expected[] = {4096.0 * 8 / 256, 8, 7168, 1024, 1, 1, 1, 1};
    assert_memory_equal(x, expected, sizeof expected);
    assert_int_equal(key.form, PC_FIT_MOE);
    assert_string_equal(key.variant, "flow_cutlass");
    snprintf(layer.variant, sizeof layer.variant, "flow_cutlass power_law_1.2");
    assert_true(pc_experts_point(&layer, &key, x));
    double skew = load(256, 32, 8, 4096, 1.2);
    check_near(x[4], skew, 1e-12);
    check_near(x[0], 128.0 * skew, 1e-12);
    assert_string_equal(key.variant, "flow_cutlass");
    pc_kernel_measurement other = {.kernel = "gemm_forward"};
    assert_false(pc_experts_point(&other, &key, x));
}

/* Groups keep the layer's m, n and k whatever the direction; points are those of the product. */
static void groups_are_those_of_the_product(void **state) {
    (void)state;
    static const struct {
        const char *kernel;
        pc_gemm_role role;
        double m, n, k;
    } cases[] = {{"grouped_gemm_forward", PC_GEMM_FORWARD, 154, 3072, 5120},
                 {"grouped_gemm_input_gradient", PC_GEMM_INPUT_GRADIENT, 154, 5120, 3072},
                 {"grouped_gemm_weight_gradient", PC_GEMM_WEIGHT_GRADIENT, 3072, 5120, 154}};
    for (int i = 0; i < 3; i++) {
        pc_kernel_measurement row = {
            .role = cases[i].role, .batch = 160, .m = 154, .n = 3072, .k = 5120, .out_dtype = "fp32"};
        pc_fit_key key = {0};
        double x[PC_FIT_DIMENSIONS];
        snprintf(row.kernel, sizeof row.kernel, "%s", cases[i].kernel);
        assert_true(pc_experts_point(&row, &key, x));
        assert_int_equal(key.form, PC_FIT_GROUPED_GEMM);
        const double expected[] = {160, cases[i].m, cases[i].n, cases[i].k};
        assert_memory_equal(x, expected, sizeof expected);
        assert_string_equal(key.out_dtype, i == 2 ? "fp32" : "");
    }
}

/* ---- answers ---- */

static pc_fit plain_truth(const char *subject) {
    pc_fit fit = {.key = {.form = PC_FIT_GEMM, .dtype = "bf16"},
                  .processors = 1,
                  .dimensions = 4,
                  .parameter_count = 4,
                  .parameter = {1e15, 0.0, 1e18, 0.0},
                  .count = 100,
                  .residual_deviation = 0.05};
    snprintf(fit.key.subject, sizeof fit.key.subject, "%s", subject);
    return fit;
}

static void measured_groups_answer(void **state) {
    (void)state;
    pc_fit fit[] = {grouped_truth("grouped_gemm_weight_gradient", "bf16"),
                    grouped_truth("grouped_gemm_forward", ""),
                    grouped_truth("grouped_gemm_weight_gradient", "fp32"),
                    layer_truth("flow_nongated"),
                    layer_truth("flow"),
                    plain_truth("gemm_forward")};
    pc_profile profile = {.fit = fit, .fit_count = 6};
    pc_experts_fits fits;
    pc_experts_choose(&profile, &fits);
    assert_ptr_equal(fits.grouped[PC_PRODUCT_BF16][PC_GEMM_FORWARD], &fit[1]);
    assert_ptr_equal(fits.grouped[PC_PRODUCT_BF16][PC_GEMM_WEIGHT_GRADIENT], &fit[2]);
    assert_ptr_equal(fits.grouped_sums_16[PC_PRODUCT_BF16], &fit[0]);
    assert_ptr_equal(fits.layer[PC_PRODUCT_BF16][0], &fit[3]);
    assert_ptr_equal(fits.layer[PC_PRODUCT_BF16][1], &fit[4]);
    assert_ptr_equal(fits.plain[PC_PRODUCT_BF16][0], &fit[5]);
    pc_grouped_product product = {PC_GEMM_WEIGHT_GRADIENT, PC_PRODUCT_BF16, 8, 4096, 7168, 512, false};
    const double x[] = {8, 4096, 7168, 512};
    pc_estimate estimate;
    assert_true(pc_experts_product(&fits, &product, 8e12, &estimate));
    assert_true(estimate.seconds == pc_fit_predict(&fit[2], x).seconds);
    product.has_sums_16 = true;
    assert_true(pc_experts_product(&fits, &product, 8e12, &estimate));
    assert_true(estimate.seconds == pc_fit_predict(&fit[0], x).seconds);
    pc_experts_layer layer = {PC_PRODUCT_BF16, 4096, 7168, 2048, 8, 256, 2, 32, 1.5, true};
    const double at[] = {1.5 * 128, 8, 7168, 1024, 1.5};
    assert_true(pc_experts_forward(&fits, &layer, 8e12, &estimate));
    assert_true(estimate.seconds == pc_fit_predict(&fit[4], at).seconds);
}

/* Of our own calibrations, which have both: the cold one, wherever it stands. */
static void cold_groups_answer(void **state) {
    (void)state;
    for (int cold = 0; cold < 2; cold++) {
        pc_fit fit[] = {grouped_truth("grouped_gemm_forward", ""), grouped_truth("grouped_gemm_forward", "")};
        fit[1 - cold].key.cache = PC_CACHE_HOT;
        pc_profile profile = {.fit = fit, .fit_count = 2};
        pc_experts_fits fits;
        pc_experts_choose(&profile, &fits);
        assert_ptr_equal(fits.grouped[PC_PRODUCT_BF16][PC_GEMM_FORWARD], &fit[cold]);
    }
}

/* On a GPU of one processor without ramp, launch and memory a plain product of whole tiles takes its FLOPs over 1e15.
 * Here these are 8 * 2 * 512 * 4096 * 7168. A loop takes 1.03 of them and the bytes 2.05 of theirs: the root of both
 * squares. Few rows are the host's 9.2 us a group. */
static void others_answer_by_the_rule(void **state) {
    (void)state;
    pc_fit fit[] = {plain_truth("gemm_forward")};
    pc_profile profile = {.fit = fit, .fit_count = 1};
    pc_experts_fits fits;
    pc_estimate estimate;
    pc_experts_choose(&profile, &fits);
    pc_grouped_product product = {PC_GEMM_FORWARD, PC_PRODUCT_BF16, 8, 512, 4096, 7168, false};
    double flops = 2.0 * 8 * 512 * 4096 * 7168, bytes = 8 * 2.0 * (7168.0 * (512 + 4096) + 512.0 * 4096);
    assert_true(pc_experts_product(&fits, &product, 1e12, &estimate));
    double expected = hypot(1.03 * flops / 1e15, 2.05 * bytes / 1e12);
    check_near(estimate.seconds, expected, 1e-6);
    assert_true(estimate.standard_error > 0.1 * expected && estimate.standard_error < 0.2 * expected);
    pc_grouped_product small = {PC_GEMM_FORWARD, PC_PRODUCT_BF16, 64, 1, 128, 128, false};
    assert_true(pc_experts_product(&fits, &small, 1e12, &estimate));
    check_near(estimate.seconds, 64 * 9.2e-6, 1e-12);
    product.role = PC_GEMM_INPUT_GRADIENT; /* of a profile with forward products alone */
    assert_true(pc_experts_product(&fits, &product, 1e12, &estimate));
    check_near(estimate.seconds, hypot(1.03 * flops / 1e15, 2.48 * bytes / 1e12), 1e-6);
}

/* A layer without a fit of its own: its two products, and what moves beside them. */
static void layers_answer_by_their_products(void **state) {
    (void)state;
    pc_fit fit[] = {grouped_truth("grouped_gemm_forward", "")};
    pc_profile profile = {.fit = fit, .fit_count = 1};
    pc_experts_fits fits;
    pc_estimate estimate;
    pc_experts_choose(&profile, &fits);
    pc_experts_layer layer = {PC_PRODUCT_BF16, 8192, 4096, 2048, 4, 64, 1, 8, 1.0, true};
    assert_true(pc_experts_forward(&fits, &layer, 8e12, &estimate));
    const double up[] = {8, 512, 4096, 4096}, down[] = {8, 512, 4096, 2048};
    double moved = 2.0 * 8 * 512 * (4.0 * 4096 + 3.0 * 2048) / 8e12;
    double products = pc_fit_predict(fit, up).seconds + pc_fit_predict(fit, down).seconds;
    check_near(estimate.seconds, products + moved, 1e-12);
    layer.format = PC_PRODUCT_NVFP4;
    assert_false(pc_experts_forward(&fits, &layer, 8e12, &estimate));
}

/* ---- judged by what another profile measured ---- */

/* Three rows take 1.1 times what the fit says: each is foretold 1 - 1/1.1 too short, outside of intervals of 3%. A row
 * of another kernel, and one without groups, do not count. */
static void fits_are_judged_by_others_rows(void **state) {
    (void)state;
    pc_fit truth = grouped_truth("grouped_gemm_forward", "");
    pc_kernel_measurement rows[5];
    truth.count = 100;
    for (int i = 0; i < 5; i++) {
        rows[i] = (pc_kernel_measurement){.dtype = "bf16", .batch = 8, .m = 100 * (i + 1), .n = 4096, .k = 2048};
        const double x[] = {8, 100.0 * (i + 1), 4096, 2048};
        snprintf(rows[i].kernel, sizeof rows[i].kernel, "%s", i < 4 ? truth.key.subject : "gemm_forward");
        rows[i].seconds.median = 1.1 * pc_fit_predict(&truth, x).seconds;
    }
    rows[3].batch = 0;
    pc_profile measured = {.kernel = rows, .kernel_count = 5}, none = {0};
    pc_judged judged;
    pc_error error = {0};
    assert_int_equal(pc_profile_judge(&truth, &measured, &judged, &error), PC_OK);
    assert_int_equal(judged.count, 3);
    check_near(judged.median, 1.0 - 1.0 / 1.1, 1e-9);
    check_near(judged.p95, 1.0 - 1.0 / 1.1, 1e-9);
    assert_true(judged.held == 0.0);
    truth.residual_deviation = 0.1;
    assert_int_equal(pc_profile_judge(&truth, &measured, &judged, &error), PC_OK);
    assert_true(judged.held == 1.0);
    assert_int_equal(pc_profile_judge(&truth, &none, &judged, &error), PC_OK);
    assert_true(judged.count == 0 && judged.median == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_loads_are_one),
        cmocka_unit_test(even_popularity_has_its_order_statistic),
        cmocka_unit_test(no_rank_has_more_than_all_tokens),
        cmocka_unit_test(loads_are_those_of_draws),
        cmocka_unit_test(steeper_laws_and_more_ranks_are_fuller),
        cmocka_unit_test(groups_take_waves_and_bytes),
        cmocka_unit_test(derivatives_are_those_of_differences),
        cmocka_unit_test(hosts_and_sums_count),
        cmocka_unit_test(layers_are_their_parts),
        cmocka_unit_test(grouped_products_are_found),
        cmocka_unit_test(layers_are_found),
        cmocka_unit_test(too_few_shapes_are_refused),
        cmocka_unit_test(random_points_are_never_absurd),
        cmocka_unit_test(measurements_become_points),
        cmocka_unit_test(groups_are_those_of_the_product),
        cmocka_unit_test(measured_groups_answer),
        cmocka_unit_test(cold_groups_answer),
        cmocka_unit_test(others_answer_by_the_rule),
        cmocka_unit_test(layers_answer_by_their_products),
        cmocka_unit_test(fits_are_judged_by_others_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
