#include "models/workload/expert_counts.h"

#include "engine/alloc.h"
#include "engine/hash.h"

#include <gsl/gsl_cdf.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- shares ---- */

static pc_code check_layer(const double *counts, int64_t layer, int64_t experts, double *sum, pc_error *error) {
    *sum = 0.0;
    for (int64_t i = 0; i < experts; i++) {
        if (!(counts[i] >= 0.0) || !isfinite(counts[i]))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "expert %" PRId64 " of layer %" PRId64 " has %g tokens; expected 0 or more", i, layer,
                                counts[i]);
        *sum += counts[i];
    }
    if (*sum > 0.0 && isfinite(*sum)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "layer %" PRId64 " has %g tokens in all; expected more than 0, and a finite sum", layer, *sum);
}

static void sum_up(const double *counts, double sum, int64_t layer, pc_expert_counts *made) {
    double *share = made->share + layer * (made->experts + 1), *square = made->square + layer * (made->experts + 1);
    share[0] = square[0] = 0.0;
    for (int64_t i = 0; i < made->experts; i++) {
        double own = counts[i] / sum;
        share[i + 1] = share[i] + own;
        square[i + 1] = square[i] + own * own;
        if (!(own > made->largest)) continue;
        made->largest = own;
        made->largest_layer = layer;
        made->largest_expert = i;
    }
}

static uint64_t hash_of(const pc_expert_counts *x) {
    pc_hash hash = {(uint64_t)x->layers, (uint64_t)x->experts};
    for (int64_t i = 0; i < x->layers * (x->experts + 1); i++) {
        uint64_t bits;
        memcpy(&bits, &x->share[i], sizeof bits);
        pc_hash_add(&hash, bits);
    }
    return hash.high ^ hash.low;
}

pc_code pc_expert_counts_make(const double *counts, int64_t layers, int64_t experts, pc_expert_counts *made,
                              pc_error *error) {
    size_t size = (size_t)layers * ((size_t)experts + 1);
    pc_expert_counts x = {.layers = layers, .experts = experts};
    x.share = pc_alloc(size, sizeof *x.share);
    x.square = pc_alloc(size, sizeof *x.square);
    pc_code code = x.share && x.square ? PC_OK : pc_error_no_memory(error);
    for (int64_t layer = 0; !code && layer < layers; layer++) {
        double sum;
        code = check_layer(counts + layer * experts, layer, experts, &sum, error);
        if (!code) sum_up(counts + layer * experts, sum, layer, &x);
    }
    if (code) {
        pc_expert_counts_free(&x);
        return code;
    }
    x.hash = hash_of(&x);
    *made = x;
    return PC_OK;
}

void pc_expert_counts_free(pc_expert_counts *counts) {
    pc_free(counts->share);
    pc_free(counts->square);
    memset(counts, 0, sizeof *counts);
}

/* ---- one rank ---- */

/* Rows over the mean of all ranks. */
typedef struct rank_rows {
    double mean, deviation;
} rank_rows;

/* The sum of p (1 - p) over the experts from `from` on and before `to`. */
static double chance_spread(const double *share, const double *square, double topk, int64_t from, int64_t to) {
    return fmax(topk * (share[to] - share[from]) - topk * topk * (square[to] - square[from]), 0.0);
}

static rank_rows rows_of(const pc_expert_counts *x, const pc_expert_spread *spread, int64_t layer, int64_t rank) {
    const double *share = x->share + layer * (x->experts + 1), *square = x->square + layer * (x->experts + 1);
    int64_t here = x->experts / (int64_t)spread->ranks, from = rank * here, to = from + here;
    double own = chance_spread(share, square, spread->topk, from, to);
    double all = chance_spread(share, square, spread->topk, 0, x->experts);
    double finite = (double)x->experts / (double)(x->experts - 1);
    double variance = all > 0.0 ? fmax(own - own * own / all, 0.0) * finite : 0.0; /* of one token */
    double over_mean = spread->ranks / spread->topk;
    return (rank_rows){spread->ranks * (share[to] - share[from]), over_mean * sqrt(variance / spread->tokens)};
}

/* ---- the fullest ---- */

enum { STEPS = 64, ROUNDS = 3 };
static const double FAR = 6.5; /* deviations: beyond them nothing counts */

/* No expert gets a token twice. */
static double most_of(const pc_expert_spread *spread) {
    return fmin(spread->ranks, fmax(1.0, spread->experts / spread->topk));
}

