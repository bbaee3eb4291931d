#include "api/handles.h"

#include "engine/alloc.h"

#include <limits.h>
#include <stdio.h>

/* PC_ERROR_INPUT where there are more overrides than can be counted. */
static pc_code make_options(const api_source *source, pc_scenario_options *options, pc_error *error) {
    if (source->set_count > INT_MAX / 2)
        return pc_error_set(error, PC_ERROR_INPUT, "%zu overrides; expected at most %d", source->set_count,
                            INT_MAX / 2);
    if (source->flags & ~PIPECAST_ALLOW_OUTSIDE)
        return pc_error_set(error, PC_ERROR_INPUT, "flags: %d; expected 0 or PIPECAST_ALLOW_OUTSIDE", source->flags);
    *options = (pc_scenario_options){.sets = source->sets,
                                     .set_count = (int)source->set_count,
                                     .allows_outside = (source->flags & PIPECAST_ALLOW_OUTSIDE) != 0,
                                     .text = source->text};
    return PC_OK;
}

void *api_load(const api_source *source, size_t size, int *code, pipecast_error *error) {
    const char *path = source->text && !source->path ? "text" : source->path;
    pc_error why = {0};
    pc_scenario_options options;
    pc_code came = make_options(source, &options, &why);
    void *handle = came ? NULL : pc_alloc(1, size);
    if (!came && !handle) came = pc_error_no_memory(&why);
    if (!came) came = source->load(path, &options, handle, &why);
    *code = api_answer(came, &why, error);
    if (!came) return handle;
    pc_free(handle);
    return NULL;
}

static pc_code load(const char *path, const pc_scenario_options *options, void *handle, pc_error *error) {
    pipecast_scenario *made = handle;
    return pc_scenario_load_with(path, options, &made->scenario, error);
}

int pipecast_scenario_load(const char *path, const char *text, const char *const *sets, size_t set_count, int flags,
                           pipecast_scenario **scenario, pipecast_error *error) {
    int code;
    pipecast_scenario *made =
        api_load(&(api_source){path, text, sets, set_count, flags, load}, sizeof *made, &code, error);
    if (made) *scenario = made;
    return code;
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
