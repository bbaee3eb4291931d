/* From documents to a scenario: names, sweep, cases. */
#include "scenarios/loaded.h"

#include "engine/alloc.h"
#include "scenarios/number_list.h"
#include "scenarios/sections.h"
#include "scenarios/units.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pc_place pc_loaded_place(const pc_scenario *scenario, const pc_document *document) {
    bool is_file = document == scenario->documents, has_file = pc_loaded_file(scenario)->source.is_file;
    pc_place place = pc_place_of_user();
    place.root = has_file ? scenario->folder : NULL;
    if (is_file) place.folder = scenario->folder;
    if (is_file && has_file) place.reach = PC_REACH_ROOT;
    if (scenario->allows_outside) place.reach = PC_REACH_ALL;
    return place;
}

/* A word to look for twice among many: a text, or a number where the text is NULL. */
typedef struct word {
    const char *text;
    int64_t number;
    int64_t index;
} word;

static int compare_words(const void *left, const void *right) {
    const word *a = left, *b = right;
    int order = a->text ? strcmp(a->text, b->text) : (a->number > b->number) - (a->number < b->number);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Finds the first word that stands in front of its like; false if all differ. Sorts. */
static bool find_twins(word *words, int64_t count, int64_t *first, int64_t *second) {
    bool found = false;
    qsort(words, (size_t)count, sizeof *words, compare_words);
    for (int64_t i = 1; i < count; i++) {
        const word *a = &words[i - 1], *b = &words[i];
        if (a->text ? strcmp(a->text, b->text) != 0 : a->number != b->number) continue;
        if (found && b->index > *second) continue;
        found = true;
        *first = a->index;
        *second = b->index;
    }
    return found;
}

pc_code pc_name_check(const pc_tree *tree, const pc_node *name, pc_error *error) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    static const char expected[] = "letters, digits, '.', '_' and '-', at most 127 of them";
    _Static_assert(PC_LABEL_SIZE == 128, "as `expected` says");
    const char *text = name->text;
    if (!text[0]) return pc_node_refuse(tree, name, error, "empty; expected %s", expected);
    if (text[strspn(text, allowed)])
        return pc_node_refuse(tree, name, error, "%.40s: not a name; expected %s", text, expected);
    if (strlen(text) >= PC_LABEL_SIZE)
        return pc_node_refuse(tree, name, error, "%.40s...: too long; expected %s", text, expected);
    return PC_OK;
}

/* Without a file there are but the sets: options of a command, mostly. */
static pc_code read_file(const char *path, const char *text, pc_source *source, pc_error *error) {
    static const char nothing[] = "scenario: flags\n";
    if (path && text) return pc_source_of_file(path, text, source, error);
    if (path) return pc_source_read(path, source, error);
    pc_code code = pc_source_from_text("options", nothing, source, error);
    source->is_file = false;
    return code;
}

static pc_code load_document(pc_document *document, pc_error *error) {
    pc_tree *tree = &document->tree;
    pc_code code = pc_tree_build(tree, error);
    if (!code) code = pc_schema_check(tree->source.is_file ? &pc_file_schema : &pc_set_schema, tree, error);
    if (code) return code;
    return pc_setting_parse(tree, pc_node_find(tree->nodes, "setting"), &document->setting, error);
}

/* The text that results keep of a scenario says what was set from outside too, in comments at its end. */
static pc_code write_sets_down(pc_scenario *scenario, const char *const *sets, int set_count, pc_error *error) {
    pc_source *source = &scenario->documents[0].tree.source;
    size_t size = source->size + 2;
    for (int i = 0; i < set_count; i++) size += strlen(sets[i]) + sizeof "# --set \n";
    char *text = pc_realloc(source->text, size, 1);
    if (!text) return pc_error_no_memory(error);
    source->text = text;
    if (set_count > 0 && source->size > 0 && text[source->size - 1] != '\n') text[source->size++] = '\n';
    text[source->size] = '\0';
    for (int i = 0; i < set_count; i++)
        source->size += (size_t)snprintf(text + source->size, size - source->size, "# --set %s\n", sets[i]);
    return PC_OK;
}

