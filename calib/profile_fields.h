/* profile_fields.h: private to calib/profile_*.c: structs as tables and attributes of an HDF5 file.
 *
 * What a field is called, its unit, what it means and where it lies in its struct is said once, for writing and
 * reading.
 */
#ifndef PC_CALIB_PROFILE_FIELDS_H
#define PC_CALIB_PROFILE_FIELDS_H

#include "engine/error.h"
#include "results/store/h5.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pc_field_type {
    PC_FIELD_TEXT,  /* char[size] */
    PC_FIELD_INT32, /* int32_t */
    PC_FIELD_INT64, /* int64_t */
    PC_FIELD_REAL,  /* double, finite */
    PC_FIELD_ANY,   /* double; NaN is "not known" */
    PC_FIELD_FLAG,  /* bool, stored as 0 or 1 */
    PC_FIELD_CHOICE /* an enum or int32_t, stored as one of `choices` */
} pc_field_type;

typedef struct pc_field {
    const char *name, *unit, *description;
    pc_field_type type;
    size_t place, size;         /* in the struct */
    const char *const *choices; /* ends with NULL */
    int64_t least, most;        /* of whole numbers; of numbers `least` alone */
} pc_field;

/* One table: rows of `row_size` bytes, a column a field. */
typedef struct pc_fields {
    const pc_field *field;
    size_t count, row_size;
} pc_fields;

enum { PC_FIELD_TEXT_SIZE = 320 }; /* more than the longest text's */

/* What a struct has: text of TEXT and CHOICE, otherwise NULL; the others 0 where they do not apply. */
typedef struct pc_field_value {
    const char *text;
    int64_t integer;
    double real;
} pc_field_value;
pc_field_value pc_field_of(const pc_field *field, const void *row);

/* A column a field. PC_ERROR_NO_MEMORY, or PC_ERROR_IO where HDF5 refuses. */
pc_code pc_fields_write(hid_t group, const pc_fields *fields, const void *rows, int64_t count, pc_error *error);

/* Allocates *rows, which the caller frees, also on failure. PC_ERROR_INPUT names the column: "kernels/m: ...". */
pc_code pc_fields_read(hid_t group, const char *group_name, const pc_fields *fields, void **rows, int64_t *count,
                       pc_error *error);

/* One struct as attributes. */
pc_code pc_fields_put(hid_t object, const pc_fields *fields, const void *row, pc_error *error);
pc_code pc_fields_get(hid_t object, const char *object_name, const pc_fields *fields, void *row, pc_error *error);

/* A column of doubles. */
pc_code pc_reals_write(hid_t group, const char *name, const char *unit, const char *description, const double *values,
                       int64_t count, pc_error *error);
/* Allocates *values; all of them finite. `wanted`: how many there have to be, -1 for any number. */
pc_code pc_reals_read(hid_t group, const char *group_name, const char *name, int64_t wanted, double **values,
                      int64_t *count, pc_error *error);

pc_code pc_fields_refuse(const char *group_name, const char *name, pc_error *error);

#endif
