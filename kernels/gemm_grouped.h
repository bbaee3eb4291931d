/* gemm_grouped.h: products of several groups of rows, each with a matrix of its own: the experts of one rank.
 *
 * A shape has `batch` groups of `m` rows on average; n and k are the forward product's in all three directions, as
 * profiles have them. Groups are uneven, as a router leaves them: their rows rise from half of m to one and a half.
 * They are multiples of one row, in fp8 of 16 (what Transformer Engine pads to), in fp8_block of 128. The rows of all
 * groups lie behind each other, T together:
 *
 *   grouped_gemm_forward           a [T,k], b [batch,n,k], c [T,n]
 *   grouped_gemm_input_gradient    a [T,n], b [batch,n,k], c [T,k]
 *   grouped_gemm_weight_gradient   a [T,n], b [T,k], c [batch,n,k] fp32, added to where it accumulates
 *
 * Each group is one product of gemm.h. In 8 bits it is one of gemm_low.h, and the scales of its groups lie behind each
 * other: in fp8 one a tensor of a group. There b of the input's gradient is [batch,k,n]. Of the weights' gradient each
 * group's rows of a and b are turned, [n,rows] and [k,rows].
 *
 * Transformer Engine's GroupedLinear runs a product a group, over four streams in turn: so do these.
 */
#ifndef PC_KERNELS_GEMM_GROUPED_H
#define PC_KERNELS_GEMM_GROUPED_H

#include "kernels/gemm_low.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_GROUPS_MOST = 1024 };

/* Rows of all groups before this one; of number `batch` all of them. */
int64_t pc_gemm_group_start(const pc_kernel_shape *shape, int64_t group);

/* One group: its product, and where its tensors begin, in elements. */
typedef struct pc_gemm_group {
    pc_kernel_shape shape;
    int64_t a, b, c;
} pc_gemm_group;
pc_gemm_group pc_gemm_group_of(pc_kernel_role role, const pc_kernel_shape *shape, int64_t group);

/* Scales of an operand's groups before this one, in 8 bits; of number `batch` all of them. */
int64_t pc_gemm_group_scales(pc_kernel_role role, const pc_kernel_shape *shape, int operand, int64_t group);

/* The tensors of a group's product, from those of all. */
void pc_gemm_group_tensors(pc_kernel_role role, const pc_kernel_shape *shape, int64_t group, void *const *tensors,
                           void *of_group[PC_GEMM_LOW_TENSORS]);

/* The family of a group's product. */
const pc_kernel_family *pc_gemm_group_family(pc_kernel_role role, pc_low_scaling scaling);

/* The members of a pc_kernel_family; PC_ERROR_INPUT: 1 to 1024 groups of at least 2 rows (in 8 bits of a multiple of
 * 16, at least 32), less than 2^31 rows in all, and what a group's product refuses. */
pc_code pc_gemm_grouped_check(pc_kernel_role role, pc_low_scaling scaling, const pc_kernel_shape *shape,
                              pc_error *error);
pc_code pc_gemm_grouped_tensors(pc_kernel_role role, pc_low_scaling scaling, const pc_kernel_shape *shape,
                                pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error);
int64_t pc_gemm_grouped_bytes(pc_kernel_role role, const pc_kernel_shape *shape);

/* kernels/reference/gemm_grouped.c */
void pc_gemm_grouped_reference(pc_kernel_role role, const pc_kernel_shape *shape, double *const *tensors);

/* A family, from functions of its role and scaling: prepare, launch and attributes as in pc_kernel_family with these
 * two in front; low is its pc_low_family, or NULL. */
