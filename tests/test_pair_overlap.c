/* Two passes together: by algebra, and against all orders of short ones. */
#include "tests/support.h"

#include "models/training/pair_overlap.h"

#include <math.h>

enum { STEPS = 5 };

static double together(const pc_pair_step *a, int a_count, const pc_pair_step *b, int b_count) {
    double seconds = pc_pair_seconds((pc_pair_steps){a, a_count}, (pc_pair_steps){b, b_count});
    assert_true(fabs(seconds - pc_pair_seconds((pc_pair_steps){a, a_count}, (pc_pair_steps){b, b_count})) == 0);
    return seconds;
}

static void is_near(double a, double b) {
    if (!(fabs(a - b) < 1e-12)) fail_msg("%.17g, expected %.17g", a, b);
}

/* ---- by algebra ---- */

static void test_one_resource_adds_up(void **state) {
    (void)state;
    const pc_pair_step compute[] = {{0.1, false, 0}, {0.7, false, 0}}, comm[] = {{0.3, true, 0.1}, {0.2, true, 0.2}};
    assert_true(together(compute, 2, compute, 2) == (0.1 + 0.7) + (0.1 + 0.7));
    assert_true(together(comm, 2, comm, 2) == (0.3 + 0.2) + (0.3 + 0.2));
    assert_true(together(compute, 2, NULL, 0) == 0.1 + 0.7);
    assert_true(together(NULL, 0, comm, 2) == 0.3 + 0.2);
}

/* One computes 3 while the other communicates 2, and then the other way round: 6 of 10. */
static void test_hides(void **state) {
    (void)state;
    const pc_pair_step a[] = {{3, false, 0}, {2, true, 0}}, b[] = {{2, true, 0}, {3, false, 0}};
    is_near(together(a, 2, b, 2), 6);
    is_near(together(b, 2, a, 2), 6);
    /* Longer than what hides it: 4 beside 3, and again. */
    const pc_pair_step c[] = {{3, false, 0}, {4, true, 0}}, d[] = {{4, true, 0}, {3, false, 0}};
    is_near(together(c, 2, d, 2), 8);
}

/* Communication takes a tenth of the processors: in 2 s the other computes 1.8 of its 3, and 1.2 behind that. */
static void test_slows_down(void **state) {
    (void)state;
    const pc_pair_step a[] = {{3, false, 0}, {2, true, 0.1}}, b[] = {{2, true, 0.1}, {3, false, 0}};
    is_near(together(a, 2, b, 2), 6.4);
    /* All hidden: computation c, and s of it lost over communication x: c + s x. */
    const pc_pair_step kernels[] = {{10, false, 0}}, all_to_all[] = {{4, true, 0.25}};
    is_near(together(kernels, 1, all_to_all, 1), 11);
}

/* Of b products for weights wait for its own communication: 1, then 2 of communication beside which 1.5 of them run,
 * then 1 and the 0.5 that are left. In line they would be 5.5. The second of them waits for b's third step. */
static void test_delayed_kernels_fill_gaps(void **state) {
    (void)state;
    const pc_pair_step b[] = {{1, false, 0}, {2, true, 0}, {1, false, 0}}, w[] = {{1.5, false, 0}, {0.5, false, 0}};
    const int behind[] = {1, 3}, never[] = {3, 3};
    const pc_pair_steps none = {NULL, 0}, second = {b, 3}, late = {w, 2};
    is_near(pc_pair_seconds_with(none, second, (pc_delayed_steps){late, behind}), 1 + 2 + 1 + 0.5);
    is_near(pc_pair_seconds_with(none, second, (pc_delayed_steps){late, never}), 1 + 2 + 1 + 2);
    /* A pass of one kernel, as long as b, goes first, and b's communication has the delayed ones alone beside it. */
    const pc_pair_step a[] = {{4, false, 0}};
    is_near(pc_pair_seconds_with((pc_pair_steps){a, 1}, second, (pc_delayed_steps){late, behind}), 4 + 1 + 2 + 1 + 0.5);
}

