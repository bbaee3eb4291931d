/* compare_private.h: private to results/: which rows of two tables belong together, and where they differ. */
#ifndef PC_RESULTS_COMPARE_PRIVATE_H
#define PC_RESULTS_COMPARE_PRIVATE_H

#include "results/columns.h"
#include "results/compare.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdint.h>

/* A column over all runs that both have. */
typedef struct pc_column_difference {
    int64_t runs;        /* in so many it differs */
    double largest;      /* relative difference, the farthest from zero; NaN if there is none */
    int64_t largest_row; /* of A */
} pc_column_difference;

/* A place where the two differ: a row of A, which has one of B, and a column. */
typedef struct pc_difference {
    int64_t row;
    int column;
    int64_t next; /* in the order by size; unused run by run */
} pc_difference;

#define PC_DIFFERENCE_START ((pc_difference){.column = -1})

typedef struct pc_comparison {
    const pc_compare_options *options;
    const pc_run_row *a, *b;
    int64_t a_count, b_count;
    int64_t *b_of_a;               /* for each row of A the row of B that belongs to it, or -1 */
    bool *b_is_used;               /* for each row of B whether one of A belongs to it */
    pc_column_difference *columns; /* in the order of pc_columns */
    int64_t difference_count;      /* over all runs and columns */
    pc_difference *by_change;      /* NULL, or all differences by size */
    pc_compare_summary summary;
} pc_comparison;

/* Which rows belong together, and where they differ, in the order that the options ask for; borrows all. Free it after
 * an error, too. */
pc_code pc_comparison_make(const pc_run_row *a, int64_t a_count, const pc_run_row *b, int64_t b_count,
                           const pc_compare_options *options, pc_comparison *c, pc_error *error);
void pc_comparison_free(pc_comparison *c);

/* Moves on to the next; false if there is none left. */
bool pc_difference_next(const pc_comparison *c, pc_difference *at);

/* (b - a) / |a|; NaN if the column is none of numbers, or one of them is not defined, or there is no such number. */
double pc_relative_difference(const pc_column *column, const pc_run_row *a, const pc_run_row *b);

/* How far apart a difference's values are: their relative difference without its sign; infinite if only one is there or
 * A's is 0; -1 of words. */
double pc_difference_size(const pc_comparison *c, const pc_difference *at);

/* Whether only some columns are compared: those that were chosen. */
bool pc_comparison_has_choice(const pc_comparison *c);

/* The run's name for people, after its scenario's if there are several. */
bool pc_comparison_has_one_scenario(const pc_comparison *c);
void pc_compare_add_label(pc_text *cell, const pc_run_row *row, bool with_scenario);

/* What differs as a table for people, and as CSV or JSON, by way of `text`, which is empty. Call them within a number
 * scope; false if the stream fails or memory was short. */
PC_MUST_USE bool pc_compare_table(const pc_comparison *c, pc_text *text, FILE *stream);
PC_MUST_USE bool pc_compare_rows(const pc_comparison *c, pc_text *text, FILE *stream);

#endif
