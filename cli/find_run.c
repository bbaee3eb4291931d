#include "cli/find_run.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LOOKED_AT_MOST = 100000 }; /* of runs, for one that a name may mean: an answer is not worth seconds */

typedef bool is_meant(const pc_run_row *row, const char *name);

static bool has_name(const pc_run_row *row, const char *name) {
    return strcmp(row->name, name) == 0;
}

static bool has_name_in_scenario(const pc_run_row *row, const char *name) {
    size_t length = strlen(row->scenario);
    return strncmp(row->scenario, name, length) == 0 && name[length] == '/' &&
           strcmp(row->name, name + length + 1) == 0;
}

static bool has_number(const pc_run_row *row, const char *name) {
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, row->run);
    return strcmp(number, name) == 0;
}

/* The first and, where there is a second, the second of those meant; returns how many there are. */
static int64_t find(const pc_results_reader *reader, const char *name, is_meant *meant, const pc_run_row *found[2]) {
    int64_t count = 0;
    for (int64_t i = 0; i < pc_results_run_count(reader); i++) {
        const pc_run_row *row = pc_results_row(reader, i);
        if (!meant(row, name)) continue;
        if (count < 2) found[count] = row;
        count++;
    }
    return count;
}

/* Two scenarios may have one name, too: then only numbers tell their runs apart. */
static pc_code refuse_ambiguous(const char *path, const char *name, int64_t count, const pc_run_row *const found[2],
                                pc_error *error) {
    if (strcmp(found[0]->scenario, found[1]->scenario) != 0)
        return pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "'%s' is the name of %" PRId64 " runs; expected one, such as %s/%s or %s/%s", name,
                                 count, found[0]->scenario, found[0]->name, found[1]->scenario, found[1]->name);
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "'%s' is the name of %" PRId64 " runs; expected a number, such as %" PRId64 " or %" PRId64,
                             name, count, found[0]->run, found[1]->run);
}

/* Of runs the names, and those with their scenarios where the word has one too. */
static const char *run_hint(const pc_results_reader *reader, const char *name, const pc_nearest *others,
                            char text[PC_NEAREST_TEXT]) {
    pc_nearest nearest = {.word = name};
    if (others) nearest = *others;
    char whole[2 * PC_LABEL_SIZE];
    for (int64_t i = 0; i < pc_results_run_count(reader) && i < LOOKED_AT_MOST; i++) {
        const pc_run_row *row = pc_results_row(reader, i);
        snprintf(whole, sizeof whole, "%s/%s", row->scenario, row->name);
        if (strchr(name, '/'))
            pc_nearest_offer(&nearest, whole);
        else
            pc_nearest_offer(&nearest, row->name);
    }
    return pc_nearest_hint(&nearest, text);
}

const char *scenario_hint(const pc_results_reader *reader, const char *name, char text[PC_NEAREST_TEXT]) {
    pc_nearest nearest = {.word = name};
    for (int64_t i = 0; i < pc_results_run_count(reader) && i < LOOKED_AT_MOST; i++)
        pc_nearest_offer(&nearest, pc_results_row(reader, i)->scenario);
    return pc_nearest_hint(&nearest, text);
}

pc_code find_run(const pc_results_reader *reader, const char *path, const char *name, const pc_nearest *others,
                 const pc_run_row **row, pc_error *error) {
    static is_meant *const ways[] = {has_name, has_name_in_scenario, has_number};
    const pc_run_row *found[2] = {NULL, NULL};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int64_t count = find(reader, name, ways[i], found);
        if (count == 0) continue;
        if (count > 1) return refuse_ambiguous(path, name, count, found, error);
        *row = found[0];
        return PC_OK;
    }
    char hint[PC_NEAREST_TEXT];
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "no %s '%s'%s; expected the name or number of one, or SCENARIO/NAME",
                             others ? "chart or run" : "run", name, run_hint(reader, name, others, hint));
}

static pc_code find_first_traced(const pc_results_reader *reader, const char *path, const pc_run_row **row,
                                 pc_trace_record *record, pc_error *error) {
    for (int64_t i = 0; i < pc_results_run_count(reader); i++) {
        const pc_run_row *candidate = pc_results_row(reader, i);
        if (pc_results_read_trace(reader, candidate->run, record, error)) continue;
        *row = candidate;
        return PC_OK;
    }
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "no run kept a trace; expected a scenario with `trace: true`");
}

pc_code find_traced_run(const pc_results_reader *reader, const char *path, const char *name, const pc_nearest *others,
                        const pc_run_row **row, pc_trace_record *record, pc_error *error) {
    if (!name) return find_first_traced(reader, path, row, record, error);
    pc_code code = find_run(reader, path, name, others, row, error);
    return code ? code : pc_results_read_trace(reader, (*row)->run, record, error);
}

static pc_code find_first_engine_run(const pc_results_reader *reader, const char *path, const pc_run_row **row,
                                     pc_error *error) {
    for (int64_t i = 0; i < pc_results_run_count(reader); i++) {
        *row = pc_results_row(reader, i);
        if (pc_results_has_engine_trace(reader, (*row)->run)) return PC_OK;
    }
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "no run kept a trace of the engine; expected a scenario with `engine: events` and `trace: "
                             "true`");
}

pc_code find_engine_run(const pc_results_reader *reader, const char *path, const char *name, const pc_run_row **row,
                        pc_trace_record *record, pc_error *error) {
    pc_code code =
        name ? find_run(reader, path, name, NULL, row, error) : find_first_engine_run(reader, path, row, error);
    if (!code && !pc_results_has_engine_trace(reader, (*row)->run))
        return pc_error_set_file(
            error, PC_ERROR_INPUT, path,
            "run %s kept no trace of the engine; expected one of a scenario with `engine: events` and "
            "`trace: true`",
            name);
    return code ? code : pc_results_read_trace(reader, (*row)->run, record, error);
}
