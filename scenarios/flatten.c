/* What may be a word or a mapping. libcyaml wants one of the two; so a text in which `schedule` is a mapping,
 * {block: FILE, steps: WORD}, is loaded with a word in its place, "block:WORD:FILE". Lines and keys of messages are
 * looked up in the text as it was written.
 */
#include "scenarios/flatten.h"

#include "engine/alloc.h"
#include "engine/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { WORD_SIZE = 16 };

/* ---- which mappings ---- */

/* One of them: its two values. */
typedef struct mapping {
    const char *block, *steps;
} mapping;

/* A place in the text: libyaml counts characters. */
typedef struct place {
    size_t characters, bytes;
} place;

/* The text as it grows. */
typedef struct flat_text {
    const pc_source *source;
    yaml_document_t *document;
    char *text;
    size_t size, room;
    place at;     /* up to where the source's text is in it */
    bool has_any; /* whether anything was replaced */
    pc_error *error;
    pc_code code;
} flat_text;

static const char *text_of(const yaml_node_t *node) {
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static void add(flat_text *flat, const char *text, size_t size) {
    if (flat->code) return;
    if (flat->size + size + 1 > flat->room) {
        size_t room = 2 * (flat->size + size + 1);
        char *moved = pc_realloc(flat->text, room, 1);
        if (!moved) {
            flat->code = pc_error_no_memory(flat->error);
            return;
        }
        flat->text = moved;
        flat->room = room;
    }
    memcpy(flat->text + flat->size, text, size);
    flat->size += size;
    flat->text[flat->size] = '\0';
}

/* Between double quotes. */
static void add_quoted(flat_text *flat, const char *text) {
    for (; *text; text++) {
        char escaped[8];
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c < ' ')
            snprintf(escaped, sizeof escaped, c < ' ' ? "\\x%02x" : "\\%c", c);
        else
            snprintf(escaped, sizeof escaped, "%c", c);
        add(flat, escaped, strlen(escaped));
    }
}

static void refuse(flat_text *flat, const char *path, const char *key, const char *what) {
    char whole[PC_KEY_PATH_SIZE + WORD_SIZE];
    snprintf(whole, sizeof whole, "%s%s%.10s", path, *key ? "." : "", key);
    flat->code = pc_source_refuse(flat->source, whole, flat->error, "%s", what);
}

static void refuse_key(flat_text *flat, const char *path, const char *key) {
    char hint[PC_NEAREST_TEXT];
    char what[PC_NEAREST_TEXT + 128];
    pc_nearest nearest = {.word = key};
    pc_nearest_offer_words(&nearest, "block|steps");
    snprintf(what, sizeof what, "%.40s: no key of a schedule%s; expected block, the path of a file, and steps", key,
             pc_nearest_hint(&nearest, hint));
    refuse(flat, path, "", what);
}

static bool read_mapping(flat_text *flat, const yaml_node_t *node, const char *path, mapping *found) {
    *found = (mapping){NULL, NULL};
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const char *key = text_of(yaml_document_get_node(flat->document, pair->key));
        const char *value = text_of(yaml_document_get_node(flat->document, pair->value));
        const char **to = !key ? NULL : strcmp(key, "block") == 0 ? &found->block : &found->steps;
        if (!key || (to == &found->steps && strcmp(key, "steps") != 0)) {
            refuse_key(flat, path, key ? key : "a list or a mapping");
            return false;
        }
        if (!value || *to) {
            refuse(flat, path, key, value ? "stands twice; expected it once" : "no text; expected one");
            return false;
        }
        *to = value;
    }
    bool has_block = found->block && *found->block, has_colon = found->steps && strchr(found->steps, ':');
    if (!has_block) refuse(flat, path, "block", "missing; expected the path of a block's file");
    if (has_block && has_colon) refuse(flat, path, "steps", "unknown; expected none, squeeze or reorder");
    return has_block && !has_colon;
}

/* The place so many characters into the text, at or behind `from`. */
static place find_place(const pc_source *source, place from, size_t characters) {
    while (from.characters < characters && from.bytes < source->size) {
        from.characters++;
        do from.bytes++;
        while (((unsigned char)source->text[from.bytes] & 0xC0) == 0x80);
    }
    return from;
}

