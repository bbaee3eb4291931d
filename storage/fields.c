#include "storage/fields.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

enum { PLAIN_MOST = 64 << 10 }; /* bytes of a column that is not worth compressing */

pc_code pc_fields_fail(pc_error *error) {
    return pc_error_set(error, PC_ERROR_IO, "HDF5 could not build the file in memory");
}

pc_code pc_fields_refuse(const char *group_name, const char *name, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "'%s%s%s' is missing or damaged", group_name ? group_name : "",
                        group_name ? "/" : "", name);
}

/* ---- attributes ---- */

static bool put(hid_t object, const pc_field *field, const void *row) {
    char text[PC_FIELD_TEXT_SIZE];
    pc_field_value value = pc_field_of(field, row);
    if (pc_field_is_real(field)) return pc_h5_put_real(object, field->name, value.real);
    if (!pc_field_is_text(field)) return pc_h5_put_integer(object, field->name, value.integer);
    pc_field_get_text(field, row, text, sizeof text);
    return pc_h5_put_text(object, field->name, text);
}

pc_code pc_fields_put(hid_t object, const pc_fields *fields, const void *row, pc_error *error) {
    for (size_t i = 0; i < fields->count; i++)
        if (!put(object, &fields->field[i], row)) return pc_fields_fail(error);
    return PC_OK;
}

static bool get(hid_t object, const pc_field *field, void *row) {
    char text[PC_FIELD_TEXT_SIZE];
    double real;
    int64_t integer;
    if (field->may_lack && H5Aexists(object, field->name) == 0) return true;
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

/* ---- types ---- */

/* Whole numbers whose values have names. */
static bool is_named(const pc_field *field) {
    return field->choices && !pc_field_is_text(field);
}

static bool insert_names(hid_t type, hid_t base, const pc_field *field) {
    for (int16_t i = 0; field->choices[i]; i++) {
        int16_t value = i;
        if (H5Tconvert(H5T_NATIVE_INT16, base, 1, &value, NULL, H5P_DEFAULT) < 0 ||
            H5Tenum_insert(type, field->choices[i], &value) < 0)
            return false;
    }
    return true;
}

/* `base`, or an enum of that; the caller closes it. */
static hid_t number_type(const pc_field *field, hid_t base) {
    if (!is_named(field)) return H5Tcopy(base);
    hid_t type = H5Tenum_create(base);
    if (type < 0 || insert_names(type, base, field)) return type;
    H5Tclose(type);
    return -1;
}

static size_t longest_choice(const pc_field *field) {
    size_t longest = 1;
    for (int i = 0; field->choices[i]; i++)
        if (strlen(field->choices[i]) > longest) longest = strlen(field->choices[i]);
    return longest;
}

/* Of what has texts. */
static size_t longest_text(const pc_field *field) {
    enum { HASH_DIGITS = 16 };
    if (field->type == PC_FIELD_TEXT) return field->size - 1;
    return field->type == PC_FIELD_HASH ? HASH_DIGITS : longest_choice(field);
}

/* A value's bytes on its way to the file: those of its struct, or of its text. */
static size_t stored_size(const pc_field *field) {
    if (!pc_field_is_text(field)) return pc_field_size(field);
    return field->stored_size ? field->stored_size : longest_text(field);
}

/* What has names needs a byte. */
static hid_t file_type_of(const pc_field *field) {
    switch (field->type) {
    case PC_FIELD_UINT8:
        return number_type(field, H5T_STD_U8LE);
    case PC_FIELD_INT16:
        return number_type(field, is_named(field) ? H5T_STD_I8LE : H5T_STD_I16LE);
    case PC_FIELD_INT32:
        return number_type(field, H5T_STD_I32LE);
    case PC_FIELD_INT64:
        return number_type(field, H5T_STD_I64LE);
    case PC_FIELD_FLAG:
        return number_type(field, H5T_STD_I8LE);
    case PC_FIELD_REAL:
    case PC_FIELD_ANY:
    case PC_FIELD_NUMBER:
        return number_type(field, H5T_IEEE_F64LE);
    default:
        return pc_h5_text_type(stored_size(field));
    }
}

/* As the struct has it. */
static hid_t native_type_of(const pc_field *field) {
    switch (field->type) {
    case PC_FIELD_UINT8:
    case PC_FIELD_FLAG:
        return number_type(field, H5T_NATIVE_UINT8);
    case PC_FIELD_INT16:
        return number_type(field, H5T_NATIVE_INT16);
    case PC_FIELD_INT32:
        return number_type(field, H5T_NATIVE_INT32);
    case PC_FIELD_INT64:
        return number_type(field, H5T_NATIVE_INT64);
    case PC_FIELD_REAL:
    case PC_FIELD_ANY:
    case PC_FIELD_NUMBER:
        return number_type(field, H5T_NATIVE_DOUBLE);
    default:
        return pc_h5_text_type(stored_size(field));
    }
}

static void copy_values(char *to, size_t to_stride, const char *from, size_t from_stride, size_t size, int64_t count) {
    for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)i * to_stride, from + (size_t)i * from_stride, size);
}

