/* device.h over the CUDA runtime: opening a device, and its memory. */
#include "kernels/cuda/runtime.h"

#include "engine/alloc.h"
#include "kernels/transfer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

pc_code pc_cuda_check(cudaError_t status, const char *where, pc_error *error) {
    if (status == cudaSuccess) return PC_OK;
    (void)cudaGetLastError(); /* or the next launch would be blamed for it */
    pc_code code = status == cudaErrorMemoryAllocation ? PC_ERROR_NO_MEMORY : PC_ERROR_IO;
    return pc_error_set(error, code, "%s: %s (%s)", where, cudaGetErrorString(status), cudaGetErrorName(status));
}

void pc_device_enter(const pc_device *device) {
    (void)cudaSetDevice(device->index); /* what is wrong with the device, the next call says */
}

void pc_device_set_attention(pc_device *device, pc_attention_library *library, const char *name) {
    device->attention = library;
    snprintf(device->info.attention, sizeof device->info.attention, "%s", name);
}

pc_attention_library *pc_device_attention(const pc_device *device) {
    return device->attention;
}

void *pc_device_stream(pc_device *device) {
    pc_device_enter(device);
    return device->stream;
}

pc_code pc_device_launched(pc_device *device, const char *what, pc_error *error) {
    (void)device;
    cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess) return PC_OK;
    return pc_error_set(error, PC_ERROR_IO, "%s: the launch: %s (%s)", what, cudaGetErrorString(status),
                        cudaGetErrorName(status));
}

pc_code pc_kernel_function_attributes(pc_device *device, const void *kernel, int64_t dynamic_bytes,
                                      pc_kernel_attributes *made, pc_error *error) {
    pc_device_enter(device);
    struct cudaFuncAttributes found;
    pc_code code = pc_cuda_check(cudaFuncGetAttributes(&found, kernel), "cudaFuncGetAttributes", error);
    if (code != PC_OK) return code;
    made->registers = found.numRegs;
    made->shared_bytes = (int64_t)found.sharedSizeBytes + dynamic_bytes;
    return PC_OK;
}

/* ---- opening ---- */

pc_code pc_device_count(int *count, pc_error *error) {
    int found = 0;
    cudaError_t status = cudaGetDeviceCount(&found);
    if (status == cudaSuccess && found == 0) status = cudaErrorNoDevice;
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
        return pc_error_set(error, PC_ERROR_IO,
                            "no GPU: %s; expected an NVIDIA GPU and its driver (without one: `pipecast profile fit` "
                            "makes a profile of others' measurements)",
                            cudaGetErrorString(status));
    }
    *count = found;
    return PC_OK;
}

/* CUDA's versions are 1000 * major + 10 * minor. */
static void write_version(char *text, size_t size, int version) {
    snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
}

static void describe_software(pc_device *device) {
    pc_device_info *info = &device->info;
    int version = 0;
    if (cudaRuntimeGetVersion(&version) == cudaSuccess) write_version(info->runtime, sizeof info->runtime, version);
    char driver[32], cuda[16] = "unknown";
    pc_nvml_driver(device->nvml, driver, sizeof driver);
    if (cudaDriverGetVersion(&version) == cudaSuccess) write_version(cuda, sizeof cuda, version);
    snprintf(info->driver, sizeof info->driver, "%s%sCUDA %s", driver, driver[0] ? ", " : "", cuda);
    if (device->blas) pc_blas_version(device->blas, info->blas, sizeof info->blas);
    pc_transfer_version(info->nccl, sizeof info->nccl);
}

static pc_code describe_hardware(pc_device *device, pc_error *error) {
    struct cudaDeviceProp found;
    pc_code code = pc_cuda_check(cudaGetDeviceProperties(&found, device->index), "cudaGetDeviceProperties", error);
    if (code != PC_OK) return code;
    pc_device_info *info = &device->info;
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, found.name);
    info->compute_major = found.major;
    info->compute_minor = found.minor;
    info->processors = found.multiProcessorCount;
    info->memory_bytes = (int64_t)found.totalGlobalMem;
    info->l2_bytes = found.l2CacheSize;
    info->shared_bytes = (int64_t)found.sharedMemPerBlockOptin;
    if (found.major >= 8) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s has compute capability %d.%d; expected 8.0 or later", found.name,
                        found.major, found.minor);
}