/* The chunk of DeepSeek-V3's figure 4: attention, dispatch, MLP, combine forward; backward the mirror image, twice as
 * long. Of n layers all but the ends hides: communication of F beside computation of B and the other way round. */
static void test_chunk_of_layers(void **state) {
    (void)state;
    enum { LAYERS = 50 };
    static pc_pair_step f[4 * LAYERS], b[4 * LAYERS];
    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < 4; k++) {
            f[4 * i + k] = (pc_pair_step){1, k % 2 == 1, 0};
            b[4 * i + k] = (pc_pair_step){k % 2 ? 2 : 1, k % 2 == 0, 0};
        }
    double seconds = together(f, 4 * LAYERS, b, 4 * LAYERS), compute = LAYERS * (2 + 4);
    assert_true(seconds >= compute);
    assert_true(seconds <= 1.02 * compute);
}

/* ---- against all orders ---- */

/* The shortest of all orders in which steps of whole seconds run, waiting allowed: at every second each pass goes on or
 * waits, and what has begun goes on. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the few seconds of both */
static int shortest(const pc_pair_step *a, int a_count, int a_done, const pc_pair_step *b, int b_count, int b_done) {
    while (a_count > 0 && a_done == (int)a->seconds) a++, a_count--, a_done = 0;
    while (b_count > 0 && b_done == (int)b->seconds) b++, b_count--, b_done = 0;
    if (a_count == 0 && b_count == 0) return 0;
    int best = 1000;
    for (int way = 1; way < 4; way++) {
        bool go_a = way & 1, go_b = way & 2;
        if ((go_a && a_count == 0) || (go_b && b_count == 0)) continue;
        if ((!go_a && a_done > 0) || (!go_b && b_done > 0)) continue;
        if (go_a && go_b && a->is_comm == b->is_comm) continue;
        int rest = 1 + shortest(a, a_count, a_done + go_a, b, b_count, b_done + go_b);
        if (rest < best) best = rest;
    }
    return best;
}

static int draw(test_random *random, pc_pair_step steps[STEPS]) {
    int count = (int)test_between(random, 0, STEPS - 1);
    for (int i = 0; i < count; i++)
        steps[i] = (pc_pair_step){(double)test_between(random, 0, 3), test_between(random, 0, 1), 0};
    return count;
}

/* Bounds; no shorter than the best order; and within a half of it, mostly equal. */
static void test_against_all_orders(void **state) {
    (void)state;
    test_random random = {5};
    long equal = 0, cases = test_cases(500, 3000);
    for (long i = 0; i < cases; i++) {
        pc_pair_step a[STEPS], b[STEPS];
        int a_count = draw(&random, a), b_count = draw(&random, b);
        double found = together(a, a_count, b, b_count), best = shortest(a, a_count, 0, b, b_count, 0);
        double a_s = pc_pair_alone_s((pc_pair_steps){a, a_count}), b_s = pc_pair_alone_s((pc_pair_steps){b, b_count});
        assert_true(found >= best - 1e-9);
        assert_true(found <= 1.5 * best + 1e-9);
        assert_true(found <= a_s + b_s && found >= fmax(a_s, b_s) - 1e-9);
        equal += fabs(found - best) < 1e-9;
    }
    print_message("%ld of %ld are the shortest\n", equal, cases);
    assert_true(equal > cases * 9 / 10);
}

