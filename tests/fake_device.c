#include "tests/fake_device.h"

#include "tests/support.h"

#include "kernels/cuda/runtime.h"
#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/fill.h"
#include "tests/fake_cublaslt.h"
#include "tests/fake_cuda.h"
#include "tests/fake_nvml.h"

#include <math.h>

int fake_device_reset(void **state) {
    (void)state;
    fake_cuda_reset();
    *fake_nvml_now() = (fake_nvml){0};
    *fake_cublaslt_now() = (fake_cublaslt){.enqueue = fake_cuda_enqueue, .seconds = {1e-3, 1e-3}};
    return 0;
}

pc_device *fake_device_open(void) {
    pc_device *device = NULL;
    pc_error error = {0};
    if (pc_device_open(0, &device, &error) != PC_OK) fail_msg("%s", error.message);
    return device;
}

void fake_device_check_empty(void) {
    assert_int_equal(fake.streams, 0);
    assert_int_equal(fake.pools, 0);
    assert_int_equal(fake.events, 0);
    assert_int_equal(fake.graphs, 0);
    assert_int_equal(fake.ready_graphs, 0);
    assert_int_equal(fake.blocks, 0);
    assert_int_equal(fake.faults, 0);
    assert_int_equal(fake_nvml_now()->users, 0);
    assert_int_equal(fake_cublaslt_now()->objects, 0);
    if (fake_cublaslt_now()->faults > 0) fail_msg("cuBLASLt: %s", fake_cublaslt_now()->fault);
}

void fake_device_close(pc_device *device) {
    pc_device_close(device);
    fake_device_check_empty();
}

/* ---- in place of kernels ---- */

typedef struct fill_task {
    void *to;
    pc_dtype dtype;
    pc_fill fill;
    int64_t count;
    double scale;
    uint64_t seed;
} fill_task;

static void run_fill(void *data) {
    const fill_task *of = data;
    uint32_t poison = pc_fill_poison(of->dtype);
    int64_t bytes = pc_dtype_bytes(of->dtype);
    float factor = pc_fill_factor(of->fill, of->scale);
    for (int64_t i = 0; i < of->count; i++) {
        if (of->fill == PC_FILL_POISON)
            memcpy((char *)of->to + i * bytes, &poison, (size_t)bytes); /* the low bytes come first */
        else if (of->dtype == PC_INT32 || of->dtype == PC_UINT8)
            pc_dtype_set(of->dtype, of->to, i, pc_fill_whole(of->fill, (uint64_t)of->scale, of->seed, (uint64_t)i));
        else
            pc_dtype_set(of->dtype, of->to, i, (double)pc_fill_float(of->fill, factor, of->seed, (uint64_t)i));
    }
}

pc_code pc_device_fill(pc_device *device, void *address, pc_dtype dtype, int64_t count, pc_fill fill, double scale,
                       uint64_t seed, pc_error *error) {
    pc_code code = pc_fill_check(dtype, fill, scale, error);
    if (code != PC_OK) return code;
    const fill_task of = {address, dtype, fill, count, scale, seed};
    fake_cuda_enqueue(device->stream, run_fill, &of, sizeof of, 1e-6);
    return PC_OK;
}

static void run_nothing(void *data) {
    (void)data;
}

pc_code pc_device_hold(pc_device *device, pc_error *error) {
    (void)error;
    fake_cuda_enqueue(device->stream, run_nothing, "", 1, 1e-4);
    fake.works--; /* none that anybody asked for */
    return PC_OK;
}

typedef struct gelu_task {
    pc_kernel_shape shape;
    void *from, *to;
} gelu_task;

static void run_gelu(void *data) {
    const gelu_task *of = data;
    for (int64_t i = 0; i < of->shape.m * of->shape.n; i++) {
        double x = pc_dtype_get(of->shape.dtype, of->from, i);
        double y = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        pc_dtype_set(of->shape.dtype, of->to, i, y);
    }
}

static pc_code launch_gelu(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    (void)error;
    assert_int_equal(shape->epilogue, PC_EPILOGUE_NONE);
    const gelu_task of = {*shape, tensors[0], tensors[1]};
    fake_cuda_enqueue(device->stream, run_gelu, &of, sizeof of, 1e-6);
    return PC_OK;
}

const pc_kernel_family pc_family_gelu_forward = {.name = "gelu_forward", .launch = launch_gelu};
