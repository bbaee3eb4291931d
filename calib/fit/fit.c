#include "calib/fit/fit.h"

#include "calib/fit/fit_private.h"
#include "engine/alloc.h"
#include "engine/random.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pc_fit_free(pc_fit *fit) {
    pc_free(fit->x);
    pc_free(fit->seconds);
    pc_free(fit->residual);
    pc_free(fit->weight);
    pc_log_grid_free(&fit->grid);
    memset(fit, 0, sizeof *fit);
}

void pc_fit_name_parameters(pc_fit *fit) {
    for (int i = 0; i < fit->parameter_count; i++) {
        pc_parameter_label label = pc_fit_label(fit->key.form, i);
        snprintf(fit->parameter_name[i], sizeof fit->parameter_name[i], "%s", label.name);
        snprintf(fit->parameter_unit[i], sizeof fit->parameter_unit[i], "%s", label.unit);
    }
}

double pc_fit_standard_error(const pc_fit *fit, int parameter) {
    return sqrt(fit->covariance[parameter * fit->parameter_count + parameter]);
}

bool pc_fit_has_parameters(const pc_fit *fit) {
    const pc_form *form = pc_form_of(fit->key.form);
    return form->has_parameters(fit) && (fit->processors > 0 || !form->has_processors);
}

static bool foretells_at(const pc_fit *fit, const double *point) {
    pc_estimate estimate = pc_fit_predict(fit, point);
    return estimate.seconds > 0.0 && isfinite(estimate.seconds) && isfinite(estimate.standard_error);
}

bool pc_fit_foretells(const pc_fit *fit) {
    const pc_form *form = pc_form_of(fit->key.form);
    bool has_rates = !form->has_rates || form->has_rates(fit);
    return has_rates && foretells_at(fit, fit->least) && foretells_at(fit, fit->most);
}

/* ---- points, in order: same points, same fit, whatever order they come in ---- */

enum { ROW = PC_FIT_DIMENSIONS + 1 };

