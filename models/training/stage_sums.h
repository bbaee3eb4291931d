/* stage_sums.h: what a stage's passes come to, and the rates of an iteration. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_STAGE_SUMS_H
#define PC_MODELS_TRAINING_STAGE_SUMS_H

#include "models/training/outline.h"

/* Of an iteration, at the outline's pace, on one GPU. */
typedef struct pc_stage_sums {
    double compute_s, tp_s, cp_s, ep_s, standard_error_s, flops;
} pc_stage_sums;

pc_stage_sums pc_outline_sum_stage(const pc_outline *outline, int device);

/* Of the stage whose passes take longest, what they wait for other stages and replicas aside. */
pc_stage_sums pc_outline_sum_busiest(const pc_outline *outline);

/* Sequences, FLOPs, what is sent, the longest passes; and MFU and HFU of an iteration whose time is known. */
void pc_outline_fill_in_rates(const pc_outline *outline, const pc_costs *costs, pc_iteration *iteration);

#endif
