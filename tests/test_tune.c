/* Tunings: numbers fitted to whole runs, by algebra and through forecasts; what they change; what the fit is told. */
#include "calib/profile/profile_cost.h"
#include "calib/tune/tune.h"
#include "scenarios/library.h"
#include "scenarios/measured.h"
#include "sweep/tune.h"
#include "tests/folder.h"

#include "engine/alloc.h"
#include "models/cost/roofline.h"

#include <math.h>

static void check_close(double got, double expected, double tolerance) {
    if (!(fabs(got - expected) <= tolerance)) fail_msg("%.9g instead of %.9g", got, expected);
}

/* ---- what is fitted to: runs whose seconds are sums, so that the right answer is known ---- */

enum { MOST = 64 };

/* seconds of row i: a e^(0.1 x0) + b e^(0.3 x1) + c; of a straight one a e^(0.1 x0 + b x1) */
typedef struct example {
    double a[MOST], b[MOST], c[MOST], log_measured[MOST];
    int64_t configuration[MOST], count;
    int fold[MOST];
    bool is_straight, is_deaf; /* deaf: to x1 */
    int asked_alone[MOST];     /* how often the row was asked for among some */
    pc_code failure;
    double before[MOST], after[MOST], unseen[MOST];
} example;

static double log_of(const example *x, int64_t i, const double *moved) {
    double second = x->is_deaf ? 0.0 : moved[1];
    if (x->is_straight) return log(x->a[i]) + 0.1 * moved[0] + x->b[i] * second;
    return log(x->a[i] * exp(0.1 * moved[0]) + x->b[i] * exp(0.3 * second) + x->c[i]);
}

static pc_code forecast(void *self, const double *moved, const bool *wanted, double *log_seconds, pc_error *error) {
    example *x = self;
    if (x->failure) return pc_error_set(error, x->failure, "no forecast");
    for (int64_t i = 0; i < x->count; i++) {
        if (wanted && !wanted[i]) continue;
        log_seconds[i] = log_of(x, i, moved);
        if (wanted) x->asked_alone[i]++;
    }
    return PC_OK;
}

static double uniform(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) {
    double radius = sqrt(-2.0 * log(uniform(state))); /* Box and Muller 1958 */
    return radius * cos(2.0 * 3.14159265358979323846 * uniform(state));
}

/* `count` rows, every one a configuration, measured at `moved` with that scatter. */
static example make_example(int64_t count, const double *moved, double scatter, uint64_t seed) {
    example x = {.count = count};
    for (int64_t i = 0; i < count; i++) {
        x.a[i] = 1.0 + 4.0 * uniform(&seed);
        x.b[i] = 3.0 * uniform(&seed);
        x.c[i] = uniform(&seed);
        x.configuration[i] = i;
        x.fold[i] = (int)(i % PC_TUNE_FOLDS);
        x.log_measured[i] = log_of(&x, i, moved) + scatter * normal(&seed);
    }
    return x;
}

static pc_code try_fit(example *x, int folds, pc_tune_solution *solution, pc_error *error) {
    int64_t configurations = 0;
    for (int64_t i = 0; i < x->count; i++)
        if (x->configuration[i] >= configurations) configurations = x->configuration[i] + 1;
    pc_tune_problem problem = {.numbers = 2,
                               .count = x->count,
                               .log_measured = x->log_measured,
                               .configuration = x->configuration,
                               .configurations = configurations,
                               .fold = x->fold,
                               .folds = folds,
                               .forecast = forecast,
                               .self = x};
    *solution = (pc_tune_solution){.before = x->before, .after = x->after, .unseen = x->unseen};
    return pc_tune_fit(&problem, solution, error);
}

static pc_tune_solution fit(example *x, int folds) {
    pc_tune_solution solution;
    pc_error error = {0};
    if (try_fit(x, folds, &solution, &error)) fail_msg("%s", error.message);
    return solution;
}

/* ---- the fit ---- */

/* Of 20 tables each number lies within two standard errors of the truth as often as chance lets it: of 40 at least 34
 * (19 in 20 do; fewer than 34 of 40 would be one case in 300), and never more than four away. */
