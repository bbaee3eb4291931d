/* robust.h: of the orders within a memory limit the one that is best when passes do not take what they should.
 *
 * An order is fixed before the iteration, and every pass starts as soon as it can, as frameworks do it. What passes
 * take is drawn. All orders are judged by the same draws (common random numbers), so that what they differ by is
 * theirs. A device's memory follows from the order of its own passes alone: within the limit at the costs is within the
 * limit at any times.
 */
#ifndef PC_MODELS_SCHEDULE_ROBUST_H
#define PC_MODELS_SCHEDULE_ROBUST_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"
#include "models/schedule/search_memo.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is to be small, over draws of the times: the mean of the span, or the length that 95 of 100 are within. */
typedef enum pc_robust { PC_ROBUST_NONE, PC_ROBUST_MEAN, PC_ROBUST_P95, PC_ROBUSTS } pc_robust;

/* "none", "mean", "p95"; ends with NULL. */
extern const char *const pc_robust_names[PC_ROBUSTS + 1];

/* The kinds of passes that have times of their own, in this order: F; B, or BW where it is whole; W. */
enum { PC_DRAWN_KINDS = 3 };

/* Where a factor of a draw stands: [devices][PC_DRAWN_KINDS][chunks][microbatches]. */
static inline int64_t pc_drawn_factors(const pc_costs *costs, int microbatches) {
    return (int64_t)costs->devices * PC_DRAWN_KINDS * costs->chunks * microbatches;
}

/* Over what they take at the costs, what passes take in draw `number`, and the transfers that they wait for: factors
 * above or at 0. `transfer` is NULL where all are 1. What is drawn depends on the number alone, and threads may draw at
 * once. */
typedef pc_code pc_draw_times(const void *context, int64_t number, const pc_costs *costs, int microbatches,
                              double *pass, double *transfer, pc_error *error);

typedef struct pc_robust_request {
    const pc_schedule *schedule; /* the order to compare with; it keeps the limit */
    const pc_costs *costs;       /* of its shape; transfers are delays, and ready times do not count */
    pc_memory_limit memory_limit;
    pc_robust goal; /* NONE: the order stays, and is judged */
    pc_draw_times *draw;
    const void *context; /* of draw */
    bool draws_transfers;
    int64_t samples;      /* draws to judge by, beside those that an order is looked for with; at least 2 */
    int threads;          /* 0: one a processor. The result does not depend on it, nor on the next */
    pc_search_memo *memo; /* NULL: none. Borrowed */
} pc_robust_request;

enum { PC_ROBUST_SAMPLES_MAX = 1 << 20 };

/* Spans in picoseconds of the same draws, in the order of the draws: none of them was looked at before an order was
 * chosen. Owned: pc_robustness_free. */
typedef struct pc_robustness {
    pc_robust goal;
    int64_t samples;
    double *given_ps, *chosen_ps; /* [samples]; chosen_ps is given_ps where is_changed is false */
    pc_time span_before_ps;       /* of the given order at the costs */
    bool is_changed;
} pc_robustness;

/* *chosen becomes the best order found, a copy of the given one if no other is better, with the name, shape and
 * placement of the given one; within the limit. By the goal it is never worse than the given one over the draws of
 * *robustness: one that was chosen by other draws and turns out worse by these is dropped. Where the given one has W,
 * whole backward passes may come out as B and W. Microbatches may change their places.
 *
 * PC_ERROR_INPUT for orders that pc_improve_check refuses, as pc_replay_run, where transfers are over links, or where
 * the given order breaks the limit. Free both results. */
pc_code pc_schedule_robust(const pc_robust_request *request, pc_schedule *chosen, pc_robustness *robustness,
                           pc_error *error);

/* The mean of spans, with its standard error; and by how much the chosen order's are shorter in the mean, with the
 * standard error of that, which is less than theirs: the draws are the same. */
typedef struct pc_span_mean {
    double mean_ps, error_ps;
} pc_span_mean;
pc_span_mean pc_robust_mean(const double *span_ps, int64_t count);
pc_span_mean pc_robust_gain(const pc_robustness *robustness);

/* A zeroed one is fine. */
void pc_robustness_free(pc_robustness *robustness);

#ifdef __cplusplus
}
#endif
#endif
