#include "calib/tune/tune.h"

#include "engine/alloc.h"
#include "engine/order.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

bool pc_tune_is_determined(double deviation) {
    return deviation * deviation <= 0.5;
}

/* ---- the loss ---- */

/* Both 95% efficient on normal errors. */
static const double huber_limit = 1.345, bisquare_limit = 4.685;

/* Few residuals say little of their own scatter: forecasts are usually off by a twentieth, which counts as five of
 * them; and never by less than half a percent. */
static const double usual_scatter = 0.05, usual_rows = 5.0, least_scatter = 0.005;

typedef struct loss {
    double value, slope, bend; /* of the residual over its scatter */
} loss;

static loss huber(double u) {
    double size = fabs(u);
    if (size <= huber_limit) return (loss){0.5 * u * u, u, 1.0};
    return (loss){huber_limit * (size - 0.5 * huber_limit), copysign(huber_limit, u), 0.0};
}

static loss bisquare(double u) {
    const double most = bisquare_limit * bisquare_limit / 6.0;
    double part = u / bisquare_limit, v = 1.0 - part * part;
    if (v <= 0.0) return (loss){most, 0.0, 0.0};
    return (loss){most * (1.0 - v * v * v), u * v * v, v * (1.0 - 5.0 * part * part)};
}

/* ---- one fit, of all rows or of those of other folds ---- */

typedef struct descent {
    const pc_tune_problem *problem;
    const bool *wanted;                /* NULL: all */
    double *log_seconds;               /* [count] where it stands */
    double *nudged, *sorted;           /* [count] */
    double *weight;                    /* [count]: one over the measurements of the configuration */
    gsl_matrix *slopes;                /* [count][numbers] of log_seconds */
    double slopes_at[PC_TUNE_NUMBERS]; /* if has_slopes */
    bool has_slopes;
    /* Once all rows are fitted: where, and what they were there. From then on forecasts are taken to be straight. */
    bool is_straight;
    double touch[PC_TUNE_NUMBERS], *touch_seconds;
    double last[PC_TUNE_NUMBERS]; /* which log_seconds are of, if has_last */
    bool has_last;
    double scatter, seen; /* seen: the sum of weights */
    loss (*loss_of)(double u);
    pc_error error;
    pc_code code;
} descent;

static bool is_wanted(const descent *d, int64_t i) {
    return !d->wanted || d->wanted[i];
}

static double residual_of(const descent *d, int64_t i) {
    return d->log_seconds[i] - d->problem->log_measured[i];
}

static void take(const gsl_vector *moved, int n, double *at) {
    for (int j = 0; j < n; j++) at[j] = gsl_vector_get(moved, (size_t)j);
}

static int ask_straight(const descent *d, const double *at, double *log_seconds) {
    for (int64_t i = 0; i < d->problem->count; i++) {
        log_seconds[i] = d->touch_seconds[i];
        for (int j = 0; j < d->problem->numbers; j++)
            log_seconds[i] += gsl_matrix_get(d->slopes, (size_t)i, (size_t)j) * (at[j] - d->touch[j]);
    }
    return GSL_SUCCESS;
}

static int ask(descent *d, const double *at, double *log_seconds) {
    if (d->is_straight) return ask_straight(d, at, log_seconds);
    if (!d->code) d->code = d->problem->forecast(d->problem->self, at, d->wanted, log_seconds, &d->error);
    return d->code ? GSL_EFAILED : GSL_SUCCESS;
}

/* To log_seconds, if they are not of that already. */
static int stand_at(descent *d, const double *at) {
    size_t size = (size_t)d->problem->numbers * sizeof *at;
    if (d->has_last && memcmp(d->last, at, size) == 0) return GSL_SUCCESS;
    memcpy(d->last, at, size);
    d->has_last = !ask(d, at, d->log_seconds);
    return d->has_last ? GSL_SUCCESS : GSL_EFAILED;
}

