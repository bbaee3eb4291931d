#include "calib/fit/fit_private.h"

#include "engine/alloc.h"
#include "engine/order.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

/* ---- order statistics ---- */

double pc_fit_quantile(double *numbers, int64_t count, double part) {
    if (count == 0) return 0.0;
    pc_sort_reals(numbers, count);
    return pc_quantile_at(numbers, count, part);
}

/* Of normal errors: 1 / the 75th percentile. */
static const double deviations_of_mad = 1.482602218505602;

/* Biweight midvariance (Mosteller and Tukey 1977): 87% as efficient as the plain one on normal errors, where the median
 * absolute deviation alone reaches 37%; what lies beyond nine of those does not count. */
double pc_robust_deviation(const double *residual, int64_t count, double *work) {
    memcpy(work, residual, (size_t)count * sizeof *work);
    double middle = pc_fit_quantile(work, count, 0.5);
    for (int64_t i = 0; i < count; i++) work[i] = fabs(residual[i] - middle);
    double mad = pc_fit_quantile(work, count, 0.5);
    if (!(mad > 0.0)) return 0.0;
    double squares = 0.0, slope = 0.0, inside = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double d = residual[i] - middle, u2 = d * d / (81.0 * mad * mad);
        if (u2 >= 1.0) continue;
        double v = 1.0 - u2;
        squares += d * d * v * v * v * v;
        slope += v * (1.0 - 5.0 * u2);
        inside += 1.0;
    }
    return slope > 0.0 ? sqrt(inside * squares) / slope : mad * deviations_of_mad;
}

/* ---- weights ---- */

static const double huber_limit = 1.345, bisquare_limit = 4.685; /* both 95% efficient on normal errors */
static const double least_deviation = 1e-9;

/* Of a parameter's logarithm, beforehand. */
static double prior_of(const pc_robust_problem *problem, int parameter) {
    return problem->prior_deviation ? problem->prior_deviation[parameter] : 3.0;
}

static double huber_weight(double u) {
    return fabs(u) <= huber_limit ? 1.0 : huber_limit / fabs(u);
}

static double bisquare_weight(double u) {
    double v = 1.0 - u * u / (bisquare_limit * bisquare_limit);
    return v > 0.0 ? v * v : 0.0;
}

static double bisquare_slope(double u) {
    double u2 = u * u / (bisquare_limit * bisquare_limit);
    return u2 < 1.0 ? (1.0 - u2) * (1.0 - 5.0 * u2) : 0.0;
}

static double bisquare_loss(double u) {
    double v = 1.0 - u * u / (bisquare_limit * bisquare_limit);
    double most = bisquare_limit * bisquare_limit / 3.0;
    return v > 0.0 ? most * (1.0 - v * v * v) : most;
}

/* ---- the problem as GSL sees it ---- */

typedef struct descent {
    const pc_robust_problem *problem;
    double start[PC_FIT_PARAMETERS]; /* logarithms, of what is known beforehand */
    double deviation;                /* of this round: what a prior counts in */
    double *residual, *work;
    gsl_vector *weight;
    gsl_multifit_nlinear_workspace *solver;
} descent;

static void parameters_of(const gsl_vector *logs, int count, double *parameter) {
    for (int j = 0; j < count; j++) {
        double log_value = gsl_vector_get(logs, (size_t)j);
        parameter[j] = exp(log_value > 600.0 ? 600.0 : log_value < -600.0 ? -600.0 : log_value);
    }
}

static double log_at(const pc_robust_problem *problem, const double *parameter, int64_t i, double *gradient) {
    double seconds = problem->seconds_at(problem->self, parameter, problem->x + i * problem->dimensions, gradient);
    return log(seconds > 1e-300 ? seconds : 1e-300);
}

/* Rows: the points; then the parameters, held where they started by a little. */
static int residuals(const gsl_vector *logs, void *self, gsl_vector *out) {
    const descent *d = self;
    const pc_robust_problem *problem = d->problem;
    double parameter[PC_FIT_PARAMETERS];
    parameters_of(logs, problem->parameters, parameter);
    for (int64_t i = 0; i < problem->count; i++)
        gsl_vector_set(out, (size_t)i, log_at(problem, parameter, i, NULL) - log(problem->seconds[i]));
    for (int j = 0; j < problem->parameters; j++) {
        double away = gsl_vector_get(logs, (size_t)j) - d->start[j];
        gsl_vector_set(out, (size_t)(problem->count + j), away * d->deviation / prior_of(problem, j));
    }
    return GSL_SUCCESS;
}

