/* instance.h: a schedule under construction, in the form that squeezing and reordering want: plain arrays of equal
 * length for every device, no pointers to follow. Private to the generators.
 *
 * Passes of one microbatch fall into types: kind and chunk, F of all chunks first, then B (or BW), then W. Of each type
 * a device runs microbatches 0, 1, 2, ... in this order. What a pass waits for then depends on its type and device
 * only, and stands in a table.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_INSTANCE_H
#define PC_MODELS_SCHEDULE_SEARCH_INSTANCE_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

enum { PC_INSTANCE_NONE = -1, PC_INSTANCE_TYPES_MAX = 256, PC_INSTANCE_CHUNKS = PC_INSTANCE_TYPES_MAX / 2 };

/* One type on one device. */
typedef struct pc_instance_cell {
    pc_time duration;
    pc_time before_delay; /* from the end of `before` to here */
    int64_t taken;        /* what a pass adds to the device's memory; negative: what it gives back */
    int32_t before; /* the cell whose pass of the same microbatch comes before in the model; or PC_INSTANCE_NONE */
    int32_t own;    /* a cell of the same device that must be done too; or PC_INSTANCE_NONE */
    int32_t after;  /* the cell that has this one as `before`; or PC_INSTANCE_NONE */
} pc_instance_cell;

/* What is to be scheduled: p devices, m microbatches, `types` passes of a microbatch on every device. */
typedef struct pc_instance {
    int devices, types, microbatches;
    int chunks;     /* types is 3 * chunks where B and W are apart, else 2 * chunks */
    int64_t passes; /* of one device: types * microbatches */
    bool splits;
    pc_placement placement;
    pc_instance_cell *cells;              /* [devices][types], owned */
    int64_t *limit;                       /* a number a device: the most memory; owned */
    const struct pc_objective *objective; /* what an order comes to in place of its span (objective.h); NULL: the span
                                           * counts, as in every mirror and coarse instance. Borrowed */
} pc_instance;

/* A pass in an order: type and microbatch in one number. */
typedef uint32_t pc_instance_pass;
_Static_assert(PC_MICROBATCHES_MAX <= 1 << 24 && PC_INSTANCE_TYPES_MAX <= 1 << 8, "a pass fits into 32 bits");

static inline pc_instance_pass pc_instance_pass_make(int type, int microbatch) {
    return (pc_instance_pass)type << 24 | (pc_instance_pass)microbatch;
}

static inline int pc_instance_pass_type(pc_instance_pass pass) {
    return (int)(pass >> 24);
}

static inline int pc_instance_pass_microbatch(pc_instance_pass pass) {
    return (int)(pass & 0xffffff);
}

/* An order of the passes of every device, and when they start. Shapes: [devices][passes]. */
typedef struct pc_instance_order {
    pc_instance_pass *pass; /* owned, as start is: pc_instance_order_free */
    pc_time *start;
    pc_time span; /* the longest over devices, from first start to last end; or what the instance has in its place */
    pc_time makespan;
    int64_t peak; /* the most memory over devices */
} pc_instance_order;

/* The instance for a schedule of this placement at these costs, for m microbatches, within the limit. */
pc_code pc_instance_create(const pc_costs *costs, pc_placement placement, bool splits, int microbatches,
                           pc_memory_limit memory_limit, pc_instance *instance, pc_error *error);
void pc_instance_free(pc_instance *instance);

/* Whether the device has a limit at all. */
bool pc_instance_is_limited(const pc_instance *instance, int device);

/* The same instance run backwards in time: what took memory gives it back, what came after comes before, microbatch i
 * is microbatch m-1-i. Shares limit with `instance`, which must outlive it. */
pc_code pc_instance_mirror(const pc_instance *instance, pc_instance *mirror, pc_error *error);
void pc_instance_mirror_free(pc_instance *mirror);

pc_code pc_instance_order_create(const pc_instance *instance, pc_instance_order *order, pc_error *error);
void pc_instance_order_free(pc_instance_order *order);
void pc_instance_order_copy(const pc_instance *instance, const pc_instance_order *from, pc_instance_order *to);

/* Type of a kind and chunk, and back. */
int pc_instance_type(const pc_instance *instance, pc_pass_kind kind, int chunk);
pc_pass pc_instance_to_pass(const pc_instance *instance, pc_instance_pass pass);

/* Writes order->pass: a schedule's order, of the instance's shape. A BW becomes a B and a W where those are apart, and
 * the k-th pass of a type on its device is microbatch k. That is legal, with the same starts: the first k passes of a
 * type have waited for k passes of the type before, so that the k-th of these in time has ended by then as well. */
void pc_instance_of_schedule(const pc_instance *instance, const pc_schedule *schedule, pc_instance_order *order);

/* The order as a schedule named `name`. Free it with pc_schedule_free. */
pc_code pc_instance_to_schedule(const pc_instance *instance, const pc_instance_order *order, const char *name,
                                pc_schedule *schedule, pc_error *error);

#endif
