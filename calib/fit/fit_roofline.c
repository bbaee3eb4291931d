#include "calib/fit/fit_private.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what the key says of a shape ---- */

static bool ends_in(const char *text, const char *end) {
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static double bytes_of(const char *dtype) {
    if (strcmp(dtype, "fp32") == 0 || strcmp(dtype, "tf32") == 0) return 4.0;
    if (strncmp(dtype, "fp8", 3) == 0 || strncmp(dtype, "mxfp8", 5) == 0) return 1.0;
    return strncmp(dtype, "nvfp4", 5) == 0 ? 0.5625 : 2.0; /* a scale of 8 bits for 16 numbers of 4 */
}

/* Of products of 8 and 4 bits in tables, numbers of 16. */
static double output_bytes_of(const pc_fit_key *key, const pc_roofline_shape *shape) {
    return key->library[0] != '\0' && shape->operand_bytes < 2.0 ? 2.0 : shape->operand_bytes;
}

/* Gradients of weights are added to in fp32. */
pc_roofline_shape pc_roofline_shape_of(const pc_fit_key *key, int32_t processors) {
    pc_roofline_shape shape = {.processors = processors, .operand_bytes = bytes_of(key->dtype), .flops = 2.0};
    shape.output_bytes = ends_in(key->subject, "weight_gradient") ? 8.0 : output_bytes_of(key, &shape);
    shape.is_causal = key->is_causal;
    shape.is_backward = key->form != PC_FIT_GEMM && ends_in(key->subject, "backward");
    if (key->form == PC_FIT_ATTENTION) shape.flops = shape.is_backward ? 10.0 : 4.0;
    return shape;
}

static pc_point_function function_of(pc_fit_form form) {
    return form == PC_FIT_GEMM ? pc_gemm_seconds : pc_attention_seconds;
}

double pc_roofline_seconds(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    (void)scatter; /* the same everywhere */
    pc_roofline_shape shape = pc_roofline_shape_of(&fit->key, fit->processors);
    return function_of(fit->key.form)(&shape, fit->parameter, point, gradient);
}

bool pc_roofline_has_parameters(const pc_fit *fit) {
    return fit->parameter_count == PC_ROOFLINE_PARAMETERS;
}

bool pc_fit_has_none_below_zero(const pc_fit *fit) {
    for (int i = 0; i < fit->parameter_count; i++)
        if (!(fit->parameter[i] >= 0.0)) return false;
    return true;
}

bool pc_roofline_has_rates(const pc_fit *fit) {
    return fit->parameter[PC_ROOFLINE_FLOPS] > 0.0 && fit->parameter[PC_ROOFLINE_MEMORY] > 0.0 &&
           pc_fit_has_none_below_zero(fit);
}

/* ---- the fit ---- */

/* The best rates that were seen, and the shortest time. */
void pc_roofline_best_seen(const pc_fit *fit, const pc_roofline_shape *shape, double *parameter) {
    double flops, bytes;
    parameter[PC_ROOFLINE_FLOPS] = parameter[PC_ROOFLINE_MEMORY] = 0.0;
    parameter[PC_ROOFLINE_RAMP] = 64.0;
    parameter[PC_ROOFLINE_LAUNCH] = HUGE_VAL;
    for (int64_t i = 0; i < fit->count; i++) {
        const double *x = fit->x + i * fit->dimensions, seconds = fit->seconds[i];
        if (fit->key.form == PC_FIT_GEMM)
            pc_gemm_work(shape, x, &flops, &bytes);
        else
            pc_attention_work(shape, x, &flops, &bytes);
        fit->residual[i] = flops / seconds; /* as work: outliers must not be the best */
        fit->weight[i] = bytes / seconds;
        if (seconds < parameter[PC_ROOFLINE_LAUNCH]) parameter[PC_ROOFLINE_LAUNCH] = seconds;
    }
    parameter[PC_ROOFLINE_FLOPS] = pc_fit_quantile(fit->residual, fit->count, 0.95);
    parameter[PC_ROOFLINE_MEMORY] = pc_fit_quantile(fit->weight, fit->count, 0.95);
    parameter[PC_ROOFLINE_LAUNCH] *= 0.5;
}

enum { STARTS = 3 };

/* The least of tiles and the larger of two times have corners on which a descent can get caught: a few starts. */
static pc_code fit_from_starts(const pc_robust_problem *problem, const double *seen, size_t starts, double *residual,
                               pc_robust_solution *best, pc_error *error) {
    static const double factors[STARTS][PC_ROOFLINE_PARAMETERS] = {
        {1.0, 1.0, 1.0, 1.0}, {1.1, 4.0, 2.0, 1.0}, {1.0, 0.25, 0.7, 0.3}};
    best->loss = HUGE_VAL;
    for (size_t i = 0; i < starts; i++) {
        pc_robust_solution trial = {.residual = residual};
        for (int j = 0; j < PC_ROOFLINE_PARAMETERS; j++) trial.parameter[j] = seen[j] * factors[i][j];
        pc_code code = pc_robust_fit(problem, &trial, error);
        if (code) return code;
        if (trial.loss < best->loss) *best = trial;
    }
    return PC_OK;
}

pc_parameter_label pc_roofline_label(int i, const char *ramp_unit) {
    static const char *const names[][2] = {[PC_ROOFLINE_FLOPS] = {"rate", "FLOP/s"},
                                           [PC_ROOFLINE_RAMP] = {"ramp", NULL},
                                           [PC_ROOFLINE_MEMORY] = {"memory", "bytes/s"},
                                           [PC_ROOFLINE_LAUNCH] = {"launch", "s"}};
    pc_parameter_label label = {.unit = i == PC_ROOFLINE_RAMP ? ramp_unit : names[i][1]};
    snprintf(label.name, sizeof label.name, "%s", names[i][0]);
    return label;
}

void pc_roofline_keep(const pc_robust_solution *solution, int parameters, pc_point_function function, pc_fit *fit) {
    pc_roofline_shape shape = pc_roofline_shape_of(&fit->key, fit->processors);
    fit->parameter_count = parameters;
    memcpy(fit->parameter, solution->parameter, sizeof fit->parameter);
    memcpy(fit->covariance, solution->covariance, sizeof fit->covariance);
    fit->residual_deviation = solution->deviation;
    pc_fit_name_parameters(fit);
    for (int64_t i = 0; i < fit->count; i++)
        fit->residual[i] = log(fit->seconds[i] / function(&shape, fit->parameter, fit->x + i * fit->dimensions, NULL));
}

int64_t pc_fit_count_shapes(const pc_fit *fit) {
    int64_t shapes = 0;
    size_t row = (size_t)fit->dimensions * sizeof *fit->x;
    for (int64_t i = 0; i < fit->count; i++)
        shapes += i == 0 || memcmp(fit->x + i * fit->dimensions, fit->x + (i - 1) * fit->dimensions, row) != 0;
    return shapes;
}

pc_code pc_roofline_check_points(const pc_fit *fit, pc_error *error) {
    int64_t shapes = pc_fit_count_shapes(fit);
    if (shapes < PC_ROOFLINE_SHAPES)
        return pc_error_set(error, PC_ERROR_INPUT, "%lld shapes; expected at least %d", (long long)shapes,
                            PC_ROOFLINE_SHAPES);
    if (fit->processors < 1)
        return pc_error_set(error, PC_ERROR_INPUT, "%d processors; expected how many the GPU has",
                            (int)fit->processors);
    return PC_OK;
}

pc_code pc_roofline_fit(pc_fit *fit, const double *near, pc_error *error) {
    pc_code code = pc_roofline_check_points(fit, error);
    if (code) return code;
    pc_roofline_shape shape = pc_roofline_shape_of(&fit->key, fit->processors);
    pc_robust_problem problem = {.seconds_at = function_of(fit->key.form),
                                 .self = &shape,
                                 .parameters = PC_ROOFLINE_PARAMETERS,
                                 .dimensions = fit->dimensions,
                                 .x = fit->x,
                                 .seconds = fit->seconds,
                                 .count = fit->count};
    pc_robust_solution solution;
    double seen[PC_ROOFLINE_PARAMETERS];
    if (near)
        memcpy(seen, near, sizeof seen);
    else
        pc_roofline_best_seen(fit, &shape, seen);
    code = fit_from_starts(&problem, seen, near ? 1 : STARTS, fit->residual, &solution, error);
    if (code) return code;
    pc_roofline_keep(&solution, PC_ROOFLINE_PARAMETERS, problem.seconds_at, fit);
    return pc_surface_fit(fit, error);
}
