/* Kernels of a Llama in torch without a compiler, as torchtitan writes it (torchtitan/models/llama/model.py, norms.py):
 * every operator reads its operands and writes its result, an fp32 number 4 bytes, a 16-bit one 2. Numbers a row are
 * left out, in bytes; their kernels count. What torch has one kernel for (layer norms, softmax, lookups, additions) is
 * as it is elsewhere. */
#include "models/workload/operations_private.h"

/* A chain of kernels: bytes an element, and how many they are. */
typedef struct steps {
    int bytes, launches;
} steps;

/* x.float(): 2 + 4. pow: 4 + 4. mean: 4. times its root's inverse: 4 + 4. type_as: 4 + 2. times the weight: 2 + 2.
 * Beside these the sum with epsilon and the root, a number a row. */
static const steps rms_norm = {6 + 8 + 4 + 8 + 6 + 4, 8};

/* Of the product with the weight: gradient times result, 2 + 2 + 2, summed, 2; gradient times weight, 2 + 2. To fp32:
 * 2 + 4. Times the inverse root: 4 + 4. For the root itself: gradient times input, 4 + 4 + 4, summed, 4; spread over
 * the row again, 4. Of pow(2): the input to the first, times 2, times the gradient: 8 + 8 + 12. Both gradients: 4 + 4
 * + 4. To 16 bits: 4 + 2. Beside these three of a number a row. */
static const steps rms_norm_backward = {8 + 4 + 6 + 8 + 16 + 4 + 28 + 12 + 6, 2 + 1 + 1 + 1 + 2 + 1 + 3 + 1 + 1 + 3};

/* To fp32: 2 + 4; times the angle: 4 + 4; to 16 bits: 4 + 2. The way back is the same. */
static const steps rotary = {6 + 8 + 6, 3};

/* An element of `ffn`. silu, or gelu: 2 + 2; times up: 2 + 2 + 2. Back: the gradient times each factor, 6 and 6, and
 * that of silu, 2 + 2 + 2. */
static const steps gated = {4 + 6, 2}, gated_backward = {6 + 6 + 6, 3};

/* relu: 2 + 2; pow(2): 2 + 2. Back: pow(1) and times 2: 4 + 4; times the gradient: 6; relu's: 6. */
static const steps squared_relu = {4 + 4, 2}, squared_relu_backward = {4 + 4 + 6 + 6, 4};

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, steps each) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, each.bytes, each.launches);
}

void pc_add_eager_norm(pc_builder *b, const char *name, pc_wide elements, int count) {
    pc_add_kernel(b, PC_OPERATION_NORM, name, "rms_norm", elements, rms_norm.bytes, count * rms_norm.launches);
}

void pc_add_eager_norm_backward(pc_builder *b, const char *name, pc_wide elements, int count) {
    pc_add_kernel(b, PC_OPERATION_NORM, name, "rms_norm", elements, rms_norm_backward.bytes,
                  count * rms_norm_backward.launches);
}

/* Megatron-LM's rotations that scale (YaRN's concentration factor), which no fused kernel does
 * (megatron/core/models/common/embeddings/rope_utils.py, _apply_rotary_pos_emb_bshd). Times cosines: 2 + 2. The half
 * with its sign turned, 1 + 1, and put behind the other half, 2 + 2; times sines, 2 + 2. Their sum: 2 + 2 + 2. Put
 * before what is not rotated, 2 + 2. Cosines and sines are a number a token: 6 kernels.
 * Back: times cosines and sines, 4 + 4; the sign, 1 + 1; two halves joined, 2 + 2; both gradients added, 6; and spread
 * over what was cut off, 2 + 2 + 2. */
static const steps scaled_rotary = {4 + 2 + 4 + 4 + 6 + 4, 6 + 6}, scaled_rotary_backward = {8 + 2 + 4 + 6 + 6, 7};

static void rotate(pc_builder *b, steps each) {
    pc_wide tokens = b->slice.tokens;
    add(b, "rotary", "rotary", tokens * (b->slice.query + b->slice.key), (steps){each.bytes, 2 * each.launches});
}

/* Queries and keys one after the other. */
void pc_add_eager_rotary(pc_builder *b) {
    rotate(b, rotary);
}

void pc_add_scaled_rotary(pc_builder *b) {
    rotate(b, b->is_backward ? scaled_rotary_backward : scaled_rotary);
}

/* repeat_kv: keys and values are copied for every head of the queries; the way back adds up what comes of the copies.
 */
void pc_add_eager_heads(pc_builder *b) {
    const pc_slice *x = &b->slice;
    if (x->key < x->query) add(b, "repeat_kv", "copy", (pc_wide)x->tokens * (x->key + x->query), (steps){2 * 2, 2});
}

void pc_add_eager_gated(pc_builder *b) {
    const pc_slice *x = &b->slice;
    add(b, "activation", "swiglu", (pc_wide)x->tokens * x->ffn, b->is_backward ? gated_backward : gated);
}

void pc_add_eager_squared_relu(pc_builder *b) {
    const pc_slice *x = &b->slice;
    add(b, "activation", "gelu", (pc_wide)x->tokens * x->ffn, b->is_backward ? squared_relu_backward : squared_relu);
}

/* The gradients of an input of several matrices are added up, one after the other. */
void pc_add_eager_input_sums(pc_builder *b, const char *name, int count) {
    if (count > 0) add(b, name, "add", (pc_wide)b->slice.tokens * b->slice.hidden, (steps){count * (2 + 2 + 2), count});
}
