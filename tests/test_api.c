/* The library as others see it: pipecast.h alone, linked with the shared library. Numbers of 1F1B: with F, B, W of one
 * unit each, p devices and m microbatches it takes (m + p - 1) * 3, of which m * 3 are work; device d holds at most p -
 * d microbatches. What the command says of the same is compared in tests/golden/test_api.py. */
#include "tests/comma_locale.h"
#include "tests/folder.h"

#include <pipecast.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* 6 runs, of which none is like another; F 1 ms, BW 2 ms. */
static const char six[] =
    "scenario: six\n"
    "setting: {schedule: 1f1b, devices: 2, times: {F: 1 ms, BW: 2 ms}, activation: {size: 1 GiB}, trace: true}\n"
    "sweep: {microbatches: [4, 5, 6], devices: [2, 3]}\n";

static double iteration_of_six(int64_t row) {
    int64_t devices = 2 + row / 3, microbatches = 4 + row % 3;
    return 3e-3 * (double)(microbatches + devices - 1);
}

/* ---- short forms; these fail the test where there is an error ---- */

static void assert_ok(int code, const pipecast_error *error) {
    if (code) fail_msg("%d: %s", code, error->message);
}

static pipecast_scenario *load_text(const char *text) {
    pipecast_error error = {0};
    pipecast_scenario *scenario = NULL;
    assert_ok(pipecast_scenario_load(NULL, text, NULL, 0, 0, &scenario, &error), &error);
    return scenario;
}

static pipecast_sweep *sweep_of(const pipecast_scenario *scenario, const char *output) {
    pipecast_error error = {0};
    pipecast_sweep *sweep = NULL;
    assert_ok(pipecast_sweep_create(&scenario, 1, &sweep, &error), &error);
    assert_ok(pipecast_sweep_set_threads(sweep, 2, &error), &error);
    assert_ok(pipecast_sweep_set_output(sweep, output, 0, &error), &error);
    return sweep;
}

static pipecast_results *run_sweep(pipecast_sweep *sweep) {
    pipecast_error error = {0};
    pipecast_results *results = NULL;
    assert_ok(pipecast_sweep_run(sweep, &results, &error), &error);
    pipecast_sweep_free(sweep);
    return results;
}

static pipecast_results *run_text(const char *text, const char *output) {
    pipecast_scenario *scenario = load_text(text);
    pipecast_results *results = run_sweep(sweep_of(scenario, output));
    pipecast_scenario_free(scenario);
    return results;
}

static double real_at(const pipecast_results *results, int64_t row, const char *name) {
    return pipecast_results_real(results, row, pipecast_results_find(results, name));
}

/* ---- version ---- */

static void test_version(void **state) {
    (void)state;
    int major, minor, patch;
    assert_string_equal(pc_version(), PC_VERSION);
    assert_int_equal(sscanf(PC_VERSION, "%d.%d.%d", &major, &minor, &patch), 3);
    assert_int_equal(10000 * major + 100 * minor + patch, PIPECAST_VERSION_NUMBER);
}

/* ---- scenarios ---- */

static void test_scenario(void **state) {
    (void)state;
    char name[128], small[4];
    pipecast_scenario *scenario = load_text(six);
    assert_string_equal(pipecast_scenario_name(scenario), "six");
    assert_int_equal(pipecast_scenario_run_count(scenario), 6);
    assert_int_equal(pipecast_scenario_run_name(scenario, 0, name, sizeof name, NULL), PIPECAST_OK);
    assert_int_equal(pipecast_scenario_run_name(scenario, 0, small, sizeof small, NULL), PIPECAST_OK);
    assert_memory_equal(small, name, 3);
    assert_int_equal(pipecast_scenario_run_name(scenario, 6, name, sizeof name, NULL), PIPECAST_ERROR_INPUT);
    pipecast_scenario_free(scenario);
    pipecast_scenario_free(NULL);
}

