/* Fuzz target: scenarios (scenarios/scenario.h), what they name, and overrides, from a text to the list of runs; no run
 * is simulated. parts.h says how an input is several files. A scenario that is accepted has runs, with names, and
 * loaded twice it has the same. */
#include "scenarios/scenario.h"
#include "scenarios/run_key.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/parts.h"

#include <string.h>

/* The same key twice, and a name; of what is too large for this test nothing. */
static void check_run(const pc_scenario *one, const pc_scenario *other, int64_t index) {
    pc_error error = {0};
    pc_run_spec a, b;
    pc_run_labels of_a, of_b;
    pc_code code = pc_scenario_run_spec(one, index, &a, &of_a, &error);
    fuzz_check_error(code, &error);
    if (code) {
        fuzz_require(strstr(error.message, "in this test"), "of an accepted scenario every run can be made");
        return;
    }
    fuzz_require(!pc_scenario_run_spec(other, index, &b, &of_b, &error), "a run can be made twice");
    fuzz_require(of_a.name[0] && strcmp(of_a.name, of_b.name) == 0, "a run has a name, and twice the same");
    fuzz_require(pc_run_key_equal(pc_run_key_of(&a), pc_run_key_of(&b)), "a scenario loaded twice has the same runs");
    pc_run_spec_free(&a);
    pc_run_spec_free(&b);
}

static void check_accepted(const pc_scenario *scenario) {
    int set_count;
    pc_error error = {0};
    pc_scenario *again;
    const char *const *sets = parts_sets(&set_count);
    int64_t count = pc_scenario_run_count(scenario);
    fuzz_require(count > 0 && pc_scenario_name(scenario)[0], "a scenario has runs and a name");
    fuzz_require(!pc_scenario_load(INPUT_FILE, sets, set_count, &again, &error), "a scenario loads twice");
    fuzz_require(count == pc_scenario_run_count(again), "a scenario loaded twice has as many runs");
    check_run(scenario, again, 0);
    if (count > 1) check_run(scenario, again, count - 1);
    pc_scenario_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int set_count;
    pc_error error = {0};
    pc_scenario *scenario;
    parts_set(data, size);
    const char *const *sets = parts_sets(&set_count);
    pc_code code = pc_scenario_load(INPUT_FILE, sets, set_count, &scenario, &error);
    fuzz_check_error(code, &error);
    if (code) return 0;
    check_accepted(scenario);
    pc_scenario_free(scenario);
    return 0;
}
