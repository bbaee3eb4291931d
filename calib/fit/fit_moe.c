/* A whole layer of experts, forward, as inference has it on one rank of tensor and expert parallelism.
 *
 * x = {rows, experts, hidden, inter, skew}. Rows are the mean of one of the rank's experts. Experts and the inner size
 * are those of this rank, hidden is the model's. Skew is how much fuller this rank is than the mean of all (1:
 * balanced); the rows have it in them. Seconds are `launch`, rows sorted to their experts and back at `permute`, and
 * two grouped products: hidden to inner (twice that with a gate), and back. */
#include "calib/fit/fit_groups.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LAUNCH = PC_GROUPS_PARAMETERS, PERMUTE, PARAMETERS };
enum { ROWS, EXPERTS, HIDDEN, INTER, SKEW, DIMENSIONS };

typedef struct layer {
    double processors;
    double weight_bytes, activation_bytes;
    double up; /* matrices on the way in: 2 with a gate */
} layer;

static layer layer_of(const pc_fit *fit) {
    const pc_fit_key *key = &fit->key;
    bool is_gated = strstr(key->variant, "nongated") == NULL;
    return (layer){fit->processors, pc_groups_weight_bytes(key->dtype), pc_groups_activation_bytes(key->dtype),
                   is_gated ? 2.0 : 1.0};
}

/* Of n x k weights of each expert. Where an expert has few rows some have none at all, and their weights are not read:
 * of independent rows with this mean, exp(-mean) of the experts. What goes out has 16 bits. */
static pc_groups product_of(const layer *l, const double *x, double n, double k) {
    double rows = x[ROWS] * x[EXPERTS], read = x[EXPERTS] * -expm1(-x[ROWS]);
    double bytes = read * n * k * l->weight_bytes + rows * (k * l->activation_bytes + 2.0 * n);
    return (pc_groups){x[EXPERTS], x[ROWS], n, k, l->processors, bytes};
}

/* Rows in 16 bits, read and written, on the way in and on the way out. */
static double permuted_bytes(const double *x) {
    return x[ROWS] * x[EXPERTS] * x[HIDDEN] * 2.0 * 4.0;
}

static double point_seconds(const void *self, const double *parameter, const double *x, double *gradient) {
    const layer *l = self;
    double of_up[PC_GROUPS_PARAMETERS], of_down[PC_GROUPS_PARAMETERS];
    pc_groups up = product_of(l, x, l->up * x[INTER], x[HIDDEN]), down = product_of(l, x, x[HIDDEN], x[INTER]);
    double seconds = pc_groups_seconds(&up, parameter, gradient ? of_up : NULL) +
                     pc_groups_seconds(&down, parameter, gradient ? of_down : NULL);
    double moved = permuted_bytes(x), permute = parameter[PERMUTE];
    if (gradient) {
        for (int i = 0; i < PC_GROUPS_PARAMETERS; i++) gradient[i] = of_up[i] + of_down[i];
        gradient[LAUNCH] = 1.0;
        gradient[PERMUTE] = -moved / (permute * permute);
    }
    return seconds + parameter[LAUNCH] + moved / permute;
}

static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    (void)scatter; /* the same everywhere */
    layer l = layer_of(fit);
    return point_seconds(&l, fit->parameter, point, gradient);
}

/* The best rates that were seen, and half of the shortest time. */
static void best_seen(pc_fit *fit, const layer *l, double start[PARAMETERS]) {
    start[LAUNCH] = HUGE_VAL;
    for (int64_t i = 0; i < fit->count; i++) {
        const double *x = fit->x + i * fit->dimensions;
        double weights = (l->up + 1.0) * x[HIDDEN] * x[INTER];
        fit->residual[i] = 2.0 * x[ROWS] * x[EXPERTS] * weights / fit->seconds[i];
        fit->weight[i] = x[EXPERTS] * weights * l->weight_bytes / fit->seconds[i];
        start[LAUNCH] = fmin(start[LAUNCH], 0.5 * fit->seconds[i]);
    }
    start[PC_GROUPS_RATE] = 1.1 * pc_fit_quantile(fit->residual, fit->count, 0.95);
    start[PC_GROUPS_MEMORY] = 1.1 * pc_fit_quantile(fit->weight, fit->count, 0.95);
    start[PC_GROUPS_RAMP] = 128.0;
    start[PERMUTE] = start[PC_GROUPS_MEMORY];
}

