#include "results/store/store_columns.h"

#include "engine/alloc.h"
#include "models/schedule/engine_trace.h"
#include "models/schedule/schedule.h"

#include <string.h>

pc_code pc_store_refuse(pc_error *error, const char *name) {
    return pc_error_set(error, PC_ERROR_INPUT, "'%s' is missing or damaged", name);
}

pc_code pc_store_fail(pc_error *error) {
    return pc_error_set(error, PC_ERROR_IO, "HDF5 could not build a trace");
}

/* --- types --- */

static int value_count(pc_store_element element) {
    switch (element) {
    case PC_STORE_KIND:
        return PC_PASS_KINDS;
    case PC_STORE_LINK_SORT:
        return PC_LINK_SORTS;
    case PC_STORE_FLOW_SORT:
        return PC_FLOW_SORTS;
    case PC_STORE_WORK_SORT:
        return PC_WORK_SORTS;
    default:
        return 0; /* its values have no names */
    }
}

static const char *value_name(pc_store_element element, int value) {
    switch (element) {
    case PC_STORE_KIND:
        return pc_pass_kind_name((pc_pass_kind)value);
    case PC_STORE_LINK_SORT:
        return pc_link_sort_name((pc_link_sort)value);
    case PC_STORE_FLOW_SORT:
        return pc_flow_sort_name((pc_flow_sort)value);
    default:
        return pc_work_sort_name((pc_work_sort)value);
    }
}

static hid_t enum_type(pc_store_element element, hid_t base) {
    hid_t type = H5Tenum_create(base);
    for (int i = 0; type >= 0 && i < value_count(element); i++) {
        int16_t value = (int16_t)i;
        if (H5Tconvert(H5T_NATIVE_INT16, base, 1, &value, NULL, H5P_DEFAULT) >= 0 &&
            H5Tenum_insert(type, value_name(element, i), &value) >= 0)
            continue;
        H5Tclose(type);
        return -1;
    }
    return type;
}

static hid_t file_type_of(pc_store_element element) {
    switch (element) {
    case PC_STORE_UINT8:
        return H5Tcopy(H5T_STD_U8LE);
    case PC_STORE_INT16:
        return H5Tcopy(H5T_STD_I16LE);
    case PC_STORE_INT32:
        return H5Tcopy(H5T_STD_I32LE);
    case PC_STORE_INT64:
        return H5Tcopy(H5T_STD_I64LE);
    case PC_STORE_REAL:
        return H5Tcopy(H5T_IEEE_F64LE);
    case PC_STORE_KIND:
        return enum_type(element, H5T_STD_I8LE);
    case PC_STORE_LINK_SORT:
    case PC_STORE_FLOW_SORT:
    case PC_STORE_WORK_SORT:
        return enum_type(element, H5T_STD_U8LE);
    }
    return -1;
}

static hid_t memory_type_of(pc_store_element element) {
    switch (element) {
    case PC_STORE_UINT8:
        return H5Tcopy(H5T_NATIVE_UINT8);
    case PC_STORE_INT16:
        return H5Tcopy(H5T_NATIVE_INT16);
    case PC_STORE_INT32:
        return H5Tcopy(H5T_NATIVE_INT32);
    case PC_STORE_INT64:
        return H5Tcopy(H5T_NATIVE_INT64);
    case PC_STORE_REAL:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case PC_STORE_KIND:
        return enum_type(element, H5T_NATIVE_INT16);
    case PC_STORE_LINK_SORT:
    case PC_STORE_FLOW_SORT:
    case PC_STORE_WORK_SORT:
        return enum_type(element, H5T_NATIVE_UINT8);
    }
    return -1;
}

static size_t element_size(pc_store_element element) {
    switch (element) {
    case PC_STORE_INT16:
    case PC_STORE_KIND:
        return sizeof(int16_t);
    case PC_STORE_INT32:
        return sizeof(int32_t);
    case PC_STORE_INT64:
        return sizeof(int64_t);
    case PC_STORE_REAL:
        return sizeof(double);
    default:
        return sizeof(uint8_t);
    }
}

static H5T_class_t class_of(pc_store_element element) {
    if (value_count(element) > 0) return H5T_ENUM;
    return element == PC_STORE_REAL ? H5T_FLOAT : H5T_INTEGER;
}

static void copy_values(char *to, size_t to_stride, const char *from, size_t from_stride, size_t size, int64_t count) {
    for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)i * to_stride, from + (size_t)i * from_stride, size);
}

/* --- writing --- */

static bool write_values(hid_t group, const pc_store_column *column, int64_t count, const void *values) {
    pc_h5_column stored = {.name = column->name,
                           .unit = column->unit,
                           .description = column->description,
                           .file_type = file_type_of(column->element),
                           .memory_type = memory_type_of(column->element),
                           .count = (hsize_t)count,
                           .values = values};
    hid_t dataset = stored.file_type >= 0 && stored.memory_type >= 0 ? pc_h5_column_write(group, &stored) : -1;
    if (stored.file_type >= 0) H5Tclose(stored.file_type);
    if (stored.memory_type >= 0) H5Tclose(stored.memory_type);
    if (dataset >= 0) H5Dclose(dataset);
    return dataset >= 0;
}

pc_code pc_store_column_write(hid_t group, const pc_store_column *column, int64_t count, const void *array,
                              pc_error *error) {
    size_t size = element_size(column->element);
    if (size == column->stride) return write_values(group, column, count, array) ? PC_OK : pc_store_fail(error);
    char *values = pc_alloc((size_t)count, size);
    if (!values) return pc_error_no_memory(error);
    copy_values(values, size, (const char *)array + column->place, column->stride, size, count);
    pc_code code = write_values(group, column, count, values) ? PC_OK : pc_store_fail(error);
    pc_free(values);
    return code;
}

/* --- reading --- */

pc_code pc_store_column_open(hid_t group, const pc_store_column *column, hid_t *dataset, int64_t *count,
                             pc_error *error) {
    *dataset = pc_h5_column_open(group, column->name, count);
    return *dataset >= 0 ? PC_OK : pc_store_refuse(error, column->name);
}

static pc_code read_values(hid_t dataset, const pc_store_column *column, int64_t count, void *values, pc_error *error) {
    if (pc_h5_column_class(dataset) != class_of(column->element)) return pc_store_refuse(error, column->name);
    hid_t type = memory_type_of(column->element);
    bool done = type >= 0 && (count == 0 || H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    if (type >= 0) H5Tclose(type);
    return done ? PC_OK : pc_store_refuse(error, column->name);
}

pc_code pc_store_column_read(hid_t dataset, const pc_store_column *column, int64_t count, void *array,
                             pc_error *error) {
    size_t size = element_size(column->element);
    if (size == column->stride) return read_values(dataset, column, count, array, error);
    char *values = pc_alloc((size_t)count, size);
    if (!values) return pc_error_no_memory(error);
    pc_code code = read_values(dataset, column, count, values, error);
    if (!code) copy_values((char *)array + column->place, column->stride, values, size, size, count);
    pc_free(values);
    return code;
}

pc_code pc_store_column_fetch(hid_t group, const pc_store_column *column, int64_t count, void *array, pc_error *error) {
    hid_t dataset;
    int64_t found = 0;
    pc_code code = pc_store_column_open(group, column, &dataset, &found, error);
    if (code) return code;
    code = found == count ? pc_store_column_read(dataset, column, count, array, error)
                          : pc_store_refuse(error, column->name);
    H5Dclose(dataset);
    return code;
}
