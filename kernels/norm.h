/* norm.h: what the norms' kernels and references share.
 *
 * Rows of n columns, each to its own mean and variance (Ba, Kiros, Hinton: 'Layer Normalization', arXiv 1607.06450) or
 * root mean square (Zhang, Sennrich: 'Root Mean Square Layer Normalization', arXiv 1910.07467):
 *   layer norm: y = (x - mean) rstd gamma + beta, rstd = 1 / sqrt(mean of (x - mean)^2 + epsilon)
 *   RMS norm:   y = x rstd gamma,                 rstd = 1 / sqrt(mean of x^2 + epsilon)
 * Tensors, in this order; mean and rstd are fp32, a row each:
 *   layer_norm_forward   x, gamma, beta -> y, mean, rstd
 *   layer_norm_backward  dy, x, gamma, mean, rstd -> dx; dgamma, dbeta += (fp32); scratch
 *   rms_norm_forward     x, gamma -> y, rstd
 *   rms_norm_backward    dy, x, gamma, rstd -> dx; dgamma +=; scratch
 */
#ifndef PC_KERNELS_NORM_H
#define PC_KERNELS_NORM_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PC_NORM_EPSILON 1e-5

/* The most parts into which rows are cut, each with its own sums for gamma and beta: what scratch has room for. */
enum { PC_NORM_PARTS = 512 };

/* Of a family, as pc_kernel_family has them. */
#define PC_NORM(name)                                                                                                  \
    pc_code pc_##name##_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,        \
                                pc_error *error);                                                                      \
    void pc_##name##_reference(const pc_kernel_shape *shape, double *const *tensors);                                  \
    int64_t pc_##name##_bytes(const pc_kernel_shape *shape);
PC_NORM(layer_norm_forward)
PC_NORM(layer_norm_backward)
PC_NORM(rms_norm_forward)
PC_NORM(rms_norm_backward)
#undef PC_NORM
int64_t pc_norm_flops(const pc_kernel_shape *shape); /* 0: no matrix work */

#ifdef __cplusplus
}
#endif
#endif
