/* Matrix products on the host: what cuBLASLt is asked for, from the bytes as they are stored. Sums are of fp32, in
 * blocks of k, as those of a tensor core. */
#include "kernels/gemm.h"

#include "kernels/dtype.h"
#include "kernels/families.h"
#include "tests/emulated/emulated.h"

#include <math.h>

enum { BLOCK_K = 16 };

/* A stored matrix of 16-bit numbers: where an element of the product's (row, column) lies. */
typedef struct matrix {
    pc_dtype dtype;
    const uint16_t *data;
    int64_t row, column;
} matrix;

static float element(const matrix *from, int64_t row, int64_t column) {
    uint16_t bits = from->data[row * from->row + column * from->column];
    return from->dtype == PC_BF16 ? pc_bf16_to_float(bits) : pc_fp16_to_float(bits);
}

static float product(const matrix *a, const matrix *b, int64_t row, int64_t column, int64_t k) {
    float sum = 0;
    for (int64_t begin = 0; begin < k; begin += BLOCK_K) {
        float part = 0;
        for (int64_t i = begin; i < k && i < begin + BLOCK_K; i++) part += element(a, row, i) * element(b, i, column);
        sum += part;
    }
    return sum;
}

static float gelu(float x) {
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

/* The epilogue of element i: the sum that has it, and then where it goes. */
static void store(pc_kernel_role role, const pc_kernel_shape *s, void *const *tensors, int64_t i, float sum) {
    pc_dtype dtype = role == PC_KERNEL_WEIGHT_GRADIENT ? PC_FP32 : s->dtype;
    if (s->accumulates) sum += (float)pc_dtype_get(dtype, tensors[PC_GEMM_C], i);
    if (s->epilogue != PC_EPILOGUE_NONE) sum += (float)pc_dtype_get(dtype, tensors[PC_GEMM_BIAS], i % s->n);
    if (s->epilogue == PC_EPILOGUE_BIAS_GELU) {
        pc_dtype_set(dtype, tensors[PC_GEMM_PRE], i, (double)sum);
        sum = gelu(sum);
    }
    pc_dtype_set(dtype, tensors[PC_GEMM_C], i, (double)sum);
}

static pc_code launch(pc_kernel_role role, pc_device *device, const pc_kernel_shape *s, void *const *tensors,
                      pc_error *error) {
    pc_code code = pc_gemm_check(role, s, error);
    if (code != PC_OK) return code;
    pc_emulated_count_launch(device);
    bool has_tall_a = role == PC_KERNEL_WEIGHT_GRADIENT, has_wide_b = role == PC_KERNEL_FORWARD;
    for (int64_t i = 0; i < s->batch * s->m * s->n; i++) {
        int64_t which = i / (s->m * s->n), row = i / s->n % s->m, column = i % s->n;
        matrix a = {s->dtype, (const uint16_t *)tensors[PC_GEMM_A] + which * s->m * s->k, s->k, 1};
        matrix b = {s->dtype, (const uint16_t *)tensors[PC_GEMM_B] + which * s->k * s->n, s->n, 1};
        if (has_tall_a) a.row = 1, a.column = s->m;
        if (has_wide_b) b.row = 1, b.column = s->k;
        store(role, s, tensors, i, product(&a, &b, row, column, s->k));
    }
    return PC_OK;
}

static pc_code prepare(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                       pc_error *error) {
    (void)device;
    (void)tensors;
    return pc_gemm_check(role, shape, error);
}

static pc_code attributes(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape,
                          pc_kernel_attributes *made, pc_error *error) {
    (void)device;
    pc_code code = pc_gemm_check(role, shape, error);
    if (code != PC_OK) return code;
    pc_emulated_describe_loops(1, made);
    return PC_OK;
}

PC_GEMM_FAMILY(forward, PC_KERNEL_FORWARD, prepare, launch, attributes);
PC_GEMM_FAMILY(input_gradient, PC_KERNEL_INPUT_GRADIENT, prepare, launch, attributes);
PC_GEMM_FAMILY(weight_gradient, PC_KERNEL_WEIGHT_GRADIENT, prepare, launch, attributes);
