/* plan_kept.h: what searches for plans have worked out, so that no other search does it again: simulations, and bounds
 * of schedules that search. In memory, and in a journal (journal.h) that a search goes on with after it was killed, and
 * that the next search begins with. A fact goes by the run that `pipecast run` would make of the point (run_key.h), so
 * that another space, other limits or another number of plans find it too.
 */
#ifndef PC_SWEEP_PLAN_KEPT_H
#define PC_SWEEP_PLAN_KEPT_H

#include "engine/error.h"
#include "models/planner/planner.h"
#include "models/training/run.h"
#include "scenarios/run_key.h"
#include "sweep/team.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_plan_kept pc_plan_kept;

/* The first of the files is made if it is not there, held by this process alone, and written to; the others are read.
 * None: in memory. `is_fresh`: what the first has is dropped. PC_ERROR_INPUT if one is no such file, is damaged at its
 * start, or is of another build. What was half written at its end is dropped. */
pc_code pc_plan_kept_open(const char *const *paths, int count, bool is_fresh, pc_plan_kept **kept, pc_error *error);

/* Tells all ranks what the first one has. Every rank calls it, and all but the first with one in memory. */
pc_code pc_plan_kept_tell(pc_plan_kept *kept, pc_team *team, pc_error *error);

/* For searches of bases whose costs are those of some of these runs; others find nothing. Borrowed. */
void pc_plan_kept_use(pc_plan_kept *kept, const pc_run_spec *bases, int base_count);

/* The run that `pipecast run` would make of an iteration of a base; false if nobody knows what the costs are made of.
 */
bool pc_plan_kept_key(const pc_plan_kept *kept, const pc_plan_base *base, const pc_iteration_spec *spec,
                      pc_run_key *key);
pc_plan_keeper pc_plan_kept_keeper(pc_plan_kept *kept);

int64_t pc_plan_kept_count(const pc_plan_kept *kept);
int64_t pc_plan_kept_found(const pc_plan_kept *kept); /* facts that were asked for, and there */

/* Lets go; `removes` takes the first file away. NULL is fine. A file of no facts goes. */
void pc_plan_kept_close(pc_plan_kept *kept, bool removes);

/* Searches by the ranks of a team. */
pc_plan_crew pc_plan_crew_of(pc_team *team);

#ifdef __cplusplus
}
#endif
#endif
