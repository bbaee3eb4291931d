/* bound_machine.h: what one machine needs for its jobs at the least, where it may interrupt them. Private to the bound
 * of an instance. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_BOUND_MACHINE_H
#define PC_MODELS_SCHEDULE_SEARCH_BOUND_MACHINE_H

#include "engine/simtime.h"
#include "models/schedule/search/instance.h"

/* Times that the machine is free, ascending; the last has no end. */
enum { PC_GAPS_MAX = 8 };
typedef struct pc_gaps {
    int count;
    pc_time from[PC_GAPS_MAX], to[PC_GAPS_MAX];
} pc_gaps;

/* Before and after all times that count; sums of a few stay within pc_time. */
#define PC_GAPS_EVER  (-(INT64_C(1) << 60))
#define PC_GAPS_NEVER (INT64_C(1) << 60)

/* Free all the time. */
void pc_gaps_clear(pc_gaps *gaps);

/* A job that is ready then works as soon as the machine is free, in pieces if need be. The times at which the machine
 * works do not depend on the order in which its jobs are put in. Where there would be more gaps than fit, the first
 * work is forgotten: jobs that are put in later can then be done earlier than they could be, never later. */
void pc_gaps_put(pc_gaps *gaps, pc_time ready, pc_time work);

/* When the last job is done. */
static inline pc_time pc_gaps_end(const pc_gaps *gaps) {
    return gaps->from[gaps->count - 1];
}

/* The shortest span of all passes of a device, run with interruptions. Pass j of a type starts no earlier than
 * head[type][j], and from its end to that of the device's last pass it takes at least tail[type][m-1-j]: both
 * [types][m], and ascending in every type. The job that has the longest tail goes first (Jackson's rule, made
 * preemptive; Carlier 1982, European Journal of Operational Research 11: no schedule is shorter). */
pc_time pc_machine_least_span(const pc_instance *instance, int device, const pc_time *head, const pc_time *tail);

#endif
