/* Measured runs: sums, pairs and groups by algebra. */
#include "tests/score_table.h"

/* A row with what it takes to be summed up; its forecast is `times` what was measured. */
static pc_score_row scored(int64_t row, const char *model, int64_t gpus, int64_t tp, double measured, double times) {
    pc_score_row made = {.row = row, .forecast_gib = NAN};
    snprintf(made.run.model, sizeof made.run.model, "%s", model);
    snprintf(made.run.machine, sizeof made.run.machine, "m");
    made.run.gpus = gpus;
    made.run.global_batch = 64;
    made.run.microbatch_size = made.run.pp = 1;
    made.run.seq_len = 2048;
    made.run.tp = tp;
    made.run.step_s = measured;
    made.run.memory_gib = NAN;
    made.forecast_s = measured * times;
    pc_score_row_judge(&made);
    return made;
}

/* A score of `count` rows over a table of as many, of which the model's and the machine's columns say something. */
static void make_score(const folder *at, const pc_score_row *rows, int64_t count, pc_measured *m, pc_score *score) {
    char text[2048] = "model,system,gpus,kind\n", bad[64] = "";
    for (int64_t i = 0; i < count; i++)
        sprintf(text + strlen(text), "%s,m,%d,%s\n", rows[i].run.model, (int)rows[i].run.gpus, i % 2 ? "odd" : "");
    read_table(at, text, bad, m);
    *score = (pc_score){.measured = m, .rows = pc_alloc((size_t)count, sizeof *rows), .count = count};
    assert_non_null(score->rows);
    for (int64_t i = 0; i < count; i++) score->rows[i] = rows[i];
}

/* Errors 0.1, -0.2, 0.4 and -0.1: sizes have the mean 0.8/4 and the median (0.1 + 0.2)/2, errors the mean 0.2/4. */
static void test_sums(void **state) {
    const double times[] = {1.1, 0.8, 1.4, 0.9};
    const char *by[] = {"kind", "model,KIND"};
    pc_score_row rows[6];
    pc_measured m;
    pc_score score;
    pc_error error = {0};
    for (int i = 0; i < 4; i++) rows[i] = scored(i, "a", 8, 1 << i, 2.0 + i, times[i]);
    rows[1].status = PC_SCORE_OUT_OF_MEMORY;
    rows[4] = scored(4, "b", 8, 1, NAN, 1.0);
    rows[4].status = PC_SCORE_INFEASIBLE;
    rows[5] = scored(5, "b", 8, 1, 1.0, NAN);
    rows[5].status = PC_SCORE_NOT_ASKED;
    strcpy(rows[5].run.missing, "moe;cp");
    make_score(*state, rows, 6, &m, &score);
    if (pc_score_sum_up(&score, by, 2, &error)) fail_msg("%s", error.message);
    const pc_score_sum *all = &score.sums[0];
    assert_int_equal(all->rows, 6);
    assert_int_equal(all->asked, 5);
    assert_int_equal(all->ok, 3);
    assert_int_equal(all->out_of_memory, 1);
    assert_int_equal(all->infeasible, 1);
    assert_int_equal(all->compared, 4);
    check_near(all->mean, 0.2);
    check_near(all->median, 0.15);
    check_near(all->worst, 0.4);
    check_near(all->bias, 0.05);
    assert_int_equal(all->worst_line, 4);
    assert_int_equal(all->memory_compared, 0);
    assert_true(isnan(all->memory_mean));
    /* kinds "" and "odd"; and of models and kinds "a; -", "a; odd", "b; -", "b; odd" */
    assert_int_equal(score.sum_count, 1 + 2 + 4);
    assert_string_equal(score.sums[1].value, "-");
    check_near(score.sums[1].mean, 0.25);
    assert_string_equal(score.sums[2].value, "odd");
    check_near(score.sums[2].bias, -0.15);
    assert_string_equal(score.sums[6].value, "b; odd");
    assert_int_equal(score.missing_count, 2);
    assert_string_equal(score.missing[0].feature, "cp");
    assert_int_equal(score.missing[0].rows, 1);
    assert_int_equal(score.missing[0].alone, 0);
    assert_int_equal(pc_score_check_by(&m, "model,none", &error), PC_ERROR_INPUT);
    free_score(&m, &score);
}

