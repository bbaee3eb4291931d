/* Charts on the picture: plots and legend have places of their own, all formats are drawn, every point says what it is,
 * and that nobody's text becomes a command. */
#include "results/figures/chart_private.h"
#include "results/figures/figure.h"
#include "results/figures/style.h"
#include "tests/figure_example.h"
#include "tests/refusals.h"

#include <math.h>

/* --- rows: a few schedules at a few numbers of microbatches, in a few panels --- */

typedef struct table {
    pc_run_row *row;
    int count;
} table;

static table make_rows(int series, int panels, int values) {
    static const char *const schedules[] = {"1f1b", "zb-h1", "v-half", "v-min", "v-zb", "gpipe", "zb-v", "chimera"};
    table made = {calloc((size_t)(series * panels * values), sizeof(pc_run_row)), 0};
    for (int i = 0; i < series * panels * values; i++) {
        pc_run_row *row = &made.row[made.count++];
        int s = i % series, panel = i / series % panels, value = i / series / panels;
        pc_run_row_clear(row);
        row->run = i + 1;
        snprintf(row->name, sizeof row->name, "run-%d", i + 1);
        if (s < 8)
            snprintf(row->schedule, sizeof row->schedule, "%s", schedules[s]);
        else
            snprintf(row->schedule, sizeof row->schedule, "another schedule, number %d", s);
        snprintf(row->model, sizeof row->model, "model %d", panel);
        row->microbatches = 8 + 8 * value;
        row->mfu = 0.3 + 0.02 * s + 0.01 * value;
        row->iteration_s = 1 + 0.1 * s;
        row->memory_gib_max = 30 + s;
        row->published_mfu = value == 0 ? 0.33 : NAN;
    }
    return made;
}

static pc_chart make_chart(int y_count, pc_chart_style style) {
    return (pc_chart){.title = "Utilisation",
                      .x = "microbatches",
                      .y = {"mfu", "iteration_s", "memory_gib_max", "mfu"},
                      .y_count = y_count,
                      .series = "schedule",
                      .panels = "model",
                      .style = style,
                      .published = true};
}

/* --- places --- */

static bool apart(double a_low, double a_high, double b_low, double b_high) {
    return a_high <= b_low || b_high <= a_low;
}

static void assert_plots_are_apart(const pc_chart_data *data, const pc_chart_layout *layout) {
    int count = data->panels.count * data->chart->y_count;
    for (int i = 0; i < count; i++) {
        pc_chart_spot a = pc_chart_plot_spot(layout, i % data->chart->y_count, i / data->chart->y_count);
        assert_true(a.x >= layout->left && a.x + layout->plot_width < layout->width);
        assert_true(a.y >= layout->panels_top && a.y + layout->plot_height + layout->below <= layout->x_label_y);
        for (int k = 0; k < i; k++) {
            pc_chart_spot b = pc_chart_plot_spot(layout, k % data->chart->y_count, k / data->chart->y_count);
            assert_true(apart(a.x, a.x + layout->plot_width, b.x, b.x + layout->plot_width) ||
                        apart(a.y, a.y + layout->plot_height, b.y, b.y + layout->plot_height));
        }
    }
}

/* Entries of 12 pixels' height: lines are further apart than that, and of one line each ends before the next. */
static void assert_legend_is_readable(const pc_chart_data *data, const pc_chart_layout *layout) {
    char label[PC_CHART_LABEL_SIZE];
    for (int i = 0; i < data->series.count + data->has_published; i++) {
        const pc_chart_spot *at = &layout->legend[i];
        snprintf(label, sizeof label, "published");
        if (i < data->series.count) pc_chart_group_label(&data->series, i, label);
        double end = at->x + PC_CHART_MARK + (double)strlen(label) * PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT;
        assert_true(end <= layout->width);
        assert_true(at->y + PC_STYLE_TEXT_FONT < layout->panels_top);
        if (i > 0 && layout->legend[i - 1].y == at->y) assert_true(layout->legend[i - 1].x < at->x);
        for (int k = 0; k < i; k++) {
            const pc_chart_spot *other = &layout->legend[k];
            if (other->y == at->y) continue;
            assert_true(fabs(other->y - at->y) > PC_STYLE_TEXT_FONT);
        }
    }
}

static void all_shapes_have_room(void **state) {
    (void)state;
    for (int panels = 1; panels <= 13; panels++)
        for (int y_count = 1; y_count <= PC_CHART_Y_MAX; y_count++)
            for (int style = PC_CHART_POINTS; style <= PC_CHART_BARS; style++) {
                pc_chart_data data;
                pc_chart_layout layout;
                table rows = make_rows(1 + panels * y_count % 20, panels, 3);
                pc_chart chart = make_chart(y_count, (pc_chart_style)style);
                assert_int_equal(pc_chart_collect(&chart, rows.row, rows.count, &data, NULL), PC_OK);
                pc_chart_lay_out(&data, &layout);
                assert_plots_are_apart(&data, &layout);
                assert_legend_is_readable(&data, &layout);
                assert_true(layout.width < 2600 && layout.height > layout.x_label_y);
                pc_chart_data_free(&data);
                free(rows.row);
            }
}