/* The derivatives of log(seconds) by the logarithms of the parameters. */
static void log_gradient(const pc_robust_problem *problem, const double *parameter, int64_t i, double *gradient) {
    memset(gradient, 0, PC_FIT_PARAMETERS * sizeof *gradient);
    double seconds = exp(log_at(problem, parameter, i, gradient));
    for (int j = 0; j < problem->parameters; j++) gradient[j] *= parameter[j] / seconds;
}

static int jacobian(const gsl_vector *logs, void *self, gsl_matrix *out) {
    const descent *d = self;
    const pc_robust_problem *problem = d->problem;
    double parameter[PC_FIT_PARAMETERS], gradient[PC_FIT_PARAMETERS];
    parameters_of(logs, problem->parameters, parameter);
    gsl_matrix_set_zero(out);
    for (int64_t i = 0; i < problem->count; i++) {
        log_gradient(problem, parameter, i, gradient);
        for (int j = 0; j < problem->parameters; j++) gsl_matrix_set(out, (size_t)i, (size_t)j, gradient[j]);
    }
    for (int j = 0; j < problem->parameters; j++)
        gsl_matrix_set(out, (size_t)(problem->count + j), (size_t)j, d->deviation / prior_of(problem, j));
    return GSL_SUCCESS;
}

/* ---- rounds of reweighting ---- */

/* Few residuals say little of their own spread: what is usual counts as some of them. `freedom`: the part of the points
 * that is left beside the parameters. */
static double with_usual(const pc_robust_problem *problem, double deviation, double freedom) {
    static const double usual_points = 5.0;
    double usual = problem->usual_deviation, count = (double)problem->count * freedom;
    if (!(usual > 0.0)) return deviation;
    return sqrt((count * deviation * deviation + usual_points * usual * usual) / (count + usual_points));
}

static void take_residuals(descent *d, const double *parameter) {
    const pc_robust_problem *problem = d->problem;
    for (int64_t i = 0; i < problem->count; i++)
        d->residual[i] = log(problem->seconds[i]) - log_at(problem, parameter, i, NULL);
    double deviation = pc_robust_deviation(d->residual, problem->count, d->work);
    deviation = with_usual(problem, deviation, 1.0);
    d->deviation = deviation > least_deviation ? deviation : least_deviation;
}

static void reweigh(descent *d, double (*weight)(double)) {
    gsl_vector_set_all(d->weight, 1.0);
    for (int64_t i = 0; i < d->problem->count; i++)
        gsl_vector_set(d->weight, (size_t)i, weight(d->residual[i] / d->deviation));
}

/* One least-squares fit with the weights at hand; says how far the logarithms moved at most. */
static double descend(descent *d, double *parameter) {
    enum { STEPS = 60 };
    int n = d->problem->parameters, info;
    double log_values[PC_FIT_PARAMETERS], moved = 0.0;
    for (int j = 0; j < n; j++) log_values[j] = log(parameter[j]);
    gsl_vector_view at = gsl_vector_view_array(log_values, (size_t)n);
    gsl_multifit_nlinear_fdf system = {
        .f = residuals, .df = jacobian, .n = (size_t)(d->problem->count + n), .p = (size_t)n, .params = d};
    gsl_multifit_nlinear_winit(&at.vector, d->weight, &system, d->solver);
    gsl_multifit_nlinear_driver(STEPS, 1e-7, 1e-9, 0.0, NULL, NULL, &info, d->solver);
    gsl_vector *found = gsl_multifit_nlinear_position(d->solver);
    for (int j = 0; j < n; j++) {
        double change = fabs(gsl_vector_get(found, (size_t)j) - log_values[j]);
        if (!isfinite(change)) return 0.0;
        if (change > moved) moved = change;
    }
    parameters_of(found, n, parameter);
    return moved;
}

static void reweighted_descents(descent *d, double *parameter) {
    enum { HUBER_ROUNDS = 5, ROUNDS = 30 };
    static const double steady = 1e-5;
    for (int round = 0; round < ROUNDS; round++) {
        take_residuals(d, parameter);
        reweigh(d, round < HUBER_ROUNDS ? huber_weight : bisquare_weight);
        double moved = descend(d, parameter);
        if (moved < steady && round < HUBER_ROUNDS) round = HUBER_ROUNDS - 1;
        if (moved < steady && round > HUBER_ROUNDS) break;
    }
    take_residuals(d, parameter);
}

