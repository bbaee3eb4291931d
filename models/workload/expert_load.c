#include "models/workload/expert_load.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

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

/* Of the greatest of `ranks` shares the mean, or the quantile, over the mean of one. */
static double greatest(const share *s, double ranks, double quantile) {
    double both = s->mean * (1.0 - s->mean) / (s->deviation * s->deviation) - 1.0; /* a + b of the beta distribution */
    if (quantile > 0.0)
        return gsl_cdf_beta_Pinv(pow(quantile, 1.0 / ranks), s->mean * both, (1.0 - s->mean) * both) / s->mean;
    double low = fmax(0.0, s->mean - 8.0 * s->deviation), high = fmin(1.0, s->mean + 12.0 * s->deviation);
    double step = (high - low) / STEPS, sum = 0.0;
    for (int i = 0; i < STEPS; i++) {
        double at = low + (i + 0.5) * step;
        sum += 1.0 - pow(gsl_cdf_beta_P(at, s->mean * both, (1.0 - s->mean) * both), ranks);
    }
    return (low + step * sum) / s->mean;
}

double pc_expert_load(const pc_expert_spread *spread) {
    double here = spread->experts / spread->ranks; /* experts of a rank */
    double most = fmin(spread->ranks, fmax(1.0, spread->experts / spread->topk));
    if (!(spread->ranks > 1.0 && spread->exponent > 0.0 && spread->tokens > 1.0) || most <= 1.0) return 1.0;
    share s = share_of(spread->exponent, spread->tokens, fmax(here, 1.0));
    if (!(s.deviation > 1e-9 * s.mean)) return 1.0;
    return fmin(fmax(greatest(&s, spread->ranks, spread->quantile), 1.0), most);
}

double pc_expert_load_by_chance(const pc_expert_spread *spread) {
    double all = spread->experts, ranks = spread->ranks, topk = spread->topk;
    double mean = spread->tokens * topk / ranks, most = fmin(ranks, fmax(1.0, all / topk));
    if (!(ranks > 1.0 && all > 1.0 && mean > 0.0)) return 1.0;
    double variance = mean * (1.0 - 1.0 / ranks) * (all - topk) / (all - 1.0);
    double below = spread->quantile > 0.0 ? pow(spread->quantile, 1.0 / ranks) : (ranks - 0.375) / (ranks + 0.25);
    if (!(below < 1.0)) return most;
    return fmin(fmax(1.0 + sqrt(variance) * gsl_cdf_ugaussian_Pinv(below) / mean, 1.0), most);
}
