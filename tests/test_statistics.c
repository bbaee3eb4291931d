/* What is kept of samples, and when there are enough of them. */
#include "tests/support.h"

#include "calib/device/measure_private.h"

#include <math.h>

enum { ROOM = 512 };

static void shuffle(test_random *random, double *samples, int count) {
    for (int i = count - 1; i > 0; i--) {
        int j = (int)test_between(random, 0, i);
        double kept = samples[i];
        samples[i] = samples[j];
        samples[j] = kept;
    }
}

/* ---- statistics ---- */

/* Of 0, d, 2d ... (n-1)d the quantile p lies at place p (n-1), and is p (n-1) d: linear, so without any rounding up or
 * down between two values. */
static void quantiles_of_an_even_ladder(void **state) {
    (void)state;
    test_random random = {1};
    double x[ROOM], room[ROOM];
    for (long c = 0; c < test_cases(300, 1500); c++) {
        int count = (int)test_between(&random, 1, ROOM);
        double step = 1.0 + (double)test_between(&random, 0, 1000), first = (double)test_between(&random, 1, 100);
        for (int i = 0; i < count; i++) x[i] = first + i * step;
        shuffle(&random, x, count);
        pc_statistics s;
        pc_statistics_of(x, count, room, &s);
        const struct {
            double p, found;
        } quantiles[] = {{0.05, s.p5}, {0.25, s.q1}, {0.5, s.median}, {0.75, s.q3}, {0.95, s.p95}};
        for (int q = 0; q < 5; q++)
            assert_float_equal(quantiles[q].found, first + quantiles[q].p * (count - 1) * step, 1e-9 * count * step);
        assert_true(s.count == count && s.least == first);
        for (int i = 1; i < count; i++) assert_true(room[i - 1] <= room[i]);
    }
}

static void quantiles_by_hand(void **state) {
    (void)state;
    double room[5];
    pc_statistics s;
    pc_statistics_of((double[]){4, 1, 3, 2}, 4, room, &s);
    /* Places 0.75, 1.5, 2.25 of 1, 2, 3, 4. */
    assert_float_equal(s.q1, 1.75, 1e-12);
    assert_float_equal(s.median, 2.5, 1e-12);
    assert_float_equal(s.q3, 3.25, 1e-12);
    assert_float_equal(pc_relative_range((double[]){4, 1, 3, 2}, 4, room), 1.5 / 2.5, 1e-12);
    pc_statistics_of((double[]){7}, 1, room, &s);
    assert_true(s.p5 == 7 && s.q1 == 7 && s.median == 7 && s.q3 == 7 && s.p95 == 7 && s.least == 7);
    assert_true(pc_relative_range((double[]){0, 0, 0}, 3, room) == 0.0);
}

/* Half of the samples lie within the quartiles, nine tenths between the 5th and the 95th percentile, up to one sample
 * at each edge. */
static void quantiles_hold_their_share(void **state) {
    (void)state;
    test_random random = {2};
    double x[ROOM], room[ROOM];
    for (long c = 0; c < test_cases(200, 1000); c++) {
        int count = (int)test_between(&random, 30, 200), half = 0, most = 0;
        for (int i = 0; i < count; i++) x[i] = exp(3.0 * test_draw_unit(&random));
        pc_statistics s;
        pc_statistics_of(x, count, room, &s);
        assert_true(s.least <= s.p5 && s.p5 <= s.q1 && s.q1 <= s.median && s.median <= s.q3 && s.q3 <= s.p95);
        for (int i = 0; i < count; i++) {
            half += x[i] >= s.q1 && x[i] <= s.q3;
            most += x[i] >= s.p5 && x[i] <= s.p95;
        }
        assert_true(abs(2 * half - count) <= 4);
        assert_true(fabs(most - 0.9 * count) <= 2);
    }
}

/* ---- enough samples ---- */

static int taken(const pc_sampler_rule *rule, const double *samples, double each_s) {
    double room[ROOM];
    int count = 0;
    while (!pc_sampler_is_done(rule, samples, count, count * each_s, room)) count++;
    return count;
}

static void the_same_time_again_and_again_is_enough_at_thirty(void **state) {
    (void)state;
    double x[ROOM];
    for (int i = 0; i < ROOM; i++) x[i] = 5e-6;
    pc_sampler_rule rule = pc_sampler_rule_default(1.0);
    assert_int_equal(taken(&rule, x, 1e-3), 30);
    assert_int_equal(taken(&rule, x, 1.0), 30); /* the limit is long past, and the least are taken all the same */
}

/* A first third that swings by 40% and then nothing: the range of all is not that of the end until the first samples
 * are fewer than a quarter of all and lie outside the quartiles. Swings to both sides: an eighth beyond each quartile.
 */
static void a_restless_start_takes_more(void **state) {
    (void)state;
    double x[ROOM];
    for (int i = 0; i < ROOM; i++) x[i] = i >= 20 ? 1.0 + 0.004 * (i % 5) : i % 2 ? 1.4 : 0.6;
    pc_sampler_rule rule = pc_sampler_rule_default(10.0);
    int count = taken(&rule, x, 1e-3);
    assert_true(count > 40 && count < 200);
}

