/* measure.h: the measuring program, over kernels/ and one device: private to who links a device (docs/calibration.md
 * has the protocol).
 */
#ifndef PC_CALIB_DEVICE_MEASURE_H
#define PC_CALIB_DEVICE_MEASURE_H

#include "calib/device/launched.h"
#include "calib/profile/profile.h"
#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Told of every shape that is done. */
typedef struct pc_calibrate_progress {
    void (*step)(void *self, int64_t done, int64_t total, const char *what);
    void *self;
} pc_calibrate_progress;

typedef enum pc_calibrate_effort {
    PC_CALIBRATE_FULL,  /* under 9 minutes on one GPU */
    PC_CALIBRATE_QUICK, /* under 60 s */
    PC_CALIBRATE_TINY   /* a few small shapes of everything: to see that it works */
} pc_calibrate_effort;

typedef struct pc_calibrate_request {
    pc_calibrate_effort effort;
    int device;
    uint64_t seed;   /* of data and of the order of shapes */
    double budget_s; /* of all; 0: the effort's own */
    bool without_kernels, without_transfers;
    const volatile int *is_interrupted; /* set from outside (a signal): it stops after the shape at hand; NULL: never */
    const char
        *attention_library;      /* the path of one (kernels/attention_shim.h) to use where it is faster; NULL: none */
    const pc_launched *launched; /* NULL: alone. Else the ranks measure transfers together; rank 0 does the rest */
    const char *meeting;         /* of those ranks: a folder that all of them see */
    const char *program;         /* the path of this program, to start ranks of transfers with */
    const char *version;         /* of this program, for the profile; NULL: not said */
    pc_calibrate_progress progress;
} pc_calibrate_request;

/* Checks every kernel, measures, fits. If it is interrupted or out of time, the profile has what was done until then,
 * and says that this is not all. A family that fails its check is left out and named in `warnings`: a line each, owned
 * by the caller and freed with pc_free, NULL if there is none. PC_ERROR_IO if there is no device, or it fails on the
 * way: the profile has what was measured until then, fitted. `profile` is empty before. */
pc_code pc_calibrate(const pc_calibrate_request *request, pc_profile *profile, char **warnings, pc_error *error);

/* ---- ranks ---- */

/* One process of a group that measures collectives and messages. The calibration starts them itself (exec of its own
 * program), or mpirun or srun did. They meet by files in a folder that all of them see. */
typedef struct pc_rank_task {
    int rank, ranks, nodes, device;
    const char *folder; /* where ranks meet */
    const char *link;   /* how they are joined, as in pc_transfer_measurement */
    double budget_s;    /* of all collectives and sizes, start-up included */
    int64_t most_bytes; /* the largest size */
} pc_rank_task;

/* A rank's arguments, behind the program's path and PC_RANK_COMMAND, and back; PC_ERROR_INPUT if they are none. */
#define PC_RANK_COMMAND "calibrate-rank"
enum { PC_RANK_ARGUMENTS = 8 };
pc_code pc_rank_task_parse(int count, char **arguments, pc_rank_task *task, pc_error *error);

/* Measures as that rank, until done or out of time; rank 0 writes FOLDER/transfers.h5 after every collective. */
pc_code pc_rank_measure(const pc_rank_task *task, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
