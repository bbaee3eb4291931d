/* runtime.h: a device over the CUDA runtime, seen from within kernels/cuda/ by the plain C files that call CUDA and its
 * libraries. Never included in the emulation.
 */
#ifndef PC_KERNELS_CUDA_RUNTIME_H
#define PC_KERNELS_CUDA_RUNTIME_H

#include "kernels/cuda/blas.h"
#include "kernels/cuda/nvml.h"
#include "kernels/device.h"
#include "kernels/launch.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pc_device {
    int index;
    cudaStream_t stream; /* all work goes here */
    cudaMemPool_t pool;  /* our own, so that it counts nobody else's memory */
    int64_t used_at_reset_bytes;
    cudaEvent_t start, stop; /* of pc_device_time */
    cudaEvent_t *marks;
    int mark_count;
    bool is_recording; /* into a graph: no memory is made, nothing is waited for */
    bool is_lost;      /* a kernel's fault has ended the context, and has been told */
    pc_nvml *nvml;     /* NULL if there is none */
    pc_blas *blas;     /* NULL if there is none, and then blas_error says why */
    pc_error blas_error;
    pc_device_info info;
    pc_attention_library *attention; /* NULL if there is none */
};

/* Makes the device the calling thread's own, as CUDA wants it before all else. */
void pc_device_enter(const pc_device *device);

/* Keeps the stream busy for 125 to 250 us, without touching memory (hold.cu): what is enqueued meanwhile begins without
 * the host. */
pc_code pc_device_hold(pc_device *device, pc_error *error);

/* PC_OK for cudaSuccess. Otherwise the message is "<where>: <CUDA's words> (<its name>)", PC_ERROR_NO_MEMORY or
 * PC_ERROR_IO, and CUDA's own note of a fault that it can recover from is cleared. */
pc_code pc_cuda_check(cudaError_t status, const char *where, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
