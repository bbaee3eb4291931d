#include "kernels/norm.h"

#include <inttypes.h>

/* Sums of up to thousands of numbers, in single precision and in trees; as a part of a typical value. */
static const double close = 1e-5;

static pc_code check_shape(const pc_kernel_shape *shape, pc_error *error) {
    if (shape->dtype != PC_BF16 && shape->dtype != PC_FP16)
        return pc_error_set(error, PC_ERROR_INPUT, "norm: dtype %s; expected bf16 or fp16",
                            pc_dtype_name(shape->dtype));
    if (shape->m < 1 || shape->n < 1 || shape->m > INT32_MAX || shape->n > 1 << 30)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "norm: %" PRId64 " rows of %" PRId64
                            "; expected at least one of each, at most 2^31 - 1 and 2^30",
                            shape->m, shape->n);
    return PC_OK;
}

static pc_tensor input(const char *name, pc_dtype dtype, int64_t count) {
    return (pc_tensor){name, dtype, count, PC_TENSOR_INPUT, PC_FILL_NORMAL, 1, 0};
}

static pc_tensor output(const char *name, pc_dtype dtype, int64_t count) {
    return (pc_tensor){name, dtype, count, PC_TENSOR_OUTPUT, PC_FILL_POISON, 0, close};
}

static pc_code forward_tensors(const pc_kernel_shape *shape, bool is_rms, pc_tensor *tensors, int *count,
                               pc_error *error) {
    int64_t m = shape->m, n = shape->n;
    int i = 0;
    pc_code code = check_shape(shape, error);
    if (code) return code;
    tensors[i++] = input("x", shape->dtype, m * n);
    tensors[i++] = input("gamma", shape->dtype, n);
    if (!is_rms) tensors[i++] = input("beta", shape->dtype, n);
    tensors[i++] = output("y", shape->dtype, m * n);
    if (!is_rms) tensors[i++] = output("mean", PC_FP32, m);
    tensors[i++] = output("rstd", PC_FP32, m);
    *count = i;
    return PC_OK;
}

/* Scratch: the sums of every part, for gamma, then for beta. */
static pc_code backward_tensors(const pc_kernel_shape *shape, bool is_rms, pc_tensor *tensors, int *count,
                                pc_error *error) {
    int64_t m = shape->m, n = shape->n, parts = m < PC_NORM_PARTS ? m : PC_NORM_PARTS;
    int i = 0;
    pc_code code = check_shape(shape, error);
    if (code) return code;
    tensors[i++] = input("dy", shape->dtype, m * n);
    tensors[i++] = input("x", shape->dtype, m * n);
    tensors[i++] = input("gamma", shape->dtype, n);
    if (!is_rms) tensors[i++] = input("mean", PC_FP32, m);
    tensors[i++] = (pc_tensor){"rstd", PC_FP32, m, PC_TENSOR_INPUT, PC_FILL_UNIFORM, 2, 0};
    tensors[i++] = output("dx", shape->dtype, m * n);
    tensors[i++] = (pc_tensor){"dgamma", PC_FP32, n, PC_TENSOR_IN_PLACE, PC_FILL_NORMAL, 1, close};
    if (!is_rms) tensors[i++] = (pc_tensor){"dbeta", PC_FP32, n, PC_TENSOR_IN_PLACE, PC_FILL_NORMAL, 1, close};
    tensors[i++] =
        (pc_tensor){"scratch", PC_FP32, (is_rms ? 1 : 2) * parts * n, PC_TENSOR_SCRATCH, PC_FILL_POISON, 0, 0};
    *count = i;
    return PC_OK;
}

pc_code pc_layer_norm_forward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                      pc_error *error) {
    return forward_tensors(shape, false, tensors, count, error);
}

pc_code pc_rms_norm_forward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                    pc_error *error) {
    return forward_tensors(shape, true, tensors, count, error);
}

pc_code pc_layer_norm_backward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                       pc_error *error) {
    return backward_tensors(shape, false, tensors, count, error);
}

pc_code pc_rms_norm_backward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                     pc_error *error) {
    return backward_tensors(shape, true, tensors, count, error);
}

/* x and y; gamma (and beta); rstd (and mean). */
static int64_t forward_bytes(const pc_kernel_shape *shape, int64_t vectors) {
    return 2 * (2 * shape->m * shape->n) + 2 * vectors * shape->n + 4 * vectors * shape->m;
}

/* dy, x and dx; gamma; rstd (and mean); dgamma (and dbeta), read and written. */
static int64_t backward_bytes(const pc_kernel_shape *shape, int64_t vectors) {
    return 3 * (2 * shape->m * shape->n) + 2 * shape->n + 4 * vectors * shape->m + 2 * (4 * vectors * shape->n);
}

int64_t pc_layer_norm_forward_bytes(const pc_kernel_shape *shape) {
    return forward_bytes(shape, 2);
}

int64_t pc_rms_norm_forward_bytes(const pc_kernel_shape *shape) {
    return forward_bytes(shape, 1);
}

int64_t pc_layer_norm_backward_bytes(const pc_kernel_shape *shape) {
    return backward_bytes(shape, 2);
}

int64_t pc_rms_norm_backward_bytes(const pc_kernel_shape *shape) {
    return backward_bytes(shape, 1);
}

int64_t pc_norm_flops(const pc_kernel_shape *shape) {
    (void)shape;
    return 0;
}
