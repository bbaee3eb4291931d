/* exchange.h: schedules as text, for people and for PyTorch's pipelining runtime. */
#ifndef PC_MODELS_SCHEDULE_EXCHANGE_H
#define PC_MODELS_SCHEDULE_EXCHANGE_H

#include "engine/error.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line a device, its passes in order: `F0 f0 B0 W0 b0 w0`, upper case the first chunk, lower case the second; with
 * more than two chunks `F0.2` (microbatch.chunk). The caller looks at ferror(stream). */
void pc_schedule_write_text(const pc_schedule *schedule, FILE *stream);

/* A line a rank, cells `<part><action><microbatch>`: F, I for our B, W, B for our BW (torch.distributed.pipelining,
 * compute-only CSV). A pair is one cell, (1F4;2B2)OVERLAP_F_B. PC_ERROR_INPUT where the schedule has what the runtime
 * does not know: R, or two replicas. */
pc_code pc_schedule_write_torch_csv(const pc_schedule *schedule, FILE *stream, pc_error *error);

/* Whether a schedule's name is a file's: has a folder, or ends in ".csv". */
bool pc_schedule_is_file(const char *name);

/* Reads what the above, or PyTorch, has written. The number of lines is p; m and v follow from the cells, and the
 * placement from the rank that holds each part. Empty cells are waits and are skipped. The schedule is read, not
 * judged: pc_schedule_check does that. PC_ERROR_INPUT names line and cell. */
pc_code pc_schedule_read_torch_csv(const char *path, pc_schedule *schedule, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
