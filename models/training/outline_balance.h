/* outline_balance.h: the layouts BALANCED and BALANCED_MEMORY, by what an outline's passes take. Private to
 * models/training/. */
#ifndef PC_MODELS_TRAINING_OUTLINE_BALANCE_H
#define PC_MODELS_TRAINING_OUTLINE_BALANCE_H

#include "models/training/outline.h"
#include "models/workload/layout_balance.h"

/* PC_ERROR_INPUT if the schedule cannot have the spec's. */
pc_code pc_outline_check_balanced(const pc_iteration_spec *spec, pc_error *error);

/* Makes a list of either, in the outline's cut, as if memory had no end: of an outline whose cut, cost and groups are
 * there. Other layouts stay. */
pc_code pc_outline_balance(pc_outline *outline, pc_error *error);

/* What such a list is made by. */
typedef struct pc_layer_dealing {
    pc_layout_times times;
    int stage_of_part[PC_PARTS_MAX];
} pc_layer_dealing;
pc_code pc_outline_dealing(const pc_outline *outline, pc_layer_dealing *dealing, pc_error *error);

#endif
