/* store_columns.h: private to results/store_*.c: datasets of numbers in a trace's group, said once for writing and
 * reading. */
#ifndef PC_RESULTS_STORE_COLUMNS_H
#define PC_RESULTS_STORE_COLUMNS_H

#include "engine/error.h"
#include "storage/h5.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pc_store_element {
    PC_STORE_UINT8,
    PC_STORE_INT16,
    PC_STORE_INT32,
    PC_STORE_INT64,
    PC_STORE_REAL,
    PC_STORE_KIND,      /* pc_pass_kind, an int16_t in memory */
    PC_STORE_LINK_SORT, /* of engine_trace.h, as the next: a uint8_t; in the file all of these have names */
    PC_STORE_FLOW_SORT,
    PC_STORE_WORK_SORT
} pc_store_element;

/* A column's values may stand apart in memory, as the fields of a pc_pass do: `stride` bytes from one to the next. */
typedef struct pc_store_column {
    const char *name, *unit, *description;
    pc_store_element element;
    size_t stride; /* from value to value */
    size_t place;  /* of the value in its stride */
} pc_store_column;

/* Writes `count` values of `array`; PC_ERROR_IO where HDF5 refuses. */
pc_code pc_store_column_write(hid_t group, const pc_store_column *column, int64_t count, const void *array,
                              pc_error *error);

/* The dataset, open, and its length; the caller closes it. PC_ERROR_INPUT where there is none. */
pc_code pc_store_column_open(hid_t group, const pc_store_column *column, hid_t *dataset, int64_t *count,
                             pc_error *error);

/* Reads all of an open dataset, which has `count` values, into `array`. PC_ERROR_INPUT where it is of another type. */
pc_code pc_store_column_read(hid_t dataset, const pc_store_column *column, int64_t count, void *array, pc_error *error);

/* The same in one, of a dataset that must have `count` values. */
pc_code pc_store_column_fetch(hid_t group, const pc_store_column *column, int64_t count, void *array, pc_error *error);

/* "'NAME' is missing or damaged", PC_ERROR_INPUT; and what to say where HDF5 could not write. */
pc_code pc_store_refuse(pc_error *error, const char *name);
pc_code pc_store_fail(pc_error *error);

#endif
