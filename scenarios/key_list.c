/* The walk through the schemas of files that makes the list of keys. */
#include "scenarios/key_list.h"

#include "engine/alloc.h"
#include "scenarios/key_texts.h"
#include "scenarios/loaded.h"
#include "scenarios/plan_section.h"
#include "scenarios/sections.h"

#include <stdio.h>
#include <string.h>

/* The list as it grows; the first pass only counts. */
typedef struct key_writer {
    pc_scenario_key *keys; /* NULL: count */
    int count;
} key_writer;

/* ---- what may stand there, and what it means ---- */

static const pc_key_text *find_text(pc_key_section section, const char *path) {
    int count;
    const pc_key_text *texts = pc_key_texts(&count);
    for (int i = 0; i < count; i++)
        if (texts[i].section == section && strcmp(texts[i].path, path) == 0) return &texts[i];
    return NULL;
}

/* The key of a setting with this path; PC_KEYS where it is a group of keys. */
static pc_key find_key(const char *path) {
    pc_key key = 0;
    while (key < PC_KEYS && strcmp(pc_key_path(key), path) != 0) key++;
    return key;
}

static pc_dimension find_dimension(const char *name) {
    pc_dimension d = 0;
    while (d < PC_DIMENSIONS && strcmp(pc_dimension_rule_of(d)->name, name) != 0) d++;
    return d;
}

static pc_key_use use_of(pc_key key) {
    return pc_key_is_of_cluster(key) ? PC_KEY_FOR_CLUSTERS
           : pc_key_is_of_times(key) ? PC_KEY_FOR_TIMES
                                     : PC_KEY_FOR_ALL;
}

/* Of a group what its keys have in common. `stages`, which are no keys, are times. */
static pc_key_use find_use(const char *path) {
    size_t length = strlen(path);
    pc_key_use found = PC_KEY_FOR_ALL;
    bool is_first = true;
    if (strncmp(path, "stages", 6) == 0) return PC_KEY_FOR_TIMES;
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const char *other = pc_key_path(key);
        if (strncmp(other, path, length) != 0 || (other[length] != '\0' && other[length] != '.')) continue;
        pc_key_use use = use_of(key);
        found = is_first || use == found ? use : PC_KEY_FOR_ALL;
        is_first = false;
    }
    return found;
}

/* Which key of a setting checks the value; PC_KEYS where none does. */
static pc_key checking_key(pc_key_section section, const char *path) {
    if (section == PC_KEYS_OF_SETTING) return find_key(path);
    if (section == PC_KEYS_OF_PUBLISHED && strcmp(path, "microbatches") == 0) return PC_KEY_MICROBATCHES;
    pc_dimension d = section == PC_KEYS_OF_SWEEP ? find_dimension(path) : PC_DIMENSIONS;
    return d == PC_DIMENSIONS ? PC_KEYS : pc_dimension_key(d);
}

static pc_choice find_choice(const char *name) {
    pc_choice c = 0;
    while (c < PC_CHOICES && strcmp(pc_choice_rule_of(c)->name, name) != 0) c++;
    return c;
}

/* Lists of whole numbers may have ranges. */
static void write_range(pc_key key, char *text, size_t size) {
    size_t used = strlen(text);
    if (pc_key_is_whole(key))
        snprintf(text + used, size - used, ", or a range such as `%s`", key == PC_KEY_ZERO ? "0..3" : "1..8");
}

static void write_checked_value(pc_key_section section, const char *path, char *text, size_t size) {
    pc_key key = checking_key(section, path);
    if (key != PC_KEYS)
        pc_key_values(key, text, size);
    else if (section == PC_KEYS_OF_PLAN)
        pc_choice_values(find_choice(path), text, size);
    else if (section == PC_KEYS_OF_FIGURE)
        pc_word_list(PC_FIGURE_STYLES, text, size);
    else
        pc_published_values(path, text, size);
    if (section == PC_KEYS_OF_SWEEP) write_range(key, text, size);
}

static void write_value(const pc_schema_field *field, const pc_key_text *text, pc_scenario_key *key) {
    size_t used = 0, size = sizeof key->value;
    bool is_short = field->most > 0 && field->most <= PC_SCENARIO_FIGURE_Y_MAX;
    if (field->is_list && is_short)
        used = (size_t)snprintf(key->value, size, "list of 1 to %u ", field->most);
    else if (field->is_list)
        used = (size_t)snprintf(key->value, size, field->kind == PC_KIND_MAPPING ? "list of " : "list: ");
    if (text->value)
        snprintf(key->value + used, size - used, "%s", text->value);
    else
        write_checked_value(key->section, key->path, key->value + used, size - used);
}

