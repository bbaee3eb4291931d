/* A program of others, for tests/golden/test_api.py: prints tables of the library as CSV, cell by cell, by pipecast.h
 * alone.
 *
 * usage: api_table run SCENARIO.yaml [RESULTS.h5] | plan SCENARIO.yaml | open RESULTS.h5 | list SUBJECT |
 *                  fits PROFILE.h5 | ask PROFILE.h5 FIT NUMBER... | schedule NAME DEVICES MICROBATCHES FILE.csv */
#include <pipecast.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_cell(const char *text) {
    int is_quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (is_quoted) putchar('"');
    for (; *text; text++) printf(*text == '"' ? "\"\"" : "%c", *text);
    if (is_quoted) putchar('"');
}

static void print_table(const pipecast_results *table) {
    char text[512];
    int columns = pipecast_results_column_count(table);
    for (int c = 0; c < columns; c++) printf("%s%s", c ? "," : "", pipecast_results_column_name(table, c));
    for (int64_t row = 0; row < pipecast_results_row_count(table); row++) {
        for (int c = 0; c < columns; c++) {
            pipecast_results_text(table, row, c, text, sizeof text);
            putchar(c ? ',' : '\n');
            print_cell(text);
        }
    }
    putchar('\n');
}

static int run(const char *path, const char *output, pipecast_results **table, pipecast_error *error) {
    pipecast_scenario *scenario = NULL;
    pipecast_sweep *sweep = NULL;
    int code = pipecast_scenario_load(path, NULL, NULL, 0, 0, &scenario, error);
    const pipecast_scenario *list[] = {scenario};
    if (!code) code = pipecast_sweep_create(list, 1, &sweep, error);
    if (!code) code = pipecast_sweep_set_output(sweep, output, 0, error);
    if (!code) code = pipecast_sweep_run(sweep, table, error);
    pipecast_sweep_free(sweep);
    pipecast_scenario_free(scenario);
    return code;
}

static int search(const char *path, pipecast_results **table, pipecast_error *error) {
    pipecast_plan *plan = NULL;
    int code = pipecast_plan_load(path, NULL, NULL, 0, 0, &plan, error);
    if (!code) code = pipecast_plan_run(plan, 0, 0, NULL, NULL, table, error);
    pipecast_plan_free(plan);
    return code;
}

static int open_fits(const char *path, pipecast_results **table, pipecast_error *error) {
    pipecast_profile *profile = NULL;
    int code = pipecast_profile_open(path, &profile, error);
    if (!code) code = pipecast_profile_fits(profile, table, error);
    if (!code) printf("%s,%s\n", pipecast_profile_device(profile), pipecast_profile_gpu(profile));
    pipecast_profile_free(profile);
    return code;
}

static int ask(int argc, char **argv, pipecast_error *error) {
    enum { DIMENSIONS_MAX = 8 };
    double shape[DIMENSIONS_MAX], seconds, deviation;
    size_t count = 0;
    pipecast_profile *profile = NULL;
    int code = pipecast_profile_open(argv[2], &profile, error);
    for (int i = 4; i < argc && count < DIMENSIONS_MAX; i++) shape[count++] = atof(argv[i]);
    if (!code) code = pipecast_profile_ask(profile, atoll(argv[3]), shape, count, &seconds, &deviation, error);
    if (!code) printf("%.17g,%.17g\n", seconds, deviation);
    pipecast_profile_free(profile);
    return code;
}

/* Its span, and the file in which it is written. */
static int judge(char **argv, pipecast_error *error) {
    pipecast_schedule *schedule = NULL, *again = NULL;
    pipecast_replay *replay = NULL;
    int code =
        pipecast_schedule_generate(argv[2], atoll(argv[3]), atoll(argv[4]), 0, NULL, NULL, NULL, &schedule, error);
    if (!code) code = pipecast_schedule_write(schedule, argv[5], error);
    if (!code) code = pipecast_schedule_load(argv[5], &again, error);
    if (!code) code = pipecast_schedule_replay(again, NULL, &replay, error);
    if (!code) printf("%.17g\n", pipecast_replay_number(replay, PIPECAST_SPAN));
    pipecast_replay_free(replay);
    pipecast_schedule_free(again);
    pipecast_schedule_free(schedule);
    return code;
}

static int work(int argc, char **argv, pipecast_results **table, pipecast_error *error) {
    const char *word = argv[1], *first = argv[2];
    if (strcmp(word, "run") == 0) return run(first, argc > 3 ? argv[3] : NULL, table, error);
    if (strcmp(word, "plan") == 0) return search(first, table, error);
    if (strcmp(word, "open") == 0) return pipecast_results_open(first, table, error);
    if (strcmp(word, "list") == 0) return pipecast_list(atoi(first), table, error);
    if (strcmp(word, "fits") == 0) return open_fits(first, table, error);
    if (strcmp(word, "ask") == 0 && argc > 4) return ask(argc, argv, error);
    if (strcmp(word, "schedule") == 0 && argc > 5) return judge(argv, error);
    return PIPECAST_ERROR_INPUT;
}

int main(int argc, char **argv) {
    pipecast_error error = {.message = "usage"};
    pipecast_results *table = NULL;
    int code = argc > 2 ? work(argc, argv, &table, &error) : PIPECAST_ERROR_INPUT;
    if (!code && table) print_table(table);
    if (code) fprintf(stderr, "%d %s\n", error.code, error.message);
    pipecast_results_free(table);
    return code;
}
