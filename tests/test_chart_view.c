/* How charts are shown: logarithmic axes, ranges, series that lie under others, several files, and dark colours. */
#include "results/figures/chart_private.h"
#include "results/figures/picture.h"
#include "tests/support.h"

#include <math.h>

enum { ROWS = 8 };

/* Microbatches 1, 10, 100, 1000; mfu as given. */
static void make_rows(pc_run_row rows[ROWS], int count, const double mfu[]) {
    for (int i = 0; i < count; i++) {
        pc_run_row_clear(&rows[i]);
        rows[i].run = i + 1;
        snprintf(rows[i].name, sizeof rows[i].name, "run-%d", i + 1);
        snprintf(rows[i].schedule, sizeof rows[i].schedule, "%s", i < 4 ? "1f1b" : "zb-h1");
        rows[i].microbatches = (int64_t)pow(10, i % 4);
        rows[i].mfu = mfu[i];
    }
}

static const pc_chart by_microbatches = {
    .x = "microbatches", .y = {"mfu"}, .y_count = 1, .series = "schedule", .style = PC_CHART_LINES};

static pc_code try_collect(const pc_chart *chart, const pc_run_row *rows, int count, pc_chart_data *data,
                           pc_error *error) {
    assert_int_equal(pc_chart_check(chart, error), PC_OK);
    return pc_chart_collect(chart, rows, count, data, error);
}

/* --- logarithmic axes --- */

/* Positions are log2: a decade is log2(10) long wherever it lies, and there is a mark at each power of ten. */
static void decades_are_equally_long(void **state) {
    (void)state;
    static const double mfu[] = {0.001, 0.01, 0.1, 1};
    pc_run_row rows[ROWS];
    pc_chart chart = by_microbatches;
    pc_chart_data data;
    pc_chart_axis x, y;
    pc_error error = {0};
    make_rows(rows, 4, mfu);
    chart.x_is_log = chart.y_is_log = true;
    assert_int_equal(try_collect(&chart, rows, 4, &data, &error), PC_OK);
    pc_chart_make_x_axis(&data, 0, 600, &x);
    pc_chart_make_y_axis(&data, 0, 300, &y);
    for (double value = 1; value < 1000; value *= 10) {
        assert_true(fabs(pc_chart_position(&x, 10 * value) - pc_chart_position(&x, value) - log2(10)) < 1e-9);
        assert_true(pc_chart_is_on(&x, pc_chart_position(&x, value)));
    }
    int found = 0;
    static const char *const marks[] = {"0.1%", "1%", "10%", "100%"};
    for (int i = 0; i < y.tick_count; i++)
        for (int k = 0; k < 4; k++)
            if (strcmp(y.tick[i].label, marks[k]) == 0) {
                found++;
                assert_true(fabs(y.tick[i].at - log2(0.1 * pow(10, k))) < 1e-9);
            }
    assert_int_equal(found, 4);
    pc_chart_data_free(&data);
}

