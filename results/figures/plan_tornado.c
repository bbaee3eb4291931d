#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/plan_figures.h"
#include "results/figures/style.h"
#include "storage/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BARS_MOST = 64, TEXT_SIZE = 64, BAR_HEIGHT = 34, WIDTH = 820, MARGIN_LEFT = 230, MARGIN_TOP = 84, BELOW = 64 };

/* Of one thing: what less and more of it change, in percent of plan 1's time a token; NaN: it has no run. */
typedef struct bar {
    char what[TEXT_SIZE];
    double change[2];
} bar;

typedef struct tornado {
    bar bars[BARS_MOST];
    int count;
    const pc_run_row *best;
} tornado;

/* "sensitivity.network bandwidth.x0.8" as the thing and 0.8. */
static bool read_name(const char *name, char what[TEXT_SIZE], double *factor) {
    const char *start = strchr(name, '.'), *end = start ? strstr(start + 1, ".x") : NULL;
    if (!end) return false;
    snprintf(what, TEXT_SIZE, "%.*s", (int)(end - start - 1), start + 1);
    char *rest;
    *factor = strtod(end + 2, &rest);
    return *factor > 0.0 && *rest == '\0'; /* else it is planned anew */
}

static bar *find_bar(tornado *of, const char *what) {
    for (int i = 0; i < of->count; i++)
        if (strcmp(of->bars[i].what, what) == 0) return &of->bars[i];
    if (of->count == BARS_MOST) return NULL;
    bar *made = &of->bars[of->count++];
    *made = (bar){.change = {NAN, NAN}};
    snprintf(made->what, TEXT_SIZE, "%s", what);
    return made;
}

static void add_row(tornado *of, const pc_run_row *row) {
    char what[TEXT_SIZE];
    double factor = 0.0;
    bar *found = read_name(row->name, what, &factor) ? find_bar(of, what) : NULL;
    int side = factor > 1.0;
    if (found && row->status == PC_RUN_OK)
        found->change[side] = 100 * (of->best->tokens_per_s_per_gpu / row->tokens_per_s_per_gpu - 1);
}

static double reach_of(const bar *one) {
    if (isnan(one->change[0]) && isnan(one->change[1])) return 0.0;
    return fmax(isnan(one->change[0]) ? 0.0 : fabs(one->change[0]), isnan(one->change[1]) ? 0.0 : fabs(one->change[1]));
}

static int compare_bars(const void *left, const void *right) {
    double a = reach_of(left), b = reach_of(right);
    if (a != b) return a < b ? 1 : -1;
    return strcmp(((const bar *)left)->what, ((const bar *)right)->what);
}

static pc_code collect(const pc_run_row *rows, int64_t count, tornado *of, pc_error *error) {
    *of = (tornado){.count = 0};
    for (int64_t i = 0; i < count && !of->best; i++)
        if (strcmp(rows[i].name, "plan-1") == 0) of->best = &rows[i];
    for (int64_t i = 0; i < count && of->best; i++)
        if (pc_plan_row_is_of(&rows[i], "sensitivity")) add_row(of, &rows[i]);
    qsort(of->bars, (size_t)of->count, sizeof *of->bars, compare_bars);
    if (of->count > 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "no sensitivity; expected the results of `pipecast plan --sensitivity -o`");
}

/* ---- the picture ---- */

static void add_side(const bar *one, int place, int side, unsigned colour, pc_text *script) {
    double change = one->change[side];
    if (isnan(change) || change == 0.0) return;
    pc_text_printf(script,
                   "set object rectangle from 0,%g to %.6g,%g fillstyle solid 1 noborder fillcolor rgb '#%06x'\n",
                   place - 0.32, change, place + 0.32, colour);
}

