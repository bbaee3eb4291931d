/* libyaml's events into an array of nodes. libyaml has its own allocator; its failures are passed on. */
#include "scenarios/tree.h"

#include "engine/alloc.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum {
    DEPTH_MAX = 16,       /* the format needs 5 */
    EVENTS_MAX = 1000000, /* bounds what a small file can make of itself in memory */
    KEY_SHOWN = 60        /* bytes of a key in a path */
};

/* Texts never move: nodes point to them. */
typedef struct pc_text_block {
    struct pc_text_block *next;
    size_t used, room;
    char text[];
} text_block;

/* A tree as it grows. */
typedef struct builder {
    pc_tree *tree;
    size_t room;            /* nodes that tree->nodes has room for */
    size_t open[DEPTH_MAX]; /* lists and mappings that are not closed yet, the innermost last */
    int depth;
    const char *key; /* of the value that comes next; NULL: none, or in a mapping a key comes next */
    unsigned key_line;
    int documents;
    long events;
    pc_error *error;
} builder;

/* ---- messages ---- */

static void place(const pc_tree *tree, unsigned line, const char *path, pc_error *error) {
    pc_error_place(error, tree->source.name, tree->source.is_file ? line : 0, path);
}

static pc_code refuse_line(const builder *build, size_t line, const char *problem, const char *expected) {
    pc_code code = pc_error_set(build->error, PC_ERROR_INPUT, "%s; expected %s", problem, expected);
    place(build->tree, (unsigned)line + 1, "", build->error);
    return code;
}

static size_t lines_before(const pc_source *source, size_t offset) {
    size_t lines = 0;
    for (size_t i = 0; i < offset && i < source->size; i++) lines += source->text[i] == '\n';
    return lines;
}

/* What libyaml says it met, with the line where it met it. */
static pc_code refuse_syntax(const builder *build, const yaml_parser_t *parser) {
    if (parser->error == YAML_MEMORY_ERROR) return pc_error_no_memory(build->error);
    char problem[256];
    const char *name = build->tree->source.name, *language = "YAML";
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".json") == 0) language = "JSON";
    snprintf(problem, sizeof problem, "not %s: %s%s%s", language, parser->problem ? parser->problem : "cannot be read",
             parser->context ? " " : "", parser->context ? parser->context : "");
    size_t line = parser->error == YAML_READER_ERROR ? lines_before(&build->tree->source, parser->problem_offset)
                                                     : parser->problem_mark.line;
    return refuse_line(build, line, problem,
                       *language == 'J' ? "one JSON document in UTF-8" : "one YAML document in UTF-8");
}

static pc_code refuse(const pc_tree *tree, unsigned line, const char *path, pc_error *error, const char *format,
                      va_list arguments) {
    pc_code code = pc_error_set_list(error, PC_ERROR_INPUT, format, arguments);
    place(tree, line, path, error);
    return code;
}

pc_code pc_node_refuse(const pc_tree *tree, const pc_node *node, pc_error *error, const char *format, ...) {
    char path[PC_KEY_PATH_SIZE];
    va_list arguments;
    pc_node_path(node, path);
    va_start(arguments, format);
    pc_code code = refuse(tree, node->line, path, error, format, arguments);
    va_end(arguments);
    return code;
}

pc_code pc_node_refuse_key(const pc_tree *tree, const pc_node *node, const char *key, pc_error *error,
                           const char *format, ...) {
    char path[PC_KEY_PATH_SIZE];
    va_list arguments;
    pc_node_path(node, path);
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "%s%s", used ? "." : "", key);
    va_start(arguments, format);
    pc_code code = refuse(tree, node->line, path, error, format, arguments);
    va_end(arguments);
    return code;
}

pc_code pc_node_blame(const pc_tree *tree, const pc_node *node, pc_code code, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    if (code != PC_ERROR_INPUT) return code;
    pc_node_path(node, path);
    place(tree, node->line, path, error);
    return code;
}

/* ---- paths ---- */

static const pc_node *find_entry(const pc_node *list, unsigned long index) {
    if (list->kind != PC_NODE_LIST || index >= list->count) return NULL;
    const pc_node *entry = pc_node_first(list);
    while (index-- > 0) entry = pc_node_end(entry);
    return entry;
}