pc_code pc_loaded_read(pc_scenario *scenario, const char *path, const pc_scenario_options *options, pc_error *error) {
    const char *const *sets = options->sets;
    int set_count = options->set_count;
    scenario->allows_outside = options->allows_outside;
    scenario->documents = pc_alloc((size_t)set_count + 1, sizeof *scenario->documents);
    if (!scenario->documents) return pc_error_no_memory(error);
    scenario->document_count = set_count + 1;
    scenario->folder = path ? pc_source_folder(path) : pc_strdup(".");
    if (!scenario->folder) return pc_error_no_memory(error);
    pc_code code = read_file(path, options->text, &scenario->documents[0].tree.source, error);
    for (int i = 0; i < set_count && !code; i++)
        code = pc_source_from_set(sets[i], &scenario->documents[i + 1].tree.source, error);
    for (int i = 0; i <= set_count && !code; i++) code = load_document(&scenario->documents[i], error);
    if (!code) code = write_sets_down(scenario, sets, set_count, error);
    return code;
}

/* Titles may have several lines, as YAML writes them; anything else below a space may not stand in a result. */
static pc_code read_text(const pc_tree *tree, const char *key, const char **text, pc_error *error) {
    const pc_node *node = pc_node_find(tree->nodes, key);
    if (!node) return PC_OK;
    if (pc_source_has_controls(node->text, "\n\t"))
        return pc_node_refuse(tree, node, error, "has control characters; expected plain text");
    *text = node->text;
    return PC_OK;
}

static pc_code read_labels(pc_scenario *scenario, const pc_document *from, pc_error *error) {
    const char *source;
    const pc_node *name = pc_node_find(from->tree.nodes, "scenario");
    pc_code code = read_text(&from->tree, "title", &scenario->title, error);
    if (!code) code = read_text(&from->tree, "source", &source, error);
    if (!code && name) code = pc_name_check(&from->tree, name, error);
    if (!code && name) scenario->name = name->text;
    return code;
}

const pc_node *pc_sweep_node(const pc_document *document, pc_dimension dimension) {
    return pc_node_find(pc_node_find(document->tree.nodes, "sweep"), pc_dimension_rule_of(dimension)->name);
}

/* With ranges, of which none is an entry, the list itself is to blame. */
static pc_code check_sweep_differs(pc_dimension dimension, const pc_sweep_list *list, pc_error *error) {
    int64_t first = 0, second = 0;
    char index[32];
    const pc_tree *tree = &list->document->tree;
    const pc_node *node = pc_sweep_node(list->document, dimension);
    assert(list->values); /* every entry gave one at least */
    word *words = pc_alloc((size_t)list->count, sizeof *words);
    if (!words) return pc_error_no_memory(error);
    for (int64_t i = 0; i < list->count; i++) {
        const char *name = pc_value_name(pc_dimension_key(dimension), list->values[i]);
        words[i] = (word){name, name ? 0 : list->values[i].whole, i};
    }
    bool twins = find_twins(words, list->count, &first, &second);
    pc_free(words);
    if (!twins) return PC_OK;
    if (list->count > node->count)
        return pc_node_refuse(tree, node, error, "%" PRId64 " twice; expected values that differ",
                              list->values[second].whole);
    snprintf(index, sizeof index, "[%" PRId64 "]", second);
    node = pc_node_find(node, index);
    bool are_files = dimension == PC_DIMENSION_MODEL || dimension == PC_DIMENSION_MACHINE ||
                     dimension == PC_DIMENSION_PROFILE || dimension == PC_DIMENSION_SCHEDULE;
    if (are_files && list->values[first].text != list->values[second].text) /* a pointer, whatever to */
        return pc_node_refuse(tree, node, error,
                              "%s is what runs would call entry %" PRId64 " too; expected names that differ",
                              pc_value_name(pc_dimension_key(dimension), list->values[second]), first);
    return pc_node_refuse(tree, node, error, "the same as entry %" PRId64 "; expected values that differ", first);
}

