/* deployed_published.h: what the published generators of zero bubble schedules are told, and what becomes of their
 * answers. Private to the generators.
 *
 * They take one time for the F, the B and the W of all chunks, and one for a transfer (sail-sg's
 * zero-bubble-pipeline-parallelism, zerobubble/runtime.py). Measured times come down to these by the mean over a
 * device's chunks, and of that the middle over the devices.
 */
#ifndef PC_MODELS_SCHEDULE_DEPLOYED_PUBLISHED_H
#define PC_MODELS_SCHEDULE_DEPLOYED_PUBLISHED_H

#include "models/schedule/generate_private.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PC_PUBLISHED_KINDS = 3, /* F, B and W, which pc_pass_kind begins with */
    PC_PUBLISHED_CHUNKS_MAX = 2,
    PC_PUBLISHED_TYPES_MAX = PC_PUBLISHED_KINDS * PC_PUBLISHED_CHUNKS_MAX
};

/* Of a chunk. */
typedef struct pc_published_times {
    pc_time pass_ps[PC_PUBLISHED_KINDS];
    pc_time transfer_ps;
} pc_published_times;

/* What a pass of each kind adds to the memory of a device, 0 in all; where its chunks differ, as if each were before
 * its B, and after it, the largest. And what the schedule's name and the request limit the device to; PC_NO_LIMIT where
 * they do not. */
typedef struct pc_published_memory {
    int64_t added_bytes[PC_PUBLISHED_KINDS];
    int64_t named_bytes, asked_bytes;
} pc_published_memory;

/* What a heuristic is told, and where it writes: orders of types, kind * chunks + chunk, of every device 3 * m * chunks
 * one after the other. */
typedef struct pc_published_task {
    int devices, microbatches;
    pc_published_times times;
    pc_published_memory *memory; /* [devices]; of costs without any activation in chunks, asked_bytes saying nothing */
    uint8_t *order;              /* of the run at hand */
    uint8_t *best;               /* what was kept last */
} pc_published_task;

/* Runs the heuristic; *is_solved says whether an order was kept. */
typedef pc_code pc_published_solver(pc_published_task *task, bool *is_solved, pc_error *error);

/* The order of the run becomes the best; task->order is room for another. */
void pc_published_keep(pc_published_task *task);

/* The schedule of the best order, in which passes of one type run their microbatches in turn. PC_ERROR_INPUT: a time
 * that is not given, is negative, or is so long that the passes of all devices, one after the other, run over; or
 * nothing was kept. */
pc_code pc_published_find(const pc_generator *self, const pc_generate_request *request, pc_published_solver *solver,
                          pc_schedule *schedule, pc_error *error);

/* What `rule` gives; costs where B recomputes are told to it as to a search of ours. */
pc_code pc_published_make(const pc_generator *self, const pc_generate_request *request, pc_generate_rule *rule,
                          pc_schedule *schedule, pc_error *error);

/* In deployed_zb.c and deployed_zb_v.c: `generate` of a pc_deployed. */
pc_code pc_published_zb(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                        pc_error *error);
pc_code pc_published_zb_v(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                          pc_error *error);

#endif
