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
    pc_dispatcher dispatcher;
    bool fp8_dispatch; /* pc_cut's, as the next */
    bool overlaps_shared;
    int gradient_bytes;          /* of a weight's gradient in memory, to which backward passes add */
    const pc_low_precision *low; /* of the layers that are added; NULL: they are of 16 bits */
    bool gathers_low_weights;    /* they come to every pass in few bits */
    int64_t casts_over;          /* pc_cut_casts_over */
    int64_t sums_apart;          /* microbatches, where another kernel than the product adds their gradients; else 0 */
    bool is_eager;               /* pc_kernels */
    pc_operations *operations;
    int64_t repeat;        /* of what is added */
    const pc_sight *sight; /* what queries see where attention is added */
    int64_t experts;       /* of those layers, those with experts */
    int64_t local;         /* of those layers, those with a window (pc_part's local_layers) */
    bool is_again;         /* recomputation: model FLOPs do not count it */
    bool is_backward;      /* kernels are of B */
    bool has_overflow;     /* a number of an operation ran over 2^63 */
} pc_builder;

/* What a backward pass does: for the input, for the weights, or both. */
typedef struct pc_backward {
    bool b, w;
} pc_backward;

/* A matrix of this rank: tokens x inputs times inputs x outputs. */
typedef struct pc_matrix {
    const char *name;
    int64_t inputs, outputs;
    pc_wide counted;       /* its elements as model FLOPs count them */
    bool is_column;        /* its columns are cut: the input is all ranks' alike, the output's gradient this one's */
    pc_lora_target target; /* which matrix of a layer; 0: the head */
    bool is_local;         /* reads `rows` of its own, and gathers nothing; else all of the rank's tokens */
    int64_t rows;
    int64_t groups;       /* experts that have such a matrix each, over which the rows go; 0: it is one matrix */
    int64_t counted_rows; /* as model FLOPs count them; 0: the rank's tokens */
    bool is_one_kernel;   /* whatever runs its groups, as torch's grouped_mm */
    bool is_wide;         /* in 16 bits, whatever the recipe */
    bool input_is_low;    /* in the recipe's bits where the product finds it */
    bool gradient_is_low; /* likewise its output's gradient */
} pc_matrix;

static inline int64_t pc_matrix_rows(const pc_builder *b, const pc_matrix *matrix) {
    return matrix->is_local ? matrix->rows : b->slice.tokens;
}

/* Kernels of a grouped product, or of a cast for it. Transformer Engine's GroupedLinear has one of each for every
 * expert (nvte_multi_tensor_gemm, split_quantize); its operation fuser one for all. */
static inline int pc_grouped_launches(const pc_builder *b, const pc_matrix *matrix) {
    bool is_one = matrix->is_one_kernel || b->slice.fuses_operations;
    return matrix->groups > 1 && !is_one ? (int)matrix->groups : 1;
}

/* Its weights, of all groups. */
static inline pc_wide pc_matrix_weights(const pc_matrix *matrix) {
    return (pc_wide)(matrix->groups > 0 ? matrix->groups : 1) * matrix->inputs * matrix->outputs;
}

/* Whether it has no gradient of its own. */
static inline bool pc_matrix_is_frozen(const pc_builder *b, const pc_matrix *matrix) {
    return (b->slice.frozen & (int32_t)(matrix->target ? PC_FROZEN_LAYERS : PC_FROZEN_HEAD)) != 0;
}

/* ---- operations_add.c: one operation ---- */

/* The matrix's GEMM over all of the rank's tokens, in each of its three roles. */
void pc_add_forward(pc_builder *b, const pc_matrix *matrix);
void pc_add_input_gradient(pc_builder *b, const pc_matrix *matrix);
/* Adds to the gradient in memory, or a kernel behind it does. Nothing of a frozen matrix. */
void pc_add_weight_gradient(pc_builder *b, const pc_matrix *matrix);

/* A GEMM without weights for every head and sequence. All scores are computed; model FLOPs count what b->sight sees. */
void pc_add_batched(pc_builder *b, const char *name, pc_gemm_role role, int64_t m, int64_t n, int64_t k);
/* What a flash kernel attends to: so many queries to so many keys, of so many heads and sequences. */
typedef struct pc_flash_block {
    int64_t heads, queries, keys;
    int64_t read;  /* keys that are there, where those count more (pc_slice's keys); 0: all of them */
    bool is_below; /* the diagonal; else the mask is causal */
} pc_flash_block;

/* The whole sequence. */
pc_flash_block pc_whole_flash(const pc_slice *slice);

/* A flash kernel of what b->sight sees of the block, forward: two products of scores x head_dim, which read queries,
 * keys and values and write as much as queries are. Backward: it recomputes the scores, five products for two (Dao et
 * al. 2022, section 3.1); queries, values, keys and what came of them are read, three gradients written. */
void pc_add_flash_block(pc_builder *b, pc_gemm_role role, const pc_flash_block *block);
/* NORM or ELEMENTWISE: `bytes` for each of `elements`. */
void pc_add_kernel(pc_builder *b, pc_operation_kind kind, const char *name, const char *function, pc_wide elements,
                   int bytes, int launches);
