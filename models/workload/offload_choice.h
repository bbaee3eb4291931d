/* offload_choice.h: which tensors of a part go to the host, where a link's time is the measure (offload TENSORS). */
#ifndef PC_MODELS_WORKLOAD_OFFLOAD_CHOICE_H
#define PC_MODELS_WORKLOAD_OFFLOAD_CHOICE_H

#include "models/workload/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Leaves of what a part sends, by pc_part_activations, at most `most` bytes, 0 or more: the rest stays on the GPU.
 *
 * A tensor's gain is what it frees, bytes times the time for which it is gone, for a second of the link, which is bytes
 * over bandwidth: so it goes by how long it is held alone ('PipeOffload', arXiv 2503.01328, section 3.2). F makes the
 * tensors of a part in order, and the backward pass frees them in the opposite one. So the first layers go first. Of
 * the layer that does not go whole the tensors go that F makes first, if they still fit. What B gives back of them is
 * taken to be as much of each byte. */
void pc_offload_limit(const pc_model *model, const pc_cut *cut, const pc_part *part, int64_t most,
                      pc_part_activation *activation);

#ifdef __cplusplus
}
#endif
#endif
