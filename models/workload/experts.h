/* experts.h: what a mixture of experts, and latent attention, add to a model's dimensions.
 *
 * A layer of experts has a router, num_experts MLPs of which each token goes to topk, and perhaps an MLP that all
 * tokens share. Which layers are such follows from first_dense and layer_freq; the others have the model's own MLP.
 */
#ifndef PC_MODELS_WORKLOAD_EXPERTS_H
#define PC_MODELS_WORKLOAD_EXPERTS_H

#include "models/workload/expert_reach.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What makes a token's scores of the router's logits (Megatron-LM's moe_router_score_function). */
typedef enum pc_router_score { PC_ROUTER_SOFTMAX, PC_ROUTER_SIGMOID } pc_router_score;

/* How tokens come to the ranks that have their experts, and back: Megatron-LM's moe_token_dispatcher_type allgather,
 * alltoall, and flex with moe_flex_dispatcher_backend deepep or hybridep. */
typedef enum pc_dispatcher {
    PC_DISPATCHER_ALLGATHER,
    PC_DISPATCHER_ALLTOALL,
    PC_DISPATCHER_DEEPEP,
    PC_DISPATCHER_HYBRIDEP
} pc_dispatcher;

/* How tokens choose. BALANCED: every expert gets as many (Megatron-LM's moe_router_force_load_balancing in the mean).
 * UNIFORM: by chance, all experts alike. POWER: experts' popularity follows a power law (expert_load.h). GIVEN: each
 * expert's share was counted (expert_counts.h). */
typedef enum pc_moe_load {
    PC_MOE_LOAD_BALANCED,
    PC_MOE_LOAD_UNIFORM,
    PC_MOE_LOAD_POWER,
    PC_MOE_LOAD_GIVEN
} pc_moe_load;

/* All zero: no experts. */
typedef struct pc_experts {
    int64_t num_experts;       /* routed ones, of a layer */
    int64_t topk;              /* of them, those that a token goes to */
    int64_t ffn_hidden;        /* width of one (moe_ffn_hidden_size) */
    int64_t shared_ffn_hidden; /* of all shared ones together (moe_shared_expert_intermediate_size); 0: none */
    int64_t router_groups, router_group_topk; /* a token's experts are of so many of so many groups
                                               * (moe_router_group_topk, moe_router_num_groups); 0: of any */
    int64_t first_dense;                      /* layers in front that have none (first_k_dense_replace) */
    int64_t layer_freq; /* behind those, the first and every so many-th has them (moe_layer_freq); 0 as 1: all */
    pc_router_score score;
    bool has_router_bias;    /* a number an expert: of the product, or added where experts are chosen */
    bool has_shared_gate;    /* the shared experts' output is scaled by one more product, h x 1 (Qwen 2 MoE) */
    bool pads_to_capacity;   /* every expert gets its capacity in rows, empty ones with the others */
    double activation_clamp; /* gate and linear part are cut off at so much (activation_func_clamp_value); 0: not */
    double capacity_factor;  /* an expert takes so many times its balanced share of a rank's tokens and drops the rest
                              * (moe_expert_capacity_factor); 0: none is dropped */
} pc_experts;

/* Multi-latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). All zero: none. A head's queries and keys are
 * qk_nope_head_dim + qk_rope_head_dim wide, which is the model's head_dim. */
typedef struct pc_mla {
    int64_t q_lora_rank;      /* 0: queries come from the hidden states at once */
    int64_t kv_lora_rank;     /* of keys and values; 0: no latent attention */
    int64_t qk_nope_head_dim; /* without positions */
    int64_t qk_rope_head_dim; /* rotated; the keys' part is one for all heads */
    int64_t v_head_dim;
} pc_mla;

#ifdef __cplusplus
}
#endif
#endif