static void zero_is_on_no_logarithmic_axis(void **state) {
    (void)state;
    static const double mfu[] = {0.4, 0, 0.2, 0.1};
    pc_run_row rows[ROWS];
    pc_chart chart = by_microbatches;
    pc_chart_data data;
    pc_error error = {0};
    make_rows(rows, 4, mfu);
    chart.y_is_log = true;
    assert_int_equal(try_collect(&chart, rows, 4, &data, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "'mfu' of run run-2 is 0, which is on no logarithmic axis; expected more than "
                                       "zero, or a range that leaves it out");
    pc_chart_data_free(&data);
    chart.y_range[0] = (pc_chart_range){.has_low = true, .low = 1}; /* percent */
    assert_int_equal(try_collect(&chart, rows, 4, &data, &error), PC_OK);
    assert_int_equal(data.point_count, 3);
    pc_chart_data_free(&data);
}

/* --- ranges --- */

/* The axis ends where it was asked to, but for a hair; of points nothing outside is kept, of lines all. */
static void ranges_are_the_axis(void **state) {
    (void)state;
    static const double mfu[] = {0.4, 0.3, 0.2, 0.1};
    pc_run_row rows[ROWS];
    pc_chart chart = by_microbatches;
    pc_chart_axis x, y;
    pc_error error = {0};
    make_rows(rows, 4, mfu);
    chart.x_range = (pc_chart_range){.has_low = true, .has_high = true, .low = 5, .high = 100};
    for (int is_points = 0; is_points < 2; is_points++) {
        pc_chart_data data;
        chart.style = is_points ? PC_CHART_POINTS : PC_CHART_LINES;
        assert_int_equal(try_collect(&chart, rows, 4, &data, &error), PC_OK);
        assert_int_equal(data.point_count, is_points ? 2 : 4);
        pc_chart_make_x_axis(&data, 0, 600, &x);
        pc_chart_make_y_axis(&data, 0, 300, &y);
        assert_true(fabs(x.low - 5) < 1e-3 && fabs(x.high - 100) < 1e-3 && x.high > 100);
        assert_true(y.low > 10 && y.low < 20 && y.high > 30 && y.high < 40); /* of 20% and 30% alone */
        pc_chart_data_free(&data);
    }
}

static void ranges_that_cannot_be(void **state) {
    (void)state;
    static const double mfu[] = {0.4, 0.3, 0.2, 0.1};
    pc_run_row rows[ROWS];
    pc_chart chart = by_microbatches;
    pc_chart_data data;
    pc_error error = {0};
    make_rows(rows, 4, mfu);
    chart.x_range = (pc_chart_range){.has_low = true, .has_high = true, .low = 2, .high = 9};
    assert_int_equal(try_collect(&chart, rows, 4, &data, &error), PC_ERROR_INPUT);
    pc_chart_data_free(&data);
    chart.x_range.high = 2;
    assert_int_equal(pc_chart_check(&chart, &error), PC_ERROR_INPUT);
    assert_string_equal(pc_error_part_of(&error, PC_ERROR_PART_KEY), "x_range"); /* as scenarios and the library say */
    chart.x_range = (pc_chart_range){.has_low = true, .low = 0};
    assert_int_equal(pc_chart_check(&chart, &error), PC_OK);
    chart.x_is_log = true;
    assert_int_equal(pc_chart_check(&chart, &error), PC_ERROR_INPUT);
    chart.style = PC_CHART_BARS;
    assert_int_equal(pc_chart_check(&chart, &error), PC_ERROR_INPUT);
}

/* --- series under others --- */

static void assert_hidden(const pc_chart *chart, const pc_run_row *rows, int count, const char *expected) {
    pc_chart_data data;
    pc_error error = {0};
    pc_chart_layout layout;
    assert_int_equal(try_collect(chart, rows, count, &data, &error), PC_OK);
    pc_chart_lay_out(&data, &layout);
    assert_string_equal(layout.hidden, expected);
    pc_chart_data_free(&data);
}

/* The first series has fewer points than the second, all of them upon its; a point that differs is seen; and where it
 * is the later one that has fewer, it lies above. */
static void what_lies_under_another_is_said(void **state) {
    (void)state;
    static const double same[] = {0.4, 0.3, 0.2, NAN, 0.4, 0.3, 0.2, 0.1},
                        differs[] = {0.4, 0.3, 0.2, 0.1, 0.4, 0.3, 0.25, 0.1},
                        fewer[] = {0.4, 0.3, 0.2, 0.1, 0.4, 0.3, NAN, NAN};
    pc_run_row rows[ROWS];
    pc_chart chart = by_microbatches;
    make_rows(rows, ROWS, same);
    assert_hidden(&chart, rows, ROWS, "1f1b lies under zb-h1");
    chart.y[1] = "iteration_s";
    chart.y_label[0] = "Rate";
    chart.y_count = 2;
    for (int i = 0; i < ROWS; i++) rows[i].iteration_s = 1 + i;
    assert_hidden(&chart, rows, ROWS, "1f1b lies under zb-h1 (Rate)");
    chart = by_microbatches;
    chart.style = PC_CHART_BARS;
    assert_hidden(&chart, rows, ROWS, "");
    make_rows(rows, ROWS, differs);
    assert_hidden(&by_microbatches, rows, ROWS, "");
    make_rows(rows, ROWS, fewer);
    assert_hidden(&by_microbatches, rows, ROWS, "");
}

/* --- several files --- */

static void files_have_series_of_their_own(void **state) {
    (void)state;
    static const double mfu[] = {0.4, 0.3, 0.2, 0.1, 0.5, 0.4, 0.3, 0.2};
    static const char *const labels[] = {"before", "after"};
    static const int of_row[] = {0, 0, 1, 1, 0, 0, 1, 1};
    pc_run_row rows[ROWS];
    pc_chart chart = by_microbatches;
    pc_chart_data data;
    pc_error error = {0};
    make_rows(rows, ROWS, mfu);
    chart.files = (pc_chart_files){2, labels, of_row};
    assert_int_equal(try_collect(&chart, rows, ROWS, &data, &error), PC_OK);
    static const char *const expected[] = {"1f1b, before", "1f1b, after", "zb-h1, before", "zb-h1, after"};
    assert_int_equal(data.series.count, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(data.series.name[i], expected[i]);
    pc_chart_data_free(&data);
    chart.series = NULL;
    assert_int_equal(try_collect(&chart, rows, ROWS, &data, &error), PC_OK);
    assert_int_equal(data.series.count, 2);
    assert_string_equal(data.series.name[1], "after");
    pc_chart_data_free(&data);
    for (int i = 0; i < ROWS; i++)
        if (of_row[i] == 1) rows[i].mfu = NAN;
    assert_int_equal(try_collect(&chart, rows, ROWS, &data, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "nothing of 'after' to draw"));
    pc_chart_data_free(&data);
}

/* --- dark --- */

static double luminance(uint32_t colour) {
    static const double weight[3] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double part = (double)(colour >> (16 - 8 * i) & 0xFF) / 255;
        sum += weight[i] * (part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4));
    }
    return sum;
}