/* A collective of ranks of context parallelism. */
void pc_add_context_collective(pc_builder *b, pc_operation_group group, pc_operation_kind kind, const char *name,
                               pc_wide bytes, bool can_overlap);

/* What was added from place `first` on is one graph, if the cut captures these kernels. */
void pc_add_graph(pc_builder *b, pc_graphs graph, int first);
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
/* Norms of queries and keys, two kernels. */
void pc_add_qk_norm(pc_builder *b);
void pc_add_qk_norm_backward(pc_builder *b);

/* ---- operations_lora.c: the adapter beside a matrix; nothing where it has none ---- */

/* Behind F's product of the matrix, or behind the reduction of what that puts out. */
void pc_add_adapter_forward(pc_builder *b, const pc_matrix *matrix);
/* Whether the frozen matrix's product for the input's gradient adds the adapter's to it: it reads that. */
bool pc_adapter_adds(const pc_builder *b, const pc_matrix *matrix);
/* What B and W add. The input's gradient is this rank's part, as that of the matrix is before its reduction. */
void pc_add_adapter_backward(pc_builder *b, const pc_matrix *matrix, pc_backward passes);

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

/* ---- operations_low_attention.c: attention in 8 bits; nothing where layers attend in 16 ---- */

/* Whether these layers do; bytes of so many numbers of queries, keys, values or output as attention has them; whether
 * the matrix behind it takes 8 bits from it, and gives them back; whether the matrix in front of it does. */
bool pc_attends_low(const pc_builder *b);
pc_wide pc_attention_bytes(const pc_builder *b, pc_wide elements);
bool pc_attention_hands_over(const pc_builder *b);
bool pc_attention_gives_low_gradient(const pc_builder *b);

/* In F in front of attention and behind it; in B likewise. */
void pc_add_low_attention_inputs(pc_builder *b);
void pc_add_low_attention_output(pc_builder *b);
void pc_add_low_attention_gradient(pc_builder *b);
void pc_add_low_attention_input_gradients(pc_builder *b);

/* ---- operations_context.c: attention where the sequence is cut over ranks of context parallelism ---- */

void pc_add_context_forward(pc_builder *b);
void pc_add_context_backward(pc_builder *b);

/* ---- operations_layer.c: b->repeat layers ---- */

void pc_add_layer_forward(pc_builder *b);
void pc_add_layer_backward(pc_builder *b, pc_backward passes);
/* Scores, softmax, dropout and values, once more. */
void pc_add_attention_again(pc_builder *b);
/* A set of modules (recompute.h), in the order of the backward pass. */
void pc_add_modules_again(pc_builder *b, int32_t modules);
/* What a policy that keeps `kept` (recompute.h) leaves out of a layer, as far as the backward pass reads it. */
void pc_add_policy_again(pc_builder *b, int kept);

/* ---- operations_latent.c: attention whose queries, keys and values come from latents ---- */

/* From what the norm puts out to queries, keys and values. */
void pc_add_latent_forward(pc_builder *b, pc_maker maker);
void pc_add_latent_backward(pc_builder *b, pc_backward passes);
/* Up from the latents, once more. */
void pc_add_latent_up_again(pc_builder *b);

/* ---- operations_mtp.c: what stands in front of b->repeat layers of multi-token prediction ---- */

void pc_add_mtp_forward(pc_builder *b);
void pc_add_mtp_backward(pc_builder *b, pc_backward passes);

/* ---- operations_experts.c: what a layer with experts has between the norm in front and the residual ---- */

void pc_add_experts_forward(pc_builder *b, pc_maker maker);
void pc_add_experts_backward(pc_builder *b, pc_backward passes);
/* A set of modules (recompute.h), once more; those that are no experts' are left out. */
void pc_add_experts_again(pc_builder *b, int32_t modules);

/* ---- operations_eager.c: what torch runs without a compiler, of b's pass where both ways differ ---- */

/* RMS norms, `count` of them over so many elements in all. */
void pc_add_eager_norm(pc_builder *b, const char *name, pc_wide elements, int count);
void pc_add_eager_norm_backward(pc_builder *b, const char *name, pc_wide elements, int count);
void pc_add_eager_rotary(pc_builder *b);
void pc_add_scaled_rotary(pc_builder *b); /* the same where rotations scale: no fused kernel does */
void pc_add_eager_heads(pc_builder *b);
void pc_add_eager_gated(pc_builder *b); /* SwiGLU, GeGLU */
void pc_add_eager_squared_relu(pc_builder *b);
void pc_add_eager_input_sums(pc_builder *b, const char *name, int count);

/* ---- operations_ends.c ---- */

void pc_add_embedding_forward(pc_builder *b);
void pc_add_embedding_backward(pc_builder *b, pc_backward passes);
/* A lookup, and the table's gradient, without what else stands at the model's beginning. */
void pc_add_embedding_rows(pc_builder *b);
void pc_add_embedding_rows_backward(pc_builder *b);
void pc_add_head_forward(pc_builder *b);
void pc_add_head_backward(pc_builder *b, pc_backward passes);

/* S and T of a stage's slice of embedding and head. */
void pc_add_vocab_s(pc_builder *b);
void pc_add_vocab_t(pc_builder *b);

#endif
