/* simulation.h: runs a program on the engine.
 *
 * A simulation keeps its memory from run to run: nothing is allocated for a program that is no larger than one before.
 */
#ifndef PC_ENGINE_SIMULATION_H
#define PC_ENGINE_SIMULATION_H

#include "engine/api.h"
#include "engine/error.h"
#include "engine/program.h"
#include "engine/simtime.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_simulation pc_simulation;

PC_API pc_code pc_simulation_create(pc_simulation **simulation, pc_error *error);
PC_API void pc_simulation_free(pc_simulation *simulation);

typedef enum pc_outcome {
    PC_OUTCOME_DONE,
    PC_OUTCOME_OUT_OF_MEMORY, /* a memory could not hold what a task takes; the run ended there */
    PC_OUTCOME_DEADLOCK       /* tasks are left that wait for each other */
} pc_outcome;

/* Columns of the trace: a memory's level and a link's load after each change, in the order of simulated time. */
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
    int32_t task;            /* OUT_OF_MEMORY: which asked; DEADLOCK: the first that is left */
    pc_time time_ps;         /* OUT_OF_MEMORY: when; otherwise the last task's end */
    int64_t level_bytes;     /* OUT_OF_MEMORY: what was taken before */
    uint64_t event_count;    /* events handled */
    const pc_time *start_ps; /* a number a task; -1 where it did not start or end */
    const pc_time *end_ps;
    const int64_t *peak_bytes; /* a number a memory */
    uint64_t trace_hash;       /* of all starts and ends, in the order of task numbers */
    pc_level_trace levels;     /* empty unless asked for */
    pc_load_trace loads;
} pc_simulation_result;

/* Runs a sealed program from time zero to its end. A program that does not fit or locks itself up is an outcome, not an
 * error; errors are a lack of memory, simulated time running over, and a task that gives back more than its memory
 * holds. */
PC_API pc_code pc_simulation_run(pc_simulation *simulation, const pc_program *program, bool with_trace,
                                 pc_simulation_result *result, pc_error *error);

/* The trace_hash of `count` starts and ends, for those who come by them in another way. */
PC_API uint64_t pc_trace_hash(const pc_time *start_ps, const pc_time *end_ps, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
