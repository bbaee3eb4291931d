/* A sweep as a call of the library: rows, files, progress, stopping; two at once. The command's side of it is
 * tests/golden/test_sweep.py, that of ranks tests/test_ranks.c. */
#include "tests/folder.h"
#include "tests/refusals.h"
#include "tests/scenario_files.h"

#include "results/store/store.h"
#include "sweep/run_list.h"
#include "sweep/sweep.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

/* 6 runs, of which none is like another; p devices, m microbatches, F 1 ms, BW 2 ms: (m + p - 1) * 3 ms. */
static const char six[] =
    "scenario: six\n"
    "setting: {schedule: 1f1b, devices: 2, times: {F: 1 ms, BW: 2 ms}, activation: {size: 1 GiB}, "
    "trace: true}\n"
    "sweep: {microbatches: [4, 5, 6], devices: [2, 3]}\n";

/* What was told, and when to stop. */
typedef struct told {
    int begins, runs, writes, warnings;
    int64_t to_do, done_before, last_done;
    char warning[256];
    char journal[256];
    _Atomic int64_t asked;
    int64_t stop_at; /* asked so often: stop; 0: never */
} told;

static void look_on(void *context, const pc_sweep_progress *at) {
    told *t = context;
    if (at->phase == PC_SWEEP_BEGINS) t->begins++;
    if (at->phase == PC_SWEEP_RUNS) t->runs++;
    if (at->phase == PC_SWEEP_WRITES) t->writes++;
    assert_int_equal(at->row != NULL, at->phase == PC_SWEEP_RUNS);
    if (at->row) assert_int_equal(at->done, t->last_done + 1);
    t->last_done = at->done;
    t->to_do = at->to_do;
    t->done_before = at->done_before;
    snprintf(t->journal, sizeof t->journal, "%s", at->journal ? at->journal : "");
}

static void take_warning(void *context, const char *text) {
    told *t = context;
    t->warnings++;
    snprintf(t->warning, sizeof t->warning, "%s", text);
}

static bool is_stopped(void *context) {
    told *t = context;
    return t->stop_at > 0 && ++t->asked > t->stop_at;
}

static pc_sweep_sink sink_of(told *t) {
    return (pc_sweep_sink){.context = t, .progress = look_on, .warn = take_warning, .is_stopped = is_stopped};
}

/* No assertion: those of cmocka are for its own thread. */
static bool has_six_rows(const pc_sweep *sweep) {
    bool is_right = pc_sweep_row_count(sweep) == 6;
    for (int i = 0; i < 6 && is_right; i++) {
        int devices = 2 + i / 3, microbatches = 4 + i % 3;
        pc_run_row row;
        is_right = pc_sweep_row(sweep, i, &row, NULL) == PC_OK && row.run == i + 1 && strlen(row.key) == 32 &&
                   row.microbatches == microbatches &&
                   fabs(row.iteration_s - 3e-3 * (microbatches + devices - 1)) < 1e-12;
    }
    return is_right;
}

static void test_rows_without_a_file(void **state) {
    const folder *at = *state;
    pc_scenario *scenario = load_text(six);
    pc_run_spec spec;
    pc_run_labels labels;
    for (int jobs = 0; jobs <= 4; jobs += 2) {
        told t = {0};
        pc_sweep *sweep;
        pc_sweep_sink sink = sink_of(&t);
        pc_sweep_request request = {.scenarios = &scenario, .scenario_count = 1, .jobs = jobs};
        assert_int_equal(pc_sweep_run(&request, jobs ? &sink : NULL, &sweep, NULL), PC_OK);
        assert_true(has_six_rows(sweep));
        assert_int_equal(pc_sweep_spec(sweep, 3, &spec, &labels, NULL), PC_OK);
        assert_true(spec.devices == 3 && spec.microbatches == 4 && labels.run == 4);
        pc_run_spec_free(&spec);
        pc_sweep_warn(sweep, take_warning, &t); /* there are no profiles */
        pc_sweep_free(sweep);
        if (jobs) assert_true(t.begins == 1 && t.runs == 6 && t.writes == 1 && t.warnings == 0);
        assert_string_equal(t.journal, "");
    }
    assert_int_equal(count_entries(at->path), 0);
    pc_sweep_free(NULL);
    pc_scenario_free(scenario);
}

