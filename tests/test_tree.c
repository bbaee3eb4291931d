/* A YAML text as a tree of nodes: kinds, texts, lines and paths; and the check of a tree against a schema. */
#include "engine/alloc.h"
#include "scenarios/schema.h"
#include "tests/support.h"

static const char text[] = "# a comment\n"
                           "name: x\n"
                           "times:\n"
                           "  F: 1 ms\n"
                           "  B: \"2\\\n"
                           "    \\u00b5s\"\n"
                           "list: [a, {b: c,\n"
                           "  d: e}, [f]]\n"
                           "empty:\n";

static pc_tree build(const char *from) {
    pc_tree tree = {.nodes = NULL};
    pc_error error = {0};
    assert_int_equal(pc_source_from_text("x.yaml", from, &tree.source, &error), PC_OK);
    if (pc_tree_build(&tree, &error)) fail_msg("%s", error.message);
    return tree;
}

/* ---- nodes ---- */

static void test_nodes(void **state) {
    (void)state;
    static const struct {
        const char *path;
        pc_node_kind kind;
        const char *text;
        unsigned line, count, size;
    } expected[] = {
        {"", PC_NODE_MAPPING, NULL, 2, 4, 13}, /* name, times, F, B, list, a, {}, b, d, [], f, empty, and itself */
        {"name", PC_NODE_TEXT, "x", 2, 0, 1},        {"times", PC_NODE_MAPPING, NULL, 3, 2, 3},
        {"times.F", PC_NODE_TEXT, "1 ms", 4, 0, 1},  {"times.B", PC_NODE_TEXT, "2\xc2\xb5s", 5, 0, 1},
        {"list", PC_NODE_LIST, NULL, 7, 3, 7},       {"list[0]", PC_NODE_TEXT, "a", 7, 0, 1},
        {"list[1]", PC_NODE_MAPPING, NULL, 7, 2, 3}, {"list[1].d", PC_NODE_TEXT, "e", 8, 0, 1},
        {"list[2]", PC_NODE_LIST, NULL, 8, 1, 2},    {"list[2][0]", PC_NODE_TEXT, "f", 8, 0, 1},
        {"empty", PC_NODE_TEXT, "", 9, 0, 1},
    };
    char path[PC_KEY_PATH_SIZE];
    pc_tree tree = build(text);
    assert_int_equal(tree.node_count, 13);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const pc_node *node = pc_node_find(tree.nodes, expected[i].path);
        if (!node) fail_msg("%s: not found", expected[i].path);
        assert_int_equal(node->kind, expected[i].kind);
        assert_int_equal(node->line, expected[i].line);
        assert_int_equal(node->count, expected[i].count);
        assert_int_equal(node->size, expected[i].size);
        assert_int_equal(node->text == NULL, expected[i].text == NULL);
        if (node->text) assert_string_equal(node->text, expected[i].text);
        pc_node_path(node, path);
        assert_string_equal(path, expected[i].path);
    }
    pc_tree_free(&tree);
}

static void test_what_is_not_there(void **state) {
    (void)state;
    static const char *const paths[] = {"x",       "nam",    "names",    "name.x", "times.W",
                                        "list[3]", "list.a", "times[0]", "[0]"};
    pc_tree tree = build(text);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) assert_null(pc_node_find(tree.nodes, paths[i]));
    assert_null(pc_node_find(NULL, "name"));
    assert_null(pc_node_find_text(tree.nodes, "times"));
    pc_tree_free(&tree);
    pc_tree_free(&tree);
}

/* Every child once, in the order of the text. */
static void test_children(void **state) {
    (void)state;
    static const char *const keys[] = {"name", "times", "list", "empty"};
    pc_tree tree = build(text);
    unsigned count = 0;
    const pc_node *top = tree.nodes;
    for (const pc_node *child = pc_node_first(top); child < pc_node_end(top); child = pc_node_end(child))
        assert_string_equal(child->key, keys[count++]);
    assert_int_equal(count, top->count);
    pc_tree_free(&tree);
}

/* ---- messages ---- */

