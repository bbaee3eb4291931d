#include "kernels/gemm_low.h"

#include "engine/numbers.h"

#include <assert.h>
#include <math.h>

static const char *const role_names[] = {"gemm_forward", "gemm_input_gradient", "gemm_weight_gradient"};

const char *pc_low_name(pc_low_scaling scaling) {
    static const char *const names[PC_LOW_SCALINGS] = {"", "fp8", "fp8_block", "mxfp8"};
    assert((unsigned)scaling < PC_LOW_SCALINGS);
    return names[scaling];
}

/* ---- what an operand is ---- */

pc_scale_layout pc_gemm_low_layout(pc_kernel_role role, const pc_kernel_shape *shape, int operand) {
    bool is_weight = operand == PC_GEMM_B && role != PC_KERNEL_WEIGHT_GRADIENT;
    if (shape->scaling == PC_LOW_BLOCK) return is_weight ? PC_SCALE_BLOCK_128 : PC_SCALE_ROW_128;
    return shape->scaling == PC_LOW_MX ? PC_SCALE_ROW_32 : PC_SCALE_ONE;
}

pc_dtype pc_gemm_low_dtype(pc_kernel_role role, const pc_kernel_shape *shape, int operand) {
    bool is_gradient = operand == PC_GEMM_A && role != PC_KERNEL_FORWARD;
    return is_gradient && shape->low == PC_E5M2 ? PC_E5M2 : PC_E4M3;
}

bool pc_gemm_low_is_fast(pc_kernel_role role, const pc_kernel_shape *shape) {
    return role == PC_KERNEL_FORWARD && shape->scaling == PC_LOW_TENSOR;
}

/* ---- scales ---- */

enum { BLOCK = 128, LINE = 4, MX = 32, TILE_BYTES = 512 };

int64_t pc_scale_count(pc_scale_layout layout, int64_t rows, int64_t k) {
    switch (layout) {
    case PC_SCALE_ROW_128:
        return rows * pc_divide_up(k, BLOCK);
    case PC_SCALE_BLOCK_128:
        return pc_divide_up(rows, BLOCK) * pc_round_up(pc_divide_up(k, BLOCK), LINE);
    case PC_SCALE_ROW_32:
        return pc_round_up(rows, BLOCK) * pc_round_up(pc_divide_up(k, MX), LINE);
    default:
        return 1;
    }
}

/* A tile of 128 rows and 4 bytes is 32 lines of 16 bytes: a line has rows r, r + 32, r + 64 and r + 96. */
static int64_t place_in_tiles(int64_t k, int64_t row, int64_t part) {
    int64_t tiles = pc_divide_up(pc_divide_up(k, MX), LINE), tile = row / BLOCK * tiles + part / LINE;
    return tile * TILE_BYTES + row % 32 * 16 + row % BLOCK / 32 * LINE + part % LINE;
}

int64_t pc_scale_place(pc_scale_layout layout, int64_t rows, int64_t k, int64_t row, int64_t at) {
    switch (layout) {
    case PC_SCALE_ROW_128:
        return at / BLOCK * rows + row;
    case PC_SCALE_BLOCK_128:
        return row / BLOCK * pc_round_up(pc_divide_up(k, BLOCK), LINE) + at / BLOCK;
    case PC_SCALE_ROW_32:
        return place_in_tiles(k, row, at / MX);
    default:
        return 0;
    }
}

/* ---- what cannot be ---- */

static pc_code check_sizes(const char *name, const pc_kernel_shape *s, pc_error *error) {
    static const int64_t steps_of_k[PC_LOW_SCALINGS] = {1, 16, BLOCK, MX};
    const struct {
        const char *name;
        int64_t value, step;
    } sizes[] = {{"m", s->m, 16}, {"n", s->n, 16}, {"k", s->k, steps_of_k[s->scaling]}};
    for (int i = 0; i < 3; i++)
        if (sizes[i].value < 1 || sizes[i].value > INT32_MAX || sizes[i].value % sizes[i].step != 0)
            return pc_error_set(error, PC_ERROR_INPUT, "%s in %s: %s is %lld; expected a multiple of %lld below 2^31",
                                name, pc_low_name(s->scaling), sizes[i].name, (long long)sizes[i].value,
                                (long long)sizes[i].step);
    if (s->m <= INT64_MAX / 64 / s->n && s->m <= INT64_MAX / 64 / s->k && s->n <= INT64_MAX / 64 / s->k &&
        pc_gemm_flops(s) > 0)
        return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: m %lld, n %lld, k %lld: more than can be counted; expected less than 2^57 elements", name,
                        (long long)s->m, (long long)s->n, (long long)s->k);
}