/* ---- how sure ---- */

/* Of a robust estimate: deviation^2 * mean(psi^2) / mean(psi')^2 takes the place of the variance (Huber 1981). */
static double robust_variance(const descent *d) {
    double squares = 0.0, slope = 0.0, count = (double)d->problem->count;
    double freedom = count - (double)d->problem->parameters;
    for (int64_t i = 0; i < d->problem->count; i++) {
        double u = d->residual[i] / d->deviation, psi = u * bisquare_weight(u);
        squares += psi * psi;
        slope += bisquare_slope(u);
    }
    slope /= count;
    if (slope < 0.1) slope = 0.1; /* residuals far from any bell: unsure, but no division by nothing */
    return d->deviation * d->deviation * squares / (freedom > 1.0 ? freedom : 1.0) / (slope * slope);
}

/* The inverse of the information that points and priors give, turned from logarithms to the parameters themselves. */
static void take_covariance(const descent *d, const double *parameter, double *covariance) {
    int n = d->problem->parameters;
    double variance = robust_variance(d), gradient[PC_FIT_PARAMETERS];
    double information[PC_FIT_PARAMETERS * PC_FIT_PARAMETERS] = {0};
    if (variance < least_deviation * least_deviation) variance = least_deviation * least_deviation;
    for (int64_t i = 0; i < d->problem->count; i++) {
        log_gradient(d->problem, parameter, i, gradient);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++) information[a * n + b] += gradient[a] * gradient[b] / variance;
    }
    for (int a = 0; a < n; a++) {
        double prior = prior_of(d->problem, a);
        information[a * n + a] += 1.0 / (prior * prior);
    }
    gsl_matrix_view inverse = gsl_matrix_view_array(information, (size_t)n, (size_t)n);
    bool is_inverted = gsl_linalg_cholesky_decomp1(&inverse.matrix) == GSL_SUCCESS &&
                       gsl_linalg_cholesky_invert(&inverse.matrix) == GSL_SUCCESS;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            double log_covariance = is_inverted ? information[a * n + b]
                                    : a == b    ? prior_of(d->problem, a) * prior_of(d->problem, a)
                                                : 0.0;
            covariance[a * n + b] = log_covariance * parameter[a] * parameter[b];
        }
}

static double total_loss(const descent *d) {
    double loss = 0.0;
    for (int64_t i = 0; i < d->problem->count; i++)
        loss += d->deviation * d->deviation * bisquare_loss(d->residual[i] / d->deviation);
    return loss;
}

static void conclude(const descent *d, pc_robust_solution *solution) {
    double count = (double)d->problem->count, freedom = count - (double)d->problem->parameters;
    take_covariance(d, solution->parameter, solution->covariance);
    if (freedom < 1.0) freedom = 1.0;
    double deviation = pc_robust_deviation(d->residual, d->problem->count, d->work) * sqrt(count / freedom);
    solution->deviation = with_usual(d->problem, deviation, freedom / count);
    solution->loss = total_loss(d);
}

pc_code pc_robust_fit(const pc_robust_problem *problem, pc_robust_solution *solution, pc_error *error) {
    size_t rows = (size_t)problem->count + (size_t)problem->parameters;
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    settings.solver = gsl_multifit_nlinear_solver_cholesky; /* held by the priors, so never singular */
    descent d = {.problem = problem, .residual = solution->residual};
    const double *prior = problem->prior ? problem->prior : solution->parameter;
    for (int j = 0; j < problem->parameters; j++) d.start[j] = log(prior[j]);
    d.work = pc_alloc((size_t)problem->count, sizeof *d.work);
    d.weight = gsl_vector_alloc(rows);
    d.solver = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, rows, (size_t)problem->parameters);
    pc_code code = d.work && d.weight && d.solver ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        reweighted_descents(&d, solution->parameter);
        conclude(&d, solution);
    }
    if (d.solver) gsl_multifit_nlinear_free(d.solver);
    if (d.weight) gsl_vector_free(d.weight);
    pc_free(d.work);
    return code;
}
