/* plan.h: a schedule under construction, in the form that squeezing and reordering want: plain arrays of equal length
 * for every device, no pointers to follow. Private to the generators.
 *
 * Passes of one microbatch fall into types: kind and chunk, F of all chunks first, then B (or BW), then W. Of each type
 * a device runs microbatches 0, 1, 2, ... in this order. What a pass waits for then depends on its type and device
 * only, and stands in a table.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_PLAN_H
#define PC_MODELS_SCHEDULE_SEARCH_PLAN_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

enum { PC_PLAN_NONE = -1, PC_PLAN_TYPES_MAX = 256 };

/* One type on one device. */
typedef struct pc_plan_cell {
    pc_time duration;
    pc_time before_delay; /* from the end of `before` to here */
    int64_t taken;        /* what a pass adds to the device's memory; negative: what it gives back */
    int32_t before;       /* the cell whose pass of the same microbatch comes before in the model; or PC_PLAN_NONE */
    int32_t own;          /* a cell of the same device that must be done too; or PC_PLAN_NONE */
    int32_t after;        /* the cell that has this one as `before`; or PC_PLAN_NONE */
} pc_plan_cell;

/* What is to be scheduled: p devices, m microbatches, `types` passes of a microbatch on every device. */
typedef struct pc_plan {
    int devices, types, microbatches;
    int chunks;     /* types is 3 * chunks where B and W are apart, else 2 * chunks */
    int64_t passes; /* of one device: types * microbatches */
    bool splits;
    pc_placement placement;
    pc_plan_cell *cells; /* [devices][types], owned */
    int64_t *limit;      /* a number a device: the most memory; owned */
} pc_plan;

/* A pass in an order: type and microbatch in one number. */
typedef uint32_t pc_plan_pass;
_Static_assert(PC_MICROBATCHES_MAX <= 1 << 24 && PC_PLAN_TYPES_MAX <= 1 << 8, "a pass fits into 32 bits");

static inline pc_plan_pass pc_plan_pass_make(int type, int microbatch) {
    return (pc_plan_pass)type << 24 | (pc_plan_pass)microbatch;
}

static inline int pc_plan_pass_type(pc_plan_pass pass) {
    return (int)(pass >> 24);
}

static inline int pc_plan_pass_microbatch(pc_plan_pass pass) {
    return (int)(pass & 0xffffff);
}

/* An order of the passes of every device, and when they start. Shapes: [devices][passes]. */
typedef struct pc_plan_order {
    pc_plan_pass *pass; /* owned, as start is: pc_plan_order_free */
    pc_time *start;
    pc_time span; /* the longest over devices, from first start to last end */
    pc_time makespan;
    int64_t peak; /* the most memory over devices */
} pc_plan_order;

/* The plan for a schedule of this placement at these costs, for m microbatches, within the limit. */
pc_code pc_plan_create(const pc_costs *costs, pc_placement placement, bool splits, int microbatches,
                       pc_memory_limit memory_limit, pc_plan *plan, pc_error *error);
void pc_plan_free(pc_plan *plan);

/* Whether the device has a limit at all. */
bool pc_plan_is_limited(const pc_plan *plan, int device);

/* The same plan run backwards in time: what took memory gives it back, what came after comes before, microbatch i is
 * microbatch m-1-i. Shares limit with `plan`, which must outlive it. */
pc_code pc_plan_mirror(const pc_plan *plan, pc_plan *mirror, pc_error *error);
void pc_plan_mirror_free(pc_plan *mirror);

pc_code pc_plan_order_create(const pc_plan *plan, pc_plan_order *order, pc_error *error);
void pc_plan_order_free(pc_plan_order *order);
void pc_plan_order_copy(const pc_plan *plan, const pc_plan_order *from, pc_plan_order *to);

/* Type of a kind and chunk, and back. */
int pc_plan_type(const pc_plan *plan, pc_pass_kind kind, int chunk);
pc_pass pc_plan_to_pass(const pc_plan *plan, pc_plan_pass pass);

/* The order as a schedule named `name`. Free it with pc_schedule_free. */
pc_code pc_plan_to_schedule(const pc_plan *plan, const pc_plan_order *order, const char *name, pc_schedule *schedule,
                            pc_error *error);

#endif
