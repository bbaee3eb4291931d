/* low_precision_check.h: what a recipe of few bits asks of a model's dimensions. Private to models/workload/. */
#ifndef PC_MODELS_WORKLOAD_LOW_PRECISION_CHECK_H
#define PC_MODELS_WORKLOAD_LOW_PRECISION_CHECK_H

#include "models/workload/cut.h"

/* PC_ERROR_INPUT and the rule that the recipe's counts break, or a side of a product in few bits which is no multiple
 * of what its format asks. Of a model and a cut that are checked but for that. */
pc_code pc_low_precision_check_cut(const pc_model *model, const pc_cut *cut, pc_error *error);

#endif
