/* plan_scenario.h: a scenario file as a search for plans: `setting` says what is planned for, `plan` what may be chosen
 * and what is wanted; docs/planner.md.
 *
 * A choice that `plan` does not list is what `sweep` lists of it; else what the setting gives, fixed; else a default
 * that follows from model and machine. A file has at most one case, which is part of the setting.
 */
#ifndef PC_SCENARIOS_PLAN_SCENARIO_H
#define PC_SCENARIOS_PLAN_SCENARIO_H

#include "engine/error.h"
#include "models/planner/planner.h"
#include "models/training/run.h"
#include "scenarios/run_labels.h"
#include "scenarios/scenario.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_plan_scenario pc_plan_scenario;

/* As pc_scenario_load; sets may begin with "plan." too. PC_ERROR_INPUT and one line "FILE:LINE: KEY: what was
 * wrong; expected ...". */
pc_code pc_plan_scenario_load(const char *path, const char *const *sets, int set_count, pc_plan_scenario **scenario,
                              pc_error *error);
pc_code pc_plan_scenario_load_with(const char *path, const pc_scenario_options *options, pc_plan_scenario **scenario,
                                   pc_error *error);
void pc_plan_scenario_free(pc_plan_scenario *scenario); /* NULL is fine */

const char *pc_plan_scenario_name(const pc_plan_scenario *scenario);

/* The text as pc_scenario_text has it: of the file, and every set in a comment. */
const char *pc_plan_scenario_text(const pc_plan_scenario *scenario, size_t *size);

/* A run on each of the machines, in each of the precisions, `*count`, for who opens profiles: `cost`, `profile_hash`
 * and `iteration.machine` may be written to, before pc_plan_scenario_space. Owned by the scenario. */
pc_run_spec *pc_plan_scenario_bases(pc_plan_scenario *scenario, int *count);

/* What may be chosen; owned by the scenario. */
const pc_plan_space *pc_plan_scenario_space(pc_plan_scenario *scenario);

/* As pc_scenario_assumed: false if the model's file and the scenario say all. */
bool pc_plan_scenario_assumed(const pc_plan_scenario *scenario, pc_model_assumed *assumed);

/* As pc_scenario_import_note, of the one model. */
bool pc_plan_scenario_import_note(const pc_plan_scenario *scenario, char text[PC_IMPORT_NOTE_SIZE]);

/* Whether one price is that of a GPU-hour of several machines. */
bool pc_plan_scenario_shares_price(const pc_plan_scenario *scenario);

/* What is wanted: objectives, top and limits; the rest is zero. */
pc_plan_request pc_plan_scenario_request(const pc_plan_scenario *scenario);

/* What the whole training is to keep to; 0: not asked. With one of them `tokens` are given, with a budget a price. */
typedef struct pc_plan_goal {
    double deadline_s, budget;
} pc_plan_goal;
pc_plan_goal pc_plan_scenario_goal(const pc_plan_scenario *scenario);

/* The run that a choice is, of number and name `rank` (from 1): what `pipecast run` makes of the setting and what
 * pc_plan_scenario_put says. Its cost is not set. Free with pc_run_spec_free. */
pc_code pc_plan_scenario_run_spec(const pc_plan_scenario *scenario, const pc_plan_choice *choice, int64_t rank,
                                  pc_run_spec *spec, pc_run_labels *labels, pc_error *error);

/* The same with sequences of another length; 0: the setting's. */
pc_code pc_plan_scenario_run_of_length(const pc_plan_scenario *scenario, const pc_plan_choice *choice, int64_t seq_len,
                                       int64_t rank, pc_run_spec *spec, pc_run_labels *labels, pc_error *error);

/* Hands over the keys of a setting, "tp" and "8", that make a choice's run of this scenario: what the setting fixes is
 * left out. A path counts from where we are. */
typedef void pc_plan_put(void *context, const char *key, const char *value);
pc_code pc_plan_scenario_put(const pc_plan_scenario *scenario, const pc_plan_choice *choice, pc_plan_put *put,
                             void *context, pc_error *error);

/* What `plan` calls its list of a setting's `key`: "tp" of "tp", "layout" of "model.layout"; NULL if it has none. */
const char *pc_plan_scenario_list_of(const char *key);

#ifdef __cplusplus
}
#endif
#endif
