#include "storage/fields.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PLAIN_MOST = 64 << 10 }; /* bytes of a column that is not worth compressing */

static pc_code fail(pc_error *error) {
    return pc_error_set(error, PC_ERROR_IO, "HDF5 could not build the file in memory");
}

pc_code pc_fields_refuse(const char *group_name, const char *name, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "'%s/%s' is missing or damaged", group_name, name);
}

/* ---- attributes ---- */

static bool put(hid_t object, const pc_field *field, const void *row) {
    if (pc_field_is_text(field)) return pc_h5_put_text(object, field->name, pc_field_of(field, row).text);
    if (pc_field_is_real(field)) return pc_h5_put_real(object, field->name, pc_field_of(field, row).real);
    return pc_h5_put_integer(object, field->name, pc_field_of(field, row).integer);
}

pc_code pc_fields_put(hid_t object, const pc_fields *fields, const void *row, pc_error *error) {
    for (size_t i = 0; i < fields->count; i++)
        if (!put(object, &fields->field[i], row)) return fail(error);
    return PC_OK;
}

static bool get(hid_t object, const pc_field *field, void *row) {
    char text[PC_FIELD_TEXT_SIZE];
    double real;
    int64_t integer;
    if (pc_field_is_text(field))
        return pc_h5_get_text(object, field->name, text, sizeof text) && pc_field_set_text(field, row, text);
    if (pc_field_is_real(field))
        return pc_h5_get_real(object, field->name, &real) && pc_field_set_real(field, row, real);
    return pc_h5_get_integer(object, field->name, &integer) && pc_field_set_integer(field, row, integer);
}

pc_code pc_fields_get(hid_t object, const char *object_name, const pc_fields *fields, void *row, pc_error *error) {
    for (size_t i = 0; i < fields->count; i++)
        if (!get(object, &fields->field[i], row)) return pc_fields_refuse(object_name, fields->field[i].name, error);
    return PC_OK;
}

/* ---- columns: values gathered in an array of eight bytes or a text each ---- */

static size_t stored_size(const pc_field *field) {
    size_t longest = 1;
    if (!pc_field_is_text(field)) return sizeof(int64_t);
    if (field->type == PC_FIELD_TEXT) return field->size - 1;
    for (int i = 0; field->choices[i]; i++)
        if (strlen(field->choices[i]) > longest) longest = strlen(field->choices[i]);
    return longest;
}

static hid_t file_type_of(const pc_field *field) {
    if (pc_field_is_text(field)) return pc_h5_text_type(stored_size(field));
    return H5Tcopy(pc_field_is_real(field)         ? H5T_IEEE_F64LE
                   : field->type == PC_FIELD_INT64 ? H5T_STD_I64LE
                   : field->type == PC_FIELD_INT32 ? H5T_STD_I32LE
                                                   : H5T_STD_I8LE);
}

/* Texts are read into the room of the longest: one that is too long for its field shows. */
static hid_t memory_type_of(const pc_field *field, size_t text_size) {
    if (pc_field_is_text(field)) return pc_h5_text_type(text_size);
    return H5Tcopy(pc_field_is_real(field) ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64);
}

/* `values` is zeroed, so that nothing but the text itself gets into the file. */
static void gather(const pc_field *field, const char *rows, size_t row_size, int64_t count, char *values) {
    size_t size = stored_size(field);
    for (int64_t i = 0; i < count; i++) {
        const char *row = rows + (size_t)i * row_size;
        char *to = values + (size_t)i * size;
        if (pc_field_is_text(field)) {
            const char *text = pc_field_of(field, row).text;
            memcpy(to, text, strnlen(text, size));
        } else if (pc_field_is_real(field)) {
            double value = pc_field_of(field, row).real;
            memcpy(to, &value, sizeof value);
        } else {
            int64_t value = pc_field_of(field, row).integer;
            memcpy(to, &value, sizeof value);
        }
    }
}

static bool write_values(hid_t group, const pc_field *field, const void *values, int64_t count) {
    pc_h5_column column = {.name = field->name,
                           .unit = field->unit,
                           .description = field->description,
                           .missing = field->type == PC_FIELD_ANY ? "NaN" : NULL,
                           .file_type = file_type_of(field),
                           .memory_type = memory_type_of(field, stored_size(field)),
                           .count = (hsize_t)count,
                           .values = values,
                           .is_plain = (size_t)count * stored_size(field) <= PLAIN_MOST};
    hid_t dataset = column.file_type >= 0 && column.memory_type >= 0 ? pc_h5_column_write(group, &column) : -1;
    if (column.file_type >= 0) H5Tclose(column.file_type);
    if (column.memory_type >= 0) H5Tclose(column.memory_type);
    if (dataset >= 0) H5Dclose(dataset);
    return dataset >= 0;
}

pc_code pc_fields_write(hid_t group, const pc_fields *fields, const void *rows, int64_t count, pc_error *error) {
    for (size_t i = 0; i < fields->count; i++) {
        const pc_field *field = &fields->field[i];
        char *values = pc_alloc((size_t)count, stored_size(field));
        if (!values) return pc_error_no_memory(error);
        gather(field, rows, fields->row_size, count, values);
        bool done = write_values(group, field, values, count);
        pc_free(values);
        if (!done) return fail(error);
    }
    return PC_OK;
}

/* ---- and back ---- */

