/* outline_restate.h: an outline made over for another sharing of the state. Private to models/. */
#ifndef PC_MODELS_TRAINING_OUTLINE_RESTATE_H
#define PC_MODELS_TRAINING_OUTLINE_RESTATE_H

#include "models/training/outline.h"

/* Who shares ZeRO's state, and who holds the same share of it, of an outline whose replicas are placed. */
void pc_outline_split_replicas(pc_outline *outline);

/* Whether its parts are those of the spec. They are if that differs in nothing but ZeRO's level, the group that shares
 * state, the state that is on the host, and overlaps other than overlaps_tp. They are not where weights that ZeRO 3
 * gathers come to passes in other ways, nor where layers are divided by what state takes. */
bool pc_outline_can_restate(const pc_outline *outline, const pc_iteration_spec *spec);

/* Whether parts cost the same under a spec that differs in its order of ranks and its overlaps alone, so that layers
 * are balanced alike. */
bool pc_outline_has_parts_of(const pc_outline *outline, const pc_iteration_spec *spec);

/* Makes the outline that of such a spec, as pc_outline_make_with would make it, in a fraction of the time. Failed, it
 * is good for nothing but pc_outline_free. */
pc_code pc_outline_restate(pc_outline *outline, const pc_iteration_spec *spec, pc_error *error);

#endif
