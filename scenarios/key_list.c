/* The list of keys: of the table of settings, and of a walk through the schemas of all else. */
#include "scenarios/key_list.h"

#include "engine/alloc.h"
#include "scenarios/key_texts.h"
#include "scenarios/loaded.h"
#include "scenarios/plan_section.h"
#include "scenarios/sections.h"
#include "scenarios/settings.h"

#include <stdio.h>
#include <string.h>

/* The list as it grows; the first pass only counts. */
typedef struct key_writer {
    pc_scenario_key *keys; /* NULL: count */
    int count;
} key_writer;

/* ---- what may stand there, and what it means: of the schema and its texts ---- */

static const pc_key_text *find_text(pc_key_section section, const char *path) {
    int count;
    const pc_key_text *texts = pc_key_texts(&count);
    for (int i = 0; i < count; i++)
        if (texts[i].section == section && strcmp(texts[i].path, path) == 0) return &texts[i];
    return NULL;
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
        pc_key_use use = pc_setting_rule_of(key)->use;
        found = is_first || use == found ? use : PC_KEY_FOR_ALL;
        is_first = false;
    }
    return found;
}

static pc_choice find_choice(const char *name) {
    pc_choice c = 0;
    while (c < PC_CHOICES && strcmp(pc_choice_rule_of(c).name, name) != 0) c++;
    return c;
}

static void write_checked_value(pc_key_section section, const char *path, char *text, size_t size) {
    if (section == PC_KEYS_OF_PUBLISHED && strcmp(path, "microbatches") == 0)
        pc_key_values(PC_KEY_MICROBATCHES, text, size);
    else if (section == PC_KEYS_OF_PLAN)
        pc_choice_values(find_choice(path), text, size);
    else if (section == PC_KEYS_OF_FIGURE)
        pc_word_list(PC_FIGURE_STYLES, text, size);
    else
        pc_published_values(path, text, size);
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

static void fill_key(const pc_schema_field *field, pc_scenario_key *key) {
    const pc_key_text *text = find_text(key->section, key->path);
    if (!text) return;
    snprintf(key->otherwise, sizeof key->otherwise, "%s", field->is_required ? "required" : text->otherwise);
    write_value(field, text, key);
    snprintf(key->description, sizeof key->description, "%s", text->description);
}

/* ---- settings and sweeps: of their table ---- */

static void describe_group(const pc_setting_line *line, pc_scenario_key *key) {
    key->use = find_use(line->path);
    snprintf(key->path, sizeof key->path, "%s", line->path);
    snprintf(key->value, sizeof key->value, "%s", line->value);
    snprintf(key->otherwise, sizeof key->otherwise, "%s", line->otherwise);
    snprintf(key->description, sizeof key->description, "%s", line->description);
}

static void describe_setting(pc_key of, pc_scenario_key *key) {
    const pc_setting_rule *rule = pc_setting_rule_of(of);
    key->use = rule->use;
    snprintf(key->path, sizeof key->path, "%s", rule->field.name);
    pc_key_values(of, key->value, sizeof key->value);
    pc_key_otherwise(of, key->otherwise, sizeof key->otherwise);
    snprintf(key->description, sizeof key->description, "%s", rule->field.description);
}

/* Lists of whole numbers may have ranges. */
static void describe_dimension(pc_dimension dimension, pc_scenario_key *key) {
    const pc_dimension_rule *rule = pc_dimension_rule_of(dimension);
    char value[sizeof key->value];
    pc_key_values(rule->key, value, sizeof value);
    snprintf(key->path, sizeof key->path, "%s", rule->name);
    int used = snprintf(key->value, sizeof key->value, "list: %s", value);
    if (pc_key_is_whole(rule->key) && used < (int)sizeof key->value)
        snprintf(key->value + used, sizeof key->value - (size_t)used, ", or a range such as `%s`",
                 rule->key == PC_KEY_ZERO ? "0..3" : "1..8");
    snprintf(key->otherwise, sizeof key->otherwise, "the case's own");
    snprintf(key->description, sizeof key->description, "values of `%s`; in names of runs `.%s<value>`",
             pc_key_path(rule->key), rule->letters);
}

/* The next key of a section; NULL if they are but counted. */
static pc_scenario_key *next(key_writer *writer, pc_key_section section) {
    pc_scenario_key *key = writer->keys ? &writer->keys[writer->count] : NULL;
    writer->count++;
    if (key) key->section = section;
    return key;
}

static void list_settings(key_writer *writer) {
    int count;
    const pc_setting_line *lines = pc_setting_lines(&count);
    for (int i = 0; i < count; i++) {
        pc_scenario_key *key = next(writer, PC_KEYS_OF_SETTING);
        if (key && lines[i].key == PC_KEYS)
            describe_group(&lines[i], key);
        else if (key)
            describe_setting(lines[i].key, key);
    }
}

static void list_sweep(key_writer *writer) {
    pc_dimension dimensions[PC_DIMENSIONS];
    int count = pc_dimensions_in_order(PC_ORDER_OF_PAGE, dimensions);
    for (int i = 0; i < count; i++) {
        pc_scenario_key *key = next(writer, PC_KEYS_OF_SWEEP);
        if (key) describe_dimension(dimensions[i], key);
    }
}

/* ---- the walk ---- */

static void put(key_writer *writer, pc_key_section section, const char *path, const pc_schema_field *field) {
    pc_scenario_key *key = next(writer, section);
    if (!key) return;
    snprintf(key->path, sizeof key->path, "%s", path);
    fill_key(field, key);
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

/* Fields `first` to `end` of a schema; what stands below them is of other sections. */
static void walk(key_writer *writer, pc_key_section section, const pc_schema *schema, int first, int end) {
    const char *before = "";
    for (int i = first; i < end; i++) {
        pc_schema_field field = pc_schema_field_at(schema, i);
        put_group(writer, section, field.path, before);
        put(writer, section, field.path, &field);
        before = field.path;
    }
}

/* The keys of a case's own stand around those of a setting, those of a model's file before those of a model. */
static void walk_all(key_writer *writer) {
    walk(writer, PC_KEYS_OF_FILE, &pc_file_schema, 0, pc_file_schema.count);
    list_settings(writer);
    list_sweep(writer);
    walk(writer, PC_KEYS_OF_PLAN, &pc_plan_schema, 0, pc_plan_schema.count);
    walk(writer, PC_KEYS_OF_CASE, &pc_case_schema, 0, 1);
    walk(writer, PC_KEYS_OF_CASE, &pc_case_schema, pc_case_schema.count - 1, pc_case_schema.count);
    walk(writer, PC_KEYS_OF_PUBLISHED, &pc_published_schema, 0, pc_published_schema.count);
    walk(writer, PC_KEYS_OF_FIGURE, &pc_figure_schema, 0, pc_figure_schema.count);
    walk(writer, PC_KEYS_OF_MODEL_FILE, &pc_model_file_schema, 0, 3);
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

const char *pc_scenario_sweep_of(const char *path) {
    pc_dimension dimensions[PC_DIMENSIONS];
    int count = pc_dimensions_in_order(PC_ORDER_OF_PAGE, dimensions);
    for (int i = 0; i < count; i++) {
        const pc_dimension_rule *rule = pc_dimension_rule_of(dimensions[i]);
        if (strcmp(pc_key_path(rule->key), path) == 0) return rule->name;
    }
    return NULL;
}

void pc_scenario_keys_free(pc_scenario_key *keys) {
    pc_free(keys);
}
