/* events.h: a whole iteration on the engine (lower.h), and what comes of it. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_EVENTS_H
#define PC_MODELS_TRAINING_EVENTS_H

#include "models/training/lower.h"

/* Runs it. *iteration_ps: with NORM when all is over; with POST_VALIDATION iterations follow each other at the stages'
 * own pace (finish.h), which takes a run for every stage that may be the slowest. 0 where passes wait in vain. */
pc_code pc_events_run(const pc_outline *outline, const pc_schedule *schedule, const pc_flows_spec *how,
                      pc_flows_result *result, pc_time *iteration_ps, pc_error *error);

/* What each replica's passes take, drawn as pc_expand_run draws it; over flows without transfers. `*block` owns it,
 * with times->duration_ps; pc_free both. */
pc_code pc_events_draw(const pc_outline *outline, const pc_schedule *schedule, bool is_closed, pc_replica_times **times,
                       pc_time **block, pc_error *error);

/* Puts the passes of a schedule, and what was found of them, into the order in which they ran. */
pc_code pc_events_reorder(pc_schedule *schedule, bool has_pairs, pc_flows_result *result, pc_error *error);

#endif
