/* tournament.h: orders of one instance that compete in rounds of reordering, on several threads. Private to the
 * generators.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_TOURNAMENT_H
#define PC_MODELS_SCHEDULE_SEARCH_TOURNAMENT_H

#include "engine/error.h"
#include "models/schedule/search/coarse.h"
#include "models/schedule/search/fitted.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/pattern.h"
#include "models/schedule/search/reorder.h"

#include <stdbool.h>
#include <stdint.h>

/* A competitor: a block, the way to go on from it, and how far it has come. */
typedef struct pc_entry {
    const pc_fitted_block *fitted; /* the block, or NULL: it has a pattern */
    int64_t pattern;               /* the block's, or -1: one microbatch after the other */
    int64_t tag;                   /* the caller's, to find the entry again when it was ranked */
    int coarse;                    /* the coarse instance in which it is reordered first, or PC_COARSE_NONE */
    int way;                       /* pc_reorder_improve's */
    bool is_made;                  /* whether `order` stands */
    bool is_valid;                 /* whether it can run and keeps the limits */
    int stuck;                     /* 1 + the way in which rounds are known to leave `order` as it is; or 0 */
    int like;                      /* in a heat: the earlier entry that is the same and goes the same way; or its own */
    pc_instance_order order;
} pc_entry;

typedef struct pc_tournament {
    const pc_instance *instance;
    const pc_pattern *patterns;
    int threads;
    pc_time least;  /* pc_instance_least_span */
    pc_time enough; /* a span at which there is nothing left to gain: that, or what the caller knows better */
    int entry_count;
    pc_entry *entries;
    pc_reorder **rooms[PC_COARSE_KINDS]; /* one a thread; NULL for coarse instances that would tell nothing new */
    pc_instance coarse[PC_COARSE_KINDS];
    pc_block *blocks; /* two a thread: of one microbatch and of two */
    int rounds;       /* of the heat that is on; or */
    int kicks;        /* its kicks (reorder.h), and after how many without gain an entry goes no further */
    int patience;
} pc_tournament;

/* Room for so many entries. `with_coarse`: whether coarse instances may be used. The instance and the patterns must
 * outlive it. Free with pc_tournament_free, also after a failure. */
pc_code pc_tournament_create(const pc_instance *instance, const pc_pattern *patterns, int threads, int entries,
                             bool with_coarse, pc_tournament *tournament, pc_error *error);
void pc_tournament_free(pc_tournament *tournament);

/* Makes the first `count` entries that are not made yet, gives each so many rounds to and fro, and ranks them: least
 * span first, then makespan, then memory. Of entries that are the same, to go on in the same way, one does. */
void pc_tournament_run(pc_tournament *tournament, int count, int rounds);

/* The same with kicks in place of rounds. */
void pc_tournament_kick(pc_tournament *tournament, int count, int kicks, int patience);

/* The same with walks (reorder.h), of so many kicks. */
void pc_tournament_walk(pc_tournament *tournament, int count, int kicks);

/* Whether the first entry has come as far as any can. */
bool pc_tournament_is_over(const pc_tournament *tournament);

/* Takes over the first `count` entries of a tournament of the same instance in place of the last ones, and ranks all.
 */
void pc_tournament_adopt(pc_tournament *tournament, const pc_tournament *other, int count);

/* Another entry at the same point, to go on in another way. */
void pc_tournament_copy_entry(pc_tournament *tournament, int from, int to);

#endif
