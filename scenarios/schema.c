#include "scenarios/schema.h"

#include "engine/names.h"

#include <stdio.h>
#include <string.h>

enum { KEYS_SIZE = 1000, WORDS_SIZE = 256, BLOCK_SIZE = 2 * PC_NODE_TEXT_SIZE + 16 };

/* A check on its way. */
typedef struct checked {
    pc_tree *tree;
    bool is_strict; /* whether unknown keys are refused */
    pc_error *error;
} checked;

/* The keys of one mapping: those fields of a schema whose paths begin as `prefix` does, by `length` bytes: none, or
 * "times." */
typedef struct level {
    const pc_schema *schema;
    const char *prefix;
    size_t length;
} level;

/* ---- keys of a level ---- */

/* Takes one key of a level after the other; a group, of whose paths more comes behind a dot, once. */
typedef struct key_walk {
    level at;
    int next;
    pc_schema_field field;
    const char *key; /* `length` bytes of the field's path */
    size_t length;
    bool is_group;
} key_walk;

static void come_to(key_walk *walk, pc_schema_field field, size_t length) {
    walk->field = field;
    walk->key = field.path + walk->at.length;
    walk->length = length;
    walk->is_group = walk->key[length] == '.';
}

static bool next_key(key_walk *walk) {
    while (walk->next < walk->at.schema->count) {
        pc_schema_field field = pc_schema_field_at(walk->at.schema, walk->next++);
        if (strncmp(field.path, walk->at.prefix, walk->at.length) != 0) continue;
        const char *key = field.path + walk->at.length;
        size_t length = strcspn(key, ".");
        if (walk->is_group && length == walk->length && strncmp(key, walk->key, length) == 0) continue;
        come_to(walk, field, length);
        return true;
    }
    return false;
}

static bool is_key(const key_walk *walk, const char *word) {
    return strncmp(word, walk->key, walk->length) == 0 && word[walk->length] == '\0';
}

/* Where the walk comes to the word; false if it is no key of the level. As many words are looked up as there are
 * keys, and most differ in the first letter. */
static bool find_key(const level *at, const char *word, key_walk *walk) {
    size_t length = strcspn(word, ".");
    *walk = (key_walk){.at = *at};
    for (int i = 0; i < at->schema->count && word[length] == '\0'; i++) {
        pc_schema_field field = pc_schema_field_at(at->schema, i);
        if (at->length > 0 && strncmp(field.path, at->prefix, at->length) != 0) continue;
        const char *key = field.path + at->length;
        if (*key != *word || strncmp(key, word, length) != 0 || (key[length] && key[length] != '.')) continue;
        come_to(walk, field, length);
        return true;
    }
    return false;
}

static level level_of(const pc_schema *schema) {
    return (level){schema, "", 0};
}

/* The level below a key that is a mapping; false if it is none. */
static bool enter(const key_walk *walk, level *below) {
    const pc_schema_field *field = &walk->field;
    if (walk->is_group)
        *below = (level){walk->at.schema, field->path, walk->at.length + walk->length + 1};
    else if (field->kind == PC_KIND_MAPPING && !field->is_list)
        *below = level_of(field->schema);
    else
        return false;
    return true;
}

/* ---- messages ---- */

static void list_keys(const level *at, char text[KEYS_SIZE]) {
    size_t used = 0;
    key_walk walk = {.at = *at};
    for (text[0] = '\0'; next_key(&walk) && used < KEYS_SIZE;)
        used += (size_t)snprintf(text + used, KEYS_SIZE - used, "%s%.*s", used ? ", " : "", (int)walk.length, walk.key);
}

/* Offers the keys of a level; of those below them, whose paths begin with `parent`, only the word itself, for there are
 * many. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as our own schemas */
