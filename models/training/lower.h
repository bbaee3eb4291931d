/* lower.h: an iteration as an engine program: passes, transfers, collectives of data parallelism, the end; and, if
 * asked for, every device's memory. Private to models/training/.
 *
 * Over network flows what is under way at once shares links; but what a stage sends its neighbours over one link goes
 * out message by message, in the order of its passes. Over a closed network all of it takes what it takes alone, to the
 * picosecond what timing.h and finish.h say: the same tasks over links that are not shared.
 */
#ifndef PC_MODELS_TRAINING_LOWER_H
#define PC_MODELS_TRAINING_LOWER_H

#include "engine/program.h"
#include "engine/simulation.h"
#include "models/schedule/engine_trace.h"
#include "models/training/footprint.h"
#include "models/training/outline.h"

/* Whether two sorts of traffic can meet on a link: collectives of data parallelism that overlap passes, and transfers
 * between stages, both inside domains or both beyond them. */
bool pc_outline_meets(const pc_outline *outline);

/* What a replica's passes take, borrowed; NULL if it is what the outline says. Over flows only the first counts. */
typedef struct pc_replica_times {
    const pc_time *duration_ps; /* by position, over flows without transfers */
    const pc_time *message_ps;  /* by position of the pass that sends */
    const pc_time *ready_ps;    /* [devices][chunks]: F starts no earlier */
} pc_replica_times;

typedef struct pc_flows_spec {
    int replicas;                  /* at least 1 */
    const pc_replica_times *times; /* [replicas]; NULL: all the outline's */
    bool is_closed;
    bool has_memory;       /* each device has its memory, which holds what it holds all the time from the start */
    bool waits_for_memory; /* passes that do not fit wait; else that they do not is noted */
    bool with_trace;
    int held_device; /* whose work begins so much later; */
    pc_time held_ps; /* 0: nobody's */
} pc_flows_spec;

/* One replica over flows, nothing else. */
static inline pc_flows_spec pc_flows_spec_default(void) {
    return (pc_flows_spec){.replicas = 1};
}

/* When everything happened: passes by position, of the first replica; the rest over all replicas. Owned;
 * pc_flows_free. */
typedef struct pc_flows_result {
    pc_time *start_ps, *end_ps;
    pc_time *arrival_ps;    /* of what a pass waits for from another stage, by position; elsewhere 0 */
    pc_time *begin_ps;      /* [devices]: when the stage's own work begins, the earliest */
    pc_time *step_end_ps;   /* [devices]: when the stage's step ends, the latest */
    pc_time whole_ps;       /* when the last one ends, and the constant behind it */
    pc_time link_filled_ps; /* how long the link is filled that is filled longest */
    /* Where it has memories: of the first replica's. */
    int64_t *peak_bytes;   /* [devices] */
    pc_time *overdrawn_ps; /* [devices]: when what it holds first was more than its capacity; -1: never */
    /* Where passes wait: whether some wait for ever, the first of which this is. Times are then no times. */
    bool is_stuck;
    pc_pass_stuck stuck;
    pc_engine_trace trace; /* if asked for */
} pc_flows_result;

pc_code pc_flows_run(const pc_outline *outline, const pc_schedule *schedule, const pc_flows_spec *how,
                     pc_flows_result *result, pc_error *error);
void pc_flows_free(pc_flows_result *result);

/* The sealed program that pc_flows_run runs, for those who want to watch it; pc_program_free. */
pc_code pc_flows_program(const pc_outline *outline, const pc_schedule *schedule, const pc_flows_spec *how,
                         pc_program **program, pc_error *error);

#endif
