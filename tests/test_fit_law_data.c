/* Laws of published collectives and exchanges: how well they foretell what they have not seen. The tables are not part
 * of the repository: without them the tests are skipped. */
#include "tests/support.h"

#include "calib/fit/fit.h"
#include "calib/import/import.h"
#include "calib/profile/profile.h"
#include "calib/profile/profile_private.h"
#include "engine/order.h"

#include <math.h>

enum { POINTS = 4096, DIMENSIONS = 7 };

typedef struct points {
    int count, dimensions;
    double x[POINTS * DIMENSIONS], seconds[POINTS];
} points;

/* ---- tables ---- */

static bool import_table(const char *gpu, const char *table, pc_profile *profile) {
    const char *root = getenv("PC_SOURCE_ROOT");
    char path[512];
    pc_error error;
    snprintf(path, sizeof path, "%s/../shared/data/operators/%s/%s.csv", root ? root : ".", gpu, table);
    FILE *file = fopen(path, "rb");
    *profile = (pc_profile){0};
    if (!file) return false;
    fclose(file);
    pc_import_options options = {.link = "nvlink"};
    if (pc_profile_import(profile, path, &options, &error)) fail_msg("%s", error.message);
    return true;
}

/* ---- groups left out ---- */

static void add_row(points *p, const double *x, double seconds) {
    memcpy(p->x + p->count * p->dimensions, x, (size_t)p->dimensions * sizeof *x);
    p->seconds[p->count++] = seconds;
}

/* Errors of a law for a number of ranks that a fit of the others has not seen, and how many of them are in its
 * intervals. Returns how many there are. */
static int errors_without(const pc_fit *fit, double ranks, double *error, int *held) {
    static points train;
    pc_fit part;
    int count = 0;
    train.count = 0;
    train.dimensions = 2;
    for (int64_t i = 0; i < fit->count; i++)
        if (fit->x[2 * i + 1] != ranks) add_row(&train, fit->x + 2 * i, fit->seconds[i]);
    if (train.count == fit->count || pc_fit_make(&fit->key, 0, train.x, train.seconds, train.count, &part, NULL))
        return 0;
    for (int64_t i = 0; i < fit->count; i++) {
        const double *x = fit->x + 2 * i;
        double low, high;
        if (x[1] != ranks) continue;
        error[count++] = fabs(pc_fit_seconds(&part, x) / fit->seconds[i] - 1.0);
        pc_fit_interval(&part, x, 0.95, &low, &high);
        *held += fit->seconds[i] >= low && fit->seconds[i] <= high;
    }
    pc_fit_free(&part);
    return count;
}

static bool is_newest(const pc_fit *fit) {
    return fit->key.form == PC_FIT_LAW && strcmp(fit->key.dtype, "int8") != 0 && fit->key.variant[0] != '\0' &&
           strcmp(fit->key.variant, "2.27.5") != 0 && strcmp(fit->key.variant, "2.28.9") != 0;
}

/* 4 of 2 and 8, 8 of 2 and 4, of all GPUs and collectives together. */
static void groups_of_gpus(void **state) {
    static const char *const gpus[] = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm"};
    (void)state;
    for (double ranks = 4.0; ranks <= 8.0; ranks += 4.0) {
        static double error[POINTS];
        int count = 0, held = 0;
        for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
            pc_profile p;
            if (!import_table(gpus[g], "collectives", &p)) skip();
            assert_int_equal(pc_profile_fit(&p, NULL, NULL), PC_OK);
            for (int64_t i = 0; i < p.fit_count; i++)
                if (is_newest(&p.fit[i])) count += errors_without(&p.fit[i], ranks, error + count, &held);
            pc_profile_free(&p);
        }
        pc_sort_reals(error, count);
        print_message("%g ranks, not seen: %d rows, median %.1f%%, 95th percentile %.1f%%, intervals hold %.0f%%\n",
                      ranks, count, 100 * error[count / 2], 100 * error[count * 95 / 100], 100.0 * held / count);
        assert_true(error[count / 2] < 0.08 && error[count * 95 / 100] < 0.35);
    }
}

/* ---- sizes left out ---- */