/* With shares: bounded by the sum, no faster than without, and the slower the more they take. */
static void test_shares_only_slow_down(void **state) {
    (void)state;
    test_random random = {6};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_pair_step a[STEPS], b[STEPS];
        int a_count = draw(&random, a), b_count = draw(&random, b);
        double compute = 0;
        for (int k = 0; k < a_count; k++) a[k].share = test_draw_unit(&random) * 0.5;
        for (int k = 0; k < b_count; k++) b[k].share = test_draw_unit(&random) * 0.5;
        for (int k = 0; k < a_count; k++) compute += a[k].is_comm ? 0 : a[k].seconds;
        for (int k = 0; k < b_count; k++) compute += b[k].is_comm ? 0 : b[k].seconds;
        double found = together(a, a_count, b, b_count);
        double a_s = pc_pair_alone_s((pc_pair_steps){a, a_count}), b_s = pc_pair_alone_s((pc_pair_steps){b, b_count});
        assert_true(found >= compute - 1e-9 && found >= fmax(a_s, b_s) - 1e-9 && found <= a_s + b_s);
    }
}

/* What the course says of one step begins when the step before it in its pass is over, and when its resource is free:
 * both, and at one of the two. A resource does one step at a time, and the last one ends with the whole. */
static void check_course(const pc_pair_steps *passes, const pc_pair_course *course, double whole_s) {
    double own[3] = {0}, turn[2] = {0}, last = 0;
    for (int i = 0; i < course->count; i++) {
        const pc_pair_moment *moment = &course->moments[i];
        const pc_pair_step *step = &passes[moment->pass].steps[moment->step];
        if (i > 0) assert_true(moment->begin_s >= moment[-1].begin_s);
        assert_true(moment->begin_s >= own[moment->pass] - 1e-9 && moment->begin_s >= turn[step->is_comm] - 1e-9);
        assert_true(moment->pass == 2 || fabs(moment->begin_s - fmax(own[moment->pass], turn[step->is_comm])) < 1e-9);
        assert_true(moment->end_s - moment->begin_s >= step->seconds - 1e-9);
        if (step->is_comm) is_near(moment->end_s - moment->begin_s, step->seconds);
        own[moment->pass] = turn[step->is_comm] = moment->end_s;
        last = fmax(last, moment->end_s);
    }
    if (fabs(last - whole_s) > 1e-9) fail_msg("ends at %.12g; expected %.12g", last, whole_s);
}

static void test_course(void **state) {
    (void)state;
    test_random random = {7};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_pair_step steps[3][STEPS];
        pc_pair_moment moments[3 * STEPS];
        pc_pair_course course = {moments, 0};
        int counts[3], behind[STEPS], all = 0, noted[3] = {0};
        for (int p = 0; p < 3; p++) counts[p] = draw(&random, steps[p]);
        for (int k = 0; k < counts[2]; k++) steps[2][k].is_comm = false;
        for (int k = 0; k < counts[2]; k++) behind[k] = (int)test_between(&random, k ? behind[k - 1] : 0, counts[1]);
        for (int p = 0; p < 2; p++)
            for (int k = 0; k < counts[p]; k++) steps[p][k].share = test_draw_unit(&random) * 0.5;
        const pc_pair_steps passes[] = {{steps[0], counts[0]}, {steps[1], counts[1]}, {steps[2], counts[2]}};
        const pc_delayed_steps delayed = {passes[2], behind};
        double found = pc_pair_seconds_course(passes[0], passes[1], delayed, &course);
        assert_true(found == pc_pair_seconds_with(passes[0], passes[1], delayed));
        double apart = pc_pair_alone_s(passes[0]) + pc_pair_alone_s(passes[1]) + pc_pair_alone_s(passes[2]);
        if (found < apart) check_course(passes, &course, found);
        for (int k = 0; k < course.count; k++) noted[moments[k].pass]++;
        for (int p = 0; p < 3; p++) {
            for (int k = 0; k < counts[p]; k++) all += steps[p][k].seconds > 0;
            assert_true(noted[p] <= counts[p]);
        }
        assert_int_equal(course.count, all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_resource_adds_up),
        cmocka_unit_test(test_hides),
        cmocka_unit_test(test_slows_down),
        cmocka_unit_test(test_delayed_kernels_fill_gaps),
        cmocka_unit_test(test_chunk_of_layers),
        cmocka_unit_test(test_against_all_orders),
        cmocka_unit_test(test_shares_only_slow_down),
        cmocka_unit_test(test_course),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
