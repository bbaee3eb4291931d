/* sweep_files.h: where the results of a sweep's runs are: journals beside the results file, and that file's rows of an
 * earlier time, which are taken over into the journal. */
#ifndef PC_SWEEP_SWEEP_FILES_H
#define PC_SWEEP_SWEEP_FILES_H

#include "engine/error.h"
#include "scenarios/run_key.h"
#include "storage/replace.h"
#include "sweep/journal.h"
#include "sweep/sweep.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a results file can stand at the path: in a folder that takes it, in the place of nothing but one of ours, and
 * where no sweep is at work. *found: what stands there, which is all that may be replaced (pc_results_guard). */
pc_code pc_sweep_files_check_target(const char *path, pc_standing *found, pc_error *error);

/* Whether this build wrote it, so that its rows are what ours would be. */
bool pc_sweep_files_is_of_this_build(const pc_results_reader *reader);

/* Zero it to start; sweep_files_close. */
typedef struct pc_sweep_files {
    char *path; /* of the results file, links resolved; NULL: the journal is in memory */
    int rank, rank_count;
    bool is_fresh;
    const pc_sweep_sink *sink; /* borrowed; of it `warn` */
    pc_standing standing;      /* at the path, when it began; of rank 0 */
    pc_journal *own;
    pc_journal **journals; /* own, and others' for reading */
    int journal_count;
    pc_run_key *keys; /* of all their records, journal by journal: a record's place counts through */
    int64_t count;
} pc_sweep_files;

/* Holds this rank's journal; rank 0 looks first whether a results file can stand at the path. A file that is there and
 * none of ours is refused. Afresh, rank 0 removes the journals of ranks that are not there. */
pc_code pc_sweep_files_open(pc_sweep_files *files, const pc_sweep_request *request, const pc_sweep_sink *sink,
                            pc_error *error);

/* Opens all journals beside the path, whoever wrote them, and collects their keys. Nobody may append while it is done.
 * What it gave before is gone. */
pc_code pc_sweep_files_collect(pc_sweep_files *files, pc_error *error);

/* Takes those rows of the results file at the path that the runs want and no journal has, traces and all, into the own
 * journal, and collects again. Rows of another build are not taken, with a warning. For rank 0. */
pc_code pc_sweep_files_take_over(pc_sweep_files *files, const pc_run_key *runs, int64_t count, pc_error *error);

/* The record at a place: its row, the hash of its labels, its trace (of no devices where there is none). */
pc_code pc_sweep_files_row(const pc_sweep_files *files, int64_t place, pc_run_row *row, pc_error *error);
uint64_t pc_sweep_files_labels(const pc_sweep_files *files, int64_t place);
pc_code pc_sweep_files_trace(const pc_sweep_files *files, int64_t place, pc_trace_record *record, pc_error *error);

/* Removes the own journal, and, as rank 0, those of ranks that are not there: the results file is complete. */
void pc_sweep_files_remove(pc_sweep_files *files);

/* Lets go; a journal without records is removed. */
void pc_sweep_files_close(pc_sweep_files *files);

#endif
