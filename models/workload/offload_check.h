/* offload_check.h: whether a cut can offload what it asks for, and which layers of a part go. Private to workload. */
#ifndef PC_MODELS_WORKLOAD_OFFLOAD_CHECK_H
#define PC_MODELS_WORKLOAD_OFFLOAD_CHECK_H

#include "models/workload/cut.h"

/* PC_ERROR_INPUT, with what contradicts it and what to do, as far as model and cut say it. */
pc_code pc_offload_check(const pc_model *model, const pc_cut *cut, pc_error *error);

/* Of the `layers` of a part those that have something on the host. */
int64_t pc_offloaded_layers(const pc_cut *cut, int parts, int part, int64_t layers);

#endif
