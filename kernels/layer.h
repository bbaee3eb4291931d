/* layer.h: a whole transformer layer as a list of kernels: the passes F, B and W, W truly apart.
 *
 * Plain data: slots (tensors with a lifetime) and steps (a family, a shape, the slots that it takes). What is kept from
 * F to B and from B to W is what models/workload counts: W's inputs and output gradients live until W, all else is
 * freed by B.
 */
#ifndef PC_KERNELS_LAYER_H
#define PC_KERNELS_LAYER_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's part of a layer; sizes are those of this rank. */
typedef struct pc_layer_shape {
    pc_dtype dtype;
    int64_t sequences, seq_len; /* of a microbatch */
    int64_t hidden, heads, kv_heads, head_dim, ffn;
    bool is_rms_norm, is_swiglu, is_rotary, has_bias, is_causal;
    float dropout; /* probability; 0: none, and no masks kept */
} pc_layer_shape;

typedef enum pc_slot_life {
    PC_SLOT_PARAMETER, /* weights, 16 bit */
    PC_SLOT_GRADIENT,  /* of weights, fp32, added to by every W (norms and biases: by B) */
    PC_SLOT_F_TO_B,    /* written by F, freed behind B */
    PC_SLOT_F_TO_W,    /* written by F, freed behind W */
    PC_SLOT_B_TO_W,    /* output gradients: written by B, freed behind W */
    PC_SLOT_INPUT,     /* the layer's input; the layer before owns it, and it is kept like F_TO_B or longer */
    PC_SLOT_OUTPUT,    /* of F, given to the layer behind */
    PC_SLOT_OUTPUT_GRADIENT, /* given to B */
    PC_SLOT_INPUT_GRADIENT,  /* made by B */
    PC_SLOT_TEMPORARY        /* within one pass */
} pc_slot_life;

typedef struct pc_slot {
    const char *name;
    pc_dtype dtype;
    int64_t count;
    pc_slot_life life;
} pc_slot;

enum { PC_LAYER_SLOTS = 96, PC_LAYER_STEPS = 64 };

typedef struct pc_layer_step {
    const pc_kernel_family *family;
    pc_kernel_shape shape;
    int slot[PC_KERNEL_TENSORS];
} pc_layer_step;

typedef struct pc_layer_pass {
    int count;
    pc_layer_step step[PC_LAYER_STEPS];
} pc_layer_pass;

typedef struct pc_layer {
    pc_layer_shape shape;
    int slot_count;
    pc_slot slot[PC_LAYER_SLOTS];
    pc_layer_pass f, b, w; /* BW is b, then w */
} pc_layer;

/* PC_ERROR_INPUT where the shape cannot be. */
pc_code pc_layer_make(const pc_layer_shape *shape, pc_layer *layer, pc_error *error);

/* Bytes of the slots of a life. */
int64_t pc_layer_bytes(const pc_layer *layer, pc_slot_life life);

#ifdef __cplusplus
}
#endif
#endif
