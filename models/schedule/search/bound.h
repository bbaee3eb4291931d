/* bound.h: what no schedule can beat. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_BOUND_H
#define PC_MODELS_SCHEDULE_SEARCH_BOUND_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>

/* A span that no schedule of the instance can be shorter than, in time that grows with the square of the devices. The
 * longest, over devices, of two times. A device works without a break but for the way of its first microbatch through
 * the rest of the model and back, which it can fill with F alone, and only with as many as its memory holds. So it is
 * for the way of its last one, which it can fill with the backward passes alone whose activations it holds. And a
 * microbatch holds memory on a device at least for its way through the rest of the model and back. All of them together
 * cannot hold more than the limit, times the span, less what is not held yet at the start and no longer at the end. A
 * search that reaches it can stop. What an instance has in place of its span (objective.h) is no less either, nor less
 * than pc_objective_least. */
pc_time pc_instance_least_span(const pc_instance *instance);

/* The same, but as close as we can prove; never less than it. It takes the earliest starts of all passes
 * (bound_heads.h), and their latest ends by the same on the mirror. In between is one machine that may interrupt its
 * work (bound_machine.h). That is done on the first device and on the one with the most work; the others give less if
 * stages are equal. In time that grows with the passes of all devices; with more than 65,536 of them, or more than 4
 * chunks, it is pc_instance_least_span. */
pc_code pc_instance_bound(const pc_instance *instance, pc_time *bound, pc_error *error);

/* The same device by device, least_ps[0 .. p-1]: from a device's own first start to its own last end, whatever an
 * objective says. And with what pc_instance_bound finds, which raises the first and the busiest device's; it may be
 * asked only behind the first one. */
void pc_instance_least_spans(const pc_instance *instance, pc_time *least_ps);
pc_code pc_instance_close_spans(const pc_instance *instance, pc_time *least_ps, pc_error *error);

/* A bound that is made closer when that can make a difference. */
typedef struct pc_bound {
    pc_time least;
    bool is_close;
} pc_bound;

/* pc_instance_least_span. */
pc_bound pc_bound_first(const pc_instance *instance);

/* Whether a span is as short as any schedule's of the instance can be; makes the bound pc_instance_bound if that takes
 * it to know. */
pc_code pc_bound_reach(pc_bound *bound, const pc_instance *instance, pc_time span, bool *is_reached, pc_error *error);

#endif
