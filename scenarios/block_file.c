#include "scenarios/block_file.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "scenarios/schema.h"
#include "scenarios/setting.h"
#include "scenarios/units.h"

#include <stdio.h>
#include <string.h>

enum { PASSES_MAX = 1 << 20 };

/* ---- which keys there are ---- */

#define TEXT(key)                                                                                                      \
    { .path = (key) }
#define REQUIRED(key)                                                                                                  \
    { .path = (key), .is_required = true }
#define LIST(key, most_)                                                                                               \
    { .path = (key), .is_list = true, .least = 1, .most = (most_) }
#define LINES(key, required)                                                                                           \
    {                                                                                                                  \
        .path = (key), .kind = PC_KIND_MAPPING, .is_required = (required), .is_list = true, .least = 1,                \
        .most = PASSES_MAX, .schema = &line_schema                                                                     \
    }
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static const pc_schema_field line_fields[] = {REQUIRED("kind"), TEXT("chunk"), TEXT("microbatch"), TEXT("offset"),
                                              LIST("offsets", PC_DEVICES_MAX)};
static const pc_schema line_schema = {.count = COUNT(line_fields), .fields = line_fields};

static const pc_schema_field block_fields[] = {
    REQUIRED("block"),
    TEXT("title"),
    TEXT("source"),
    TEXT("devices"),
    TEXT("chunks"),
    REQUIRED("placement"),
    LIST("stages", PC_DEVICES_MAX),
    REQUIRED("interval"),
    TEXT("microbatches"),
    TEXT("steps"),
    TEXT("durations.F"),
    TEXT("durations.B"),
    TEXT("durations.W"),
    TEXT("durations.BW"),
    TEXT("durations.R"),
    LINES("passes", true),
    LINES("ends", false),
};
static const pc_schema block_schema = {.count = COUNT(block_fields), .fields = block_fields};

/* ---- values ---- */

/* A key below `node`; where it is not there, `*number` stays as it is. */
static pc_code read_integer(const pc_tree *tree, const pc_node *node, const char *key, int64_t least, int64_t most,
                            int64_t *number, pc_error *error) {
    const pc_node *value = pc_node_find(node, key);
    if (!value) return PC_OK;
    return pc_node_blame(tree, value, pc_parse_integer(value->text, least, most, number, error), error);
}

static pc_code read_rule(const pc_tree *tree, const pc_node *value, unsigned names, pc_rule *rule, pc_error *error) {
    return pc_node_blame(tree, value, pc_rule_parse(value->text, names, rule, error), error);
}

static pc_code read_word(const pc_tree *tree, const pc_node *node, const char *key, const char *words, int64_t *index,
                         pc_error *error) {
    const pc_node *value = pc_node_find(node, key);
    if (!value) return PC_OK;
    return pc_node_blame(tree, value, pc_word_parse(words, value->text, index, error), error);
}

static pc_code read_name(const pc_tree *tree, pc_block_draft *draft, pc_error *error) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const pc_node *node = pc_node_find(tree->nodes, "block");
    const char *name = node->text;
    if (!*name || name[strspn(name, allowed)] || strlen(name) >= PC_SCHEDULE_NAME_SIZE)
        return pc_node_refuse(tree, node, error,
                              "%.40s: not a name; expected letters, digits, '.', '_' and '-', at most %d of them",
                              *name ? name : "''", PC_SCHEDULE_NAME_SIZE - 1);
    if (pc_generator_find(name))
        return pc_node_refuse(tree, node, error, "%s is the name of a schedule that pipecast has; expected another one",
                              name);
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

static pc_code find_placement(const pc_tree *tree, const pc_node *list, const int64_t *stages, pc_block_draft *draft,
                              pc_error *error) {
    static const pc_placement known[] = {PC_PLACEMENT_LINEAR, PC_PLACEMENT_V, PC_PLACEMENT_INTERLEAVED};
    int count = (int)list->count;
    if (count % draft->chunks != 0 || (draft->devices && count != draft->devices * draft->chunks))
        return pc_node_refuse(tree, list, error, "%d parts for %d chunks a device; expected devices x chunks", count,
                              draft->chunks);
    draft->devices = count / draft->chunks;
    for (size_t i = draft->chunks > 1; i < sizeof known / sizeof *known; i++) {
        if (!has_stages(known[i], draft->devices, draft->chunks, stages)) continue;
        draft->placement = known[i];
        return PC_OK;
    }
    return pc_node_refuse(tree, list, error,
                          "the parts lie neither linear, nor interleaved, nor as a v; expected one of the three: "
                          "others cannot be run yet");
}

