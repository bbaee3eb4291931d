/* search.h: the best schedule of a family of building blocks, at given costs and within given memory.
 *
 * Every block of the family that keeps the limit is a start: repeat it, squeeze, reorder (reorder.h). Reordering makes
 * good schedules of most starts, so a few dozen are tried on a short iteration, the better ones longer, and the best
 * ones are stretched to the iteration's length by repeating their middle. Private to the generators.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_SEARCH_H
#define PC_MODELS_SCHEDULE_SEARCH_SEARCH_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/objective.h"
#include "models/schedule/search/pattern.h"

#include <stdbool.h>
#include <stdint.h>

/* How much is tried. */
typedef struct pc_search_effort {
    int squeezed;              /* blocks that are repeated and squeezed, no more */
    int starts, start_rounds;  /* of these, how many are reordered, for how many rounds to and fro; in several ways */
    int better, better_rounds; /* how many go on, and for how many rounds */
    int best, best_rounds;     /* the last: each of these goes on in several ways */
    int draws;                 /* how many of them are drawn (reorder.h) */
    int64_t passes; /* larger instances try less, so that the time of a search grows no faster than its instance; four
                     * times larger ones only the first block that keeps the limit */
    int walks;      /* of small instances, from so many of the best orders (reorder.h) */
    int length;     /* the short iteration has so many microbatches for every two devices, and a few more */
} pc_search_effort;

typedef struct pc_search {
    const char *name;      /* of the schedule that comes out */
    const pc_costs *costs; /* every time that is needed must be given */
    pc_placement placement;
    bool splits;
    int microbatches;
    pc_memory_limit memory_limit;
    const pc_objective *objective; /* what is minimised in place of the span; NULL: the span */
    int threads;                   /* at least 1 */
    pc_search_effort effort;
    bool is_quick;              /* no blocks in the instance's own times, no kicks, no walks */
    const pc_pattern *patterns; /* the family; the first one that keeps the limit is tried before all others */
    int64_t pattern_count;
    pc_bound *bound; /* of the whole iteration: becomes a close one where the search has to know it; or NULL */
} pc_search;

/* The schedule with the least span (or what the objective has in its place), then makespan, then memory that was found;
 * and the block it came from, if `block` is not NULL. Depends on nothing but the search, the number of threads aside.
 * Where no block keeps the limit, one microbatch runs after the other as far as memory demands; `block` is then empty
 * (no devices). PC_ERROR_INPUT where not even one microbatch fits. Free both results. */
pc_code pc_search_run(const pc_search *search, pc_schedule *schedule, pc_block *block, pc_error *error);

#endif
