/* Timelines drawn by gnuplot: what is refused, what is in the picture, and that nobody's text becomes a command. */
#include "tests/figure_example.h"
#include "tests/refusals.h"

#include <sys/stat.h>

/* --- paths --- */

static void the_ending_names_the_format(void **state) {
    (void)state;
    pc_error error = {0};
    assert_int_equal(pc_figure_check_path("a.svg", NULL), PC_OK);
    assert_int_equal(pc_figure_check_path("a.b/c.PNG", NULL), PC_OK);
    assert_int_equal(pc_figure_check_path("a.pdf", NULL), PC_OK);
    static const char *const wrong[] = {"a.jpg", "svg", ".svg", "", "a.svg.gz", "a.svg "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(pc_figure_check_path(wrong[i], &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, ".svg, .png or .pdf"));
}

static void impossible_paths_are_refused(void **state) {
    const folder *at = *state;
    figure_example made;
    pc_error error = {0};
    char path[160];
    make_figure_example(&made, 2, 2, 1);
    snprintf(path, sizeof path, "%s/no/such.svg", at->path);
    assert_int_equal(pc_figure_timeline(&made.timeline, path, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "there is no folder"));
    assert_int_equal(pc_figure_timeline(&made.timeline, "/dev/full", &error), PC_ERROR_INPUT);
    assert_int_equal(mkdir(at->file, 0777), 0);
    assert_int_equal(pc_figure_timeline(&made.timeline, at->file, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "is a folder"));
    free_example(&made);
}

/* --- pictures --- */

static void all_formats_are_drawn(void **state) {
    static const struct {
        const char *name, *start;
    } formats[] = {{"a.svg", "<?xml"}, {"a.png", "\x89PNG"}, {"a.pdf", "%PDF"}};
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    make_figure_example(&made, 4, 8, 2);
    for (int i = 0; i < 3; i++) {
        char path[160];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", at->path, formats[i].name);
        assert_drawn(&made.timeline, path);
        char *picture = read_text(path, &size);
        assert_memory_equal(picture, formats[i].start, strlen(formats[i].start));
        free(picture);
    }
    assert_int_equal(count_entries(at->path), 3);
    free_example(&made);
}

static void same_schedule_gives_the_same_bytes(void **state) {
    static const char *const endings[] = {"svg", "png", "pdf"};
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    make_figure_example(&made, 4, 8, 1);
    for (int i = 0; i < 3; i++) {
        char path[2][160], *picture[2];
        size_t size[2];
        for (int k = 0; k < 2; k++) {
            snprintf(path[k], sizeof path[k], "%s/%d.%s", at->path, k, endings[i]);
            assert_drawn(&made.timeline, path[k]);
            picture[k] = read_text(path[k], &size[k]);
            if (k == 0 && i == 2) sleep(1); /* a pdf may note the time, in seconds */
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(picture[0], picture[1], size[0]);
        free(picture[0]);
        free(picture[1]);
    }
    free_example(&made);
}

/* 2 stages, 3 microbatches: 6 passes of a kind, each a polygon in its colour; the legend has one more. */
static void every_pass_is_in_the_picture(void **state) {
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    size_t size;
    make_figure_example(&made, 2, 3, 1);
    assert_drawn(&made.timeline, at->file);
    char *svg = read_text(at->file, &size);
    assert_int_equal(count_of(svg, "<polygon fill = 'rgb(  0, 114, 178)'"), 7);
    assert_int_equal(count_of(svg, "<polygon fill = 'rgb(213,  94,   0)'"), 7);
    assert_int_equal(count_of(svg, "<polygon fill = 'rgb(233, 214,  40)'"), 7);
    assert_int_equal(count_of(svg, ">2</text>"), 6); /* microbatch 2, in all of its passes */
    assert_non_null(strstr(svg, ">example</text>"));
    assert_non_null(strstr(svg, ">of a timeline</text>"));
    assert_non_null(strstr(svg, ">Time [s]</text>"));
    assert_non_null(strstr(svg, ">F forward</text>"));
    assert_non_null(strstr(svg, ">W backward, weights</text>"));
    assert_null(strstr(svg, "recompute"));
    free(svg);
    free_example(&made);
}

static void extreme_shapes_are_drawn(void **state) {
    static const int shapes[][3] = {{1, 1, 1}, {1, 1, PC_CHUNKS_MAX}, {3000, 1, 1}, {1, 5000, 2}, {32, 128, 1}};
    const folder *at = *state;
    need_gnuplot();
    for (long i = 0; i < test_part(2, sizeof shapes / sizeof shapes[0]); i++) {
        figure_example made;
        make_figure_example(&made, shapes[i][0], shapes[i][1], shapes[i][2]);
        made.timeline.subtitle = NULL;
        made.timeline.time_unit = "";
        assert_drawn(&made.timeline, at->file);
        free_example(&made);
    }
}

/* A replay that ran out of memory may hold passes that never ran; all of them make no picture. */
static void passes_that_never_ran_are_not_drawn(void **state) {
    const folder *at = *state;
    figure_example made;
    pc_error error = {0};
    make_figure_example(&made, 1, 1, 1);
    for (int i = 0; i < 3; i++) made.trace.pass_end_ps[i] = made.trace.pass_start_ps[i] = -1;
    assert_int_equal(pc_figure_timeline(&made.timeline, at->file, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "timeline.svg: there is no pass to draw; expected one that takes time"));
    made.trace.pass_count = 2000000;
    assert_int_equal(pc_figure_timeline(&made.timeline, at->file, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "2000000 passes are too many"));
    assert_int_equal(count_entries(at->path), 0);
    free_example(&made);
}

/* --- text of users --- */

/* Each of these, in a language that is not looking, would make the file <folder>/run. */
static void text_runs_no_command(void **state) {
    static const char *const tricks[] = {
        "`touch %s/run`",
        "\"; system(\"touch %s/run\"); \"",
        "'; system('touch %s/run'); '",
        "x'\nsystem('touch %s/run')\nset label 'y",
        "$(touch %s/run)",
        "\\'; !touch %s/run",
        "@run {/Bold x}^2_a \\n \\\\ # %%d %%s `touch %s/run",
        "EOD\nsystem('touch %s/run')\n",
        "''; system('touch %s/run')",
        "{{{ `touch %s/run` }",
        "\" `touch %s/run` \" ' `touch run`",
        "%s \\",
    };
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    make_figure_example(&made, 2, 2, 1);
    for (size_t i = 0; i < sizeof tricks / sizeof tricks[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, tricks[i], at->path);
        made.timeline.title = made.timeline.subtitle = text;
        made.timeline.time_unit = text;
        assert_drawn(&made.timeline, at->file);
        assert_int_equal(count_entries(at->path), 1);
    }
    free_example(&made);
}

static void text_stands_as_it_was_given(void **state) {
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    size_t size;
    make_figure_example(&made, 2, 2, 1);
    made.timeline.title = "it's {/Bold 7}_B ^2 @x ~y \\n \"q\" `w` <&> \xc3\xa9 \xff\x01";
    made.timeline.time_unit = "\xc2\xb5s";
    assert_drawn(&made.timeline, at->file);
    char *svg = read_text(at->file, &size);
    assert_non_null(
        strstr(svg, "it\xe2\x80\x99s {/Bold 7}_B ^2 @x ~y \\n \"q\" `w` &lt;&amp;> \xc3\xa9 \xef\xbf\xbd?"));
    assert_non_null(strstr(svg, "Time [\xc2\xb5s]"));
    free(svg);
    free_example(&made);
}

static void text_leaves_the_svg_well_formed(void **state) {
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    size_t size;
    make_figure_example(&made, 2, 2, 1);
    made.timeline.title = "&#x1; <![CDATA[ ]]> </text> &lt; <b>";
    made.timeline.time_unit = "--> <!-- &";
    assert_drawn(&made.timeline, at->file);
    char *svg = read_text(at->file, &size);
    assert_null(strstr(svg, "&#x"));
    assert_null(strstr(svg, "]]>"));
    free(svg);
    char command[256];
    snprintf(command, sizeof command, "python3 -c \"import xml.dom.minidom as m; m.parse('%s')\"", at->file);
    if (system("python3 -c pass >/dev/null 2>&1") == 0) assert_int_equal(system(command), 0);
    free_example(&made);
}

static void long_text_is_cut(void **state) {
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    size_t size;
    char title[5000];
    memset(title, 'x', sizeof title - 1);
    title[sizeof title - 1] = '\0';
    make_figure_example(&made, 2, 2, 1);
    made.timeline.title = title;
    assert_drawn(&made.timeline, at->file);
    char *svg = read_text(at->file, &size);
    assert_non_null(strstr(svg, "xxx\xe2\x80\xa6</text>")); /* an ellipsis */
    free(svg);
    free_example(&made);
}

/* --- gnuplot that fails --- */

static void a_missing_gnuplot_is_named(void **state) {
    const folder *at = *state;
    figure_example made;
    pc_error error = {0};
    make_figure_example(&made, 2, 2, 1);
    assert_int_equal(draw_with_programs_of(at->path, &made.timeline, at->file, &error), PC_ERROR_IO);
    assert_non_null(strstr(error.message, "gnuplot: not found; install gnuplot-nox"));
    assert_int_equal(count_entries(at->path), 0);
    free_example(&made);
}

static void a_failing_gnuplot_leaves_what_was_there(void **state) {
    static const struct {
        const char *script, *message;
    } cases[] = {
        {"#!/bin/sh\necho half a picture\nprintf '\\n  line 3: no such thing\\nmore\\n' >&2\nexit 1\n",
         "gnuplot: failed: line 3: no such thing"},
        {"#!/bin/sh\nexit 0\n", "gnuplot: failed: it gives no reason"},
        {"#!/bin/sh\nkill -9 $$\n", "gnuplot: failed: it gives no reason"},
    };
    const folder *at = *state;
    figure_example made;
    size_t size;
    char program[128];
    make_figure_example(&made, 2, 2, 1);
    write_file(at->file, "old");
    snprintf(program, sizeof program, "%s/gnuplot", at->path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pc_error error = {0};
        write_file(program, cases[i].script);
        assert_int_equal(chmod(program, 0755), 0);
        assert_int_equal(draw_with_programs_of(at->path, &made.timeline, at->file, &error), PC_ERROR_IO);
        if (!strstr(error.message, cases[i].message)) fail_msg("%s", error.message);
        assert_non_null(strstr(error.message, at->file));
        char *text = read_text(at->file, &size);
        assert_string_equal(text, "old");
        free(text);
        assert_int_equal(count_entries(at->path), 2);
    }
    free_example(&made);
}

static void every_refused_allocation_is_reported(void **state) {
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    make_figure_example(&made, 2, 2, 2);
    add_block(&made);
    add_levels(&made);
    for (refusals x = {0}; next_refusal(&x);) {
        x.code = pc_figure_timeline(&made.timeline, at->file, NULL);
        assert_int_equal(count_entries(at->path), x.code == PC_OK);
    }
    free_example(&made);
}

#define TEST(function) TEST_IN_FOLDER(function, "timeline.svg")

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_ending_names_the_format),
        TEST(impossible_paths_are_refused),
        TEST(all_formats_are_drawn),
        TEST(same_schedule_gives_the_same_bytes),
        TEST(every_pass_is_in_the_picture),
        TEST(extreme_shapes_are_drawn),
        TEST(passes_that_never_ran_are_not_drawn),
        TEST(text_runs_no_command),
        TEST(text_stands_as_it_was_given),
        TEST(text_leaves_the_svg_well_formed),
        TEST(long_text_is_cut),
        TEST(a_missing_gnuplot_is_named),
        TEST(a_failing_gnuplot_leaves_what_was_there),
        TEST(every_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
