/* model.h: a decoder-only transformer: its dimensions, and how many parameters it has.
 *
 * One layer is: norm, attention (query, key, value and output matrices), norm, MLP (two matrices, or three with
 * SwiGLU). Around the layers stand the token embedding (and learned positions), a final norm and the head.
 */
#ifndef PC_MODELS_WORKLOAD_MODEL_H
#define PC_MODELS_WORKLOAD_MODEL_H

#include "engine/error.h"
#include "models/workload/low_precision.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_positions { PC_POSITIONS_LEARNED, PC_POSITIONS_ROTARY } pc_positions;
typedef enum pc_norm { PC_NORM_LAYER, PC_NORM_RMS } pc_norm;
typedef enum pc_mlp { PC_MLP_GELU, PC_MLP_SWIGLU } pc_mlp;
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
    bool has_dropout;       /* masks are kept from F to B */
} pc_model;

/* Numbers of parameters; a layer's are those of one layer, whole (TP 1). */
typedef struct pc_parameters {
    int64_t layer_matrix;     /* of one layer, in matrices that TP cuts, with those biases that it cuts */
    int64_t layer_replicated; /* of one layer, that every TP rank holds: norms, and biases of row-parallel matrices */
    int64_t embedding;        /* tokens, padded vocabulary */
    int64_t positions;        /* learned positions; every TP rank holds them */
    int64_t final_norm;
    int64_t head;  /* 0 where tied */
    int64_t total; /* of the model; a tied matrix once */
} pc_parameters;

/* PC_ERROR_INPUT with the rule that is broken: a dimension that is not positive or not below 2^31, heads that kv_heads
 * do not divide, learned positions without a table. */
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
