/* expand.h: a merged setting, made concrete: whether it makes a run, and what the passes of that run cost. Private to
 * scenarios/. */
#ifndef PC_SCENARIOS_EXPAND_H
#define PC_SCENARIOS_EXPAND_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/training/run.h"
#include "scenarios/run_labels.h"
#include "scenarios/setting.h"

/* The checks below say in an error which key of the setting is to blame (pc_error_blame), and whether it is a rule. */

/* Whether a run of so many devices and microbatches, and the chunks of the setting if it says any, can have its
 * schedule if that is a file's, with numbers of its own. A contradiction is a rule. */
pc_code pc_setting_check_given(const pc_setting *setting, int64_t devices, int64_t microbatches, pc_error *error);

/* Whether this is a whole and possible setting. What only the schedule's generator can refuse is not looked at: that
 * is a run with the status infeasible. */
pc_code pc_setting_check(const pc_setting *setting, pc_error *error);

/* v: how many chunks a device has in this run. */
int pc_setting_chunks(const pc_setting *setting);

/* Of schedules whose stages have several parts of slices k, the slices of one, else 0; and the placement of both. */
int pc_setting_slices(const pc_setting *setting);
pc_placement pc_setting_placement(const pc_setting *setting);

/* Whether a device can have all slices of all its parts: PC_ERROR_INPUT where these are too many. */
pc_code pc_setting_check_slices(const pc_setting *setting, pc_error *error);

/* Whether it says how large activations are, or has the whole shape of the model. */
bool pc_setting_has_activation(const pc_setting *setting);

/* Labels, shape and costs, of a setting that pc_setting_check has accepted. Free with pc_run_spec_free. */
pc_code pc_setting_expand(const pc_setting *setting, pc_run_spec *spec, pc_run_labels *labels, pc_error *error);

#endif
