/* Laws of collectives and of experts' exchanges: known parameters come back, groups that were left out are foretold,
 * and nothing that is fed to them gives a time that is none. */
#include "tests/support.h"

#include "calib/fit/fit.h"
#include "engine/alloc.h"
#include "models/workload/expert_reach.h"

#include <math.h>

enum { POINTS = 4096, DIMENSIONS = 7 };

typedef struct points {
    int count, dimensions;
    double x[POINTS * DIMENSIONS], seconds[POINTS];
} points;

static double normal(test_random *random) {
    double u = test_draw_unit(random), v = test_draw_unit(random);
    return sqrt(-2.0 * log(u > 0.0 ? u : 0x1p-53)) * cos(6.283185307179586 * v);
}

static void fit_points(pc_fit_form form, const char *subject, const points *p, pc_fit *fit) {
    pc_fit_key key = {.form = form};
    pc_error error;
    snprintf(key.subject, sizeof key.subject, "%s", subject);
    if (pc_fit_make(&key, 0, p->x, p->seconds, p->count, fit, &error)) fail_msg("%s", error.message);
}

static void refuse(pc_fit_form form, const points *p, const char *expected) {
    pc_fit fit;
    pc_error error = {0};
    pc_fit_key key = {.form = form, .subject = "all_gather"};
    assert_int_equal(pc_fit_make(&key, 0, p->x, p->seconds, p->count, &fit, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, expected));
}

/* ---- a law that is known ---- */

/* Of three protocols start, step, seconds a byte of the tensor, and of what crosses a link. */
static const double known[3][4] = {{8e-6, 1e-6, 0.0, 2e-11}, {9e-6, 2e-6, 1e-12, 4e-12}, {12e-6, 8e-6, 1e-12, 1.5e-12}};

/* The ring's switches: 128 KiB and 4 MiB a rank's part, with 4 ranks 512 KiB and 16 MiB. The sum by algebra: n - 1
 * steps; (n - 1)/n of the tensor over the link. */
static double known_seconds(double bytes, double ranks) {
    int protocol = (bytes > 181e3 * ranks) + (bytes > 5.8e6 * ranks);
    const double *term = known[protocol];
    return term[0] + term[1] * (ranks - 1.0) + term[2] * bytes + term[3] * bytes * (ranks - 1.0) / ranks;
}

static void add_point(points *p, const double *x, double seconds) {
    memcpy(p->x + p->count * p->dimensions, x, (size_t)p->dimensions * sizeof *x);
    p->seconds[p->count++] = seconds;
}

static void draw_law(points *p, uint64_t seed, double noise, double left_out_ranks) {
    test_random random = {seed};
    p->count = 0;
    p->dimensions = 2;
    for (double ranks = 2.0; ranks <= 8.0; ranks *= 2.0)
        for (double bytes = 1024.0; bytes <= 0x1p30 && ranks != left_out_ranks; bytes *= 2.0) {
            const double x[] = {bytes, ranks};
            add_point(p, x, known_seconds(bytes, ranks) * exp(noise * normal(&random)));
        }
}

/* All twelve terms. The rates' sum is what is asked for: of S and (n - 1)/n S the data know the difference worse. */
static void terms_come_back(void **state) {
    static points p;
    pc_fit fit;
    (void)state;
    draw_law(&p, 1, 0.0, 0.0);
    fit_points(PC_FIT_LAW, "all_gather", &p, &fit);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            double found = fit.parameter[4 * i + k], scale = k < 2 ? 12e-6 : 4e-12;
            if (fabs(found - known[i][k]) > 0.02 * scale)
                fail_msg("%s: %g, expected %g", fit.parameter_name[4 * i + k], found, known[i][k]);
        }
    pc_fit_free(&fit);
}

static double worst(const pc_fit *fit, double ranks) {
    double most = 0.0;
    for (double bytes = 1500.0; bytes < 0x1p30; bytes *= 1.7) {
        const double x[] = {bytes, ranks};
        bool is_at_switch = fabs(log2(bytes / (181e3 * ranks))) < 1.0 || fabs(log2(bytes / (5.8e6 * ranks))) < 1.0;
        double error = fabs(pc_fit_predict(fit, x).seconds / known_seconds(bytes, ranks) - 1.0);
        if (!is_at_switch && error > most) most = error;
    }
    return most;
}

/* Sizes between those that were measured; groups of 4 or 8 that were not: a step more costs what it did, and the rate
 * follows (n - 1)/n. The switches of a group that was not measured lie where the ring's law has them. */
static void groups_are_foretold(void **state) {
    static points p;
    pc_fit fit;
    (void)state;
    for (int left_out = 0; left_out <= 8; left_out += 4) {
        draw_law(&p, 7, 0.0, left_out);
        fit_points(PC_FIT_LAW, "all_gather", &p, &fit);
        double error = worst(&fit, left_out ? left_out : 4.0);
        if (error > 0.03) fail_msg("without %d ranks: %.1f%% off", left_out, 100 * error);
        pc_fit_free(&fit);
    }
}