static void known_numbers_are_found(void **state) {
    (void)state;
    static const double truth[] = {1.5, -1.0};
    int within = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        example x = make_example(40, truth, 0.02, seed);
        pc_tune_solution found = fit(&x, 0);
        for (int j = 0; j < 2; j++) {
            double away = fabs(found.moved[j] - truth[j]) / found.deviation[j];
            within += away <= 2.0;
            assert_true(away < 4.0 && pc_tune_is_determined(found.deviation[j]));
        }
        if (!(found.scatter > 0.015 && found.scatter < 0.04)) fail_msg("scatter %g", found.scatter);
        assert_true(x.before[0] != x.after[0]);
    }
    assert_true(within >= 34);
}

/* Forecasts of three runs four times too fast are the model's fault, not that of a number known to a tenth. Residuals
 * of log 4 have a scatter of 1.2 or more (five usual ones count along), so z = 3 (0.1) log 4 / 1.2^2 = 0.3 of the
 * prior's width. */
static void three_rows_stay_near_what_is_known(void **state) {
    (void)state;
    static const double nothing[] = {0.0, 0.0};
    example x = make_example(3, nothing, 0.0, 7);
    x.is_deaf = true;
    for (int i = 0; i < 3; i++) x.log_measured[i] += log(4.0);
    pc_tune_solution found = fit(&x, 3);
    assert_true(found.moved[0] > 0.0 && found.moved[0] < 0.5);
}

/* Behind 4.7 scatters a row has no weight at all. */
static void an_outlier_moves_nothing(void **state) {
    (void)state;
    static const double truth[] = {1.0, 0.5};
    example x = make_example(30, truth, 0.02, 3), y = x;
    y.count = 31;
    y.a[30] = 2.0;
    y.b[30] = y.c[30] = 1.0;
    y.configuration[30] = 30;
    y.log_measured[30] = log_of(&y, 30, truth) + log(3.0);
    pc_tune_solution without = fit(&x, 0), with = fit(&y, 0);
    for (int j = 0; j < 2; j++) check_close(with.moved[j], without.moved[j], 0.2 * without.deviation[j]);
}

static void what_the_data_do_not_determine_is_named(void **state) {
    (void)state;
    static const double truth[] = {1.0, 0.0};
    example x = make_example(30, truth, 0.02, 5);
    x.is_deaf = true;
    pc_tune_solution found = fit(&x, 0);
    assert_true(pc_tune_is_determined(found.deviation[0]) && !pc_tune_is_determined(found.deviation[1]));
    check_close(found.deviation[1], 1.0, 1e-12);
    check_close(found.moved[1], 0.0, 1e-12);
    assert_true(pc_tune_is_determined(0.7) && !pc_tune_is_determined(0.72)); /* half of the variance: 0.707 */
}

/* A run that was measured again and again counts once: ten rows of one configuration say no more than their mean. */
static void a_configuration_counts_once(void **state) {
    (void)state;
    static const double truth[] = {1.0, 0.5};
    example once = make_example(20, truth, 0.02, 11), often = once;
    often.count = 29;
    for (int64_t i = 20; i < 29; i++) {
        often.a[i] = once.a[0];
        often.b[i] = once.b[0];
        often.c[i] = once.c[0];
        often.log_measured[i] = once.log_measured[0];
        often.configuration[i] = 0;
    }
    pc_tune_solution a = fit(&once, 0), b = fit(&often, 0);
    for (int j = 0; j < 2; j++) {
        check_close(b.moved[j], a.moved[j], 0.3 * a.deviation[j]); /* the scatter is found of all rows */
        check_close(b.deviation[j], a.deviation[j], 0.3 * a.deviation[j]);
    }
}

/* What is said of a configuration that was left out does not depend on what was measured of it, and rows of one
 * configuration are left out together: with straight forecasts to the tolerance of the descent. */
