/* launch.h: what a device offers to the kernels' host code, beside device.h; of both implementations. */
#ifndef PC_KERNELS_LAUNCH_H
#define PC_KERNELS_LAUNCH_H

#include "kernels/device.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Right behind launches: PC_ERROR_IO with what was wrong with one of them ("layer_norm_forward: ..."). Does not wait.
 */
pc_code pc_device_launched(pc_device *device, const char *what, pc_error *error);

/* Registers of a thread and shared bytes of a block (static ones and `dynamic_bytes`), written into `made`; the rest
 * of it stays. The emulated device knows no registers (-1) and no static bytes. `kernel` is the __global__ function. */
pc_code pc_kernel_function_attributes(pc_device *device, const void *kernel, int64_t dynamic_bytes,
                                      pc_kernel_attributes *made, pc_error *error);

/* What runs attention beside our own kernels (attention_library.h), and its name for the device's info; NULL, as to begin
 * with: nothing. The device does not own it. */
typedef struct pc_attention_library pc_attention_library;
void pc_device_set_attention(pc_device *device, pc_attention_library *library, const char *name);
pc_attention_library *pc_device_attention(const pc_device *device);

/* The cudaStream_t on which all runs; NULL of the emulated device. */
void *pc_device_stream(pc_device *device);

#ifdef __cplusplus
}
#endif
#endif