/* A time that grows by the same with every sample never settles: the range of the last two thirds is two thirds of that
 * of all. So `most` ends it, or the limit. */
static void a_drift_ends_at_the_most_or_at_the_limit(void **state) {
    (void)state;
    double x[ROOM];
    for (int i = 0; i < ROOM; i++) x[i] = 1.0 + 0.01 * i;
    pc_sampler_rule rule = pc_sampler_rule_default(0.1);
    assert_int_equal(taken(&rule, x, 1e-6), 200);
    assert_int_equal(taken(&rule, x, 0.1 / 49.5), 50); /* the first at or past 0.1 s */
}

/* Steady noise of any width stops long before the most on average, and never before the least. */
static void steady_noise_is_soon_enough(void **state) {
    (void)state;
    test_random random = {3};
    double sum = 0.0;
    long cases = test_cases(200, 1000);
    for (long c = 0; c < cases; c++) {
        double x[ROOM], width = 0.3 * test_draw_unit(&random);
        for (int i = 0; i < ROOM; i++) x[i] = 1.0 + width * test_draw_unit(&random);
        pc_sampler_rule rule = pc_sampler_rule_default(10.0);
        int count = taken(&rule, x, 1e-4);
        assert_in_range(count, 30, 200);
        sum += count;
    }
    assert_true(sum / (double)cases < 60.0);
}

/* ---- settling ---- */

/* Readings every 0.1 s that fall by 5% each until 3 s, then rest: steady 2 s after the last step of more than 1%. */
static void settles_after_the_last_step(void **state) {
    (void)state;
    pc_settling settling = {0};
    double reading = 2e9, steady_s = -1.0;
    for (int i = 0; i < 100 && steady_s < 0.0; i++) {
        if (i <= 30) reading *= 0.95;
        if (pc_settling_add(&settling, 0.1 * i, reading * (1.0 + 0.004 * (i % 2)), 2.0, 0.01)) steady_s = 0.1 * i;
    }
    assert_float_equal(steady_s, 5.0, 0.11);
}

/* Falling by 0.3% a reading: every 4th step it is 1% away from where it was, and the window begins anew. */
static void a_slow_slide_is_not_steady(void **state) {
    (void)state;
    pc_settling settling = {0};
    for (int i = 0; i < 1000; i++) assert_false(pc_settling_add(&settling, 0.5 * i, pow(0.997, i), 2.0, 0.01));
}

static void what_is_not_known_does_not_settle(void **state) {
    (void)state;
    pc_settling settling = {0};
    for (int i = 0; i < 10; i++) assert_false(pc_settling_add(&settling, i, NAN, 2.0, 0.01));
    assert_false(pc_settling_add(&settling, 10, 1.0, 2.0, 0.01));
    assert_false(pc_settling_add(&settling, 11, 1.0, 2.0, 0.01));
    assert_false(pc_settling_add(&settling, 11.5, NAN, 2.0, 0.01));
    assert_false(pc_settling_add(&settling, 12, 1.0, 2.0, 0.01)); /* anew */
    assert_true(pc_settling_add(&settling, 14, 1.0, 2.0, 0.01));
}

/* ---- time ---- */

/* Whatever things take over their estimates, all of them by about the same: after the first few, nothing that is begun
 * ends late. */
static void a_budget_learns_and_is_kept(void **state) {
    (void)state;
    test_random random = {4};
    for (long c = 0; c < test_cases(200, 1000); c++) {
        double now = 100.0 * test_draw_unit(&random), end = now + 100.0,
               off = exp(1.5 * (2.0 * test_draw_unit(&random) - 1.0));
        pc_budget budget = pc_budget_until(end);
        int begun = 0, left_out = 0;
        for (int i = 0; i < 100000 && left_out < 200; i++) {
            double estimate = 0.02 + 0.2 * test_draw_unit(&random),
                   actual = off * estimate * (0.9 + 0.2 * test_draw_unit(&random));
            if (!pc_budget_allows(&budget, estimate, now)) {
                left_out++;
                continue;
            }
            begun++;
            now += actual;
            pc_budget_learn(&budget, estimate, actual);
            assert_true(now <= end);
        }
        assert_true(begun > 50 && left_out > 0);
        assert_true(now > end - 0.3 * off); /* and hardly anything is wasted */
        assert_float_equal(budget.factor, off, 0.1 * off);
    }
    pc_budget endless = pc_budget_until(INFINITY);
    assert_true(pc_budget_allows(&endless, 1e9, 1e9));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_of_an_even_ladder),
        cmocka_unit_test(quantiles_by_hand),
        cmocka_unit_test(quantiles_hold_their_share),
        cmocka_unit_test(the_same_time_again_and_again_is_enough_at_thirty),
        cmocka_unit_test(a_restless_start_takes_more),
        cmocka_unit_test(a_drift_ends_at_the_most_or_at_the_limit),
        cmocka_unit_test(steady_noise_is_soon_enough),
        cmocka_unit_test(settles_after_the_last_step),
        cmocka_unit_test(a_slow_slide_is_not_steady),
        cmocka_unit_test(what_is_not_known_does_not_settle),
        cmocka_unit_test(a_budget_learns_and_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
