/* memory.h: what a model's part holds on a GPU: activations, parameters, gradients, optimizer state, buffers. Bytes of
 * one TP rank. */
#ifndef PC_MODELS_WORKLOAD_MEMORY_H
#define PC_MODELS_WORKLOAD_MEMORY_H

#include "engine/error.h"
#include "models/workload/cut.h"
#include "models/workload/model.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one microbatch on one part. A GPT layer with nothing recomputed keeps s*b*h (10 + 24/t + 5as/(ht)); with
 * sequence parallelism that is s*b*h/t (34 + 5as/h). Selective recomputation and flash attention do without the 5as/h;
 * a flash kernel's log-sum-exp, 4*a*s*b, is left out. Full recomputation keeps the layer's input, 2*s*b*h, over t with
 * sequence parallelism (Korthikanti et al. 2022, arXiv 2205.05198, table 2). The embedding adds its dropout mask,
 * s*b*h. The head adds the inputs of the final norm and of its matrix, 4*s*b*h, and the softmax in fp32, 4*s*b*V/t, or
 * what another loss leaves of it (pc_cross_entropy). With sequence parallelism s*b*h is over t (section 4.3). Without
 * dropout there are no masks, and of the 5as^2b 2 are left; SwiGLU keeps gate, up and their product. A recipe that
 * keeps inputs of matrices in few bits (low_precision.h) makes of each 2 bytes its format's; flash attention's output
 * stands beside that in 16 bits, for its backward pass reads it. */
typedef struct pc_part_activation {
    /* What F keeps and R makes again. Without R passes, what F keeps; or what W finds where that is more, for B makes
     * something again and leaves it, or leaves gradients that are more than what it frees. */
    int64_t taken;
    /* Of that, what B gives back where W is a pass of its own: W needs the input and the output gradient of each of its
     * matrices ('Zero Bubble', arXiv 2401.10241, table 1). Of a GPT layer it needs s*b*h (8 + 24/t), which is 32*s*b*h
     * alone, or s*b*h (4 + 28/t) with sequence parallelism: what comes back to the ends of attention and MLP stays as B
     * gathered it, for all tokens. Never negative: where W needs more of a
     * layer than F took (sequence parallelism without scores), `taken` has what W needs, and B frees nothing. */
    int64_t b_frees;
    int64_t
        kept; /* of `taken`, what is there between F and R, or the B that leaves more than it found; else all of it */
    /* What a pass needs beside that while it runs. Of modules (recompute.h) it is the most that is there at once of one
     * layer, module by module (saved.h). It is the recomputed part of one layer, less what the head has given
     * back before; of that part B leaves W its share, so that the rest counts. If the loss works with more
     * (pc_cross_entropy: 2*s*b*V/t in place), it is that. With sequence parallelism one gathered tensor is added,
     * 2*s*b*h; and with slices of the sequence the gradients of the keys and values before this one. */
    int64_t working;
    int64_t reserved; /* of `working`, what an allocator has reserved and not allocated (pc_loss_buffers) */
    /* What F sends to the host, and comes back for the backward pass. Where copies are part of passes, those on
     * their way are in `working`, a layer's or, if none stays, two layers'; and B fetches for W, too: `taken` has all
     * then, and `kept` what stays. Where they run beside passes it is in none of the above, and B gives back
     * `offloaded_b` of it where W is a pass of its own. */
    int64_t offloaded, offloaded_b;
} pc_part_activation;

/* Which passes a schedule has, as far as memory depends on them: R; B and W; and beside these BW. */
typedef struct pc_pass_forms {
    bool has_r, splits, mixes;
} pc_pass_forms;

/* For a checked cut. PC_ERROR_INPUT if a number runs over 2^63. */
pc_code pc_part_activations(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_forms forms,
                            pc_part_activation *activation, pc_error *error);

/* With vocabulary parallelism, what a stage holds of a microbatch from S to T, for a checked cut. */
int64_t pc_vocab_held_bytes(const pc_model *model, const pc_cut *cut);

/* Parameters of one part on one TP rank, for a checked cut; of a part's slices of the sequence the first counts them,
 * and the others have 0. A tied matrix stands on both ends; where `shares_embedding`, both ends are on one device and
 * it stands once, with the embedding. Keys and values of fewer heads than ranks stand on several. */
int64_t pc_part_parameters(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding);

/* Whether the part holds a copy of the embedding for multi-token prediction: where neither the embedding nor a tied
 * head is its own (megatron/core/models/gpt/gpt_model.py makes one for mtp_process). */
bool pc_part_copies_embedding(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding);

/* Of them, those that have gradients and an optimizer's state: all, but for what is frozen (pc_cut_frozen). */
int64_t pc_part_trained(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding);

/* Of all, those of routed experts, which pc_cut_expert_replicas ranks have alike, with their adapters; and of these
 * those that are trained. */
int64_t pc_part_experts(const pc_model *model, const pc_cut *cut, const pc_part *part);
int64_t pc_part_experts_trained(const pc_model *model, const pc_cut *cut, const pc_part *part);

/* Those of one layer's adapters that a token is multiplied by, on this rank: of a matrix in x out, rank * (in + out) /
 * t of the model's; of routed experts, topk times one's. */
int64_t pc_layer_adapters(const pc_model *model, const pc_cut *cut, bool has_experts);

/* Of them, those of matrices whose products a recipe has in few bits, or that are held in nf4; 0 without either. */
int64_t pc_part_low_weights(const pc_model *model, const pc_cut *cut, const pc_part *part);

/* What a device holds all the time for `parameters` of them, each 16 bits. That is 2 bytes of weights,
 * pc_cut_gradient_bytes of gradients, and what the optimizer has (optimizer.h): of Adam in fp32 12 bytes. With
 * ZeRO each is spread over the dp x cp ranks as far as cut->zero says, rounded up. */
typedef struct pc_state_bytes {
    int64_t parameters, gradients, optimizer;
} pc_state_bytes;
pc_state_bytes pc_state_of(const pc_cut *cut, int64_t parameters);

/* What one transfer between stages carries: 2*s*b*h, over k slices of the sequence (the mean, where they differ). It is
 * over t where the sequence is cut, or where the boundary tensor is scattered over the TP ranks and gathered again
 * (Narayanan et al. 2021, section 4.1). */
int64_t pc_boundary_bytes(const pc_model *model, const pc_cut *cut, bool is_scattered);

#ifdef __cplusplus
}
#endif
#endif
