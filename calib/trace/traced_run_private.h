/* traced_run_private.h: a timeline that is being made. Private to calib/trace/traced_run*.c. */
#ifndef PC_CALIB_TRACE_TRACED_RUN_PRIVATE_H
#define PC_CALIB_TRACE_TRACED_RUN_PRIVATE_H

#include "calib/trace/traced_run.h"

/* Six days: what the times of one run may be apart, so that sums of a few are numbers. */
#define PC_TRACED_SPAN_PS (INT64_C(1) << 59)

typedef struct pc_placed_rank {
    const pc_rank_trace *trace;
    int index;          /* among those given */
    int32_t least_part; /* of the model; -1: passes name chunks */
    int32_t device, replica;
} pc_placed_rank;

typedef struct pc_draft {
    const pc_traced_run_request *request;
    pc_placed_rank *ranks; /* by stage and replica */
    int rank_count;
    int64_t origin_ns; /* time 0 */
    pc_traced_run timeline;
} pc_draft;

/* Pairs the messages of replicas 0, sets the clocks of all ranks by them, and moves all passes so that the first begins
 * at 0. traced_run_messages.c. */
pc_code pc_traced_run_add_messages(pc_draft *draft, pc_error *error);

/* PC_ERROR_INPUT: times that are farther apart than one run's. */
pc_code pc_traced_run_refuse_span(pc_error *error);

#endif
