/* traffic.h: what the GPUs of an iteration send. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_TRAFFIC_H
#define PC_MODELS_TRAINING_TRAFFIC_H

#include "models/training/plan.h"

pc_sent pc_plan_sent(const pc_iteration_plan *plan);

#endif
