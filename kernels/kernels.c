#include "kernels/families.h"

#include <string.h>

static const pc_kernel_family *const families[] = {
    &pc_family_gemm_forward,
    &pc_family_gemm_input_gradient,
    &pc_family_gemm_weight_gradient,
    &pc_family_fp8_gemm_forward,
    &pc_family_fp8_gemm_input_gradient,
    &pc_family_fp8_gemm_weight_gradient,
    &pc_family_fp8_block_gemm_forward,
    &pc_family_fp8_block_gemm_input_gradient,
    &pc_family_fp8_block_gemm_weight_gradient,
    &pc_family_mxfp8_gemm_forward,
    &pc_family_mxfp8_gemm_input_gradient,
    &pc_family_mxfp8_gemm_weight_gradient,
    &pc_family_grouped_gemm_forward,
    &pc_family_grouped_gemm_input_gradient,
    &pc_family_grouped_gemm_weight_gradient,
    &pc_family_fp8_grouped_gemm_forward,
    &pc_family_fp8_grouped_gemm_input_gradient,
    &pc_family_fp8_grouped_gemm_weight_gradient,
    &pc_family_fp8_block_grouped_gemm_forward,
    &pc_family_fp8_block_grouped_gemm_input_gradient,
    &pc_family_fp8_block_grouped_gemm_weight_gradient,
    &pc_family_attention_forward,
    &pc_family_attention_backward,
    &pc_family_layer_norm_forward,
    &pc_family_layer_norm_backward,
    &pc_family_rms_norm_forward,
    &pc_family_rms_norm_backward,
    &pc_family_softmax_forward,
    &pc_family_softmax_backward,
    &pc_family_qkv_split,
    &pc_family_qkv_merge,
    &pc_family_gelu_forward,
    &pc_family_gelu_backward,
    &pc_family_swiglu_forward,
    &pc_family_swiglu_backward,
    &pc_family_rotary_forward,
    &pc_family_rotary_backward,
    &pc_family_residual_forward,
    &pc_family_residual_backward,
    &pc_family_add,
    &pc_family_cross_entropy_forward,
    &pc_family_cross_entropy_backward,
    &pc_family_embedding_forward,
    &pc_family_embedding_backward,
    &pc_family_bias_gradient,
    &pc_family_adam,
    &pc_family_copy,
    &pc_family_cast,
    &pc_family_cast_transpose,
    &pc_family_amax,
};

const pc_kernel_family *const *pc_kernel_families(int *count) {
    *count = (int)(sizeof families / sizeof *families);
    return families;
}

const pc_kernel_family *pc_kernel_family_find(const char *name) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i]->name, name) == 0) return families[i];
    return NULL;
}
