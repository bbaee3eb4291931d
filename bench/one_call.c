/* What one forecast costs a program that calls the library: load a scenario of overrides alone, run it, read a number.
 * one_call N prints the least microseconds of a call over N of them. python/pipecast does the same in one_call.py. */
#include <pipecast.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const sets[] = {"setting.schedule=1f1b", "setting.devices=4", "setting.microbatches=8",
                                   "setting.times={F: 1 ms, B: 1 ms, W: 1 ms}"};

static double now_us(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec * 1e-3;
}

static double call(void) {
    pipecast_error error = {0};
    pipecast_scenario *scenario = NULL;
    pipecast_sweep *sweep = NULL;
    pipecast_results *results = NULL;
    double iteration_s = 0.0;
    int code = pipecast_scenario_load(NULL, NULL, sets, sizeof sets / sizeof *sets, 0, &scenario, &error);
    if (!code) code = pipecast_sweep_create((const pipecast_scenario *const[]){scenario}, 1, &sweep, &error);
    if (!code) code = pipecast_sweep_set_threads(sweep, 1, &error);
    if (!code) code = pipecast_sweep_run(sweep, &results, &error);
    if (!code) iteration_s = pipecast_results_real(results, 0, pipecast_results_find(results, "iteration_s"));
    pipecast_results_free(results);
    pipecast_sweep_free(sweep);
    pipecast_scenario_free(scenario);
    if (code) fprintf(stderr, "%s\n", error.message);
    return iteration_s;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    double least_us = 1e30;
    for (long i = 0; i < count; i++) {
        double begin_us = now_us();
        if (call() <= 0.0) return 1;
        double took_us = now_us() - begin_us;
        if (took_us < least_us) least_us = took_us;
    }
    printf("%.1f us a call of the library\n", least_us);
    return 0;
}
