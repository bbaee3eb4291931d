#include "scenarios/import/foreign.h"

#include "engine/alloc.h"
#include "scenarios/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_surrogate(const char *digits) {
    bool is_high = (digits[0] == 'd' || digits[0] == 'D') && strchr("89abcdefABCDEF", digits[1]) && digits[1];
    return is_high && isxdigit((unsigned char)digits[2]) && isxdigit((unsigned char)digits[3]);
}

/* A backslash before it escapes the next one, and begins nothing. */
static void replace_surrogates(char *text) {
    for (char *c = strchr(text, '\\'); c && c[1]; c = strchr(c + 2, '\\'))
        if (c[1] == 'u' && is_surrogate(c + 2)) {
            c[2] = c[3] = c[4] = 'f';
            c[5] = 'd';
        }
}

pc_code pc_foreign_read(pc_tree *tree, const char *what, pc_error *error) {
    replace_surrogates(tree->source.text);
    pc_code code = pc_tree_build(tree, error);
    if (code) return code;
    if (tree->nodes[0].kind != PC_NODE_MAPPING)
        return pc_node_refuse(tree, tree->nodes, error, "no mapping of keys; expected %s", what);
    return pc_foreign_check_keys(tree, error);
}

static int compare_keys(const void *left, const void *right) {
    const pc_node *const *a = left, *const *b = right;
    int order = strcmp((*a)->key, (*b)->key);
    return order ? order : (*a > *b) - (*a < *b);
}

/* `room` has as many places as the mapping has keys, at least. */
static pc_code check_mapping(const pc_tree *tree, const pc_node *mapping, const pc_node **room, pc_error *error) {
    size_t count = 0;
    for (const pc_node *child = pc_node_first(mapping); child < pc_node_end(mapping); child = pc_node_end(child))
        room[count++] = child;
    qsort(room, count, sizeof *room, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (strcmp(room[i - 1]->key, room[i]->key) == 0)
            return pc_node_refuse(tree, room[i], error, "twice in one mapping; expected every key once");
    return PC_OK;
}

pc_code pc_foreign_check_keys(const pc_tree *tree, pc_error *error) {
    const pc_node **room = pc_alloc(tree->node_count, sizeof *room);
    if (!room) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (size_t i = 0; i < tree->node_count && !code; i++)
        if (tree->nodes[i].kind == PC_NODE_MAPPING) code = check_mapping(tree, &tree->nodes[i], room, error);
    pc_free(room);
    return code;
}

static bool is_null(const pc_node *node) {
    return node->text && (node->text[0] == '\0' || strcmp(node->text, "null") == 0 || strcmp(node->text, "None") == 0 ||
                          strcmp(node->text, "~") == 0);
}

const pc_node *pc_foreign_find(const pc_node *mapping, const char *names) {
    char name[128];
    while (mapping && *names) {
        size_t length = strcspn(names, "|");
        if (length < sizeof name) {
            memcpy(name, names, length);
            name[length] = '\0';
            const pc_node *node = pc_node_find(mapping, name);
            if (node && !is_null(node)) return node;
        }
        names += length + (names[length] == '|');
    }
    return NULL;
}

bool pc_foreign_says(const pc_node *node) {
    if (!node) return false;
    if (node->kind != PC_NODE_TEXT) return node->count > 0;
    return !is_null(node) && strcasecmp(node->text, "false") != 0 && strcmp(node->text, "0") != 0 &&
           strcmp(node->text, "0.0") != 0;
}

const char *pc_foreign_text(const pc_node *node) {
    return node && node->text ? node->text : "";
}

const char *pc_foreign_sort_of(const char *key) {
    static const char *const sorts[][2] = {
        {"architectures|num_hidden_layers|torch_dtype|transformers_version",
         "a config.json of Hugging Face (pipecast import hf reads it)"},
        {"zero_optimization|train_micro_batch_size_per_gpu|train_batch_size|gradient_accumulation_steps",
         "a configuration of DeepSpeed (pipecast import deepspeed reads it)"},
        {"tensor_model_parallel_size|pipeline_model_parallel_size|micro_batch_size|num_layers|global_batch_size",
         "a recipe of NeMo or arguments of Megatron-LM (pipecast import nemo or megatron reads them)"},
        {"traceEvents", "a trace of PyTorch's profiler (pipecast import kineto reads it)"},
        {"scenario|setting", "a scenario of pipecast (pipecast run reads it)"}};
    char name[64];
    snprintf(name, sizeof name, "%s", key);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
        if (pc_foreign_is_one_of(name, strlen(name), sorts[i][0])) return sorts[i][1];
    return NULL;
}

pc_code pc_foreign_count(const pc_tree *tree, const pc_node *node, int64_t least, int64_t most, int64_t *number,
                         pc_error *error) {
    const char *text = node->text ? node->text : "";
    size_t digits = strspn(text, "0123456789");
    bool is_whole = digits > 0 && digits <= 18 && (text[digits] == '\0' || strcmp(text + digits, ".0") == 0);
    int64_t made = is_whole ? strtoll(text, NULL, 10) : -1;
    if (!is_whole || made < least || made > most)
        return pc_node_refuse(tree, node, error, "%.40s; expected a whole number, %" PRId64 " to %" PRId64,
                              node->text ? text : "a list or mapping", least, most);
    *number = made;
    return PC_OK;
}

pc_code pc_foreign_number(const pc_tree *tree, const pc_node *node, double *number, pc_error *error) {
    double made;
    if (!node->text || pc_parse_number(node->text, &made, NULL) || !isfinite(made))
        return pc_node_refuse(tree, node, error, "%.40s; expected a number",
                              node->text ? node->text : "a list or mapping");
    *number = made;
    return PC_OK;
}

pc_code pc_foreign_switch(const pc_tree *tree, const pc_node *node, bool *is_true, pc_error *error) {
    const char *text = node->text ? node->text : "";
    bool yes = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return pc_node_refuse(tree, node, error, "%.40s; expected true or false",
                              node->text ? text : "a list or mapping");
    *is_true = yes;
    return PC_OK;
}

bool pc_foreign_is_one_of(const char *text, size_t length, const char *words) {
    while (*words) {
        size_t size = strcspn(words, "|");
        if (size == length && memcmp(words, text, size) == 0) return true;
        words += size + (words[size] == '|');
    }
    return false;
}