/* Rows, each as what its square is twice the loss of; then the numbers, held by what is known of them. */
static int residuals(const gsl_vector *moved, void *self, gsl_vector *out) {
    descent *d = self;
    const pc_tune_problem *problem = d->problem;
    double at[PC_TUNE_NUMBERS];
    take(moved, problem->numbers, at);
    if (stand_at(d, at)) return GSL_EFAILED;
    for (int64_t i = 0; i < problem->count; i++) {
        double u = is_wanted(d, i) ? residual_of(d, i) / d->scatter : 0.0;
        gsl_vector_set(out, (size_t)i, copysign(sqrt(2.0 * d->weight[i] * d->loss_of(u).value), u));
    }
    for (int j = 0; j < problem->numbers; j++)
        gsl_vector_set(out, (size_t)(problem->count + j), gsl_vector_get(moved, (size_t)j));
    return GSL_SUCCESS;
}

/* Far above what rounding to picoseconds and flows in another order do, and far below what bends. */
static const double nudge = 0.02;

/* Forecasts bend little: slopes from nearby will do. */
static bool has_slopes(const descent *d, const double *at) {
    static const double near = 0.25;
    bool is_near = d->has_slopes;
    for (int j = 0; j < d->problem->numbers; j++) is_near = is_near && fabs(at[j] - d->slopes_at[j]) <= near;
    return is_near;
}

static int find_slopes(descent *d, const double *at) {
    double nudged[PC_TUNE_NUMBERS];
    memcpy(d->slopes_at, at, (size_t)d->problem->numbers * sizeof *at);
    d->has_slopes = true;
    for (int j = 0; j < d->problem->numbers; j++) {
        memcpy(nudged, at, (size_t)d->problem->numbers * sizeof *at);
        nudged[j] += nudge;
        if (ask(d, nudged, d->nudged)) return GSL_EFAILED;
        for (int64_t i = 0; i < d->problem->count; i++)
            if (is_wanted(d, i))
                gsl_matrix_set(d->slopes, (size_t)i, (size_t)j, (d->nudged[i] - d->log_seconds[i]) / nudge);
    }
    return GSL_SUCCESS;
}

/* The derivative of sqrt(2 loss) by u: 1 at 0. */
static double bent(const descent *d, double u) {
    loss x = d->loss_of(u);
    return fabs(u) < 1e-6 ? 1.0 : x.slope / copysign(sqrt(2.0 * x.value), u);
}

static int jacobian(const gsl_vector *moved, void *self, gsl_matrix *out) {
    descent *d = self;
    const pc_tune_problem *problem = d->problem;
    double at[PC_TUNE_NUMBERS];
    take(moved, problem->numbers, at);
    if (stand_at(d, at) || (!d->is_straight && !has_slopes(d, at) && find_slopes(d, at))) return GSL_EFAILED;
    gsl_matrix_set_zero(out);
    for (int64_t i = 0; i < problem->count; i++) {
        if (!is_wanted(d, i)) continue;
        double by = sqrt(d->weight[i]) * bent(d, residual_of(d, i) / d->scatter) / d->scatter;
        for (int j = 0; j < problem->numbers; j++)
            gsl_matrix_set(out, (size_t)i, (size_t)j, by * gsl_matrix_get(d->slopes, (size_t)i, (size_t)j));
    }
    for (int j = 0; j < problem->numbers; j++) gsl_matrix_set(out, (size_t)(problem->count + j), (size_t)j, 1.0);
    return GSL_SUCCESS;
}

/* ---- scatter ---- */

/* From the median of the residuals' sizes, which outliers do not move, around zero: what the numbers cannot mend is
 * scatter, too. `used`: how many numbers the data have determined. */
static void find_scatter(descent *d, double used) {
    static const double deviations_of_median = 1.482602218505602; /* of normal errors: 1 / the 75th percentile */
    int64_t count = 0;
    for (int64_t i = 0; i < d->problem->count; i++)
        if (is_wanted(d, i)) d->sorted[count++] = fabs(residual_of(d, i));
    pc_sort_reals(d->sorted, count);
    double scatter = count > 0 ? deviations_of_median * pc_quantile_at(d->sorted, count, 0.5) : 0.0;
    double left = d->seen - used;
    if (left > 0.0) scatter *= sqrt(d->seen / left);
    if (left < 0.0) left = 0.0;
    scatter = sqrt((left * scatter * scatter + usual_rows * usual_scatter * usual_scatter) / (left + usual_rows));
    d->scatter = scatter > least_scatter ? scatter : least_scatter;
}

/* ---- rounds ---- */