static void offer_keys(pc_nearest *nearest, const char *parent, const level *at) {
    char path[PC_KEY_PATH_SIZE];
    level below;
    key_walk walk = {.at = *at};
    while (next_key(&walk)) {
        snprintf(path, sizeof path, "%s%s%.*s", parent, *parent ? "." : "", (int)walk.length, walk.key);
        if (!*parent)
            pc_nearest_offer(nearest, path);
        else if (is_key(&walk, nearest->word))
            pc_nearest_offer_as(nearest, path, nearest->word);
        if (strcmp(path, "making") == 0) pc_nearest_offer_as(nearest, path, "plan"); /* its old name */
        if (enter(&walk, &below)) offer_keys(nearest, path, &below);
    }
}

static pc_code refuse_unknown(const checked *of, const pc_node *node, const level *at) {
    char keys[KEYS_SIZE], hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = node->key};
    offer_keys(&nearest, "", at);
    list_keys(at, keys);
    return pc_node_refuse(of->tree, node, of->error, "unknown key%s; expected one of %s",
                          pc_nearest_hint(&nearest, hint), keys);
}

/* `keys` are those of a mapping; NULL where another kind is expected. */
static pc_code refuse_kind(const checked *of, const pc_node *node, pc_node_kind expected, const level *keys) {
    static const char *const words[] = {"a single value", "a list", "a mapping"};
    char listed[KEYS_SIZE] = "";
    if (keys) list_keys(keys, listed);
    return pc_node_refuse(of->tree, node, of->error, "is %s; expected %s%s%s", words[node->kind], words[expected],
                          keys ? " of " : "", listed);
}

static pc_code check_kind(const checked *of, const pc_node *node, pc_node_kind expected, const level *keys) {
    return node->kind == expected ? PC_OK : refuse_kind(of, node, expected, keys);
}

/* ---- schedules ---- */

static pc_code check_block_key(const checked *of, const pc_node *schedule, const pc_node *entry) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = entry->key};
    if (strcmp(entry->key, "block") == 0 || strcmp(entry->key, "steps") == 0) {
        if (entry->kind != PC_NODE_TEXT) return pc_node_refuse(of->tree, entry, of->error, "no text; expected one");
        bool is_first = pc_node_find(schedule, entry->key) == entry;
        return is_first ? PC_OK : pc_node_refuse(of->tree, entry, of->error, "stands twice; expected it once");
    }
    pc_nearest_offer_words(&nearest, "block|steps");
    return pc_node_refuse(of->tree, schedule, of->error,
                          "%.40s: no key of a schedule%s; expected block, the path of a file, and steps", entry->key,
                          pc_nearest_hint(&nearest, hint));
}

static pc_code check_block(const checked *of, const pc_node *schedule) {
    pc_code code = PC_OK;
    const pc_node *steps = pc_node_find(schedule, "steps");
    for (const pc_node *entry = pc_node_first(schedule); entry < pc_node_end(schedule) && !code;
         entry = pc_node_end(entry))
        code = check_block_key(of, schedule, entry);
    if (code) return code;
    const char *block = pc_node_find_text(schedule, "block");
    if (steps && strchr(steps->text, ':'))
        return pc_node_refuse(of->tree, steps, of->error, "unknown; expected none, squeeze or reorder");
    if (block && *block) return PC_OK;
    return pc_node_refuse_key(of->tree, schedule, "block", of->error, "missing; expected the path of a block's file");
}

/* Settings hold schedules as texts. */
static pc_code fold_block(const checked *of, pc_node *schedule) {
    char folded[BLOCK_SIZE];
    const char *steps = pc_node_find_text(schedule, "steps");
    pc_code code = check_block(of, schedule);
    if (code) return code;
    snprintf(folded, sizeof folded, "block:%s:%s", steps ? steps : "", pc_node_find_text(schedule, "block"));
    const char *text = pc_tree_keep(of->tree, folded);
    if (!text) return pc_error_no_memory(of->error);
    schedule->kind = PC_NODE_TEXT;
    schedule->text = text;
    schedule->count = 0;
    return PC_OK;
}

/* ---- lists of words ---- */

