/* transfer.h: collectives and messages between ranks, one process a GPU.
 *
 * Implemented over NCCL (kernels/cuda/), opened at run time, and, for tests, on the host between processes that share a
 * file (tests/emulated/). All ranks of a group call the same functions in the same order.
 */
#ifndef PC_KERNELS_TRANSFER_H
#define PC_KERNELS_TRANSFER_H

#include "engine/error.h"
#include "kernels/device.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_transfer_kind {
    PC_TRANSFER_SEND_RECV, /* a ring: each rank sends to the next one and receives from the one before */
    PC_TRANSFER_ALL_REDUCE,
    PC_TRANSFER_ALL_GATHER,
    PC_TRANSFER_REDUCE_SCATTER,
    PC_TRANSFER_ALL_TO_ALL,
    PC_TRANSFERS
} pc_transfer_kind;
const char *pc_transfer_name(pc_transfer_kind transfer); /* "all_reduce" */

/* What a bus carries for every byte of algbw (nccl-tests, doc/PERFORMANCE.md): 2(n-1)/n of an all-reduce, (n-1)/n of
 * all-gather, reduce-scatter and all-to-all, 1 of a message. */
double pc_transfer_bus_factor(pc_transfer_kind transfer, int ranks);

/* Elements of the send and receive buffers of one rank, for `count` elements of the whole tensor (a multiple of ranks;
 * of a message: the message; of an all-to-all: what a rank sends in all). */
void pc_transfer_buffers(pc_transfer_kind transfer, int ranks, int64_t count, int64_t *send, int64_t *receive);

enum { PC_TRANSFER_ID_BYTES = 128 };
typedef struct pc_transfer_id {
    char bytes[PC_TRANSFER_ID_BYTES];
} pc_transfer_id;

typedef struct pc_transfer_group pc_transfer_group;

/* PC_ERROR_IO if the library is missing or fails, with its own words. One rank makes the id, all open with it. */
pc_code pc_transfer_id_make(pc_transfer_id *id, pc_error *error);
pc_code pc_transfer_open(pc_device *device, const pc_transfer_id *id, int ranks, int rank, pc_transfer_group **group,
                         pc_error *error);
/* Behind what all ranks have enqueued; waits for them. NULL is fine. */
void pc_transfer_close(pc_transfer_group *group);
/* The same after a fault: waits for no other rank, and ends what is under way. */
void pc_transfer_abandon(pc_transfer_group *group);

/* Enqueues one on the device's stream; numbers are PC_BF16 or PC_FP32, reductions are sums. */
pc_code pc_transfer_enqueue(pc_transfer_group *group, pc_transfer_kind transfer, pc_dtype dtype, const void *send,
                            void *receive, int64_t count, pc_error *error);

/* In place of each value, the largest over the ranks, on every rank; waits for all of them, and is a barrier so. */
pc_code pc_transfer_largest(pc_transfer_group *group, double *values, int count, pc_error *error);

/* How two devices of this machine are joined: "nvlink", "pcie"; "loopback" where they are one and the same. */
const char *pc_transfer_link(int device, int other);

/* The version of the library, "" if there is none. */
void pc_transfer_version(char *text, int size);

#ifdef __cplusplus
}
#endif
#endif
