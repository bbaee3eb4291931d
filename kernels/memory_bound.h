/* memory_bound.h: what the families that read, do little and write say of a shape, for their kernels on every device.
 *
 * Row-major tensors, in this order; those in brackets are there only where the shape asks for them. 16: of the shape's
 * dtype. `m` rows are tokens, `n` columns, all from 1 to 2^31 - 1. The gradient of X is called X_gradient.
 *
 *   gelu_forward            input 16 [m,n], [bias 16 [n]], output 16 [m,n]
 *   gelu_backward           output_gradient, input, [bias], input_gradient
 *                           gelu(input + bias), tanh form; bias with PC_EPILOGUE_BIAS
 *   swiglu_forward          input 16 [m,2n]: gate, up; output 16 [m,n] = gate sigmoid(gate) up
 *   swiglu_backward         output_gradient, input, input_gradient
 *   rotary_forward          query 16 [m,heads,k], key 16 [m,kv_heads,k], both in place; k even. Token t stands at
 *                           position t modulo n (the sequence length); base 10000; i turns with i + k/2
 *   rotary_backward         query_gradient, key_gradient, in place
 *   residual_forward        input 16 [m,n], residual 16, [bias 16 [n]], output 16 = residual + dropout(input + bias),
 *                           [mask uint8 [m,n]: 1 of what is kept]; bias with PC_EPILOGUE_BIAS, mask and dropout
 *                           with a probability from above 0 to below 1 (dropout.h; kept values over 1 - probability)
 *   residual_backward       output_gradient, [mask], input_gradient. The residual's gradient is the output's, the
 *                           bias's is bias_gradient of input_gradient
 *   add                     first 16 [m,n], second, output
 *   cross_entropy_forward   logits 16 [m,n], target int32 [m], loss fp32 [m] of every token, log_sum fp32 [m]: the
 *                           natural logarithm of the sum of a row's exponentials
 *   cross_entropy_backward  logits, target, log_sum, logits_gradient 16 of the loss's mean over m. A target outside
 *                           0 to n - 1 is no token: loss 0, gradient 0
 *   embedding_forward       table 16 [k,n], token int32 [m], [position_table 16 [m/batch,n]], output 16 [m,n];
 *                           positions with PC_EPILOGUE_BIAS: `batch` sequences of m / batch tokens. A token outside
 *                           0 to k - 1 has a row of zeros, as with a cut vocabulary
 *   embedding_backward      output_gradient, token, table_gradient fp32 [k,n], added to,
 *                           [position_table_gradient fp32, added to], order: scratch
 *   bias_gradient           output_gradient 16 [m,n], bias_gradient fp32 [n], added to, partial: scratch
 *   adam                    gradient fp32 [m,n]; master, momentum, variance fp32, in place; weight 16 (adam.h)
 *   copy                    input 16 [m,n], output 16: the yardstick of all others
 */
#ifndef PC_KERNELS_MEMORY_BOUND_H
#define PC_KERNELS_MEMORY_BOUND_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool pc_shape_has_bias(const pc_kernel_shape *shape) {
    return shape->epilogue != PC_EPILOGUE_NONE;
}

static inline bool pc_shape_has_dropout(const pc_kernel_shape *shape) {
    return shape->probability > 0;
}

/* As pc_kernel_family has them. Bytes: each tensor once, in place twice; of a table the rows that `m` evenly drawn
 * tokens hit, and nothing else of it. */
#define PC_MEMORY_BOUND(name)                                                                                          \
    pc_code pc_##name##_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,        \
                                pc_error *error);                                                                      \
    int64_t pc_##name##_bytes(const pc_kernel_shape *shape);
PC_MEMORY_BOUND(gelu_forward)
PC_MEMORY_BOUND(gelu_backward)
PC_MEMORY_BOUND(swiglu_forward)
PC_MEMORY_BOUND(swiglu_backward)
PC_MEMORY_BOUND(rotary_forward)
PC_MEMORY_BOUND(rotary_backward)
PC_MEMORY_BOUND(residual_forward)
PC_MEMORY_BOUND(residual_backward)
PC_MEMORY_BOUND(add)
PC_MEMORY_BOUND(cross_entropy_forward)
PC_MEMORY_BOUND(cross_entropy_backward)
PC_MEMORY_BOUND(embedding_forward)
PC_MEMORY_BOUND(embedding_backward)
PC_MEMORY_BOUND(bias_gradient)
PC_MEMORY_BOUND(adam)
PC_MEMORY_BOUND(copy)
#undef PC_MEMORY_BOUND

int64_t pc_no_flops(const pc_kernel_shape *shape); /* 0: no matrix work */

/* The rows of a bias gradient are cut into so many parts: enough for every processor, and few enough for the sums of
 * the parts to be little beside the rows. */
int64_t pc_bias_gradient_parts(const pc_kernel_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
