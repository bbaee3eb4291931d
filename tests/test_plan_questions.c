/* What is asked of a plan beside its best ones: each cell of a map is a search of its own, a goal is kept by the fewest
 * GPUs, and changes of plan 1 are runs with that number changed. */
#include "scenarios/plan_axes.h"
#include "sweep/plan_questions.h"
#include "tests/scenario_files.h"

#include <inttypes.h>
#include <math.h>

static const char tiny[] =
    "scenario: tiny\n"
    "setting:\n"
    "  model: {name: tiny, layers: 12, hidden: 512, heads: 8, kv_heads: 2, seq_len: 256, vocab: 1000}\n"
    "  machine: dgx-a100\n"
    "  gpus: 12\n"
    "  global_batch: 24\n"
    "  tokens: 10B\n"
    "plan:\n"
    "  schedule: [1f1b, 1f1b-interleaved]\n"
    "  recompute: [none]\n"
    "  offload: [none]\n"
    "  price: [2/h]\n";

/* A scenario, its costs (rooflines), and who asks. */
typedef struct example {
    pc_plan_scenario *scenario;
    pc_run_profiles profiles;
    pc_plan_asker asker;
} example;

static example open_example(const char *const *sets, int count) {
    example made = {.scenario = NULL};
    pc_error error;
    write_temporary(tiny, strlen(tiny));
    if (pc_plan_scenario_load(temporary, sets, count, &made.scenario, &error)) fail_msg("%s", error.message);
    return made;
}

static const pc_plan_asker *asker_of(example *x) {
    x->asker = (pc_plan_asker){
        .scenario = x->scenario, .request = pc_plan_scenario_request(x->scenario), .profiles = &x->profiles};
    x->asker.request.threads = 1;
    return &x->asker;
}

static void close_example(example *x) {
    pc_run_profiles_close(&x->profiles);
    pc_plan_scenario_free(x->scenario);
}

/* The best plan's time with these values fixed, which is another way to ask for the cell; NaN if there is none. */
static double best_with(const char *first, const char *second) {
    const char *sets[] = {first, second};
    example x = open_example(sets, 2);
    pc_plan_request request = pc_plan_scenario_request(x.scenario);
    pc_plan_answer answer;
    pc_error error;
    request.top = request.threads = 1;
    if (pc_plan_run(pc_plan_scenario_space(x.scenario), &request, &answer, &error)) fail_msg("%s", error.message);
    double best = answer.count > 0 ? answer.found[0].iteration_s : NAN;
    pc_plan_answer_free(&answer);
    close_example(&x);
    return best;
}

/* tp 8 has no half of the 2 heads of keys, but four ranks share each; tp x pp must divide 12: 8 does not, nor 2 x 12.
 */
static void test_map(void **state) {
    (void)state;
    static const char *const sets[] = {"plan.tp=[1, 2, 8]", "plan.pp=[1, 3, 12]"};
    example x = open_example(sets, 2);
    pc_plan_axis axes[PC_PLAN_AXES_MOST];
    pc_plan_cells cells;
    pc_error error;
    int count;
    assert_int_equal(pc_plan_axes_parse(x.scenario, "tp,pp", axes, &count, &error), PC_OK);
    assert_int_equal(count, 2);
    if (pc_plan_ask_each(asker_of(&x), axes, 2, PC_PLAN_PART_MAP, &cells, &error)) fail_msg("%s", error.message);
    assert_int_equal(cells.count, 9);
    for (int i = 0; i < 9; i++) {
        char tp[32], pp[32], what[32];
        const pc_plan_row *row = &cells.rows[i];
        snprintf(tp, sizeof tp, "plan.tp=[%s]", cells.value[0][i / 3]);
        snprintf(pp, sizeof pp, "plan.pp=[%s]", cells.value[1][i % 3]);
        snprintf(what, sizeof what, "tp %s, pp %s", cells.value[0][i / 3], cells.value[1][i % 3]);
        double expected = best_with(tp, pp);
        assert_string_equal(row->what, what);
        assert_int_equal(row->lacks_plan, isnan(expected));
        if (!row->lacks_plan) assert_true(row->row.iteration_s == expected);
        if (row->lacks_plan) assert_int_equal(pc_plan_cell_letter(row), 'G');
        if (row->lacks_plan) assert_true(row->row.status == PC_RUN_INFEASIBLE && row->row.message[0]);
    }
    assert_true(cells.rows[5].lacks_plan && cells.rows[6].lacks_plan && !cells.rows[4].lacks_plan);
    pc_plan_cells_free(&cells);
    close_example(&x);
}

