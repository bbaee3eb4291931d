/* state.h: what a stage does with its parameters: holds them, reduces their gradients, steps, gathers them. Private to
 * models/training/. */
#ifndef PC_MODELS_TRAINING_STATE_H
#define PC_MODELS_TRAINING_STATE_H

#include "models/training/plan.h"

/* Fills in the chunks' collectives, and the devices' state, memory and step, of a plan whose parts are known. */
pc_code pc_plan_add_state(pc_iteration_plan *plan, pc_error *error);

/* Two ranks on different stages, as a group. */
pc_group pc_plan_pair(const pc_iteration_plan *plan, int stage, int other);

/* The tied embedding's gradient, of one rank. */
double pc_plan_tied_bytes(const pc_iteration_plan *plan);

enum { PC_PARAMETER_BYTES = 2 };

/* The bytes of one of the chunk's buckets, by bytes a parameter. */
double pc_plan_bucket_bytes(const pc_iteration_plan *plan, int device, int chunk, int bytes_each);

/* What the gradients of one bucket go through, over plan->dp. */
pc_collective pc_plan_reduction(const pc_iteration_plan *plan);

#endif
