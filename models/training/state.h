/* state.h: what a stage does with its parameters: holds them, reduces their gradients, steps, gathers them. Private to
 * models/training/. */
#ifndef PC_MODELS_TRAINING_STATE_H
#define PC_MODELS_TRAINING_STATE_H

#include "models/training/outline.h"

/* Fills in the chunks' collectives, and the devices' state, memory and step, of an outline whose parts are known. */
pc_code pc_outline_add_state(pc_outline *outline, pc_error *error);

/* Of an outline that has it all, what depends on ZeRO and on what of the state is on the host, anew. */
pc_code pc_outline_share_state(pc_outline *outline, pc_error *error);

/* Boundary tensors of a stage that has a neighbour. Shared, these are four: an activation and its gradient, on their
 * way out and in. Of each microbatch's own, two are on their way: a received activation and a gradient to send. Beside
 * them stand, for every microbatch, what a chunk has put out and its gradient. Of the chunk with the head it is logits.
 */
int64_t pc_outline_boundary_bytes(const pc_outline *outline, int device);

/* Two ranks on different stages, as a group. */
pc_group pc_outline_pair(const pc_outline *outline, int stage, int other);

/* The tied embedding's gradient, of one rank. */
double pc_outline_tied_bytes(const pc_outline *outline);

enum { PC_PARAMETER_BYTES = 2 };

#endif
