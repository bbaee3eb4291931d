/* transfers.h: measuring collectives and messages, one process a rank. Device part: linked where kernels are.
 *
 * The program starts the ranks itself (exec of its own path), or mpirun or srun did. Ranks meet by a file in a folder
 * that all of them see; rank 0 leaves the measurements there, as a profile. docs/calibration.md has the protocol.
 */
#ifndef PC_CALIB_DEVICE_TRANSFERS_H
#define PC_CALIB_DEVICE_TRANSFERS_H

#include "calib/device/launched.h"
#include "calib/device/measure.h"
#include "calib/profile/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one rank is told. */
typedef struct pc_rank_task {
    int rank, ranks, nodes, device;
    const char *folder; /* where ranks meet */
    const char *link;   /* how they are joined, as in pc_transfer_measurement */
    double budget_s;    /* of all collectives and sizes, start-up included */
    int64_t most_bytes; /* the largest size */
} pc_rank_task;

/* The files of that folder; the text is valid until the next call of the same thread. */
const char *pc_rank_file(const char *folder, const char *name, int number);

/* Measures as that rank, until done or out of time; rank 0 writes FOLDER/transfers.h5 after every collective. */
pc_code pc_rank_measure(const pc_rank_task *task, pc_error *error);

/* Adds the transfers of the profile at `path` to another. */
pc_code pc_rank_take(const char *path, pc_profile *profile, pc_error *error);

/* A rank's arguments, behind the program's path and PC_RANK_COMMAND, and back; PC_ERROR_INPUT where they are none. */
#define PC_RANK_COMMAND "calibrate-rank"
enum { PC_RANK_ARGUMENTS = 8 };
pc_code pc_rank_task_parse(int count, char **arguments, pc_rank_task *task, pc_error *error);

/* Adds a line to the caller's warnings (pc_free); NULL before the first. */
pc_code pc_warnings_add(char **warnings, const char *line, pc_error *error);

/* The largest size that is measured. */
int64_t pc_transfers_most_bytes(pc_calibrate_effort effort);

/* Measures every group size of this machine's devices, and adds to the profile. With a single device two ranks share it
 * and talk over the loopback sockets: the link says so. A rank that fails ends its group: a line of `warnings`, which
 * is the caller's (pc_free) and may be NULL before; what other groups gave stays. */
pc_code pc_measure_transfers(const pc_calibrate_request *request, int devices, double budget_s, pc_profile *profile,
                             char **warnings, pc_error *error);

/* Measures as one of those that mpirun or srun started (launched.h), with the ranks meeting in `folder` (seen by all
 * nodes): all of them, and the first 2, 4, 8
 * ... of them. On rank 0 the profile has the result. */
pc_code pc_measure_launched(const pc_calibrate_request *request, const pc_launched *launched, const char *folder,
                            int devices, double budget_s, pc_profile *profile, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