static void test_places(void **state) {
    (void)state;
    pc_error error = {0};
    pc_tree tree = build(text);
    assert_int_equal(pc_node_refuse(&tree, pc_node_find(tree.nodes, "list[1].d"), &error, "%d", 7), PC_ERROR_INPUT);
    assert_string_equal(error.message, "x.yaml:8: list[1].d: 7");
    pc_node_refuse_key(&tree, pc_node_find(tree.nodes, "times"), "W", &error, "missing");
    assert_string_equal(error.message, "x.yaml:3: times.W: missing");
    pc_tree_refuse(&tree, "list[2].q.r", &error, "missing"); /* the line of what it would stand in */
    assert_string_equal(error.message, "x.yaml:8: list[2].q.r: missing");
    pc_tree_refuse(&tree, "", &error, "empty");
    assert_string_equal(error.message, "x.yaml:2: empty");
    pc_error_set(&error, PC_ERROR_INPUT, "no number");
    assert_int_equal(pc_node_blame(&tree, pc_node_find(tree.nodes, "name"), PC_ERROR_INPUT, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "x.yaml:2: name: no number");
    pc_error_set(&error, PC_ERROR_IO, "disk");
    assert_int_equal(pc_node_blame(&tree, tree.nodes, PC_ERROR_IO, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "disk");
    pc_tree_free(&tree);
}

static void test_long_keys(void **state) {
    (void)state;
    char from[256], key[101], path[PC_KEY_PATH_SIZE], expected[PC_KEY_PATH_SIZE];
    for (int length = 62; length < 66; length++) {
        memset(key, 'k', sizeof key);
        key[length] = '\0';
        snprintf(from, sizeof from, "a: {%s: b}", key);
        pc_tree tree = build(from);
        pc_node_path(tree.nodes + 2, path);
        snprintf(expected, sizeof expected, length < 64 ? "a.%s" : "a.%.60s...", key);
        assert_string_equal(path, expected);
        pc_tree_free(&tree);
    }
}

/* ---- schemas ---- */

static const pc_schema_field entry_fields[] = {{.path = "kind", .is_required = true},
                                               {.path = "schedule", .kind = PC_KIND_SCHEDULE}};
static const pc_schema entry_schema = {.count = 2, .fields = entry_fields};
static const pc_schema_field fields[] = {
    {.path = "name", .is_required = true},
    {.path = "times.F"},
    {.path = "times.B"},
    {.path = "sizes", .is_list = true, .least = 1, .most = 3},
    {.path = "entries", .kind = PC_KIND_MAPPING, .is_list = true, .schema = &entry_schema},
    {.path = "one", .kind = PC_KIND_MAPPING, .schema = &entry_schema},
};
static const pc_schema schema = {.count = 6, .fields = fields};

static void assert_checked(const char *from, const char *message) {
    pc_error error = {.message = ""};
    pc_tree tree = build(from);
    pc_code code = pc_schema_check(&schema, &tree, &error);
    assert_string_equal(error.message, message);
    assert_int_equal(code, *message ? PC_ERROR_INPUT : PC_OK);
    pc_tree_free(&tree);
}

static void test_schema(void **state) {
    (void)state;
    assert_checked("{name: x, times: {B: 1, F: 2}, sizes: [1, 2, 3], entries: [], one: {kind: k}}", "");
    assert_checked("[x]", "x.yaml:1: is a list; expected a mapping of name, times, sizes, entries, one");
    assert_checked("times: {}", "x.yaml:1: name: missing; expected a value, since this key is required");
    assert_checked("name: x\none:\n  {}", "x.yaml:2: one.kind: missing; expected a value, since this key is required");
    assert_checked("name: [x]", "x.yaml:1: name: is a list; expected a single value");
    assert_checked("name: x\ntimes: 1", "x.yaml:2: times: is a single value; expected a mapping of F, B");
    assert_checked("name: x\ntimes: {W: 1}", "x.yaml:2: times.W: unknown key; expected one of F, B");
    assert_checked("sizes: 1", "x.yaml:1: sizes: is a single value; expected a list");
    assert_checked("sizes: []", "x.yaml:1: sizes: an empty list; expected at least one entry");
    assert_checked("sizes: [1, 2, 3, 4]", "x.yaml:1: sizes: too many entries; expected at most 3");
    assert_checked("sizes: [1, {a: b}]", "x.yaml:1: sizes[1]: is a mapping; expected a single value");
    assert_checked("entries: [a]", "x.yaml:1: entries[0]: is a single value; expected a mapping of kind, schedule");
    assert_checked("name: x\nname: x", "x.yaml:2: name: given twice; expected once");
    assert_checked("times.F: 1", "x.yaml:1: times.F: unknown key (did you mean times?); expected one of name, times, "
                                 "sizes, entries, one");
    /* what is near stands below another key; below lists nothing is offered */
    assert_checked("kind: 1",
                   "x.yaml:1: kind: unknown key (did you mean one.kind?); expected one of name, times, sizes, "
                   "entries, one");
    /* of a key that stands twice and is not known the first is named, not the last */
    assert_checked("name: x\nnam: y\nnam: z", "x.yaml:2: nam: unknown key (did you mean name?); expected one of name, "
                                              "times, sizes, entries, one");
}

static void test_known(void **state) {
    (void)state;
    pc_error error = {0};
    pc_tree tree = build("{name: x, other: {a: [1]}, other: 2, times: {W: 1}}"), bad = build("{other: 1, name: [x]}");
    assert_int_equal(pc_schema_check_known(&schema, &tree, &error), PC_OK);
    assert_int_equal(pc_schema_check_known(&schema, &bad, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "x.yaml:1: name: is a list; expected a single value");
    pc_tree_free(&tree);
    pc_tree_free(&bad);
}

/* A schedule that is a mapping is a text in the end, wherever the schema has one; what stands behind it is still found.
 */
static void test_schedules(void **state) {
    (void)state;
    pc_error error;
    pc_tree tree = build("name: x\nentries: [{schedule: {steps: squeeze, block: a b.yaml}, kind: k}, {kind: l}]");
    assert_int_equal(pc_schema_check(&schema, &tree, &error), PC_OK);
    assert_string_equal(pc_node_find_text(tree.nodes, "entries[0].schedule"), "block:squeeze:a b.yaml");
    assert_string_equal(pc_node_find_text(tree.nodes, "entries[0].kind"), "k");
    assert_string_equal(pc_node_find_text(tree.nodes, "entries[1].kind"), "l");
    pc_tree_free(&tree);
    assert_checked("name: x\none: {kind: k,\n  schedule: {block: a, block: b}}",
                   "x.yaml:3: one.schedule.block: stands twice; expected it once");
    assert_checked("one: {schedule: {block: [a]}}", "x.yaml:1: one.schedule.block: no text; expected one");
    assert_checked("one: {schedule: {block: a, steps: 'b:c'}}",
                   "x.yaml:1: one.schedule.steps: unknown; expected none, squeeze or reorder");
    assert_checked("one: {schedule: {steps: none}}",
                   "x.yaml:1: one.schedule.block: missing; expected the path of a block's file");
    assert_checked("one: {schedule: [a]}", "x.yaml:1: one.schedule: is a list; expected a single value");
}

/* ---- memory ---- */

static void test_no_memory(void **state) {
    (void)state;
    char from[4096] = "name: x\nentries:\n";
    for (int i = 0; i < 40; i++) strcat(from, "- {kind: k, schedule: {block: \"a long path in all\"}}\n");
    long after = 0;
    for (bool refused = true; refused; after++) {
        pc_error error;
        pc_tree tree = {.nodes = NULL};
        assert_int_equal(pc_source_from_text("x.yaml", from, &tree.source, &error), PC_OK);
        long asked = pc_alloc_count();
        pc_alloc_fail_after(after);
        pc_code code = pc_tree_build(&tree, &error);
        if (!code) code = pc_schema_check(&schema, &tree, &error);
        pc_alloc_fail_after(-1);
        refused = pc_alloc_count() - asked > after;
        assert_int_equal(code, refused ? PC_ERROR_NO_MEMORY : PC_OK);
        pc_tree_free(&tree);
    }
    assert_true(after > 5); /* texts, and nodes that grow from 16 to more than 160 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),  cmocka_unit_test(test_what_is_not_there), cmocka_unit_test(test_children),
        cmocka_unit_test(test_places), cmocka_unit_test(test_long_keys),         cmocka_unit_test(test_schema),
        cmocka_unit_test(test_known),  cmocka_unit_test(test_schedules),         cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
