/* outline_units.h: what units of ZeRO 3 (units.h) are in an outline: their traffic, their kernels, their memory.
 * Private to models/training/.
 */
#ifndef PC_MODELS_TRAINING_OUTLINE_UNITS_H
#define PC_MODELS_TRAINING_OUTLINE_UNITS_H

#include "models/training/outline.h"
#include "models/training/units.h"

/* Whether the replicas' passes go unit by unit: ZeRO 3, and somebody to share with. */
bool pc_outline_has_units(const pc_outline *outline);

/* Whether a rank's share is fp32, as torch's: the weights that it gathers are those that it steps. */
bool pc_outline_has_wide_shards(const pc_outline *outline);

/* Whether parameters stay gathered from F to the backward pass; and, in pipelines, for the whole iteration. */
bool pc_outline_keeps_parameters(const pc_outline *outline);
bool pc_outline_gathers_once(const pc_outline *outline);

/* Whether only the last microbatch's backward pass reduces gradients, which stand whole until then. */
bool pc_outline_reduces_last(const pc_outline *outline);

/* What a chunk's units send, of a chunk whose sort is known. */
pc_code pc_outline_add_units(const pc_outline *outline, int device, int chunk, pc_chunk_units *units, pc_error *error);

/* How the layers and the ends of a part share the kernels of a pass of this kind: fills in pass->head_share and
 * embedding_share. */
pc_code pc_outline_share_kernels(const pc_outline *outline, const pc_part *part, pc_pass_kind kind, pc_pass_cost *pass,
                                 pc_error *error);

/* A pass that takes alone_ps without data parallelism, as units. For an outline that has some. */
pc_units pc_outline_units_of(const pc_outline *outline, int device, pc_pass pass, pc_time alone_ps);
pc_unit_rules pc_outline_unit_rules(const pc_outline *outline);

/* What a device holds of them all the time, beside buffers: FSDP's shards are fp32, and the optimizer's weights
 * themselves; gradients are whole until they are reduced. */
void pc_outline_unit_state(const pc_outline *outline, pc_device_outline *held);

/* Bytes of what is gathered, and of what collectives read and write beside it. */
int64_t pc_outline_unit_bytes(const pc_outline *outline, int device);

/* What a GPU sends for a chunk in an iteration of n F and as many backward passes, of which, R included, so many are
 * `uses` of its parameters. */
double pc_outline_unit_traffic(const pc_outline *outline, const pc_chunk_outline *chunk, double n, double uses);

#endif
