/* Transfers between processes of one host, for tests: a file that all ranks map holds two process-shared barriers'
 * worth of state and a slot a rank. A rank puts what it sends into its slot, waits for all, takes what is for it, and
 * waits again. Collectives go chunk by chunk, so that the file stays small whatever the tensor. */
#include "kernels/transfer.h"

#include "engine/alloc.h"
#include "tests/emulated/emulated.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLOT_BYTES = 1 << 16, RANKS_MAX = 16, WAIT_S = 60 };

typedef struct shared {
    atomic_int arrived, round, opened;
    double value[RANKS_MAX];
    unsigned char slot[RANKS_MAX][SLOT_BYTES];
} shared;

struct pc_transfer_group {
    pc_device *device;
    int ranks, rank;
    shared *shared;
    char path[PC_TRANSFER_ID_BYTES];
};

/* ---- where the ranks meet ---- */

pc_code pc_transfer_id_make(pc_transfer_id *id, pc_error *error) {
    char path[PC_TRANSFER_ID_BYTES] = "/tmp/pipecast-ranks-XXXXXX";
    int descriptor = mkstemp(path);
    if (descriptor < 0) return pc_error_set(error, PC_ERROR_IO, "%s: %s", path, strerror(errno));
    bool has_room = ftruncate(descriptor, sizeof(shared)) == 0;
    close(descriptor);
    if (!has_room) return pc_error_set(error, PC_ERROR_IO, "%s: %s", path, strerror(errno));
    memcpy(id->bytes, path, sizeof path);
    return PC_OK;
}

/* Waits until all ranks are here; an error after a minute, so that a rank that died does not hang the others. */
static pc_code barrier(pc_transfer_group *g, pc_error *error) {
    shared *s = g->shared;
    int round = atomic_load(&s->round);
    if (atomic_fetch_add(&s->arrived, 1) == g->ranks - 1) {
        atomic_store(&s->arrived, 0);
        atomic_store(&s->round, round + 1);
        return PC_OK;
    }
    time_t until = time(NULL) + WAIT_S;
    while (atomic_load(&s->round) == round) {
        sched_yield();
        if (time(NULL) > until) return pc_error_set(error, PC_ERROR_IO, "transfers: a rank does not answer");
    }
    return PC_OK;
}

pc_code pc_transfer_open(pc_device *device, const pc_transfer_id *id, int ranks, int rank, pc_transfer_group **group,
                         pc_error *error) {
    if (ranks > RANKS_MAX) return pc_error_set(error, PC_ERROR_INPUT, "%d ranks; expected at most 16 here", ranks);
    int descriptor = open(id->bytes, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return pc_error_set(error, PC_ERROR_IO, "%s: %s", id->bytes, strerror(errno));
    void *memory = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory == MAP_FAILED) return pc_error_set(error, PC_ERROR_IO, "%s: %s", id->bytes, strerror(errno));
    pc_transfer_group *made = pc_alloc(1, sizeof *made);
    if (!made) {
        munmap(memory, sizeof(shared));
        return pc_error_no_memory(error);
    }
    *made = (pc_transfer_group){.device = device, .ranks = ranks, .rank = rank, .shared = memory};
    memcpy(made->path, id->bytes, sizeof made->path);
    pc_code code = barrier(made, error);
    if (code) {
        pc_transfer_close(made);
        return code;
    }
    *group = made;
    return PC_OK;
}

void pc_transfer_close(pc_transfer_group *group) {
    if (!group) return;
    if (group->rank == 0) unlink(group->path);
    munmap(group->shared, sizeof(shared));
    pc_free(group);
}

void pc_transfer_abandon(pc_transfer_group *group) {
    pc_transfer_close(group); /* which waits for nobody here */
}

/* ---- transfers ---- */

static float to_float(pc_dtype dtype, const unsigned char *from) {
    uint32_t bits = 0;
    if (dtype == PC_FP32) memcpy(&bits, from, 4);
    if (dtype == PC_BF16) memcpy((unsigned char *)&bits + 2, from, 2);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Sums of what tests and calibration send are exact in the type, so cutting the low bits rounds nothing. */
static void from_float(pc_dtype dtype, float value, unsigned char *to) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == PC_FP32) memcpy(to, &bits, 4);
    if (dtype == PC_BF16) memcpy(to, (unsigned char *)&bits + 2, 2);
}

