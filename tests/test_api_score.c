/* The library as others see it: scores of measured runs, pictures, whole columns of text, the bound of a schedule, and
 * who stops a plan. What the command says of the same is compared in tests/python/. */
#include "tests/api_example.h"

#include <math.h>
#include <stdlib.h>

static const char measured[] = "model,system,gpus,gbs,mbs,seq,tp,pp,step_s,note\n"
                               "gpt3-175b,dgx-h100,128,256,1,2048,4,8,20.0,\"first, here\"\n"
                               "gpt3-175b,dgx-h100,256,512,1,2048,4,8,21.0,\n"
                               "nobody,dgx-h100,8,8,1,2048,1,1,1.0,third\n"
                               "gpt3-175b,dgx-h100,128\n";

/* ---- scores ---- */

typedef struct onlooker {
    int warnings, progress;
} onlooker;

static void note_warning(void *context, const char *text) {
    assert_non_null(strstr(text, ":5"));
    ((onlooker *)context)->warnings++;
}

static void note_progress(void *context, int64_t done, int64_t to_do) {
    assert_true(done <= to_do);
    ((onlooker *)context)->progress++;
}

static int stop_at_once(void *context) {
    (void)context;
    return 1;
}

static pipecast_score *load_measured(const folder *at, onlooker *looks) {
    pipecast_error error = {0};
    pipecast_score *score = NULL;
    FILE *file = fopen(at->file, "w");
    assert_non_null(file);
    fputs(measured, file);
    assert_int_equal(fclose(file), 0);
    assert_ok(pipecast_score_load(at->file, note_warning, looks, &score, &error), &error);
    return score;
}

static pipecast_results *table_of(const pipecast_score *score, int part) {
    pipecast_error error = {0};
    pipecast_results *table = NULL;
    assert_ok(pipecast_score_table(score, part, &table, &error), &error);
    return table;
}

static void assert_text(const pipecast_results *table, int64_t row, const char *name, const char *expected) {
    char text[512];
    pipecast_results_text(table, row, pipecast_results_find(table, name), text, sizeof text);
    assert_string_equal(text, expected);
}

/* Three rows can be read, two be asked; the error is the forecast over what was measured, less one. Tables live on. */
static void test_score(void **state) {
    static const char *const by[] = {"note"};
    pipecast_error error = {0};
    onlooker looks = {0, 0};
    pipecast_score *score = load_measured(*state, &looks);
    assert_int_equal(looks.warnings, 1);
    pipecast_score_watch(score, note_progress, NULL, NULL, &looks);
    assert_ok(pipecast_score_run(score, by, 1, NULL, 0, 0, 1, &error), &error);
    assert_int_equal(looks.progress, 2);
    pipecast_results *rows = table_of(score, PIPECAST_SCORE_ROWS), *sums = table_of(score, PIPECAST_SCORE_SUMS);
    pipecast_results *missing = table_of(score, PIPECAST_SCORE_MISSING);
    pipecast_score_free(score);
    assert_int_equal(pipecast_results_row_count(rows), 3);
    assert_text(rows, 0, "note", "first, here");
    assert_text(rows, 1, "note", "");
    assert_text(rows, 0, "status", "ok");
    assert_text(rows, 2, "status", "not_asked");
    assert_true(isnan(real_at(rows, 2, "forecast_s")));
    assert_true(fabs(real_at(rows, 0, "error") - (real_at(rows, 0, "forecast_s") / 20.0 - 1.0)) < 1e-12);
    assert_int_equal(pipecast_results_row_count(sums), 4); /* all, and three notes */
    assert_true(fabs(real_at(sums, 0, "mean") -
                     (fabs(real_at(rows, 0, "error")) + fabs(real_at(rows, 1, "error"))) / 2.0) < 1e-12);
    assert_int_equal(pipecast_results_row_count(missing), 1);
    pipecast_results_free(rows);
    pipecast_results_free(sums);
    pipecast_results_free(missing);
}

