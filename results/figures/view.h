/* view.h: which part of a chart's axes or of a timeline is shown, as people write it: "16:", ":0.5", "0:3", "2". */
#ifndef PC_RESULTS_VIEW_H
#define PC_RESULTS_VIEW_H

#include "engine/error.h"
#include "results/figures/chart.h"
#include "results/figures/figure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All of these give PC_ERROR_INPUT with the text and what was expected; the caller says of which option. */

/* LOW:HIGH, LOW: or :HIGH, in the axis's own numbers. */
pc_code pc_view_range(const char *text, pc_chart_range *range, pc_error *error);

/* A range for each of the chart's columns of y, with commas between; an empty one leaves its axis as it is. */
pc_code pc_view_y_ranges(const char *text, pc_chart *chart, pc_error *error);

/* "x", "y" or "xy". */
pc_code pc_view_log(const char *text, pc_chart *chart, pc_error *error);

/* A part of the time. A number without a unit counts `bare_ps` picoseconds, which are more than 0. */
pc_code pc_view_time(const char *text, double bare_ps, pc_timeline_window *window, pc_error *error);

/* Stages of `devices` and microbatches of `microbatches`, from 0: one, or first and last. */
pc_code pc_view_stages(const char *text, int devices, pc_timeline_window *window, pc_error *error);
pc_code pc_view_microbatches(const char *text, int microbatches, pc_timeline_window *window, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
