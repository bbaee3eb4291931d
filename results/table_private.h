/* table_private.h: private to results/: the aligned table for people, and cells of CSV and JSON. */
#ifndef PC_RESULTS_TABLE_PRIVATE_H
#define PC_RESULTS_TABLE_PRIVATE_H

#include "results/columns.h"
#include "results/row.h"
#include "results/table.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Columns that rows have beside those of columns.h; in a choice of columns their numbers come behind these. */
typedef struct pc_table_extra {
    const char *name;
    bool is_text; /* stands to the left */
} pc_table_extra;

typedef struct pc_table_extras {
    const pc_table_extra *extra; /* `count` of them */
    int count;
    void (*add)(const void *context, int64_t index, int extra, pc_text *cell); /* what row `index` has */
    const void *context;
} pc_table_extras;

/* Rows on their way into a table, one at a time. */
typedef struct pc_table_rows {
    pc_table_source *source;
    void *context;
    int64_t count;
    const pc_table_look *look; /* never NULL */
    pc_table_extras extras;
    pc_run_row row; /* the last that was read */
    int64_t index;  /* its number */
    pc_code code;   /* not PC_OK if one could not be: then `error`, which may be NULL, says why */
    pc_error *error;
} pc_table_rows;

/* Row `index`, until the next is asked for; NULL if it could not be read. */
const pc_run_row *pc_table_row(pc_table_rows *rows, int64_t index);

/* Writes the table, by way of `text`, which is empty. Call it within a number scope; false if the text or the stream
 * fails, or where a row could not be read. */
PC_MUST_USE bool pc_table_text_write(pc_table_rows *rows, pc_text *text, FILE *stream);

/* Adds what the row has in the column as a cell of a CSV, and as a JSON value; nothing and null where it is not
 * defined. Call it within a number scope. */
void pc_table_add_csv(pc_text *line, const pc_column *column, const pc_run_row *row);
void pc_table_add_json(pc_text *line, const pc_column *column, const pc_run_row *row);

#endif
