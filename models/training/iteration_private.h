/* iteration_private.h: one run of an iteration under way: which orders it tries, and what each takes. Private to the
 * files iteration*.c.
 */
#ifndef PC_MODELS_TRAINING_ITERATION_PRIVATE_H
#define PC_MODELS_TRAINING_ITERATION_PRIVATE_H

#include "engine/hash.h"
#include "models/schedule/timing.h"
#include "models/training/finish.h"
#include "models/training/outline.h"

#include <stdbool.h>

enum { PC_ITERATION_SCHEDULES_MOST = 6 }; /* that a run times */

/* One run's things; all owned where nothing else is said, but for the spec. */
typedef struct pc_iteration_work {
    const pc_iteration_spec *spec;
    pc_iteration_spec with_memo; /* of a schedule that searches: the spec, then */
    pc_outline outline;
    pc_costs costs;
    pc_schedule schedule;
    pc_search_memo *memo, *own_memo;            /* of searches: the spec's, or its own, which alone is owned */
    pc_hash timed[PC_ITERATION_SCHEDULES_MOST]; /* of the schedules that were timed */
    int timed_count;
    pc_timing *timing, *held; /* held: of runs beside the one that counts */
    pc_pipeline_ends ends;
    pc_time *done_ps, *backlog_ps, *begin_ps, *period_ps; /* [devices]; one block, with the next */
    pc_time *ready_ps;                                    /* [devices][chunks] */
    int64_t *room_bytes;                                  /* [devices]: for activations */
    pc_time alone_ps;                                     /* the folded iteration by closed costs */
    pc_time met_ps;                                       /* what it takes longer for what meets on links */
} pc_iteration_work;

/* The iteration cannot be, and why. */
void pc_iteration_note_infeasible(pc_iteration *iteration, const char *why);

/* ---- iteration_orders.c ---- */

/* Makes an order for the passes. One that cannot be leaves that in the iteration's status; a schedule there is only if
 * there is none. With with_block the iteration gets the block that repeats in it. */
typedef pc_code pc_order_search(const pc_iteration_work *run, bool with_block, pc_schedule *schedule,
                                pc_iteration *iteration, pc_error *error);

/* What the spec asks for. */
pc_order_search pc_iteration_search_first;

/* Other orders that may take less, each only if it is wanted beside `iteration`, the shortest so far. They are tried
 * one after the other. */
typedef struct pc_order_attempt {
    bool (*is_wanted)(const pc_iteration_work *run, const pc_iteration *iteration);
    pc_order_search *search;
} pc_order_attempt;
enum { PC_ORDER_ATTEMPTS = 4 };
extern const pc_order_attempt pc_order_attempts[PC_ORDER_ATTEMPTS];

/* ---- iteration_time.c ---- */

/* Whether messages share links over the iteration. */
bool pc_iteration_wants_flows(const pc_iteration_work *run);

/* Room for what follows. Of expanded replicas it goes by the first schedule. */
pc_code pc_iteration_open_timing(pc_iteration_work *run, pc_error *error);

/* Times run->schedule, and fills in the iteration, whose fixed memory is there; what does not fit is in its status. */
pc_code pc_iteration_time(pc_iteration_work *run, bool with_trace, pc_iteration *iteration, pc_error *error);

#endif