/* ---- writing a column ---- */

/* `values` is zeroed, so that nothing but the text itself gets into the file. */
static void gather(const pc_field *field, const char *rows, size_t row_size, int64_t count, char *values) {
    char text[PC_FIELD_TEXT_SIZE];
    size_t size = stored_size(field);
    if (!pc_field_is_text(field)) return copy_values(values, size, rows + field->place, row_size, size, count);
    for (int64_t i = 0; i < count; i++) {
        pc_field_get_text(field, rows + (size_t)i * row_size, text, sizeof text);
        memcpy(values + (size_t)i * size, text, strnlen(text, size));
    }
}

/* What "not defined" looks like in the file; NULL if it is always defined. */
static const char *missing_of(const pc_field *field) {
    if (field->type == PC_FIELD_ANY) return "NaN";
    if (!field->is_optional) return NULL;
    if (pc_field_is_text(field)) return "empty text";
    return pc_field_is_real(field) ? "NaN" : "-1";
}

static hid_t write_values(hid_t group, const pc_field *field, const void *values, int64_t count,
                          pc_field_storing storing) {
    pc_h5_column column = {.name = field->name,
                           .unit = field->unit,
                           .description = field->description,
                           .missing = missing_of(field),
                           .file_type = file_type_of(field),
                           .memory_type = native_type_of(field),
                           .count = (hsize_t)count,
                           .values = values,
                           .is_plain = storing == PC_STORED_SMALL && (size_t)count * stored_size(field) <= PLAIN_MOST,
                           .grows = storing == PC_STORED_GROWING};
    hid_t dataset = -1;
    if (column.file_type >= 0 && column.memory_type >= 0)
        dataset =
            storing == PC_STORED_BEHIND ? pc_h5_column_append(group, &column) : pc_h5_column_write(group, &column);
    if (column.file_type >= 0) H5Tclose(column.file_type);
    if (column.memory_type >= 0) H5Tclose(column.memory_type);
    return dataset;
}

pc_code pc_field_write(hid_t group, const pc_field *field, const void *rows, size_t row_size, int64_t count,
                       pc_field_storing storing, hid_t *dataset, pc_error *error) {
    bool is_dense = !pc_field_is_text(field) && row_size == pc_field_size(field);
    char *values = is_dense ? NULL : pc_alloc((size_t)count, stored_size(field));
    if (!is_dense && !values) return pc_error_no_memory(error);
    if (!is_dense) gather(field, rows, row_size, count, values);
    hid_t made = write_values(group, field, is_dense ? rows : values, count, storing);
    pc_free(values);
    if (made < 0) return pc_fields_fail(error);
    if (dataset)
        *dataset = made;
    else
        H5Dclose(made);
    return PC_OK;
}

/* ---- and back ---- */

static bool has_expected_class(const pc_field *field, hid_t dataset) {
    H5T_class_t class = pc_h5_column_class(dataset);
    if (pc_field_is_text(field)) return class == H5T_STRING;
    if (is_named(field)) return class == H5T_ENUM;
    return class == H5T_INTEGER || (class == H5T_FLOAT && pc_field_is_real(field));
}

