/* How fast this machine moves memory, to hold other figures against: one thread, the best of some rounds. Copy and
 * triad as in McCalpin's STREAM, over arrays beyond every cache and over ones inside the second level; and a chase, in
 * which every read waits for the one before. First the clock: a chain of additions, one a cycle. */
#include "bench/bench.h"

enum { ROUNDS = 12 };

typedef struct arrays {
    double *a, *b, *c;
    size_t count;
} arrays;

static void copy(const arrays *held) {
    for (size_t i = 0; i < held->count; i++) held->a[i] = held->b[i];
}

static void triad(const arrays *held) {
    for (size_t i = 0; i < held->count; i++) held->a[i] = held->b[i] + 3.0 * held->c[i];
}

/* Bytes that the program reads and writes; what the cache fetches before it writes is not counted. */
static double best_rate(void (*work)(const arrays *), const arrays *held, double bytes, long repeat) {
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = pc_now_s();
        for (long i = 0; i < repeat; i++) {
            work(held);
            __asm__ volatile("" ::: "memory"); /* what was written counts */
        }
        double rate = bytes * (double)repeat / (pc_now_s() - begin);
        if (rate > best) best = rate;
    }
    return best;
}

static void measure_rates(size_t bytes_each, long repeat) {
    size_t count = bytes_each / sizeof(double);
    arrays held = {malloc(bytes_each), malloc(bytes_each), malloc(bytes_each), count};
    if (!held.a || !held.b || !held.c) abort();
    for (size_t i = 0; i < count; i++) {
        held.a[i] = 0;
        held.b[i] = held.c[i] = 1;
    }
    double copied = best_rate(copy, &held, 2.0 * (double)bytes_each, repeat);
    double summed = best_rate(triad, &held, 3.0 * (double)bytes_each, repeat);
    printf("arrays of %7zu KB: copy %6.1f GB/s, triad %6.1f GB/s\n", bytes_each / 1024, 1e-9 * copied, 1e-9 * summed);
    free(held.a);
    free(held.b);
    free(held.c);
}

/* Every cache line once, in an order drawn at random (Sattolo's cycle). */
static void measure_chase(size_t bytes) {
    enum { LINE = 64 / sizeof(size_t) };
    size_t count = bytes / 64, *lines = malloc(bytes), *order = malloc(count * sizeof *order), at = 0;
    bench_random random = {88172645463325252u};
    if (!lines || !order) abort();
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t i = count - 1; i > 0; i--) {
        size_t k = bench_draw(&random) % i, other = order[i];
        order[i] = order[k];
        order[k] = other;
    }
    for (size_t i = 0; i < count; i++) lines[order[i] * LINE] = order[(i + 1) % count] * LINE;
    double best = INFINITY;
    for (int round = 0; round < 4; round++) {
        size_t steps = 2000000;
        double begin = pc_now_s();
        for (size_t i = 0; i < steps; i++) at = lines[at];
        __asm__ volatile("" : : "r"(at));
        double taken = (pc_now_s() - begin) / (double)steps;
        if (taken < best) best = taken;
    }
    printf("chase through %6zu KB: %6.1f ns a step\n", bytes / 1024, 1e9 * best);
    free(order);
    free(lines);
}

static inline uint64_t add_one(uint64_t count) {
    count++;
    __asm__ volatile("" : "+r"(count)); /* one by one */
    return count;
}

static void measure_clock(void) {
    enum { STEPS = 50000, TRIES = 200 };
    double best = INFINITY;
    for (int round = 0; round < TRIES; round++) {
        uint64_t count = 0;
        double begin = pc_now_s();
        for (int i = 0; i < STEPS; i++) { /* the loop's own work goes on beside eight of them */
            count = add_one(add_one(add_one(add_one(count))));
            count = add_one(add_one(add_one(add_one(count))));
        }
        double taken = (pc_now_s() - begin) / (8.0 * STEPS);
        if (taken < best) best = taken;
    }
    printf("clock: %.2f GHz\n", 1e-9 / best);
}

int main(void) {
    measure_clock();
    measure_rates((size_t)96 << 20, 1);
    measure_rates((size_t)128 << 10, 400);
    measure_rates((size_t)8 << 10, 8000);
    measure_chase((size_t)16 << 10);
    measure_chase((size_t)512 << 10);
    measure_chase((size_t)16 << 20);
    measure_chase((size_t)128 << 20);
    return 0;
}
