/* sample.h: iterations of bad days (bad_days.h). Private to models/training/.
 *
 * A sample times the pipelines of all replicas, each pass at the slowest GPU of its tensor group. Transfers and
 * collectives take what they take alone (the closed costs, whatever the good day's network). The sample ends where the
 * latest replica lets it. Replicas that do not differ are timed once.
 */
#ifndef PC_MODELS_TRAINING_SAMPLE_H
#define PC_MODELS_TRAINING_SAMPLE_H

#include "engine/error.h"
#include "models/schedule/schedule.h"
#include "models/training/outline.h"

/* Whether the cut has what the bad days speak of; PC_ERROR_INPUT says what it lacks. */
pc_code pc_samples_check(const pc_iteration_spec *spec, pc_error *error);

/* Where a stage has GPUs of the other kind and those have less memory, that is what it has; but for a limit that the
 * spec sets. */
void pc_samples_limit_memory(pc_outline *outline);

/* Fills in bad_days and sample_ps of an iteration that is feasible and fits, of a spec with samples. */
pc_code pc_samples_run(const pc_outline *outline, const pc_schedule *schedule, pc_iteration *iteration,
                       pc_error *error);

#endif
