/* least_span.h: how short a schedule could be. */
#ifndef PC_MODELS_SCHEDULE_LEAST_SPAN_H
#define PC_MODELS_SCHEDULE_LEAST_SPAN_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/generate.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/replay.h"
#include "models/schedule/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the bound of a schedule allows each device, into limit_bytes[0 .. p-1]: what the request and the generator's
 * name limit it to, or, where neither does, what the schedule itself holds; in any case no less than that. `generator`
 * may be NULL, and of the request no more is read than its microbatches, its costs and its limit. */
void pc_least_span_limits(const pc_generator *generator, const pc_generate_request *request, const pc_replay *replay,
                          int64_t *limit_bytes);

/* *least_ps becomes a span (replay.h) that no schedule can be shorter than which has this one's devices, microbatches,
 * placement and costs, has B and W apart if this one has any W, and keeps the limit (docs/searches.md). Transfers over
 * links take what they would take alone. PC_TIME_NOT_GIVEN where none is known: for microbatches that take different
 * ways (bidirectional), with R, where some passes are BW and take less than their B
 * and W or recompute, and for thousands of devices. */
pc_code pc_schedule_least_span(const pc_schedule *schedule, const pc_costs *costs, pc_memory_limit limit,
                               pc_time *least_ps, pc_error *error);

/* The same before there is a schedule, of every device, least_ps[0 .. p-1]: what no order that the generator finds for
 * the request, and that keeps the request's limit, can have between a device's first start and its last end. They keep
 * the limit of their name, too. `is_close`: as close as can be proved, which takes longer. Zeros of generators that do
 * not search, of makings of others, and where nothing is known. */
pc_code pc_generator_least_spans(const pc_generator *generator, const pc_generate_request *request, bool is_close,
                                 pc_time *least_ps, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