/* The numbers stand beyond the ends of the bars, of both where both go one way. */
static void add_number(const bar *one, int place, pc_text *script) {
    char words[96], side[2][32];
    for (int k = 0; k < 2; k++)
        if (isnan(one->change[k]))
            snprintf(side[k], sizeof side[k], "does not fit");
        else
            snprintf(side[k], sizeof side[k], "%+.1f%%", fabs(one->change[k]) < 0.05 ? 0.0 : one->change[k]);
    snprintf(words, sizeof words, "%s, %s", side[0], side[1]);
    double end =
        fmax(0.0, fmax(isnan(one->change[0]) ? 0.0 : one->change[0], isnan(one->change[1]) ? 0.0 : one->change[1]));
    pc_text_printf(script, "set label ");
    pc_gnuplot_add_string(script, words, 40);
    pc_text_printf(script,
                   " at first %.6g,%d left offset character 0.7,0 noenhanced front textcolor rgb '" PC_STYLE_INK "'\n",
                   end, place);
}

static double reach_of_all(const tornado *of) {
    double reach = 0.1;
    for (int i = 0; i < of->count; i++) reach = fmax(reach, reach_of(&of->bars[i]));
    return reach;
}

static void add_axes(const tornado *of, double height, pc_text *script) {
    double reach = reach_of_all(of);
    pc_text_printf(script, "set lmargin at screen %.6f\nset rmargin at screen 0.97\n", (double)MARGIN_LEFT / WIDTH);
    pc_text_printf(script, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n", 1 - MARGIN_TOP / height,
                   BELOW / height);
    pc_text_printf(script,
                   "unset key\nset border 1 linecolor rgb '" PC_STYLE_AXIS "'\nset xrange [%.6g:%.6g]\nset yrange "
                   "[%g:-0.5]\nset xtics nomirror out textcolor rgb '" PC_STYLE_INK
                   "'\nset xlabel 'Time a token against plan 1 [%%]' textcolor rgb '" PC_STYLE_INK "'\nset grid x "
                   "linecolor rgb '" PC_STYLE_GRID "'\nset arrow from 0,graph 0 to 0,graph 1 nohead linecolor rgb "
                   "'" PC_STYLE_INK "' front\nset ytics (",
                   -1.1 * reach, 1.9 * reach, of->count - 0.5);
    for (int i = 0; i < of->count; i++) {
        if (i > 0) pc_text_printf(script, ", ");
        pc_gnuplot_add_string(script, of->bars[i].what, 30);
        pc_text_printf(script, " %d", i);
    }
    pc_text_printf(script, ") scale 0 nomirror noenhanced textcolor rgb '" PC_STYLE_INK "'\n");
}

static void add_script(const void *changes, const char *path, pc_text *script) {
    const tornado *of = changes;
    double height = MARGIN_TOP + of->count * BAR_HEIGHT + BELOW;
    char line[3 * PC_LABEL_SIZE];
    pc_picture_begin(script, path, WIDTH, height);
    pc_picture_page page = {.script = script, .path = path, .width = WIDTH, .height = height, .margin = 10};
    snprintf(line, sizeof line, "What would change plan 1: %s on %s", of->best->model, of->best->machine);
    pc_picture_add_text(&page, line, 20, 24, PC_STYLE_TITLE_FONT, true);
    pc_picture_add_swatch(&page, 20, 54, 12, PC_STYLE_ORANGE);
    pc_picture_add_text(&page, "20% less", 38, 54, PC_STYLE_TEXT_FONT, false);
    pc_picture_add_swatch(&page, 120, 54, 12, PC_STYLE_BLUE);
    pc_picture_add_text(&page, "20% more", 138, 54, PC_STYLE_TEXT_FONT, false);
    add_axes(of, height, script);
    for (int i = 0; i < of->count; i++) {
        add_side(&of->bars[i], i, 0, PC_STYLE_ORANGE, script);
        add_side(&of->bars[i], i, 1, PC_STYLE_BLUE, script);
        add_number(&of->bars[i], i, script);
    }
    pc_text_printf(script, "plot NaN notitle\n");
}

pc_code pc_figure_plan_changes(const pc_run_row *rows, int64_t count, bool is_dark, const char *path, pc_error *error) {
    tornado of;
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = collect(rows, count, &of, error);
    return code ? code : pc_picture_make(add_script, &of, is_dark, path, error);
}
