/* run_sweep.h: does the runs of some scenarios that are not done yet, and writes and prints the results of all. */
#ifndef PC_CLI_RUN_SWEEP_H
#define PC_CLI_RUN_SWEEP_H

#include "cli/run_flags.h"
#include "results/table.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_SETS_MAX = 256 };

/* What the user asked for. */
typedef struct run_request {
    const char **paths; /* NULL: no file, the sets say everything */
    int path_count;
    const char *sets[RUN_SETS_MAX];
    int set_count;
    run_flag_use flags[RUN_SETS_MAX]; /* what some of `sets` come from */
    int flag_count;
    const char *output; /* NULL: no results file */
    pc_format format;
    int64_t jobs;               /* 0: the user does not say */
    int64_t shard, shard_count; /* shard from 1 */
    bool is_quiet;
    bool is_fresh; /* all runs again, whatever is there */
} run_request;

/* Does it all, prints, and returns the exit status. */
int run_sweep(const run_request *r);

#endif