pc_code pc_gemm_low_check(pc_kernel_role role, const pc_kernel_shape *s, pc_error *error) {
    const char *name = role_names[role], *what = NULL;
    if (s->scaling <= PC_LOW_NONE || s->scaling >= PC_LOW_SCALINGS) what = "no scaling of 8 bits";
    if (s->dtype != PC_BF16 && s->dtype != PC_FP16) what = "an output that is not of 16 bits";
    if (s->batch != 1) what = "more than one product";
    if (s->epilogue != PC_EPILOGUE_NONE) what = "an epilogue";
    if (s->accumulates && role != PC_KERNEL_WEIGHT_GRADIENT) what = "a sum with what was there, in 16 bits";
    if (s->low == PC_E5M2 && s->scaling != PC_LOW_TENSOR) what = "e5m2 in blocks";
    if (!what) return check_sizes(name, s, error);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s in 8 bits: %s; expected one product of a known scaling without an epilogue, in 16 bits, or "
                        "of weights' gradients added to fp32",
                        name, what);
}

/* ---- tensors ---- */

/* Hopper's units keep 14 bits of a sum (DeepSeek-V3, 3.3.2): a step of 32 cuts off half a unit of 2^-13 of partial sums
 * that are two thirds of the last one, and this does not average out. Sums that leave the unit do so after a few steps:
 * 8 are allowed. Four times that is no fault. */
static double sum_tolerance(pc_kernel_role role, const pc_kernel_shape *s) {
    double steps = (double)s->k / 32, together = pc_gemm_low_is_fast(role, s) ? steps : fmin(steps, 8);
    return 0x1p-13 * 4 * (1 + together / 3);
}

/* Numbers that fill the range of e4m3, as scales make them; the scales take c back to the size of one. */
static const double SPREAD = 80;

static pc_tensor operand_tensor(pc_kernel_role role, const pc_kernel_shape *s, int operand) {
    return (pc_tensor){.name = operand == PC_GEMM_A ? "a" : "b",
                       .dtype = pc_gemm_low_dtype(role, s, operand),
                       .count = (operand == PC_GEMM_A ? s->m : s->n) * s->k,
                       .use = PC_TENSOR_INPUT,
                       .fill = PC_FILL_NORMAL,
                       .scale = SPREAD};
}

static pc_tensor scale_tensor(pc_kernel_role role, const pc_kernel_shape *s, int operand) {
    pc_scale_layout layout = pc_gemm_low_layout(role, s, operand);
    return (pc_tensor){.name = operand == PC_GEMM_A ? "a_scale" : "b_scale",
                       .dtype = layout == PC_SCALE_ROW_32 ? PC_E8M0 : PC_FP32,
                       .count = pc_scale_count(layout, operand == PC_GEMM_A ? s->m : s->n, s->k),
                       .use = PC_TENSOR_INPUT,
                       .fill = PC_FILL_UNIFORM,
                       .scale = operand == PC_GEMM_A ? 1 / SPREAD : 1 / SPREAD / sqrt((double)s->k)};
}

static void put_tensors(pc_kernel_role role, const pc_kernel_shape *s, pc_tensor *tensors) {
    tensors[PC_GEMM_A] = operand_tensor(role, s, PC_GEMM_A);
    tensors[PC_GEMM_B] = operand_tensor(role, s, PC_GEMM_B);
    tensors[PC_GEMM_C] = (pc_tensor){.name = "c",
                                     .dtype = role == PC_KERNEL_WEIGHT_GRADIENT ? PC_FP32 : s->dtype,
                                     .count = s->m * s->n,
                                     .use = s->accumulates ? PC_TENSOR_IN_PLACE : PC_TENSOR_OUTPUT,
                                     .fill = PC_FILL_NORMAL,
                                     .scale = 1,
                                     .tolerance = sum_tolerance(role, s)};
    tensors[PC_GEMM_A_SCALE] = scale_tensor(role, s, PC_GEMM_A);
    tensors[PC_GEMM_B_SCALE] = scale_tensor(role, s, PC_GEMM_B);
}

pc_code pc_gemm_low_tensors(pc_kernel_role role, pc_low_scaling scaling, const pc_kernel_shape *shape,
                            pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    pc_code code = pc_gemm_low_check(role, shape, error);
    if (code != PC_OK) return code;
    if (shape->scaling != scaling)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %s; expected %s", role_names[role], pc_low_name(shape->scaling),
                            pc_low_name(scaling));
    put_tensors(role, shape, tensors);
    *count = PC_GEMM_LOW_TENSORS;
    return PC_OK;
}

/* 0 of a shape that cannot be. */
int64_t pc_gemm_low_bytes(pc_kernel_role role, const pc_kernel_shape *shape) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int64_t bytes = 0;
    if (pc_gemm_low_check(role, shape, NULL) != PC_OK) return 0;
    put_tensors(role, shape, tensors);
    for (int i = 0; i < PC_GEMM_LOW_TENSORS; i++)
        bytes += tensors[i].count * pc_dtype_bytes(tensors[i].dtype) * (tensors[i].use == PC_TENSOR_IN_PLACE ? 2 : 1);
    return bytes;
}
