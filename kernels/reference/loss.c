#include "kernels/reference/memory_bound.h"

#include <math.h>

static double log_sum_of(const double *row, int64_t n) {
    double most = row[0], sum = 0.0;
    for (int64_t i = 1; i < n; i++) most = fmax(most, row[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(row[i] - most);
    /* cppcheck-suppress invalidFunctionArg ; the largest entry adds exp(0) */
    return most + log(sum);
}

static bool is_token(const pc_kernel_shape *shape, double target) {
    return target >= 0.0 && target < (double)shape->n;
}

void pc_reference_cross_entropy_forward(const pc_kernel_shape *shape, double *const *tensors) {
    const double *target = tensors[1];
    double *loss = tensors[2], *log_sum = tensors[3];
    for (int64_t row = 0; row < shape->m; row++) {
        const double *logits = tensors[0] + row * shape->n;
        log_sum[row] = log_sum_of(logits, shape->n);
        loss[row] = is_token(shape, target[row]) ? log_sum[row] - logits[(int64_t)target[row]] : 0.0;
    }
}

void pc_reference_cross_entropy_backward(const pc_kernel_shape *shape, double *const *tensors) {
    const double *target = tensors[1], *log_sum = tensors[2];
    for (int64_t row = 0; row < shape->m; row++) {
        const double *logits = tensors[0] + row * shape->n;
        double *gradient = tensors[3] + row * shape->n;
        for (int64_t i = 0; i < shape->n; i++) {
            double wanted = target[row] == (double)i ? 1.0 : 0.0;
            double softmax = exp(logits[i] - log_sum[row]);
            gradient[i] = is_token(shape, target[row]) ? (softmax - wanted) / (double)shape->m : 0.0;
        }
    }
}
