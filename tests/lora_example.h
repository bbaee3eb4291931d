/* lora_example.h: models with experts and latent attention that adapters are put beside, and a cut for one rank. */
#ifndef PC_TESTS_LORA_EXAMPLE_H
#define PC_TESTS_LORA_EXAMPLE_H

#include "tests/random_model.h"

/* Jiang et al. 2024, arXiv 2401.04088, table 1. */
static inline pc_model mixtral(void) {
    pc_model model = llama3(8);
    model.experts = (pc_experts){.num_experts = 8, .topk = 2, .ffn_hidden = 14336};
    return model;
}

/* DeepSeek-V3, arXiv 2412.19437, section 4.2. */
static inline pc_model deepseek(void) {
    pc_model model = llama3(8);
    model.layers = 61;
    model.hidden = 7168;
    model.ffn_hidden = 18432;
    model.heads = model.kv_heads = 128;
    model.head_dim = 192;
    model.mla = (pc_mla){1536, 512, 128, 64, 128};
    model.experts =
        (pc_experts){.num_experts = 256, .topk = 8, .ffn_hidden = 2048, .shared_ffn_hidden = 2048, .first_dense = 3};
    return model;
}

static inline pc_cut lone_cut(void) {
    return (pc_cut){.tp = 1, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 2, .microbatches = 1, .seq_len = 4096};
}

#endif
