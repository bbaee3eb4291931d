/* figure_view.h: how `pipecast figure` shows what it draws: texts, ranges, windows, colours. */
#ifndef PC_CLI_FIGURE_VIEW_H
#define PC_CLI_FIGURE_VIEW_H

#include "engine/error.h"
#include "results/figures/chart.h"
#include "results/figures/figure.h"

#include <stdbool.h>

/* As the options give it; NULL if they do not. */
typedef struct figure_view {
    const char *title;
    const char *x_label, *y_label[PC_CHART_Y_MAX]; /* y_label: in the order of the columns */
    int y_labels;                                  /* how many are given, which may be more */
    const char *x_range, *y_range, *log;           /* y_range: a range a column, commas between them */
    const char *time, *stages, *microbatches;
    bool is_dark;
} figure_view;

/* PC_ERROR_INPUT with what was given, where the view has what only a chart, or only a timeline, has. */
pc_code refuse_view_of_charts(const figure_view *view, const char *picture, pc_error *error);
pc_code refuse_view_of_timelines(const figure_view *view, const char *picture, pc_error *error);

/* Puts the view into a chart. The chart borrows its texts. */
pc_code set_view_of_chart(const figure_view *view, pc_chart *chart, pc_error *error);

/* Puts it into a timeline of so many microbatches. */
pc_code set_view_of_timeline(const figure_view *view, int microbatches, pc_timeline *timeline, pc_error *error);

#endif
