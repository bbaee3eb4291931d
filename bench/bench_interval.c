/* Where V-Min's repeating bubble goes away. First the share of an interval that a device idles in the middle of a
 * schedule: V-Min as it was published, and ours in its memory and in a little more. Then the least memory in which a
 * block of one microbatch has no idle time, which is exact (models/schedule/search/seamless.h). With a folder's name
 * the rows are written there as interval.csv and least_memory.csv, for interval.gp. */
#include "bench/bench.h"
#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/schedule/search/seamless.h"
#include "models/schedule/steady.h"
#include "models/schedule/timing.h"

#include <string.h>

enum { DEVICES_MAX = 32, TICKS = 10000 };

/* ---- what is asked ---- */

/* Times of a stage; of two chunks, each with half of them. */
typedef struct times {
    double f, b, w, comm;
} times;

static pc_costs costs_of(int p, times t) {
    const double of_kind[] = {t.f, t.b, t.w};
    pc_costs costs;
    if (pc_costs_create(p, 2, &costs, NULL)) abort();
    for (int i = 0; i < 2 * p; i++) {
        for (int kind = 0; kind < 3; kind++)
            costs.duration_ps[i * PC_PASS_KINDS + kind] = (pc_time)llround(of_kind[kind] / 2 * TICKS);
        costs.activation_bytes[i] = 1;
    }
    costs.transfer.delay_ps = (pc_time)llround(t.comm * TICKS);
    return costs;
}

static pc_memory_limit limit_of(int chunks, int64_t *limit) {
    for (int d = 0; d < DEVICES_MAX; d++) limit[d] = chunks;
    return (pc_memory_limit){limit};
}

static int chunks_of_v_min(int p) {
    return 2 * ((p + 4) / 3);
}

/* On average a device holds what a microbatch alone makes it hold: (2p+1)(F+B) + 4(p-1) c + 3W of a chunk, the most on
 * the last one. */
static double average_chunks(int p, times t) {
    double work = t.f + t.b + t.w;
    return ((2 * p + 1) * (t.f + t.b) / 2 + 4 * (p - 1) * t.comm + 3 * t.w / 2) / work;
}

/* ---- schedules ---- */

/* The pass of a whole iteration and its middle. */
typedef struct judged {
    double span, interval; /* in ticks; of a microbatch, and 0 if the middle does not repeat */
} judged;

static judged judge(const char *name, pc_making making, int p, int m, int chunks, times t) {
    int64_t limit[DEVICES_MAX];
    pc_costs costs = costs_of(p, t);
    const pc_generate_request request = {
        .devices = p, .microbatches = m, .costs = &costs, .memory_limit = limit_of(chunks, limit), .making = making};
    pc_schedule schedule;
    pc_steady steady;
    pc_timing *timing;
    pc_timing_result result;
    if (pc_generate(pc_generator_find(name), &request, &schedule, NULL, NULL)) abort();
    if (pc_steady_find(&schedule, &costs, &steady, NULL) || pc_timing_create(&timing, NULL)) abort();
    if (pc_timing_run(timing, &schedule, &costs, &result, NULL)) abort();
    judged found = {(double)result.totals.span_ps, steady.interval_ps};
    pc_timing_free(timing);
    pc_steady_free(&steady);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
    return found;
}

/* The interval over the work. If the middle of the order does not repeat it is what a microbatch adds between two
 * lengths. */
static double interval_of(const char *name, pc_making making, int p, int chunks, times t, const char **how) {
    judged longer = judge(name, making, p, 12 * p, chunks, t);
    double work = (t.f + t.b + t.w) * TICKS;
    *how = "exact";
    if (longer.interval > 0) return longer.interval / work;
    judged shorter = judge(name, making, p, 6 * p, chunks, t);
    *how = "growth";
    return (longer.span - shorter.span) / (6 * p) / work;
}

static void write_interval(FILE *file, const char *panel, double x, const char *whose, double ratio, const char *how) {
    double bubble = ratio > 1 ? 1 - 1 / ratio : 0;
    fprintf(file, "%s,%g,%s,%.4f,%s\n", panel, x, whose, bubble, how);
    printf("%-9s %5g  %-10s %.4f %s\n", panel, x, whose, bubble, how);
    fflush(stdout);
}