/* Of 10 folds: those of pc_fit_make, which leave out sizes of a number of ranks together. */
static void tables_of_gpus(void **state) {
    static const char *const gpus[] = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300"};
    int wide = 0, laws = 0;
    (void)state;
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        pc_profile p;
        int64_t left_out;
        if (!import_table(gpus[g], "collectives", &p)) skip();
        assert_int_equal(pc_profile_fit(&p, &left_out, NULL), PC_OK);
        for (int64_t i = 0; i < p.fit_count; i++) {
            const pc_fit *fit = &p.fit[i];
            char name[160];
            if (fit->key.form != PC_FIT_LAW || strcmp(fit->key.dtype, "int8") == 0) continue;
            pc_fit_name(&fit->key, name, sizeof name);
            print_message("%s: %d points, median %.1f%%, 95th percentile %.1f%%, intervals hold %.0f%%\n", name,
                          (int)fit->count, 100 * fit->cv_median, 100 * fit->cv_p95, 100 * fit->cv_coverage);
            if (fit->cv_median > 0.06) fail_msg("%s: median %g", name, fit->cv_median);
            laws++;
            wide += fit->cv_p95 > 0.25;
        }
        pc_profile_free(&p);
    }
    assert_true(laws >= 28);
    if (wide > 4) fail_msg("%d of %d laws beyond 25%% at the 95th percentile", wide, laws);
}

/* ---- published tables of exchanges, model shapes left out ---- */

enum { FOLDS = 5 };

/* A shape: hidden, choices, experts. Which fifth it is in. */
static int fold_of(const pc_transfer_measurement *t) {
    return (int)((t->hidden / 512 + 3 * t->topk + t->experts / 8) % FOLDS);
}

/* Rows of one exchange between GPUs of a node, by DeepEP. */
static bool is_asked(const pc_transfer_measurement *t, const char *name) {
    return strcmp(t->collective, name) == 0 && strcmp(t->library_version, "0.5.12") == 0;
}

static void choose_rows(const pc_profile *profile, const char *name, int fold, bool is_left_out, points *p) {
    p->count = 0;
    p->dimensions = 7;
    for (int64_t i = 0; i < profile->transfer_count && p->count < POINTS; i++) {
        const pc_transfer_measurement *t = &profile->transfer[i];
        pc_profile_point point;
        if (!is_asked(t, name) || (fold_of(t) == fold) != is_left_out) continue;
        pc_profile_point_of_transfer(t, &point);
        add_row(p, point.x, point.seconds);
    }
}

static void check_exchange(const pc_profile *profile, const char *gpu, const char *name) {
    static points train, test;
    static double error[POINTS];
    int count = 0;
    for (int fold = 0; fold < FOLDS; fold++) {
        pc_fit fit;
        choose_rows(profile, name, fold, false, &train);
        choose_rows(profile, name, fold, true, &test);
        pc_fit_key key = {.form = PC_FIT_DISPATCH};
        pc_error fault;
        if (pc_fit_make(&key, 0, train.x, train.seconds, train.count, &fit, &fault)) fail_msg("%s", fault.message);
        for (int i = 0; i < test.count; i++)
            error[count++] = fabs(pc_fit_seconds(&fit, test.x + 7 * i) / test.seconds[i] - 1.0);
        pc_fit_free(&fit);
    }
    pc_sort_reals(error, count);
    double median = error[count / 2], p95 = error[count * 95 / 100];
    print_message("%s, %s: %d rows, median %.1f%%, 95th percentile %.1f%%\n", gpu, name, count, 100 * median,
                  100 * p95);
    if (median > 0.07 || p95 > 0.22) fail_msg("%s, %s", gpu, name);
}

static void exchanges_of_gpus(void **state) {
    static const char *const gpus[] = {"h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300"};
    (void)state;
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        pc_profile p;
        if (!import_table(gpus[g], "deepep", &p)) skip();
        check_exchange(&p, gpus[g], "dispatch");
        check_exchange(&p, gpus[g], "combine");
        pc_profile_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_of_gpus), cmocka_unit_test(groups_of_gpus),
                                       cmocka_unit_test(exchanges_of_gpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
