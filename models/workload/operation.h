/* operation.h: what a pass does on one GPU: its kernels and collectives, with shapes, FLOPs and bytes.
 *
 * Plain values of one TP rank. A collective's size is that of the whole tensor: what every rank has after an all-gather
 * or an all-reduce, and before a reduce-scatter; of an all-to-all and a
 * ring what a rank has.
 */
#ifndef PC_MODELS_WORKLOAD_OPERATION_H
#define PC_MODELS_WORKLOAD_OPERATION_H

#include "engine/error.h"
#include "models/schedule/schedule.h"
#include "models/workload/cut.h"
#include "models/workload/format.h"
#include "models/workload/model.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_operation_kind {
    PC_OPERATION_GEMM,
    PC_OPERATION_ATTENTION, /* flash: scores, softmax and values in one kernel */
    PC_OPERATION_NORM,
    PC_OPERATION_ELEMENTWISE, /* activation functions, residuals, dropout, rotary, softmax, cross entropy, lookups */
    PC_OPERATION_OPTIMIZER,
    PC_OPERATION_GROUPED_GEMM, /* a product for each expert of the rank, in one kernel */
    PC_OPERATION_ALL_REDUCE,   /* collectives are those of the operation's group */
    PC_OPERATION_ALL_GATHER,
    PC_OPERATION_REDUCE_SCATTER,
    PC_OPERATION_ALL_TO_ALL,
    PC_OPERATION_RING,     /* every rank sends to the next one and receives from the one before */
    PC_OPERATION_DISPATCH, /* tokens, and in B gradients of what experts made of them, go to the ranks of their experts,
                            * as the cut's dispatcher has it */
    PC_OPERATION_COMBINE,  /* and what is made of them comes back, where its parts are added up */
    PC_OPERATION_KINDS
} pc_operation_kind;

/* Who takes part in a collective: ranks of tensor parallelism; of context parallelism, all, those that exchange heads,
 * or those round whom keys and values go; of experts. */
typedef enum pc_operation_group {
    PC_GROUP_TP,
    PC_GROUP_CP,
    PC_GROUP_CP_A2A,
    PC_GROUP_CP_RING,
    PC_GROUP_EP,  /* ranks that share out experts */
    PC_GROUP_ETP, /* ranks that cut an expert */
    PC_GROUPS
} pc_operation_group;

/* Which pass a kernel belongs to: layouts and rates differ. INPUT_GRADIENT: of B, whatever it is the gradient of, but
 * for the products of weight gradients. */
typedef enum pc_gemm_role { PC_GEMM_FORWARD, PC_GEMM_INPUT_GRADIENT, PC_GEMM_WEIGHT_GRADIENT } pc_gemm_role;

