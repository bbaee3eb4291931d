/* model.h: a decoder-only transformer: its dimensions, and how many parameters it has.
 *
 * One layer is: norm, attention (query, key, value and output matrices), norm, MLP (two matrices, or three of a gated
 * kind). Around the layers stand the token embedding (and learned positions), a final norm and the head.
 */
#ifndef PC_MODELS_WORKLOAD_MODEL_H
#define PC_MODELS_WORKLOAD_MODEL_H

#include "engine/error.h"
#include "models/workload/experts.h"
#include "models/workload/low_precision.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_positions { PC_POSITIONS_LEARNED, PC_POSITIONS_ROTARY } pc_positions;
/* NO_AFFINE: a LayerNorm without scale and shift (OLMo of 2024, arXiv 2402.00838). */
typedef enum pc_norm { PC_NORM_LAYER, PC_NORM_RMS, PC_NORM_LAYER_NO_AFFINE } pc_norm;
/* Norms of a layer. PRE: in front of attention and of the MLP. REORDERED: behind both, in front of the residual (OLMo
 * 2, arXiv 2501.00656). SANDWICH: on both sides, four in all (Gemma 2, arXiv 2408.00118). */
typedef enum pc_norm_place { PC_NORM_PRE, PC_NORM_REORDERED, PC_NORM_SANDWICH } pc_norm_place;
/* Of queries and keys, in front of the rotation. HEAD: each head by itself, one scale for all (Qwen 3, Gemma 3,
 * Megatron's qk_layernorm). FULL: over all heads at once, a scale a column (OLMo 2). */
typedef enum pc_qk_norm { PC_QK_NORM_NONE, PC_QK_NORM_HEAD, PC_QK_NORM_FULL } pc_qk_norm;
/* The MLP's activation. SwiGLU and GeGLU have a gate: a third matrix. SQUARED_RELU: Nemotron-4's. */
typedef enum pc_mlp { PC_MLP_GELU, PC_MLP_SWIGLU, PC_MLP_RELU, PC_MLP_SQUARED_RELU, PC_MLP_GEGLU } pc_mlp;
/* MATERIALISED writes the s x s scores of every head to memory; FLASH never does (Dao et al. 2022, arXiv 2205.14135).
 */
typedef enum pc_attention { PC_ATTENTION_MATERIALISED, PC_ATTENTION_FLASH } pc_attention;
/* Of weights and activations in passes; master weights and optimizer state are fp32 in both, gradients as the cut says.
 */
typedef enum pc_precision { PC_PRECISION_BF16, PC_PRECISION_FP16 } pc_precision;

enum { PC_MODEL_NAME_SIZE = 128 };

typedef struct pc_model {
    char name[PC_MODEL_NAME_SIZE];
    int64_t layers;         /* L */
    int64_t hidden;         /* h */
    int64_t ffn_hidden;     /* f; 4h for GPT */
    int64_t heads;          /* a, of queries */
    int64_t kv_heads;       /* of keys and values: a multi-head, 1 multi-query, between: grouped-query */
    int64_t head_dim;       /* h / a mostly */
    int64_t vocab;          /* V */
    int64_t vocab_multiple; /* V is padded to a multiple of this times TP (Megatron: 128); 1: not at all */
    int64_t max_positions;  /* rows of the table of learned positions; 0 with rotary ones */
    pc_positions positions;
    pc_norm norm;
    pc_mlp mlp;
    pc_attention attention;
    pc_precision precision; /* in memory */
    pc_low_precision low;   /* of products of layers, and what comes with that; all zero: as precision */
    bool is_tied;           /* the head is the embedding's matrix: counted once, held on both ends where they differ */
    bool has_bias;          /* of the matrices and (LAYER) norms */
    bool has_qkv_bias;      /* of query, key and value, whatever has_bias says (Qwen 2.5) */
    bool has_norm_bias;     /* of LAYER norms, likewise (Nemotron-4) */
    bool has_dropout;       /* masks are kept from F to B */
    pc_norm_place norm_place;
    pc_qk_norm qk_norm;
    /* Which keys a query sees, and in which layers: attention.h. 0: all. */
    int64_t sliding_window;         /* the last so many, itself among them */
    int64_t attention_chunk_size;   /* those of its chunk of so many tokens (Llama 4) */
    int64_t sliding_window_pattern; /* every so many-th layer sees all; 0: none does */
    int64_t document_length;        /* mean length of the documents packed into a sequence; none sees another */
    int64_t document_length_square; /* mean of its squares; 0: they are all of one length */
    /* x becomes c tanh(x / c) (Gemma 2): c; 0: not. */
    int64_t attn_logit_softcapping, final_logit_softcapping;
    pc_experts experts;       /* num_experts 0: all layers are dense */
    pc_mla mla;               /* kv_lora_rank 0: heads have queries, keys and values of their own, as above */
    bool has_attention_sinks; /* a number a head, which the softmax's sum has beside the scores (GPT-OSS) */
    bool scales_rotary;       /* rotations also scale, by YaRN's concentration factor (arXiv 2309.00071) */
    int64_t mtp_layers; /* multi-token prediction (mtp_num_layers): as many more layers, each with a projection 2h x
                         * h, three norms, and the embedding and the head that the model has (arXiv 2412.19437) */
} pc_model;

