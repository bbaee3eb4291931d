/* team_private.h: private to sweep/: what ranks do together, team.c, and how they find together, team_open.c. */
#ifndef PC_SWEEP_TEAM_PRIVATE_H
#define PC_SWEEP_TEAM_PRIVATE_H

#include "sweep/batch.h"
#include "sweep/team.h"
#include "sweep/team_module.h"

#include <stdbool.h>
#include <stdint.h>

/* What a rank knows of another. */
typedef struct rank_note {
    bool has_left; /* has called pc_team_close, and takes part in nothing any more */
    bool is_told;  /* that there are no more runs */
    bool is_heard; /* in pc_team_agree */
    int64_t jobs;  /* its threads */
} rank_note;

struct pc_team {
    int64_t number, count;
    int default_jobs;
    const pc_team_module *module; /* NULL: alone */
    void *self;                   /* the module's */
    rank_note *notes;             /* an entry a rank */
};

/* Rank `number` of `count` over a module that was started; with no module alone. NULL if memory is short. Ended by
 * pc_team_close. */
pc_team *pc_team_over(const pc_team_module *module, void *self, int64_t number, int64_t count);

/* Whether `rank` has closed its team, and takes part in nothing any more; and the error of that. */
bool pc_team_has_left(pc_team *team, int64_t rank);
pc_code pc_team_set_left(pc_error *error, int64_t rank);

/* pc_batch_run over all ranks: each of `count` runs is worked on by one of them, and handed to that rank's sink. Rank 0
 * hands out runs a few at a time to whoever asks, its own threads among them, so that fast ranks get more.
 * Returns when this rank has nothing left to do. After an error in one rank no more runs are handed out: the others
 * return PC_OK, and learn of it in pc_team_agree. NULL is alone. */
pc_code pc_team_run(pc_team *team, int64_t count, int jobs, pc_batch_source *source, pc_batch_sink *sink, void *context,
                    pc_error *error);

/* How many of `left` runs a rank of `jobs` threads, of `all_jobs` in all team, gets at once. It is a quarter of its
 * fair share, so that pieces shrink towards the end, and no more than `most`. If it has `idle` threads, it gets a run
 * for each of them, if its share has as many; at least one of those that are left. */
int64_t pc_team_piece(int64_t left, int64_t jobs, int64_t all_jobs, int64_t idle, int64_t most);

#endif
