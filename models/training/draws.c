#include "models/training/draws.h"

#include "engine/alloc.h"
#include "engine/random.h"

#include <math.h>

/* ---- streams ---- */

pc_code pc_draws_open(gsl_rng *rng, pc_error *error) {
    *rng = (gsl_rng){.type = gsl_rng_taus2, .state = pc_alloc(1, gsl_rng_taus2->size)};
    return rng->state ? PC_OK : pc_error_no_memory(error);
}

void pc_draws_close(gsl_rng *rng) {
    pc_free(rng->state);
    rng->state = NULL;
}

void pc_draws_begin(gsl_rng *rng, uint64_t seed, int64_t sample, pc_drawn what, int64_t replica, int stage) {
    uint64_t of_sample = pc_seed_of(pc_seed_of(pc_seed_of(seed) + (uint64_t)sample) + (uint64_t)what);
    gsl_rng_set(rng, (unsigned long)pc_seed_of(pc_seed_of(of_sample + (uint64_t)replica) + (uint64_t)stage));
}

/* ---- factors ---- */

pc_factors pc_factors_lognormal(double deviation) {
    double variance = log1p(deviation * deviation);
    return (pc_factors){.mu = -0.5 * variance, .sigma = sqrt(variance)};
}

double pc_empirical_draw(const pc_empirical *empirical, gsl_rng *rng) {
    double place = gsl_rng_uniform(rng) * (empirical->count - 1);
    int below = (int)place;
    return empirical->quantiles[below] +
           (place - below) * (empirical->quantiles[below + 1] - empirical->quantiles[below]);
}

/* ---- places ---- */

void pc_draw_places(gsl_rng *rng, int64_t all, int64_t count, uint8_t bit, uint8_t *marks, int64_t *places) {
    for (int64_t i = all - count; i < all; i++) {
        int64_t place = (int64_t)gsl_rng_uniform_int(rng, (unsigned long)i + 1);
        if (marks[place] & bit) place = i;
        marks[place] |= bit;
        *places++ = place;
    }
}
