/* table_example.h: rows made without a simulation, and the text that tables make of them. */
#ifndef PC_TESTS_TABLE_EXAMPLE_H
#define PC_TESTS_TABLE_EXAMPLE_H

#include "results/columns.h"
#include "results/table.h"
#include "tests/support.h"

/* The text of the rows; the caller frees it. */
char *write_text(const pc_run_row *rows, int64_t count, pc_format format);

/* A row as the Zero Bubble scenario has them. */
pc_run_row example_row(int64_t run, const char *name, const char *schedule, double bubble, double published);

void assert_lines_are_neat(const char *text);

/* A row of a run on a cluster: of 10 s, 1 s waits for tensor parallelism, 0.2 for transfers, 0.35 for replicas. */
pc_run_row cluster_row(int64_t run, const char *name, double mfu);

/* All results that are not compared with published ones are other than before. */
void change_results(pc_run_row *row);

/* As write_text, in a look of its own. */
pc_code give_row(void *context, int64_t index, pc_run_row *row, pc_error *error);

char *write_look(pc_run_row *rows, int64_t count, pc_format format, const pc_table_look *look);

#endif
