/* The charts that a scenario declares under `figures`. */
#include "scenarios/loaded.h"

#include "engine/alloc.h"
#include "scenarios/sections.h"
#include "scenarios/units.h"

#include <stddef.h>
#include <string.h>

enum { TEXT_MAX = 255 };  /* bytes: what fits above a picture */
#define NO_PLACE SIZE_MAX /* of what is no text there */

/* What stands in a figure, and where it goes. */
static const struct figure_rule {
    pc_schema_field field;
    size_t place;
} rules[] = {
#define TEXT(key)                                                                                                      \
    { {.path = #key}, offsetof(pc_scenario_figure, key) }
#define REQUIRED(key)                                                                                                  \
    { {.path = #key, .is_required = true}, offsetof(pc_scenario_figure, key) }
#define LIST(key, required)                                                                                            \
    {                                                                                                                  \
        {.path = #key, .is_required = required, .is_list = true, .least = 1, .most = PC_SCENARIO_FIGURE_Y_MAX},        \
            offsetof(pc_scenario_figure, key)                                                                          \
    }
    REQUIRED(name),
    TEXT(title),
    REQUIRED(x),
    LIST(y, true),
    TEXT(series),
    TEXT(panels),
    TEXT(style),
    TEXT(x_label),
    LIST(y_label, false),
    TEXT(x_range),
    LIST(y_range, false),
    TEXT(log),
    {{.path = "published"}, NO_PLACE},
    {{.path = "dark"}, NO_PLACE},
};
enum { RULES = sizeof rules / sizeof *rules };

static pc_schema_field field(int index) {
    return rules[index].field;
}
const pc_schema pc_figure_schema = {.count = RULES, .field = field};

static pc_code check_line(const pc_tree *tree, const pc_node *node, pc_error *error) {
    const char *text = node->text;
    if (!*text) return pc_node_refuse(tree, node, error, "empty; expected one line of text");
    if (pc_source_has_controls(text, ""))
        return pc_node_refuse(tree, node, error, "has control characters; expected one line of text");
    if (strlen(text) > TEXT_MAX)
        return pc_node_refuse(tree, node, error, "%.40s...: too long; expected at most %d bytes", text, TEXT_MAX);
    return PC_OK;
}

/* A text, or all of a list. */
static pc_code take_texts(const pc_tree *tree, const pc_node *node, const char **texts, pc_error *error) {
    const pc_node *first = node->kind == PC_NODE_LIST ? pc_node_first(node) : node;
    pc_code code = PC_OK;
    for (const pc_node *text = first; text < pc_node_end(node) && !code; text++) {
        code = check_line(tree, text, error);
        *texts++ = text->text;
    }
    return code;
}

/* As many as columns, or fewer. */
static pc_code check_list(const pc_tree *tree, const pc_node *node, const char *key, const char *what,
                          pc_error *error) {
    const pc_node *y = pc_node_find(node, "y"), *list = pc_node_find(node, key);
    if (!list || list->count <= y->count) return PC_OK;
    return pc_node_refuse(tree, list, error, "%u %s for %u columns; expected at most one a column of y", list->count,
                          what, y->count);
}

static pc_code read_switch(const pc_tree *tree, const pc_node *node, const char *key, bool *is_on, pc_error *error) {
    const pc_node *given = pc_node_find(node, key);
    pc_code code = given ? check_line(tree, given, error) : PC_OK;
    if (code || !given) return code;
    return pc_node_blame(tree, given, pc_parse_switch(given->text, is_on, error), error);
}

static pc_code check_style(const pc_tree *tree, const pc_node *node, pc_error *error) {
    int64_t word;
    const pc_node *style = pc_node_find(node, "style");
    return style ? pc_node_blame(tree, style, pc_word_parse(PC_FIGURE_STYLES, style->text, &word, error), error)
                 : PC_OK;
}

static pc_code check_name(const pc_tree *tree, const pc_node *node, const pc_scenario_figure *before, int count,
                          pc_error *error) {
    const pc_node *name = pc_node_find(node, "name");
    pc_code code = pc_name_check(tree, name, error);
    if (code) return code;
    for (int i = 0; i < count; i++)
        if (strcmp(before[i].name, name->text) == 0)
            return pc_node_refuse(tree, name, error, "%.40s is the name of figures[%d] too; expected names that differ",
                                  name->text, i);
    return PC_OK;
}

static pc_code read_figure(const pc_tree *tree, const pc_node *node, pc_scenario_figure *figure, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < RULES && !code; i++) {
        const pc_node *value = pc_node_find(node, rules[i].field.path);
        if (!value || rules[i].place == NO_PLACE) continue;
        code = take_texts(tree, value, (const char **)((char *)figure + rules[i].place), error);
    }
    if (!code) code = check_list(tree, node, "y_label", "labels", error);
    if (!code) code = check_list(tree, node, "y_range", "ranges", error);
    if (!code) code = check_style(tree, node, error);
    if (!code) code = read_switch(tree, node, "published", &figure->published, error);
    if (!code) code = read_switch(tree, node, "dark", &figure->is_dark, error);
    figure->y_count = (int)pc_node_find(node, "y")->count;
    return code;
}

pc_code pc_figures_read(const pc_tree *tree, pc_scenario_figure **figures, int *count, pc_error *error) {
    const pc_node *list = pc_node_find(tree->nodes, "figures");
    if (!list) return *figures = NULL, *count = 0, PC_OK;
    pc_scenario_figure *made = pc_alloc(list->count, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    int made_count = 0;
    pc_code code = PC_OK;
    for (const pc_node *node = pc_node_first(list); node < pc_node_end(list) && !code; node = pc_node_end(node)) {
        code = check_name(tree, node, made, made_count, error);
        if (!code) code = read_figure(tree, node, &made[made_count++], error);
    }
    if (code) {
        pc_free(made);
        return code;
    }
    *figures = made;
    *count = made_count;
    return PC_OK;
}

const pc_scenario_figure *pc_scenario_figures(const pc_scenario *scenario, int *count) {
    *count = scenario->figure_count;
    return scenario->figures;
}

/* ---- of a text alone ---- */

/* What a list of figures borrows its texts from. */
typedef struct figures_owner {
    pc_tree tree;
    pc_scenario_figure *figures;
} figures_owner;

static void free_owner(figures_owner *owner) {
    if (!owner) return;
    pc_free(owner->figures);
    pc_tree_free(&owner->tree);
    pc_free(owner);
}

static pc_code load_text(const char *text, size_t size, const char *name, figures_owner *owner, int *count,
                         pc_error *error) {
    pc_code code = pc_source_from_bytes(name, text, size, &owner->tree.source, error);
    if (!code) code = pc_tree_build(&owner->tree, error);
    if (!code) code = pc_schema_check_known(&pc_figures_schema, &owner->tree, error);
    if (!code) code = pc_figures_read(&owner->tree, &owner->figures, count, error);
    return code;
}

pc_code pc_scenario_figures_read(const char *text, size_t size, const char *name, pc_scenario_figures_list *list,
                                 pc_error *error) {
    int count;
    figures_owner *owner = pc_alloc(1, sizeof *owner);
    if (!owner) return pc_error_no_memory(error);
    pc_code code = load_text(text, size, name, owner, &count, error);
    if (code) {
        free_owner(owner);
        return code;
    }
    *list = (pc_scenario_figures_list){.figures = owner->figures, .count = count, .owner = owner};
    return PC_OK;
}

void pc_scenario_figures_free(pc_scenario_figures_list *list) {
    free_owner(list->owner);
    *list = (pc_scenario_figures_list){.count = 0};
}