/* In 1 MiB nothing fits, and the row says what the least would be. */
static void test_memory(void **state) {
    (void)state;
    static const char *const sets[] = {"plan.tp=[1]", "setting.memory=1 MiB"};
    example x = open_example(sets, 2);
    pc_plan_axis axis = pc_plan_axis_of(x.scenario, "tp");
    pc_plan_cells cells;
    pc_error error;
    if (pc_plan_ask_each(asker_of(&x), &axis, 1, PC_PLAN_PART_EACH, &cells, &error)) fail_msg("%s", error.message);
    assert_int_equal(cells.count, 1);
    assert_int_equal(pc_plan_cell_letter(&cells.rows[0]), 'M');
    assert_int_equal(cells.rows[0].row.status, PC_RUN_OUT_OF_MEMORY);
    assert_true(cells.rows[0].row.memory_gib_max > 1.0 / 1024);
    pc_plan_cells_free(&cells);
    close_example(&x);
}

/* Days of the 10B tokens on so many GPUs, by a search of its own; infinity if there is no plan. */
static double days_on(int64_t gpus, const char *const *more, int count) {
    char set[64];
    const char *sets[8] = {set};
    snprintf(set, sizeof set, "plan.gpus=[%" PRId64 "]", gpus);
    for (int i = 0; i < count; i++) sets[i + 1] = more[i];
    example x = open_example(sets, count + 1);
    pc_plan_request request = pc_plan_scenario_request(x.scenario);
    pc_plan_answer answer;
    pc_error error;
    request.top = request.threads = 1;
    if (pc_plan_run(pc_plan_scenario_space(x.scenario), &request, &answer, &error)) fail_msg("%s", error.message);
    double days = answer.count > 0 ? 10e9 / (answer.found[0].sequences_per_s * 256) / 86400 : INFINITY;
    pc_plan_answer_free(&answer);
    close_example(&x);
    return days;
}

enum { GPUS_MOST = 24 };

static bool keeps(const double days[GPUS_MOST + 1], int gpus, const pc_plan_goal *goal) {
    double cost = days[gpus] * 24 * gpus * 2; /* 2 an hour and GPU */
    return isfinite(days[gpus]) && !(goal->deadline_s > 0 && days[gpus] * 86400 > goal->deadline_s) &&
           !(goal->budget > 0 && cost > goal->budget);
}

/* Of the listed numbers the first that keeps to the goal; then the first of those between it and the listed number
 * before that has a plan: nodes of 8, within a node all. 0: none. */
static int fewest_by_scan(const double days[GPUS_MOST + 1], const pc_plan_goal *goal) {
    static const int listed[] = {4, 8, 12, 24};
    int before = 0;
    for (int i = 0; i < 4; i++) {
        int number = listed[i], unit = number > 8 ? 8 : 1;
        if (!keeps(days, number, goal)) {
            if (before == 0 || isfinite(days[number])) before = number;
            continue;
        }
        for (int gpus = before + 1; before > 0 && gpus < number; gpus++)
            if (gpus % unit == 0 && keeps(days, gpus, goal)) return gpus;
        return number;
    }
    return 0;
}

/* Every number of GPUs has its days, by a search of its own, and its cost. With goals just within and just beyond each
 * the number that is found is that of a scan. 5, 7, 11 and the like have no plan: of 24 sequences and 12 layers they
 * divide neither. */
