#include "models/workload/activation_memory.h"

#include <inttypes.h>

static bool positive(const pc_shape *shape) {
    return shape->hidden > 0 && shape->heads > 0 && shape->seq_len > 0 && shape->microbatch_size > 0;
}

/* The product of `count` positive numbers; false on overflow. */
static bool product(const int64_t *factors, int count, int64_t *result) {
    int64_t so_far = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(so_far, factors[i], &so_far)) return false;
    *result = so_far;
    return true;
}

/* linear * s*b*h + quadratic * a*s^2*b */
static bool polynomial(const pc_shape *shape, int64_t linear, int64_t quadratic, int64_t *bytes) {
    int64_t sbh, ass, sum;
    if (!positive(shape)) return false;
    if (!product((int64_t[]){linear, shape->seq_len, shape->microbatch_size, shape->hidden}, 4, &sbh)) return false;
    if (!product((int64_t[]){quadratic, shape->heads, shape->seq_len, shape->seq_len, shape->microbatch_size}, 5, &ass))
        return false;
    if (__builtin_add_overflow(sbh, ass, &sum)) return false;
    *bytes = sum;
    return true;
}

bool pc_activation_bytes_per_layer(const pc_shape *shape, int64_t *bytes) {
    return polynomial(shape, 34, 5, bytes);
}

bool pc_activation_b_bytes_per_layer(const pc_shape *shape, int64_t *bytes) {
    return polynomial(shape, 2, 5, bytes);
}

bool pc_activation_input_bytes_per_layer(const pc_shape *shape, int64_t *bytes) {
    return polynomial(shape, 2, 0, bytes);
}

pc_code pc_layers_of_part(pc_layer_layout layout, int64_t layers, int64_t parts, int64_t part, int64_t *part_layers,
                          pc_error *error) {
    int64_t ends = layout == PC_LAYERS_ENDS ? 2 : 0; /* embedding and head */
    int64_t slots = layers + ends;
    if (slots % parts != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "layers: %" PRId64 "%s do not divide evenly over %" PRId64 " model parts", layers,
                            ends ? " and embedding and head" : "", parts);
    int64_t here = slots / parts;
    if (ends && part == 0) here--;
    if (ends && part == parts - 1) here--;
    *part_layers = here;
    return PC_OK;
}