static void sum_slots(const pc_transfer_group *g, pc_dtype dtype, size_t size, unsigned char *to) {
    size_t step = dtype == PC_FP32 ? 4 : 2;
    for (size_t at = 0; at < size; at += step) {
        float sum = 0;
        for (int r = 0; r < g->ranks; r++) sum += to_float(dtype, g->shared->slot[r] + at);
        from_float(dtype, sum, to + at);
    }
}

/* One slot's worth: `size` bytes of this rank are put up, and `take` says what to do with everybody's. */
typedef struct piece {
    pc_transfer_kind transfer;
    pc_dtype dtype;
    const unsigned char *send;
    unsigned char *receive; /* where this piece of the first part goes */
    size_t size;
    size_t part; /* bytes of a rank's part of the receive buffer */
    int target;  /* of pieces that are for one rank alone; -1: for all */
} piece;

static void take(const pc_transfer_group *g, const piece *p) {
    int before = (g->rank + g->ranks - 1) % g->ranks;
    switch (p->transfer) {
    case PC_TRANSFER_SEND_RECV:
        memcpy(p->receive, g->shared->slot[before], p->size);
        break;
    case PC_TRANSFER_ALL_REDUCE:
        sum_slots(g, p->dtype, p->size, p->receive);
        break;
    case PC_TRANSFER_REDUCE_SCATTER:
        if (p->target == g->rank) sum_slots(g, p->dtype, p->size, p->receive);
        break;
    case PC_TRANSFER_ALL_GATHER:
    case PC_TRANSFER_ALL_TO_ALL:
        if (p->target >= 0 && p->target != g->rank) break;
        for (int r = 0; r < g->ranks; r++) memcpy(p->receive + (size_t)r * p->part, g->shared->slot[r], p->size);
        break;
    case PC_TRANSFERS:
        break;
    }
}

static pc_code exchange(pc_transfer_group *g, const piece *p, pc_error *error) {
    memcpy(g->shared->slot[g->rank], p->send, p->size);
    pc_code code = barrier(g, error);
    if (code) return code;
    take(g, p);
    return barrier(g, error);
}

pc_code pc_transfer_enqueue(pc_transfer_group *group, pc_transfer_kind transfer, pc_dtype dtype, const void *send,
                            void *receive, int64_t count, pc_error *error) {
    bool is_cut = transfer == PC_TRANSFER_REDUCE_SCATTER || transfer == PC_TRANSFER_ALL_TO_ALL;
    bool is_part = is_cut || transfer == PC_TRANSFER_ALL_GATHER;
    size_t bytes = (size_t)count * (dtype == PC_FP32 ? 4 : 2);
    size_t part = is_part ? bytes / (size_t)group->ranks : bytes;
    pc_emulated_count_launch(group->device);
    pc_code code = PC_OK;
    for (int target = is_cut ? 0 : -1; !code && target < (is_cut ? group->ranks : 0); target++)
        for (size_t at = 0; !code && at < part; at += SLOT_BYTES) {
            size_t from = (target > 0 ? (size_t)target * part : 0) + at;
            piece p = {transfer,
                       dtype,
                       (const unsigned char *)send + from,
                       (unsigned char *)receive + at,
                       part - at < SLOT_BYTES ? part - at : SLOT_BYTES,
                       part,
                       target};
            code = exchange(group, &p, error);
        }
    return code;
}

pc_code pc_transfer_largest(pc_transfer_group *group, double *values, int count, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; !code && i < count; i++) {
        group->shared->value[group->rank] = values[i];
        code = barrier(group, error);
        for (int r = 0; !code && r < group->ranks; r++) values[i] = fmax(values[i], group->shared->value[r]);
        if (!code) code = barrier(group, error);
    }
    return code;
}

const char *pc_transfer_link(int device, int other) {
    (void)device, (void)other;
    return "loopback";
}

void pc_transfer_version(char *text, int size) {
    snprintf(text, (size_t)size, "emulated");
}
