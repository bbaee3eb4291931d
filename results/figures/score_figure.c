#include "results/figures/score_figure.h"

#include "engine/alloc.h"
#include "results/figures/figure.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"
#include "storage/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MOST = 8 };
enum { WIDTH = 760, LEFT = 84, RIGHT = 20, PLOT = WIDTH - LEFT - RIGHT, BOTTOM = 56 }; /* pixels */
enum { TITLE_Y = 22, LEGEND_Y = 52, LEGEND_LINE = 20, LEGEND_LEFT = 44 };

static const unsigned colours[SERIES_MOST + 1] = {PC_STYLE_BLUE,   PC_STYLE_ORANGE, PC_STYLE_GREEN,
                                                  PC_STYLE_PURPLE, PC_STYLE_SKY,    PC_STYLE_VERMILION,
                                                  PC_STYLE_YELLOW, PC_STYLE_BLACK,  0x888888};

/* The values that have a colour of their own; all others share the last. */
typedef struct series {
    const pc_score_sum *of[SERIES_MOST];
    int count;
    bool has_others;
} series;

static int compare_sums(const void *left, const void *right) {
    const pc_score_sum *a = *(const pc_score_sum *const *)left, *b = *(const pc_score_sum *const *)right;
    if (a->compared != b->compared) return (a->compared < b->compared) - (a->compared > b->compared);
    return (a > b) - (a < b);
}

static pc_code choose(const pc_score *score, const char *by, series *chosen, pc_error *error) {
    const pc_score_sum **list = pc_alloc((size_t)score->sum_count, sizeof *list);
    int64_t count = 0;
    if (!list) return pc_error_no_memory(error);
    for (int64_t i = 0; i < score->sum_count; i++)
        if (strcmp(score->sums[i].by, by) == 0 && score->sums[i].compared > 0) list[count++] = &score->sums[i];
    if (count > 0) qsort(list, (size_t)count, sizeof *list, compare_sums);
    *chosen = (series){.has_others = count > SERIES_MOST};
    chosen->count = count < SERIES_MOST ? (int)count : SERIES_MOST;
    for (int i = 0; i < chosen->count; i++) chosen->of[i] = list[i];
    pc_free(list);
    return count > 0 ? PC_OK : pc_error_set(error, PC_ERROR_INPUT, "no run has a measured time and a forecast to draw");
}

static int series_of(const pc_score *score, const pc_score_row *row, const char *by, const series *chosen) {
    char value[PC_SCORE_LABEL_SIZE];
    pc_score_row_value(score, row, by, value);
    for (int i = 0; i < chosen->count; i++)
        if (strcmp(chosen->of[i]->value, value) == 0) return i;
    return SERIES_MOST;
}

static bool is_hollow(const pc_score_row *row) {
    return row->status == PC_SCORE_OUT_OF_MEMORY;
}

/* ---- the script ---- */

typedef struct extent {
    double least, most;
} extent;

enum { FULL_POINT = 7, HOLLOW_POINT = 6 }; /* of gnuplot */

static bool has_points(const series *chosen, int s) {
    return s < chosen->count || (s == SERIES_MOST && chosen->has_others);
}

/* A block of points a series: measured and forecast seconds, and gnuplot's form of the point. */
static extent add_points(const pc_score *score, const char *by, const series *chosen, pc_text *script) {
    extent all = {INFINITY, 0.0};
    for (int s = 0; s <= SERIES_MOST; s++) {
        if (!has_points(chosen, s)) continue;
        pc_text_printf(script, "$series%d << EOD\n", s);
        for (int64_t i = 0; i < score->count; i++) {
            const pc_score_row *row = &score->rows[i];
            if (!isfinite(row->error) || series_of(score, row, by, chosen) != s) continue;
            pc_text_printf(script, "%.9g %.9g %d\n", row->run.step_s, row->forecast_s,
                           is_hollow(row) ? HOLLOW_POINT : FULL_POINT);
            all.least = fmin(all.least, fmin(row->run.step_s, row->forecast_s));
            all.most = fmax(all.most, fmax(row->run.step_s, row->forecast_s));
        }
        pc_text_printf(script, "EOD\n");
    }
    return all;
}

static void add_series(const series *chosen, const char *path, pc_text *script) {
    for (int s = 0; s <= SERIES_MOST; s++) {
        if (!has_points(chosen, s)) continue;
        pc_text_printf(script,
                       ", $series%d using 1:2:3 with points pointtype variable pointsize %.3g linecolor rgb '#%06x' "
                       "notitle",
                       s, pc_picture_point_size(path, 0.7), colours[s]);
    }
    pc_text_printf(script, "\n");
}

