/* scatter.h: what the passes of one pipeline take on a day that is not a good one, drawn for orders that are to stand
 * it (models/schedule/robust.h). The words and the distributions are those of bad_days.h; a draw is one pipeline's.
 */
#ifndef PC_MODELS_TRAINING_SCATTER_H
#define PC_MODELS_TRAINING_SCATTER_H

#include "models/schedule/robust.h"
#include "models/training/bad_days.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed but for slow_factor, which is at least 1: nothing scatters. */
typedef struct pc_scatter {
    double jitter;       /* relative standard deviation of every pass's time, lognormal, mean 1 */
    pc_empirical passes; /* in place of that, where given */
    double gpu_jitter;   /* of a GPU's speed, drawn once a draw: all passes of its stage take that much longer */
    int gpus;            /* of a stage, all of which the others wait for: its tensor group; 0 is 1 */
    double link_jitter;  /* of every transfer */
    bool has_slow;       /* one stage takes slow_factor times as long: */
    int slow_stage;      /* this one, from 0; -1: in each draw another one, all as likely */
    double slow_factor;
    uint64_t seed;
} pc_scatter;

/* Whether passes or transfers differ from draw to draw, or from the costs. */
bool pc_scatter_varies(const pc_scatter *scatter);

/* pc_draw_times of a pc_scatter. The streams are GSL's, one a draw and stage, and go by what a pass is, not by where it
 * stands: a pass of a chunk and a microbatch takes as long in every order. A BW takes its B's factor. */
pc_code pc_scatter_draw(const void *scatter, int64_t number, const pc_costs *costs, int microbatches, double *pass,
                        double *transfer, pc_error *error);

/* The request that has its draws from this scatter; the rest is the caller's. */
void pc_scatter_fill_request(const pc_scatter *scatter, pc_robust_request *request);

#ifdef __cplusplus
}
#endif
#endif
