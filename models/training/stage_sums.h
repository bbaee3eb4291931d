/* stage_sums.h: what a stage's passes come to, and the rates of an iteration. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_STAGE_SUMS_H
#define PC_MODELS_TRAINING_STAGE_SUMS_H

#include "models/training/outline.h"

/* How many passes of each kind and chunk a stage's order has: of schedules that mix them, backward passes are each one
 * BW or a B and a W. */
typedef int32_t pc_pass_counts[PC_CHUNKS_MAX][PC_PASS_KINDS];
void pc_outline_count_passes(const pc_schedule *schedule, int device, pc_pass_counts counts);

/* Of all passes of the schedule, at the outline's pace, on one GPU. */
typedef struct pc_stage_sums {
    double compute_s, tp_s, cp_s, ep_s, standard_error_s, flops;
} pc_stage_sums;

pc_stage_sums pc_outline_sum_stage(const pc_outline *outline, const pc_schedule *schedule, int device);

/* Of the stage whose passes take longest, what they wait for other stages and replicas aside. */
pc_stage_sums pc_outline_sum_busiest(const pc_outline *outline, const pc_schedule *schedule);

/* Sequences, FLOPs, what is sent, the longest passes; and MFU and HFU of an iteration whose time is known. */
void pc_outline_fill_in_rates(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                              pc_iteration *iteration);

#endif
