#include "calib/device/measure_private.h"

#include "engine/order.h"

#include <math.h>
#include <string.h>

static void sort_into(const double *samples, int64_t count, double *room) {
    memcpy(room, samples, (size_t)count * sizeof *room);
    pc_sort_reals(room, count);
}

void pc_statistics_of(const double *samples, int64_t count, double *room, pc_statistics *statistics) {
    sort_into(samples, count, room);
    *statistics = (pc_statistics){.count = count,
                                  .median = pc_quantile_at(room, count, 0.5),
                                  .q1 = pc_quantile_at(room, count, 0.25),
                                  .q3 = pc_quantile_at(room, count, 0.75),
                                  .p5 = pc_quantile_at(room, count, 0.05),
                                  .p95 = pc_quantile_at(room, count, 0.95),
                                  .least = room[0]};
}

double pc_relative_range(const double *samples, int64_t count, double *room) {
    sort_into(samples, count, room);
    double median = pc_quantile_at(room, count, 0.5);
    return median > 0.0 ? (pc_quantile_at(room, count, 0.75) - pc_quantile_at(room, count, 0.25)) / median : 0.0;
}

/* ---- samples of a shape ---- */

pc_sampler_rule pc_sampler_rule_default(double limit_s) {
    return (pc_sampler_rule){.least = 30, .most = 200, .steadiness = 0.10, .floor = 0.002, .limit_s = limit_s};
}

/* The range of the end alone shows whether the beginning (a first warm-up, a clock on its way) still decides the range
 * of all. */
static bool is_steady(const pc_sampler_rule *rule, const double *samples, int64_t count, double *room) {
    double all = pc_relative_range(samples, count, room);
    int64_t first = count / 3;
    double end = pc_relative_range(samples + first, count - first, room);
    if (all <= rule->floor && end <= rule->floor) return true;
    return fabs(end - all) <= rule->steadiness * all;
}

bool pc_sampler_is_done(const pc_sampler_rule *rule, const double *samples, int64_t count, double spent_s,
                        double *room) {
    if (count < rule->least) return false;
    if (count >= rule->most || spent_s >= rule->limit_s) return true;
    return is_steady(rule, samples, count, room);
}

/* ---- settling ---- */

bool pc_settling_add(pc_settling *settling, double at_s, double reading, double window_s, double tolerance) {
    if (isnan(reading)) {
        settling->is_begun = false;
        return false;
    }
    double least = settling->is_begun ? fmin(settling->least, reading) : reading;
    double most = settling->is_begun ? fmax(settling->most, reading) : reading;
    if (!settling->is_begun || most > least * (1.0 + tolerance)) {
        *settling = (pc_settling){.is_begun = true, .since_s = at_s, .least = reading, .most = reading};
    } else {
        settling->least = least;
        settling->most = most;
    }
    return at_s - settling->since_s >= window_s;
}

/* ---- time ---- */

static const double SPARE = 1.2, LEARNING = 0.1;

pc_budget pc_budget_until(double end_s) {
    return (pc_budget){.end_s = end_s, .factor = 1.0};
}

bool pc_budget_allows(const pc_budget *budget, double estimate_s, double now_s) {
    return now_s + SPARE * budget->factor * estimate_s <= budget->end_s;
}

void pc_budget_learn(pc_budget *budget, double estimate_s, double actual_s) {
    if (!(estimate_s > 0.0) || !(actual_s >= 0.0)) return;
    budget->factor += LEARNING * (actual_s / estimate_s - budget->factor);
}
