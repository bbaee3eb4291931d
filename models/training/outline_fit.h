/* outline_fit.h: the layout BALANCED_MEMORY: of the divisions whose stages fit in their GPUs' memory, the one whose
 * slowest stage is the fastest; if none fits, the one whose fullest stage lacks least. Private to models/training/.
 *
 * A stage holds no less with a layer more. So a stage that does not fit is given at least a layer less, and the others
 * are dealt the rest as layout_balance.h says, until all fit. No division that fits was passed over on the way, so none
 * has a faster slowest stage. The division that lacks least is found in the same way: what is no better than the best
 * one so far is passed over, until nothing is left. Both hold for layers that are alike. Layers that differ take
 * different memory in different places, and there these are good divisions that need not be the best.
 *
 * What a stage holds is counted as the iteration counts it (footprint.h), by the schedule's own order. An order that
 * is searched for depends on the division. With BALANCED it is searched for, so that what fits there fits here. With
 * any other division it counts with the most that it may hold by its name. If it adapts to the memory that there is, it
 * counts with the least that it can run in.
 */
#ifndef PC_MODELS_TRAINING_OUTLINE_FIT_H
#define PC_MODELS_TRAINING_OUTLINE_FIT_H

#include "models/training/outline.h"

/* Whether the division depends on more times than those of a layer and of both ends: that of copies beside passes, or
 * those which an order is made for that has no limit by its name. */
bool pc_outline_fits_by_costs(const pc_iteration_spec *spec);

/* Divides the layers of an outline anew that is complete, with a list of layers which is its own, as BALANCED divides
 * them. One whose memo is for what fits keeps any division if certainly none fits, and is not searched for. */
pc_code pc_outline_fit(pc_outline *outline, pc_error *error);

#endif
