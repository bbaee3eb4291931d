/* How time and memory grow with the cluster: GPT-3 175B on DGX A100, TP 8, PP 16, 64 microbatches, 1F1B, every
 * data-parallel replica expanded, each pass with its own 5% noise; one thread. Each size in a process of its own, whose
 * peak of memory is its own. The line is fitted to the thread's own time, in which what else the machine does counts
 * less. With a file's name the rows are written there as CSV, for scale.gp. */
#include "bench/bench.h"
#include "bench/example.h"
#include "engine/numbers.h"
#include "models/training/iteration.h"
#include "scenarios/library.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZES = 8, ROUNDS = 5, GPUS_OF_REPLICA = 8 * 16 };

typedef struct row {
    double gpus, passes, seconds, own_seconds, megabytes;
} row;

static pc_iteration_spec spec_of(int replicas) {
    pc_iteration_spec spec = bench_gpt3_spec("1f1b", 1, 16, replicas, 64);
    spec.network = PC_NETWORK_CLOSED;
    spec.expands = true;
    spec.jitter = 0.05;
    return spec;
}

/* The least of some rounds: what else the machine does only adds. */
static row measure(int replicas) {
    pc_iteration_spec spec = spec_of(replicas);
    row found = {.gpus = (double)replicas * GPUS_OF_REPLICA, .passes = (double)replicas * 16 * 2 * 64};
    found.seconds = found.own_seconds = INFINITY;
    for (int i = 0; i < (replicas < 128 ? 5 * ROUNDS : ROUNDS); i++) {
        pc_iteration iteration;
        double begin = pc_now_s(), own_begin = bench_own_s();
        if (pc_iteration_run(&spec, NULL, false, &iteration, NULL) || iteration.status) abort();
        found.seconds = pc_min(found.seconds, pc_now_s() - begin);
        found.own_seconds = pc_min(found.own_seconds, bench_own_s() - own_begin);
        pc_iteration_free(&iteration);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    found.megabytes = (double)usage.ru_maxrss / 1024;
    return found;
}

static row measure_in_child(int replicas) {
    int ends[2];
    row found;
    if (pipe(ends)) abort();
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        found = measure(replicas);
        _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &found, sizeof found) != sizeof found) abort();
    close(ends[0]);
    waitpid(child, NULL, 0);
    return found;
}

typedef struct line {
    double slope, intercept, r_squared;
} line;

/* Least squares. */
static line fit(const double *x, const double *y, int count) {
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;
    for (int i = 0; i < count; i++) {
        mean_x += x[i] / count;
        mean_y += y[i] / count;
    }
    for (int i = 0; i < count; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
    }
    return (line){xy / xx, mean_y - xy / xx * mean_x, yy > 0 ? xy * xy / (xx * yy) : 1};
}

static void print_fits(const row *rows) {
    double gpus[SIZES], seconds[SIZES], log_gpus[SIZES], log_seconds[SIZES];
    for (int i = 0; i < SIZES; i++) {
        gpus[i] = rows[i].gpus;
        seconds[i] = rows[i].own_seconds;
        log_gpus[i] = log(rows[i].gpus);
        log_seconds[i] = log(rows[i].own_seconds);
    }
    line straight = fit(gpus, seconds, SIZES), power = fit(log_gpus, log_seconds, SIZES);
    printf("seconds = %.3g + %.4g x GPUs, R^2 %.5f; as a power of GPUs the exponent is %.3f, R^2 %.5f\n",
           straight.intercept, straight.slope, straight.r_squared, power.slope, power.r_squared);
}

static void write_csv(const char *path, const row *rows) {
    FILE *file = fopen(path, "w");
    if (!file) abort();
    fprintf(file, "gpus,passes,seconds,own_seconds,megabytes\n");
    for (int i = 0; i < SIZES; i++)
        fprintf(file, "%.0f,%.0f,%.6f,%.6f,%.2f\n", rows[i].gpus, rows[i].passes, rows[i].seconds, rows[i].own_seconds,
                rows[i].megabytes);
    if (fclose(file)) abort();
}

int main(int count, char **arguments) {
    row rows[SIZES];
    for (int i = 0; i < SIZES; i++) {
        rows[i] = measure_in_child(8 << i);
        printf("%6.0f GPUs: %8.3f ms, %8.3f of the thread's own, %5.1f ns a pass, %5.1f MB\n", rows[i].gpus,
               1e3 * rows[i].seconds, 1e3 * rows[i].own_seconds, 1e9 * rows[i].own_seconds / rows[i].passes,
               rows[i].megabytes);
        fflush(stdout);
    }
    print_fits(rows);
    if (count > 1) write_csv(arguments[1], rows);
    return 0;
}
