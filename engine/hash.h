/* hash.h: 128 bits of a list of words, and 64 of some bytes, by XXH3 (xxHash, https://xxhash.com): tables, memos, the
 * keys of runs. Values that files and published results hold are not made by these, but by pc_trace_hash
 * (engine/simulation.h) and pc_sealed_hash (storage/sealed.h).
 */
#ifndef PC_ENGINE_HASH_H
#define PC_ENGINE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Among a billion lists two different ones share a hash with a chance of 1e-21. Begin with any two constants. */
typedef struct pc_hash {
    uint64_t high, low;
} pc_hash;

/* The same for the same words on every machine. */
void pc_hash_add(pc_hash *hash, uint64_t word);

/* The same for the same bytes; numbers have their bytes in the machine's order. Adding "ab" and "c" is not adding
 * "abc". */
void pc_hash_add_bytes(pc_hash *hash, const void *bytes, size_t size);

uint64_t pc_hash_bytes(const void *bytes, size_t size);

static inline bool pc_hash_equal(pc_hash a, pc_hash b) {
    return a.high == b.high && a.low == b.low;
}

#ifdef __cplusplus
}
#endif

#endif
