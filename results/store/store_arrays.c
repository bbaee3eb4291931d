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
        code = pc_field_write(group, &array->field, values, array->stride, values ? lengths[array->axis] : 0,
                              PC_STORED_WHOLE, NULL, error);
    }
    return code;
}

/* Makes the array where no column before has. */
static pc_code make_array(void *owner, const pc_store_array *array, int64_t count, pc_error *error) {
    if (array_of(owner, array)) return PC_OK;
    void *values = pc_alloc((size_t)count, array->stride);
    if (!values) return pc_error_no_memory(error);
    set_array(owner, array, values);
    return PC_OK;
}

/* The first column along an axis says how long it is, within reason; the others must agree. */
static bool agree_on_length(int64_t *known, int64_t found, int64_t most) {
    if (*known < 0 && found <= most) *known = found;
    return *known == found;
}

static pc_code read_array(hid_t group, const pc_store_array *array, int64_t most, void *owner, int64_t *length,
                          pc_error *error) {
    int64_t count = 0;
    pc_code code = PC_OK;
    hid_t dataset = pc_h5_column_open(group, array->field.name, &count);
    bool is_good = dataset >= 0 && agree_on_length(length, count, most);
    if (is_good) code = make_array(owner, array, count, error);
    if (is_good && !code)
        code = pc_field_read(dataset, &array->field, -1, count, array_of(owner, array), array->stride, &is_good, error);
    if (dataset >= 0) H5Dclose(dataset);
    return code || is_good ? code : pc_fields_refuse(NULL, array->field.name, error);
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

int pc_store_arrays_list(const pc_store_arrays *arrays, size_t owner, const int64_t *lengths, bool may_lack,
                         pc_trace_array *found) {
    int count = 0;
    for (int i = 0; i < arrays->count; i++) {
        const pc_store_array *array = &arrays->list[i];
        if (i > 0 && array->pointer == arrays->list[i - 1].pointer) continue; /* another field of the same elements */
        found[count++] = (pc_trace_array){owner + array->pointer, array->stride, lengths[array->axis], may_lack};
    }
    return count;
}