/* Line 4 of the text has the value; its path is only a name. */
static void test_error_knows_where(void **state) {
    (void)state;
    static const char text[] = "scenario: bad\nsetting:\n  schedule: 1f1b\n  devices: none\n";
    pipecast_error error = {0};
    pipecast_scenario *untouched = NULL;
    assert_int_equal(pipecast_scenario_load("no/such/bad.yaml", text, NULL, 0, 0, &untouched, &error),
                     PIPECAST_ERROR_INPUT);
    assert_int_equal(error.code, PIPECAST_ERROR_INPUT);
    assert_string_equal(error.file, "no/such/bad.yaml");
    assert_int_equal(error.line, 4);
    assert_string_equal(error.key, "setting.devices");
    assert_string_equal(error.expected, strstr(error.message, "; expected ") + strlen("; expected "));
    assert_memory_equal(error.message, "no/such/bad.yaml:4: setting.devices: none: ", 43);
    assert_int_equal(pipecast_scenario_load("no/such/bad.yaml", text, NULL, 0, 0, &untouched, NULL),
                     PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_scenario_load("no/such/file.yaml", NULL, NULL, 0, 0, &untouched, &error),
                     PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "no/such/file.yaml"));
    assert_int_equal(pipecast_scenario_load(NULL, six, NULL, 0, 2, &untouched, &error), PIPECAST_ERROR_INPUT);
    assert_null(untouched);
}

static void test_overrides(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.schedule=1f1b", "setting.devices=2", "setting.microbatches=4",
                                       "setting.times.F=1 ms", "setting.times.BW=2 ms"};
    static const char *const wrong[] = {"setting.devcies=2"};
    pipecast_error error = {0};
    pipecast_scenario *scenario = NULL, *untouched = NULL;
    assert_ok(pipecast_scenario_load(NULL, NULL, sets, 5, 0, &scenario, &error), &error);
    assert_int_equal(pipecast_scenario_run_count(scenario), 1);
    assert_int_equal(pipecast_scenario_load(NULL, six, wrong, 1, 0, &untouched, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "setting.devcies"));
    pipecast_scenario_free(scenario);
}

/* ---- results ---- */

static void test_rows(void **state) {
    (void)state;
    char text[64];
    pipecast_results *results = run_text(six, NULL);
    int iteration = pipecast_results_find(results, "iteration_s"), pp = pipecast_results_find(results, "pp");
    assert_int_equal(pipecast_results_row_count(results), 6);
    for (int64_t row = 0; row < 6; row++) {
        assert_true(fabs(pipecast_results_real(results, row, iteration) - iteration_of_six(row)) < 1e-12);
        assert_int_equal(pipecast_results_integer(results, row, pp), 2 + row / 3);
        assert_true(real_at(results, row, "pp") == (double)pipecast_results_integer(results, row, pp));
        assert_int_equal(pipecast_results_text(results, row, pp, text, sizeof text), 1);
        assert_string_equal(text, row < 3 ? "2" : "3");
    }
    pipecast_results_text(results, 0, pipecast_results_find(results, "status"), text, sizeof text);
    assert_string_equal(text, "ok");
    pipecast_results_text(results, 0, iteration, text, sizeof text);
    assert_true(strtod(text, NULL) == pipecast_results_real(results, 0, iteration));
    pipecast_results_free(results);
}

/* A program's locale shows neither in what is read nor in what is written. */
static void test_decimal_commas(void **state) {
    (void)state;
    char text[64];
    if (!take_comma_locale()) skip();
    pipecast_results *results = run_text(six, NULL);
    pipecast_results_text(results, 0, pipecast_results_find(results, "pass_f_s"), text, sizeof text);
    setlocale(LC_ALL, "C");
    assert_string_equal(text, "0.001");
    pipecast_results_free(results);
}

