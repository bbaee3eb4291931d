/* The hold model: with n events pending, take the first out and put it back at a random later time. */
#include "bench/bench.h"
#include "engine/queue.h"

static double hold_million_per_s(size_t pending, size_t operations) {
    bench_random random = {88172645463325252u};
    int64_t *delays = bench_exponential_delays(&random, 1e6);
    pc_queue *queue;
    if (pc_queue_create(pending, &queue, NULL)) abort();
    pc_event event = {0};
    pc_time now;
    for (size_t i = 0; i < pending; i++) { /* no two of a table's few delays at the very same time */
        event.data = i;
        if (!pc_queue_push(queue, delays[bench_draw(&random) % BENCH_DELAYS] + (pc_time)(bench_draw(&random) % 65536),
                           0, &event, NULL))
            abort();
    }
    double start = 0.0;
    for (size_t i = 0; i < operations + pending; i++) {
        if (i == pending) start = pc_now_s(); /* one round first, until the queue has its steady shape */
        if (!pc_queue_pop(queue, &now, &event)) abort();
        if (!pc_queue_push(queue, now + delays[bench_draw(&random) % BENCH_DELAYS], 0, &event, NULL)) abort();
    }
    double rate = (double)operations / (pc_now_s() - start) * 1e-6;
    printf("hold  %8zu pending  %6.2f M operations/s  %5.1f bytes/event\n", pending, rate,
           (double)pc_queue_bytes(queue) / (double)pending);
    pc_queue_free(queue);
    free(delays);
    return rate;
}

int main(void) {
    hold_million_per_s(10, 20000000);
    hold_million_per_s(100, 20000000);
    hold_million_per_s(1000, 20000000);
    hold_million_per_s(10000, 10000000);
    hold_million_per_s(100000, 10000000);
    hold_million_per_s(1000000, 10000000);
    return 0;
}
