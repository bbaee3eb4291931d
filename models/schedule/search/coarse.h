/* coarse.h: the same plan with rounder times, to reorder in first. In it passes fit together as they do in a block, and
 * what fits together often still does when the times are real again. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_COARSE_H
#define PC_MODELS_SCHEDULE_SEARCH_COARSE_H

#include "engine/error.h"
#include "models/schedule/search/plan.h"

#include <stdbool.h>

/* The kinds of coarse plans, 0 being the real one. 1 takes all passes for equal (BW for two) and transfers for free; in
 * the others all times are whole multiples of a half, and of a quarter, of the shortest pass. */
enum { PC_COARSE_NONE, PC_COARSE_CELLS, PC_COARSE_HALVES, PC_COARSE_QUARTERS, PC_COARSE_KINDS };

/* Shares limit with `plan`, which must outlive it: free it with pc_plan_mirror_free. */
pc_code pc_plan_coarsen(const pc_plan *plan, int kind, pc_plan *coarse, pc_error *error);

/* Whether one plan's times are the other's, in another unit: then both have the same good orders. */
bool pc_plan_has_times_of(const pc_plan *plan, const pc_plan *other);

/* Whether any pass takes time. Without that nothing can be rounded. */
bool pc_plan_takes_time(const pc_plan *plan);

#endif
