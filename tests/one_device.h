/* one_device.h: set-up and end of tests of kernels, whose state is a device; and what a family says of a shape that it
 * has not. */
#ifndef PC_TESTS_ONE_DEVICE_H
#define PC_TESTS_ONE_DEVICE_H

#include "tests/support.h"

#include "kernels/kernel.h"

#include <string.h>

static inline int open_device(void **state) {
    pc_device *device;
    if (pc_device_open(0, &device, NULL)) return -1;
    *state = device;
    return 0;
}

static inline int close_device(void **state) {
    pc_device_close(*state);
    return 0;
}

static inline void refuses(const pc_kernel_family *family, pc_kernel_shape shape, const char *words) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count = -1;
    pc_error error = {0};
    assert_int_equal(family->tensors(&shape, tensors, &count, &error), PC_ERROR_INPUT);
    assert_int_equal(count, -1);
    if (!strstr(error.message, words)) fail_msg("'%s' instead of '%s'", error.message, words);
    assert_non_null(strstr(error.message, "; expected "));
    assert_int_equal(family->bytes(&shape), 0);
}

#endif