static void write_description(const pc_key_text *text, pc_scenario_key *key) {
    pc_dimension d = find_dimension(key->path);
    if (text->description || d == PC_DIMENSIONS) {
        snprintf(key->description, sizeof key->description, "%s", text->description ? text->description : "");
        return;
    }
    const pc_dimension_rule *rule = pc_dimension_rule_of(d);
    snprintf(key->description, sizeof key->description, "values of `%s`; in names of runs `.%s<value>`",
             pc_key_path(rule->key), rule->letters);
}

static void fill_key(const pc_schema_field *field, pc_scenario_key *key) {
    const pc_key_text *text = find_text(key->section, key->path);
    if (key->section == PC_KEYS_OF_SETTING) key->use = find_use(key->path);
    if (!text) return;
    snprintf(key->otherwise, sizeof key->otherwise, "%s", field->is_required ? "required" : text->otherwise);
    write_value(field, text, key);
    write_description(text, key);
}

/* ---- the walk ---- */

static void put(key_writer *writer, pc_key_section section, const char *path, const pc_schema_field *field) {
    if (writer->keys) {
        pc_scenario_key *key = &writer->keys[writer->count];
        key->section = section;
        snprintf(key->path, sizeof key->path, "%s", path);
        fill_key(field, key);
    }
    writer->count++;
}

/* The mapping that the dots of a path make, where the field before is not of it: "times" of "times.F". */
static void put_group(key_writer *writer, pc_key_section section, const char *path, const char *before) {
    char group[sizeof((pc_scenario_key *)0)->path];
    const pc_schema_field mapping = {.kind = PC_KIND_MAPPING};
    const char *dot = strchr(path, '.');
    if (!dot || strncmp(path, before, (size_t)(dot - path) + 1) == 0) return;
    snprintf(group, sizeof group, "%.*s", (int)(dot - path), path);
    put(writer, section, group, &mapping);
}

/* Fields `first` to `end` of a schema; where `is_whole`, also those of the entries of its lists. */
static void walk(key_writer *writer, pc_key_section section, const pc_schema *schema, int first, int end,
                 bool is_whole) {
    char path[sizeof((pc_scenario_key *)0)->path];
    const char *before = "";
    for (int i = first; i < end; i++) {
        pc_schema_field field = pc_schema_field_at(schema, i);
        put_group(writer, section, field.path, before);
        put(writer, section, field.path, &field);
        for (int k = 0; is_whole && field.schema && k < field.schema->count; k++) {
            pc_schema_field inner = pc_schema_field_at(field.schema, k);
            snprintf(path, sizeof path, "%s[].%s", field.path, inner.path);
            put(writer, section, path, &inner);
        }
        before = field.path;
    }
}

/* The keys of a case's own stand around those of a setting, those of a model's file before those of a model. */
static void walk_all(key_writer *writer) {
    walk(writer, PC_KEYS_OF_FILE, &pc_file_schema, 0, pc_file_schema.count, false);
    walk(writer, PC_KEYS_OF_SETTING, &pc_setting_schema, 0, pc_setting_schema.count, true);
    walk(writer, PC_KEYS_OF_SWEEP, &pc_sweep_schema, 0, pc_sweep_schema.count, true);
    walk(writer, PC_KEYS_OF_PLAN, &pc_plan_schema, 0, pc_plan_schema.count, true);
    walk(writer, PC_KEYS_OF_CASE, &pc_case_schema, 0, 1, false);
    walk(writer, PC_KEYS_OF_CASE, &pc_case_schema, pc_case_schema.count - 1, pc_case_schema.count, false);
    walk(writer, PC_KEYS_OF_PUBLISHED, &pc_published_schema, 0, pc_published_schema.count, true);
    walk(writer, PC_KEYS_OF_FIGURE, &pc_figure_schema, 0, pc_figure_schema.count, true);
    walk(writer, PC_KEYS_OF_MODEL_FILE, &pc_model_file_schema, 0, 3, true);
}

pc_code pc_scenario_keys(pc_scenario_key **keys, int *count, pc_error *error) {
    key_writer counter = {.keys = NULL}, writer = {.count = 0};
    walk_all(&counter);
    writer.keys = pc_alloc((size_t)counter.count, sizeof *writer.keys);
    if (!writer.keys) return pc_error_no_memory(error);
    walk_all(&writer);
    *keys = writer.keys;
    *count = writer.count;
    return PC_OK;
}

void pc_scenario_keys_free(pc_scenario_key *keys) {
    pc_free(keys);
}
