#include "kernels/memory_bound.h"

#include "engine/numbers.h"

#include <math.h>
#include <string.h>

/* fp32 throughout and rounded once: a few operations of 1e-7 each, exponentials, sums of halves. */
static const double FP32_TOLERANCE = 1e-5;

/* ---- what can be ---- */

static pc_code refuse(pc_error *error, const char *family, const char *what, int64_t value, const char *expected) {
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %s %lld; expected %s", family, what, (long long)value, expected);
}

static bool is_size(int64_t value) {
    return value >= 1 && value <= INT32_MAX;
}

/* Rows and columns of all, and that bytes can be counted. */
static pc_code check_rows(const char *family, const pc_kernel_shape *s, pc_error *error) {
    if (s->dtype != PC_BF16 && s->dtype != PC_FP16)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: dtype number %d; expected bf16 or fp16", family, (int)s->dtype);
    if (!is_size(s->m)) return refuse(error, family, "rows", s->m, "1 to 2^31 - 1");
    if (!is_size(s->n)) return refuse(error, family, "columns", s->n, "1 to 2^31 - 1");
    if (s->m > INT64_MAX / 64 / s->n) return refuse(error, family, "rows", s->m, "less than 2^57 elements in all");
    return PC_OK;
}

/* ---- lists of tensors ---- */

typedef struct tensor_list {
    pc_tensor *tensors;
    int count;
} tensor_list;

static void put(tensor_list *list, pc_tensor tensor) {
    list->tensors[list->count++] = tensor;
}

static void put_input(tensor_list *list, const char *name, pc_dtype dtype, int64_t count) {
    put(list, (pc_tensor){name, dtype, count, PC_TENSOR_INPUT, PC_FILL_NORMAL, 1, 0});
}

static void put_output(tensor_list *list, const char *name, pc_dtype dtype, int64_t count, double tolerance) {
    put(list, (pc_tensor){name, dtype, count, PC_TENSOR_OUTPUT, PC_FILL_POISON, 0, tolerance});
}

static void put_in_place(tensor_list *list, const char *name, pc_dtype dtype, int64_t count) {
    put(list, (pc_tensor){name, dtype, count, PC_TENSOR_IN_PLACE, PC_FILL_NORMAL, 1, FP32_TOLERANCE});
}

static void put_whole(tensor_list *list, const char *name, int64_t count, int64_t limit) {
    put(list, (pc_tensor){name, PC_INT32, count, PC_TENSOR_INPUT, PC_FILL_INDEX, (double)limit, 0});
}

static void put_scratch(tensor_list *list, const char *name, pc_dtype dtype, int64_t count) {
    put(list, (pc_tensor){name, dtype, count, PC_TENSOR_SCRATCH, PC_FILL_POISON, 0, 0});
}

static int64_t elements(const pc_kernel_shape *s) {
    return s->m * s->n;
}

int64_t pc_no_flops(const pc_kernel_shape *shape) {
    (void)shape;
    return 0;
}

/* ---- activations ---- */

