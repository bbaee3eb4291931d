/* key_list.h: every key that a scenario may have, with what may stand there and what it means;
 * docs/scenario-reference.md is made of it.
 *
 * Those of settings and sweeps are the table of settings; the others a walk through the schemas that scenarios are
 * checked against. Types and ranges come from the tables that check values.
 */
#ifndef PC_SCENARIOS_KEY_LIST_H
#define PC_SCENARIOS_KEY_LIST_H

#include "engine/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where in a file a key stands. */
typedef enum pc_key_section {
    PC_KEYS_OF_FILE,
    PC_KEYS_OF_SETTING, /* and of a case, which has them beside its own */
    PC_KEYS_OF_SWEEP,
    PC_KEYS_OF_PLAN,
    PC_KEYS_OF_CASE,
    PC_KEYS_OF_PUBLISHED,
    PC_KEYS_OF_FIGURE,
    PC_KEYS_OF_MODEL_FILE, /* beside those of setting.model but `name` and `from` */
    PC_KEY_SECTIONS
} pc_key_section;

/* Which of the two sorts of runs a key of a setting is for. */
typedef enum pc_key_use { PC_KEY_FOR_ALL, PC_KEY_FOR_TIMES, PC_KEY_FOR_CLUSTERS } pc_key_use;

/* Plain text, in which names stand between backquotes. */
typedef struct pc_scenario_key {
    pc_key_section section;
    pc_key_use use;
    char path[64];   /* within its section: "times.F"; "stages[].F" is of each entry of a list */
    char value[256]; /* what may stand there: "whole number, 1 to 65536" */
    char otherwise[192];
    char description[400];
} pc_scenario_key;

/* All of them, `*count`, section by section, in the order of these. Free with pc_scenario_keys_free. What nobody
 * described has an empty description. */
pc_code pc_scenario_keys(pc_scenario_key **keys, int *count, pc_error *error);
void pc_scenario_keys_free(pc_scenario_key *keys);

/* The key of `sweep:` that lists values of a key of `setting:`; NULL if there is none. */
const char *pc_scenario_sweep_of(const char *path);

#ifdef __cplusplus
}
#endif
#endif
