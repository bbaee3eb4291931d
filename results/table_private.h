/* table_private.h: private to results/: the aligned table for people, and cells of CSV and JSON. */
#ifndef PC_RESULTS_TABLE_PRIVATE_H
#define PC_RESULTS_TABLE_PRIVATE_H

#include "models/training/run.h"
#include "results/columns.h"
#include "results/text.h"

#include <stdint.h>

/* Adds the table of `count` rows. Call it within a number scope. */
void pc_table_text_add(const pc_run_row *rows, int64_t count, pc_text *text);

/* Adds what the row has in the column as a cell of a CSV, and as a JSON value; nothing and null where it is not
 * defined. Call it within a number scope. */
void pc_table_add_csv(pc_text *line, const pc_column *column, const pc_run_row *row);
void pc_table_add_json(pc_text *line, const pc_column *column, const pc_run_row *row);

#endif
