/* dropout.h: which elements a dropout keeps, as a function of a seed and the element's number alone, so that kernels
 * and references, whole runs and repetitions agree.
 *
 * Philox-4x32 with 7 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011, table 2:
 * the least rounds that pass all of BigCrush), key: the seed, counter: element / 8. Its 128 bits are eight numbers of
 * 16 bits, one an element: the probability is rounded to whole 1/65536ths.
 */
#ifndef PC_KERNELS_DROPOUT_H
#define PC_KERNELS_DROPOUT_H

#include "engine/random.h"

#include <stdbool.h>
#include <stdint.h>

/* The numbers of elements 8 * group to 8 * group + 7. */
typedef struct pc_dropout_bits {
    uint32_t word[4];
} pc_dropout_bits;

PC_RANDOM_INLINE pc_dropout_bits pc_dropout_eight(uint64_t seed, uint64_t group) {
    uint32_t a = (uint32_t)group, b = (uint32_t)(group >> 32), c = 0, d = 0;
    uint32_t key_a = (uint32_t)seed, key_b = (uint32_t)(seed >> 32);
    for (int round = 0; round < 7; round++) {
        uint64_t from_a = (uint64_t)0xd2511f53u * a, from_c = (uint64_t)0xcd9e8d57u * c;
        a = (uint32_t)(from_c >> 32) ^ b ^ key_a;
        b = (uint32_t)from_c;
        c = (uint32_t)(from_a >> 32) ^ d ^ key_b;
        d = (uint32_t)from_a;
        key_a += 0x9e3779b9u;
        key_b += 0xbb67ae85u;
    }
    pc_dropout_bits bits = {{a, b, c, d}};
    return bits;
}

/* Numbers below it are dropped. `probability` is from 0 to below 1. */
PC_RANDOM_INLINE uint32_t pc_dropout_threshold(float probability) {
    return (uint32_t)(probability * 65536.0f + 0.5f);
}

/* Whether element `place` (0 to 7) of a group stays. Chosen, not indexed: on GPUs the words stay in registers. */
PC_RANDOM_INLINE bool pc_dropout_stays(const pc_dropout_bits *bits, int place, uint32_t threshold) {
    uint32_t lower = place < 2 ? bits->word[0] : bits->word[1], upper = place < 6 ? bits->word[2] : bits->word[3];
    return (((place < 4 ? lower : upper) >> (16 * (place % 2))) & 0xffffu) >= threshold;
}

PC_RANDOM_INLINE bool pc_dropout_keeps(uint64_t seed, int64_t element, uint32_t threshold) {
    pc_dropout_bits bits = pc_dropout_eight(seed, (uint64_t)element / 8);
    return pc_dropout_stays(&bits, (int)(element % 8), threshold);
}

#endif