static void test_goal(void **state) {
    (void)state;
    static const char *const sets[] = {"plan.gpus=[24, 4, 12, 8]", "plan.deadline=1d"};
    example x = open_example(sets, 2);
    double days[GPUS_MOST + 1];
    pc_plan_cells tried;
    pc_error error;
    int between = 0, none = 0;
    for (int gpus = 1; gpus <= GPUS_MOST; gpus++) days[gpus] = days_on(gpus, NULL, 0);
    for (int gpus = 4; gpus <= GPUS_MOST; gpus++) {
        double seconds = days[gpus] * 86400, cost = days[gpus] * 24 * gpus * 2, near = 1 + 1e-6;
        const pc_plan_goal goals[] = {{.deadline_s = seconds * near},
                                      {.deadline_s = seconds / near},
                                      {.budget = cost * near},
                                      {.deadline_s = seconds * near, .budget = cost * near},
                                      {.deadline_s = seconds * near, .budget = cost / 2}};
        for (size_t k = 0; isfinite(seconds) && k < sizeof goals / sizeof *goals; k++) {
            int expected = fewest_by_scan(days, &goals[k]);
            if (pc_plan_ask_goal(asker_of(&x), &goals[k], &tried, &error)) fail_msg("%s", error.message);
            int64_t found = pc_plan_cells_least(&tried, &goals[k]);
            if (found >= 0) assert_int_equal(tried.rows[found].row.gpus, expected);
            if (found >= 0) assert_true(tried.tried.is_every);
            if (found < 0) assert_int_equal(expected, 0);
            for (int64_t i = 1; i < tried.count; i++) assert_true(tried.rows[i].row.gpus > tried.rows[i - 1].row.gpus);
            between += expected == 6 || expected == 16;
            none += expected == 0;
            pc_plan_cells_free(&tried);
        }
    }
    assert_true(between > 0 && none > 0);
    close_example(&x);
}

/* Where replicas bring their own batches more GPUs are faster, and steps find the fewest of very many: it keeps to the
 * goal, and a node less does not. Between 8 and 4,096 there are 510 nodes. */
static void test_goal_in_steps(void **state) {
    (void)state;
    enum { FIXED = 3 };
    static const char *const sets[] = {"plan.batch_per=replica", "plan.pp=[1]", "plan.tp=[1, 2]", "plan.gpus=[8, 4096]",
                                       "plan.deadline=1d"};
    static const int64_t wanted[] = {16, 1000, 2056, 4088, 4096};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        example x = open_example(sets, FIXED + 2);
        const pc_plan_goal goal = {.deadline_s = days_on(wanted[i], sets, FIXED) * 86400 * (1 + 1e-6)};
        pc_plan_cells tried;
        pc_error error;
        if (pc_plan_ask_goal(asker_of(&x), &goal, &tried, &error)) fail_msg("%s", error.message);
        int64_t found = pc_plan_cells_least(&tried, &goal);
        assert_true(found >= 0 && tried.rows[found].row.gpus <= wanted[i]);
        assert_true(tried.rows[found].row.training_days * 86400 <= goal.deadline_s);
        assert_true(days_on(tried.rows[found].row.gpus - 8, sets, FIXED) * 86400 > goal.deadline_s);
        assert_false(tried.tried.is_every);
        assert_true(tried.tried.count < 100);
        pc_plan_cells_free(&tried);
        close_example(&x);
    }
}