static void nothing_leaks_into_a_fold(void **state) {
    (void)state;
    static const double truth[] = {1.0, 0.5};
    example x = make_example(24, truth, 0.02, 13), y;
    x.is_straight = true;
    for (int64_t i = 0; i < x.count; i++) {
        x.b[i] = 0.1 * (double)(i % 5);
        x.log_measured[i] = log_of(&x, i, truth) + 0.01 * (double)(i % 3);
    }
    x.configuration[9] = 0; /* as row 0, of fold 0; row 9 would be of fold 9 */
    x.a[9] = x.a[0], x.b[9] = x.b[0], x.log_measured[9] = x.log_measured[0];
    y = x;
    y.log_measured[0] = y.log_measured[9] = x.log_measured[0] + 1.0;
    fit(&x, PC_TUNE_FOLDS);
    fit(&y, PC_TUNE_FOLDS);
    for (int i = 0; i <= 9; i += 9) check_close(y.unseen[i] + y.log_measured[i], x.unseen[i] + x.log_measured[i], 2e-3);
    for (int64_t i = 0; i < x.count; i++) assert_int_equal(x.asked_alone[i], 1);
    check_close(x.unseen[0], x.unseen[9], 0.0);
    assert_true(fabs(y.unseen[0]) > 0.8); /* and it is held against what was measured */
}

static void a_forecast_that_fails_ends_it(void **state) {
    (void)state;
    static const double truth[] = {1.0, 0.5};
    example x = make_example(5, truth, 0.02, 1);
    pc_tune_solution solution;
    pc_error error = {0};
    x.failure = PC_ERROR_INPUT;
    assert_int_equal(try_fit(&x, 5, &solution, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "no forecast");
}

/* ---- what a tuning changes ---- */

static pc_profile tuned_profile(void) {
    pc_profile profile = {.device = {.gpu = "a100-sxm-80gb", .name = "a100-sxm-80gb", .sm_clock_hz = NAN},
                          .tuning = pc_tuning_none()};
    static const double values[PC_TUNED] = {1.25, 1.5, 0.75, 2.0, 1.25, 0.125, 0.5};
    for (int i = 0; i < PC_TUNED; i++) profile.tuning.number[i].value = values[i];
    return profile;
}

static pc_machine machine_named(const char *name) {
    pc_library_machine made;
    assert_int_equal(pc_library_load_machine(name, &made, NULL), PC_OK);
    return made.machine;
}

/* Without kernels of its own the roofline answers, times the kind's factor, and nobody is warned. */
static void kernels_take_their_factor(void **state) {
    (void)state;
    static const struct {
        pc_operation_kind kind;
        double factor;
    } kinds[] = {{PC_OPERATION_GEMM, 1.25},
                 {PC_OPERATION_ATTENTION, 1.5},
                 {PC_OPERATION_NORM, 0.75},
                 {PC_OPERATION_ELEMENTWISE, 0.75},
                 {PC_OPERATION_OPTIMIZER, 0.75}};
    pc_profile profile = tuned_profile();
    pc_machine machine = machine_named("dgx-a100");
    pc_cost_model plain = pc_roofline(&machine.gpu);
    pc_profile_cost *cost;
    char line[256];
    machine.gpu.unfused = 1.5; /* stands beside it */
    assert_int_equal(pc_profile_cost_make(&profile, &machine, &cost, NULL), PC_OK);
    pc_cost_model model = pc_profile_cost_model(cost);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pc_operation x = {.kind = kinds[i].kind,
                          .function = "layer_norm",
                          .batch = 8,
                          .m = 1024,
                          .n = 1024,
                          .k = 128,
                          .flops = INT64_C(1) << 31,
                          .bytes = INT64_C(1) << 26,
                          .launches = 1,
                          .repeat = 1};
        pc_estimate tuned = model.kernel(model.self, &x), untuned = plain.kernel(plain.self, &x);
        check_close(tuned.seconds / untuned.seconds, kinds[i].factor, 1e-12);
        check_close(tuned.standard_error / untuned.standard_error, kinds[i].factor, 1e-12);
    }
    assert_false(pc_profile_cost_warning(cost, 0, line, sizeof line));
    assert_null(pc_profile_cost_machine(cost)->measured);
    pc_profile_cost_free(cost);
}

