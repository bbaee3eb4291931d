/* low_precision.h: a recipe: which of a model's products run in 8 or 4 bits, and what that takes beside them.
 *
 * A recipe is about the four matrices of a layer: query, key and value, output, up, down. Attention (low_attention.h),
 * the embedding, the head and the optimizer stay in 16 and 32 bits, and so do what layers hand to each other, and the
 * sums of tensor parallelism. Files of scenarios/precision have the recipes that programs ship.
 */
#ifndef PC_MODELS_WORKLOAD_LOW_PRECISION_H
#define PC_MODELS_WORKLOAD_LOW_PRECISION_H

#include "models/workload/format.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the scales of a tensor come from. DELAYED: from the largest numbers of iterations before, so that a cast reads
 * its tensor once. CURRENT: from the tensor itself, which is read for its largest number first. ROW, BLOCK: from what
 * the cast has at hand. TWO_LEVEL: blocks within a scale of the tensor, which is read first. (Transformer Engine,
 * transformer_engine/common/recipe; torchao, torchao/float8.) */
typedef enum pc_scaling {
    PC_SCALING_DELAYED,
    PC_SCALING_CURRENT,
    PC_SCALING_ROW,
    PC_SCALING_BLOCK,
    PC_SCALING_TWO_LEVEL
} pc_scaling;

/* Where weights of few bits come from. EACH: every pass casts them. CACHED: the first microbatch of an iteration does,
 * and they stand beside those of 16 bits. HELD: in their place; the optimizer or the gather behind it writes them. */
typedef enum pc_low_weights { PC_LOW_WEIGHTS_EACH, PC_LOW_WEIGHTS_CACHED, PC_LOW_WEIGHTS_HELD } pc_low_weights;

enum { PC_LOW_PRECISION_NAME_SIZE = 64, PC_LOW_PRODUCTS = 3 };

typedef struct pc_low_precision {
    char name[PC_LOW_PRECISION_NAME_SIZE]; /* of the recipe; "" as well as "bf16": nothing of it is low */
    /* Of products, by pc_gemm_role. All zero: BF16, whatever the model's precision in memory; no recipe then. */
    pc_product_format product[PC_LOW_PRODUCTS];
    pc_scaling scaling;
    pc_low_weights weights;
    int32_t bf16_first, bf16_last; /* layers of the model that stay in 16 bits, at its beginning and end */
    /* 2: the products of gradients read other copies than the forward ones: transposed, for hardware that multiplies
     * only rows by rows, or with scales along the other dimension. 1: the same. */
    int32_t copies;
    bool gathers_parameters;  /* data parallelism gathers weights of few bits, where it gathers any */
    bool gathers_activations; /* likewise sequence parallelism, in front of products */
    bool keeps_inputs;        /* F leaves the inputs of matrices to W in few bits; else in 16, and W casts them */
    bool fuses_norm;         /* norms write their output in few bits; or find its largest number, if that comes first */
    bool fuses_activation;   /* likewise the MLP's activation, and its backward */
    bool splits_accumulator; /* products of gradients add up in fp32 outside the matrix units every so often */
    bool rotates;            /* operands of weights' gradients go through a random Hadamard transform, in their cast */
    bool rounds_stochastically; /* gradients; in the cast, at no bytes of its own */
} pc_low_precision;

/* Whether any product is in fewer than 16 bits. */
static inline bool pc_low_precision_is_on(const pc_low_precision *recipe) {
    return pc_product_format_is_low(recipe->product[0]) || pc_product_format_is_low(recipe->product[1]) ||
           pc_product_format_is_low(recipe->product[2]);
}

/* Whether a tensor is read for its largest number before it is cast. */
static inline bool pc_low_precision_needs_amax(const pc_low_precision *recipe) {
    return recipe->scaling == PC_SCALING_CURRENT || recipe->scaling == PC_SCALING_TWO_LEVEL;
}

/* Whether a scale is a tensor's, so that its other copy is a transposition of the bits. */
static inline bool pc_low_precision_is_per_tensor(const pc_low_precision *recipe) {
    return recipe->scaling == PC_SCALING_DELAYED || recipe->scaling == PC_SCALING_CURRENT;
}

/* Bytes of `elements` numbers with their scales, rounded up; below 2^62 elements. */
int64_t pc_product_format_bytes(pc_product_format format, int64_t elements);

/* Bytes in which a matrix of weights is held for the passes: 2 each and, HELD, those of few bits in their place,
 * or, CACHED, beside them; `copies` of these. */
int64_t pc_low_precision_weight_bytes(const pc_low_precision *recipe, int64_t elements);

/* Copies that are held of weights that are frozen: one, where the other is a transposition of its bits, which each pass
 * can make for itself. */
static inline int32_t pc_low_frozen_copies(const pc_low_precision *recipe) {
    return recipe->weights == PC_LOW_WEIGHTS_HELD && pc_low_precision_is_per_tensor(recipe) ? 1 : recipe->copies;
}

#ifdef __cplusplus
}
#endif
#endif
