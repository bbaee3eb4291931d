/* run_profiles.h: the profiles that runs name, and those of the library that their GPUs name, opened once each, and the
 * costs made of them. */
#ifndef PC_SWEEP_RUN_PROFILES_H
#define PC_SWEEP_RUN_PROFILES_H

#include "calib/profile/profile_cost.h"
#include "engine/error.h"
#include "models/training/run.h"

/* Zero it to start. */
typedef struct pc_run_profiles {
    struct opened_profile *profiles;
    int profile_count;
    struct profile_cost *costs; /* one a profile and machine */
    int cost_count;
} pc_run_profiles;

/* Opens what the run names, and makes its costs, where that was not done for another. Before any thread starts: HDF5
 * reads for one at a time. PC_ERROR_INPUT with the profile's path. */
pc_code pc_run_profiles_open(pc_run_profiles *opened, const pc_run_spec *spec, pc_error *error);

/* Gives the run its costs and its machine; any number of threads at once. One without a profile stays as it is. */
void pc_run_profiles_use(const pc_run_profiles *opened, pc_run_spec *spec);

/* The same of a profile in memory. The machine that a run asks for, which its costs are to be made of: if the profile
 * has measured kernels, with those of the machine's file. Then these costs, once a run; all is borrowed. */
void pc_run_profile_machine(const pc_profile *profile, const pc_run_spec *spec, pc_machine *machine);
void pc_run_profile_apply(const pc_profile *profile, const pc_profile_cost *cost, const pc_cost_model *model,
                          pc_run_spec *spec);

/* What the costs have to say of the answers that they gave: a line each. Those of the library's profiles say nothing:
 * whoever named none can do nothing about what it lacks (`pipecast profile show` says what is in it). */
typedef void pc_run_profiles_say(void *context, const char *text);
void pc_run_profiles_warn(const pc_run_profiles *opened, pc_run_profiles_say *warn, void *context);

void pc_run_profiles_close(pc_run_profiles *opened);

#endif
