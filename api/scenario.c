#include "api/handles.h"

#include "engine/alloc.h"

#include <limits.h>
#include <stdio.h>

pc_code api_load_options(const char **path, const char *text, const char *const *sets, size_t set_count, int flags,
                         pc_scenario_options *options, pc_error *error) {
    if (set_count > INT_MAX / 2)
        return pc_error_set(error, PC_ERROR_INPUT, "%zu overrides; expected at most %d", set_count, INT_MAX / 2);
    if (flags & ~PIPECAST_ALLOW_OUTSIDE)
        return pc_error_set(error, PC_ERROR_INPUT, "flags: %d; expected 0 or PIPECAST_ALLOW_OUTSIDE", flags);
    if (text && !*path) *path = "text";
    *options = (pc_scenario_options){.sets = sets,
                                     .set_count = (int)set_count,
                                     .allows_outside = (flags & PIPECAST_ALLOW_OUTSIDE) != 0,
                                     .text = text};
    return PC_OK;
}

int pipecast_scenario_load(const char *path, const char *text, const char *const *sets, size_t set_count, int flags,
                           pipecast_scenario **scenario, pipecast_error *error) {
    pc_error why = {0};
    pc_scenario_options options;
    pc_code code = api_load_options(&path, text, sets, set_count, flags, &options, &why);
    pipecast_scenario *made = pc_alloc(1, sizeof *made);
    if (!code && !made) code = pc_error_no_memory(&why);
    if (!code) code = pc_scenario_load_with(path, &options, &made->scenario, &why);
    if (code)
        pc_free(made);
    else
        *scenario = made;
    return api_answer(code, &why, error);
}

void pipecast_scenario_free(pipecast_scenario *scenario) {
    if (scenario) pc_scenario_free(scenario->scenario);
    pc_free(scenario);
}

const char *pipecast_scenario_name(const pipecast_scenario *scenario) {
    return pc_scenario_name(scenario->scenario);
}

int64_t pipecast_scenario_run_count(const pipecast_scenario *scenario) {
    return pc_scenario_run_count(scenario->scenario);
}

int pipecast_scenario_run_name(const pipecast_scenario *scenario, int64_t run, char *name, size_t size,
                               pipecast_error *error) {
    pc_error why = {0};
    pc_run_spec spec;
    pc_run_labels labels;
    pc_code code = pc_scenario_run_spec(scenario->scenario, run, &spec, &labels, &why);
    if (code) return api_answer(code, &why, error);
    pc_run_spec_free(&spec);
    snprintf(name, size, "%s", labels.name);
    return PIPECAST_OK;
}
