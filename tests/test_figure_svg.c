/* What is added to a picture in svg: titles for shapes, ids of its own; and pictures that are not what was expected. */
#include "engine/alloc.h"
#include "results/figures/figure_svg.h"
#include "tests/support.h"

/* As gnuplot writes it, but for what does not matter here: two plots, the second of numbers; the legend after it. */
static const char picture[] =
    "<?xml version=\"1.0\"?>\n<svg \n width=\"9\"\n>\n<title>picture</title>\n<g id=\"gnuplot_canvas\">\n"
    "<defs><use xlink:href='#gpPt5' id='gpPt6'/></defs>\n"
    "\t<g id=\"picture_plot_1a\" ><title>$boxes using 1:2</title>\n<g fill=\"none\">\n"
    "\t<g stroke='none'>\n\t\t<polygon points = '1'/>\n\t</g>\n"
    "\t<g stroke='none'>\n\t\t<polygon points = '2'/>\n\t</g>\n</g>\n\t</g>\n"
    "\t<g id=\"picture_plot_2a\" ><title>$numbers using 1:2</title>\n"
    "<g font-family=\"Helvetica:Bold\"><text>7 id='x'</text></g>\n\t</g>\n"
    "<polygon points = '3'/>\n<g filter=\"url(#textbox)\">\n</g>\n</g>\n</svg>\n";

static void add_notes(pc_svg_notes *notes, const char *data, int count) {
    pc_svg_begin_plot(notes, data, "polygon");
    for (int i = 0; i < count; i++) pc_svg_add_note(notes, i ? "" : "class=\"pass\"", i ? "a < \"b\" & c" : "first");
    pc_svg_end_plot(notes);
}

/* The caller frees it. */
static char *finish(const char *drawn, pc_svg_notes *notes) {
    pc_text finished = {0};
    pc_svg_finish(drawn, strlen(drawn), notes, &finished);
    assert_false(finished.failed);
    pc_text_free(&notes->text);
    return finished.data;
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no\n%s\nin\n%s", part, text);
}

static void shapes_get_their_titles(void **state) {
    (void)state;
    pc_svg_notes notes = {.title = "5 < 6"};
    add_notes(&notes, "empty", 0);
    add_notes(&notes, "boxes", 2);
    char *svg = finish(picture, &notes);
    assert_has(svg, "<polygon points = '1' class=\"pass\"><title>first</title></polygon>");
    assert_has(svg, "<polygon points = '2'><title>a &lt; &quot;b&quot; &amp; c</title></polygon>");
    assert_has(svg, "<polygon points = '3'/>");
    assert_has(svg, "role=\"img\" aria-label=\"5 &lt; 6\"");
    assert_null(strstr(svg, "<title>picture"));
    assert_null(strstr(svg, "<title>$"));
    pc_free(svg);
}

static void ids_are_of_this_picture(void **state) {
    (void)state;
    char *svg = finish(picture, &(pc_svg_notes){.title = NULL}), mark[32];
    char *id = strstr(svg, "<g id=\"p");
    assert_non_null(id);
    snprintf(mark, sizeof mark, "%.10s", id + 7); /* p, eight digits, a dash */
    assert_int_equal(mark[9], '-');
    static const char *const expected[] = {"id=\"%sgnuplot_canvas", "href='#%sgpPt5' id='%sgpPt6'",
                                           "id=\"%spicture_plot_2a", "url(#%stextbox)"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[128];
        snprintf(text, sizeof text, expected[i], mark, mark);
        assert_has(svg, text);
    }
    assert_has(svg, "<text>7 id='x'</text>"); /* which is no tag */
    assert_has(svg, "font-family=\"Helvetica\" font-weight=\"bold\"");
    char *again = finish(picture, &(pc_svg_notes){.title = NULL});
    assert_string_equal(svg, again);
    pc_free(svg);
    pc_free(again);
}

/* Numbers lie on the passes that they name. */
static void plots_without_notes_let_the_pointer_through(void **state) {
    (void)state;
    pc_svg_notes notes = {.title = NULL};
    add_notes(&notes, "boxes", 2);
    char *svg = finish(picture, &notes);
    assert_has(svg, "picture_plot_2a\" pointer-events=\"none\">");
    assert_has(svg, "picture_plot_1a\" >");
    pc_free(svg);
}

/* Too few notes, too many, another plot, another order: all of them are left out. */
static void what_does_not_match_is_left_out(void **state) {
    (void)state;
    char *plain = finish(picture, &(pc_svg_notes){.title = NULL});
    for (int way = 0; way < 5; way++) {
        pc_svg_notes notes = {.title = NULL};
        if (way == 3) add_notes(&notes, "numbers", 1);
        add_notes(&notes, way == 2 ? "boxe" : "boxes", way == 0 ? 1 : way == 1 ? 3 : 2);
        if (way == 4) add_notes(&notes, "more", 1);
        char *svg = finish(picture, &notes);
        assert_string_equal(svg, plain);
        pc_free(svg);
    }
    pc_free(plain);
}

static void other_files_stay_as_they_are(void **state) {
    (void)state;
    static const char *const files[] = {"plot x", "", "<svg>", "a < b"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        pc_svg_notes notes = {.title = "x"};
        add_notes(&notes, "boxes", 2);
        char *same = finish(files[i], &notes);
        assert_string_equal(same ? same : "", files[i]);
        pc_free(same);
    }
}

/* However it is cut off, it is walked through to its end, and what is not finished is not lost. */
static void pictures_that_are_cut_off_are_walked_through(void **state) {
    (void)state;
    for (size_t size = 6; size < sizeof picture; size++) {
        char *cut = malloc(size + 1);
        memcpy(cut, picture, size);
        cut[size] = '\0';
        pc_svg_notes notes = {.title = "x"};
        add_notes(&notes, "boxes", 2);
        char *svg = finish(cut, &notes);
        assert_has(svg, "<?xml");
        free(cut);
        pc_free(svg);
    }
}

static void refused_memory_shows(void **state) {
    (void)state;
    for (long after = 0;; after++) {
        pc_svg_notes notes = {.title = "x"};
        pc_text finished = {0};
        pc_alloc_fail_after(after);
        add_notes(&notes, "boxes", 2);
        if (!notes.text.failed) pc_svg_finish(picture, strlen(picture), &notes, &finished);
        pc_alloc_fail_after(-1);
        bool is_done = !notes.text.failed && !finished.failed;
        pc_text_free(&notes.text);
        pc_text_free(&finished);
        if (is_done) return;
        assert_true(after < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_get_their_titles),
        cmocka_unit_test(ids_are_of_this_picture),
        cmocka_unit_test(plots_without_notes_let_the_pointer_through),
        cmocka_unit_test(what_does_not_match_is_left_out),
        cmocka_unit_test(other_files_stay_as_they_are),
        cmocka_unit_test(pictures_that_are_cut_off_are_walked_through),
        cmocka_unit_test(refused_memory_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
