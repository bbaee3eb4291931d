/* plan_merge.h: the answer to `pipecast plan` whose searches were done in shares. */
#ifndef PC_CLI_PLAN_MERGE_H
#define PC_CLI_PLAN_MERGE_H

#include "sweep/plan_shares.h"

/* Prints and writes what the plan of all would have, its options those of the shares and of `argv` (-o, --format and
 * the like); returns the exit status. */
int plan_answer_merged(pc_plan_shares *shares, int argc, char **argv);

#endif
