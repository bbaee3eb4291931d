/* Grouped products over cuBLASLt: one a group, over four streams in turn, each in the way that the library proposes
 * first, as Transformer Engine runs them. */
#include "kernels/gemm_grouped.h"

#include "kernels/cuda/gemm_choices.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/side_streams.h"
#include "kernels/families.h"

#include <stdio.h>

/* One group on a lane: 0 is the device's own stream. */
static pc_code enqueue_group(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, int64_t group,
                             int lane, void *const *tensors, pc_error *error) {
    const pc_side_streams *lanes = pc_blas_side(device->blas);
    pc_gemm_group of = pc_gemm_group_of(role, shape, group);
    pc_gemm_place place = {device->stream, NULL};
    void *of_group[PC_GEMM_LOW_TENSORS];
    pc_gemm_group_tensors(role, shape, group, tensors, of_group);
    if (lane > 0) place = (pc_gemm_place){lanes->stream[lane - 1], lanes->workspace[lane - 1]};
    return pc_gemm_enqueue_at(role, device, &of.shape, of_group, &place, error);
}

/* Lanes beside the device's own that have something to do; none before a product was prepared. */
static int lanes_for(pc_device *device, int64_t groups) {
    if (!pc_blas_side(device->blas)) return 0;
    return groups - 1 < PC_SIDE_STREAMS ? (int)groups - 1 : PC_SIDE_STREAMS;
}

/* What was forked is joined, whatever happened in between: a recording must not end otherwise. */
static pc_code launch(pc_kernel_role role, pc_low_scaling scaling, pc_device *device, const pc_kernel_shape *shape,
                      void *const *tensors, pc_error *error) {
    pc_code code = pc_gemm_grouped_check(role, scaling, shape, error);
    if (!code) code = pc_gemm_open(device, error);
    if (code) return code;
    int lanes = lanes_for(device, shape->batch);
    code = pc_side_streams_fork(pc_blas_side(device->blas), lanes, device->stream, error);
    if (code) return code;
    for (int64_t group = 0; group < shape->batch && !code; group++)
        code = enqueue_group(role, device, shape, group, (int)(group % (lanes + 1)), tensors, error);
    pc_code joined = pc_side_streams_join(pc_blas_side(device->blas), lanes, device->stream, code ? NULL : error);
    return code ? code : joined;
}

/* The way of every group is looked up before time counts. */
static pc_code prepare(pc_kernel_role role, pc_low_scaling scaling, pc_device *device, const pc_kernel_shape *shape,
                       void *const *tensors, pc_error *error) {
    pc_code code = pc_gemm_grouped_check(role, scaling, shape, error);
    if (!code) code = pc_gemm_open(device, error);
    if (!code && shape->batch > 1) code = pc_blas_side_open(device->blas, error);
    for (int64_t group = 0; group < shape->batch && !code; group++) {
        pc_gemm_group of = pc_gemm_group_of(role, shape, group);
        void *of_group[PC_GEMM_LOW_TENSORS];
        pc_gemm_group_tensors(role, shape, group, tensors, of_group);
        code = pc_gemm_learn(role, device, &of.shape, of_group, error);
    }
    return code;
}

/* The kernel is that of the last group, the fullest. */
static pc_code attributes(pc_kernel_role role, pc_low_scaling scaling, pc_device *device, const pc_kernel_shape *shape,
                          pc_kernel_attributes *made, pc_error *error) {
    pc_code code = pc_gemm_grouped_check(role, scaling, shape, error);
    if (code) return code;
    pc_gemm_group last = pc_gemm_group_of(role, shape, shape->batch - 1);
    pc_kernel_attributes of_last;
    code = pc_gemm_group_family(role, scaling)->attributes(device, &last.shape, &of_last, error);
    if (code) return code;
    *made = of_last;
    snprintf(made->kernel, sizeof made->kernel, "%d streams, %.72s", 1 + lanes_for(device, shape->batch),
             of_last.kernel);
    made->launches = (int)shape->batch * of_last.launches;
    return PC_OK;
}

PC_GEMM_GROUPED_FAMILIES(pc_gemm_can, prepare, launch, attributes);
