#include "kernels/cuda/side_streams.h"

#include "engine/alloc.h"
#include "kernels/cuda/runtime.h"

/* An event that takes no time: those of others may not be recorded into graphs. */
static pc_code make_event(cudaEvent_t *event, pc_error *error) {
    return pc_cuda_check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags", error);
}

static pc_code make_all(size_t workspace_bytes, pc_side_streams *streams, pc_error *error) {
    pc_code code = make_event(&streams->fork, error);
    for (int i = 0; i < PC_SIDE_STREAMS && !code; i++) {
        code = pc_cuda_check(cudaStreamCreateWithFlags(&streams->stream[i], cudaStreamNonBlocking),
                             "cudaStreamCreateWithFlags", error);
        if (!code) code = make_event(&streams->done[i], error);
        if (!code) code = pc_cuda_check(cudaMalloc(&streams->workspace[i], workspace_bytes), "cudaMalloc", error);
    }
    return code;
}

pc_code pc_side_streams_make(size_t workspace_bytes, pc_side_streams **streams, pc_error *error) {
    pc_side_streams *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = make_all(workspace_bytes, made, error);
    if (code) {
        pc_side_streams_free(made);
        return code;
    }
    *streams = made;
    return PC_OK;
}

void pc_side_streams_free(pc_side_streams *streams) {
    if (!streams) return;
    if (streams->fork) (void)cudaEventDestroy(streams->fork);
    for (int i = 0; i < PC_SIDE_STREAMS; i++) {
        if (streams->stream[i]) (void)cudaStreamDestroy(streams->stream[i]);
        if (streams->done[i]) (void)cudaEventDestroy(streams->done[i]);
        if (streams->workspace[i]) (void)cudaFree(streams->workspace[i]);
    }
    pc_free(streams);
}

static pc_code follow(cudaStream_t stream, cudaEvent_t event, pc_error *error) {
    return pc_cuda_check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent", error);
}

pc_code pc_side_streams_fork(const pc_side_streams *streams, int count, cudaStream_t stream, pc_error *error) {
    pc_code code = count ? pc_cuda_check(cudaEventRecord(streams->fork, stream), "cudaEventRecord", error) : PC_OK;
    for (int i = 0; i < count && !code; i++) code = follow(streams->stream[i], streams->fork, error);
    return code;
}

pc_code pc_side_streams_join(const pc_side_streams *streams, int count, cudaStream_t stream, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) {
        code = pc_cuda_check(cudaEventRecord(streams->done[i], streams->stream[i]), "cudaEventRecord", error);
        if (!code) code = follow(stream, streams->done[i], error);
    }
    return code;
}
