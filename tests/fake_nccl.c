#include "tests/fake_nccl.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static fake_nccl now = {.version = 22707};

fake_nccl *fake_nccl_now(void) {
    return &now;
}

/* ---- what ranks share ---- */

enum { RANKS = 8, ROOM = 1 << 16, MESSAGES = 2 * RANKS };

typedef struct message {
    int peer;
    size_t count, at;
    ncclDataType_t type;
    bool is_taken;
} message;

/* What a rank brings to a call. */
typedef struct slot {
    const char *name; /* the same address in all: they are forked */
    size_t count, used;
    ncclDataType_t type;
    ncclRedOp_t operation;
    int messages;
    message message[MESSAGES];
    unsigned char data[ROOM];
} slot;

typedef struct shared {
    atomic_int arrived, turn;
    slot slot[RANKS];
} shared;

struct ncclComm {
    int ranks, rank;
    shared *all;
};

static ncclResult_t fault(const char *what) {
    if (now.faults++ == 0) snprintf(now.fault, sizeof now.fault, "%s", what);
    return ncclInvalidArgument;
}

static bool fails(const char *name) {
    if (!now.fails || strcmp(now.fails, name) != 0) return false;
    now.fails = NULL;
    return true;
}

/* Nobody waits for ever: where a rank does not come the others give up. */
static bool meet(struct ncclComm *c) {
    int turn = atomic_load(&c->all->turn);
    if (atomic_fetch_add(&c->all->arrived, 1) + 1 == c->ranks) {
        atomic_store(&c->all->arrived, 0);
        atomic_fetch_add(&c->all->turn, 1);
        return true;
    }
    for (int wait = 0; wait < 100000; wait++) {
        if (atomic_load(&c->all->turn) != turn) return true;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return false;
}

/* ---- the library ---- */

ncclResult_t ncclGetVersion(int *version) {
    *version = now.version;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSystemError ? "a made-up fault" : "a made-up refusal";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    if (fails("ncclGetUniqueId")) return ncclSystemError;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/tmp/fake-nccl-XXXXXX");
    int file = mkstemp(id->internal);
    bool is_made = file >= 0 && ftruncate(file, sizeof(shared)) == 0;
    if (file >= 0) close(file);
    return is_made ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRank(ncclComm_t *made, int ranks, ncclUniqueId id, int rank) {
    if (fails("ncclCommInitRank")) return ncclSystemError;
    if (ranks < 1 || ranks > RANKS || rank < 0 || rank >= ranks) return fault("a rank that is none");
    int file = open(id.internal, O_RDWR);
    void *all = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (all == MAP_FAILED) return fault("an id that is none");
    struct ncclComm *c = calloc(1, sizeof *c);
    *c = (struct ncclComm){ranks, rank, all};
    *made = c;
    now.communicators++;
    bool has_met = meet(c);
    if (rank == 0) unlink(id.internal);
    return has_met ? ncclSuccess : fault("a rank did not join");
}

static void leave(ncclComm_t c) {
    munmap(c->all, sizeof(shared));
    free(c);
    now.communicators--;
}

/* The ranks of a machine have to come together, as the real one may want them to. */
ncclResult_t ncclCommDestroy(ncclComm_t c) {
    now.destroyed++;
    bool has_met = meet(c);
    leave(c);
    return has_met ? ncclSuccess : fault("a communicator was destroyed by one rank alone");
}

ncclResult_t ncclCommAbort(ncclComm_t c) {
    now.aborted++;
    leave(c);
    return ncclSuccess;
}

/* ---- numbers ---- */

static size_t size_of(ncclDataType_t type) {
    return type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : 0;
}

static double number_at(ncclDataType_t type, const unsigned char *from, size_t place) {
    double x;
    float y;
    uint16_t upper;
    uint32_t bits;
    if (type == ncclFloat64) return memcpy(&x, from + 8 * place, 8), x;
    if (type == ncclFloat32) return memcpy(&y, from + 4 * place, 4), (double)y;
    memcpy(&upper, from + 2 * place, 2);
    bits = (uint32_t)upper << 16;
    return memcpy(&y, &bits, 4), (double)y;
}

/* Tests' numbers are exact in their type. */
static void put_number(ncclDataType_t type, unsigned char *to, size_t place, double x) {
    float y = (float)x;
    uint32_t bits;
    memcpy(&bits, &y, 4);
    uint16_t upper = (uint16_t)(bits >> 16);
    if (type == ncclFloat64) memcpy(to + 8 * place, &x, 8);
    if (type == ncclFloat32) memcpy(to + 4 * place, &y, 4);
    if (type == ncclBfloat16) memcpy(to + 2 * place, &upper, 2);
}

/* ---- collectives ---- */

/* Brings `count` numbers, and looks whether all brought alike. */
static ncclResult_t bring(const char *name, const void *send, size_t brought, size_t count, ncclDataType_t type,
                          ncclRedOp_t operation, ncclComm_t c, cudaStream_t stream) {
    if (fails(name)) return ncclSystemError;
    if (now.depth > 0) return fault("a collective within a group");
    if (!stream || !send || size_of(type) == 0) return fault("a collective without stream, data or type");
    if (brought * size_of(type) > ROOM) return fault("more than the test's room");
    slot *mine = &c->all->slot[c->rank];
    mine->name = name;
    mine->count = count;
    mine->type = type;
    mine->operation = operation;
    memcpy(mine->data, send, brought * size_of(type));
    if (!meet(c)) return fault("a rank did not come to a collective");
    for (int r = 0; r < c->ranks; r++) {
        const slot *other = &c->all->slot[r];
        if (other->name != name || other->count != count || other->type != type || other->operation != operation)
            return fault("ranks called different collectives");
    }
    return ncclSuccess;
}

static ncclResult_t done(ncclComm_t c) {
    return meet(c) ? ncclSuccess : fault("a rank did not end a collective");
}

/* Of all ranks' numbers `first` and the next ones. */
static void reduce(const struct ncclComm *c, void *to, size_t first, size_t count, ncclDataType_t type,
                   ncclRedOp_t operation) {
    for (size_t i = 0; i < count; i++) {
        double all = number_at(type, c->all->slot[0].data, first + i);
        for (int r = 1; r < c->ranks; r++) {
            double x = number_at(type, c->all->slot[r].data, first + i);
            all = operation == ncclSum ? all + x : x > all ? x : all;
        }
        put_number(type, to, i, all);
    }
}

static const char all_reduce[] = "ncclAllReduce", all_gather[] = "ncclAllGather",
                  reduce_scatter[] = "ncclReduceScatter";

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t c, cudaStream_t stream) {
    if (operation != ncclSum && operation != ncclMax) return fault("a reduction of another kind");
    ncclResult_t result = bring(all_reduce, send, count, count, type, operation, c, stream);
    if (result) return result;
    reduce(c, receive, 0, count, type, operation);
    return done(c);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t c, cudaStream_t stream) {
    if (operation != ncclSum) return fault("a reduction of another kind");
    ncclResult_t result = bring(reduce_scatter, send, count * (size_t)c->ranks, count, type, operation, c, stream);
    if (result) return result;
    reduce(c, receive, (size_t)c->rank * count, count, type, operation);
    return done(c);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t c,
                           cudaStream_t stream) {
    ncclResult_t result = bring(all_gather, send, count, count, type, ncclSum, c, stream);
    if (result) return result;
    size_t bytes = count * size_of(type);
    for (int r = 0; r < c->ranks; r++) memcpy((char *)receive + (size_t)r * bytes, c->all->slot[r].data, bytes);
    return done(c);
}

/* ---- messages ---- */

ncclResult_t ncclGroupStart(void); /* the header has them without parameters */
ncclResult_t ncclGroupEnd(void);

/* What a group has asked to receive. */
static struct {
    ncclComm_t c;
    int count;
    message wanted[MESSAGES];
    void *to[MESSAGES];
} group;

ncclResult_t ncclGroupStart(void) {
    if (fails("ncclGroupStart")) return ncclSystemError;
    now.depth++;
    return ncclSuccess;
}

static ncclResult_t check_message(size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t stream) {
    if (now.depth != 1) return fault("a message without a group waits for ever");
    if (!stream || size_of(type) == 0 || peer < 0 || peer >= c->ranks) return fault("a message to nobody");
    if (c->all->slot[c->rank].messages == MESSAGES || group.count == MESSAGES) return fault("too many messages");
    if (c->all->slot[c->rank].used + count * size_of(type) > ROOM) return fault("more than the test's room");
    group.c = c;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t stream) {
    if (fails("ncclSend")) return ncclSystemError;
    ncclResult_t result = check_message(count, type, peer, c, stream);
    if (result) return result;
    slot *mine = &c->all->slot[c->rank];
    mine->message[mine->messages++] = (message){peer, count, mine->used, type, false};
    memcpy(mine->data + mine->used, send, count * size_of(type));
    mine->used += count * size_of(type);
    return ncclSuccess;
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t stream) {
    ncclResult_t result = check_message(count, type, peer, c, stream);
    if (result) return result;
    group.to[group.count] = receive;
    group.wanted[group.count++] = (message){peer, count, 0, type, false};
    return ncclSuccess;
}

/* The first message of that rank to this one that was not taken yet. */
static bool take(const struct ncclComm *c, const message *wanted, void *to) {
    slot *from = &c->all->slot[wanted->peer];
    for (int i = 0; i < from->messages; i++) {
        message *x = &from->message[i];
        if (x->peer != c->rank || x->is_taken) continue;
        x->is_taken = true;
        if (x->count != wanted->count || x->type != wanted->type) return false;
        memcpy(to, from->data + x->at, x->count * size_of(x->type));
        return true;
    }
    return false;
}

static ncclResult_t exchange(struct ncclComm *c) {
    bool is_right = true;
    slot *mine = &c->all->slot[c->rank];
    if (!meet(c)) return fault("a rank did not come to a group");
    for (int i = 0; i < group.count; i++) is_right = take(c, &group.wanted[i], group.to[i]) && is_right;
    if (!meet(c)) return fault("a rank did not end a group");
    for (int i = 0; i < mine->messages; i++) is_right = mine->message[i].is_taken && is_right;
    mine->messages = 0;
    mine->used = 0;
    return is_right ? ncclSuccess : fault("messages that do not match");
}

ncclResult_t ncclGroupEnd(void) {
    if (now.depth == 0) return fault("a group was ended that was not begun");
    if (--now.depth > 0 || !group.c) return ncclSuccess;
    struct ncclComm *c = group.c;
    ncclResult_t result = exchange(c);
    group.c = NULL;
    group.count = 0;
    return result;
}