/* Memory that was freed stays with the pool: the next allocation of the size costs nothing. */
static pc_code open_pool(pc_device *device, pc_error *error) {
    struct cudaMemPoolProps of;
    memset(&of, 0, sizeof of);
    of.allocType = cudaMemAllocationTypePinned;
    of.handleTypes = cudaMemHandleTypeNone;
    of.location.type = cudaMemLocationTypeDevice;
    of.location.id = device->index;
    pc_code code = pc_cuda_check(cudaMemPoolCreate(&device->pool, &of), "cudaMemPoolCreate", error);
    if (code != PC_OK) return code;
    uint64_t threshold = UINT64_MAX;
    return pc_cuda_check(cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &threshold),
                         "cudaMemPoolSetAttribute", error);
}

static pc_code open_stream(pc_device *device, pc_error *error) {
    pc_code code = pc_cuda_check(cudaSetDevice(device->index), "cudaSetDevice", error);
    if (code == PC_OK)
        code = pc_cuda_check(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
                             "cudaStreamCreateWithFlags", error);
    if (code == PC_OK) code = pc_cuda_check(cudaEventCreate(&device->start), "cudaEventCreate", error);
    if (code == PC_OK) code = pc_cuda_check(cudaEventCreate(&device->stop), "cudaEventCreate", error);
    return code;
}

/* What is not needed to run kernels of our own: none of it may fail the opening. */
static void open_libraries(pc_device *device) {
    char pci[32];
    if (cudaDeviceGetPCIBusId(pci, sizeof pci, device->index) == cudaSuccess) device->nvml = pc_nvml_open(pci);
    if (pc_blas_open(&device->blas, &device->blas_error) != PC_OK) device->blas = NULL;
    (void)cudaGetLastError();
}

/* Last: the context, the libraries and their workspace are part of it. */
static pc_code measure_reserved(pc_device *device, pc_error *error) {
    size_t free_bytes, all_bytes;
    pc_code code = pc_cuda_check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo", error);
    if (code == PC_OK) device->info.reserved_bytes = (int64_t)(all_bytes - free_bytes);
    return code;
}

pc_code pc_device_open(int index, pc_device **device, pc_error *error) {
    int count = 0;
    pc_code code = pc_device_count(&count, error);
    if (code != PC_OK) return code;
    if (index < 0 || index >= count)
        return pc_error_set(error, PC_ERROR_INPUT, "device %d: there is none; expected 0 to %d", index, count - 1);
    pc_device *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    made->index = index;
    code = describe_hardware(made, error);
    if (code == PC_OK) code = open_stream(made, error);
    if (code == PC_OK) code = open_pool(made, error);
    if (code == PC_OK) open_libraries(made);
    if (code == PC_OK) code = measure_reserved(made, error);
    if (code != PC_OK) {
        pc_device_close(made);
        pc_error_prefix(error, "device %d", index);
        return code;
    }
    describe_software(made);
    *device = made;
    return PC_OK;
}

/* Nobody can do anything about a fault here: where the context is lost, all of these say so. */
void pc_device_close(pc_device *device) {
    if (!device) return;
    pc_device_enter(device);
    if (device->stream) (void)cudaStreamSynchronize(device->stream);
    pc_blas_close(device->blas);
    pc_nvml_close(device->nvml);
    for (int i = 0; i < device->mark_count; i++) (void)cudaEventDestroy(device->marks[i]);
    pc_free(device->marks);
    if (device->start) (void)cudaEventDestroy(device->start);
    if (device->stop) (void)cudaEventDestroy(device->stop);
    if (device->pool) (void)cudaMemPoolDestroy(device->pool);
    if (device->stream) (void)cudaStreamDestroy(device->stream);
    (void)cudaGetLastError();
    pc_free(device);
}

const pc_device_info *pc_device_about(const pc_device *device) {
    return &device->info;
}

