/* Events a second inside real iterations: GPT-3 175B on DGX A100, TP 8, transfers and collectives as flows over links.
 * An event is what the engine takes out of its queue and handles: the start or the end of a pass, a part of one, a
 * message or a collective's flow, or rates that are shared anew. Each program runs in two ways, which give the same
 * times: as `engine: auto` runs it, ahead (engine/ahead.c), where flows alone have events; and event by event. The
 * first way's starts and ends a second, two a task, are not events. The runs are the engine's alone, of a program built
 * before; the iteration is all of pc_iteration_run, ahead. The last rows replay a schedule event by event, where memory
 * is taken and given back. Times are the thread's own. */
#include "bench/bench.h"
#include "bench/example.h"
#include "engine/simulation.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/training/iteration.h"
#include "models/training/lower.h"
#include "scenarios/library.h"

#include <string.h>

typedef struct example {
    const char *name;
    int pp, dp;
    int64_t microbatches;
    pc_granularity granularity;
    int rounds;
} example;

static const example examples[] = {
    {"PP 8, 24 microbatches, passes", 8, 64, 24, PC_GRANULARITY_PASS, 301},
    {"PP 16, 128 microbatches, passes", 16, 64, 128, PC_GRANULARITY_PASS, 31},
    {"PP 8, 24 microbatches, operations", 8, 64, 24, PC_GRANULARITY_OPERATIONS, 21},
    {"PP 16, 128 microbatches, operations", 16, 64, 128, PC_GRANULARITY_OPERATIONS, 3},
};

static pc_iteration_spec spec_of(const example *subject) {
    pc_iteration_spec spec = bench_gpt3_spec("1f1b", 1, subject->pp, subject->dp, (int)subject->microbatches);
    spec.network = PC_NETWORK_FLOWS;
    spec.granularity = subject->granularity;
    return spec;
}

static pc_program *make_program(const pc_iteration_spec *spec) {
    pc_outline outline;
    pc_schedule schedule;
    pc_program *program;
    pc_flows_spec how = pc_flows_spec_default();
    if (pc_outline_make(spec, NULL, &outline, NULL) ||
        pc_schedule_generate(spec->generator, spec->cut.pp, (int)spec->cut.microbatches, 1, &schedule, NULL) ||
        pc_flows_program(&outline, &schedule, &how, &program, NULL))
        abort();
    pc_schedule_free(&schedule);
    pc_outline_free(&outline);
    return program;
}

/* What took least; `keep` gets the result of the last run. */
static double least_run_s(const pc_program *program, pc_simulation *simulation, bool every_event, int rounds,
                          pc_simulation_result *keep) {
    const pc_simulation_options options = {.every_event = every_event};
    double least = INFINITY;
    for (int i = 0; i < rounds; i++) {
        double begin = bench_own_s();
        if (pc_simulation_run(simulation, program, &options, keep, NULL)) abort();
        double taken = bench_own_s() - begin;
        if (taken < least) least = taken;
    }
    return least;
}

static double least_iteration_s(const pc_iteration_spec *spec, int rounds) {
    double least = INFINITY;
    for (int i = 0; i < rounds; i++) {
        pc_iteration iteration;
        double begin = bench_own_s();
        if (pc_iteration_run(spec, NULL, false, &iteration, NULL)) abort();
        double taken = bench_own_s() - begin;
        if (taken < least) least = taken;
        pc_iteration_free(&iteration);
    }
    return least;
}

static void measure(const example *subject) {
    pc_iteration_spec spec = spec_of(subject);
    pc_program *program = make_program(&spec);
    pc_simulation *simulation;
    pc_simulation_result ahead = {0}, all = {0};
    if (pc_simulation_create(&simulation, NULL)) abort();
    double ahead_s = least_run_s(program, simulation, false, subject->rounds, &ahead);
    double all_s = least_run_s(program, simulation, true, subject->rounds, &all);
    double whole_s = least_iteration_s(&spec, subject->rounds), both = 2.0 * pc_program_task_count(program);
    if (ahead.trace_hash != all.trace_hash) abort();
    printf("%-36s %8.0f starts and ends\n", subject->name, both);
    printf("  ahead:          %8.0f events, run %8.3f ms: %5.1f M starts and ends/s, %5.1f M events/s; iteration %8.3f "
           "ms\n",
           (double)ahead.event_count, 1e3 * ahead_s, 1e-6 * both / ahead_s, 1e-6 * (double)ahead.event_count / ahead_s,
           1e3 * whole_s);
    printf("  event by event: %8.0f events, run %8.3f ms: %5.1f M starts and ends/s, %5.1f M events/s\n",
           (double)all.event_count, 1e3 * all_s, 1e-6 * both / all_s, 1e-6 * (double)all.event_count / all_s);
    pc_simulation_free(simulation);
    pc_program_free(program);
}

/* The whole replay event by event, its program with it. */
static void measure_replay(const char *name, int devices, int microbatches, int rounds) {
    pc_schedule schedule;
    pc_costs costs;
    if (pc_schedule_generate(pc_generator_find(name), devices, microbatches, 0, &schedule, NULL) ||
        pc_costs_create(devices, schedule.chunks, &costs, NULL))
        abort();
    int64_t cells = (int64_t)devices * schedule.chunks;
    for (int64_t i = 0; i < cells * PC_PASS_KINDS; i++) costs.duration_ps[i] = 1000000 + 7919 * (i % 13);
    for (int64_t i = 0; i < cells; i++) costs.activation_bytes[i] = 1000;
    costs.transfer.delay_ps = 50000;
    double least = INFINITY, events = 0;
    for (int i = 0; i < rounds; i++) {
        pc_replay replay;
        double begin = bench_own_s();
        if (pc_replay_run(&schedule, &costs, &(pc_replay_options){.engine = PC_ENGINE_EVENTS}, &replay, NULL)) abort();
        double taken = bench_own_s() - begin;
        if (taken < least) least = taken;
        events = (double)replay.engine.event_count;
        pc_replay_free(&replay);
    }
    printf("replay of %s, p = %d, m = %d: %.0f events; with its program %.3f ms: %.1f M events/s\n", name, devices,
           microbatches, events, 1e3 * least, 1e-6 * events / least);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

int main(void) {
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) measure(&examples[i]);
    measure_replay("1f1b", 8, 64, 300);
    measure_replay("1f1b", 64, 256, 30);
    return 0;
}
