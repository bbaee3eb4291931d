/* The two walks over a YAML text that need no schema: a look through its events before it is loaded, and the search for
 * the line of a key once something is wrong with its value. libyaml has its own allocator; its failures are passed on.
 */
#include "scenarios/source.h"

#include <string.h>
#include <yaml.h>

enum {
    DEPTH_MAX = 16,       /* the format needs 5 */
    EVENTS_MAX = 1000000, /* bounds what a small file can make of itself in memory */
    SCALAR_MAX = 4096
};

typedef struct event_scan {
    const pc_source *source;
    pc_error *error;
    int documents, depth;
    long events;
} event_scan;

static pc_code refuse_line(const event_scan *scan, size_t line, const char *problem, const char *expected) {
    const pc_source *source = scan->source;
    if (!source->is_file)
        return pc_error_set(scan->error, PC_ERROR_INPUT, "%s: %s; expected %s", source->name, problem, expected);
    return pc_error_set(scan->error, PC_ERROR_INPUT, "%s:%zu: %s; expected %s", source->name, line + 1, problem,
                        expected);
}

static size_t lines_before(const pc_source *source, size_t offset) {
    size_t lines = 0;
    for (size_t i = 0; i < offset && i < source->size; i++) lines += source->text[i] == '\n';
    return lines;
}

/* What libyaml says it met, with the line where it met it. */
static pc_code refuse_syntax(const event_scan *scan, const yaml_parser_t *parser) {
    if (parser->error == YAML_MEMORY_ERROR) return pc_error_no_memory(scan->error);
    char problem[256];
    snprintf(problem, sizeof problem, "not YAML: %s%s%s", parser->problem ? parser->problem : "cannot be read",
             parser->context ? " " : "", parser->context ? parser->context : "");
    size_t line = parser->error == YAML_READER_ERROR ? lines_before(scan->source, parser->problem_offset)
                                                     : parser->problem_mark.line;
    return refuse_line(scan, line, problem, "one YAML document in UTF-8");
}

static pc_code check_scalar(const event_scan *scan, const yaml_event_t *event) {
    size_t length = event->data.scalar.length;
    if (length > SCALAR_MAX)
        return refuse_line(scan, event->start_mark.line, "a text of more than 4096 bytes", "a shorter one");
    if (memchr(event->data.scalar.value, '\0', length))
        return refuse_line(scan, event->start_mark.line, "a text with a zero byte", "printable text");
    return PC_OK;
}

static pc_code check_event(event_scan *scan, const yaml_event_t *event) {
    size_t line = event->start_mark.line;
    bool opens = event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
    bool closes = event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
    scan->depth += opens - closes;
    if (scan->depth > DEPTH_MAX) return refuse_line(scan, line, "nested too deep", "at most 16 levels");
    if (++scan->events > EVENTS_MAX) return refuse_line(scan, line, "too many values", "at most a million");
    if (event->type == YAML_ALIAS_EVENT)
        return refuse_line(scan, line, "an alias (*name)", "every value written out; aliases are not supported");
    if (event->type == YAML_DOCUMENT_START_EVENT && ++scan->documents > 1)
        return refuse_line(scan, line, "a second document (---)", "one document a file");
    if (event->type == YAML_SCALAR_EVENT) return check_scalar(scan, event);
    return PC_OK;
}

static pc_code scan_events(event_scan *scan, yaml_parser_t *parser) {
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) return refuse_syntax(scan, parser);
        pc_code code = check_event(scan, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (code) return code;
    }
    if (scan->documents == 0) return refuse_line(scan, 0, "empty", "a mapping of keys");
    return PC_OK;
}

/* With the encoding given, libyaml does not guess UTF-16; but it takes a byte order mark for text. */
static bool open_parser(const pc_source *source, yaml_parser_t *parser) {
    size_t mark = strncmp(source->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (!yaml_parser_initialize(parser)) return false;
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)source->text + mark, source->size - mark);
    return true;
}

pc_code pc_source_scan(const pc_source *source, pc_error *error) {
    yaml_parser_t parser;
    if (!open_parser(source, &parser)) return pc_error_no_memory(error);
    pc_code code = scan_events(&(event_scan){.source = source, .error = error}, &parser);
    yaml_parser_delete(&parser);
    return code;
}

/* Whether `path` is the beginning of the key and "...", as messages name a key that is long. */
static bool is_cut(const char *key, const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, "...") == 0 && strncmp(key, path, length - 3) == 0;
}

/* How much of `path` the key takes up: all of it, or up to a dot or bracket; 0 where it is another key. */
static size_t key_match(const yaml_node_t *node, const char *path) {
    size_t length = node->type == YAML_SCALAR_NODE ? node->data.scalar.length : 0;
    const char *key = (const char *)node->data.scalar.value;
    if (length > 0 && is_cut(key, path)) return strlen(path);
    if (length == 0 || strncmp(key, path, length) != 0) return 0;
    return strchr(".[", path[length]) ? length : 0; /* strchr finds the terminating zero too */
}

/* Of a key that stands twice, the second is the one to look at. */
static yaml_node_t *find_value(yaml_document_t *document, const yaml_node_t *mapping, const char **path, size_t *line) {
    const yaml_node_pair_t *pairs = mapping->data.mapping.pairs.start;
    for (ptrdiff_t i = mapping->data.mapping.pairs.top - pairs - 1; i >= 0; i--) {
        const yaml_node_t *key = yaml_document_get_node(document, pairs[i].key);
        size_t matched = key_match(key, *path);
        if (!matched) continue;
        *path += matched;
        *line = key->start_mark.line;
        return yaml_document_get_node(document, pairs[i].value);
    }
    return NULL;
}

static yaml_node_t *find_entry(yaml_document_t *document, const yaml_node_t *sequence, const char **path,
                               size_t *line) {
    char *end;
    if (**path != '[') return NULL;
    unsigned long index = strtoul(*path + 1, &end, 10);
    const yaml_node_item_t *items = sequence->data.sequence.items.start;
    if (*end != ']' || index >= (size_t)(sequence->data.sequence.items.top - items)) return NULL;
    *path = end + 1;
    yaml_node_t *entry = yaml_document_get_node(document, items[index]);
    *line = entry->start_mark.line;
    return entry;
}

static size_t find_line(yaml_document_t *document, const char *path) {
    yaml_node_t *node = yaml_document_get_root_node(document);
    size_t line = node ? node->start_mark.line : 0;
    while (node && *path) {
        if (*path == '.') path++;
        if (node->type == YAML_MAPPING_NODE)
            node = find_value(document, node, &path, &line);
        else if (node->type == YAML_SEQUENCE_NODE)
            node = find_entry(document, node, &path, &line);
        else
            node = NULL;
    }
    return line + 1;
}

size_t pc_source_line(const pc_source *source, const char *key_path) {
    yaml_parser_t parser;
    yaml_document_t document;
    size_t line = 1;
    if (!open_parser(source, &parser)) return line;
    if (yaml_parser_load(&parser, &document)) {
        line = find_line(&document, key_path);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return line;
}
