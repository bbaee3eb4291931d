/* reorder_private.h: what reorder.c, reorder_pack.c and reorder_improve.c share: the room of a search, and whose turn
 * it is. Private to those three. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_REORDER_PRIVATE_H
#define PC_MODELS_SCHEDULE_SEARCH_REORDER_PRIVATE_H

#include "models/schedule/search/reorder.h"

/* All bytes alike, so that memory is filled with it; with a delay on top it stays a number, and later than all times.
 */
enum { NEVER_BYTE = 0x3f };
#define NEVER  INT64_C(0x3f3f3f3f3f3f3f3f)
#define PULLED (-NEVER) /* in place of a level: the pass has been pulled ahead */

/* One type of one device, laid out for sweeps: what its cell says, and where its numbers stand, by microbatch. */
typedef struct lane {
    const pc_time *before, *own; /* when the passes that it waits for end: zeros where there are none */
    pc_time *end;                /* when its own do, in this sweep; NEVER: not yet */
    int32_t *position;           /* where they stand in the old order of their device */
    pc_time before_delay;
    pc_time earliest; /* no pass starts before; 0 without an objective */
    pc_time duration;
    pc_time after_delay; /* to the device that waits for it */
    int64_t taken;
    int32_t after; /* that device, if it is another one; or PC_INSTANCE_NONE */
    int32_t done;  /* how many have run */
} lane;

/* Where one device stands in a sweep. */
typedef struct device_state {
    const pc_instance_pass *old;
    const pc_time *old_start;
    pc_instance_pass *made;
    pc_time *start;
    int64_t *level; /* memory after each pass of the old order, with what was pulled ahead */
    lane *lanes;    /* a number a type */
    int64_t cursor; /* the first pass of the old order that may be left to run */
    int64_t filled; /* passes of the new order so far */
    pc_time free;   /* when the last of them ends */
} device_state;

/* When a device wants to decide. */
typedef struct turn {
    pc_time time;
    int32_t device;
} turn;

struct pc_reorder {
    const pc_instance *instance; /* the user's */
    pc_instance mirror;
    int64_t row;       /* microbatches of a type, and room behind them */
    pc_time *end;      /* [devices][types][row]: when a pass of this sweep ends; NEVER: not yet */
    pc_time *none;     /* [microbatches], zeros: what waits for nothing */
    int32_t *position; /* the same shape: where it stands in the old order of its device */
    int64_t *level;    /* [devices][passes] */
    lane *lanes[2];    /* [devices][types], of the user's instance and of the mirror */
    int32_t *done;     /* [devices][types], when squeezing and packing */
    device_state *device;
    turn *turns; /* a tournament: turns[leaves + d] is device d's, turns[1] the one with the least time, the first where
                  * equal */
    int leaves;
    pc_time *release;  /* a number a device: it does nothing before */
    pc_time *shortest; /* a number a device: its shortest pass */
    int64_t *window;   /* a number a device: how far ahead in the old order a pass may be pulled from */
    int32_t *ready;    /* devices that may go on when squeezing; a stack */
    int ready_count;
    pc_instance_order to, fro, now, trial, walk;
};
/* A sweep over the user's instance, or its mirror. */
typedef struct sweep {
    pc_reorder *r;
    const pc_instance *instance;
    const pc_instance_order *old;
    pc_instance_order *made;
    bool strict; /* a gap ends where the next pass is known to be ready, also if it started later before */
} sweep;

/* The first of the two turns below a node. */
static inline turn pc_reorder_first_below(const turn *turns, unsigned node) {
    const turn *left = turns + 2 * (size_t)node;
    return left[left[1].time < left[0].time];
}

/* Where another device comes first as before, all above stands. */
static inline void pc_reorder_set_next(pc_reorder *r, int device, pc_time time) {
    turn *turns = r->turns;
    unsigned node = (unsigned)(r->leaves + device);
    turns[node].time = time;
    for (node /= 2; node >= 1; node /= 2) {
        turn first = pc_reorder_first_below(turns, node);
        if (first.device == turns[node].device && first.device != device) return;
        turns[node] = first;
    }
}

static inline pc_time pc_reorder_next(const pc_reorder *r, int device) {
    return r->turns[r->leaves + device].time;
}

/* From where the devices are free. */
void pc_reorder_start_turns(pc_reorder *r);

/* False where the old order has a deadlock. `release`: a number a device; NULL: zeros. */
bool pc_reorder_run_sweep(const sweep *s, const pc_time *release);

/* The most memory over devices; -1 where a device goes over its limit. */
int64_t pc_reorder_peak(const pc_instance *instance, const pc_instance_order *order);

#endif