/* Whether its struct may have any value of the type: then it is read as it is. */
static bool takes_all(const pc_field *field) {
    switch (field->type) {
    case PC_FIELD_NUMBER:
        return true;
    case PC_FIELD_UINT8:
    case PC_FIELD_INT16:
    case PC_FIELD_INT32:
    case PC_FIELD_INT64:
        return field->least == 0 && field->most == 0;
    default:
        return false;
    }
}

/* A value's bytes on its way from the file: a text's with its zero and one more, so that one that is too long shows. */
static size_t read_size(const pc_field *field) {
    if (pc_field_is_text(field)) return longest_text(field) + 2;
    return takes_all(field) ? pc_field_size(field) : sizeof(int64_t);
}

/* As the file has them: ASCII where another program wrote them, which HDF5 does not take for UTF-8. */
static hid_t read_text_type(const pc_field *field, hid_t dataset) {
    hid_t stored = H5Dget_type(dataset), type = pc_h5_text_type(read_size(field));
    bool done = stored >= 0 && type >= 0 && H5Tset_cset(type, H5Tget_cset(stored)) >= 0 &&
                H5Tset_strpad(type, H5T_STR_NULLTERM) >= 0;
    if (stored >= 0) H5Tclose(stored);
    if (done || type < 0) return type;
    H5Tclose(type);
    return -1;
}

static hid_t read_type(const pc_field *field, hid_t dataset) {
    if (pc_field_is_text(field)) return read_text_type(field, dataset);
    if (takes_all(field)) return native_type_of(field);
    return H5Tcopy(pc_field_is_real(field) ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64);
}

static bool read_raw(hid_t dataset, const pc_field *field, int64_t first, int64_t count, void *values) {
    hid_t type = read_type(field, dataset);
    bool done = type >= 0 && (first < 0 ? H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0
                                        : pc_h5_column_part(dataset, type, first, count, values));
    if (type >= 0) H5Tclose(type);
    return done;
}

static bool set_value(const pc_field *field, void *row, const char *from) {
    double real;
    int64_t integer;
    if (pc_field_is_text(field) && field->is_optional && from[0] == '\0') return pc_field_clear(field, row), true;
    if (pc_field_is_text(field)) return pc_field_set_text(field, row, from);
    memcpy(&real, from, sizeof real);
    memcpy(&integer, from, sizeof integer);
    return pc_field_is_real(field) ? pc_field_set_real(field, row, real) : pc_field_set_integer(field, row, integer);
}

static bool scatter(const pc_field *field, const char *values, char *rows, size_t row_size, int64_t count) {
    size_t size = read_size(field);
    bool done = true;
    if (takes_all(field)) return copy_values(rows + field->place, row_size, values, size, size, count), true;
    for (int64_t i = 0; i < count && done; i++)
        done = set_value(field, rows + (size_t)i * row_size, values + (size_t)i * size);
    return done;
}

pc_code pc_field_read(hid_t dataset, const pc_field *field, int64_t first, int64_t count, void *rows, size_t row_size,
                      bool *is_good, pc_error *error) {
    bool is_dense = takes_all(field) && row_size == pc_field_size(field);
    *is_good = has_expected_class(field, dataset);
    if (!*is_good || count == 0) return PC_OK;
    char *values = is_dense ? rows : pc_alloc((size_t)count, read_size(field));
    if (!values) return pc_error_no_memory(error);
    *is_good =
        read_raw(dataset, field, first, count, values) && (is_dense || scatter(field, values, rows, row_size, count));
    if (!is_dense) pc_free(values);
    return PC_OK;
}

/* ---- tables ---- */

static pc_code write_table(hid_t group, const pc_fields *fields, const void *rows, int64_t count,
                           pc_field_storing storing, pc_error *error) {
    pc_code code = PC_OK;
    for (size_t i = 0; i < fields->count && !code; i++)
        code = pc_field_write(group, &fields->field[i], rows, fields->row_size, count, storing, NULL, error);
    return code;
}

pc_code pc_fields_write(hid_t group, const pc_fields *fields, const void *rows, int64_t count, pc_error *error) {
    return write_table(group, fields, rows, count, PC_STORED_SMALL, error);
}

pc_code pc_fields_write_whole(hid_t group, const pc_fields *fields, const void *rows, int64_t count, pc_error *error) {
    return write_table(group, fields, rows, count, PC_STORED_WHOLE, error);
}

