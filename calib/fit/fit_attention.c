/* Flash attention: a processor takes a block of rows of one head at a time and walks along the columns that they see;
 * rows are queries in the forward pass, keys in the backward one (Dao 2023). */
#include "calib/fit/fit_private.h"

#include <math.h>

static const double block_rows = 128.0;

/* x: heads of all sequences, queries, keys, the head's dimension. */
typedef struct walk {
    double blocks, rows;  /* of a block: rows, the last one of a head as long as the others */
    double seen, longest; /* columns: of a block on average, of the longest */
} walk;

/* Pairs of a query and a key that are computed: query i sees the keys up to i + keys - queries, and a block on the
 * diagonal is computed whole. */
static double pairs_seen(double queries, double keys) {
    double side = queries < keys ? queries : keys, row = ceil(side / block_rows);
    double square = side * side * (row + 1.0) / (2.0 * row);
    return square + (keys > queries ? (keys - queries) * queries : 0.0);
}

static walk walk_of(const pc_roofline_shape *shape, const double *point) {
    double rows = shape->is_backward ? point[2] : point[1], columns = shape->is_backward ? point[1] : point[2];
    double a_head = ceil(rows / block_rows);
    walk w = {point[0] * a_head, rows < block_rows ? rows : block_rows, columns, columns};
    if (!shape->is_causal) return w;
    w.seen = pairs_seen(point[1], point[2]) / rows;
    return w;
}

void pc_attention_work(const pc_roofline_shape *shape, const double *point, double *flops, double *bytes) {
    walk w = walk_of(shape, point);
    double tensors = shape->is_backward ? 4.0 : 2.0; /* query, output and their gradients; key, value and theirs */
    *flops = shape->flops * w.blocks * w.rows * w.seen * point[3];
    *bytes = shape->operand_bytes * tensors * point[0] * point[3] * (point[1] + point[2]);
}

double pc_attention_seconds(const void *self, const double *parameter, const double *point, double *gradient) {
    const pc_roofline_shape *shape = self;
    walk w = walk_of(shape, point);
    double flops, bytes, rate = parameter[PC_ROOFLINE_FLOPS] / shape->processors;
    pc_attention_work(shape, point, &flops, &bytes);
    double waves = ceil(w.blocks / shape->processors), column = shape->flops * w.rows * point[3];
    double columns = waves * w.seen > w.longest ? waves * w.seen : w.longest;
    double products = column * (columns + waves * parameter[PC_ROOFLINE_RAMP]);
    double memory_rate = parameter[PC_ROOFLINE_MEMORY], memory = bytes / memory_rate;
    bool is_compute = products / rate > memory;
    if (gradient) {
        gradient[PC_ROOFLINE_FLOPS] = is_compute ? -products / rate / parameter[PC_ROOFLINE_FLOPS] : 0.0;
        gradient[PC_ROOFLINE_RAMP] = is_compute ? column * waves / rate : 0.0;
        gradient[PC_ROOFLINE_MEMORY] = is_compute ? 0.0 : -memory / memory_rate;
        gradient[PC_ROOFLINE_LAUNCH] = 1.0;
    }
    return parameter[PC_ROOFLINE_LAUNCH] + (is_compute ? products / rate : memory);
}

static pc_parameter_label label(int i) {
    return pc_roofline_label(i, "keys");
}

const pc_form pc_form_attention = {.dimensions = 4,
                                   .dimension = {"batch", "m", "n", "k"},
                                   .has_processors = true,
                                   .has_weights = true,
                                   .label = label,
                                   .fit = pc_roofline_fit,
                                   .seconds = pc_roofline_seconds,
                                   .left = pc_surface_at,
                                   .has_parameters = pc_roofline_has_parameters,
                                   .has_rates = pc_roofline_has_rates};
