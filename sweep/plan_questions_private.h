/* plan_questions_private.h: private to sweep/: how a question's rows are made. */
#ifndef PC_SWEEP_PLAN_QUESTIONS_PRIVATE_H
#define PC_SWEEP_PLAN_QUESTIONS_PRIVATE_H

#include "sweep/plan_questions.h"

/* Searches a space, and makes the row of its best plan, or of why there is none. `space` is a part of the scenario's;
 * `name` is the run's, which says also what the row is of. */
pc_code plan_cell_make(const pc_plan_asker *asker, const pc_plan_space *space, const char *name, pc_plan_row *row,
                       pc_error *error);

/* The same without a reason: `lacks_plan` alone says that there is none. */
pc_code plan_cell_find(const pc_plan_asker *asker, const pc_plan_space *space, const char *name, pc_plan_row *row,
                       pc_error *error);

/* Says what a row is of, "tp 8, pp 4", and what its run is called, "map.tp=8,pp=4". */
void plan_cell_name(const pc_plan_cells *cells, const char *const values[PC_PLAN_CELL_AXES], pc_plan_row *row,
                    char name[PC_LABEL_SIZE]);

#endif