static double limited(const pc_expert_spread *spread, double load) {
    return fmin(fmax(load, 1.0), most_of(spread));
}

typedef struct range {
    double low, high;
} range;

/* Where the layer's fullest rank is: some rank is above the one, and none above the other. */
static range range_of(const pc_expert_counts *x, const pc_expert_spread *spread, int64_t layer) {
    range found = {0.0, 0.0};
    for (int64_t rank = 0; rank < (int64_t)spread->ranks; rank++) {
        const rank_rows rows = rows_of(x, spread, layer, rank);
        found.low = fmax(found.low, rows.mean - FAR * rows.deviation);
        found.high = fmax(found.high, rows.mean + FAR * rows.deviation);
    }
    return (range){limited(spread, found.low), limited(spread, found.high)};
}

/* Chances that no rank of the layer has more than `first`, and so many steps further on. Most ranks never come near. */
static void chances(const pc_expert_counts *x, const pc_expert_spread *spread, int64_t layer, double first, double step,
                    double chance[STEPS]) {
    for (int i = 0; i < STEPS; i++) chance[i] = 1.0;
    for (int64_t rank = 0; rank < (int64_t)spread->ranks; rank++) {
        const rank_rows rows = rows_of(x, spread, layer, rank);
        if (rows.mean + FAR * rows.deviation < first) continue;
        for (int i = 0; i < STEPS; i++) {
            double beyond = first + i * step - rows.mean;
            bool is_sure = !(rows.deviation > 0.0);
            chance[i] *= is_sure ? beyond >= 0.0 : gsl_cdf_ugaussian_P(beyond / rows.deviation);
        }
    }
}

/* The integral of what is left of the distribution, behind where all of it still is. */
static double mean_of(const pc_expert_counts *x, const pc_expert_spread *spread, int64_t layer) {
    const range within = range_of(x, spread, layer);
    double chance[STEPS], step = (within.high - within.low) / STEPS, sum = 0.0;
    if (!(step > 0.0)) return within.low;
    chances(x, spread, layer, within.low + step / 2, step, chance);
    for (int i = 0; i < STEPS; i++) sum += 1.0 - chance[i];
    return within.low + step * sum;
}

/* The first step at which `layers` layers from `first` on have reached `part`, in the mean over them. */
static int reached(const pc_expert_counts *x, const pc_expert_spread *spread, int64_t first, int64_t layers,
                   double part, double low, double step) {
    double chance[STEPS], sum[STEPS] = {0.0};
    int at = 0;
    for (int64_t layer = first; layer < first + layers; layer++) {
        chances(x, spread, layer, low + step, step, chance);
        for (int i = 0; i < STEPS; i++) sum[i] += chance[i];
    }
    while (at < STEPS - 1 && sum[at] < part * (double)layers) at++;
    return at;
}

static double quantile_of(const pc_expert_counts *x, const pc_expert_spread *spread, int64_t first, int64_t layers,
                          double part) {
    range within = range_of(x, spread, first);
    for (int64_t layer = first + 1; layer < first + layers; layer++) {
        const range other = range_of(x, spread, layer);
        within.low = fmin(within.low, other.low);
        within.high = fmax(within.high, other.high);
    }
    for (int round = 0; round < ROUNDS && within.high > within.low; round++) {
        double step = (within.high - within.low) / STEPS;
        within.low += step * reached(x, spread, first, layers, part, within.low, step);
        within.high = within.low + step;
    }
    return within.high;
}

static bool has_spread(const pc_expert_spread *spread) {
    return spread->ranks > 1.0 && spread->tokens > 0.0;
}

double pc_expert_load_counted(const pc_expert_counts *x, const pc_expert_spread *spread) {
    double sum = 0.0;
    if (!has_spread(spread)) return 1.0;
    if (spread->quantile >= 1.0) return most_of(spread);
    if (spread->quantile > 0.0) return quantile_of(x, spread, 0, x->layers, spread->quantile);
    for (int64_t layer = 0; layer < x->layers; layer++) sum += mean_of(x, spread, layer);
    return sum / (double)x->layers;
}

double pc_expert_load_drawn_counted(const pc_expert_counts *x, const pc_expert_spread *spread, double u) {
    if (!has_spread(spread)) return 1.0;
    double place = u * (double)x->layers, layer = fmin(floor(place), (double)(x->layers - 1));
    return quantile_of(x, spread, (int64_t)layer, 1, place - layer);
}