/* At most four side by side, and rows of about the same length: 5 are 3 and 2. */
static void panels_are_spread_over_rows(void **state) {
    (void)state;
    static const int columns[][2] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 3}, {6, 3}, {8, 4}, {9, 3}, {12, 4}, {13, 4}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        pc_chart_data data;
        pc_chart_layout layout;
        table rows = make_rows(2, columns[i][0], 2);
        pc_chart chart = make_chart(1, PC_CHART_LINES);
        assert_int_equal(pc_chart_collect(&chart, rows.row, rows.count, &data, NULL), PC_OK);
        pc_chart_lay_out(&data, &layout);
        assert_int_equal(layout.columns, columns[i][1]);
        pc_chart_data_free(&data);
        free(rows.row);
    }
}

/* Of bars, each panel has its own groups: here every panel one. */
static void bars_show_no_empty_groups(void **state) {
    (void)state;
    table rows = make_rows(2, 2, 3);
    pc_chart_data data;
    pc_chart_axis axis;
    pc_chart chart = make_chart(1, PC_CHART_BARS);
    chart.panels = "microbatches";
    assert_int_equal(pc_chart_collect(&chart, rows.row, rows.count, &data, NULL), PC_OK);
    for (int panel = 0; panel < 3; panel++) {
        pc_chart_make_x_axis(&data, panel, 300, &axis);
        assert_int_equal(axis.tick_count, 1);
        assert_string_equal(axis.tick[0].label, data.panels.name[panel]);
        assert_true(pc_chart_position(&axis, panel) == 0 && axis.low == -0.5 && axis.high == 0.5);
    }
    pc_chart_data_free(&data);
    free(rows.row);
}

/* Lines of letters 12 pixels high, turned by 35 degrees, are slot * sin(35 degrees) apart. */
static void many_names_do_not_touch(void **state) {
    (void)state;
    table rows = make_rows(PC_CHART_GROUPS_MAX, 4, 1);
    pc_chart_data data;
    pc_chart_layout layout;
    pc_chart chart = make_chart(1, PC_CHART_BARS);
    chart.x = "schedule";
    chart.series = NULL;
    assert_int_equal(pc_chart_collect(&chart, rows.row, rows.count, &data, NULL), PC_OK);
    pc_chart_lay_out(&data, &layout);
    assert_true(layout.ticks_turned);
    assert_true(layout.plot_width / PC_CHART_GROUPS_MAX * sin(PC_CHART_TURN * 3.14159 / 180) > PC_STYLE_TEXT_FONT);
    pc_chart_data_free(&data);
    free(rows.row);
}

static void text_is_broken_at_blanks(void **state) {
    (void)state;
    char lines[3][PC_CHART_LINE_SIZE];
    assert_int_equal(pc_chart_wrap("one two three", 8, 3, lines), 2);
    assert_string_equal(lines[0], "one two");
    assert_string_equal(lines[1], "three");
    assert_int_equal(pc_chart_wrap("  one two three four", 7, 2, lines), 2);
    assert_string_equal(lines[1], "three four"); /* the last has the rest */
    assert_int_equal(pc_chart_wrap("unbreakable", 3, 3, lines), 1);
    assert_int_equal(pc_chart_wrap("", 3, 3, lines), 0);
    assert_int_equal(pc_chart_wrap("\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9", 2, 3, lines), 2); /* letters, not bytes */
}

/* --- pictures --- */

static void assert_chart_drawn(const pc_chart *chart, const table *rows, const char *path) {
    pc_error error = {0};
    if (pc_figure_chart(chart, rows->row, rows->count, path, &error)) fail_msg("%s", error.message);
}

static void all_formats_are_drawn_the_same_twice(void **state) {
    static const char *const endings[][2] = {{"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF"}};
    const folder *at = *state;
    need_gnuplot();
    table rows = make_rows(3, 2, 3);
    pc_chart chart = make_chart(2, PC_CHART_LINES);
    for (int i = 0; i < 3; i++) {
        char path[160], *picture[2];
        size_t size[2];
        snprintf(path, sizeof path, "%s/a.%s", at->path, endings[i][0]);
        for (int k = 0; k < 2; k++) {
            assert_chart_drawn(&chart, &rows, path);
            picture[k] = read_text(path, &size[k]);
        }
        assert_memory_equal(picture[0], endings[i][1], strlen(endings[i][1]));
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(picture[0], picture[1], size[0]);
        free(picture[0]);
        free(picture[1]);
    }
    free(rows.row);
}

