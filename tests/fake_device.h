/* fake_device.h: a device over the made-up CUDA runtime and its libraries, and what else a test of kernels/cuda/ needs
 * in place of kernels: pc_device_fill, pc_device_hold and the family gelu_forward, on the host.
 */
#ifndef PC_TESTS_FAKE_DEVICE_H
#define PC_TESTS_FAKE_DEVICE_H

#include "kernels/device.h"

int fake_device_reset(void **state); /* everything as new; a cmocka set-up */
pc_device *fake_device_open(void);
void fake_device_close(pc_device *device); /* and nothing was left behind, nothing forbidden was done */
void fake_device_check_empty(void);

#endif
