/* cluster_profile.h: whose kernels answer a run on a cluster: a profile's file, one of the library, or none. Private to
 * scenarios/.
 */
#ifndef PC_SCENARIOS_CLUSTER_PROFILE_H
#define PC_SCENARIOS_CLUSTER_PROFILE_H

#include "models/training/run.h"
#include "scenarios/setting.h"

/* PC_ERROR_INPUT if the setting names a profile of the library that is of another GPU than the machine's. */
pc_code pc_setting_check_profile(const pc_setting *setting, pc_error *error);

/* Whether it names a file, and neither one of the library nor none. */
bool pc_setting_has_profile_file(const pc_setting *setting);

/* Sets profile_path or shipped_profile of a spec that has its machine and model. What the setting names; where it says
 * nothing, what the machine's GPU names, if that answers the model's format. One of the library that the setting names
 * itself answers all that it has, and not only what the GPU's file says. */
void pc_setting_choose_profile(const pc_setting *setting, pc_run_spec *spec);

#endif
