#include "scenarios/loaded.h"

#include "engine/alloc.h"
#include "scenarios/sections.h"
#include "scenarios/units.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What a figure is, which decides how it is read. */
typedef enum figure_kind { RUN, NUMBER, DURATION, GIBIBYTES } figure_kind;

#define NUMBER_OF(index) offsetof(pc_published, number[PC_PUBLISHED_##index])

/* RUN: which runs the figures are of; `most` is of a NUMBER; `place` in pc_published has a double. */
static const struct published_rule {
    const char *key;
    figure_kind kind;
    double most;
    size_t place;
} rules[] = {
    {"schedule", RUN, 0, 0},
    {"microbatches", RUN, 0, 0},
    {"bubble_rate_span", NUMBER, 1, NUMBER_OF(BUBBLE_RATE_SPAN)},
    {"samples_per_s_per_gpu", NUMBER, INFINITY, NUMBER_OF(SAMPLES_PER_S_PER_GPU)},
    {"iteration", DURATION, 0, offsetof(pc_published, iteration_s)},
    {"mfu", NUMBER, 1, NUMBER_OF(MFU)},
    {"tflops_per_gpu", NUMBER, INFINITY, NUMBER_OF(TFLOPS_PER_GPU)},
    {"hardware_tflops_per_gpu", NUMBER, INFINITY, NUMBER_OF(HARDWARE_TFLOPS_PER_GPU)},
    {"best_mfu", NUMBER, 1, NUMBER_OF(BEST_MFU)},
    {"pass_f", DURATION, 0, offsetof(pc_published, pass_f_s)},
    {"activation", GIBIBYTES, 0, offsetof(pc_published, activation_gib)},
    {"memory", GIBIBYTES, 0, offsetof(pc_published, memory_gib)},
};
enum { RULES = sizeof rules / sizeof *rules };

static pc_schema_field field(int index) {
    return (pc_schema_field){
        .path = rules[index].key, .kind = index == 0 ? PC_KIND_SCHEDULE : PC_KIND_TEXT, .is_required = index == 0};
}
const pc_schema pc_published_schema = {.count = RULES, .field = field};

/* At least zero, and at most `most` where that is finite. */
static pc_code parse_number(const char *text, double most, double *number, pc_error *error) {
    pc_code code = pc_parse_number(text, number, error);
    if (!code && *number > most)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: out of range; expected at most %g", text, most);
    return code;
}

static pc_code parse_duration(const char *text, double *seconds, pc_error *error) {
    pc_time time;
    pc_code code = pc_parse_time(text, &time, error);
    if (!code && time == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: out of range; expected more than zero", text);
    if (!code) *seconds = pc_time_to_seconds(time);
    return code;
}

static pc_code parse_size(const char *text, double *gib, pc_error *error) {
    pc_value size;
    pc_code code = pc_value_parse_size(text, &size, error);
    if (!code) *gib = (double)size.whole / 1073741824.0;
    return code;
}

static pc_code parse_figure(const struct published_rule *rule, const char *text, double *figure, pc_error *error) {
    if (rule->kind == NUMBER) return parse_number(text, rule->most, figure, error);
    return rule->kind == DURATION ? parse_duration(text, figure, error) : parse_size(text, figure, error);
}

/* The schedule by its name, or a file. */
static pc_code read_run(pc_scenario *scenario, const pc_node *node, pc_published *entry, pc_error *error) {
    const pc_tree *tree = pc_loaded_file(scenario);
    const pc_node *schedule = pc_node_find(node, "schedule"), *microbatches = pc_node_find(node, "microbatches");
    pc_place place = pc_loaded_place(scenario, scenario->documents);
    pc_value value;
    pc_code code = pc_value_parse(PC_KEY_SCHEDULE, schedule->text, &value, error);
    if (!code) code = pc_reference_find(&scenario->references, PC_KEY_SCHEDULE, &place, &value, error);
    if (code) return pc_node_blame(tree, schedule, code, error);
    entry->generator = value.generator;
    value.whole = -1;
    if (microbatches) code = pc_value_parse(PC_KEY_MICROBATCHES, microbatches->text, &value, error);
    entry->microbatches = value.whole;
    return pc_node_blame(tree, microbatches, code, error);
}

static pc_code read_entry(pc_scenario *scenario, const pc_node *node, pc_published *entry, pc_error *error) {
    pc_code code = read_run(scenario, node, entry, error);
    for (int i = 0; i < RULES && !code; i++) {
        if (rules[i].kind == RUN) continue;
        double figure = NAN;
        const pc_node *value = pc_node_find(node, rules[i].key);
        if (value) code = parse_figure(&rules[i], value->text, &figure, error);
        memcpy((char *)entry + rules[i].place, &figure, sizeof figure);
        if (code) return pc_node_blame(pc_loaded_file(scenario), value, code, error);
    }
    return code;
}

pc_code pc_published_read(pc_scenario *scenario, const pc_node *list, pc_case *into, pc_error *error) {
    if (!list || list->count == 0) return PC_OK;
    into->published = pc_alloc(list->count, sizeof *into->published);
    if (!into->published) return pc_error_no_memory(error);
    into->published_count = list->count;
    pc_published *to = into->published;
    pc_code code = PC_OK;
    for (const pc_node *entry = pc_node_first(list); entry < pc_node_end(list) && !code; entry = pc_node_end(entry))
        code = read_entry(scenario, entry, to++, error);
    return code;
}

/* Whether a run has the value that its case has in the file; a case that leaves it to the sweep has any. */
static bool is_own(const pc_setting *own, pc_key key, int64_t value) {
    return !pc_setting_has(own, key) || own->value[key].whole == value;
}

/* The same of all keys that make a run on a cluster another one. */
static bool is_own_cluster(const pc_setting *own, const pc_setting *merged) {
    static const pc_key keys[] = {PC_KEY_GPUS,    PC_KEY_TP,           PC_KEY_PP,     PC_KEY_DP,
                                  PC_KEY_SEQ_LEN, PC_KEY_GLOBAL_BATCH, PC_KEY_LAYERS, PC_KEY_ZERO};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pc_setting_has(merged, keys[i]) && !is_own(own, keys[i], merged->value[keys[i]].whole)) return false;
    if (pc_setting_has(own, PC_KEY_RECOMPUTE) &&
        strcmp(own->value[PC_KEY_RECOMPUTE].text, merged->value[PC_KEY_RECOMPUTE].text) != 0)
        return false;
    return !pc_setting_has(own, PC_KEY_MODEL_FROM) ||
           own->value[PC_KEY_MODEL_FROM].reference == merged->value[PC_KEY_MODEL_FROM].reference;
}

