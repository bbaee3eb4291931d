/* queue.h: the pending events of a simulation, in total order.
 *
 * THE ORDER: events leave by (time, priority, sequence), each ascending. Time is the event's time; priority is the
 * caller's, small first; sequence counts the pushes of this queue from its last clear. No two events are equal, so
 * what leaves next never depends on how the queue is built.
 *
 * How it is built is hidden here and may change: see queue.c. A push and a pop cost a near-constant time whatever the
 * number of pending events. An event takes at most 64 bytes, of room that is doubled when it is full. A cancelled event
 * keeps its bytes for a while. If the room is full and most of it is cancelled events, those are thrown out instead.
 * Nothing is allocated before the queue holds more events than it ever did, or than it was created for.
 */
#ifndef PC_ENGINE_QUEUE_H
#define PC_ENGINE_QUEUE_H

#include "engine/error.h"
#include "engine/marks.h"
#include "engine/simtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_QUEUE_PENDING_MAX = 1 << 30 };
#define PC_QUEUE_PUSHES_MAX (INT64_C(1) << 48) /* between two clears */

/* What happens: the engine gives `kind` and `target` their meaning; `data` is the handler's own. */
typedef struct pc_event {
    uint32_t kind;
    uint32_t target;
    uint64_t data;
} pc_event;

/* Names a pending event; stays invalid for ever once the event has left. */
typedef struct pc_event_handle {
    uint32_t index;
    uint32_t generation;
} pc_event_handle;

typedef struct pc_queue pc_queue;

/* Room for `capacity` events before the first allocation; more is had on demand. */
pc_code pc_queue_create(size_t capacity, pc_queue **queue, pc_error *error);
void pc_queue_free(pc_queue *queue);

/* Drops all events and starts the sequence anew; keeps the memory. */
void pc_queue_clear(pc_queue *queue);

size_t pc_queue_size(const pc_queue *queue);

/* Adds an event; `handle` may be NULL. The time must not be negative, and may lie before the last one popped (the queue
 * has no clock). False, and nothing changed, where memory is short or a limit above is reached. */
PC_MUST_USE bool pc_queue_push(pc_queue *queue, pc_time time, uint16_t priority, const pc_event *event,
                               pc_event_handle *handle);

/* Takes the first event out; false if there is none. Never allocates. */
PC_MUST_USE bool pc_queue_pop(pc_queue *queue, pc_time *time, pc_event *event);

/* The time of the first event; false if there is none. */
PC_MUST_USE bool pc_queue_next_time(pc_queue *queue, pc_time *time);

/* Takes a pending event out before its time; false if it has left already. */
bool pc_queue_cancel(pc_queue *queue, pc_event_handle handle);

/* Bytes that the queue holds, for benchmarks. */
size_t pc_queue_bytes(const pc_queue *queue);

/* Walks the whole queue and asserts every invariant. For tests. */
void pc_queue_check(const pc_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
