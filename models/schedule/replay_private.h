/* replay_private.h: what the files replay*.c share. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_REPLAY_PRIVATE_H
#define PC_MODELS_SCHEDULE_REPLAY_PRIVATE_H

#include "engine/simulation.h"
#include "models/schedule/replay.h"
#include "models/schedule/timing.h"

#include <stdbool.h>

/* Every pass's start and end, whichever way they were found. */
typedef struct pc_replay_times {
    const pc_time *start_ps, *end_ps;
    const pc_stage_timing *stages;
    const pc_level_trace *levels; /* the engine's, or with copies; NULL where the orders say them */
    const pc_time *arrival_ps;    /* of what a pass waits for, by position; NULL where the costs say it */
} pc_replay_times;

/* In replay.c. Room for a number a device, in a zeroed replay; false where memory is short. Then all but the hash and
 * the way; with_trace: the trace, too, but for the engine's own. */
bool pc_replay_make_arrays(pc_replay *replay, int devices);
pc_code pc_replay_fill_in(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_times *found,
                          bool with_trace, pc_replay *replay, pc_error *error);

/* In replay_trace.c. What is made before a failure stays in the trace, which is the replay's to free. */
pc_code pc_replay_keep_trace(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_times *found,
                             pc_replay_trace *trace, pc_error *error);

/* In replay_engine.c. Runs the schedule event by event, and fills in all of a zeroed replay. */
pc_code pc_replay_on_engine(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *how,
                            pc_replay *replay, pc_error *error);

#endif