/* What is not there, and what is not defined, is not invented. */
static void test_values_that_are_none(void **state) {
    (void)state;
    char text[8] = "before";
    pipecast_results *results = run_text(six, NULL);
    int mfu = pipecast_results_find(results, "mfu"), tp = pipecast_results_find(results, "tp"),
        status = pipecast_results_find(results, "status"), columns = pipecast_results_column_count(results);
    assert_int_equal(pipecast_results_find(results, "no_such_column"), -1);
    assert_true(isnan(pipecast_results_real(results, 0, mfu)));
    assert_int_equal(pipecast_results_integer(results, 0, tp), -1);
    assert_true(isnan(pipecast_results_real(results, 0, tp)));
    assert_true(isnan(pipecast_results_real(results, 0, status)));
    assert_int_equal(pipecast_results_integer(results, 0, mfu), -1);
    for (int64_t row = -1; row <= 6; row += 7) assert_true(isnan(pipecast_results_real(results, row, 0)));
    for (int column = -1; column <= columns; column += columns + 1) {
        assert_true(isnan(pipecast_results_real(results, 0, column)));
        assert_int_equal(pipecast_results_integer(results, 0, column), -1);
        assert_null(pipecast_results_column_name(results, column));
        assert_null(pipecast_results_column_unit(results, column));
        assert_null(pipecast_results_column_words(results, column));
        assert_int_equal(pipecast_results_column_type(results, column), -1);
    }
    assert_int_equal(pipecast_results_text(results, 0, mfu, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(pipecast_results_text(results, 0, status, NULL, 0), 2);
    assert_int_equal(pipecast_results_text(results, 0, status, text, 2), 2);
    assert_string_equal(text, "o");
    pipecast_results_free(results);
    pipecast_results_free(NULL);
}

static void test_columns(void **state) {
    (void)state;
    double reals[6];
    int64_t integers[6];
    pipecast_error error = {0};
    pipecast_results *results = run_text(six, NULL);
    for (int c = 0; c < pipecast_results_column_count(results); c++) {
        int type = pipecast_results_column_type(results, c);
        assert_int_equal(pipecast_results_find(results, pipecast_results_column_name(results, c)), c);
        assert_true(strlen(pipecast_results_column_words(results, c)) > 0);
        assert_int_equal(strlen(pipecast_results_column_unit(results, c)) > 0, type != PIPECAST_TEXT);
        assert_int_equal(pipecast_results_reals(results, c, reals, &error) != 0, type == PIPECAST_TEXT);
        assert_int_equal(pipecast_results_integers(results, c, integers, &error) != 0, type != PIPECAST_INTEGER);
        for (int64_t row = 0; row < 6 && type == PIPECAST_INTEGER; row++)
            assert_int_equal(integers[row], pipecast_results_integer(results, row, c));
        for (int64_t row = 0; row < 6 && type != PIPECAST_TEXT; row++) {
            double one = pipecast_results_real(results, row, c);
            assert_true(reals[row] == one || (isnan(one) && isnan(reals[row])));
        }
    }
    assert_int_equal(pipecast_results_reals(results, -1, reals, NULL), PIPECAST_ERROR_INPUT);
    pipecast_results_free(results);
}

/* ---- traces ---- */

/* Row 0: 2 devices, 4 microbatches: 16 passes, 16 changes of memory; each microbatch goes down and up: 8 transfers. */
static void check_trace(const pipecast_results *results) {
    int64_t device[16], kind[16], microbatch[16];
    double start[16], end[16], level[16], peak[2], busy[2];
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    assert_ok(pipecast_results_replay(results, 0, &replay, &error), &error);
    assert_int_equal(pipecast_replay_passes(replay, NULL, NULL, NULL, NULL, NULL, NULL), 16);
    assert_int_equal(pipecast_replay_passes(replay, device, kind, NULL, microbatch, start, end), 16);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(device[i], i / 8);
        assert_true(fabs(end[i] - start[i] - (kind[i] == PIPECAST_PASS_F ? 1e-3 : 2e-3)) < 1e-15);
    }
    assert_true(start[0] == 0 && microbatch[0] == 0 && kind[0] == PIPECAST_PASS_F);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_MAKESPAN) - iteration_of_six(0)) < 1e-15);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_BUBBLE_RATE_MAKESPAN) - 0.2) < 1e-12); /* 1 - 12/15 */
    assert_true(isnan(pipecast_replay_number(replay, 5)));
    assert_int_equal(pipecast_replay_levels(replay, NULL, NULL, level), 16);
    assert_int_equal(pipecast_replay_transfers(replay, NULL, NULL, NULL, NULL), 8);
    assert_int_equal(pipecast_replay_devices(replay, NULL, NULL, busy, peak), 2);
    assert_true(peak[0] == 2 * 0x1p30 && peak[1] == 0x1p30 && level[0] == 0x1p30);
    assert_true(fabs(busy[0] - 12e-3) < 1e-15);
    assert_true(pipecast_replay_number(replay, PIPECAST_PEAK) == 2 * 0x1p30);
    pipecast_replay_free(replay);
    pipecast_replay_free(NULL);
}

