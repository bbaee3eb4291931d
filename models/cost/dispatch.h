/* dispatch.h: what it takes to send tokens to their experts (dispatch) and to get back what these make of them
 * (combine): as a course, which has a closed cost and is flows where something else is sent.
 *
 * A rank has t tokens of B bytes, each with k experts, of e in all, which lie on n ranks, q of them in each of d
 * domains. If ranks cut an expert, what they gather of each other's is not in here.
 *
 * ALLGATHER: all tokens go to all n ranks: an all-gather of n t B, or on the way back a reduce-scatter.
 * ALLTOALL: a token goes to a rank as often as it has experts there: an all-to-all of t k B, both ways (Megatron-LM's
 * megatron/core/transformer/moe/token_dispatcher.py).
 * DEEPEP and HYBRIDEP: a token goes once to each of the M domains that have an expert of it, to the GPU of the same
 * place there. That one forwards it, once to each of the D ranks with an expert of it (github.com/deepseek-ai/DeepEP,
 * README). Out of the domain go t B M (d-1)/d bytes of a rank, into its own t B D (q-1)/q, side by side. M and D are
 * means over all choices (expert_reach.h).
 *
 * If experts are not chosen evenly, all wait for the fullest rank: `load` times the mean comes to it (expert_load.h),
 * of ALLGATHER no more than of others.
 */
#ifndef PC_MODELS_COST_DISPATCH_H
#define PC_MODELS_COST_DISPATCH_H

#include "models/machine/collective.h"
#include "models/machine/machine.h"
#include "models/machine/ranks.h"
#include "models/workload/expert_reach.h"
#include "models/workload/experts.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_dispatch {
    pc_dispatcher dispatcher;
    bool is_combine;
    double tokens, token_bytes; /* of one rank, before they go; bytes of one, with its scales */
    pc_routing routing;
    double load; /* of the fullest rank over the mean; 1: balanced */
} pc_dispatch;

/* No phases if nobody else has experts. DEEPEP takes as long as was measured, if the machine has measured it
 * (transfer_model.h). ALLTOALL and ALLGATHER are as fast as such collectives are. */
pc_collective_course pc_dispatch_course(const pc_machine *machine, const pc_group *group, const pc_dispatch *what);

/* Megatron-LM's of moe_deepep_num_sms and moe_hybridep_num_sms. */
enum { PC_DEEPEP_SMS = 20, PC_HYBRIDEP_SMS = 16 };

/* Processors (SMs) that its kernels take while they run, by default. Of NCCL's 0: its kernels are counted as
 * overlap_slowdown. */
int pc_dispatch_processors(pc_dispatcher dispatcher);

/* How many times as long kernels take beside something that has `taken` of `all` processors: all / (all - taken). At
 * least one is left. */
double pc_stretch_beside(int all, int taken);

/* Bytes of a token of `hidden` numbers as it goes to experts: 16 bits each, or 8 with an fp32 scale for every 128 of
 * them (DeepSeek-V3, arXiv 2412.19437, section 3.3). What comes back is of 16. */
double pc_dispatched_bytes(double hidden, bool is_fp8);

#ifdef __cplusplus
}
#endif
#endif