/* One minimum; *furthest: what any number moved. */
static pc_code descend(descent *d, gsl_multifit_nlinear_workspace *solver, double *moved, double *furthest) {
    enum { STEPS = 6 };
    static const double steady = 2e-3;
    int n = d->problem->numbers;
    gsl_vector_view start = gsl_vector_view_array(moved, (size_t)n);
    gsl_multifit_nlinear_fdf system = {
        .f = residuals, .df = jacobian, .n = (size_t)(d->problem->count + n), .p = (size_t)n, .params = d};
    gsl_multifit_nlinear_init(&start.vector, &system, solver);
    for (int step = 0; step < STEPS && !d->code; step++) {
        if (gsl_multifit_nlinear_iterate(solver) != GSL_SUCCESS) break; /* no way is down any more */
        if (gsl_blas_dnrm2(solver->dx) < steady) break;
    }
    *furthest = 0.0;
    for (int j = 0; j < n && !d->code; j++) {
        double found = gsl_vector_get(gsl_multifit_nlinear_position(solver), (size_t)j);
        if (!isfinite(found)) continue;
        *furthest = fmax(*furthest, fabs(found - moved[j]));
        moved[j] = found;
    }
    return d->code;
}

/* The inverse of what data and priors say; `variance` is that of a residual over its scatter as the loss sees it. */
static void find_deviations(const descent *d, double *deviation) {
    int n = d->problem->numbers;
    double information[PC_TUNE_NUMBERS * PC_TUNE_NUMBERS] = {0}, squares = 0.0, bend = 0.0;
    for (int64_t i = 0; i < d->problem->count; i++) {
        if (!is_wanted(d, i)) continue;
        loss x = d->loss_of(residual_of(d, i) / d->scatter);
        squares += d->weight[i] * x.slope * x.slope / d->seen;
        bend += d->weight[i] * x.bend / d->seen;
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                information[a * n + b] += d->weight[i] * gsl_matrix_get(d->slopes, (size_t)i, (size_t)a) *
                                          gsl_matrix_get(d->slopes, (size_t)i, (size_t)b);
    }
    /* Huber 1981: mean(slope^2) / mean(bend)^2 stands in for the variance; few residuals may make it too small. */
    if (bend < 0.1) bend = 0.1;
    double variance = d->scatter * d->scatter * fmax(squares / (bend * bend), 1.0);
    for (int k = 0; k < n * n; k++) information[k] = information[k] / variance + (k % (n + 1) == 0);
    gsl_matrix_view inverse = gsl_matrix_view_array(information, (size_t)n, (size_t)n);
    gsl_linalg_cholesky_decomp1(&inverse.matrix); /* never singular: the priors hold it */
    gsl_linalg_cholesky_invert(&inverse.matrix);
    for (int j = 0; j < n; j++) deviation[j] = sqrt(information[j * n + j]);
}

static double used_by(const double *deviation, int n) {
    double used = 0.0;
    for (int j = 0; j < n; j++) used += 1.0 - deviation[j] * deviation[j];
    return used;
}

static void weigh(descent *d, int64_t *times) {
    const pc_tune_problem *problem = d->problem;
    memset(times, 0, (size_t)problem->configurations * sizeof *times);
    for (int64_t i = 0; i < problem->count; i++) times[problem->configuration[i]]++;
    d->seen = 0.0;
    for (int64_t i = 0; i < problem->count; i++) {
        d->weight[i] = 1.0 / (double)times[problem->configuration[i]];
        if (is_wanted(d, i)) d->seen += d->weight[i];
    }
}

/* From where `moved` is, with scatter found anew after every round: Huber's loss, then Tukey's from there. */
static pc_code fit_rows(descent *d, gsl_multifit_nlinear_workspace *solver, double *moved, double *deviation) {
    enum { HUBER_ROUNDS = 3, ROUNDS = 7 };
    static const double steady = 5e-3;
    double furthest = 0.0, used = 0.0;
    if (stand_at(d, moved)) return d->code;
    for (int round = 0; round < ROUNDS; round++) {
        find_scatter(d, used);
        d->loss_of = round < HUBER_ROUNDS ? huber : bisquare;
        if (descend(d, solver, moved, &furthest)) return d->code;
        if (stand_at(d, moved)) return d->code;
        find_deviations(d, deviation);
        used = used_by(deviation, d->problem->numbers);
        if (furthest < steady && round > HUBER_ROUNDS) break;
        if (furthest < steady && round < HUBER_ROUNDS) round = HUBER_ROUNDS - 1;
    }
    find_scatter(d, used);
    find_deviations(d, deviation);
    return PC_OK;
}

