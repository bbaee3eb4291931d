#include "kernels/norm.h"

#include <math.h>

static double mean_of(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += x[j];
    return sum / (double)n;
}

/* The mean of (x - from)^2. */
static double mean_square(const double *x, double from, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += (x[j] - from) * (x[j] - from);
    return sum / (double)n;
}

static double reciprocal_root(double square) {
    return 1 / sqrt(square + PC_NORM_EPSILON);
}

void pc_layer_norm_forward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    const double *gamma = tensors[1], *beta = tensors[2];
    int64_t n = shape->n;
    for (int64_t i = 0; i < shape->m; i++) {
        const double *x = tensors[0] + i * n;
        double mean = mean_of(x, n), rstd = reciprocal_root(mean_square(x, mean, n));
        for (int64_t j = 0; j < n; j++) tensors[3][i * n + j] = (x[j] - mean) * rstd * gamma[j] + beta[j];
        tensors[4][i] = mean;
        tensors[5][i] = rstd;
    }
}

void pc_rms_norm_forward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    const double *gamma = tensors[1];
    int64_t n = shape->n;
    for (int64_t i = 0; i < shape->m; i++) {
        const double *x = tensors[0] + i * n;
        double rstd = reciprocal_root(mean_square(x, 0, n));
        for (int64_t j = 0; j < n; j++) tensors[2][i * n + j] = x[j] * rstd * gamma[j];
        tensors[3][i] = rstd;
    }
}

/* One row: with g = dy gamma and h = (x - mean) rstd, and what mean and rstd are given as,
 *   dx_j = rstd (g_j - mean of g - h_j mean of g h), the middle term of layer norm only. */
static void backward_row(const double *dy, const double *x, const double *gamma, double mean, double rstd,
                         bool has_mean, int64_t n, double *dx) {
    double sum_g = 0, sum_gh = 0;
    for (int64_t j = 0; j < n; j++) {
        double g = dy[j] * gamma[j];
        sum_g += g;
        sum_gh += g * (x[j] - mean) * rstd;
    }
    for (int64_t j = 0; j < n; j++) {
        double middle = has_mean ? sum_g / (double)n : 0, h = (x[j] - mean) * rstd;
        dx[j] = rstd * (dy[j] * gamma[j] - middle - h * sum_gh / (double)n);
    }
}

void pc_layer_norm_backward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    int64_t n = shape->n;
    for (int64_t i = 0; i < shape->m; i++) {
        const double *dy = tensors[0] + i * n, *x = tensors[1] + i * n;
        double mean = tensors[3][i], rstd = tensors[4][i];
        backward_row(dy, x, tensors[2], mean, rstd, true, n, tensors[5] + i * n);
        for (int64_t j = 0; j < n; j++) {
            tensors[6][j] += dy[j] * (x[j] - mean) * rstd;
            tensors[7][j] += dy[j];
        }
    }
}

void pc_rms_norm_backward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    int64_t n = shape->n;
    for (int64_t i = 0; i < shape->m; i++) {
        const double *dy = tensors[0] + i * n, *x = tensors[1] + i * n;
        double rstd = tensors[3][i];
        backward_row(dy, x, tensors[2], 0, rstd, false, n, tensors[4] + i * n);
        for (int64_t j = 0; j < n; j++) tensors[5][j] += dy[j] * x[j] * rstd;
    }
}
