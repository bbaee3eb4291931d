/* timing_private.h: what the files timing*.c share. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_TIMING_PRIVATE_H
#define PC_MODELS_SCHEDULE_TIMING_PRIVATE_H

#include "models/schedule/timing.h"

/* PC_OK where the costs have the schedule's shape and the walk can count with them. Which times are given it does not
 * look at (pc_timing_check_given). PC_ERROR_INPUT names what is wrong. */
pc_code pc_timing_check_costs(const pc_schedule *schedule, const pc_costs *costs, pc_error *error);

#endif
