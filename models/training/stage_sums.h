/* stage_sums.h: what a stage's passes come to, and the rates of an iteration. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_STAGE_SUMS_H
#define PC_MODELS_TRAINING_STAGE_SUMS_H

#include "models/training/plan.h"

/* Of an iteration, at the plan's pace, on one GPU. */
typedef struct pc_stage_sums {
    double compute_s, tp_s, standard_error_s, flops;
} pc_stage_sums;

pc_stage_sums pc_plan_sum_stage(const pc_iteration_plan *plan, int device);

/* Of the stage whose passes take longest, what they wait for other stages and replicas aside. */
pc_stage_sums pc_plan_sum_busiest(const pc_iteration_plan *plan);

/* Sequences, FLOPs, what is sent, the longest passes; and MFU and HFU of an iteration whose time is known. */
void pc_plan_fill_in_rates(const pc_iteration_plan *plan, const pc_costs *costs, pc_iteration *iteration);

#endif