static void machines_take_the_rest(void **state) {
    (void)state;
    pc_profile profile = tuned_profile();
    pc_machine machine = machine_named("dgx-a100"), tuned = machine;
    pc_tuning_apply(&profile.tuning, &tuned);
    check_close(tuned.gpu.launch_s / machine.gpu.launch_s, 2.0, 1e-12);
    check_close(machine.network.efficiency / tuned.network.efficiency, 1.25, 1e-12);
    check_close(tuned.domain.efficiency, machine.domain.efficiency, 0.0);
    profile.tuning.number[PC_TUNED_NETWORK].value = 0.1; /* ten times as fast: no faster than the link */
    pc_tuning_apply(&profile.tuning, &tuned);
    check_close(tuned.network.efficiency, 1.0, 0.0);
    check_close(pc_tuning_overlap(&profile.tuning, 0.25), 0.375, 1e-12);
    check_close(pc_tuning_overlap(&profile.tuning, 1.0), 1.0, 0.0);
    assert_int_equal(pc_tuning_overhead_ps(&profile.tuning, 7), INT64_C(500000000007));
    profile.tuning.number[PC_TUNED_OVERHEAD].value = -1.0;
    profile.tuning.number[PC_TUNED_OVERLAP].value = -1.0;
    assert_int_equal(pc_tuning_overhead_ps(&profile.tuning, 7), 0);
    check_close(pc_tuning_overlap(&profile.tuning, 0.25), 0.0, 0.0);
    pc_tuning none = {0};
    assert_int_equal(pc_tuning_overhead_ps(&none, 7), 7);
}

/* ---- whole runs ---- */

/* Cuts and batches of models on A100s, so that products, attention, the network and a constant weigh differently. */
static void write_rows(FILE *file, const double *seconds, bool is_backwards) {
    static const char *const models[] = {"gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "llama2-7b"};
    static const int replicas[] = {2, 8, 16, 64};
    fputs("model,system,gpus,gbs,mbs,seq,tp,pp,step_s\n", file);
    for (int n = 0; n < 48; n++) {
        int i = is_backwards ? 47 - n : n, tp = i % 2 ? 4 : 1, dp = replicas[i / 4 % 4], rounds = 1 + i / 16;
        fprintf(file, "%s,dgx-a100,%d,%d,1,%d,%d,1,", models[i % 4], tp * dp, dp * rounds, 512 << (i / 2 % 3), tp);
        if (seconds) fprintf(file, "%.9f", seconds[i]);
        fputs("\n", file);
    }
}

static void write_table(const char *path, const double *seconds, bool is_backwards) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    write_rows(file, seconds, is_backwards);
    fclose(file);
}

static const char *const closed[] = {"setting.network=closed", "setting.memory=10000 GB"};

static pc_tune_result tune(const char *path, const char *base) {
    pc_measured measured;
    pc_tune_result result;
    pc_error error = {0};
    if (pc_measured_read(path, NULL, NULL, &measured, &error)) fail_msg("%s", error.message);
    pc_tune_request request = {
        .score = {.measured = &measured, .sets = closed, .set_count = 2, .jobs = 2}, .base = base, .version = "test"};
    request.is_wanted[PC_TUNED_GEMM] = request.is_wanted[PC_TUNED_MEMORY] = request.is_wanted[PC_TUNED_NETWORK] =
        request.is_wanted[PC_TUNED_OVERHEAD] = true;
    if (pc_tune_run(&request, NULL, &result, &error)) fail_msg("%s", error.message);
    pc_measured_free(&measured);
    return result;
}

/* What the rows take by a profile, each times its own error. */
static void measure(const char *path, const char *profile, double scatter, double *seconds) {
    char set[256];
    const char *sets[] = {closed[0], closed[1], set};
    pc_measured measured;
    pc_score score;
    pc_error error = {0};
    uint64_t seed = 42;
    snprintf(set, sizeof set, "setting.profile=%s", profile);
    if (pc_measured_read(path, NULL, NULL, &measured, &error)) fail_msg("%s", error.message);
    pc_score_request request = {.measured = &measured, .sets = sets, .set_count = 3, .allows_outside = true};
    if (pc_score_run(&request, NULL, &score, &error)) fail_msg("%s", error.message);
    assert_int_equal(score.count, 48);
    for (int i = 0; i < 48; i++) {
        if (!(score.rows[i].forecast_s > 0.0))
            fail_msg("row %d: %s %s", i, score.rows[i].run.missing, score.rows[i].message);
        seconds[i] = score.rows[i].forecast_s * exp(scatter * normal(&seed));
    }
    pc_score_free(&score);
    pc_measured_free(&measured);
}

