/* traffic.h: what the GPUs of an iteration send. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_TRAFFIC_H
#define PC_MODELS_TRAINING_TRAFFIC_H

#include "models/training/outline.h"

pc_sent pc_outline_sent(const pc_outline *outline, const pc_schedule *schedule);

#endif
