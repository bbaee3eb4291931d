/* fake_cuda.h: a made-up CUDA runtime on the host, linked in place of the real one. So the host's part of kernels/cuda/
 * can be tested without a GPU: what it asks for, in which order, and that it asks for nothing that CUDA forbids. Memory
 * is the host's; work runs at once, or, while a stream is captured, when its graph is launched; time is what each piece
 * of work says that it takes.
 */
#ifndef PC_TESTS_FAKE_CUDA_H
#define PC_TESTS_FAKE_CUDA_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct fake_cuda {
    cudaError_t driver; /* what counting devices says */
    int devices;
    int compute_major;
    int64_t capacity_bytes; /* of the device */
    bool has_peer_atomics;  /* between any two */
    /* A call of this name fails so, once, after it was met `fails_after` times. */
    const char *fails;
    cudaError_t fails_with;
    int fails_after;
    double latency_s; /* from a launch on an idle stream to its begin */
    bool is_lost;     /* from now on every call says cudaErrorIllegalAddress, and nothing clears it */
    /* What is there now: 0 when all was given back. */
    int streams, pools, events, graphs, ready_graphs;
    int64_t blocks, bytes, high_bytes;
    int waits;                                           /* of a stream for an event */
    int synchronisations, works, graph_launches, faults; /* faults: calls that CUDA forbids there */
} fake_cuda;

extern fake_cuda fake; /* fake_cuda_reset() first */
void fake_cuda_reset(void);

/* Work on a stream: `run` with a copy of `bytes` bytes at `data`, now or in the graph; takes `seconds`. */
void fake_cuda_enqueue(cudaStream_t stream, void (*run)(void *data), const void *data, size_t bytes, double seconds);

#endif
