/* cluster.h: a merged setting whose times follow from a model and a machine. Private to scenarios/. */
#ifndef PC_SCENARIOS_CLUSTER_H
#define PC_SCENARIOS_CLUSTER_H

#include "engine/error.h"
#include "models/training/run.h"
#include "scenarios/expand.h"
#include "scenarios/run_labels.h"
#include "scenarios/setting.h"

#include <stdbool.h>

/* Whether neither times nor stages are given, but a machine, a model's file, or what only they give a meaning. */
bool pc_setting_is_cluster(const pc_setting *setting);

/* Fills in what the model's file says and the setting does not; and the schedule, where it may be left out. */
void pc_setting_complete(pc_setting *setting);

/* Whether the model of a completed setting of a cluster lacks what GPT and Llama differ in, which is then GPT's: in
 * `text`, of PC_ASSUMED_SIZE bytes, "positions learned, tied true"; cluster_model.c. */
bool pc_setting_assumes(const pc_setting *setting, char *text, size_t size);

/* As pc_setting_check, for a setting of a cluster. */
pc_code pc_cluster_check(const pc_setting *setting, pc_error *error);

/* As pc_setting_expand. Where numbers contradict each other, and the setting was accepted because a sweep made them,
 * the spec says why it is infeasible. */
pc_code pc_cluster_expand(const pc_setting *setting, pc_run_spec *spec, pc_run_labels *labels, pc_error *error);

#endif
