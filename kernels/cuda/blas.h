/* blas.h: cuBLASLt on one device: opened at run time, its workspace, and the products of kernels/gemm.h in its words.
 *
 * cuBLASLt thinks in columns. A row-major matrix is the transpose of a column-major one of the same bytes, so that
 * C = A B, row-major, is asked for as C' = B' A': B comes first, and C' has n rows and m columns. What is stored as it
 * is needed there is N, what has to be turned is T, which gives the families their names:
 *
 *                          first: b                 second: a
 *   forward          TN    [k,n], ld k, turned      [k,m], ld k
 *   input gradient   NN    [n,k], ld n              [k,m], ld k
 *   weight gradient  NT    [n,k], ld n              [m,k], ld m, turned
 *   of 8 bits, all   TN    [k,n], ld k, turned      [k,m], ld k
 */
#ifndef PC_KERNELS_CUDA_BLAS_H
#define PC_KERNELS_CUDA_BLAS_H

#include "kernels/gemm_low.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_blas pc_blas;

/* For the current device, on which it takes a workspace of 64 MiB. PC_ERROR_IO in one line where the library is missing
 * or does not start. */
pc_code pc_blas_open(pc_blas **blas, pc_error *error);
void pc_blas_close(pc_blas *blas);                               /* NULL is fine */
void pc_blas_version(const pc_blas *blas, char *text, int size); /* "13.0.2" */

/* What was chosen for products so far (gemm.c), which goes with the library. */
typedef struct pc_gemm_choices pc_gemm_choices;
pc_gemm_choices *pc_blas_choices(pc_blas *blas);

/* Whether library and headers know products of 8 bits with such scales, and a GPU of this compute capability has units
 * for them; PC_ERROR_INPUT says why not. */
pc_code pc_blas_can(const pc_blas *blas, pc_low_scaling scaling, int compute_major, int compute_minor, pc_error *error);

/* Streams beside the device's own, each with a workspace (side_streams.h); NULL before they were opened, once. */
typedef struct pc_side_streams pc_side_streams;
pc_code pc_blas_side_open(pc_blas *blas, pc_error *error);
const pc_side_streams *pc_blas_side(const pc_blas *blas);

/* ---- one product ---- */

/* A kind of product, ready to be enqueued with any tensors of it. */
typedef struct pc_blas_setup {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t first, second, result;
    bool accumulates, has_bias, has_pre, has_scales;
} pc_blas_setup;

/* A way to compute it. */
typedef struct pc_blas_algorithm {
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
} pc_blas_algorithm;

/* For a checked shape; pc_blas_setup_free gives it back, also one of zeros. */
pc_code pc_blas_setup_make(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *shape, pc_blas_setup *setup,
                           pc_error *error);
void pc_blas_setup_free(pc_blas *blas, pc_blas_setup *setup);

/* Up to `most` ways, the library's first choice first, for tensors that are aligned as these are; none is no error. */
pc_code pc_blas_setup_ways(pc_blas *blas, pc_blas_setup *setup, void *const *tensors, int most, pc_blas_algorithm *ways,
                           int *count, pc_error *error);

/* Enqueues it: no memory is made, nothing is waited for. `workspace`: of that stream; NULL: the library's own, of the
 * device's stream. */
pc_code pc_blas_setup_enqueue(pc_blas *blas, pc_blas_setup *setup, const pc_blas_algorithm *way, void *const *tensors,
                              cudaStream_t stream, void *workspace, pc_error *error);

/* "cublasLt algo 66, tile 128x256, stages 36, split 1, swizzle 0, cluster 2". */
void pc_blas_way_name(pc_blas *blas, const pc_blas_algorithm *way, char *text, int size);

/* Of an address, in bytes: the largest power of two up to 256 that divides it. */
uint32_t pc_blas_alignment(const void *address);

#ifdef __cplusplus
}
#endif
#endif
