/* figure_charts.h: the charts of `pipecast figure`: those that the scenarios in a results file declare, and the user's.
 */
#ifndef PC_CLI_FIGURE_CHARTS_H
#define PC_CLI_FIGURE_CHARTS_H

#include "cli/figure_sources.h"
#include "cli/figure_view.h"
#include "engine/error.h"
#include "engine/names.h"
#include "results/store/store.h"

#include <stdbool.h>
#include <stdio.h>

/* A chart as the options give it; NULL if they do not. */
typedef struct chart_request {
    const char *x, *y; /* y: up to four columns, commas between them */
    const char *series, *panels, *style;
    const char *scenario; /* its rows alone */
    bool published;
} chart_request;

/* Whether any of a chart's own columns is asked for. */
bool chart_is_requested(const chart_request *request);

/* From the rows of all files. */
pc_code draw_requested_chart(const figure_sources *sources, const chart_request *request, const figure_view *view,
                             const char *output, pc_error *error);

/* Draws the chart that a scenario of the first file declares by that name, or SCENARIO/NAME, from the rows of that
 * scenario, of which every file must have some. *is_chart says whether there is one; PC_ERROR_INPUT where several
 * scenarios have one, with what to write instead. Where there is none, `others` has been offered the names of those
 * that there are. */
pc_code draw_declared_chart(const figure_sources *sources, const char *name, const figure_view *view,
                            const char *output, bool *is_chart, pc_nearest *others, pc_error *error);

/* A line for every chart that is declared: what to call it, and its title. */
pc_code list_declared_charts(const pc_results_reader *reader, const char *path, FILE *stream, pc_error *error);

#endif
