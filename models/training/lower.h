/* lower.h: an iteration's passes, transfers and collectives of data parallelism as an engine program, in which what is
 * under way at once shares links; but what a stage sends its neighbours over one link goes out message by message, in
 * the order of its passes. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_LOWER_H
#define PC_MODELS_TRAINING_LOWER_H

#include "engine/program.h"
#include "models/training/plan.h"

/* Whether two sorts of traffic can meet on a link: collectives of data parallelism that overlap passes, and transfers
 * between stages, both inside domains or both beyond them. */
bool pc_plan_meets(const pc_iteration_plan *plan);

/* When everything happened: passes by position; and when each stage has its gradients reduced (or ends its last pass).
 * Owned; pc_flows_free. */
typedef struct pc_flows_result {
    pc_time *start_ps, *end_ps;
    pc_time *done_ps;       /* [devices] */
    pc_time *arrival_ps;    /* of what a pass waits for from another stage, by position; elsewhere 0 */
    pc_time link_filled_ps; /* how long the link is filled that is filled longest */
} pc_flows_result;

pc_code pc_flows_run(const pc_iteration_plan *plan, const pc_schedule *schedule, pc_flows_result *result,
                     pc_error *error);
void pc_flows_free(pc_flows_result *result);

/* The sealed program that pc_flows_run runs, for those who want to watch it; pc_program_free. */
pc_code pc_flows_program(const pc_iteration_plan *plan, const pc_schedule *schedule, pc_program **program,
                         pc_error *error);

#endif
