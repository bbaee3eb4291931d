/* The load of links as a picture: which links, how much of what in each column of time; drawn in all formats. */
#include "results/figures/links_private.h"
#include "tests/engine_example.h"
#include "tests/figure_example.h"
#include "tests/refusals.h"

#include <math.h>

static pc_engine_trace trace;

static pc_links_figure figure_of(int most) {
    trace = engine_example;
    return (pc_links_figure){.title = "Load of links: a \"quoted\" <name>",
                             .subtitle = "1f1b: 2 devices, 2 microbatches",
                             .time_unit = "ms",
                             .time_unit_ps = 1e9,
                             .end_ps = 6000 * MS,
                             .trace = &trace,
                             .most = most};
}

/* What went over the link of a row in a colour, by its columns: the sum of load x bandwidth x time. */
static double carried(const pc_links_data *data, int row, int colour) {
    double bandwidth = data->trace->link_bytes_per_s[data->rows[row].link], sum = 0;
    for (int column = 0; column < PC_LINKS_COLUMNS; column++) sum += pc_links_loads(data, row, column)[colour];
    return sum * bandwidth * pc_time_to_seconds(data->end_ps) / PC_LINKS_COLUMNS;
}

static void assert_near(double found, double wanted) {
    if (fabs(found - wanted) > 1e-9 * fmax(1, fabs(wanted))) fail_msg("%.17g is not %.17g", found, wanted);
}

/* Time goes on to 6.5 s, the end of the overhead. Links between stages: 1 GB each over 1 GB/s, 1 / 6.5 of the time.
 * NICs: 2 GB of gradients and 1 GB of the tied embedding's over 2 GB/s, 1.5 / 6.5; from 5 to 5.5 s both are under way
 * and the load is 4 GB/s: half of it each, so that all in all each colour has its own bytes. Columns are 6.5 ms. */
static void columns_have_what_was_sent(void **state) {
    (void)state;
    pc_links_data data;
    pc_links_figure figure = figure_of(PC_LINKS_MOST);
    assert_int_equal(pc_links_collect(&figure, &data, NULL), PC_OK);
    assert_int_equal(data.end_ps, 6500 * MS);
    assert_int_equal(data.row_count, 4);
    assert_int_equal(data.panel_count, 2);
    for (int row = 0; row < 4; row++) {
        assert_int_equal(data.rows[row].link, row);
        assert_near(data.rows[row].mean, row < 2 ? 1 / 6.5 : 1.5 / 6.5);
        assert_near(data.rows[row].most, row < 2 ? 1 : 2);
        for (int colour = 0; colour < PC_LINKS_COLOURS; colour++) {
            static const double of_stages[] = {1e9, 0, 0, 0, 0}, of_nics[] = {0, 0, 0, 2e9, 1e9};
            assert_near(carried(&data, row, colour), (row < 2 ? of_stages : of_nics)[colour]);
        }
    }
    const double *before = pc_links_loads(&data, 2, 700), *after = pc_links_loads(&data, 2, 800); /* 4.55 and 5.2 s */
    assert_near(before[3], 1);
    assert_near(before[4], 0);
    assert_near(after[3], 1);
    assert_near(after[4], 1);
    assert_near(data.panels[0].scale, 1);
    assert_near(data.panels[1].scale, 2);
    assert_true(data.panels[0].is_shared && !data.panels[1].is_shared);
    assert_true(data.has_colour[0] && !data.has_colour[1] && !data.has_colour[2]);
    assert_int_equal(pc_links_run_end(&data, 0, 0), 153); /* idle up to the column of 1 s: 153.8 */
    pc_links_free(&data);
}

