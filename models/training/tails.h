/* tails.h: what follows each chunk's passes by closed costs, for searches that minimise the iteration (goal.h). Private
 * to models/training/. */
#ifndef PC_MODELS_TRAINING_TAILS_H
#define PC_MODELS_TRAINING_TAILS_H

#include "models/schedule/goal.h"
#include "models/training/outline.h"

/* Owned: pc_outline_tails_free. */
typedef struct pc_outline_tails {
    pc_tails tails;
    pc_time *block;
} pc_outline_tails;

/* From a chunk of n buckets, each r, whose last pass takes w: bucket k of n is ready w (n-1-k) / n before that pass
 * ends, and the stream carries them one after the other. So on a free stream the last one is through `after` = max(r, n
 * r - w (n-1) / n) behind the pass, the greater of what waits for the first bucket and for the last; `stream` = n r. If
 * nothing overlaps, all chunks' buckets come after the stage's last pass: they are the stage's `own`. So are what both
 * ends of the model wait for with the tied embedding's gradient, the loss, and with POST_VALIDATION the step. What all
 * stages wait for alike (the norm, the slowest step) decides nothing and is left out; so are ZeRO 2's gradients of
 * earlier microbatches, and that both ends wait for each other. finish.c has the whole. */
pc_code pc_outline_tails_make(const pc_outline *outline, const pc_costs *costs, pc_outline_tails *made,
                              pc_error *error);
void pc_outline_tails_free(pc_outline_tails *tails);

#endif
