/* Jobs of many iterations that fail, start again and wait for repairs, against what algebra says of them. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/training/job.h"

#include <math.h>

enum { SAMPLES = 400 };

/* A job of one GPU, so that its failures are the cluster's; iterations of 10 s, of 8 s on a good day. */
typedef struct example {
    pc_bad_days days;
    pc_time iteration_ps[4];
    pc_job_spec spec;
} example;

static void make_example(example *subject, const pc_time iteration_s[4]) {
    *subject = (example){.days = {.samples = SAMPLES, .interval_s = 100, .checkpoint_s = 5}};
    for (int i = 0; i < 4; i++) subject->iteration_ps[i] = iteration_s[i] * PC_PICOSECONDS_PER_SECOND;
    subject->spec = (pc_job_spec){.bad_days = &subject->days,
                                  .gpus = 1,
                                  .iteration_ps = subject->iteration_ps,
                                  .iterations = 4,
                                  .good_s = 8,
                                  .seed = 3};
}

static const pc_time steady[4] = {10, 10, 10, 10}, unsteady[4] = {4, 8, 12, 16};

static pc_bad_days_result run(const example *subject) {
    pc_bad_days_result result = pc_bad_days_none();
    pc_error error = {0};
    if (pc_job_run(&subject->spec, &result, &error)) fail_msg("%s", error.message);
    return result;
}

static void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance)) fail_msg("%.9g, expected %.9g +- %.2g", value, expected, tolerance);
}

/* ---- nothing fails ---- */

/* Ten iterations and a checkpoint: 10 * 8 s of progress every 105 s. */
static void test_checkpoints_take_their_part(void **state) {
    (void)state;
    example subject;
    make_example(&subject, steady);
    subject.days.horizon_s = 1000 * 105;
    pc_bad_days_result result = run(&subject);
    assert_near(result.goodput_mean, 80.0 / 105, 1e-12);
    assert_near(result.goodput_p05.value, 80.0 / 105, 1e-12);
    assert_near(result.goodput_p95.value, 80.0 / 105, 1e-12);
    assert_near(result.interval_s, 100, 1e-12);
    assert_true(result.failures_mean == 0);
}

/* Of 104 s that are asked for, ten iterations make the nearest; of 1 s, one, which is the least. */
static void test_interval_has_whole_iterations(void **state) {
    (void)state;
    example subject;
    make_example(&subject, steady);
    subject.days.horizon_s = 1000 * 15;
    subject.days.interval_s = 104;
    assert_near(run(&subject).interval_s, 100, 1e-12);
    subject.days.interval_s = 1;
    assert_near(run(&subject).interval_s, 10, 1e-12);
    assert_near(run(&subject).goodput_mean, 8.0 / 15, 1e-12);
}

/* What is under way at the end counts as far as it is: 100 s of iterations, 5 s of checkpoint, 50 s of iterations. */
static void test_end_within_an_interval(void **state) {
    (void)state;
    example subject;
    make_example(&subject, steady);
    subject.days.horizon_s = 155;
    assert_near(run(&subject).goodput_mean, 15 * 8 / 155.0, 1e-12);
    subject.days.horizon_s = 207; /* in the second checkpoint */
    assert_near(run(&subject).goodput_mean, 20 * 8 / 207.0, 1e-12);
}

/* Without checkpoints, and without failures that would ask for them: good / mean, and no interval. How many of n
 * iterations of mean u and variance v end within h has the variance h v / u^3 (renewal theory): of the goodput,
 * good^2 v / (u^3 h). Of the four iterations u = 10, v = 20; of the first two u = 6, v = 4. */
static void test_iterations_alone(void **state) {
    static const struct {
        int iterations;
        double mean, variance;
    } cases[] = {{4, 10, 20}, {2, 6, 4}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        example subject;
        make_example(&subject, unsteady);
        subject.spec.iterations = cases[i].iterations;
        subject.days.interval_s = 0;
        subject.days.horizon_s = 100000;
        pc_bad_days_result result = run(&subject);
        assert_true(isnan(result.interval_s));
        double deviation = 8 * sqrt(cases[i].variance / (pow(cases[i].mean, 3) * subject.days.horizon_s));
        assert_near(result.goodput_mean, 8 / cases[i].mean, 4 * deviation / sqrt(SAMPLES));
        assert_near(result.goodput_mean_error, deviation / sqrt(SAMPLES), 0.2 * deviation / sqrt(SAMPLES));
        assert_near((result.goodput_p95.value - result.goodput_p05.value) / 2, 1.645 * deviation, 0.2 * deviation);
    }
}

/* Sums of a few draws and sums taken for normal have one mean: intervals of 10 iterations, and of 40. */
static void test_sums_of_both_sorts(void **state) {
    (void)state;
    example subject;
    make_example(&subject, unsteady);
    subject.days.horizon_s = 50000;
    for (int i = 0; i < 2; i++) {
        subject.days.interval_s = i ? 400 : 100;
        pc_bad_days_result result = run(&subject);
        double rounding = subject.days.checkpoint_s / subject.days.horizon_s; /* of the last interval */
        assert_near(result.goodput_mean, 0.8 * subject.days.interval_s / (subject.days.interval_s + 5),
                    4 * result.goodput_mean_error + rounding);
    }
}

