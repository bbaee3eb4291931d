#include "scenarios/block_file.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "scenarios/setting.h"
#include "scenarios/source.h"
#include "scenarios/units.h"
#include "scenarios/yaml.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { PASSES_MAX = 1 << 20, WORD_SIZE = 24, SOURCE_SIZE_USUAL = 65536 /* bytes */ };

/* ---- the file as text ---- */

typedef struct raw_list {
    char **text;
    unsigned text_count;
} raw_list;

typedef struct raw_line {
    char *kind, *chunk, *microbatch, *offset;
    raw_list offsets;
} raw_line;

typedef struct raw_block {
    char *block, *title, *source, *devices, *chunks, *placement, *interval, *microbatches, *steps;
    raw_list stages;
    char *durations[PC_PASS_KINDS];
    raw_line *passes, *ends;
    unsigned passes_count, ends_count;
} raw_block;

static const cyaml_schema_value_t text_value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};

#define OPTIONAL         PC_YAML_OPTIONAL_POINTER
#define REQUIRED         PC_YAML_REQUIRED_POINTER
#define TEXT(key, flags) PC_YAML_TEXT(#key, flags, raw_block, key)
#define PART(key, flags) PC_YAML_TEXT(#key, flags, raw_line, key)
#define DURATION(kind)   PC_YAML_TEXT(#kind, OPTIONAL, raw_block, durations[PC_PASS_##kind])
#define LIST(structure, key_, most)                                                                                    \
    {                                                                                                                  \
        .key = #key_, .data_offset = offsetof(structure, key_.text),                                                   \
        .count_offset = offsetof(structure, key_.text_count), .count_size = sizeof(unsigned), .value = {               \
            CYAML_VALUE_SEQUENCE(OPTIONAL, char *, &text_value, 1, most)                                               \
        }                                                                                                              \
    }

static const cyaml_schema_field_t line_fields[] = {
    PART(kind, REQUIRED),
    PART(chunk, OPTIONAL),
    PART(microbatch, OPTIONAL),
    PART(offset, OPTIONAL),
    LIST(raw_line, offsets, PC_DEVICES_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t line_value = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, raw_line, line_fields)};

static const cyaml_schema_field_t duration_fields[] = {
    DURATION(F), DURATION(B), DURATION(W), DURATION(BW), DURATION(R), CYAML_FIELD_END,
};

static const cyaml_schema_field_t block_fields[] = {
    TEXT(block, REQUIRED),
    TEXT(title, OPTIONAL),
    TEXT(source, OPTIONAL),
    TEXT(devices, OPTIONAL),
    TEXT(chunks, OPTIONAL),
    TEXT(placement, REQUIRED),
    LIST(raw_block, stages, PC_DEVICES_MAX),
    TEXT(interval, REQUIRED),
    TEXT(microbatches, OPTIONAL),
    TEXT(steps, OPTIONAL),
    PC_YAML_GROUP("durations", raw_block, duration_fields),
    CYAML_FIELD_SEQUENCE("passes", REQUIRED, raw_block, passes, &line_value, 1, PASSES_MAX),
    CYAML_FIELD_SEQUENCE("ends", OPTIONAL, raw_block, ends, &line_value, 1, PASSES_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t block_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, raw_block, block_fields)};

/* ---- values ---- */

static pc_code read_integer(const pc_source *source, const char *path, const char *text, int64_t least, int64_t most,
                            int64_t *number, pc_error *error) {
    pc_error cause;
    if (!pc_parse_integer(text, least, most, number, &cause)) return PC_OK;
    return pc_source_refuse(source, path, error, "%s", cause.message);
}

static pc_code read_rule(const pc_source *source, const char *path, const char *text, unsigned names, pc_rule *rule,
                         pc_error *error) {
    pc_error cause;
    pc_code code = pc_rule_parse(text, names, rule, &cause);
    if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
    return code ? pc_source_refuse(source, path, error, "%s", cause.message) : PC_OK;
}

static pc_code read_word(const pc_source *source, const char *path, const char *words, const char *text, int64_t *index,
                         pc_error *error) {
    pc_error cause;
    if (!pc_word_parse(words, text, index, &cause)) return PC_OK;
    return pc_source_refuse(source, path, error, "%s", cause.message);
}

