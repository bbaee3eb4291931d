/* cost.h: the interface of a cost: an operation in, seconds out, with how sure that is.
 *
 * `roofline` (roofline.h) answers from a datasheet and a few parameters a GPU; calibrated profiles answer from
 * measurements. Kernels only: what collectives take is the machine's (models/machine/collective.h).
 */
#ifndef PC_MODELS_COST_COST_H
#define PC_MODELS_COST_COST_H

#include "models/workload/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_estimate {
    double seconds;        /* of one of the operation, not of its repeats; on the GPU, launches overlapped */
    double standard_error; /* seconds */
} pc_estimate;

typedef struct pc_cost_model {
    const void *self; /* borrowed: outlives the model */
    pc_estimate (*kernel)(const void *self, const pc_operation *operation);
    double launch_s; /* host time a kernel launch: a pass is no shorter than its launches */
} pc_cost_model;

/* One pass as the sum of its kernels, without its collectives. `launch_bound_s` is what its launches take on the host;
 * the GPU's time of the pass is the larger of the two sums. */
typedef struct pc_pass_estimate {
    double kernel_s, launch_bound_s, standard_error;
} pc_pass_estimate;
pc_pass_estimate pc_cost_pass(const pc_cost_model *cost, const pc_operations *operations);

#ifdef __cplusplus
}
#endif
#endif
