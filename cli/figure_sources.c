#include "cli/figure_sources.h"

#include "engine/alloc.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static size_t ending_of(const char *word) {
    static const char *const endings[] = {".h5", ".hdf5"};
    size_t length = strlen(word);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcasecmp(word + length - ending, endings[i]) == 0) return ending;
    }
    return 0;
}

bool is_results_path(const char *word) {
    return ending_of(word) > 0;
}

/* --- labels --- */

/* The file's name without folder and ending. */
static void write_short_label(const char *path, char text[SOURCE_LABEL_SIZE]) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(text, SOURCE_LABEL_SIZE, "%.*s", (int)(strlen(name) - ending_of(name)), name);
}

/* Of a long path the end, in which paths differ most. */
static void write_long_label(const char *path, char text[SOURCE_LABEL_SIZE]) {
    size_t length = strlen(path);
    snprintf(text, SOURCE_LABEL_SIZE, "%s", length < SOURCE_LABEL_SIZE ? path : path + length - SOURCE_LABEL_SIZE + 1);
}

/* The first that an earlier one is the same as; -1 if all differ. */
static int find_double(const figure_sources *sources) {
    for (int i = 0; i < sources->count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(sources->label_text[i], sources->label_text[k]) == 0) return i;
    return -1;
}

static void write_labels(figure_sources *sources, void write(const char *path, char text[SOURCE_LABEL_SIZE])) {
    for (int i = 0; i < sources->count; i++) write(sources->path[i], sources->label_text[i]);
}

static void write_given_label(const char *label, char text[SOURCE_LABEL_SIZE]) {
    snprintf(text, SOURCE_LABEL_SIZE, "%s", label);
}

static pc_code choose_labels(figure_sources *sources, pc_error *error) {
    if (sources->labels && sources->labels != sources->count)
        return pc_error_set(error, PC_ERROR_INPUT, "figure: --label: %d label%s, %d file%s; expected one a file",
                            sources->labels, sources->labels == 1 ? "" : "s", sources->count,
                            sources->count == 1 ? "" : "s");
    for (int i = 0; i < sources->labels; i++) write_given_label(sources->given_label[i], sources->label_text[i]);
    if (!sources->labels) write_labels(sources, write_short_label);
    if (!sources->labels && find_double(sources) >= 0) write_labels(sources, write_long_label);
    int found = find_double(sources);
    if (found >= 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "figure: two files are called '%s'; expected a different --label for each",
                            sources->label_text[found]);
    for (int i = 0; i < sources->count; i++) sources->label[i] = sources->label_text[i];
    return PC_OK;
}

/* --- files --- */

pc_code figure_sources_open(figure_sources *sources, pc_error *error) {
    pc_code code = choose_labels(sources, error);
    for (int i = 0; i < sources->count && !code; i++)
        code = pc_results_open(sources->path[i], &sources->reader[i], error);
    return code;
}

void figure_sources_close(figure_sources *sources) {
    for (int i = 0; i < sources->count; i++) pc_results_close(sources->reader[i]);
}

pc_code refuse_several(const figure_sources *sources, const char *picture, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "figure: %s is of one results file, and there are %d; expected one, or a chart of all", picture,
                        sources->count);
}

/* --- rows --- */

static int64_t count_all(const figure_sources *sources) {
    int64_t all = 0;
    for (int i = 0; i < sources->count; i++) all += pc_results_run_count(sources->reader[i]);
    return all;
}

pc_code copy_source_rows(const figure_sources *sources, wants_row *wants, const void *context, source_rows *rows,
                         int *without, pc_error *error) {
    size_t all = (size_t)count_all(sources);
    *rows = (source_rows){.rows = pc_alloc(all, sizeof *rows->rows), .file = pc_alloc(all, sizeof *rows->file)};
    *without = -1;
    if (!rows->rows || !rows->file) return pc_error_no_memory(error);
    for (int i = 0; i < sources->count; i++) {
        int64_t before = rows->count;
        for (int64_t k = 0; k < pc_results_run_count(sources->reader[i]); k++) {
            const pc_run_row *row = pc_results_row(sources->reader[i], k);
            if (!wants(row, context)) continue;
            rows->file[rows->count] = i;
            rows->rows[rows->count++] = *row;
        }
        if (rows->count == before && *without < 0) *without = i;
    }
    return PC_OK;
}

void source_rows_free(source_rows *rows) {
    pc_free(rows->rows);
    pc_free(rows->file);
    *rows = (source_rows){0};
}

pc_chart_files files_of_rows(const figure_sources *sources, const source_rows *rows) {
    if (sources->count == 1 && !sources->labels) return (pc_chart_files){0};
    return (pc_chart_files){.count = sources->count, .label = sources->label, .of_row = rows->file};
}
