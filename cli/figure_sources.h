/* figure_sources.h: the results files that `pipecast figure` draws from. */
#ifndef PC_CLI_FIGURE_SOURCES_H
#define PC_CLI_FIGURE_SOURCES_H

#include "engine/error.h"
#include "results/figures/chart.h"
#include "results/store/store.h"

#include <stdbool.h>

enum { SOURCES_MAX = 16, SOURCE_LABEL_SIZE = 64 };

/* Zeroed but for paths and labels; then figure_sources_open. */
typedef struct figure_sources {
    int count;
    const char *path[SOURCES_MAX];
    int labels; /* how many are given, which may be more than there are files */
    const char *given_label[SOURCES_MAX];
    char label_text[SOURCES_MAX][SOURCE_LABEL_SIZE];
    const char *label[SOURCES_MAX]; /* what each is called in a legend */
    pc_results_reader *reader[SOURCES_MAX];
} figure_sources;

/* Whether a word of the command line is a file, not the name of a chart or run: it ends in .h5 or .hdf5. */
bool is_results_path(const char *word);

/* Names the files, by their labels or else their paths, and opens them. PC_ERROR_INPUT if labels are more or fewer than
 * files, or two are the same. Close with figure_sources_close, whatever comes back. */
pc_code figure_sources_open(figure_sources *sources, pc_error *error);
void figure_sources_close(figure_sources *sources);

/* PC_ERROR_INPUT: the picture is of one file, and there are several. */
pc_code refuse_several(const figure_sources *sources, const char *picture, pc_error *error);

/* Rows of all files, one behind the other, and the file of each. */
typedef struct source_rows {
    pc_run_row *rows;
    int *file;
    int64_t count;
} source_rows;

/* Whether a chart takes the row. */
typedef bool wants_row(const pc_run_row *row, const void *context);

/* Copies those that are wanted, of all files. *without is the first file that has none; -1 if all have some. The caller
 * frees them with source_rows_free, whatever comes back. */
pc_code copy_source_rows(const figure_sources *sources, wants_row *wants, const void *context, source_rows *rows,
                         int *without, pc_error *error);
void source_rows_free(source_rows *rows);

/* The files of the rows as a chart takes them: zeroed where there is one file without a label. */
pc_chart_files files_of_rows(const figure_sources *sources, const source_rows *rows);

#endif
