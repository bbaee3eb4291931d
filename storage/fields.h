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

/* One table: rows of `row_size` bytes, a column a field. */
typedef struct pc_fields {
    const pc_field *field;
    size_t count, row_size;
} pc_fields;

enum { PC_FIELD_TEXT_SIZE = 320 }; /* more than the longest text's */

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
