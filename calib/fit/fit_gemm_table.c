/* Matrix products of tables that others measured with a library: hundreds of shapes, each a few runs after a pause.
 *
 * To the roofline of fit_gemm.c come two things that tables show. Products of 8 and 4 bits are measured with the cast
 * of their activations: `casts` bytes an element of m x k. And the clock: a kernel of a fraction of a millisecond runs
 * at the boost clock, one that draws full power for `settle` or longer at the lower clock that the power limit allows.
 * So products that would take c seconds at the sustained rate take c * (1 - q / (1 + c / settle)), q = burst / (1 +
 * burst).
 *
 * How much faster a burst is, the longest products of these tables say: those of 8 ms and more against those of 0.3 to
 * 2 ms. In bf16 TensorRT-LLM's run at 0.88 to 0.94 of the rate on H100, H200, B200, GB200, B300 and GB300: a tenth. In
 * fp8 casts hide it there; SGLang's say 0.16 to 0.43 on these six, in the middle 0.28. With scales of blocks and in
 * nvfp4 they say about a tenth again. So it is known beforehand, and never over a half. What this leaves is smoothed
 * onto a grid over m, n and k (log_grid.h). */
#include "calib/fit/fit_private.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

enum { TABLE_SHAPES = 300 };

static const double burst_most = 0.5, usual_launch_s = 4e-6;

bool pc_gemm_is_table(const pc_fit *fit) {
    return fit->key.library[0] != '\0' && pc_fit_count_shapes(fit) >= TABLE_SHAPES;
}

/* ---- the time ---- */

static double burst_of(const double *parameter) {
    return parameter[PC_TABLE_BURST] < burst_most ? parameter[PC_TABLE_BURST] : burst_most;
}

/* What a burst takes of products that take `c` seconds at the sustained clock; by c, burst and settle. */
static double in_burst(const double *parameter, double c, double by[3]) {
    double burst = burst_of(parameter), q = burst / (1.0 + burst), settle = parameter[PC_TABLE_SETTLE];
    double length = 1.0 + c / settle, part = q / length;
    by[0] = 1.0 - part / length;
    by[1] = burst < burst_most ? -c / length / ((1.0 + burst) * (1.0 + burst)) : 0.0;
    by[2] = -part / length * (c / settle) * (c / settle);
    return c * (1.0 - part);
}

/* The same alone. */
static double in_burst_s(const double *parameter, double c) {
    double burst = burst_of(parameter), settle = parameter[PC_TABLE_SETTLE];
    return c * (1.0 - burst * settle / ((1.0 + burst) * (settle + c)));
}

/* Of products and memory, whichever is longer; products as they are in a burst, or sustained. */
static double seconds_of(const pc_roofline_shape *shape, const double *parameter, const double *point, bool is_burst) {
    double flops, bytes, a_byte = 1.0 / parameter[PC_ROOFLINE_MEMORY];
    double c = pc_gemm_compute_seconds(shape, parameter, point, NULL),
           compute = is_burst ? in_burst_s(parameter, c) : c;
    pc_gemm_work(shape, point, &flops, &bytes);
    double casts = point[0] * point[1] * point[3] * parameter[PC_TABLE_CASTS] * a_byte, memory = bytes * a_byte;
    return parameter[PC_ROOFLINE_LAUNCH] + casts + (compute > memory ? compute : memory);
}

static void take_gradient(const pc_roofline_shape *shape, const double *parameter, const double *point,
                          double *gradient) {
    double flops, bytes, by[3], memory_rate = parameter[PC_ROOFLINE_MEMORY];
    double compute = in_burst(parameter, pc_gemm_compute_seconds(shape, parameter, point, gradient), by);
    double cast = point[0] * point[1] * point[3];
    pc_gemm_work(shape, point, &flops, &bytes);
    bool is_compute = compute > bytes / memory_rate;
    for (int i = PC_ROOFLINE_FLOPS; i <= PC_ROOFLINE_MEMORY; i++) gradient[i] = is_compute ? gradient[i] * by[0] : 0.0;
    if (!is_compute) gradient[PC_ROOFLINE_MEMORY] = -bytes / (memory_rate * memory_rate);
    gradient[PC_ROOFLINE_MEMORY] -= cast * parameter[PC_TABLE_CASTS] / (memory_rate * memory_rate);
    gradient[PC_ROOFLINE_LAUNCH] = 1.0;
    gradient[PC_TABLE_CASTS] = cast / memory_rate;
    gradient[PC_TABLE_BURST] = is_compute ? by[1] : 0.0;
    gradient[PC_TABLE_SETTLE] = is_compute ? by[2] : 0.0;
}

double pc_gemm_table_seconds(const void *shape, const double *parameter, const double *point, double *gradient) {
    if (gradient) take_gradient(shape, parameter, point, gradient);
    return seconds_of(shape, parameter, point, true);
}

static bool is_narrow(const char *dtype) {
    return strncmp(dtype, "fp8", 3) == 0 || strncmp(dtype, "nvfp4", 5) == 0 || strncmp(dtype, "mxfp", 4) == 0;
}

