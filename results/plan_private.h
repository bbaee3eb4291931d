/* plan_private.h: private to results/: the table of plans for people. */
#ifndef PC_RESULTS_PLAN_PRIVATE_H
#define PC_RESULTS_PLAN_PRIVATE_H

#include "results/plan_table.h"
#include "results/text.h"

/* Adds the whole of it. Call it within a number scope. */
void pc_plan_text_add(const pc_plan_report *report, pc_text *text);

#endif
