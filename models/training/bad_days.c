#include "models/training/bad_days.h"

#include <math.h>
#include <stddef.h>

bool pc_bad_days_of_iteration(const pc_bad_days *days) {
    return days->gpu_jitter > 0 || days->link_jitter > 0 || days->passes.quantiles || days->slow_gpus > 0 ||
           days->bad_links > 0 || days->has_slow_stage || days->other_nodes > 0;
}

bool pc_bad_days_of_job(const pc_bad_days *days) {
    return days->mtbf_s > 0 || days->checkpoint_s > 0 || days->interval_s > 0;
}

/* ---- numbers and what they may be ---- */

typedef struct range {
    const char *name;
    double value, least, most;
} range;

/* The longest that a job or anything in it may last: 100 years. */
static const double SECONDS_MAX = 100 * 365.25 * 86400;

static pc_code check_ranges(const pc_bad_days *days, pc_error *error) {
    const double samples_max = 1e7, count_max = 1e9, factor_max = 1000;
    const range ranges[] = {
        {"samples", (double)days->samples, 0, samples_max},
        {"gpu_jitter", days->gpu_jitter, 0, 10},
        {"link_jitter", days->link_jitter, 0, 10},
        {"slow_gpus", (double)days->slow_gpus, 0, count_max},
        {"bad_links", (double)days->bad_links, 0, count_max},
        {"other_nodes", (double)days->other_nodes, 0, count_max},
        {"slow_factor", days->slow_gpus > 0 || days->has_slow_stage ? days->slow_factor : 1, 1, factor_max},
        {"bad_factor", days->bad_links > 0 ? days->bad_factor : 1, 1 / factor_max, 1},
        {"slow_stage", days->has_slow_stage ? days->slow_stage : 0, 0, INT32_MAX},
        {"mtbf", days->mtbf_s, 0, INFINITY},
        {"checkpoint", days->checkpoint_s, 0, SECONDS_MAX},
        {"interval", days->interval_s, 0, SECONDS_MAX},
        {"restart", days->restart_s, 0, SECONDS_MAX},
        {"repair", days->repair_s, 0, SECONDS_MAX},
        {"spare_nodes", (double)days->spare_nodes, 0, count_max},
        {"horizon", days->horizon_s, 0, SECONDS_MAX},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!(ranges[i].value >= ranges[i].least) || !(ranges[i].value <= ranges[i].most))
            return pc_error_set(error, PC_ERROR_INPUT, "bad days: %s: %g; expected from %g to %g", ranges[i].name,
                                ranges[i].value, ranges[i].least, ranges[i].most);
    return PC_OK;
}

static pc_code check_empirical(const pc_empirical *empirical, pc_error *error) {
    if (!empirical->quantiles) return PC_OK;
    if (empirical->count < 2)
        return pc_error_set(error, PC_ERROR_INPUT, "bad days: passes: %d quantiles; expected two or more",
                            empirical->count);
    for (int i = 0; i < empirical->count; i++)
        if (!(empirical->quantiles[i] > 0) || !isfinite(empirical->quantiles[i]) ||
            (i > 0 && empirical->quantiles[i] < empirical->quantiles[i - 1]))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "bad days: passes: %g as quantile %d; expected factors above zero that never fall",
                                empirical->quantiles[i], i);
    return PC_OK;
}

pc_code pc_bad_days_check(const pc_bad_days *days, pc_error *error) {
    pc_code code = check_ranges(days, error);
    if (!code) code = check_empirical(&days->passes, error);
    if (code || days->samples > 0 || (!pc_bad_days_of_iteration(days) && !pc_bad_days_of_job(days))) return code;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "bad days: samples: 0; expected 1 or more, for there is what they differ in");
}

/* ---- no samples ---- */

pc_bad_days_result pc_bad_days_none(void) {
    const double none = NAN;
    const pc_quantile no_quantile = {none, none, none};
    return (pc_bad_days_result){.good_s = none,
                                .iteration_mean_s = none,
                                .iteration_mean_error_s = none,
                                .iteration_p05_s = no_quantile,
                                .iteration_p50_s = no_quantile,
                                .iteration_p95_s = no_quantile,
                                .iteration_p99_s = no_quantile,
                                .goodput_mean = none,
                                .goodput_mean_error = none,
                                .goodput_p05 = no_quantile,
                                .goodput_p50 = no_quantile,
                                .goodput_p95 = no_quantile,
                                .failures_mean = none,
                                .interval_s = none};
}

/* ---- quantiles ---- */

/* Ranks, from 1, of the bounds of a quantile; 0 and count + 1 if there is none. */
typedef struct bounds {
    int64_t low, high;
} bounds;

/* How likely it is that k - 1 of n numbers are no more than the quantile, over how likely it is that k are. */
static double step_down(int64_t n, double q, int64_t k) {
    return (double)k * (1 - q) / ((double)(n - k + 1) * q);
}

/* Sums up from either end as many of the chances as make 2.5%: of the binomial distribution, by their ratios to that of
 * its mode, so far as they count. */
static bounds find_bounds(int64_t n, double q) {
    const double tail = 0.025, tiny = 1e-20;
    int64_t mode = (int64_t)((double)(n + 1) * q), low = mode, high = mode;
    double total = 1, of_low = 1, of_high = 1, sum;
    for (; low > 0 && of_low > tiny; low--) total += of_low *= step_down(n, q, low);
    for (; high < n && of_high > tiny; high++) total += of_high /= step_down(n, q, high + 1);
    /* The number of rank `low` is above the quantile where fewer than `low` are not. */
    for (sum = of_low; sum <= tail * total; sum += of_low) of_low /= step_down(n, q, ++low);
    /* That of rank `high` is below it where `high` or more are. */
    for (sum = of_high; sum <= tail * total; sum += of_high) of_high *= step_down(n, q, high--);
    return (bounds){low, high + 1};
}

pc_quantile pc_quantile_of(const double *sorted, int64_t count, double q) {
    pc_quantile found = {NAN, NAN, NAN};
    if (count < 1) return found;
    int64_t rank = (int64_t)ceil((double)count * q * (1 - 1e-12));
    bounds at = find_bounds(count, q);
    found.value = sorted[rank < 1 ? 0 : rank - 1];
    if (at.low >= 1) found.low = sorted[at.low - 1];
    if (at.high <= count) found.high = sorted[at.high - 1];
    return found;
}
