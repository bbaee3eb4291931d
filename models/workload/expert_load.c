#include "models/workload/expert_load.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>

/* The integral of w^power from 1 to `most`. */
static double power_integral(double power, double most) {
    double rise = power + 1.0;
    return fabs(rise) < 1e-12 ? log(most) : expm1(rise * log(most)) / rise;
}

typedef struct share {
    double mean, deviation; /* of a rank's sum, in units of the greatest it can have */
} share;

static share share_of(double exponent, double most, double experts_a_rank) {
    double all = power_integral(-exponent, most);
    double mean = power_integral(1.0 - exponent, most) / all, square = power_integral(2.0 - exponent, most) / all;
    double variance = fmax(square - mean * mean, 0.0) / experts_a_rank;
    return (share){mean / most, sqrt(variance) / most};
}

enum { STEPS = 128 };

/* The mean of the greatest of `ranks` shares, over the mean of one. */
static double greatest(const share *s, double ranks) {
    double both = s->mean * (1.0 - s->mean) / (s->deviation * s->deviation) - 1.0; /* a + b of the beta distribution */
    double low = fmax(0.0, s->mean - 8.0 * s->deviation), high = fmin(1.0, s->mean + 12.0 * s->deviation);
    double step = (high - low) / STEPS, sum = 0.0;
    for (int i = 0; i < STEPS; i++) {
        double at = low + (i + 0.5) * step;
        sum += 1.0 - pow(gsl_cdf_beta_P(at, s->mean * both, (1.0 - s->mean) * both), ranks);
    }
    return (low + step * sum) / s->mean;
}

/* No expert gets a token twice. */
static double most_of(const pc_expert_spread *spread) {
    return fmin(spread->ranks, fmax(1.0, spread->experts / spread->topk));
}

/* Whether ranks differ at all. */
static bool has_shares(const pc_expert_spread *spread, share *s) {
    double here = spread->experts / spread->ranks; /* experts of a rank */
    if (!(spread->ranks > 1.0 && spread->exponent > 0.0 && spread->tokens > 1.0) || most_of(spread) <= 1.0)
        return false;
    *s = share_of(spread->exponent, spread->tokens, fmax(here, 1.0));
    return s->deviation > 1e-9 * s->mean;
}

static double limited(const pc_expert_spread *spread, double load) {
    return fmin(fmax(load, 1.0), most_of(spread));
}

double pc_expert_load(const pc_expert_spread *spread) {
    share s;
    if (spread->quantile > 0.0) return pc_expert_load_drawn(spread, spread->quantile);
    return has_shares(spread, &s) ? limited(spread, greatest(&s, spread->ranks)) : 1.0;
}

enum { HALVINGS = 50 };

/* Where the beta distribution reaches `part`: by halves, for GSL's own inverse does not always converge, and then ends
 * the program. */
static double beta_at(double part, double a, double b) {
    double low = 0.0, high = 1.0;
    if (part >= 1.0) return 1.0;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        *(gsl_cdf_beta_P(middle, a, b) < part ? &low : &high) = middle;
    }
    return high;
}

double pc_expert_load_drawn(const pc_expert_spread *spread, double u) {
    share s;
    if (!has_shares(spread, &s)) return 1.0;
    double both = s.mean * (1.0 - s.mean) / (s.deviation * s.deviation) - 1.0;
    double at = beta_at(pow(u, 1.0 / spread->ranks), s.mean * both, (1.0 - s.mean) * both);
    return limited(spread, at / s.mean);
}

/* Of a rank whose place in the distribution of one is `quantile`. */
static double load_at(const pc_expert_spread *spread, double quantile) {
    double all = spread->experts, ranks = spread->ranks, topk = spread->topk, mean = spread->tokens * topk / ranks;
    if (!(ranks > 1.0 && all > 1.0 && mean > 0.0)) return 1.0;
    double variance = mean * (1.0 - 1.0 / ranks) * (all - topk) / (all - 1.0);
    return fmin(1.0 + sqrt(variance) * gsl_cdf_ugaussian_Pinv(quantile) / mean, most_of(spread));
}

double pc_expert_load_by_chance(const pc_expert_spread *spread) {
    if (spread->quantile > 0.0) return pc_expert_load_drawn_by_chance(spread, spread->quantile);
    return load_at(spread, (spread->ranks - 0.375) / (spread->ranks + 0.25));
}

double pc_expert_load_drawn_by_chance(const pc_expert_spread *spread, double u) {
    return fmax(load_at(spread, pow(u, 1.0 / spread->ranks)), 1.0);
}
