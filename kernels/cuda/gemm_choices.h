/* gemm_choices.h: how each product that a device has met is computed. */
#ifndef PC_KERNELS_CUDA_GEMM_CHOICES_H
#define PC_KERNELS_CUDA_GEMM_CHOICES_H

#include "kernels/cuda/blas.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What two products have in common for which the same way is taken: as bytes, without gaps. */
typedef struct pc_gemm_key {
    int64_t batch, m, n, k;
    uint32_t alignment[5]; /* of the tensors, in bytes; 0 of those that it has not */
    uint8_t role, dtype, epilogue, accumulates, scaling, low;
    uint8_t zero[6];
} pc_gemm_key;

/* What of the epilogue the library does. */
typedef enum pc_gemm_form {
    PC_GEMM_IN_ONE,
    PC_GEMM_GELU_APART, /* the product with its bias goes to pre, and a kernel of its own from there to c */
    PC_GEMM_BIAS_BEFORE /* the bias is laid down in every row, the product is added to it; and then GELU apart */
} pc_gemm_form;

typedef struct pc_gemm_choice {
    pc_gemm_key key;
    pc_blas_setup setup;
    pc_blas_algorithm way;
    pc_gemm_form form;
} pc_gemm_choice;

typedef struct pc_gemm_choices {
    pc_gemm_choice *list;
    int count, room;
    int last; /* the one that was asked for last: mostly the next one too */
} pc_gemm_choices;

/* Where a product goes: a stream, and its workspace; NULL: the library's own, of the device's stream. */
typedef struct pc_gemm_place {
    cudaStream_t stream;
    void *workspace;
} pc_gemm_place;

/* ---- for products of several parts (gemm.c) ---- */

/* Makes the device the thread's own; PC_ERROR_IO where it has no cuBLASLt. */
pc_code pc_gemm_open(pc_device *device, pc_error *error);

/* Whether it can multiply with such scales. */
pc_code pc_gemm_can(pc_low_scaling scaling, pc_device *device, pc_error *error);

/* Keeps the library's first way of a checked product, if none is kept; and enqueues one, learnt or not. */
pc_code pc_gemm_learn(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                      pc_error *error);
pc_code pc_gemm_enqueue_at(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                           const pc_gemm_place *place, pc_error *error);

/* Gives back all of it, also one of zeros. */
void pc_gemm_choices_free(pc_blas *blas, pc_gemm_choices *choices);

#ifdef __cplusplus
}
#endif
#endif
