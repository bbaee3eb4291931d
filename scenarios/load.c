/* From documents to a scenario: names, sweep, cases. */
#include "scenarios/loaded.h"

#include "engine/alloc.h"
#include "scenarios/number_list.h"
#include "scenarios/units.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pc_place pc_loaded_place(const pc_scenario *scenario, const pc_document *document) {
    bool is_file = document == scenario->documents, has_file = pc_loaded_file(scenario)->is_file;
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

/* Finds the first word that stands in front of its like; false where all differ. Sorts. */
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

pc_code pc_name_check(const pc_source *source, const char *path, const char *name, pc_error *error) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    static const char expected[] = "letters, digits, '.', '_' and '-', at most 127 of them";
    _Static_assert(PC_LABEL_SIZE == 128, "as `expected` says");
    if (!name[0]) return pc_source_refuse(source, path, error, "empty; expected %s", expected);
    if (name[strspn(name, allowed)])
        return pc_source_refuse(source, path, error, "%.40s: not a name; expected %s", name, expected);
    if (strlen(name) >= PC_LABEL_SIZE)
        return pc_source_refuse(source, path, error, "%.40s...: too long; expected %s", name, expected);
    return PC_OK;
}

/* Without a file there are but the sets: options of a command, mostly. */
static pc_code read_file(const char *path, pc_source *source, pc_error *error) {
    static const char nothing[] = "scenario: flags\n";
    if (path) return pc_source_read(path, source, error);
    pc_code code = pc_source_from_text("options", nothing, source, error);
    source->is_file = false;
    return code;
}

static pc_code load_document(pc_document *document, pc_error *error) {
    pc_code code = pc_source_scan(&document->source, error);
    if (!code) code = pc_raw_load(&document->source, &document->raw, error);
    if (!code)
        code = pc_setting_parse(&document->source, "setting", &document->raw->setting, &document->setting, error);
    return code;
}

