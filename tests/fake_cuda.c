#include "tests/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fake_cuda fake;

/* ---- what is there ---- */

typedef struct work {
    struct work *next;
    void (*run)(void *data);
    double seconds;
    char data[512];
} work;

struct CUgraph_st {
    work *first, **end;
    int forks; /* streams that joined the capture and that nobody has waited for since */
};
struct CUgraphExec_st {
    work *first; /* the graph's own */
};
struct CUstream_st {
    bool is_capturing, is_busy, is_fork; /* is_fork: it joined another stream's capture */
    struct CUgraph_st *graph;
};
struct CUevent_st {
    bool is_recorded, has_no_time;
    double seconds;
    struct CUstream_st *stream; /* that it was recorded in, in a capture; NULL: not in one */
};
struct CUmemPoolHandle_st {
    int device;
};

/* Blocks, so that what is freed is known, and from which side. */
typedef struct block {
    struct block *next;
    void *address;
    int64_t bytes;
    bool is_of_pool;
} block;

static block *all_blocks;
static cudaError_t last;
static double clock_s;
static int captures;

void fake_cuda_reset(void) {
    fake = (fake_cuda){.devices = 1, .compute_major = 9, .capacity_bytes = INT64_C(1) << 30};
    last = cudaSuccess;
    clock_s = 0;
    captures = 0;
}

/* What a call gives back: CUDA notes the fault for cudaGetLastError, too. */
static cudaError_t say(cudaError_t status) {
    if (fake.is_lost) status = cudaErrorIllegalAddress;
    if (status != cudaSuccess) last = status;
    return status;
}

static bool fails(const char *name) {
    if (!fake.fails || strcmp(fake.fails, name) != 0 || fake.fails_after-- > 0) return false;
    fake.fails = NULL;
    return true;
}

#define MAY_FAIL(name)                                                                                                 \
    if (fails(name)) return say(fake.fails_with);                                                                      \
    if (fake.is_lost) return say(cudaErrorIllegalAddress)

static cudaError_t forbidden(cudaError_t status) {
    fake.faults++;
    return say(status);
}

/* ---- errors, devices ---- */

cudaError_t cudaGetLastError(void) {
    cudaError_t status = last;
    last = fake.is_lost ? cudaErrorIllegalAddress : cudaSuccess;
    return status;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation     ? "out of memory"
           : error == cudaErrorNoDevice           ? "no CUDA-capable device is detected"
           : error == cudaErrorInsufficientDriver ? "CUDA driver version is insufficient for CUDA runtime version"
           : error == cudaErrorIllegalAddress     ? "an illegal memory access was encountered"
                                                  : "a made-up fault";
}

const char *cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress"
                                              : "cudaErrorMadeUp";
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = fake.driver == cudaSuccess ? fake.devices : 0;
    return say(fake.driver);
}

