/* given.h: schedules that a file gives: generators that are made of them when it is read, and then are like the named
 * ones to all who ask for a schedule.
 */
#ifndef PC_MODELS_SCHEDULE_GIVEN_H
#define PC_MODELS_SCHEDULE_GIVEN_H

#include "engine/error.h"
#include "models/schedule/generate.h"
#include "models/schedule/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a file (pc_schedule_read_torch_csv) and checks it (pc_schedule_check): PC_ERROR_INPUT says file and line. */
pc_code pc_schedule_load(const char *path, pc_schedule *schedule, pc_error *error);

/* One whole schedule. Its generator is for its p, m, v and placement alone, and has its name. */
typedef struct pc_given_schedule pc_given_schedule;

/* Loads it. `name` is what the schedule is called, cut to size at its front; NULL: the file's. */
pc_code pc_given_schedule_read(const char *path, const char *name, pc_given_schedule **given, pc_error *error);

/* Both are the given one's, and last as long as it does. */
const pc_generator *pc_given_schedule_generator(const pc_given_schedule *given);
const pc_schedule *pc_given_schedule_order(const pc_given_schedule *given);

/* NULL is fine. */
void pc_given_schedule_free(pc_given_schedule *given);

/* A generator for what its maker has read: `given` is the first member of what `generate` reads. The rest as in
 * generate.h; `name` is borrowed. */
pc_generator pc_generator_of_given(const char *name, pc_placement placement, int chunks, const pc_given *given);

#ifdef __cplusplus
}
#endif
#endif
