/* columns.h: the columns of the results table, said once: name, type, unit, description, place in pc_run_row (row.h).
 *
 * The CSV, the JSON, the terminal table and the HDF5 file are all drawn from this list.
 */
#ifndef PC_RESULTS_COLUMNS_H
#define PC_RESULTS_COLUMNS_H

#include "engine/api.h"
#include "results/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_column_type {
    PC_COLUMN_INTEGER, /* int64_t; -1 is "not defined" */
    PC_COLUMN_REAL,    /* double; NaN is "not defined" */
    PC_COLUMN_TEXT,    /* char[]; "" is "not defined" */
    PC_COLUMN_STATUS,  /* int64_t, a pc_run_status, written as its name */
    PC_COLUMN_HASH     /* uint64_t, written as 16 hexadecimal digits; 0 is "not defined" */
} pc_column_type;

/* Room for the longest text that pc_column_text writes. */
enum { PC_COLUMN_TEXT_SIZE = 256 };

typedef struct pc_column {
    const char *name; /* as in the CSV header */
    pc_column_type type;
    size_t offset;    /* in pc_run_row */
    size_t size;      /* of the field, with the terminating zero of a text */
    const char *unit; /* "s", "GiB", "1" (a fraction or a count), "" (text) */
    const char *description;
} pc_column;

/* All of them, `*count`, in the order of the CSV. Static storage. */
PC_API const pc_column *pc_columns(int *count);

/* By name; NULL where there is none. */
PC_API const pc_column *pc_column_find(const char *name);

/* A row in which no column is defined. */
PC_API void pc_run_row_clear(pc_run_row *row);

/* Whether the row has a value in this column. An infinite number is none; nor is a status without a name, nor the hash
 * 0, which stands for "was not replayed". */
PC_API bool pc_column_defined(const pc_column *column, const pc_run_row *row);

/* The value; the column must be of the type that the name says. pc_column_text is for TEXT, STATUS and HASH alike and
 * writes at most `size` bytes with the terminating zero; "" where the value is not defined. */
PC_API int64_t pc_column_integer(const pc_column *column, const pc_run_row *row);
PC_API double pc_column_real(const pc_column *column, const pc_run_row *row);
PC_API void pc_column_text(const pc_column *column, const pc_run_row *row, char *text, size_t size);

/* The way back, for TEXT, STATUS and HASH: false, and the row untouched, where the text is no status or hash or does
 * not fit into the field. "" is "not defined". */
PC_MUST_USE PC_API bool pc_column_set_text(const pc_column *column, pc_run_row *row, const char *text);

#ifdef __cplusplus
}
#endif
#endif
