/* Turns what libcyaml logs into one line. It says, in several calls: "Load: Unexpected key: foo", "Load: Backtrace:",
 * and then a line a frame, from the inside out: "  in mapping field 'times' (line: 3, column: 4)", or "  in sequence
 * entry '2' (...)", which counts from 1, or "  in mapping (...)" where no field of it has been met. */
#include "scenarios/yaml.h"

#include "engine/names.h"
#include "models/schedule/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char field_prefix[] = "  in mapping field '", entry_prefix[] = "  in sequence entry '";

static const char *after(const char *text, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static void add_frame(pc_complaint *complaint, const char *line) {
    if (complaint->frame_count == PC_FRAMES_MAX) return;
    char *frame = complaint->frame[complaint->frame_count++];
    const char *field = after(line, field_prefix), *entry = after(line, entry_prefix);
    if (field) snprintf(frame, PC_FRAME_SIZE, "%.*s", (int)strcspn(field, "'"), field);
    if (entry) snprintf(frame, PC_FRAME_SIZE, "[%lu]", strtoul(entry, NULL, 10) - 1);
}

void pc_complaint_log(cyaml_log_t level, void *context, const char *format, va_list arguments) {
    (void)level;
    pc_complaint *complaint = context;
    char line[sizeof complaint->message];
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length > 0 && (size_t)length < sizeof line && line[length - 1] == '\n') line[length - 1] = '\0';
    const char *message = after(line, "Load: ");
    if (!message)
        add_frame(complaint, line);
    else if (!complaint->message[0])
        memcpy(complaint->message, message, strlen(message) + 1);
}

/* The first `count` bytes of a user's word, for a message. */
static void cut(const char *word, char *text, size_t size) {
    int length = snprintf(text, size, "%s", word);
    if ((size_t)length >= size) memcpy(text + size - 4, "...", 4);
}

static void append(char *path, const char *frame) {
    size_t used = strlen(path);
    const char *dot = used && frame[0] && frame[0] != '[' ? "." : "";
    snprintf(path + used, PC_KEY_PATH_SIZE - used, "%s%s", dot, frame);
}

/* "cases[3].times.F": the frames from the outermost to number `inner`, and then `last`. */
static void join_frames(const pc_complaint *complaint, int inner, const char *last, char *path) {
    path[0] = '\0';
    for (int i = complaint->frame_count - 1; i >= inner; i--) append(path, complaint->frame[i]);
    append(path, last);
}

static const cyaml_schema_field_t *find_field(const cyaml_schema_value_t *mapping, const char *key) {
    for (const cyaml_schema_field_t *field = mapping->mapping.fields; field->key; field++)
        if (strcmp(field->key, key) == 0) return field;
    return NULL;
}

/* What the schema has where the frames down to number `inner` lead. */
static const cyaml_schema_value_t *find_schema(const pc_complaint *complaint, int inner,
                                               const cyaml_schema_value_t *schema) {
    for (int i = complaint->frame_count - 1; i >= inner && schema; i--) {
        if (schema->type == CYAML_SEQUENCE) {
            schema = schema->sequence.entry;
        } else if (schema->type == CYAML_MAPPING) {
            const cyaml_schema_field_t *field = find_field(schema, complaint->frame[i]);
            schema = field ? &field->value : NULL;
        }
    }
    return schema;
}

