/* Products of several groups of rows, and the descent that grouped products and expert layers share. */
#include "calib/fit/fit_groups.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

static const double tile_forms[][2] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};

typedef struct tiles {
    double work; /* multiplications and additions of one processor for each step of k: of all its tiles */
    double seconds;
} tiles;

static tiles best_tiles(const pc_groups *shape, const double *parameter) {
    double rate = parameter[PC_GROUPS_RATE] / shape->processors;
    double steps = shape->k + parameter[PC_GROUPS_RAMP];
    tiles best = {.seconds = HUGE_VAL};
    for (size_t i = 0; i < sizeof tile_forms / sizeof *tile_forms; i++) {
        const double *tile = tile_forms[i];
        double count = shape->groups * ceil(shape->m / tile[0]) * ceil(shape->n / tile[1]);
        double work = ceil(count / shape->processors) * 2.0 * tile[0] * tile[1];
        double seconds = work * steps / rate;
        if (seconds < best.seconds) best = (tiles){work, seconds};
    }
    return best;
}

double pc_groups_seconds(const pc_groups *shape, const double *parameter, double *gradient) {
    tiles best = best_tiles(shape, parameter);
    double memory = shape->bytes / parameter[PC_GROUPS_MEMORY], seconds = hypot(best.seconds, memory);
    if (gradient) {
        double of_tiles = best.seconds / seconds, of_memory = memory / seconds;
        gradient[PC_GROUPS_RATE] = -of_tiles * best.seconds / parameter[PC_GROUPS_RATE];
        gradient[PC_GROUPS_RAMP] = of_tiles * best.work * shape->processors / parameter[PC_GROUPS_RATE];
        gradient[PC_GROUPS_MEMORY] = -of_memory * memory / parameter[PC_GROUPS_MEMORY];
    }
    return seconds;
}

/* ---- types ---- */

typedef struct element {
    const char *dtype;
    double weight, activation;
} element;

/* A scale a block: of 32 elements a byte (mx), of 16 elements a byte (nvfp4), of 128 x 128 weights and of 128
 * activations four bytes (fp8_block). */
static const element elements[] = {{"fp32", 4.0, 4.0},
                                   {"fp8", 1.0, 1.0},
                                   {"fp8_block", 1.0, 1.0 + 4.0 / 128.0},
                                   {"mxfp8", 1.0 + 1.0 / 32.0, 1.0 + 1.0 / 32.0},
                                   {"nvfp4", 0.5 + 1.0 / 16.0, 0.5 + 1.0 / 16.0},
                                   {"w4a8_mxfp4", 0.5 + 1.0 / 32.0, 1.0 + 1.0 / 32.0},
                                   {"w4a16_mxfp4", 0.5 + 1.0 / 32.0, 2.0}};

static element element_of(const char *dtype) {
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(dtype, elements[i].dtype) == 0) return elements[i];
    return (element){dtype, 2.0, 2.0};
}

double pc_groups_weight_bytes(const char *dtype) {
    return element_of(dtype).weight;
}

double pc_groups_activation_bytes(const char *dtype) {
    return element_of(dtype).activation;
}

/* ---- the descent ---- */

/* Of the logarithm: a factor of 4. */
static const double most_deviation = 1.386;

static pc_code check_counts(const pc_fit *fit, int parameters, pc_error *error) {
    int64_t shapes = pc_fit_count_shapes(fit);
    if (shapes < INT64_C(2) * parameters)
        return pc_error_set(error, PC_ERROR_INPUT, "%lld shapes; expected at least %d", (long long)shapes,
                            2 * parameters);
    if (fit->processors < 1)
        return pc_error_set(error, PC_ERROR_INPUT, "%d processors; expected how many the GPU has",
                            (int)fit->processors);
    return PC_OK;
}

/* Rates and times that a descent may run away to: beyond any GPU's, or none at all. */
static bool is_sane(const pc_fit *fit) {
    for (int i = 0; i < fit->parameter_count; i++)
        if (!(fit->parameter[i] > 0.0 && isfinite(fit->parameter[i]))) return false;
    return fit->residual_deviation <= most_deviation;
}

/* `work` has room for count. */
static void keep(const pc_groups_problem *problem, const pc_robust_solution *solution, double *work, pc_fit *fit) {
    fit->parameter_count = problem->parameters;
    memcpy(fit->parameter, solution->parameter, sizeof fit->parameter);
    memcpy(fit->covariance, solution->covariance, sizeof fit->covariance);
    pc_fit_name_parameters(fit);
    for (int64_t i = 0; i < fit->count; i++) {
        double seconds = problem->seconds_at(problem->self, fit->parameter, fit->x + i * fit->dimensions, NULL);
        fit->residual[i] = log(fit->seconds[i] / seconds);
    }
    fit->residual_deviation = fmax(solution->deviation, pc_robust_deviation(fit->residual, fit->count, work));
}

/* ---- some of the points: a handful of parameters does not need thousands ---- */

enum { SOME = 1500 };

typedef struct sample {
    double *x, *seconds, *residual;
    int64_t count;
} sample;

static void sample_free(sample *s) {
    pc_free(s->x);
    pc_free(s->seconds);
    pc_free(s->residual);
}

/* As many between two that are taken everywhere; points are in order of their shapes. */
static pc_code sample_make(const pc_fit *fit, sample *s, pc_error *error) {
    size_t row = (size_t)fit->dimensions, count = (size_t)(fit->count < SOME ? fit->count : SOME);
    *s = (sample){pc_alloc(count * row, sizeof *s->x), pc_alloc(count, sizeof *s->seconds),
                  pc_alloc((size_t)fit->count, sizeof *s->residual), (int64_t)count};
    if (!s->x || !s->seconds || !s->residual) {
        sample_free(s);
        return pc_error_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        size_t from = i * (size_t)fit->count / count;
        memcpy(s->x + i * row, fit->x + from * row, row * sizeof *s->x);
        s->seconds[i] = fit->seconds[from];
    }
    return PC_OK;
}

/* The minimum over tiles has corners on which a descent can get caught: from two starts. */
static pc_code descend(const pc_groups_problem *problem, int dimensions, const sample *s, pc_robust_solution *best,
                       pc_error *error) {
    static const double factors[] = {1.0, 0.7};
    size_t starts = problem->is_near ? 1 : sizeof factors / sizeof *factors;
    pc_robust_problem robust = {.seconds_at = problem->seconds_at,
                                .self = problem->self,
                                .parameters = problem->parameters,
                                .dimensions = dimensions,
                                .x = s->x,
                                .seconds = s->seconds,
                                .count = s->count};
    best->loss = HUGE_VAL;
    for (size_t start = 0; start < starts; start++) {
        pc_robust_solution trial = {.residual = s->residual};
        for (int i = 0; i < problem->parameters; i++) trial.parameter[i] = problem->start[i] * factors[start];
        pc_code code = pc_robust_fit(&robust, &trial, error);
        if (code) return code;
        if (trial.loss < best->loss) *best = trial;
    }
    return PC_OK;
}

pc_code pc_groups_fit(pc_fit *fit, const pc_groups_problem *problem, pc_error *error) {
    sample s;
    pc_robust_solution best;
    pc_code code = check_counts(fit, problem->parameters, error);
    if (!code) code = sample_make(fit, &s, error);
    if (code) return code;
    code = descend(problem, fit->dimensions, &s, &best, error);
    if (!code) keep(problem, &best, s.residual, fit);
    sample_free(&s);
    if (!code && !is_sane(fit))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "times that no formula of this form is near to; expected those of one kernel");
    return code;
}
