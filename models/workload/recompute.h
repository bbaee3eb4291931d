/* recompute.h: what the backward pass computes again: kinds of recomputation, their names, and what each keeps of a
 * layer.
 */
#ifndef PC_MODELS_WORKLOAD_RECOMPUTE_H
#define PC_MODELS_WORKLOAD_RECOMPUTE_H

#include "models/workload/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NONE keeps all that B needs; SELECTIVE recomputes materialised attention, from scores to values (Korthikanti et al.
 * 2022, arXiv 2205.05198, section 5), and of flash attention nothing; FULL keeps each layer's input and recomputes the
 * layer before its B.
 *
 * With a number n, of a part's layers (Megatron-LM, megatron/core/transformer/transformer_block.py, whose parts are
 * virtual stages; torchtitan, torchtitan/parallelisms/parallelize_llama.py):
 * UNIFORM keeps the input of every n-th layer, from the first on, and recomputes n layers at once. BLOCK recomputes the
 * first n layers as FULL does, and nothing of the others. EVERY likewise the layers n, 2n, 3n, ... from one on.
 *
 * By policy, each layer's input and some of its products are kept, and what they leave out is recomputed, as far as the
 * backward pass reads it:
 * OP is torchtitan's selective checkpointing `op`: of the products of query, key, value, output, gate, up and down, in
 * this order, the first and every other one, and what flash attention and reduce-scatters put out. A product with a
 * bias is another operator of torch's, which the list lacks: of such models attention alone is kept.
 * The others are MaxText's remat policies, by its names: MINIMAL keeps all products of weights, MINIMAL_WITH_CONTEXT
 * attention's output as well, ... (github.com/AI-Hypercomputer/maxtext, get_remat_policy of its decoders).
 *
 * MODULES recomputes those of a set, as Megatron-LM's --recompute-modules names them. */
typedef enum pc_recompute {
    PC_RECOMPUTE_NONE,
    PC_RECOMPUTE_SELECTIVE,
    PC_RECOMPUTE_FULL,
    PC_RECOMPUTE_UNIFORM,
    PC_RECOMPUTE_BLOCK,
    PC_RECOMPUTE_EVERY,
    PC_RECOMPUTE_OP,
    PC_RECOMPUTE_MINIMAL_WITH_CONTEXT,
    PC_RECOMPUTE_MINIMAL,
    PC_RECOMPUTE_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP,
    PC_RECOMPUTE_SAVE_DOT_EXCEPT_MLPWI,
    PC_RECOMPUTE_SAVE_DOT_EXCEPT_MLP,
    PC_RECOMPUTE_SAVE_QKV_PROJ,
    PC_RECOMPUTE_SAVE_OUT_PROJ,
    PC_RECOMPUTE_MODULES,
    PC_RECOMPUTE_KINDS
} pc_recompute;

/* Sets of MODULES (Megatron-LM, megatron/core/transformer/transformer_layer.py, attention.py).
 *
 * CORE_ATTN: attention, from scores to values, runs again from queries, keys and values: of a flash kernel, too, whose
 * output goes unless it is the next matrix's input as it stands. LAYERNORM: the outputs of both norms go and are made
 * again for the weights' gradients behind them. Where a norm and the matrix behind it are one module (Transformer
 * Engine's LayerNormLinear) there is no output to drop, and this does nothing. MLP: the whole MLP runs again from its
 * input, to its last product and its sum; with the norm that is one module with it.
 *
 * MOE: a layer's experts, from the router to the sum of what they put out, run again from what the norm put out; where
 * collectives move tokens, these, too. MOE_ACT: the activation of routed experts alone. SHARED_EXPERTS: the shared
 * ones. MLA_UP_PROJ: queries, keys and values of latent attention are made again from their latents. Of a layer that
 * has no such thing they do nothing. */
enum {
    PC_RECOMPUTES_CORE_ATTN = 1,
    PC_RECOMPUTES_LAYERNORM = 2,
    PC_RECOMPUTES_MLP = 4,
    PC_RECOMPUTES_MOE = 8,
    PC_RECOMPUTES_MOE_ACT = 16,
    PC_RECOMPUTES_SHARED_EXPERTS = 32,
    PC_RECOMPUTES_MLA_UP_PROJ = 64,
    PC_RECOMPUTES_ALL = 127 /* all together */
};

