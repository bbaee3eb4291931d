/* footprint.h: what a stage holds over an iteration, and whether that fits. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_FOOTPRINT_H
#define PC_MODELS_TRAINING_FOOTPRINT_H

#include "models/training/outline.h"

/* Fills in iteration->memory for what is held all the time. Where that alone is too much, the iteration is out of
 * memory and its message says so. */
pc_code pc_footprint_fixed(const pc_outline *outline, pc_iteration *iteration, pc_error *error);

/* Whether a schedule that keeps a limit has one to keep: out of memory where the activations of one microbatch do not
 * fit. */
void pc_footprint_least(const pc_outline *outline, const pc_costs *costs, pc_iteration *iteration);

/* What the engine saw of each device's memory: the most that it held, in all, and when that first was more than its
 * capacity, -1: never. */
typedef struct pc_memory_seen {
    const int64_t *peak_bytes;
    const pc_time *overdrawn_ps;
} pc_memory_seen;

/* Adds the activations of a schedule whose passes start and end at these times, by position, and what the hosts hold;
 * out of memory, as above, where
 * some stage's peak is more than its capacity. `seen`: NULL if the order alone has to say when. */
pc_code pc_footprint_activations(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                                 const pc_time *start_ps, const pc_time *end_ps, const pc_memory_seen *seen,
                                 pc_iteration *iteration, pc_error *error);

/* The same of a trial's order before it is timed: out of memory if its activations alone are too much, whenever that
 * is. It says nothing where their copies beside passes, or passes that wait for memory, make that depend on times. */
pc_code pc_footprint_order(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                           pc_iteration *iteration, pc_error *error);

/* A pass that waits in vain for memory. */
typedef struct pc_pass_stuck {
    int64_t position;
    int64_t asked_bytes, level_bytes; /* what it takes, and what its device holds in all */
    pc_time when_ps;                  /* since when nothing can give any back */
} pc_pass_stuck;

/* Out of memory, where passes wait for it: for the activations of one microbatch, where a stage has not even room for
 * those; else as it says. */
void pc_footprint_stuck(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                        const pc_pass_stuck *stuck, pc_iteration *iteration);

#endif