static inline bool pc_model_has_experts(const pc_model *model) {
    return model->experts.num_experts > 0;
}

static inline bool pc_model_is_latent(const pc_model *model) {
    return model->mla.kv_lora_rank > 0;
}

/* Columns of a head's values: as many as of its queries and keys but for latent attention. */
static inline int64_t pc_model_value_dim(const pc_model *model) {
    return pc_model_is_latent(model) ? model->mla.v_head_dim : model->head_dim;
}

/* Of layers `first` (from 0) to `first + count - 1` those with experts. */
int64_t pc_model_expert_layers(const pc_model *model, int64_t first, int64_t count);

static inline bool pc_mlp_is_gated(pc_mlp mlp) {
    return mlp == PC_MLP_SWIGLU || mlp == PC_MLP_GEGLU;
}

/* Whether the product of query, key and value adds a bias. */
static inline bool pc_model_has_qkv_bias(const pc_model *model) {
    return model->has_bias || model->has_qkv_bias;
}

/* Norms in front of attention and MLP, and behind them. */
static inline bool pc_model_has_pre_norms(const pc_model *model) {
    return model->norm_place != PC_NORM_REORDERED;
}
static inline bool pc_model_has_post_norms(const pc_model *model) {
    return model->norm_place != PC_NORM_PRE;
}

/* Norms of a layer but for those of queries and keys: 2 or 4. */
static inline int pc_model_layer_norms(const pc_model *model) {
    return model->norm_place == PC_NORM_SANDWICH ? 4 : 2;
}

/* Numbers of parameters; a layer's are those of one dense layer, whole (TP 1). */
typedef struct pc_parameters {
    int64_t layer_matrix;     /* of one layer, in matrices that TP cuts, with those biases that it cuts */
    int64_t layer_replicated; /* of one layer, that every TP rank holds: norms, and biases of row-parallel matrices */
    int64_t expert_layer;     /* of one layer with experts, all of it; 0 without */
    int64_t embedding;        /* tokens, padded vocabulary */
    int64_t positions;        /* learned positions; every TP rank holds them */
    int64_t final_norm;
    int64_t head;   /* 0 where tied */
    int64_t mtp;    /* of multi-token prediction: layers, projections and norms */
    int64_t active; /* of all but those, what a token goes through: without experts that it does not go to */
    int64_t total;  /* of the model; a tied matrix once */
} pc_parameters;

/* Of one norm over the hidden dimension: a scale, and a shift where it has one. */
int64_t pc_model_norm_parameters(const pc_model *model);

/* Of a layer's norms of queries and keys: two scales, of a head, or of all columns; 0 without them. */
int64_t pc_model_qk_norm_parameters(const pc_model *model);

/* PC_ERROR_INPUT with the rule that is broken: a dimension that is not positive or not below 2^31, heads that kv_heads
 * do not divide, learned positions without a table, windows and documents that cannot be. */
pc_code pc_model_check_dimensions(const pc_model *model, pc_error *error);

/* The same where nothing else says that it is about the model: "model: <rule>". */
pc_code pc_model_check(const pc_model *model, pc_error *error);

/* V padded to a multiple of vocab_multiple * tp. */
int64_t pc_model_padded_vocab(const pc_model *model, int tp);

/* For a checked model; `tp` matters for the padding alone. PC_ERROR_INPUT if a number runs over 2^63. For GPT with
 * learned positions, tied, h = a * head_dim and f = 4h: 12 L h^2 (1 + 13/(12h)) + (V + s) h + 2h; the last term, of the
 * final norm, is left out in Narayanan et al. 2021 (arXiv 2104.04473, equation 2). */
pc_code pc_model_parameters(const pc_model *model, int tp, pc_parameters *parameters, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