static int by_shape(const void *a, const void *b) {
    const double *x = a, *y = b;
    for (int i = 0; i < ROW; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static pc_code check_points(int dimensions, const double *points, const double *seconds, int64_t count,
                            pc_error *error) {
    static const double least = 1e-12, most = 1e18;
    for (int64_t i = 0; i < count; i++) {
        for (int d = 0; d < dimensions; d++) {
            double value = points[i * dimensions + d];
            if (!(value >= least && value <= most))
                return pc_error_set(error, PC_ERROR_INPUT, "point %lld: a size of %g; expected more than zero",
                                    (long long)i + 1, value);
        }
        if (!(seconds[i] >= least && seconds[i] <= most))
            return pc_error_set(error, PC_ERROR_INPUT, "point %lld: %g s; expected more than zero", (long long)i + 1,
                                seconds[i]);
    }
    return PC_OK;
}

static void take_range(pc_fit *fit) {
    for (int d = 0; d < fit->dimensions; d++) {
        fit->least[d] = HUGE_VAL, fit->most[d] = 0.0;
        for (int64_t i = 0; i < fit->count; i++) {
            double value = fit->x[i * fit->dimensions + d];
            if (value < fit->least[d]) fit->least[d] = value;
            if (value > fit->most[d]) fit->most[d] = value;
        }
    }
}

static pc_code take_points(pc_fit *fit, const double *points, const double *seconds, int64_t count, pc_error *error) {
    size_t n = (size_t)count;
    int dimensions = fit->dimensions;
    fit->count = count;
    fit->x = pc_alloc(n * (size_t)dimensions, sizeof *fit->x);
    fit->seconds = pc_alloc(n, sizeof *fit->seconds);
    fit->residual = pc_alloc(n, sizeof *fit->residual);
    bool has_surface = pc_form_of(fit->key.form)->has_weights;
    if (has_surface) fit->weight = pc_alloc(n, sizeof *fit->weight);
    double(*row)[ROW] = pc_alloc(n, sizeof *row);
    bool is_made = fit->x && fit->seconds && fit->residual && row && (fit->weight || !has_surface);
    for (size_t i = 0; i < n && is_made; i++) {
        memcpy(row[i], points + i * (size_t)dimensions, (size_t)dimensions * sizeof *points);
        row[i][dimensions] = seconds[i];
    }
    if (is_made) qsort(row, n, sizeof *row, by_shape);
    for (size_t i = 0; i < n && is_made; i++) {
        memcpy(fit->x + i * (size_t)dimensions, row[i], (size_t)dimensions * sizeof *points);
        fit->seconds[i] = row[i][dimensions];
    }
    pc_free(row);
    if (is_made) take_range(fit);
    return is_made ? PC_OK : pc_error_no_memory(error);
}

/* ---- one fit ---- */

/* A descent among points that are like nothing may end at numbers that no time follows from, here or elsewhere. */
static bool leads_somewhere(const pc_fit *fit) {
    static const double most = 1e30;
    for (int i = 0; i < fit->parameter_count; i++)
        if (!(fabs(fit->parameter[i]) < most)) return false;
    for (int i = 0; i < fit->parameter_count * fit->parameter_count; i++)
        if (!isfinite(fit->covariance[i])) return false;
    for (int64_t i = 0; i < fit->count; i++)
        if (!foretells_at(fit, fit->x + i * fit->dimensions)) return false;
    return isfinite(fit->residual_deviation) && pc_fit_foretells(fit);
}

static pc_code fit_points(const pc_fit_key *key, int32_t processors, const double *points, const double *seconds,
                          int64_t count, const double *near, pc_fit *fit, pc_error *error) {
    *fit = (pc_fit){.key = *key, .processors = processors, .dimensions = pc_form_of(key->form)->dimensions};
    fit->cv_median = fit->cv_p95 = fit->cv_coverage = NAN;
    pc_code code = take_points(fit, points, seconds, count, error);
    if (!code) code = pc_form_of(key->form)->fit(fit, near, error);
    if (!code && !leads_somewhere(fit))
        code = pc_error_set(error, PC_ERROR_INPUT, "no numbers of this form are near the points; expected others");
    if (code) pc_fit_free(fit);
    return code;
}

/* ---- what it says ---- */

typedef struct prediction {
    double seconds;
    double known, scatter; /* variances of log(seconds): of what the fit says, of one measurement */
} prediction;

typedef double seconds_function(const pc_fit *fit, const double *point, double *gradient, double *scatter);

static prediction predict_by(const pc_fit *fit, const pc_form *form, seconds_function *seconds, const double *point) {
    double gradient[PC_FIT_PARAMETERS], left = 0.0, scatter = fit->residual_deviation, variance = 0.0;
    memset(gradient, 0, (size_t)fit->parameter_count * sizeof *gradient);
    double base = seconds(fit, point, gradient, &scatter);
    double surface = form->left ? form->left(fit, point, &left) : 0.0;
    int n = fit->parameter_count;
    for (int a = 0; a < n; a++) {
        if (gradient[a] == 0.0) continue;
        for (int b = 0; b < n; b++) variance += gradient[a] * fit->covariance[a * n + b] * gradient[b];
    }
    variance = variance > 0.0 ? variance / (base * base) : 0.0;
    return (prediction){base * exp(surface), variance + left, scatter * scatter};
}

static prediction predict(const pc_fit *fit, const double *point) {
    const pc_form *form = pc_form_of(fit->key.form);
    return predict_by(fit, form, form->seconds, point);
}

/* Of Student's distribution, for the scatter is itself estimated. */
static double student_limit(const pc_fit *fit, double probability) {
    double freedom = (double)(fit->count - fit->parameter_count);
    return gsl_cdf_tdist_Pinv(0.5 + 0.5 * probability, freedom > 1.0 ? freedom : 1.0);
}

pc_estimate pc_fit_predict(const pc_fit *fit, const double *point) {
    prediction p = predict(fit, point);
    return (pc_estimate){p.seconds, p.seconds * sqrt(p.known + p.scatter)};
}

double pc_fit_seconds(const pc_fit *fit, const double *point) {
    const pc_form *form = pc_form_of(fit->key.form);
    double scatter = 0.0, variance = 0.0;
    double base = form->seconds(fit, point, NULL, &scatter);
    double left = form->left ? form->left(fit, point, &variance) : 0.0;
    return left != 0.0 ? base * exp(left) : base;
}

pc_estimate pc_fit_predict_sustained(const pc_fit *fit, const double *point) {
    const pc_form *form = pc_form_of(fit->key.form);
    prediction p = predict_by(fit, form, form->sustained_seconds ? form->sustained_seconds : form->seconds, point);
    if (!form->sustained_seconds && form->sustained) p.seconds *= form->sustained(fit, point);
    return (pc_estimate){p.seconds, p.seconds * sqrt(p.known + p.scatter)};
}

void pc_fit_interval(const pc_fit *fit, const double *point, double probability, double *low_s, double *high_s) {
    prediction p = predict(fit, point);
    double factor = exp(student_limit(fit, probability) * sqrt(p.known + p.scatter));
    *low_s = p.seconds / factor;
    *high_s = p.seconds * factor;
}

double pc_fit_distance(const pc_fit *fit, const double *point, int *dimension) {
    double farthest = 1.0;
    *dimension = 0;
    for (int d = 0; d < fit->dimensions; d++) {
        double ratio = point[d] < fit->least[d] ? fit->least[d] / point[d] : point[d] / fit->most[d];
        if (ratio > farthest) farthest = ratio, *dimension = d;
    }
    return farthest;
}

/* ---- cross-validation ---- */

enum { FOLDS = 10 };

/* A point that was foretold by a fit that had not seen it. */
typedef struct foretold {
    double error;          /* relative, of seconds */
    double squared;        /* log(seconds / foretold)^2, over the square of Student's 95% limit */
    double known, scatter; /* variances: of what the fit says, of one measurement */
} foretold;

typedef struct folds {
    int32_t *fold; /* of each point; points of one shape are in one fold, or the fit would have seen them */
    double *x, *seconds, *work;
    foretold *told;
    int64_t count; /* of what was foretold */
} folds;

static void folds_free(folds *f) {
    pc_free(f->fold);
    pc_free(f->x);
    pc_free(f->seconds);
    pc_free(f->work);
    pc_free(f->told);
}

static bool folds_make(folds *f, const pc_fit *fit) {
    size_t n = (size_t)fit->count;
    *f = (folds){0};
    f->fold = pc_alloc(n, sizeof *f->fold);
    f->x = pc_alloc(n * (size_t)fit->dimensions, sizeof *f->x);
    f->seconds = pc_alloc(n, sizeof *f->seconds);
    f->work = pc_alloc(n, sizeof *f->work);
    f->told = pc_alloc(n, sizeof *f->told);
    return f->fold && f->x && f->seconds && f->work && f->told;
}

static bool is_same_shape(const pc_fit *fit, int64_t a, int64_t b) {
    size_t size = (size_t)fit->dimensions * sizeof *fit->x;
    return memcmp(fit->x + a * fit->dimensions, fit->x + b * fit->dimensions, size) == 0;
}

static void shuffle_folds(uint64_t *state, int32_t order[FOLDS]) {
    for (int k = 0; k < FOLDS; k++) {
        int at = (int)(pc_splitmix64(state) % (uint64_t)(k + 1));
        order[k] = at == k ? k : order[at];
        order[at] = k;
    }
}

/* Deals shapes out in rounds: each round has every fold once, in random order. */
static void deal_folds(const pc_fit *fit, folds *f) {
    uint64_t state = 1;
    int32_t order[FOLDS];
    int64_t dealt = 0;
    for (int64_t i = 0; i < fit->count; i++) {
        if (i > 0 && is_same_shape(fit, i, i - 1)) {
            f->fold[i] = f->fold[i - 1];
            continue;
        }
        if (dealt % FOLDS == 0) shuffle_folds(&state, order);
        f->fold[i] = order[dealt++ % FOLDS];
    }
}

static void foretell(const pc_fit *part, const double *point, double seconds, folds *f) {
    prediction p = predict(part, point);
    double away = log(seconds / p.seconds) / student_limit(part, 0.95);
    f->told[f->count++] = (foretold){fabs(p.seconds / seconds - 1.0), away * away, p.known, p.scatter};
}

static pc_code foretell_fold(const pc_fit *fit, folds *f, int fold, pc_error *error) {
    pc_fit part;
    int64_t count = 0;
    size_t row = (size_t)fit->dimensions;
    for (int64_t i = 0; i < fit->count; i++) {
        if (f->fold[i] == fold) continue;
        memcpy(f->x + (size_t)count * row, fit->x + (size_t)i * row, row * sizeof *fit->x);
        f->seconds[count++] = fit->seconds[i];
    }
    if (count == fit->count) return PC_OK;
    pc_code code = fit_points(&fit->key, fit->processors, f->x, f->seconds, count, fit->parameter, &part, error);
    if (code == PC_ERROR_INPUT) return PC_OK; /* too few without these */
    if (code) return code;
    for (int64_t i = 0; i < fit->count; i++)
        if (f->fold[i] == fold) foretell(&part, fit->x + (size_t)i * row, fit->seconds[i], f);
    pc_fit_free(&part);
    return PC_OK;
}

/* Of the points that are no outliers (six standard errors away, at most a twentieth of all): those outside of their
 * interval. `work` takes how much wider, squared, the scatter would have to be for each of them. */
static int64_t count_outside(const folds *f, int64_t *inliers) {
    int64_t outliers = 0, outside = 0;
    for (int64_t i = 0; i < f->count; i++) {
        const foretold *t = &f->told[i];
        double wider = (t->squared - t->known) / t->scatter, deviations = t->squared / (t->known + t->scatter);
        bool is_outlier = deviations > 9.0 && outliers < f->count / 20;
        outliers += is_outlier;
        outside += !is_outlier && wider > 1.0;
        f->work[i] = wider;
    }
    *inliers = f->count - outliers;
    return outside;
}

/* Scatter that is no bell has more points outside of its intervals than it should. Where these are too many to be
 * chance, how much wider the scatter has to be taken. */
static double widening(const folds *f) {
    int64_t inliers, outside = count_outside(f, &inliers);
    double n = (double)inliers, expected = 0.05 * n;
    if ((double)outside <= expected + 2.5 * sqrt(0.95 * expected)) return 1.0;
    double squared = pc_fit_quantile(f->work, f->count, 0.95 * n / (double)f->count);
    return squared > 1.0 ? sqrt(squared) : 1.0;
}

/* What the parameters are thought to be known to follows from the scatter. */
static void widen(pc_fit *fit, double factor) {
    int entries = fit->parameter_count * fit->parameter_count;
    for (int i = 0; i < entries; i++) fit->covariance[i] *= factor * factor;
    fit->residual_deviation *= factor;
    const pc_form *form = pc_form_of(fit->key.form);
    if (form->widen) form->widen(fit, factor);
}

static void conclude(const folds *f, pc_fit *fit) {
    double wider = widening(f);
    int64_t held = 0;
    widen(fit, wider);
    for (int64_t i = 0; i < f->count; i++) {
        const foretold *t = &f->told[i];
        held += t->squared <= t->known + wider * wider * t->scatter;
        f->work[i] = t->error;
    }
    fit->cv_median = pc_fit_quantile(f->work, f->count, 0.5);
    fit->cv_p95 = pc_fit_quantile(f->work, f->count, 0.95);
    fit->cv_coverage = (double)held / (double)f->count;
}

static pc_code cross_validate(pc_fit *fit, pc_error *error) {
    folds f;
    pc_code code = folds_make(&f, fit) ? PC_OK : pc_error_no_memory(error);
    if (!code) deal_folds(fit, &f);
    for (int fold = 0; fold < FOLDS && !code; fold++) code = foretell_fold(fit, &f, fold, error);
    if (!code && f.count > 0) conclude(&f, fit);
    folds_free(&f);
    return code;
}

/* ---- the door ---- */

/* GSL ends the program where it meets a fault unless its handler, which all threads share, is off: one fit at a time,
 * and the handler as it was between them. */
static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;

pc_code pc_fit_make(const pc_fit_key *key, int32_t processors, const double *points, const double *seconds,
                    int64_t count, pc_fit *fit, pc_error *error) {
    pc_fit made;
    pc_code code = check_points(pc_form_of(key->form)->dimensions, points, seconds, count, error);
    if (code) return code;
    pthread_mutex_lock(&handler_lock);
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    code = fit_points(key, processors, points, seconds, count, NULL, &made, error);
    if (!code && isnan(made.cv_median)) { /* a form may have done it itself */
        code = cross_validate(&made, error);
        if (code) pc_fit_free(&made);
    }
    gsl_set_error_handler(before);
    pthread_mutex_unlock(&handler_lock);
    if (!code) *fit = made;
    return code;
}
