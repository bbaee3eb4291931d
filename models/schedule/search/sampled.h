/* sampled.h: how long an order takes under many draws of what its passes and transfers take, sixteen draws in one walk.
 *
 * An order is a fixed sequence on every device, and a pass starts as soon as it can. So whatever the times are, passes
 * can be gone through in one sequence in which each stands behind all that it waits for; only the times differ from
 * draw to draw. Private to models/schedule/.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_SAMPLED_H
#define PC_MODELS_SCHEDULE_SEARCH_SAMPLED_H

#include "engine/error.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>
#include <stdint.h>

enum { PC_SAMPLED_LANES = 16 };

/* What passes take in sixteen draws, in picoseconds, which need not be whole: [devices * types][microbatches][lanes].
 * The draws are then compared in double precision, with additions and maxima alone, so that their results are the same
 * on every machine. Owned: pc_sampled_draws_free. */
typedef struct pc_sampled_draws {
    double *pass;
    double *delay; /* likewise, from the end of what the pass waits for in the model; NULL: the instance's */
} pc_sampled_draws;

pc_code pc_sampled_draws_create(const pc_instance *instance, bool has_delays, pc_sampled_draws *draws, pc_error *error);
void pc_sampled_draws_free(pc_sampled_draws *draws); /* a zeroed one is fine */

/* Where a pass and a draw stand in these arrays. */
static inline int64_t pc_sampled_index(const pc_instance *instance, int cell, int microbatch) {
    return ((int64_t)cell * instance->microbatches + microbatch) * PC_SAMPLED_LANES;
}

/* The passes of an order, one behind all that it waits for. */
typedef struct pc_sampled_sequence {
    struct pc_sampled_step *steps; /* [devices * passes]; owned: pc_sampled_sequence_free */
} pc_sampled_sequence;

pc_code pc_sampled_sequence_create(const pc_instance *instance, pc_sampled_sequence *sequence, pc_error *error);
void pc_sampled_sequence_free(pc_sampled_sequence *sequence);

/* Room to work in, for one thread at a time; of one instance, which must outlive it. */
typedef struct pc_sampled pc_sampled;

pc_code pc_sampled_create(const pc_instance *instance, pc_sampled **sampled, pc_error *error);
void pc_sampled_free(pc_sampled *sampled); /* NULL is fine */

/* Brings an order's passes into a sequence; false where it has a deadlock. Memory is not looked at. */
bool pc_sampled_line_up(pc_sampled *sampled, const pc_instance_order *order, pc_sampled_sequence *sequence);

/* The span of each draw, over devices the longest from first start to last end, into span_ps[0 .. lanes-1]. */
void pc_sampled_run(pc_sampled *sampled, const pc_sampled_sequence *sequence, const pc_sampled_draws *draws,
                    double *span_ps);

#endif
