/* Bounds for targets that load scenarios: what the library takes, and what takes long. For targets that wrap
 * pc_runs_check and pc_costs_create: libFuzzer is to try many scenarios, not ten million runs of one. */
#include "models/schedule/costs.h"
#include "scenarios/loaded.h"

enum { LIBRARY_RUNS_MAX = 10000000, RUNS_MAX = 64, COSTS_MAX = 4096 };

pc_code __real_pc_runs_check(pc_scenario *scenario, pc_error *error);
pc_code __wrap_pc_runs_check(pc_scenario *scenario, pc_error *error);
pc_code __wrap_pc_runs_check(pc_scenario *scenario, pc_error *error) {
    int64_t runs = scenario->case_count;
    for (int d = 0; d < PC_DIMENSIONS && runs <= LIBRARY_RUNS_MAX; d++)
        if (scenario->sweep[d].count > 1) runs *= scenario->sweep[d].count;
    if (runs > RUNS_MAX && runs <= LIBRARY_RUNS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%d runs; expected few of them in this test", (int)runs);
    return __real_pc_runs_check(scenario, error);
}

pc_code __real_pc_costs_create(int devices, int chunks, pc_costs *costs, pc_error *error);
pc_code __wrap_pc_costs_create(int devices, int chunks, pc_costs *costs, pc_error *error);
pc_code __wrap_pc_costs_create(int devices, int chunks, pc_costs *costs, pc_error *error) {
    if ((int64_t)devices * chunks > COSTS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%d devices; expected few of them in this test", devices);
    return __real_pc_costs_create(devices, chunks, costs, error);
}