/* All numbers of a list, in new memory that the caller frees. */
static pc_code read_numbers(const pc_tree *tree, const pc_node *list, int64_t least, int64_t most, int64_t **numbers,
                            pc_error *error) {
    int64_t *to = *numbers = pc_alloc(list->count, sizeof **numbers);
    if (!to) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (const pc_node *entry = pc_node_first(list); entry < pc_node_end(list) && !code; entry++)
        code = pc_node_blame(tree, entry, pc_parse_integer(entry->text, least, most, to++, error), error);
    return code;
}

static pc_code read_stages(const pc_tree *tree, pc_block_draft *draft, pc_error *error) {
    const pc_node *list = pc_node_find(tree->nodes, "stages");
    int64_t *stages;
    if (!list) return pc_tree_refuse(tree, "stages", error, "missing; expected the stage of every part of the model");
    pc_code code = read_numbers(tree, list, 0, PC_DEVICES_MAX - 1, &stages, error);
    if (!code) code = find_placement(tree, list, stages, draft, error);
    pc_free(stages);
    return code;
}

static pc_code read_placement(const pc_tree *tree, pc_block_draft *draft, pc_error *error) {
    int64_t word = 0;
    const pc_node *stages = pc_node_find(tree->nodes, "stages");
    const char *name = pc_node_find_text(tree->nodes, "placement");
    _Static_assert((int)PC_PLACEMENT_BIDIRECTIONAL == 3, "the words stand in the order of the enum");
    pc_code code = read_word(tree, tree->nodes, "placement", "linear|interleaved|v|bidirectional|given", &word, error);
    if (code) return code;
    if (word > PC_PLACEMENT_BIDIRECTIONAL) return read_stages(tree, draft, error);
    draft->placement = (pc_placement)word;
    if (stages)
        return pc_node_refuse(tree, stages, error, "stands beside placement %s; expected it beside given alone", name);
    bool is_linear = draft->placement == PC_PLACEMENT_LINEAR, is_two = draft->placement == PC_PLACEMENT_BIDIRECTIONAL;
    if ((is_linear && draft->chunks != 1) || (is_two && draft->chunks != 2))
        return pc_tree_refuse(tree, "chunks", error, "%d with placement %s; expected %d", draft->chunks, name,
                              is_two ? 2 : 1);
    return PC_OK;
}

/* ---- passes ---- */

static pc_code read_offset(const pc_tree *tree, const pc_node *node, bool is_end, pc_block_line *line,
                           pc_error *error) {
    const pc_node *offset = pc_node_find(node, "offset"), *offsets = pc_node_find(node, "offsets");
    if ((offset != NULL) == (offsets != NULL))
        return pc_node_refuse(tree, node, error, "%s; expected offset, a rule, or offsets, a number a device",
                              offset ? "has both offset and offsets" : "has no offset");
    if (offsets) {
        line->offset_count = (int)offsets->count;
        return read_numbers(tree, offsets, -PC_BLOCK_CELLS_MAX, PC_BLOCK_CELLS_MAX, &line->offset, error);
    }
    line->is_free = strcmp(offset->text, "free") == 0;
    if (!line->is_free) return read_rule(tree, offset, PC_RULE_ALL_NAMES, &line->rule, error);
    if (line->kind == PC_PASS_W && !is_end) return PC_OK;
    return pc_node_refuse(tree, offset, error, "free, of %s; expected a rule: only a block's W can have it",
                          is_end ? "an end" : pc_pass_kind_name(line->kind));
}

static pc_code read_line(const pc_tree *tree, const pc_node *node, bool is_end, pc_block_line *line, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    int64_t kind = 0, chunk = is_end ? 0 : PC_BLOCK_EVERY, least = is_end ? -PC_MICROBATCHES_MAX : 0;
    pc_node_path(node, path);
    line->microbatch = PC_BLOCK_EVERY;
    line->number = node->line;
    line->key = pc_strdup(path);
    if (!line->key) return pc_error_no_memory(error);
    _Static_assert((int)PC_PASS_KINDS == 5, "the words stand in the order of the enum");
    pc_code code = read_word(tree, node, "kind", "F|B|W|BW|R", &kind, error);
    if (!code) code = read_integer(tree, node, "chunk", 0, PC_CHUNKS_MAX - 1, &chunk, error);
    if (!code) code = read_integer(tree, node, "microbatch", least, PC_MICROBATCHES_MAX - 1, &line->microbatch, error);
    if (!code && is_end && !pc_node_find(node, "microbatch"))
        code = pc_node_refuse_key(tree, node, "microbatch", error,
                                  "missing; expected which microbatch of the iteration, -1 the last");
    line->kind = (pc_pass_kind)kind;
    line->chunk = (int)chunk;
    return code ? code : read_offset(tree, node, is_end, line, error);
}

