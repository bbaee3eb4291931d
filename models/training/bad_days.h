/* bad_days.h: what makes an iteration differ from the one that was planned, and a job from its iterations.
 *
 * A sample is one iteration of the whole cluster, every data-parallel replica for itself, with what is random drawn
 * anew: each pass's time, each GPU's speed, each transfer's time, which GPUs are slow and which links are bad. What is
 * not random (a second kind of GPU, a given slow stage) is the same in all samples. Replicas wait for each other where
 * gradients are reduced, stages where passes meet, tensor ranks in every pass: a pass takes as long as on the slowest
 * GPU of its tensor group. Transfers and collectives take what they take alone (closed costs), whatever the network of
 * the good day. Numbers come from GSL, one stream a (sample, entity), seeded from the spec: neither threads nor the
 * order of samples show.
 */
#ifndef PC_MODELS_TRAINING_BAD_DAYS_H
#define PC_MODELS_TRAINING_BAD_DAYS_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/machine/machine.h"
#include "models/schedule/robust.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A distribution of factors with mean 1 as measured: quantiles at equal steps of probability, ascending; a factor is
 * drawn by linear interpolation between them. Borrowed. */
typedef struct pc_empirical {
    const double *quantiles; /* count of them, at least 2; NULL: lognormal */
    int count;
} pc_empirical;

/* Zeroed: a good day. Relative standard deviations are of lognormal factors with mean 1. A slow GPU is slow in passes
 * and in its step. A bad link counts in transfers of its tensor group, in passes of a tensor group that crosses nodes,
 * and in collectives of data parallelism of its stage, as far as they leave their node's domain: all wait for it. Their
 * latencies stay, and the uplinks of leaf switches are what they were. */
typedef struct pc_bad_days {
    int64_t samples; /* 0: none; all below needs some */

    /* Of one iteration. */
    double gpu_jitter;   /* of a GPU's speed, drawn once a sample; in samples, and in good_s, in place of the machine's
                          * speed_variation */
    double link_jitter;  /* of every transfer between stages, and, once a sample, of every (stage, replica)'s share of
                          * collectives of data parallelism, of which the slowest counts */
    pc_empirical passes; /* in place of the iteration spec's `jitter`, where given */
    int64_t slow_gpus;   /* so many GPUs, at random places, take slow_factor times as long */
    double slow_factor;  /* at least 1 */
    int64_t bad_links;   /* so many GPUs' network links, at random places, have bad_factor of their bandwidth */
    double bad_factor;   /* over 0, at most 1 */
    int slow_stage;      /* this stage's GPUs, from 0, in the first replica, take slow_factor times as long, where there
                          * is one: has_slow_stage. Beside slow_gpus, but no GPU is slow twice */
    bool has_slow_stage;
    int64_t other_nodes; /* the last so many of the nodes that the ranks are on have `other_gpu`: by its roofline, for a
                          * profile is of the machine's own GPU. Where it has less memory, so have the stages on those
                          * nodes, on the good day, too */
    pc_gpu other_gpu;
    pc_robust robust; /* what of the iteration is to be small, for the order of a schedule that searches */

    /* Of a job. */
    double mtbf_s;       /* mean time between failures of one GPU (with its share of the node); 0: none fail */
    double checkpoint_s; /* training stands still for a checkpoint so long */
    double interval_s;   /* of work between checkpoints; 0: Daly's optimum for the cluster's failure rate */
    double restart_s;    /* from a failure to the first new iteration, where a spare node is there */
    double repair_s;     /* until a failed node is back, as a spare */
    int64_t spare_nodes; /* without one a failure waits for a repair */
    double horizon_s;    /* length of the job that is sampled */
} pc_bad_days;

/* A quantile of the samples and the bounds of its 95% confidence interval, from order statistics (binomial). Where
 * there are too few samples for a bound it is NaN. */
typedef struct pc_quantile {
    double value, low, high;
} pc_quantile;

/* NaN if there were no samples, or nothing of the sort. Goodput: the fraction of a job's time in which it makes
 * progress that lasts, at the undisturbed iteration's speed: slow iterations, checkpoints, lost work, restarts and
 * waiting for repairs all take from it. */
typedef struct pc_bad_days_result {
    int64_t samples;
    double good_s; /* the iteration in which nothing happens, all GPUs the machine's, by the costs that samples go by:
                    * they have a ratio to this. It is the run's own but where that goes over network flows, expands
                    * noisy replicas, or counts a speed_variation that gpu_jitter stands for */
    double iteration_mean_s, iteration_mean_error_s; /* the mean and its standard error */
    pc_quantile iteration_p05_s, iteration_p50_s, iteration_p95_s, iteration_p99_s;
    double goodput_mean, goodput_mean_error;
    pc_quantile goodput_p05, goodput_p50, goodput_p95;
    double failures_mean; /* a job */
    double interval_s;    /* of checkpoints, as used */
} pc_bad_days_result;

/* Whether it says anything that changes an iteration, or a job. */
bool pc_bad_days_of_iteration(const pc_bad_days *days);
bool pc_bad_days_of_job(const pc_bad_days *days);

/* PC_ERROR_INPUT, "FIELD: what; expected ...", where a number is out of range. */
pc_code pc_bad_days_check(const pc_bad_days *days, pc_error *error);

/* Of no samples: all NaN. */
pc_bad_days_result pc_bad_days_none(void);

/* Quantile `q`, 0 < q < 1, of the distribution from which `count` numbers in ascending order were drawn: the smallest
 * of them below or at which are at least the part q. The bounds are two of the numbers: the ranks between which the
 * quantile lies with a chance of at least 95% whatever the distribution, at most 2.5% beyond either (David and Nagaraja
 * 2003, 'Order Statistics', section 7.1). NaN if there is no number. */
pc_quantile pc_quantile_of(const double *sorted, int64_t count, double q);

#ifdef __cplusplus
}
#endif
#endif
