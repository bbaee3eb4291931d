/* What differs between two results files, as bars: a bar a run and column, the largest change first. */
#include "engine/alloc.h"
#include "results/compare_private.h"
#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    BAR_HEIGHT = 26,
    WIDTH = 900,
    NAME_SIZE = 2 * PC_LABEL_SIZE,
    NAMES_MOST = 44, /* characters left of a bar */
    MARGIN_LEFT = 330,
    MARGIN_TOP = 66,
    BELOW = 58,
    NOTE = 24
};

typedef struct bar {
    char name[NAME_SIZE], values[96];
    double percent;
} bar;

typedef struct bars {
    bar list[PC_COMPARE_BARS_MOST];
    int count;
    int64_t left_out, without_size; /* numbers that no bar is left for; changes that are none of a number */
} bars;

/* ---- what is drawn ---- */

static double number_in(const pc_column *column, const pc_run_row *row) {
    return pc_field_is_real(&column->field) ? pc_column_real(column, row) : (double)pc_column_integer(column, row);
}

static const char *next_character(const char *at) {
    do at++;
    while (((unsigned char)*at & 0xC0) == 0x80);
    return at;
}

/* The end of a long name says more than its start: what differs among runs stands there. */
static void cut_start(const pc_text *name, char cut[NAME_SIZE]) {
    const char *start = name->data ? name->data : "";
    const size_t length = pc_utf8_length(start), left_out = length > NAMES_MOST ? length - NAMES_MOST + 1 : 0;
    for (size_t i = 0; i < left_out; i++) start = next_character(start);
    snprintf(cut, NAME_SIZE, "%s%s", left_out > 0 ? "…" : "", start);
}

static bool add_bar(const pc_comparison *c, const pc_difference *at, bool with_scenario, bool with_column, bars *of) {
    int count;
    pc_text name = {0};
    const pc_column *column = &pc_columns(&count)[at->column];
    const pc_run_row *a = &c->a[at->row], *b = &c->b[c->b_of_a[at->row]];
    bar *made = &of->list[of->count++];
    pc_compare_add_label(&name, a, with_scenario);
    if (with_column) pc_text_printf(&name, ", %s", column->field.name);
    cut_start(&name, made->name);
    made->percent = 100 * pc_relative_difference(column, a, b);
    snprintf(made->values, sizeof made->values, "%+.3g%%  (%.4g to %.4g)", made->percent, number_in(column, a),
             number_in(column, b));
    bool done = !name.failed;
    pc_text_free(&name);
    return done;
}

static const char *only_column(const pc_comparison *c) {
    int count, differing = 0;
    const pc_column *columns = pc_columns(&count);
    const char *name = NULL;
    for (int i = 0; i < count; i++)
        if (c->columns[i].runs > 0) differing++, name = columns[i].field.name;
    return differing == 1 ? name : NULL;
}

/* The order is by size: what has none stands before and behind those that have. */
static bool collect(const pc_comparison *c, bars *of) {
    const bool with_scenario = !pc_comparison_has_one_scenario(c), with_column = !only_column(c);
    bool done = true;
    *of = (bars){.count = 0};
    for (pc_difference at = PC_DIFFERENCE_START; done && pc_difference_next(c, &at);) {
        double size = pc_difference_size(c, &at);
        if (!isfinite(size) || size < 0)
            of->without_size++;
        else if (of->count == PC_COMPARE_BARS_MOST)
            of->left_out++;
        else
            done = add_bar(c, &at, with_scenario, with_column, of);
    }
    return done;
}

/* ---- the picture ---- */

static void add_bars(const bars *of, pc_text *script) {
    for (int i = 0; i < of->count; i++) {
        const bar *one = &of->list[i];
        pc_text_printf(script,
                       "set object rectangle from 0,%g to %.6g,%g fillstyle solid 1 noborder fillcolor rgb '#%06x'\n",
                       i - 0.32, one->percent, i + 0.32, one->percent > 0 ? PC_STYLE_ORANGE : PC_STYLE_BLUE);
        pc_text_printf(script, "set label ");
        pc_gnuplot_add_string(script, one->values, sizeof one->values);
        pc_text_printf(
            script, " at first %.6g,%d left offset character 0.7,0 noenhanced front textcolor rgb '" PC_STYLE_INK "'\n",
            fmax(one->percent, 0), i);
    }
}

static void add_names(const bars *of, pc_text *script) {
    pc_text_printf(script, "set ytics (");
    for (int i = 0; i < of->count; i++) {
        pc_text_printf(script, "%s", i > 0 ? ", " : "");
        pc_gnuplot_add_string(script, of->list[i].name, NAMES_MOST + 1);
        pc_text_printf(script, " %d", i);
    }
    pc_text_printf(script, ") scale 0 nomirror noenhanced textcolor rgb '" PC_STYLE_INK "'\n");
}

