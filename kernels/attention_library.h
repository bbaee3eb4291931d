/* attention_library.h: somebody else's attention (attention_shim.h) beside our own: opened, checked, timed, chosen. */
#ifndef PC_KERNELS_ATTENTION_LIBRARY_H
#define PC_KERNELS_ATTENTION_LIBRARY_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the shared library at `path` for the attention families of this device, which then know it by its own name
 * (pc_device_info.attention). PC_ERROR_IO if it cannot be opened, lacks a function or is of another version.
 * To be closed before the device. */
pc_code pc_attention_library_open(pc_device *device, const char *path, pc_error *error);
void pc_attention_library_close(pc_device *device); /* where none is open, or no device, nothing */

/* Why the library does not run any more: its results are not right, or it failed; "" if nothing is wrong, or none is
 * open. Valid until it is closed. */
const char *pc_attention_library_fault(const pc_device *device);

/* ---- for the families ---- */

typedef pc_code pc_attention_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                                    pc_error *error);

/* Who runs the shape from now on: the library where it can, gives what `own` gives, and is faster; its outputs are
 * written over. A library that is wrong or fails is no error here: it is not used again, and its fault is kept. */
pc_code pc_attention_library_prepare(pc_device *device, const pc_kernel_family *family, pc_attention_launch *own,
                                     const pc_kernel_shape *shape, void *const *tensors, pc_error *error);

/* The library's name where it runs the shape; NULL where our own kernel does. */
const char *pc_attention_library_runs(const pc_device *device, const pc_kernel_family *family,
                                      const pc_kernel_shape *shape);

/* What is known of it: its name. */
pc_code pc_attention_library_attributes(const char *name, pc_kernel_attributes *made);

/* Runs a shape that it runs. */
pc_code pc_attention_library_launch(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape,
                                    void *const *tensors, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
