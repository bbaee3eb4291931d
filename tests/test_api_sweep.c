/* The library as others see it: sweeps, plans, and several threads at once. */
#include "tests/api_example.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- sweeps ---- */

typedef struct told {
    int64_t first_to_do, calls, last;
    _Atomic int64_t asked;
    int64_t stop_at; /* asked so often: stop; 0: never */
    int warnings;
} told;

static void look_on(void *context, int64_t done, int64_t to_do) {
    told *t = context;
    if (t->calls++ == 0) t->first_to_do = to_do;
    t->last = done;
}

static int is_enough(void *context) {
    told *t = context;
    return t->stop_at > 0 && ++t->asked > t->stop_at;
}

static void take_warning(void *context, const char *text) {
    told *t = context;
    t->warnings += strlen(text) > 0;
}

static void test_stop_and_go_on(void **state) {
    const folder *at = *state;
    told first = {.stop_at = 2}, second = {0}, third = {0};
    pipecast_error error = {0};
    pipecast_results *results = NULL;
    pipecast_scenario *scenario = load_text(six);
    pipecast_sweep *sweep = sweep_of(scenario, at->file);
    assert_ok(pipecast_sweep_set_threads(sweep, 1, &error), &error);
    pipecast_sweep_watch(sweep, look_on, is_enough, take_warning, &first);
    assert_int_equal(pipecast_sweep_run(sweep, &results, &error), PIPECAST_ERROR_STOPPED);
    assert_null(results);
    assert_int_equal(first.last, 2);
    pipecast_sweep_watch(sweep, look_on, NULL, NULL, &second);
    assert_ok(pipecast_sweep_run(sweep, &results, &error), &error); /* the same handle goes on */
    assert_int_equal(second.first_to_do, 4);
    assert_int_equal(second.last, 4);
    pipecast_results_free(results);
    pipecast_sweep_watch(sweep, look_on, NULL, NULL, &third);
    assert_ok(pipecast_sweep_run(sweep, &results, &error), &error);
    assert_int_equal(third.first_to_do, 0); /* all are there */
    assert_int_equal(pipecast_results_row_count(results), 6);
    pipecast_results_free(results);
    assert_ok(pipecast_sweep_set_output(sweep, at->file, 1, &error), &error);
    third = (told){0};
    assert_ok(pipecast_sweep_run(sweep, &results, &error), &error);
    assert_int_equal(third.first_to_do, 6); /* afresh */
    pipecast_results_free(results);
    pipecast_sweep_free(sweep);
    pipecast_scenario_free(scenario);
}

static long read_bytes(const char *path, unsigned char *bytes, size_t size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    long got = (long)fread(bytes, 1, size, file);
    fclose(file);
    return got;
}

static void test_shards(void **state) {
    const folder *at = *state;
    enum { SIZE = 1 << 20 };
    static unsigned char whole[SIZE], merged[SIZE];
    char paths[2][160], all[160];
    told t = {0};
    pipecast_error error = {0};
    pipecast_scenario *scenario = load_text(six);
    const char *list[2] = {paths[0], paths[1]};
    snprintf(all, sizeof all, "%s.all", at->file);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s.%d", at->file, i);
        pipecast_sweep *sweep = sweep_of(scenario, paths[i]);
        assert_ok(pipecast_sweep_set_shard(sweep, i + 1, 2, &error), &error);
        assert_int_equal(pipecast_sweep_set_shard(sweep, 3, 2, &error), PIPECAST_ERROR_INPUT);
        assert_int_equal(pipecast_sweep_set_shard(sweep, 0, 0, &error), PIPECAST_ERROR_INPUT);
        pipecast_results *results = run_sweep(sweep);
        assert_int_equal(pipecast_results_row_count(results), 3);
        pipecast_results_free(results);
    }
    pipecast_results_free(run_sweep(sweep_of(scenario, at->file)));
    assert_ok(pipecast_sweep_merge(all, list, 2, take_warning, &t, &error), &error);
    assert_int_equal(t.warnings, 0);
    long size = read_bytes(at->file, whole, SIZE);
    assert_int_equal(read_bytes(all, merged, SIZE), size);
    assert_memory_equal(whole, merged, (size_t)size);
    assert_ok(pipecast_sweep_merge(all, list, 1, take_warning, &t, &error), &error);
    assert_int_equal(t.warnings, 1); /* runs are missing */
    assert_int_equal(pipecast_sweep_merge(all, list, 0, NULL, NULL, &error), PIPECAST_ERROR_INPUT);
    pipecast_scenario_free(scenario);
}