pc_code pc_gelu_forward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("gelu_forward", s, error);
    if (code) return code;
    put_input(&list, "input", s->dtype, elements(s));
    if (pc_shape_has_bias(s)) put_input(&list, "bias", s->dtype, s->n);
    put_output(&list, "output", s->dtype, elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_gelu_forward_bytes(const pc_kernel_shape *s) {
    return 2 * (2 * elements(s) + (pc_shape_has_bias(s) ? s->n : 0));
}

pc_code pc_gelu_backward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                 pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("gelu_backward", s, error);
    if (code) return code;
    put_input(&list, "output_gradient", s->dtype, elements(s));
    put_input(&list, "input", s->dtype, elements(s));
    if (pc_shape_has_bias(s)) put_input(&list, "bias", s->dtype, s->n);
    put_output(&list, "input_gradient", s->dtype, elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_gelu_backward_bytes(const pc_kernel_shape *s) {
    return 2 * (3 * elements(s) + (pc_shape_has_bias(s) ? s->n : 0));
}

pc_code pc_swiglu_forward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                  pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("swiglu_forward", s, error);
    if (code) return code;
    put_input(&list, "input", s->dtype, 2 * elements(s));
    put_output(&list, "output", s->dtype, elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_swiglu_forward_bytes(const pc_kernel_shape *s) {
    return 2 * (3 * elements(s));
}

pc_code pc_swiglu_backward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                   pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("swiglu_backward", s, error);
    if (code) return code;
    put_input(&list, "output_gradient", s->dtype, elements(s));
    put_input(&list, "input", s->dtype, 2 * elements(s));
    put_output(&list, "input_gradient", s->dtype, 2 * elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_swiglu_backward_bytes(const pc_kernel_shape *s) {
    return 2 * (5 * elements(s));
}

/* ---- rotary ---- */

static pc_code check_rotary(const char *family, const pc_kernel_shape *s, pc_error *error) {
    pc_code code = check_rows(family, s, error);
    if (code) return code;
    if (!is_size(s->heads)) return refuse(error, family, "heads", s->heads, "1 to 2^31 - 1");
    if (!is_size(s->kv_heads)) return refuse(error, family, "key/value heads", s->kv_heads, "1 to 2^31 - 1");
    if (!is_size(s->heads + s->kv_heads)) return refuse(error, family, "heads", s->heads, "2^31 - 1 with all others");
    if (!is_size(s->k) || s->k % 2 != 0) return refuse(error, family, "head dimension", s->k, "an even one from 2 on");
    if (s->m > INT64_MAX / 64 / s->k / (s->heads + s->kv_heads))
        return refuse(error, family, "rows", s->m, "less than 2^57 elements in all");
    return PC_OK;
}

static pc_code rotary_tensors(const char *family, const char *query, const char *key, const pc_kernel_shape *s,
                              pc_tensor *tensors, int *count, pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rotary(family, s, error);
    if (code) return code;
    put_in_place(&list, query, s->dtype, s->m * s->heads * s->k);
    put_in_place(&list, key, s->dtype, s->m * s->kv_heads * s->k);
    *count = list.count;
    return PC_OK;
}

pc_code pc_rotary_forward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                  pc_error *error) {
    return rotary_tensors("rotary_forward", "query", "key", s, tensors, count, error);
}

int64_t pc_rotary_forward_bytes(const pc_kernel_shape *s) {
    return 2 * (2 * s->m) * (s->heads + s->kv_heads) * s->k;
}

pc_code pc_rotary_backward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                   pc_error *error) {
    return rotary_tensors("rotary_backward", "query_gradient", "key_gradient", s, tensors, count, error);
}

int64_t pc_rotary_backward_bytes(const pc_kernel_shape *s) {
    return pc_rotary_forward_bytes(s);
}

/* ---- residual, add, copy ---- */

static pc_code check_dropout(const char *family, const pc_kernel_shape *s, pc_error *error) {
    pc_code code = check_rows(family, s, error);
    if (code) return code;
    if (s->probability >= 0 && s->probability < 1) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: probability %g; expected 0 to below 1", family,
                        (double)s->probability);
}

pc_code pc_residual_forward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                    pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_dropout("residual_forward", s, error);
    if (code) return code;
    put_input(&list, "input", s->dtype, elements(s));
    put_input(&list, "residual", s->dtype, elements(s));
    if (pc_shape_has_bias(s)) put_input(&list, "bias", s->dtype, s->n);
    put_output(&list, "output", s->dtype, elements(s), FP32_TOLERANCE);
    if (pc_shape_has_dropout(s)) put_output(&list, "mask", PC_UINT8, elements(s), 0);
    *count = list.count;
    return PC_OK;
}

int64_t pc_residual_forward_bytes(const pc_kernel_shape *s) {
    int64_t mask = pc_shape_has_dropout(s) ? 1 : 0;
    return (INT64_C(2) * 3 + mask) * elements(s) + (pc_shape_has_bias(s) ? 2 * s->n : 0);
}

