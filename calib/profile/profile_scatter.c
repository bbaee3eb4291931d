#include "calib/profile/profile_cost.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = PC_SCATTER_QUANTILES - 1 };

/* A sample over its point's median. */
typedef struct factor {
    double value, weight;
    double place; /* where it stands among all, by weight: 0 the least, 1 the greatest */
} factor;

static bool counts(const pc_kernel_measurement *kernel) {
    return kernel->first_sample >= 0 && kernel->seconds.count >= 2 &&
           strncmp(kernel->kernel, PC_PROFILE_SENTINEL, strlen(PC_PROFILE_SENTINEL)) != 0;
}

static int64_t count_factors(const pc_profile *profile) {
    int64_t count = 0;
    for (int64_t i = 0; i < profile->kernel_count; i++)
        if (counts(&profile->kernel[i])) count += profile->kernel[i].seconds.count;
    return count;
}

static pc_code add_point(const pc_profile *profile, const pc_kernel_measurement *kernel, factor *factors,
                         pc_error *error) {
    double median = kernel->seconds.median;
    if (!(median > 0))
        return pc_error_set(error, PC_ERROR_INPUT, "%s: a median of %g s; expected samples above zero", kernel->kernel,
                            median);
    for (int64_t i = 0; i < kernel->seconds.count; i++)
        factors[i] = (factor){.value = profile->sample[kernel->first_sample + i] / median,
                              .weight = 1 / (double)kernel->seconds.count};
    return PC_OK;
}

static int compare(const void *a, const void *b) {
    double x = ((const factor *)a)->value, y = ((const factor *)b)->value;
    return (x > y) - (x < y);
}

/* Of equal weights, i / (count - 1), as in pc_quantile_at. */
static void place_factors(factor *factors, int64_t count) {
    qsort(factors, (size_t)count, sizeof *factors, compare);
    for (int64_t i = 1; i < count; i++)
        factors[i].place = factors[i - 1].place + (factors[i - 1].weight + factors[i].weight) / 2;
    for (int64_t i = 1; i < count; i++) factors[i].place /= factors[count - 1].place;
}

static double value_at(const factor *factors, int64_t count, double place, int64_t *from) {
    while (*from + 2 < count && factors[*from + 1].place <= place) (*from)++;
    const factor *a = &factors[*from], *b = a + 1;
    return a->value + (place - a->place) / (b->place - a->place) * (b->value - a->value);
}

/* The mean of the samples at one end, from `factors` on in steps of 1 or -1, so many that they weigh `weight`. */
static double mean_at_end(const factor *factors, int step, double weight) {
    double left = weight, sum = 0;
    for (; left > 0; factors += step) {
        double part = fmin(left, factors->weight);
        sum += part * factors->value;
        left -= part;
    }
    return sum / weight;
}

static double clamp(double value, double least, double most) {
    return value < least ? least : value > most ? most : value;
}

static void take_quantiles(const factor *factors, int64_t count, double quantiles[PC_SCATTER_QUANTILES]) {
    int64_t from = 0;
    double weight = 0;
    for (int64_t i = 0; i < count; i++) weight += factors[i].weight;
    for (int i = 0; i <= CELLS; i++) quantiles[i] = value_at(factors, count, (double)i / CELLS, &from);
    double low = 2 * mean_at_end(factors, 1, weight / CELLS) - quantiles[1];
    double high = 2 * mean_at_end(factors + count - 1, -1, weight / CELLS) - quantiles[CELLS - 1];
    quantiles[0] = clamp(low, quantiles[0], quantiles[1]);
    quantiles[CELLS] = clamp(high, quantiles[CELLS - 1], quantiles[CELLS]);
}

static void divide_by_mean(double quantiles[PC_SCATTER_QUANTILES]) {
    double sum = (quantiles[0] + quantiles[CELLS]) / 2;
    for (int i = 1; i < CELLS; i++) sum += quantiles[i];
    for (int i = 0; i <= CELLS; i++) quantiles[i] /= sum / CELLS;
}

static pc_code gather(const pc_profile *profile, factor *factors, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < profile->kernel_count && !code; i++) {
        const pc_kernel_measurement *x = &profile->kernel[i];
        if (!counts(x)) continue;
        code = add_point(profile, x, factors, error);
        factors += x->seconds.count;
    }
    return code;
}

pc_code pc_profile_scatter(const pc_profile *profile, double quantiles[PC_SCATTER_QUANTILES], pc_error *error) {
    int64_t count = count_factors(profile);
    if (count == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "no kernel has raw samples, so nothing is known of how their times scatter; expected a "
                            "profile of `pipecast calibrate`");
    factor *factors = pc_alloc((size_t)count, sizeof *factors);
    if (!factors) return pc_error_no_memory(error);
    pc_code code = gather(profile, factors, error);
    if (!code) {
        place_factors(factors, count);
        take_quantiles(factors, count, quantiles);
        divide_by_mean(quantiles);
    }
    pc_free(factors);
    return code;
}
