#include "kernels/softmax.h"

#include <math.h>

static void forward_row(const double *x, double scale, int64_t visible, int64_t n, double *y) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < visible; j++) largest = fmax(largest, scale * x[j]);
    for (int64_t j = 0; j < visible; j++) sum += exp(scale * x[j] - largest);
    for (int64_t j = 0; j < n; j++) y[j] = j < visible ? exp(scale * x[j] - largest) / sum : 0;
}

void pc_softmax_forward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    int64_t n = shape->n, rows = pc_softmax_rows(shape);
    double scale = shape->k > 0 ? 1 / sqrt((double)shape->k) : 1;
    for (int64_t i = 0; i < rows; i++) {
        int64_t visible = n;
        if (shape->is_causal) visible = i % shape->m + n - shape->m + 1;
        forward_row(tensors[0] + i * n, scale, visible, n, tensors[1] + i * n);
    }
}

void pc_softmax_backward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    int64_t n = shape->n, rows = pc_softmax_rows(shape);
    double scale = shape->k > 0 ? 1 / sqrt((double)shape->k) : 1;
    for (int64_t i = 0; i < rows; i++) {
        const double *dy = tensors[0] + i * n, *y = tensors[1] + i * n;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += dy[j] * y[j];
        for (int64_t j = 0; j < n; j++) tensors[2][i * n + j] = scale * y[j] * (dy[j] - sum);
    }
}
