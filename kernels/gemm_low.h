/* gemm_low.h: matrix products of 8 bits, as Transformer Engine runs them on Hopper: over cuBLASLt (kernels/cuda/) or on
 * the host (tests/emulated/).
 *
 * In all three roles both inputs lie along k (TN in BLAS's words), because Hopper's units read 8 bits in no other way:
 * casts leave a transposed copy for the products of gradients (casts.h). Tensors, in this order, row-major:
 *   a [m,k], b [n,k], c [m,n], a_scale, b_scale:   c = a b', each number times the scale of its place; or c plus it
 * c is of the shape's dtype, of weights' gradients fp32. In the recipe `hybrid` a is e5m2 in both gradients, for it is
 * the output's gradient: the shape's `low` is PC_E5M2. Otherwise (`e4m3`) all is e4m3, as in blocks always.
 *
 *   PC_LOW_TENSOR  one scale a tensor, fp32. m, n and k are multiples of 16
 *   PC_LOW_BLOCK   a scale for 128 numbers along k, fp32; of weights, for 128 x 128. k is a multiple of 128.
 *                  (DeepSeek-V3, arXiv 2412.19437, and Transformer Engine's Float8BlockScaling)
 *   PC_LOW_MX      a scale for 32 numbers along k, a power of two in a byte. k is a multiple of 32. (OCP MX 1.0)
 * Weights are b in the forward product and in the input's gradient.
 *
 * Sums: the forward product of PC_LOW_TENSOR keeps them in the matrix unit (fast accumulation); all others take them
 * out into fp32 every so often. (Transformer Engine's recipes: use_split_accumulator.)
 */
#ifndef PC_KERNELS_GEMM_LOW_H
#define PC_KERNELS_GEMM_LOW_H

#include "kernels/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_GEMM_A_SCALE = PC_GEMM_C + 1, PC_GEMM_B_SCALE, PC_GEMM_LOW_TENSORS };

/* How the scales of one operand lie. */
typedef enum pc_scale_layout {
    PC_SCALE_ONE,       /* one */
    PC_SCALE_ROW_128,   /* a scale for 128 of a row: those of all rows side by side, then the next 128 of k */
    PC_SCALE_BLOCK_128, /* a scale for 128 rows and 128 of k: along k, lines of a multiple of 4 */
    PC_SCALE_ROW_32     /* a byte for 32 of a row, in tiles of 128 rows and 4 bytes; cuBLAS's 1D block scaling layout */
} pc_scale_layout;

pc_scale_layout pc_gemm_low_layout(pc_kernel_role role, const pc_kernel_shape *shape, int operand);

/* How many scales a matrix of rows x k has, and which of them is that of a place. */
int64_t pc_scale_count(pc_scale_layout layout, int64_t rows, int64_t k);
int64_t pc_scale_place(pc_scale_layout layout, int64_t rows, int64_t k, int64_t row, int64_t at);

/* Of a tensor of the family, whether or not the output's gradient is in it. */
pc_dtype pc_gemm_low_dtype(pc_kernel_role role, const pc_kernel_shape *shape, int operand);

bool pc_gemm_low_is_fast(pc_kernel_role role, const pc_kernel_shape *shape); /* fast accumulation */

/* PC_ERROR_INPUT: a scaling, one product, sizes as above, no epilogue, sums only in fp32. */
pc_code pc_gemm_low_check(pc_kernel_role role, const pc_kernel_shape *shape, pc_error *error);

/* The same of a family's own scaling; the members of a pc_kernel_family. */
pc_code pc_gemm_low_tensors(pc_kernel_role role, pc_low_scaling scaling, const pc_kernel_shape *shape,
                            pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error);
int64_t pc_gemm_low_bytes(pc_kernel_role role, const pc_kernel_shape *shape);
void pc_gemm_low_reference(pc_kernel_role role, const pc_kernel_shape *shape, double *const *tensors);

/* A family, from functions of its role: prepare, launch and attributes as in pc_kernel_family with a pc_kernel_role in
 * front; can as there with a pc_low_scaling in front. */
#define PC_GEMM_LOW_FAMILY(name_, which, of_role, of_scaling, can_, prepare_role, launch_role, attributes_role)        \
    static pc_code name_##_##which##_can(pc_device *device, pc_error *error) {                                         \
        return can_(of_scaling, device, error);                                                                        \
    }                                                                                                                  \
    static pc_code name_##_##which##_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS],       \
                                             int *count, pc_error *error) {                                            \
        return pc_gemm_low_tensors(of_role, of_scaling, shape, tensors, count, error);                                 \
    }                                                                                                                  \
    static pc_code name_##_##which##_prepare(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,    \
                                             pc_error *error) {                                                        \
        return prepare_role(of_role, device, shape, tensors, error);                                                   \
    }                                                                                                                  \
    static pc_code name_##_##which##_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,     \
                                            pc_error *error) {                                                         \
        return launch_role(of_role, device, shape, tensors, error);                                                    \
    }                                                                                                                  \
    static pc_code name_##_##which##_attributes(pc_device *device, const pc_kernel_shape *shape,                       \
                                                pc_kernel_attributes *made, pc_error *error) {                         \
        return attributes_role(of_role, device, shape, made, error);                                                   \
    }                                                                                                                  \
    static void name_##_##which##_reference(const pc_kernel_shape *shape, double *const *tensors) {                    \
        pc_gemm_low_reference(of_role, shape, tensors);                                                                \
    }                                                                                                                  \
    static int64_t name_##_##which##_bytes(const pc_kernel_shape *shape) {                                             \
        return shape->scaling == of_scaling ? pc_gemm_low_bytes(of_role, shape) : 0;                                   \
    }                                                                                                                  \
    static const pc_low_family name_##_##which##_low = {of_scaling, "gemm_" #which, name_##_##which##_can};            \
    const pc_kernel_family pc_family_##name_##_##which = {                                                             \
        .name = #name_ "_" #which,                                                                                     \
        .group = PC_KERNEL_GEMM,                                                                                       \
        .role = of_role,                                                                                               \
        .tensors = name_##_##which##_tensors,                                                                          \
        .prepare = name_##_##which##_prepare,                                                                          \
        .launch = name_##_##which##_launch,                                                                            \
        .attributes = name_##_##which##_attributes,                                                                    \
        .reference = name_##_##which##_reference,                                                                      \
        .flops = pc_gemm_flops,                                                                                        \
        .bytes = name_##_##which##_bytes,                                                                              \
        .low = &name_##_##which##_low,                                                                                 \
    }

/* All of them, of functions as above. */
#define PC_GEMM_LOW_FAMILIES(name, scaling, can, prepare, launch, attributes)                                          \
    PC_GEMM_LOW_FAMILY(name, forward, PC_KERNEL_FORWARD, scaling, can, prepare, launch, attributes);                   \
    PC_GEMM_LOW_FAMILY(name, input_gradient, PC_KERNEL_INPUT_GRADIENT, scaling, can, prepare, launch, attributes);     \
    PC_GEMM_LOW_FAMILY(name, weight_gradient, PC_KERNEL_WEIGHT_GRADIENT, scaling, can, prepare, launch, attributes)

#ifdef __cplusplus
}
#endif
#endif