static void list_keys(const cyaml_schema_value_t *schema, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    if (!schema || schema->type != CYAML_MAPPING) return;
    for (const cyaml_schema_field_t *field = schema->mapping.fields; field->key && used < size; field++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", field->key);
}

/* Offers what stands below a key, or of a list's entries; keys of its own name alone, for there are many. None of our
 * schemas is so deep that a path has no room. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as our own schemas */
static void offer_below(pc_nearest *nearest, const char *parent, const cyaml_schema_value_t *value) {
    char path[PC_KEY_PATH_SIZE];
    if (value->type != CYAML_MAPPING) return;
    for (const cyaml_schema_field_t *field = value->mapping.fields; field->key; field++) {
        if (snprintf(path, sizeof path, "%s.%s", parent, field->key) >= (int)sizeof path) continue;
        if (strcmp(nearest->word, field->key) == 0) pc_nearest_offer_as(nearest, path, field->key);
        offer_below(nearest, path, &field->value);
    }
}

/* " (did you mean ...?)" of the keys of a mapping, and of what is near by name, but stands below one of them. */
static const char *hint_of(const cyaml_schema_value_t *schema, const char *word, char text[PC_NEAREST_TEXT]) {
    pc_nearest nearest = {.word = word};
    bool has_keys = schema && schema->type == CYAML_MAPPING;
    for (const cyaml_schema_field_t *field = has_keys ? schema->mapping.fields : NULL; field && field->key; field++) {
        pc_nearest_offer(&nearest, field->key);
        offer_below(&nearest, field->key, &field->value);
    }
    return pc_nearest_hint(&nearest, text);
}

static pc_code explain_unknown_key(const pc_complaint *complaint, const char *key, const cyaml_schema_value_t *schema,
                                   const pc_source *source, pc_error *error) {
    char path[PC_KEY_PATH_SIZE], word[PC_FRAME_SIZE], keys[800], hint[PC_NEAREST_TEXT];
    const cyaml_schema_value_t *mapping = find_schema(complaint, 1, schema);
    cut(key, word, sizeof word);
    join_frames(complaint, 1, word, path);
    list_keys(mapping, keys, sizeof keys);
    return pc_source_refuse(source, path, error, "unknown key%s; expected one of %s", hint_of(mapping, key, hint),
                            keys);
}

static pc_code explain_missing_key(const pc_complaint *complaint, const char *key, const pc_source *source,
                                   pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    join_frames(complaint, 1, key, path);
    return pc_source_refuse(source, path, error, "missing; expected a value, since this key is required");
}

static const char *describe(const char *event) {
    if (after(event, "SEQUENCE")) return "a list";
    if (after(event, "MAPPING")) return "a mapping";
    return "a single value";
}

static pc_code explain_type(const pc_complaint *complaint, const char *expected, const cyaml_schema_value_t *schema,
                            const pc_source *source, pc_error *error) {
    char path[PC_KEY_PATH_SIZE], keys[800];
    const char *got = strstr(expected, "got event: ");
    join_frames(complaint, 0, "", path);
    list_keys(find_schema(complaint, 0, schema), keys, sizeof keys);
    return pc_source_refuse(source, path, error, "is %s; expected %s%s%s", describe(got ? got + 11 : ""),
                            describe(expected), keys[0] ? " of " : "", keys);
}

/* Where libcyaml tells no more than the kind of failure. */
static pc_code explain_rest(const pc_complaint *complaint, cyaml_err_t failure, const cyaml_schema_value_t *schema,
                            const pc_source *source, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    const cyaml_schema_value_t *list = find_schema(complaint, 1, schema);
    join_frames(complaint, 1, "", path);
    if (failure == CYAML_ERR_SEQUENCE_ENTRIES_MIN)
        return pc_source_refuse(source, path, error, "an empty list; expected at least one entry");
    if (failure == CYAML_ERR_SEQUENCE_ENTRIES_MAX)
        return pc_source_refuse(source, path, error, "too many entries; expected at most %u",
                                list && list->type == CYAML_SEQUENCE ? list->sequence.max : PC_DEVICES_MAX);
    if (failure == CYAML_ERR_INTERNAL_ERROR) /* the one event that its state for keys has no branch for */
        return pc_source_refuse(source, path, error, "a key that is itself a list or a mapping; expected a word");
    return pc_source_refuse(source, path, error, "%s (%s); expected what docs/scenario-format.md says",
                            cyaml_strerror(failure), complaint->message);
}

/* What comes here has passed pc_source_scan: libyaml has parsed all of it once, and fails now for want of memory alone.
 */
static bool is_no_memory(cyaml_err_t failure) {
    return failure == CYAML_ERR_OOM || failure == CYAML_ERR_LIBYAML_PARSER_INIT || failure == CYAML_ERR_LIBYAML_PARSER;
}

pc_code pc_complaint_explain(const pc_complaint *complaint, cyaml_err_t failure, const cyaml_schema_value_t *schema,
                             const pc_source *source, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    const char *detail;
    if (is_no_memory(failure)) return pc_error_no_memory(error);
    if ((detail = after(complaint->message, "Unexpected key: ")))
        return explain_unknown_key(complaint, detail, schema, source, error);
    if ((detail = after(complaint->message, "Missing required mapping field: ")))
        return explain_missing_key(complaint, detail, source, error);
    if ((detail = after(complaint->message, "Expecting ")))
        return explain_type(complaint, detail, schema, source, error);
    if (!after(complaint->message, "Mapping field already seen: "))
        return explain_rest(complaint, failure, schema, source, error);
    join_frames(complaint, 0, "", path);
    return pc_source_refuse(source, path, error, "given twice; expected once");
}
