/* outline_balance.h: the layout BALANCED, by what an outline's passes take. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_OUTLINE_BALANCE_H
#define PC_MODELS_TRAINING_OUTLINE_BALANCE_H

#include "models/training/outline.h"

/* PC_ERROR_INPUT if the schedule cannot have that layout. */
pc_code pc_outline_check_balanced(const pc_iteration_spec *spec, pc_error *error);

/* Makes a list of it, in the outline's cut: of an outline whose cut, cost and groups are there. Other layouts stay. */
pc_code pc_outline_balance(pc_outline *outline, pc_error *error);

#endif
