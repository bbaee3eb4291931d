/* run_flags.h: the options of `pipecast run` that stand for keys of a setting. */
#ifndef PC_CLI_RUN_FLAGS_H
#define PC_CLI_RUN_FLAGS_H

#include "engine/error.h"
#include "scenarios/setting_flags.h"

#include <stdbool.h>

/* What a flag stands for: "--tp 8" is --set setting.tp=8; "--tp 4,8", where the key can be swept, is --set
 * sweep.tp=[4,8], and "--tp 1..8" sweep.tp=[1..8]. Layouts have commas of their own: "--layout 3,4,4,3" is one, and
 * "--layout even,3,4,4,3;4,3,3,4" are three. */
typedef pc_setting_flag run_flag;

/* All of them, of the table of settings; the last has no name. Called first where there is one thread. */
const run_flag *run_flags(void);

/* A flag that was used. */
typedef struct run_flag_use {
    const run_flag *flag;
    const char *value; /* as it was given; borrowed */
    char *set;         /* what it stands for; the caller's to free */
} run_flag_use;

/* Puts the option that the user wrote in the place of the set that it stands for, where the error of a load was there:
 * "--tp: 0: out of range; ..."; and, where there is no file, the one that would give what a key lacks:
 * "--machine: missing; ...". */
void run_flags_explain(const run_flag_use *uses, int count, pc_error *error);

/* What is wrong with a value before it is anything's; NULL if nothing is. */
const char *run_flag_fault(const run_flag *flag, const char *value);

/* Whether the value is a list of several, or a range that stands for several: "4,8", "1..8". */
bool run_flag_is_list(const run_flag *flag, const char *value);

/* Whether the two say the same thing in two ways, so that one of them would go unheard. */
bool run_flags_rival(const run_flag *one, const run_flag *other);

/* The --set that the flag with this value stands for; the caller frees it. NULL if memory is short. */
char *run_flag_set(const run_flag *flag, const char *value);

#endif
