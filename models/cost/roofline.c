#include "models/cost/roofline.h"

#include "engine/numbers.h"

#include <stddef.h>
#include <string.h>

/* ---- matrix products ---- */

/* How a kernel cuts the output: tiles of m x n, each over 1/split of k. */
typedef struct tiling {
    int64_t m, n, split;
} tiling;

static int64_t tiles_of(const pc_operation *gemm, const tiling *tile) {
    return gemm->batch * pc_divide_up(gemm->m, tile->m) * pc_divide_up(gemm->n, tile->n);
}

static double memory_s(const pc_gpu *gpu, double bytes) {
    return bytes / (gpu->memory_bytes_per_s * gpu->memory_efficiency);
}

/* Rows that are gathered and scattered go slower than numbers that lie in a row. */
static double slower(const pc_gpu *gpu, const pc_operation *operation) {
    bool permutes = operation->function && strcmp(operation->function, "permute") == 0;
    return permutes && gpu->permute_efficiency > 0.0 ? gpu->memory_efficiency / gpu->permute_efficiency : 1.0;
}

/* The datasheet's rate of a format. A processor without units for it would compute in 16 bits. */
static double matrix_rate(const pc_gpu *gpu, pc_product_format format) {
    double rate = !pc_product_format_is_low(format) ? gpu->matrix_flops_per_s
                  : format == PC_PRODUCT_NVFP4      ? gpu->matrix_fp4_flops_per_s
                                                    : gpu->matrix_fp8_flops_per_s;
    return rate > 0.0 ? rate : gpu->matrix_flops_per_s;
}

static double efficiency_of(const pc_gpu *gpu, pc_product_format format) {
    if (format == PC_PRODUCT_NVFP4 && gpu->gemm_efficiency_fp4 > 0.0) return gpu->gemm_efficiency_fp4;
    bool is_own = pc_product_format_is_low(format) && gpu->gemm_efficiency_fp8 > 0.0;
    return is_own ? gpu->gemm_efficiency_fp8 : gpu->gemm_efficiency;
}

/* What one processor's matrix units do, of a tile without end. */
static double processor_flops_per_s(const pc_gpu *gpu, pc_product_format format) {
    return matrix_rate(gpu, format) * efficiency_of(gpu, format) / (double)gpu->processors;
}

/* Whole waves of tiles, one a processor at a time. What a tile takes beside its products, filling and draining, is the
 * same for small ones: they fill the last wave better and pay more often; it takes as long in 8 bits, for the output is
 * written in 16. The parts of a split k are written as fp32
 * and read again to be added. */
static double waves_s(const pc_gpu *gpu, const pc_operation *gemm, const tiling *tile, int64_t tiles) {
    double waves = (double)pc_divide_up(tiles * tile->split, gpu->processors);
    double faster = matrix_rate(gpu, gemm->format) / gpu->matrix_flops_per_s; /* 1.0 in 16 bits */
    double ramp = 2.0 * (double)gpu->tile_m * (double)gpu->tile_n * gpu->gemm_ramp_k * faster;
    double products = 2.0 * (double)tile->m * (double)tile->n * (double)gemm->k / (double)tile->split;
    double seconds = waves * (products + ramp) / processor_flops_per_s(gpu, gemm->format);
    if (tile->split == 1) return seconds;
    double output = (double)gemm->batch * (double)gemm->m * (double)gemm->n;
    return seconds + memory_s(gpu, 2.0 * 4.0 * (double)tile->split * output);
}

/* The best way to split k: only where that fills processors that would stand idle in the one wave. */
static double best_split_s(const pc_gpu *gpu, const pc_operation *gemm, tiling tile) {
    enum { SPLIT_MAX = 16 };
    int64_t tiles = tiles_of(gemm, &tile);
    tile.split = 1;
    double best = waves_s(gpu, gemm, &tile, tiles);
    for (tile.split = 2; tile.split <= SPLIT_MAX && tiles <= gpu->processors / tile.split; tile.split++) {
        double seconds = waves_s(gpu, gemm, &tile, tiles);
        if (seconds < best) best = seconds;
    }
    return best;
}

/* A library has kernels of many tiles and takes the one that suits: here the whole tile, either way round, halves and
 * a quarter of it. For a given tile the time never falls with m, n or k, and so neither does the least of them. */
static double gemm_compute_s(const pc_gpu *gpu, const pc_operation *gemm) {
    int64_t m = gpu->tile_m, n = gpu->tile_n, half_m = (m + 1) / 2, half_n = (n + 1) / 2;
    const tiling tiles[] = {{m, n, 1},      {n, m, 1},      {half_m, n, 1},      {n, half_m, 1},
                            {m, half_n, 1}, {half_n, m, 1}, {half_m, half_n, 1}, {half_n, half_m, 1}};
    double best = best_split_s(gpu, gemm, tiles[0]);
    for (size_t i = 1; i < sizeof tiles / sizeof *tiles; i++) {
        double seconds = best_split_s(gpu, gemm, tiles[i]);
        if (seconds < best) best = seconds;
    }
    return gemm->splits_accumulator && gpu->split_accumulator > 0.0 ? best * gpu->split_accumulator : best;
}

