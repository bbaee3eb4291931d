/* The charts that a scenario declares: read with it, or from its text alone. */
#include "engine/alloc.h"
#include "tests/scenario_files.h"

static const char *const figures = "figures:\n"
                                   "  - {name: one, x: microbatches, y: [mfu], y_label: [MFU]}\n"
                                   "  - name: all.of-it_2\n"
                                   "    title: \"MFU, 50% 'more' \\\\ less\"\n"
                                   "    x: memory_limit_gib\n"
                                   "    y: [mfu, bubble_rate_span, activation_gib_max, hfu]\n"
                                   "    series: schedule\n"
                                   "    panels: model\n"
                                   "    style: bars\n"
                                   "    x_label: room [GiB]\n"
                                   "    y_label: [MFU, bubble]\n"
                                   "    x_range: '4:'\n"
                                   "    y_range: ['0:1', ':0.5']\n"
                                   "    log: y\n"
                                   "    dark: true\n"
                                   "    published: true\n";

/* The scenario `base` with figures, or the end of one. */
static void write_base_with(const char *lines, char *text, size_t size) {
    snprintf(text, size, "%s%s", base, lines);
    write_temporary(text, strlen(text));
}

static void assert_figures(const pc_scenario_figure *found, int count) {
    assert_int_equal(count, 2);
    assert_string_equal(found[0].name, "one");
    assert_string_equal(found[0].x, "microbatches");
    assert_int_equal(found[0].y_count, 1);
    assert_string_equal(found[0].y[0], "mfu");
    assert_true(!found[0].title && !found[0].series && !found[0].panels && !found[0].style && !found[0].x_label);
    assert_string_equal(found[0].y_label[0], "MFU");
    assert_true(!found[0].y_label[1] && !found[0].published && !found[0].is_dark);
    assert_true(!found[0].x_range && !found[0].y_range[0] && !found[0].log);
    assert_string_equal(found[1].name, "all.of-it_2");
    assert_string_equal(found[1].title, "MFU, 50% 'more' \\ less");
    assert_string_equal(found[1].x, "memory_limit_gib");
    assert_int_equal(found[1].y_count, 4);
    assert_string_equal(found[1].y[3], "hfu");
    assert_string_equal(found[1].series, "schedule");
    assert_string_equal(found[1].panels, "model");
    assert_string_equal(found[1].style, "bars");
    assert_string_equal(found[1].x_label, "room [GiB]");
    assert_string_equal(found[1].y_label[1], "bubble");
    assert_null(found[1].y_label[2]);
    assert_string_equal(found[1].x_range, "4:");
    assert_string_equal(found[1].y_range[1], ":0.5");
    assert_null(found[1].y_range[2]);
    assert_string_equal(found[1].log, "y");
    assert_true(found[1].published && found[1].is_dark);
}

static void test_of_a_scenario(void **state) {
    (void)state;
    char text[2048];
    int count = -1;
    write_base_with(figures, text, sizeof text);
    pc_scenario *scenario = load_with(temporary, NULL, 0);
    const pc_scenario_figure *found = pc_scenario_figures(scenario, &count);
    assert_figures(found, count);
    pc_scenario_free(scenario);
    scenario = load_text(base);
    assert_null(pc_scenario_figures(scenario, &count));
    assert_int_equal(count, 0);
    pc_scenario_free(scenario);
}

static pc_scenario_figures_list read_text(const char *text) {
    pc_error error;
    pc_scenario_figures_list list = {.count = -1};
    if (pc_scenario_figures_read(text, strlen(text), "results.h5", &list, &error)) fail_msg("%s", error.message);
    return list;
}

/* No other file is looked at, nor is what a later pipecast may have written beside it. */
static void test_of_a_text(void **state) {
    (void)state;
    char text[2048];
    snprintf(text, sizeof text,
             "scenario: x\nsetting: {model: {from: gone/away.yaml, colour: red}, devices: -4}\nlater: [1, {a: b}]\n"
             "%s    shade: dark\n# --set setting.devices=2\n",
             figures);
    pc_scenario_figures_list list = read_text(text);
    memset(text, 0, sizeof text); /* the list has its own */
    assert_figures(list.figures, list.count);
    pc_scenario_figures_free(&list);
    assert_int_equal(list.count, 0);
    pc_scenario_figures_free(&list);
}

static void test_of_a_text_without(void **state) {
    (void)state;
    static const char *const texts[] = {"scenario: x\n", "scenario: x\nsetting: {devices: 4}\n", "{}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pc_scenario_figures_list list = read_text(texts[i]);
        assert_int_equal(list.count, 0);
        assert_null(list.figures);
        pc_scenario_figures_free(&list);
    }
}

/* ---- what is refused ---- */

