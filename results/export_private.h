/* export_private.h: private to results/export*.c: text on its way to a stream. */
#ifndef PC_RESULTS_EXPORT_PRIVATE_H
#define PC_RESULTS_EXPORT_PRIVATE_H

#include "engine/error.h"
#include "models/schedule/dependencies.h"
#include "results/store/store.h"
#include "storage/text.h"

#include <stdio.h>

/* Gathers text and sends it on in pieces, so that memory does not grow with the trace. Once something fails, nothing
 * more is sent. */
typedef struct pc_outlet {
    FILE *stream;
    pc_text text;
    bool failed;
    int cause; /* errno of what failed */
} pc_outlet;

/* After every line. */
void pc_outlet_step(pc_outlet *outlet);

/* Sends the rest and frees the text. */
pc_code pc_outlet_end(pc_outlet *outlet, pc_error *error);

/* A record's trace as the orders of a schedule, and where each pass stands in it. The passes stay the record's; free
 * with pc_trace_view_free. PC_ERROR_INPUT if the passes do not stand stage by stage, or one stands twice. */
typedef struct pc_trace_view {
    pc_schedule schedule;
    pc_pass_index index; /* of that schedule: the view must not move */
} pc_trace_view;

pc_code pc_trace_view_make(const pc_trace_record *record, pc_trace_view *view, pc_error *error);
void pc_trace_view_free(pc_trace_view *view);

/* The positions of the passes at the ends of a transfer. PC_ERROR_INPUT if there is no pass that could wait for it. */
pc_code pc_trace_view_join(const pc_trace_view *view, const pc_replay_trace *trace, int64_t transfer, int32_t *maker,
                           int32_t *waiting, pc_error *error);

#endif
