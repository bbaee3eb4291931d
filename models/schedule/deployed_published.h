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

/* PC_ERROR_INPUT: a time that is not given, is negative, or is so long that the passes of all devices, one after the
 * other, run over. Of an even number of devices the middle is the longer one of two. A transfer that shares its link is
 * counted as if it were alone. */
pc_code pc_published_times_of(const pc_generator *self, const pc_generate_request *request, pc_published_times *times,
                              pc_error *error);

/* What a pass of each kind adds to the memory of a device, 0 in all; where its chunks differ, as if each were before
 * its B, and after it, the largest. And what the schedule's name and the request limit the device to; PC_NO_LIMIT where
 * they do not. */
typedef struct pc_published_memory {
    int64_t added_bytes[PC_PUBLISHED_KINDS];
    int64_t named_bytes, asked_bytes;
} pc_published_memory;

/* memory[0 .. p-1]. Costs without any activation count chunks, and the request's limit says nothing then. */
pc_code pc_published_memory_of(const pc_generator *self, const pc_generate_request *request,
                               pc_published_memory *memory, pc_error *error);

/* The schedule of an order of types: kind * chunks + chunk, of every device 3 * m * chunks one after the other. Passes
 * of one type run their microbatches in turn. */
pc_code pc_published_write(const pc_generator *self, const pc_generate_request *request, const uint8_t *types,
                           pc_schedule *schedule, pc_error *error);

/* What `rule` gives; costs where B recomputes are told to it as to a search of ours. */
pc_code pc_published_make(const pc_generator *self, const pc_generate_request *request, pc_generate_rule *rule,
                          pc_schedule *schedule, pc_error *error);

/* PC_ERROR_INPUT: none of the generator's runs gives an order within the limit. */
pc_code pc_published_fail(const pc_generator *self, pc_error *error);

/* In deployed_zb.c and deployed_zb_v.c: `generate` of a pc_deployed. */
pc_code pc_published_zb(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                        pc_error *error);
pc_code pc_published_zb_v(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                          pc_error *error);

#endif