static pc_code read_name(const pc_source *source, const char *name, pc_block_draft *draft, pc_error *error) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!*name || name[strspn(name, allowed)] || strlen(name) >= PC_SCHEDULE_NAME_SIZE)
        return pc_source_refuse(source, "block", error,
                                "%.40s: not a name; expected letters, digits, '.', '_' and '-', at most %d of them",
                                *name ? name : "''", PC_SCHEDULE_NAME_SIZE - 1);
    if (pc_generator_find(name))
        return pc_source_refuse(source, "block", error,
                                "%s is the name of a schedule that pipecast has; expected another one", name);
    snprintf(draft->name, sizeof draft->name, "%s", name);
    return PC_OK;
}

/* ---- placement ---- */

/* Whether the list is that of a placement that we know. */
static bool has_stages(pc_placement placement, int devices, int chunks, const int64_t *stages) {
    for (int part = 0; part < devices * chunks; part++)
        if (pc_placement_stage(placement, devices, part, 0) != stages[part]) return false;
    return true;
}

static pc_code find_placement(const pc_source *source, const int64_t *stages, int count, pc_block_draft *draft,
                              pc_error *error) {
    static const pc_placement known[] = {PC_PLACEMENT_LINEAR, PC_PLACEMENT_V, PC_PLACEMENT_INTERLEAVED};
    if (count % draft->chunks != 0 || (draft->devices && count != draft->devices * draft->chunks))
        return pc_source_refuse(source, "stages", error, "%d parts for %d chunks a device; expected devices x chunks",
                                count, draft->chunks);
    draft->devices = count / draft->chunks;
    for (size_t i = draft->chunks > 1; i < sizeof known / sizeof *known; i++) {
        if (!has_stages(known[i], draft->devices, draft->chunks, stages)) continue;
        draft->placement = known[i];
        return PC_OK;
    }
    return pc_source_refuse(source, "stages", error,
                            "the parts lie neither linear, nor interleaved, nor as a v; expected one of the three: "
                            "others cannot be run yet");
}

static pc_code read_stages(const pc_source *source, const raw_list *list, pc_block_draft *draft, pc_error *error) {
    if (!list->text)
        return pc_source_refuse(source, "stages", error, "missing; expected the stage of every part of the model");
    int64_t *stages = pc_alloc(list->text_count, sizeof *stages);
    if (!stages) return pc_error_no_memory(error);
    char path[PC_KEY_PATH_SIZE];
    pc_code code = PC_OK;
    for (unsigned i = 0; i < list->text_count && !code; i++) {
        snprintf(path, sizeof path, "stages[%u]", i);
        code = read_integer(source, path, list->text[i], 0, PC_DEVICES_MAX - 1, &stages[i], error);
    }
    if (!code) code = find_placement(source, stages, (int)list->text_count, draft, error);
    pc_free(stages);
    return code;
}

static pc_code read_placement(const pc_source *source, const raw_block *raw, pc_block_draft *draft, pc_error *error) {
    int64_t word;
    _Static_assert((int)PC_PLACEMENTS == 4, "the words stand in the order of the enum");
    pc_code code =
        read_word(source, "placement", "linear|interleaved|v|bidirectional|given", raw->placement, &word, error);
    if (code) return code;
    if (word == PC_PLACEMENTS) return read_stages(source, &raw->stages, draft, error);
    draft->placement = (pc_placement)word;
    if (raw->stages.text)
        return pc_source_refuse(source, "stages", error, "stands beside placement %s; expected it beside given alone",
                                raw->placement);
    bool is_linear = draft->placement == PC_PLACEMENT_LINEAR, is_two = draft->placement == PC_PLACEMENT_BIDIRECTIONAL;
    if ((is_linear && draft->chunks != 1) || (is_two && draft->chunks != 2))
        return pc_source_refuse(source, "chunks", error, "%d with placement %s; expected %d", draft->chunks,
                                raw->placement, is_two ? 2 : 1);
    return PC_OK;
}

/* ---- passes ---- */

