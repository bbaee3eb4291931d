/* engine.h: the clock and the dispatch: takes the first pending event, sets the clock to its time, calls its handler.
 *
 * An engine is one handle and shares nothing: two can run in two threads. A handler may post and cancel events, and
 * stop the engine.
 */
#ifndef PC_ENGINE_ENGINE_H
#define PC_ENGINE_ENGINE_H

#include "engine/error.h"
#include "engine/queue.h"
#include "engine/simtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_ENGINE_KINDS = 16 }; /* event.kind is below this */

typedef struct pc_engine pc_engine;
typedef void pc_handler(pc_engine *engine, const pc_event *event, void *context);

/* Room for `capacity` pending events before the first allocation. */
pc_code pc_engine_create(size_t capacity, pc_engine **engine, pc_error *error);
void pc_engine_free(pc_engine *engine);

/* Time zero, no events, no fault; handlers and memory stay. */
void pc_engine_clear(pc_engine *engine);

/* Events of this kind go to `handler`, with `context`. */
void pc_engine_set_handler(pc_engine *engine, uint32_t kind, pc_handler *handler, void *context);

pc_time pc_engine_now(const pc_engine *engine);

/* Handles the event at now + delay (delay >= 0); among events of one time, those of a lower priority first, then in the
 * order in which they were posted. `handle` may be NULL. False if the time runs over or memory is short; the engine
 * then stops after the running handler, and pc_engine_run returns the fault: a handler need not check. */
bool pc_engine_post(pc_engine *engine, pc_time delay, uint16_t priority, const pc_event *event,
                    pc_event_handle *handle);

/* False if the event has happened or was cancelled before. */
bool pc_engine_cancel(pc_engine *engine, pc_event_handle handle);

/* Runs until no event is pending, the next one lies after `until`, or pc_engine_stop; then the clock stands at the last
 * event handled. Events that are left stay pending. */
pc_code pc_engine_run(pc_engine *engine, pc_time until, pc_error *error);

/* From a handler: the last event is this one. */
void pc_engine_stop(pc_engine *engine);

/* Events handled since the last clear. */
uint64_t pc_engine_event_count(const pc_engine *engine);

/* Bytes that the engine holds, for benchmarks. */
size_t pc_engine_bytes(const pc_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