#define PC_GEMM_GROUPED_FAMILY(name_, which, of_role, of_scaling, low_, prepare_of, launch_of, attributes_of)          \
    static pc_code name_##_##which##_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS],       \
                                             int *count, pc_error *error) {                                            \
        return pc_gemm_grouped_tensors(of_role, of_scaling, shape, tensors, count, error);                             \
    }                                                                                                                  \
    static pc_code name_##_##which##_prepare(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,    \
                                             pc_error *error) {                                                        \
        return prepare_of(of_role, of_scaling, device, shape, tensors, error);                                         \
    }                                                                                                                  \
    static pc_code name_##_##which##_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,     \
                                            pc_error *error) {                                                         \
        return launch_of(of_role, of_scaling, device, shape, tensors, error);                                          \
    }                                                                                                                  \
    static pc_code name_##_##which##_attributes(pc_device *device, const pc_kernel_shape *shape,                       \
                                                pc_kernel_attributes *made, pc_error *error) {                         \
        return attributes_of(of_role, of_scaling, device, shape, made, error);                                         \
    }                                                                                                                  \
    static void name_##_##which##_reference(const pc_kernel_shape *shape, double *const *tensors) {                    \
        pc_gemm_grouped_reference(of_role, shape, tensors);                                                            \
    }                                                                                                                  \
    static int64_t name_##_##which##_bytes(const pc_kernel_shape *shape) {                                             \
        return shape->scaling == of_scaling ? pc_gemm_grouped_bytes(of_role, shape) : 0;                               \
    }                                                                                                                  \
    const pc_kernel_family pc_family_##name_##_##which = {                                                             \
        .name = #name_ "_" #which,                                                                                     \
        .group = PC_KERNEL_GROUPED_GEMM,                                                                               \
        .role = of_role,                                                                                               \
        .tensors = name_##_##which##_tensors,                                                                          \
        .prepare = name_##_##which##_prepare,                                                                          \
        .launch = name_##_##which##_launch,                                                                            \
        .attributes = name_##_##which##_attributes,                                                                    \
        .reference = name_##_##which##_reference,                                                                      \
        .flops = pc_gemm_flops,                                                                                        \
        .bytes = name_##_##which##_bytes,                                                                              \
        .low = low_,                                                                                                   \
    }

/* The three of a scaling of 8 bits; can as in a pc_low_family with a pc_low_scaling in front. */
#define PC_GEMM_GROUPED_LOW_FAMILIES(name, scaling, can_, prepare, launch, attributes)                                 \
    static pc_code name##_can(pc_device *device, pc_error *error) {                                                    \
        return can_(scaling, device, error);                                                                           \
    }                                                                                                                  \
    static const pc_low_family name##_forward_low = {scaling, "grouped_gemm_forward", name##_can},                     \
                               name##_input_gradient_low = {scaling, "grouped_gemm_input_gradient", name##_can},       \
                               name##_weight_gradient_low = {scaling, "grouped_gemm_weight_gradient", name##_can};     \
    PC_GEMM_GROUPED_FAMILY(name, forward, PC_KERNEL_FORWARD, scaling, &name##_forward_low, prepare, launch,            \
                           attributes);                                                                                \
    PC_GEMM_GROUPED_FAMILY(name, input_gradient, PC_KERNEL_INPUT_GRADIENT, scaling, &name##_input_gradient_low,        \
                           prepare, launch, attributes);                                                               \
    PC_GEMM_GROUPED_FAMILY(name, weight_gradient, PC_KERNEL_WEIGHT_GRADIENT, scaling, &name##_weight_gradient_low,     \
                           prepare, launch, attributes)

/* All of them, in 16 bits and in 8. */
#define PC_GEMM_GROUPED_FAMILIES(can, prepare, launch, attributes)                                                     \
    PC_GEMM_GROUPED_FAMILY(grouped_gemm, forward, PC_KERNEL_FORWARD, PC_LOW_NONE, NULL, prepare, launch, attributes);  \
    PC_GEMM_GROUPED_FAMILY(grouped_gemm, input_gradient, PC_KERNEL_INPUT_GRADIENT, PC_LOW_NONE, NULL, prepare, launch, \
                           attributes);                                                                                \
    PC_GEMM_GROUPED_FAMILY(grouped_gemm, weight_gradient, PC_KERNEL_WEIGHT_GRADIENT, PC_LOW_NONE, NULL, prepare,       \
                           launch, attributes);                                                                        \
    PC_GEMM_GROUPED_LOW_FAMILIES(fp8_grouped_gemm, PC_LOW_TENSOR, can, prepare, launch, attributes);                   \
    PC_GEMM_GROUPED_LOW_FAMILIES(fp8_block_grouped_gemm, PC_LOW_BLOCK, can, prepare, launch, attributes)

#ifdef __cplusplus
}
#endif
#endif
