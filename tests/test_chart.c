/* Charts of runs: which points, series and panels there are, what the axes show, where things stand, and that nobody's
 * text becomes a command. */
#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "results/figures/chart_private.h"
#include "results/figures/style.h"
#include "tests/figure_example.h"

#include <math.h>

enum { ROWS_MAX = 64 };

/* --- rows --- */

typedef struct table {
    pc_run_row row[ROWS_MAX];
    int count;
} table;

static pc_run_row *add_row(table *to, const char *schedule, const char *model, int64_t microbatches, double mfu) {
    assert_true(to->count < ROWS_MAX);
    pc_run_row *row = &to->row[to->count++];
    pc_run_row_clear(row);
    row->run = to->count;
    snprintf(row->scenario, sizeof row->scenario, "test");
    snprintf(row->name, sizeof row->name, "run-%d", to->count);
    snprintf(row->schedule, sizeof row->schedule, "%s", schedule);
    snprintf(row->model, sizeof row->model, "%s", model);
    row->microbatches = microbatches;
    row->mfu = mfu;
    return row;
}

static const pc_chart by_microbatches = {
    .x = "microbatches", .y = {"mfu"}, .y_count = 1, .series = "schedule", .panels = "model", .style = PC_CHART_LINES};

static pc_chart_data collect(const pc_chart *chart, const table *from) {
    pc_chart_data data;
    pc_error error = {0};
    assert_int_equal(pc_chart_check(chart, &error), PC_OK);
    if (pc_chart_collect(chart, from->row, from->count, &data, &error)) fail_msg("%s", error.message);
    return data;
}

/* --- points --- */

static void text_stands_in_the_order_of_rows(void **state) {
    (void)state;
    table rows = {.count = 0};
    add_row(&rows, "v-half", "b", 8, NAN); /* nothing to draw, but it comes first */
    add_row(&rows, "1f1b", "b", 8, 0.4);
    add_row(&rows, "gpipe", "c", 8, NAN);
    add_row(&rows, "v-half", "a", 8, 0.5);
    pc_chart_data data = collect(&by_microbatches, &rows);
    assert_int_equal(data.series.count, 2); /* gpipe has no point */
    assert_string_equal(data.series.name[0], "v-half");
    assert_string_equal(data.series.name[1], "1f1b");
    assert_int_equal(data.panels.count, 2);
    assert_string_equal(data.panels.name[0], "b");
    pc_chart_data_free(&data);
}