static void test_traces(void **state) {
    const folder *at = *state;
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    pipecast_results *results = run_text(six, NULL); /* whose scenario and sweep are gone */
    check_trace(results);
    assert_int_equal(pipecast_results_replay(results, 6, &replay, &error), PIPECAST_ERROR_INPUT);
    pipecast_results_free(results);
    results = run_text(six, at->file);
    check_trace(results);
    pipecast_results_free(results);
    assert_ok(pipecast_results_open(at->file, &results, &error), &error);
    check_trace(results);
    pipecast_results_free(results);
}

static void test_no_trace(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.trace=false"};
    pipecast_error error = {0};
    pipecast_scenario *scenario = NULL;
    pipecast_replay *replay = NULL;
    assert_ok(pipecast_scenario_load(NULL, six, sets, 1, 0, &scenario, &error), &error);
    pipecast_results *results = run_sweep(sweep_of(scenario, NULL));
    assert_int_equal(pipecast_results_replay(results, 0, &replay, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "kept no trace"));
    pipecast_results_free(results);
    pipecast_scenario_free(scenario);
}

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

/* ---- schedules ---- */

static pipecast_schedule *generate(const char *name, int64_t devices, int64_t microbatches) {
    pipecast_error error = {0};
    pipecast_schedule *schedule = NULL;
    assert_ok(pipecast_schedule_generate(name, devices, microbatches, 0, NULL, NULL, NULL, &schedule, &error), &error);
    return schedule;
}

static void check_1f1b(const pipecast_schedule *schedule) {
    double peak[4];
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    assert_ok(pipecast_schedule_check(schedule, &error), &error);
    assert_ok(pipecast_schedule_replay(schedule, NULL, &replay, &error), &error);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_SPAN) - 33.0) < 1e-9);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_BUBBLE_RATE_SPAN) - 3.0 / 11.0) < 1e-9);
    assert_int_equal(pipecast_replay_devices(replay, NULL, NULL, NULL, peak), 4);
    for (int d = 0; d < 4; d++) assert_true(fabs(peak[d] - (4 - d)) < 1e-9);
    pipecast_replay_free(replay);
}

static void test_schedule(void **state) {
    const folder *at = *state;
    int64_t devices, microbatches, chunks, kind[16], chunk[16], microbatch[16];
    int placement;
    pipecast_error error = {0};
    pipecast_schedule *schedule = generate("1f1b", 4, 8), *again = NULL;
    assert_string_equal(pipecast_schedule_name(schedule), "1f1b");
    pipecast_schedule_shape(schedule, &devices, &microbatches, &chunks, &placement);
    assert_true(devices == 4 && microbatches == 8 && chunks == 1 && placement == PIPECAST_LINEAR);
    pipecast_schedule_shape(schedule, NULL, NULL, NULL, NULL);
    assert_int_equal(pipecast_schedule_passes(schedule, 3, kind, chunk, microbatch), 16);
    assert_true(kind[0] == PIPECAST_PASS_F && kind[1] == PIPECAST_PASS_BW && microbatch[15] == 7 && chunk[9] == 0);
    assert_int_equal(pipecast_schedule_passes(schedule, 4, kind, NULL, NULL), 0);
    check_1f1b(schedule);
    assert_ok(pipecast_schedule_write(schedule, at->file, &error), &error);
    assert_ok(pipecast_schedule_load(at->file, &again, &error), &error);
    check_1f1b(again);
    pipecast_schedule_free(again);
    pipecast_schedule_free(schedule);
    pipecast_schedule_free(NULL);
}

/* 1F1B of 4 devices, pass by pass, is the one with the name; with its first two passes exchanged it cannot run. */
static void test_own_schedule(void **state) {
    (void)state;
    int64_t count[4], kind[64], chunk[64], microbatch[64], total = 0;
    pipecast_error error = {0};
    pipecast_schedule *named = generate("1f1b", 4, 8), *own = NULL;
    for (int d = 0; d < 4; d++) {
        count[d] = pipecast_schedule_passes(named, d, kind + total, chunk + total, microbatch + total);
        total += count[d];
    }
    assert_ok(pipecast_schedule_create("own", 4, 8, 1, PIPECAST_LINEAR, count, kind, chunk, microbatch, &own, &error),
              &error);
    check_1f1b(own);
    pipecast_schedule_free(own);
    pipecast_schedule_free(named);
    kind[48] = PIPECAST_PASS_BW; /* of the last device */
    kind[49] = PIPECAST_PASS_F;
    assert_ok(pipecast_schedule_create("own", 4, 8, 1, PIPECAST_LINEAR, count, kind, chunk, microbatch, &own, &error),
              &error);
    assert_int_equal(pipecast_schedule_check(own, &error), PIPECAST_ERROR_INPUT);
    pipecast_replay *replay = NULL;
    assert_int_equal(pipecast_schedule_replay(own, NULL, &replay, &error), PIPECAST_ERROR_INPUT);
    pipecast_schedule_free(own);
}