/* A kind; its number of layers, of a kind that has none 0; and of MODULES which, one or more, of others 0. */
typedef struct pc_recomputation {
    pc_recompute kind;
    int32_t layers;
    int32_t modules;
} pc_recomputation;

enum { PC_RECOMPUTE_LAYERS_MAX = 65535 };

/* "none", "selective", "full", "full-uniform-4", "full-block-2", "selective-2", "selective-op", "minimal",
 * "selective:core_attn+mlp", ...: the words are Megatron's, torchtitan's and MaxText's, joined. Modules come in any
 * order, each once. False if `length` bytes of text are no such name. */
bool pc_recomputation_parse(const char *text, size_t length, pc_recomputation *recomputation);

/* Names of modules between `between`, in any order, each once, and at least one: the set, or 0 if they are no such. */
int32_t pc_recompute_modules_parse(const char *text, size_t length, char between);

/* The way back; `text` has PC_RECOMPUTATION_SIZE bytes. */
enum { PC_RECOMPUTATION_SIZE = 96 };
void pc_recomputation_write(pc_recomputation recomputation, char *text);

/* All names, with N for a number, between `between`; cut to `size`. */
void pc_recomputation_names(const char *between, char *text, size_t size);

static inline bool pc_recompute_has_layers(pc_recompute kind) {
    return kind >= PC_RECOMPUTE_UNIFORM && kind <= PC_RECOMPUTE_EVERY;
}

static inline bool pc_recompute_is_policy(pc_recompute kind) {
    return kind >= PC_RECOMPUTE_OP && kind <= PC_RECOMPUTE_SAVE_OUT_PROJ;
}

/* One number for all three, in lists of numbers: the kind in the lowest 16 bits, the number in the next 16. */
static inline int64_t pc_recomputation_code(pc_recomputation recomputation) {
    return (int64_t)recomputation.modules << 32 | (int64_t)recomputation.layers << 16 | (int64_t)recomputation.kind;
}
static inline pc_recomputation pc_recomputation_of_code(int64_t code) {
    return (pc_recomputation){(pc_recompute)(code & 0xffff), (int32_t)(code >> 16 & 0xffff), (int32_t)(code >> 32)};
}
#define PC_RECOMPUTATION_CODE_MAX                                                                                      \
    ((int64_t)PC_RECOMPUTES_ALL << 32 | (int64_t)PC_RECOMPUTE_LAYERS_MAX << 16 | (PC_RECOMPUTE_KINDS - 1))

/* Outputs of a layer that a policy keeps. GATE: of the first matrix of the MLP, which is the only one without SwiGLU,
 * and then stands for UP as well. */
enum {
    PC_KEEPS_QUERY = 1,
    PC_KEEPS_KEY = 2,
    PC_KEEPS_VALUE = 4,
    PC_KEEPS_CONTEXT = 8, /* of flash attention */
    PC_KEEPS_OUTPUT = 16,
    PC_KEEPS_GATE = 32,
    PC_KEEPS_UP = 64,
    PC_KEEPS_DOWN = 128,
    PC_KEEPS_REDUCED = 256, /* what reduce-scatters behind output and down put out */
    PC_KEEPS_ROTATED = 512  /* queries and keys are kept as the rotation leaves them */
};

/* Of `layers` layers those of which anything is recomputed; all of NONE's are left out. */
static inline int64_t pc_recomputed_layers(pc_recomputation recomputation, int64_t layers) {
    switch (recomputation.kind) {
    case PC_RECOMPUTE_NONE:
        return 0;
    case PC_RECOMPUTE_BLOCK:
        return recomputation.layers < layers ? recomputation.layers : layers;
    case PC_RECOMPUTE_EVERY:
        return layers / recomputation.layers;
    default:
        return layers;
    }
}

/* What a policy names; 0 of a kind that is none. */
int pc_recompute_kept(const pc_model *model, pc_recompute kind);

#ifdef __cplusplus
}
#endif
#endif
