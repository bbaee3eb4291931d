/* iteration_spec.h: what a run of an iteration is asked, before anything is computed: whether its numbers can be. */
#ifndef PC_MODELS_TRAINING_ITERATION_SPEC_H
#define PC_MODELS_TRAINING_ITERATION_SPEC_H

#include "engine/error.h"
#include "models/training/iteration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PC_ERROR_INPUT, one line, where a model, a machine or a number is out of range, or two choices do not go together.
 * The cut is checked with its outline (outline.h). */
pc_code pc_iteration_spec_check(const pc_iteration_spec *spec, pc_error *error);

/* Whether F and BW run together, of a spec that asks for it (overlaps_pairs): its schedule has pairs, of so many stages
 * and chunks, and nothing else of it keeps them apart. */
bool pc_iteration_can_pair(const pc_iteration_spec *spec);

/* Of a spec with rows of exchanged heads (A2A_P2P) that has no cp_a2a: as many ranks as can, in one domain, whose links
 * are the fastest. Else, and of what cannot be, nothing: a rule of the cut says so. */
void pc_iteration_fill_exchange(pc_iteration_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
