/* profile_runs.h: private to calib/profile_cost*.c: an operation of the workload as runs of the kernels that a profile
 * has.
 */
#ifndef PC_CALIB_PROFILE_PROFILE_RUNS_H
#define PC_CALIB_PROFILE_PROFILE_RUNS_H

#include "models/workload/operation.h"

/* `times` runs of a kernel family; `bytes` of each where the family's cost goes by them. */
typedef struct pc_family_run {
    char family[48];
    double times, bytes;
} pc_family_run;

enum { PC_FAMILY_RUNS = 2 };

/* How many there are: 1 or 2; 0 where no family computes this. */
int pc_operation_runs(const pc_operation *operation, pc_family_run runs[PC_FAMILY_RUNS]);

#endif
