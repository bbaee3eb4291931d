/* The panels of a picture: the building block with its repetitions, and the memory curves below the timeline. What is
 * drawn is read from gnuplot's script, where the panels lie from the picture, too. */
#include "tests/figure_example.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

static void assert_contains(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("not in the text: %s", part);
}

/* The number behind the `index`-th `name`. */
static double number_behind(const char *text, const char *name, int index) {
    for (; (text = strstr(text, name)); index--) {
        text += strlen(name);
        if (index == 0) return strtod(text, NULL);
    }
    fail_msg("no '%s'", name);
    return 0;
}

/* How many lines the data block has. */
static int lines_of(const char *script, const char *name) {
    char start[64];
    snprintf(start, sizeof start, "$%s << EOD\n", name);
    const char *line = strstr(script, start);
    if (!line) fail_msg("no data block '%s'", name);
    int count = 0;
    for (line = strchr(line, '\n') + 1; strncmp(line, "EOD\n", 4) != 0; line = strchr(line, '\n') + 1) count++;
    return count;
}

/* --- memory --- */

typedef struct level {
    int device, time_s, level_gib;
} level;

static void set_levels(figure_example *made, const level *levels, int count) {
    made->trace.level_count = count;
    for (int i = 0; i < count; i++) {
        made->trace.level_device[i] = levels[i].device;
        made->trace.level_time_ps[i] = levels[i].time_s * PC_PICOSECONDS_PER_SECOND;
        made->trace.level_bytes[i] = (int64_t)levels[i].level_gib << 30;
    }
}

/* Two devices, the axis is 13 s long. Device 0 gives 2 GiB back and takes them again at 2 s: not seen. Device 1 has 5
 * GiB at 3 s, for no time: it needs them, so that it is the one with the most. Curves start at 0 and end on the axis.
 */
static void curves_are_the_levels_of_the_trace(void **state) {
    static const level levels[] = {{0, 1, 3}, {0, 2, 1}, {0, 2, 3}, {0, 4, 0},
                                   {1, 1, 2}, {1, 3, 5}, {1, 3, 2}, {1, 6, 0}};
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 2, 4, 1);
    add_levels(&made);
    set_levels(&made, levels, 8);
    char *script = script_of(at, &made.timeline);
    assert_contains(script, "$memory_others << EOD\n0 0 0\n1 0 0\n1 3 0\n4 3 0\n4 0 0\n13 0 0\n13 0 0\n\nEOD\n");
    assert_contains(script, "$memory_highest << EOD\n0 0 1\n1 0 1\n1 2 1\n3 2 1\n3 5 1\n3 2 1\n6 2 1\n6 0 1\n"
                            "13 0 1\n13 0 1\n\nEOD\n");
    assert_contains(script, "$memory_peaks << EOD\n0 3\n1 5\nEOD\n");
    assert_contains(script, "'at most 5 GiB, on device 1 (dark); a band is that high, with a line every 1'");
    free(script);
    free_example(&made);
}

/* A level is drawn where it belongs: from the bottom of its row's band (0) to the top (the highest peak). */
static void a_band_is_as_high_as_the_highest_peak(void **state) {
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 2, 2, 1);
    add_levels(&made);
    made.timeline.memory_unit_bytes = 0x1p28;
    char *script = script_of(at, &made.timeline);
    assert_contains(script, "y(level, device) = device + 0.44 - 0.88 * level / 4\n"); /* 1 GiB, in quarters */
    assert_contains(script, ":(y(4,$1)):(y(0,$1)) with boxxyerror");
    assert_contains(script, "'at most 4 GiB, on both devices; a band is that high, with a line every 1'");
    assert_null(strstr(script, "$memory_others using"));
    free(script);
    free_example(&made);
}

static void there_is_no_memory_panel_without_levels(void **state) {
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 2, 2, 1);
    char *plain = script_of(at, &made.timeline);
    add_levels(&made);
    made.timeline.memory = false;
    char *unwanted = script_of(at, &made.timeline);
    made.timeline.memory = true;
    made.trace.level_count = 0;
    char *empty = script_of(at, &made.timeline);
    assert_null(strstr(plain, "memory"));
    assert_string_equal(plain, unwanted);
    assert_string_equal(plain, empty);
    free(plain);
    free(unwanted);
    free(empty);
    free_example(&made);
}