/* What white becomes is the ground; text and all saturated colours stand out from it by WCAG's 3 at least. */
static void dark_colours_stand_out(void **state) {
    (void)state;
    uint32_t ground = pc_dark_colour(0xFFFFFF);
    assert_true(luminance(ground) < 0.02);
    assert_true((luminance(pc_dark_colour(0x222222)) + 0.05) / (luminance(ground) + 0.05) > 7);
    for (uint32_t red = 0; red <= 255; red += 15)
        for (uint32_t green = 0; green <= 255; green += 15)
            for (uint32_t blue = 0; blue <= 255; blue += 15) {
                uint32_t most = red > green ? red : green, least = red < green ? red : green;
                most = most > blue ? most : blue;
                least = least < blue ? least : blue;
                if (most - least < 60 || most + least > 400) continue; /* greys, tints of the page */
                uint32_t turned = pc_dark_colour(red << 16 | green << 8 | blue);
                assert_true((luminance(turned) + 0.05) / (luminance(ground) + 0.05) >= 3);
            }
    assert_true(luminance(pc_dark_colour(0xC7E6DC)) < 0.1); /* a tint stays one */
}

static void only_colours_of_the_page_change(void **state) {
    (void)state;
    pc_text script = {0};
    pc_text_printf(&script,
                   "background '#ffffff' textcolor rgb '#000000' fillcolor rgb 0x000000 'rgb #000000' rgb '#80ffffff'");
    pc_picture_darken(&script);
    pc_text_add(&script, "", 1);
    assert_string_equal(script.data,
                        "background '#171717' textcolor rgb '#ebebeb' fillcolor rgb 0x000000 'rgb #000000' rgb "
                        "'#80171717'");
    pc_text_free(&script);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decades_are_equally_long),
        cmocka_unit_test(zero_is_on_no_logarithmic_axis),
        cmocka_unit_test(ranges_are_the_axis),
        cmocka_unit_test(ranges_that_cannot_be),
        cmocka_unit_test(what_lies_under_another_is_said),
        cmocka_unit_test(files_have_series_of_their_own),
        cmocka_unit_test(dark_colours_stand_out),
        cmocka_unit_test(only_colours_of_the_page_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
