/* Matrix products: what every kernel takes, and the longer of whole waves of tiles and the memory's traffic, as
 * models/cost/roofline.c has it. */
#include "calib/fit/fit_private.h"

#include <math.h>
#include <stddef.h>

/* Tiles of the output that libraries have kernels for; the best one is taken. */
static const double tile_forms[][2] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};

enum { SPLIT_MAX = 16 };

typedef struct tiling {
    double products, ramp; /* FLOPs of one processor: of all its tiles, and of filling them for each unit of the ramp */
    double parts_bytes;    /* of a split k: the parts, written as fp32 and read again to be added */
    double seconds;
} tiling;

static double tiling_seconds(const tiling *t, const double *parameter, double processors) {
    double rate = parameter[PC_ROOFLINE_FLOPS] / processors;
    return (t->products + t->ramp * parameter[PC_ROOFLINE_RAMP]) / rate +
           t->parts_bytes / parameter[PC_ROOFLINE_MEMORY];
}

static tiling tiling_of(const double *point, const double *tile, double tiles, double split, double processors) {
    double waves = ceil(tiles * split / processors), area = 2.0 * tile[0] * tile[1];
    double parts = split > 1.0 ? 2.0 * 4.0 * split * point[0] * point[1] * point[2] : 0.0;
    return (tiling){waves * area * point[3] / split, waves * area, parts, 0.0};
}

/* Over all tiles, and parts of k where they fill processors that would stand idle. */
static tiling best_tiling(const pc_roofline_shape *shape, const double *parameter, const double *point) {
    tiling best = {.seconds = HUGE_VAL};
    for (size_t i = 0; i < sizeof tile_forms / sizeof *tile_forms; i++) {
        const double *tile = tile_forms[i];
        double tiles = point[0] * ceil(point[1] / tile[0]) * ceil(point[2] / tile[1]);
        for (double split = 1.0; split <= SPLIT_MAX; split += 1.0) {
            if (split > 1.0 && tiles * split > shape->processors) break;
            tiling t = tiling_of(point, tile, tiles, split, shape->processors);
            t.seconds = tiling_seconds(&t, parameter, shape->processors);
            if (t.seconds < best.seconds) best = t;
        }
    }
    return best;
}

void pc_gemm_work(const pc_roofline_shape *shape, const double *point, double *flops, double *bytes) {
    *flops = shape->flops * point[0] * point[1] * point[2] * point[3];
    *bytes = point[0] *
             (shape->operand_bytes * point[3] * (point[1] + point[2]) + shape->output_bytes * point[1] * point[2]);
}

double pc_gemm_seconds(const void *self, const double *parameter, const double *point, double *gradient) {
    const pc_roofline_shape *shape = self;
    double flops, bytes, rate = parameter[PC_ROOFLINE_FLOPS] / shape->processors;
    tiling best = best_tiling(shape, parameter, point);
    pc_gemm_work(shape, point, &flops, &bytes);
    double memory_rate = parameter[PC_ROOFLINE_MEMORY], memory = bytes / memory_rate;
    bool is_compute = best.seconds > memory;
    if (gradient) {
        double products = best.products + best.ramp * parameter[PC_ROOFLINE_RAMP];
        double moved = is_compute ? best.parts_bytes : bytes;
        gradient[PC_ROOFLINE_FLOPS] = is_compute ? -products / rate / parameter[PC_ROOFLINE_FLOPS] : 0.0;
        gradient[PC_ROOFLINE_RAMP] = is_compute ? best.ramp / rate : 0.0;
        gradient[PC_ROOFLINE_MEMORY] = -moved / (memory_rate * memory_rate);
        gradient[PC_ROOFLINE_LAUNCH] = 1.0;
    }
    return parameter[PC_ROOFLINE_LAUNCH] + (is_compute ? best.seconds : memory);
}

static pc_parameter_label label(int i) {
    return pc_roofline_label(i, "k");
}

const pc_form pc_form_gemm = {.dimensions = 4,
                              .dimension = {"batch", "m", "n", "k"},
                              .has_processors = true,
                              .has_weights = true,
                              .label = label,
                              .fit = pc_roofline_fit,
                              .seconds = pc_roofline_seconds,
                              .left = pc_surface_at,
                              .has_parameters = pc_roofline_has_parameters,
                              .has_rates = pc_roofline_has_rates};
