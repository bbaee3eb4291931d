/* kernel.h: the transformer kernels, one family beside the other, each with its tensors, its launch and its reference.
 *
 * A family is plain data and functions: what tensors a shape has, how to enqueue it, what the right answer is in double
 * precision on the host, how many bytes and FLOPs it is. Checking (kernel_check.h), timing (calib/) and whole layers
 * (layer.h) know nothing else of a kernel.
 */
#ifndef PC_KERNELS_KERNEL_H
#define PC_KERNELS_KERNEL_H

#include "engine/error.h"
#include "kernels/device.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_epilogue { PC_EPILOGUE_NONE, PC_EPILOGUE_BIAS, PC_EPILOGUE_BIAS_GELU } pc_epilogue;

/* What products of 8 bits have a scale for: nothing (16 bits), a tensor, 128 numbers, 32 (gemm_low.h). */
typedef enum pc_low_scaling { PC_LOW_NONE, PC_LOW_TENSOR, PC_LOW_BLOCK, PC_LOW_MX, PC_LOW_SCALINGS } pc_low_scaling;
const char *pc_low_name(pc_low_scaling scaling); /* as profiles say it: "", "fp8", "fp8_block", "mxfp8" */

/* A shape of any family; what it does not use is 0. Row-major tensors. */
typedef struct pc_kernel_shape {
    pc_dtype dtype;         /* PC_BF16 or PC_FP16: of activations and weights */
    pc_dtype low;           /* 8 bits, PC_E5M2 or else PC_E4M3: casts: of what is written; products: of the gradient */
    pc_low_scaling scaling; /* GEMM of 8 bits: that of its family */
    int64_t batch;          /* GEMM: independent products; attention: sequences */
    int64_t m, n, k; /* GEMM: C[m,n] = A[m,k] B[k,n], FORWARD: B stored [n,k] (TN in BLAS's words), INPUT_GRADIENT: B
                      * stored [k,n] (NN), WEIGHT_GRADIENT: A stored [k,m], B stored [k,n] (NT), C fp32, added to where
                      * accumulates. Attention: m queries and n keys of a sequence, k of a head. All others: m rows
                      * (tokens) of n columns */
    int64_t heads, kv_heads; /* attention, rotary: query heads, key/value heads; a group shares one */
    bool is_causal;          /* attention: query i of m sees keys up to i + n - m */
    bool accumulates;        /* GEMM: C += */
    pc_epilogue epilogue;    /* GEMM, forward: behind the product */
    float probability;       /* of dropping, 0: no dropout */
    uint64_t seed;           /* of dropout */
} pc_kernel_shape;

typedef enum pc_tensor_use { PC_TENSOR_INPUT, PC_TENSOR_OUTPUT, PC_TENSOR_IN_PLACE, PC_TENSOR_SCRATCH } pc_tensor_use;

typedef struct pc_tensor {
    const char *name; /* "query"; static storage */
    pc_dtype dtype;
    int64_t count;
    pc_tensor_use use; /* scratch is read only where written before, and not looked at */
    pc_fill fill;      /* of inputs and what is worked on in place */
    double scale;
    double tolerance; /* outputs: the largest |got - right| / (|right| + typical |right|) that is no fault, beside the
                       * rounding to dtype; 0 if it has to be exact */
} pc_tensor;

enum { PC_KERNEL_TENSORS = 16 };

typedef struct pc_kernel_attributes {
    char kernel[96]; /* the function that ran, or the library and its algorithm */
    int grid[3], block[3];
    int registers;        /* a thread; -1 where unknown, as for a library's kernel */
    int64_t shared_bytes; /* a block, static and dynamic */
    int64_t workspace_bytes;
    int launches;
} pc_kernel_attributes;

typedef enum pc_kernel_group { /* as pc_operation_kind of models/workload/operation.h, of the same meaning */
                               PC_KERNEL_GEMM,
                               PC_KERNEL_ATTENTION,
                               PC_KERNEL_NORM,
                               PC_KERNEL_ELEMENTWISE,
                               PC_KERNEL_OPTIMIZER,
                               PC_KERNEL_GROUPED_GEMM,
                               PC_KERNEL_GROUPS
} pc_kernel_group;

/* As pc_gemm_role: FORWARD; INPUT_GRADIENT, which is all of the backward pass where nothing is split; WEIGHT_GRADIENT.
 */
typedef enum pc_kernel_role { PC_KERNEL_FORWARD, PC_KERNEL_INPUT_GRADIENT, PC_KERNEL_WEIGHT_GRADIENT } pc_kernel_role;

/* What a family of products of 8 bits is beside. */
typedef struct pc_low_family {
    pc_low_scaling scaling; /* of its shapes; profiles have it as the dtype */
    const char *measured;   /* as which profiles have it: "gemm_forward" of fp8_gemm_forward */
    /* Whether the device and its libraries run this family at all; PC_ERROR_INPUT says why not. */
    pc_code (*can)(pc_device *device, pc_error *error);
} pc_low_family;

typedef struct pc_kernel_family {
    const char *name; /* "layer_norm_backward" */
    pc_kernel_group group;
    pc_kernel_role role;
    /* The tensors in the order in which `launch` and `reference` take them; their number, or PC_ERROR_INPUT with what
     * of the shape cannot be. */
    pc_code (*tensors)(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error);
    /* Before the first launch of a shape, outside graphs and timing (choosing an algorithm); NULL: nothing to do. */
    pc_code (*prepare)(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error);
    /* Enqueues it. Deterministic: the same bytes every time. */
    pc_code (*launch)(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error);
    pc_code (*attributes)(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made, pc_error *error);
    /* The right answer: inputs are given as doubles that hold the rounded values, outputs are written, not rounded.
     * Independent of the kernel: straight from the formula. */
    void (*reference)(const pc_kernel_shape *shape, double *const *tensors);
    int64_t (*flops)(const pc_kernel_shape *shape); /* as pc_operation.flops; 0 of what is no matrix work */
    int64_t (*bytes)(const pc_kernel_shape *shape); /* read and written, each tensor once; scratch left out */
    const pc_low_family *low;                       /* of products of 8 bits; NULL of all others */
} pc_kernel_family;

/* The table of all, in a fixed order. */
const pc_kernel_family *const *pc_kernel_families(int *count);
const pc_kernel_family *pc_kernel_family_find(const char *name); /* NULL if there is none */

#ifdef __cplusplus
}
#endif
#endif
