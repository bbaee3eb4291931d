/* plan_private.h: what the functions about plans share. Private to api/plan*.c. */
#ifndef PC_API_PLAN_PRIVATE_H
#define PC_API_PLAN_PRIVATE_H

#include "api/handles.h"

#include "models/workload/offload.h"
#include "results/plan_cells.h"
#include "scenarios/plan_scenario.h"
#include "sweep/run_profiles.h"

struct pipecast_plan {
    pc_plan_scenario *scenario;
    pipecast_stop *stop;
    void *stop_context;
};

/* What a plan has beside the columns of its run, and the overrides that make it. */
typedef struct plan_row {
    int64_t rank;
    char rank_order[32], offload[PC_OFFLOAD_SIZE], cp_comm_type[16], dispatcher[16], limits[PC_PLAN_TEXT_SIZE],
        behind[PC_PLAN_TEXT_SIZE];
    int64_t overlap_p2p, overlap_tp, overlap_gradients, overlap_parameters, ties, close;
    char part[16], what[128];
    double factor;
    char **sets; /* set_count of them; owned */
    int set_count;
    pc_plan_row plan; /* all of it, for questions about it */
} plan_row;

/* A plan whose machines have their profiles; what they had before comes back in the end, for another search must find
 * them as they were. */
typedef struct api_planning {
    pipecast_plan *of;
    pc_run_profiles profiles; /* of the bases, and of the runs of plans */
    pc_run_spec *before;
} api_planning;

/* Both also after a failure of the first. */
pc_code api_planning_open(pipecast_plan *plan, int threads, api_planning *planning, pc_error *error);
void api_planning_close(api_planning *planning);

/* Opens the profile of a run, and gives the run its costs. */
pc_code api_planning_use(api_planning *planning, pc_run_spec *spec, pc_error *error);

/* Who looks on, for pc_plan_progress. */
typedef struct api_onlooker {
    pipecast_progress *progress;
    void *context;
    const pipecast_plan *plan;
} api_onlooker;
bool api_onlooker_stops(void *self);

/* Makes a table of rows, best first or as they are asked for: their runs, and what they are beside `best`, NULL if
 * there is none. Of plans: with their ranks; else with part, what and factor. */
pc_code api_plan_table(const pipecast_plan *plan, const pc_plan_row *rows, int64_t count, const pc_plan_row *best,
                       pipecast_results **results, pc_error *error);

#endif