/* A list as it grows; blocks grow by doubling. */
typedef struct growing_list {
    pc_sweep_list *list;
    int64_t room;
} growing_list;

static pc_code push_value(void *context, pc_value value, pc_error *error) {
    growing_list *to = context;
    pc_sweep_list *list = to->list;
    if (list->count == to->room) {
        int64_t room = to->room ? 2 * to->room : 16;
        pc_value *values = pc_realloc(list->values, (size_t)room, sizeof *values);
        if (!values) return pc_error_no_memory(error);
        list->values = values;
        to->room = room;
    }
    list->values[list->count++] = value;
    return PC_OK;
}

/* The values of one entry: one, or those of a range. */
static pc_code read_sweep_entry(pc_scenario *scenario, const pc_document *from, pc_dimension dimension,
                                const pc_node *entry, growing_list *to, pc_error *error) {
    pc_value value;
    pc_key key = pc_dimension_key(dimension);
    pc_place place = pc_loaded_place(scenario, from);
    pc_code code = pc_value_parse(key, entry->text, &value, error);
    if (!code) code = pc_reference_find(&scenario->references, key, &place, &value, error);
    return code ? pc_node_blame(&from->tree, entry, code, error) : push_value(to, value, error);
}

static pc_code read_sweep_entries(pc_scenario *scenario, const pc_document *from, pc_dimension dimension,
                                  const pc_node *list, growing_list *to, pc_error *error) {
    pc_key key = pc_dimension_key(dimension);
    unsigned index = 0;
    pc_code code = PC_OK;
    for (const pc_node *entry = pc_node_first(list); entry < pc_node_end(list) && !code; entry = pc_node_end(entry)) {
        if (!pc_key_is_whole(key))
            code = read_sweep_entry(scenario, from, dimension, entry, to, error);
        else
            code =
                pc_node_blame(&from->tree, entry, pc_number_entry_read(key, list, index, push_value, to, error), error);
        index++;
    }
    return code;
}

/* Whether a later document's setting takes the place of what was swept under this dimension before. */
static bool is_set_apart(const pc_document *from, pc_dimension dimension) {
    pc_key key = pc_dimension_key(dimension), alternative = pc_key_alternative(key);
    return pc_setting_has(&from->setting, key) ||
           (alternative != PC_KEYS && pc_setting_has(&from->setting, alternative));
}

/* A later document's list replaces the one before, and so does its setting: a set wins over what the file sweeps. */
static pc_code read_sweep_list(pc_scenario *scenario, const pc_document *from, pc_dimension dimension,
                               pc_error *error) {
    const pc_node *node = pc_sweep_node(from, dimension);
    pc_sweep_list *list = &scenario->sweep[dimension];
    bool replaced = from != scenario->documents && is_set_apart(from, dimension);
    if (!replaced && !node) return PC_OK;
    pc_free(list->values);
    *list = (pc_sweep_list){.count = 0};
    if (!node) return PC_OK;
    list->document = from;
    pc_code code = read_sweep_entries(scenario, from, dimension, node, &(growing_list){.list = list}, error);
    return code ? code : check_sweep_differs(dimension, list, error);
}

static pc_code read_sweep(pc_scenario *scenario, const pc_document *from, pc_error *error) {
    pc_code code = PC_OK;
    for (pc_dimension d = 0; d < PC_DIMENSIONS && !code; d++) code = read_sweep_list(scenario, from, d, error);
    return code;
}

/* Of two lists that say the same one would go unheard. */
static pc_code check_sweep_alternatives(const pc_scenario *scenario, pc_error *error) {
    static const pc_dimension pairs[][2] = {{PC_DIMENSION_PP, PC_DIMENSION_DEVICES},
                                            {PC_DIMENSION_GLOBAL_BATCH, PC_DIMENSION_MICROBATCHES}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const pc_sweep_list *list = &scenario->sweep[pairs[i][0]];
        if (!list->count || !scenario->sweep[pairs[i][1]].count) continue;
        return pc_node_refuse(&list->document->tree, pc_sweep_node(list->document, pairs[i][0]), error,
                              "stands beside sweep.%s; expected one of the two",
                              pc_dimension_rule_of(pairs[i][1])->name);
    }
    return PC_OK;
}