static void test_what_a_sweep_refuses(void **state) {
    const folder *at = *state;
    pipecast_error error = {0};
    pipecast_sweep *sweep = NULL;
    pipecast_results *results = NULL;
    pipecast_scenario *scenario = load_text(six);
    const pipecast_scenario *list[] = {scenario};
    assert_int_equal(pipecast_sweep_create(list, 0, &sweep, &error), PIPECAST_ERROR_INPUT);
    sweep = sweep_of(scenario, at->path); /* a folder */
    assert_int_equal(pipecast_sweep_set_threads(sweep, -1, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_sweep_set_threads(sweep, 1025, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_sweep_run(sweep, &results, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, at->path));
    assert_int_equal(pipecast_results_open(at->file, &results, &error), PIPECAST_ERROR_INPUT);
    pipecast_sweep_free(sweep);
    pipecast_sweep_free(NULL);
    pipecast_scenario_free(scenario);
}

/* ---- plans ---- */

static const char search[] = "scenario: search\n"
                             "setting: {model: {from: gpt3-1.3b}, machine: dgx-a100, gpus: 8, global_batch: 16}\n"
                             "plan: {tp: [1, 2], pp: [1, 2], schedule: [1f1b], recompute: [none]}\n";

/* The overrides of a plan make its run: the same iteration, to the last bit. */
static void check_sets_of_plan(const pipecast_results *plans, int64_t row) {
    const char *sets[32];
    size_t count = 0;
    pipecast_error error = {0};
    pipecast_scenario *scenario = NULL;
    while (count < 32 && (sets[count] = pipecast_plan_set(plans, row, (int)count))) count++;
    assert_true(count > 3 && count < 32);
    assert_ok(pipecast_scenario_load(NULL, search, sets, count, 0, &scenario, &error), &error);
    pipecast_results *run = run_sweep(sweep_of(scenario, NULL));
    assert_true(real_at(run, 0, "iteration_s") == real_at(plans, row, "iteration_s"));
    pipecast_results_free(run);
    pipecast_scenario_free(scenario);
}

static const char *text_at(const pipecast_results *results, int64_t row, const char *name, char text[256]) {
    assert_true(pipecast_results_text(results, row, pipecast_results_find(results, name), text, 256) < 256);
    return text;
}

static void test_plan(void **state) {
    (void)state;
    told t = {0}, of_two = {0};
    pipecast_error error = {0};
    pipecast_plan *plan = NULL;
    pipecast_results *plans = NULL, *all = NULL;
    assert_ok(pipecast_plan_load(NULL, search, NULL, 0, 0, &plan, &error), &error);
    /* One thread has all the pieces; of two threads' pieces the caller's, who says how far they are, may get none. */
    assert_ok(pipecast_plan_run(plan, 2, 0, look_on, &of_two, &plans, &error), &error);
    assert_ok(pipecast_plan_run(plan, 1, PIPECAST_ALL_VARIANTS | PIPECAST_EXHAUSTIVE, look_on, &t, &all, &error),
              &error);
    assert_int_equal(pipecast_plan_run(plan, -1, 0, NULL, NULL, &all, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_plan_run(plan, 0, 4, NULL, NULL, &all, &error), PIPECAST_ERROR_INPUT);
    pipecast_plan_free(plan);
    assert_true(t.calls > 0);
    int64_t count = pipecast_results_row_count(plans);
    assert_true(count > 1 && pipecast_results_row_count(all) >= count);
    for (int64_t row = 0; row < count; row++) {
        assert_int_equal(pipecast_results_integer(plans, row, pipecast_results_find(plans, "rank")), row + 1);
        assert_true(row == 0 || real_at(plans, row, "iteration_s") >= real_at(plans, row - 1, "iteration_s"));
    }
    assert_true(real_at(all, 0, "iteration_s") == real_at(plans, 0, "iteration_s"));
    check_sets_of_plan(plans, 0);
    check_sets_of_plan(plans, count - 1);
    char text[256];
    assert_string_equal(text_at(plans, 0, "behind", text), "");
    assert_true(text_at(plans, 1, "behind", text)[0] == '+');
    assert_null(pipecast_plan_set(plans, count, 0));
    assert_null(pipecast_plan_set(plans, 0, -1));
    pipecast_results_free(all);
    pipecast_results_free(plans);
    pipecast_plan_free(NULL);
}

/* The best of each tp is the best plan with that tp listed alone; the best of all is one of them. A map of tp and pp
 * has the four cells, row by row, and where 3 does not divide, why. */
static void test_each(void **state) {
    (void)state;
    static const char *const sets[] = {"plan.tp=[1, 2, 3]"}, *const alone[] = {"plan.tp=[2]"};
    pipecast_error error = {0};
    pipecast_plan *plan = NULL, *of_two = NULL;
    pipecast_results *plans = NULL, *cells = NULL, *map = NULL, *two = NULL, *none = NULL;
    char text[256];
    told t = {0};
    assert_ok(pipecast_plan_load(NULL, search, sets, 1, 0, &plan, &error), &error);
    assert_ok(pipecast_plan_load(NULL, search, alone, 1, 0, &of_two, &error), &error);
    assert_ok(pipecast_plan_run(plan, 1, 0, NULL, NULL, &plans, &error), &error);
    assert_ok(pipecast_plan_run(of_two, 1, 0, NULL, NULL, &two, &error), &error);
    assert_ok(pipecast_plan_each(plan, "tp", 1, look_on, &t, &cells, &error), &error);
    assert_ok(pipecast_plan_map(plan, "tp,pp", 0, NULL, NULL, &map, &error), &error);
    assert_int_equal(t.calls, 3);
    assert_int_equal(pipecast_results_row_count(cells), 3);
    assert_int_equal(pipecast_results_find(cells, "rank"), -1);
    assert_true(real_at(cells, 1, "iteration_s") == real_at(two, 0, "iteration_s"));
    double least = real_at(cells, 0, "iteration_s");
    if (real_at(cells, 1, "iteration_s") < least) least = real_at(cells, 1, "iteration_s");
    assert_true(least == real_at(plans, 0, "iteration_s"));
    check_sets_of_plan(cells, 1);
    assert_string_equal(text_at(cells, 2, "what", text), "tp 3");
    assert_string_equal(text_at(cells, 2, "part", text), "each");
    assert_string_equal(text_at(cells, 2, "rank_order", text), "");
    assert_string_equal(text_at(cells, 2, "status", text), "infeasible");
    assert_non_null(strstr(text_at(cells, 2, "message", text), "tp x pp does not divide the GPUs"));
    assert_int_equal(pipecast_results_integer(cells, 2, pipecast_results_find(cells, "overlap_tp")), -1);
    assert_null(pipecast_plan_set(cells, 2, 0));
    assert_int_equal(pipecast_results_row_count(map), 6);
    assert_string_equal(text_at(map, 1, "what", text), "tp 1, pp 2");
    assert_string_equal(text_at(map, 1, "part", text), "map");
    assert_int_equal(pipecast_plan_map(plan, "tp", 0, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_string_equal(error.message, "axes: tp: one axis; expected two, such as tp,pp");
    assert_int_equal(pipecast_plan_each(plan, "colour", 0, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_plan_each(plan, "tp", -1, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_plan_goal(plan, 0, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_string_equal(error.message, "plan: neither deadline nor budget; expected one of them at least");
    assert_null(none);
    pipecast_plan_free(plan);
    pipecast_plan_free(of_two);
    pipecast_results_free(plans);
    pipecast_results_free(cells);
    pipecast_results_free(map);
    pipecast_results_free(two);
}

/* With 20% less of the matrix rate plan 1 takes longer, with more it is faster; of each thing there are two rows, less
 * of it first. The answer of another plan, a row that is none and cells are no plans. */
static void test_sensitivity(void **state) {
    (void)state;
    pipecast_error error = {0};
    pipecast_plan *plan = NULL, *other = NULL;
    pipecast_results *plans = NULL, *changes = NULL, *anew = NULL, *none = NULL;
    char text[256];
    bool saw_rate = false;
    assert_ok(pipecast_plan_load(NULL, search, NULL, 0, 0, &plan, &error), &error);
    assert_ok(pipecast_plan_load(NULL, search, NULL, 0, 0, &other, &error), &error);
    assert_ok(pipecast_plan_run(plan, 1, 0, NULL, NULL, &plans, &error), &error);
    assert_ok(pipecast_plan_sensitivity(plan, plans, 1, 1, 0, NULL, NULL, &changes, &error), &error);
    assert_ok(pipecast_plan_sensitivity(plan, plans, 1, 1, PIPECAST_ANEW, NULL, NULL, &anew, &error), &error);
    int64_t count = pipecast_results_row_count(changes);
    assert_true(count > 6 && count % 2 == 0);
    assert_int_equal(pipecast_results_row_count(anew), 2 * count);
    for (int64_t row = 0; row < count; row += 2) {
        assert_true(real_at(changes, row, "factor") < real_at(changes, row + 1, "factor"));
        if (strcmp(text_at(changes, row, "what", text), "GPU matrix rate") != 0) continue;
        saw_rate = real_at(changes, row, "factor") == 0.8;
        assert_true(real_at(changes, row, "iteration_s") > real_at(plans, 1, "iteration_s"));
        assert_true(real_at(changes, row + 1, "iteration_s") < real_at(plans, 1, "iteration_s"));
        assert_true(text_at(changes, row, "behind", text)[0] == '+');
    }
    assert_true(saw_rate);
    assert_null(pipecast_plan_set(changes, 0, 0));
    assert_int_equal(pipecast_plan_sensitivity(other, plans, 0, 1, 0, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "not of this plan; expected what pipecast_plan_run gave"));
    assert_int_equal(pipecast_plan_sensitivity(plan, changes, 0, 1, 0, NULL, NULL, &none, &error),
                     PIPECAST_ERROR_INPUT);
    int64_t last = pipecast_results_row_count(plans);
    assert_int_equal(pipecast_plan_sensitivity(plan, plans, last, 1, 0, NULL, NULL, &none, &error),
                     PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_plan_sensitivity(plan, plans, 0, 1, 1, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_null(none);
    pipecast_plan_free(plan);
    pipecast_plan_free(other);
    pipecast_results_free(plans);
    pipecast_results_free(changes);
    pipecast_results_free(anew);
}

/* All tokens in sequences of the plans' own length are the plans themselves; half of them in sequences half as long are
 * faster, for attention has less to do, and each plan has a row, the fastest first. */
static void test_mix(void **state) {
    (void)state;
    static const struct {
        const char *mix, *message;
    } bad[] = {{"1024:0.7,2048:0.4", "mix: 1024:0.7,2048:0.4: the parts of the tokens add up to 1.1; expected 1"},
               {"2048:0.5", "mix: 2048:0.5: the parts of the tokens add up to 0.5; expected 1"},
               {"2048", "mix: 2048: expected lengths with their parts"},
               {"256:1", "mix: the longest is 256, and plans are of 2048; expected seq_len"}};
    pipecast_error error = {0};
    pipecast_plan *plan = NULL, *other = NULL;
    pipecast_results *plans = NULL, *same = NULL, *mixed = NULL, *none = NULL;
    char text[256];
    assert_ok(pipecast_plan_load(NULL, search, NULL, 0, 0, &plan, &error), &error);
    assert_ok(pipecast_plan_load(NULL, search, NULL, 0, 0, &other, &error), &error);
    assert_ok(pipecast_plan_run(plan, 1, 0, NULL, NULL, &plans, &error), &error);
    assert_ok(pipecast_plan_mix(plan, plans, "2048:1", 1, NULL, NULL, &same, &error), &error);
    assert_ok(pipecast_plan_mix(plan, plans, "1024:0.5,2048:0.5", 1, NULL, NULL, &mixed, &error), &error);
    assert_int_equal(pipecast_results_row_count(mixed), pipecast_results_row_count(plans));
    for (int64_t row = 0; row < pipecast_results_row_count(plans); row++)
        assert_float_equal(real_at(same, row, "iteration_s") / real_at(plans, row, "iteration_s"), 1, 1e-12);
    assert_true(real_at(mixed, 0, "iteration_s") < real_at(plans, 0, "iteration_s"));
    assert_string_equal(text_at(mixed, 0, "part", text), "mix");
    assert_string_equal(text_at(same, 0, "what", text), "plan 1");
    assert_null(pipecast_plan_set(mixed, 0, 0));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pipecast_plan_mix(plan, plans, bad[i].mix, 1, NULL, NULL, &none, &error),
                         PIPECAST_ERROR_INPUT);
        if (!strstr(error.message, bad[i].message)) fail_msg("%s", error.message);
    }
    assert_int_equal(pipecast_plan_mix(other, plans, "2048:1", 1, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_plan_mix(plan, mixed, "2048:1", 1, NULL, NULL, &none, &error), PIPECAST_ERROR_INPUT);
    assert_null(none);
    pipecast_plan_free(plan);
    pipecast_plan_free(other);
    pipecast_results_free(plans);
    pipecast_results_free(same);
    pipecast_results_free(mixed);
}

/* 3 GPUs do not divide into tp 2. No plan is an answer, a wrong key is none. */
static void test_no_plan(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.gpus=3", "plan.tp=[2]"}, *const wrong[] = {"plan.pt=[2]"};
    pipecast_error error = {0};
    pipecast_plan *plan = NULL;
    pipecast_results *plans = NULL;
    assert_int_equal(pipecast_plan_load(NULL, search, wrong, 1, 0, &plan, &error), PIPECAST_ERROR_INPUT);
    assert_ok(pipecast_plan_load(NULL, search, sets, 2, 0, &plan, &error), &error);
    assert_ok(pipecast_plan_run(plan, 1, 0, NULL, NULL, &plans, &error), &error);
    assert_int_equal(pipecast_results_row_count(plans), 0);
    assert_null(pipecast_plan_set(plans, 0, 0));
    pipecast_results_free(plans);
    pipecast_plan_free(plan);
}

/* ---- threads ---- */

/* Each with its own handles, and files of HDF5: none of ours is for one thread alone. No assertion of cmocka's, which
 * are for its own thread. */
typedef struct worker {
    char path[160];
    bool is_right;
} worker;

static bool sweep_once(const char *path) {
    pipecast_scenario *scenario = NULL;
    pipecast_sweep *sweep = NULL;
    pipecast_results *results = NULL, *again = NULL;
    pipecast_replay *replay = NULL;
    int code = pipecast_scenario_load(NULL, six, NULL, 0, 0, &scenario, NULL);
    const pipecast_scenario *list[] = {scenario};
    if (!code) code = pipecast_sweep_create(list, 1, &sweep, NULL);
    if (!code) code = pipecast_sweep_set_threads(sweep, 2, NULL);
    if (!code) code = pipecast_sweep_set_output(sweep, path, 1, NULL);
    if (!code) code = pipecast_sweep_run(sweep, &results, NULL);
    if (!code) code = pipecast_results_open(path, &again, NULL);
    if (!code) code = pipecast_results_replay(again, 5, &replay, NULL);
    bool is_right = !code && fabs(real_at(again, 5, "iteration_s") - iteration_of_six(5)) < 1e-12;
    pipecast_replay_free(replay);
    pipecast_results_free(again);
    pipecast_results_free(results);
    pipecast_sweep_free(sweep);
    pipecast_scenario_free(scenario);
    return is_right;
}

static void *sweep_often(void *context) {
    worker *x = context;
    x->is_right = true;
    for (int i = 0; i < 5; i++) x->is_right = sweep_once(x->path) && x->is_right;
    return NULL;
}

static void test_threads(void **state) {
    const folder *at = *state;
    enum { WORKERS = 3 };
    worker workers[WORKERS] = {{.is_right = false}};
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        snprintf(workers[i].path, sizeof workers[i].path, "%s.%d", at->file, i);
        assert_int_equal(pthread_create(&threads[i], NULL, sweep_often, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++) assert_true(workers[i].is_right);
}

/* Results are read by several threads at once. */
static void *read_often(void *context) {
    const pipecast_results *results = context;
    for (int i = 0; i < 100; i++) {
        pipecast_replay *replay = NULL;
        if (pipecast_results_replay(results, i % 6, &replay, NULL)) return NULL;
        double makespan = pipecast_replay_number(replay, PIPECAST_MAKESPAN);
        pipecast_replay_free(replay);
        if (fabs(makespan - iteration_of_six(i % 6)) > 1e-12) return NULL;
    }
    return context;
}

static void test_one_handle_is_read_by_two(void **state) {
    const folder *at = *state;
    for (int is_file = 0; is_file < 2; is_file++) {
        pthread_t other;
        void *came;
        pipecast_results *results = run_text(six, is_file ? at->file : NULL);
        assert_int_equal(pthread_create(&other, NULL, read_often, results), 0);
        assert_ptr_equal(read_often(results), results);
        pthread_join(other, &came);
        assert_ptr_equal(came, results);
        pipecast_results_free(results);
    }
}

/* A callback may call the library: on other handles. */
static void ask_within(void *context, int64_t done, int64_t to_do) {
    bool *is_right = context;
    (void)to_do;
    pipecast_results *list = NULL;
    *is_right = pipecast_list(PIPECAST_SCHEDULES, &list, NULL) == PIPECAST_OK && (done > 0 || *is_right);
    pipecast_results_free(list);
}

static void test_callbacks_may_call(void **state) {
    const folder *at = *state;
    bool is_right = true;
    pipecast_scenario *scenario = load_text(six);
    pipecast_sweep *sweep = sweep_of(scenario, at->file);
    pipecast_sweep_watch(sweep, ask_within, NULL, NULL, &is_right);
    pipecast_results_free(run_sweep(sweep));
    assert_true(is_right);
    pipecast_scenario_free(scenario);
}

/* In one call what it is in three; nothing is handed over if it fails. */
static void test_one_call(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.schedule=1f1b", "setting.devices=4", "setting.microbatches=8",
                                       "setting.times={F: 1 ms, B: 1 ms, W: 1 ms}", "setting.microbatches=0"};
    pipecast_error error = {0};
    pipecast_results *results = NULL;
    assert_ok(pipecast_run(sets, 4, 0, NULL, NULL, &results, &error), &error);
    int column = pipecast_results_find(results, "iteration_s");
    assert_true(fabs(pipecast_results_real(results, 0, column) - 0.033) < 1e-12);
    assert_int_equal(pipecast_results_row_count(results), 1);
    pipecast_results_free(results);
    results = NULL;
    assert_int_equal(pipecast_run(sets, 5, 0, NULL, NULL, &results, &error), PIPECAST_ERROR_INPUT);
    assert_string_equal(error.key, "setting.microbatches");
    assert_null(results);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_call),
        TEST_IN_FOLDER(test_stop_and_go_on, "r.h5"),
        TEST_IN_FOLDER(test_shards, "r.h5"),
        TEST_IN_FOLDER(test_what_a_sweep_refuses, "r.h5"),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_sensitivity),
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_no_plan),
        TEST_IN_FOLDER(test_threads, "r.h5"),
        TEST_IN_FOLDER(test_one_handle_is_read_by_two, "r.h5"),
        TEST_IN_FOLDER(test_callbacks_may_call, "r.h5"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
