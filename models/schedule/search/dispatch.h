/* dispatch.h: orders that rules of priority make, at the instance's own costs and within its memory. For any placement
 * and any number of chunks. Private to the generators.
 *
 * Time runs forward over all devices. A device that is free takes the pass that a rule puts first among those that can
 * start, and it waits only where there is none. F goes by groups: so many microbatches go through a chunk before the
 * next chunk's turn, as in interleaved 1F1B, and backward passes likewise. A group of one sends every microbatch as
 * deep as it comes.
 *
 * No order ends in a deadlock. On a device let microbatch k be the first whose F are not all done. What the later ones
 * hold there leaves room for all of k. The first microbatch for which that is so on all devices can therefore always go
 * on, and when it is through, the next one has no less room, for of no chunk a later microbatch is ahead of it.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_DISPATCH_H
#define PC_MODELS_SCHEDULE_SEARCH_DISPATCH_H

#include "engine/error.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum pc_dispatch_first { PC_DISPATCH_BACK, PC_DISPATCH_FORWARD, PC_DISPATCH_IN_TURN } pc_dispatch_first;

typedef struct pc_dispatch_rule {
    int group;               /* microbatches, at least 1 */
    pc_dispatch_first first; /* of F and backward passes that are both ready; in turn: not what ran last */
    int waiting;             /* when so many W or more wait, one comes first; else W come where nothing else can */
    int under_way;           /* microbatches that a device has begun and not ended, no more */
} pc_dispatch_rule;

/* Room to work in, for orders of one instance; one thread at a time. */
typedef struct pc_dispatch pc_dispatch;

/* The instance must outlive it. Free with pc_dispatch_free (NULL is fine). */
pc_code pc_dispatch_create(const pc_instance *instance, pc_dispatch **dispatch, pc_error *error);
void pc_dispatch_free(pc_dispatch *dispatch);

/* Writes order->pass. False where a device's limit has no room for one microbatch. */
bool pc_dispatch_run(pc_dispatch *dispatch, const pc_dispatch_rule *rule, pc_instance_order *order);

#endif
