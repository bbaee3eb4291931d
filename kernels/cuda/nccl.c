/* Transfers over NCCL, which is opened at run time. */
#include "kernels/transfer.h"

#include "engine/alloc.h"
#include "kernels/cuda/loaded_library.h"
#include "kernels/cuda/runtime.h"

#include <nccl.h>
#include <stdio.h>
#include <string.h>

/* ---- the library ---- */

typedef struct nccl {
    __typeof__(ncclGetVersion) *version;
    __typeof__(ncclGetErrorString) *words;
    __typeof__(ncclGetUniqueId) *unique_id;
    __typeof__(ncclCommInitRank) *join;
    __typeof__(ncclCommDestroy) *leave;
    __typeof__(ncclCommAbort) *abort;
    __typeof__(ncclGroupStart) *group_start;
    __typeof__(ncclGroupEnd) *group_end;
    __typeof__(ncclSend) *send;
    __typeof__(ncclRecv) *receive;
    __typeof__(ncclAllReduce) *all_reduce;
    __typeof__(ncclAllGather) *all_gather;
    __typeof__(ncclReduceScatter) *reduce_scatter;
    void *library;
} nccl;

static pc_code open_library(nccl *library, pc_error *error) {
    static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
    const pc_shared_library_entry entries[] = {
        {"ncclGetVersion", &library->version, false},
        {"ncclGetErrorString", &library->words, false},
        {"ncclGetUniqueId", &library->unique_id, false},
        {"ncclCommInitRank", &library->join, false},
        {"ncclCommDestroy", &library->leave, false},
        {"ncclCommAbort", &library->abort, false},
        {"ncclGroupStart", &library->group_start, false},
        {"ncclGroupEnd", &library->group_end, false},
        {"ncclSend", &library->send, false},
        {"ncclRecv", &library->receive, false},
        {"ncclAllReduce", &library->all_reduce, false},
        {"ncclAllGather", &library->all_gather, false},
        {"ncclReduceScatter", &library->reduce_scatter, false},
    };
    return pc_shared_library_open("NCCL", "NCCL 2.7 or newer where the loader looks (LD_LIBRARY_PATH)", names, entries,
                                  sizeof entries / sizeof *entries, &library->library, error);
}

static pc_code say(const nccl *library, ncclResult_t result, const char *what, pc_error *error) {
    if (result == ncclSuccess) return PC_OK;
    return pc_error_set(error, PC_ERROR_IO, "NCCL, %s: %s", what, library->words(result));
}

void pc_transfer_version(char *text, int size) {
    nccl library;
    int version = 0;
    text[0] = 0;
    if (open_library(&library, NULL)) return;
    /* 2.32.3 is 23203; before 2.9 2.8.4 was 2804. */
    if (library.version(&version) == ncclSuccess) {
        int major = version >= 10000 ? version / 10000 : version / 1000;
        int rest = version >= 10000 ? version % 10000 : version % 1000;
        snprintf(text, (size_t)size, "%d.%d.%d", major, rest / 100, rest % 100);
    }
    pc_shared_library_close(library.library);
}

/* ---- groups ---- */

enum { LARGEST_ROOM = 64 };

struct pc_transfer_group {
    nccl nccl;
    pc_device *device;
    ncclComm_t communicator;
    int ranks, rank;
    double *largest; /* on the device: LARGEST_ROOM numbers */
};

_Static_assert(PC_TRANSFER_ID_BYTES == sizeof(ncclUniqueId), "an id is NCCL's");

pc_code pc_transfer_id_make(pc_transfer_id *id, pc_error *error) {
    nccl library;
    ncclUniqueId made;
    pc_code code = open_library(&library, error);
    if (code) return code;
    /* The library stays open: the thread that answers to this id lives in it. */
    code = say(&library, library.unique_id(&made), "making an id", error);
    if (!code) memcpy(id->bytes, &made, sizeof made);
    return code;
}

static pc_code join(pc_transfer_group *g, const pc_transfer_id *id, pc_error *error) {
    ncclUniqueId unique;
    memcpy(&unique, id->bytes, sizeof unique);
    pc_device_stream(g->device); /* makes the device this thread's own */
    pc_code code = pc_device_allocate(g->device, LARGEST_ROOM * (int64_t)sizeof(double), (void **)&g->largest, error);
    if (!code) code = say(&g->nccl, g->nccl.join(&g->communicator, g->ranks, unique, g->rank), "joining", error);
    return code;
}

pc_code pc_transfer_open(pc_device *device, const pc_transfer_id *id, int ranks, int rank, pc_transfer_group **group,
                         pc_error *error) {
    pc_transfer_group *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    made->device = device;
    made->ranks = ranks;
    made->rank = rank;
    pc_code code = open_library(&made->nccl, error);
    if (!code) code = join(made, id, error);
    if (code) {
        pc_transfer_abandon(made);
        return code;
    }
    *group = made;
    return PC_OK;
}

static void put_down(pc_transfer_group *group, ncclResult_t (*leave)(ncclComm_t)) {
    if (group->communicator) (void)leave(group->communicator);
    pc_device_free(group->device, group->largest);
    pc_shared_library_close(group->nccl.library);
    pc_free(group);
}

