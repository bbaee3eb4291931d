/* Fits of published measurements: how well they foretell what they have not seen. The data are not part of the
 * repository: without them the tests are skipped. */
#include "tests/support.h"

#include "calib/fit/fit.h"
#include "calib/import/import.h"
#include "calib/profile/profile.h"
#include "engine/order.h"

#include <math.h>

/* False: it is not there. */
static bool import_shared(const char *name, const pc_import_options *options, pc_profile *profile) {
    const char *root = getenv("PC_SOURCE_ROOT");
    char path[512];
    pc_error error;
    snprintf(path, sizeof path, "%s/../shared/data/calibration/%s", root ? root : ".", name);
    FILE *file = fopen(path, "rb");
    *profile = (pc_profile){0};
    if (!file) {
        print_message("%s is not there\n", path);
        return false;
    }
    fclose(file);
    if (pc_profile_import(profile, path, options, &error)) fail_msg("%s", error.message);
    return true;
}

/* ---- tables as they are ---- */

/* Every row of H100's five tables is taken or left out: 5,925 products, 15,463 calls of attention, 1,459 collectives,
 * 26,316 layers of experts, and 924 times dispatch and combine. */
static void tables_are_read_whole(void **state) {
    (void)state;
    static const char *const names[] = {"gemm", "attention", "collectives", "moe", "deepep"};
    const pc_gpu gpu = {.matrix_flops_per_s = 989.4e12, .matrix_fp8_flops_per_s = 1978.9e12};
    const pc_import_options options = {.gpu = &gpu};
    const char *root = getenv("PC_SOURCE_ROOT"), *paths[5];
    char path[5][512];
    pc_import_report report;
    pc_profile profile = {0};
    pc_error error;
    for (int i = 0; i < 5; i++) {
        snprintf(path[i], sizeof path[i], "%s/../shared/data/operators/h100_sxm/%s.csv", root ? root : ".", names[i]);
        paths[i] = path[i];
    }
    FILE *file = fopen(path[0], "rb");
    if (!file) {
        print_message("%s is not there\n", path[0]);
        skip();
    }
    fclose(file);
    if (pc_profile_import_all(&profile, paths, 5, &options, &report, &error)) fail_msg("%s", error.message);
    int64_t too_fast = report.left_out[PC_IMPORT_TOO_FAST].count, repeated = report.left_out[PC_IMPORT_REPEATED].count;
    assert_int_equal(too_fast, 2); /* attention in bf16 at up to 1.28 times the peak */
    assert_int_equal(report.left_out[PC_IMPORT_NO_TIME].count, 0);
    assert_int_equal(profile.kernel_count + profile.transfer_count + too_fast + repeated,
                     5925 + 15463 + 1459 + 26316 + 2 * 924);
    assert_int_equal(repeated, 5913);
    pc_profile_free(&profile);
}

/* ---- transfers: a random half against the other ---- */

enum { POINTS = 4096 };

typedef struct half {
    int count;
    double x[POINTS], seconds[POINTS];
} half;

typedef struct score {
    double median, p95, coverage;
} score;

/* By size: what was measured out of place and in place at one size stays together. */
static void split(const pc_profile *profile, uint64_t seed, bool with_in_place, half halves[2]) {
    test_random random = {seed};
    int side = 0;
    halves[0].count = halves[1].count = 0;
    for (int64_t i = 0; i < profile->transfer_count; i++) {
        const pc_transfer_measurement *t = &profile->transfer[i];
        if (!t->is_in_place) side = (int)(test_draw(&random) >> 63);
        if (t->is_in_place && !with_in_place) continue;
        half *h = &halves[side];
        h->x[h->count] = t->size_bytes;
        h->seconds[h->count++] = t->seconds.median;
    }
}

static score score_of(const pc_fit *fit, const half *test) {
    static double error[POINTS];
    int held = 0;
    for (int i = 0; i < test->count; i++) {
        double low, high;
        error[i] = fabs(pc_fit_predict(fit, &test->x[i]).seconds / test->seconds[i] - 1.0);
        pc_fit_interval(fit, &test->x[i], 0.95, &low, &high);
        held += test->seconds[i] >= low && test->seconds[i] <= high;
    }
    pc_sort_reals(error, test->count);
    return (score){error[test->count / 2], error[test->count * 95 / 100], (double)held / test->count};
}

/* seconds = alpha + bytes / beta by least squares of relative errors. */
static score score_of_one_line(const half *train, const half *test) {
    double s0 = 0, s1 = 0, s2 = 0, y0 = 0, y1 = 0;
    for (int i = 0; i < train->count; i++) {
        double w = 1.0 / (train->seconds[i] * train->seconds[i]), x = train->x[i];
        s0 += w, s1 += w * x, s2 += w * x * x;
        y0 += w * train->seconds[i], y1 += w * x * train->seconds[i];
    }
    double determinant = s0 * s2 - s1 * s1;
    pc_fit line = {.key.form = PC_FIT_TRANSFER, .parameter_count = 3, .dimensions = 1, .count = train->count};
    line.parameter[0] = (y0 * s2 - y1 * s1) / determinant;
    line.parameter[1] = determinant / (y1 * s0 - y0 * s1);
    return score_of(&line, test);
}