/* A site that measured as training runs kernels says so at its name's end, and what it measured is sustained. */
static bool is_training(const char *site) {
    static const char end[] = "training";
    size_t size = strlen(site), end_size = sizeof end - 1;
    return size >= end_size && memcmp(site + size - end_size, end, end_size) == 0;
}

/* In training casts are kernels of their own, which a recipe of low precision counts: the product alone is asked for,
 * and what is above a usual launch was theirs. */
double pc_gemm_table_sustained(const pc_fit *fit, const double *point) {
    pc_roofline_shape shape = pc_roofline_shape_of(&fit->key, fit->processors);
    double alone[PC_TABLE_PARAMETERS];
    memcpy(alone, fit->parameter, sizeof alone);
    if (is_narrow(fit->key.dtype)) {
        alone[PC_TABLE_CASTS] = 0.0;
        if (alone[PC_ROOFLINE_LAUNCH] > usual_launch_s) alone[PC_ROOFLINE_LAUNCH] = usual_launch_s;
    }
    return seconds_of(&shape, alone, point, is_training(fit->key.site));
}

/* ---- the fit ---- */

static double usual_burst_of(const char *dtype) {
    return strcmp(dtype, "fp8") == 0 ? 0.28 : 0.1;
}

/* What is known before a table is seen. Large products hardly show the memory, which of GPUs since 2020 moves 19 to 54
 * GB/s a processor (H100: 3.35 TB/s, 132). Deviations of burst, memory and settle are small because a formula's misfits
 * are alike in neighbours: a thousand shapes say far less than a thousand independent ones would. */
static void start_table(const pc_fit *fit, double *start, double *deviation) {
    static const double usual_settle = 5e-3, memory_a_processor = 3e10, usual = 3.0;
    pc_roofline_shape shape = pc_roofline_shape_of(&fit->key, fit->processors);
    pc_roofline_best_seen(fit, &shape, start);
    double usual_burst = usual_burst_of(fit->key.dtype);
    start[PC_ROOFLINE_FLOPS] /= 1.0 + usual_burst;
    start[PC_ROOFLINE_MEMORY] = memory_a_processor * (double)fit->processors;
    start[PC_ROOFLINE_LAUNCH] = start[PC_ROOFLINE_LAUNCH] < usual_launch_s ? start[PC_ROOFLINE_LAUNCH] : usual_launch_s;
    start[PC_TABLE_CASTS] = is_narrow(fit->key.dtype) ? 2.0 : 0.1;
    start[PC_TABLE_BURST] = usual_burst;
    start[PC_TABLE_SETTLE] = usual_settle;
    for (int i = 0; i < PC_TABLE_PARAMETERS; i++) deviation[i] = usual;
    deviation[PC_ROOFLINE_MEMORY] = 0.1;
    deviation[PC_TABLE_BURST] = 0.05;
    deviation[PC_TABLE_SETTLE] = 0.3;
}

/* Residuals smoothed, and what is left of points that the grid has not seen: that is the scatter of one measurement. */
static pc_code smooth(pc_fit *fit, pc_error *error) {
    static const pc_grid_plan plan = {.axes = 3, .axis = {1, 2, 3}, .nodes = {6, 6, 6}};
    double *work = pc_alloc(2 * (size_t)fit->count, sizeof *work), *left = work;
    if (!work) return pc_error_no_memory(error);
    pc_code code = pc_log_grid_fit(&plan, fit->x, fit->dimensions, fit->residual, fit->count, left, &fit->grid, error);
    if (!code) fit->residual_deviation = pc_robust_deviation(left, fit->count, work + fit->count);
    for (int64_t i = 0; i < fit->count && !code; i++)
        fit->residual[i] -= pc_log_grid_at(&fit->grid, fit->x + i * fit->dimensions);
    pc_free(work);
    return code;
}

pc_code pc_gemm_table_fit(pc_fit *fit, const double *near, pc_error *error) {
    double start[PC_TABLE_PARAMETERS], deviation[PC_TABLE_PARAMETERS];
    pc_roofline_shape shape = pc_roofline_shape_of(&fit->key, fit->processors);
    start_table(fit, start, deviation);
    pc_robust_problem problem = {.seconds_at = pc_gemm_table_seconds,
                                 .self = &shape,
                                 .parameters = PC_TABLE_PARAMETERS,
                                 .dimensions = fit->dimensions,
                                 .x = fit->x,
                                 .seconds = fit->seconds,
                                 .count = fit->count,
                                 .prior = start,
                                 .prior_deviation = deviation};
    pc_robust_solution solution = {.residual = fit->residual};
    memcpy(solution.parameter, near ? near : start, sizeof start);
    pc_code code = pc_robust_fit(&problem, &solution, error);
    if (code) return code;
    pc_roofline_keep(&solution, PC_TABLE_PARAMETERS, pc_gemm_table_seconds, fit);
    pc_free(fit->weight);
    fit->weight = NULL;
    return smooth(fit, error);
}
