/* dummy_wgrad.h: gradients of weights that nobody reads.
 *
 * Where the product that makes a weight's gradient adds it to those before (gradient_accumulation FUSED), autograd is
 * still to be given one. Transformer Engine gives it a tensor of the weight's shape, 16 bits wide, one for all weights
 * of that shape, which it makes once and keeps (transformer_engine/pytorch/module/base.py: get_dummy_wgrad).
 * Megatron-LM's own layers, of which the head is one, make one each time (megatron/core/tensor_parallel/layers.py:
 * LinearWithGradAccumulationAndAsyncCommunication); it counts as kept, too.
 */
#ifndef PC_MODELS_WORKLOAD_DUMMY_WGRAD_H
#define PC_MODELS_WORKLOAD_DUMMY_WGRAD_H

#include "models/workload/cut.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of those of a rank that has layers, a head, or both: 2 for each element of every shape that its trained
 * matrices have. 0 without the cut's dummy_wgrad, and with gradient_accumulation SEPARATE. */
int64_t pc_dummy_wgrad_bytes(const pc_model *model, const pc_cut *cut, bool has_layers, bool has_head);

#ifdef __cplusplus
}
#endif
#endif