static void check_halves(const pc_profile *profile, bool with_in_place, long halves_count) {
    static half halves[2];
    pc_fit_key key = {.form = PC_FIT_TRANSFER, .subject = "all_reduce", .ranks = 8};
    for (long seed = 0; seed < halves_count; seed++) {
        pc_fit fit;
        pc_error error;
        split(profile, (uint64_t)seed, with_in_place, halves);
        if (pc_fit_make(&key, 0, halves[0].x, halves[0].seconds, halves[0].count, &fit, &error))
            fail_msg("%s", error.message);
        score s = score_of(&fit, &halves[1]), line = score_of_one_line(&halves[0], &halves[1]);
        print_message(
            "half %ld%s: %d points, %d pieces; of the %d others: median error %.2f%%, 95th percentile %.2f%%, "
            "intervals hold %.1f%% (one line: %.2f%%, %.2f%%)\n",
            seed, with_in_place ? ", both" : "", halves[0].count, (fit.parameter_count + 1) / 4, halves[1].count,
            100 * s.median, 100 * s.p95, 100 * s.coverage, 100 * line.median, 100 * line.p95);
        if (s.median > 0.01 || s.p95 > 0.04) fail_msg("median %g, 95th percentile %g", s.median, s.p95);
        pc_fit_free(&fit);
    }
}

static void all_reduce_of_eight(void **state) {
    (void)state;
    pc_profile p;
    pc_import_options options = {.collective = "all_reduce", .link = "nvlink"};
    if (!import_shared("nccl_allreduce_a100_8_ranks.csv", &options, &p)) skip();
    assert_int_equal(p.transfer_count, 2 * 1024);
    check_halves(&p, false, test_cases(6, 6));
    check_halves(&p, true, test_cases(2, 2));
    pc_profile_free(&p);
}

/* Of one node: what is suspect is left out, and every collective gets a fit. */
static void one_node(void **state) {
    (void)state;
    pc_profile p;
    int64_t left_out;
    pc_import_options options = {.device = "H100 (SXM 8x per script comment)"};
    if (!import_shared("nccl_one_node.csv", &options, &p)) skip();
    assert_int_equal(p.transfer_count, 2 * 4 * 14);
    assert_int_equal(pc_profile_fit(&p, &left_out, NULL), PC_OK);
    assert_int_equal(p.fit_count, 4);
    for (int64_t i = 0; i < p.fit_count; i++) {
        char name[128];
        pc_fit_name(&p.fit[i].key, name, sizeof name);
        print_message("%s: median error %.1f%%, 95th percentile %.1f%%\n", name, 100 * p.fit[i].cv_median,
                      100 * p.fit[i].cv_p95);
        assert_string_equal(p.fit[i].key.link, "nvlink");
        assert_true(p.fit[i].cv_median < 0.25);
    }
    pc_profile_free(&p);
}

/* ---- products ---- */

static void products(void **state) {
    (void)state;
    pc_profile p;
    int64_t left_out, points = 0;
    if (!import_shared("gemm_a100_pcie.csv", NULL, &p)) skip();
    assert_int_equal(p.kernel_count, 183);
    assert_string_equal(p.device.name, "A100-PCIe-80GB");
    p.device.processors = 108;
    assert_int_equal(pc_profile_fit(&p, &left_out, NULL), PC_OK);
    assert_int_equal(left_out, 0);
    assert_int_equal(p.fit_count, 3);
    for (int64_t i = 0; i < p.fit_count; i++) {
        const pc_fit *fit = &p.fit[i];
        print_message("%s: %d shapes; cross-validated median error %.2f%%, 95th percentile %.1f%%, intervals hold "
                      "%.0f%%; %.0f TFLOP/s, ramp %.0f, launch %.1f us%s\n",
                      fit->key.subject, (int)fit->count, 100 * fit->cv_median, 100 * fit->cv_p95,
                      100 * fit->cv_coverage, fit->parameter[0] / 1e12, fit->parameter[1], fit->parameter[3] * 1e6,
                      fit->weight ? ", a surface" : "");
        if (fit->cv_median > 0.06) fail_msg("median error %g", fit->cv_median);
        points += fit->count;
    }
    assert_int_equal(points, 183);
    pc_profile_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_are_read_whole), cmocka_unit_test(all_reduce_of_eight),
                                       cmocka_unit_test(one_node), cmocka_unit_test(products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
