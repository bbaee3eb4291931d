/* cut.h: how a model is cut over GPUs: tensor, sequence, pipeline and data parallelism, and which layers each part has.
 */
#ifndef PC_MODELS_WORKLOAD_CUT_H
#define PC_MODELS_WORKLOAD_CUT_H

#include "engine/error.h"
#include "models/workload/expert_counts.h"
#include "models/workload/lora.h"
#include "models/workload/model.h"
#include "models/workload/offload.h"
#include "models/workload/optimizer.h"
#include "models/workload/recompute.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the loss is computed from the logits, L of them on a rank, which decides what stands of them and what moves:
 *
 *            the head leaves   in F, at most   from F to B   in B, at most   moved in F   in B
 *   IN_PLACE       2L              6L             4L             6L             38L        14L
 *   PLAIN          2L             10L             4L             6L             38L        14L
 *   FUSED          2L              2L             2L             2L              6L         4L
 *   CHUNKED     2L of a piece      the same       none           none            6L        none
 *   TORCH          2L             10L             4L            12L             22L        26L
 *   COMPILED       2L              2L             2L             4L              4L         4L
 *
 * IN_PLACE copies 16-bit logits to fp32 and turns the copy into exponentials, softmax and gradient in place, kernel by
 * kernel; the gradient is copied to 16 bits. So Megatron: megatron/core/tensor_parallel/cross_entropy.py ("In-place
 * subtraction reduces memory pressure") and, from the same steps, the native fused_cross_entropy.py; megatron/mpu of
 * 2021.
 * PLAIN does not subtract the largest logit in place: the fp32 copy and the difference stand beside the logits. So
 * Megatron-LM of 2022 and 2023, and the programs of 'Zero Bubble' and 'Controllable Memory' that are made of it.
 * FUSED reads the logits in one kernel and, once the ranks have exchanged maxima, sums and targets, writes the gradient
 * over them in the next; B scales it. So Transformer Engine (--cross-entropy-fusion-impl te) and Liger-Kernel.
 * CHUNKED takes the tokens in pieces: head, fused loss, the gradients of the head's input and of its matrix at once, so
 * that no logits are left, B scales the input's gradient, and W has nothing to do. So Liger-Kernel's
 * fused_linear_cross_entropy and torchtitan's ChunkedLossWrapper.
 * TORCH is PyTorch's own: torch.nn.functional.cross_entropy of an fp32 copy, which keeps the logarithm of the softmax.
 * Its kernels read the copy three times, or in B both of their inputs, one of them twice. In B the gradient of the
 * loss, fp32 and zero but for a number a token, stands beside the gradient that is made of it
 * (aten/src/ATen/native/cuda/SoftMax.cu, NLLLoss2d.cu). Over a cut vocabulary it is
 * loss_parallel of torch.distributed.tensor.parallel. F moves 38 L, step by step as PLAIN. In B zeros, exponentials,
 * their sum and its product with the loss's gradient stand beside what was kept: 16 L at most, and 38 L moved.
 * COMPILED is TORCH's through torch.compile: the conversion to fp32 is fused into the reductions, so that F reads the
 * 16-bit logits twice, for the largest and for the sum, and keeps them. B reads them again and writes their gradient
 * beside them. So torchtitan of 2025, and flash-attn's kernel without `inplace_backward`. */
typedef enum pc_cross_entropy {
    PC_CROSS_ENTROPY_IN_PLACE,
    PC_CROSS_ENTROPY_PLAIN,
    PC_CROSS_ENTROPY_FUSED,
    PC_CROSS_ENTROPY_CHUNKED,
    PC_CROSS_ENTROPY_TORCH,
    PC_CROSS_ENTROPY_COMPILED
} pc_cross_entropy;

/* How the program runs what stands between matrices. FUSED: as Megatron's kernels, or a compiler's. EAGER: as torch
 * without a compiler, every operator a kernel of its own, which reads and writes memory (operations_eager.c); and what
 * a policy of recomputation names is kept whether the backward pass reads it or not. */
typedef enum pc_kernels { PC_KERNELS_FUSED, PC_KERNELS_EAGER } pc_kernels;

/* With sequence parallelism, inputs of matrices with cut columns. CUT: kept as a rank's tokens, and gathered again in
 * the backward pass (Megatron). GATHERED: kept as F gathered them, for all tokens, as DTensor's ColwiseParallel has it.
 * Gate and up are products of their own there, whose gradients of all tokens are there at once. And what is gathered or
 * scattered along the second dimension is copied (torch/distributed/_functional_collectives.py, all_gather_tensor). So
 * there are two tensors of all tokens in place of one. */
typedef enum pc_tp_inputs { PC_TP_INPUTS_CUT, PC_TP_INPUTS_GATHERED } pc_tp_inputs;

/* What a loss finds of what F's layers have freed. SHARED: room. APART: none, where its tensors are larger: a caching
 * allocator keeps the blocks, and makes new ones. They are reserved, and not allocated. */
typedef enum pc_loss_buffers { PC_LOSS_BUFFERS_SHARED, PC_LOSS_BUFFERS_APART } pc_loss_buffers;

/* Megatron-LM's --transformer-impl. In Transformer Engine's a norm and the matrix behind it are one module
 * (LayerNormLinear), whose norm's output is nobody else's to drop. In Megatron's own each is its own module. */
typedef enum pc_transformer_impl { PC_TRANSFORMER_ENGINE, PC_TRANSFORMER_LOCAL } pc_transformer_impl;

/* Of a microbatch, where no number is given: torchtitan's, and torchtune's. */
enum { PC_CROSS_ENTROPY_CHUNKS = 8 };

/* What adds a weight's gradient to those of the microbatches before. FUSED: the product itself, which reads and writes
 * the gradient in memory (Megatron's gradient_accumulation_fusion). SEPARATE: a kernel behind it, which all but the
 * first microbatch need; the product writes 16 bits (PyTorch's autograd). */
typedef enum pc_gradient_accumulation {
    PC_GRADIENT_ACCUMULATION_FUSED,
    PC_GRADIENT_ACCUMULATION_SEPARATE
} pc_gradient_accumulation;

/* CUDA graphs. LAYER: of a layer's halves, one for each half in each pass, whose buffers are those that its kernels use
 * anyway. ROUTER: of a layer of experts its product and its scores. ITERATION: of all, so that no launch takes time.
 * Numbers are bits of `cuda_graph_scope`. */
typedef enum pc_graphs {
    PC_GRAPHS_ATTN = 1,
    PC_GRAPHS_MLP = 2,
    PC_GRAPHS_LAYER = 3,
    PC_GRAPHS_ITERATION = 4,
    PC_GRAPHS_ROUTER = 16
} pc_graphs;

/* How ZeRO 1 divides the optimizer's state. EVEN cuts all parameters, laid end to end, into equal shares: gradients are
 * reduce-scattered, parameters all-gathered (Megatron's distributed optimizer, DeepSpeed). TENSOR gives every tensor to
 * one rank whole: gradients are all-reduced over all replicas, each rank steps its own tensors and broadcasts them
 * (InternEvo's hybrid_zero_optim.py; torch.distributed.optim.ZeroRedundancyOptimizer). */
typedef enum pc_zero_partition { PC_ZERO_PARTITION_EVEN, PC_ZERO_PARTITION_TENSOR } pc_zero_partition;

/* EVEN: every part has layers / parts of them. ENDS: embedding and head count as a layer each, so that the first and
 * the last part have one layer less. OWN: the first part is the embedding alone and the last the head alone; the others
 * share the layers evenly. LISTED: as layers_of_part says. BALANCED: so that the slowest stage is the fastest possible,
 * by what layers, embedding and head take (layout_balance.h); whoever knows the costs makes a list of it.
 * BALANCED_MEMORY: likewise, among the divisions whose stages fit in the GPUs' memory (training/outline_fit.h). */
typedef enum pc_cut_layout {
    PC_CUT_EVEN,
    PC_CUT_ENDS,
    PC_CUT_OWN,
    PC_CUT_LISTED,
    PC_CUT_BALANCED,
    PC_CUT_BALANCED_MEMORY
} pc_cut_layout;

/* Whether costs make a list of it. */
static inline bool pc_layout_is_balanced(pc_cut_layout layout) {
    return layout == PC_CUT_BALANCED || layout == PC_CUT_BALANCED_MEMORY;
}

/* Where a microbatch's sequence is cut into slices: by tokens, or by FLOPs (sequence_slices.h). */
typedef enum pc_sequence_split { PC_SEQUENCE_SPLIT_EVEN, PC_SEQUENCE_SPLIT_FLOPS } pc_sequence_split;
/* How ranks of context parallelism, each with 1 / cp of every sequence, come to the keys and values of all;
 * Megatron-LM's cp_comm_type. P2P: keys and values go round a ring, beside attention to those that are there.
 * ALL_GATHER: they are gathered before attention. A2A: queries, keys and values are exchanged, so that a rank has all
 * tokens of 1 / cp of the heads (DeepSpeed Ulysses, arXiv 2309.14509). A2A_P2P: the latter in rows of cp_a2a ranks, the
 * ring over the rows. */
typedef enum pc_cp_comm { PC_CP_P2P, PC_CP_ALL_GATHER, PC_CP_A2A, PC_CP_A2A_P2P } pc_cp_comm;

enum { PC_PARTS_MAX = 4096 };

/* The fullest rank's rows over the mean (expert_slice.h): in the mean, and for which there is memory. */
typedef struct pc_known_load {
    double tokens; /* of all ranks that share out experts, for which it is; 0: not known */
    double mean, held;
} pc_known_load;

typedef struct pc_cut {
    int tp, pp, dp; /* ranks of each; GPUs = tp * cp * pp * dp */
    int cp;         /* of context parallelism; 0 as 1: none */
    pc_cp_comm cp_comm;
    int cp_a2a;      /* A2A_P2P: neighbours that exchange heads, a divisor of cp; 0: as many as can */
    int shard_group; /* with ZeRO: so many replicas in a row share state, and every such group has all of it;
                      * a divisor of dp * cp. 0: all */
    int ep;          /* ranks that share out a layer's experts; 0 as 1: each has all */
    int etp;         /* ranks that cut one expert; 0: as tp. Of tp * cp * dp ranks etp * ep have all experts */
    pc_dispatcher dispatcher;
    int deepep_sms, hybridep_sms; /* processors that such kernels take; 0: Megatron-LM's default (cost/dispatch.h) */
    bool fp8_dispatch; /* tokens go to experts in 8 bits, with a scale for every 128 numbers; what comes back has 16 */
    bool overlaps_shared; /* shared experts run beside dispatch and combine (Megatron-LM's moe_shared_expert_overlap) */
    pc_moe_load moe_load;
    double moe_load_exponent;                /* POWER: of the density of experts' popularity */
    const pc_expert_counts *moe_load_counts; /* GIVEN: of as many experts as the model has; borrowed. NULL otherwise */
    double moe_load_fullest;  /* rows of the fullest rank over the mean, whatever moe_load says; 0: as that says */
    pc_known_load known_load; /* of the above, worked out before by who makes many slices of one cut */
    double memory_quantile;   /* of the fullest rank's rows, for which there is memory (expert_load.h); 0: their mean */
    int chunks;               /* v; of schedules with slices all slices of a stage's parts */
    int slices;               /* of the sequence, where the schedule has them: those of one part; else 0 */
    pc_sequence_split sequence_split;
    /* Vocabulary parallelism (pc_barriers of schedule.h): over how many stages the embedding and the head are cut, and
     * after how many barriers the last part goes back. Both follow from the schedule; 0 without. */
    int vocab_stages, vocab_barriers;
    bool sequence_parallel; /* norms and dropout are cut along the sequence over the TP ranks */
    int zero;               /* 0 replicated; 1 optimizer state over DP (distributed optimizer); 2 and gradients; 3 and
                             * parameters (Rajbhandari et al. 2020, arXiv 1910.02054) */
    /* of ZeRO 1: 2 and 3 cut tensors anyway */
    pc_zero_partition zero_partition;
    int64_t microbatch_size;   /* b, sequences */
    int64_t microbatches;      /* m, of each replica in an iteration */
    int64_t seq_len;           /* s, tokens */
    pc_recompute recompute;    /* of every part, unless recompute_of_part says it part by part */
    int32_t recompute_layers;  /* n of those kinds that have one */
    int32_t recompute_modules; /* of MODULES */
    pc_cut_layout layout;
    /* LISTED: parts of them, in the order in which F visits them; borrowed. NULL otherwise. */
    const int32_t *layers_of_part;
    /* LISTED: of multi-token prediction, its layers, or 0 where the list does not say; and how many parts stand behind
     * theirs. In other layouts they are the last part's. */
    int16_t mtp_listed, mtp_ahead;
    const pc_recomputation *recompute_of_part; /* in any layout, likewise; or NULL */
    pc_cross_entropy cross_entropy;
    int cross_entropy_chunks; /* CHUNKED: pieces of a microbatch, of whole tokens; 0: PC_CROSS_ENTROPY_CHUNKS */
    pc_gradient_accumulation gradient_accumulation;
    bool dummy_wgrad; /* of FUSED: autograd gets gradients that nobody reads (dummy_wgrad.h) */
    pc_kernels kernels;
    pc_tp_inputs tp_inputs;
    pc_loss_buffers loss_buffers;
    pc_transformer_impl transformer_impl;
    bool stores_low_input; /* Megatron's activation_func_fp8_input_store: what the MLP's activation reads waits for B in
                            * 8 bits, by a cast in F and another in B. Of gated kinds, whose kernel has it */
    bool attention_is_low; /* Megatron's fp8_dot_product_attention: layers of the recipe attend in 8 bits */
    bool attention_hands_low; /* and fp8_multi_head_attention: it takes and hands over 8 bits (low_attention.h) */
    /* Megatron's use_transformer_engine_op_fuser: the activation casts its output and its gradient itself; and where TP
     * is one rank, products add up adapters, and scale them (TEFusedLoRALinear; te.ops ForwardLinearScaleAdd) */
    bool fuses_operations;
    /* torch.compile of each layer: adapters' outputs are scaled and added by the kernels that read them. Kernels
     * between matrices are fused anyway (pc_kernels) */
    bool compiles;
    int gradient_bytes; /* of a parameter's gradient, as it is held, added up and sent: 4, fp32, or 2; 0: 4 */
    /* Layers, from the first on, whose activations are on the host between F and the backward pass: Megatron-LM's
     * cpu_offloading_num_layers, which it has without pipelines and without recomputation. */
    int64_t offload_layers;
    pc_offload offload;
    int32_t graphs; /* a sum of pc_graphs: kernels that the host launches as one */
    pc_lora lora;   /* adapters, beside which nothing else is trained */
    int32_t frozen; /* without them: PC_FROZEN_EMBEDDING, PC_FROZEN_HEAD, both or neither */
    pc_optimizer optimizer;
} pc_cut;

/* Ranks of context parallelism, at least one. */
static inline int pc_cut_cp(const pc_cut *cut) {
    return cut->cp > 1 ? cut->cp : 1;
}

/* Ranks that have the same parameters, reduce their gradients and may share state: those of data and of context
 * parallelism together (Megatron's dp_cp group, torchtitan's dp_shard_cp). */
static inline int pc_cut_replicas(const pc_cut *cut) {
    return cut->dp * pc_cut_cp(cut);
}

/* Ranks that share out experts, and that cut one. */
static inline int pc_cut_ep(const pc_cut *cut) {
    return cut->ep > 1 ? cut->ep : 1;
}
static inline int pc_cut_etp(const pc_cut *cut) {
    return cut->etp > 0 ? cut->etp : cut->tp;
}

/* Ranks that have the same experts and reduce their gradients: expert data parallelism. */
static inline int pc_cut_expert_replicas(const pc_cut *cut) {
    return (int)((int64_t)pc_cut_replicas(cut) * cut->tp / ((int64_t)pc_cut_ep(cut) * pc_cut_etp(cut)));
}

/* All that is not trained, a sum of pc_frozen. */
static inline int32_t pc_cut_frozen(const pc_cut *cut) {
    return cut->lora.rank > 0 ? (int32_t)PC_FROZEN_ALL : cut->frozen;
}

/* Of a parameter's gradient. Megatron holds all of a rank's in one buffer, which backward passes add to and collectives
 * read: fp32, or 16 bits where it reduces them so (grad_reduce_in_fp32, --accumulate-allreduce-grads-in-fp32). */
static inline int pc_cut_gradient_bytes(const pc_cut *cut) {
    return cut->gradient_bytes > 0 ? cut->gradient_bytes : 4;
}

/* k: the slices of a microbatch, 1 where it is whole; and the passes that go once through a part of the model. */
static inline int pc_cut_slices(const pc_cut *cut) {
    return cut->slices > 1 ? cut->slices : 1;
}
static inline int64_t pc_cut_units(const pc_cut *cut) {
    return cut->microbatches * pc_cut_slices(cut);
}

/* Over how many passes a kernel of its own adds gradients up; 0 where the product does. */
static inline int64_t pc_cut_sums_apart(const pc_cut *cut) {
    return cut->gradient_accumulation == PC_GRADIENT_ACCUMULATION_SEPARATE ? pc_cut_units(cut) : 0;
}

/* Over how many passes a cast of weights counts, which the first of them makes; 0 where each pass casts, or none
 * does: then passes do not depend on them. */
static inline int64_t pc_cut_casts_over(const pc_model *model, const pc_cut *cut) {
    bool is_once = pc_low_precision_is_on(&model->low) && model->low.weights != PC_LOW_WEIGHTS_EACH;
    return is_once ? pc_cut_units(cut) : 0;
}

/* Whether weights come to every pass in few bits, as ZeRO 3 gathers them where there is who has another share. */
static inline bool pc_cut_gathers_low_weights(const pc_model *model, const pc_cut *cut) {
    int64_t ranks = cut->shard_group > 0 ? cut->shard_group : pc_cut_replicas(cut);
    return pc_low_precision_is_on(&model->low) && model->low.gathers_parameters && cut->zero == 3 && ranks > 1;
}

/* Whether a kernel of its own caps logits, and keeps what it writes: losses that a compiler makes, or that take logits
 * in pieces, cap them as they read them. */
static inline bool pc_caps_logits_apart(const pc_model *model, pc_cross_entropy loss) {
    return model->final_logit_softcapping > 0 && loss != PC_CROSS_ENTROPY_CHUNKED && loss != PC_CROSS_ENTROPY_COMPILED;
}

/* Whether whole tensors are given to ranks. */
static inline bool pc_cut_gives_tensors(const pc_cut *cut) {
    return cut->zero == 1 && cut->zero_partition == PC_ZERO_PARTITION_TENSOR;
}

/* Whether the optimizer can be with this cut, and with `is_separate` kernels, or state in `has_fp32_shards` as torch's
 * FSDP has it: PC_ERROR_INPUT and the rule. */
pc_code pc_optimizer_check(const pc_cut *cut, bool is_separate, bool has_fp32_shards, pc_error *error);

/* One of the p * v (or p, in replicas) slices of the model. */
typedef struct pc_part {
    int64_t layers;        /* with those of multi-token prediction, which one part has beside its own */
    int64_t expert_layers; /* of them, those with experts */
    int64_t mtp_layers;    /* of them, those of multi-token prediction */
    int64_t mtp_heads;     /* heads and losses of multi-token prediction, which the last part has beside its own */
    int64_t wide_layers;   /* of them, those that a recipe of the model leaves in 16 bits; 0 without one */
    int64_t local_layers;  /* of them, those whose attention has a window or chunks (attention.h); 0 where these change
                            * nothing */
    bool has_embedding;    /* the first */
    bool has_head;         /* the last */
    bool has_vocab; /* a slice of embedding and head, with S and T; both ends have no more than their norms, positions
                     * and dropout then */
    pc_recompute recompute;
    int32_t recompute_layers;  /* 0 of kinds without a number */
    int32_t recompute_modules; /* 0 of all but MODULES */
    int64_t offloaded_layers;  /* whose activations, or those of some modules, are on the host between F and backward */
    int slice;                 /* of a microbatch, the one that passes work at: 0 to pc_cut_slices - 1 */
} pc_part;

static inline pc_recomputation pc_part_recomputation(const pc_part *part) {
    return (pc_recomputation){part->recompute, part->recompute_layers, part->recompute_modules};
}

static inline pc_recomputation pc_cut_recomputation(const pc_cut *cut) {
    return (pc_recomputation){cut->recompute, cut->recompute_layers, cut->recompute_modules};
}

/* PC_ERROR_INPUT and the rule that the model (pc_model_check) or the cut breaks: "tp 16 does not divide 40 heads;
 * expected a divisor", layers over parts, recomputed layers of a part, sequence over TP with sequence parallelism, what
 * context parallelism asks for. Key
 * and value heads may be fewer than ranks, where they divide them: a rank has one, as others do. `parts` is the number
 * of parts of the placement. */
pc_code pc_cut_check(const pc_model *model, const pc_cut *cut, int parts, pc_error *error);

/* The ranks of context parallelism that exchange heads: all with A2A, cp_a2a with A2A_P2P; 1 if none do. */
int pc_cut_exchange(const pc_model *model, const pc_cut *cut);

/* "p2p", "all_gather", "a2a", "a2a+p2p". */
const char *pc_cp_comm_name(pc_cp_comm comm);

/* The most ranks, up to `most`, that divide cp and the heads of queries and of keys on a rank of tensor parallelism. */
int pc_cut_most_exchange(const pc_model *model, const pc_cut *cut, int most);

/* Part `part` of `parts` of a checked cut whose layout is not BALANCED. */
pc_part pc_cut_part(const pc_model *model, const pc_cut *cut, int parts, int part);

#ifdef __cplusplus
}
#endif
#endif