/* "own.yaml:12: passes[3]". Each line is looked up by reading the whole text: in a long one it is left out. */
static char *place_of(const pc_source *source, const char *path) {
    char text[PC_SOURCE_NAME_SIZE + PC_KEY_PATH_SIZE + WORD_SIZE], line[WORD_SIZE] = "";
    if (source->size <= SOURCE_SIZE_USUAL) snprintf(line, sizeof line, ":%zu", pc_source_line(source, path));
    snprintf(text, sizeof text, "%s%s: %s", source->name, line, path);
    return pc_strdup(text);
}

static pc_code read_numbers(const pc_source *source, const char *path, const raw_list *list, pc_block_line *line,
                            pc_error *error) {
    char entry[PC_KEY_PATH_SIZE + WORD_SIZE];
    line->offset = pc_alloc(list->text_count, sizeof *line->offset);
    if (!line->offset) return pc_error_no_memory(error);
    line->offset_count = (int)list->text_count;
    pc_code code = PC_OK;
    for (unsigned i = 0; i < list->text_count && !code; i++) {
        snprintf(entry, sizeof entry, "%s.offsets[%u]", path, i);
        code = read_integer(source, entry, list->text[i], -PC_BLOCK_CELLS_MAX, PC_BLOCK_CELLS_MAX, &line->offset[i],
                            error);
    }
    return code;
}

static pc_code read_offset(const pc_source *source, const char *path, const raw_line *raw, bool is_end,
                           pc_block_line *line, pc_error *error) {
    char key[PC_KEY_PATH_SIZE + WORD_SIZE];
    if ((raw->offset != NULL) == (raw->offsets.text != NULL))
        return pc_source_refuse(source, path, error, "%s; expected offset, a rule, or offsets, a number a device",
                                raw->offset ? "has both offset and offsets" : "has no offset");
    snprintf(key, sizeof key, "%s.offset", path);
    line->is_free = raw->offset && strcmp(raw->offset, "free") == 0;
    if (line->is_free && (line->kind != PC_PASS_W || is_end))
        return pc_source_refuse(source, key, error, "free, of %s; expected a rule: only a block's W can have it",
                                is_end ? "an end" : pc_pass_kind_name(line->kind));
    if (line->is_free) return PC_OK;
    if (raw->offset) return read_rule(source, key, raw->offset, PC_RULE_ALL_NAMES, &line->rule, error);
    return read_numbers(source, path, &raw->offsets, line, error);
}

static pc_code read_line(const pc_source *source, const char *path, const raw_line *raw, bool is_end,
                         pc_block_line *line, pc_error *error) {
    char key[PC_KEY_PATH_SIZE + WORD_SIZE];
    int64_t kind = 0, chunk = is_end ? 0 : PC_BLOCK_EVERY, least = is_end ? -PC_MICROBATCHES_MAX : 0;
    line->microbatch = PC_BLOCK_EVERY;
    line->place = place_of(source, path);
    if (!line->place) return pc_error_no_memory(error);
    _Static_assert((int)PC_PASS_KINDS == 5, "the words stand in the order of the enum");
    snprintf(key, sizeof key, "%s.kind", path);
    pc_code code = read_word(source, key, "F|B|W|BW|R", raw->kind, &kind, error);
    snprintf(key, sizeof key, "%s.chunk", path);
    if (!code && raw->chunk) code = read_integer(source, key, raw->chunk, 0, PC_CHUNKS_MAX - 1, &chunk, error);
    snprintf(key, sizeof key, "%s.microbatch", path);
    if (!code && raw->microbatch)
        code = read_integer(source, key, raw->microbatch, least, PC_MICROBATCHES_MAX - 1, &line->microbatch, error);
    if (!code && is_end && !raw->microbatch)
        code = pc_source_refuse(source, key, error, "missing; expected which microbatch of the iteration, -1 the last");
    line->kind = (pc_pass_kind)kind;
    line->chunk = (int)chunk;
    return code ? code : read_offset(source, path, raw, is_end, line, error);
}

