/* profile_cost.h: a profile as a cost model: fits where something was measured, the roofline of the machine elsewhere.
 */
#ifndef PC_CALIB_PROFILE_COST_H
#define PC_CALIB_PROFILE_COST_H

#include "calib/profile.h"
#include "engine/api.h"
#include "models/cost/cost.h"
#include "models/machine/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_profile_cost pc_profile_cost;

/* `profile` is borrowed and outlives it, `gpu` and the rest of `machine` are copied. PC_ERROR_INPUT where the profile is
 * of another GPU than the machine's, with both names. Free with pc_profile_cost_free. */
PC_API pc_code pc_profile_cost_make(const pc_profile *profile, const pc_machine *machine, pc_profile_cost **cost,
                                    pc_error *error);
PC_API void pc_profile_cost_free(pc_profile_cost *cost);

/* For pc_iteration_run; borrowed from `cost`. Any number of threads may use it at once. */
PC_API pc_cost_model pc_profile_cost_model(const pc_profile_cost *cost);

/* The machine with what was measured in place of what its file says: memory that is reserved, the domain's
 * collectives. */
PC_API const pc_machine *pc_profile_cost_machine(const pc_profile_cost *cost);

/* Warnings, a line each, the same for any number of threads: for each sort of operation the shape that was farthest
 * outside the measured range (with its distance, the dimension and the range), and what is not in the profile at all
 * (the roofline answers). `number` from 0; false behind the last. */
PC_API bool pc_profile_cost_warning(const pc_profile_cost *cost, int number, char *line, size_t size);

#ifdef __cplusplus
}
#endif
#endif
