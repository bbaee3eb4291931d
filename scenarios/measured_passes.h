/* measured_passes.h: what `pass_times` of a setting says, for the run that it becomes. Private to scenarios/.
 *
 * A setting without that key has none of it.
 */
#ifndef PC_SCENARIOS_MEASURED_PASSES_H
#define PC_SCENARIOS_MEASURED_PASSES_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "scenarios/setting.h"

#include <stdbool.h>
#include <stdint.h>

/* PC_OK if the file could be read. */
pc_code pc_measured_check(const pc_setting *setting, pc_error *error);

/* PC_ERROR_INPUT, and why, if the schedule cannot have these stages: a run like that is infeasible. */
pc_code pc_measured_contradicts(const pc_setting *setting, pc_error *error);

bool pc_measured_has_activation(const pc_setting *setting);

/* What device `d` holds all the time, in bytes: 0 if nobody says. */
int64_t pc_measured_held(const pc_setting *setting, int d);

/* Times, activations and, if the setting has no `transfer` of its own, the transfers of the costs. */
pc_code pc_measured_fill(const pc_setting *setting, pc_costs *costs, pc_error *error);

#endif
