/* table_private.h: private to results/: the aligned table for people. */
#ifndef PC_RESULTS_TABLE_PRIVATE_H
#define PC_RESULTS_TABLE_PRIVATE_H

#include "models/training/run.h"
#include "results/text.h"

#include <stdint.h>

/* Adds the table of `count` rows. Call it within a number scope. */
void pc_table_text_add(const pc_run_row *rows, int64_t count, pc_text *text);

#endif