static const pc_node *find_key(const pc_node *mapping, const char *key, size_t length) {
    if (mapping->kind != PC_NODE_MAPPING) return NULL;
    for (const pc_node *child = pc_node_first(mapping); child < pc_node_end(mapping); child = pc_node_end(child))
        if (*child->key == *key && strncmp(child->key, key, length) == 0 && child->key[length] == '\0') return child;
    return NULL;
}

/* As far down the path as there are nodes; `*path` is what is left of it. */
static const pc_node *descend(const pc_node *node, const char **path) {
    while (**path) {
        char *end = NULL;
        const char *key = *path + (**path == '.');
        size_t length = strcspn(key, ".[");
        const pc_node *inner = *key == '[' ? find_entry(node, strtoul(key + 1, &end, 10)) : find_key(node, key, length);
        if (!inner) return node;
        *path = end ? end + 1 : key + length;
        node = inner;
    }
    return node;
}

const pc_node *pc_node_find(const pc_node *node, const char *path) {
    const pc_node *found = node ? descend(node, &path) : NULL;
    return *path ? NULL : found;
}

const char *pc_node_find_text(const pc_node *node, const char *path) {
    const pc_node *found = pc_node_find(node, path);
    return found ? found->text : NULL;
}

static unsigned index_of(const pc_node *entry) {
    unsigned index = 0;
    for (const pc_node *before = entry - entry->up + 1; before < entry; before = pc_node_end(before)) index++;
    return index;
}

void pc_node_path(const pc_node *node, char path[PC_KEY_PATH_SIZE]) {
    const pc_node *way[DEPTH_MAX + 1];
    int steps = 0;
    size_t used = 0;
    for (; node->up; node -= node->up) way[steps++] = node;
    path[0] = '\0';
    while (steps-- > 0 && used < PC_KEY_PATH_SIZE) {
        const pc_node *at = way[steps];
        char *to = path + used;
        size_t room = PC_KEY_PATH_SIZE - used;
        if (at->key)
            used += (size_t)snprintf(to, room, "%s%.*s%s", used ? "." : "", KEY_SHOWN, at->key,
                                     strlen(at->key) > KEY_SHOWN + 3 ? "..." : at->key + strnlen(at->key, KEY_SHOWN));
        else
            used += (size_t)snprintf(to, room, "[%u]", index_of(at));
    }
}

static unsigned line_of(const pc_tree *tree, const char *key_path) {
    return descend(tree->nodes, &key_path)->line;
}

pc_code pc_tree_refuse(const pc_tree *tree, const char *key_path, pc_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pc_code code = refuse(tree, line_of(tree, key_path), key_path, error, format, arguments);
    va_end(arguments);
    return code;
}

pc_code pc_tree_pass_on(const pc_tree *tree, const char *key_path, const pc_error *fault, pc_error *error) {
    pc_error_copy(error, fault);
    place(tree, line_of(tree, key_path), key_path, error);
    return fault->code;
}

/* ---- from events to nodes ---- */

/* Room for `size` bytes, zeroed; NULL if memory is short. Of one document, the first block is mostly all that it
 * takes. */
static char *take_room(pc_tree *tree, size_t size) {
    text_block *block = tree->texts;
    if (!block || block->room - block->used < size) {
        size_t room = tree->source.size + size;
        block = pc_alloc(1, sizeof *block + room);
        if (!block) return NULL;
        block->room = room;
        block->next = tree->texts;
        tree->texts = block;
    }
    block->used += size;
    return block->text + block->used - size;
}

const char *pc_tree_keep(pc_tree *tree, const char *text) {
    size_t size = strlen(text) + 1;
    char *kept = take_room(tree, size);
    return kept ? memcpy(kept, text, size) : NULL;
}

static bool make_room(builder *build) {
    pc_tree *tree = build->tree;
    if (tree->node_count < build->room) return true;
    size_t room = build->room ? 2 * build->room : 16;
    pc_node *nodes = pc_realloc(tree->nodes, room, sizeof *nodes);
    if (!nodes) return false;
    tree->nodes = nodes;
    build->room = room;
    return true;
}

