/* hash.h: 128 bits of a list of words, each stirred into both of two lanes. */
#ifndef PC_ENGINE_HASH_H
#define PC_ENGINE_HASH_H

#include <stdbool.h>
#include <stdint.h>

/* Among a billion lists two different ones share a hash with a chance of 1e-21. Begin with any two constants. */
typedef struct pc_hash {
    uint64_t high, low;
} pc_hash;

/* The two lanes' multipliers and shifts are those of the finalizers of splitmix64 and MurmurHash3; each stirring is a
 * bijection of the lane, so that two lists of words that differ in one differ in both lanes. */
static inline uint64_t pc_hash_stir_high(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t pc_hash_stir_low(uint64_t x) {
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

static inline void pc_hash_add(pc_hash *hash, uint64_t word) {
    hash->high = pc_hash_stir_high(hash->high ^ word) + UINT64_C(0x9e3779b97f4a7c15); /* so that zeros are counted */
    hash->low = pc_hash_stir_low(hash->low ^ word) + UINT64_C(0xd1b54a32d192ed03);
}

static inline bool pc_hash_equal(pc_hash a, pc_hash b) {
    return a.high == b.high && a.low == b.low;
}

#endif
