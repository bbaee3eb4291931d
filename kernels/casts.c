#include "kernels/casts.h"

#include "kernels/memory_bound.h"

/* ---- what can be ---- */

static bool is_size(int64_t value) {
    return value >= 1 && value <= INT32_MAX;
}

static pc_code check_shape(const char *family, const pc_kernel_shape *s, pc_error *error) {
    if (s->dtype != PC_BF16 && s->dtype != PC_FP16)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: dtype number %d; expected bf16 or fp16", family, (int)s->dtype);
    if (!is_size(s->m) || !is_size(s->n))
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %lld rows of %lld columns; expected 1 to 2^31 - 1 of both",
                            family, (long long)s->m, (long long)s->n);
    if (s->m <= INT64_MAX / 64 / s->n) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %lld rows; expected less than 2^57 elements in all", family,
                        (long long)s->m);
}

/* ---- tensors ---- */

/* A product of two floats, rounded to a float before it is cast. */
static const double SCALED_TOLERANCE = 1e-6;

static pc_tensor input(const pc_kernel_shape *s) {
    return (pc_tensor){"input", s->dtype, s->m * s->n, PC_TENSOR_INPUT, PC_FILL_NORMAL, 1, 0};
}

/* Up to 400: a part of the numbers is beyond the largest of e4m3. */
static pc_tensor scale(void) {
    return (pc_tensor){"scale", PC_FP32, 1, PC_TENSOR_INPUT, PC_FILL_UNIFORM, 400, 0};
}

static pc_tensor output(const pc_kernel_shape *s, const char *name) {
    return (pc_tensor){name, pc_shape_low(s), s->m * s->n, PC_TENSOR_OUTPUT, PC_FILL_POISON, 0, SCALED_TOLERANCE};
}

/* Exact: no number is made, one is kept. */
static pc_tensor amax(void) {
    return (pc_tensor){"amax", PC_FP32, 1, PC_TENSOR_IN_PLACE, PC_FILL_UNIFORM, 4, 0};
}

pc_code pc_cast_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    pc_code code = check_shape("cast", s, error);
    if (code) return code;
    tensors[0] = input(s);
    tensors[1] = scale();
    tensors[2] = output(s, "output");
    *count = 3;
    return PC_OK;
}

pc_code pc_cast_transpose_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                  pc_error *error) {
    pc_code code = check_shape("cast_transpose", s, error);
    if (code) return code;
    tensors[0] = input(s);
    tensors[1] = scale();
    tensors[2] = output(s, "output");
    tensors[3] = output(s, "transposed");
    tensors[4] = amax();
    *count = 5;
    return PC_OK;
}

pc_code pc_amax_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    pc_code code = check_shape("amax", s, error);
    if (code) return code;
    tensors[0] = input(s);
    tensors[1] = amax();
    *count = 2;
    return PC_OK;
}

/* ---- work ---- */

int64_t pc_cast_bytes(const pc_kernel_shape *s) {
    return (2 + 1) * s->m * s->n + 4;
}

int64_t pc_cast_transpose_bytes(const pc_kernel_shape *s) {
    return (2 + 1 + 1) * s->m * s->n + 4 + (4 + 4);
}

int64_t pc_amax_bytes(const pc_kernel_shape *s) {
    return 2 * s->m * s->n + (4 + 4);
}
