#include "kernels/attention.h"

/* ---- what can be ---- */

static pc_code refuse(pc_error *error, const char *what, int64_t value, const char *expected) {
    return pc_error_set(error, PC_ERROR_INPUT, "attention: %s %lld; expected %s", what, (long long)value, expected);
}

/* Kernels number rows of a sequence and blocks of a tensor in 32 bits. */
static pc_code check_sizes(const pc_kernel_shape *s, pc_error *error) {
    const int64_t most = 1 << 29;
    if (s->batch < 1 || s->batch > most) return refuse(error, "sequences", s->batch, "1 to 2^29");
    if (s->m < 1 || s->m > most) return refuse(error, "queries", s->m, "1 to 2^29");
    if (s->n < 1 || s->n > most) return refuse(error, "keys", s->n, "1 to 2^29");
    if (s->heads < 1 || s->heads > 1 << 20) return refuse(error, "heads", s->heads, "1 to 2^20");
    int64_t longer = s->m > s->n ? s->m : s->n, elements, rows;
    if (__builtin_mul_overflow(s->batch, s->heads, &rows) || __builtin_mul_overflow(rows, longer, &rows) ||
        __builtin_mul_overflow(rows, s->k, &elements) || elements > INT64_MAX / 64 / longer)
        return refuse(error, "rows of all sequences and heads", s->batch, "a number of elements below 2^57");
    if (rows > most) return refuse(error, "rows of all sequences and heads", rows, "at most 2^29");
    return PC_OK;
}

static pc_code check_shape(const pc_kernel_shape *s, pc_error *error) {
    if (s->dtype != PC_BF16 && s->dtype != PC_FP16)
        return pc_error_set(error, PC_ERROR_INPUT, "attention: dtype number %d; expected bf16 or fp16", (int)s->dtype);
    if (s->k < 8 || s->k > PC_ATTENTION_HEAD_MAX || s->k % 8 != 0)
        return refuse(error, "head dimension", s->k, "a multiple of 8 up to 256");
    pc_code code = check_sizes(s, error);
    if (code) return code;
    if (s->kv_heads < 1 || s->heads % s->kv_heads != 0)
        return pc_error_set(error, PC_ERROR_INPUT, "attention: %lld key/value heads of %lld heads; expected a divisor",
                            (long long)s->kv_heads, (long long)s->heads);
    return PC_OK;
}

/* ---- tensors ---- */

static int64_t query_count(const pc_kernel_shape *s) {
    return s->batch * s->m * s->heads * s->k;
}

static int64_t key_count(const pc_kernel_shape *s) {
    return s->batch * s->n * s->kv_heads * s->k;
}

static int64_t row_count(const pc_kernel_shape *s) {
    return s->batch * s->heads * s->m;
}

/* Probabilities and their gradients are rounded to the 16 bit type before they are multiplied: an error of up to half a
 * unit in the last place, u, of every term. Of random terms the sums' errors come to about u of a typical element; far
 * out in the tail, and where a row sums few terms of both signs, to several times that. */
static double rounded_terms_tolerance(pc_dtype dtype) {
    const double half_unit = dtype == PC_BF16 ? 0x1p-8 : 0x1p-11;
    return 8 * half_unit;
}

static pc_tensor activation(const pc_kernel_shape *s, const char *name, int64_t count, pc_tensor_use use,
                            double scale) {
    double tolerance = use == PC_TENSOR_OUTPUT ? rounded_terms_tolerance(s->dtype) : 0;
    return (pc_tensor){name, s->dtype, count, use, PC_FILL_NORMAL, scale, tolerance};
}

pc_code pc_attention_forward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                     pc_error *error) {
    pc_code code = check_shape(s, error);
    if (code) return code;
    tensors[PC_ATTENTION_QUERY] = activation(s, "query", query_count(s), PC_TENSOR_INPUT, 1);
    tensors[PC_ATTENTION_KEY] = activation(s, "key", key_count(s), PC_TENSOR_INPUT, 1);
    tensors[PC_ATTENTION_VALUE] = activation(s, "value", key_count(s), PC_TENSOR_INPUT, 1);
    tensors[PC_ATTENTION_OUT] = activation(s, "out", query_count(s), PC_TENSOR_OUTPUT, 1);
    /* fp32 throughout: products of 256 terms, a sum over all keys, two functions of about 1e-6. */
    tensors[PC_ATTENTION_LOG_SUM] =
        (pc_tensor){"log_sum", PC_FP32, row_count(s), PC_TENSOR_OUTPUT, PC_FILL_UNIFORM, 1, 1e-5};
    *count = PC_ATTENTION_FORWARD_TENSORS;
    return PC_OK;
}

/* Inputs are independent of each other, and such that nothing grows beyond fp16: scores of standard deviation 1/2, and
 * log_sum in [0, 1) where a true one is about log(n), so that probabilities are about 1. */
pc_code pc_attention_backward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                      pc_error *error) {
    int forward_count;
    pc_code code = pc_attention_forward_tensors(s, tensors, &forward_count, error);
    if (code) return code;
    tensors[PC_ATTENTION_QUERY].scale = 0.5;
    tensors[PC_ATTENTION_OUT].use = tensors[PC_ATTENTION_LOG_SUM].use = PC_TENSOR_INPUT;
    tensors[PC_ATTENTION_OUT].tolerance = tensors[PC_ATTENTION_LOG_SUM].tolerance = 0;
    tensors[PC_ATTENTION_OUT_GRADIENT] = activation(s, "out_gradient", query_count(s), PC_TENSOR_INPUT, 1);
    tensors[PC_ATTENTION_QUERY_GRADIENT] = activation(s, "query_gradient", query_count(s), PC_TENSOR_OUTPUT, 1);
    tensors[PC_ATTENTION_KEY_GRADIENT] = activation(s, "key_gradient", key_count(s), PC_TENSOR_OUTPUT, 1);
    tensors[PC_ATTENTION_VALUE_GRADIENT] = activation(s, "value_gradient", key_count(s), PC_TENSOR_OUTPUT, 1);
    tensors[PC_ATTENTION_DELTA] = (pc_tensor){"delta", PC_FP32, row_count(s), PC_TENSOR_SCRATCH, PC_FILL_ZERO, 1, 0};
    *count = PC_ATTENTION_BACKWARD_TENSORS;
    return PC_OK;
}

/* ---- work, as models/workload counts it: masked scores too, and backward 2.5 times forward ---- */

int64_t pc_attention_forward_flops(const pc_kernel_shape *s) {
    return 4 * s->batch * s->heads * s->m * s->n * s->k;
}

int64_t pc_attention_backward_flops(const pc_kernel_shape *s) {
    return 10 * s->batch * s->heads * s->m * s->n * s->k;
}

int64_t pc_attention_forward_bytes(const pc_kernel_shape *s) {
    return 2 * (2 * query_count(s) + 2 * key_count(s)) + 4 * row_count(s);
}

int64_t pc_attention_backward_bytes(const pc_kernel_shape *s) {
    return 2 * (4 * query_count(s) + 4 * key_count(s)) + 4 * row_count(s);
}