/* Of each dp the batch is that of a replica times dp, as if both had been given. */
static void test_batch_of_replicas(void **state) {
    (void)state;
    static const char *const sets[] = {"plan.global_batch=[2, 4]", "plan.batch_per=replica"};
    example x = open_example(sets, 2);
    pc_plan_request request = pc_plan_scenario_request(x.scenario);
    pc_plan_answer answer;
    pc_error error;
    double best = 0.0;
    request.threads = 1;
    if (pc_plan_run(pc_plan_scenario_space(x.scenario), &request, &answer, &error)) fail_msg("%s", error.message);
    for (int64_t i = 0; i < answer.count; i++) {
        const pc_plan_choice *choice = &answer.found[i].choice;
        assert_true(choice->global_batch == 2 * choice->dp || choice->global_batch == 4 * choice->dp);
    }
    for (int dp = 1; dp <= 12; dp++) {
        char of_dp[32], batch[64];
        snprintf(of_dp, sizeof of_dp, "plan.dp=[%d]", dp);
        for (int each = 2; 12 % dp == 0 && each <= 4; each += 2) {
            snprintf(batch, sizeof batch, "plan.global_batch=[%d]", each * dp);
            double seconds = best_with(of_dp, batch);
            if (!isnan(seconds)) best = fmax(best, each * dp / seconds);
        }
    }
    assert_true(answer.count > 0 && fabs(answer.found[0].sequences_per_s / best - 1) < 1e-12);
    pc_plan_answer_free(&answer);
    close_example(&x);
}

static pc_plan_row best_row(example *x) {
    pc_plan_request request = pc_plan_scenario_request(x->scenario);
    pc_plan_answer answer;
    pc_plan_row row = {.part = PC_PLAN_PART_PLANS};
    pc_run_detail detail;
    pc_run_spec spec;
    pc_run_labels labels;
    pc_error error;
    request.top = request.threads = 1;
    if (pc_plan_run(pc_plan_scenario_space(x->scenario), &request, &answer, &error)) fail_msg("%s", error.message);
    row.found = answer.found[0];
    if (pc_plan_scenario_run_spec(x->scenario, &row.found.choice, 1, &spec, &labels, &error))
        fail_msg("%s", error.message);
    if (pc_plan_row_run(&spec, &labels, &row, &detail, &error)) fail_msg("%s", error.message);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    pc_plan_answer_free(&answer);
    return row;
}

/* The plan's run on a machine whose matrix units do 80%. */
static double slower_run(example *x, const pc_plan_choice *choice) {
    pc_run_spec spec;
    pc_run_labels labels;
    pc_iteration iteration;
    pc_error error;
    if (pc_plan_scenario_run_spec(x->scenario, choice, 1, &spec, &labels, &error)) fail_msg("%s", error.message);
    spec.iteration.machine.gpu.matrix_flops_per_s *= 0.8;
    if (pc_iteration_run(&spec.iteration, NULL, false, &iteration, &error)) fail_msg("%s", error.message);
    double seconds = iteration.iteration_s;
    pc_iteration_free(&iteration);
    pc_run_spec_free(&spec);
    return seconds;
}

/* More of a rate, and less of a latency, is never slower; the best plan of the whole space then is no slower than plan
 * 1 then; the largest effect stands first. */
static void test_changes(void **state) {
    (void)state;
    example x = open_example((const char *const[]){"plan.tp=[1, 2]"}, 1);
    pc_plan_row best = best_row(&x);
    pc_plan_cells cells;
    pc_error error;
    double before = INFINITY;
    bool has_rate = false;
    if (pc_plan_ask_changes(asker_of(&x), &best, true, &cells, &error)) fail_msg("%s", error.message);
    assert_true(cells.count > 0 && cells.count % 4 == 0);
    for (int64_t i = 0; i < cells.count; i += 4) {
        const pc_plan_row *rows = &cells.rows[i];
        double less = pc_plan_row_change(PC_PLAN_THROUGHPUT, &best, &rows[0]);
        double more = pc_plan_row_change(PC_PLAN_THROUGHPUT, &best, &rows[1]);
        bool is_time = strcmp(rows->what, "latencies") == 0 || strcmp(rows->what, "launch times") == 0;
        bool is_batch = strncmp(rows->what, "batch", 5) == 0;
        double effect = isnan(less) || isnan(more) ? INFINITY : fmax(fabs(less), fabs(more));
        assert_true(effect <= before);
        before = effect;
        if (!is_batch && isfinite(effect)) assert_true(is_time ? less <= 0 && more >= 0 : less >= 0 && more <= 0);
        for (int k = 0; k < 2; k++) {
            double as_it_is = pc_plan_row_change(PC_PLAN_THROUGHPUT, &best, &rows[k]);
            double anew = pc_plan_row_change(PC_PLAN_THROUGHPUT, &best, &rows[k + 2]);
            if (!isnan(as_it_is)) assert_true(anew <= as_it_is + 1e-12);
        }
        if (strcmp(rows->what, "GPU matrix rate") != 0) continue;
        has_rate = true;
        assert_true(rows[0].row.iteration_s == slower_run(&x, &best.found.choice));
    }
    assert_true(has_rate);
    pc_plan_cells_free(&cells);
    close_example(&x);
}

