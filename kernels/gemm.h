/* gemm.h: what the matrix products are, whoever computes them: over cuBLASLt (kernels/cuda/) or on the host
 * (tests/emulated/).
 *
 * Tensors, in this order, all row-major, `batch` of them one behind the other:
 *   gemm_forward          a [m,k]  b [n,k]  c [m,n]  then bias [n] with an epilogue, then pre [m,n] with that of GELU
 *   gemm_input_gradient   a [m,k]  b [k,n]  c [m,n]
 *   gemm_weight_gradient  a [k,m]  b [k,n]  c [m,n] in fp32
 * a, b, bias, pre and the first two c are of the shape's dtype. c is the product of a and b, or c plus it if it
 * accumulates. Then bias is added to every row of c; or that sum is kept in pre, and c = gelu(pre), in the tanh form.
 */
#ifndef PC_KERNELS_GEMM_H
#define PC_KERNELS_GEMM_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_GEMM_A, PC_GEMM_B, PC_GEMM_C, PC_GEMM_BIAS, PC_GEMM_PRE };

/* PC_ERROR_INPUT: 16-bit inputs, sizes of 1 .. 2^31 - 1, tensors that can be counted in bytes; an epilogue only
 * forward, of one product, not added to what was there. */
pc_code pc_gemm_check(pc_kernel_role role, const pc_kernel_shape *shape, pc_error *error);

/* The members of a pc_kernel_family. */
pc_code pc_gemm_forward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                pc_error *error);
pc_code pc_gemm_input_gradient_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                       pc_error *error);
pc_code pc_gemm_weight_gradient_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                        pc_error *error);
int64_t pc_gemm_flops(const pc_kernel_shape *shape); /* 2 batch m n k */
int64_t pc_gemm_forward_bytes(const pc_kernel_shape *shape);
int64_t pc_gemm_input_gradient_bytes(const pc_kernel_shape *shape);
int64_t pc_gemm_weight_gradient_bytes(const pc_kernel_shape *shape);

/* kernels/reference/gemm.c */
void pc_gemm_forward_reference(const pc_kernel_shape *shape, double *const *tensors);
void pc_gemm_input_gradient_reference(const pc_kernel_shape *shape, double *const *tensors);
void pc_gemm_weight_gradient_reference(const pc_kernel_shape *shape, double *const *tensors);

/* The three families, from functions of their role: prepare, launch and attributes as in pc_kernel_family with a
 * pc_kernel_role in front. */
#define PC_GEMM_FAMILY(which, of_role, prepare_role, launch_role, attributes_role)                                     \
    static pc_code which##_prepare(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,              \
                                   pc_error *error) {                                                                  \
        return prepare_role(of_role, device, shape, tensors, error);                                                   \
    }                                                                                                                  \
    static pc_code which##_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,               \
                                  pc_error *error) {                                                                   \
        return launch_role(of_role, device, shape, tensors, error);                                                    \
    }                                                                                                                  \
    static pc_code which##_attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made,     \
                                      pc_error *error) {                                                               \
        return attributes_role(of_role, device, shape, made, error);                                                   \
    }                                                                                                                  \
    const pc_kernel_family pc_family_gemm_##which = {                                                                  \
        .name = "gemm_" #which,                                                                                        \
        .group = PC_KERNEL_GEMM,                                                                                       \
        .role = of_role,                                                                                               \
        .tensors = pc_gemm_##which##_tensors,                                                                          \
        .prepare = which##_prepare,                                                                                    \
        .launch = which##_launch,                                                                                      \
        .attributes = which##_attributes,                                                                              \
        .reference = pc_gemm_##which##_reference,                                                                      \
        .flops = pc_gemm_flops,                                                                                        \
        .bytes = pc_gemm_##which##_bytes,                                                                              \
    }

#ifdef __cplusplus
}
#endif
#endif
