/* Searched schedules: generation and replay in one process, on one thread, at equal costs and at costs that fit no
 * grid. Each case has a process of its own, so that the peak of its memory is its own; the median of several rounds
 * counts.
 *
 * What a user waits for is the whole command: the last lines say how to time that. */
#include "bench/bench.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct example {
    const char *name;
    int devices, microbatches;
    bool limited; /* to the p microbatches of 1F1B; else the schedule has its own limit */
} example;

typedef struct example_times {
    double f, b, w, comm; /* of a stage */
} example_times;

static const example examples[] = {
    {"v-adaptive", 8, 64, true},
    {"v-adaptive", 32, 128, true},
    {"zb-1p", 64, 256, false},
    {"v-half", 64, 256, false},
};
static const example_times times[] = {{1, 1, 1, 0}, {3, 4, 2, 0.5}};

enum { ROUNDS = 5, DEVICES_MAX = 64 };
static const double patience_s = 5.0; /* no further round of a case after so long */
static const int64_t chunk_bytes = 1 << 20;
static const double unit_ps = 1e9;

static void make_costs(const example *subject, const pc_generator *generator, const example_times *t, pc_costs *costs) {
    int chunks = generator->chunks_default;
    double whole[PC_PASS_KINDS] = {
        [PC_PASS_F] = t->f, [PC_PASS_B] = t->b, [PC_PASS_W] = t->w, [PC_PASS_BW] = t->b + t->w};
    if (pc_costs_create(subject->devices, chunks, costs, NULL)) abort();
    for (int i = 0; i < subject->devices * chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs->duration_ps[i * PC_PASS_KINDS + kind] = (pc_time)(whole[kind] * unit_ps) / chunks;
        costs->activation_bytes[i] = chunk_bytes;
    }
    costs->transfer.delay_ps = (pc_time)(t->comm * unit_ps);
}

typedef struct duration {
    double wall_s, processor_s;
} duration;

static duration now(void) {
    struct timespec processor;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
    return (duration){pc_now_s(), (double)processor.tv_sec + 1e-9 * (double)processor.tv_nsec};
}

/* What one generation and replay take. */
static duration run_once(const example *subject, const pc_generator *generator, pc_costs *costs, pc_replay *replay) {
    pc_schedule schedule;
    pc_generate_request request = {
        .devices = subject->devices, .microbatches = subject->microbatches, .costs = costs, .threads = 1};
    int64_t limit_bytes[DEVICES_MAX];
    for (int d = 0; d < subject->devices; d++) limit_bytes[d] = (int64_t)subject->devices * costs->chunks * chunk_bytes;
    if (subject->limited) request.memory_limit.device_bytes = limit_bytes;
    duration start = now();
    if (pc_generate(generator, &request, &schedule, NULL, NULL)) abort();
    if (pc_replay_run(&schedule, costs, NULL, replay, NULL)) abort();
    duration end = now();
    pc_schedule_free(&schedule);
    return (duration){end.wall_s - start.wall_s, end.processor_s - start.processor_s};
}

static void measure(const example *subject, const example_times *t) {
    const pc_generator *generator = pc_generator_find(subject->name);
    pc_costs costs;
    pc_replay replay = {0};
    double wall_s[ROUNDS], processor_s[ROUNDS], sum_s = 0.0;
    int rounds = 0;
    make_costs(subject, generator, t, &costs);
    while (rounds < ROUNDS && sum_s < patience_s) {
        pc_replay_free(&replay);
        duration taken = run_once(subject, generator, &costs, &replay);
        wall_s[rounds] = taken.wall_s;
        processor_s[rounds] = taken.processor_s;
        sum_s += taken.wall_s;
        rounds++;
    }
    printf("%-10s p=%-2d m=%-3d times %g,%g,%g comm %-3g  %8.1f ms, processor %8.1f ms  bubble %.4f  peak %4.1f",
           subject->name, subject->devices, subject->microbatches, t->f, t->b, t->w, t->comm,
           1e3 * bench_median(wall_s, rounds), 1e3 * bench_median(processor_s, rounds), replay.bubble_rate_span,
           (double)replay.peak_bytes / (double)(costs.chunks * chunk_bytes));
    fflush(stdout);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
}

static void measure_in_child(const example *subject, const example_times *t) {
    struct rusage usage;
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        measure(subject, t);
        _exit(0);
    }
    if (wait4(child, &status, 0, &usage) != child || status != 0) abort();
    printf("  %5.1f MB\n", (double)usage.ru_maxrss / 1e3);
}

int main(void) {
    const int count = (int)(sizeof examples / sizeof *examples);
    for (int i = 0; i < 2 * count; i++) measure_in_child(&examples[i / 2], &times[i % 2]);
    printf("\nthe whole command, on one core; its answer says generate_s and replay_s:\n");
    for (int i = 0; i < count; i++) {
        const example *subject = &examples[i];
        printf("  time taskset -c 0 build/cli/pipecast schedule %s -p %d -m %d --times 3,4,2 --comm 0.5", subject->name,
               subject->devices, subject->microbatches);
        if (subject->limited) printf(" --memory-limit %d", subject->devices);
        printf(" --format json\n");
    }
    return 0;
}
