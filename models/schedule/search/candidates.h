/* candidates.h: which blocks of a family keep the memory limits. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_CANDIDATES_H
#define PC_MODELS_SCHEDULE_SEARCH_CANDIDATES_H

#include "engine/error.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/pattern.h"
#include "models/schedule/search/search.h"

#include <stdint.h>

/* A block that keeps the limits. */
typedef struct pc_candidate {
    int64_t pattern; /* its number in the search */
    int64_t unused;  /* memory that it leaves free at its peaks, summed over the devices; bytes */
    uint64_t hash;   /* of the block: many patterns name the same one */
} pc_candidate;

/* Writes all of them, each block once, those first that leave least memory unused; `list` has room for one a pattern.
 */
pc_code pc_candidates_list(const pc_search *search, const pc_instance *instance, pc_candidate *list, int64_t *count,
                           pc_error *error);

/* Whether one pattern's block stands, and keeps the limits. */
pc_code pc_candidates_fits(const pc_search *search, const pc_instance *instance, int64_t pattern, bool *fits,
                           pc_error *error);

#endif