static void numbers_stand_in_their_order(void **state) {
    (void)state;
    static const int64_t tp[] = {16, 2, 8, -1};
    table rows = {.count = 0};
    char label[PC_CHART_LABEL_SIZE];
    for (int i = 0; i < 4; i++) add_row(&rows, "1f1b", "a", 8, 0.4)->tp = tp[i];
    pc_chart chart = by_microbatches;
    chart.series = "tp";
    pc_chart_data data = collect(&chart, &rows);
    static const char *const expected[] = {"2", "8", "16", "none"};
    assert_int_equal(data.series.count, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(data.series.name[i], expected[i]);
    pc_chart_group_label(&data.series, 2, label);
    assert_string_equal(label, "tp 16");
    pc_chart_data_free(&data);
}

static void columns_can_be_joined(void **state) {
    (void)state;
    table rows = {.count = 0};
    static const char *const recompute[] = {"none", "full", ""};
    for (int i = 0; i < 3; i++) {
        pc_run_row *row = add_row(&rows, "v-half", "a", 8, 0.1 * (i + 1));
        snprintf(row->recompute, sizeof row->recompute, "%s", recompute[i]);
        row->tp = i == 2 ? 4 : -1;
    }
    pc_chart chart = by_microbatches;
    chart.series = "schedule+recompute+tp";
    pc_chart_data data = collect(&chart, &rows);
    static const char *const expected[] = {"v-half", "v-half, full", "v-half, tp 4"};
    assert_int_equal(data.series.count, 3);
    for (int i = 0; i < 3; i++) assert_string_equal(data.series.name[i], expected[i]);
    pc_chart_data_free(&data);
}

/* Of x = 8 there are 30%, 50% and 40%: lines and bars take 50%, points all. */
static void lines_take_the_best(void **state) {
    (void)state;
    static const double mfu[] = {0.3, 0.5, 0.4};
    table rows = {.count = 0};
    for (int i = 0; i < 3; i++) add_row(&rows, "1f1b", "a", 8, mfu[i]);
    add_row(&rows, "1f1b", "a", 4, 0.2);
    for (int style = PC_CHART_POINTS; style <= PC_CHART_BARS; style++) {
        pc_chart chart = by_microbatches;
        chart.style = (pc_chart_style)style;
        pc_chart_data data = collect(&chart, &rows);
        assert_int_equal(data.point_count, style == PC_CHART_POINTS ? 4 : 2);
        assert_int_equal(data.points[0].row, 3);
        assert_int_equal(data.points[1].row, 1);
        assert_true(data.points[0].y == 20 && data.points[1].y == 50); /* percent */
        assert_true(data.points[0].x == (style == PC_CHART_BARS ? 0 : 4));
        pc_chart_data_free(&data);
    }
}

/* The same figure of a case stands in both runs; the third has one without an x that was published. */
static void published_points_are_kept_apart(void **state) {
    (void)state;
    table rows = {.count = 0};
    for (int i = 0; i < 3; i++) {
        pc_run_row *row = add_row(&rows, "1f1b", "a", 8, i == 1 ? NAN : 0.4);
        row->activation_gib_max = 10;
        row->published_mfu = 0.5;
        row->published_activation_gib = i < 2 ? 12 : NAN;
    }
    pc_chart chart = by_microbatches;
    chart.style = PC_CHART_POINTS;
    chart.x = "activation_gib_max";
    pc_chart_data data = collect(&chart, &rows);
    assert_false(data.has_published);
    assert_int_equal(data.point_count, 2);
    pc_chart_data_free(&data);
    chart.published = true;
    data = collect(&chart, &rows);
    const pc_chart_point *first;
    assert_true(data.has_published);
    assert_int_equal(pc_chart_find_points(&data, 0, 0, 0, false, &first), 2);
    assert_true(first->x == 10 && first->y == 40);
    assert_int_equal(pc_chart_find_points(&data, 0, 0, 0, true, &first), 1);
    assert_true(first->x == 12 && first->y == 50);
    pc_chart_data_free(&data);
}

static void published_columns_are_found(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"mfu", "published_mfu"},
                                           {"activation_gib_max", "published_activation_gib"},
                                           {"bubble_rate_span", "published_bubble_rate_span"}};
    for (int i = 0; i < 3; i++)
        assert_string_equal(pc_column_published(pc_column_find(pairs[i][0]))->field.name, pairs[i][1]);
    assert_null(pc_column_published(pc_column_find("microbatches")));
}