/* Of a document's setting, or of a case, which `node` is: what they name. A schedule alone is refused here. */
static pc_code find_references(pc_scenario *scenario, const pc_document *from, const pc_node *node, pc_setting *setting,
                               pc_error *error) {
    pc_place place = pc_loaded_place(scenario, from);
    pc_code code = pc_references_find(&scenario->references, &place, setting, error);
    return code ? pc_node_blame(&from->tree, pc_node_find(node, pc_key_path(PC_KEY_SCHEDULE)), code, error) : PC_OK;
}

static pc_code read_case(pc_scenario *scenario, const pc_node *node, pc_case *into, pc_error *error) {
    const pc_tree *tree = pc_loaded_file(scenario);
    const pc_node *name = pc_node_find(node, "name");
    into->name = name->text;
    pc_code code = pc_name_check(tree, name, error);
    if (!code) code = pc_setting_parse(tree, node, &into->setting, error);
    if (!code) code = find_references(scenario, scenario->documents, node, &into->setting, error);
    if (!code) code = pc_published_read(scenario, pc_node_find(node, "published"), into, error);
    return code;
}

static pc_code check_case_names(const pc_scenario *scenario, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    int64_t first = 0, second = 0;
    word *words = pc_alloc((size_t)scenario->case_count, sizeof *words);
    if (!words) return pc_error_no_memory(error);
    for (int64_t i = 0; i < scenario->case_count; i++) words[i] = (word){scenario->cases[i].name, 0, i};
    bool twins = find_twins(words, scenario->case_count, &first, &second);
    pc_free(words);
    if (!twins) return PC_OK;
    snprintf(path, sizeof path, "%s.name", scenario->cases[second].path);
    return pc_tree_refuse(pc_loaded_file(scenario), path, error,
                          "%.40s is the name of %s too; expected names that differ", scenario->cases[second].name,
                          scenario->cases[first].path);
}

/* A file without cases is one case, named as the scenario. */
static pc_code read_cases(pc_scenario *scenario, pc_error *error) {
    const pc_node *list = pc_node_find(pc_loaded_file(scenario)->nodes, "cases");
    unsigned count = list ? list->count : 1;
    scenario->cases = pc_alloc(count, sizeof *scenario->cases);
    if (!scenario->cases) return pc_error_no_memory(error);
    scenario->case_count = count;
    scenario->cases[0].name = scenario->name;
    snprintf(scenario->cases[0].path, sizeof scenario->cases[0].path, "setting");
    pc_code code = PC_OK;
    const pc_node *node = list ? pc_node_first(list) : NULL;
    for (unsigned i = 0; list && i < count && !code; i++, node = pc_node_end(node)) {
        snprintf(scenario->cases[i].path, sizeof scenario->cases[i].path, "cases[%u]", i);
        code = read_case(scenario, node, &scenario->cases[i], error);
    }
    return code ? code : check_case_names(scenario, error);
}

pc_code pc_loaded_build(pc_scenario *scenario, pc_error *error) {
    pc_code code = PC_OK;
    scenario->title = "";
    for (int i = 0; i < scenario->document_count && !code; i++) {
        pc_document *document = &scenario->documents[i];
        code = read_labels(scenario, document, error);
        const pc_node *setting = pc_node_find(document->tree.nodes, "setting");
        if (!code) code = find_references(scenario, document, setting, &document->setting, error);
        if (!code) code = read_sweep(scenario, document, error);
    }
    if (!code) code = check_sweep_alternatives(scenario, error);
    if (!code) code = read_cases(scenario, error);
    if (code) return code;
    return pc_figures_read(pc_loaded_file(scenario), &scenario->figures, &scenario->figure_count, error);
}
