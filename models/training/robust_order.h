/* robust_order.h: the order of an iteration's schedule that is best on bad days (bad_days.h, robust.h). Private to
 * models/training/.
 */
#ifndef PC_MODELS_TRAINING_ROBUST_ORDER_H
#define PC_MODELS_TRAINING_ROBUST_ORDER_H

#include "engine/error.h"
#include "models/schedule/replay.h"
#include "models/schedule/schedule.h"
#include "models/training/outline.h"

/* Whether the spec asks for it, its schedule is searched for at the costs, and something scatters. */
bool pc_robust_order_is_wanted(const pc_outline *outline);

/* What is there: the best order of a good day, which fits. */
typedef struct pc_order_given {
    const pc_schedule *schedule;
    const pc_costs *costs;
    const pc_replay *replay;
    const int64_t *room_bytes; /* [devices]: for activations */
    pc_search_memo *memo;
} pc_order_given;

/* Looks for an order by one pipeline's draws, and judges that and the given one by whole iterations; none of these are
 * the samples that the run reports. *is_other: whether *other is one that is better. Free that then. */
pc_code pc_robust_order_find(const pc_outline *outline, const pc_order_given *given, pc_schedule *other, bool *is_other,
                             pc_error *error);

#endif
