/* replay_transfers.h: what goes between stages, for the trace. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_REPLAY_TRANSFERS_H
#define PC_MODELS_SCHEDULE_REPLAY_TRANSFERS_H

#include "models/schedule/costs.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/replay.h"

/* Fills in the transfers of a trace whose passes are there. `arrival_ps` says by position when what a pass waits for
 * has arrived, which is one thing at most; NULL: when the costs' delay after its sender's end is over. */
pc_code pc_trace_add_transfers(const pc_pass_index *index, const pc_costs *costs, const pc_time *arrival_ps,
                               pc_replay_trace *trace, pc_error *error);

#endif
