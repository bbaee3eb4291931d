#include "kernels/qkv.h"

pc_qkv_columns pc_qkv_columns_of(const pc_kernel_shape *shape) {
    int64_t query = shape->heads * shape->k, key = shape->kv_heads * shape->k;
    return (pc_qkv_columns){query, key, query + 2 * key};
}

static pc_code check_size(const char *family, const char *name, int64_t value, pc_error *error) {
    if (value >= 1 && value <= INT32_MAX) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %s %lld; expected 1 to 2147483647", family, name, (long long)value);
}

static pc_code check_shape(const char *family, const pc_kernel_shape *shape, pc_error *error) {
    pc_code code = check_size(family, "rows", shape->m, error);
    if (!code) code = check_size(family, "heads", shape->heads, error);
    if (!code) code = check_size(family, "key/value heads", shape->kv_heads, error);
    if (!code) code = check_size(family, "columns of a head", shape->k, error);
    if (code) return code;
    if (shape->heads > INT32_MAX / 4 / shape->k || shape->kv_heads > INT32_MAX / 4 / shape->k)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %lld heads of %lld columns; expected fewer than 2^29 columns",
                            family, (long long)shape->heads, (long long)shape->k);
    if (shape->dtype == PC_BF16 || shape->dtype == PC_FP16) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %s; expected bf16 or fp16", family, pc_dtype_name(shape->dtype));
}

static pc_tensor tensor(const pc_kernel_shape *shape, const char *name, int64_t count, pc_tensor_use use) {
    return (pc_tensor){
        .name = name, .dtype = shape->dtype, .count = count, .use = use, .fill = PC_FILL_NORMAL, .scale = 1};
}

/* A sum of two is rounded once; a copy is exact: no tolerance beside the rounding. */
pc_code pc_qkv_split_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                             pc_error *error) {
    pc_code code = check_shape("qkv_split", shape, error);
    if (code) return code;
    pc_qkv_columns x = pc_qkv_columns_of(shape);
    int next = 0;
    tensors[next++] = tensor(shape, "qkv", shape->m * x.all, PC_TENSOR_INPUT);
    if (shape->epilogue != PC_EPILOGUE_NONE) tensors[next++] = tensor(shape, "bias", x.all, PC_TENSOR_INPUT);
    tensors[next++] = tensor(shape, "query", shape->m * x.query, PC_TENSOR_OUTPUT);
    tensors[next++] = tensor(shape, "key", shape->m * x.key, PC_TENSOR_OUTPUT);
    tensors[next++] = tensor(shape, "value", shape->m * x.key, PC_TENSOR_OUTPUT);
    *count = next;
    return PC_OK;
}

pc_code pc_qkv_merge_tensors(const pc_kernel_shape *shape, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                             pc_error *error) {
    pc_code code = check_shape("qkv_merge", shape, error);
    if (code) return code;
    pc_qkv_columns x = pc_qkv_columns_of(shape);
    tensors[0] = tensor(shape, "query_gradient", shape->m * x.query, PC_TENSOR_INPUT);
    tensors[1] = tensor(shape, "key_gradient", shape->m * x.key, PC_TENSOR_INPUT);
    tensors[2] = tensor(shape, "value_gradient", shape->m * x.key, PC_TENSOR_INPUT);
    tensors[3] = tensor(shape, "qkv_gradient", shape->m * x.all, PC_TENSOR_OUTPUT);
    *count = 4;
    return PC_OK;
}

int64_t pc_qkv_merge_bytes(const pc_kernel_shape *shape) {
    return 2 * pc_dtype_bytes(shape->dtype) * shape->m * pc_qkv_columns_of(shape).all;
}

int64_t pc_qkv_split_bytes(const pc_kernel_shape *shape) {
    bool has_bias = shape->epilogue != PC_EPILOGUE_NONE;
    int64_t bias = has_bias ? pc_dtype_bytes(shape->dtype) * pc_qkv_columns_of(shape).all : 0;
    return pc_qkv_merge_bytes(shape) + bias;
}

int64_t pc_qkv_flops(const pc_kernel_shape *shape) {
    (void)shape;
    return 0;
}
