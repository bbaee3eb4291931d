/* plan_means.h: what searches for plans work with: ranks, and what is kept of them, in memory and in files. */
#ifndef PC_CLI_PLAN_MEANS_H
#define PC_CLI_PLAN_MEANS_H

#include "cli/plan_request.h"
#include "scenarios/plan_scenario.h"
#include "sweep/plan_kept.h"

typedef struct plan_means {
    pc_team *team; /* borrowed; NULL: alone */
    pc_plan_kept *kept;
    char *journal;    /* of the results file, if no other file was named; NULL */
    const char *file; /* that keeps it; NULL: in memory. Borrowed, or the journal */
} plan_means;

/* Opens the files, by the first rank, and tells the others. What is kept is for the scenario's bases, which have their
 * costs. */
pc_code plan_means_open(const plan_request *request, pc_plan_scenario *scenario, pc_team *team, plan_means *means,
                        pc_error *error);

bool plan_means_is_first(const plan_means *means);

/* For a search of the request: ranks, keeper, threads. */
void plan_means_give(const plan_means *means, const plan_request *asked, pc_plan_request *request);

/* Where things stand, when the command is interrupted. */
void plan_means_say_interrupted(const plan_means *means);

/* `is_complete`: the journal of the results file goes. */
void plan_means_close(plan_means *means, bool is_complete);

#endif
