/* host_time.h: what the host takes for a pass of an eager program. Private to models/training/.
 *
 * A pass lasts at least as long as its host takes to launch it (pass_costs.c). A kernel takes launch_s. But an eager
 * program of Megatron-LM and Transformer Engine runs Python, allocations and autograd for each operation, which take
 * far longer than a launch: with counts_modules every operation takes module_s of the GPU's file, with its first
 * kernel, and
 *
 *     host = sum over operations of module_s + (launches - 1) * (expert_s if the launches are experts', else launch_s)
 *
 * An operation is a product, an attention, a norm, a cast, a collective, or what stands between. What finds a tensor's
 * largest number belongs to the cast behind it, and takes its launches alone. What a graph has captured is one
 * operation (operations_private.h, pc_add_graph), and an iteration that is captured as a whole has no host. */
#ifndef PC_MODELS_TRAINING_HOST_TIME_H
#define PC_MODELS_TRAINING_HOST_TIME_H

#include "models/training/outline.h"

/* Seconds of one operation on the host, whose first kernel takes at least first_s. */
double pc_host_operation_s(const pc_outline *outline, const pc_operation *operation, double first_s);

/* Seconds of all operations of a pass. */
double pc_host_pass_s(const pc_outline *outline, const pc_operations *operations);

#endif
