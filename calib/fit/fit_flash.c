/* Flash attention of one size of head, with grouped queries and windows: tables of thousands of shapes. A processor
 * takes a block of queries of one head at a time and walks along the keys that they see (Dao 2023, arXiv 2307.08691;
 * Shah et al. 2024, arXiv 2407.08608). Long blocks go first, so that the last ones fill the gaps: no whole waves.
 *
 * seconds = launch + products + queries + keys. The last two are what a library does to its inputs beside the kernel,
 * which hides its own traffic: TensorRT-LLM rotates queries and keys and writes both once more. */
#include "calib/fit/fit_private.h"

#include "engine/alloc.h"
#include "models/cost/roofline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH, QUERIES, KEYS, GROUP, DIMENSIONS };
enum { RATE, QUERY_MEMORY, KEY_MEMORY, LAUNCH, PARAMETERS };

/* Rows of a block, and what filling and draining it adds, in keys: the tables do not tell it from traffic. */
static const double block = 128.0, ramp = 128.0;

enum { SHAPES = 8 };

/* ---- what a shape needs ---- */

static bool ends_in(const char *text, const char *end) {
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* Keys that a block of queries walks along, on average and at most. A block on the diagonal is walked whole. */
typedef struct walk {
    double seen, longest;
} walk;

static walk walk_of(const pc_fit_key *key, double queries, double keys) {
    walk w = {keys, keys};
    if (key->is_causal) {
        double side = queries < keys ? queries : keys, row = ceil(side / block);
        w.seen = side * side * (row + 1.0) / (2.0 * row) / queries + (keys > queries ? keys - queries : 0.0);
    }
    double most = key->window > 0 ? (double)key->window + block : HUGE_VAL;
    w.seen = w.seen < most ? w.seen : most;
    w.longest = w.longest < most ? w.longest : most;
    return w;
}

double pc_fit_attention_window(double queries, double window) {
    double row = ceil(queries / block), most = ceil(window / block) + 1.0;
    return (pc_causal_blocks(row, most) * block + ramp) / (pc_causal_blocks(row, row) * block + ramp);
}

/* FLOPs of all processors, each as long busy as the one that is busy longest. */
static double products_of(const pc_fit_key *key, double processors, double flops, const double *point) {
    double rows = point[QUERIES] < block ? point[QUERIES] : block;
    double blocks = point[BATCH] * ceil(point[QUERIES] / block) / processors;
    walk w = walk_of(key, point[QUERIES], point[KEYS]);
    double walked = blocks * (w.seen + ramp), longest = w.longest + ramp;
    return flops * rows * (double)key->head_dim * (walked > longest ? walked : longest) * processors;
}

typedef struct work {
    double products, queries, keys; /* FLOPs, bytes, bytes */
} work;

static work work_of(const pc_fit_key *key, double processors, const double *point) {
    bool is_backward = ends_in(key->subject, "backward");
    double bytes = strncmp(key->dtype, "fp8", 3) == 0 ? 1.0 : 2.0, tensors = is_backward ? 4.0 : 2.0;
    double heads = bytes * tensors * point[BATCH] * (double)key->head_dim;
    return (work){products_of(key, processors, is_backward ? 10.0 : 4.0, point), heads * point[QUERIES],
                  heads * point[KEYS] / point[GROUP]};
}

static double seconds_of(const work *w, const double *parameter, double *gradient) {
    double products = w->products / parameter[RATE], queries = w->queries / parameter[QUERY_MEMORY],
           keys = w->keys / parameter[KEY_MEMORY];
    if (gradient) {
        gradient[RATE] = -products / parameter[RATE];
        gradient[QUERY_MEMORY] = -queries / parameter[QUERY_MEMORY];
        gradient[KEY_MEMORY] = -keys / parameter[KEY_MEMORY];
        gradient[LAUNCH] = 1.0;
    }
    return parameter[LAUNCH] + products + queries + keys;
}

static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    (void)scatter;
    work w = work_of(&fit->key, (double)fit->processors, point);
    return seconds_of(&w, fit->parameter, gradient);
}