static void levels_of_zero_are_drawn(void **state) {
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 2, 2, 1);
    add_levels(&made);
    for (int64_t i = 0; i < made.trace.level_count; i++) made.trace.level_bytes[i] = 0;
    need_gnuplot();
    assert_drawn(&made.timeline, at->file);
    free_example(&made);
}

/* --- the block --- */

/* 3 devices, F at 0, 1, 2; B of device 2 at 3, and so on; the interval is 3. The block lasts 9 cells, so that 4
 * repetitions show; the first F of the third of them starts at cell 9. */
static void the_block_is_repeated_every_interval(void **state) {
    static const char *const names[] = {"block_F_0", "block_B_0", "block_W_0"};
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 3, 4, 1);
    add_block(&made);
    char *script = script_of(at, &made.timeline);
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "boxes_%s", names[i]);
        assert_int_equal(lines_of(script, name), 3);
        snprintf(name, sizeof name, "boxes_block_pale%s", names[i] + 5);
        assert_int_equal(lines_of(script, name), 12);
    }
    const char *pale = strstr(script, "$boxes_block_pale_F_0 << EOD\n") + strlen("$boxes_block_pale_F_0 << EOD\n");
    for (int line = 0; line < 12; line++, pale = strchr(pale, '\n') + 1) {
        double start = strtod(pale, NULL);
        assert_true(fabs(start - (3 + line)) < 1e-6);
    }
    free(script);
    free_example(&made);
}

/* Numbers are the microbatches: a block of two is followed by 2 and 3, and then by 4 and 5, for four microbatches show.
 * Its clock may start anywhere. A device need not hold every kind. */
static void blocks_of_several_microbatches_count_on(void **state) {
    int64_t start[2 * PC_PASS_KINDS], duration[PC_PASS_KINDS] = {[PC_PASS_F] = 1, [PC_PASS_BW] = 2};
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 1, 4, 1);
    pc_block block = {
        .devices = 1, .chunks = 1, .microbatches = 2, .interval = 6, .start = start, .duration = duration};
    for (int i = 0; i < 2 * PC_PASS_KINDS; i++) start[i] = PC_TIME_NOT_GIVEN;
    start[pc_block_index(&block, 0, 0, 0, PC_PASS_F)] = 7;
    start[pc_block_index(&block, 1, 0, 0, PC_PASS_F)] = 8;
    start[pc_block_index(&block, 0, 0, 0, PC_PASS_BW)] = 9;
    made.timeline.block = &block;
    char *script = script_of(at, &made.timeline);
    assert_int_equal(lines_of(script, "boxes_block_F_0"), 2);
    assert_int_equal(lines_of(script, "boxes_block_BW_0"), 1);
    assert_int_equal(lines_of(script, "boxes_block_pale_BW_0"), 2);
    assert_true(number_behind(script, "$boxes_block_F_0 << EOD\n", 0) == 0);
    assert_true(fabs(number_behind(script, "$boxes_block_BW_0 << EOD\n", 0) - 2) < 1e-6);
    const char *number = strstr(script, "$numbers_block_pale_F_0 << EOD\n");
    for (int microbatch = 2; microbatch < 6; microbatch++) {
        int found;
        number = strchr(number, '\n') + 1;
        assert_int_equal(sscanf(number, "%*f %*d %d", &found), 1);
        assert_int_equal(found, microbatch);
    }
    free(script);
    free_example(&made);
}

/* The bar is an interval of the block's own axis: 3 of 21 cells, for the block of 9 is repeated 4 times. */
static void the_bar_is_an_interval_long(void **state) {
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 3, 4, 1);
    add_block(&made);
    char *script = script_of(at, &made.timeline);
    double left = number_behind(script, "set lmargin at screen ", 0);
    double right = number_behind(script, "set rmargin at screen ", 0);
    assert_true(number_behind(script, "set xrange [0:", 0) == 21);
    assert_true(fabs(number_behind(script, "set arrow from screen ", 0) - left) < 1e-6);
    const char *to = strstr(strstr(script, "set arrow"), " to screen ") + strlen(" to screen ");
    assert_true(fabs(strtod(to, NULL) - left - (right - left) * 3 / 21) < 2e-6);
    assert_contains(script, "'interval: 3 cells'");
    free(script);
    free_example(&made);
}

