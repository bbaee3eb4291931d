/* device_private.h: between device.c and emulate.cc. */
#ifndef PC_TESTS_EMULATED_DEVICE_PRIVATE_H
#define PC_TESTS_EMULATED_DEVICE_PRIVATE_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_emulator pc_emulator; /* the fibers */

pc_emulator *pc_emulator_create(void); /* NULL where memory is short */
void pc_emulator_free(pc_emulator *emulator);

pc_emulator *pc_emulated_device_emulator(pc_device *device);
/* A launch that was refused, and why (static storage); the first since pc_device_launched stands. */
void pc_emulated_refuse(pc_device *device, const char *why);

#ifdef __cplusplus
}
#endif
#endif
