#include "kernels/gemm.h"

#include <math.h>
#include <stddef.h>

/* ---- what cannot be ---- */

static const char *const role_names[] = {"gemm_forward", "gemm_input_gradient", "gemm_weight_gradient"};

/* Whether rows * columns * batch elements of up to 4 bytes, three tensors of them, can be counted. */
static bool is_countable(int64_t batch, int64_t rows, int64_t columns) {
    int64_t count;
    return !__builtin_mul_overflow(rows, columns, &count) && !__builtin_mul_overflow(count, batch, &count) &&
           count < INT64_MAX / 64;
}

static pc_code check_sizes(const char *name, const pc_kernel_shape *s, pc_error *error) {
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"batch", s->batch}, {"m", s->m}, {"n", s->n}, {"k", s->k}};
    for (int i = 0; i < 4; i++)
        if (sizes[i].value < 1 || sizes[i].value > INT32_MAX)
            return pc_error_set(error, PC_ERROR_INPUT, "%s: %s is %lld; expected 1 to 2147483647", name, sizes[i].name,
                                (long long)sizes[i].value);
    if (is_countable(s->batch, s->m, s->n) && is_countable(s->batch, s->m, s->k) &&
        is_countable(s->batch, s->n, s->k) && is_countable(s->m, s->n, s->k) && pc_gemm_flops(s) > 0)
        return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: batch %lld, m %lld, n %lld, k %lld: more than can be counted; expected less than 2^62 "
                        "FLOPs and bytes",
                        name, (long long)s->batch, (long long)s->m, (long long)s->n, (long long)s->k);
}

static pc_code check_epilogue(const char *name, pc_kernel_role role, const pc_kernel_shape *s, pc_error *error) {
    if (s->epilogue == PC_EPILOGUE_NONE) return PC_OK;
    const char *what = NULL;
    if (s->epilogue != PC_EPILOGUE_BIAS && s->epilogue != PC_EPILOGUE_BIAS_GELU) what = "an epilogue that is not known";
    if (role != PC_KERNEL_FORWARD) what = "an epilogue behind a gradient";
    if (s->batch != 1) what = "an epilogue behind more than one product";
    if (s->accumulates) what = "an epilogue behind a sum with what was there";
    if (!what) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: %s; expected none, or bias or bias and GELU of one forward product that does not "
                        "accumulate",
                        name, what);
}

pc_code pc_gemm_check(pc_kernel_role role, const pc_kernel_shape *shape, pc_error *error) {
    const char *name = role_names[role];
    if (shape->scaling != PC_LOW_NONE)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: inputs of %s; expected bf16 or fp16", name,
                            pc_low_name(shape->scaling));
    if (shape->dtype != PC_BF16 && shape->dtype != PC_FP16)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: inputs of %s; expected bf16 or fp16", name,
                            pc_dtype_name(shape->dtype));
    pc_code code = check_sizes(name, shape, error);
    return code == PC_OK ? check_epilogue(name, role, shape, error) : code;
}

/* ---- tensors ---- */

/* Of a sum of k products of random numbers in fp32, as a fraction of its typical size, sqrt(k). Every addition rounds:
 * together some sqrt(k) units in the last place. Tensor cores align the summands of a step of 16 and cut off, which
 * does not average out: half a unit a step, k/16 of them, of partial sums that are two thirds of the last one. Four
 * times that is no fault. */
static double sum_tolerance(int64_t k) {
    return 0x1p-22 * (4 + sqrt((double)k) + (double)k / 16);
}

/* GELU is allowed the tanh of the hardware (tanh.approx.f32: 2^-11 relative, PTX ISA), times half the input, which is
 * rarely above 4; and a sum that was rounded to `dtype` on its way (a slope of up to 1.13). */
static double gelu_tolerance(pc_dtype dtype) {
    return 0x1p-10 + 1.2 * (dtype == PC_BF16 ? 0x1p-8 : 0x1p-11);
}

