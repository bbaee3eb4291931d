/* engine_fill.h: the engine's own trace of a replayed schedule. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_ENGINE_FILL_H
#define PC_MODELS_SCHEDULE_ENGINE_FILL_H

#include "engine/simulation.h"
#include "models/schedule/costs.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/engine_trace.h"
#include "models/schedule/replay.h"

/* A schedule that the engine ran: task i of `result` is the pass at position i. Over links, transfer_task says by
 * position the task that brings what a pass waits for, or PC_NO_PASS; where transfers are delays it is NULL. */
typedef struct pc_replayed_run {
    const pc_pass_index *index;
    const pc_costs *costs;
    pc_memory_limit memory_limit;
    const pc_simulation_result *result;
    const int32_t *transfer_task;
    pc_time filled_ps; /* for how long a transfer fills its link */
} pc_replayed_run;

/* Fills in `made`, an empty one, from the run and its trace, whose passes, levels and transfers are there. What was
 * made before a failure stays in it. */
pc_code pc_engine_fill(const pc_replayed_run *run, const pc_replay_trace *trace, pc_engine_trace *made,
                       pc_error *error);

#endif
