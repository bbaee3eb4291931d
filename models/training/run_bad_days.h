/* run_bad_days.h: what a row says of samples and jobs. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_RUN_BAD_DAYS_H
#define PC_MODELS_TRAINING_RUN_BAD_DAYS_H

#include "engine/error.h"
#include "models/training/iteration.h"
#include "models/training/run.h"

/* What was asked for. Nothing is defined where `spec`, which may be NULL, has no samples. */
void pc_run_describe_bad_days(const pc_iteration_spec *spec, pc_run_row *row);

/* What came of it; all that it does not have is not defined. */
void pc_run_fill_bad_days(const pc_bad_days_result *result, pc_run_row *row);

/* Simulates the jobs of an iteration that has samples, where the spec speaks of any, into the iteration's result. */
pc_code pc_run_jobs(const pc_run_spec *spec, pc_iteration *iteration, pc_error *error);

#endif
