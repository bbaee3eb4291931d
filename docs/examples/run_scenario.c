/* Runs a scenario file by the library, and prints name, schedule, iteration time and MFU of every run.
 *
 * cc run_scenario.c $(pkg-config --cflags --libs pipecast) -o run_scenario
 * ./run_scenario SCENARIO.yaml */
#include <pipecast.h>
#include <stdio.h>

int main(int argc, char **argv) {
    pipecast_error error = {0};
    pipecast_scenario *scenario = NULL;
    pipecast_sweep *sweep = NULL;
    pipecast_results *runs = NULL;
    int code = pipecast_scenario_load(argc > 1 ? argv[1] : "scenario.yaml", NULL, NULL, 0, 0, &scenario, &error);
    if (!code) code = pipecast_sweep_create((const pipecast_scenario *const[]){scenario}, 1, &sweep, &error);
    if (!code) code = pipecast_sweep_run(sweep, &runs, &error);
    for (int64_t row = 0; !code && row < pipecast_results_row_count(runs); row++) {
        char name[128], schedule[128];
        pipecast_results_text(runs, row, pipecast_results_find(runs, "name"), name, sizeof name);
        pipecast_results_text(runs, row, pipecast_results_find(runs, "schedule"), schedule, sizeof schedule);
        double iteration_s = pipecast_results_real(runs, row, pipecast_results_find(runs, "iteration_s"));
        printf("%s,%s,%.17g,%.17g\n", name, schedule, iteration_s,
               pipecast_results_real(runs, row, pipecast_results_find(runs, "mfu"))); /* nan: not defined */
    }
    if (code) fprintf(stderr, "%s\n", error.message);
    pipecast_results_free(runs);
    pipecast_sweep_free(sweep);
    pipecast_scenario_free(scenario);
    return code ? 1 : 0;
}
