/* operations_private.h: how lists of operations are put together: one operation, one layer, the model's two ends. */
#ifndef PC_MODELS_WORKLOAD_OPERATIONS_PRIVATE_H
#define PC_MODELS_WORKLOAD_OPERATIONS_PRIVATE_H

#include "models/workload/operation.h"
#include "models/workload/slice.h"

typedef struct pc_builder {
    const pc_model *model;
    pc_slice slice;
    int vocab_barriers; /* of a cut with vocabulary parallelism; 0: embedding and head are whole, on the ends */
    pc_cross_entropy cross_entropy;
    int gradient_bytes;          /* of a weight's gradient in memory, to which backward passes add */
    const pc_low_precision *low; /* of the layers that are added; NULL: they are of 16 bits */
    bool gathers_low_weights;    /* they come to every pass in few bits */
    int64_t casts_over;          /* pc_cut_casts_over */
    int64_t sums_apart;          /* microbatches, where another kernel than the product adds their gradients; else 0 */
    bool is_eager;               /* pc_kernels */
    pc_operations *operations;
    int64_t repeat;    /* of what is added */
    bool is_again;     /* recomputation: model FLOPs do not count it */
    bool is_backward;  /* kernels are of B */
    bool has_overflow; /* a number of an operation ran over 2^63 */
} pc_builder;

/* What a backward pass does: for the input, for the weights, or both. */
typedef struct pc_backward {
    bool b, w;
} pc_backward;

/* A matrix of this rank: tokens x inputs times inputs x outputs. */
typedef struct pc_matrix {
    const char *name;
    int64_t inputs, outputs;
    pc_wide counted; /* its elements as model FLOPs count them */
    bool is_column;  /* its columns are cut: the input is all ranks' alike, the output's gradient this one's */
} pc_matrix;

/* ---- operations_add.c: one operation ---- */

/* The matrix's GEMM over all of the rank's tokens, in each of its three roles. */
void pc_add_forward(pc_builder *b, const pc_matrix *matrix);
void pc_add_input_gradient(pc_builder *b, const pc_matrix *matrix);
/* Adds to the gradient in memory, or a kernel behind it does. */
void pc_add_weight_gradient(pc_builder *b, const pc_matrix *matrix);

/* A GEMM without weights for every head and sequence. */
void pc_add_batched(pc_builder *b, const char *name, pc_gemm_role role, int64_t m, int64_t n, int64_t k);
/* A flash kernel. `products`: how many s x s x head_dim products it does, of which the model's FLOPs count `counted`;
 * `tensors` of the query's size and `kv_tensors` of the keys' are read or written. */
void pc_add_flash(pc_builder *b, pc_gemm_role role, int products, int counted, int tensors, int kv_tensors,
                  int launches);
/* NORM or ELEMENTWISE: `bytes` for each of `elements`. */
void pc_add_kernel(pc_builder *b, pc_operation_kind kind, const char *name, const char *function, pc_wide elements,
                   int bytes, int launches);
/* A collective of the TP group; nothing if that is one rank. */
void pc_add_collective(pc_builder *b, pc_operation_kind kind, const char *name, pc_wide bytes, bool can_overlap);

/* Tokens x hidden of 2 bytes, where the sequence is cut, in front of a matrix that needs all tokens. */
void pc_add_gather(pc_builder *b, const char *name, bool can_overlap);
/* Adds up what the ranks' slices of a matrix have each contributed to tokens x hidden: all-reduce, or reduce-scatter
 * where the sequence is cut. */
void pc_add_reduction(pc_builder *b, const char *name, bool can_overlap);

/* A matrix behind whose input the ranks differ: its input is gathered again for W, its input's gradient added up. */
void pc_add_column_backward(pc_builder *b, const pc_matrix *matrix, pc_backward passes);

void pc_add_norm(pc_builder *b, const char *name);
void pc_add_norm_backward(pc_builder *b, const char *name);

/* ---- operations_low.c: what a recipe adds; nothing where b->low is NULL ---- */

/* What makes the tensor that is cast: the operation that stands last in the list. */
typedef enum pc_maker { PC_MAKER_OTHER, PC_MAKER_NORM, PC_MAKER_ACTIVATION } pc_maker;

/* The format that the matrix's product of this role reads; and bytes of so many of its numbers. */
pc_product_format pc_low_format(const pc_builder *b, pc_gemm_role role);
pc_wide pc_low_bytes(const pc_builder *b, pc_gemm_role role, pc_wide elements);

/* In front of F's product, and its gather: the input. In front of B's: the output's gradient; both with W's copy if the
 * recipe keeps it. In front of W's: what is missing yet. In front of F's or B's: the weights. */
void pc_add_input_cast(pc_builder *b, const pc_matrix *matrix, pc_maker maker);
void pc_add_gradient_cast(pc_builder *b, const pc_matrix *matrix, pc_maker maker);
void pc_add_weight_gradient_casts(pc_builder *b, const pc_matrix *matrix);
void pc_add_weight_cast(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role);

/* As pc_add_gather, of what the matrix's product of this role reads. */
void pc_add_low_gather(pc_builder *b, const char *name, pc_gemm_role role, bool can_overlap);

/* ---- operations_layer.c: b->repeat layers ---- */

void pc_add_layer_forward(pc_builder *b);
void pc_add_layer_backward(pc_builder *b, pc_backward passes);
/* Scores, softmax, dropout and values, once more. */
void pc_add_attention_again(pc_builder *b);
/* What a policy that keeps `kept` (recompute.h) leaves out of a layer, as far as the backward pass reads it. */
void pc_add_policy_again(pc_builder *b, int kept);

/* ---- operations_eager.c: what torch runs without a compiler, of b's pass where both ways differ ---- */

void pc_add_eager_norm(pc_builder *b, const char *name); /* an RMS norm */
void pc_add_eager_norm_backward(pc_builder *b, const char *name);
void pc_add_eager_rotary(pc_builder *b);
void pc_add_eager_heads(pc_builder *b);
void pc_add_eager_swiglu(pc_builder *b);
void pc_add_eager_input_sums(pc_builder *b, const char *name, int count);

/* ---- operations_ends.c ---- */

void pc_add_embedding_forward(pc_builder *b);
void pc_add_embedding_backward(pc_builder *b, pc_backward passes);
void pc_add_head_forward(pc_builder *b);
void pc_add_head_backward(pc_builder *b, pc_backward passes);

/* S and T of a stage's slice of embedding and head. */
void pc_add_vocab_s(pc_builder *b);
void pc_add_vocab_t(pc_builder *b);

#endif
