/* The list of keys against the schemas themselves: nothing is left out, nothing is made up, nothing is cut. */
#include "engine/alloc.h"
#include "scenarios/key_list.h"
#include "scenarios/sections.h"
#include "scenarios/setting.h"
#include "tests/support.h"

enum { PATHS_MAX = 1000, PATH_LENGTH = 128 };

/* Every path in a schema: "cases[].published[].mfu". */
typedef struct path_list {
    char path[PATHS_MAX][PATH_LENGTH];
    int count;
} path_list;

static bool contains(const path_list *paths, const char *path);

static void add(path_list *paths, const char *path) {
    if (contains(paths, path)) return; /* a mapping that several paths have in common */
    assert_true(paths->count < PATHS_MAX);
    snprintf(paths->path[paths->count++], PATH_LENGTH, "%s", path);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as our own schemas */
static void collect(const pc_schema *schema, const char *parent, path_list *paths) {
    char path[PATH_LENGTH], inner[PATH_LENGTH];
    for (int i = 0; i < schema->count; i++) {
        pc_schema_field field = pc_schema_field_at(schema, i);
        snprintf(path, sizeof path, "%s%s%s", parent, *parent ? "." : "", field.path);
        for (const char *dot = strchr(path + strlen(parent) + 1, '.'); dot; dot = strchr(dot + 1, '.')) {
            snprintf(inner, sizeof inner, "%.*s", (int)(dot - path), path);
            add(paths, inner);
        }
        add(paths, path);
        snprintf(inner, sizeof inner, "%.100s%s", path, field.is_list ? "[]" : "");
        if (field.schema) collect(field.schema, inner, paths);
    }
}

static bool contains(const path_list *paths, const char *path) {
    for (int i = 0; i < paths->count; i++)
        if (strcmp(paths->path[i], path) == 0) return true;
    return false;
}

/* In which section messages and readers find the path, and what is left of it there. */
static const char *cut(const char *path, pc_key_section *section) {
    static const struct {
        const char *start;
        pc_key_section section;
    } starts[] = {{"setting.", PC_KEYS_OF_SETTING}, {"sweep.", PC_KEYS_OF_SWEEP},
                  {"plan.", PC_KEYS_OF_PLAN},       {"cases[].published[].", PC_KEYS_OF_PUBLISHED},
                  {"cases[].", PC_KEYS_OF_CASE},    {"figures[].", PC_KEYS_OF_FIGURE}};
    *section = PC_KEYS_OF_FILE;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t length = strlen(starts[i].start);
        if (strncmp(path, starts[i].start, length) != 0) continue;
        *section = starts[i].section;
        path += length;
        break;
    }
    bool of_case = *section == PC_KEYS_OF_CASE && strcmp(path, "name") != 0 && strcmp(path, "published") != 0;
    if (of_case) *section = PC_KEYS_OF_SETTING;
    return path;
}

typedef struct key_list {
    pc_scenario_key *keys;
    int count;
} key_list;

static key_list make_list(void) {
    key_list list;
    assert_int_equal(pc_scenario_keys(&list.keys, &list.count, NULL), PC_OK);
    return list;
}

static const pc_scenario_key *find(const key_list *list, pc_key_section section, const char *path) {
    const pc_scenario_key *found = NULL;
    for (int i = 0; i < list->count; i++) {
        if (list->keys[i].section != section || strcmp(list->keys[i].path, path) != 0) continue;
        if (found) fail_msg("%s stands twice", path);
        found = &list->keys[i];
    }
    return found;
}

static void assert_described(const key_list *list, pc_key_section section, const char *path) {
    const pc_scenario_key *key = find(list, section, path);
    if (!key) fail_msg("%s is not in the list", path);
    if (!key->description[0]) fail_msg("%s has no description", path);
    if (!key->value[0] || !key->otherwise[0]) fail_msg("%s has no value, or no default", path);
}

/* ---- all of the schema, and nothing else ---- */

