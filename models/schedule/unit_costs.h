/* unit_costs.h: costs as people say them, a number for a stage's F, B and W in whatever unit of time, in the engine's
 * whole picoseconds and bytes. */
#ifndef PC_MODELS_SCHEDULE_UNIT_COSTS_H
#define PC_MODELS_SCHEDULE_UNIT_COSTS_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pc_unit_costs {
    double times[3]; /* F, B and W of a microbatch on a stage, all of its chunks together */
    int part_count;  /* 0: these hold for all stages; p: of each stage; p times v: of each part of the model */
    const double (*part_times)[3]; /* [part_count], stages in their order, parts in the model's; borrowed */
    const double *slice_times;     /* of schedules with slices how long those take to each other, above zero, a number a
                                    * slice; borrowed. NULL: all as long */
    double vocab_times[2];         /* S and T, on every stage */
    double comm;                   /* from one stage to the next */
    double release_b;              /* the fraction of an activation that B gives back, where W gives back the rest */
    double keep;                   /* the fraction that an F which is recomputed keeps */
} pc_unit_costs;

/* Who the costs are for, as far as they depend on it. */
typedef struct pc_unit_shape {
    int devices, microbatches, chunks;
    pc_placement placement;
    bool recomputes;
    pc_barriers barriers;
} pc_unit_shape;

/* That of a schedule which is there. */
pc_unit_shape pc_unit_shape_of(const pc_schedule *schedule);

/* A microbatch of one chunk takes this many bytes, so that fractions of it are whole. */
#define PC_UNIT_CHUNK_BYTES (INT64_C(1) << 32)

/* Whether there are times for every stage, or for every part. */
bool pc_unit_costs_suit(const pc_unit_costs *units, const pc_unit_shape *shape);

/* Picoseconds for one unit of time: as many as let all passes stand one after the other on the clock, and rounding not
 * show; 0 where no number does, for the times are too large or too far apart. */
double pc_unit_ticks(const pc_unit_costs *units, const pc_unit_shape *shape);

/* The costs at so many picoseconds a unit, without a memory limit. Free them with pc_costs_free. */
pc_code pc_unit_costs_make(const pc_unit_costs *units, const pc_unit_shape *shape, double ticks, pc_costs *costs,
                           pc_error *error);
#endif
