/* plan_parts.h: what `pipecast plan` is asked beside its best plans: the fewest GPUs for a deadline, the best of each
 * value, a map, and what would change plan 1. */
#ifndef PC_CLI_PLAN_PARTS_H
#define PC_CLI_PLAN_PARTS_H

#include "cli/plan_means.h"
#include "cli/plan_request.h"
#include "sweep/plan_questions.h"

typedef struct plan_parts {
    pc_plan_cells list[PC_PLAN_PARTS];
    int count;
} plan_parts;

/* Before the search for plans: axes that are none are refused, and a goal is answered, for the search is of the GPUs
 * that it finds. `least` is its row, or NULL. */
pc_code plan_parts_before(const plan_request *request, pc_plan_scenario *scenario, const plan_means *means,
                          pc_run_profiles *profiles, plan_parts *parts, const pc_plan_row **least, pc_error *error);

/* Behind it: all else, of the `count` plans that were found. */
pc_code plan_parts_after(const plan_request *request, pc_plan_scenario *scenario, const plan_means *means,
                         pc_run_profiles *profiles, const pc_plan_row *plans, int64_t count, plan_parts *parts,
                         pc_error *error);

void plan_parts_free(plan_parts *parts);

#endif
