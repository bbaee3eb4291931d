/* What a scenario declares as a chart: converted, and refused where it is none. */
#include "results/figures/scenario_charts.h"

#include "tests/scenario_files.h"

static pc_scenario_figure example_figure(void) {
    return (pc_scenario_figure){.name = "one",
                                .x = "microbatches",
                                .y = {"mfu", "hfu"},
                                .y_label = {NULL, "HFU"},
                                .y_count = 2,
                                .series = "schedule",
                                .published = true};
}

static void test_conversion(void **state) {
    (void)state;
    pc_chart chart;
    pc_scenario_figure figure = example_figure();
    assert_int_equal(pc_scenario_chart("s.yaml", &figure, &chart, NULL), PC_OK);
    assert_string_equal(chart.title, "one"); /* its name, where it has no title */
    assert_int_equal(chart.style, PC_CHART_POINTS);
    assert_true(chart.x == figure.x && chart.y_count == 2 && chart.y[0] == figure.y[0] && chart.y[1] == figure.y[1]);
    assert_true(!chart.y_label[0] && chart.y_label[1] == figure.y_label[1] && !chart.x_label);
    assert_true(chart.series == figure.series && !chart.panels && chart.published);

    figure.title = "Title";
    figure.style = "lines";
    figure.x_label = "m";
    figure.panels = "model";
    figure.published = false;
    figure.x_range = ":8";
    figure.y_range[1] = "-1:0.5";
    figure.log = "x";
    figure.is_dark = true;
    assert_int_equal(pc_scenario_chart("s.yaml", &figure, &chart, NULL), PC_OK);
    assert_int_equal(chart.style, PC_CHART_LINES);
    assert_true(chart.title == figure.title && chart.x_label == figure.x_label && chart.panels == figure.panels);
    assert_false(chart.published);
    assert_true(!chart.x_range.has_low && chart.x_range.has_high && chart.x_range.high == 8);
    assert_true(!chart.y_range[0].has_low && chart.y_range[1].has_low && chart.y_range[1].low == -1);
    assert_true(chart.y_range[1].high == 0.5 && chart.x_is_log && !chart.y_is_log && chart.is_dark);
}

static void test_styles_are_the_charts(void **state) {
    (void)state;
    static const char *const styles[] = {"points", "lines", "bars"};
    for (int i = 0; i < 3; i++) {
        pc_chart chart;
        pc_scenario_figure figure = example_figure();
        figure.style = styles[i];
        assert_int_equal(pc_scenario_chart("s.yaml", &figure, &chart, NULL), PC_OK);
        assert_int_equal(chart.style, i);
    }
}

static void assert_refused(const pc_scenario_figure *figure, const char *start) {
    pc_error error;
    pc_chart chart = {.title = "untouched"};
    assert_int_equal(pc_scenario_chart("s.yaml", figure, &chart, &error), PC_ERROR_INPUT);
    assert_starts(error.message, start);
    assert_non_null(strstr(error.message, "; expected "));
    assert_string_equal(chart.title, "untouched");
}

static void test_refusals(void **state) {
    (void)state;
    pc_scenario_figure figure = example_figure();
    figure.style = "pie";
    assert_refused(&figure, "s.yaml: figures: one: style: 'pie'; expected points, lines or bars");
    figure = example_figure();
    figure.y[1] = "schedule"; /* no number */
    assert_refused(&figure, "s.yaml: figures: one: y: ");
    figure = example_figure();
    figure.panels = "mfus";
    assert_refused(&figure, "s.yaml: figures: one: panels: ");
    figure = example_figure();
    figure.x_range = "8";
    assert_refused(&figure, "s.yaml: figures: one: x_range: '8'; expected LOW:HIGH, LOW: or :HIGH");
    figure = example_figure();
    figure.y_range[1] = "1:x";
    assert_refused(&figure, "s.yaml: figures: one: y_range: ");
    figure = example_figure();
    figure.log = "z";
    assert_refused(&figure, "s.yaml: figures: one: log: 'z'; expected x, y or xy");
}

/* All of a scenario's, whichever is wrong. */
static void test_check(void **state) {
    (void)state;
    char text[1024];
    pc_error error;
    for (int wrong = 0; wrong < 2; wrong++) {
        snprintf(text, sizeof text, "%sfigures:\n  - {name: a, x: pp, y: [mfu]}\n  - {name: b, x: %s, y: [mfu]}\n",
                 base, wrong ? "nothing" : "tp");
        pc_scenario *scenario = load_text(text);
        assert_int_equal(pc_scenario_charts_check("s.yaml", scenario, &error), wrong ? PC_ERROR_INPUT : PC_OK);
        if (wrong) assert_starts(error.message, "s.yaml: figures: b: x: ");
        pc_scenario_free(scenario);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversion),
        cmocka_unit_test(test_styles_are_the_charts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
