/* state_host.h: state that is on the host: what its copies and its step take. Private to models/training/.
 *
 * The CPU's Adam is bound by the host's memory: it reads a gradient, the master weight and two moments, and writes the
 * latter three and a 16-bit weight ('ZeRO-Offload', arXiv 2101.06840, section 5.1; Megatron-LM's
 * megatron/core/optimizer/cpu_offloading). Gradients come as they are held, weights go back in 16 bits. Both types are
 * converted by the CPU, as PyTorch's copies between host and GPU have it (aten/src/ATen/native/cuda/Copy.cu).
 */
#ifndef PC_MODELS_TRAINING_STATE_HOST_H
#define PC_MODELS_TRAINING_STATE_HOST_H

#include "models/training/outline.h"

/* Of the parameters that a rank steps those whose state is on the host. */
int64_t pc_outline_stepped_by_host(const pc_outline *outline, int64_t stepped);

/* What their step takes, seconds: gradients there, Adam, weights back; one after the other, or the longest of the
 * three. Where all shares are on the host anyway, Adam alone, with norm and clipping. */
double pc_outline_host_step_s(const pc_outline *outline, int64_t count);

/* What the share of a gathered or reduced bucket of so many bytes takes on its way, where shares are on the host. */
double pc_outline_share_copy_s(const pc_outline *outline, double bucket_bytes, int ranks);

/* Moves a device's state, of so many stepped parameters, to its host. */
void pc_outline_move_state(const pc_outline *outline, int64_t stepped, pc_device_outline *device);

#endif
