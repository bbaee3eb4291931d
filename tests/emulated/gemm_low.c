/* Products of 8 bits on the host, from the bytes and scales as they are stored. Sums are of fp32, in blocks of k. */
#include "kernels/gemm_low.h"

#include "engine/alloc.h"
#include "kernels/dtype.h"
#include "kernels/families.h"
#include "tests/emulated/emulated.h"

enum { BLOCK_K = 16 }; /* divides every block that has a scale */

/* An operand as it is stored. */
typedef struct operand {
    pc_dtype dtype, of_scale;
    const uint8_t *codes;
    const void *scales;
    pc_scale_layout layout;
    int64_t rows, k;
} operand;

static operand operand_of(pc_kernel_role role, const pc_kernel_shape *s, void *const *tensors, int which) {
    pc_scale_layout layout = pc_gemm_low_layout(role, s, which);
    return (operand){.dtype = pc_gemm_low_dtype(role, s, which),
                     .of_scale = layout == PC_SCALE_ROW_32 ? PC_E8M0 : PC_FP32,
                     .codes = tensors[which],
                     .scales = tensors[which == PC_GEMM_A ? PC_GEMM_A_SCALE : PC_GEMM_B_SCALE],
                     .layout = layout,
                     .rows = which == PC_GEMM_A ? s->m : s->n,
                     .k = s->k};
}

static float number(const operand *of, int64_t row, int64_t at) {
    uint8_t code = of->codes[row * of->k + at];
    return of->dtype == PC_E5M2 ? pc_e5m2_to_float(code) : pc_e4m3_to_float(code);
}

static float scale(const operand *of, int64_t row, int64_t at) {
    return (float)pc_dtype_get(of->of_scale, of->scales, pc_scale_place(of->layout, of->rows, of->k, row, at));
}

/* All numbers of an operand times their scales; NULL if memory is short. Free with pc_free. */
static float *scaled(const operand *of) {
    float *values = pc_alloc((size_t)(of->rows * of->k), sizeof *values);
    for (int64_t row = 0; row < of->rows && values; row++)
        for (int64_t begin = 0; begin < of->k; begin += BLOCK_K) {
            float factor = scale(of, row, begin);
            for (int64_t i = begin; i < begin + BLOCK_K; i++) values[row * of->k + i] = number(of, row, i) * factor;
        }
    return values;
}

static float product(const float *a, const float *b, int64_t k) {
    float sum = 0;
    for (int64_t begin = 0; begin < k; begin += BLOCK_K) {
        float part = 0;
        for (int64_t i = begin; i < begin + BLOCK_K; i++) part += a[i] * b[i];
        sum += part;
    }
    return sum;
}

static void multiply(pc_kernel_role role, const pc_kernel_shape *s, const float *a, const float *b, void *c) {
    pc_dtype dtype = role == PC_KERNEL_WEIGHT_GRADIENT ? PC_FP32 : s->dtype;
    for (int64_t i = 0; i < s->m * s->n; i++) {
        float sum = product(a + i / s->n * s->k, b + i % s->n * s->k, s->k);
        if (s->accumulates) sum += (float)pc_dtype_get(dtype, c, i);
        pc_dtype_set(dtype, c, i, (double)sum);
    }
}

static pc_code launch(pc_kernel_role role, pc_device *device, const pc_kernel_shape *s, void *const *tensors,
                      pc_error *error) {
    pc_code code = pc_gemm_low_check(role, s, error);
    if (code != PC_OK) return code;
    pc_emulated_count_launch(device);
    operand of_a = operand_of(role, s, tensors, PC_GEMM_A), of_b = operand_of(role, s, tensors, PC_GEMM_B);
    float *a = scaled(&of_a), *b = scaled(&of_b);
    if (a && b) multiply(role, s, a, b, tensors[PC_GEMM_C]);
    code = a && b ? PC_OK : pc_error_no_memory(error);
    pc_free(a);
    pc_free(b);
    return code;
}

static pc_code prepare(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                       pc_error *error) {
    (void)device;
    (void)tensors;
    return pc_gemm_low_check(role, shape, error);
}

static pc_code attributes(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape,
                          pc_kernel_attributes *made, pc_error *error) {
    (void)device;
    pc_code code = pc_gemm_low_check(role, shape, error);
    if (code != PC_OK) return code;
    pc_emulated_describe_loops(1, made);
    return PC_OK;
}

static pc_code can(pc_low_scaling scaling, pc_device *device, pc_error *error) {
    (void)scaling;
    (void)device;
    (void)error;
    return PC_OK;
}

PC_GEMM_LOW_FAMILIES(fp8_gemm, PC_LOW_TENSOR, can, prepare, launch, attributes);
PC_GEMM_LOW_FAMILIES(fp8_block_gemm, PC_LOW_BLOCK, can, prepare, launch, attributes);
PC_GEMM_LOW_FAMILIES(mxfp8_gemm, PC_LOW_MX, can, prepare, launch, attributes);
