/* What a roofline leaves, as a Gaussian process over the logarithms of the shape (Rasmussen and Williams 2006, chapters
 * 2 and 5), covariance of Matern 3/2: rough, as the choice among a library's kernels is. Far from all points it is zero
 * with its full variance, so that the roofline stands alone there and says that it is unsure. */
#include "calib/fit/fit_private.h"

#include "engine/alloc.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

enum {
    SURFACE_POINTS = 256, /* that it stands on; of more, those that are spread widest */
    SEARCH_POINTS = 128,  /* from which length and noise are found */
    NEAREST = 8
};

/* ---- distance and correlation ---- */

/* Between the logarithms. */
static double squared_distance(const double *a, const double *b, int dimensions) {
    double sum = 0.0;
    for (int d = 0; d < dimensions; d++) {
        double away = a[d] == b[d] ? 0.0 : log((a[d] > 1e-9 ? a[d] : 1e-9) / (b[d] > 1e-9 ? b[d] : 1e-9));
        sum += away * away;
    }
    return sum;
}

/* The same of logarithms. */
static double squared_difference(const double *a, const double *b, int dimensions) {
    double sum = 0.0;
    for (int d = 0; d < dimensions; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

static double correlation(double squared, double length) {
    double d = sqrt(3.0 * squared) / length;
    return d > 700.0 ? 0.0 : (1.0 + d) * exp(-d);
}

/* ---- at a point ---- */

/* The nearest points that it stands on, nearest first. */
typedef struct nearest {
    int count;
    int64_t index[NEAREST];
    double correlation[NEAREST];
} nearest;

static void remember_near(nearest *near, int64_t index, double value) {
    if (near->count == NEAREST && value <= near->correlation[NEAREST - 1]) return;
    int at = near->count < NEAREST ? near->count++ : NEAREST - 1;
    for (; at > 0 && near->correlation[at - 1] < value; at--) {
        near->correlation[at] = near->correlation[at - 1];
        near->index[at] = near->index[at - 1];
    }
    near->correlation[at] = value;
    near->index[at] = index;
}

/* One more row of the lower triangle; what remains unknown of a point that depends on the others as `row` says. */
static double eliminate(double factor[NEAREST][NEAREST], int count, const double *row, double *solved) {
    double left = 0.0;
    for (int i = 0; i < count; i++) {
        double sum = row[i];
        for (int j = 0; j < i; j++) sum -= factor[i][j] * solved[j];
        solved[i] = sum / factor[i][i];
        left += solved[i] * solved[i];
    }
    return left;
}

/* What the nearest points leave unknown, as a part of the variance: no less than what all of them leave. */
static double unknown_part(const pc_fit *fit, const nearest *near) {
    double factor[NEAREST][NEAREST], row[NEAREST], solved[NEAREST];
    double noise = fit->surface_noise / fit->surface_amplitude;
    for (int i = 0; i < near->count; i++) {
        const double *x = fit->x + near->index[i] * fit->dimensions;
        for (int j = 0; j < i; j++)
            row[j] = correlation(squared_distance(x, fit->x + near->index[j] * fit->dimensions, fit->dimensions),
                                 fit->surface_length);
        double left = 1.0 + noise * noise - eliminate(factor, i, row, solved);
        memcpy(factor[i], solved, (size_t)i * sizeof *solved);
        factor[i][i] = sqrt(left > 1e-12 ? left : 1e-12);
    }
    double left = 1.0 - eliminate(factor, near->count, near->correlation, solved);
    return left > 0.0 ? left : 0.0;
}

double pc_surface_at(const pc_fit *fit, const double *point, double *variance) {
    nearest near = {0};
    double sum = 0.0;
    *variance = 0.0;
    if (!fit->weight) return 0.0;
    for (int64_t i = 0; i < fit->count; i++) {
        if (fit->weight[i] == 0.0) continue;
        double squared = squared_distance(point, fit->x + i * fit->dimensions, fit->dimensions);
        double value = correlation(squared, fit->surface_length);
        sum += fit->weight[i] * value;
        remember_near(&near, i, value);
    }
    *variance = fit->surface_amplitude * fit->surface_amplitude * unknown_part(fit, &near);
    return sum;
}

/* ---- the points that it stands on ---- */

typedef struct surface {
    const pc_fit *fit;
    int64_t count;
    int64_t sound;      /* points that agree with their neighbours, those that it stands on before the others */
    int64_t *index;     /* of all these points */
    double *mean;       /* residual of a point and of those for which it stands */
    double *members;    /* how many these are */
    double *squared;    /* distances between them, count rows */
    double *correlated; /* of one length, rows of those that take part */
    double *matrix, *solution, *residual;
    double *logs; /* of x of all points of the fit */
    double *work; /* of all points of the fit */
} surface;

static double between_points(const surface *s, int64_t a, int64_t b) {
    int dimensions = s->fit->dimensions;
    return squared_difference(s->logs + a * dimensions, s->logs + b * dimensions, dimensions);
}

/* How far a residual lies from the middle of its nearest neighbours'. */
static double away_from_nearest(const surface *s, int64_t at) {
    const pc_fit *fit = s->fit;
    nearest near = {0};
    double numbers[NEAREST];
    for (int64_t i = 0; i < fit->count; i++) {
        if (i == at) continue;
        remember_near(&near, i, -between_points(s, at, i));
    }
    for (int i = 0; i < near.count; i++) numbers[i] = fit->residual[near.index[i]];
    return fit->residual[at] - pc_fit_quantile(numbers, near.count, 0.5);
}

/* Leaves out what agrees with none of its neighbours. */
static void choose_sound(surface *s) {
    const pc_fit *fit = s->fit;
    double *away = s->work, *work = s->work + fit->count;
    for (int64_t i = 0; i < fit->count; i++) away[i] = away_from_nearest(s, i);
    double limit = 5.0 * pc_robust_deviation(away, fit->count, work);
    if (limit < 0.05) limit = 0.05;
    s->count = 0;
    for (int64_t i = 0; i < fit->count; i++)
        if (fabs(away[i]) <= limit) s->index[s->count++] = i;
    s->sound = s->count;
}

/* Of too many points those that are spread widest: each next one is the farthest from all before. */
static void choose_spread(surface *s) {
    const pc_fit *fit = s->fit;
    double *far = s->work;
    if (s->count <= SURFACE_POINTS) return;
    for (int64_t i = 0; i < s->count; i++) far[i] = HUGE_VAL;
    for (int64_t chosen = 0; chosen < SURFACE_POINTS; chosen++) {
        int64_t best = chosen;
        for (int64_t i = chosen; i < s->count; i++)
            if (far[i] > far[best]) best = i;
        int64_t index = s->index[best];
        s->index[best] = s->index[chosen], s->index[chosen] = index;
        far[best] = far[chosen];
        for (int64_t i = chosen + 1; i < s->count; i++) {
            double squared = squared_distance(fit->x + index * fit->dimensions, fit->x + s->index[i] * fit->dimensions,
                                              fit->dimensions);
            if (squared < far[i]) far[i] = squared;
        }
    }
    s->count = SURFACE_POINTS;
}

/* The others count where the nearest of those stands. */
static void gather_members(surface *s) {
    const double *residual = s->fit->residual;
    for (int64_t a = 0; a < s->count; a++) {
        s->mean[a] = residual[s->index[a]];
        s->members[a] = 1.0;
    }
    for (int64_t i = s->count; i < s->sound; i++) {
        int64_t closest = 0;
        double least = HUGE_VAL;
        for (int64_t a = 0; a < s->count; a++) {
            double squared = between_points(s, s->index[a], s->index[i]);
            if (squared < least) least = squared, closest = a;
        }
        s->members[closest] += 1.0;
        s->mean[closest] += (residual[s->index[i]] - s->mean[closest]) / s->members[closest];
    }
}

static void take_distances(surface *s) {
    for (int64_t a = 0; a < s->count; a++) {
        s->residual[a] = s->mean[a];
        for (int64_t b = 0; b <= a; b++) {
            double squared = between_points(s, s->index[a], s->index[b]);
            s->squared[a * s->count + b] = s->squared[b * s->count + a] = squared;
        }
    }
}

/* ---- length, amplitude and noise, by marginal likelihood ---- */

typedef struct scales {
    double length, noise; /* noise: variance over that of the surface */
    double variance;      /* of the surface: what makes the residuals likeliest */
    double likelihood;    /* its logarithm, less what is the same for all */
} scales;

static size_t taking_part(const surface *s, int64_t stride) {
    return (size_t)((s->count - 1) / stride + 1);
}

/* Of every `stride`-th point. */
static void take_correlations(surface *s, double length, int64_t stride) {
    size_t n = taking_part(s, stride);
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b <= a; b++) {
            size_t at = (a * (size_t)s->count + b) * (size_t)stride;
            s->correlated[a * n + b] = s->correlated[b * n + a] = correlation(s->squared[at], length);
        }
}

/* The factor of correlations and noise, and the weights. False: not positive. */
static bool factor_matrix(surface *s, double noise, int64_t stride) {
    size_t n = taking_part(s, stride);
    memcpy(s->matrix, s->correlated, n * n * sizeof *s->matrix);
    for (size_t a = 0; a < n; a++) {
        s->matrix[a * n + a] += noise / s->members[a * (size_t)stride];
        s->solution[a] = s->residual[a * (size_t)stride];
    }
    gsl_matrix_view matrix = gsl_matrix_view_array(s->matrix, n, n);
    gsl_vector_view solution = gsl_vector_view_array(s->solution, n);
    if (gsl_linalg_cholesky_decomp1(&matrix.matrix) != GSL_SUCCESS) return false;
    return gsl_linalg_cholesky_svx(&matrix.matrix, &solution.vector) == GSL_SUCCESS;
}

static void rate_scales(surface *s, scales *at, int64_t stride) {
    size_t n = taking_part(s, stride);
    at->likelihood = -HUGE_VAL;
    if (!factor_matrix(s, at->noise, stride)) return;
    double fit = 0.0, determinant = 0.0;
    for (size_t a = 0; a < n; a++) {
        fit += s->solution[a] * s->residual[a * (size_t)stride];
        determinant += log(s->matrix[a * n + a]);
    }
    at->variance = fit / (double)n;
    if (at->variance > 0.0) at->likelihood = -0.5 * (double)n * log(at->variance) - determinant;
}

/* On a grid, each next point a factor of 1.6 in length and 4 in noise away: what is between makes no odds. */
static scales best_scales(surface *s, int64_t stride) {
    enum { LENGTHS = 9, NOISES = 6 };
    scales best = {.likelihood = -HUGE_VAL};
    for (int i = 0; i < LENGTHS; i++) {
        double length = 0.2 * pow(1.6, i);
        take_correlations(s, length, stride);
        for (int j = 0; j < NOISES; j++) {
            scales at = {.length = length, .noise = 0.005 * pow(4.0, j)};
            rate_scales(s, &at, stride);
            if (at.likelihood > best.likelihood) best = at;
        }
    }
    return best;
}

/* Against no surface at all, by Schwarz's criterion: two numbers more. */
static bool is_worth_it(const surface *s, const scales *best, int64_t stride) {
    double n = (double)taking_part(s, stride), squares = 0.0, members = 0.0;
    for (int64_t a = 0; a < s->count; a += stride) {
        squares += s->residual[a] * s->residual[a] * s->members[a];
        members += log(s->members[a]);
    }
    double without = squares > 0.0 ? -0.5 * n * log(squares / n) + 0.5 * members : HUGE_VAL;
    return best->likelihood - without > log(n);
}

/* ---- the surface ---- */

/* Of each point how it would have been foretold by the others: residual / its deviation (Rasmussen and Williams, 5.12).
 * The matrix holds its factor and afterwards its inverse. */
static bool take_standardised(surface *s, const scales *at, double *standardised) {
    size_t n = (size_t)s->count;
    gsl_matrix_view matrix = gsl_matrix_view_array(s->matrix, n, n);
    if (gsl_linalg_cholesky_invert(&matrix.matrix) != GSL_SUCCESS) return false;
    for (size_t a = 0; a < n; a++) {
        double inverse = s->matrix[a * n + a];
        standardised[a] = s->solution[a] / sqrt(inverse * at->variance);
    }
    return true;
}

/* Whether points are foretold better by the others than by the roofline alone, by a twentieth at least: of noise, a
 * surface that happens to be likely does not. After take_standardised. */
static bool foretells(const surface *s) {
    size_t n = (size_t)s->count;
    double with = 0.0, without = 0.0;
    for (size_t a = 0; a < n; a++) {
        with += sqrt(s->members[a]) * fabs(s->solution[a] / s->matrix[a * n + a]);
        without += sqrt(s->members[a]) * fabs(s->residual[a]);
    }
    return with < 0.95 * without;
}

/* Scales amplitude and noise so that residuals of points left out are as large as they should be, and drops those that
 * are far too large. Says how many it dropped; -1: the surface foretells nothing. */
static int64_t calibrate(surface *s, scales *at) {
    double *standardised = s->work, *work = s->work + s->count;
    if (!take_standardised(s, at, standardised) || !foretells(s)) return -1;
    double deviation = pc_robust_deviation(standardised, s->count, work);
    if (!(deviation > 0.0)) return 0;
    at->variance *= deviation * deviation;
    int64_t kept = 0, count = s->count;
    for (int64_t a = 0; a < count; a++) {
        if (fabs(standardised[a]) > 4.5 * deviation) continue;
        s->mean[kept] = s->mean[a];
        s->members[kept] = s->members[a];
        s->index[kept++] = s->index[a];
    }
    s->count = kept;
    return count - kept;
}

static void keep_surface(const surface *s, const scales *at, pc_fit *fit) {
    double variance;
    memset(fit->weight, 0, (size_t)fit->count * sizeof *fit->weight);
    for (int64_t a = 0; a < s->count; a++) fit->weight[s->index[a]] = s->solution[a];
    fit->surface_length = at->length;
    fit->surface_amplitude = sqrt(at->variance);
    fit->surface_noise = sqrt(at->variance * at->noise);
    fit->residual_deviation = fit->surface_noise;
    for (int64_t i = 0; i < fit->count; i++)
        fit->residual[i] -= pc_surface_at(fit, fit->x + i * fit->dimensions, &variance);
}

/* On the points at hand, all of them. */
static void refit(surface *s, scales *at) {
    take_distances(s);
    take_correlations(s, at->length, 1);
    rate_scales(s, at, 1);
}

static bool build_surface(surface *s, pc_fit *fit) {
    int64_t stride = (s->count - 1) / SEARCH_POINTS + 1;
    gather_members(s);
    take_distances(s);
    scales best = best_scales(s, stride);
    if (!is_worth_it(s, &best, stride)) return false;
    for (int round = 0; round < 3; round++) {
        refit(s, &best);
        if (!isfinite(best.likelihood)) return false;
        int64_t dropped = calibrate(s, &best);
        if (dropped < 0 || s->count < PC_ROOFLINE_SHAPES) return false; /* nothing agrees with anything */
        if (dropped == 0) break;
    }
    double variance = best.variance;
    refit(s, &best);
    best.variance = variance;
    if (isfinite(best.likelihood)) keep_surface(s, &best, fit);
    return isfinite(best.likelihood);
}

static bool surface_make(surface *s, const pc_fit *fit) {
    size_t all = (size_t)fit->count, most = all < SURFACE_POINTS ? all : SURFACE_POINTS;
    *s = (surface){.fit = fit};
    s->index = pc_alloc(all, sizeof *s->index);
    s->work = pc_alloc(2 * all, sizeof *s->work);
    s->mean = pc_alloc(most, sizeof *s->mean);
    s->members = pc_alloc(most, sizeof *s->members);
    s->squared = pc_alloc(most * most, sizeof *s->squared);
    s->correlated = pc_alloc(most * most, sizeof *s->correlated);
    s->matrix = pc_alloc(most * most, sizeof *s->matrix);
    s->solution = pc_alloc(most, sizeof *s->solution);
    s->residual = pc_alloc(most, sizeof *s->residual);
    s->logs = pc_alloc(all * (size_t)fit->dimensions, sizeof *s->logs);
    if (!s->logs || !s->mean || !s->members) return false;
    for (size_t i = 0; i < all * (size_t)fit->dimensions; i++) s->logs[i] = log(fit->x[i]);
    return s->index && s->work && s->squared && s->correlated && s->matrix && s->solution && s->residual;
}

static void surface_free(surface *s) {
    pc_free(s->index);
    pc_free(s->mean);
    pc_free(s->members);
    pc_free(s->work);
    pc_free(s->squared);
    pc_free(s->correlated);
    pc_free(s->matrix);
    pc_free(s->logs);
    pc_free(s->solution);
    pc_free(s->residual);
}

pc_code pc_surface_fit(pc_fit *fit, pc_error *error) {
    surface s;
    bool is_there = false;
    pc_code code = surface_make(&s, fit) ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        choose_sound(&s);
        choose_spread(&s);
        is_there = s.count >= PC_ROOFLINE_SHAPES && build_surface(&s, fit);
    }
    surface_free(&s);
    if (!is_there) {
        pc_free(fit->weight);
        fit->weight = NULL;
    }
    return code;
}
