/* emulate_kernels.h: kernels that show what the emulation does (emulate_kernels.cc), for test_emulate.c. Each runs one
 * launch; arrays are on the device. */
#ifndef PC_TESTS_EMULATE_KERNELS_H
#define PC_TESTS_EMULATE_KERNELS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* seen[thread of the grid] += 1 + what its index says: 1000 times threadIdx.z and so on; of 2 x 3 x 2 blocks of
 * 4 x 2 x 3. */
enum { INDEX_THREADS = 12 * 24 };
void emulate_indices(pc_device *device, int *seen);

/* Of one warp: eight results of 32 lanes each, [8][32]: xor 5, xor 16, down 3, up 2, from lane 7, from lane 1 of each
 * group of 8, down 1 in groups of 4, xor 4 in groups of 4; of lane's value 100 + lane. */
void emulate_shuffles(pc_device *device, int *results);

/* to[i] = from[threads - 1 - i], through shared memory. */
void emulate_reverse(pc_device *device, const float *from, float *to, int threads);

/* Block after block: whether all bytes of `bytes` of shared memory were 0xff, before they are written. */
void emulate_poison(pc_device *device, int *is_poisoned, int blocks, int bytes);

/* Of 64 threads those below `ended` end before the barrier; the others write how many of them came. */
void emulate_ended(pc_device *device, int *count, int ended);

/* sums[0..3][threads]: block sum, max and both of two; of value[thread], twice in a row. */
void emulate_sums(pc_device *device, const float *value, float *sums, int threads);

/* Per lane: ballot of (lane % 3 == 0), any of lane == 5, all of lane < `threads`, and the exchanged byte of lane 31. */
void emulate_votes(pc_device *device, unsigned *results, int threads);

/* Each thread writes its number, last wins: [0] of threads, [1] of blocks. */
void emulate_race(pc_device *device, int *winner);

/* A launch of so much: what pc_device_launched says of it. */
pc_code emulate_launch(pc_device *device, unsigned grid, unsigned block, unsigned shared_bytes, pc_error *error);

/* Each ends the program with a message. */
typedef enum emulate_fault {
    BARRIER_IN_A_BRANCH,
    TWO_BARRIERS,
    SHUFFLE_IN_A_BRANCH,
    PART_OF_A_WARP,
    SHARED_OVERRUN, /* AddressSanitizer sees it */
    DEEP_STACK,
    FAULTS
} emulate_fault;
void emulate_wrong(pc_device *device, emulate_fault fault);

#ifdef __cplusplus
}
#endif
#endif
