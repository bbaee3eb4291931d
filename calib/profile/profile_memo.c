#include "calib/profile/profile_private.h"

#include "engine/alloc.h"

#include <pthread.h>
#include <string.h>

enum { SLOTS = 8192, MOST = 3 * SLOTS / 4 };

/* What decides the cost of an operation. A function's name is one text in static storage: its address says it all. */
typedef struct key {
    int64_t batch, m, n, k, bytes, flops;
    const char *function;
    int32_t kind, role, precision, launches;
    int64_t is_causal; /* as wide as the rest: no padding */
} key;

typedef struct slot {
    key key;
    pc_estimate estimate;
    bool is_taken;
} slot;

struct pc_memo {
    pthread_mutex_t lock;
    int count;
    slot slots[SLOTS];
};

pc_memo *pc_memo_make(void) {
    pc_memo *memo = pc_alloc(1, sizeof *memo);
    if (memo) pthread_mutex_init(&memo->lock, NULL);
    return memo;
}

void pc_memo_free(pc_memo *memo) {
    if (!memo) return;
    pthread_mutex_destroy(&memo->lock);
    pc_free(memo);
}

static key key_of(const pc_operation *x) {
    return (key){.batch = x->batch,
                 .m = x->m,
                 .n = x->n,
                 .k = x->k,
                 .bytes = x->bytes,
                 .flops = x->flops,
                 .function = x->function,
                 .kind = (int32_t)x->kind,
                 .role = (int32_t)x->role,
                 .precision = (int32_t)x->precision,
                 .launches = x->launches,
                 .is_causal = x->is_causal};
}

static uint64_t mix(uint64_t hash, int64_t value) {
    hash = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

/* The slot of the key, or the free one where it would stand. */
static slot *find_slot(pc_memo *memo, const key *wanted) {
    uint64_t hash = mix(mix(mix(mix(mix(0, wanted->m), wanted->n), wanted->k), wanted->bytes), wanted->batch);
    hash = mix(mix(hash, wanted->kind), wanted->role);
    for (size_t i = hash % SLOTS;; i = (i + 1) % SLOTS) {
        slot *found = &memo->slots[i];
        if (!found->is_taken || memcmp(&found->key, wanted, sizeof *wanted) == 0) return found;
    }
}

bool pc_memo_find(pc_memo *memo, const pc_operation *operation, pc_estimate *estimate) {
    key wanted = key_of(operation);
    pthread_mutex_lock(&memo->lock);
    const slot *found = find_slot(memo, &wanted);
    bool is_known = found->is_taken;
    if (is_known) *estimate = found->estimate;
    pthread_mutex_unlock(&memo->lock);
    return is_known;
}

void pc_memo_keep(pc_memo *memo, const pc_operation *operation, pc_estimate estimate) {
    key wanted = key_of(operation);
    pthread_mutex_lock(&memo->lock);
    slot *found = find_slot(memo, &wanted);
    if (!found->is_taken && memo->count < MOST) {
        *found = (slot){wanted, estimate, true};
        memo->count++;
    }
    pthread_mutex_unlock(&memo->lock);
}
