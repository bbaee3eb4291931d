/* replay.h: what a schedule comes to at given costs: times, bubble, memory, trace.
 *
 * Every stage is a processor that takes its passes in the schedule's order, and a memory that F fills and B, W, BW
 * empty. Every pair of neighbouring stages has a link each way, which carries one transfer after the other, in the
 * order of the passes that send them. Orders being given, all times are longest paths: twice the times are twice the
 * makespan, and a picosecond more in one place is no more than one for each time that the path comes by there. A pass
 * starts as soon as its stage is free and its input has arrived: F after F of the part before, B and BW after B or BW
 * of the part behind and F of their own, W after B, R after F and before B.
 */
#ifndef PC_MODELS_SCHEDULE_REPLAY_H
#define PC_MODELS_SCHEDULE_REPLAY_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/activation_kinds.h"
#include "models/schedule/costs.h"
#include "models/schedule/engine_trace.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a run is to be worked out. EVENTS: the engine runs everything, event by event. AUTO: a shortcut where it gives
 * the same result to the picosecond, else the engine. */
typedef enum pc_engine_mode { PC_ENGINE_AUTO, PC_ENGINE_EVENTS } pc_engine_mode;

/* How it was. PATHS: as longest paths, which is the engine's result where nothing shares a link and everything fits.
 * FLOWS: on the engine, which has events for flows alone; when a pass starts is known as soon as all that it waits for
 * is. EVENTS: on the engine, all of it. */
typedef enum pc_engine_way { PC_WAY_PATHS, PC_WAY_FLOWS, PC_WAY_EVENTS, PC_ENGINE_WAYS } pc_engine_way;

/* "paths", "flows", "events". */
const char *pc_engine_way_name(pc_engine_way way);

/* What that is, and why it may be done: "longest paths; nothing shares a link and ...". For headings. */
const char *pc_engine_way_words(pc_engine_way way);

/* What did not fit: the first pass, in simulated time, for which a device's memory was too small. */
typedef struct pc_out_of_memory {
    int device;
    pc_pass pass;
    pc_time time_ps;
    int64_t requested_bytes; /* what the pass asked for */
    int64_t level_bytes;     /* what was taken already */
    int64_t capacity_bytes;  /* the device's limit */
} pc_out_of_memory;

/* Passes in the order stage by stage, in each in the schedule's order; memory changes the same way. Columns. */
typedef struct pc_replay_trace {
    int64_t pass_count;
    int32_t *pass_device;
    pc_pass *pass;
    pc_time *pass_start_ps;
    pc_time *pass_end_ps;
    int64_t level_count; /* a row for every change of a device's activation memory, in time order in each device */
    int32_t *level_device;
    pc_time *level_time_ps;
    int64_t *level_bytes;             /* the level after the change */
    pc_activation_bytes *level_kinds; /* what it is made of; NULL where nobody knows */
    /* A row for everything that a pass waits for from another stage, in the order of the passes that wait. What a stage
     * hands to itself is none. */
    int64_t transfer_count;
    int32_t *transfer_from;     /* the stage that sends */
    int32_t *transfer_to;       /* the stage that receives */
    pc_pass *transfer_pass;     /* the pass on `transfer_to` that waits for it */
    pc_time *transfer_start_ps; /* when it leaves: the end of the pass that made it */
    pc_time *transfer_end_ps;   /* when it has arrived */
} pc_replay_trace;

typedef struct pc_replay {
    int devices;
    pc_time span_ps;             /* the longest over devices, from a device's first start to its last end */
    pc_time makespan_ps;         /* the last end over devices; the first pass starts at 0, or when its chunk is ready */
    double bubble_rate_span;     /* 1 - work / span; work: the busiest device's F, B, W and BW, m*(F+B+W) where all
                                  * stages are equal ('Zero Bubble', section 5) */
    double bubble_rate_makespan; /* 1 - work / makespan */
    pc_time *device_start_ps;    /* a number a device: first start, last end, time spent in passes */
    pc_time *device_end_ps;
    pc_time *device_busy_ps;
    int64_t *device_peak_bytes; /* the most activation memory held at once */
    int64_t peak_bytes;         /* the most over devices */
    uint64_t trace_hash;        /* of every pass's start and end: equal where, and practically only where, all are */
    bool out_of_memory;         /* the replay ended early: only oom and the peaks up to then mean anything */
    pc_out_of_memory oom;
    pc_engine_way way;
    pc_replay_trace trace;  /* empty unless asked for */
    pc_engine_trace engine; /* likewise; and empty unless `way` is EVENTS, which alone sets its event_count */
} pc_replay;

/* with_trace: every pass, transfer and level change is kept, and where the engine runs the schedule what it saw.
 *
 * waits_for_memory: a pass that does not fit waits until others have given back enough, and with it those that wait for
 * it. Its stage goes on with the next of its order that has none of that, and tries those that wait first
 * (PC_MEMORY_WAIT). What is sent then leaves in the order in which it is made. Nothing changes where everything fits.
 */
typedef struct pc_replay_options {
    bool with_trace;
    pc_engine_mode engine;
    bool waits_for_memory;
    pc_memory_limit memory_limit;
} pc_replay_options;

/* Replays `schedule` at `costs` (whose shape must be the schedule's); `options` may be NULL: no trace, AUTO, nothing
 * waits, no limit. Not fitting into memory is a result (out_of_memory), not an error: the first pass that did not fit,
 * or where passes wait, the one that waited first when nothing could run any more. PC_ERROR_INPUT, with words, where
 * the schedule is not valid (pc_schedule_check), a time it needs was not given, or a time runs over. AUTO: where
 * transfers are delays and everything fits, one walk finds the times (timing.h); else, and with EVENTS, the engine runs
 * the schedule, and the result is the same to the last bit, ten to twenty times slower. Free the result with
 * pc_replay_free. */
pc_code pc_replay_run(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *options,
                      pc_replay *replay, pc_error *error);

/* The same for times that are known already, of every pass by position, from whatever runs the schedule in its orders;
 * the costs say the memory alone. For the trace, `arrival_ps` says by position
 * when what a pass waits for from another stage has arrived; NULL: after the costs' delays. */
pc_code pc_replay_from_times(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                             const pc_time *end_ps, const pc_time *arrival_ps, bool with_trace, pc_replay *replay,
                             pc_error *error);

/* Frees what the replay owns and zeroes it; a zeroed one is fine. */
void pc_replay_free(pc_replay *replay);

#ifdef __cplusplus
}
#endif
#endif