/* Of three shards the second has runs 2 and 5; a share may be empty. */
static void test_shards(void **state) {
    (void)state;
    pc_scenario *scenario = load_text(six);
    for (int shards = 3; shards <= 9; shards += 6) {
        pc_sweep *sweep;
        pc_run_row row;
        pc_sweep_request request = {.scenarios = &scenario,
                                    .scenario_count = 1,
                                    .jobs = 1,
                                    .shard = shards == 3 ? 2 : 9,
                                    .shard_count = shards};
        assert_int_equal(pc_sweep_run(&request, NULL, &sweep, NULL), PC_OK);
        assert_int_equal(pc_sweep_row_count(sweep), shards == 3 ? 2 : 0);
        for (int i = 0; i < pc_sweep_row_count(sweep); i++) {
            assert_int_equal(pc_sweep_row(sweep, i, &row, NULL), PC_OK);
            assert_int_equal(row.run, 2 + 3 * i);
        }
        pc_sweep_free(sweep);
    }
    pc_scenario_free(scenario);
}

/* Stopped before the fourth run: three are done and kept, nothing stands at the path, and the same goes on. */
static void test_a_sweep_that_is_stopped_goes_on(void **state) {
    const folder *at = *state;
    char journal[160];
    pc_error error = {0};
    pc_sweep *sweep;
    pc_scenario *scenario = load_text(six);
    pc_sweep_request request = {.scenarios = &scenario, .scenario_count = 1, .jobs = 1, .output = at->file};
    told t = {.stop_at = 3};
    pc_sweep_sink sink = sink_of(&t);
    snprintf(journal, sizeof journal, "%s.journal", at->file);
    assert_int_equal(pc_sweep_run(&request, &sink, &sweep, &error), PC_ERROR_STOPPED);
    assert_true(!sweep && error.message[0] && t.runs == 3);
    assert_string_equal(t.journal, journal);
    assert_int_equal(access(journal, F_OK), 0);
    assert_int_equal(count_entries(at->path), 1);
    t = (told){0};
    sink = sink_of(&t);
    assert_int_equal(pc_sweep_run(&request, &sink, &sweep, &error), PC_OK);
    assert_true(t.done_before == 3 && t.to_do == 3 && t.runs == 3 && t.warnings == 0);
    assert_true(has_six_rows(sweep));
    pc_sweep_free(sweep);
    assert_int_equal(count_entries(at->path), 1);
    assert_int_equal(access(at->file, F_OK), 0);
    pc_scenario_free(scenario);
}

/* What another sweep has at the path goes, with a word. */
static void test_runs_of_another_sweep(void **state) {
    const folder *at = *state;
    char expected[256];
    pc_sweep *sweep;
    told t = {0};
    pc_sweep_sink sink = sink_of(&t);
    pc_scenario *scenario = load_text(six);
    pc_sweep_request request = {.scenarios = &scenario, .scenario_count = 1, .jobs = 1, .output = at->file};
    assert_int_equal(pc_sweep_run(&request, &sink, &sweep, NULL), PC_OK);
    pc_sweep_free(sweep);
    pc_scenario_free(scenario);
    scenario =
        load_text("scenario: one\nsetting: {schedule: 1f1b, devices: 2, microbatches: 4, times: {F: 1 ms, BW: 2 ms}, "
                  "activation: {size: 1 GiB}, trace: true}\n");
    assert_int_equal(pc_sweep_run(&request, &sink, &sweep, NULL), PC_OK);
    assert_true(t.warnings == 1 && t.to_do == 0);
    snprintf(expected, sizeof expected, "%s: 5 of its 6 runs are not of this sweep and will not be kept", at->file);
    assert_string_equal(t.warning, expected);
    pc_sweep_free(sweep);
    pc_scenario_free(scenario);
}

