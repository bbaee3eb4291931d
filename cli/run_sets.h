/* run_sets.h: what `--set`, and options that stand for one, put over a scenario: in the order in which the user wrote
 * them, the last one wins. */
#ifndef PC_CLI_RUN_SETS_H
#define PC_CLI_RUN_SETS_H

#include "cli/run_flags.h"

#include <stdbool.h>

enum { RUN_SETS_MAX = 256 };

typedef struct run_sets {
    const char *list[RUN_SETS_MAX];
    int count;
    run_flag_use flags[RUN_SETS_MAX]; /* what some of the list come from */
    int flag_count;
    bool lacks_memory; /* not the user's fault */
} run_sets;

/* What a command ends with after one could not be taken. */
int run_sets_status(const run_sets *sets);

/* Take one more; false after having printed what is wrong. `make` makes the set of an option and its value, as
 * run_flag_set does. */
bool run_sets_take(run_sets *sets, const char *set);
typedef char *run_set_maker(const run_flag *flag, const char *value);
bool run_sets_take_flag(run_sets *sets, const run_flag *flag, const char *value, run_set_maker *make);

void run_sets_free(run_sets *sets);

#endif
