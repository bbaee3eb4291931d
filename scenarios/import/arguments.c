#include "scenarios/import/arguments.h"

#include "engine/alloc.h"
#include "scenarios/tree.h"
#include "storage/text.h"

#include <ctype.h>
#include <string.h>

void pc_arguments_free(pc_arguments *arguments) {
    for (int i = 0; i < arguments->count; i++) pc_free(arguments->list[i].value);
    pc_free(arguments->list);
    *arguments = (pc_arguments){.list = NULL};
}

/* "tensor-model-parallel-size" of "--tensor_model_parallel_size" and "trainer.strategy.tensor_model_parallel_size". */
static void write_name(const char *text, size_t length, char name[PC_ARGUMENT_NAME_SIZE]) {
    size_t size = 0, start = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '.') start = i + 1;
    while (start < length && text[start] == '-') start++;
    for (size_t i = start; i < length && size < PC_ARGUMENT_NAME_SIZE - 1; i++)
        name[size++] = (char)(text[i] == '_' ? '-' : tolower((unsigned char)text[i]));
    name[size] = '\0';
}

pc_code pc_arguments_add(pc_arguments *arguments, const char *name, size_t length, const char *value, unsigned line,
                         pc_error *error) {
    if (arguments->count == PC_ARGUMENTS_MAX)
        return pc_error_refuse(error, arguments->file, line, "", "too many arguments; expected at most %d",
                               PC_ARGUMENTS_MAX);
    if ((arguments->count & (arguments->count + 1)) == 0) { /* 0, 1, 3, 7, ...: twice the room, and one */
        size_t room = 2 * ((size_t)arguments->count + 1);
        pc_argument *list = pc_realloc(arguments->list, room, sizeof *list);
        if (!list) return pc_error_no_memory(error);
        arguments->list = list;
    }
    pc_argument *argument = &arguments->list[arguments->count];
    *argument = (pc_argument){.value = pc_strdup(value), .line = line};
    if (!argument->value) return pc_error_no_memory(error);
    write_name(name, length, argument->name);
    arguments->count++;
    return PC_OK;
}

/* ---- logs ---- */

static size_t span_of_dots(const char *text) {
    return strspn(text, ".");
}

/* "   name ........ value" of a line; what stands before the name does not count. */
static pc_code read_log_line(const char *text, size_t length, unsigned line, pc_arguments *arguments, pc_error *error) {
    char value[1024];
    size_t dots = 0;
    while (dots < length && (text[dots] != '.' || dots == 0 || text[dots - 1] != ' ' || span_of_dots(text + dots) < 2 ||
                             text[dots + span_of_dots(text + dots)] != ' '))
        dots++;
    if (dots >= length) return PC_OK;
    size_t end = dots - 1, after = dots + span_of_dots(text + dots);
    while (end > 0 && text[end - 1] == ' ') end--;
    size_t start = end;
    while (start > 0 && !isspace((unsigned char)text[start - 1])) start--;
    while (after < length && text[after] == ' ') after++;
    size_t size = after < length ? length - after : 0;
    while (size > 0 && isspace((unsigned char)text[after + size - 1])) size--;
    if (size >= sizeof value) size = sizeof value - 1;
    memcpy(value, text + after, size);
    value[size] = '\0';
    return end > start ? pc_arguments_add(arguments, text + start, end - start, value, line, error) : PC_OK;
}

/* Up to the end of the block, where that is said. */
static pc_code read_log(const char *text, unsigned line, pc_arguments *arguments, pc_error *error) {
    const char *end = strstr(text, "end of arguments");
    while (*text && (!end || text < end)) {
        size_t length = strcspn(text, "\n");
        pc_code code = read_log_line(text, length, line++, arguments, error);
        if (code) return code;
        text += length + (text[length] == '\n');
    }
    return PC_OK;
}

static const char *find_log(const pc_source *source, unsigned *line) {
    const char *block = strstr(source->text, " arguments ---");
    if (!block) return NULL;
    *line = 1;
    for (const char *c = source->text; c < block; c++) *line += *c == '\n';
    return block;
}

/* ---- YAML ---- */

/* A list of texts becomes one, with blanks between. */
static pc_code add_list(const pc_node *list, pc_arguments *arguments, pc_error *error) {
    pc_text value = {.data = NULL};
    for (const pc_node *entry = pc_node_first(list); entry < pc_node_end(list); entry = pc_node_end(entry))
        if (entry->text) pc_text_printf(&value, "%s%s", value.size ? " " : "", entry->text);
    pc_code code = value.failed ? pc_error_no_memory(error)
                                : pc_arguments_add(arguments, list->key, strlen(list->key),
                                                   value.data ? value.data : "", list->line, error);
    pc_text_free(&value);
    return code;
}

/* All values at any depth. */
static pc_code add_values(const pc_node *top, pc_arguments *arguments, pc_error *error) {
    pc_code code = PC_OK;
    for (const pc_node *node = pc_node_first(top); node < pc_node_end(top) && !code; node++) {
        if (!node->key) continue;
        if (node->kind == PC_NODE_LIST)
            code = add_list(node, arguments, error);
        else if (node->kind == PC_NODE_TEXT)
            code = pc_arguments_add(arguments, node->key, strlen(node->key), node->text, node->line, error);
    }
    return code;
}

static pc_code read_yaml(pc_source *source, pc_arguments *arguments, pc_error *error) {
    pc_tree tree = {.source = *source};
    *source = (pc_source){.text = NULL};
    pc_code code = pc_tree_build(&tree, error);
    if (!code) {
        const pc_node *own = pc_node_find(tree.nodes, "MODEL_ARGS");
        code = add_values(own ? own : tree.nodes, arguments, error);
    }
    pc_tree_free(&tree);
    return code;
}

/* ---- which of them it is ---- */

/* Whether a word of the text is an option and not a key of YAML: "--name value". */
static bool has_options(const char *text) {
    for (const char *c = strstr(text, "--"); c; c = strstr(c + 2, "--")) {
        size_t length = strspn(c + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
        bool begins = c == text || isspace((unsigned char)c[-1]) || strchr("(\"'", c[-1]);
        if (begins && length > 1 && isalpha((unsigned char)c[2]) && c[2 + length] != ':') return true;
    }
    return false;
}

static bool is_yaml(const char *text) {
    return strncmp(text, "MODEL_ARGS:", 11) == 0 || strstr(text, "\nMODEL_ARGS:") || !has_options(text);
}

pc_code pc_arguments_read(pc_source *source, pc_arguments *arguments, pc_error *error) {
    unsigned line;
    const char *log = find_log(source, &line);
    pc_code code;
    memcpy(arguments->file, source->name, sizeof arguments->file);
    if (log)
        code = read_log(log, line, arguments, error);
    else if (is_yaml(source->text))
        code = read_yaml(source, arguments, error);
    else
        code = pc_arguments_read_script(source, arguments, error);
    if (!code && arguments->count == 0)
        code = pc_error_refuse(error, arguments->file, 0, "",
                               "no arguments; expected options of a command line, a log's block of arguments, or YAML");
    pc_source_free(source);
    return code;
}
