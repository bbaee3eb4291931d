/* Matrix products: what every kernel takes, and the longer of whole waves of tiles and the memory's traffic, as
 * models/cost/roofline.c has it. */
#include "calib/fit/fit_private.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* Tiles of the output that libraries have kernels for, and 1 over their sides; the best one is taken. */
static const double tile_forms[][4] = {{256, 128, 1.0 / 256, 1.0 / 128}, {128, 256, 1.0 / 128, 1.0 / 256},
                                       {128, 128, 1.0 / 128, 1.0 / 128}, {128, 64, 1.0 / 128, 1.0 / 64},
                                       {64, 128, 1.0 / 64, 1.0 / 128},   {64, 64, 1.0 / 64, 1.0 / 64}};

enum { SPLIT_MAX = 16 };

typedef struct tiling {
    double products, ramp; /* FLOPs of one processor: of all its tiles, and of filling them for each unit of the ramp */
    double parts_bytes;    /* of a split k: the parts, written as fp32 and read again to be added */
    double seconds;
} tiling;

/* ceil() of what is not below zero, as instructions of any processor. */
static inline double up(double x) {
    if (!(x < 0x1p52)) return x;
    double whole = (double)(int64_t)x;
    return whole < x ? whole + 1.0 : whole;
}

/* `rate` is of a processor. */
static inline double tiling_seconds(const tiling *t, const double *parameter, double rate) {
    double seconds = (t->products + t->ramp * parameter[PC_ROOFLINE_RAMP]) / rate;
    return t->parts_bytes > 0.0 ? seconds + t->parts_bytes / parameter[PC_ROOFLINE_MEMORY] : seconds;
}

static inline tiling tiling_of(const double *point, const double *tile, double tiles, double split, double processors) {
    double waves = up(tiles * split / processors), area = 2.0 * tile[0] * tile[1];
    double parts = split > 1.0 ? 2.0 * 4.0 * split * point[0] * point[1] * point[2] : 0.0;
    return (tiling){waves * area * point[3] / split, waves * area, parts, 0.0};
}

/* Parts of k, where they fill processors that would stand idle. */
static void try_splits(const pc_roofline_shape *shape, const double *parameter, const double *point, const double *tile,
                       double tiles, double rate, tiling *best) {
    for (double split = 2.0; split <= SPLIT_MAX && tiles * split <= shape->processors; split += 1.0) {
        tiling t = tiling_of(point, tile, tiles, split, shape->processors);
        t.seconds = tiling_seconds(&t, parameter, rate);
        if (t.seconds < best->seconds) *best = t;
    }
}

/* Over all tiles. Of those that do not split k the one with the least work takes the least time: no rates are asked,
 * for divisions are what a prediction takes longest for. */
static tiling best_tiling(const pc_roofline_shape *shape, const double *parameter, const double *point) {
    tiling whole = {.seconds = HUGE_VAL}, best = {.seconds = HUGE_VAL};
    double least = HUGE_VAL, rate = parameter[PC_ROOFLINE_FLOPS] / shape->processors;
    for (size_t i = 0; i < sizeof tile_forms / sizeof *tile_forms; i++) {
        const double *tile = tile_forms[i];
        double tiles = point[0] * up(point[1] * tile[2]) * up(point[2] * tile[3]);
        double ramp = up(tiles / shape->processors) * (2.0 * tile[0] * tile[1]), products = ramp * point[3];
        double work = products + ramp * parameter[PC_ROOFLINE_RAMP];
        if (work < least) least = work, whole = (tiling){products, ramp, 0.0, 0.0};
        if (tiles * 2.0 <= shape->processors) try_splits(shape, parameter, point, tile, tiles, rate, &best);
    }
    whole.seconds = tiling_seconds(&whole, parameter, rate);
    return whole.seconds <= best.seconds ? whole : best;
}

void pc_gemm_work(const pc_roofline_shape *shape, const double *point, double *flops, double *bytes) {
    *flops = shape->flops * point[0] * point[1] * point[2] * point[3];
    *bytes = point[0] *
             (shape->operand_bytes * point[3] * (point[1] + point[2]) + shape->output_bytes * point[1] * point[2]);
}

