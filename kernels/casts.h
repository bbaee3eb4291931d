/* casts.h: what a recipe of 8 bits does between the products: tensors of 16 bits looked through and made 8-bit ones.
 *
 * Row-major tensors, in this order; 16: of the shape's dtype, 8: PC_E5M2 if the shape's `low` is that, else PC_E4M3.
 * `m` rows of `n` columns, all from 1 to 2^31 - 1.
 *
 *   cast             input 16 [m,n], scale fp32 [1], output 8 [m,n] = input * scale, saturating
 *   cast_transpose   the same, then transposed 8 [n,m]: the same numbers, column by column; and amax fp32 [1]
 *   amax             input 16 [m,n], amax fp32 [1]
 *
 * amax is added to: the larger of what is there, which is not negative, and of all |input|. Scaling by what iterations
 * before had (Transformer Engine's DelayedScaling) runs cast_transpose alone, which leaves its amax to iterations to
 * come. Scaling by the tensor itself (Float8CurrentScaling) runs amax first.
 */
#ifndef PC_KERNELS_CASTS_H
#define PC_KERNELS_CASTS_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline pc_dtype pc_shape_low(const pc_kernel_shape *shape) {
    return shape->low == PC_E5M2 ? PC_E5M2 : PC_E4M3;
}

/* As pc_kernel_family has them. */
pc_code pc_cast_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                        pc_error *error);
pc_code pc_cast_transpose_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                  pc_error *error);
pc_code pc_amax_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                        pc_error *error);
int64_t pc_cast_bytes(const pc_kernel_shape *shape);
int64_t pc_cast_transpose_bytes(const pc_kernel_shape *shape);
int64_t pc_amax_bytes(const pc_kernel_shape *shape);

/* kernels/reference/casts.c */
void pc_reference_cast(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_cast_transpose(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_amax(const pc_kernel_shape *shape, double *const *tensors);

#ifdef __cplusplus
}
#endif
#endif
