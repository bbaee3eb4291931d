/* import_private.h: private to calib/import/: a text as lines and fields, and the readers of each form. */
#ifndef PC_CALIB_IMPORT_IMPORT_PRIVATE_H
#define PC_CALIB_IMPORT_IMPORT_PRIVATE_H

#include "calib/import/import.h"
#include "engine/hash.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- text (import_text.c) ---- */

enum { PC_IMPORT_FIELDS = 64 };

/* A line at a time of a text that is cut up on the way: each line and field ends in a NUL. */
typedef struct pc_imported_table {
    const char *path;
    char *next;   /* what is not read yet; NULL at the end */
    int64_t line; /* of the line at hand, from 1 */
} pc_imported_table;

/* NULL at the end. Without its newline. */
char *pc_import_line(pc_imported_table *text);

/* PC_ERROR_INPUT and "path:line: ...". */
pc_code pc_import_refuse(const pc_imported_table *text, pc_error *error, const char *format, ...) PC_PRINTF(3, 4);

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
/* A plain decimal number, zero or below: a number all the same, but nothing's time. */
bool pc_import_is_none(const char *field);

bool pc_import_same(const char *a, const char *b);            /* letters' case aside */
bool pc_import_contains(const char *text, const char *part);  /* likewise */
bool pc_import_is_listed(const char *list, const char *word); /* likewise; a list with commas */

/* ---- names ---- */

#define PC_IMPORT_COLLECTIVES "send_recv, all_reduce, all_gather, reduce_scatter, all_to_all or broadcast"

/* "all_reduce" of AllReduce, all-reduce, all_reduce_perf; NULL if it is none of those that profiles know. */
const char *pc_import_collective(const char *name);
/* "nvlink" of NVLink4/NVSwitch; "pcie", "network"; otherwise "unknown". */
const char *pc_import_link(const char *name);
/* Times of busbw over algbw, as nccl-tests define it. */
double pc_import_bus_factor(const char *collective, int ranks);

/* A type of numbers, as tables call it and profiles do. */
typedef enum pc_import_rate { PC_RATE_UNKNOWN, PC_RATE_16, PC_RATE_8, PC_RATE_4 } pc_import_rate;
typedef struct pc_import_dtype {
    const char *table, *profile;
    double bytes;        /* of an activation */
    pc_import_rate rate; /* of the matrix units that multiply it */
} pc_import_dtype;
/* NULL if there is none of that name; "" is bf16. */
const pc_import_dtype *pc_import_dtype_of(const char *name);

/* ---- readers: they append to a profile of their own ---- */

/* A row of a table that was taken, to find those that say the same again. */
typedef struct pc_import_taken {
    pc_hash hash; /* of all but the time */
    bool is_transfer;
    int64_t index, line; /* in the profile's kernels or transfers; in the file */
    const char *path;    /* borrowed */
} pc_import_taken;

typedef struct pc_import_ledger {
    pc_import_taken *row;
    int64_t count, room;
    pc_import_report report;
} pc_import_ledger;

typedef struct pc_import {
    pc_imported_table text;
    const pc_import_options *options;
    pc_profile *into;
    pc_import_ledger *ledger;
    char device[128]; /* as the file says; empty: it does not */
    bool has_several_devices;
} pc_import;

pc_code pc_import_nccl(pc_import *import, pc_error *error);
pc_code pc_import_csv(pc_import *import, pc_error *error);

/* Of one transfer: the numbers derived, and appended. */
pc_code pc_import_add_transfer(pc_import *import, pc_transfer_measurement *transfer, double seconds, pc_error *error);

/* ---- rows that are left out (import_left_out.c) ---- */

/* The row at hand is left out, for this reason. */
void pc_import_leave_out(pc_import *import, pc_import_reason reason);
/* The row at hand is what the profile got last. PC_ERROR_NO_MEMORY. */
pc_code pc_import_note_taken(pc_import *import, bool is_transfer, pc_error *error);
/* Of rows with the same conditions one stays: of attention the slowest, of all others that of the median time (the
 * lower of two). PC_ERROR_NO_MEMORY, and the profile as it was. */
pc_code pc_import_settle(pc_profile *profile, pc_import_ledger *ledger, pc_error *error);
void pc_import_ledger_free(pc_import_ledger *ledger);

/* ---- tables with named columns (import_columns.c finds them) ---- */

