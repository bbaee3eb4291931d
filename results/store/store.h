/* store.h: the results file, HDF5; its layout is docs/results-format.md.
 *
 * Writing: the file is built beside its final path and takes that path's place in one rename once it is complete. So a
 * results file that stood there stays whole until then. A run that is interrupted or finds the disk full leaves it
 * untouched. Same rows in, same bytes out.
 *
 * HDF5 is commonly built without locks, and its state is the process's: of all functions here, whatever the file, only
 * one may run at a time. Callers with threads hold a mutex. Nothing is printed.
 */
#ifndef PC_RESULTS_STORE_H
#define PC_RESULTS_STORE_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/replay.h"
#include "results/columns.h"
#include "results/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_results_writer pc_results_writer;

/* Starts a results file that will stand at `path`; the folder must exist and be writable. PC_ERROR_INPUT if it is
 * not (the user named it), PC_ERROR_IO for what the machine refuses. */
pc_code pc_results_create(const char *path, pc_results_writer **writer, pc_error *error);

/* How many runs the whole list has; where the file has only a part of them, pipecast can say which are missing. */
pc_code pc_results_set_sweep_runs(pc_results_writer *writer, int64_t count, pc_error *error);

/* Keeps the text of a scenario under its name. */
pc_code pc_results_add_scenario(pc_results_writer *writer, const char *name, const char *text, size_t size,
                                pc_error *error);

/* Adds a row; where `detail` is not NULL and holds a trace, the passes and memory levels of its pipeline as well, and
 * what each device's memory is taken by where that is known. */
pc_code pc_results_add_run(pc_results_writer *writer, const pc_run_row *row, const pc_schedule *schedule,
                           const pc_run_detail *detail, pc_error *error);

/* Says what stood at the path when the caller looked whether it may be replaced (storage/replace.h); else it is what
 * stood there when the writer was made. */
struct pc_standing;
void pc_results_guard(pc_results_writer *writer, const struct pc_standing *standing);

/* Completes the file and puts it at its path; frees the writer, also on failure (then nothing is left behind). If
 * another file has come there since, that stays, the results stand beside it, and PC_ERROR_INPUT says under which name.
 */
pc_code pc_results_commit(pc_results_writer *writer, pc_error *error);

/* Gives up: nothing is left behind; frees the writer. NULL is fine. */
void pc_results_discard(pc_results_writer *writer);

typedef struct pc_results_reader pc_results_reader;

/* Numbers of runs go from 1 to that of the whole list, which is at most this: whole numbers up to here are exact in
 * JSON, too. A file with others is refused when they are read. */
#define PC_RESULTS_RUNS_MAX (INT64_C(1) << 53)

/* Opens a results file. PC_ERROR_INPUT if there is none, or it is none of ours, or of a newer layout. */
pc_code pc_results_open(const char *path, pc_results_reader **reader, pc_error *error);
void pc_results_close(pc_results_reader *reader);

/* The same without its rows, of which a caller reads as many at a time as it likes: pc_results_row is not for it. */
pc_code pc_results_open_part(const char *path, pc_results_reader **reader, pc_error *error);

/* The version of the pipecast that wrote the file, and its build (build.h) as text, owned by the reader; "" if the
 * file does not say. */
const char *pc_results_version(const pc_results_reader *reader);
const char *pc_results_build(const pc_results_reader *reader);

/* How many runs the whole list has of which the file's are all or a part; -1 if the file does not say. */
int64_t pc_results_sweep_runs(const pc_results_reader *reader);

int64_t pc_results_run_count(const pc_results_reader *reader);

/* Row `index` (0 ..), owned by the reader. Columns that the file lacks are "not defined". */
const pc_run_row *pc_results_row(const pc_results_reader *reader, int64_t index);

/* Rows first .. first + count - 1, of those that there are, into the caller's array. */
pc_code pc_results_read_rows(const pc_results_reader *reader, int64_t first, int64_t count, pc_run_row *rows,
                             pc_error *error);

/* The same, and of the columns only the key: in a file of many rows that is most of the time saved. */
pc_code pc_results_read_row_keys(const pc_results_reader *reader, int64_t first, int64_t count, pc_run_row *rows,
                                 pc_error *error);

/* The text of the scenario of this name, `*size` bytes and a terminating zero; free it with pc_free. PC_ERROR_INPUT
 * where the file has none. */
pc_code pc_results_scenario_text(const pc_results_reader *reader, const char *name, char **text, size_t *size,
                                 pc_error *error);

/* The scenario that was added as number `number`, from 1: its name, and its text as above. *text is NULL behind the
 * last one, and in files of before there were numbers. */
pc_code pc_results_scenario_at(const pc_results_reader *reader, int64_t number, char name[PC_COLUMN_TEXT_SIZE],
                               char **text, size_t *size, pc_error *error);

/* Whether the run of this number kept its trace. */
bool pc_results_has_trace(const pc_results_reader *reader, int64_t run);

/* Whether its trace says what memory is made of. */
bool pc_results_has_memory_kinds(const pc_results_reader *reader, int64_t run);

/* Whether it kept what the engine saw, too. */
bool pc_results_has_engine_trace(const pc_results_reader *reader, int64_t run);

/* The trace of the run whose number is `run`: shape, passes, levels, and what pc_replay says of each device. Free both
 * with pc_trace_record_free. PC_ERROR_INPUT if that run kept none. */
typedef struct pc_trace_record {
    int devices, microbatches, chunks;
    pc_placement placement;
    pc_replay replay;
    pc_device_memory *memory; /* one a device; NULL if the run was not on a cluster, or an older pipecast's */
    bool has_transfers;       /* whether the file says what went between stages; an older pipecast's does not */
    pc_block block;           /* without devices where the file has none */
} pc_trace_record;

pc_code pc_results_read_trace(const pc_results_reader *reader, int64_t run, pc_trace_record *record, pc_error *error);
void pc_trace_record_free(pc_trace_record *record);

/* An array of a record: where in the record its pointer lies, what an element takes, and how many it has. */
typedef struct pc_trace_array {
    size_t pointer, stride; /* bytes */
    int64_t length;
    bool may_lack; /* its pointer may be NULL whatever the length is */
} pc_trace_array;
enum { PC_TRACE_ARRAYS_MAX = 64 };

/* Lists all arrays of a record, whose numbers say how long they are; returns how many. */
int pc_trace_record_arrays(const pc_trace_record *record, pc_trace_array arrays[PC_TRACE_ARRAYS_MAX]);

/* What pc_results_add_run wants to write the same trace again: the schedule's shape, of the name that the row has, and
 * the detail, which borrows all from the record. */
pc_schedule pc_trace_record_schedule(const pc_trace_record *record, const char *name);
pc_run_detail pc_trace_record_detail(const pc_trace_record *record);

#ifdef __cplusplus
}
#endif
#endif