static const struct {
    const char *lines, *message; /* behind the file's name; the figures begin on line 7 */
} bad[] = {
    {"figures: []\n", ":7: figures: an empty list; expected at least one entry"},
    {"figures: {name: a}\n", ":7: figures: is a mapping; expected a list"},
    {"figures:\n  - {x: a, y: [b]}\n", ":8: figures[0].name: missing; expected"},
    {"figures:\n  - {name: a, y: [b]}\n", ":8: figures[0].x: missing; expected"},
    {"figures:\n  - {name: a, x: b}\n", ":8: figures[0].y: missing; expected"},
    {"figures:\n  - {name: a, x: b, y: c}\n", ":8: figures[0].y: is a single value; expected a list"},
    {"figures:\n  - {name: a, x: b, y: []}\n", ":8: figures[0].y: an empty list; expected at least one entry"},
    {"figures:\n  - {name: a, x: b, y: [c, d, e, f, g]}\n", ":8: figures[0].y: too many entries; expected at most 4"},
    {"figures:\n  - {name: a, x: [b], y: [c]}\n", ":8: figures[0].x: is a list; expected a single value"},
    {"figures:\n  - {name: a, x: b, y: [c], y_label: [d, e]}\n",
     ":8: figures[0].y_label: 2 labels for 1 columns; expected at most one a column of y"},
    {"figures:\n  - {name: a, x: b, y: [c], y_range: ['0:', '1:']}\n",
     ":8: figures[0].y_range: 2 ranges for 1 columns; expected at most one a column of y"},
    {"figures:\n  - {name: a, x: b, y: [c], dark: 2}\n", ":8: figures[0].dark: 2: not a truth value; expected true or"},
    {"figures:\n  - {name: a, x: '', y: [c]}\n", ":8: figures[0].x: empty; expected one line of text"},
    {"figures:\n  - {name: a, x: b, y: [c, '']}\n", ":8: figures[0].y[1]: empty; expected one line of text"},
    {"figures:\n  - {name: a, x: b, y: [c],\n     title: \"a\\nb\"}\n",
     ":9: figures[0].title: has control characters; expected one line of text"},
    {"figures:\n  - {name: a, x: b, y: [c], x_label: \"d\\x7f\"}\n",
     ":8: figures[0].x_label: has control characters; expected one line of text"},
    {"figures:\n  - {name: a, x: b, y: [c], x_label: \"d\\x9b\"}\n",
     ":8: figures[0].x_label: has control characters; expected one line of text"},
    {"figures:\n  - {name: a, x: b, y: [c], style: dots}\n",
     ":8: figures[0].style: dots: unknown word; expected one of points, lines, bars"},
    {"figures:\n  - {name: a, x: b, y: [c], published: yes}\n",
     ":8: figures[0].published: yes: not a truth value (did you mean true?); expected true or false"},
    {"figures:\n  - {name: a b, x: b, y: [c]}\n", ":8: figures[0].name: a b: not a name; expected letters"},
    {"figures:\n  - {name: a, x: b, y: [c]}\n  - {name: b, x: b, y: [c]}\n  - {name: a, x: b, y: [c]}\n",
     ":10: figures[2].name: a is the name of figures[0] too; expected names that differ"},
};

static void test_bad_figures(void **state) {
    (void)state;
    char text[2048], expected[PATH_SIZE];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pc_error error;
        pc_scenario_figures_list list;
        write_base_with(bad[i].lines, text, sizeof text);
        snprintf(expected, sizeof expected, "%s%s", temporary, bad[i].message);
        assert_starts(message_of(temporary, NULL, 0), expected);
        assert_int_equal(pc_scenario_figures_read(text, strlen(text), "x.h5", &list, &error), PC_ERROR_INPUT);
        snprintf(expected, sizeof expected, "x.h5%s", bad[i].message);
        assert_starts(error.message, expected);
        assert_int_equal(pc_scenario_figures_read(text, strlen(text), "x.h5", &list, NULL), PC_ERROR_INPUT);
    }
}

/* A scenario's own keys are checked; a title of a page is no title. */
static void test_bad_in_a_scenario(void **state) {
    (void)state;
    char text[2048], title[400], expected[PATH_SIZE];
    write_base_with("figures:\n  - {name: a, x: b, z: [c]}\n", text, sizeof text);
    snprintf(expected, sizeof expected, "%s:8: figures[0].z: unknown key; expected one of name, title, x, y, series",
             temporary);
    assert_starts(message_of(temporary, NULL, 0), expected);
    memset(title, 'x', sizeof title);
    snprintf(text, sizeof text, "%sfigures:\n  - {name: a, x: b, y: [c], title: %.256s}\n", base, title);
    write_temporary(text, strlen(text));
    snprintf(expected, sizeof expected, "%s:8: figures[0].title: %.40s...: too long; expected at most 255 bytes",
             temporary, title);
    assert_starts(message_of(temporary, NULL, 0), expected);
}

static void test_no_text(void **state) {
    (void)state;
    pc_error error;
    pc_scenario_figures_list list;
    assert_int_equal(pc_scenario_figures_read("", 0, "x.h5", &list, &error), PC_ERROR_INPUT);
    assert_starts(error.message, "x.h5:1: empty; expected");
    assert_int_equal(pc_scenario_figures_read("a: \0b", 5, "x.h5", &list, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_scenario_figures_read("a: [b", 5, "x.h5", &list, &error), PC_ERROR_INPUT);
    assert_starts(error.message, "x.h5:2: not YAML");
}

static void test_no_memory(void **state) {
    (void)state;
    long after = 0;
    for (bool refused = true; refused; after++) {
        pc_error error;
        pc_scenario_figures_list list = {.count = -1};
        long asked = pc_alloc_count();
        pc_alloc_fail_after(after);
        pc_code code = pc_scenario_figures_read(figures, strlen(figures), "x.h5", &list, &error);
        pc_alloc_fail_after(-1);
        refused = pc_alloc_count() - asked > after;
        assert_int_equal(code, refused ? PC_ERROR_NO_MEMORY : PC_OK);
        if (!code) pc_scenario_figures_free(&list);
    }
    assert_true(after > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_a_scenario),     cmocka_unit_test(test_of_a_text),
        cmocka_unit_test(test_of_a_text_without), cmocka_unit_test(test_bad_figures),
        cmocka_unit_test(test_bad_in_a_scenario), cmocka_unit_test(test_no_text),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
