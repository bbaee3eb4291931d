#include "engine/hash.h"

#include <endian.h>
#include <xxhash.h>

/* The next link of a chain: the hash so far and what is added are hashed together. */
static void chain(pc_hash *hash, const uint64_t *words, size_t count) {
    uint64_t all[4] = {htole64(hash->high), htole64(hash->low)};
    for (size_t i = 0; i < count; i++) all[2 + i] = htole64(words[i]);
    XXH128_hash_t made = XXH3_128bits(all, (2 + count) * sizeof *all);
    *hash = (pc_hash){made.high64, made.low64};
}

void pc_hash_add(pc_hash *hash, uint64_t word) {
    chain(hash, &word, 1);
}

void pc_hash_add_bytes(pc_hash *hash, const void *bytes, size_t size) {
    XXH128_hash_t made = XXH3_128bits(bytes, size);
    chain(hash, (uint64_t[]){made.high64, made.low64}, 2);
}

uint64_t pc_hash_bytes(const void *bytes, size_t size) {
    return XXH3_64bits(bytes, size);
}
