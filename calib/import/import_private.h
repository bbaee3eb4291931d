/* import_private.h: private to calib/import/: a text as lines and fields, and the readers of each form. */
#ifndef PC_CALIB_IMPORT_IMPORT_PRIVATE_H
#define PC_CALIB_IMPORT_IMPORT_PRIVATE_H

#include "calib/import/import.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- text (import_text.c) ---- */

enum { PC_IMPORT_FIELDS = 64 };

/* A line at a time of a text that is cut up on the way: each line and field ends in a NUL. */
typedef struct pc_import_text {
    const char *path;
    char *next;   /* what is not read yet; NULL at the end */
    int64_t line; /* of the line at hand, from 1 */
} pc_import_text;

/* NULL at the end. Without its newline. */
char *pc_import_line(pc_import_text *text);

/* PC_ERROR_INPUT and "path:line: ...". */
pc_code pc_import_refuse(const pc_import_text *text, pc_error *error, const char *format, ...) PC_PRINTF(3, 4);

/* The fields of a line, which is written to: between commas, quotes and spaces around them taken off; or between
 * spaces. Their number, -1 if they are too many or a quote does not end. */
int pc_import_split_commas(char *line, char *field[PC_IMPORT_FIELDS]);
int pc_import_split_spaces(char *line, char *field[PC_IMPORT_FIELDS]);

/* A plain decimal number, all of the field, above zero and below 1e18. Within a pc_number_scope. */
bool pc_import_number(const char *field, double *number);
bool pc_import_integer(const char *field, int64_t *number); /* likewise; a whole one */
/* Likewise; a time in units of `unit_s`, such as anything could take: 1e-10 s to 1e6 s. Rates of it are finite. */
bool pc_import_time(const char *field, double unit_s, double *seconds);
#define PC_IMPORT_TIME "a number above zero, of 1e-10 s to 1e6 s"

bool pc_import_same(const char *a, const char *b);           /* letters' case aside */
bool pc_import_contains(const char *text, const char *part); /* likewise */

/* ---- names ---- */

#define PC_IMPORT_COLLECTIVES "send_recv, all_reduce, all_gather, reduce_scatter, all_to_all or broadcast"

/* "all_reduce" of AllReduce, all-reduce, all_reduce_perf; NULL if it is none of those that profiles know. */
const char *pc_import_collective(const char *name);
/* "nvlink" of NVLink4/NVSwitch; "pcie", "network"; otherwise "unknown". */
const char *pc_import_link(const char *name);
/* Times of busbw over algbw, as nccl-tests define it. */
double pc_import_bus_factor(const char *collective, int ranks);

/* ---- readers: they append to a profile of their own ---- */

typedef struct pc_import {
    pc_import_text text;
    const pc_import_options *options;
    pc_profile *into;
    char device[128]; /* as the file says; empty: it does not */
    bool has_several_devices;
    int64_t suspect; /* rows left out because they say so */
} pc_import;

pc_code pc_import_nccl(pc_import *import, pc_error *error);
pc_code pc_import_csv(pc_import *import, pc_error *error);

/* Of one transfer: the numbers derived, and appended. */
pc_code pc_import_add_transfer(pc_import *import, pc_transfer_measurement *transfer, double seconds, pc_error *error);

/* ---- tables with named columns (import_csv.c finds them) ---- */

typedef enum pc_import_column {
    PC_COLUMN_DEVICE,
    PC_COLUMN_KERNEL,
    PC_COLUMN_DTYPE,
    PC_COLUMN_ROLE,
    PC_COLUMN_BATCH,
    PC_COLUMN_M,
    PC_COLUMN_N,
    PC_COLUMN_K,
    PC_COLUMN_HEADS,
    PC_COLUMN_KV_HEADS,
    PC_COLUMN_CAUSAL,
    PC_COLUMN_ACCUMULATE,
    PC_COLUMN_CACHE,
    PC_COLUMN_BYTES,
    PC_COLUMN_TIME,
    PC_COLUMN_IN_PLACE_TIME,
    PC_COLUMN_RANKS,
    PC_COLUMN_NODES,
    PC_COLUMN_LINK,
    PC_COLUMN_SUSPECT,
    PC_COLUMNS
} pc_import_column;

typedef struct pc_import_table {
    int fields;                 /* of every row */
    int at[PC_COLUMNS];         /* which field; -1: there is none */
    double seconds[PC_COLUMNS]; /* one of a time column's unit */
} pc_import_table;

/* The field of a row, "" if there is no such column. */
const char *pc_import_cell(const pc_import_table *table, char *const *row, pc_import_column column);

pc_code pc_import_kernel_row(pc_import *import, const pc_import_table *table, char *const *row, pc_error *error);
pc_code pc_import_transfer_row(pc_import *import, const pc_import_table *table, char *const *row, pc_error *error);

#endif