/* Of points that their grid has not seen: errors, and a scatter whose 95% interval holds 95% of them but for outliers
 * (six deviations away, at most a twentieth of all), as fit.c has it. `size` has room for count. */
static void conclude(pc_fit *fit, const double *left, double *size) {
    static const double normal_95 = 1.959964;
    double deviation = pc_robust_deviation(left, fit->count, size), outliers = 0.0, held = 0.0;
    for (int64_t i = 0; i < fit->count; i++) {
        size[i] = fabs(left[i]);
        outliers += size[i] > 6.0 * deviation;
    }
    double inliers = 1.0 - fmin(outliers / (double)fit->count, 0.05);
    fit->residual_deviation = fmax(deviation, pc_fit_quantile(size, fit->count, 0.95 * inliers) / normal_95);
    for (int64_t i = 0; i < fit->count; i++) held += size[i] <= normal_95 * fit->residual_deviation;
    for (int64_t i = 0; i < fit->count; i++) size[i] = fabs(expm1(-left[i])); /* foretold over measured, less 1 */
    fit->cv_median = pc_fit_quantile(size, fit->count, 0.5);
    fit->cv_p95 = pc_fit_quantile(size, fit->count, 0.95);
    fit->cv_coverage = held / (double)fit->count;
}

/* What shapes have in common that the formula does not know: an autotuner's choices, quantisation. The grid leaves
 * points out itself, so the fit is cross-validated by that: five parameters of thousands of points follow no single
 * shape, and ten more grids would take a minute. */
static pc_code smooth(pc_fit *fit, pc_error *error) {
    static const pc_grid_plan plan = {
        .axes = 5, .axis = {ROWS, EXPERTS, HIDDEN, INTER, SKEW}, .nodes = {6, 6, 4, 6, 4}};
    double *work = pc_alloc(2 * (size_t)fit->count, sizeof *work), *left = work;
    if (!work) return pc_error_no_memory(error);
    pc_code code = pc_log_grid_fit(&plan, fit->x, DIMENSIONS, fit->residual, fit->count, left, &fit->grid, error);
    if (!code) conclude(fit, left, work + fit->count);
    for (int64_t i = 0; i < fit->count && !code; i++)
        fit->residual[i] -= pc_log_grid_at(&fit->grid, fit->x + i * DIMENSIONS);
    pc_free(work);
    return code;
}

static double left_at(const pc_fit *fit, const double *point, double *variance) {
    *variance = pc_log_grid_variance(&fit->grid, point);
    return pc_log_grid_at(&fit->grid, point);
}

static pc_code fit_layer(pc_fit *fit, const double *near, pc_error *error) {
    layer l = layer_of(fit);
    double start[PARAMETERS];
    if (near)
        memcpy(start, near, sizeof start);
    else
        best_seen(fit, &l, start);
    pc_free(fit->weight); /* had room for the rates; a layer has no surface over its points */
    fit->weight = NULL;
    pc_groups_problem problem = {point_seconds, &l, PARAMETERS, start, near != NULL};
    pc_code code = pc_groups_fit(fit, &problem, error);
    return code ? code : smooth(fit, error);
}

static pc_parameter_label label(int i) {
    static const char *const names[PARAMETERS][2] = {
        {"rate", "FLOP/s"}, {"ramp", "k"}, {"memory", "bytes/s"}, {"launch", "s"}, {"permute", "bytes/s"}};
    pc_parameter_label label = {.unit = names[i][1]};
    snprintf(label.name, sizeof label.name, "%s", names[i][0]);
    return label;
}

static bool has_parameters(const pc_fit *fit) {
    return fit->parameter_count == PARAMETERS;
}

static bool has_rates(const pc_fit *fit) {
    return fit->parameter[PC_GROUPS_RATE] > 0.0 && fit->parameter[PC_GROUPS_MEMORY] > 0.0 &&
           fit->parameter[PERMUTE] > 0.0 && pc_fit_has_none_below_zero(fit);
}

const pc_form pc_form_moe = {.dimensions = DIMENSIONS,
                             .dimension = {"rows", "experts", "hidden", "inter", "skew"},
                             .has_processors = true,
                             .has_weights = true,
                             .label = label,
                             .fit = fit_layer,
                             .seconds = seconds_at,
                             .left = left_at,
                             .has_parameters = has_parameters,
                             .has_rates = has_rates};
