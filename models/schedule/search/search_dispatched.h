/* search_dispatched.h: the best schedule that is found for any placement and any number of chunks, at given costs and
 * within given memory.
 *
 * It starts from orders that rules of priority make (dispatch.h) and from blocks in the instance's own times
 * (fitted.h), where the search of families (search.h) starts from the patterns of one chunk, or of two in a V. From
 * there on both do the same: sweeps to and fro on a short iteration, kicks, and the middle repeated. Private to the
 * generators.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_SEARCH_DISPATCHED_H
#define PC_MODELS_SCHEDULE_SEARCH_SEARCH_DISPATCHED_H

#include "engine/error.h"
#include "models/schedule/schedule.h"
#include "models/schedule/search/search.h"

/* As pc_search_run. Of the search neither the effort nor the patterns are looked at. */
pc_code pc_search_dispatched(const pc_search *search, pc_schedule *schedule, pc_error *error);

#endif
