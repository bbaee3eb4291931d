/* expand_replicas.h: the pipelines of all data-parallel replicas, each pass with its own noise. Private to
 * models/training/.
 *
 * Replicas meet where gradients are reduced, and not before; so each is timed for itself, and what the iteration's end
 * asks for is the latest over replicas. Only those that share experts run in step (pc_cut_replicas_in_step): they wait
 * for each other in every exchange, so that each pass takes as long as the longest of theirs. So do their few passes
 * without experts here.
 */
#ifndef PC_MODELS_TRAINING_EXPAND_REPLICAS_H
#define PC_MODELS_TRAINING_EXPAND_REPLICAS_H

#include "engine/error.h"
#include "engine/marks.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"
#include "models/training/outline.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a pass adds to its chunk's gradients: behind the last one that does they are reduced. */
static inline bool pc_pass_adds_gradients(pc_pass pass) {
    return pass.kind == PC_PASS_W || pass.kind == PC_PASS_BW;
}

/* When the stages of a pipeline have done what the iteration's end waits for; of several pipelines, the latest. Owned;
 * pc_ends_free. */
typedef struct pc_pipeline_ends {
    int devices, chunks;
    int64_t passes;         /* in pass_ps */
    pc_time *begin_ps;      /* [devices]; when the stage's own work begins, the earliest: so long before the first F of
                             * each chunk as that takes to be ready (pc_costs_ready); 0 or later */
    pc_time *stage_end_ps;  /* [devices]; the last pass's end */
    pc_time *last_start_ps; /* [devices][chunks]: of the last pass that adds to the chunk's gradients, W or BW */
    pc_time *last_end_ps;
    /* NULL unless pc_ends_add_buckets made them. */
    int64_t *bucket;    /* [devices][chunks] and one more: where the chunk's buckets begin in what follows */
    pc_time *bucket_ps; /* when each is ready: its share of the last pass is over */
    pc_time *pass_ps;   /* by position: when each pass ends; where ZeRO 2 reduces gradients beside the passes */
} pc_pipeline_ends;

pc_code pc_ends_create(int devices, int chunks, pc_pipeline_ends *ends, pc_error *error);
void pc_ends_free(pc_pipeline_ends *ends);

/* For several pipelines, whose latest start and latest end need not be one's: the buckets of each are kept for
 * themselves. `schedule`: whose passes they are. */
pc_code pc_ends_add_buckets(const pc_outline *outline, const pc_schedule *schedule, pc_pipeline_ends *ends,
                            pc_error *error);

/* As they were created: of no pipeline yet. */
void pc_ends_clear(pc_pipeline_ends *ends);

/* Takes one pipeline's times at `costs`, by position in schedule->passes, into `ends`. */
void pc_ends_take(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps, const pc_time *end_ps,
                  pc_pipeline_ends *ends);

typedef struct pc_expansion {
    int replicas;
    double jitter; /* relative standard deviation of a pass's time; 0: all replicas are equal */
    uint64_t seed;
    int threads;               /* 0: one a processor; the result does not depend on it */
    const pc_outline *outline; /* of which the costs are, borrowed; NULL: they are nothing but passes. With it,
                                * `ends` has its buckets */
    int without;               /* what they leave out of it (PC_WITHOUT_*) */
} pc_expansion;

/* Times every replica at `costs` (transfers as delays), each pass lengthened by its own factor, lognormal with mean 1,
 * from a stream of its own a (replica, stage) (GSL's taus2, seeded from `seed`). Of an outline's pass that is what the
 * stage does itself: collectives of data parallelism and transfers in it take what they take. `ends` becomes the latest
 * over replicas. Replica 0's passes are in `first_duration_ps` [passes] where not NULL. Memory: one workspace a thread,
 * whatever the number of replicas. */
pc_code pc_expand_run(const pc_schedule *schedule, const pc_costs *costs, const pc_expansion *expansion,
                      pc_pipeline_ends *ends, pc_time *first_duration_ps, pc_error *error);

/* The passes' times alone, of every replica: duration_ps [replicas][passes]. */
pc_code pc_expand_draw(const pc_schedule *schedule, const pc_costs *costs, const pc_expansion *expansion,
                       pc_time *duration_ps, pc_error *error);

#endif
