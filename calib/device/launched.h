/* launched.h: private to calib/, sweep/ and the command: whether a launcher started this process as one rank of
 * several. */
#ifndef PC_CALIB_DEVICE_LAUNCHED_H
#define PC_CALIB_DEVICE_LAUNCHED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where mpirun or srun started this process as one of several: which, from the environment. False otherwise. */
typedef struct pc_launched {
    int rank, ranks, local_rank, local_ranks;
    char key[64]; /* of the job, that its ranks share */
} pc_launched;
bool pc_launched_ranks(pc_launched *launched);

#ifdef __cplusplus
}
#endif
#endif
