/* A library as kernels/attention_shim.h wants it, for tests: attention on the host, by the formula. The environment
 * variable PC_TEST_SHIM says what is the matter with it: "" nothing, "wrong" one element, "silent" writes nothing,
 * "failing" returns 7, "incapable" does no causal shape, "foreign" is of another version. */
#include "kernels/attention_shim.h"

#include "kernels/attention.h"
#include "kernels/dtype.h"

#include <stdlib.h>
#include <string.h>

static bool is_kind(const char *kind) {
    const char *wanted = getenv("PC_TEST_SHIM");
    return wanted && strcmp(wanted, kind) == 0;
}

int32_t pc_attention_shim_version(void) {
    return is_kind("foreign") ? PC_ATTENTION_SHIM_VERSION + 1 : PC_ATTENTION_SHIM_VERSION;
}

const char *pc_attention_shim_name(void) {
    return "formula 1.0";
}

static double *to_doubles(const pc_tensor *tensor, const void *values) {
    double *made = malloc((size_t)tensor->count * sizeof *made);
    for (int64_t i = 0; i < tensor->count && made; i++) made[i] = pc_dtype_get(tensor->dtype, values, i);
    return made;
}

static void from_doubles(const pc_tensor *tensor, void *to, const double *values) {
    for (int64_t i = 0; i < tensor->count; i++) pc_dtype_set(tensor->dtype, to, i, values[i]);
}

static void run(const pc_kernel_shape *shape, const pc_kernel_family *family, void *const *address) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    double *values[PC_KERNEL_TENSORS] = {NULL};
    int count;
    if (family->tensors(shape, tensors, &count, NULL)) abort();
    for (int i = 0; i < count; i++)
        if (address[i]) values[i] = to_doubles(&tensors[i], address[i]);
    family->reference(shape, values);
    for (int i = 0; i < count; i++) {
        if (tensors[i].use == PC_TENSOR_OUTPUT) {
            if (is_kind("wrong")) values[i][tensors[i].count / 2] += 0.5;
            from_doubles(&tensors[i], address[i], values[i]);
        }
        free(values[i]);
    }
}

static int32_t answer(const pc_attention_shim_call *call, const pc_kernel_family *family) {
    if (is_kind("failing")) return 7;
    if (is_kind("silent")) return PC_ATTENTION_SHIM_DONE;
    if (is_kind("incapable") && call->is_causal) return PC_ATTENTION_SHIM_UNSUPPORTED;
    const pc_kernel_shape shape = {
        .dtype = call->dtype == PC_ATTENTION_SHIM_BF16 ? PC_BF16 : PC_FP16,
        .batch = call->batch,
        .m = call->m,
        .n = call->n,
        .k = call->k,
        .heads = call->heads,
        .kv_heads = call->kv_heads,
        .is_causal = call->is_causal,
    };
    void *const address[PC_ATTENTION_BACKWARD_TENSORS] = {
        [PC_ATTENTION_QUERY] = (void *)call->query,
        [PC_ATTENTION_KEY] = (void *)call->key,
        [PC_ATTENTION_VALUE] = (void *)call->value,
        [PC_ATTENTION_OUT] = call->out,
        [PC_ATTENTION_LOG_SUM] = call->log_sum,
        [PC_ATTENTION_OUT_GRADIENT] = (void *)call->out_gradient,
        [PC_ATTENTION_QUERY_GRADIENT] = call->query_gradient,
        [PC_ATTENTION_KEY_GRADIENT] = call->key_gradient,
        [PC_ATTENTION_VALUE_GRADIENT] = call->value_gradient,
    };
    run(&shape, family, address);
    return PC_ATTENTION_SHIM_DONE;
}

int32_t pc_attention_shim_forward(const pc_attention_shim_call *call) {
    const pc_kernel_family family = {.tensors = pc_attention_forward_tensors,
                                     .reference = pc_attention_forward_reference};
    return answer(call, &family);
}

int32_t pc_attention_shim_backward(const pc_attention_shim_call *call) {
    const pc_kernel_family family = {.tensors = pc_attention_backward_tensors,
                                     .reference = pc_attention_backward_reference};
    return answer(call, &family);
}
