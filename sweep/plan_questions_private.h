/* plan_questions_private.h: private to sweep/: how a question's rows are made. */
#ifndef PC_SWEEP_PLAN_QUESTIONS_PRIVATE_H
#define PC_SWEEP_PLAN_QUESTIONS_PRIVATE_H

#include "sweep/plan_questions.h"

/* Searches a space, and makes the row of its best plan, or of why there is none. `space` is a part of the scenario's;
 * `name` is the run's, which says also what the row is of. */
pc_code plan_cell_make(const pc_plan_asker *asker, const pc_plan_space *space, const char *name, pc_plan_row *row,
                       pc_error *error);

/* Room for so many rows of an axis each, whose values are the scenario's. */
pc_code plan_cells_start(const pc_plan_asker *asker, const pc_plan_axis *axes, int axis_count, pc_plan_part part,
                         pc_plan_cells *cells, pc_error *error);

#endif