static pc_code read_lines(const pc_tree *tree, const char *file, bool are_ends, pc_block_line **lines, int *count,
                          pc_error *error) {
    const char *key = are_ends ? "ends" : "passes";
    const pc_node *list = pc_node_find(tree->nodes, key);
    if (!list) return PC_OK;
    pc_block_line *to = *lines = pc_alloc(list->count, sizeof **lines);
    if (!to) return pc_error_no_memory(error);
    *count = (int)list->count;
    pc_code code = PC_OK;
    for (const pc_node *node = pc_node_first(list); node < pc_node_end(list) && !code; node = pc_node_end(node)) {
        to->file = file;
        code = read_line(tree, node, are_ends, to++, error);
    }
    return code;
}

/* ---- the block ---- */

static pc_code read_durations(const pc_tree *tree, pc_block_draft *draft, pc_error *error) {
    const pc_node *durations = pc_node_find(tree->nodes, "durations");
    pc_code code = PC_OK;
    for (int kind = 0; kind < PC_PASS_KINDS && !code; kind++) {
        draft->duration[kind] = kind == PC_PASS_BW ? 2 : 1;
        code = read_integer(tree, durations, pc_pass_kind_name((pc_pass_kind)kind), 1, PC_BLOCK_CELLS_MAX,
                            &draft->duration[kind], error);
    }
    return code;
}

static pc_code read_shape(const pc_tree *tree, pc_block_draft *draft, pc_error *error) {
    const pc_node *top = tree->nodes, *microbatches = pc_node_find(top, "microbatches");
    int64_t devices = 0, chunks = 1, steps = PC_BLOCK_STEPS;
    pc_code code = read_name(tree, draft, error);
    if (!code) code = read_integer(tree, top, "devices", 1, PC_DEVICES_MAX, &devices, error);
    if (!code) code = read_integer(tree, top, "chunks", 1, PC_CHUNKS_MAX, &chunks, error);
    if (!code) code = read_word(tree, top, "steps", "none|squeeze|reorder", &steps, error);
    draft->devices = (int)devices;
    draft->chunks = (int)chunks;
    draft->steps = (pc_block_steps)steps;
    if (!code) code = read_placement(tree, draft, error);
    if (!code) code = read_rule(tree, pc_node_find(top, "interval"), PC_RULE_SHAPE_NAMES, &draft->interval, error);
    if (!code && !microbatches) code = pc_rule_number(1, &draft->microbatches, error);
    if (!code && microbatches) code = read_rule(tree, microbatches, PC_RULE_SHAPE_NAMES, &draft->microbatches, error);
    return code;
}

static pc_code fill_draft(const pc_tree *tree, pc_block_draft *draft, pc_error *error) {
    draft->place = pc_strdup(tree->source.name);
    if (!draft->place) return pc_error_no_memory(error);
    pc_code code = read_shape(tree, draft, error);
    if (!code) code = read_durations(tree, draft, error);
    if (!code) code = read_lines(tree, draft->place, false, &draft->passes, &draft->pass_count, error);
    return code ? code : read_lines(tree, draft->place, true, &draft->ends, &draft->end_count, error);
}

/* Takes the tree, of which the source is there. */
static pc_code read_tree(pc_tree *tree, pc_given_block **block, pc_error *error) {
    pc_block_draft draft = {.place = NULL};
    pc_code code = pc_tree_build(tree, error);
    if (!code) code = pc_schema_check(&block_schema, tree, error);
    if (!code) code = fill_draft(tree, &draft, error);
    pc_tree_free(tree);
    if (!code) return pc_given_block_create(&draft, block, error);
    pc_block_draft_free(&draft);
    return code;
}

pc_code pc_block_file_read(const char *path, pc_given_block **block, pc_error *error) {
    pc_tree tree = {.nodes = NULL};
    pc_code code = pc_source_read_regular(path, "a block file (YAML)", &tree.source, error);
    return code ? code : read_tree(&tree, block, error);
}

pc_code pc_block_text_read(const char *name, const char *text, pc_given_block **block, pc_error *error) {
    pc_tree tree = {.nodes = NULL};
    pc_code code = pc_source_from_text(name, text, &tree.source, error);
    return code ? code : read_tree(&tree, block, error);
}
