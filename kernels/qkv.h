/* qkv.h: between the matrix that makes queries, keys and values side by side and attention, which takes three tensors.
 *
 * Row-major, of the shape's dtype, in this order; m rows (tokens), heads and kv_heads of k columns each:
 *   qkv_split   qkv [m, heads + 2 kv_heads, k], [bias, one row, with PC_EPILOGUE_BIAS], query [m, heads, k],
 *               key [m, kv_heads, k], value: qkv + bias
 *   qkv_merge   query_gradient, key_gradient, value_gradient, qkv_gradient: its way back
 */
#ifndef PC_KERNELS_QKV_H
#define PC_KERNELS_QKV_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns of a row. */
typedef struct pc_qkv_columns {
    int64_t query, key, all;
} pc_qkv_columns;
pc_qkv_columns pc_qkv_columns_of(const pc_kernel_shape *shape);

/* As pc_kernel_family has them. */
pc_code pc_qkv_split_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                             pc_error *error);
pc_code pc_qkv_merge_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                             pc_error *error);
int64_t pc_qkv_split_bytes(const pc_kernel_shape *shape);
int64_t pc_qkv_merge_bytes(const pc_kernel_shape *shape);
int64_t pc_qkv_flops(const pc_kernel_shape *shape); /* 0 */

/* kernels/reference/qkv.c */
void pc_qkv_split_reference(const pc_kernel_shape *shape, double *const *tensors);
void pc_qkv_merge_reference(const pc_kernel_shape *shape, double *const *tensors);

#ifdef __cplusplus
}
#endif
#endif
