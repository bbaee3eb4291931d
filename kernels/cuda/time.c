/* device.h over the CUDA runtime: waiting, timing, graphs and marks. */
#include "kernels/cuda/runtime.h"

#include "engine/alloc.h"

#include <assert.h>

/* ---- waiting ---- */

/* CUDA forgets a fault that it has told of, but not one that has ended the context: every call from then on repeats it.
 */
static bool is_context_lost(const pc_device *device) {
    (void)cudaGetLastError();
    bool is_lost = cudaStreamSynchronize(device->stream) != cudaSuccess;
    (void)cudaGetLastError();
    return is_lost;
}

/* A fault that ends the context is told once in CUDA's words; from then on nothing works, and each wait says so. */
pc_code pc_device_wait(pc_device *device, pc_error *error) {
    assert(!device->is_recording);
    if (device->is_lost)
        return pc_error_set(error, PC_ERROR_IO,
                            "device %d: lost to the fault of a kernel before; expected a new process", device->index);
    pc_device_enter(device);
    cudaError_t status = cudaStreamSynchronize(device->stream);
    if (status == cudaSuccess) return PC_OK;
    device->is_lost = is_context_lost(device);
    return pc_cuda_check(status, "cudaStreamSynchronize", error);
}

/* ---- timing ---- */

static pc_code enqueue_all(pc_device_work *work, void *self, int repeats, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < repeats && code == PC_OK; i++) code = work(self, i, error);
    return code;
}

static pc_code record(pc_device *device, cudaEvent_t event, pc_error *error) {
    return pc_cuda_check(cudaEventRecord(event, device->stream), "cudaEventRecord", error);
}

/* CUDA gives milliseconds in single precision: of a second, to 60 ns. */
static pc_code elapsed(cudaEvent_t from, cudaEvent_t to, double *seconds, pc_error *error) {
    float milliseconds;
    pc_code code = pc_cuda_check(cudaEventElapsedTime(&milliseconds, from, to), "cudaEventElapsedTime", error);
    if (code == PC_OK) *seconds = (double)milliseconds * 1e-3;
    return code;
}

static pc_code finish(pc_device *device, double *seconds, pc_error *error) {
    pc_code code = record(device, device->stop, error);
    if (code == PC_OK) code = pc_device_wait(device, error);
    return code == PC_OK ? elapsed(device->start, device->stop, seconds, error) : code;
}

static pc_code time_launches(pc_device *device, pc_device_work *work, void *self, int repeats, double *seconds,
                             pc_error *error) {
    pc_code code = record(device, device->start, error);
    if (code == PC_OK) code = enqueue_all(work, self, repeats, error);
    return code == PC_OK ? finish(device, seconds, error) : code;
}

/* Ends the recording in any case; a graph comes out only where the work said it was right. */
static pc_code record_graph(pc_device *device, pc_device_work *work, void *self, int repeats, cudaGraph_t *graph,
                            pc_error *error) {
    /* Relaxed: what the first launch of a kernel does in the background, such as loading it, is no part of the graph
     * and is allowed. */
    pc_code code = pc_cuda_check(cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeRelaxed),
                                 "cudaStreamBeginCapture", error);
    if (code != PC_OK) return code;
    device->is_recording = true;
    code = enqueue_all(work, self, repeats, error);
    device->is_recording = false;
    cudaGraph_t made = NULL;
    cudaError_t status = cudaStreamEndCapture(device->stream, &made);
    if (code == PC_OK) {
        code = pc_cuda_check(status, "cudaStreamEndCapture", error);
    } else {
        (void)cudaGetLastError();
    }
    if (code == PC_OK) {
        *graph = made;
    } else if (status == cudaSuccess && made) {
        (void)cudaGraphDestroy(made);
    }
    return code;
}

/* On an idle stream the graph would arrive some microseconds behind the event that starts the time; so both wait in the
 * stream behind something that takes longer than to launch them. */
static pc_code launch_graph(pc_device *device, cudaGraphExec_t ready, double *seconds, pc_error *error) {
    pc_code code = pc_cuda_check(cudaGraphUpload(ready, device->stream), "cudaGraphUpload", error);
    if (code == PC_OK) code = pc_device_wait(device, error);
    if (code == PC_OK) code = pc_device_hold(device, error);
    if (code == PC_OK) code = record(device, device->start, error);
    if (code == PC_OK) code = pc_cuda_check(cudaGraphLaunch(ready, device->stream), "cudaGraphLaunch", error);
    return code == PC_OK ? finish(device, seconds, error) : code;
}

static pc_code time_graph(pc_device *device, pc_device_work *work, void *self, int repeats, double *seconds,
                          pc_error *error) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready;
    pc_code code = record_graph(device, work, self, repeats, &graph, error);
    if (code != PC_OK) return code;
    code = pc_cuda_check(cudaGraphInstantiateWithFlags(&ready, graph, 0), "cudaGraphInstantiateWithFlags", error);
    if (code == PC_OK) {
        code = launch_graph(device, ready, seconds, error);
        (void)cudaGraphExecDestroy(ready);
    }
    (void)cudaGraphDestroy(graph);
    return code;
}

pc_code pc_device_time(pc_device *device, pc_device_work *work, void *self, int repeats, bool in_graph, double *seconds,
                       pc_error *error) {
    assert(repeats > 0 && !device->is_recording);
    pc_device_enter(device);
    return (in_graph ? time_graph : time_launches)(device, work, self, repeats, seconds, error);
}

/* ---- marks ---- */

static void drop_marks(pc_device *device) {
    for (int i = 0; i < device->mark_count; i++) (void)cudaEventDestroy(device->marks[i]);
    pc_free(device->marks);
    device->marks = NULL;
    device->mark_count = 0;
}

pc_code pc_device_marks(pc_device *device, int count, pc_error *error) {
    assert(count >= 0 && !device->is_recording);
    pc_device_enter(device);
    drop_marks(device);
    device->marks = pc_alloc((size_t)count, sizeof *device->marks);
    if (!device->marks) return pc_error_no_memory(error);
    for (int i = 0; i < count; i++) {
        pc_code code = pc_cuda_check(cudaEventCreate(&device->marks[i]), "cudaEventCreate", error);
        if (code != PC_OK) {
            drop_marks(device);
            return code;
        }
        device->mark_count = i + 1;
    }
    return PC_OK;
}

pc_code pc_device_mark(pc_device *device, int number, pc_error *error) {
    assert(number >= 0 && number < device->mark_count && !device->is_recording);
    pc_device_enter(device);
    return record(device, device->marks[number], error);
}

pc_code pc_device_mark_times(pc_device *device, int count, double *seconds, pc_error *error) {
    assert(count <= device->mark_count);
    pc_code code = pc_device_wait(device, error);
    for (int i = 0; i < count && code == PC_OK; i++)
        code = elapsed(device->marks[0], device->marks[i], &seconds[i], error);
    return code;
}