void pc_transfer_close(pc_transfer_group *group) {
    if (group) put_down(group, group->nccl.leave);
}

/* ncclCommDestroy waits for the ranks of the same machine (NCCL's manual, 'Communicator Creation and Management'). */
void pc_transfer_abandon(pc_transfer_group *group) {
    if (group) put_down(group, group->nccl.abort);
}

/* ---- transfers ---- */

static ncclDataType_t type_of(pc_dtype dtype) {
    return dtype == PC_FP32 ? ncclFloat32 : ncclBfloat16;
}

static size_t bytes_of(pc_dtype dtype) {
    return dtype == PC_FP32 ? 4 : 2;
}

/* Sends and receives of one group call go at once, in both directions. */
static ncclResult_t to_and_from(const pc_transfer_group *g, ncclDataType_t type, const char *send, int to,
                                char *receive, int from, size_t count, cudaStream_t stream) {
    ncclResult_t result = g->nccl.send(send, count, type, to, g->communicator, stream);
    return result ? result : g->nccl.receive(receive, count, type, from, g->communicator, stream);
}

static ncclResult_t all_to_all(const pc_transfer_group *g, pc_dtype dtype, const char *send, char *receive, size_t part,
                               cudaStream_t stream) {
    ncclResult_t result = g->nccl.group_start();
    for (int r = 0; !result && r < g->ranks; r++) {
        size_t at = (size_t)r * part * bytes_of(dtype);
        result = to_and_from(g, type_of(dtype), send + at, r, receive + at, r, part, stream);
    }
    ncclResult_t ended = g->nccl.group_end();
    return result ? result : ended;
}

static ncclResult_t around(const pc_transfer_group *g, pc_dtype dtype, const char *send, char *receive, size_t count,
                           cudaStream_t stream) {
    int next = (g->rank + 1) % g->ranks, before = (g->rank + g->ranks - 1) % g->ranks;
    ncclResult_t result = g->nccl.group_start();
    if (!result) result = to_and_from(g, type_of(dtype), send, next, receive, before, count, stream);
    ncclResult_t ended = g->nccl.group_end();
    return result ? result : ended;
}

pc_code pc_transfer_enqueue(pc_transfer_group *group, pc_transfer_kind transfer, pc_dtype dtype, const void *send,
                            void *receive, int64_t count, pc_error *error) {
    const nccl *library = &group->nccl;
    ncclComm_t comm = group->communicator;
    cudaStream_t stream = pc_device_stream(group->device);
    size_t all = (size_t)count, part = all / (size_t)group->ranks;
    ncclDataType_t type = type_of(dtype);
    ncclResult_t result = ncclInvalidArgument;
    switch (transfer) {
    case PC_TRANSFER_SEND_RECV:
        result = around(group, dtype, send, receive, all, stream);
        break;
    case PC_TRANSFER_ALL_REDUCE:
        result = library->all_reduce(send, receive, all, type, ncclSum, comm, stream);
        break;
    case PC_TRANSFER_ALL_GATHER:
        result = library->all_gather(send, receive, part, type, comm, stream);
        break;
    case PC_TRANSFER_REDUCE_SCATTER:
        result = library->reduce_scatter(send, receive, part, type, ncclSum, comm, stream);
        break;
    case PC_TRANSFER_ALL_TO_ALL:
        result = all_to_all(group, dtype, send, receive, part, stream);
        break;
    case PC_TRANSFERS:
        break;
    }
    return say(library, result, pc_transfer_name(transfer), error);
}

static pc_code largest_of_few(pc_transfer_group *g, double *values, int count, pc_error *error) {
    int64_t bytes = count * (int64_t)sizeof *values;
    cudaStream_t stream = pc_device_stream(g->device);
    pc_code code = pc_device_upload(g->device, g->largest, values, bytes, error);
    if (!code)
        code = say(
            &g->nccl,
            g->nccl.all_reduce(g->largest, g->largest, (size_t)count, ncclFloat64, ncclMax, g->communicator, stream),
            "the largest over ranks", error);
    return code ? code : pc_device_download(g->device, values, g->largest, bytes, error);
}

pc_code pc_transfer_largest(pc_transfer_group *group, double *values, int count, pc_error *error) {
    pc_code code = PC_OK;
    for (int at = 0; !code && at < count; at += LARGEST_ROOM)
        code = largest_of_few(group, values + at, count - at < LARGEST_ROOM ? count - at : LARGEST_ROOM, error);
    return code;
}

/* NVLink carries atomics between GPUs, PCIe between them does not (CUDA Runtime API,
 * cudaDevP2PAttrNativeAtomicSupported). */
const char *pc_transfer_link(int device, int other) {
    int has_atomics = 0;
    if (device == other) return "loopback";
    cudaError_t status = cudaDeviceGetP2PAttribute(&has_atomics, cudaDevP2PAttrNativeAtomicSupported, device, other);
    (void)cudaGetLastError();
    return status == cudaSuccess && has_atomics ? "nvlink" : "pcie";
}
