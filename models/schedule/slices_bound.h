/* slices_bound.h: a span that no schedule of slices can beat. Private to models/schedule/.
 *
 * The same bounds as of whole microbatches (search/bound.h), by the ways that slices take. A microbatch's F of slice j
 * in part i waits for that of slice j-1 there and for that of slice j in part i-1. Its backward passes wait for those
 * of slice j+1 and of part i+1. So ways through the model are paths through a grid of parts and slices.
 */
#ifndef PC_MODELS_SCHEDULE_SLICES_BOUND_H
#define PC_MODELS_SCHEDULE_SLICES_BOUND_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"

/* The longest of three times over the devices; of orders with this one's shape, placement and costs, which have B and W
 * apart if `splits`, and keep the limit.
 *
 * (1) The way of one microbatch from a device's first F to its last backward pass there.
 * (2) All work, and what the device waits. From its first F on until its first backward pass can be there it runs F
 * alone, no more than its memory holds. And behind its last F there is the way of that microbatch out and back, which
 * it fills with no more backward passes than it holds activations for. If it cannot hold all microbatches these are two
 * different times; otherwise the longer one counts.
 * (3) What all passes hold for the time that their ways take, over the limit.
 *
 * In time that grows with devices x passes of a microbatch. PC_TIME_NOT_GIVEN stays where times are too long to count.
 */
pc_code pc_slices_least_span(const pc_schedule *schedule, const pc_costs *costs, bool splits, pc_memory_limit limit,
                             pc_time *least_ps, pc_error *error);

#endif