static void test_what_is_no_schedule(void **state) {
    (void)state;
    static const int64_t two[] = {2}, negative[] = {-1}, kind[] = {0, 3}, zero[] = {0, 0}, one[] = {0, 1},
                         none[] = {0, 5};
    static const char long_name[] = "a name that is longer than the library has room for, and so is refused as it is";
    const struct {
        const char *name;
        int64_t chunks;
        int placement;
        const int64_t *count, *kind, *chunk, *microbatch;
        const char *says;
    } bad[] = {
        {"x", 1, PIPECAST_LINEAR, two, none, zero, zero, "kind 5"},
        {"x", 1, PIPECAST_LINEAR, two, kind, one, zero, "chunk 1"},
        {"x", 1, PIPECAST_LINEAR, two, kind, zero, one, "microbatch 1"},
        {"x", 2, PIPECAST_LINEAR, two, kind, zero, zero, "chunks: 2"},
        {"x", 1, PIPECAST_BIDIRECTIONAL, two, kind, zero, zero, "chunks: 1"},
        {"x", 1, 4, two, kind, zero, zero, "placement: 4"},
        {"x", 0, PIPECAST_V, two, kind, zero, zero, "chunks"},
        {"x", 1, PIPECAST_LINEAR, negative, kind, zero, zero, "pass_count"},
        {long_name, 1, PIPECAST_LINEAR, two, kind, zero, zero, "name: "},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pipecast_error error = {0};
        pipecast_schedule *untouched = NULL;
        assert_int_equal(pipecast_schedule_create(bad[i].name, 1, 1, bad[i].chunks, bad[i].placement, bad[i].count,
                                                  bad[i].kind, bad[i].chunk, bad[i].microbatch, &untouched, &error),
                         PIPECAST_ERROR_INPUT);
        if (!strstr(error.message, bad[i].says)) fail_msg("%s: %s", bad[i].says, error.message);
        assert_null(untouched);
    }
}

