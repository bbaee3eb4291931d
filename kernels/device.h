/* device.h: a GPU as the kernels and the measuring program see it: memory, numbers, time.
 *
 * Implemented twice: over the CUDA runtime (kernels/cuda/), and on the host (tests/emulated/), where the same kernels
 * run thread by thread, for tests on machines without a GPU. Exactly one of the two is linked. A device is used by one
 * thread at a time. All work goes to one stream, in order.
 */
#ifndef PC_KERNELS_DEVICE_H
#define PC_KERNELS_DEVICE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_dtype { PC_BF16, PC_FP16, PC_FP32, PC_INT32, PC_UINT8, PC_E4M3, PC_E5M2, PC_E8M0, PC_DTYPES } pc_dtype;
int64_t pc_dtype_bytes(pc_dtype dtype);
const char *pc_dtype_name(pc_dtype dtype); /* "bf16" */

typedef struct pc_device pc_device;

typedef struct pc_device_info {
    char name[128];
    char driver[64], runtime[64], blas[64], nccl[64], attention[64]; /* versions; "" if there is none */
    int compute_major, compute_minor;
    int processors;          /* SMs */
    int64_t memory_bytes;    /* as the driver reports it */
    int64_t reserved_bytes;  /* of it in use before anything was allocated: context, libraries */
    int64_t l2_bytes;
    int64_t shared_bytes;    /* of a block, at most */
    bool is_emulated;        /* no hardware: its times mean nothing */
} pc_device_info;

/* PC_ERROR_IO in one line where there is no driver or no device, and what to do about it. */
pc_code pc_device_count(int *count, pc_error *error);
pc_code pc_device_open(int index, pc_device **device, pc_error *error);
void pc_device_close(pc_device *device); /* NULL is fine */
const pc_device_info *pc_device_about(const pc_device *device);

/* ---- memory ---- */

/* 256-byte aligned; in stream order, without waiting for the device. PC_ERROR_NO_MEMORY if it does not fit. */
pc_code pc_device_allocate(pc_device *device, int64_t bytes, void **address, pc_error *error);
void pc_device_free(pc_device *device, void *address); /* NULL is fine */
/* Bytes in allocations, as the device's allocator counts them: now, and the most since the last reset. (Not called
 * pc_device_memory: that is a type in models/training/iteration.h.) */
pc_code pc_device_allocated(pc_device *device, int64_t *now_bytes, int64_t *peak_bytes, pc_error *error);
pc_code pc_device_memory_reset_peak(pc_device *device, pc_error *error);

/* Both wait until the copy is done. */
pc_code pc_device_upload(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error);
pc_code pc_device_download(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error);

/* What buffers are filled with before a kernel runs. The value of element i depends on seed and i alone, and is the
 * same on every implementation. */
typedef enum pc_fill {
    PC_FILL_ZERO,
    PC_FILL_ONE,
    PC_FILL_NORMAL,   /* mean 0, standard deviation `scale` */
    PC_FILL_UNIFORM,  /* [0, scale) */
    PC_FILL_INDEX,    /* whole numbers 0 .. scale - 1, for PC_INT32 and PC_UINT8 */
    PC_FILL_POISON,   /* NaN; for whole numbers the largest one */
    PC_FILLS
} pc_fill;
pc_code pc_device_fill(pc_device *device, void *address, pc_dtype dtype, int64_t count, pc_fill fill, double scale,
                       uint64_t seed, pc_error *error);

/* ---- time ---- */

/* Waits for all work; the first fault of a kernel since the last time comes back here. */
pc_code pc_device_wait(pc_device *device, pc_error *error);

/* Enqueues one repetition of some work, number `repeat`, on the device's stream; allocates nothing. */
typedef pc_code pc_device_work(void *self, int repeat, pc_error *error);

/* Runs `repeats` of it, back to back, between two events, and gives the seconds of all. `in_graph`: they are recorded
 * first and launched as one (CUDA graph), so that the host's launches do not count; otherwise launched one by one. */
pc_code pc_device_time(pc_device *device, pc_device_work *work, void *self, int repeats, bool in_graph,
                       double *seconds, pc_error *error);

/* Marks in the stream, for timelines: `count` marks fit; mark `number` is put behind what was enqueued so far. Times in
 * seconds since mark 0, after a wait. */
pc_code pc_device_marks(pc_device *device, int count, pc_error *error);
pc_code pc_device_mark(pc_device *device, int number, pc_error *error);
pc_code pc_device_mark_times(pc_device *device, int count, double *seconds, pc_error *error);

/* What the board says of itself now, through NVML where that is found at run time. */
typedef struct pc_device_state {
    double sm_clock_hz, memory_clock_hz; /* NaN where unknown */
    double watts, celsius;               /* NaN where unknown */
    bool is_throttled;                   /* power, heat or a brake keeps the clock down */
    bool is_known;                       /* NVML answered */
} pc_device_state;
pc_device_state pc_device_state_now(pc_device *device);

#ifdef __cplusplus
}
#endif
#endif
