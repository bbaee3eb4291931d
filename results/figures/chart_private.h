/* chart_private.h: private to results/chart*.c: rows become points, points get axes, axes get a place on the picture,
 * and then there is a script. All but the last are pure functions over plain data.
 */
#ifndef PC_RESULTS_CHART_PRIVATE_H
#define PC_RESULTS_CHART_PRIVATE_H

#include "results/columns.h"
#include "results/figures/chart.h"
#include "results/figures/figure_svg.h"
#include "storage/text.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PC_CHART_GROUPS_MAX = 48, /* series; panels; for bars, values of x */
    PC_CHART_POINTS_MAX = 200000,
    PC_CHART_TICKS_MAX = 64,
    PC_CHART_COLUMNS_MAX = 3, /* joined */
    PC_CHART_NAME_SIZE = PC_CHART_COLUMNS_MAX * PC_COLUMN_TEXT_SIZE,
    PC_CHART_LABEL_SIZE = PC_CHART_NAME_SIZE + 64
};

/* --- chart.c --- */

/* The columns of "schedule+recompute"; 0 if one of them is not there, or they are too many: then *unknown says
 * which, with `size` bytes. */
int pc_chart_split(const char *names, const pc_column *columns[PC_CHART_COLUMNS_MAX], char *unknown, size_t size);

/* --- chart_data.c: which points --- */

/* The values of a column, or combinations of several, in rows that are drawn: numbers from small to large, all else in
 * the order of all rows. */
typedef struct pc_chart_groups {
    const pc_column *column[PC_CHART_COLUMNS_MAX];
    int column_count;            /* 0 without files: one group without a name */
    const pc_chart_files *files; /* NULL: the files of rows make no groups */
    const pc_run_row *rows;      /* the first row: the place of others says their file */
    int count;
    char (*name)[PC_CHART_NAME_SIZE];
} pc_chart_groups;

typedef struct pc_chart_point {
    double x, y; /* fractions in percent; for bars x is a group's number */
    int64_t row;
    int y_index, panel, series;
    bool is_published;
} pc_chart_point;

typedef struct pc_chart_data {
    const pc_chart *chart;
    const pc_run_row *rows;
    const pc_column *x, *y[PC_CHART_Y_MAX];
    pc_chart_groups series, panels, categories; /* categories: of bars alone */
    pc_chart_point *points; /* by y_index, panel, series, published or not, x, and then y from large to small */
    int64_t point_count;
    bool has_published, is_in_view; /* whether any point is published; within the ranges */
} pc_chart_data;

/* Of a chart that pc_chart_check has accepted. Free with pc_chart_data_free, whatever comes back. PC_ERROR_INPUT where
 * nothing is left to draw, or too much. */
pc_code pc_chart_collect(const pc_chart *chart, const pc_run_row *rows, int64_t count, pc_chart_data *data,
                         pc_error *error);
void pc_chart_data_free(pc_chart_data *data);

/* The points of one panel and series, ours or published: *first and how many. */
int64_t pc_chart_find_points(const pc_chart_data *data, int y_index, int panel, int series, bool is_published,
                             const pc_chart_point **first);

/* Whether the point is in the ranges that the chart asks for. */
bool pc_chart_is_within(const pc_chart_data *data, const pc_chart_point *point);

/* Whether values of the column are fractions of one, which are shown in percent. */
bool pc_chart_is_fraction(const pc_column *column);

/* --- chart_axis.c: ranges, ticks --- */

typedef struct pc_chart_tick {
    double at; /* a position on the axis */
    char label[PC_COLUMN_TEXT_SIZE];
} pc_chart_tick;

typedef struct pc_chart_axis {
    bool is_log; /* positions are binary logarithms of values */
    bool is_ranked;
    int rank[PC_CHART_GROUPS_MAX]; /* of bars: the position of a group in this panel */
    double low, high;              /* positions where the axis starts and ends */
    int tick_count;
    pc_chart_tick tick[PC_CHART_TICKS_MAX];
} pc_chart_axis;

/* For plots that are so many pixels long on that axis. A row of panels has one axis for y; all panels have one for x,
 * but of bars each has the groups that it needs. */
void pc_chart_make_x_axis(const pc_chart_data *data, int panel, double pixels, pc_chart_axis *axis);
void pc_chart_make_y_axis(const pc_chart_data *data, int y_index, double pixels, pc_chart_axis *axis);