/* In its place stands one line, and as many ends of lines as before. */
static void replace(flat_text *flat, const yaml_node_t *node, const char *path) {
    mapping found;
    if (!read_mapping(flat, node, path, &found)) return;
    place start = find_place(flat->source, flat->at, node->start_mark.index);
    place end = find_place(flat->source, start, node->end_mark.index);
    const char *text = flat->source->text;
    add(flat, text + flat->at.bytes, start.bytes - flat->at.bytes);
    add(flat, "\"block:", 7);
    add_quoted(flat, found.steps ? found.steps : "");
    add(flat, ":", 1);
    add_quoted(flat, found.block);
    add(flat, "\"", 1);
    bool is_block = node->data.mapping.style != YAML_FLOW_MAPPING_STYLE; /* it ends where the next token begins */
    if (is_block)
        for (; end.bytes > start.bytes && text[end.bytes - 1] != '\n'; end.bytes--) end.characters--;
    for (size_t i = start.bytes; i < end.bytes; i++)
        if (text[i] == '\n') add(flat, "\n", 1);
    flat->at = end;
    flat->has_any = true;
}

/* ---- the walk ---- */

static void walk(flat_text *flat, const yaml_node_t *node, const char *path, bool is_schedule);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the scan of the text has let through */
static void walk_pairs(flat_text *flat, const yaml_node_t *node, const char *path) {
    char inner[PC_KEY_PATH_SIZE];
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const char *key = text_of(yaml_document_get_node(flat->document, pair->key));
        if (!key || flat->code) continue;
        snprintf(inner, sizeof inner, "%.200s%s%.40s", path, *path ? "." : "", key);
        walk(flat, yaml_document_get_node(flat->document, pair->value), inner, strcmp(key, "schedule") == 0);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as walk_pairs */
static void walk_items(flat_text *flat, const yaml_node_t *node, const char *path, bool is_schedule) {
    char inner[PC_KEY_PATH_SIZE];
    for (const yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
        if (flat->code) return;
        snprintf(inner, sizeof inner, "%.220s[%d]", path, (int)(item - node->data.sequence.items.start));
        walk(flat, yaml_document_get_node(flat->document, *item), inner, is_schedule);
    }
}

/* No deeper than the scan of the text has found it to be. */
/* NOLINTNEXTLINE(misc-no-recursion): as walk_pairs */
static void walk(flat_text *flat, const yaml_node_t *node, const char *path, bool is_schedule) {
    if (node->type == YAML_MAPPING_NODE && is_schedule)
        replace(flat, node, path);
    else if (node->type == YAML_MAPPING_NODE)
        walk_pairs(flat, node, path);
    else if (node->type == YAML_SEQUENCE_NODE)
        walk_items(flat, node, path, is_schedule);
}

/* What is not YAML is not ours to refuse. */
static void flatten(flat_text *flat) {
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser)) {
        flat->code = pc_error_no_memory(flat->error);
        return;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)flat->source->text + flat->at.bytes,
                                 flat->source->size - flat->at.bytes);
    if (yaml_parser_load(&parser, &document)) {
        /* cppcheck-suppress autoVariables ; until it is deleted below */
        flat->document = &document;
        const yaml_node_t *root = yaml_document_get_root_node(&document);
        if (root) walk(flat, root, "", false);
        flat->document = NULL;
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
}

/* Most schedules are a word behind their key; then the text need not be read once more. */
static bool may_have_one(const pc_source *source) {
    for (const char *at = source->text; (at = strstr(at, "schedule")); at++) {
        const char *next = at + strlen("schedule");
        next += strspn(next, "\"' \t:");
        if (strchr("{[#\r\n!&", *next)) return true; /* at the end of the text, too */
    }
    return false;
}

pc_code pc_source_flatten(const pc_source *source, pc_source *flat, pc_error *error) {
    flat_text made = {.source = source, .error = error};
    *flat = (pc_source){.text = NULL};
    if (!may_have_one(source)) return PC_OK;
    if (strncmp(source->text, "\xef\xbb\xbf", 3) == 0) made.at.bytes = 3; /* a byte order mark */
    flatten(&made);
    if (!made.code && made.has_any) add(&made, source->text + made.at.bytes, source->size - made.at.bytes);
    if (made.code || !made.has_any) {
        pc_free(made.text);
        return made.code;
    }
    *flat = *source;
    flat->text = made.text;
    flat->size = made.size;
    return PC_OK;
}