/* ---- configurations that a fit has not seen ---- */

/* One fold: a fit of the other rows, with forecasts as straight as they are where the fit of all ended: what a few rows
 * less move is too little to bend them. What it says of the fold's rows is forecast. */
static pc_code leave_out(descent *d, gsl_multifit_nlinear_workspace *solver, int fold, bool *wanted, int64_t *times,
                         double *unseen) {
    const pc_tune_problem *problem = d->problem;
    double moved[PC_TUNE_NUMBERS], deviation[PC_TUNE_NUMBERS];
    memcpy(moved, d->touch, sizeof moved);
    for (int64_t i = 0; i < problem->count; i++) wanted[i] = problem->fold[problem->configuration[i]] != fold;
    d->wanted = wanted;
    d->has_last = false;
    weigh(d, times);
    if (fit_rows(d, solver, moved, deviation)) return d->code;
    for (int64_t i = 0; i < problem->count; i++) wanted[i] = !wanted[i];
    d->is_straight = false;
    int failed = ask(d, moved, d->log_seconds);
    d->is_straight = true;
    for (int64_t i = 0; i < problem->count && !failed; i++)
        if (wanted[i]) unseen[i] = residual_of(d, i);
    return d->code;
}

static pc_code cross_validate(descent *d, gsl_multifit_nlinear_workspace *solver, int64_t *times,
                              pc_tune_solution *solution, pc_error *error) {
    bool *wanted = pc_alloc((size_t)d->problem->count, sizeof *wanted);
    if (!wanted) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    memcpy(d->touch, solution->moved, sizeof d->touch);
    memcpy(d->touch_seconds, d->log_seconds, (size_t)d->problem->count * sizeof *d->touch_seconds);
    d->is_straight = true;
    for (int fold = 0; fold < d->problem->folds && !code; fold++)
        code = leave_out(d, solver, fold, wanted, times, solution->unseen);
    pc_free(wanted);
    return code == PC_OK ? PC_OK : pc_error_copy(error, &d->error);
}

/* ---- all of it ---- */

static void keep_residuals(const descent *d, double *residual) {
    for (int64_t i = 0; i < d->problem->count; i++) residual[i] = residual_of(d, i);
}

static pc_code fit_all(descent *d, gsl_multifit_nlinear_workspace *solver, int64_t *times, pc_tune_solution *solution,
                       pc_error *error) {
    memset(solution->moved, 0, sizeof solution->moved);
    weigh(d, times);
    if (stand_at(d, solution->moved)) return pc_error_copy(error, &d->error);
    keep_residuals(d, solution->before);
    if (fit_rows(d, solver, solution->moved, solution->deviation)) return pc_error_copy(error, &d->error);
    keep_residuals(d, solution->after);
    solution->scatter = d->scatter;
    return d->problem->folds > 0 ? cross_validate(d, solver, times, solution, error) : PC_OK;
}

pc_code pc_tune_fit(const pc_tune_problem *problem, pc_tune_solution *solution, pc_error *error) {
    size_t count = (size_t)problem->count, n = (size_t)problem->numbers;
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    settings.solver = gsl_multifit_nlinear_solver_cholesky; /* held by the priors, so never singular */
    descent d = {.problem = problem};
    gsl_error_handler_t *handler = gsl_set_error_handler_off(); /* what fails says so by its value */
    double *numbers = pc_alloc(5 * count, sizeof *numbers);
    int64_t *times = pc_alloc((size_t)problem->configurations, sizeof *times);
    gsl_multifit_nlinear_workspace *solver =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, count + n, n);
    d.slopes = gsl_matrix_calloc(count, n);
    pc_code code = numbers && times && solver && d.slopes ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        d.log_seconds = numbers;
        d.nudged = numbers + count;
        d.sorted = numbers + 2 * count;
        d.weight = numbers + 3 * count;
        d.touch_seconds = numbers + 4 * count;
        code = fit_all(&d, solver, times, solution, error);
    }
    if (d.slopes) gsl_matrix_free(d.slopes);
    if (solver) gsl_multifit_nlinear_free(solver);
    pc_free(times);
    pc_free(numbers);
    gsl_set_error_handler(handler);
    return code;
}