pc_code pc_fields_write_group(hid_t parent, const char *name, const pc_fields *fields, const void *rows, int64_t count,
                              pc_error *error) {
    hid_t group = pc_h5_group_create(parent, name);
    if (group < 0) return pc_fields_fail(error);
    pc_code code = pc_fields_write(group, fields, rows, count, error);
    H5Gclose(group);
    return code;
}

/* What a row takes while it is read: itself, and a text of it is longer in between. */
static size_t room_of_row(const pc_fields *fields) {
    bool has_text = false;
    for (size_t i = 0; i < fields->count; i++) has_text = has_text || pc_field_is_text(&fields->field[i]);
    return fields->row_size + (has_text ? PC_FIELD_TEXT_SIZE : sizeof(int64_t));
}

static pc_code read_field(hid_t group, const char *group_name, const pc_field *field, void *rows, size_t row_size,
                          int64_t count, pc_error *error) {
    int64_t length;
    pc_code code = PC_OK;
    if (field->may_lack && !pc_h5_has(group, field->name)) return PC_OK;
    hid_t dataset = pc_h5_column_open(group, field->name, &length);
    bool is_good = dataset >= 0 && length == count;
    if (is_good) code = pc_field_read(dataset, field, -1, count, rows, row_size, &is_good, error);
    if (dataset >= 0) H5Dclose(dataset);
    return code || is_good ? code : pc_fields_refuse(group_name, field->name, error);
}

pc_code pc_fields_read_known(hid_t group, const char *group_name, const pc_fields *fields, void *rows, int64_t count,
                             pc_error *error) {
    pc_code code = PC_OK;
    for (size_t i = 0; i < fields->count && !code; i++)
        code = read_field(group, group_name, &fields->field[i], rows, fields->row_size, count, error);
    return code;
}

/* As its first column says; -1 if that is missing, or longer than the file could hold. */
static int64_t count_rows(hid_t group, const pc_fields *fields) {
    int64_t count = -1;
    hid_t dataset = pc_h5_column_open(group, fields->field->name, &count);
    if (dataset < 0) return -1;
    bool fits = pc_h5_can_hold_rows(dataset, count, room_of_row(fields));
    H5Dclose(dataset);
    return fits ? count : -1;
}

pc_code pc_fields_read(hid_t group, const char *group_name, const pc_fields *fields, void **rows, int64_t *count,
                       pc_error *error) {
    *rows = NULL;
    *count = 0;
    int64_t found = count_rows(group, fields);
    if (found < 0) return pc_fields_refuse(group_name, fields->field->name, error);
    *rows = pc_alloc((size_t)found, fields->row_size);
    if (!*rows) return pc_error_no_memory(error);
    *count = found;
    return pc_fields_read_known(group, group_name, fields, *rows, found, error);
}

/* ---- single columns of numbers ---- */

pc_code pc_reals_write(hid_t group, const char *name, const char *unit, const char *description, const double *values,
                       int64_t count, pc_error *error) {
    const pc_field field = {.name = name, .unit = unit, .description = description, .type = PC_FIELD_NUMBER};
    return pc_field_write(group, &field, values, sizeof *values, count, PC_STORED_SMALL, NULL, error);
}

static bool all_finite(const double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

pc_code pc_reals_read(hid_t group, const char *group_name, const char *name, int64_t wanted, double **values,
                      int64_t *count, pc_error *error) {
    const pc_field field = {.name = name, .type = PC_FIELD_NUMBER};
    *values = NULL;
    hid_t dataset = pc_h5_column_open(group, name, count);
    if (dataset < 0) return pc_fields_refuse(group_name, name, error);
    pc_code code = PC_OK;
    bool is_good = has_expected_class(&field, dataset) && (wanted < 0 || *count == wanted);
    if (is_good) *values = pc_alloc((size_t)*count, sizeof **values);
    if (is_good && !*values) code = pc_error_no_memory(error);
    if (is_good && !code) code = pc_field_read(dataset, &field, -1, *count, *values, sizeof **values, &is_good, error);
    is_good = is_good && (code || all_finite(*values, *count));
    H5Dclose(dataset);
    return code || is_good ? code : pc_fields_refuse(group_name, name, error);
}
