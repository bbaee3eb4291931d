/* simulation.h: runs a program on the engine.
 *
 * A simulation keeps its memory from run to run: nothing is allocated for a program that is no larger than one before.
 */
#ifndef PC_ENGINE_SIMULATION_H
#define PC_ENGINE_SIMULATION_H

#include "engine/error.h"
#include "engine/program.h"
#include "engine/simtime.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_simulation pc_simulation;

pc_code pc_simulation_create(pc_simulation **simulation, pc_error *error);
void pc_simulation_free(pc_simulation *simulation);

typedef enum pc_outcome {
    PC_OUTCOME_DONE,
    PC_OUTCOME_OUT_OF_MEMORY, /* a memory could not hold what a task takes: the run ended there; or nothing else was
                               * left to run, where tasks wait for memory */
    PC_OUTCOME_DEADLOCK       /* tasks are left that wait for each other */
} pc_outcome;

/* Columns of the trace: a memory's level after each change, and a link's load after each instant at which it changed,
 * in the order of simulated time. */
typedef struct pc_level_trace {
    int64_t count;
    const int32_t *memory;
    const pc_time *time_ps;
    const int64_t *level_bytes;
} pc_level_trace;

typedef struct pc_load_trace {
    int64_t count;
    const int32_t *link;
    const pc_time *time_ps;
    const double *bytes_per_s; /* the sum of the flows' rates; a link's utilisation is this over its bandwidth */
} pc_load_trace;

/* What a run gave. The arrays are the simulation's, and stand until its next run. */
typedef struct pc_simulation_result {
    pc_outcome outcome;
    int32_t task;            /* OUT_OF_MEMORY: which asked, or of those that wait the first; DEADLOCK: the first left */
    pc_time time_ps;         /* OUT_OF_MEMORY: when the run ended; otherwise the last task's end */
    int64_t level_bytes;     /* OUT_OF_MEMORY: what was taken then */
    uint64_t event_count;    /* events handled */
    const pc_time *start_ps; /* a number a task; -1 if it did not start or end */
    const pc_time *end_ps;
    const pc_time *ready_ps;     /* when all that it waits for was there, delays included; -1 if it was not. A part's
                                  * is its task's. From then to its start it waits for its processor, or for memory */
    const int64_t *peak_bytes;   /* a number a memory */
    const pc_time *overdrawn_ps; /* a number a memory: when its level first went beyond the capacity; -1: never */
    uint64_t trace_hash;         /* of all starts and ends, in the order of task numbers */
    pc_level_trace levels;       /* empty unless asked for */
    pc_load_trace loads;
} pc_simulation_result;

/* with_trace: levels and loads are kept. every_event: every task has an event for its start and one for its end, and
 * every flow one for each. Without it, what needs no event has none, which changes no time: see docs/engine.md. */
typedef struct pc_simulation_options {
    bool with_trace, every_event;
} pc_simulation_options;

/* Runs a sealed program from time zero to its end; `options` may be NULL: neither. A program that does not fit or locks
 * itself up is an outcome, not an error; errors are a lack of memory, simulated time running over, and a task that
 * gives back more than its memory holds. */
pc_code pc_simulation_run(pc_simulation *simulation, const pc_program *program, const pc_simulation_options *options,
                          pc_simulation_result *result, pc_error *error);

/* The trace_hash of `count` starts and ends, for those who come by them in another way. */
uint64_t pc_trace_hash(const pc_time *start_ps, const pc_time *end_ps, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