/* The text that results keep of a scenario says what was set from outside too, in comments at its end. */
static pc_code write_sets_down(pc_scenario *scenario, const char *const *sets, int set_count, pc_error *error) {
    pc_source *source = &scenario->documents[0].source;
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

pc_code pc_loaded_read(pc_scenario *scenario, const char *path, const char *const *sets, int set_count,
                       pc_error *error) {
    scenario->documents = pc_alloc((size_t)set_count + 1, sizeof *scenario->documents);
    if (!scenario->documents) return pc_error_no_memory(error);
    scenario->document_count = set_count + 1;
    scenario->folder = path ? pc_source_folder(path) : pc_strdup(".");
    if (!scenario->folder) return pc_error_no_memory(error);
    pc_code code = read_file(path, &scenario->documents[0].source, error);
    for (int i = 0; i < set_count && !code; i++)
        code = pc_source_from_set(sets[i], &scenario->documents[i + 1].source, error);
    for (int i = 0; i <= set_count && !code; i++) code = load_document(&scenario->documents[i], error);
    if (!code) code = write_sets_down(scenario, sets, set_count, error);
    return code;
}

/* Titles may have several lines, as YAML writes them; anything else below a space may not stand in a result. */
static pc_code check_text(const pc_source *source, const char *path, const char *text, pc_error *error) {
    if (text && pc_source_has_controls(text, "\n\t"))
        return pc_source_refuse(source, path, error, "has control characters; expected plain text");
    return PC_OK;
}

static pc_code read_labels(pc_scenario *scenario, const pc_document *from, pc_error *error) {
    const pc_raw_scenario *raw = from->raw;
    pc_code code = check_text(&from->source, "title", raw->title, error);
    if (!code) code = check_text(&from->source, "source", raw->source, error);
    if (!code && raw->scenario) code = pc_name_check(&from->source, "scenario", raw->scenario, error);
    if (code) return code;
    if (raw->scenario) scenario->name = raw->scenario;
    if (raw->title) scenario->title = raw->title;
    return PC_OK;
}

static pc_code check_sweep_differs(const pc_source *source, pc_dimension dimension, const pc_sweep_list *list,
                                   pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    int64_t first = 0, second = 0;
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
    snprintf(path, sizeof path, "sweep.%s[%" PRId64 "]", pc_dimension_rule_of(dimension)->name, second);
    if (list->count > list->document->raw->sweep[dimension].text_count) { /* with ranges, of which none is an entry */
        snprintf(path, sizeof path, "sweep.%s", pc_dimension_rule_of(dimension)->name);
        return pc_source_refuse(source, path, error, "%" PRId64 " twice; expected values that differ",
                                list->values[second].whole);
    }
    bool are_files = dimension == PC_DIMENSION_MODEL || dimension == PC_DIMENSION_MACHINE ||
                     dimension == PC_DIMENSION_PROFILE || dimension == PC_DIMENSION_SCHEDULE;
    if (are_files && list->values[first].text != list->values[second].text) /* a pointer, whatever to */
        return pc_source_refuse(source, path, error,
                                "%s is what runs would call entry %" PRId64 " too; expected names that differ",
                                pc_value_name(pc_dimension_key(dimension), list->values[second]), first);
    return pc_source_refuse(source, path, error, "the same as entry %" PRId64 "; expected values that differ", first);
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
static pc_code read_sweep_entry(pc_scenario *scenario, const pc_document *from, pc_dimension dimension, unsigned index,
                                growing_list *to, pc_error *error) {
    pc_error cause = {0};
    pc_value value;
    char path[PC_KEY_PATH_SIZE];
    const pc_raw_list *raw = &from->raw->sweep[dimension];
    const pc_dimension_rule *rule = pc_dimension_rule_of(dimension);
    pc_code code;
    if (pc_key_is_whole(rule->key)) {
        code = pc_number_entry_read(rule->key, raw, index, push_value, to, &cause);
    } else {
        code = pc_value_parse(rule->key, raw->text[index], &value, &cause);
        pc_place place = pc_loaded_place(scenario, from);
        if (!code) code = pc_reference_find(&scenario->references, rule->key, &place, &value, &cause);
        if (!code) code = push_value(to, value, &cause);
    }
    if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
    if (code == PC_ERROR_IO) return pc_error_set(error, code, "%s", cause.message);
    if (!code) return PC_OK;
    snprintf(path, sizeof path, "sweep.%s[%u]", rule->name, index);
    return pc_source_refuse(&from->source, path, error, "%s", cause.message);
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
    const pc_raw_list *raw = &from->raw->sweep[dimension];
    pc_sweep_list *list = &scenario->sweep[dimension];
    bool replaced = from != scenario->documents && is_set_apart(from, dimension);
    if (!replaced && !raw->text) return PC_OK;
    pc_free(list->values);
    *list = (pc_sweep_list){.count = 0};
    if (!raw->text) return PC_OK;
    list->document = from;
    growing_list to = {.list = list};
    pc_code code = PC_OK;
    for (unsigned i = 0; i < raw->text_count && !code; i++)
        code = read_sweep_entry(scenario, from, dimension, i, &to, error);
    return code ? code : check_sweep_differs(&from->source, dimension, list, error);
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
        char path[PC_KEY_PATH_SIZE];
        snprintf(path, sizeof path, "sweep.%s", pc_dimension_rule_of(pairs[i][0])->name);
        return pc_source_refuse(&list->document->source, path, error, "stands beside sweep.%s; expected one of the two",
                                pc_dimension_rule_of(pairs[i][1])->name);
    }
    return PC_OK;
}

/* Of a document's setting, or of a case: what they name. A schedule alone is refused here. */
static pc_code find_references(pc_scenario *scenario, const pc_document *from, const char *prefix, pc_setting *setting,
                               pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    pc_error cause = {0};
    pc_place place = pc_loaded_place(scenario, from);
    pc_code code = pc_references_find(&scenario->references, &place, setting, &cause);
    if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
    if (code != PC_ERROR_INPUT) return code ? pc_error_set(error, code, "%s", cause.message) : PC_OK;
    snprintf(path, sizeof path, "%s.%s", prefix, pc_key_path(PC_KEY_SCHEDULE));
    return pc_source_refuse(&from->source, path, error, "%s", cause.message);
}

static pc_code read_case(pc_scenario *scenario, unsigned index, const pc_raw_case *raw, pc_case *into,
                         pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    const pc_source *source = pc_loaded_file(scenario);
    snprintf(into->path, sizeof into->path, "cases[%u]", index);
    snprintf(path, sizeof path, "%s.name", into->path);
    into->name = raw->name;
    pc_code code = pc_name_check(source, path, raw->name, error);
    if (!code) code = pc_setting_parse(source, into->path, &raw->setting, &into->setting, error);
    if (!code) code = find_references(scenario, scenario->documents, into->path, &into->setting, error);
    if (!code) code = pc_published_read(scenario, raw, into, error);
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
    return pc_source_refuse(pc_loaded_file(scenario), path, error,
                            "%.40s is the name of %s too; expected names that differ", scenario->cases[second].name,
                            scenario->cases[first].path);
}

/* A file without cases is one case, named as the scenario. */
static pc_code read_cases(pc_scenario *scenario, pc_error *error) {
    const pc_raw_scenario *raw = scenario->documents[0].raw;
    unsigned count = raw->cases_count;
    scenario->cases = pc_alloc(count ? count : 1, sizeof *scenario->cases);
    if (!scenario->cases) return pc_error_no_memory(error);
    scenario->case_count = count ? count : 1;
    scenario->cases[0].name = scenario->name;
    snprintf(scenario->cases[0].path, sizeof scenario->cases[0].path, "setting");
    pc_code code = PC_OK;
    for (unsigned i = 0; i < count && !code; i++)
        code = read_case(scenario, i, &raw->cases[i], &scenario->cases[i], error);
    return code ? code : check_case_names(scenario, error);
}

pc_code pc_loaded_build(pc_scenario *scenario, pc_error *error) {
    pc_code code = PC_OK;
    scenario->title = "";
    for (int i = 0; i < scenario->document_count && !code; i++) {
        pc_document *document = &scenario->documents[i];
        code = read_labels(scenario, document, error);
        if (!code) code = find_references(scenario, document, "setting", &document->setting, error);
        if (!code) code = read_sweep(scenario, document, error);
    }
    if (!code) code = check_sweep_alternatives(scenario, error);
    if (!code) code = read_cases(scenario, error);
    if (code) return code;
    return pc_figures_read(pc_loaded_file(scenario), scenario->documents[0].raw, &scenario->figures,
                           &scenario->figure_count, error);
}
