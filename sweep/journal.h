/* journal.h: finished runs, one record each, appended as they come: what a sweep that is killed has done so far.
 *
 * The journal of RESULTS.h5 is RESULTS.h5.journal beside it, of rank n > 0 RESULTS.h5.journal.n. A record holds the
 * run's key, its row and, if one was kept, its trace; it ends in a checksum. So a record that was half written when the
 * process was killed is seen. It is cut off, with what follows it, when the journal is opened again. The header says
 * which build wrote it (build.h): rows of another build may differ from ours and are not gone on with. Traces are in it
 * as they are in memory; HDF5 is made of them once, in the results file. In memory a record takes 32 bytes. The layout
 * is docs/results-format.md.
 *
 * A journal is held by one process at a time (an fcntl lock that the system drops when the process ends). Of one
 * journal only one function may run at a time.
 */
#ifndef PC_SWEEP_JOURNAL_H
#define PC_SWEEP_JOURNAL_H

#include "engine/error.h"
#include "results/row.h"
#include "results/store/store.h"
#include "scenarios/run_key.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pc_journal pc_journal;

/* GO_ON makes it where there is none; FRESH does, too, and empties one that is there, of whatever build; READ neither
 * holds nor changes it: for others' that are not written to any more. */
typedef enum pc_journal_mode { PC_JOURNAL_GO_ON, PC_JOURNAL_FRESH, PC_JOURNAL_READ } pc_journal_mode;

/* Opens it, and holds it unless it is to be read. `path` NULL: one in memory, which goes when it is closed.
 * PC_ERROR_INPUT if it cannot be made, is something else, damaged at its start or of another build; PC_ERROR_IO
 * where another process holds it or the machine fails; one line each. A file that is no journal is never changed. */
pc_code pc_journal_open(const char *path, pc_journal_mode mode, pc_journal **journal, pc_error *error);

/* PC_ERROR_IO if a process holds the journal at the path; none there is fine. */
pc_code pc_journal_check_free(const char *path, pc_error *error);

/* The file that keeps it; NULL of one in memory. */
const char *pc_journal_path(const pc_journal *journal);

/* Lets go of it; what is in it stays. NULL is fine. */
void pc_journal_close(pc_journal *journal);

/* Closes it and removes the file. NULL is fine. */
void pc_journal_remove(pc_journal *journal);

/* Records, in the order in which they were added. `labels` is pc_run_labels_hash of the labels that the row has; 0
 * where that is not known. */
int64_t pc_journal_count(const pc_journal *journal);
pc_run_key pc_journal_key(const pc_journal *journal, int64_t index);
uint64_t pc_journal_labels(const pc_journal *journal, int64_t index);

/* Appends; when it returns the record survives a kill of the process; of the machine, once two seconds have passed
 * and another was added, or after pc_journal_sync. `detail` as in store.h's pc_results_add_run. PC_ERROR_IO if the
 * disk is full: all that was there before is still whole. */
pc_code pc_journal_add(pc_journal *journal, pc_run_key key, uint64_t labels, const pc_run_row *row,
                       const pc_schedule *schedule, const pc_run_detail *detail, pc_error *error);
pc_code pc_journal_sync(pc_journal *journal, pc_error *error);

/* The same of bytes that are no row, for who keeps something else in a journal: at most PC_JOURNAL_BYTES_MAX. And back:
 * false if the record has not exactly so many, and so is another one. */
enum { PC_JOURNAL_BYTES_MAX = 1024 };
pc_code pc_journal_add_bytes(pc_journal *journal, pc_run_key key, uint64_t labels, const void *bytes, size_t size,
                             pc_error *error);
pc_code pc_journal_bytes(const pc_journal *journal, int64_t index, void *bytes, size_t size, bool *is_so,
                         pc_error *error);

/* The row as it was added, with its key. */
pc_code pc_journal_row(const pc_journal *journal, int64_t index, pc_run_row *row, pc_error *error);

/* Whether a trace was kept; and that, to be freed with pc_trace_record_free. */
pc_code pc_journal_has_trace(const pc_journal *journal, int64_t index, bool *has_trace, pc_error *error);
pc_code pc_journal_trace(const pc_journal *journal, int64_t index, pc_trace_record *record, pc_error *error);
#endif