static pc_tensor c_tensor(pc_kernel_role role, const pc_kernel_shape *s) {
    bool has_gelu = s->epilogue == PC_EPILOGUE_BIAS_GELU;
    return (pc_tensor){
        .name = "c",
        .dtype = role == PC_KERNEL_WEIGHT_GRADIENT ? PC_FP32 : s->dtype,
        .count = s->batch * s->m * s->n,
        .use = s->accumulates ? PC_TENSOR_IN_PLACE : PC_TENSOR_OUTPUT,
        .fill = PC_FILL_NORMAL,
        .scale = 1,
        .tolerance = sum_tolerance(s->k) + (has_gelu ? gelu_tolerance(s->dtype) : 0),
    };
}

/* b is scaled so that c is of the size of one, as behind a layer's norm. */
static pc_code tensors_of(pc_kernel_role role, const pc_kernel_shape *s, pc_tensor *tensors, int *count,
                          pc_error *error) {
    pc_code code = pc_gemm_check(role, s, error);
    if (code != PC_OK) return code;
    const pc_tensor input = {.dtype = s->dtype, .use = PC_TENSOR_INPUT, .fill = PC_FILL_NORMAL, .scale = 1};
    pc_tensor a = input, b = input, bias = input, pre = c_tensor(role, s);
    a.name = "a";
    a.count = s->batch * s->m * s->k;
    b.name = "b";
    b.count = s->batch * s->n * s->k;
    b.scale = 1 / sqrt((double)s->k);
    bias.name = "bias";
    bias.count = s->n;
    pre.name = "pre";
    pre.tolerance = sum_tolerance(s->k);
    tensors[PC_GEMM_A] = a;
    tensors[PC_GEMM_B] = b;
    tensors[PC_GEMM_C] = c_tensor(role, s);
    tensors[PC_GEMM_BIAS] = bias;
    tensors[PC_GEMM_PRE] = pre;
    *count = s->epilogue == PC_EPILOGUE_NONE ? 3 : s->epilogue == PC_EPILOGUE_BIAS ? 4 : 5;
    return PC_OK;
}

pc_code pc_gemm_forward_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                pc_error *error) {
    return tensors_of(PC_KERNEL_FORWARD, shape, tensors, count, error);
}

pc_code pc_gemm_input_gradient_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                       pc_error *error) {
    return tensors_of(PC_KERNEL_INPUT_GRADIENT, shape, tensors, count, error);
}

pc_code pc_gemm_weight_gradient_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                        pc_error *error) {
    return tensors_of(PC_KERNEL_WEIGHT_GRADIENT, shape, tensors, count, error);
}

/* ---- work ---- */

int64_t pc_gemm_flops(const pc_kernel_shape *shape) {
    int64_t flops = 2;
    bool is_too_large =
        __builtin_mul_overflow(flops, shape->batch, &flops) || __builtin_mul_overflow(flops, shape->m, &flops) ||
        __builtin_mul_overflow(flops, shape->n, &flops) || __builtin_mul_overflow(flops, shape->k, &flops);
    return is_too_large ? 0 : flops;
}

/* 0 of a shape that cannot be. */
static int64_t bytes_of(pc_kernel_role role, const pc_kernel_shape *shape) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    if (tensors_of(role, shape, tensors, &count, NULL) != PC_OK) return 0;
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += tensors[i].count * pc_dtype_bytes(tensors[i].dtype) * (tensors[i].use == PC_TENSOR_IN_PLACE ? 2 : 1);
    return bytes;
}

int64_t pc_gemm_forward_bytes(const pc_kernel_shape *shape) {
    return bytes_of(PC_KERNEL_FORWARD, shape);
}

int64_t pc_gemm_input_gradient_bytes(const pc_kernel_shape *shape) {
    return bytes_of(PC_KERNEL_INPUT_GRADIENT, shape);
}

int64_t pc_gemm_weight_gradient_bytes(const pc_kernel_shape *shape) {
    return bytes_of(PC_KERNEL_WEIGHT_GRADIENT, shape);
}
