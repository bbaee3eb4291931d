/* run_sweep.h: does the runs of some scenarios that are not done yet, and writes and prints the results of all. */
#ifndef PC_CLI_RUN_SWEEP_H
#define PC_CLI_RUN_SWEEP_H

#include "cli/look.h"
#include "cli/run_sets.h"
#include "results/table.h"

#include <stdbool.h>
#include <stdint.h>

/* What the user asked for. */
typedef struct run_request {
    const char **paths; /* NULL: no file, the sets say everything */
    int path_count;
    run_sets sets;
    const char *output; /* NULL: no results file */
    pc_format format;
    look_request look;
    int64_t jobs;               /* 0: the user does not say */
    int64_t shard, shard_count; /* shard from 1 */
    bool is_quiet;
    bool is_fresh;       /* all runs again, whatever is there */
    bool allows_outside; /* of the scenarios' folders, what they name */
} run_request;

/* Does it all, prints, and returns the exit status. */
int run_sweep(const run_request *r);

#endif
