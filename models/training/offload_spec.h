/* offload_spec.h: whether machine and schedule can do what an iteration offloads. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_OFFLOAD_SPEC_H
#define PC_MODELS_TRAINING_OFFLOAD_SPEC_H

#include "models/training/iteration.h"

/* PC_ERROR_INPUT, with what stands against it and what to do. */
pc_code pc_offload_can_be(const pc_iteration_spec *spec, pc_error *error);

#endif
