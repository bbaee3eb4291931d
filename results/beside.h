/* beside.h: a run that was measured beside the one that was simulated: pass by pass, and where the difference goes.
 *
 * The passes are timed five times: as simulated; with the measured times of passes; with these and the measured times
 * of messages; with both in the measured order; and as they were measured. The steps between are what slower passes,
 * slower transfers, another order and gaps come to, and their sum is the whole difference. A gap is time in which a
 * device waits although the pass could have run: launches, messages that left late.
 */
#ifndef PC_RESULTS_BESIDE_H
#define PC_RESULTS_BESIDE_H

#include "calib/trace/traced_run.h"
#include "engine/error.h"
#include "results/store/store.h"
#include "results/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one device, simulated and measured. */
typedef struct pc_beside_device {
    pc_time busy_ps[2][PC_PASS_KINDS];
    pc_time idle_ps[2]; /* within the iteration: before, between and behind its passes */
    pc_time gap_ps[2];  /* of that, while its next pass could have run */
    int64_t moved;      /* passes that stand elsewhere in the measured order */
} pc_beside_device;

typedef struct pc_beside {
    int devices, iteration, iterations; /* the one that is compared, from 0, of those that were measured */
    int64_t pass_count;                 /* by position in the simulated trace */
    pc_time *start_ps, *end_ps;         /* measured, [pass_count], from the first start on; owned */
    pc_time *delay_ps;        /* what the message that each waits for took; PC_TIME_NOT_GIVEN: nobody saw it */
    pc_beside_device *device; /* [devices]; owned */
    pc_time simulated_ps, with_passes_ps, with_messages_ps, with_order_ps, measured_ps; /* first start to last end */
    bool has_messages;                                                                  /* whether any was seen */
} pc_beside;

/* `iteration`: which of the measured ones; -1: of those that are whole the one of median length. PC_ERROR_INPUT: the
 * two have not the same passes, and which. Free it with pc_beside_free; a zeroed one is fine. */
pc_code pc_beside_make(const pc_trace_record *record, const pc_traced_run *run, int64_t iteration, pc_beside *beside,
                       pc_error *error);
void pc_beside_free(pc_beside *beside);

/* As a table for people; as JSON, an object of whole, difference and devices, in milliseconds; or as CSV, a line a
 * pass. */
pc_code pc_beside_write(const pc_beside *beside, const pc_trace_record *record, const char *name, pc_format format,
                        FILE *stream, pc_error *error);

/* Both timelines, device by device the simulated one above the measured one: svg, png or pdf. `is_dark`: light
 * on a dark ground. */
pc_code pc_beside_draw(const pc_beside *beside, const pc_trace_record *record, const char *name, bool is_dark,
                       const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