/* 2 devices, 3 microbatches: 6 passes of a kind in the timeline, 2 in the block, one patch in the legend; the 4
 * repetitions have 8 in the pale colour, 0072B2 with 68% of white. */
static void the_block_is_in_the_picture(void **state) {
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    size_t size;
    make_figure_example(&made, 2, 3, 1);
    add_block(&made);
    add_levels(&made);
    assert_drawn(&made.timeline, at->file);
    char *svg = read_text(at->file, &size);
    assert_int_equal(count_of(svg, "<polygon fill = 'rgb(  0, 114, 178)'"), 9);
    assert_int_equal(count_of(svg, "<polygon fill = 'rgb(173, 210, 230)'"), 8);
    assert_contains(svg, ">interval: 3 cells</text>");
    assert_contains(svg, ">Timeline</text>");
    assert_contains(svg, ">Activation memory</text>");
    assert_int_equal(count_of(svg, ">Time [s]</text>"), 1);
    free(svg);
    free_example(&made);
}

/* As many passes as a schedule may have are not multiplied. */
static void huge_blocks_are_not_repeated(void **state) {
    const folder *at = *state;
    figure_example made;
    int devices = 60000;
    make_figure_example(&made, devices, 1, 2);
    add_block(&made);
    char *script = script_of(at, &made.timeline);
    assert_int_equal(lines_of(script, "boxes_block_F_0"), devices);
    assert_null(strstr(script, "block_pale"));
    free(script);
    free_example(&made);
}

static void blocks_without_passes_or_interval_do_no_harm(void **state) {
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 2, 2, 1);
    add_block(&made);
    made.block.interval = 0;
    char *once = script_of(at, &made.timeline);
    assert_int_equal(lines_of(once, "boxes_block_F_0"), 2);
    assert_null(strstr(once, "interval:"));
    for (int i = 0; i < 2 * PC_PASS_KINDS; i++) made.block.start[i] = PC_TIME_NOT_GIVEN;
    char *without = script_of(at, &made.timeline);
    assert_null(strstr(without, "block"));
    free(once);
    free(without);
    free_example(&made);
}

/* --- where the panels lie --- */

/* Left, top, right and bottom of the polygon that starts behind `text`, in pixels. */
typedef struct frame {
    double left, top, right, bottom;
} frame;

static frame frame_of(const char *points) {
    frame found = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (char *rest; *points && *points != '\''; points = rest) {
        double x = strtod(points, &rest), y = strtod(rest + 1, &rest);
        found.left = fmin(found.left, x);
        found.right = fmax(found.right, x);
        found.top = fmin(found.top, y);
        found.bottom = fmax(found.bottom, y);
        rest += strspn(rest, " ");
    }
    return found;
}

static int find_frames(const char *svg, const char *colour, frame *frames, int most) {
    char start[64];
    snprintf(start, sizeof start, "<polygon fill = 'rgb(%s)' points = '", colour);
    int count = 0;
    for (; count < most && (svg = strstr(svg, start)); count++) frames[count] = frame_of(svg += strlen(start));
    return count;
}

/* In the picture itself: block, timeline and memory one below the other; memory as wide as the timeline, to half a
 * pixel; a band of memory in every row. */
static void panels_lie_one_below_the_other(void **state) {
    static const int shapes[][2] = {{4, 8}, {32, 8}, {2, 1000}};
    const folder *at = *state;
    need_gnuplot();
    for (int i = 0; i < 3; i++) {
        figure_example made;
        size_t size;
        frame panels[4], bands[33];
        int devices = shapes[i][0];
        make_figure_example(&made, devices, shapes[i][1], 1);
        add_block(&made);
        add_levels(&made);
        assert_drawn(&made.timeline, at->file);
        char *svg = read_text(at->file, &size);
        assert_int_equal(find_frames(svg, "243, 243, 243", panels, 4), 3);
        assert_int_equal(find_frames(svg, "226, 226, 226", bands, 33), devices);
        for (int k = 0; k < 3; k++) assert_true(fabs(panels[k].left - panels[0].left) < 0.5);
        assert_true(fabs(panels[1].right - panels[2].right) < 0.5);
        assert_true(panels[0].right <= panels[1].right + 0.5);
        assert_true(panels[0].bottom < panels[1].top && panels[1].bottom < panels[2].top);
        double row = (panels[2].bottom - panels[2].top) / devices;
        for (int d = 0; d < devices; d++) {
            assert_true(bands[d].top > panels[2].top + d * row && bands[d].bottom < panels[2].top + (d + 1) * row);
            assert_true(fabs(bands[d].left - panels[1].left) < 0.5 && fabs(bands[d].right - panels[1].right) < 0.5);
        }
        free(svg);
        free_example(&made);
    }
}