/* V-Half of 4 devices holds about half of what 1F1B does, 4; with a limit of 0.2 nothing does. */
static void test_requests(void **state) {
    (void)state;
    static const double little[] = {0.2, 0.2, 0.2, 0.2}, negative[] = {-1, 4, 4, 4}, some[] = {3, INFINITY, 4, 4};
    pipecast_error error = {0};
    pipecast_schedule *schedule = NULL;
    pipecast_costs costs = PIPECAST_COSTS;
    assert_int_equal(pipecast_schedule_generate("v-half", 4, 8, 0, &costs, little, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "0.2 is too little for v-half"));
    assert_int_equal(pipecast_schedule_generate("v-half", 4, 8, 0, &costs, negative, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_ok(pipecast_schedule_generate("v-half", 4, 8, 0, &costs, some, "equal", &schedule, &error), &error);
    pipecast_schedule_free(schedule);
    assert_int_equal(pipecast_schedule_generate("v-half", 4, 8, 0, NULL, NULL, "fast", &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_schedule_generate("v-hlaf", 4, 8, 0, NULL, NULL, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "did you mean v-half"));
    assert_int_equal(pipecast_schedule_generate("1f1b", 0, 8, 0, NULL, NULL, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_schedule_generate("1f1b", 4, 8, 3, NULL, NULL, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
}

/* Times in a unit of one's own come back in it: doubled times are a doubled span. */
static void test_costs(void **state) {
    (void)state;
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    pipecast_schedule *schedule = generate("1f1b", 4, 8);
    pipecast_costs costs = {.f = 2, .b = 2, .w = 2};
    assert_ok(pipecast_schedule_replay(schedule, &costs, &replay, &error), &error);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_MAKESPAN) - 66.0) < 1e-9);
    pipecast_replay_free(replay);
    const pipecast_costs bad[] = {{.f = -1, .b = 1, .w = 1},           {.f = NAN, .b = 1, .w = 1},
                                  {.f = INFINITY, .b = 1, .w = 1},     {.f = 1, .b = 1, .w = 1, .release_b = 1.5},
                                  {.f = 1, .b = 1, .w = 1, .keep = 2}, {.f = 1, .b = 1, .w = 1, .transfer = -1},
                                  {.f = 1e-300, .b = 1e300, .w = 1},   {.f = 1, .b = 1, .w = 1, .reserved = {0, 1}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pipecast_schedule_replay(schedule, &bad[i], &replay, &error), PIPECAST_ERROR_INPUT);
    pipecast_schedule_free(schedule);
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

static void test_plan(void **state) {
    (void)state;
    told t = {0};
    pipecast_error error = {0};
    pipecast_plan *plan = NULL;
    pipecast_results *plans = NULL, *all = NULL;
    assert_ok(pipecast_plan_load(NULL, search, NULL, 0, 0, &plan, &error), &error);
    assert_ok(pipecast_plan_run(plan, 2, 0, look_on, &t, &plans, &error), &error);
    assert_ok(pipecast_plan_run(plan, 1, PIPECAST_ALL_VARIANTS | PIPECAST_EXHAUSTIVE, NULL, NULL, &all, &error),
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
    assert_null(pipecast_plan_set(plans, count, 0));
    assert_null(pipecast_plan_set(plans, 0, -1));
    pipecast_results_free(all);
    pipecast_results_free(plans);
    pipecast_plan_free(NULL);
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

/* ---- lists ---- */

static void test_lists(void **state) {
    (void)state;
    static const char *const has[] = {"zb-h1", "llama3-70b", "dgx-h100", "microbatches"};
    pipecast_error error = {0};
    pipecast_results *list = NULL;
    char name[128], words[512];
    for (int subject = 0; subject < 4; subject++) {
        int found = 0;
        assert_ok(pipecast_list(subject, &list, &error), &error);
        for (int64_t row = 0; row < pipecast_results_row_count(list); row++) {
            pipecast_results_text(list, row, pipecast_results_find(list, "name"), name, sizeof name);
            assert_true(pipecast_results_text(list, row, pipecast_results_find(list, "words"), words, sizeof words) >
                        0);
            found += strcmp(name, has[subject]) == 0;
        }
        assert_int_equal(found, 1);
        assert_int_equal(pipecast_results_find(list, "value") >= 0, subject == PIPECAST_SETTINGS);
        pipecast_replay *replay = NULL;
        assert_int_equal(pipecast_results_replay(list, 0, &replay, &error), PIPECAST_ERROR_INPUT);
        pipecast_results_free(list);
    }
    assert_int_equal(pipecast_list(4, &list, &error), PIPECAST_ERROR_INPUT);
}

/* ---- profiles ---- */

static void test_no_profile(void **state) {
    const folder *at = *state;
    pipecast_error error = {0};
    pipecast_profile *profile = NULL;
    assert_int_equal(pipecast_profile_open(at->file, &profile, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, at->file));
    pipecast_results_free(run_text(six, at->file));
    assert_int_equal(pipecast_profile_open(at->file, &profile, &error), PIPECAST_ERROR_INPUT); /* another kind */
    assert_null(profile);
    pipecast_profile_free(NULL);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_scenario),
        cmocka_unit_test(test_error_knows_where),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_decimal_commas),
        cmocka_unit_test(test_values_that_are_none),
        cmocka_unit_test(test_columns),
        TEST_IN_FOLDER(test_traces, "r.h5"),
        cmocka_unit_test(test_no_trace),
        TEST_IN_FOLDER(test_stop_and_go_on, "r.h5"),
        TEST_IN_FOLDER(test_shards, "r.h5"),
        TEST_IN_FOLDER(test_what_a_sweep_refuses, "r.h5"),
        TEST_IN_FOLDER(test_schedule, "s.csv"),
        cmocka_unit_test(test_own_schedule),
        cmocka_unit_test(test_what_is_no_schedule),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_no_plan),
        cmocka_unit_test(test_lists),
        TEST_IN_FOLDER(test_no_profile, "p.h5"),
        TEST_IN_FOLDER(test_threads, "r.h5"),
        TEST_IN_FOLDER(test_one_handle_is_read_by_two, "r.h5"),
        TEST_IN_FOLDER(test_callbacks_may_call, "r.h5"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