/* ---- failures ---- */

/* Daly 2006, equation 13 and on: what an interval takes where failures come every M on average and restarts fail too.
 */
static double expected_interval(const pc_bad_days *days, double mtbf_s) {
    return mtbf_s * exp(days->restart_s / mtbf_s) * expm1((days->interval_s + days->checkpoint_s) / mtbf_s);
}

static void test_lost_work_is_as_daly_says(void **state) {
    static const double mtbf_s[] = {40, 105, 400, 5000};
    (void)state;
    for (int i = 0; i < 4; i++) {
        example subject;
        make_example(&subject, i == 2 ? unsteady : steady);
        subject.days.mtbf_s = mtbf_s[i];
        subject.days.restart_s = 30;
        double interval_s = expected_interval(&subject.days, mtbf_s[i]);
        subject.days.horizon_s = (i ? 1000 : 200) * interval_s;
        pc_bad_days_result result = run(&subject);
        double slack = i == 2 ? 0.002 : 0; /* the formula is of intervals that all take the same */
        assert_near(result.goodput_mean, 80 / interval_s,
                    4 * result.goodput_mean_error + subject.days.interval_s / subject.days.horizon_s + slack);
        assert_near(result.failures_mean, subject.days.horizon_s / mtbf_s[i],
                    5 * sqrt(subject.days.horizon_s / mtbf_s[i] / SAMPLES));
    }
}

/* So many GPUs fail so many times as often. */
static void test_every_gpu_can_fail(void **state) {
    (void)state;
    example subject;
    make_example(&subject, steady);
    subject.days.mtbf_s = 105 * 64;
    subject.days.horizon_s = 1e5;
    subject.spec.gpus = 64;
    pc_bad_days_result many = run(&subject);
    subject.days.mtbf_s = 105;
    subject.spec.gpus = 1;
    pc_bad_days_result one = run(&subject);
    assert_memory_equal(&many, &one, sizeof many);
}

/* Nodes under repair are the calls of a telephone exchange with spare_nodes + 1 lines: they come at a rate while a line
 * is free, each takes repair_s, and while none is free nothing comes, as none fails while the job waits. Erlang's loss
 * formula says how long all lines are taken, whatever the distribution of the calls' length; here from the balance of
 * the states, n p[n] = a p[n-1]. */
static double waiting_part(double offered, int64_t lines) {
    double state_part = 1, sum = 1;
    for (int64_t n = 1; n <= lines; n++) {
        state_part *= offered / (double)n;
        sum += state_part;
    }
    return state_part / sum;
}

static void test_spares_are_erlangs_lines(void **state) {
    (void)state;
    for (int spares = 0; spares < 4; spares++) {
        example subject;
        make_example(&subject, steady);
        subject.days.mtbf_s = 500;
        subject.days.restart_s = 30;
        subject.days.repair_s = 900;
        subject.days.spare_nodes = spares;
        subject.days.horizon_s = 2e6;
        pc_bad_days_result result = run(&subject);
        double waits = waiting_part(900.0 / 500, spares + 1);
        assert_near(result.goodput_mean, (1 - waits) * 80 / expected_interval(&subject.days, 500),
                    4 * result.goodput_mean_error + 1000 / subject.days.horizon_s);
        assert_near(result.failures_mean, (1 - waits) * subject.days.horizon_s / 500, 10);
    }
}

/* A restart that takes longer than anything lives never ends: nothing lasts. */
static void test_no_progress_at_all(void **state) {
    (void)state;
    example subject;
    make_example(&subject, steady);
    subject.days.mtbf_s = 1;
    subject.days.horizon_s = 5000;
    subject.days.restart_s = 1000;
    pc_bad_days_result result = run(&subject);
    assert_near(result.goodput_mean, 0, 1e-3); /* what was under way before the first failure is lost too */
    assert_near(result.failures_mean, 5000, 5 * sqrt(5000.0 / SAMPLES));
}

static double goodput_of(const example *subject) {
    return run(subject).goodput_mean;
}

static void test_worse_is_worse(void **state) {
    (void)state;
    example subject;
    make_example(&subject, unsteady);
    subject.days.mtbf_s = 2000;
    subject.days.restart_s = 60;
    subject.days.repair_s = 3000;
    subject.days.spare_nodes = 1;
    subject.days.horizon_s = 5e5;
    double *const worse[] = {&subject.days.checkpoint_s, &subject.days.restart_s, &subject.days.repair_s};
    double before = goodput_of(&subject);
    for (int i = 0; i < 3; i++) {
        double kept = *worse[i];
        *worse[i] = 2 * kept;
        assert_true(goodput_of(&subject) < before);
        *worse[i] = kept;
    }
    subject.days.mtbf_s /= 2;
    assert_true(goodput_of(&subject) < before);
    subject.days.mtbf_s *= 2;
    subject.days.spare_nodes = 2;
    assert_true(goodput_of(&subject) > before);
}

