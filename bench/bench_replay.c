/* Timing a schedule in the three ways that give the same times. One is a workspace that is kept, as a search does; one
 * is the whole replay of `engine: auto`, over longest paths and without events; one is the replay event by event. Each
 * round does all three, so that a noisy machine troubles them alike, and each twice, so that none finds the caches as
 * another left them; the best second time counts. */
#include "bench/bench.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/timing.h"

typedef struct example {
    pc_schedule schedule;
    pc_costs costs;
    pc_timing *timing;
} example;

enum { WAYS = 3 };

static uint64_t run_timing(const example *subject) {
    pc_timing_result result;
    if (pc_timing_run(subject->timing, &subject->schedule, &subject->costs, &result, NULL)) abort();
    return (uint64_t)result.totals.makespan_ps;
}

static uint64_t take_result(pc_code code, pc_replay *replay) {
    if (code) abort();
    uint64_t makespan = (uint64_t)replay->makespan_ps;
    pc_replay_free(replay);
    return makespan;
}

static uint64_t run_replay(const example *subject) {
    pc_replay replay;
    return take_result(pc_replay_run(&subject->schedule, &subject->costs, NULL, &replay, NULL), &replay);
}

static uint64_t run_engine(const example *subject) {
    pc_replay replay;
    return take_result(pc_replay_run(&subject->schedule, &subject->costs,
                                     &(pc_replay_options){.engine = PC_ENGINE_EVENTS}, &replay, NULL),
                       &replay);
}

/* Costs that differ a little from stage to stage, so that no two passes keep step by chance. */
static void make_costs(example *subject) {
    if (pc_costs_create(subject->schedule.devices, subject->schedule.chunks, &subject->costs, NULL)) abort();
    bench_random random = {88172645463325252u};
    int64_t cells = (int64_t)subject->costs.devices * subject->costs.chunks;
    for (int64_t i = 0; i < cells * PC_PASS_KINDS; i++)
        subject->costs.duration_ps[i] = 1000000 + (pc_time)(bench_draw(&random) % 100000);
    for (int64_t i = 0; i < cells; i++) subject->costs.activation_bytes[i] = 1000;
    subject->costs.transfer.delay_ps = 50000;
}

static void measure(const char *name, int devices, int microbatches, int rounds) {
    static uint64_t (*const ways[WAYS])(const example *) = {run_timing, run_replay, run_engine};
    example subject = {0};
    double best[WAYS] = {1e9, 1e9, 1e9};
    if (pc_schedule_generate(pc_generator_find(name), devices, microbatches, 0, &subject.schedule, NULL)) abort();
    if (pc_timing_create(&subject.timing, NULL)) abort();
    make_costs(&subject);
    uint64_t expected = run_engine(&subject);
    for (int round = 0; round < rounds; round++)
        for (int way = 0; way < WAYS; way++) {
            if (ways[way](&subject) != expected) abort();
            double start = pc_now_s();
            if (ways[way](&subject) != expected) abort();
            double taken = pc_now_s() - start;
            if (taken < best[way]) best[way] = taken;
        }
    double ns = 1e9 / (double)subject.schedule.offsets[devices];
    printf("%-6s p=%-3d m=%-4d timing %6.1f  replay %6.1f  by events %6.1f ns a pass   events/replay %.1f\n", name,
           devices, microbatches, best[0] * ns, best[1] * ns, best[2] * ns, best[2] / best[1]);
    pc_timing_free(subject.timing);
    pc_costs_free(&subject.costs);
    pc_schedule_free(&subject.schedule);
}

int main(void) {
    measure("zb-h1", 8, 64, 1000);
    measure("zb-h1", 64, 256, 50);
    measure("1f1b", 64, 256, 50);
    return 0;
}
