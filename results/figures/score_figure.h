/* score_figure.h: forecast over measured times, a point a run, drawn by gnuplot (figure.h). */
#ifndef PC_RESULTS_SCORE_FIGURE_H
#define PC_RESULTS_SCORE_FIGURE_H

#include "engine/error.h"
#include "results/score/score.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Both axes logarithmic, with the line of equality and a band of 10%. A colour for each value of the columns `by`,
 * those with the most runs first; runs that are called out of memory are hollow. svg, png or pdf by the path's ending.
 * PC_ERROR_INPUT where no run has both times. `is_dark`: light on a dark ground. Same score, same bytes. */
pc_code pc_figure_score(const pc_score *score, const char *by, const char *title, bool is_dark, const char *path,
                        pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