static double left_at(const pc_fit *fit, const double *point, double *variance) {
    *variance = pc_log_grid_variance(&fit->grid, point);
    return pc_log_grid_at(&fit->grid, point);
}

/* ---- in training ---- */

/* A program that trains rotates in a kernel of its own, which the workload counts, and has no cache of keys. With a
 * window nothing else may be known: the whole time is then the copies'. */
static bool has_copies(const pc_fit *fit) {
    return strcmp(fit->key.library, "trtllm") == 0 && fit->key.window == 0;
}

static double sustained(const pc_fit *fit, const double *point) {
    if (!has_copies(fit)) return 1.0;
    work w = work_of(&fit->key, (double)fit->processors, point);
    return (fit->parameter[LAUNCH] + w.products / fit->parameter[RATE]) / seconds_of(&w, fit->parameter, NULL);
}

pc_estimate pc_fit_predict_attention_backward(const pc_fit *forward, const double *point) {
    work w = work_of(&forward->key, (double)forward->processors, point);
    double before = seconds_of(&w, forward->parameter, NULL), products = w.products / forward->parameter[RATE];
    pc_estimate estimate = pc_fit_predict(forward, point);
    double relative = estimate.standard_error / estimate.seconds;
    double seconds = estimate.seconds / before * (forward->parameter[LAUNCH] + PC_ATTENTION_BACKWARD * products);
    double doubt = sqrt(relative * relative + PC_ATTENTION_BACKWARD_ERROR * PC_ATTENTION_BACKWARD_ERROR);
    return (pc_estimate){seconds, seconds * doubt};
}

/* ---- the fit ---- */

/* The descent asks for the same points again and again; what they need does not depend on the parameters. */
static double seconds_at_work(const void *self, const double *parameter, const double *point, double *gradient) {
    (void)self;
    work w = {point[0], point[1], point[2]};
    return seconds_of(&w, parameter, gradient);
}

/* The best rates that were seen, and half of the shortest time. */
static void best_seen(const pc_fit *fit, const work *works, double *room, double *parameter) {
    double shortest = HUGE_VAL;
    for (int64_t i = 0; i < fit->count; i++) {
        room[i] = works[i].products / fit->seconds[i];
        if (fit->seconds[i] < shortest) shortest = fit->seconds[i];
    }
    parameter[RATE] = pc_fit_quantile(room, fit->count, 0.95);
    for (int64_t i = 0; i < fit->count; i++) room[i] = (works[i].queries + works[i].keys) / fit->seconds[i];
    parameter[QUERY_MEMORY] = parameter[KEY_MEMORY] = 3.0 * pc_fit_quantile(room, fit->count, 0.95);
    parameter[LAUNCH] = 0.5 * shortest;
}

static pc_code descend(pc_fit *fit, const work *works, const double *near, double *room, pc_error *error) {
    pc_robust_problem problem = {.seconds_at = seconds_at_work,
                                 .parameters = PARAMETERS,
                                 .dimensions = sizeof *works / sizeof(double),
                                 .x = &works->products,
                                 .seconds = fit->seconds,
                                 .count = fit->count};
    pc_robust_solution solution = {.residual = room};
    if (near)
        memcpy(solution.parameter, near, PARAMETERS * sizeof *near);
    else
        best_seen(fit, works, room, solution.parameter);
    pc_code code = pc_robust_fit(&problem, &solution, error);
    if (code) return code;
    fit->parameter_count = PARAMETERS;
    memcpy(fit->parameter, solution.parameter, sizeof fit->parameter);
    memcpy(fit->covariance, solution.covariance, sizeof fit->covariance);
    fit->residual_deviation = solution.deviation;
    pc_fit_name_parameters(fit);
    return PC_OK;
}

