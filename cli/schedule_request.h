/* schedule_request.h: what `pipecast schedule` was asked for, and what that means in the library's units. */
#ifndef PC_CLI_SCHEDULE_REQUEST_H
#define PC_CLI_SCHEDULE_REQUEST_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/replay.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum schedule_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_TEXT, FORMAT_TORCH_CSV, FORMAT_BLOCK } schedule_format;

typedef struct schedule_request {
    const char *name;                      /* as messages call it; of a block what stands in its file */
    const char *block;                     /* the file of a block in place of a name; NULL where not given */
    int block_steps;                       /* a pc_block_steps; -1 where not given */
    int64_t devices, microbatches, chunks; /* 0 where not given */
    double times[3];                       /* F, B, W */
    double comm, release_b, keep;
    const char *memory_limit; /* one number, or one a device, in microbatches of a stage; NULL where not given */
    schedule_format format;
    const char *figure;
    pc_engine_mode engine;
    bool waits_for_memory;
} schedule_request;

/* Who the schedule is for, as far as costs depend on it. */
typedef struct schedule_shape {
    int devices, microbatches, chunks;
    pc_placement placement;
    bool recomputes;
} schedule_shape;

/* A microbatch of one chunk takes this many of our bytes, so that fractions of --release-b and --keep are whole. */
#define CHUNK_BYTES (INT64_C(1) << 32)

/* Picoseconds of the simulation in one of the user's units of time; 0, after *error was written, where no number does.
 */
double request_ticks(const schedule_request *r, const schedule_shape *shape, pc_error *error);

/* The costs at so many ticks a unit, without a memory limit. Free them with pc_costs_free. */
pc_code request_costs(const schedule_request *r, const schedule_shape *shape, double ticks, pc_costs *costs,
                      pc_error *error);

/* Writes --memory-limit of every device, in microbatches, into limit[0 .. devices-1]: infinite where none was given. */
pc_code request_limits(const schedule_request *r, int devices, double *limit, pc_error *error);

#endif