/* With 5% noise 95% intervals hold 88 to 100 of a hundred fresh ones, and groups that were not measured have wider
 * ones: 10% a doubling. */
static void intervals_hold(void **state) {
    static points p, fresh;
    int held = 0, count = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(4, 20); seed++) {
        pc_fit fit;
        draw_law(&p, seed, 0.05, 0.0);
        draw_law(&fresh, seed + 1000, 0.05, 0.0);
        fit_points(PC_FIT_LAW, "all_gather", &p, &fit);
        for (int i = 0; i < fresh.count; i++, count++) {
            double low, high;
            pc_fit_interval(&fit, fresh.x + 2 * i, 0.95, &low, &high);
            held += fresh.seconds[i] >= low && fresh.seconds[i] <= high;
        }
        const double at[2] = {0x1p28, 8.0}, beyond[2] = {0x1p28, 32.0};
        pc_estimate near = pc_fit_predict(&fit, at), away = pc_fit_predict(&fit, beyond);
        assert_true(away.standard_error / away.seconds > 0.2);
        assert_true(near.standard_error / near.seconds < 0.12);
        assert_true(fabs(pc_fit_seconds(&fit, beyond) / away.seconds - 1.0) < 1e-12);
        pc_fit_free(&fit);
    }
    if (held < 88 * count / 100) fail_msg("%d of %d held", held, count);
}

/* Steps up to 8 ranks are those of a ring; of 72 they are 7 * (71/7)^0.61 = 28.8. */
static void steps_beyond_a_board(void **state) {
    static points p;
    pc_fit fit;
    (void)state;
    draw_law(&p, 1, 0.0, 0.0);
    fit_points(PC_FIT_LAW, "all_gather", &p, &fit);
    const double x[] = {0x1p32, 72.0};
    double expected = 12e-6 + 8e-6 * 28.77 + 0x1p32 * (1e-12 + 1.5e-12 * 71.0 / 72.0);
    assert_true(fabs(pc_fit_predict(&fit, x).seconds / expected - 1.0) < 0.02);
    pc_fit_free(&fit);
}

/* 4 ranks that change to the third protocol at 48 MB, where the law of 2 and 8 says 23: theirs is kept. */
static void a_group_may_leave_the_law(void **state) {
    static points p;
    pc_fit fit;
    int found = 0;
    (void)state;
    draw_law(&p, 1, 0.0, 0.0);
    for (int i = 0; i < p.count; i++) {
        double bytes = p.x[2 * (size_t)i];
        if (p.x[2 * (size_t)i + 1] == 4.0 && bytes > 23e6 && bytes < 48e6)
            p.seconds[i] = known[1][0] + 3.0 * known[1][1] + bytes * (known[1][2] + 0.75 * known[1][3]);
    }
    fit_points(PC_FIT_LAW, "all_gather", &p, &fit);
    for (int i = 0; i < fit.parameter_count; i++) {
        if (strcmp(fit.parameter_name[i], "switch 3 of ranks 2") != 0) continue;
        found++;
        if (!(fit.parameter[i] >= 0x1p25 && fit.parameter[i] < 0x1p26)) fail_msg("%g bytes", fit.parameter[i]);
    }
    assert_int_equal(found, 1);
    pc_fit_free(&fit);
}

static void law_is_refused(void **state) {
    static points p;
    (void)state;
    draw_law(&p, 1, 0.0, 0.0);
    p.count = 11;
    refuse(PC_FIT_LAW, &p, "expected at least 12 points of 2");
    p.count = 20; /* all of 2 ranks */
    refuse(PC_FIT_LAW, &p, "1 numbers of ranks");
    p.x[1] = 1.0;
    refuse(PC_FIT_LAW, &p, "expected at least 2");
}

/* ---- exchanges ---- */

/* alpha, token, message, read, write, link, net, crowd. */
static const double exchange[8] = {30e-6, 3e-7, 1e-7, 1e-11, 3e-11, 7e-13, 2e-11, 0.0};

static double exchange_seconds(const double *x) {
    double tokens = x[0], bytes = x[0] * x[1], copies = x[2] + (x[5] > 1.0 ? x[3] : 0.0), leave = x[3] * (1 - 1 / x[5]);
    double by_processors = tokens / x[6] * (exchange[1] + exchange[2] * copies) +
                           bytes / x[6] * (exchange[3] + exchange[4] * copies) +
                           exchange[5] * bytes * x[2] * (1.0 - 1.0 / x[4]);
    return exchange[0] + fmax(by_processors, exchange[6] * bytes * leave);
}

static void draw_exchanges(points *p, uint64_t seed, double noise, int count) {
    static const double processors[] = {4, 8, 16, 24}, nodes[] = {1, 1, 2, 4, 8};
    test_random random = {seed};
    p->count = 0;
    p->dimensions = 7;
    for (int i = 0; i < count; i++) {
        double n = nodes[test_between(&random, 0, 4)], topk = (double)test_between(&random, 1, 16);
        const pc_routing choice = {.experts = 256, .topk = topk};
        const double x[] = {exp2((double)test_between(&random, 9, 17)),
                            1024.0 * (double)test_between(&random, 2, 14),
                            pc_expert_reached(&choice, 8.0 * n),
                            pc_expert_reached(&choice, n),
                            8.0 * n,
                            n,
                            processors[test_between(&random, 0, 3)]};
        add_point(p, x, exchange_seconds(x) * exp(noise * normal(&random)));
    }
}

