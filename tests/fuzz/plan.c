/* Fuzz target: scenarios as searches for plans (scenarios/plan_scenario.h), from a text to the space of choices;
 * nothing is searched. parts.h says how an input is several files. */
#include "scenarios/plan_scenario.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/parts.h"

static void check_list(pc_plan_list list) {
    fuzz_require(list.count > 0, "of everything there is something to choose");
    for (int i = 0; i < list.count; i++) fuzz_require(list.values[i] >= 0, "what is chosen from is at least zero");
}

static void check_space(const pc_plan_space *space) {
    fuzz_require(space->base_count > 0 && space->generator_count > 0 && space->order_count > 0, "a space has points");
    check_list(space->gpus);
    check_list(space->tp);
    check_list(space->pp);
    check_list(space->microbatch_size);
    check_list(space->layouts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int set_count;
    pc_error error = {0};
    pc_plan_scenario *scenario;
    parts_set(data, size);
    const char *const *sets = parts_sets(&set_count);
    pc_code code = pc_plan_scenario_load(INPUT_FILE, sets, set_count, &scenario, &error);
    fuzz_check_error(code, &error);
    if (code) return 0;
    fuzz_require(pc_plan_scenario_name(scenario)[0], "a plan's scenario has a name");
    check_space(pc_plan_scenario_space(scenario));
    pc_plan_scenario_free(scenario);
    return 0;
}