/* 3 schedules, 2 models, 4 values: 24 of ours; of the first value, others published 6. */
static void every_point_says_what_it_is(void **state) {
    const folder *at = *state;
    need_gnuplot();
    for (int style = PC_CHART_POINTS; style <= PC_CHART_BARS; style++) {
        table rows = make_rows(3, 2, 4);
        pc_chart chart = make_chart(1, (pc_chart_style)style);
        size_t size;
        assert_chart_drawn(&chart, &rows, at->file);
        char *svg = read_text(at->file, &size);
        assert_int_equal(count_of(svg, "class=\"point\""), 24);
        assert_int_equal(count_of(svg, "class=\"point published\""), 6);
        assert_int_equal(count_of(svg, "<title>"), 30);
        assert_int_equal(count_of(svg, "<title>run-1: microbatches 8, mfu 30%</title>"), 1);
        assert_int_equal(count_of(svg, "<title>run-1, published: microbatches 8, mfu 33%</title>"), 1);
        assert_int_equal(count_of(svg, "<title>run-24: microbatches 32, mfu 37%</title>"), 1); /* 30 + 2*2 + 3 */
        assert_int_equal(count_of(svg, ">published</text>"), 1);
        assert_int_equal(count_of(svg, ">v-half</text>"), 1);
        free(svg);
        free(rows.row);
    }
}

/* The second row of panels has nothing in it, and still a place. */
static void an_empty_panel_is_drawn(void **state) {
    const folder *at = *state;
    need_gnuplot();
    table rows = make_rows(2, 2, 2);
    for (int i = 0; i < rows.count; i++)
        if (strcmp(rows.row[i].model, "model 1") == 0) rows.row[i].iteration_s = NAN;
    pc_chart chart = make_chart(2, PC_CHART_POINTS);
    chart.title = NULL;
    assert_chart_drawn(&chart, &rows, at->file);
    free(rows.row);
}

/* Each of these, in a language that is not looking, would make the file <folder>/run. */
static void text_runs_no_command(void **state) {
    static const char *const tricks[] = {
        "`touch %s/run`",
        "\"; system(\"touch %s/run\"); \"",
        "'; system('touch %s/run'); '",
        "x'\nsystem('touch %s/run')\nset label 'y",
        "' 1, '') ; system('touch %s/run') #",
        "EOD\nsystem('touch %s/run')\n",
        "%%d %%s %%g%% \\ `touch %s/run",
    };
    const folder *at = *state;
    need_gnuplot();
    for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++) {
        char text[PC_LABEL_SIZE];
        table rows = make_rows(1, 1, 1);
        snprintf(text, sizeof text, tricks[i], at->path);
        snprintf(rows.row->model, sizeof rows.row->model, "%s", text);
        snprintf(rows.row->schedule, sizeof rows.row->schedule, "%s", text);
        snprintf(rows.row->name, sizeof rows.row->name, "%s", text);
        pc_chart chart = make_chart(1, PC_CHART_BARS);
        chart.title = chart.x_label = chart.y_label[0] = text;
        chart.x = "name";
        assert_chart_drawn(&chart, &rows, at->file);
        assert_int_equal(count_entries(at->path), 1);
        free(rows.row);
    }
}

static void text_stands_as_it_was_given(void **state) {
    const folder *at = *state;
    need_gnuplot();
    size_t size;
    table rows = make_rows(1, 1, 1);
    snprintf(rows.row->model, sizeof rows.row->model, "5%% of {a}_b <&> \xc3\xa9");
    pc_chart chart = make_chart(1, PC_CHART_BARS);
    chart.x = "model";
    chart.panels = NULL;
    assert_chart_drawn(&chart, &rows, at->file);
    char *svg = read_text(at->file, &size);
    assert_non_null(strstr(svg, "5% of {a}_b &lt;&amp;> \xc3\xa9</text>"));
    free(svg);
    char command[256];
    snprintf(command, sizeof command, "python3 -c \"import xml.dom.minidom as m; m.parse('%s')\"", at->file);
    if (system("python3 -c pass >/dev/null 2>&1") == 0) assert_int_equal(system(command), 0);
    free(rows.row);
}

static void every_refused_allocation_is_reported(void **state) {
    const folder *at = *state;
    need_gnuplot();
    table rows = make_rows(1, 1, 2);
    pc_chart chart = make_chart(1, PC_CHART_LINES);
    for (refusals x = {0}; next_refusal(&x);) {
        x.code = pc_figure_chart(&chart, rows.row, rows.count, at->file, NULL);
        assert_int_equal(count_entries(at->path), x.code == PC_OK);
    }
    free(rows.row);
}

#define TEST(function) TEST_IN_FOLDER(function, "chart.svg")

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_shapes_have_room),
        TEST(panels_are_spread_over_rows),
        TEST(bars_show_no_empty_groups),
        TEST(many_names_do_not_touch),
        TEST(text_is_broken_at_blanks),
        TEST(all_formats_are_drawn_the_same_twice),
        TEST(every_point_says_what_it_is),
        TEST(an_empty_panel_is_drawn),
        TEST(text_runs_no_command),
        TEST(text_stands_as_it_was_given),
        TEST(every_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