static void add_axes(const extent *all, const pc_picture_page *page, pc_text *script) {
    pc_text_printf(script,
                   PC_STYLE_TEXTS "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset bmargin at screen "
                                  "%.6f\nset tmargin at screen %.6f\n",
                   (double)LEFT / WIDTH, (double)(LEFT + PLOT) / WIDTH, BOTTOM / page->height,
                   (BOTTOM + PLOT) / page->height);
    pc_text_printf(
        script,
        "unset key\nset logscale xy\nset border 3 linecolor rgb '" PC_STYLE_AXIS
        "'\nset tics nomirror out\nset format xy '%%g'\nset grid linetype 1 linewidth 0.5 linecolor rgb '" PC_STYLE_GRID
        "'\nset xlabel 'Measured [s]'\nset ylabel 'Forecast [s]'\nset xrange [%.9g:%.9g]\nset yrange "
        "[%.9g:%.9g]\nset samples 200\n",
        all->least / 1.3, all->most * 1.3, all->least / 1.3, all->most * 1.3);
}

/* ---- the legend, a line an entry: sources have long names ---- */

static bool any_hollow(const pc_score *score) {
    for (int64_t i = 0; i < score->count; i++)
        if (isfinite(score->rows[i].error) && is_hollow(&score->rows[i])) return true;
    return false;
}

static int legend_lines(const pc_score *score, const series *chosen) {
    return chosen->count + chosen->has_others + 1 + any_hollow(score);
}

static void add_line(const pc_picture_page *page, bool is_dark, int *line, uint32_t colour, const char *text) {
    double top = LEGEND_Y + LEGEND_LINE * (*line)++;
    pc_picture_add_swatch(page, LEGEND_LEFT - 18, top, 10, is_dark ? pc_dark_colour(colour) : colour);
    pc_picture_add_text(page, text, LEGEND_LEFT, top, PC_STYLE_TEXT_FONT, false);
}

static void add_legend(const pc_score *score, const series *chosen, const char *title, bool is_dark,
                       const pc_picture_page *page) {
    char heading[256];
    int line = 0;
    snprintf(heading, sizeof heading, "Forecast over measured: %.200s", title);
    pc_picture_add_text(page, heading, 20, TITLE_Y, PC_STYLE_TITLE_FONT, true);
    for (int s = 0; s <= SERIES_MOST; s++)
        if (has_points(chosen, s))
            add_line(page, is_dark, &line, colours[s], s < SERIES_MOST ? chosen->of[s]->value : "others");
    add_line(page, is_dark, &line, 0xdcdcdc, "within 10%"); /* PC_STYLE_GRID */
    if (any_hollow(score))
        pc_picture_add_text(page, "hollow: called out of memory", LEGEND_LEFT, LEGEND_Y + LEGEND_LINE * line,
                            PC_STYLE_TEXT_FONT, false);
}

typedef struct drawn_score {
    const pc_score *score;
    const char *by, *title;
    bool is_dark;
    series chosen;
} drawn_score;

static void add_script(const void *of, const char *path, pc_text *script) {
    const drawn_score *drawn = of;
    int lines = legend_lines(drawn->score, &drawn->chosen);
    pc_picture_page page = {script, path, WIDTH, LEGEND_Y + LEGEND_LINE * lines + PLOT + BOTTOM, RIGHT};
    pc_picture_begin(script, path, page.width, page.height);
    extent all = add_points(drawn->score, drawn->by, &drawn->chosen, script);
    add_legend(drawn->score, &drawn->chosen, drawn->title, drawn->is_dark, &page);
    add_axes(&all, &page, script);
    pc_text_printf(script, "plot '+' using 1:($1*0.9):($1*1.1) with filledcurves fillcolor rgb '" PC_STYLE_GRID
                           "' notitle, x with lines linecolor rgb '" PC_STYLE_AXIS "' notitle");
    add_series(&drawn->chosen, path, script);
}

pc_code pc_figure_score(const pc_score *score, const char *by, const char *title, bool is_dark, const char *path,
                        pc_error *error) {
    drawn_score drawn = {.score = score, .by = by, .title = title, .is_dark = is_dark};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = choose(score, by, &drawn.chosen, error);
    return code ? code : pc_picture_make(add_script, &drawn, is_dark, path, error);
}
