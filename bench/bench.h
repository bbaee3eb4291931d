/* bench.h: what the benchmarks share: a clock, a fast generator of random numbers, exponential delays from a table. */
#ifndef PC_BENCH_BENCH_H
#define PC_BENCH_BENCH_H

#include "engine/clock.h"
#include "engine/order.h"
#include "engine/random.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The time that this thread itself has had: for what takes long enough to be interrupted. */
static inline double bench_own_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The faster of the generators, so that the queue is measured and not the numbers. */
typedef struct bench_random {
    uint64_t state;
} bench_random;

static inline uint64_t bench_draw(bench_random *random) {
    return pc_xorshift64star(&random->state);
}

/* Of numbers that it sorts; of an even count the upper one. */
static inline double bench_median(double *numbers, int count) {
    pc_sort_reals(numbers, count);
    return numbers[count / 2];
}

/* Exponential delays with the given mean, drawn beforehand. */
enum { BENCH_DELAYS = 1 << 14 };

static inline int64_t *bench_exponential_delays(bench_random *random, double mean) {
    int64_t *delays = malloc(BENCH_DELAYS * sizeof *delays);
    if (!delays) abort();
    for (int i = 0; i < BENCH_DELAYS; i++)
        delays[i] = (int64_t)(-mean * log(((double)(bench_draw(random) >> 11) + 0.5) * 0x1p-53)) + 1;
    return delays;
}

#endif
