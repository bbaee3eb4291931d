/* replay_device.h: hardware in the loop: one stage's passes of a schedule, run on the device beside the same simulated.
 *
 * The device runs the stage's passes in the schedule's order, with real tensors held from F to B to W. What other
 * stages send comes from a fixed tensor, in time: nothing is waited for. What is left out is left out on both sides,
 * and said (docs/calibration.md).
 */
#ifndef PC_CALIB_DEVICE_REPLAY_DEVICE_H
#define PC_CALIB_DEVICE_REPLAY_DEVICE_H

#include "calib/profile/profile.h"
#include "engine/error.h"
#include "models/training/iteration.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One step of a layer's pass: the same kernel on the same shape, in one more iteration. */
typedef struct pc_replay_kernel {
    char pass[4];             /* "F", "B", "W", "BW" */
    char name[48], dtype[16]; /* the family, and its type, as profiles have them */
    int64_t batch, m, n, k, bytes;
    int64_t count;               /* launches */
    double measured_s, fitted_s; /* mean of a launch; what the profile's fit says, NaN: it has none */
} pc_replay_kernel;
enum { PC_REPLAY_KERNELS = 256 }; /* of all kinds of passes together, at most */

typedef struct pc_replay_request {
    const pc_iteration_spec *spec; /* borrowed */
    const char *scenario;          /* its name, for the report */
    int device;                    /* the GPU, counted from 0 */
    int stage;                     /* 0 .. p-1 */
    int warm_ups, repeats;         /* iterations: first so many that do not count, at least 1, then so many that do */
    const pc_profile *profile;     /* whose fits simulate; NULL, or one without fits: the roofline of the spec's GPU */
    pc_replay_kernel *kernel;      /* room for PC_REPLAY_KERNELS, to have every kernel timed, too; NULL: not that */
} pc_replay_request;

/* Two iterations to warm up, five that count; stage 0 of device 0. */
pc_replay_request pc_replay_request_default(void);

/* The report, which goes into a profile, and what it rests on. Bytes. The peak in the report is that of activations,
 * parameters and gradients together, on both sides. */
typedef struct pc_replay_outcome {
    pc_replay_report report;
    int64_t measured_activations, simulated_activations; /* of the peak */
    int64_t held_activations;                            /* on the device, the most between two passes */
    int64_t vector_bytes; /* of that, what the simulation leaves out: a number or two a row; derived */
    int64_t measured_state, simulated_state; /* parameters and gradients */
    int32_t kernel_count;                    /* in the request's room */
    int64_t working_bytes;                   /* held beside all that while a pass runs; in neither side */
    double launch_bound_s;                   /* what the simulation says the launches of all passes take on the host */
    bool is_roofline;                        /* simulated without a profile */
    char left_out[512];                      /* what is in neither side, in words */
    char warnings[2048]; /* lines: which of the operations the profile does not have, or not of such shapes */
} pc_replay_outcome;

/* What pc_replay_on_device would refuse whatever the device and its profile are; where the command is built without
 * CUDA, nothing. */
pc_code pc_replay_check(const pc_replay_request *request, pc_error *error);

/* PC_ERROR_IO if there is no device; PC_ERROR_INPUT, in one line, where the spec cannot be run so, or does not fit
 * in the simulation; PC_ERROR_NO_MEMORY with pass, stage and bytes where it does not fit on the device. */
pc_code pc_replay_on_device(const pc_replay_request *request, pc_replay_outcome *outcome, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
