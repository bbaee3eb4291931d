/* The library as others see it: pipecast.h alone, linked with the shared library. Scenarios, results, traces, lists;
 * for sweeps, plans and threads see test_api_sweep.c, for schedules test_api_schedule.c. 1F1B with F, B, W of one unit
 * each, p devices and m microbatches takes (m + p - 1) * 3. What the command says of the same is compared in
 * tests/golden/test_api.py. */
#include "tests/api_example.h"
#include "tests/comma_locale.h"

#include <math.h>
#include <stdbool.h>

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

/* ---- configurations of other programs ---- */

static void write_script(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* One sentence each. */
static void add_note(void *context, const char *text) {
    assert_true(*text && !strchr(text, '\n'));
    strcat(strcat(context, text), "\n");
}

/* What it says can be run as it is; a word that nobody knows is a note, a value that cannot be an error with its line.
 */
static void test_import(void **state) {
    const folder *at = *state;
    static const char script[] = "python pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16\\\n"
                                 " --seq-length 1024 --micro-batch-size 1 --global-batch-size 8 --vocab-size 50257\\\n"
                                 " --pipeline-model-parallel-size 2 --num-experts-of-old 3";
    pipecast_error error = {0};
    char notes[4096] = "";
    pipecast_imported *imported = NULL;
    pipecast_scenario *scenario = NULL;
    write_script(at->file, script);
    assert_ok(pipecast_import_file("megatron", at->file, add_note, notes, &imported, &error), &error);
    assert_non_null(strstr(pipecast_imported_text(imported), "layers: 8"));
    assert_non_null(strstr(notes, "num-experts-of-old"));
    assert_ok(pipecast_scenario_load(at->file, pipecast_imported_text(imported), NULL, 0, 0, &scenario, &error),
              &error);
    assert_int_equal(pipecast_scenario_run_count(scenario), 1);
    pipecast_scenario_free(scenario);
    pipecast_imported_free(imported);
    pipecast_imported_free(imported = NULL);
    assert_int_equal(pipecast_import_file("mega", at->file, NULL, NULL, &imported, &error), PIPECAST_ERROR_INPUT);
    assert_string_equal(error.message, "format: 'mega'; expected hf|megatron|nemo|deepspeed");
    assert_int_equal(pipecast_import_file("hf", at->file, NULL, NULL, &imported, &error), PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_import_file("nemo", "no/such/recipe.yaml", NULL, NULL, &imported, NULL),
                     PIPECAST_ERROR_INPUT);
    assert_null(imported);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),           cmocka_unit_test(test_scenario),
        cmocka_unit_test(test_error_knows_where), cmocka_unit_test(test_overrides),
        TEST_IN_FOLDER(test_import, "train.sh"),  cmocka_unit_test(test_rows),
        cmocka_unit_test(test_decimal_commas),    cmocka_unit_test(test_values_that_are_none),
        cmocka_unit_test(test_columns),           TEST_IN_FOLDER(test_traces, "r.h5"),
        cmocka_unit_test(test_no_trace),          cmocka_unit_test(test_lists),
        TEST_IN_FOLDER(test_no_profile, "p.h5"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
