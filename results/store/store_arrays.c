#include "results/store/store_arrays.h"

#include "engine/alloc.h"

#include <string.h>

/* The arrays are reached by their offset; all object pointers look the same here. */
static void *array_of(const void *owner, const pc_store_array *array) {
    void *values;
    memcpy(&values, (const char *)owner + array->pointer, sizeof values);
    return values;
}

static void set_array(void *owner, const pc_store_array *array, void *values) {
    memcpy((char *)owner + array->pointer, &values, sizeof values);
}

pc_code pc_store_arrays_write(hid_t group, const pc_store_arrays *arrays, const void *owner, const int64_t *lengths,
                              pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < arrays->count && !code; i++) {
        const pc_store_array *array = &arrays->list[i];
        const void *values = array_of(owner, array);
        code = pc_store_column_write(group, &array->stored, values ? lengths[array->axis] : 0, values, error);
    }
    return code;
}

/* Makes the array where no column before has. */
static pc_code make_array(void *owner, const pc_store_array *array, int64_t count, pc_error *error) {
    if (array_of(owner, array)) return PC_OK;
    void *values = pc_alloc((size_t)count, array->stored.stride);
    if (!values) return pc_error_no_memory(error);
    set_array(owner, array, values);
    return PC_OK;
}

/* The first column along an axis says how long it is, within reason; the others must agree. */
static pc_code agree_on_length(int64_t *known, int64_t found, int64_t most, const char *name, pc_error *error) {
    if (*known < 0 && found <= most) *known = found;
    return *known == found ? PC_OK : pc_store_refuse(error, name);
}

static pc_code read_array(hid_t group, const pc_store_array *array, int64_t most, void *owner, int64_t *length,
                          pc_error *error) {
    int64_t count = 0;
    hid_t dataset;
    pc_code code = pc_store_column_open(group, &array->stored, &dataset, &count, error);
    if (code) return code;
    code = agree_on_length(length, count, most, array->stored.name, error);
    if (!code) code = make_array(owner, array, count, error);
    if (!code) code = pc_store_column_read(dataset, &array->stored, count, array_of(owner, array), error);
    H5Dclose(dataset);
    return code;
}

pc_code pc_store_arrays_read(hid_t group, const pc_store_arrays *arrays, void *owner, int64_t *lengths,
                             pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < arrays->count && !code; i++) {
        const pc_store_array *array = &arrays->list[i];
        code = read_array(group, array, arrays->rows_max, owner, &lengths[array->axis], error);
    }
    return code;
}
