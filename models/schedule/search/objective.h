/* objective.h: what an order of an instance comes to where that is not its span (goal.h), and how late passes may be
 * that it comes to no more. Private to the generators.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_OBJECTIVE_H
#define PC_MODELS_SCHEDULE_SEARCH_OBJECTIVE_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/goal.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>

/* Borrows what it points to. */
typedef struct pc_objective {
    const pc_time *ready_ps; /* [devices][chunks]: pc_costs's; NULL: all at once */
    const pc_tails *tails;   /* NULL: none, and the makespan counts */
} pc_objective;

/* Where a device stands in an order. */
typedef struct pc_device_ends {
    pc_time begin;                         /* of its first pass, less what its chunk took to be ready */
    pc_time end;                           /* of its last pass */
    pc_time chunk_end[PC_INSTANCE_CHUNKS]; /* of each chunk's last backward pass */
} pc_device_ends;

/* NULL for SPAN, which every instance has without one; else *objective, filled in. `tails` count for ITERATION alone,
 * as ready times do. */
const pc_objective *pc_objective_make(pc_goal goal, const pc_costs *costs, const pc_tails *tails,
                                      pc_objective *objective);

/* The ends of a device in an order whose starts stand. */
pc_device_ends pc_objective_ends(const pc_instance *instance, const pc_instance_order *order, int device);

/* What a device alone comes to, and an order: the most over devices. */
pc_time pc_objective_value(const pc_instance *instance, int device, const pc_device_ends *ends);
pc_time pc_objective_of(const pc_instance *instance, const pc_instance_order *order);

/* The latest that a device's last pass, and the last pass of each chunk, may end if the device is to come to `value`
 * and its chunks end in the same order; in place of `ends`. */
void pc_objective_latest(const pc_instance *instance, int device, pc_time value, pc_device_ends *ends);

/* No order of the instance comes to less: the way in to a device, its work, and its tail; the most over devices. 0
 * without an objective. */
pc_time pc_objective_least(const pc_instance *instance);

/* When F of a cell is ready; 0 for all others. */
pc_time pc_objective_ready(const pc_instance *instance, int cell);

#endif