static void exchange_comes_back(void **state) {
    static points p;
    (void)state;
    for (int i = 0; i < 2; i++) {
        pc_fit fit;
        draw_exchanges(&p, 5, i ? 0.05 : 0.0, 800);
        fit_points(PC_FIT_DISPATCH, "dispatch", &p, &fit);
        for (int k = 0; k < 7; k++) {
            double away = fabs(fit.parameter[k] - exchange[k]), known_to = 4.0 * pc_fit_standard_error(&fit, k);
            if (away > 1e-6 * exchange[k] + known_to)
                fail_msg("%s: %g, expected %g", fit.parameter_name[k], fit.parameter[k], exchange[k]);
        }
        assert_true(i || fabs(fit.parameter[5] / exchange[5] - 1.0) < 1e-6);
        pc_fit_free(&fit);
    }
    p.count = 15;
    refuse(PC_FIT_DISPATCH, &p, "expected at least 16");
}

/* One in thirty takes a quarter of its time: what the others take is foretold to 5%. */
static void outliers_do_not_pull(void **state) {
    static points p;
    pc_fit fit;
    (void)state;
    draw_exchanges(&p, 9, 0.0, 600);
    for (int i = 0; i < p.count; i += 30) p.seconds[i] *= 0.25;
    fit_points(PC_FIT_DISPATCH, "dispatch", &p, &fit);
    for (int i = 1; i < p.count; i += 7) {
        const double *x = p.x + 7 * (size_t)i;
        double error = pc_fit_seconds(&fit, x) / exchange_seconds(x) - 1.0;
        if (fabs(error) > 0.05) fail_msg("%.1f%% off", 100 * error);
    }
    pc_fit_free(&fit);
}

/* ---- anything ---- */

/* Times out of nothing give no negative, endless or unknown times, inside and far outside. */
static void nothing_absurd(void **state) {
    static points p;
    (void)state;
    for (long seed = 0; seed < test_cases(60, 600); seed++) {
        test_random random = {(uint64_t)seed};
        bool is_law = seed % 2 == 0;
        pc_fit fit;
        p.count = 0;
        p.dimensions = is_law ? 2 : 7;
        for (int i = (int)test_between(&random, 16, 60); i > 0; i--) {
            double x[7];
            for (int d = 0; d < 7; d++) x[d] = exp2((double)test_between(&random, 1, d == 0 ? 30 : 4));
            add_point(&p, x, 1e-6 * exp(3.0 * normal(&random)));
        }
        pc_fit_key key = {.form = is_law ? PC_FIT_LAW : PC_FIT_DISPATCH, .subject = "any"};
        if (pc_fit_make(&key, 0, p.x, p.seconds, p.count, &fit, NULL)) continue;
        assert_true(pc_fit_has_parameters(&fit));
        for (int i = 0; i < 50; i++) {
            double x[7], low, high;
            for (int d = 0; d < 7; d++) x[d] = exp2((double)test_between(&random, d == 1 ? 1 : 0, d == 0 ? 40 : 10));
            pc_estimate e = pc_fit_predict(&fit, x);
            pc_fit_interval(&fit, x, 0.95, &low, &high);
            assert_true(e.seconds > 0.0 && isfinite(e.seconds) && isfinite(e.standard_error));
            assert_true(low <= e.seconds && e.seconds <= high);
        }
        pc_fit_free(&fit);
    }
}

static void refused_allocations_are_reported(void **state) {
    static points p;
    (void)state;
    for (int is_law = 0; is_law < 2; is_law++) {
        pc_fit_key key = {.form = is_law ? PC_FIT_LAW : PC_FIT_DISPATCH, .subject = "dispatch"};
        pc_code code = PC_ERROR_NO_MEMORY;
        if (is_law)
            draw_law(&p, 1, 0.02, 0.0);
        else
            draw_exchanges(&p, 1, 0.02, 40);
        long after = 0;
        for (; code; after++) {
            pc_fit fit;
            pc_error error = {0};
            pc_alloc_fail_after(after);
            code = pc_fit_make(&key, 0, p.x, p.seconds, p.count, &fit, &error);
            pc_alloc_fail_after(-1);
            assert_true(!code || code == PC_ERROR_NO_MEMORY);
            if (!code) pc_fit_free(&fit);
        }
        assert_true(after > 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_come_back),      cmocka_unit_test(groups_are_foretold),
        cmocka_unit_test(intervals_hold),       cmocka_unit_test(steps_beyond_a_board),
        cmocka_unit_test(law_is_refused),       cmocka_unit_test(a_group_may_leave_the_law),
        cmocka_unit_test(outliers_do_not_pull), cmocka_unit_test(exchange_comes_back),
        cmocka_unit_test(nothing_absurd),       cmocka_unit_test(refused_allocations_are_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