pc_code pc_residual_backward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                     pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_dropout("residual_backward", s, error);
    if (code) return code;
    put_input(&list, "output_gradient", s->dtype, elements(s));
    if (pc_shape_has_dropout(s))
        put(&list, (pc_tensor){"mask", PC_UINT8, elements(s), PC_TENSOR_INPUT, PC_FILL_INDEX, 2, 0});
    put_output(&list, "input_gradient", s->dtype, elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_residual_backward_bytes(const pc_kernel_shape *s) {
    int64_t mask = pc_shape_has_dropout(s) ? 1 : 0;
    return (INT64_C(2) * 2 + mask) * elements(s);
}

pc_code pc_add_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("add", s, error);
    if (code) return code;
    put_input(&list, "first", s->dtype, elements(s));
    put_input(&list, "second", s->dtype, elements(s));
    put_output(&list, "output", s->dtype, elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_add_bytes(const pc_kernel_shape *s) {
    return 2 * (3 * elements(s));
}

pc_code pc_copy_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("copy", s, error);
    if (code) return code;
    put_input(&list, "input", s->dtype, elements(s));
    put_output(&list, "output", s->dtype, elements(s), 0);
    *count = list.count;
    return PC_OK;
}

int64_t pc_copy_bytes(const pc_kernel_shape *s) {
    return 2 * (2 * elements(s));
}

/* ---- cross entropy ---- */

pc_code pc_cross_entropy_forward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                         pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("cross_entropy_forward", s, error);
    if (code) return code;
    put_input(&list, "logits", s->dtype, elements(s));
    put_whole(&list, "target", s->m, s->n);
    put_output(&list, "loss", PC_FP32, s->m, FP32_TOLERANCE);
    put_output(&list, "log_sum", PC_FP32, s->m, FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_cross_entropy_forward_bytes(const pc_kernel_shape *s) {
    return 2 * elements(s) + (4 + 4 + 4) * s->m;
}

pc_code pc_cross_entropy_backward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                          pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("cross_entropy_backward", s, error);
    if (code) return code;
    put_input(&list, "logits", s->dtype, elements(s));
    put_whole(&list, "target", s->m, s->n);
    /* Not what forward makes of these logits, but so that no exponential leaves fp16. */
    put(&list, (pc_tensor){"log_sum", PC_FP32, s->m, PC_TENSOR_INPUT, PC_FILL_UNIFORM, 8, 0});
    put_output(&list, "logits_gradient", s->dtype, elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_cross_entropy_backward_bytes(const pc_kernel_shape *s) {
    return 2 * (2 * elements(s)) + (4 + 4) * s->m;
}

/* ---- embedding ---- */

static pc_code check_embedding(const char *family, const pc_kernel_shape *s, pc_error *error) {
    pc_code code = check_rows(family, s, error);
    if (code) return code;
    if (!is_size(s->k)) return refuse(error, family, "rows of the table", s->k, "1 to 2^31 - 1");
    if (s->k > INT64_MAX / 64 / s->n)
        return refuse(error, family, "rows of the table", s->k, "less than 2^57 elements");
    if (pc_shape_has_bias(s) && (s->batch < 1 || s->m % s->batch != 0))
        return refuse(error, family, "sequences", s->batch, "a divisor of the tokens, for their positions");
    return PC_OK;
}

static int64_t position_count(const pc_kernel_shape *s) {
    return pc_shape_has_bias(s) ? s->m / s->batch * s->n : 0;
}

/* m tokens drawn evenly of k leave out each with (1 - 1/k)^m. */
static int64_t rows_hit(const pc_kernel_shape *s) {
    double missed = exp((double)s->m * log1p(-1.0 / (double)s->k));
    int64_t rows = (int64_t)((double)s->k * (1.0 - missed) + 0.5);
    return rows > s->m ? s->m : rows < 1 ? 1 : rows;
}

pc_code pc_embedding_forward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                     pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_embedding("embedding_forward", s, error);
    if (code) return code;
    put_input(&list, "table", s->dtype, s->k * s->n);
    put_whole(&list, "token", s->m, s->k);
    if (pc_shape_has_bias(s)) put_input(&list, "position_table", s->dtype, position_count(s));
    put_output(&list, "output", s->dtype, elements(s), pc_shape_has_bias(s) ? FP32_TOLERANCE : 0);
    *count = list.count;
    return PC_OK;
}

int64_t pc_embedding_forward_bytes(const pc_kernel_shape *s) {
    return 2 * (rows_hit(s) * s->n + position_count(s) + elements(s)) + 4 * s->m;
}

pc_code pc_embedding_backward_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                      pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_embedding("embedding_backward", s, error);
    if (code) return code;
    put_input(&list, "output_gradient", s->dtype, elements(s));
    put_whole(&list, "token", s->m, s->k);
    put_in_place(&list, "table_gradient", PC_FP32, s->k * s->n);
    if (pc_shape_has_bias(s)) put_in_place(&list, "position_table_gradient", PC_FP32, position_count(s));
    put_scratch(&list, "order", PC_INT32, 4 * s->m);
    *count = list.count;
    return PC_OK;
}

int64_t pc_embedding_backward_bytes(const pc_kernel_shape *s) {
    return 2 * elements(s) + 4 * s->m + (4 + 4) * (rows_hit(s) * s->n + position_count(s));
}

/* ---- sums of columns ---- */

int64_t pc_bias_gradient_parts(const pc_kernel_shape *s) {
    enum { COLUMNS = 256, ROWS_LEAST = 32, BLOCKS = 4096 };
    int64_t wanted = pc_divide_up(BLOCKS, pc_divide_up(s->n, COLUMNS));
    return pc_min(wanted, pc_divide_up(s->m, ROWS_LEAST));
}

pc_code pc_bias_gradient_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count,
                                 pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("bias_gradient", s, error);
    if (code) return code;
    put_input(&list, "output_gradient", s->dtype, elements(s));
    put_in_place(&list, "bias_gradient", PC_FP32, s->n);
    put_scratch(&list, "partial", PC_FP32, pc_bias_gradient_parts(s) * s->n);
    *count = list.count;
    return PC_OK;
}

int64_t pc_bias_gradient_bytes(const pc_kernel_shape *s) {
    return 2 * elements(s) + (4 + 4) * s->n;
}

/* ---- optimizer ---- */

pc_code pc_adam_tensors(const pc_kernel_shape *s, pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    tensor_list list = {tensors, 0};
    pc_code code = check_rows("adam", s, error);
    if (code) return code;
    put_input(&list, "gradient", PC_FP32, elements(s));
    put_in_place(&list, "master", PC_FP32, elements(s));
    put_in_place(&list, "momentum", PC_FP32, elements(s));
    put(&list, (pc_tensor){"variance", PC_FP32, elements(s), PC_TENSOR_IN_PLACE, PC_FILL_UNIFORM, 1, FP32_TOLERANCE});
    put_output(&list, "weight", s->dtype, elements(s), FP32_TOLERANCE);
    *count = list.count;
    return PC_OK;
}

int64_t pc_adam_bytes(const pc_kernel_shape *s) {
    return (4 + 3 * (4 + 4) + 2) * elements(s);
}