static pc_node *innermost(const builder *build) {
    return build->depth > 0 ? &build->tree->nodes[build->open[build->depth - 1]] : NULL;
}

static bool expects_key(const builder *build) {
    const pc_node *parent = innermost(build);
    return parent && parent->kind == PC_NODE_MAPPING && !build->key;
}

static pc_code add_node(builder *build, pc_node node, size_t line) {
    pc_tree *tree = build->tree;
    if (!make_room(build)) return pc_error_no_memory(build->error);
    pc_node *parent = innermost(build);
    node.size = 1;
    node.key = build->key;
    node.line = build->key ? build->key_line : (unsigned)line + 1;
    if (parent) {
        parent->count++;
        node.up = (unsigned)(tree->node_count - build->open[build->depth - 1]);
    }
    build->key = NULL;
    tree->nodes[tree->node_count++] = node;
    return PC_OK;
}

static pc_code add_text(builder *build, const yaml_event_t *event) {
    size_t length = event->data.scalar.length, line = event->start_mark.line;
    if (length >= PC_NODE_TEXT_SIZE) return refuse_line(build, line, "a text of more than 4096 bytes", "a shorter one");
    if (memchr(event->data.scalar.value, '\0', length))
        return refuse_line(build, line, "a text with a zero byte", "printable text");
    char *text = take_room(build->tree, length + 1);
    if (!text) return pc_error_no_memory(build->error);
    memcpy(text, event->data.scalar.value, length);
    if (!expects_key(build)) return add_node(build, (pc_node){.kind = PC_NODE_TEXT, .text = text}, line);
    build->key = text;
    build->key_line = (unsigned)line + 1;
    return PC_OK;
}

static pc_code open_node(builder *build, pc_node_kind kind, size_t line) {
    if (build->depth == DEPTH_MAX) return refuse_line(build, line, "nested too deep", "at most 16 levels");
    if (expects_key(build))
        return pc_node_refuse(build->tree, innermost(build), build->error,
                              "a key that is itself a list or a mapping; expected a word");
    pc_code code = add_node(build, (pc_node){.kind = kind}, line);
    if (!code) build->open[build->depth++] = build->tree->node_count - 1;
    return code;
}

static void close_node(builder *build) {
    pc_node *node = innermost(build);
    node->size = (unsigned)(build->tree->node_count - build->open[--build->depth]);
}

static pc_code take_event(builder *build, const yaml_event_t *event) {
    size_t line = event->start_mark.line;
    if (++build->events > EVENTS_MAX) return refuse_line(build, line, "too many values", "at most a million");
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse_line(build, line, "an alias (*name)", "every value written out; aliases are not supported");
    case YAML_DOCUMENT_START_EVENT:
        return ++build->documents > 1 ? refuse_line(build, line, "a second document (---)", "one document a file")
                                      : PC_OK;
    case YAML_SCALAR_EVENT:
        return add_text(build, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(build, PC_NODE_LIST, line);
    case YAML_MAPPING_START_EVENT:
        return open_node(build, PC_NODE_MAPPING, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_node(build);
        return PC_OK;
    default:
        return PC_OK;
    }
}

static pc_code take_events(builder *build, yaml_parser_t *parser) {
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) return refuse_syntax(build, parser);
        pc_code code = take_event(build, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (code) return code;
    }
    return build->documents == 0 ? refuse_line(build, 0, "empty", "a mapping of keys") : PC_OK;
}

/* With the encoding given, libyaml does not guess UTF-16; but it takes a byte order mark for text. */
pc_code pc_tree_build(pc_tree *tree, pc_error *error) {
    yaml_parser_t parser;
    const pc_source *source = &tree->source;
    size_t mark = strncmp(source->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (!yaml_parser_initialize(&parser)) return pc_error_no_memory(error);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)source->text + mark, source->size - mark);
    pc_code code = take_events(&(builder){.tree = tree, .error = error}, &parser);
    yaml_parser_delete(&parser);
    return code;
}

void pc_tree_free(pc_tree *tree) {
    while (tree->texts) {
        text_block *next = tree->texts->next;
        pc_free(tree->texts);
        tree->texts = next;
    }
    pc_free(tree->nodes);
    pc_source_free(&tree->source);
    *tree = (pc_tree){.nodes = NULL};
}