double pc_chart_position(const pc_chart_axis *axis, double value);

/* Whether a position is on the axis. */
bool pc_chart_is_on(const pc_chart_axis *axis, double position);

/* --- chart_names.c: texts of columns and groups --- */

/* A column's name in words, without the unit that some end in: "exposed tp" of exposed_tp_s. */
void pc_chart_spell(const pc_column *column, char *text, size_t size);

/* What stands beside an axis: as given, or the column's description to its first comma, and its unit. */
void pc_chart_axis_label(const pc_column *column, const char *given, char label[PC_CHART_LABEL_SIZE]);

/* What stands for a group in the legend or above a panel: its value, and of numbers what they are; without a column,
 * "ours", as there may be published points beside. */
void pc_chart_group_label(const pc_chart_groups *groups, int group, char label[PC_CHART_LABEL_SIZE]);

/* --- chart_look.c --- */

typedef struct pc_look {
    uint32_t colour;
    int shape; /* of gnuplot's points: the filled one; the one before it is its outline */
    int dash;  /* of gnuplot's lines: 1 is solid */
} pc_look;

/* Schedules have a look of their own, in all charts the same; all else the looks in their order. "v-half, full" is one
 * of v-half's variants: of its hue, but paler, with another shape and dashed. */
pc_look pc_chart_look(const char *name, int number);

/* Of the same series in another results file: the hue and another shape; `file` from 0, whose look it is. */
pc_look pc_chart_look_in_file(pc_look look, int file);

/* --- chart_layout.c: places, in pixels from the top left corner --- */

enum {
    PC_CHART_TITLE_LINES = 3,
    PC_CHART_Y_LABEL_LINES = 2,
    PC_CHART_LINE_SIZE = 512,
    PC_CHART_MARGIN = 14, /* in pixels, as the next */
    PC_CHART_MARGIN_RIGHT = 24,
    PC_CHART_TITLE_LINE = 24,
    PC_CHART_Y_LABEL_LINE = 16,
    PC_CHART_MARK = 30,        /* of the legend, with the gap to its text */
    PC_CHART_TURN = 35,        /* degrees by which long names of bars are turned */
    PC_CHART_NAME_LETTERS = 26 /* of such a name: longer ones are cut */
};

typedef struct pc_chart_spot {
    double x, y;
} pc_chart_spot;

typedef struct pc_chart_layout {
    double width, height;
    double left; /* of the first column of plots */
    double plot_width, plot_height;
    int columns; /* panels side by side; further ones come below */
    int title_line_count;
    char title_line[PC_CHART_TITLE_LINES][PC_CHART_LINE_SIZE];
    double title_y; /* of the first line */
    bool has_legend;
    pc_chart_spot legend[PC_CHART_GROUPS_MAX + 1]; /* of every series, and then of "published" */
    double panels_top;                             /* of the first row of plots */
    double block_height;                           /* from a row of panels, of all y, to the one below it */
    char hidden[PC_CHART_LINE_SIZE];               /* about series that lie under others; empty: none do */
    double hidden_y;
    double below;      /* of a panel's last plot, for its numbers or names */
    bool ticks_turned; /* whether the names at x are too long to stand upright */
    double x_label_y;
    pc_chart_axis y[PC_CHART_Y_MAX];
} pc_chart_layout;

void pc_chart_lay_out(const pc_chart_data *data, pc_chart_layout *layout);

/* The top left corner of a plot. */
pc_chart_spot pc_chart_plot_spot(const pc_chart_layout *layout, int y_index, int panel);

/* Breaks a text at blanks into at most `most` lines of so many characters; the last has all that is left. */
int pc_chart_wrap(const char *text, size_t characters, int most, char (*lines)[PC_CHART_LINE_SIZE]);

/* --- chart_hidden.c: series that lie under others --- */

/* A sentence about series that cannot be seen: all their points of one y, in all panels, lie upon those of a series
 * that is drawn later. "zb-h1 lies under v-half in mfu". Empty if there are none, and for bars. */
void pc_chart_name_hidden(const pc_chart_data *data, const pc_chart_layout *layout, char line[PC_CHART_LINE_SIZE]);

/* --- chart_script.c --- */

/* The whole script, and a note for every point. Within a number scope. */
void pc_chart_add_script(const pc_chart_data *data, const pc_chart_layout *layout, const char *path, pc_text *script,
                         pc_svg_notes *notes);

#ifdef __cplusplus
}
#endif
#endif
