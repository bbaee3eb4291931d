/* draws.h: random factors, from streams of GSL's taus2, each of a number of its own. Private to models/training/.
 */
#ifndef PC_MODELS_TRAINING_DRAWS_H
#define PC_MODELS_TRAINING_DRAWS_H

#include "engine/error.h"
#include "models/training/bad_days.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* A generator whose state is ours: where memory is short, gsl_rng_alloc would end the program. pc_draws_close. */
pc_code pc_draws_open(gsl_rng *rng, pc_error *error);
void pc_draws_close(gsl_rng *rng);

/* What is drawn in a sample, each from streams of its own, so that more of one leaves the others as they are. PASSES:
 * of a stage, in the order of its passes. GPUS: of a stage, TP rank by TP rank. TRANSFERS: of a stage, in the order of
 * its passes. COLLECTIVES: a stage's one. SLOW_GPUS and BAD_LINKS: of all.
 * JOB: of a job, which is none of an iteration's. LOADS: of experts, of a stage, layer by layer. */
typedef enum pc_drawn {
    PC_DRAWN_PASSES,
    PC_DRAWN_GPUS,
    PC_DRAWN_TRANSFERS,
    PC_DRAWN_COLLECTIVES,
    PC_DRAWN_SLOW_GPUS,
    PC_DRAWN_BAD_LINKS,
    PC_DRAWN_JOB,
    PC_DRAWN_LOADS
} pc_drawn;

/* Starts the stream of what is drawn for a stage of a replica; both 0 for what is of all. */
void pc_draws_begin(gsl_rng *rng, uint64_t seed, int64_t sample, pc_drawn what, int64_t replica, int stage);

/* A distribution of factors with mean 1. */
typedef struct pc_factors {
    pc_empirical empirical; /* or, without: */
    double mu, sigma;       /* lognormal; sigma 0: always 1 */
} pc_factors;

/* Of a relative standard deviation. */
pc_factors pc_factors_lognormal(double deviation);

static inline bool pc_factors_vary(const pc_factors *factors) {
    return factors->empirical.quantiles || factors->sigma > 0;
}

double pc_empirical_draw(const pc_empirical *empirical, gsl_rng *rng);

static inline double pc_factors_draw(const pc_factors *factors, gsl_rng *rng) {
    if (factors->empirical.quantiles) return pc_empirical_draw(&factors->empirical, rng);
    return factors->sigma > 0 ? exp(factors->mu + gsl_ran_gaussian_ziggurat(rng, factors->sigma)) : 1;
}

/* Draws `count` different ones of the numbers 0 .. all-1, every set of them as likely (Floyd; Bentley 1987,
 * 'Programming pearls: a sample of brilliance'). Sets `bit` in marks[] of each, where it must not be set of any; `all`
 * is less than 2^32. */
void pc_draw_places(gsl_rng *rng, int64_t all, int64_t count, uint8_t bit, uint8_t *marks, int64_t *places);

/* `picoseconds`, rounded; what cannot be counted becomes a time so long that adding it up runs over. */
static inline pc_time pc_time_drawn(double picoseconds) {
    const double most = (double)(PC_TIME_MAX / 4);
    return picoseconds < most ? llrint(picoseconds) : PC_TIME_MAX / 4;
}

#endif