static void nothing_to_draw_is_an_error(void **state) {
    (void)state;
    table rows = {.count = 0};
    pc_chart_data data;
    pc_error error = {0};
    add_row(&rows, "1f1b", "a", 8, NAN);
    add_row(&rows, "1f1b", "a", -1, 0.4);
    assert_int_equal(pc_chart_collect(&by_microbatches, rows.row, rows.count, &data, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "nothing to draw: of 2 runs none has a value in 'microbatches' and in 'mfu'; "
                                       "expected one");
    pc_chart_data_free(&data);
}

static void too_many_series_are_an_error(void **state) {
    (void)state;
    table rows = {.count = 0};
    pc_chart_data data;
    pc_error error = {0};
    for (int i = 0; i <= PC_CHART_GROUPS_MAX; i++) add_row(&rows, "1f1b", "a", i + 1, 0.4);
    pc_chart chart = by_microbatches;
    chart.series = "name";
    assert_int_equal(pc_chart_collect(&chart, rows.row, rows.count, &data, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "series: 'name' has more than 48 values; expected a column with fewer");
    pc_chart_data_free(&data);
}

/* --- checks --- */

static void wrong_columns_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *x, *y, *series, *message;
    } cases[] = {
        {"microbatch", "mfu", NULL, "x: there is no column 'microbatch'; expected one such as 'microbatches'"},
        {"microbatches", "MFU", NULL, "y: there is no column 'MFU'; expected one such as 'mfu'"},
        {"microbatches", "speediness", NULL,
         "y: there is no column 'speediness'; expected one of the table of runs, such as 'mfu'"},
        {"schedule", "mfu", NULL, "x: 'schedule' is text; expected a column of numbers"},
        {"microbatches", "schedule", NULL, "y: 'schedule' is text; expected a column of numbers"},
        {"microbatches", "mfu", "schedule+recompte",
         "series: there is no column 'recompte'; expected one such as 'recompute'"},
        {"microbatches", "mfu", "tp+pp+dp+gpus", "series: more than 3 columns; expected at most that many"},
        {"microbatches", "mfu", "", "series: no column; expected the name of one"},
        {NULL, "mfu", NULL, "x: no column; expected the name of one"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_error error = {0};
        pc_chart chart = {.x = cases[i].x, .y = {cases[i].y}, .y_count = 1, .series = cases[i].series};
        assert_int_equal(pc_chart_check(&chart, &error), PC_ERROR_INPUT);
        assert_string_equal(error.message, cases[i].message);
    }
    pc_chart bars = {.x = "schedule", .y = {"mfu"}, .y_count = 1, .style = PC_CHART_BARS};
    assert_int_equal(pc_chart_check(&bars, NULL), PC_OK);
    bars.y_count = 0;
    assert_int_equal(pc_chart_check(&bars, NULL), PC_ERROR_INPUT);
}

static void styles_have_names(void **state) {
    (void)state;
    pc_chart_style style;
    assert_true(pc_chart_style_parse("bars", &style) && style == PC_CHART_BARS);
    assert_true(pc_chart_style_parse("lines", &style) && style == PC_CHART_LINES);
    assert_true(pc_chart_style_parse("points", &style) && style == PC_CHART_POINTS);
    assert_false(pc_chart_style_parse("pie", &style));
}

/* --- axes --- */

static pc_chart_axis y_axis_of(double low, double high, pc_chart_style style) {
    table rows = {.count = 0};
    pc_chart_axis axis;
    add_row(&rows, "1f1b", "a", 8, low / 100);
    add_row(&rows, "1f1b", "a", 9, high / 100);
    pc_chart chart = by_microbatches;
    chart.style = style;
    pc_chart_data data = collect(&chart, &rows);
    pc_chart_make_y_axis(&data, 0, 340, &axis);
    pc_chart_data_free(&data);
    return axis;
}

/* A margin of 6% of the range; zero where the smallest is less than half of the largest, and of bars always. */
static void the_axis_holds_all_values(void **state) {
    (void)state;
    pc_chart_axis axis = y_axis_of(60, 100, PC_CHART_LINES);
    assert_true(fabs(axis.low - 57.6) < 1e-9 && fabs(axis.high - 102.4) < 1e-9);
    axis = y_axis_of(10, 100, PC_CHART_LINES);
    assert_true(axis.low == 0 && fabs(axis.high - 106) < 1e-9);
    assert_string_equal(axis.tick[0].label, "0%");
    assert_string_equal(axis.tick[1].label, "20%"); /* 340 pixels are 10 marks: 10.6% each, and 20 is the next */
    axis = y_axis_of(60, 100, PC_CHART_BARS);
    assert_true(axis.low == 0);
    axis = y_axis_of(50, 50, PC_CHART_LINES);
    assert_true(fabs(axis.low - 45) < 1e-9 && fabs(axis.high - 55) < 1e-9);
    axis = y_axis_of(-20, 40, PC_CHART_BARS);
    assert_true(axis.low < -20 && axis.high > 40);
}

static pc_chart_axis x_axis_of(const int64_t *values, int count, double pixels) {
    table rows = {.count = 0};
    pc_chart_axis axis;
    for (int i = 0; i < count; i++) add_row(&rows, "1f1b", "a", values[i], 0.4);
    pc_chart_data data = collect(&by_microbatches, &rows);
    pc_chart_make_x_axis(&data, 0, pixels, &axis);
    for (int64_t i = 0; i < data.point_count; i++) {
        double at = pc_chart_position(&axis, data.points[i].x);
        assert_true(axis.low < at && at < axis.high);
    }
    pc_chart_data_free(&data);
    return axis;
}

static void powers_of_two_are_spread_evenly(void **state) {
    (void)state;
    static const int64_t wide[] = {4, 128, 16, 64}, narrow[] = {8, 16, 64}, others[] = {20, 512, 1};
    static const int64_t tripled[] = {48, 32, 768};
    pc_chart_axis axis = x_axis_of(wide, 4, 400);
    assert_true(axis.is_log);
    assert_int_equal(axis.tick_count, 4);
    assert_string_equal(axis.tick[3].label, "128");
    assert_true(axis.tick[0].at == 2 && axis.tick[3].at == 7);
    assert_true(x_axis_of(tripled, 3, 400).is_log); /* 3 times a power of two is as good */
    assert_false(x_axis_of(narrow, 3, 400).is_log); /* 8 times is less than 16 times */
    assert_false(x_axis_of(others, 3, 400).is_log);
}

static void few_whole_numbers_are_named(void **state) {
    (void)state;
    static const int64_t microbatches[] = {24, 32, 64};
    pc_chart_axis axis = x_axis_of(microbatches, 3, 400);
    assert_int_equal(axis.tick_count, 3);
    assert_true(axis.tick[0].at == 24 && axis.tick[1].at == 32 && axis.tick[2].at == 64);
    axis = x_axis_of(microbatches, 3, 100); /* 8 of 45 are 18 pixels: too few for two numbers of two digits */
    assert_true(axis.tick_count < 2 || axis.tick[0].at != 24);
}

/* Numbers are at least a blank apart, whatever they are. */
static void numbers_at_x_do_not_touch(void **state) {
    (void)state;
    test_random random = {4};
    for (long i = 0; i < test_cases(2000, 10000); i++) {
        int64_t values[20];
        int count = (int)test_between(&random, 1, 20), is_log = (int)test_between(&random, 0, 1);
        for (int k = 0; k < count; k++)
            values[k] = is_log ? INT64_C(1) << test_between(&random, 0, 30) : test_between(&random, 0, 1000000);
        double pixels = (double)test_between(&random, 150, 700);
        pc_chart_axis axis = x_axis_of(values, count, pixels);
        for (int k = 1; k < axis.tick_count; k++) {
            double distance = (axis.tick[k].at - axis.tick[k - 1].at) / (axis.high - axis.low) * pixels;
            size_t letters = strlen(axis.tick[k].label) + strlen(axis.tick[k - 1].label);
            assert_true(distance > (double)letters / 2 * PC_STYLE_DIGIT_WIDTH * PC_STYLE_TEXT_FONT + 4);
        }
    }
}

static void axes_have_names(void **state) {
    (void)state;
    static const char *const labels[][2] = {{"mfu", "Model FLOPs utilisation"},
                                            {"activation_gib_max", "Peak activation memory [GiB]"},
                                            {"bubble_rate_span", "Bubble rate span"}, /* a formula describes it */
                                            {"exposed_tp_s", "Exposed tp [s]"},
                                            {"gpus", "GPUs in all"}};
    char label[PC_CHART_LABEL_SIZE];
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        pc_chart_axis_label(pc_column_find(labels[i][0]), NULL, label);
        assert_string_equal(label, labels[i][1]);
    }
    pc_chart_axis_label(pc_column_find("mfu"), "mine", label);
    assert_string_equal(label, "mine");
}

