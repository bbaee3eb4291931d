/* check.h: proves that a schedule can run: every pass once, every dependency met, no deadlock. */
#ifndef PC_MODELS_SCHEDULE_CHECK_H
#define PC_MODELS_SCHEDULE_CHECK_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/schedule.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PC_OK where, for every microbatch and chunk of every stage, F runs once, then either BW once or B once and W once.
 * R runs at most once, between F and the backward pass, and W after B on its stage. Nothing of a microbatch is in a
 * replica that it does not go through. The orders of all stages together with the dependencies between them have no
 * cycle. PC_ERROR_INPUT otherwise, with a message that names the stage, the position in its order and the pass. Linear
 * in the number of passes. */
pc_code pc_schedule_check(const pc_schedule *schedule, pc_error *error);

/* The same; *stage becomes the first one to blame, where it is PC_ERROR_INPUT. */
pc_code pc_schedule_check_stages(const pc_schedule *schedule, int *stage, pc_error *error);

/* The first half of it: every pass once, and none where the placement has none. A replay finds deadlocks by itself. */
pc_code pc_schedule_check_complete(const pc_pass_index *index, pc_error *error);

/* The most activation memory each stage holds at once, in peak_bytes[0 .. p-1]. A stage runs its passes one by one, so
 * this depends on their order and not on their times. The schedule must have passed pc_schedule_check, and the costs
 * must have its shape. Allocates only for a schedule that recomputes. */
pc_code pc_schedule_peaks(const pc_schedule *schedule, const pc_costs *costs, int64_t *peak_bytes, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
