/* Pictures of rates by size: which panels and lines there are, what a rate is of, and along which way a line goes. */
#include "results/figures/rates_private.h"
#include "tests/support.h"

#include <math.h>

static void check_near(double found, double right) {
    if (!(fabs(found - right) <= 1e-12 * fabs(right))) fail_msg("%.17g; expected %.17g", found, right);
}

/* ---- what a rate is of ---- */

static void work_is_counted(void **state) {
    (void)state;
    pc_fit fit = {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward"}};
    check_near(pc_rates_work(&fit, (const double[]){3, 5, 7, 11}), 2.0 * 3 * 5 * 7 * 11);
    fit.key = (pc_fit_key){.form = PC_FIT_GROUPED_GEMM, .subject = "grouped_gemm_forward"};
    check_near(pc_rates_work(&fit, (const double[]){8, 5, 7, 11}), 2.0 * 8 * 5 * 7 * 11);
    fit.key = (pc_fit_key){.form = PC_FIT_MEMORY, .subject = "copy"};
    check_near(pc_rates_work(&fit, (const double[]){4096}), 4096.0);
    fit.key = (pc_fit_key){.form = PC_FIT_LAW, .subject = "all_reduce"};
    check_near(pc_rates_work(&fit, (const double[]){4096, 8}), 4096.0);
}

/* Half of a causal square, and of 1024 keys a window's 256 less the first queries' triangle: 7/32. */
static void a_mask_is_no_work(void **state) {
    (void)state;
    pc_fit fit = {.key = {.form = PC_FIT_ATTENTION, .subject = "attention_forward"}};
    const double square[] = {2, 1024, 1024, 64}, whole = 4.0 * 2 * 1024 * 1024 * 64;
    check_near(pc_rates_work(&fit, square), whole);
    fit.key.is_causal = true;
    check_near(pc_rates_work(&fit, square), whole / 2.0);
    fit.key.window = 256;
    check_near(pc_rates_work(&fit, square), whole * 7.0 / 32.0);
    snprintf(fit.key.subject, sizeof fit.key.subject, "attention_backward");
    check_near(pc_rates_work(&fit, square), 2.5 * whole * 7.0 / 32.0);
}

/* ---- along which way ---- */

static void a_line_goes_from_the_least_to_the_most(void **state) {
    (void)state;
    double point[PC_FIT_DIMENSIONS];
    const pc_fit fit = {.key = {.form = PC_FIT_GEMM}, .least = {1, 16, 64, 256}, .most = {1, 1024, 64, 4096}};
    const pc_rates_series series = {.fit = &fit};
    for (int end = 0; end < 2; end++) {
        pc_rates_way(&series, end * (PC_RATES_STEPS - 1), point);
        for (int d = 0; d < 4; d++) check_near(point[d], end ? fit.most[d] : fit.least[d]);
    }
    pc_rates_way(&series, 21, point); /* a third of the way: 16 * 64^(1/3), 256 * 16^(1/3) */
    check_near(point[1], 64.0);
    check_near(point[3], 256.0 * cbrt(16.0));
}

static void what_is_no_size_stands_in_the_middle(void **state) {
    (void)state;
    double first[PC_FIT_DIMENSIONS], last[PC_FIT_DIMENSIONS];
    const pc_fit fit = {.key = {.form = PC_FIT_GROUPED_GEMM}, .least = {4, 16, 64, 64}, .most = {100, 64, 128, 64}};
    const pc_rates_series series = {.fit = &fit};
    pc_rates_way(&series, 0, first);
    pc_rates_way(&series, PC_RATES_STEPS - 1, last);
    check_near(first[0], 20.0); /* groups */
    check_near(last[0], 20.0);
    check_near(first[1], 16.0);
    check_near(last[1], 64.0);
}

/* ---- panels ---- */

static void check_series(const pc_rates *rates, int i, const char *panel, const char *label) {
    assert_string_equal(rates->panel[rates->series[i].panel].title, panel);
    assert_string_equal(rates->series[i].label, label);
}

static void every_operation_has_a_panel(void **state) {
    (void)state;
    const pc_fit fit[] = {
        {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "bf16", .library = "a", .site = "here"}},
        {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "fp8", .library = "a", .site = "here"}},
        {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "fp8", .library = "b", .site = "here"}},
        {.key = {.form = PC_FIT_ATTENTION, .subject = "attention_forward", .dtype = "bf16", .head_dim = 64}},
        {.key = {.form = PC_FIT_TRANSFER, .subject = "all_reduce", .link = "nvlink", .ranks = 8, .nodes = 2}},
        {.key = {.form = PC_FIT_MEMORY, .subject = "copy", .dtype = "bf16", .cache = PC_CACHE_HOT}}};
    pc_rates_fits fits = {.count = sizeof fit / sizeof *fit};
    pc_rates rates;
    for (int i = 0; i < fits.count; i++) fits.fit[i] = &fit[i];
    assert_int_equal(pc_rates_make(&fits, &rates, NULL), PC_OK);
    assert_int_equal(rates.panels, 5);
    assert_int_equal(rates.series_count, 6);
    check_series(&rates, 0, "gemm_forward, a of here", "bf16");
    check_series(&rates, 1, "gemm_forward, a of here", "fp8");
    check_series(&rates, 2, "gemm_forward, b of here", "fp8");
    check_series(&rates, 3, "attention_forward, 64 a head", "bf16, no mask");
    check_series(&rates, 4, "all_reduce", "8 ranks, 2 nodes, nvlink");
    check_series(&rates, 5, "copy", "bf16, hot");
    assert_int_equal(rates.panel[0].series, 2);
    assert_true(rates.panel[3].is_bytes && rates.panel[4].is_bytes && !rates.panel[0].is_bytes);
    assert_false(rates.is_cut);
    pc_rates_free(&rates);
}

/* 2, 4 and 8 of 2 to 8; each with its own points. */
static void a_law_has_a_line_for_each_number_of_ranks(void **state) {
    (void)state;
    const pc_fit fit = {.key = {.form = PC_FIT_LAW, .subject = "all_gather"}, .least = {1, 2}, .most = {1e6, 8}};
    const pc_rates_fits fits = {.fit = {&fit}, .count = 1};
    double point[PC_FIT_DIMENSIONS];
    pc_rates rates;
    assert_int_equal(pc_rates_make(&fits, &rates, NULL), PC_OK);
    assert_int_equal(rates.series_count, 3);
    for (int i = 0; i < 3; i++) {
        char label[32];
        snprintf(label, sizeof label, "%d ranks", 2 << i);
        check_series(&rates, i, "all_gather", label);
        pc_rates_way(&rates.series[i], 0, point);
        check_near(point[1], 2 << i);
        assert_int_equal(pc_rates_is_of(&rates.series[i], (const double[]){1e3, 4}), i == 1);
    }
    pc_rates_free(&rates);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_counted),
        cmocka_unit_test(a_mask_is_no_work),
        cmocka_unit_test(a_line_goes_from_the_least_to_the_most),
        cmocka_unit_test(what_is_no_size_stands_in_the_middle),
        cmocka_unit_test(every_operation_has_a_panel),
        cmocka_unit_test(a_law_has_a_line_for_each_number_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
