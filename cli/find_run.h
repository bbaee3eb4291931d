/* find_run.h: which run of a results file a user means. */
#ifndef PC_CLI_FIND_RUN_H
#define PC_CLI_FIND_RUN_H

#include "engine/error.h"
#include "engine/names.h"
#include "results/row.h"
#include "results/store/store.h"

/* The row that `name` means: the name of a run, SCENARIO/NAME where several scenarios have a run of that name, or the
 * run's number; what is a name is not taken for a number. `path` stands in messages. `others` holds what the name
 * may mean beside runs, the charts that were offered to it; NULL if that is nothing. The row is the reader's.
 * PC_ERROR_INPUT if there is none, or where there are several: then with what to write instead. */
pc_code find_run(const pc_results_reader *reader, const char *path, const char *name, const pc_nearest *others,
                 const pc_run_row **row, pc_error *error);

/* The same with its trace, for the caller to free with pc_trace_record_free; `name` NULL: the first that kept one. */
pc_code find_traced_run(const pc_results_reader *reader, const char *path, const char *name, const pc_nearest *others,
                        const pc_run_row **row, pc_trace_record *record, pc_error *error);

/* The same of a run that kept what the engine saw; the first one likewise. */
pc_code find_engine_run(const pc_results_reader *reader, const char *path, const char *name, const pc_run_row **row,
                        pc_trace_record *record, pc_error *error);

/* Which scenario of the file a word probably means: pc_nearest_hint. */
const char *scenario_hint(const pc_results_reader *reader, const char *name, char text[PC_NEAREST_TEXT]);

#endif
