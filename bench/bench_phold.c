/* PHOLD (Fujimoto 1990) on the whole engine: every event handled sends a new one, to a random logical process, after an
 * exponential delay. */
#include "bench/bench.h"
#include "engine/engine.h"

typedef struct phold {
    bench_random random;
    const int64_t *delays;
    uint64_t *handled; /* by each logical process */
    uint32_t process_count;
    uint64_t left;
} phold;

static void on_event(pc_engine *engine, const pc_event *event, void *context) {
    phold *model = context;
    model->handled[event->target]++;
    if (model->left-- == 0) {
        pc_engine_stop(engine);
        return;
    }
    uint64_t draw = bench_draw(&model->random);
    pc_event next = {0, (uint32_t)((draw >> 32) % model->process_count), event->data};
    pc_engine_post(engine, model->delays[draw % BENCH_DELAYS], 0, &next, NULL);
}

static void run(phold *model, pc_engine *engine, uint64_t events) {
    model->left = events;
    if (pc_engine_run(engine, PC_TIME_MAX, NULL)) abort();
}

static void measure(uint32_t pending, uint64_t events) {
    phold model = {.random = {88172645463325252u}, .process_count = pending};
    int64_t *delays = bench_exponential_delays(&model.random, 1e6);
    pc_engine *engine;
    model.delays = delays;
    model.handled = calloc(pending, sizeof *model.handled);
    if (!model.handled || pc_engine_create(pending, &engine, NULL)) abort();
    pc_engine_set_handler(engine, 0, on_event, &model);
    for (uint32_t i = 0; i < pending; i++) {
        pc_event event = {0, i, i};
        pc_time jitter = (pc_time)(bench_draw(&model.random) % 65536); /* the table has few delays */
        pc_engine_post(engine, delays[bench_draw(&model.random) % BENCH_DELAYS] + jitter, 0, &event, NULL);
    }
    run(&model, engine, pending); /* one round first, until the queue has its steady shape */
    double start = pc_now_s();
    run(&model, engine, events);
    printf("phold %8u pending  %6.2f M events/s      %5.1f bytes/event\n", pending,
           (double)events / (pc_now_s() - start) * 1e-6, (double)pc_engine_bytes(engine) / pending);
    pc_engine_free(engine);
    free(model.handled);
    free(delays);
}

int main(void) {
    measure(1000, 20000000);
    measure(1000000, 10000000);
    return 0;
}
