/* What a table of a scenario's runs says above its rows: scenario.h has the definitions. */
#include "scenarios/cluster.h"
#include "scenarios/loaded.h"
#include "scenarios/plan_section.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)PC_DIMENSIONS <= (int)PC_SCENARIO_SWEPT_MAX, "all dimensions may be swept at once");

/* False if nothing was assumed. */
static bool assume(const pc_setting *setting, pc_model_assumed *assumed) {
    bool has_name = pc_setting_has(setting, PC_KEY_MODEL_NAME);
    snprintf(assumed->model, sizeof assumed->model, "%s", has_name ? setting->value[PC_KEY_MODEL_NAME].text : "");
    return pc_setting_assumes(setting, assumed->keys, sizeof assumed->keys);
}

static int add(const pc_model_assumed *one, pc_model_assumed *list, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].model, one->model) == 0 && strcmp(list[i].keys, one->keys) == 0) return count;
    list[count] = *one;
    return count + 1;
}

static const char *model_name(const pc_setting *setting) {
    return pc_setting_has(setting, PC_KEY_MODEL_NAME) ? setting->value[PC_KEY_MODEL_NAME].text : "";
}

bool pc_scenario_has_models(const pc_scenario *scenario) {
    int64_t swept = scenario->sweep[PC_DIMENSION_MODEL].count, models = swept > 0 ? swept : 1;
    pc_setting first = pc_runs_of_model(scenario, 0, 0);
    for (int64_t i = 0; i < scenario->case_count * models; i++) {
        pc_setting other = pc_runs_of_model(scenario, i / models, i % models);
        if (strcmp(model_name(&first), model_name(&other)) != 0) return true;
    }
    return false;
}

int pc_scenario_assumed(const pc_scenario *scenario, pc_model_assumed list[PC_ASSUMED_MAX]) {
    int64_t swept = scenario->sweep[PC_DIMENSION_MODEL].count, models = swept > 0 ? swept : 1;
    int count = 0;
    for (int64_t i = 0; i < scenario->case_count; i++)
        for (int64_t k = 0; k < models && count < PC_ASSUMED_MAX; k++) {
            pc_model_assumed one = {.model = ""};
            pc_setting setting = pc_runs_of_model(scenario, i, k);
            if (assume(&setting, &one)) count = add(&one, list, count);
        }
    return count;
}

bool pc_plan_scenario_assumed(const pc_plan_scenario *scenario, pc_model_assumed *assumed) {
    pc_setting setting = pc_plan_base_setting(scenario, 0);
    return assume(&setting, assumed);
}

static void write_note(const pc_reference *model, char text[PC_IMPORT_NOTE_SIZE]) {
    snprintf(text, PC_IMPORT_NOTE_SIZE, "%s: %s", model->name, model->model.notes.data);
}

static bool has_note(const pc_reference *reference) {
    return reference->key == PC_KEY_MODEL_FROM && reference->model.notes.size > 0;
}

bool pc_scenario_import_note(const pc_scenario *scenario, int index, char text[PC_IMPORT_NOTE_SIZE]) {
    for (const pc_reference *r = scenario->references; r; r = r->next)
        if (has_note(r) && index-- == 0) return write_note(r, text), true;
    return false;
}

bool pc_plan_scenario_import_note(const pc_plan_scenario *scenario, char text[PC_IMPORT_NOTE_SIZE]) {
    pc_setting setting = pc_plan_base_setting(scenario, 0);
    if (!pc_setting_has(&setting, PC_KEY_MODEL_FROM)) return false;
    const pc_reference *model = setting.value[PC_KEY_MODEL_FROM].reference;
    if (!has_note(model)) return false;
    write_note(model, text);
    return true;
}

static const char *column_of(pc_dimension dimension) {
    if (dimension == PC_DIMENSION_DEVICES) return "pp";
    return dimension == PC_DIMENSION_CHUNKS ? "virtual_pp" : pc_dimension_rule_of(dimension)->name;
}

bool pc_scenario_only_sweeps(const pc_scenario *scenario, const char *columns[PC_SCENARIO_SWEPT_MAX], int *count) {
    *count = 0;
    for (int i = 0; i < PC_DIMENSIONS; i++)
        if (scenario->sweep[scenario->loops[i]].count > 1) columns[(*count)++] = column_of(scenario->loops[i]);
    return scenario->case_count == 1;
}