/* Fewer than some hundred shapes say nothing of nodes. What is left then is that of shapes not seen. */
static pc_code take_grid(pc_fit *fit, double *room, pc_error *error) {
    enum { FOR_A_GRID = 200 };
    static const pc_grid_plan plan = {.axes = 2, .axis = {BATCH, QUERIES}, .nodes = {10, 8}};
    if (fit->count < FOR_A_GRID) return PC_OK;
    pc_code code = pc_log_grid_fit(&plan, fit->x, DIMENSIONS, fit->residual, fit->count, room, &fit->grid, error);
    if (code || fit->grid.axes == 0) return code;
    for (int64_t i = 0; i < fit->count; i++) fit->residual[i] -= pc_log_grid_at(&fit->grid, fit->x + i * DIMENSIONS);
    fit->residual_deviation = pc_robust_deviation(room, fit->count, room + fit->count);
    return PC_OK;
}

static bool leads_nowhere(const pc_fit *fit) {
    for (int i = 0; i < PARAMETERS; i++)
        if (!(isfinite(fit->parameter[i]) && fit->parameter[i] > 0.0)) return true;
    return !isfinite(fit->residual_deviation) || fit->residual_deviation > 3.0;
}

static pc_code fit_works(pc_fit *fit, const double *near, work *works, double *room, pc_error *error) {
    for (int64_t i = 0; i < fit->count; i++)
        works[i] = work_of(&fit->key, (double)fit->processors, fit->x + i * DIMENSIONS);
    pc_code code = descend(fit, works, near, room, error);
    if (code) return code;
    if (leads_nowhere(fit))
        return pc_error_set(error, PC_ERROR_INPUT, "%s: times do not follow their shapes; expected those of one kernel",
                            fit->key.subject);
    for (int64_t i = 0; i < fit->count; i++)
        fit->residual[i] = log(fit->seconds[i] / seconds_of(&works[i], fit->parameter, NULL));
    return take_grid(fit, room, error);
}

static pc_code fit_flash(pc_fit *fit, const double *near, pc_error *error) {
    int64_t shapes = pc_fit_count_shapes(fit);
    if (shapes < SHAPES)
        return pc_error_set(error, PC_ERROR_INPUT, "%lld shapes; expected at least %d", (long long)shapes, SHAPES);
    if (fit->processors < 1 || fit->key.head_dim < 1)
        return pc_error_set(error, PC_ERROR_INPUT, "%d processors, heads of %d; expected both above zero",
                            (int)fit->processors, (int)fit->key.head_dim);
    work *works = pc_alloc((size_t)fit->count, sizeof *works);
    double *room = pc_alloc(2 * (size_t)fit->count, sizeof *room);
    pc_code code = works && room ? PC_OK : pc_error_no_memory(error);
    if (!code) code = fit_works(fit, near, works, room, error);
    pc_free(works);
    pc_free(room);
    return code;
}

/* ---- the form ---- */

static pc_parameter_label label(int i) {
    static const char *const names[][2] = {
        {"rate", "FLOP/s"}, {"queries", "bytes/s"}, {"keys", "bytes/s"}, {"launch", "s"}};
    pc_parameter_label made = {.unit = names[i][1]};
    snprintf(made.name, sizeof made.name, "%s", names[i][0]);
    return made;
}

static bool has_parameters(const pc_fit *fit) {
    return fit->parameter_count == PARAMETERS && fit->processors > 0 && fit->key.head_dim > 0;
}

static bool has_rates(const pc_fit *fit) {
    return fit->parameter[RATE] > 0.0 && fit->parameter[QUERY_MEMORY] > 0.0 && fit->parameter[KEY_MEMORY] > 0.0 &&
           pc_fit_has_none_below_zero(fit);
}

const pc_form pc_form_flash = {.dimensions = DIMENSIONS,
                               .dimension = {"batch", "m", "n", "group"},
                               .has_processors = true,
                               .label = label,
                               .fit = fit_flash,
                               .seconds = seconds_at,
                               .left = left_at,
                               .has_parameters = has_parameters,
                               .has_rates = has_rates,
                               .sustained = sustained};
