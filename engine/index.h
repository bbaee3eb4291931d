/* index.h: which number stands for a key: open addressing with 128-bit keys, which are hashes, so that no two things
 * share one (hash.h). Numbers are indices into an array of the caller's. Not thread-safe. Private to the library.
 */
#ifndef PC_ENGINE_INDEX_H
#define PC_ENGINE_INDEX_H

#include "engine/error.h"
#include "engine/hash.h"
#include "engine/random.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_index_slot {
    pc_hash key;
    int64_t number; /* from 1; 0: free */
} pc_index_slot;

/* A zeroed one is empty. */
typedef struct pc_index {
    pc_index_slot *slots; /* [slot_count]; owned */
    int64_t slot_count;   /* a power of two, or 0 */
    int64_t count;        /* of keys */
} pc_index;

/* Room for `count` keys in all, those that are there included: 32 to 64 bytes each. The index stays as it was where
 * memory is short (PC_ERROR_NO_MEMORY). */
pc_code pc_index_reserve(pc_index *index, int64_t count, pc_error *error);

/* A zeroed one is fine. */
void pc_index_free(pc_index *index);

/* The key of a number, which no other number has. */
static inline pc_hash pc_index_key(uint64_t number) {
    pc_hash key = {number, pc_seed_of(number)};
    return key;
}

/* Where the key stands, or the free slot where it would: there is one. */
static inline pc_index_slot *pc_index_slot_of(const pc_index *index, pc_hash key) {
    uint64_t mask = (uint64_t)index->slot_count - 1, at = key.low & mask;
    while (index->slots[at].number && !pc_hash_equal(index->slots[at].key, key)) at = (at + 1) & mask;
    return &index->slots[at];
}

/* The number of the key; -1: it has none. */
static inline int64_t pc_index_find(const pc_index *index, pc_hash key) {
    return index->slot_count > 0 ? pc_index_slot_of(index, key)->number - 1 : -1;
}

/* The number of the key, which is `number` from now on where it had none. There is room (pc_index_reserve). */
static inline int64_t pc_index_add(pc_index *index, pc_hash key, int64_t number) {
    pc_index_slot *slot = pc_index_slot_of(index, key);
    if (!slot->number) {
        slot->key = key;
        slot->number = number + 1;
        index->count++;
    }
    return slot->number - 1;
}

#ifdef __cplusplus
}
#endif
#endif
