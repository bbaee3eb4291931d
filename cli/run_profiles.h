/* run_profiles.h: the profiles that the runs of `pipecast run` name, opened once each, and the costs made of them. */
#ifndef PC_CLI_RUN_PROFILES_H
#define PC_CLI_RUN_PROFILES_H

#include "engine/error.h"
#include "models/training/run.h"

/* Zero it to start. */
typedef struct run_profiles {
    struct opened_profile *profiles;
    int profile_count;
    struct profile_cost *costs; /* one a profile and machine */
    int cost_count;
} run_profiles;

/* Opens what the run names, and makes its costs, where that was not done for another. Before any thread starts: HDF5
 * reads for one at a time. PC_ERROR_INPUT with the profile's path. */
pc_code run_profiles_open(run_profiles *x, const pc_run_spec *spec, pc_error *error);

/* Gives the run its costs and its machine; any number of threads at once. One without a profile stays as it is. */
void run_profiles_use(const run_profiles *x, pc_run_spec *spec);

/* What the costs have to say of the answers that they gave, on standard error. */
void run_profiles_warn(const run_profiles *x);

void run_profiles_close(run_profiles *x);

#endif
