/* side_streams.h: streams beside a device's own, for work that may run at a time: they wait for what stands in the
 * device's stream, and it waits for them, within recordings too. */
#ifndef PC_KERNELS_CUDA_SIDE_STREAMS_H
#define PC_KERNELS_CUDA_SIDE_STREAMS_H

#include "engine/error.h"

#include <cuda_runtime_api.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With the device's own four, as Transformer Engine has by default. */
enum { PC_SIDE_STREAMS = 3 };

typedef struct pc_side_streams {
    cudaStream_t stream[PC_SIDE_STREAMS];
    void *workspace[PC_SIDE_STREAMS]; /* of a library's calls there */
    cudaEvent_t fork, done[PC_SIDE_STREAMS];
} pc_side_streams;

/* On the current device, outside recordings. */
pc_code pc_side_streams_make(size_t workspace_bytes, pc_side_streams **streams, pc_error *error);
void pc_side_streams_free(pc_side_streams *streams); /* NULL is fine */

/* What goes to the first `count` streams from now on comes behind what stands in `stream`; and the other way round. */
pc_code pc_side_streams_fork(const pc_side_streams *streams, int count, cudaStream_t stream, pc_error *error);
pc_code pc_side_streams_join(const pc_side_streams *streams, int count, cudaStream_t stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
