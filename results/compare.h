/* compare.h: two results files beside each other: which runs both have, and in what they differ. */
#ifndef PC_RESULTS_COMPARE_H
#define PC_RESULTS_COMPARE_H

#include "engine/error.h"
#include "results/column_choice.h"
#include "results/row.h"
#include "results/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed, with a format, they are fine: what is NULL is not known. */
typedef struct pc_compare_options {
    double tolerance; /* relative to A's number: those at most this far apart count as equal; 0: equal to the last bit.
                       * Above 0, trace_hash, which changes with the smallest change of a time, is not compared */
    pc_format format;
    const pc_column_choice
        *columns;   /* of pc_table_column_name; NULL, or all: every column but those that say which run it is */
    bool by_change; /* differences by their size, the largest first; else run by run */
    bool all;       /* TABLE: every difference and every run that only one has, not just the first */
    const char *name_a, *name_b;       /* what the files are called, for the table and for messages */
    const char *version_a, *version_b; /* of the pipecast that wrote them; TABLE says so where they are not the same */
} pc_compare_options;

typedef struct pc_compare_summary {
    int64_t both; /* runs that both have: of one scenario and one name */
    int64_t only_a, only_b;
    int64_t different; /* of `both`, those that differ in any column but the number of the run */
} pc_compare_summary;

/* Writes what differs. Rows of one scenario and name belong together, whatever their order; all columns but the number
 * of the run are compared, and a value differs from none. Of numbers the relative difference is (b - a) / |a|, and
 * there is none where a is 0. TABLE has a line a run and column that differ (run, column, a, b, difference). If a
 * column differs more than once, it has a line with its largest relative difference. Then come the runs that only one
 * has, and a line that sums up. CSV, JSON: a row a difference: scenario, name, column, a, b, difference (b - a),
 * relative; and for a run that only one has a row with column "run" and its number there. Takes time in proportion to
 * the rows. By size: values that only one has, and changes from 0, come first; then relative differences, the farthest
 * from zero first; then words. Equals stay run by run. PC_ERROR_INPUT if a file has two rows of one scenario and name;
 * PC_ERROR_IO if the stream fails. */
pc_code pc_compare(const pc_run_row *a, int64_t a_count, const pc_run_row *b, int64_t b_count,
                   const pc_compare_options *options, FILE *stream, pc_compare_summary *summary, pc_error *error);

/* Draws the differences of numbers as bars, the largest first, at most `PC_COMPARE_BARS_MOST` of them; says below how
 * many are left out, and how many have no size. Uses the columns, the tolerance and the names of the options.
 * `is_dark`: light on a dark ground. Errors as above, and those of drawing. */
enum { PC_COMPARE_BARS_MOST = 30 };
pc_code pc_compare_draw(const pc_run_row *a, int64_t a_count, const pc_run_row *b, int64_t b_count,
                        const pc_compare_options *options, bool is_dark, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