double pc_gemm_compute_seconds(const pc_roofline_shape *shape, const double *parameter, const double *point,
                               double *gradient) {
    double rate = parameter[PC_ROOFLINE_FLOPS] / shape->processors, memory_rate = parameter[PC_ROOFLINE_MEMORY];
    tiling best = best_tiling(shape, parameter, point);
    if (gradient) {
        double products = best.products + best.ramp * parameter[PC_ROOFLINE_RAMP];
        gradient[PC_ROOFLINE_FLOPS] = -products / rate / parameter[PC_ROOFLINE_FLOPS];
        gradient[PC_ROOFLINE_RAMP] = best.ramp / rate;
        gradient[PC_ROOFLINE_MEMORY] = -best.parts_bytes / (memory_rate * memory_rate);
    }
    return best.seconds;
}

double pc_gemm_seconds(const void *self, const double *parameter, const double *point, double *gradient) {
    const pc_roofline_shape *shape = self;
    double flops, bytes, memory_rate = parameter[PC_ROOFLINE_MEMORY];
    double compute = pc_gemm_compute_seconds(shape, parameter, point, gradient);
    pc_gemm_work(shape, point, &flops, &bytes);
    double memory = bytes / memory_rate;
    bool is_compute = compute > memory;
    if (gradient && !is_compute) {
        gradient[PC_ROOFLINE_FLOPS] = gradient[PC_ROOFLINE_RAMP] = 0.0;
        gradient[PC_ROOFLINE_MEMORY] = -bytes / (memory_rate * memory_rate);
    }
    if (gradient) gradient[PC_ROOFLINE_LAUNCH] = 1.0;
    return parameter[PC_ROOFLINE_LAUNCH] + (is_compute ? compute : memory);
}

/* ---- the form: of a table with more parameters and a grid, otherwise a roofline with a surface ---- */

static bool has_table(const pc_fit *fit) {
    return fit->parameter_count == PC_TABLE_PARAMETERS;
}

static pc_parameter_label label(int i) {
    static const char *const names[][2] = {{"casts", "bytes"}, {"burst", ""}, {"settle", "s"}};
    if (i < PC_ROOFLINE_PARAMETERS) return pc_roofline_label(i, "k");
    bool is_known = i < PC_TABLE_PARAMETERS;
    pc_parameter_label label = {.unit = is_known ? names[i - PC_TABLE_CASTS][1] : ""};
    if (is_known) snprintf(label.name, sizeof label.name, "%s", names[i - PC_TABLE_CASTS][0]);
    return label;
}

static pc_code fit_gemm(pc_fit *fit, const double *near, pc_error *error) {
    pc_code code = pc_roofline_check_points(fit, error);
    if (code) return code;
    return pc_gemm_is_table(fit) ? pc_gemm_table_fit(fit, near, error) : pc_roofline_fit(fit, near, error);
}

/* Of a table the scatter is that of points left out, the parameters' errors among it. */
static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    (void)scatter; /* the same everywhere */
    pc_roofline_shape shape = pc_roofline_shape_of(&fit->key, fit->processors);
    if (!has_table(fit)) return pc_gemm_seconds(&shape, fit->parameter, point, gradient);
    return pc_gemm_table_seconds(&shape, fit->parameter, point, NULL);
}

static double left_at(const pc_fit *fit, const double *point, double *variance) {
    if (!has_table(fit)) return pc_surface_at(fit, point, variance);
    return pc_log_grid_ask(&fit->grid, point, variance);
}

static bool has_parameters(const pc_fit *fit) {
    return has_table(fit) || pc_roofline_has_parameters(fit);
}

/* To settle takes a table's chip some time. */
static bool has_rates(const pc_fit *fit) {
    return pc_roofline_has_rates(fit) && (!has_table(fit) || fit->parameter[PC_TABLE_SETTLE] > 0.0);
}

static double sustained_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    return has_table(fit) ? pc_gemm_table_sustained(fit, point) : seconds_at(fit, point, gradient, scatter);
}

const pc_form pc_form_gemm = {.dimensions = 4,
                              .dimension = {"batch", "m", "n", "k"},
                              .has_processors = true,
                              .has_weights = true,
                              .label = label,
                              .fit = fit_gemm,
                              .seconds = seconds_at,
                              .left = left_at,
                              .has_parameters = has_parameters,
                              .has_rates = has_rates,
                              .sustained_seconds = sustained_at};
