/* Runs a scenario file by the library, and prints name, schedule, iteration time and MFU of every run.
 *
 * cc run_scenario.c $(pkg-config --cflags --libs pipecast) -o run_scenario
 * ./run_scenario SCENARIO.yaml */
#include <results/row.h>
#include <scenarios/scenario.h>

#include <stdio.h>

int main(int argc, char **argv) {
    pc_error error = {0};
    pc_scenario *scenario = NULL;
    pc_code code = pc_scenario_load(argc > 1 ? argv[1] : "scenario.yaml", NULL, 0, &scenario, &error);
    for (int64_t i = 0; !code && i < pc_scenario_run_count(scenario); i++) {
        pc_run_spec spec;
        pc_run_labels labels;
        pc_run_row row;
        pc_run_detail detail;
        if ((code = pc_scenario_run_spec(scenario, i, &spec, &labels, &error))) break;
        if (!(code = pc_run_row_make(&spec, &labels, &row, &detail, &error))) {
            printf("%s,%s,%.17g,%.17g\n", row.name, row.schedule, row.iteration_s, row.mfu);
            pc_run_detail_free(&detail);
        }
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
    if (code) fprintf(stderr, "%s\n", error.message);
    return code ? 1 : 0;
}
