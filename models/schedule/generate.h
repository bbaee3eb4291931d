/* generate.h: the named schedules. */
#ifndef PC_MODELS_SCHEDULE_GENERATE_H
#define PC_MODELS_SCHEDULE_GENERATE_H

#include "engine/api.h"
#include "engine/error.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_generator pc_generator;

/* What a named schedule is, for lists and for defaults. */
struct pc_generator {
    const char *name;
    const char *summary; /* one line for `pipecast list schedules` */
    pc_placement placement;
    int chunks_min; /* the least, the most (0: any) and the usual number of chunks */
    int chunks_max;
    int chunks_default;
    bool splits;     /* whether B and W are passes of their own */
    bool recomputes; /* whether R stands before each backward pass */
    /* The schedule for a shape that pc_generator_check has accepted. */
    pc_code (*generate)(const pc_generator *self, int devices, int microbatches, int chunks, pc_schedule *schedule,
                        pc_error *error);
    int extra; /* what tells two generators of one family apart; see generate.c */
};

/* All generators, `*count` of them, in the order in which they are listed. Static storage. */
PC_API const pc_generator *pc_generators(int *count);

/* By name; NULL where there is none. */
PC_API const pc_generator *pc_generator_find(const char *name);

/* Writes "gpipe, 1f1b, ..." into text (cut to size), for messages. */
PC_API void pc_generator_names(char *text, int size);

/* Whether this generator can make a schedule of p devices, m microbatches and v chunks; PC_ERROR_INPUT and the rule
 * that is broken otherwise. `chunks` 0 asks for the generator's own default. */
PC_API pc_code pc_generator_check(const pc_generator *generator, int64_t devices, int64_t microbatches, int64_t chunks,
                                  pc_error *error);

/* Checks, then generates. Free the result with pc_schedule_free. */
PC_API pc_code pc_schedule_generate(const pc_generator *generator, int64_t devices, int64_t microbatches,
                                    int64_t chunks, pc_schedule *schedule, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
