/* chart.h: rows of results as a chart, drawn by gnuplot (figure.h): one column against another, a colour a series, a
 * panel beside panel for each value of a third. */
#ifndef PC_RESULTS_CHART_H
#define PC_RESULTS_CHART_H

#include "engine/error.h"
#include "engine/marks.h"
#include "results/row.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_chart_style { PC_CHART_POINTS, PC_CHART_LINES, PC_CHART_BARS } pc_chart_style;

enum { PC_CHART_Y_MAX = 4 };

/* Part of an axis, in the axis's own numbers: percent of a fraction of one. Zeroed: the chart chooses. */
typedef struct pc_chart_range {
    bool has_low, has_high;
    double low, high;
} pc_chart_range;

/* The results files that rows come from; a series each, beside those of `series`. Zeroed: they are of one file. */
typedef struct pc_chart_files {
    int count;
    const char *const *label; /* plain text, a text a file; all differ */
    const int *of_row;        /* the file of each row */
} pc_chart_files;

typedef struct pc_chart {
    const char *title;             /* plain text */
    const char *x;                 /* a column that is a number; for BARS any */
    const char *y[PC_CHART_Y_MAX]; /* columns that are numbers: a row of panels each */
    int y_count;
    const char *series; /* a column: a colour and a line for each of its values; NULL: one series. Or up to three,
                         * joined by '+' or ',': one for each combination ("schedule+recompute"); "none" is not
                         * spelled out */
    const char *panels; /* the same: a panel for each, side by side; NULL: one */
    const char *x_label, *y_label[PC_CHART_Y_MAX];   /* plain text; NULL: the column's description, to its first comma,
                                                      * and unit; fractions of one are shown in percent */
    pc_chart_range x_range, y_range[PC_CHART_Y_MAX]; /* points outside are left out; lines end at the edge */
    bool x_is_log, y_is_log;                         /* for BARS not of x; values must be above zero */
    bool is_dark;                                    /* light on a dark ground */
    pc_chart_files files;
    pc_chart_style style;
    bool published; /* also what others published of `y` (and `x`), hollow, in the series' colour, where rows have it */
} pc_chart;

/* "points", "lines", "bars"; false if the name is none of them. */
PC_MUST_USE bool pc_chart_style_parse(const char *name, pc_chart_style *style);

/* PC_OK if the columns exist and are of the right type, and ranges have a length; PC_ERROR_INPUT with "x: ...; expected
 * ..." otherwise. */
pc_code pc_chart_check(const pc_chart *chart, pc_error *error);

/* Draws it. Rows without a value in x or y are left out; where of rows of one series and panel several have one x,
 * LINES go through the best (the largest y) and POINTS shows all. Where all points of a series lie upon those of
 * another one, a line below the legend says so. PC_ERROR_INPUT if nothing is left to draw. */
pc_code pc_figure_chart(const pc_chart *chart, const pc_run_row *rows, int64_t count, const char *path,
                        pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