/* ---- flash attention ---- */

double pc_causal_blocks(double row, double most) {
    return most < row ? (most * (most + 1.0) / 2.0 + (row - most) * most) / row : (row + 1.0) / 2.0;
}

/* Of n keys for each query a causal mask leaves half (operation.h, also behind other tokens), and each block of queries
 * computes half a block too many, where m of them fill `row` blocks. */
static double causal_part(const pc_operation *attention, double row) {
    if (attention->m == attention->n) return (row + 1.0) / (2.0 * row);
    double keys = (double)attention->n, part = (keys + (double)attention->m / row) / (2.0 * keys);
    return part < 1.0 ? part : 1.0;
}

/* Of what is counted, the part that is computed. A window of w keys, somewhere in a block's rows, reaches over as many
 * blocks as it fills, and one more. */
static double computed_part(const pc_gpu *gpu, const pc_operation *attention) {
    double row = (double)pc_divide_up(attention->m, gpu->tile_m);
    if (attention->is_below) return 0.5;
    if (attention->window == 0) return attention->is_causal ? causal_part(attention, row) : 1.0;
    double most = (double)pc_divide_up(attention->window, gpu->tile_m) + 1.0;
    double keys = pc_causal_blocks(row, most) * (double)gpu->tile_m, side = (double)attention->n;
    return (keys < side ? keys : side) / (double)attention->window;
}

/* A processor takes a block of tile_m queries of one head at a time. With a causal mask the block on the diagonal is
 * computed whole and those behind it are skipped: of c blocks in a row, (c + 1) / 2 on average. A block below the
 * diagonal does half of what it counts. */
static double attention_compute_s(const pc_gpu *gpu, const pc_operation *attention) {
    int64_t row = pc_divide_up(attention->m, gpu->tile_m);
    int64_t blocks = attention->batch * row;
    double processors = (double)gpu->processors;
    double waste = (double)pc_divide_up(blocks, gpu->processors) * processors / (double)blocks;
    double rate = matrix_rate(gpu, attention->format) * gpu->attention_efficiency;
    double slower = attention->role == PC_GEMM_FORWARD ? 1.0 : gpu->attention_backward;
    return (double)attention->flops * computed_part(gpu, attention) * waste * slower / rate;
}

/* ---- all kernels ---- */

/* Transformer Engine's multi-stream products (transformer_engine/common/util/multi_stream.cpp, num_streams). */
enum { GROUPED_STREAMS = 4 };

static double compute_s(const pc_gpu *gpu, const pc_operation *operation) {
    switch (operation->kind) {
    case PC_OPERATION_GEMM:
    case PC_OPERATION_GROUPED_GEMM: /* tiles of all groups share the waves, and each group's last ones are cut off */
        return gemm_compute_s(gpu, operation);
    case PC_OPERATION_ATTENTION:
        return attention_compute_s(gpu, operation);
    default:
        return (double)operation->flops / gpu->vector_flops_per_s;
    }
}

/* Norms and what is elementwise: where a program does not fuse them, each step of theirs reads and writes memory. Sums
 * of weights' gradients are one kernel anyway, and so is what a recipe of few bits adds. */
static double bytes_of(const pc_gpu *gpu, const pc_operation *operation) {
    bool is_sum = operation->role == PC_GEMM_WEIGHT_GRADIENT || pc_product_format_is_low(operation->format);
    bool is_between = operation->kind == PC_OPERATION_NORM || (operation->kind == PC_OPERATION_ELEMENTWISE && !is_sum);
    return (double)operation->bytes * (is_between && gpu->unfused > 0.0 ? gpu->unfused : 1.0);
}

/* Kernels that follow each other: products of a group's members go over GROUPED_STREAMS at once. */
static double gaps(const pc_operation *operation) {
    if (operation->kind != PC_OPERATION_GROUPED_GEMM) return (double)operation->launches;
    return (double)pc_divide_up(operation->launches, GROUPED_STREAMS);
}

static pc_estimate roofline_kernel(const void *self, const pc_operation *operation) {
    const pc_gpu *gpu = self;
    double compute = compute_s(gpu, operation);
    double memory = memory_s(gpu, bytes_of(gpu, operation)) * slower(gpu, operation);
    double seconds = gaps(operation) * gpu->kernel_s + (compute > memory ? compute : memory);
    return (pc_estimate){seconds, seconds * gpu->estimated_error};
}

pc_cost_model pc_roofline(const pc_gpu *gpu) {
    return (pc_cost_model){gpu, roofline_kernel, gpu->launch_s};
}
