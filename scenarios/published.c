#include "scenarios/loaded.h"

#include "engine/alloc.h"
#include "scenarios/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct published_number {
    const char *key;
    double most;
} numbers[PC_PUBLISHED_NUMBERS] = {
    [PC_PUBLISHED_BUBBLE_RATE_SPAN] = {"bubble_rate_span", 1},
    [PC_PUBLISHED_SAMPLES_PER_S_PER_GPU] = {"samples_per_s_per_gpu", INFINITY},
    [PC_PUBLISHED_MFU] = {"mfu", 1},
    [PC_PUBLISHED_TFLOPS_PER_GPU] = {"tflops_per_gpu", INFINITY},
    [PC_PUBLISHED_HARDWARE_TFLOPS_PER_GPU] = {"hardware_tflops_per_gpu", INFINITY},
    [PC_PUBLISHED_BEST_MFU] = {"best_mfu", 1},
};

/* Where a published entry is being read, for messages. */
typedef struct entry_place {
    pc_scenario *scenario;
    const pc_source *source; /* its file */
    char path[PC_KEY_PATH_SIZE - 32];
} entry_place;

static pc_code refuse_entry(const entry_place *place, const char *key, const pc_error *cause, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    snprintf(path, sizeof path, "%s.%s", place->path, key);
    return pc_source_refuse(place->source, path, error, "%s", cause->message);
}

/* A number of at least zero, and of at most `most` where that is finite; NaN where there is no text. */
static pc_code read_published_number(const entry_place *place, const char *key, const char *text, double most,
                                     double *number, pc_error *error) {
    pc_error cause;
    *number = NAN;
    if (!text) return PC_OK;
    pc_code code = pc_parse_number(text, number, &cause);
    if (!code && *number > most)
        code = pc_error_set(&cause, PC_ERROR_INPUT, "%.40s: out of range; expected at most %g", text, most);
    return code ? refuse_entry(place, key, &cause, error) : PC_OK;
}

static pc_code read_published_time(const entry_place *place, const char *key, const char *text, double *seconds,
                                   pc_error *error) {
    pc_error cause;
    pc_time time;
    *seconds = NAN;
    if (!text) return PC_OK;
    if (pc_parse_time(text, &time, &cause)) return refuse_entry(place, key, &cause, error);
    if (time == 0) {
        pc_error_set(&cause, PC_ERROR_INPUT, "%.40s: out of range; expected more than zero", text);
        return refuse_entry(place, key, &cause, error);
    }
    *seconds = pc_time_to_seconds(time);
    return PC_OK;
}

static pc_code read_published_size(const entry_place *place, const char *key, const char *text, double *gib,
                                   pc_error *error) {
    pc_error cause;
    pc_value size;
    *gib = NAN;
    if (!text) return PC_OK;
    if (pc_value_parse_size(text, &size, &cause)) return refuse_entry(place, key, &cause, error);
    *gib = (double)size.whole / 1073741824.0;
    return PC_OK;
}

/* By its name, or a file. */
static pc_code find_schedule(pc_scenario *scenario, const char *text, pc_value *schedule, pc_error *cause) {
    pc_place names = pc_loaded_place(scenario, scenario->documents);
    pc_code code = pc_value_parse(PC_KEY_SCHEDULE, text, schedule, cause);
    return code ? code : pc_reference_find(&scenario->references, PC_KEY_SCHEDULE, &names, schedule, cause);
}

static pc_code read_published_run(const entry_place *place, const pc_raw_published *raw, pc_published *entry,
                                  pc_error *error) {
    pc_error cause;
    pc_value schedule, microbatches = {.whole = -1};
    pc_code code = find_schedule(place->scenario, raw->schedule, &schedule, &cause);
    if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
    if (code) return refuse_entry(place, "schedule", &cause, error);
    if (raw->microbatches && pc_value_parse(PC_KEY_MICROBATCHES, raw->microbatches, &microbatches, &cause))
        return refuse_entry(place, "microbatches", &cause, error);
    entry->generator = schedule.generator;
    entry->microbatches = microbatches.whole;
    return PC_OK;
}

static pc_code read_published_entry(const entry_place *place, const pc_raw_published *raw, pc_published *entry,
                                    pc_error *error) {
    pc_code code = read_published_run(place, raw, entry, error);
    for (int i = 0; i < PC_PUBLISHED_NUMBERS && !code; i++)
        code = read_published_number(place, numbers[i].key, raw->number[i], numbers[i].most, &entry->number[i], error);
    if (!code) code = read_published_time(place, "iteration", raw->iteration, &entry->iteration_s, error);
    if (!code) code = read_published_time(place, "pass_f", raw->pass_f, &entry->pass_f_s, error);
    if (!code) code = read_published_size(place, "activation", raw->activation, &entry->activation_gib, error);
    if (!code) code = read_published_size(place, "memory", raw->memory, &entry->memory_gib, error);
    return code;
}

pc_code pc_published_read(pc_scenario *scenario, const pc_raw_case *raw, pc_case *into, pc_error *error) {
    if (raw->published_count == 0) return PC_OK;
    into->published = pc_alloc(raw->published_count, sizeof *into->published);
    if (!into->published) return pc_error_no_memory(error);
    into->published_count = raw->published_count;
    pc_code code = PC_OK;
    for (unsigned i = 0; i < raw->published_count && !code; i++) {
        entry_place place = {.scenario = scenario, .source = pc_loaded_file(scenario)};
        snprintf(place.path, sizeof place.path, "%s.published[%u]", into->path, i);
        code = read_published_entry(&place, &raw->published[i], &into->published[i], error);
    }
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

/* Published figures belong to a shape: a sweep or a --set that gives the run another one has none. What costs they were
 * taken at is not looked at: comparing them with other costs is what some sets are for. */
static bool describes(const pc_published *entry, const pc_setting *own, const pc_setting *merged,
                      const pc_run_spec *spec) {
    if (entry->generator != spec->generator) return false;
    if (entry->microbatches != -1 ? entry->microbatches != spec->microbatches
                                  : !is_own(own, PC_KEY_MICROBATCHES, spec->microbatches))
        return false;
    return is_own(own, PC_KEY_DEVICES, spec->devices) && is_own(own, PC_KEY_MICROBATCH_SIZE, spec->microbatch_size) &&
           (spec->generator->chunks_max == 1 || is_own(own, PC_KEY_CHUNKS, spec->chunks)) &&
           (!spec->is_cluster || is_own_cluster(own, merged));
}

void pc_published_values(const char *key, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < PC_PUBLISHED_NUMBERS; i++) {
        if (strcmp(numbers[i].key, key) != 0) continue;
        if (isfinite(numbers[i].most))
            snprintf(text, size, "number, 0 to %g", numbers[i].most);
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
