/* lora.h: low-rank adapters beside frozen matrices (Hu et al. 2021, arXiv 2106.09685), and parts that are not trained.
 *
 * Beside a matrix W of `inputs` x `outputs` stand A, inputs x rank, and B, rank x outputs: the layer puts out
 * x W + (alpha / rank) x A B, and only A and B have gradients. With tensor parallelism they are cut as
 * Megatron-Bridge's ParallelLinearAdapter cuts them (src/megatron/bridge/peft/utils.py). Beside a matrix of which the
 * columns are cut, A's columns are cut and its product is gathered, and B's columns are cut as W's. Beside one of which
 * the rows are cut, A's rows are cut as W's and its product is summed over the ranks, and B's columns are cut and
 * what it puts out is gathered. So TP divides the rank, and a rank has a t-th of A and B.
 *
 * Matrices that go down to the latents of attention are whole on every rank, and so are their adapters
 * (AdapterAttributes.replicate_adapter there). Those that go up are cut by columns.
 *
 * Routed experts have linear_fc1 and linear_fc2, which expert tensor parallelism cuts, and their adapters with them:
 * etp takes the place of t above. One pair A and B serves all experts of a rank (LoRA.share_expert_adapters in
 * peft/lora.py, which is true by default), on all ranks of ep the same: after the step's reduction its gradients are
 * summed over ep (allreduce_expert_parallel_replicated_grads). Or each expert has its own, multiplied by a grouped
 * product (GroupedExpertLinearAdapter). Their rank may be smaller (LoRA.normalize_moe_lora). Shared experts are an MLP
 * like any other. Routers have none. */
#ifndef PC_MODELS_WORKLOAD_LORA_H
#define PC_MODELS_WORKLOAD_LORA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Matrices of a layer, by Megatron's names. Latent attention has in place of QKV those of the second row, and of
 * queries either one matrix or two. */
typedef enum pc_lora_target {
    PC_LORA_QKV = 1,
    PC_LORA_PROJ = 2,
    PC_LORA_FC1 = 4,
    PC_LORA_FC2 = 8,
    PC_LORA_Q_PROJ = 16, /* linear_q_proj, linear_q_down_proj, ... */
    PC_LORA_Q_DOWN = 32,
    PC_LORA_Q_UP = 64,
    PC_LORA_KV_DOWN = 128,
    PC_LORA_KV_UP = 256,
    PC_LORA_MLP = PC_LORA_FC1 | PC_LORA_FC2,
    PC_LORA_DENSE = 15, /* of a layer without experts and latents */
    PC_LORA_ALL = 511,
    PC_LORA_NONE = 512 /* a matrix of layers that never has one: a router, the projection of multi-token prediction */
} pc_lora_target;

/* How frozen matrices of layers are held: as the recipe has weights; in its few bits alone, for nobody changes what was
 * cast before the first iteration (MLPerf's pre_quantized_model); or in 4 bits (lora_base.h). */
typedef enum pc_lora_base { PC_LORA_BASE_RECIPE, PC_LORA_BASE_PRE_QUANTIZED, PC_LORA_BASE_NF4 } pc_lora_base;

typedef struct pc_lora {
    int32_t rank;    /* 0: no adapters */
    int32_t targets; /* a sum of pc_lora_target */
    double dropout;  /* of what A reads; more than 0: a mask and a masked copy of it are kept */
    pc_lora_base base;
    bool shares_experts; /* one for all routed experts of a rank; else one for each */
    bool divides_rank;   /* routed experts' is the rank over topk, so that a token meets as much as of one MLP */
} pc_lora;

/* What is not trained. With adapters that is all but them. */
typedef enum pc_frozen {
    PC_FROZEN_EMBEDDING = 1, /* with its learned positions */
    PC_FROZEN_HEAD = 2,      /* the matrix; the final norm is trained */
    PC_FROZEN_LAYERS = 4,    /* and all norms: with adapters alone */
    PC_FROZEN_ALL = 7
} pc_frozen;

static inline bool pc_lora_is_at(const pc_lora *lora, pc_lora_target target) {
    return lora->rank > 0 && (lora->targets & (int32_t)target) != 0;
}

#ifdef __cplusplus
}
#endif
#endif
