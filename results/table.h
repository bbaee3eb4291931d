/* table.h: rows of results as text: an aligned table for people, CSV and JSON for programs. */
#ifndef PC_RESULTS_TABLE_H
#define PC_RESULTS_TABLE_H

#include "engine/api.h"
#include "engine/error.h"
#include "models/training/run.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_format { PC_FORMAT_TABLE, PC_FORMAT_CSV, PC_FORMAT_JSON } pc_format;

/* "table", "csv", "json"; false where the name is none of them. */
PC_MUST_USE PC_API bool pc_format_parse(const char *name, pc_format *format);

/* Writes `count` rows. CSV: a header and a row a run, every column of columns.h, RFC 4180 quoting, lines that end in a
 * newline. JSON: an array of objects, undefined columns null. Numbers read back exactly, and what is not UTF-8 becomes
 * U+FFFD. TABLE: the columns in which at least one row has a value and that a person compares, aligned, with their unit
 * in the header, and published numbers with the difference beside ours where there are any. Independent of the locale.
 * PC_ERROR_IO where the stream fails. */
PC_API pc_code pc_table_write(const pc_run_row *rows, int64_t count, pc_format format, FILE *stream, pc_error *error);

/* The same of rows that are read one by one, some times over, from the first to the last: CSV and JSON once, TABLE up
 * to four times. Also what a row's source refuses. */
typedef pc_code pc_table_source(void *context, int64_t index, pc_run_row *row, pc_error *error);
PC_API pc_code pc_table_write_from(pc_table_source *source, void *context, int64_t count, pc_format format,
                                   FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