static void test_bad_scores(void **state) {
    const folder *at = *state;
    static const char *const by[] = {"no_such_column"}, *const sets[] = {"setting.no_such_key=1"};
    pipecast_error error = {0};
    pipecast_score *score = NULL;
    pipecast_results *table = NULL;
    assert_int_equal(pipecast_score_load(at->file, NULL, NULL, &score, &error), PIPECAST_ERROR_INPUT);
    assert_null(score);
    score = load_measured(at, &(onlooker){0, 0});
    assert_int_equal(pipecast_score_table(score, PIPECAST_SCORE_ROWS, &table, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_score_run(score, by, 1, NULL, 0, 0, 1, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "no_such_column"));
    pipecast_score_watch(score, NULL, NULL, NULL, NULL);
    assert_int_equal(pipecast_score_run(score, NULL, 0, sets, 1, 0, 1, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "no_such_key"));
    assert_int_equal(pipecast_score_run(score, NULL, 0, NULL, 0, 2, 1, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_score_run(score, NULL, 0, NULL, 0, 0, -1, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_score_set_conditions(score, "no/such.csv", &error), PIPECAST_ERROR_INPUT);
    pipecast_score_watch(score, NULL, stop_at_once, NULL, NULL);
    assert_int_equal(pipecast_score_run(score, NULL, 0, NULL, 0, 0, 1, &error), PIPECAST_ERROR_STOPPED);
    pipecast_score_watch(score, NULL, NULL, NULL, NULL);
    assert_ok(pipecast_score_run(score, NULL, 0, NULL, 0, 0, 1, &error), &error);
    assert_int_equal(pipecast_score_table(score, 5, &table, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_score_table(score, -1, &table, &error), PIPECAST_ERROR_INPUT);
    assert_null(table);
    pipecast_score_free(score);
    pipecast_score_free(NULL);
}

/* ---- texts ---- */

/* A column at once is its cells, each with its zero; what does not fit is counted all the same. */
static void test_texts(void **state) {
    (void)state;
    pipecast_results *runs = run_text(six, NULL);
    int column = pipecast_results_find(runs, "schedule");
    size_t size = pipecast_results_texts(runs, column, NULL, 0);
    char *text = malloc(size);
    assert_non_null(text);
    assert_int_equal(size, 6 * sizeof "1f1b");
    assert_int_equal(pipecast_results_texts(runs, column, text, size), size);
    for (int i = 0; i < 6; i++) assert_string_equal(text + (size_t)i * sizeof "1f1b", "1f1b");
    memset(text, 'x', size);
    assert_int_equal(pipecast_results_texts(runs, column, text, 7), size);
    assert_memory_equal(text, "1f1b\0xx", 7);
    assert_int_equal(pipecast_results_texts(runs, -1, text, size), 0);
    free(text);
    pipecast_results_free(runs);
}

/* ---- pictures ---- */

static void test_bad_pictures(void **state) {
    const folder *at = *state;
    static const char *const none[] = {"x=gpus"}, *const unknown[] = {"x=gpus", "y=mfu", "shape=round"},
                             *const grey[] = {"x=gpus", "y=mfu", "dark=grey"};
    static const char *const no_value[] = {"x"}, *const column[] = {"x=microbatches", "y=no_such_column"};
    static const char *const good[] = {"x=microbatches", "y=iteration_s"};
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    pipecast_results *runs = run_text(six, NULL), *list = NULL;
    assert_int_equal(pipecast_results_draw(runs, none, 1, at->file, &error), PIPECAST_ERROR_INPUT);
    assert_string_equal(error.key, "y");
    assert_int_equal(pipecast_results_draw(runs, unknown, 3, at->file, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_results_draw(runs, grey, 3, at->file, &error), PIPECAST_ERROR_INPUT);
    assert_string_equal(error.key, "dark");
    assert_int_equal(pipecast_results_draw(runs, no_value, 1, at->file, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_results_draw(runs, column, 2, at->file, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_results_draw(runs, good, 2, "picture.txt", &error), PIPECAST_ERROR_INPUT);
    assert_ok(pipecast_list(PIPECAST_SCHEDULES, &list, &error), &error);
    assert_int_equal(pipecast_results_draw(list, good, 2, at->file, &error), PIPECAST_ERROR_INPUT);
    assert_ok(pipecast_results_replay(runs, 0, &replay, &error), &error);
    assert_int_equal(pipecast_replay_draw(replay, NULL, "picture.txt", &error), PIPECAST_ERROR_INPUT);
    static const struct {
        const char *option, *key; /* key: of the error; "": none */
    } views[] = {{"stages=0:99", "stages"}, {"microbatches=1:0", "microbatches"},
                 {"time=2:1", "time"},      {"dark=1", "dark"},
                 {"x_range=0:1", ""},       {"title", ""}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        assert_int_equal(pipecast_replay_draw_with(replay, &views[i].option, 1, at->file, &error),
                         PIPECAST_ERROR_INPUT);
        assert_string_equal(error.key, views[i].key);
    }
    static const char *const ranges[][4] = {{"x=microbatches", "y=iteration_s", "y_range=1:,2:", "log=y"},
                                            {"x=microbatches", "y=iteration_s", "y_label=a", "y_label=b"},
                                            {"x=microbatches", "y=iteration_s", "x_range=1", "log=y"},
                                            {"x=microbatches", "y=iteration_s", "x_range=1:", "log=z"}};
    static const char *const keys[] = {"y_range", "y_label", "x_range", "log"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pipecast_results_draw(runs, ranges[i], 4, at->file, &error), PIPECAST_ERROR_INPUT);
        assert_string_equal(error.key, keys[i]);
    }
    pipecast_replay_free(replay);
    pipecast_results_free(list);
    pipecast_results_free(runs);
}

/* ---- the bound ---- */

/* 1F1B of p = 4 and m = 8 is (8 + 3) * 3 long. Split backward passes would be shorter, but it has none: a bound is at
 * most its span, and at least the work of a device, 8 * 3, and the way of one microbatch through the others, 3 F. */
static void test_bound(void **state) {
    (void)state;
    double bound = 0.0;
    pipecast_costs costs = PIPECAST_COSTS;
    pipecast_error error = {0};
    pipecast_schedule *schedule = NULL;
    assert_ok(pipecast_schedule_generate("1f1b", 4, 8, 0, NULL, NULL, NULL, &schedule, &error), &error);
    assert_ok(pipecast_schedule_bound(schedule, NULL, &bound, &error), &error);
    assert_true(bound >= 24.0 && bound <= 33.0 + 1e-9);
    costs.f = -1.0;
    assert_int_equal(pipecast_schedule_bound(schedule, &costs, &bound, &error), PIPECAST_ERROR_INPUT);
    pipecast_schedule_free(schedule);
}

/* ---- plans ---- */

static void test_stopped_plan(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.gpus=8",
                                       "setting.global_batch=16"};
    pipecast_error error = {0};
    pipecast_plan *plan = NULL;
    pipecast_results *plans = NULL;
    assert_ok(pipecast_plan_load(NULL, NULL, sets, 4, 0, &plan, &error), &error);
    pipecast_plan_watch(plan, stop_at_once, NULL);
    assert_int_equal(pipecast_plan_run(plan, 2, 0, NULL, NULL, &plans, &error), PIPECAST_ERROR_STOPPED);
    assert_int_equal(pipecast_plan_each(plan, "pp", 2, NULL, NULL, &plans, &error), PIPECAST_ERROR_STOPPED);
    assert_null(plans);
    pipecast_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(test_score, "measured.csv"),
        TEST_IN_FOLDER(test_bad_scores, "measured.csv"),
        cmocka_unit_test(test_texts),
        TEST_IN_FOLDER(test_bad_pictures, "picture.svg"),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_stopped_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