/* Parts of a stage, and slices of each; schedules with one of them for all leave out what the case says of it. */
static bool has_own_chunks(const pc_setting *own, const pc_run_spec *spec) {
    const pc_generator *generator = spec->generator;
    int slices = pc_generator_slices(generator, spec->chunks, spec->slices);
    bool has_parts = generator->placement != PC_PLACEMENT_SLICES && generator->chunks_max != 1;
    bool has_slices = pc_placement_has_slices(generator->placement);
    return (!has_parts || is_own(own, PC_KEY_CHUNKS, spec->chunks / slices)) &&
           (!has_slices || is_own(own, PC_KEY_SEQUENCE_SLICES, slices));
}

/* Published figures belong to a shape: a sweep or a --set that gives the run another one has none. What costs they were
 * taken at is not looked at: comparing them with other costs is what some sets are for. */
static bool describes(const pc_published *entry, const pc_setting *own, const pc_setting *merged,
                      const pc_run_spec *spec) {
    if (entry->generator != spec->generator) return false;
    if (entry->microbatches != -1 ? entry->microbatches != spec->microbatches
                                  : !is_own(own, PC_KEY_MICROBATCHES, spec->microbatches))
        return false;
    return is_own(own, PC_KEY_DEVICES, spec->devices) && is_own(own, PC_KEY_MICROBATCH_SIZE, spec->microbatch_size) &&
           has_own_chunks(own, spec) && (!spec->is_cluster || is_own_cluster(own, merged));
}

void pc_published_values(const char *key, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < RULES; i++) {
        if (rules[i].kind != NUMBER || strcmp(rules[i].key, key) != 0) continue;
        if (isfinite(rules[i].most))
            snprintf(text, size, "number, 0 to %g", rules[i].most);
        else
            snprintf(text, size, "number");
    }
}

void pc_published_copy(const pc_scenario *scenario, const pc_case *of, const pc_setting *merged,
                       const pc_run_spec *spec, pc_run_labels *labels) {
    pc_setting own = scenario->documents[0].setting;
    pc_setting_merge(&own, &of->setting);
    for (int64_t i = 0; i < of->published_count; i++) {
        const pc_published *entry = &of->published[i];
        if (!describes(entry, &own, merged, spec)) continue;
        labels->published_bubble_rate_span = entry->number[PC_PUBLISHED_BUBBLE_RATE_SPAN];
        labels->published_samples_per_s_per_gpu = entry->number[PC_PUBLISHED_SAMPLES_PER_S_PER_GPU];
        labels->published_mfu = entry->number[PC_PUBLISHED_MFU];
        labels->published_tflops_per_gpu = entry->number[PC_PUBLISHED_TFLOPS_PER_GPU];
        labels->published_hardware_tflops_per_gpu = entry->number[PC_PUBLISHED_HARDWARE_TFLOPS_PER_GPU];
        labels->published_iteration_s = entry->iteration_s;
        labels->published_activation_gib = entry->activation_gib;
        labels->published_pass_f_s = entry->pass_f_s;
        labels->published_memory_gib = entry->memory_gib;
        labels->published_best_mfu = entry->number[PC_PUBLISHED_BEST_MFU];
        return;
    }
}
