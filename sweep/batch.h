/* batch.h: works on numbered runs with several threads, and hands them over one by one.
 *
 * Each is handed over soon after it is done, in no particular order: no run waits for another. No more than a few dozen
 * a thread are held at once, however many there are. Which runs there are to do is known from the start (pc_batch_run),
 * or comes piece by piece (pc_batch_run_fed).
 */
#ifndef PC_SWEEP_BATCH_H
#define PC_SWEEP_BATCH_H

#include "engine/error.h"
#include "results/row.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes the spec of run `index` (0 ..), and its labels. Called from any thread. */
typedef pc_code pc_batch_source(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels,
                                pc_error *error);

/* Takes the result of a run. Called from any thread, but never twice at a time; what it does not keep it must not free.
 */
typedef pc_code pc_batch_sink(void *context, const pc_run_spec *spec, const pc_run_row *row,
                              const pc_run_detail *detail, pc_error *error);

/* Does `count` runs on `jobs` threads; a single one in the calling thread. An error of a run ends the batch: what is
 * under way is still done and handed over, and of all errors the first, by index, is returned. An error of the sink
 * ends it too, and is returned. */
pc_code pc_batch_run(int64_t count, int jobs, pc_batch_source *source, pc_batch_sink *sink, void *context,
                     pc_error *error);

/* Runs first, first + 1, ...: a part of what there is to do. */
typedef struct pc_batch_piece {
    int64_t first, count;
} pc_batch_piece;

/* How a batch stands, for who feeds it. */
typedef struct pc_batch_state {
    int jobs;
    int idle;          /* threads that have nothing to do */
    int64_t unclaimed; /* runs that no thread has begun */
    int64_t claimed;   /* those that were begun, in all */
    bool has_room;     /* whether a piece can be taken now */
} pc_batch_state;

enum { PC_BATCH_LATER = 0, PC_BATCH_NO_MORE = -1 };

/* Gives the next piece, or a count of PC_BATCH_LATER or PC_BATCH_NO_MORE; pieces ascend. Called from the calling
 * thread, about once a millisecond and whenever a thread is out of work, also where there is no room for a piece, until
 * it has said PC_BATCH_NO_MORE; it must not wait for anything. An error ends the batch. */
typedef pc_code pc_batch_feed(void *feeder, const pc_batch_state *state, pc_batch_piece *piece, pc_error *error);

/* As pc_batch_run, of runs that come as pieces. */
pc_code pc_batch_run_fed(pc_batch_feed *feed, void *feeder, int jobs, pc_batch_source *source, pc_batch_sink *sink,
                         void *context, pc_error *error);

#endif