/* From the farthest bar to the left to the farthest to the right, with room for the words beside each. */
static void add_axes(const bars *of, double height, double below, pc_text *script) {
    double least = 0, most = 0;
    for (int i = 0; i < of->count; i++) {
        least = fmin(least, of->list[i].percent);
        most = fmax(most, of->list[i].percent);
    }
    double span = most > least ? most - least : 1;
    pc_text_printf(script, "set lmargin at screen %.6f\nset rmargin at screen 0.97\n", (double)MARGIN_LEFT / WIDTH);
    pc_text_printf(script, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n", 1 - MARGIN_TOP / height,
                   below / height);
    pc_text_printf(
        script,
        "unset key\nset border 1 linecolor rgb '" PC_STYLE_AXIS "'\nset xrange [%.6g:%.6g]\nset yrange "
        "[%g:-0.5]\nset xtics nomirror out\nset xlabel 'Change from a to b [%%]' textcolor rgb '" PC_STYLE_INK
        "'\nset grid x linecolor rgb "
        "'" PC_STYLE_GRID "'\nset arrow from 0,graph 0 to 0,graph 1 nohead linecolor rgb '" PC_STYLE_INK "' front\n",
        least - 0.05 * span, most + 0.75 * span, of->count - 0.5);
    add_names(of, script);
}

static void add_title(const pc_comparison *c, const pc_picture_page *page) {
    char line[512];
    const char *column = only_column(c);
    const pc_compare_options *options = c->options;
    snprintf(line, sizeof line, "%s%sWhat differs", column ? column : "", column ? ": " : "");
    pc_picture_add_text(page, line, 20, 22, PC_STYLE_TITLE_FONT, true);
    snprintf(line, sizeof line, "a: %.200s, b: %.200s", options->name_a ? options->name_a : "a",
             options->name_b ? options->name_b : "b");
    pc_picture_add_text(page, line, 20, 46, PC_STYLE_TEXT_FONT, false);
}

static void add_note(const bars *of, const pc_picture_page *page) {
    char line[160];
    if (of->left_out == 0 && of->without_size == 0 && of->count > 0) return;
    int used = snprintf(line, sizeof line, "%s", of->count > 0 ? "" : "No number has changed.");
    if (of->left_out > 0)
        used += snprintf(line + used, sizeof line - (size_t)used, "%" PRId64 " smaller changes are left out. ",
                         of->left_out);
    if (of->without_size > 0)
        snprintf(line + used, sizeof line - (size_t)used, "%s%" PRId64 " differences have no size in percent.",
                 of->count > 0 ? "" : " ", of->without_size);
    pc_picture_add_text(page, line, 20, page->height - 14, PC_STYLE_TEXT_FONT, false);
}

static void add_script(const pc_comparison *c, const bars *of, const char *path, pc_text *script) {
    bool has_note = of->left_out > 0 || of->without_size > 0 || of->count == 0;
    double below = of->count > 0 ? BELOW + has_note * NOTE : NOTE, height = MARGIN_TOP + of->count * BAR_HEIGHT + below;
    pc_picture_begin(script, path, WIDTH, height);
    pc_picture_page page = {.script = script, .path = path, .width = WIDTH, .height = height, .margin = 10};
    add_title(c, &page);
    add_note(of, &page);
    if (of->count > 0)
        add_axes(of, height, below, script);
    else
        pc_text_printf(script, "unset border\nunset tics\nunset key\nset xrange [0:1]\nset yrange [0:1]\n");
    add_bars(of, script);
    pc_text_printf(script, "plot NaN notitle\n");
}

static pc_code draw(const pc_comparison *c, bool is_dark, const char *path, pc_error *error) {
    pc_text script = {0};
    pc_number_scope scope = {0};
    bars *of = pc_alloc(1, sizeof *of);
    pc_code code = of && pc_number_scope_enter(&scope) ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        bool done = collect(c, of);
        if (done) add_script(c, of, path, &script);
        pc_number_scope_leave(&scope);
        code = !done ? pc_error_no_memory(error) : pc_picture_draw(&script, is_dark, NULL, path, error);
    }
    pc_text_free(&script);
    pc_free(of);
    return code;
}

pc_code pc_compare_draw(const pc_run_row *a, int64_t a_count, const pc_run_row *b, int64_t b_count,
                        const pc_compare_options *options, bool is_dark, const char *path, pc_error *error) {
    pc_comparison c = {.options = NULL};
    pc_compare_options by_change = *options;
    by_change.by_change = true;
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = pc_comparison_make(a, a_count, b, b_count, &by_change, &c, error);
    if (!code) code = draw(&c, is_dark, path, error);
    pc_comparison_free(&c);
    return code;
}