/* Of two ranks the first, which cannot reach the other. */
static pc_code share_nothing(void *self, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                             pc_error *error) {
    (void)code, (void)bytes, (void)size, (void)all, (void)all_size;
    ++*(int *)self;
    return pc_error_set(error, PC_ERROR_STOPPED, "alone");
}

/* Every search behind a question is one of all ranks: none ends without the others. */
static void test_questions_are_of_all_ranks(void **state) {
    (void)state;
    static const char *const sets[] = {"plan.tp=[1, 2]", "plan.gpus=[4, 8]", "plan.deadline=1d"};
    example x = open_example(sets, 3);
    int asked = 0;
    pc_plan_axis axis = pc_plan_axis_of(x.scenario, "tp");
    const pc_plan_goal goal = {.deadline_s = 86400};
    pc_plan_row best = best_row(&x);
    pc_plan_asker asker = *asker_of(&x);
    pc_plan_cells cells;
    pc_error error;
    asker.request.crew = (pc_plan_crew){.rank = 0, .size = 2, .share = share_nothing, .self = &asked};
    assert_int_equal(pc_plan_ask_each(&asker, &axis, 1, PC_PLAN_PART_MAP, &cells, &error), PC_ERROR_STOPPED);
    assert_int_equal(asked, 1);
    assert_int_equal(pc_plan_ask_goal(&asker, &goal, &cells, &error), PC_ERROR_STOPPED);
    assert_int_equal(asked, 2);
    assert_int_equal(pc_plan_ask_changes(&asker, &best, true, &cells, &error), PC_ERROR_STOPPED);
    assert_int_equal(asked, 3);
    close_example(&x);
}

static void test_axes(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {{"", ": no such axis; expected one or two of machine, "},
               {"tp,", ": no such axis"},
               {"rank_order", "rank_order: no such axis"},
               {"tp,pp,cp", "cp: a third axis; expected two at most"},
               {"tp,tp", "tp: stands twice; expected two axes that differ"},
               {"dp", "dp: follows from the other choices; expected a list of plan.dp"},
               {"precision,machine", "precision: of several machines; expected machine,precision, or one machine"}};
    example x = open_example((const char *const[]){"plan.machine=[dgx-a100, dgx-h100]"}, 1);
    pc_plan_axis axes[PC_PLAN_AXES_MOST];
    pc_error error;
    int count;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (pc_plan_axes_parse(x.scenario, bad[i].text, axes, &count, &error) != PC_ERROR_INPUT)
            fail_msg("%s was taken", bad[i].text);
        if (!strstr(error.message, bad[i].message)) fail_msg("%s: %s", bad[i].text, error.message);
    }
    assert_int_equal(pc_plan_axes_parse(x.scenario, "machine,precision", axes, &count, &error), PC_OK);
    assert_int_equal(axes[0].count, 2);
    close_example(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_goal),
        cmocka_unit_test(test_goal_in_steps),
        cmocka_unit_test(test_batch_of_replicas),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_questions_are_of_all_ranks),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