static char *bytes_of(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void run_shard(const folder *at, pc_scenario *scenario, int shard, int shards, char path[160]) {
    pc_sweep *sweep;
    pc_sweep_request request = {
        .scenarios = &scenario, .scenario_count = 1, .jobs = 2, .output = path, .shard = shard, .shard_count = shards};
    snprintf(path, 160, "%s/%d-of-%d.h5", at->path, shard, shards);
    assert_int_equal(pc_sweep_run(&request, NULL, &sweep, NULL), PC_OK);
    pc_sweep_free(sweep);
}

/* Two of three shards lack runs 3 and 6; all of them are the whole, byte for byte. */
static void test_merging(void **state) {
    const folder *at = *state;
    char paths[3][160], whole[160], expected[256];
    const char *shards[3];
    told t = {0};
    pc_error error;
    pc_sweep_sink sink = sink_of(&t);
    pc_scenario *scenario = load_text(six);
    for (int i = 0; i < 3; i++) run_shard(at, scenario, i + 1, 3, paths[i]), shards[i] = paths[i];
    run_shard(at, scenario, 1, 1, whole);
    pc_sweep_merge_request request = {.output = at->file, .shards = shards, .shard_count = 2};
    assert_int_equal(pc_sweep_merge(&request, &sink, NULL), PC_OK);
    snprintf(expected, sizeof expected, "%s: of 6 runs 2 are in no shard: 3, 6", at->file);
    assert_int_equal(t.warnings, 1);
    assert_string_equal(t.warning, expected);
    request.shard_count = 3;
    assert_int_equal(pc_sweep_merge(&request, NULL, NULL), PC_OK);
    size_t size, wanted_size;
    char *bytes = bytes_of(at->file, &size), *wanted = bytes_of(whole, &wanted_size);
    assert_int_equal(size, wanted_size);
    assert_memory_equal(bytes, wanted, size);
    free(bytes);
    free(wanted);
    request.output = paths[0];
    assert_int_equal(pc_sweep_merge(&request, NULL, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, ": is one of the shards; expected another file for all of them"));
    request.shard_count = 0;
    assert_int_equal(pc_sweep_merge(&request, NULL, &error), PC_ERROR_INPUT);
    pc_scenario_free(scenario);
}

/* ---- two at once ---- */

static void *sweep_alone(void *context) {
    pc_scenario *scenario = context;
    bool is_right = true;
    for (int i = 0; i < 20; i++) {
        pc_sweep *sweep;
        pc_sweep_request request = {.scenarios = &scenario, .scenario_count = 1, .jobs = 2};
        if (pc_sweep_run(&request, NULL, &sweep, NULL)) return NULL;
        is_right = is_right && has_six_rows(sweep);
        pc_sweep_free(sweep);
    }
    return is_right ? scenario : NULL;
}

static void test_two_at_once(void **state) {
    (void)state;
    pthread_t other;
    void *came;
    pc_scenario *scenario = load_text(six);
    assert_int_equal(pthread_create(&other, NULL, sweep_alone, scenario), 0);
    assert_ptr_equal(sweep_alone(scenario), scenario);
    pthread_join(other, &came);
    assert_ptr_equal(came, scenario);
    pc_scenario_free(scenario);
}

/* ---- memory ---- */

static void test_refused_allocations(void **state) {
    (void)state;
    pc_scenario *scenario = load_text(six);
    pc_sweep_request request = {.scenarios = &scenario, .scenario_count = 1, .jobs = 1};
    for (refusals x = {0}; next_refusal(&x);) {
        pc_sweep *sweep;
        x.code = pc_sweep_run(&request, NULL, &sweep, NULL);
        assert_int_equal(sweep != NULL, x.code == PC_OK);
        pc_sweep_free(sweep);
    }
    pc_scenario_free(scenario);
}

/* 8 ranges are named; 1 to 15 by twos are 8 runs, and 17, which comes with them, is not. */
static void test_lists_of_runs(void **state) {
    (void)state;
    char text[PC_RUN_LIST_TEXT];
    pc_run_list list = {0};
    assert_string_equal(pc_run_list_text(&list, text), "");
    pc_run_list_add(&list, 5, 4);
    for (int i = 1; i <= 3; i++) pc_run_list_add(&list, i, i);
    pc_run_list_add(&list, 7, 7);
    assert_string_equal(pc_run_list_text(&list, text), " 1-3, 7");
    list = (pc_run_list){0};
    for (int i = 1; i <= 17; i += 2) pc_run_list_add(&list, i, i);
    assert_int_equal(list.count, 9);
    assert_string_equal(pc_run_list_text(&list, text), " 1, 3, 5, 7, 9, 11, 13, 15, ...");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(test_rows_without_a_file, "r.h5"),
        cmocka_unit_test(test_shards),
        TEST_IN_FOLDER(test_a_sweep_that_is_stopped_goes_on, "r.h5"),
        TEST_IN_FOLDER(test_runs_of_another_sweep, "r.h5"),
        TEST_IN_FOLDER(test_merging, "r.h5"),
        cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_refused_allocations),
        cmocka_unit_test(test_lists_of_runs),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
