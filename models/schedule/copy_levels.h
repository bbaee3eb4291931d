/* copy_levels.h: a device's memory over time where copies to the host run beside its passes. Private to models/. */
#ifndef PC_MODELS_SCHEDULE_COPY_LEVELS_H
#define PC_MODELS_SCHEDULE_COPY_LEVELS_H

#include "engine/simulation.h"
#include "models/schedule/copies.h"

/* Of activations: rows in the order of time in each device, devices one after the other, from offsets[device] on. What
 * is given back at an instant is there for what is taken at it. */
typedef struct pc_copy_levels {
    int64_t count;
    int32_t *device;
    pc_time *time_ps;
    int64_t *level_bytes; /* after the change */
    int64_t *offsets;     /* [devices + 1] */
    int64_t *peak_bytes;  /* [devices] */
    int64_t *host_bytes;  /* [devices]: the most that is on the host, room for a copy being held from its F on */
} pc_copy_levels;

/* Of a schedule that was timed with these copies: `start_ps` and `end_ps` by position, from which the copies follow.
 * Owned: pc_copy_levels_free. */
pc_code pc_copy_levels_make(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                            const pc_time *end_ps, pc_copy_levels *levels, pc_error *error);
void pc_copy_levels_free(pc_copy_levels *levels);

static inline pc_level_trace pc_copy_levels_trace(const pc_copy_levels *levels) {
    return (pc_level_trace){levels->count, levels->device, levels->time_ps, levels->level_bytes};
}

#endif
