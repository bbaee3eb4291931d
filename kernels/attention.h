/* attention.h: what both directions of attention say of a shape, for the kernels on every device.
 *
 * Layout, row-major: query [batch, m, heads, k], key and value [batch, n, kv_heads, k], out as query, log_sum fp32
 * [batch, heads, m]: the natural logarithm of the sum of exp(score) of a row. A score is the product of a query and a
 * key over sqrt(k). heads / kv_heads neighbouring query heads share a key/value head. Causal: query i sees the keys up
 * to i + n - m, so that the last query sees all. A row that sees no key (m > n) has out 0, log_sum -inf, and gives no
 * gradient.
 *
 * The backward family is a function of all that it is given, out and log_sum too: P = exp(score - log_sum),
 * dS = P * (dP - sum over k of dout * out), which is the gradient where they are what forward makes.
 */
#ifndef PC_KERNELS_ATTENTION_H
#define PC_KERNELS_ATTENTION_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order of the tensors; those of forward come first in backward too. */
enum {
    PC_ATTENTION_QUERY,
    PC_ATTENTION_KEY,
    PC_ATTENTION_VALUE,
    PC_ATTENTION_OUT,
    PC_ATTENTION_LOG_SUM,
    PC_ATTENTION_FORWARD_TENSORS,
    PC_ATTENTION_OUT_GRADIENT = PC_ATTENTION_FORWARD_TENSORS,
    PC_ATTENTION_QUERY_GRADIENT,
    PC_ATTENTION_KEY_GRADIENT,
    PC_ATTENTION_VALUE_GRADIENT,
    PC_ATTENTION_DELTA, /* scratch, fp32 [batch, heads, m] */
    PC_ATTENTION_BACKWARD_TENSORS
};

enum { PC_ATTENTION_HEAD_MAX = 256 }; /* k, a multiple of 8 */

/* As pc_kernel_family has them. */
pc_code pc_attention_forward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                     pc_error *error);
pc_code pc_attention_backward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                      pc_error *error);
int64_t pc_attention_forward_flops(const pc_kernel_shape *shape);
int64_t pc_attention_backward_flops(const pc_kernel_shape *shape);
int64_t pc_attention_forward_bytes(const pc_kernel_shape *shape);
int64_t pc_attention_backward_bytes(const pc_kernel_shape *shape);
void pc_attention_forward_reference(const pc_kernel_shape *shape, double *const *tensors);
void pc_attention_backward_reference(const pc_kernel_shape *shape, double *const *tensors);

#ifdef __cplusplus
}
#endif
#endif