static void check_found(const pc_tuning *found, pc_tuned which, double truth) {
    const pc_tuned_number *x = &found->number[which];
    assert_true(x->is_fitted && x->is_determined);
    if (!(fabs(x->value - truth) < 3.0 * x->standard_error))
        fail_msg("%s: %g +- %g instead of %g", x->name, x->value, x->standard_error, truth);
}

/* Runs are made with known numbers and a scatter of 1%; the fit finds them, whatever the order of rows, and a profile
 * with what it found forecasts what was measured. */
static void runs_give_their_numbers_back(void **state) {
    const folder *at = *state;
    char profile_path[160];
    double seconds[48];
    pc_profile truth = tuned_profile();
    static const pc_tuned left[] = {PC_TUNED_ATTENTION, PC_TUNED_LAUNCH, PC_TUNED_OVERLAP};
    for (int i = 0; i < 3; i++) truth.tuning.number[left[i]].value = pc_tuned_nothing(left[i]);
    snprintf(profile_path, sizeof profile_path, "%s/truth.h5", at->path);
    assert_int_equal(pc_profile_write(&truth, profile_path, NULL), PC_OK);
    write_table(at->file, NULL, false);
    measure(at->file, profile_path, 0.01, seconds);
    write_table(at->file, seconds, false);
    pc_tune_result result = tune(at->file, NULL);
    assert_int_equal(result.count, 1);
    const pc_tuning *found = &result.groups[0].profile.tuning;
    check_found(found, PC_TUNED_GEMM, 1.25);
    check_found(found, PC_TUNED_MEMORY, 0.75);
    check_found(found, PC_TUNED_NETWORK, 1.25);
    check_found(found, PC_TUNED_OVERHEAD, 0.5);
    assert_false(found->number[PC_TUNED_LAUNCH].is_fitted);
    assert_int_equal(found->rows, 48);
    assert_int_equal(found->folds, 10);
    assert_true(found->before.mean > 0.1 && found->after.mean < 0.015 && found->unseen.mean < 0.015);
    assert_string_equal(found->source, "m.csv");
    assert_string_equal(result.groups[0].profile.device.gpu, "a100-sxm-80gb");
    write_table(at->file, seconds, true);
    pc_tune_result backwards = tune(at->file, NULL);
    for (int i = 0; i < PC_TUNED; i++)
        check_close(backwards.groups[0].profile.tuning.number[i].value, found->number[i].value, 1e-6);
    pc_tune_free(&backwards);
    pc_tune_free(&result);
}

/* Rows that ask for the same are one configuration, whatever else stands in them. */
static void the_same_runs_are_one_configuration(void **state) {
    const folder *at = *state;
    FILE *file = fopen(at->file, "wb");
    assert_non_null(file);
    fputs("model,system,gpus,gbs,mbs,seq,tp,pp,step_s,release\n", file);
    for (int i = 0; i < 6; i++) fprintf(file, "gpt3-1.3b,dgx-a100,8,%d,1,2048,1,1,1.%d,24.0%d\n", 64 << i % 3, i, i);
    fputs("gpt3-1.3b,dgx-a100,8,64,1,2048,1,1,,\n", file);
    fclose(file);
    pc_tune_result result = tune(at->file, NULL);
    const pc_tuning *found = &result.groups[0].profile.tuning;
    assert_int_equal(found->rows, 6);
    assert_int_equal(found->configurations, 3);
    assert_int_equal(found->folds, 3);
    assert_int_equal(found->left_out, 1);
    assert_int_equal(result.groups[0].left[PC_TUNE_NO_TIME], 1);
    pc_tune_free(&result);
}

#define TEST(function) cmocka_unit_test_prestate_setup_teardown(function, make_folder, remove_folder, (void *)"m.csv")

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_numbers_are_found),       cmocka_unit_test(three_rows_stay_near_what_is_known),
        cmocka_unit_test(an_outlier_moves_nothing),      cmocka_unit_test(what_the_data_do_not_determine_is_named),
        cmocka_unit_test(a_configuration_counts_once),   cmocka_unit_test(nothing_leaks_into_a_fold),
        cmocka_unit_test(a_forecast_that_fails_ends_it), cmocka_unit_test(kernels_take_their_factor),
        cmocka_unit_test(machines_take_the_rest),        TEST(runs_give_their_numbers_back),
        TEST(the_same_runs_are_one_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
