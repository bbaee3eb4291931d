/* plan_shares.h: a search for plans in shares. Each does all searches of a question with its own part of the cuts
 * (pc_plan_request.shard), and records what they find; the whole question is answered by what all shares recorded, with
 * no search left to do. A search is known by its space and by what is wanted of it: if a file that the question names
 * has changed, it is another one.
 */
#ifndef PC_SWEEP_PLAN_SHARES_H
#define PC_SWEEP_PLAN_SHARES_H

#include "engine/error.h"
#include "models/planner/planner.h"
#include "results/store/store.h"
#include "sweep/plan_kept.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_plan_shares pc_plan_shares;

/* Records one share, from 1. `words`: lines that say what is asked, the same for all shares of one question. */
pc_code pc_plan_shares_record(int64_t shard, int64_t shard_count, const char *words, pc_plan_shares **shares,
                              pc_error *error);

/* Puts what was recorded into a results file. */
pc_code pc_plan_shares_write(const pc_plan_shares *shares, pc_results_writer *writer, pc_error *error);

/* Whether a results file is a share; PC_ERROR_INPUT if it is no results file. */
pc_code pc_plan_shares_is_one(const char *path, bool *is_one, pc_error *error);

/* Reads all shares of one question, in any order. PC_ERROR_INPUT if one is missing or there twice, or is of another
 * question, another number of shares or another build. */
pc_code pc_plan_shares_open(const char *const *paths, int count, pc_plan_shares **shares, pc_error *error);
const char *pc_plan_shares_words(const pc_plan_shares *shares);

/* What knows the bases of the searches (pc_plan_kept_use). Borrowed; before the first search. */
void pc_plan_shares_use(pc_plan_shares *shares, const pc_plan_kept *kept);

/* Whether shares are recorded; false of NULL. */
bool pc_plan_shares_records(const pc_plan_shares *shares);

/* pc_plan_run, with its answer recorded, or taken from what was. PC_ERROR_INPUT if a share did not do that search. NULL
 * shares: pc_plan_run. */
pc_code pc_plan_shares_ask(pc_plan_shares *shares, const pc_plan_space *space, const pc_plan_request *request,
                           pc_plan_answer *answer, pc_error *error);

void pc_plan_shares_free(pc_plan_shares *shares); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
