/* Grouped products on the host: a product of gemm.c or gemm_low.c a group. */
#include "kernels/gemm_grouped.h"

#include "kernels/families.h"
#include "tests/emulated/emulated.h"

static pc_code launch(pc_kernel_role role, pc_low_scaling scaling, pc_device *device, const pc_kernel_shape *shape,
                      void *const *tensors, pc_error *error) {
    pc_code code = pc_gemm_grouped_check(role, scaling, shape, error);
    for (int64_t group = 0; group < shape->batch && !code; group++) {
        pc_gemm_group of = pc_gemm_group_of(role, shape, group);
        void *of_group[PC_GEMM_LOW_TENSORS];
        pc_gemm_group_tensors(role, shape, group, tensors, of_group);
        code = pc_gemm_group_family(role, scaling)->launch(device, &of.shape, of_group, error);
    }
    return code;
}

static pc_code prepare(pc_kernel_role role, pc_low_scaling scaling, pc_device *device, const pc_kernel_shape *shape,
                       void *const *tensors, pc_error *error) {
    (void)device;
    (void)tensors;
    return pc_gemm_grouped_check(role, scaling, shape, error);
}

static pc_code attributes(pc_kernel_role role, pc_low_scaling scaling, pc_device *device, const pc_kernel_shape *shape,
                          pc_kernel_attributes *made, pc_error *error) {
    (void)device;
    pc_code code = pc_gemm_grouped_check(role, scaling, shape, error);
    if (code) return code;
    pc_emulated_describe_loops((int)shape->batch, made);
    return PC_OK;
}

static pc_code can(pc_low_scaling scaling, pc_device *device, pc_error *error) {
    (void)scaling;
    (void)device;
    (void)error;
    return PC_OK;
}

PC_GEMM_GROUPED_FAMILIES(can, prepare, launch, attributes);
