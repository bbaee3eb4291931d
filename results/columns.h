/* columns.h: the columns of the results table, said once: name, type, unit, description, place in pc_run_row.
 *
 * The CSV, the JSON, the terminal table and the HDF5 file are all drawn from this list.
 */
#ifndef PC_RESULTS_COLUMNS_H
#define PC_RESULTS_COLUMNS_H

#include "engine/api.h"
#include "models/training/run.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_column_type {
    PC_COLUMN_INTEGER, /* int64_t; -1 is "not defined" */
    PC_COLUMN_REAL,    /* double; NaN is "not defined" */
    PC_COLUMN_TEXT,    /* char[]; "" is "not defined" */
    PC_COLUMN_STATUS,  /* int64_t, a pc_run_status, written as its name */
    PC_COLUMN_HASH     /* uint64_t, written as 16 hexadecimal digits */
} pc_column_type;

typedef struct pc_column {
    const char *name; /* as in the CSV header */
    pc_column_type type;
    size_t offset; /* in pc_run_row */
    size_t size;   /* of the field, with the terminating zero of a text */
    const char *unit; /* "s", "GiB", "1" (a fraction or a count), "" (text) */
    const char *description;
} pc_column;

/* All of them, `*count`, in the order of the CSV. Static storage. */
PC_API const pc_column *pc_columns(int *count);

#ifdef __cplusplus
}
#endif
#endif
