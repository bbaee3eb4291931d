/* figure_plan.h: pictures of what `pipecast plan -o` keeps. */
#ifndef PC_CLI_FIGURE_PLAN_H
#define PC_CLI_FIGURE_PLAN_H

#include "cli/figure_sources.h"
#include "cli/figure_view.h"
#include "engine/error.h"
#include "results/store/store.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether it is the name of one: "front", "map", "scaling" or "sensitivity". */
bool is_plan_picture(const char *name);

/* PC_ERROR_INPUT, with the path, if a file does not have what the picture is made of. `front` and `scaling` are of
 * several files, too. */
pc_code draw_plan_picture(const figure_sources *sources, const char *name, const figure_view *view, const char *output,
                          pc_error *error);

/* A line for each that the file has. */
void list_plan_pictures(const pc_results_reader *reader, FILE *stream);

#endif
