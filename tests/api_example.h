/* api_example.h: a scenario of six runs, and short forms of the library's calls, for its tests: these fail the test
 * where there is an error. */
#ifndef PC_TESTS_API_EXAMPLE_H
#define PC_TESTS_API_EXAMPLE_H

#include "tests/folder.h"

#include <pipecast.h>

#include <stdint.h>

/* 6 runs, of which none is like another; F 1 ms, BW 2 ms. */
static const char six[] =
    "scenario: six\n"
    "setting: {schedule: 1f1b, devices: 2, times: {F: 1 ms, BW: 2 ms}, activation: {size: 1 GiB}, trace: true}\n"
    "sweep: {microbatches: [4, 5, 6], devices: [2, 3]}\n";

static inline double iteration_of_six(int64_t row) {
    int64_t devices = 2 + row / 3, microbatches = 4 + row % 3;
    return 3e-3 * (double)(microbatches + devices - 1);
}

static inline void assert_ok(int code, const pipecast_error *error) {
    if (code) fail_msg("%d: %s", code, error->message);
}

static inline pipecast_scenario *load_text(const char *text) {
    pipecast_error error = {0};
    pipecast_scenario *scenario = NULL;
    assert_ok(pipecast_scenario_load(NULL, text, NULL, 0, 0, &scenario, &error), &error);
    return scenario;
}

static inline pipecast_sweep *sweep_of(const pipecast_scenario *scenario, const char *output) {
    pipecast_error error = {0};
    pipecast_sweep *sweep = NULL;
    assert_ok(pipecast_sweep_create(&scenario, 1, &sweep, &error), &error);
    assert_ok(pipecast_sweep_set_threads(sweep, 2, &error), &error);
    assert_ok(pipecast_sweep_set_output(sweep, output, 0, &error), &error);
    return sweep;
}

static inline pipecast_results *run_sweep(pipecast_sweep *sweep) {
    pipecast_error error = {0};
    pipecast_results *results = NULL;
    assert_ok(pipecast_sweep_run(sweep, &results, &error), &error);
    pipecast_sweep_free(sweep);
    return results;
}

static inline pipecast_results *run_text(const char *text, const char *output) {
    pipecast_scenario *scenario = load_text(text);
    pipecast_results *results = run_sweep(sweep_of(scenario, output));
    pipecast_scenario_free(scenario);
    return results;
}

static inline double real_at(const pipecast_results *results, int64_t row, const char *name) {
    return pipecast_results_real(results, row, pipecast_results_find(results, name));
}

#endif
