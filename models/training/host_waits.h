/* host_waits.h: what a pass loses because the host waits for counts of tokens. Private to models/training/.
 *
 * A layer of experts without dropped tokens gives experts as many rows as tokens chose them. The host needs these
 * counts before it can launch what works on the rows: Megatron-LM copies them and waits (token_dispatcher.py,
 * _maybe_dtoh_and_synchronize at "before_ep_alltoall" of the alltoall dispatcher; DeepEP's dispatch waits for its
 * counts, and of HybridEP's TEGroupedMLP calls tokens_per_expert.tolist()). So it has launched nothing ahead there, and
 * operation by operation the GPU waits for the host or works:
 *
 *     idle = the most, over operations k behind the wait, of (host until k is launched) - (GPU before k)
 *
 * until the layer's last operation. An operation takes the host call_s of the GPU's file, or more (host_time.h). The
 * backward pass finds the counts, and a recomputation waits again. With a capacity that is filled up all counts are
 * known, and a captured iteration has no host. */
#ifndef PC_MODELS_TRAINING_HOST_WAITS_H
#define PC_MODELS_TRAINING_HOST_WAITS_H

#include "models/training/outline.h"

/* Seconds of one layer, before the pace, if operation `first` is its dispatch and the host waits there; else 0. */
double pc_host_wait_s(const pc_outline *outline, const pc_operations *operations, int first);

/* Seconds of all layers of the pass. */
double pc_host_waits_s(const pc_outline *outline, const pc_operations *operations);

#endif
