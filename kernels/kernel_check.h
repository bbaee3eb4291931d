/* kernel_check.h: whether a kernel is right: random inputs, poisoned outputs, its own reference in double precision. */
#ifndef PC_KERNELS_KERNEL_CHECK_H
#define PC_KERNELS_KERNEL_CHECK_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_kernel_check {
    bool is_right;
    double worst_error; /* over all outputs, as a fraction of what is allowed: up to 1 is right */
    char message[256];  /* the first wrong element: tensor, place, got, expected; "" where right */
} pc_kernel_check;

/* Runs it once on inputs drawn from `seed`, with guard bytes before and behind every tensor that must stay as they are,
 * outputs and scratch poisoned. An error is one of the device or of the shape, not a wrong result. */
pc_code pc_kernel_check_run(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape,
                            uint64_t seed, pc_kernel_check *check, pc_error *error);

/* Shapes worth checking of every family, small and ragged ones: the `number`-th of its group; false behind the last. */
bool pc_kernel_check_shape(const pc_kernel_family *family, int number, pc_kernel_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
