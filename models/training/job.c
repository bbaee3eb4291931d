#include "models/training/job.h"

#include "engine/alloc.h"
#include "engine/order.h"
#include "engine/parallel.h"
#include "models/training/draws.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>

/* So many deviations of their sum more time than the mean: what is there for intervals that are jumped over as one. The
 * chance that they take longer is below 1e-15. */
static const double SURE_DEVIATIONS = 8;

/* What a job may have of failures, so that none takes more than seconds. */
static const double FAILURES_MAX = 1e6;

/* ---- what all jobs have in common ---- */

typedef struct terms {
    const pc_job_spec *spec;
    double mean_s, deviation_s; /* of an iteration */
    double iterations;          /* of an interval; whole */
    double checkpoint_s;
    double mtbf_s; /* of the cluster; 0: nothing fails */
    bool has_checkpoints;
} terms;

/* What came of one job. */
typedef struct outcome {
    double goodput;
    double failures;
} outcome;

double pc_job_best_interval(double checkpoint_s, double mtbf_s) {
    double half = checkpoint_s / (2 * mtbf_s);
    if (half >= 1) return mtbf_s;
    return sqrt(2 * checkpoint_s * mtbf_s) * (1 + sqrt(half) / 3 + half / 9) - checkpoint_s;
}

static void measure_iterations(const pc_job_spec *spec, terms *p) {
    double sum = 0, squares = 0, count = (double)spec->iterations;
    for (int64_t i = 0; i < spec->iterations; i++) sum += pc_time_to_seconds(spec->iteration_ps[i]);
    p->mean_s = sum / count;
    for (int64_t i = 0; i < spec->iterations; i++) {
        double difference = pc_time_to_seconds(spec->iteration_ps[i]) - p->mean_s;
        squares += difference * difference;
    }
    p->deviation_s = sqrt(squares / count); /* draws are from these samples: the population's */
}

static terms make_terms(const pc_job_spec *spec) {
    const pc_bad_days *x = spec->bad_days;
    terms p = {.spec = spec, .mtbf_s = x->mtbf_s / (double)spec->gpus, .iterations = 1};
    double interval_s = x->interval_s;
    measure_iterations(spec, &p);
    p.has_checkpoints = interval_s > 0 || p.mtbf_s > 0;
    if (interval_s == 0 && p.mtbf_s > 0) interval_s = pc_job_best_interval(x->checkpoint_s, p.mtbf_s);
    if (!p.has_checkpoints) return p; /* nothing is ever lost */
    p.iterations = fmax(1, round(interval_s / p.mean_s));
    p.checkpoint_s = x->checkpoint_s;
    return p;
}

/* ---- one job ---- */

typedef struct job {
    const terms *terms;
    gsl_rng rng;
    double now_s;
    double done;        /* iterations that no failure can undo */
    double failures;    /* so far */
    double *repaired_s; /* [spare_nodes + 1]; when the nodes under repair are back, a ring in ascending order */
    int64_t first, under_repair;
} job;

/* The time of `count` iterations, which is whole. */
static double draw_work(job *j, double count) {
    const pc_job_spec *spec = j->terms->spec;
    double sum = 0;
    if (j->terms->deviation_s == 0) return count * j->terms->mean_s;
    if (count > PC_JOB_SUM_MAX)
        return fmax(0,
                    count * j->terms->mean_s + gsl_ran_gaussian_ziggurat(&j->rng, j->terms->deviation_s * sqrt(count)));
    for (int i = 0; i < (int)count; i++)
        sum += pc_time_to_seconds(spec->iteration_ps[gsl_rng_uniform_int(&j->rng, (unsigned long)spec->iterations)]);
    return sum;
}

/* How many intervals are sure to be over within `left_s`. In x, the root of their number, mean and margin are
 * c x^2 + m x. */
static double sure_intervals(const terms *p, double left_s) {
    double cycle = p->iterations * p->mean_s + p->checkpoint_s;
    double margin = SURE_DEVIATIONS * p->deviation_s * sqrt(p->iterations);
    double root = (sqrt(margin * margin + 4 * cycle * left_s) - margin) / (2 * cycle);
    return floor(root * root);
}

/* Works from a checkpoint on for `span_s`; returns the iterations that were done behind the last checkpoint by then. */
static double work(job *j, double span_s) {
    const terms *p = j->terms;
    double left_s = span_s;
    for (;;) {
        double sure = sure_intervals(p, left_s), intervals = fmax(1, sure);
        double work_s = draw_work(j, intervals * p->iterations), taken_s = work_s + intervals * p->checkpoint_s;
        if (sure < 2 && taken_s > left_s) {
            j->now_s += left_s;
            return work_s > left_s ? p->iterations * left_s / work_s : p->iterations;
        }
        taken_s = fmin(taken_s, left_s);
        left_s -= taken_s;
        j->now_s += taken_s;
        j->done += intervals * p->iterations;
    }
}

/* Takes a node out, and waits until there are enough again. */
static void replace_node(job *j) {
    const pc_bad_days *x = j->terms->spec->bad_days;
    int64_t size = x->spare_nodes + 1;
    while (j->under_repair > 0 && j->repaired_s[j->first] <= j->now_s) {
        j->first = (j->first + 1) % size;
        j->under_repair--;
    }
    j->repaired_s[(j->first + j->under_repair++) % size] = j->now_s + x->repair_s;
    if (j->under_repair == size) j->now_s = j->repaired_s[j->first];
}

