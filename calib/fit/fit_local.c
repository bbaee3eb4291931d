/* What pieces leave: libraries cut messages into chunks and change channels at sizes of their own, which shows as teeth
 * of a few percent that no few lines follow. Where points foretell their neighbours' residuals, a local mean of them
 * (Nadaraya 1964, Watson 1964) is added; where they do not, and of pure noise they do not, there is none. */
#include "calib/fit/fit_private.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

enum { NEIGHBOURS = 6 };

/* The points from..to are the nearest to x, those of the same size left out where asked for. */
typedef struct window {
    int64_t from, to; /* before and behind the gap; the points of the gap are left out */
    int64_t gap_from, gap_to;
} window;

/* The first point of a size that is not below x (or, `above`, that is above it). */
static int64_t find_point(const pc_fit *fit, double bytes, bool above) {
    int64_t low = 0, high = fit->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (fit->x[middle] < bytes || (above && fit->x[middle] == bytes))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static window window_at(const pc_fit *fit, double bytes, bool is_left_out) {
    int64_t first = find_point(fit, bytes, false), behind = is_left_out ? find_point(fit, bytes, true) : first;
    window w = {first, behind, first, behind};
    for (int64_t count = 0; count < NEIGHBOURS; count++) {
        bool has_below = w.from > 0, has_above = w.to < fit->count;
        if (!has_below && !has_above) break;
        bool takes_below = has_below && (!has_above || bytes - fit->x[w.from - 1] <= fit->x[w.to] - bytes);
        if (takes_below)
            w.from--;
        else
            w.to++;
    }
    return w;
}

/* A sum of weights, of weighted residuals, and of squared weights. */
typedef struct local_sums {
    double weight, residual, square;
} local_sums;

/* A carried residual that is no number is that of an outlier. */
static void add_point(local_sums *sums, double distance, double reach, double carried) {
    double u = distance / reach, v = 1.0 - u * u * u, weight = v * v * v;
    if (!isfinite(carried)) return;
    sums->weight += weight;
    sums->residual += weight * carried;
    sums->square += weight * weight;
}

static local_sums sums_at(const pc_fit *fit, const double *carried, double bytes, bool is_left_out) {
    window w = window_at(fit, bytes, is_left_out);
    double below = w.from < w.gap_from ? bytes - fit->x[w.from] : 0.0;
    double above = w.to > w.gap_to ? fit->x[w.to - 1] - bytes : 0.0;
    double reach = 1.05 * (below > above ? below : above);
    local_sums sums = {0};
    if (!(reach > 0.0)) reach = 1.0;
    for (int64_t i = w.from; i < w.gap_from; i++) add_point(&sums, bytes - fit->x[i], reach, carried[i]);
    for (int64_t i = w.gap_to; i < w.to; i++) add_point(&sums, fit->x[i] - bytes, reach, carried[i]);
    return sums;
}

static double shrunk(const local_sums *sums, double noise) {
    return sums->residual / (sums->weight + noise);
}

/* Outside of what was measured it fades with the distance. */
double pc_local_at(const pc_fit *fit, const double *point, double *variance) {
    double bytes = *point;
    *variance = 0.0;
    if (!fit->weight) return 0.0;
    double inside = bytes < fit->least[0] ? fit->least[0] : bytes > fit->most[0] ? fit->most[0] : bytes;
    double fade = bytes < inside ? bytes / inside : inside / bytes;
    local_sums sums = sums_at(fit, fit->weight, inside, false);
    double total = sums.weight + fit->surface_noise;
    *variance = fit->surface_amplitude * fit->surface_amplitude * sums.square / (total * total) * fade * fade;
    return shrunk(&sums, fit->surface_noise) * fade;
}

/* ---- whether, and how much ---- */

static void carry_residuals(const pc_fit *fit, double *carried) {
    double limit = 6.0 * fit->residual_deviation > 0.25 ? 6.0 * fit->residual_deviation : 0.25;
    for (int64_t i = 0; i < fit->count; i++) carried[i] = fabs(fit->residual[i]) <= limit ? fit->residual[i] : NAN;
}

/* Each point as the others foretell it; the mean error. */
static double leave_each_out(const pc_fit *fit, const double *carried, double noise, double *left) {
    double sum = 0.0;
    for (int64_t i = 0; i < fit->count; i++) {
        local_sums sums = sums_at(fit, carried, fit->x[i], true);
        left[i] = fit->residual[i] - shrunk(&sums, noise);
        sum += fabs(left[i]);
    }
    return sum / (double)fit->count;
}

static double mean_residual(const pc_fit *fit) {
    double sum = 0.0;
    for (int64_t i = 0; i < fit->count; i++) sum += fabs(fit->residual[i]);
    return sum / (double)fit->count;
}

/* The noise beside which a neighbour's weight counts; 0: no local mean. It has to be better by a twentieth: the lines
 * were fitted to these points, and noise alone gains nothing. */
static double best_noise(const pc_fit *fit, const double *carried, double *left) {
    static const double choices[] = {0.1, 0.5, 2.0};
    double best = 0.0, least = 0.95 * mean_residual(fit);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        double error = leave_each_out(fit, carried, choices[i], left);
        if (error < least) least = error, best = choices[i];
    }
    return best;
}

/* An outlier carries what its neighbours do. */
static void fill_outliers(const pc_fit *fit, double noise, double *carried) {
    for (int64_t i = 0; i < fit->count; i++) {
        if (isfinite(carried[i])) continue;
        local_sums sums = sums_at(fit, carried, fit->x[i], true);
        carried[i] = shrunk(&sums, noise);
    }
}

static void keep_local(pc_fit *fit, double noise, double *carried, double *left, double *work) {
    double variance;
    leave_each_out(fit, carried, noise, left);
    fill_outliers(fit, noise, carried);
    fit->weight = carried;
    fit->surface_noise = noise;
    fit->surface_amplitude = fit->residual_deviation = pc_robust_deviation(left, fit->count, work);
    pc_transfer_scatter(fit, left, work);
    for (int64_t i = 0; i < fit->count; i++) fit->residual[i] -= pc_local_at(fit, &fit->x[i], &variance);
}

pc_code pc_local_fit(pc_fit *fit, pc_error *error) {
    double *carried = pc_alloc((size_t)fit->count, sizeof *carried);
    double *left = pc_alloc(2 * (size_t)fit->count, sizeof *left);
    pc_code code = carried && left ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        carry_residuals(fit, carried);
        double noise = best_noise(fit, carried, left);
        if (noise > 0.0) keep_local(fit, noise, carried, left, left + fit->count);
    }
    pc_free(left);
    if (!fit->weight) pc_free(carried);
    return code;
}
