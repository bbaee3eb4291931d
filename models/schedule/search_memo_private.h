/* search_memo_private.h: how a search asks a memo, and tells it. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_MEMO_PRIVATE_H
#define PC_MODELS_SCHEDULE_SEARCH_MEMO_PRIVATE_H

#include "engine/hash.h"
#include "models/schedule/block.h"
#include "models/schedule/schedule.h"
#include "models/schedule/search_memo.h"

#include <stdbool.h>

/* A search that is under way: the caller's, from a begin that finds nothing until its end. */
typedef struct pc_search_memo_work {
    pc_hash key;
    struct pc_search_memo_work *next;
} pc_search_memo_work;

/* Looks for the answer of this key, and waits where another thread is at it. *found: then the schedule, and the block
 * where one is asked for, are the caller's own; if not, the caller must search and call the end, whatever comes of it.
 * An error needs no end. */
pc_code pc_search_memo_begin(pc_search_memo *memo, pc_hash key, pc_search_memo_work *work, pc_schedule *schedule,
                             pc_block *block, bool *found, pc_error *error);

/* Keeps copies; schedule NULL: there is no answer. Where there is no memory for copies nothing is kept; the work has
 * ended all the same. */
pc_code pc_search_memo_end(pc_search_memo *memo, pc_search_memo_work *work, const pc_schedule *schedule,
                           const pc_block *block, pc_error *error);

#endif