static void test_every_key_is_described(void **state) {
    (void)state;
    static path_list paths;
    key_list list = make_list();
    paths.count = 0;
    collect(&pc_file_schema, "", &paths);
    assert_true(paths.count > 200);
    for (int i = 0; i < paths.count; i++) {
        pc_key_section section;
        const char *path = cut(paths.path[i], &section);
        assert_described(&list, section, path);
    }
    pc_scenario_keys_free(list.keys);
}

/* A model's file has three keys of its own, and else those of `model` in a setting. */
static void test_model_files(void **state) {
    (void)state;
    static path_list paths;
    char path[PATH_LENGTH + 8];
    key_list list = make_list();
    paths.count = 0;
    collect(&pc_model_file_schema, "", &paths);
    assert_true(paths.count > 20);
    for (int i = 0; i < paths.count; i++) {
        bool is_own = strcmp(paths.path[i], "model") == 0 || strcmp(paths.path[i], "title") == 0 ||
                      strcmp(paths.path[i], "source") == 0;
        snprintf(path, sizeof path, "%s%s", is_own ? "" : "model.", paths.path[i]);
        assert_described(&list, is_own ? PC_KEYS_OF_MODEL_FILE : PC_KEYS_OF_SETTING, path);
    }
    pc_scenario_keys_free(list.keys);
}

static void test_every_description_has_a_key(void **state) {
    (void)state;
    static const char *const starts[PC_KEY_SECTIONS] = {
        "", "setting.", "sweep.", "plan.", "cases[].", "cases[].published[].", "figures[].", ""};
    static path_list scenarios, models;
    key_list list = make_list();
    scenarios.count = models.count = 0;
    collect(&pc_file_schema, "", &scenarios);
    collect(&pc_model_file_schema, "", &models);
    for (int i = 0; i < list.count; i++) {
        char path[PATH_LENGTH];
        const pc_scenario_key *key = &list.keys[i];
        const path_list *paths = key->section == PC_KEYS_OF_MODEL_FILE ? &models : &scenarios;
        snprintf(path, sizeof path, "%s%s", starts[key->section], key->path);
        if (!contains(paths, path)) fail_msg("%s is described, and no key", path);
        find(&list, key->section, key->path); /* once */
    }
    pc_scenario_keys_free(list.keys);
}

/* ---- what stands there ---- */

/* A cell of a Markdown table, on one line and whole. */
static void assert_cell(const char *text, size_t size) {
    if (strlen(text) + 1 >= size) fail_msg("cut short: %s", text);
    assert_null(strpbrk(text, "|\n"));
    int quotes = 0;
    for (const char *c = text; *c; c++) quotes += *c == '`';
    assert_int_equal(quotes % 2, 0);
}

static void test_cells(void **state) {
    (void)state;
    key_list list = make_list();
    for (int i = 0; i < list.count; i++) {
        assert_cell(list.keys[i].path, sizeof list.keys[i].path);
        assert_cell(list.keys[i].value, sizeof list.keys[i].value);
        assert_cell(list.keys[i].otherwise, sizeof list.keys[i].otherwise);
        assert_cell(list.keys[i].description, sizeof list.keys[i].description);
    }
    pc_scenario_keys_free(list.keys);
}

/* All words that a value lists between backquotes can be read; one more letter makes them wrong. */
static void assert_words_parse(pc_key key, const char *value) {
    char word[64];
    pc_value parsed;
    for (const char *c = strchr(value, '`'); c; c = strchr(strchr(c + 1, '`') + 1, '`')) {
        size_t length = strcspn(c + 1, "`");
        snprintf(word, sizeof word, "%.*s", (int)length, c + 1);
        if (strchr(word, '"')) continue; /* a list */
        if (pc_value_parse(key, word, &parsed, NULL)) fail_msg("%s: %s cannot be read", pc_key_path(key), word);
        strcat(word, "x");
        assert_int_equal(pc_value_parse(key, word, &parsed, NULL), PC_ERROR_INPUT);
    }
}

