/* families.h: all families, each defined beside its kernels (cuda/ and, of GEMMs, tests/emulated/). The table is
 * kernels.c. */
#ifndef PC_KERNELS_FAMILIES_H
#define PC_KERNELS_FAMILIES_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* norm.h, softmax.h */
extern const pc_kernel_family pc_family_layer_norm_forward, pc_family_layer_norm_backward;
extern const pc_kernel_family pc_family_rms_norm_forward, pc_family_rms_norm_backward;
extern const pc_kernel_family pc_family_softmax_forward, pc_family_softmax_backward;

/* between the matrix of queries, keys and values and attention (qkv.h) */
extern const pc_kernel_family pc_family_qkv_split, pc_family_qkv_merge;

/* flash attention: attention.h */
extern const pc_kernel_family pc_family_attention_forward, pc_family_attention_backward;

/* matrix products: gemm.h */
extern const pc_kernel_family pc_family_gemm_forward, pc_family_gemm_input_gradient, pc_family_gemm_weight_gradient;

/* the same in 8 bits: gemm_low.h */
extern const pc_kernel_family pc_family_fp8_gemm_forward, pc_family_fp8_gemm_input_gradient,
    pc_family_fp8_gemm_weight_gradient;
extern const pc_kernel_family pc_family_fp8_block_gemm_forward, pc_family_fp8_block_gemm_input_gradient,
    pc_family_fp8_block_gemm_weight_gradient;
extern const pc_kernel_family pc_family_mxfp8_gemm_forward, pc_family_mxfp8_gemm_input_gradient,
    pc_family_mxfp8_gemm_weight_gradient;

/* of several groups of rows, in 16 and 8 bits: gemm_grouped.h */
extern const pc_kernel_family pc_family_grouped_gemm_forward, pc_family_grouped_gemm_input_gradient,
    pc_family_grouped_gemm_weight_gradient;
extern const pc_kernel_family pc_family_fp8_grouped_gemm_forward, pc_family_fp8_grouped_gemm_input_gradient,
    pc_family_fp8_grouped_gemm_weight_gradient;
extern const pc_kernel_family pc_family_fp8_block_grouped_gemm_forward, pc_family_fp8_block_grouped_gemm_input_gradient,
    pc_family_fp8_block_grouped_gemm_weight_gradient;

/* what reads, does little and writes: memory_bound.h */
extern const pc_kernel_family pc_family_gelu_forward, pc_family_gelu_backward;
extern const pc_kernel_family pc_family_swiglu_forward, pc_family_swiglu_backward;
extern const pc_kernel_family pc_family_rotary_forward, pc_family_rotary_backward;
extern const pc_kernel_family pc_family_residual_forward, pc_family_residual_backward;
extern const pc_kernel_family pc_family_cross_entropy_forward, pc_family_cross_entropy_backward;
extern const pc_kernel_family pc_family_embedding_forward, pc_family_embedding_backward;
extern const pc_kernel_family pc_family_bias_gradient, pc_family_add, pc_family_adam, pc_family_copy;

/* from 16 bits to 8: casts.h */
extern const pc_kernel_family pc_family_cast, pc_family_cast_transpose, pc_family_amax;

#ifdef __cplusplus
}
#endif
#endif
