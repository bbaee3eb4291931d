/* team.h: several processes, under mpirun or srun, that share the runs of one sweep.
 *
 * Without them a process is rank 0 of 1 and no MPI library is loaded. Every rank asks for the same sweep
 * (pc_sweep_request); which rank did which run leaves no mark in the results. Of one pc_team only one function may run
 * at a time.
 */
#ifndef PC_SWEEP_TEAM_H
#define PC_SWEEP_TEAM_H

#include "engine/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_team pc_team;

/* The MPI that the module was built with, "Open MPI 4.1.4"; "no" where there is none. Opens nothing. */
const char *pc_team_mpi_version(void);

/* Joins the others where the process was started as one of several: as the launcher's environment says. PC_ERROR_INPUT
 * where it was and there is no way to the others, with what to do instead (--shard). Then too there is something in
 * `*made`, which knows this rank's number, unless memory is short: NULL. Call once in a process, before any thread.
 *
 * MPI is reached by a module, pipecast-mpi.so, beside the program or where it was installed. The environment variable
 * PIPECAST_MPI: `off` keeps the process alone, a path is that module. */
pc_code pc_team_open(pc_team **made, pc_error *error);

/* Waits until every rank has come here, and leaves them. After that a process may end with any status: before,
 * launchers end the others where one ends badly. NULL is fine. */
void pc_team_close(pc_team *team);

/* This rank, 0 .. count-1, and how many there are. NULL is rank 0 of 1. */
int pc_team_rank(const pc_team *team);
int pc_team_size(const pc_team *team);

/* Threads that this rank should use where the user does not say: the cores that it may run on; of cores that ranks of
 * one machine share, its part. */
int pc_team_default_jobs(const pc_team *team);

/* Waits for all. Where any rank comes with a code that is not PC_OK, all leave with the code and message of the lowest
 * such rank. Every rank must call it, in the same places. NULL: the code itself. */
pc_code pc_team_agree(pc_team *team, pc_code code, pc_error *error);

/* The same, and puts the bytes of all ranks one behind the other, in the order of the ranks, for all of them; the
 * caller frees *all by pc_free. */
pc_code pc_team_share(pc_team *team, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                      pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
