/* cycle_ratio.h: how fast a system can repeat whose events wait for each other: the maximum cycle ratio. Private to the
 * schedules.
 */
#ifndef PC_MODELS_SCHEDULE_CYCLE_RATIO_H
#define PC_MODELS_SCHEDULE_CYCLE_RATIO_H

#include "engine/error.h"
#include "engine/simtime.h"

#include <stdbool.h>
#include <stdint.h>

/* Turn n of event `to` comes `time` or more after turn n - `turns` of event `from`. Turns may be negative. */
typedef struct pc_event_edge {
    int32_t from, to;
    int32_t turns;
    pc_time time;
} pc_event_edge;

/* time / turns, exactly. */
typedef struct pc_cycle_ratio {
    pc_time time;
    int64_t turns; /* 0: there is no cycle, or one that waits for itself (no interval is long enough) */
} pc_cycle_ratio;

/* The greatest ratio of time to turns of any cycle: in no shorter interval can the events repeat, and in this one they
 * can (Baccelli, Cohen, Olsder & Quadrat, 'Synchronization and Linearity', 1992, theorem 2.81 and section 3.2). Found
 * as Lawler does: from a cycle with a greater ratio to the next one, until none is greater. Times are at least 0, and
 * those of a cycle must add up to a time. */
pc_code pc_cycle_ratio_find(const pc_event_edge *edges, int64_t edge_count, int event_count, pc_cycle_ratio *ratio,
                            pc_error *error);

#endif