typedef enum pc_import_column {
    PC_COLUMN_DEVICE,
    PC_COLUMN_OP,
    PC_COLUMN_KERNEL,
    PC_COLUMN_DTYPE,
    PC_COLUMN_OUT_DTYPE,
    PC_COLUMN_GRADIENT_DTYPE, /* of a weight gradient */
    PC_COLUMN_LIBRARY,
    PC_COLUMN_VERSION,
    PC_COLUMN_SITE,
    PC_COLUMN_ROLE,
    PC_COLUMN_BATCH,
    PC_COLUMN_M,
    PC_COLUMN_N,
    PC_COLUMN_K,
    PC_COLUMN_HEADS,
    PC_COLUMN_KV_HEADS,
    PC_COLUMN_SEQ,
    PC_COLUMN_HEAD_DIM,
    PC_COLUMN_V_HEAD_DIM,
    PC_COLUMN_WINDOW,
    PC_COLUMN_CONTIGUOUS,
    PC_COLUMN_CAUSAL,
    PC_COLUMN_ACCUMULATE,
    PC_COLUMN_CACHE,
    PC_COLUMN_GROUPS,
    PC_COLUMN_TOKENS,
    PC_COLUMN_HIDDEN,
    PC_COLUMN_INTER,
    PC_COLUMN_TOPK,
    PC_COLUMN_EXPERTS,
    PC_COLUMN_MOE_TP,
    PC_COLUMN_MOE_EP,
    PC_COLUMN_DISTRIBUTION,
    PC_COLUMN_BYTES,
    PC_COLUMN_INFERRED_BYTES, /* aiconfigurator's: elements of two bytes where the type is half */
    PC_COLUMN_TIME,
    PC_COLUMN_UNIT,
    PC_COLUMN_EFFICIENCY,
    PC_COLUMN_IN_PLACE_TIME,
    PC_COLUMN_DISPATCH_TIME,
    PC_COLUMN_COMBINE_TIME,
    PC_COLUMN_SMS,
    PC_COLUMN_DISPATCH_SMS,
    PC_COLUMN_COMBINE_SMS,
    PC_COLUMN_RANKS,
    PC_COLUMN_NODES,
    PC_COLUMN_LINK,
    PC_COLUMN_SUSPECT,
    PC_COLUMNS
} pc_import_column;

typedef struct pc_import_table {
    int fields;                 /* of every row */
    int at[PC_COLUMNS];         /* which field; -1: there is none */
    double seconds[PC_COLUMNS]; /* one of a time column's unit; 0: the column `unit` has it */
    double full_flops_per_s;    /* that efficiencies are of */
} pc_import_table;

/* Which column is what. PC_ERROR_INPUT if a name stands twice, or nothing says how long anything took. */
pc_code pc_import_find_columns(const pc_import *import, char *const *header, int count, pc_import_table *table,
                               pc_error *error);

/* The field of a row, "" if there is no such column. */
const char *pc_import_cell(const pc_import_table *table, char *const *row, pc_import_column column);
bool pc_import_has(const pc_import_table *table, pc_import_column column);

/* What a table of others' calls the operation: of `op`, or of `kernel` where there is no such column; "" if of none. */
const char *pc_import_operation(const pc_import_table *table, char *const *row);

/* ---- cells (import_cells.c) ---- */

/* A row at hand. */
typedef struct pc_import_row {
    pc_import *import;
    const pc_import_table *table;
    char *const *cell;
} pc_import_row;

const char *pc_import_row_cell(const pc_import_row *row, pc_import_column column);

/* A whole number above zero, `name` in messages; `otherwise` where the cell is empty, or 0 to insist on one. */
pc_code pc_import_extent(const pc_import_row *row, pc_import_column column, const char *name, int64_t otherwise,
                         int64_t *extent, pc_error *error);
pc_code pc_import_switch(const pc_import_row *row, pc_import_column column, const char *name, bool *is_on,
                         pc_error *error);
/* The column's time, or, of an efficiency, that of so many FLOPs. 0: the row says zero or less, which nothing takes. */
pc_code pc_import_seconds(const pc_import_row *row, pc_import_column column, double flops, double *seconds,
                          pc_error *error);
/* Library, version and site; each as its column says, or as the user does. `size` bytes each. */
enum { PC_IMPORT_SOURCE_SIZE = 32 };
void pc_import_source(const pc_import_row *row, char library[PC_IMPORT_SOURCE_SIZE],
                      char version[PC_IMPORT_SOURCE_SIZE], char site[PC_IMPORT_SOURCE_SIZE]);
/* Whether library and site are among those that the user asks for. */
bool pc_import_is_asked(const pc_import_row *row);

/* ---- rows ---- */

pc_code pc_import_kernel_row(const pc_import_row *row, pc_error *error);
pc_code pc_import_transfer_row(const pc_import_row *row, pc_error *error);
/* Dispatch and combine of experts: a row of both, or of one by name. */
bool pc_import_is_of_experts(const pc_import_row *row);
pc_code pc_import_experts_row(const pc_import_row *row, pc_error *error);

/* Completes a kernel whose names, types and extents are there: FLOPs, bytes, and what it is called (import_work.c). */
pc_code pc_import_count_work(const pc_import_row *row, pc_kernel_measurement *kernel, int64_t v_head_dim,
                             pc_error *error);
/* Whether it would be faster than the datasheet's peak of options->gpu. False where there is none for its type. */
bool pc_import_is_too_fast(const pc_import *import, const pc_kernel_measurement *kernel);

#endif