static pc_code fold_words(const checked *of, pc_node *list) {
    char folded[WORDS_SIZE] = "none";
    size_t used = 0;
    for (const pc_node *entry = pc_node_first(list); entry < pc_node_end(list); entry = pc_node_end(entry)) {
        if (entry->kind != PC_NODE_TEXT) return pc_node_refuse(of->tree, entry, of->error, "no word; expected one");
        if (used + strlen(entry->text) + 2 > sizeof folded)
            return pc_node_refuse(of->tree, entry, of->error, "too many words; expected each once");
        used += (size_t)snprintf(folded + used, sizeof folded - used, "%s%s", used ? "," : "", entry->text);
    }
    const char *text = pc_tree_keep(of->tree, folded);
    if (!text) return pc_error_no_memory(of->error);
    list->kind = PC_NODE_TEXT;
    list->text = text;
    list->count = 0;
    return PC_OK;
}

/* ---- the walk ---- */

static pc_code check_mapping(const checked *of, pc_node *node, const level *at);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a tree can be */
static pc_code check_one(const checked *of, pc_node *node, const pc_schema_field *field) {
    level keys = level_of(field->schema);
    if (field->kind == PC_KIND_MAPPING) return check_mapping(of, node, &keys);
    if (field->kind == PC_KIND_SCHEDULE && node->kind == PC_NODE_MAPPING) return fold_block(of, node);
    if (field->kind == PC_KIND_WORDS && node->kind == PC_NODE_LIST) return fold_words(of, node);
    return check_kind(of, node, PC_NODE_TEXT, NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion): as check_one */
static pc_code check_list(const checked *of, pc_node *list, const pc_schema_field *field) {
    pc_code code = check_kind(of, list, PC_NODE_LIST, NULL);
    if (code) return code;
    if (list->count < field->least)
        return pc_node_refuse(of->tree, list, of->error, "an empty list; expected at least one entry");
    if (field->most && list->count > field->most)
        return pc_node_refuse(of->tree, list, of->error, "too many entries; expected at most %u", field->most);
    for (pc_node *entry = list + 1; entry < pc_node_end(list) && !code; entry += entry->size)
        code = check_one(of, entry, field);
    return code;
}

/* NOLINTNEXTLINE(misc-no-recursion): as check_one */
static pc_code check_entry(const checked *of, const pc_node *mapping, pc_node *node, const level *at) {
    level below;
    key_walk walk;
    if (!find_key(at, node->key, &walk)) return of->is_strict ? refuse_unknown(of, node, at) : PC_OK;
    if (pc_node_find(mapping, node->key) != node)
        return pc_node_refuse(of->tree, node, of->error, "given twice; expected once");
    if (walk.is_group && enter(&walk, &below)) return check_mapping(of, node, &below);
    return walk.field.is_list ? check_list(of, node, &walk.field) : check_one(of, node, &walk.field);
}

/* NOLINTNEXTLINE(misc-no-recursion): as check_one */
static pc_code check_mapping(const checked *of, pc_node *node, const level *at) {
    pc_code code = check_kind(of, node, PC_NODE_MAPPING, at);
    if (code) return code;
    for (pc_node *child = node + 1; child < pc_node_end(node) && !code; child += child->size)
        code = check_entry(of, node, child, at);
    for (int i = 0; i < at->schema->count && at->length == 0 && !code; i++) {
        pc_schema_field field = pc_schema_field_at(at->schema, i);
        if (field.is_required && !pc_node_find(node, field.path))
            code = pc_node_refuse_key(of->tree, node, field.path, of->error,
                                      "missing; expected a value, since this key is required");
    }
    return code;
}

static pc_code check(const pc_schema *schema, pc_tree *tree, bool is_strict, pc_error *error) {
    level top = level_of(schema);
    return check_mapping(&(checked){tree, is_strict, error}, tree->nodes, &top);
}

pc_code pc_schema_check(const pc_schema *schema, pc_tree *tree, pc_error *error) {
    return check(schema, tree, true, error);
}

pc_code pc_schema_check_known(const pc_schema *schema, pc_tree *tree, pc_error *error) {
    return check(schema, tree, false, error);
}
