/* emulated.h: what tests can tell and ask the emulated device, beside device.h. */
#ifndef PC_TESTS_EMULATED_EMULATED_H
#define PC_TESTS_EMULATED_EMULATED_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The FAKE clock: made-up seconds, so that what works with times can be tested and comes out the same every time. A
 * function left NULL is the default: every launch takes a microsecond, and nothing else takes time. */
typedef struct pc_emulated_clock {
    double (*seconds)(void *self, int repeats); /* of pc_device_time */
    double (*mark)(void *self, int number);     /* of pc_device_mark_times, before what mark 0 has is taken off */
    void *self;
} pc_emulated_clock;
void pc_emulated_set_clock(pc_device *device, pc_emulated_clock clock);

/* What can be allocated from now on, all in all; to begin with 4 GiB. */
void pc_emulated_set_memory(pc_device *device, int64_t bytes);

/* Launches, and allocations that were not given back, so far. */
int64_t pc_emulated_launches(const pc_device *device);
int64_t pc_emulated_allocations(const pc_device *device);

/* Work outside kernels (a library's): counts as a launch. */
void pc_emulated_count_launch(pc_device *device);
void pc_emulated_describe_loops(int launches, pc_kernel_attributes *made); /* of such work */

#ifdef __cplusplus
}
#endif
#endif
