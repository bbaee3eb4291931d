/* state.h: what a stage does with its parameters: holds them, reduces their gradients, steps, gathers them. Private to
 * models/training/. */
#ifndef PC_MODELS_TRAINING_STATE_H
#define PC_MODELS_TRAINING_STATE_H

#include "models/training/outline.h"

/* Fills in the chunks' collectives, and the devices' state, memory and step, of an outline whose parts are known. */
pc_code pc_outline_add_state(pc_outline *outline, pc_error *error);

/* Two ranks on different stages, as a group. */
pc_group pc_outline_pair(const pc_outline *outline, int stage, int other);

/* The tied embedding's gradient, of one rank. */
double pc_outline_tied_bytes(const pc_outline *outline);

enum { PC_PARAMETER_BYTES = 2 };

/* Of one of the chunk's buckets: those parameters that are trained. */
double pc_outline_gradient_bytes(const pc_outline *outline, int device, int chunk);

/* What the gradients of one bucket go through over the group that pc_outline_reducing gives. That is outline->shard,
 * and a share of them is then all-reduced over outline->replicate, if that has ranks. Where whole tensors are given to
 * ranks it is all of outline->dp, and there is no second one. */
pc_collective pc_outline_reduction(const pc_outline *outline);
const pc_group *pc_outline_reducing(const pc_outline *outline);
bool pc_outline_reduces_twice(const pc_outline *outline);

/* What brings the parameters of one bucket back, over outline->shard: an all-gather; or, where whole tensors are given
 * to ranks, the bucket's part of their broadcasts. */
pc_collective_course pc_outline_gathering(const pc_outline *outline, int device, int chunk);

#endif
