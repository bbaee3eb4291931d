/* plan_private.h: private to results/: the table of plans for people. */
#ifndef PC_RESULTS_PLAN_PRIVATE_H
#define PC_RESULTS_PLAN_PRIVATE_H

#include "results/plan_table.h"
#include "results/table_private.h"
#include "storage/text.h"

/* Writes the whole of it by way of `text`, which is empty. Call it within a number scope; false if memory is short
 * (text->failed) or the stream fails. */
PC_MUST_USE bool pc_plan_text_write(const pc_plan_report *report, pc_text *text, FILE *stream);

/* The rows of a part, as a report of their own that is compared with the first plan of the whole. */
struct pc_plan_cells;
pc_plan_report pc_plan_report_of(const pc_plan_report *report, const struct pc_plan_cells *part);

/* What parts have to say, below the plans: plan_cells_text.c. */
void pc_plan_parts_add(const pc_plan_report *report, pc_text *text);

/* Its rows as the table of plans has them, with what all have in common above. */
void pc_plan_table_add(const pc_plan_report *report, pc_text *text);

/* The choice of report->look, with numbers as tables of runs have them: columns of a run, then those beside them. */
pc_column_choice pc_plan_choice_of_run(const pc_column_choice *choice);

/* What plans have beside the columns of a run: their rank first. */
pc_table_extras pc_plan_extras(const pc_plan_report *report);

#endif
