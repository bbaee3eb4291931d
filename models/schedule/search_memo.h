/* search_memo.h: what searches for schedules gave, so that the same one is not done twice.
 *
 * A name that searches tries the answers of others within its limits (docs/searches.md). In a sweep over names, limits
 * and settings the same single search is wanted again and again. A memo has the answers; what it gives is what the
 * search would give, to the bit. What decides an answer stands in generate_remembered.c.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_MEMO_H
#define PC_MODELS_SCHEDULE_SEARCH_MEMO_H

#include "engine/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any number of threads may use one at a time: of those that want the same search one does it, the others wait. */
typedef struct pc_search_memo pc_search_memo;

/* Enough for a hundred schedules of 80,000 passes. */
#define PC_SEARCH_MEMO_BYTES ((size_t)64 << 20)

/* It takes up to `bytes_max` for answers, and forgets the oldest where that is too little. Free it with
 * pc_search_memo_free; NULL is fine there. */
pc_code pc_search_memo_create(size_t bytes_max, pc_search_memo **memo, pc_error *error);
void pc_search_memo_free(pc_search_memo *memo);

/* What became of it so far. Of several threads the first two depend on who came first where answers were forgotten. */
typedef struct pc_search_memo_counts {
    int64_t found;     /* searches that were not done */
    int64_t kept;      /* answers that were put in, of those that were done */
    int64_t forgotten; /* of these */
    size_t bytes;      /* what it holds now */
} pc_search_memo_counts;
pc_search_memo_counts pc_search_memo_count(pc_search_memo *memo);

#ifdef __cplusplus
}
#endif
#endif
