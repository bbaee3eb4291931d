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
    PC_SLOT_PARAMETER,       /* weights, 16 bit */
    PC_SLOT_GRADIENT,        /* of weights, fp32, added to by every W (norms, biases but that of qkv: by B) */
    PC_SLOT_F_TO_B,          /* written by F, freed behind B */
    PC_SLOT_F_TO_W,          /* written by F, freed behind W */
    PC_SLOT_B_TO_W,          /* output gradients: written by B, freed behind W */
    PC_SLOT_INPUT,           /* the layer's input; the layer before writes it, and it is kept as F_TO_B */
    PC_SLOT_OUTPUT,          /* of F, given to the layer behind */
    PC_SLOT_OUTPUT_GRADIENT, /* given to B */
    PC_SLOT_INPUT_GRADIENT,  /* made by B */
    PC_SLOT_TEMPORARY        /* within one pass */
} pc_slot_life;

typedef struct pc_slot {
    const char *name;
    pc_dtype dtype;
    int64_t count;
    pc_slot_life life;
    pc_fill fill; /* what parameters and gradients begin with */
    double scale;
} pc_slot;

enum { PC_LAYER_SLOTS = 96, PC_LAYER_STEPS = 64 };

typedef struct pc_layer_step {
    const pc_kernel_family *family;
    pc_kernel_shape shape;
    int tensor_count;
    int slot[PC_KERNEL_TENSORS]; /* tensor_count of them, in the family's order */
} pc_layer_step;

typedef struct pc_layer_pass {
    int count;
    pc_layer_step step[PC_LAYER_STEPS];
} pc_layer_pass;

/* F reads the slot `input` and writes `output`; B reads `output_gradient` and writes `input_gradient`. Without dropout
 * the gradient given to B is that of the down matrix, and W needs it: then output_gradient is a slot B_TO_W, which is
 * written before B by whoever has it. */
typedef struct pc_layer {
    pc_layer_shape shape;
    int slot_count;
    pc_slot slot[PC_LAYER_SLOTS];
    pc_layer_pass f, b, w; /* BW is b, then w */
    int input, output, output_gradient, input_gradient;
} pc_layer;

/* PC_ERROR_INPUT if the shape cannot be. */
pc_code pc_layer_make(const pc_layer_shape *shape, pc_layer *layer, pc_error *error);

/* Bytes of a slot, and of the slots of a life. */
int64_t pc_slot_bytes(const pc_slot *slot);
int64_t pc_layer_bytes(const pc_layer *layer, pc_slot_life life);

/* ---- when slots come and go (layer_tape.c) ---- */

typedef enum pc_layer_kind { PC_LAYER_F, PC_LAYER_B, PC_LAYER_W, PC_LAYER_BW, PC_LAYER_KINDS } pc_layer_kind;

/* Of the slots that outlive a pass (the lives F_TO_B, F_TO_W, B_TO_W and INPUT): those that a step is the first to
 * write, but for `output_gradient`, which comes from outside; and those that nobody reads behind it. */
enum { PC_LAYER_CHANGES = 12 };
typedef struct pc_layer_moment {
    const pc_layer_step *step;
    int take_count, give_count;
    int take[PC_LAYER_CHANGES], give[PC_LAYER_CHANGES];
} pc_layer_moment;

typedef struct pc_layer_tape {
    int count;
    pc_layer_moment moment[2 * PC_LAYER_STEPS];
} pc_layer_tape;

/* The steps of a pass in their order, as one borrowed list. */
void pc_layer_tape_make(const pc_layer *layer, pc_layer_kind kind, pc_layer_tape *tape);

/* Places the temporary slots of all passes in one piece of memory, those on top of each other that are never needed at
 * once; offsets are multiples of 256 and stand in offset[slot], -1 for slots that are not temporary. The piece's bytes.
 */
int64_t pc_layer_place(const pc_layer *layer, int64_t offset[PC_LAYER_SLOTS]);

#ifdef __cplusplus
}
#endif
#endif
