/* copies.h: activations on their way to the host and back, beside the passes of a device. Private to models/.
 *
 * A copy out begins when its F and the copies before it are over; the activations leave the GPU with its end. A copy
 * back begins one to three passes ahead of its backward pass, so that those hide it. It comes behind the copies before
 * it and its own copy out, and the backward pass waits for its end. Both ways go on side by side: PCIe and NVLink-C2C
 * are full duplex, and GPUs have an engine for each. What comes back within PC_COPY_GAP passes stays: it would be gone
 * for no whole pass. Two passes that the costs run together count as one.
 */
#ifndef PC_MODELS_SCHEDULE_COPIES_H
#define PC_MODELS_SCHEDULE_COPIES_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"

#include <stdint.h>

/* A backward pass so many places behind its F or more has its activations on the host between them: out beside the
 * first pass behind F, back beside the last one before it. */
enum { PC_COPY_GAP = 4 };

typedef enum pc_copy_mark { PC_COPY_NONE, PC_COPY_OUT, PC_COPY_BACK } pc_copy_mark;

/* By position: what a pass is for copies; the F or the backward pass that belongs to it; of a backward pass, behind
 * which pass its copy back may begin; and room for when the copy out is over. Owned: pc_copy_plan_free; one that was
 * made before is made again in its place. */
typedef struct pc_copy_plan {
    uint8_t *mark;
    int32_t *partner, *after;
    pc_time *out_end_ps;
    int32_t *forward; /* [chunks][microbatches], for the making, as the next */
    int32_t *run;     /* by position: how many passes or pairs of the device are before it */
    int64_t passes, cells;
} pc_copy_plan;

/* Of a schedule that need not be right: passes out of its range are left alone. */
pc_code pc_copy_plan_make(const pc_schedule *schedule, const pc_costs *costs, pc_copy_plan *plan, pc_error *error);
void pc_copy_plan_free(pc_copy_plan *plan);

/* The most bytes on the host at once, by the device's order: from F to the backward pass. */
int64_t pc_copy_plan_host_bytes(const pc_schedule *schedule, const pc_costs *costs, const pc_copy_plan *plan,
                                int device);

/* When a device's copies so far are over, each way. */
typedef struct pc_copy_lanes {
    pc_time out_ps, back_ps;
} pc_copy_lanes;

static inline pc_time pc_copy_end(pc_time lane_ps, pc_time ready_ps, pc_time time_ps) {
    pc_time end_ps;
    return pc_time_add(lane_ps > ready_ps ? lane_ps : ready_ps, time_ps, &end_ps) ? end_ps : PC_TIME_MAX;
}

/* Each adds a copy and returns its end; the end of time where it runs over. */
static inline pc_time pc_copy_out(pc_copy_lanes *lanes, pc_time f_end_ps, pc_time time_ps) {
    return lanes->out_ps = pc_copy_end(lanes->out_ps, f_end_ps, time_ps);
}

static inline pc_time pc_copy_back(pc_copy_lanes *lanes, pc_time before_ps, pc_time out_end_ps, pc_time time_ps) {
    pc_time start_ps = before_ps > out_end_ps ? before_ps : out_end_ps;
    return lanes->back_ps = pc_copy_end(lanes->back_ps, start_ps, time_ps);
}

#endif
