/* job.h: a training job of days or months: iterations as they were sampled, checkpoints, failures, restarts, spares.
 *
 * One job is simulated for every sample of the spec, from event to event. It works in intervals: so many iterations, as
 * many as come nearest to the interval that was asked for, and a checkpoint behind them. The GPUs fail as a Poisson
 * process, `gpus` / mtbf_s a second, whenever they are in use: at work, in a checkpoint, in a restart. A failure takes
 * the job back to the end of its last checkpoint. Another node stands in for the one that failed, if one is there, and
 * restart_s later work goes on; without one the job waits until the first node is back from repair, repair_s after its
 * failure, and nothing fails meanwhile. Nodes that come back are spares; spares do not fail.
 *
 * Iterations are drawn from the samples with replacement. The time of many is drawn as a normal number with their exact
 * mean and variance; that of at most PC_JOB_SUM_MAX is the sum of as many draws.
 */
#ifndef PC_MODELS_TRAINING_JOB_H
#define PC_MODELS_TRAINING_JOB_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/training/bad_days.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_JOB_SUM_MAX = 32 };

typedef struct pc_job_spec {
    const pc_bad_days *bad_days; /* its part of a job, and how many are simulated: `samples` */
    int64_t gpus;                /* in use, without spares; at least 1 */
    const pc_time *iteration_ps; /* [iterations], each more than zero; borrowed */
    int64_t iterations;          /* at least 1 */
    double good_s;               /* an undisturbed iteration, by which progress is measured */
    uint64_t seed;
    int threads; /* 0: one. What comes out does not depend on it */
} pc_job_spec;

/* The work between two checkpoints that makes a long job shortest, in seconds, where failures come every `mtbf_s` and a
 * checkpoint takes `checkpoint_s`: Daly, 'A higher order estimate of the optimum checkpoint interval for restart
 * dumps', Future Generation Computer Systems 22 (2006), equation 37. */
double pc_job_best_interval(double checkpoint_s, double mtbf_s);

/* Fills in the result's part of a job: goodput, failures and interval_s. Goodput is the iterations that were not undone
 * by the job's end, times good_s, over horizon_s. interval_s is NaN if there are no checkpoints, and then nothing fails
 * either. PC_ERROR_INPUT if a job has more failures than can be simulated. */
pc_code pc_job_run(const pc_job_spec *spec, pc_bad_days_result *result, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
