/* plan_figures.h: what `pipecast plan -o` keeps, as pictures drawn by gnuplot (figure.h): the map of the best plans
 * over two lists, and what would change plan 1. Rows are a results file's; which are a map's or a change's their names
 * say (results/plan_cells.h). */
#ifndef PC_RESULTS_PLAN_FIGURES_H
#define PC_RESULTS_PLAN_FIGURES_H

#include "engine/error.h"
#include "results/row.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the name is one of a part: "map.tp=8,pp=4" of "map", "plan-1" of "plan". */
bool pc_plan_row_is_of(const pc_run_row *row, const char *part);

/* `is_dark`: light on a dark ground. */

/* A square for each cell, its colour the throughput, dark the most; grey with a letter and the reason below where there
 * is no plan. PC_ERROR_INPUT if no row is a map's. */
pc_code pc_figure_plan_map(const pc_run_row *rows, int64_t count, bool is_dark, const char *path, pc_error *error);

/* A tornado: for each thing a bar to either side of plan 1's time a token, less of it and more, those first that matter
 * most. PC_ERROR_INPUT if no row is a change's, or plan 1 is not among the rows. */
pc_code pc_figure_plan_changes(const pc_run_row *rows, int64_t count, bool is_dark, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
