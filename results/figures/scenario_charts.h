/* scenario_charts.h: the charts that scenarios declare, as results/figures/chart.h wants them. */
#ifndef PC_RESULTS_SCENARIO_CHARTS_H
#define PC_RESULTS_SCENARIO_CHARTS_H

#include "engine/error.h"
#include "results/figures/chart.h"
#include "scenarios/scenario.h"

/* The figure as a chart, checked: its style is one, its columns are there and of the right type. The message of what is
 * wrong begins with `file` and the figure: "FILE: figures: NAME: x: ...". The chart borrows the figure's texts. */
pc_code pc_scenario_chart(const char *file, const pc_scenario_figure *figure, pc_chart *chart, pc_error *error);

/* The same of all figures of a scenario, for checking them before its runs. */
pc_code pc_scenario_charts_check(const char *file, const pc_scenario *scenario, pc_error *error);

#endif
