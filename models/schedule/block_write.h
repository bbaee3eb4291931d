/* block_write.h: a schedule as the file of its building block, which reads back as the same schedule. */
#ifndef PC_MODELS_SCHEDULE_BLOCK_WRITE_H
#define PC_MODELS_SCHEDULE_BLOCK_WRITE_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_block_text_request {
    const pc_schedule *schedule;  /* has passed pc_schedule_check */
    const pc_block *block;        /* what it repeats; NULL where that is not known */
    const pc_costs *costs;        /* of its devices and chunks, for which it may have been reordered; or NULL */
    pc_memory_limit memory_limit; /* within which, likewise */
    bool is_own;                  /* whether its name is that of a block already; others are called own-NAME */
} pc_block_text_request;

/* Writes YAML (docs/schedules.md): the block with its offsets, a list a device or, where they are even steps, a rule;
 * and which steps make the schedule of it. That is the block repeated and squeezed, if that is enough; else with the
 * passes of single microbatches that start elsewhere, mostly at the ends. So it reads back at any times. Where no block
 * is known, the whole iteration is one. PC_ERROR_INPUT where both BW and W stand in it: blocks have one or the other.
 * The caller looks at ferror(stream). */
pc_code pc_block_write(const pc_block_text_request *wanted, FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