static void write_intervals(FILE *file, const char *panel, double x, int p, times t) {
    const char *how;
    char whose[32];
    int chunks = chunks_of_v_min(p);
    double ratio = interval_of("v-min", PC_MAKING_PUBLISHED, p, chunks, t, &how);
    write_interval(file, panel, x, "published", ratio, how);
    for (int more = 0; more <= 3; more++) {
        snprintf(whose, sizeof whose, "ours+%d", more);
        ratio = interval_of("v-adaptive", PC_MAKING_COSTS, p, chunks + more, t, &how);
        write_interval(file, panel, x, whose, ratio, how);
    }
    write_interval(file, panel, x, "bound", average_chunks(p, t) / chunks, "bound");
}

static void write_panels(FILE *file) {
    enum { P = 8, POINTS = 9 };
    fprintf(file, "panel,x,whose,repeating_bubble,how\n");
    for (int i = 0; i < POINTS; i++) {
        double b = 0.5 + 0.25 * i;
        write_intervals(file, "backward", b, P, (times){1, b, 1, 0});
    }
    for (int i = 0; i < POINTS; i++) {
        double comm = 0.05 * i;
        write_intervals(file, "transfer", comm, P, (times){1, 1, 1, comm});
    }
}

/* ---- the least memory ---- */

static bool has_block(int p, int chunks, times t) {
    int64_t limit[DEVICES_MAX];
    pc_costs costs = costs_of(p, t);
    pc_instance instance;
    pc_fitted_block block;
    if (pc_instance_create(&costs, PC_PLACEMENT_V, true, 1, limit_of(chunks, limit), &instance, NULL)) abort();
    if (pc_seamless_find(&instance, pc_seamless_work(&instance), PC_SEAMLESS_WHOLE, &block, NULL)) abort();
    pc_free(block.start);
    pc_instance_free(&instance);
    pc_costs_free(&costs);
    return block.microbatches > 0;
}

static int least_chunks(int p, times t) {
    int chunks = (int)ceil(average_chunks(p, t) - 1e-9);
    while (!has_block(p, chunks, t)) chunks++;
    return chunks;
}

static void write_least(FILE *file, const char *set, int p, times t) {
    int least = least_chunks(p, t);
    fprintf(file, "%s,%d,%g,%g,%g,%g,%d,%.2f,%d\n", set, p, t.f, t.b, t.w, t.comm, chunks_of_v_min(p),
            average_chunks(p, t), least);
    if (strcmp(set, "map") == 0) return;
    printf("p %2d, times %g,%g,%g, transfer %g: V-Min's %d chunks, average %.2f, least %d\n", p, t.f, t.b, t.w, t.comm,
           chunks_of_v_min(p), average_chunks(p, t), least);
    fflush(stdout);
}

static void write_least_memory(FILE *file) {
    static const times measured[] = {{1, 1, 1, 0},        {3, 4, 2, 0},           {3, 4, 2, 0.5},
                                     {22, 24.6, 17, 0.3}, {18.5, 18.1, 9.3, 0.6}, {10, 12, 7, 0.5}};
    enum { GRID = 24 };
    fprintf(file, "set,devices,f,b,w,comm,v_min_chunks,average_chunks,least_chunks\n");
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        for (int p = 4; p <= DEVICES_MAX; p *= 2) write_least(file, "table", p, measured[i]);
    for (int i = 1; i <= GRID; i++)
        for (int j = 1; j <= GRID; j++) write_least(file, "map", 8, (times){1, 0.125 * i, 0.125 * j, 0});
}

static FILE *open_in(const char *folder, const char *name) {
    char path[4096];
    if (!folder) return fopen("/dev/null", "w");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, "w");
}

int main(int count, char **arguments) {
    FILE *least = open_in(count > 1 ? arguments[1] : NULL, "least_memory.csv");
    FILE *interval = open_in(count > 1 ? arguments[1] : NULL, "interval.csv");
    if (!least || !interval) abort();
    write_least_memory(least);
    if (fclose(least)) abort();
    write_panels(interval);
    if (fclose(interval)) abort();
    return 0;
}