/* The timeline and the memory have the same range of time, to the last digit. */
static void the_time_axis_is_one(void **state) {
    static const char *const settings[] = {"set xrange [0:", "set lmargin at screen ", "set rmargin at screen "};
    const folder *at = *state;
    figure_example made;
    make_figure_example(&made, 3, 7, 2);
    add_levels(&made);
    char *script = script_of(at, &made.timeline);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_of(script, settings[i]), 2);
        assert_true(number_behind(script, settings[i], 0) == number_behind(script, settings[i], 1));
    }
    assert_true(number_behind(script, "set xrange [0:", 0) == 2 + 3 * 2 * 7);
    free(script);
    free_example(&made);
}

/* --- all of it --- */

static void same_panels_give_the_same_bytes(void **state) {
    static const char *const endings[] = {"svg", "png", "pdf"};
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    make_figure_example(&made, 4, 8, 2);
    add_block(&made);
    add_levels(&made);
    for (int i = 0; i < 3; i++) {
        char path[160], *picture[2];
        size_t size[2];
        snprintf(path, sizeof path, "%s/same.%s", at->path, endings[i]);
        for (int k = 0; k < 2; k++) {
            assert_drawn(&made.timeline, path);
            picture[k] = read_text(path, &size[k]);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(picture[0], picture[1], size[0]);
        free(picture[0]);
        free(picture[1]);
    }
    free_example(&made);
}

static void extreme_shapes_are_drawn(void **state) {
    static const int shapes[][3] = {{1, 1, 1}, {1, 1, PC_CHUNKS_MAX}, {3000, 1, 1}, {1, 5000, 2}, {32, 128, 1}};
    const folder *at = *state;
    need_gnuplot();
    for (long i = 0; i < test_part(2, sizeof shapes / sizeof shapes[0]); i++) {
        figure_example made;
        make_figure_example(&made, shapes[i][0], shapes[i][1], shapes[i][2]);
        add_block(&made);
        add_levels(&made);
        made.timeline.memory_unit = NULL;
        assert_drawn(&made.timeline, at->file);
        free_example(&made);
    }
}

static void the_unit_of_memory_runs_no_command(void **state) {
    const folder *at = *state;
    need_gnuplot();
    figure_example made;
    char unit[256];
    make_figure_example(&made, 2, 2, 1);
    add_levels(&made);
    snprintf(unit, sizeof unit, "`touch %s/run` '; system('touch %s/run'); '", at->path, at->path);
    made.timeline.memory_unit = unit;
    assert_drawn(&made.timeline, at->file);
    assert_int_equal(count_entries(at->path), 1);
    free_example(&made);
}

#define TEST(function) TEST_IN_FOLDER(function, "panels.svg")

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(curves_are_the_levels_of_the_trace),
        TEST(a_band_is_as_high_as_the_highest_peak),
        TEST(there_is_no_memory_panel_without_levels),
        TEST(levels_of_zero_are_drawn),
        TEST(the_block_is_repeated_every_interval),
        TEST(blocks_of_several_microbatches_count_on),
        TEST(the_bar_is_an_interval_long),
        TEST(the_block_is_in_the_picture),
        TEST(huge_blocks_are_not_repeated),
        TEST(blocks_without_passes_or_interval_do_no_harm),
        TEST(panels_lie_one_below_the_other),
        TEST(the_time_axis_is_one),
        TEST(same_panels_give_the_same_bytes),
        TEST(extreme_shapes_are_drawn),
        TEST(the_unit_of_memory_runs_no_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
