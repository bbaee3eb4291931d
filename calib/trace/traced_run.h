/* traced_run.h: what the ranks of a pipeline did, on one clock: passes by iteration and device, and messages between
 * devices.
 *
 * Every trace is of one rank. Ranks that follow each other are one stage, as frameworks number them: of n traces and p
 * devices each n/p; the first of a stage is its replica 0. If passes name the part of the model (PP:2F3), that says the
 * stage.
 *
 * The ranks' clocks need not agree: the k-th message that a sends to b is the k-th that b receives from a, and both
 * ends of it end together. So b's clock is off by the median of what they differ by; with messages both ways by half of
 * the difference between the two medians, in which what a message takes cancels out.
 */
#ifndef PC_CALIB_TRACE_TRACED_RUN_H
#define PC_CALIB_TRACE_TRACED_RUN_H

#include "calib/trace/rank_trace.h"
#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/pass_times.h"
#include "models/schedule/schedule.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_traced_run_pass {
    int32_t iteration, device, replica;
    pc_pass pass;
    pc_time start_ps, end_ps; /* from the first start of all on */
    int64_t bytes;
} pc_traced_run_pass;

/* From when both ends were there until it had arrived. */
typedef struct pc_traced_run_message {
    int32_t from, to; /* devices */
    pc_time start_ps, end_ps;
    pc_time time_ps; /* the shorter of its two ends: who comes last does not wait */
    int64_t bytes;   /* 0: unknown */
} pc_traced_run_message;

typedef struct pc_traced_run {
    int devices, chunks, microbatches, iterations, replicas;
    pc_placement placement;
    bool has_memory;            /* of all ranks */
    int64_t *held_bytes;        /* [devices], the most over replicas; with has_memory */
    pc_traced_run_pass *passes; /* by replica, iteration, device and start; owned, as all */
    int64_t pass_count;
    pc_traced_run_message *messages; /* of replicas 0; by from, to and order */
    int64_t message_count;
    pc_time most_clock_ps; /* by how much a clock was set, at most */
} pc_traced_run;

/* What the traces do not say. */
typedef struct pc_traced_run_request {
    int64_t devices; /* 0: one a trace, or as the passes' parts say */
    int placement;   /* a pc_placement; -1: as the passes' parts say, else interleaved if there are several chunks */
    int64_t skip;    /* iterations at the beginning that do not count */
} pc_traced_run_request;

/* Takes `count` traces in whatever order. PC_ERROR_INPUT says what does not go together. */
pc_code pc_traced_run_make(const pc_rank_trace *traces, int count, const pc_traced_run_request *request,
                           pc_traced_run *timeline, pc_error *error);
void pc_traced_run_free(pc_traced_run *timeline); /* a zeroed one is fine */

/* Means and scatter of the passes' times, what they hold, and the median of what messages take. */
pc_code pc_traced_run_measure(const pc_traced_run *timeline, pc_pass_times *times, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