static bool has_expected_class(const pc_field *field, hid_t dataset) {
    H5T_class_t class = pc_h5_column_class(dataset);
    if (pc_field_is_text(field)) return class == H5T_STRING;
    return class == H5T_INTEGER || (class == H5T_FLOAT && pc_field_is_real(field));
}

/* As the file has them: ASCII where another program wrote them, which HDF5 does not take for UTF-8. */
static bool match_texts(hid_t dataset, hid_t type) {
    hid_t stored = H5Dget_type(dataset);
    bool done =
        stored >= 0 && H5Tset_cset(type, H5Tget_cset(stored)) >= 0 && H5Tset_strpad(type, H5T_STR_NULLTERM) >= 0;
    if (stored >= 0) H5Tclose(stored);
    return done;
}

static bool read_raw(const pc_field *field, hid_t dataset, void *values) {
    hid_t type = memory_type_of(field, PC_FIELD_TEXT_SIZE);
    bool done = type >= 0 && (!pc_field_is_text(field) || match_texts(dataset, type)) &&
                H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    if (type >= 0) H5Tclose(type);
    return done;
}

static bool scatter(const pc_field *field, const char *values, char *rows, size_t row_size, int64_t count) {
    size_t size = pc_field_is_text(field) ? PC_FIELD_TEXT_SIZE : sizeof(int64_t);
    bool done = true;
    for (int64_t i = 0; i < count && done; i++) {
        const char *from = values + (size_t)i * size;
        char *row = rows + (size_t)i * row_size;
        double real;
        int64_t integer;
        memcpy(&real, from, sizeof real);
        memcpy(&integer, from, sizeof integer);
        if (pc_field_is_text(field))
            done = pc_field_set_text(field, row, from);
        else
            done = pc_field_is_real(field) ? pc_field_set_real(field, row, real)
                                           : pc_field_set_integer(field, row, integer);
    }
    return done;
}

static pc_code read_column(hid_t dataset, const pc_field *field, size_t row_size, char *rows, int64_t count,
                           bool *is_good, pc_error *error) {
    *is_good = has_expected_class(field, dataset);
    if (!*is_good || count == 0) return PC_OK;
    char *values = pc_alloc((size_t)count, pc_field_is_text(field) ? PC_FIELD_TEXT_SIZE : sizeof(int64_t));
    if (!values) return pc_error_no_memory(error);
    *is_good = read_raw(field, dataset, values) && scatter(field, values, rows, row_size, count);
    pc_free(values);
    return PC_OK;
}

/* What a row takes while it is read: itself, and a text of it is longer in between. */
static size_t room_of_row(const pc_fields *fields) {
    bool has_text = false;
    for (size_t i = 0; i < fields->count; i++) has_text = has_text || pc_field_is_text(&fields->field[i]);
    return fields->row_size + (has_text ? PC_FIELD_TEXT_SIZE : sizeof(int64_t));
}

static pc_code read_field(hid_t group, const char *group_name, const pc_fields *fields, const pc_field *field,
                          void **rows, int64_t *count, pc_error *error) {
    int64_t length;
    hid_t dataset = pc_h5_column_open(group, field->name, &length);
    if (dataset < 0) return pc_fields_refuse(group_name, field->name, error);
    pc_code code = PC_OK;
    bool is_good = true;
    if (!*rows && !pc_h5_can_hold_rows(dataset, length, room_of_row(fields))) is_good = false;
    if (!*rows && is_good) {
        *count = length;
        *rows = pc_alloc((size_t)length, fields->row_size);
        if (!*rows) code = pc_error_no_memory(error);
    }
    if (!code && (!*rows || length != *count)) is_good = false;
    if (!code && is_good) code = read_column(dataset, field, fields->row_size, *rows, *count, &is_good, error);
    H5Dclose(dataset);
    return code || is_good ? code : pc_fields_refuse(group_name, field->name, error);
}

pc_code pc_fields_read(hid_t group, const char *group_name, const pc_fields *fields, void **rows, int64_t *count,
                       pc_error *error) {
    pc_code code = PC_OK;
    *rows = NULL;
    *count = 0;
    for (size_t i = 0; i < fields->count && !code; i++)
        code = read_field(group, group_name, fields, &fields->field[i], rows, count, error);
    return code;
}

/* ---- single columns of numbers ---- */

pc_code pc_reals_write(hid_t group, const char *name, const char *unit, const char *description, const double *values,
                       int64_t count, pc_error *error) {
    pc_field field = {.name = name, .unit = unit, .description = description, .type = PC_FIELD_REAL};
    return write_values(group, &field, values, count) ? PC_OK : fail(error);
}

static bool all_finite(const double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

pc_code pc_reals_read(hid_t group, const char *group_name, const char *name, int64_t wanted, double **values,
                      int64_t *count, pc_error *error) {
    pc_field field = {.name = name, .type = PC_FIELD_REAL};
    *values = NULL;
    hid_t dataset = pc_h5_column_open(group, name, count);
    if (dataset < 0) return pc_fields_refuse(group_name, name, error);
    bool is_good = has_expected_class(&field, dataset) && (wanted < 0 || *count == wanted);
    if (is_good) *values = pc_alloc((size_t)*count, sizeof **values);
    pc_code code = is_good && !*values ? pc_error_no_memory(error) : PC_OK;
    if (!code && is_good && *count > 0) is_good = read_raw(&field, dataset, *values) && all_finite(*values, *count);
    H5Dclose(dataset);
    return code || is_good ? code : pc_fields_refuse(group_name, name, error);
}