pc_device_state pc_device_state_now(pc_device *device) {
    return pc_nvml_state(device->nvml);
}

/* ---- memory ---- */

static cudaError_t take(pc_device *device, int64_t bytes, void **address) {
    return cudaMallocFromPoolAsync(address, bytes > 0 ? (size_t)bytes : 1, device->pool, device->stream);
}

/* What the pool holds in pieces that do not suit goes back to the driver first: only then it has to be waited for. */
static cudaError_t take_again(pc_device *device, int64_t bytes, void **address) {
    (void)cudaGetLastError();
    cudaError_t status = cudaStreamSynchronize(device->stream);
    if (status == cudaSuccess) status = cudaMemPoolTrimTo(device->pool, 0);
    return status == cudaSuccess ? take(device, bytes, address) : status;
}

pc_code pc_device_allocate(pc_device *device, int64_t bytes, void **address, pc_error *error) {
    assert(bytes >= 0 && !device->is_recording);
    pc_device_enter(device);
    void *taken = NULL;
    cudaError_t status = take(device, bytes, &taken);
    if (status == cudaErrorMemoryAllocation) status = take_again(device, bytes, &taken);
    if (status != cudaSuccess) {
        char where[96];
        snprintf(where, sizeof where, "cudaMallocFromPoolAsync of %lld bytes", (long long)bytes);
        return pc_cuda_check(status, where, error);
    }
    *address = taken;
    return PC_OK;
}

void pc_device_free(pc_device *device, void *address) {
    if (!address) return;
    assert(!device->is_recording);
    pc_device_enter(device);
    if (cudaFreeAsync(address, device->stream) != cudaSuccess) (void)cudaGetLastError();
}

static pc_code pool_bytes(pc_device *device, enum cudaMemPoolAttr which, int64_t *bytes, pc_error *error) {
    uint64_t found = 0;
    pc_code code =
        pc_cuda_check(cudaMemPoolGetAttribute(device->pool, which, &found), "cudaMemPoolGetAttribute", error);
    if (code == PC_OK) *bytes = (int64_t)found;
    return code;
}

/* The pool's mark starts again from zero and moves with the next allocation: what was in use when it was reset counts
 * too. */
pc_code pc_device_allocated(pc_device *device, int64_t *now_bytes, int64_t *peak_bytes, pc_error *error) {
    int64_t now, high;
    pc_code code = pool_bytes(device, cudaMemPoolAttrUsedMemCurrent, &now, error);
    if (code == PC_OK) code = pool_bytes(device, cudaMemPoolAttrUsedMemHigh, &high, error);
    if (code != PC_OK) return code;
    int64_t before = device->used_at_reset_bytes > now ? device->used_at_reset_bytes : now;
    *now_bytes = now;
    *peak_bytes = high > before ? high : before;
    return PC_OK;
}

pc_code pc_device_memory_reset_peak(pc_device *device, pc_error *error) {
    int64_t now;
    pc_code code = pool_bytes(device, cudaMemPoolAttrUsedMemCurrent, &now, error);
    if (code != PC_OK) return code;
    uint64_t zero = 0;
    code = pc_cuda_check(cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrUsedMemHigh, &zero),
                         "cudaMemPoolSetAttribute", error);
    if (code == PC_OK) device->used_at_reset_bytes = now;
    return code;
}

static pc_code copy(pc_device *device, void *to, const void *from, int64_t bytes, enum cudaMemcpyKind kind,
                    pc_error *error) {
    assert(bytes >= 0 && !device->is_recording);
    pc_device_enter(device);
    pc_code code =
        pc_cuda_check(cudaMemcpyAsync(to, from, (size_t)bytes, kind, device->stream), "cudaMemcpyAsync", error);
    return code == PC_OK ? pc_device_wait(device, error) : code;
}

pc_code pc_device_upload(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error) {
    return copy(device, to, from, bytes, cudaMemcpyHostToDevice, error);
}

pc_code pc_device_download(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error) {
    return copy(device, to, from, bytes, cudaMemcpyDeviceToHost, error);
}