static const pc_score_pair *pair_of(const pc_score *score, const char *thing) {
    for (int64_t i = 0; i < score->pair_count; i++)
        if (strcmp(score->pairs[i].thing, thing) == 0) return &score->pairs[i];
    return NULL;
}

/* tp 1, 2 and 4 of one model: measured 4, 3, 2.99; forecast 4, 3.3, 3.3. So tp 1 to 2 is a ratio of 0.75, forecast
 * 0.825: 10% off, and the faster one is known. tp 2 to 4 are the same within 2%, so that nothing is told; its ratio is
 * off by 3 / 2.99 - 1. A fourth run differs in model and GPUs, and is nobody's pair; a fifth has twice the GPUs and
 * twice the batch of the first, and takes 5 where 4.4 are forecast: 4.4/4 over 5/4 is 0.88. */
static void test_pairs(void **state) {
    pc_score_row rows[] = {scored(0, "a", 8, 1, 4.0, 1.0), scored(1, "a", 8, 2, 3.0, 1.1),
                           scored(2, "a", 8, 4, 2.99, 3.3 / 2.99), scored(3, "b", 16, 1, 1.0, 1.0),
                           scored(4, "a", 16, 1, 5.0, 0.88)};
    pc_measured m;
    pc_score score;
    rows[4].run.global_batch *= 2;
    make_score(*state, rows, 5, &m, &score);
    assert_int_equal(pc_score_sum_up(&score, NULL, 0, NULL), PC_OK);
    const pc_score_pair *tp = pair_of(&score, "tp"), *scale = pair_of(&score, "gpus and gbs");
    assert_int_equal(score.pair_count, 2);
    assert_int_equal(tp->pairs, 2);
    assert_int_equal(tp->told, 1);
    assert_int_equal(tp->right, 1);
    check_near(tp->worst, 0.1);
    assert_int_equal(tp->worst_first_line, 2);
    assert_int_equal(tp->worst_second_line, 3);
    check_near(tp->mean, 0.5 * (0.1 + 3.0 / 2.99 - 1.0));
    assert_int_equal(scale->pairs, 1);
    assert_int_equal(scale->right, 1);
    check_near(scale->worst, 0.88 - 1.0);
    free_score(&m, &score);
}

/* Four cuts, measured 1, 2, 3, 4; forecast 2, 1, 3, 4: ranks differ by 1 twice, so Spearman's is 1 - 6 * 2 / (4 * 15);
 * the one chosen took 2, where 1 was possible. One cut was measured twice, 3.5 and 2.5, which counts once, as 3. */
static void test_groups(void **state) {
    pc_score_row rows[] = {scored(0, "a", 8, 1, 1.0, 2.0),       scored(1, "a", 8, 2, 2.0, 0.5),
                           scored(2, "a", 8, 4, 3.5, 3.0 / 3.5), scored(3, "a", 8, 8, 4.0, 1.0),
                           scored(4, "a", 8, 4, 2.5, 3.0 / 2.5), scored(5, "b", 8, 4, 1.0, 1.0),
                           scored(6, "c", 8, 1, 1.0, 1.0),       scored(7, "c", 8, 2, 2.0, 1.0)};
    pc_measured m;
    pc_score score;
    make_score(*state, rows, 8, &m, &score);
    assert_int_equal(pc_score_sum_up(&score, NULL, 0, NULL), PC_OK);
    assert_int_equal(score.group_count, 2);
    const pc_score_group *first = &score.groups[0], *second = &score.groups[1];
    assert_string_equal(first->model, "a");
    assert_int_equal(first->configurations, 4);
    check_near(first->rank_correlation, 0.8);
    check_near(first->regret, 1.0);
    assert_int_equal(first->best_line, 2);
    assert_int_equal(first->chosen_line, 3);
    assert_string_equal(second->model, "c");
    assert_true(isnan(second->rank_correlation) && second->regret == 0.0);
    free_score(&m, &score);
}

int main(void) {
    static char name[] = "m.csv";
#define IN_FOLDER(test) cmocka_unit_test_prestate_setup_teardown(test, make_folder, remove_folder, name)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_sums),
        IN_FOLDER(test_pairs),
        IN_FOLDER(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
