/* Runs of a sweep on two threads, beside what two processes of one thread each do with half of them: what the machine
 * gives at all, for its cores share caches, memory and, where it is virtual, their host. One run is one folded
 * iteration: GPT-3 175B, TP 8, PP 8, 1F1B, 24 microbatches, closed costs. */
#include "bench/bench.h"
#include "scenarios/scenario.h"
#include "sweep/batch.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 20000, ROUNDS = 16 };

static const char *const sets[] = {"setting.model.from=gpt3-175b",
                                   "setting.machine=dgx-a100",
                                   "setting.tp=8",
                                   "setting.pp=8",
                                   "setting.dp=64",
                                   "setting.microbatches=24",
                                   "setting.microbatch_size=1",
                                   "setting.schedule=1f1b",
                                   "setting.recompute=selective",
                                   "setting.network=closed"};

/* What a results file takes of a run costs time of its own; here it is one copy. */
typedef struct taker {
    const pc_scenario *scenario;
    pc_run_row row;
    double seconds;
} taker;

/* Between the processes of one measurement. */
typedef struct shared {
    atomic_int ready;
    double processor_s[2];
} shared;

static pc_code make(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    const taker *t = context;
    pc_code code = pc_scenario_run_spec(t->scenario, 0, spec, labels, error);
    if (!code) spec->iteration.overhead_ps = index; /* no two runs are alike */
    return code;
}

static pc_code take(void *context, const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail,
                    pc_error *error) {
    (void)spec, (void)detail, (void)error;
    taker *t = context;
    t->row = *row;
    t->seconds += row->iteration_s;
    return PC_OK;
}

static void run(taker *t, int64_t count, int jobs) {
    pc_error error = {0};
    if (!batch_run(count, jobs, make, take, t, &error)) return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

/* Seconds from the first's start to the last's end, and seconds of processors. */
typedef struct cost {
    double wall_s, processor_s;
} cost;

static double processor_s(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* `count` runs in each of `processes` processes of `jobs` threads. */
static cost measure(taker *t, int processes, int64_t count, int jobs, shared *all) {
    pid_t children[2];
    *all = (shared){.ready = 0};
    for (int i = 0; i < processes; i++) {
        children[i] = fork();
        if (children[i] < 0) abort();
        if (children[i]) continue;
        run(t, 200, jobs); /* warm */
        all->ready++;
        while (all->ready <= processes) usleep(100);
        double begin = processor_s(RUSAGE_SELF);
        run(t, count, jobs);
        all->processor_s[i] = processor_s(RUSAGE_SELF) - begin;
        _exit(0);
    }
    while (all->ready < processes) usleep(100);
    double begin = bench_now_s();
    all->ready++;
    for (int i = 0; i < processes; i++) {
        int status;
        if (waitpid(children[i], &status, 0) < 0 || status) abort();
    }
    return (cost){bench_now_s() - begin, all->processor_s[0] + all->processor_s[1]};
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, int count) {
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    return numbers[count / 2];
}

static void print_ratio(const char *name, double ratio[ROUNDS]) {
    double middle = median(ratio, ROUNDS);
    printf("%-36s %.4f (%.4f to %.4f)\n", name, middle, ratio[ROUNDS / 4], ratio[ROUNDS - 1 - ROUNDS / 4]);
}

/* Rounds of three measurements each: where the machine changes its pace they change together. */
static void compare_ways(taker *t, shared *all) {
    const int half = RUNS / 2;
    double one[ROUNDS], two[ROUNDS], apart[ROUNDS], wall[ROUNDS], processor[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        cost threads = measure(t, 1, RUNS, 2, all), processes = measure(t, 2, half, 1, all);
        one[i] = half / measure(t, 1, half, 1, all).wall_s;
        two[i] = RUNS / threads.wall_s;
        apart[i] = RUNS / processes.wall_s;
        wall[i] = processes.wall_s / threads.wall_s;
        processor[i] = processes.processor_s / threads.processor_s;
    }
    printf("one thread    %8.0f runs/s\n", median(one, ROUNDS));
    printf("two threads   %8.0f runs/s\n", median(two, ROUNDS));
    printf("two processes %8.0f runs/s\n", median(apart, ROUNDS));
    print_ratio("threads / processes, wall time", wall);
    print_ratio("threads / processes, processor time", processor);
}

int main(void) {
    taker t = {0};
    pc_error error = {0};
    pc_scenario *scenario;
    if (pc_scenario_load(NULL, sets, sizeof sets / sizeof *sets, &scenario, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    t.scenario = scenario;
    /* cppcheck-suppress invalidFunctionArg ; no file: -1 */
    shared *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) abort();
    compare_ways(&t, all);
    pc_scenario_free(scenario);
    return 0;
}
