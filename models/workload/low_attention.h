/* low_attention.h: attention in 8 bits, beside matrices of few bits: Transformer Engine's fp8_dpa and fp8_mha, which
 * Megatron calls fp8_dot_product_attention and fp8_multi_head_attention.
 *
 * Scores and values are products of 8 bits, whatever format the recipe's matrices have; the softmax is of 32. Queries,
 * keys and values are laid behind each other and cast; what comes out is cast back, or with current scaling comes out
 * in 16 bits. B casts the output's gradient, and casts back those of queries, keys and values. Kept for B are queries,
 * keys, values and output, a byte a number. With fp8_multi_head_attention the matrices beside attention hand over and
 * take 8 bits; queries and keys that are rotated or normed in between are cast behind that.
 * (transformer_engine/pytorch/attention/dot_product_attention: backends.py FusedAttnFunc, utils.py
 * combine_and_quantize; context parallelism sends 8 bits: context_parallel.py.)
 */
#ifndef PC_MODELS_WORKLOAD_LOW_ATTENTION_H
#define PC_MODELS_WORKLOAD_LOW_ATTENTION_H

#include "models/workload/cut.h"
#include "models/workload/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PC_ERROR_INPUT where there is no such kernel: without a recipe of few bits, without flash attention, with caps,
 * windows, slices of sequences or gathered keys; multi-head without dot-product. */
pc_code pc_low_attention_check(const pc_model *model, const pc_cut *cut, pc_error *error);

/* Whether a kernel stands between the query, key and value matrix and attention: a rotation, norms. */
static inline bool pc_low_attention_is_apart(const pc_model *model) {
    return model->positions == PC_POSITIONS_ROTARY || model->qk_norm != PC_QK_NORM_NONE;
}

#ifdef __cplusplus
}
#endif
#endif
