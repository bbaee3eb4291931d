/* bad_days_keys.h: what a setting says of samples, of bad days and of jobs. Private to scenarios/. */
#ifndef PC_SCENARIOS_BAD_DAYS_KEYS_H
#define PC_SCENARIOS_BAD_DAYS_KEYS_H

#include "engine/error.h"
#include "models/training/run.h"
#include "scenarios/expand.h"
#include "scenarios/setting.h"

#include <stdint.h>

/* Whether the keys go together, whatever the cluster. */
pc_code pc_setting_check_bad_days(const pc_setting *setting, pc_error *error);

/* Whether there are as many GPUs, nodes and stages as they speak of; a rule. 0: not known. */
pc_code pc_setting_check_bad_shape(const pc_setting *setting, int64_t gpus, int64_t pp, pc_error *error);

/* Fills in `jitter`, where it is the profile's, and what of `bad_days` no field takes as it is: pc_setting_fill comes
 * first. */
void pc_setting_fill_bad_days(const pc_setting *setting, pc_run_spec *spec);

#endif
