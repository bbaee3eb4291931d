/* plan_share.h: what a share of a search for plans leaves in its results file for who puts all shares together: what
 * was asked, and the answer of each of its searches (docs/results-format.md).
 */
#ifndef PC_RESULTS_PLAN_SHARE_H
#define PC_RESULTS_PLAN_SHARE_H

#include "engine/error.h"
#include "models/planner/planner.h"
#include "results/store/store.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One search: which one it is, where the points went, and how many plans it found. */
typedef struct pc_share_search {
    uint64_t key_high, key_low; /* a hash of its space and of what was wanted */
    int64_t plans;
    pc_plan_log log; /* but for seconds */
} pc_share_search;

/* A zeroed one is empty; pc_plan_share_free. */
typedef struct pc_plan_share {
    int64_t shard, shard_count;
    char *words; /* of the command, a line each; owned, as the next */
    pc_share_search *searches;
    int64_t search_count;
    pc_plan_found *found; /* of all searches, one behind the other; without choices and costs */
    int64_t found_count;
} pc_plan_share;

/* Behind pc_results_create, once. */
pc_code pc_results_add_share(pc_results_writer *writer, const pc_plan_share *share, pc_error *error);

/* Whether the file is a share of a search for plans; and which one. PC_ERROR_INPUT if it is damaged: then there is
 * nothing to free. */
bool pc_results_has_share(const pc_results_reader *reader);
pc_code pc_results_read_share(const pc_results_reader *reader, pc_plan_share *share, pc_error *error);
void pc_plan_share_free(pc_plan_share *share);

#ifdef __cplusplus
}
#endif
#endif
