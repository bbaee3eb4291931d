#include "scenarios/scenario.h"

#include "engine/alloc.h"
#include "scenarios/expand.h"
#include "scenarios/loaded.h"

#include <inttypes.h>
#include <stdio.h>

pc_code pc_scenario_load(const char *path, const char *const *sets, int set_count, pc_scenario **scenario,
                         pc_error *error) {
    pc_scenario_options options = {.sets = sets, .set_count = set_count};
    return pc_scenario_load_with(path, &options, scenario, error);
}

pc_code pc_scenario_load_with(const char *path, const pc_scenario_options *options, pc_scenario **scenario,
                              pc_error *error) {
    pc_scenario *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = pc_loaded_read(made, path, options, error);
    if (!code) code = pc_loaded_build(made, error);
    if (!code) code = pc_runs_check(made, error);
    if (code)
        pc_scenario_free(made);
    else
        *scenario = made;
    return code;
}

static void free_document(pc_document *document) {
    pc_setting_free(&document->setting);
    pc_tree_free(&document->tree);
}

static void free_case(pc_case *of) {
    pc_setting_free(&of->setting);
    pc_free(of->published);
}

void pc_scenario_free(pc_scenario *scenario) {
    if (!scenario) return;
    for (int64_t i = 0; i < scenario->case_count; i++) free_case(&scenario->cases[i]);
    for (int i = 0; i < scenario->document_count; i++) free_document(&scenario->documents[i]);
    for (int d = 0; d < PC_DIMENSIONS; d++) pc_free(scenario->sweep[d].values);
    pc_references_free(scenario->references);
    pc_free(scenario->folder);
    pc_free(scenario->figures);
    pc_free(scenario->cases);
    pc_free(scenario->documents);
    pc_free(scenario);
}

const char *pc_scenario_name(const pc_scenario *scenario) {
    return scenario->name;
}

const char *pc_scenario_title(const pc_scenario *scenario) {
    return scenario->title;
}

const char *pc_scenario_text(const pc_scenario *scenario, size_t *size) {
    const pc_source *source = &pc_loaded_file(scenario)->source;
    *size = source->size;
    return source->text;
}

int64_t pc_scenario_run_count(const pc_scenario *scenario) {
    return scenario->run_count;
}

/* By name, or by what a machine's GPU names. */
bool pc_scenario_has_profiles(const pc_scenario *scenario) {
    for (const pc_reference *x = scenario->references; x; x = x->next)
        if (x->key == PC_KEY_PROFILE || (x->key == PC_KEY_MACHINE && x->machine.gpu.kernels[0])) return true;
    return false;
}

pc_code pc_scenario_run_spec(const pc_scenario *scenario, int64_t index, pc_run_spec *spec, pc_run_labels *labels,
                             pc_error *error) {
    if (index < 0 || index >= scenario->run_count)
        return pc_error_set(error, PC_ERROR_INPUT, "run %" PRId64 ": there is none; expected 0 to %" PRId64, index,
                            scenario->run_count - 1);
    pc_setting merged;
    char name[PC_LABEL_SIZE];
    const pc_case *of = pc_runs_find(scenario, index, &merged, name);
    pc_code code = pc_setting_expand(&merged, spec, labels, error);
    if (code) return code;
    labels->run = index + 1;
    snprintf(labels->scenario, sizeof labels->scenario, "%s", scenario->name);
    snprintf(labels->name, sizeof labels->name, "%s", name);
    pc_published_copy(scenario, of, &merged, spec, labels);
    return PC_OK;
}
