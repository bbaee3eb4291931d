/* fields.h: structs as tables and attributes of an HDF5 file, by the fields of engine/field.h: what a field is called,
 * its unit, what it means and where it lies in its struct is said once, for writing and reading.
 */
#ifndef PC_STORAGE_FIELDS_H
#define PC_STORAGE_FIELDS_H

#include "engine/error.h"
#include "engine/field.h"
#include "storage/h5.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a column lies in the file. */
typedef enum pc_field_storing {
    PC_STORED_SMALL,   /* chunked and compressed, but what is small as it is: opened several times as fast */
    PC_STORED_WHOLE,   /* chunked and compressed */
    PC_STORED_GROWING, /* as WHOLE, and more is to come */
    PC_STORED_BEHIND   /* that: behind what its dataset has */
} pc_field_storing;

/* One table: rows of `row_size` bytes, a column a field. */
typedef struct pc_fields {
    const pc_field *field;
    size_t count, row_size;
} pc_fields;

enum { PC_FIELD_TEXT_SIZE = 320 }; /* more than the longest text's */

/* ---- one column ---- */

/* The field of `count` rows that stand `row_size` bytes apart. PC_ERROR_NO_MEMORY, or PC_ERROR_IO where HDF5 refuses.
 * *dataset is open, for the caller to close; NULL: it is closed. */
pc_code pc_field_write(hid_t group, const pc_field *field, const void *rows, size_t row_size, int64_t count,
                       pc_field_storing storing, hid_t *dataset, pc_error *error);

/* Reads elements first .. first + count - 1 of an open dataset into the field of `count` rows; first < 0: it has no
 * others. *is_good says whether they are of the field's type and range; the code only whether there was memory. */
pc_code pc_field_read(hid_t dataset, const pc_field *field, int64_t first, int64_t count, void *rows, size_t row_size,
                      bool *is_good, pc_error *error);

/* ---- tables ---- */

/* PC_ERROR_IO, where HDF5 refuses to build what is written. */
pc_code pc_fields_fail(pc_error *error);

/* A column a field, SMALL or, of the second, WHOLE. PC_ERROR_NO_MEMORY, or PC_ERROR_IO where HDF5 refuses. */
pc_code pc_fields_write(hid_t group, const pc_fields *fields, const void *rows, int64_t count, pc_error *error);
pc_code pc_fields_write_whole(hid_t group, const pc_fields *fields, const void *rows, int64_t count, pc_error *error);

/* The same in a new group of that name. */
pc_code pc_fields_write_group(hid_t parent, const char *name, const pc_fields *fields, const void *rows, int64_t count,
                              pc_error *error);

/* Allocates *rows, which the caller frees, also on failure. PC_ERROR_INPUT names the column: "kernels/m: ...". */
pc_code pc_fields_read(hid_t group, const char *group_name, const pc_fields *fields, void **rows, int64_t *count,
                       pc_error *error);

/* The same of a table that must have `count` rows, into the caller's. */
pc_code pc_fields_read_known(hid_t group, const char *group_name, const pc_fields *fields, void *rows, int64_t count,
                             pc_error *error);

/* One struct as attributes. `object_name` NULL: messages have the field's alone. */
pc_code pc_fields_put(hid_t object, const pc_fields *fields, const void *row, pc_error *error);
pc_code pc_fields_get(hid_t object, const char *object_name, const pc_fields *fields, void *row, pc_error *error);

/* A column of doubles. */
pc_code pc_reals_write(hid_t group, const char *name, const char *unit, const char *description, const double *values,
                       int64_t count, pc_error *error);
/* Allocates *values; all of them finite. `wanted`: how many there have to be, -1 for any number. */
pc_code pc_reals_read(hid_t group, const char *group_name, const char *name, int64_t wanted, double **values,
                      int64_t *count, pc_error *error);

/* "'GROUP/NAME' is missing or damaged", PC_ERROR_INPUT; `group_name` NULL: without it. */
pc_code pc_fields_refuse(const char *group_name, const char *name, pc_error *error);

#endif
