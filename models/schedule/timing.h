/* timing.h: when every pass of a schedule runs, in one walk over the orders; for searches that judge many schedules.
 *
 * If a transfer is a pure delay nothing contends. So a pass starts at the later of two times: the end of the pass
 * before it on its stage, and the arrival of its input from another stage (or a third: when its chunk is ready).
 * The walk takes each stage as far as its inputs are known and comes back when one more of them is; every pass is
 * looked at once, and once more for each time that its stage has to wait. It gives, to the picosecond, what the engine
 * gives (replay.h).
 */
#ifndef PC_MODELS_SCHEDULE_TIMING_H
#define PC_MODELS_SCHEDULE_TIMING_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stage's share of a timing. */
typedef struct pc_stage_timing {
    pc_time start_ps;   /* of its first pass; 0 where it has none */
    pc_time end_ps;     /* of its last pass */
    pc_time busy_ps;    /* in passes */
    pc_time work_ps;    /* in F, B, W and BW: not in recomputation */
    int64_t peak_bytes; /* the most activation memory that its order holds at once, whatever the limit */
} pc_stage_timing;

/* What the stages come to together. */
typedef struct pc_timing_totals {
    pc_time span_ps;     /* the longest over stages, from first start to last end */
    pc_time makespan_ps; /* the last end over stages; the first pass starts at 0, or when its chunk is ready */
    pc_time work_ps;     /* the most over stages */
    int64_t peak_bytes;  /* the most over stages */
} pc_timing_totals;

/* What one timing gave. The arrays are the workspace's, and stand until its next run. */
typedef struct pc_timing_result {
    const pc_time *start_ps; /* a number a pass, in the order of schedule->passes */
    const pc_time *end_ps;
    const pc_stage_timing *stages; /* one a stage */
    pc_timing_totals totals;
} pc_timing_result;

/* A workspace. It keeps its memory from run to run: nothing is allocated for a schedule no larger than one before, of
 * whatever shape. One thread at a time. */
typedef struct pc_timing pc_timing;

pc_code pc_timing_create(pc_timing **timing, pc_error *error);
void pc_timing_free(pc_timing *timing); /* NULL is fine */

/* Times `schedule` at `costs`, whose shape must be the schedule's and whose transfers must be delays. Linear in the
 * number of passes. PC_ERROR_INPUT: an order that is not valid, in pc_schedule_check's words; a time that is needed
 * and not given; a negative time or size; a time that runs over; transfers over links. */
pc_code pc_timing_run(pc_timing *timing, const pc_schedule *schedule, const pc_costs *costs, pc_timing_result *result,
                      pc_error *error);

/* The same where every pass has a time of its own, duration_ps, a number a pass in the order of schedule->passes, none
 * negative; NULL: the costs' times. What the costs lack counts as missing all the same. Of a pair the first pass has
 * the time of both, and the second one none (pc_costs_busy_ps). */
pc_code pc_timing_run_passes(pc_timing *timing, const pc_schedule *schedule, const pc_costs *costs,
                             const pc_time *duration_ps, pc_timing_result *result, pc_error *error);

/* The same where every transfer has a time of its own, too: delay_ps, a number a pass. It is the time from when what
 * the pass waits for from another stage ends there to when it is here; 0 where it waits for no other stage. NULL: the
 * costs' delays. For timing one order again and again: memory, which goes by the order alone, is left out, and its
 * numbers are 0. */
pc_code pc_timing_run_each(pc_timing *timing, const pc_schedule *schedule, const pc_costs *costs,
                           const pc_time *duration_ps, const pc_time *delay_ps, pc_timing_result *result,
                           pc_error *error);

/* Whether some of `devices` stages holds more than its limit. Its times are those of a machine with room enough. */
bool pc_timing_exceeds(const pc_stage_timing *stages, int devices, pc_memory_limit memory_limit);

/* The longest and the most over `devices` stages. */
pc_timing_totals pc_timing_sum(const pc_stage_timing *stages, int devices);

/* PC_OK where the costs have the schedule's shape, or: where they give a time for every pass that it has. The passes
 * must be in range. PC_ERROR_INPUT names what is wrong, or the first pass whose time is missing. */
pc_code pc_timing_check_shape(const pc_schedule *schedule, const pc_costs *costs, pc_error *error);
pc_code pc_timing_check_given(const pc_schedule *schedule, const pc_costs *costs, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
