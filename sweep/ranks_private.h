/* ranks_private.h: between ranks.c, what ranks say to each other, and ranks_open.c, how they find together. */
#ifndef PC_SWEEP_RANKS_PRIVATE_H
#define PC_SWEEP_RANKS_PRIVATE_H

#include "sweep/ranks.h"
#include "sweep/ranks_module.h"

#include <stdbool.h>

/* What a rank knows of another. */
typedef struct rank_note {
    bool has_left; /* has called ranks_close, and takes part in nothing any more */
    bool is_told;  /* that there are no more runs */
    bool is_heard; /* in ranks_agree */
    int64_t jobs;  /* its threads */
} rank_note;

struct ranks {
    int64_t number, count;
    int default_jobs;
    const ranks_module *module; /* NULL: alone */
    void *self;                 /* the module's */
    rank_note *notes;           /* an entry a rank */
};

/* Rank `number` of `count` over a module that was started; with no module alone. NULL where memory is short. Ended by
 * ranks_close. */
ranks *ranks_over(const ranks_module *module, void *self, int64_t number, int64_t count);

/* Of `left` runs what a rank of `jobs` threads, of `all_jobs` in all ranks, gets at once: a quarter of its fair share,
 * so that pieces shrink towards the end; no more than `most`; where it has `idle` threads, a run for each of them if
 * its share has as many; at least one of those that are left. */
int64_t ranks_piece(int64_t left, int64_t jobs, int64_t all_jobs, int64_t idle, int64_t most);

#endif