/* From a failure to the first new iteration, or to the next failure, where that comes sooner; returns how long from
 * then on nothing fails. */
static double recover(job *j) {
    j->failures++;
    replace_node(j);
    double up_s = gsl_ran_exponential(&j->rng, j->terms->mtbf_s);
    double restart_s = fmin(up_s, j->terms->spec->bad_days->restart_s);
    j->now_s += restart_s;
    return up_s - restart_s;
}

static outcome run_job(job *j) {
    const pc_job_spec *spec = j->terms->spec;
    double horizon_s = spec->bad_days->horizon_s, lasting = 0;
    double up_s = j->terms->mtbf_s > 0 ? gsl_ran_exponential(&j->rng, j->terms->mtbf_s) : INFINITY;
    while (j->now_s < horizon_s) {
        bool fails = up_s < horizon_s - j->now_s;
        double since_checkpoint = work(j, fails ? up_s : horizon_s - j->now_s);
        if (!fails) {
            lasting = since_checkpoint;
            break;
        }
        up_s = recover(j);
    }
    return (outcome){.goodput = (j->done + lasting) * spec->good_s / horizon_s, .failures = j->failures};
}

/* ---- all jobs ---- */

typedef struct job_run {
    const terms *terms;
    job *workers;
    double *goodput, *failures; /* [samples] */
} job_run;

static void run_sample(void *context, int worker, int64_t sample) {
    job_run *run = context;
    job *j = &run->workers[worker];
    j->now_s = j->done = j->failures = 0;
    j->first = j->under_repair = 0;
    pc_draws_begin(&j->rng, run->terms->spec->seed, sample, PC_DRAWN_JOB, 0, 0);
    outcome o = run_job(j);
    run->goodput[sample] = o.goodput;
    run->failures[sample] = o.failures;
}

static void sum_up(const job_run *run, int64_t samples, pc_bad_days_result *result) {
    size_t count = (size_t)samples;
    const terms *p = run->terms;
    result->goodput_mean = gsl_stats_mean(run->goodput, 1, count);
    result->goodput_mean_error = count > 1 ? gsl_stats_sd(run->goodput, 1, count) / sqrt((double)count) : NAN;
    result->failures_mean = gsl_stats_mean(run->failures, 1, count);
    result->interval_s = p->has_checkpoints ? p->iterations * p->mean_s : NAN;
    pc_sort_reals(run->goodput, samples);
    result->goodput_p05 = pc_quantile_of(run->goodput, samples, 0.05);
    result->goodput_p50 = pc_quantile_of(run->goodput, samples, 0.5);
    result->goodput_p95 = pc_quantile_of(run->goodput, samples, 0.95);
}

static pc_code check(const terms *p, pc_error *error) {
    double horizon_s = p->spec->bad_days->horizon_s;
    if (!(horizon_s > 0))
        return pc_error_set(error, PC_ERROR_INPUT, "horizon: %g s; expected more than zero", horizon_s);
    if (p->mtbf_s == 0 || horizon_s / p->mtbf_s <= FAILURES_MAX) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "mtbf: a failure every %.3g s, and %.3g of them a job; expected at most %.0f", p->mtbf_s,
                        horizon_s / p->mtbf_s, FAILURES_MAX);
}

static pc_code open_worker(const terms *p, job *j, pc_error *error) {
    j->terms = p;
    pc_code code = pc_draws_open(&j->rng, error);
    if (code) return code;
    j->repaired_s = pc_alloc((size_t)p->spec->bad_days->spare_nodes + 1, sizeof *j->repaired_s);
    return j->repaired_s ? PC_OK : pc_error_no_memory(error);
}

static void close_worker(job *j) {
    pc_draws_close(&j->rng);
    pc_free(j->repaired_s);
}

static pc_code run_workers(job_run *run, int threads, pc_bad_days_result *result, pc_error *error) {
    int64_t samples = run->terms->spec->bad_days->samples;
    pc_code code = PC_OK;
    int opened = 0;
    for (; opened < threads && !code; opened++) code = open_worker(run->terms, &run->workers[opened], error);
    if (!code) {
        pc_parallel_run(threads, samples, run_sample, run);
        sum_up(run, samples, result);
    }
    for (int i = 0; i < opened; i++) close_worker(&run->workers[i]);
    return code;
}

pc_code pc_job_run(const pc_job_spec *spec, pc_bad_days_result *result, pc_error *error) {
    int threads = spec->threads > 1 ? spec->threads : 1;
    size_t samples = (size_t)spec->bad_days->samples;
    terms p = make_terms(spec);
    pc_code code = check(&p, error);
    if (code) return code;
    job_run run = {.terms = &p,
                   .workers = pc_alloc((size_t)threads, sizeof *run.workers),
                   .goodput = pc_alloc(samples, sizeof *run.goodput),
                   .failures = pc_alloc(samples, sizeof *run.failures)};
    code = run.workers && run.goodput && run.failures ? run_workers(&run, threads, result, error)
                                                      : pc_error_no_memory(error);
    pc_free(run.workers);
    pc_free(run.goodput);
    pc_free(run.failures);
    return code;
}
