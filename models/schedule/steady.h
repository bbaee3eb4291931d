/* steady.h: what a schedule comes to in its middle, beginning and end aside: how long it takes for every microbatch
 * more, and how long each device idles in that time.
 *
 * The middle repeats itself where all devices do the same again, k microbatches later, in the same order. Put in once
 * more, and again and again, it makes the iteration longer by the interval times k each time, once it is in step. That
 * limit is the maximum cycle ratio of the repeated orders (cycle_ratio.h), so that it is exact, and needs no long
 * schedule. Passes wait for those before them on their device and in the model, a turn of the middle or more earlier. A
 * device that works less than that in a turn has a bubble that repeats with every turn ('Pipeline Parallelism with
 * Controllable Memory', Qi et al. 2024, arXiv 2405.15362, section 4.2, of V-Min with unequal F, B and W).
 */
#ifndef PC_MODELS_SCHEDULE_STEADY_H
#define PC_MODELS_SCHEDULE_STEADY_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed (microbatches 0) where the orders do not repeat. */
typedef struct pc_steady {
    int devices;
    int microbatches;           /* k: after so many the middle repeats */
    double interval_ps;         /* of one microbatch: the quotient of the next two, which are exact */
    pc_time cycle_ps;           /* the passes and transfers that allow no shorter interval */
    int64_t cycle_microbatches; /* how many microbatches go by in them */
    pc_time *work_ps;           /* [devices]: of k microbatches, with recomputation; owned: pc_steady_free */
} pc_steady;

/* The schedule must have passed pc_schedule_check, and the costs must have its shape and all of its times. Transfers
 * over links take what they would take alone. Looks for a k of up to 12 in five places about the middle, each for two
 * turns. The result is zeroed if there is none, and for more than a few thousand devices. */
pc_code pc_steady_find(const pc_schedule *schedule, const pc_costs *costs, pc_steady *steady, pc_error *error);

/* A zeroed one is fine. */
void pc_steady_free(pc_steady *steady);

/* How long a device idles for every microbatch, and the share of the interval that the most loaded device idles: the
 * repeating bubble, 0 where there is none. */
double pc_steady_idle_ps(const pc_steady *steady, int device);
double pc_steady_bubble_rate(const pc_steady *steady);

#ifdef __cplusplus
}
#endif
#endif
