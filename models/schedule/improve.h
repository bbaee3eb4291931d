/* improve.h: an order made shorter within the memory that it holds, with a proof where nothing is shorter. */
#ifndef PC_MODELS_SCHEDULE_IMPROVE_H
#define PC_MODELS_SCHEDULE_IMPROVE_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/goal.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_improve_request {
    const pc_schedule *schedule;  /* has passed pc_schedule_check */
    const pc_costs *costs;        /* of its shape */
    pc_memory_limit memory_limit; /* of activations; zeroed: what the schedule itself holds, device by device */
    pc_goal goal;                 /* SPAN or MAKESPAN: what is minimised first, then the other, then memory */
    int threads;                  /* 0: one a processor. The result does not depend on it */
} pc_improve_request;

typedef struct pc_improvement {
    pc_time span_before_ps, makespan_before_ps; /* of the given schedule at the costs (replay.h) */
    int64_t *peak_before_bytes;                 /* [devices]: the most that it holds; owned */
    pc_time bound_ps; /* no schedule of this shape with these kinds of passes that keeps the limit has a shorter span;
                       * PC_TIME_NOT_GIVEN where none is known */
    bool is_changed;  /* false: the given order is the best that was found */
} pc_improvement;

/* Whether an order of this kind can be improved; PC_ERROR_INPUT and why not otherwise: it recomputes (R), its
 * microbatches take different ways (bidirectional), or it has too many chunks. */
pc_code pc_improve_check(const pc_schedule *schedule, pc_error *error);

/* *improved becomes the schedule of the same name, shape and placement with the least span (or makespan, as the goal
 * has it), then makespan (or span), then memory that was found within the limit. It is a copy of the given one unless
 * that is worse, or breaks a limit that it was given. Where the given one has W, backward passes that are whole (BW)
 * may come out as B and W; where it has none they stay whole. Microbatches may change their places: all cost the same,
 * so that the k-th F of a chunk on a device, and its k-th B and W, can be microbatch k without any pass starting later.
 * Costs that sum up to more than a clock can tell change nothing, and have no bound.
 *
 * PC_ERROR_INPUT as pc_improve_check, pc_replay_run, and where a device's limit is too small for one microbatch. Free
 * both results, with pc_schedule_free and pc_improvement_free. */
pc_code pc_schedule_improve(const pc_improve_request *request, pc_schedule *improved, pc_improvement *improvement,
                            pc_error *error);

/* A zeroed one is fine. */
void pc_improvement_free(pc_improvement *improvement);

#ifdef __cplusplus
}
#endif
#endif
