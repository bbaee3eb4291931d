#include "kernels/softmax.h"

#include <inttypes.h>
#include <math.h>

static const double close = 1e-5; /* exponentials and sums in single precision */

double pc_softmax_scale(const pc_kernel_shape *shape) {
    return shape->k > 0 ? 1 / sqrt((double)shape->k) : 1;
}

static pc_code check_shape(const pc_kernel_shape *shape, pc_error *error) {
    if (shape->dtype != PC_BF16 && shape->dtype != PC_FP16)
        return pc_error_set(error, PC_ERROR_INPUT, "softmax: dtype %s; expected bf16 or fp16",
                            pc_dtype_name(shape->dtype));
    if (shape->m < 1 || shape->n < 1 || pc_softmax_rows(shape) > INT32_MAX || shape->n > 1 << 30)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "softmax: %" PRId64 " rows of %" PRId64
                            "; expected at least one of each, at most 2^31 - 1 and 2^30",
                            pc_softmax_rows(shape), shape->n);
    return PC_OK;
}

pc_code pc_softmax_forward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                   pc_error *error) {
    pc_code code = check_shape(shape, error);
    if (code) return code;
    int64_t all = pc_softmax_rows(shape) * shape->n;
    tensors[0] = (pc_tensor){"x", shape->dtype, all, PC_TENSOR_INPUT, PC_FILL_NORMAL, 3, 0};
    tensors[1] = (pc_tensor){"y", shape->dtype, all, PC_TENSOR_OUTPUT, PC_FILL_POISON, 0, close};
    *count = 2;
    return PC_OK;
}

/* y as it is on average: rows that sum to 1. */
pc_code pc_softmax_backward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                    pc_error *error) {
    pc_code code = check_shape(shape, error);
    if (code) return code;
    int64_t all = pc_softmax_rows(shape) * shape->n;
    tensors[0] = (pc_tensor){"dy", shape->dtype, all, PC_TENSOR_INPUT, PC_FILL_NORMAL, 1, 0};
    tensors[1] = (pc_tensor){"y", shape->dtype, all, PC_TENSOR_INPUT, PC_FILL_UNIFORM, 2.0 / (double)shape->n, 0};
    tensors[2] = (pc_tensor){"dx", shape->dtype, all, PC_TENSOR_OUTPUT, PC_FILL_POISON, 0, close};
    *count = 3;
    return PC_OK;
}

int64_t pc_softmax_forward_bytes(const pc_kernel_shape *shape) {
    return 2 * (2 * pc_softmax_rows(shape) * shape->n);
}

int64_t pc_softmax_backward_bytes(const pc_kernel_shape *shape) {
    return 3 * (2 * pc_softmax_rows(shape) * shape->n);
}

int64_t pc_softmax_flops(const pc_kernel_shape *shape) {
    (void)shape;
    return 0;
}
