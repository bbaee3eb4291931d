/* The list of keys: of the table of settings, and of a walk through the schema of all else. */
#include "scenarios/key_list.h"

#include "engine/alloc.h"
#include "scenarios/key_texts.h"
#include "scenarios/loaded.h"
#include "scenarios/plan_section.h"
#include "scenarios/schema_tree.h"
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
    while (c < PC_CHOICES && strcmp(pc_choice_rule_of(c)->name, name) != 0) c++;
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

static void write_value(const cyaml_schema_value_t *value, const pc_key_text *text, pc_scenario_key *key) {
    size_t used = 0, size = sizeof key->value;
    if (value->type == CYAML_SEQUENCE && value->sequence.max <= PC_SCENARIO_FIGURE_Y_MAX)
        used = (size_t)snprintf(key->value, size, "list of 1 to %u ", value->sequence.max);
    else if (value->type == CYAML_SEQUENCE)
        used = (size_t)snprintf(key->value, size, value->sequence.entry->type == CYAML_MAPPING ? "list of " : "list: ");
    if (text->value)
        snprintf(key->value + used, size - used, "%s", text->value);
    else
        write_checked_value(key->section, key->path, key->value + used, size - used);
}

static void fill_key(const cyaml_schema_field_t *field, pc_scenario_key *key) {
    const pc_key_text *text = find_text(key->section, key->path);
    if (!text) return;
    bool is_required = !(field->value.flags & CYAML_FLAG_OPTIONAL);
    snprintf(key->otherwise, sizeof key->otherwise, "%s", is_required ? "required" : text->otherwise);
    write_value(&field->value, text, key);
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

/* The next key of a section; NULL where they are but counted. */
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

static void put(key_writer *writer, pc_key_section section, const char *path, const cyaml_schema_field_t *field) {
    pc_scenario_key *key = next(writer, section);
    if (!key) return;
    snprintf(key->path, sizeof key->path, "%s", path);
    fill_key(field, key);
}

static const cyaml_schema_field_t *find_field(const cyaml_schema_value_t *mapping, const char *key) {
    for (const cyaml_schema_field_t *field = mapping->mapping.fields; field->key; field++)
        if (strcmp(field->key, key) == 0) return field;
    return NULL;
}

/* A mapping itself, or the entries of a list of them; NULL where there are no keys below. */
static const cyaml_schema_value_t *mapping_below(const cyaml_schema_field_t *field) {
    const cyaml_schema_value_t *value = &field->value;
    if (value->type == CYAML_SEQUENCE) value = value->sequence.entry;
    return value->type == CYAML_MAPPING ? value : NULL;
}

/* The keys of a mapping that `but` has not, and of the mappings in it; where `is_flat`, these are other sections. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as our own schemas */
static void walk(key_writer *writer, pc_key_section section, const char *parent, const cyaml_schema_value_t *mapping,
                 const cyaml_schema_value_t *but, bool is_flat) {
    char path[sizeof((pc_scenario_key *)0)->path];
    for (const cyaml_schema_field_t *field = mapping->mapping.fields; field->key; field++) {
        if (but && find_field(but, field->key)) continue;
        snprintf(path, sizeof path, "%s%s", parent, field->key);
        put(writer, section, path, field);
        const cyaml_schema_value_t *below = is_flat ? NULL : mapping_below(field);
        if (!below) continue;
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, "%s.", field->value.type == CYAML_SEQUENCE ? "[]" : "");
        walk(writer, section, path, below, NULL, false);
    }
}

static void walk_all(key_writer *writer) {
    const cyaml_schema_value_t *file = pc_schema_of_scenarios();
    const cyaml_schema_value_t *setting = mapping_below(find_field(file, "setting"));
    const cyaml_schema_value_t *a_case = mapping_below(find_field(file, "cases"));
    walk(writer, PC_KEYS_OF_FILE, "", file, NULL, true);
    list_settings(writer);
    list_sweep(writer);
    walk(writer, PC_KEYS_OF_PLAN, "", mapping_below(find_field(file, "plan")), NULL, false);
    walk(writer, PC_KEYS_OF_CASE, "", a_case, setting, true);
    walk(writer, PC_KEYS_OF_PUBLISHED, "", mapping_below(find_field(a_case, "published")), NULL, false);
    walk(writer, PC_KEYS_OF_FIGURE, "", mapping_below(find_field(file, "figures")), NULL, false);
    walk(writer, PC_KEYS_OF_MODEL_FILE, "", pc_schema_of_models(), mapping_below(find_field(setting, "model")), false);
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