static pc_code read_lines(const pc_source *source, const char *key, const raw_line *raw, unsigned count,
                          pc_block_line **lines, int *line_count, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    if (!raw) return PC_OK;
    *lines = pc_alloc(count, sizeof **lines);
    if (!*lines) return pc_error_no_memory(error);
    *line_count = (int)count;
    pc_code code = PC_OK;
    for (unsigned i = 0; i < count && !code; i++) {
        snprintf(path, sizeof path, "%s[%u]", key, i);
        code = read_line(source, path, &raw[i], key[0] == 'e', &(*lines)[i], error);
    }
    return code;
}

/* ---- the block ---- */

static pc_code read_durations(const pc_source *source, const raw_block *raw, pc_block_draft *draft, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    pc_code code = PC_OK;
    for (int kind = 0; kind < PC_PASS_KINDS && !code; kind++) {
        draft->duration[kind] = kind == PC_PASS_BW ? 2 : 1;
        snprintf(path, sizeof path, "durations.%s", pc_pass_kind_name((pc_pass_kind)kind));
        if (raw->durations[kind])
            code =
                read_integer(source, path, raw->durations[kind], 1, PC_BLOCK_CELLS_MAX, &draft->duration[kind], error);
    }
    return code;
}

static pc_code read_shape(const pc_source *source, const raw_block *raw, pc_block_draft *draft, pc_error *error) {
    int64_t devices = 0, chunks = 1, steps = PC_BLOCK_STEPS;
    pc_code code = read_name(source, raw->block, draft, error);
    if (!code && raw->devices) code = read_integer(source, "devices", raw->devices, 1, PC_DEVICES_MAX, &devices, error);
    if (!code && raw->chunks) code = read_integer(source, "chunks", raw->chunks, 1, PC_CHUNKS_MAX, &chunks, error);
    if (!code && raw->steps) code = read_word(source, "steps", "none|squeeze|reorder", raw->steps, &steps, error);
    draft->devices = (int)devices;
    draft->chunks = (int)chunks;
    draft->steps = (pc_block_steps)steps;
    if (!code) code = read_placement(source, raw, draft, error);
    if (!code) code = read_rule(source, "interval", raw->interval, PC_RULE_SHAPE_NAMES, &draft->interval, error);
    if (!code && !raw->microbatches) code = pc_rule_number(1, &draft->microbatches, error);
    if (!code && raw->microbatches)
        code = read_rule(source, "microbatches", raw->microbatches, PC_RULE_SHAPE_NAMES, &draft->microbatches, error);
    return code;
}

static pc_code fill_draft(const pc_source *source, const raw_block *raw, pc_block_draft *draft, pc_error *error) {
    draft->place = pc_strdup(source->name);
    if (!draft->place) return pc_error_no_memory(error);
    pc_code code = read_shape(source, raw, draft, error);
    if (!code) code = read_durations(source, raw, draft, error);
    if (!code)
        code = read_lines(source, "passes", raw->passes, raw->passes_count, &draft->passes, &draft->pass_count, error);
    return code ? code : read_lines(source, "ends", raw->ends, raw->ends_count, &draft->ends, &draft->end_count, error);
}

static pc_code read_source(const pc_source *source, pc_given_block **block, pc_error *error) {
    void *raw;
    pc_block_draft draft = {.place = NULL};
    pc_code code = pc_source_scan(source, error);
    if (!code) code = pc_yaml_load(source, &block_schema, sizeof(raw_block), &raw, error);
    if (code) return code;
    code = fill_draft(source, raw, &draft, error);
    pc_yaml_free(&block_schema, raw);
    if (!code) return pc_given_block_create(&draft, block, error);
    pc_block_draft_free(&draft);
    return code;
}

pc_code pc_block_file_read(const char *path, pc_given_block **block, pc_error *error) {
    pc_source source;
    pc_code code = pc_source_read_regular(path, "a block file (YAML)", &source, error);
    if (code) return code;
    code = read_source(&source, block, error);
    pc_source_free(&source);
    return code;
}

pc_code pc_block_text_read(const char *name, const char *text, pc_given_block **block, pc_error *error) {
    pc_source source;
    pc_code code = pc_source_from_text(name, text, &source, error);
    if (code) return code;
    code = read_source(&source, block, error);
    pc_source_free(&source);
    return code;
}