/* Stage 1's link would tie with stage 0's: the first one is taken. A second message over it makes it the busier one. */
static void the_busiest_are_drawn(void **state) {
    (void)state;
    pc_links_data data;
    pc_links_figure figure = figure_of(1);
    double loads[ENGINE_LOADS];
    assert_int_equal(pc_links_collect(&figure, &data, NULL), PC_OK);
    assert_int_equal(data.row_count, 2);
    assert_int_equal(data.rows[0].link, 0);
    assert_int_equal(data.rows[1].link, 2);
    assert_int_equal(data.panels[0].of, 2);
    assert_int_equal(data.panels[0].count, 1);
    pc_links_free(&data);
    memcpy(loads, trace.load_bytes_per_s, sizeof loads);
    loads[4] *= 0.5; /* of link 1 */
    loads[2] *= 0.25;
    trace.load_bytes_per_s = loads;
    assert_int_equal(pc_links_collect(&figure, &data, NULL), PC_OK);
    assert_int_equal(data.rows[0].link, 0); /* 0.5 + 0.125 GB against 0.5 GB */
    pc_links_free(&data);
    loads[0] *= 0.5;
    assert_int_equal(pc_links_collect(&figure, &data, NULL), PC_OK);
    assert_int_equal(data.rows[0].link, 1); /* 0.25 + 0.125 GB against 0.5 GB */
    pc_links_free(&data);
}

static void nothing_sent_is_an_error(void **state) {
    const folder *at = *state;
    pc_links_figure figure = figure_of(4);
    pc_error error = {0};
    trace.load_count = 0;
    assert_int_equal(pc_figure_links(&figure, at->file, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "nothing goes over any link; expected a run that sends something"));
    trace.load_count = ENGINE_LOADS;
    assert_int_equal(pc_figure_links(&figure, "f.jpg", &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "ends in .svg, .png or .pdf"));
    assert_int_equal(count_entries(at->path), 0);
}

/* A piece ends where a load changes and at both sides of the column in which that falls, of 6.5 ms. So there are three
 * pieces for each message; of each NIC five of gradients (1/3, 1, the column of the change, 1, 1/6) and three of the
 * other colour.
 */
static void all_formats_are_drawn_the_same_twice(void **state) {
    const folder *at = *state;
    static const char *const endings[] = {"svg", "png", "pdf"};
    need_gnuplot();
    for (int i = 0; i < 3; i++) {
        pc_links_figure figure = figure_of(4);
        char path[2][160];
        size_t size[2];
        char *text[2];
        for (int k = 0; k < 2; k++) {
            pc_error error = {0};
            snprintf(path[k], sizeof path[k], "%s/%d.%s", at->path, k, endings[i]);
            if (pc_figure_links(&figure, path[k], &error)) fail_msg("%s", error.message);
            text[k] = read_text(path[k], &size[k]);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(text[0], text[1], size[0]);
        if (i == 0) {
            assert_int_equal(count_of(text[0], "class=\"load\""), 3 * 3 + 2 * (5 + 3));
            assert_int_equal(count_of(text[0], "<title>stage 0 NIC out: reductions of gradients, 2 GB/s, 100%: "), 3);
            assert_int_equal(count_of(text[0], ">stage 0 to 1</text>"), 1);
            assert_int_equal(count_of(text[0], ">15.4%</text>"), 2);
            assert_int_equal(count_of(text[0], ">a band is 200% of the bandwidth, the line 100%; nothing is shared: "
                                               "each flow has all of it, as if alone</text>"),
                             1);
            assert_int_equal(count_of(text[0], ">Load of links: a \"quoted\" &lt;name"), 1);
        }
        free(text[0]);
        free(text[1]);
    }
}

static void every_refused_allocation_is_reported(void **state) {
    (void)state;
    pc_links_figure figure = figure_of(4);
    refusals x = {0};
    while (next_refusal(&x)) {
        pc_links_data data;
        x.code = pc_links_collect(&figure, &data, NULL);
        pc_links_free(&data);
    }
    assert_true(x.tried > 6); /* found, rows, use, row_of, events, states, loads */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_what_was_sent),
        cmocka_unit_test(the_busiest_are_drawn),
        TEST_IN_FOLDER(nothing_sent_is_an_error, "f.svg"),
        TEST_IN_FOLDER(all_formats_are_drawn_the_same_twice, "f.svg"),
        cmocka_unit_test(every_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