cudaError_t cudaSetDevice(int device) {
    MAY_FAIL("cudaSetDevice");
    return device < fake.devices ? cudaSuccess : forbidden(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *found, int device) {
    MAY_FAIL("cudaGetDeviceProperties");
    memset(found, 0, sizeof *found);
    snprintf(found->name, sizeof found->name, "made-up GPU %d", device);
    found->major = fake.compute_major;
    found->multiProcessorCount = 132;
    found->totalGlobalMem = (size_t)fake.capacity_bytes;
    found->l2CacheSize = 50 << 20;
    found->sharedMemPerBlockOptin = 227 << 10;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = 12080;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
    snprintf(text, (size_t)size, "0000:3%d:00.0", device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr which, int from, int to) {
    MAY_FAIL("cudaDeviceGetP2PAttribute");
    if (which != cudaDevP2PAttrNativeAtomicSupported || from == to) return forbidden(cudaErrorInvalidValue);
    *value = fake.has_peer_atomics;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *found, const void *function) {
    MAY_FAIL("cudaFuncGetAttributes");
    memset(found, 0, sizeof *found);
    found->numRegs = function ? 40 : 0;
    found->sharedSizeBytes = 1024;
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all) {
    MAY_FAIL("cudaMemGetInfo");
    *all = (size_t)fake.capacity_bytes;
    *free_bytes = (size_t)(fake.capacity_bytes - fake.bytes);
    return cudaSuccess;
}

static cudaError_t take(void **address, size_t bytes, bool is_of_pool) {
    if (captures > 0) return forbidden(cudaErrorStreamCaptureUnsupported);
    if (fake.bytes + (int64_t)bytes > fake.capacity_bytes) return say(cudaErrorMemoryAllocation);
    block *made = calloc(1, sizeof *made);
    *made = (block){all_blocks, aligned_alloc(256, (bytes + 255) / 256 * 256), (int64_t)bytes, is_of_pool};
    memset(made->address, 0xee, bytes);
    all_blocks = made;
    fake.blocks++;
    fake.bytes += made->bytes;
    if (fake.bytes > fake.high_bytes) fake.high_bytes = fake.bytes;
    *address = made->address;
    return cudaSuccess;
}

static cudaError_t give(void *address, bool is_of_pool) {
    for (block **at = &all_blocks; *at; at = &(*at)->next) {
        block *found = *at;
        if (found->address != address || found->is_of_pool != is_of_pool) continue;
        *at = found->next;
        fake.blocks--;
        fake.bytes -= found->bytes;
        free(found->address);
        free(found);
        return say(cudaSuccess);
    }
    return forbidden(cudaErrorInvalidValue);
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
    MAY_FAIL("cudaMalloc");
    return take(address, bytes, false);
}

cudaError_t cudaFree(void *address) {
    return give(address, false);
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    MAY_FAIL("cudaMallocFromPoolAsync");
    if (!pool || !stream || bytes == 0) return forbidden(cudaErrorInvalidValue);
    return take(address, bytes, true);
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream) {
    (void)stream;
    return give(address, true);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *of) {
    MAY_FAIL("cudaMemPoolCreate");
    if (of->allocType != cudaMemAllocationTypePinned || of->location.type != cudaMemLocationTypeDevice)
        return forbidden(cudaErrorInvalidValue);
    *pool = calloc(1, sizeof **pool);
    (*pool)->device = of->location.id;
    fake.pools++;
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    free(pool);
    fake.pools--;
    return say(cudaSuccess);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    (void)pool;
    (void)bytes;
    MAY_FAIL("cudaMemPoolTrimTo");
    return cudaSuccess;
}

static int64_t pool_bytes(void) {
    int64_t bytes = 0;
    for (const block *b = all_blocks; b; b = b->next) bytes += b->is_of_pool ? b->bytes : 0;
    return bytes;
}

static int64_t outside_bytes(void) {
    return fake.bytes - pool_bytes();
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value) {
    (void)pool;
    MAY_FAIL("cudaMemPoolSetAttribute");
    uint64_t given;
    memcpy(&given, value, sizeof given);
    if (which == cudaMemPoolAttrReleaseThreshold) return cudaSuccess;
    if (which != cudaMemPoolAttrUsedMemHigh || given != 0) return forbidden(cudaErrorInvalidValue);
    fake.high_bytes = 0; /* until the next allocation: the hardest way to read the manual */
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value) {
    (void)pool;
    MAY_FAIL("cudaMemPoolGetAttribute");
    int64_t high = fake.high_bytes - outside_bytes();
    uint64_t found = (uint64_t)(which == cudaMemPoolAttrUsedMemCurrent ? pool_bytes() : high > 0 ? high : 0);
    memcpy(value, &found, sizeof found);
    return cudaSuccess;
}

/* ---- streams and work ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    (void)flags;
    MAY_FAIL("cudaStreamCreateWithFlags");
    *stream = calloc(1, sizeof **stream);
    fake.streams++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free(stream);
    fake.streams--;
    return say(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    MAY_FAIL("cudaStreamSynchronize");
    if (stream->is_capturing) return forbidden(cudaErrorStreamCaptureUnsupported);
    fake.synchronisations++;
    stream->is_busy = false;
    return cudaSuccess;
}

void fake_cuda_enqueue(cudaStream_t stream, void (*run)(void *data), const void *data, size_t bytes, double seconds) {
    if (bytes > sizeof((work *)0)->data) abort();
    if (!stream->is_capturing) {
        work now = {.run = run};
        memcpy(now.data, data, bytes);
        clock_s += seconds + (stream->is_busy ? 0 : fake.latency_s);
        stream->is_busy = true;
        fake.works++;
        run(now.data);
        return;
    }
    work *later = calloc(1, sizeof *later);
    later->run = run;
    later->seconds = seconds;
    memcpy(later->data, data, bytes);
    *stream->graph->end = later;
    stream->graph->end = &later->next;
}

typedef struct copy_work {
    void *to;
    const void *from;
    size_t bytes;
} copy_work;

static void run_copy(void *data) {
    const copy_work *of = data;
    memcpy(of->to, of->from, of->bytes);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    MAY_FAIL("cudaMemcpyAsync");
    copy_work of = {to, from, bytes};
    fake_cuda_enqueue(stream, run_copy, &of, sizeof of, 1e-6);
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    MAY_FAIL("cudaEventCreate");
    *event = calloc(1, sizeof **event);
    fake.events++;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    MAY_FAIL("cudaEventCreateWithFlags");
    if (flags != cudaEventDisableTiming) return forbidden(cudaErrorInvalidValue);
    *event = calloc(1, sizeof **event);
    (*event)->has_no_time = true;
    fake.events++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    fake.events--;
    return say(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    MAY_FAIL("cudaEventRecord");
    if (stream->is_capturing && !event->has_no_time) return forbidden(cudaErrorStreamCaptureUnsupported);
    event->is_recorded = true;
    event->seconds = clock_s;
    event->stream = stream->is_capturing ? stream : NULL;
    return cudaSuccess;
}

/* A stream that waits for one that is captured is captured with it, until that one waits for it. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    MAY_FAIL("cudaStreamWaitEvent");
    if (flags != 0 || !event->is_recorded) return forbidden(cudaErrorInvalidValue);
    fake.waits++;
    if (!event->stream) return stream->is_capturing ? forbidden(cudaErrorStreamCaptureIsolation) : cudaSuccess;
    if (!stream->is_capturing) {
        stream->is_capturing = stream->is_fork = true;
        stream->graph = event->stream->graph;
        stream->graph->forks++;
    } else if (event->stream->is_fork && event->stream->graph == stream->graph) {
        event->stream->is_capturing = event->stream->is_fork = false;
        stream->graph->forks--;
    }
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    MAY_FAIL("cudaEventElapsedTime");
    if (!from->is_recorded || !to->is_recorded || from->has_no_time || to->has_no_time)
        return say(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)((to->seconds - from->seconds) * 1e3);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    (void)mode;
    MAY_FAIL("cudaStreamBeginCapture");
    if (stream->is_capturing) return forbidden(cudaErrorIllegalState);
    stream->graph = calloc(1, sizeof *stream->graph);
    stream->graph->end = &stream->graph->first;
    stream->is_capturing = true;
    fake.graphs++;
    captures++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    if (!stream->is_capturing || stream->is_fork) return forbidden(cudaErrorIllegalState);
    stream->is_capturing = false;
    captures--;
    if (stream->graph->forks > 0) return forbidden(cudaErrorStreamCaptureUnjoined);
    *graph = stream->graph;
    if (!fails("cudaStreamEndCapture")) return say(cudaSuccess);
    (void)cudaGraphDestroy(stream->graph);
    *graph = NULL;
    return say(fake.fails_with);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    while (graph->first) {
        work *gone = graph->first;
        graph->first = gone->next;
        free(gone);
    }
    free(graph);
    fake.graphs--;
    return say(cudaSuccess);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ready, cudaGraph_t graph, unsigned long long flags) {
    (void)flags;
    MAY_FAIL("cudaGraphInstantiateWithFlags");
    *ready = calloc(1, sizeof **ready);
    (*ready)->first = graph->first;
    fake.ready_graphs++;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
    free(ready);
    fake.ready_graphs--;
    return say(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t ready, cudaStream_t stream) {
    (void)ready;
    (void)stream;
    MAY_FAIL("cudaGraphUpload");
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
    MAY_FAIL("cudaGraphLaunch");
    if (stream->is_capturing) return forbidden(cudaErrorIllegalState);
    fake.graph_launches++;
    for (work *w = ready->first; w; w = w->next) fake_cuda_enqueue(stream, w->run, w->data, sizeof w->data, w->seconds);
    return cudaSuccess;
}
