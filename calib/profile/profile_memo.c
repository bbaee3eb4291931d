/* Slots that are written once: a reader that finds one ready needs no lock. One that is being written is passed over;
 * what two threads then keep twice is the same. Marks stand side by side: most that is not there is seen to be so in
 * one line of the cache. */
#include "calib/profile/profile_private.h"

#include "engine/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { SLOTS = 8192, NEAREST = 8, NUMBERS = 8 };

/* Of a slot: not used, being written; any larger one: ready, and a part of its key's hash. */
enum { FREE, TAKEN, LEAST_MARK };

/* What decides the cost of an operation. A function's name is one text in static storage: its address says it all. */
typedef struct memo_key {
    uint64_t number[NUMBERS];
} memo_key;

static memo_key key_of(const pc_operation *operation) {
    uint64_t small = (uint64_t)operation->kind | (uint64_t)operation->role << 8 | (uint64_t)operation->precision << 16 |
                     (uint64_t)operation->format << 24 | (uint64_t)operation->splits_accumulator << 30 |
                     (uint64_t)operation->is_causal << 31 | (uint64_t)(uint32_t)operation->launches << 32;
    return (memo_key){{(uint64_t)operation->batch, (uint64_t)operation->m, (uint64_t)operation->n,
                       (uint64_t)operation->k, (uint64_t)operation->bytes, (uint64_t)operation->flops,
                       (uint64_t)(uintptr_t)operation->function, small}};
}

/* Sums of products, which a processor computes side by side (Carter and Wegman 1979), then mixed. */
static uint64_t hash_of(const memo_key *key) {
    static const uint64_t odd[NUMBERS] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9),
                                          UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93),
                                          UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db),
                                          UINT64_C(0x8ebc6af09c88c6e3), UINT64_C(0x589965cc75374cc3)};
    uint64_t sum = 0;
    for (int i = 0; i < NUMBERS; i++) sum += (key->number[i] ^ key->number[i] >> 32) * odd[i];
    sum ^= sum >> 32;
    sum *= UINT64_C(0xd6e8feb86659fd93);
    return sum ^ sum >> 32;
}

static uint32_t mark_of(uint64_t hash) {
    uint32_t mark = (uint32_t)(hash >> 32);
    return mark < LEAST_MARK ? LEAST_MARK : mark;
}

typedef struct memo_slot {
    memo_key key;
    pc_estimate estimate;
} memo_slot;

struct pc_memo {
    _Atomic uint32_t mark[SLOTS];
    memo_slot slot[SLOTS];
};

pc_memo *pc_memo_make(void) {
    return pc_alloc(1, sizeof(pc_memo));
}

void pc_memo_free(pc_memo *memo) {
    pc_free(memo);
}

bool pc_memo_find(const pc_memo *memo, const pc_operation *operation, pc_estimate *estimate) {
    memo_key key = key_of(operation);
    uint64_t hash = hash_of(&key);
    uint32_t mark = mark_of(hash);
    for (uint64_t i = 0; i < NEAREST; i++) {
        uint64_t at = (hash + i) % SLOTS;
        uint32_t found = atomic_load_explicit(&memo->mark[at], memory_order_acquire);
        if (found == FREE) return false;
        if (found != mark || memcmp(&memo->slot[at].key, &key, sizeof key) != 0) continue;
        *estimate = memo->slot[at].estimate;
        return true;
    }
    return false;
}

void pc_memo_keep(pc_memo *memo, const pc_operation *operation, pc_estimate estimate) {
    memo_key key = key_of(operation);
    uint64_t hash = hash_of(&key);
    for (uint64_t i = 0; i < NEAREST; i++) {
        uint64_t at = (hash + i) % SLOTS;
        uint32_t free = FREE;
        if (atomic_load_explicit(&memo->mark[at], memory_order_relaxed) != FREE) continue;
        if (!atomic_compare_exchange_strong(&memo->mark[at], &free, TAKEN)) continue;
        memo->slot[at] = (memo_slot){key, estimate};
        atomic_store_explicit(&memo->mark[at], mark_of(hash), memory_order_release);
        return;
    }
}
