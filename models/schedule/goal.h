/* goal.h: what a search for a schedule minimises.
 *
 * A device's network carries one chunk's collectives after the other, each once the chunk's last pass has ended, in the
 * order of these ends. So a device is done with its gradients at the end of a short chain: S = 0; for the chunks by
 * their last ends e: S = max(S + stream, e + after); then max(S, end of the last pass) + own. `stream` is what the
 * chunk takes of the network, `after` what it lasts if the network is free. Where buckets become ready while the last
 * pass still runs, `after` is less than `stream`.
 */
#ifndef PC_MODELS_SCHEDULE_GOAL_H
#define PC_MODELS_SCHEDULE_GOAL_H

#include "engine/simtime.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SPAN: the longest over devices, from a device's first start to its last end; of equal ones the least makespan, then
 * memory. MAKESPAN: the last end over devices. ITERATION: the last end of what follows the passes (pc_tails), passes
 * starting no earlier than their chunk is ready (pc_costs); without tails the makespan. Both: of equal ones the least
 * makespan, then memory. */
typedef enum pc_goal { PC_GOAL_SPAN, PC_GOAL_MAKESPAN, PC_GOAL_ITERATION, PC_GOALS } pc_goal;

/* "span", "makespan", "iteration"; ends with NULL. */
extern const char *const pc_goal_names[PC_GOALS + 1];

/* What follows the passes. Shapes: [devices][chunks], own_ps [devices]; none negative. Borrowed. */
typedef struct pc_tails {
    const pc_time *stream_ps;
    const pc_time *after_ps;
    const pc_time *own_ps; /* behind passes and network alike */
    bool from_begin; /* a device's time counts from where its own work begins (its first start, less what its chunk took
                      * to be ready), as if nobody waited for the others at the end; else from the start of the whole */
} pc_tails;

#ifdef __cplusplus
}
#endif
#endif
