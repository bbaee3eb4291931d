/* finish.h: from the end of the pipelines to the end of the iteration: the last gradients, the norm, the step. Private
 * to models/training/. */
#ifndef PC_MODELS_TRAINING_FINISH_H
#define PC_MODELS_TRAINING_FINISH_H

#include "models/training/expand.h"
#include "models/training/plan.h"

/* Until when each stage's stream of collectives is taken by gradients of other passes than the last ones, backlog_ps
 * [devices]: ZeRO 2 reduces those of every microbatch. 0 otherwise. */
void pc_plan_find_backlog(const pc_iteration_plan *plan, const pc_schedule *schedule, const pc_time *end_ps,
                          pc_time *backlog_ps);

/* When each stage's gradients are reduced, done_ps [devices]: the last passes' buckets, as they become ready, one after
 * the other on a stage's one stream, each at what it takes when alone. `ends` are those of one pipeline, or the latest
 * of all replicas: a bucket waits for them all. */
void pc_plan_reduce_gradients(const pc_iteration_plan *plan, int without, const pc_pipeline_ends *ends,
                              const pc_time *backlog_ps, pc_time *done_ps);

/* How long a stage's parameters hold back its first F so that it waits for none on its way, own_ready_ps [devices];
 * `costs` are those of the passes. */
void pc_plan_own_ready(const pc_iteration_plan *plan, const pc_costs *costs, pc_time *own_ready_ps);

/* The iteration from its first gathering of parameters to its last step, overhead included, given how long each stage's
 * first pass is held back (own_ready_ps), when it starts (start_ps), and when the stage has its gradients (done_ps,
 * overwritten). */
pc_code pc_plan_finish(const pc_iteration_plan *plan, int without, const pc_time *own_ready_ps, const pc_time *start_ps,
                       pc_time *done_ps, pc_time *iteration_ps, pc_error *error);

/* What of that the norm and the step of the slowest stage are. */
pc_time pc_plan_step_ps(const pc_iteration_plan *plan);

#endif
