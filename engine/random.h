/* random.h: small streams of random numbers, each of 64 bits of state, where GSL's would be more than is needed:
 * searches, shapes to measure, folds of a cross-validation, tests. Noise of simulations comes from GSL
 * (models/training/draws.h).
 *
 * Results depend on these numbers: none may change.
 */
#ifndef PC_ENGINE_RANDOM_H
#define PC_ENGINE_RANDOM_H

#include <stdint.h>

#ifdef __CUDACC__ /* kernels/fill.h makes the same numbers on a GPU */
#define PC_RANDOM_INLINE static __host__ __device__ inline
#else
#define PC_RANDOM_INLINE static inline
#endif

/* 2^64 over the golden ratio, odd: multiples of it are spread evenly. */
#define PC_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* The finalizer of splitmix64 (Steele, Lea, Flood 2014, 'Fast splittable pseudorandom number generators'): a bijection
 * by which every bit depends on all. */
PC_RANDOM_INLINE uint64_t pc_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The same of the next multiple, as splitmix64 does it: neighbouring numbers become seeds that have nothing in common.
 */
static inline uint64_t pc_seed_of(uint64_t number) {
    return pc_mix(number + PC_GOLDEN);
}

/* splitmix64: the next number of a stream. Any state begins one. */
static inline uint64_t pc_splitmix64(uint64_t *state) {
    return pc_mix(*state += PC_GOLDEN);
}

/* xorshift64* (Vigna 2016, ACM TOMS 42, 30): half as long to make. Of the state 0 all numbers are 0. */
static inline uint64_t pc_xorshift64star(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* A number of 64 random bits as one of 0 .. 1, without 1. */
static inline double pc_unit_interval(uint64_t bits) {
    return (double)(bits >> 11) * 0x1p-53;
}

#endif