typedef struct pc_operation {
    pc_operation_kind kind;
    pc_gemm_role role;
    const char *name; /* "qkv", "scores", "mlp_up"; static storage */
    /* NORM, ELEMENTWISE, OPTIMIZER: what it computes, whatever its place is called; static storage. layer_norm,
     * rms_norm, gelu, swiglu, residual, rotary, softmax, cross_entropy, embedding, dropout, add, copy, bias_gradient,
     * adam; of a recipe (low_precision.h) cast, cast_transpose, transpose, amax, hadamard. NULL of others. */
    const char *function;
    pc_precision precision;   /* of activations in memory */
    pc_product_format format; /* GEMM: of what it reads, which says how fast it multiplies; of a recipe's casts of
                               * what they write; of others as precision */
    int64_t batch;     /* GEMM: so many independent ones (heads * b); otherwise 1. ATTENTION: heads * b of this rank; of
                        * documents or chunks, times those of a sequence, rounded up. GROUPED_GEMM: experts of this
                        * rank. DISPATCH, COMBINE: experts of the layer, on all ranks */
    int64_t m, n, k;   /* GEMM: m x k by k x n. ATTENTION: m queries, n keys, k the head's dimension; of a slice of the
                        * sequence behind u tokens n is 2u + m, of which the mask hides half as in a square */
                       /* GROUPED_GEMM: as GEMM, of one expert with the mean of the rows, rounded up; `rows` is exact.
                        * DISPATCH, COMBINE: m tokens that this rank has, each to n experts, k wide, of `format` */
    int64_t rows;      /* GROUPED_GEMM: token and expert pairs of all experts of the rank. DISPATCH, COMBINE: that the
                        * fullest rank gets */
    int64_t value_dim; /* ATTENTION: columns of a head's values, where they are not k; else 0 */
    int64_t window;    /* ATTENTION: of the n keys a query sees the last so many; 0: all */
    int64_t flops;     /* 2 * batch * m * n * k of a GEMM; forward attention 4 * batch * m * n * k, backward 2.5 times
                        * that in flash (2 in model FLOPs, 0.5 recomputed). Causality is not counted as a saving, as in
                        * the papers, but windows are: n is at most the window. 0 of what is no matrix work */
    int64_t model_flops;      /* of flops, those that MFU counts: not recomputed ones */
    int64_t bytes;            /* read from and written to memory, each tensor once a kernel; a GEMM of W adds to a
                               * gradient of pc_cut_gradient_bytes; vectors (biases, scales) are left out */
    int64_t size_bytes;       /* of a collective: the whole tensor; ALL_TO_ALL, RING: what a rank has to send */
    pc_operation_group group; /* of a collective */
    int32_t launches;         /* kernels, for launch overhead */
    bool is_by_expert;        /* its launches are of one expert each */
    bool is_within;           /* the module of the operation behind it launches it */
    bool splits_accumulator;  /* GEMM of few bits: its sums leave the matrix units every so often */
    bool is_below;            /* ATTENTION: a block below the diagonal, none of it masked. Its FLOPs count twice, for as
                               * many scores above the diagonal, which no kernel computes */
    bool is_causal;           /* ATTENTION: half of the scores are masked; kernels that skip them run twice as fast */
    bool can_overlap; /* a collective behind which independent work of the same pass can run (Megatron: the all-reduce
                       * or all-gather of B beside the GEMM of W) */
    int32_t beside;   /* of one that can overlap: kernels behind it that run beside it; 0: one */
    int64_t repeat;   /* times in the pass, mostly its layers */
} pc_operation;

enum { PC_OPERATIONS_MAX = 768 };

typedef struct pc_operations {
    pc_operation list[PC_OPERATIONS_MAX]; /* in the order in which they run: embedding, then one layer (repeat), head */
    int count;
} pc_operations;

/* The operations of one pass of `part` for one microbatch, for a checked cut. F; B: for the input, after recomputation
 * (of a layer those operations first) where the part recomputes and the schedule has no R of its own; W; BW: B and W
 * together; R: the recomputation alone, nothing if the part recomputes nothing. `has_r`: whether the schedule has R
 * passes. W has the matrices' products (and the sum for the bias of query, key and value); gradients of norms, other
 * biases and the embedding's table are B's work. A B and a W have the operations of a BW, all but can_overlap the same.
 * Where keys and values of fewer heads than ranks stand on several, model_flops counts a t-th of the model's matrix.
 * PC_ERROR_INPUT if a number, or a sum of pc_operations_sum, runs over 2^63. */
pc_code pc_pass_operations(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind, bool has_r,
                           pc_operations *operations, pc_error *error);

/* Sums over a list, with repeats. */
typedef struct pc_operation_sums {
    int64_t flops, model_flops, bytes, collective_bytes, launches;
} pc_operation_sums;
pc_operation_sums pc_operations_sum(const pc_operations *operations);

/* Model FLOPs of one sequence through the whole model, F and BW: 72 s L h^2 (1 + s/(6h) + V/(12 L h)) for GPT; hardware
 * FLOPs with full recomputation: 96 s L h^2 (1 + s/(6h) + V/(16 L h)) (Narayanan et al. 2021, equation 3). V padded. As
 * doubles: exact below 2^53 and then to 16 digits. */
double pc_model_flops_per_sequence(const pc_model *model, int tp, int64_t seq_len);

/* The same of what a cut trains: without products for gradients of frozen matrices, and with those of adapters, 6 FLOPs
 * a parameter and token. The gradient of the first layer's input counts, whether the embedding is trained or not. */
double pc_cut_flops_per_sequence(const pc_model *model, const pc_cut *cut);

#ifdef __cplusplus
}
#endif
#endif
