/* memory_kinds.h: what a stage's memory is made of, at its peak and over time. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_MEMORY_KINDS_H
#define PC_MODELS_TRAINING_MEMORY_KINDS_H

#include "models/training/outline.h"

/* Of an iteration that fits, whose memory footprint.h has filled in: splits the fullest stage's peak into kinds; with a
 * trace every stage's, and each of its levels of activations. */
pc_code pc_memory_kinds_fill_in(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                                bool with_trace, pc_iteration *iteration, pc_error *error);

#endif
