/* Ranks that mpirun or srun started. */
#include "calib/device/launched.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

/* Open MPI; MPICH, Intel MPI and others over PMI; SLURM's srun, by what only its steps have: SLURM_NTASKS also stands
 * in batch scripts, where one process runs. */
typedef struct launcher {
    const char *rank, *ranks, *local_rank, *local_ranks, *key;
} launcher;
static const launcher launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID"},
};

/* A whole number; of SLURM's "8(x2)", eight on each of two nodes, the first. */
static int number_in(const char *name, int otherwise) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text) return otherwise;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool is_number = !*end || *end == '(' || *end == ',';
    return !is_number || errno || number < 0 || number > INT_MAX ? otherwise : (int)number;
}

/* Letters and digits of the job's name, for the name of a folder. */
static void copy_key(const char *text, char key[64]) {
    size_t used = 0;
    for (; text && *text && used < 63; text++) {
        bool is_plain =
            (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        key[used++] = (char)(is_plain ? *text : '-');
    }
    key[used] = 0;
}

bool pc_launched_ranks(pc_launched *launched) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher *x = &launchers[i];
        int rank = number_in(x->rank, -1), ranks = number_in(x->ranks, 0);
        if (rank < 0 || ranks < 1 || rank >= ranks) continue;
        if (ranks == 1) return false; /* what other launchers left here is of who started this one */
        int local_ranks = number_in(x->local_ranks, ranks);
        if (local_ranks < 1) local_ranks = 1;
        *launched = (pc_launched){.rank = rank,
                                  .ranks = ranks,
                                  .local_rank = number_in(x->local_rank, rank % local_ranks),
                                  .local_ranks = local_ranks};
        copy_key(getenv(x->key), launched->key);
        return true;
    }
    return false;
}
