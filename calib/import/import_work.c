/* What a kernel has to do: types, FLOPs and bytes, and what a datasheet says of it. */
#include "calib/import/import_private.h"

#include <math.h>
#include <string.h>

/* Weights of 4 or 8 bits that are multiplied in 16, and what inference alone has, keep types of their own, which no
 * training asks for. Of "sq" (SmoothQuant, int8) and int8 no datasheet of the library says a rate. */
static const pc_import_dtype dtypes[] = {
    {"", "bf16", 2.0, PC_RATE_16},
    {"bf16", "bf16", 2.0, PC_RATE_16},
    {"bfloat16", "bf16", 2.0, PC_RATE_16},
    {"fp16", "fp16", 2.0, PC_RATE_16},
    {"float16", "fp16", 2.0, PC_RATE_16},
    {"half", "fp16", 2.0, PC_RATE_16},
    {"fp32", "fp32", 4.0, PC_RATE_UNKNOWN},
    {"float32", "fp32", 4.0, PC_RATE_UNKNOWN},
    {"float", "fp32", 4.0, PC_RATE_UNKNOWN},
    {"fp8", "fp8", 1.0, PC_RATE_8},
    {"fp8_block", "fp8_block", 1.0, PC_RATE_8},
    {"mxfp8", "mxfp8", 1.0, PC_RATE_8},
    {"nvfp4", "nvfp4", 0.5, PC_RATE_4},
    {"int8", "int8", 1.0, PC_RATE_UNKNOWN},
    {"sq", "sq", 1.0, PC_RATE_UNKNOWN},
    {"int8_wo", "int8_wo", 2.0, PC_RATE_16},
    {"int4_wo", "int4_wo", 2.0, PC_RATE_16},
    {"w4a16_mxfp4", "w4a16_mxfp4", 2.0, PC_RATE_16},
    {"w4a8_mxfp4_mxfp8", "w4a8_mxfp4", 1.0, PC_RATE_8},
};

const pc_import_dtype *pc_import_dtype_of(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (pc_import_same(name, dtypes[i].table)) return &dtypes[i];
    return NULL;
}

/* Of a type's name in profiles: the first of that name has its numbers too. */
static const pc_import_dtype *known(const char *profile) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(profile, dtypes[i].profile) == 0) return &dtypes[i];
    return &dtypes[0];
}

/* ---- FLOPs and bytes ---- */

typedef struct work {
    double flops, bytes;
} work;

/* As in models/workload/operation.h; what is of 4 or 8 bits goes in so and comes out in 16. */
static work work_of_product(const pc_kernel_measurement *x) {
    double b = (double)x->batch, m = (double)x->m, n = (double)x->n, k = (double)x->k, in = known(x->dtype)->bytes;
    bool is_weight = x->role == PC_GEMM_WEIGHT_GRADIENT;
    double out = x->out_dtype[0] ? known(x->out_dtype)->bytes : is_weight ? 4.0 : fmax(in, 2.0);
    return (work){2.0 * b * m * n * k, b * (in * k * (m + n) + out * (x->accumulates ? 2.0 : 1.0) * m * n)};
}

/* Causality is not counted as a saving (operation.h); keys and values of fewer heads are read once each. */
static work work_of_attention(const pc_kernel_measurement *x, double v) {
    double b = (double)x->batch, m = (double)x->m, n = (double)x->n, k = (double)x->k, in = known(x->dtype)->bytes;
    bool is_forward = x->role == PC_GEMM_FORWARD;
    double shared = (double)x->kv_heads / (double)x->heads;
    double flops = 2.0 * b * m * n * (k + v) * (is_forward ? 1.0 : 2.5);
    return (work){flops, b * in * (k + v) * (m + n * shared) * (is_forward ? 1.0 : 2.0)};
}

/* Of one rank, if tokens go evenly; three matrices where the layer has a gate. */
static work work_of_experts(const pc_kernel_measurement *x) {
    double ranks = (double)x->moe_tp * (double)x->moe_ep, hidden = (double)x->k, inter = (double)x->n;
    double matrices = pc_import_contains(x->variant, "nongated") ? 2.0 : 3.0, rows = (double)x->m * (double)x->topk;
    return (work){2.0 * rows * hidden * inter * matrices / ranks,
                  (double)x->experts * hidden * inter * matrices * known(x->dtype)->bytes / ranks};
}

static bool is_of_experts(const pc_kernel_measurement *kernel) {
    return strcmp(kernel->kernel, "moe_layer") == 0;
}

pc_code pc_import_count_work(const pc_import_row *row, pc_kernel_measurement *kernel, int64_t v_head_dim,
                             pc_error *error) {
    work x = is_of_experts(kernel)                    ? work_of_experts(kernel)
             : kernel->kind == PC_OPERATION_ATTENTION ? work_of_attention(kernel, (double)v_head_dim)
                                                      : work_of_product(kernel);
    if (!(x.flops < 0x1p62 && x.bytes < 0x1p62))
        return pc_import_refuse(&row->import->text, error, "a shape of %g FLOPs; expected less than 2^62", x.flops);
    kernel->flops = (int64_t)x.flops;
    kernel->bytes = (int64_t)x.bytes;
    return PC_OK;
}

/* ---- what can be ---- */

/* The part of all pairs of query and key that the mask leaves: a half of a causal square; of a window's w of n keys w
 * less the triangle that the first queries lack. */
static double share_of_pairs(const pc_kernel_measurement *x) {
    double n = (double)x->n, w = (double)x->window;
    if (!x->is_causal || x->m != x->n) return 1.0;
    return w > 0.0 && w < n ? w / n * (1.0 - 0.5 * w / n) : 0.5;
}

static double peak_of(const pc_gpu *gpu, pc_import_rate rate) {
    return rate == PC_RATE_16  ? gpu->matrix_flops_per_s
           : rate == PC_RATE_8 ? gpu->matrix_fp8_flops_per_s
           : rate == PC_RATE_4 ? gpu->matrix_fp4_flops_per_s
                               : 0.0;
}

bool pc_import_is_too_fast(const pc_import *import, const pc_kernel_measurement *kernel) {
    const pc_gpu *gpu = import->options->gpu;
    bool is_attention = kernel->kind == PC_OPERATION_ATTENTION;
    bool is_known = is_attention || (kernel->kind == PC_OPERATION_GEMM && !is_of_experts(kernel));
    if (!gpu || !is_known) return false;
    double peak = peak_of(gpu, known(kernel->dtype)->rate);
    double flops = (double)kernel->flops * (is_attention ? share_of_pairs(kernel) : 1.0);
    return peak > 0.0 && flops > peak * kernel->seconds.median;
}