static void assert_range_is_kept(pc_key key, const char *value) {
    long long least, most;
    char number[32];
    pc_value parsed;
    if (sscanf(value, "whole number, %lld to %lld", &least, &most) != 2) return;
    if (strstr(value, " to 2^31 - 1")) most = INT32_MAX;
    const struct {
        long long number;
        pc_code code;
    } cases[] = {{least - 1, PC_ERROR_INPUT}, {least, PC_OK}, {most, PC_OK}, {most + 1, PC_ERROR_INPUT}};
    for (int i = 0; i < 4; i++) {
        snprintf(number, sizeof number, "%lld", cases[i].number);
        assert_int_equal(pc_value_parse(key, number, &parsed, NULL), cases[i].code);
    }
}

static void test_values_are_what_is_read(void **state) {
    (void)state;
    int ranges = 0, words = 0;
    key_list list = make_list();
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_scenario_key *found = find(&list, PC_KEYS_OF_SETTING, pc_key_path(key));
        bool has_words = strchr(found->value, '`') && !strstr(found->value, "pipecast") && key != PC_KEY_RANK_ORDER;
        assert_range_is_kept(key, found->value);
        if (has_words) assert_words_parse(key, found->value);
        ranges += strncmp(found->value, "whole number, ", 14) == 0;
        words += has_words;
    }
    assert_true(ranges > 20 && words > 20);
    pc_scenario_keys_free(list.keys);
}

static void test_some(void **state) {
    (void)state;
    key_list list = make_list();
    const pc_scenario_key *key = find(&list, PC_KEYS_OF_SETTING, "devices");
    assert_string_equal(key->value, "whole number, 1 to 65536");
    assert_int_equal(key->use, PC_KEY_FOR_ALL);
    assert_int_equal(find(&list, PC_KEYS_OF_SETTING, "transfer")->use, PC_KEY_FOR_TIMES);
    assert_int_equal(find(&list, PC_KEYS_OF_SETTING, "stages[].F")->use, PC_KEY_FOR_TIMES);
    assert_int_equal(find(&list, PC_KEYS_OF_SETTING, "overlap")->use, PC_KEY_FOR_CLUSTERS);
    assert_int_equal(find(&list, PC_KEYS_OF_SETTING, "tp")->use, PC_KEY_FOR_CLUSTERS);
    assert_string_equal(find(&list, PC_KEYS_OF_SETTING, "making")->value,
                        "`costs`, `equal`, `published`, `torch` or `megatron`");
    assert_string_equal(find(&list, PC_KEYS_OF_SETTING, "pass_overhead")->value, "number, 0 to 1000");
    assert_string_equal(find(&list, PC_KEYS_OF_SWEEP, "memory")->value, "list: size, more than zero");
    assert_string_equal(find(&list, PC_KEYS_OF_SWEEP, "seq_len")->description,
                        "values of `model.seq_len`; in names of runs `.s<value>`");
    assert_string_equal(find(&list, PC_KEYS_OF_PLAN, "zero")->value,
                        "list: whole number, 0 to 3, or a range such as `0..3`");
    assert_string_equal(find(&list, PC_KEYS_OF_PLAN, "overlap.tp")->value, "list: `true` or `false`");
    assert_string_equal(find(&list, PC_KEYS_OF_FIGURE, "y")->value, "list of 1 to 4 columns");
    assert_string_equal(find(&list, PC_KEYS_OF_FIGURE, "style")->value, "`points`, `lines` or `bars`");
    assert_string_equal(find(&list, PC_KEYS_OF_FIGURE, "x")->otherwise, "required");
    assert_string_equal(find(&list, PC_KEYS_OF_PUBLISHED, "mfu")->value, "number, 0 to 1");
    assert_string_equal(find(&list, PC_KEYS_OF_CASE, "published")->value, "list of published figures");
    pc_scenario_keys_free(list.keys);
}

static void test_no_memory(void **state) {
    (void)state;
    pc_error error;
    pc_scenario_key *keys = NULL;
    int count = -1;
    pc_alloc_fail_after(0);
    assert_int_equal(pc_scenario_keys(&keys, &count, &error), PC_ERROR_NO_MEMORY);
    pc_alloc_fail_after(-1);
    assert_null(keys);
    assert_int_equal(count, -1);
    pc_scenario_keys_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_is_described),
        cmocka_unit_test(test_model_files),
        cmocka_unit_test(test_every_description_has_a_key),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_values_are_what_is_read),
        cmocka_unit_test(test_some),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
