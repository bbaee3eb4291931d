/* replay_private.h: the parts of a replay on a device: what the stage runs and what is simulated of it, the device's
 * side (session), both together (replay_device.c). Private to calib/replay_*.c and their tests.
 */
#ifndef PC_CALIB_DEVICE_REPLAY_PRIVATE_H
#define PC_CALIB_DEVICE_REPLAY_PRIVATE_H

#include "calib/device/replay_device.h"
#include "kernels/layer.h"
#include "models/cost/cost.h"
#include "models/schedule/schedule.h"
#include "models/workload/memory.h"

/* ---- replay_stage.c: what is run ---- */

/* One of the stage's chunks, its layers alone. Of the kinds that the schedule has: seconds a pass. */
typedef struct pc_replay_chunk {
    int64_t layers;
    int64_t parameters;
    pc_part_activation activation;
    double pass_s[PC_PASS_KINDS]; /* simulated: kernels, or their launches where those take longer */
    double launch_bound_s[PC_PASS_KINDS];
} pc_replay_chunk;

typedef struct pc_replay_stage {
    pc_model model; /* as both sides have them: flash attention, no sequence parallelism */
    pc_cut cut;
    int number, microbatches, chunks;
    int64_t pass_count;
    pc_pass *pass; /* the stage's, in order; owned, as chunk is */
    pc_replay_chunk *chunk;
    char schedule[PC_SCHEDULE_NAME_SIZE];
    char left_out[512];
    char warnings[2048]; /* lines: what the profile does not have of the layers' operations */
    bool is_roofline;
} pc_replay_stage;

/* PC_ERROR_INPUT if the spec cannot be run so. Free with pc_replay_stage_free. */
pc_code pc_replay_stage_make(const pc_replay_request *request, pc_replay_stage *stage, pc_error *error);
void pc_replay_stage_free(pc_replay_stage *stage);

/* Bytes of activations that the stage holds at most, F taking `taken[chunk]` and B giving back `b_frees[chunk]` of it,
 * W the rest. */
int64_t pc_replay_stage_peak(const pc_replay_stage *stage, const int64_t *taken, const int64_t *b_frees);

/* ---- replay_session.c: the device's side ---- */

/* One of its layers, on one GPU. */
pc_code pc_replay_layer(const pc_replay_stage *stage, pc_layer *layer, pc_error *error);

/* One step of one kind of pass: its launches in one more iteration, in which every kernel has marks around it. */
typedef struct pc_replay_step_time {
    const pc_kernel_family *family; /* NULL behind the last one */
    pc_kernel_shape shape;
    int64_t count;
    double seconds; /* of all launches */
} pc_replay_step_time;
typedef pc_replay_step_time pc_replay_step_times[PC_LAYER_KINDS][2 * PC_LAYER_STEPS];

/* What a replay found on the device. */
typedef struct pc_replay_measured {
    double *pass_s;                     /* by pass: the mean over repeats */
    double *busy_s;                     /* by repeat: the sum of its passes */
    int64_t state_bytes, working_bytes; /* allocated before the first pass */
    int64_t held_bytes, peak_bytes;     /* beside those: the most between two passes, and at any time */
    pc_replay_step_times *steps;        /* zeroed by the caller; NULL: kernels are not timed */
} pc_replay_measured;

/* Runs the stage's passes on an open device: `warm_ups` times, then `repeats` times that count. `measured` has room for
 * all passes and repeats. Gives back all that it allocates. */
pc_code pc_replay_session(pc_device *device, const pc_replay_stage *stage, int warm_ups, int repeats,
                          pc_replay_measured *measured, pc_error *error);

/* ---- replay_kernels.c: kernel by kernel ---- */

/* The steps, those of one kernel and shape together, beside what the profile's fits say of them; their number. The
 * profile may be NULL. */
int32_t pc_replay_kernels_of(const pc_replay_step_times *steps, const pc_profile *profile,
                             pc_replay_kernel kernel[PC_REPLAY_KERNELS]);

/* All of pc_replay_on_device but opening the device. */
pc_code pc_replay_with_device(pc_device *device, const pc_replay_request *request, pc_replay_outcome *outcome,
                              pc_error *error);

#endif