/* ---- the best interval ---- */

static double cost(double interval_s, double checkpoint_s, double mtbf_s) {
    return mtbf_s * expm1((interval_s + checkpoint_s) / mtbf_s) / interval_s;
}

/* What Daly's figures 3 to 5 say: checkpoints of 5 minutes, and M of 24 h, 6 h and 15 min. */
static void test_best_interval_as_published(void **state) {
    static const double minutes[][2] = {{24 * 60, 117}, {6 * 60, 57}, {15, 9.1}};
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_near(pc_job_best_interval(300, 60 * minutes[i][0]) / 60, minutes[i][1], i < 2 ? 0.5 : 0.05);
}

/* Near the least of the exact formula, found by a search. */
static void test_best_interval(void **state) {
    static const double checkpoint_s[] = {0.1, 5, 60, 300};
    (void)state;
    for (int i = 0; i < 4; i++) {
        double least = INFINITY, best = pc_job_best_interval(checkpoint_s[i], 3600);
        for (double interval_s = 1; interval_s < 7200; interval_s *= 1.001)
            least = fmin(least, cost(interval_s, checkpoint_s[i], 3600));
        assert_true(cost(best, checkpoint_s[i], 3600) < 1.0001 * least);
    }
    assert_true(pc_job_best_interval(0, 3600) == 0);
    assert_true(pc_job_best_interval(7200, 3600) == 3600); /* Daly's rule where a checkpoint takes twice as long */
}

static void test_best_interval_is_the_default(void **state) {
    (void)state;
    example subject;
    make_example(&subject, steady);
    subject.days.mtbf_s = 3600 * 8;
    subject.days.interval_s = 0;
    subject.days.horizon_s = 1e6;
    subject.spec.gpus = 8;
    assert_near(run(&subject).interval_s, pc_job_best_interval(5, 3600), 5 + 1e-9); /* half an iteration */
}

/* ---- how it is computed ---- */

static void test_threads_do_not_show(void **state) {
    static const int threads[] = {0, 1, 2, 8};
    (void)state;
    example subject;
    make_example(&subject, unsteady);
    subject.days.mtbf_s = 700;
    subject.days.repair_s = 2000;
    subject.days.spare_nodes = 2;
    subject.days.horizon_s = 1e5;
    pc_bad_days_result first = run(&subject);
    for (int i = 0; i < 4; i++) {
        subject.spec.threads = threads[i];
        pc_bad_days_result other = run(&subject);
        assert_memory_equal(&first, &other, sizeof first);
    }
    subject.spec.seed++;
    assert_true(run(&subject).goodput_mean != first.goodput_mean);
}

static void test_too_many_failures(void **state) {
    (void)state;
    example subject;
    pc_error error = {0};
    make_example(&subject, steady);
    subject.days.mtbf_s = 1;
    subject.days.horizon_s = 1e7;
    pc_bad_days_result result = pc_bad_days_none();
    assert_int_equal(pc_job_run(&subject.spec, &result, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "mtbf: a failure every 1 s, and 1e+07 of them a job; expected at most 1000000");
    subject.days.horizon_s = 0;
    assert_int_equal(pc_job_run(&subject.spec, &result, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "horizon: 0 s; expected more than zero");
    assert_true(isnan(result.goodput_mean));
}

static void test_memory_is_short(void **state) {
    (void)state;
    example subject;
    make_example(&subject, steady);
    subject.days.horizon_s = 1000;
    subject.spec.threads = 2;
    for (long i = 0;; i++) {
        pc_bad_days_result result = pc_bad_days_none();
        pc_alloc_fail_after(i);
        pc_code code = pc_job_run(&subject.spec, &result, NULL);
        pc_alloc_fail_after(-1);
        if (!code) {
            assert_int_equal(i, 7); /* three lists, and two a thread */
            break;
        }
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_true(isnan(result.goodput_mean));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints_take_their_part),
        cmocka_unit_test(test_interval_has_whole_iterations),
        cmocka_unit_test(test_end_within_an_interval),
        cmocka_unit_test(test_iterations_alone),
        cmocka_unit_test(test_sums_of_both_sorts),
        cmocka_unit_test(test_lost_work_is_as_daly_says),
        cmocka_unit_test(test_every_gpu_can_fail),
        cmocka_unit_test(test_spares_are_erlangs_lines),
        cmocka_unit_test(test_no_progress_at_all),
        cmocka_unit_test(test_worse_is_worse),
        cmocka_unit_test(test_best_interval_as_published),
        cmocka_unit_test(test_best_interval),
        cmocka_unit_test(test_best_interval_is_the_default),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_too_many_failures),
        cmocka_unit_test(test_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
