/* ranks.h: several processes, under mpirun or srun, that share the runs of one sweep.
 *
 * Without them a command is rank 0 of 1 and no MPI library is loaded. Rank 0 hands out runs a few at a time to whoever
 * asks, its own threads among them, so that fast ranks get more. Every rank sees the same list of runs; which rank did
 * which leaves no mark in the results.
 */
#ifndef PC_SWEEP_RANKS_H
#define PC_SWEEP_RANKS_H

#include "engine/error.h"
#include "sweep/batch.h"

#include <stdint.h>

typedef struct ranks ranks;

/* The MPI that the module was built with, "Open MPI 4.1.4"; "no" where there is none. Opens nothing. */
const char *ranks_mpi_version(void);

/* Joins the others where the process was started as one of several: as the launcher's environment says. PC_ERROR_INPUT
 * where it was and there is no way to the others, with what to do instead (--shard). Then too there is something in
 * `*made`, for ranks_report, unless memory is short. Call once, before any thread.
 *
 * The environment variable PIPECAST_MPI: `off` keeps the process alone, a path is the module that knows MPI. */
pc_code ranks_open(ranks **made, pc_error *error);

/* Waits until every rank has come here, and leaves them. After that a process may end with any status: before,
 * launchers end the others where one ends badly. NULL is fine. */
void ranks_close(ranks *x);

int ranks_number(const ranks *x); /* 0 .. count-1 */
int ranks_count(const ranks *x);

/* Threads that this rank should use where the user does not say: the cores that it may run on; of cores that ranks of
 * one machine share, its part. */
int ranks_default_jobs(const ranks *x);

/* batch_run over all ranks: each of `count` runs is worked on by one of them, and handed to that rank's sink.
 * Returns when this rank has nothing left to do. After an error in one rank no more runs
 * are handed out: the others return PC_OK, and learn of it in ranks_agree. */
pc_code ranks_run(ranks *x, int64_t count, int jobs, batch_source *source, batch_sink *sink, void *context,
                  pc_error *error);

/* Waits for all. Where any rank comes with a code that is not PC_OK, all leave with the code and message of the lowest
 * such rank. Every rank must call it, in the same places. */
pc_code ranks_agree(ranks *x, pc_code code, pc_error *error);

/* Prints the error once for all ranks, which agreed on it or could not be opened: rank 0 prints the line and gets the
 * exit status that goes with it; the others print nothing and get 0, for launchers end all at the first that ends
 * badly. */
int ranks_report(const ranks *x, const pc_error *error);

#endif
