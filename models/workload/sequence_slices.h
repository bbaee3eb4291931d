/* sequence_slices.h: how a microbatch is cut along its sequence into slices, which a pipeline runs one after the other
 * (Seq1F1B, Sun et al. 2024, arXiv 2406.03488).
 *
 * Attention is causal: a slice's queries see the keys of its own tokens and of all slices before it, so that of slices
 * of as many tokens the later ones are more work.
 */
#ifndef PC_MODELS_WORKLOAD_SEQUENCE_SLICES_H
#define PC_MODELS_WORKLOAD_SEQUENCE_SLICES_H

#include "engine/error.h"
#include "models/workload/cut.h"
#include "models/workload/model.h"

#include <stdint.h>

typedef struct pc_sequence_slice {
    int64_t start, tokens; /* of each sequence */
} pc_sequence_slice;

/* Cuts come after whole granules: tp tokens where sequence parallelism cuts them further, else one. */
int64_t pc_sequence_granule(const pc_cut *cut);

/* Slice `index` of pc_cut_slices(cut), for a checked cut. EVEN: as many granules each; what is left over goes one by
 * one to the first slices. FLOPS: so that each is as many FLOPs of a layer (section 3.3 of the paper), cut after the
 * granule that comes nearest to it. So a slice is off its share by no more than the FLOPs of one granule at its place.
 */
pc_sequence_slice pc_sequence_slice_of(const pc_model *model, const pc_cut *cut, int index);

/* Forward FLOPs of one layer of the whole model for the first `tokens` of a sequence: 2 t M + 2 t^2 a d of a matrices'
 * elements M, a heads of d; the mask's saving is counted. */
double pc_sequence_flops(const pc_model *model, int64_t tokens);

/* PC_ERROR_INPUT where the cut has slices, and not room for them or something beside them that does not go with them.
 */
pc_code pc_sequence_slices_check(const pc_model *model, const pc_cut *cut, pc_error *error);

#endif
