/* softmax.h: what softmax's kernels and references share.
 *
 * `batch` times `heads` (each at least 1) matrices of m rows and n columns of scores: y = softmax(scale x) of each row,
 * scale = 1 / sqrt(k), or 1 where k is 0. Causal: row i sees columns up to i + n - m, and y is 0 of the others, and of
 * rows that see none. Backward, of any y: dx = scale y (dy - sum of dy y over the row), which is 0 where y is.
 *   softmax_forward   x -> y
 *   softmax_backward  dy, y -> dx
 */
#ifndef PC_KERNELS_SOFTMAX_H
#define PC_KERNELS_SOFTMAX_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of all matrices. */
static inline int64_t pc_softmax_rows(const pc_kernel_shape *shape) {
    return (shape->batch > 1 ? shape->batch : 1) * (shape->heads > 1 ? shape->heads : 1) * shape->m;
}
double pc_softmax_scale(const pc_kernel_shape *shape);

/* As pc_kernel_family has them. */
pc_code pc_softmax_forward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                   pc_error *error);
pc_code pc_softmax_backward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                    pc_error *error);
void pc_softmax_forward_reference(const pc_kernel_shape *shape, double *const *tensors);
void pc_softmax_backward_reference(const pc_kernel_shape *shape, double *const *tensors);
int64_t pc_softmax_forward_bytes(const pc_kernel_shape *shape);
int64_t pc_softmax_backward_bytes(const pc_kernel_shape *shape);
int64_t pc_softmax_flops(const pc_kernel_shape *shape); /* 0: no matrix work */

#ifdef __cplusplus
}
#endif
#endif
