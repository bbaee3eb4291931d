/* fake_cublaslt.h: a made-up libcublasLt, opened at run time as the real one is. It multiplies on the host exactly what
 * its descriptors say (layouts, orders, leading dimensions, batches, epilogues), and refuses what the manual forbids.
 */
#ifndef PC_TESTS_FAKE_CUBLASLT_H
#define PC_TESTS_FAKE_CUBLASLT_H

#include <cublasLt.h>
#include <stdbool.h>

typedef struct fake_cublaslt {
    /* How work gets to the stream. */
    void (*enqueue)(cudaStream_t stream, void (*run)(void *data), const void *data, size_t bytes, double seconds);
    double seconds[8];            /* that a product takes by the heuristic's first, second ... way; 0: it is no way */
    cublasStatus_t refuses_at[8]; /* what the way says when it is asked to multiply */
    cublasStatus_t gelu;          /* what asking for ways with it says */
    bool has_no_bias;             /* no way with any epilogue */
    bool has_no_gelu;             /* no way with the epilogue of GELU */
    cublasStatus_t create;        /* what opening says */
    int objects;                  /* handles, descriptors, layouts, preferences that are there */
    int asked, multiplied, ways_given;
    int faults;      /* what the manual forbids */
    char fault[128]; /* the first of them */
    int last_way;
    bool last_was_fast;  /* fast accumulation */
    size_t version;      /* 0: 13.0.2 */
    void *workspaces[8]; /* of the last products: of number i at i % 8, counted from 1 */
} fake_cublaslt;

fake_cublaslt *fake_cublaslt_now(void);

#endif
