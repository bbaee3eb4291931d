/* outline_pairs.h: how long two passes of an outline take together. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_OUTLINE_PAIRS_H
#define PC_MODELS_TRAINING_OUTLINE_PAIRS_H

#include "models/training/outline.h"

/* Whether the schedule has pairs that run as such: the spec says so, and the generator has them. */
bool pc_outline_has_pairs(const pc_outline *outline);

/* PC_ERROR_INPUT, one line, where the spec has pairs run together beside what does not know them. */
pc_code pc_iteration_check_pairs(const pc_iteration_spec *spec, pc_error *error);

/* Adds the times of pairs F&BW to costs whose durations are there: both passes' less what communication of one hides
 * behind computation of the other (pair_overlap.h). That is all collectives within passes, of tensor and context
 * parallelism too; kernels beside them lose the spec's overlap_slowdown. Launches of both take what they take, and the
 * ZeRO 2 reductions of a pass are not hidden. without: as in pc_outline_costs. */
pc_code pc_outline_set_pairs(const pc_outline *outline, int without, pc_costs *costs, pc_error *error);

/* Of costs with pairs, those reductions alone, where the outline's have changed: links of a bad day, say. */
void pc_outline_set_behind_pairs(const pc_outline *outline, int without, pc_costs *costs);

/* Seconds that pairs hide on the busiest stage, over all microbatches; 0 without pairs. */
double pc_outline_hidden_s(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs);

#endif
