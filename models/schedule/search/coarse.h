/* coarse.h: the same instance with rounder times, to reorder in first. In it passes fit together as they do in a block,
 * and what fits together often still does when the times are real again. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_COARSE_H
#define PC_MODELS_SCHEDULE_SEARCH_COARSE_H

#include "engine/error.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>

/* The kinds of coarse instances, 0 being the real one. 1 takes all passes for equal (BW for two) and transfers for
 * free; in the others all times are whole multiples of a half, and of a quarter, of the shortest pass. */
enum { PC_COARSE_NONE, PC_COARSE_CELLS, PC_COARSE_HALVES, PC_COARSE_QUARTERS, PC_COARSE_KINDS };

/* Shares limit with `instance`, which must outlive it: free it with pc_instance_mirror_free. */
pc_code pc_instance_coarsen(const pc_instance *instance, int kind, pc_instance *coarse, pc_error *error);

/* Whether one instance's times are the other's, in another unit: then both have the same good orders. */
bool pc_instance_has_times_of(const pc_instance *instance, const pc_instance *other);

/* Whether any pass takes time. Without that nothing can be rounded. */
bool pc_instance_takes_time(const pc_instance *instance);

#endif
