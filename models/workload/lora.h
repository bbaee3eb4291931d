/* lora.h: low-rank adapters beside frozen matrices (Hu et al. 2021, arXiv 2106.09685), and parts that are not trained.
 *
 * Beside a matrix W of `inputs` x `outputs` stand A, inputs x rank, and B, rank x outputs: the layer puts out
 * x W + (alpha / rank) x A B, and only A and B have gradients. With tensor parallelism they are cut as
 * Megatron-Bridge's ParallelLinearAdapter cuts them (src/megatron/bridge/peft/utils.py). Beside a matrix of which the
 * columns are cut, A's columns are cut and its product is gathered, and B's columns are cut as W's. Beside one of which
 * the rows are cut, A's rows are cut as W's and its product is summed over the ranks, and B's columns are cut and
 * what it puts out is gathered. So TP divides the rank, and a rank has a t-th of A and B. */
#ifndef PC_MODELS_WORKLOAD_LORA_H
#define PC_MODELS_WORKLOAD_LORA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Matrices of a layer, by Megatron's names. */
typedef enum pc_lora_target {
    PC_LORA_QKV = 1,
    PC_LORA_PROJ = 2,
    PC_LORA_FC1 = 4,
    PC_LORA_FC2 = 8,
    PC_LORA_ALL = 15
} pc_lora_target;

/* How frozen matrices of layers are held: as the recipe has weights; in its few bits alone, for nobody changes what was
 * cast before the first iteration (MLPerf's pre_quantized_model); or in 4 bits (lora_base.h). */
typedef enum pc_lora_base { PC_LORA_BASE_RECIPE, PC_LORA_BASE_PRE_QUANTIZED, PC_LORA_BASE_NF4 } pc_lora_base;

typedef struct pc_lora {
    int32_t rank;    /* 0: no adapters */
    int32_t targets; /* a sum of pc_lora_target */
    double dropout;  /* of what A reads; more than 0: a mask and a masked copy of it are kept */
    pc_lora_base base;
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