/* --- looks --- */

static void schedules_keep_their_looks(void **state) {
    (void)state;
    int count;
    const pc_generator *generators = pc_generators(&count);
    for (int i = 0; i < count; i++) {
        pc_look look = pc_chart_look(generators[i].name, 0), again = pc_chart_look(generators[i].name, 5);
        assert_true(look.colour == again.colour && look.shape == again.shape && look.dash == again.dash);
        for (int k = 0; k < i; k++) {
            pc_look other = pc_chart_look(generators[k].name, 0);
            assert_true(look.colour != other.colour || look.shape != other.shape);
        }
        char name[64];
        snprintf(name, sizeof name, "%s, full", generators[i].name);
        pc_look variant = pc_chart_look(name, 3);
        assert_true(variant.colour != look.colour);
        assert_true(variant.shape != look.shape);
    }
    for (int i = 0; i < 42; i++)
        for (int k = 0; k < i; k++) {
            pc_look look = pc_chart_look("x", i), other = pc_chart_look("x", k);
            assert_true(look.colour != other.colour || look.shape != other.shape);
        }
}

/* Money, factors and counts are numbers of unit one as well, and no fractions. */
static void percent_is_of_fractions(void **state) {
    (void)state;
    static const char *const fractions[] = {"mfu",   "hfu", "bubble_rate_span", "goodput_mean", "goodput_p05_low",
                                            "jitter"};
    static const char *const others[] = {
        "training_cost", "cost_per_million_tokens", "parameters",          "slow_factor",
        "failures_mean", "slowdown_mean",           "iteration_p05_low_s", "tp"};
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++)
        assert_true(pc_chart_is_fraction(pc_column_find(fractions[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(pc_chart_is_fraction(pc_column_find(others[i])));
}

#define TEST(function) cmocka_unit_test(function)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(text_stands_in_the_order_of_rows),
        TEST(numbers_stand_in_their_order),
        TEST(columns_can_be_joined),
        TEST(lines_take_the_best),
        TEST(published_points_are_kept_apart),
        TEST(published_columns_are_found),
        TEST(nothing_to_draw_is_an_error),
        TEST(too_many_series_are_an_error),
        TEST(wrong_columns_are_refused),
        TEST(styles_have_names),
        TEST(the_axis_holds_all_values),
        TEST(powers_of_two_are_spread_evenly),
        TEST(few_whole_numbers_are_named),
        TEST(numbers_at_x_do_not_touch),
        TEST(axes_have_names),
        TEST(schedules_keep_their_looks),
        TEST(percent_is_of_fractions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
