/* profile_notes.h: private to calib/profile_cost*.c: what a cost model has to say of the answers that it gave.
 *
 * Any number of threads may add; what is kept does not depend on their order.
 */
#ifndef PC_CALIB_PROFILE_PROFILE_NOTES_H
#define PC_CALIB_PROFILE_PROFILE_NOTES_H

#include "calib/profile/profile.h"
#include "engine/error.h"
#include "models/machine/collective.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pc_notes pc_notes;

/* `profile` is borrowed. NULL where memory is short. */
pc_notes *pc_notes_make(const pc_profile *profile);
void pc_notes_free(pc_notes *notes); /* NULL is fine */

/* A fit was asked for x, `distance` times outside what was measured. `fit` is its number in the profile. */
void pc_notes_far(pc_notes *notes, int64_t fit, const double *x, double distance, int dimension);

/* Something is not in the profile: `family` for `dtype`; `instead` is the dtype that stood in for it, or NULL: then the
 * roofline did. Both in static storage. */
void pc_notes_missing(pc_notes *notes, const char *family, const char *dtype, bool is_causal, const char *instead);

/* A collective of a group that was not measured. PC_COLLECTIVES: a message between stages. */
void pc_notes_unmeasured(pc_notes *notes, pc_collective collective, int32_t ranks, int32_t domains);

/* The lines: pc_profile_cost_warning. */
bool pc_notes_line(const pc_notes *notes, int number, char *line, size_t size);

/* "all_reduce"; of PC_COLLECTIVES "send_recv". */
const char *pc_measured_collective_name(pc_collective collective);

#endif
