#include "models/workload/operations_private.h"

#include <assert.h>

/* A number of an operation; what does not fit is noted and told at the end. */
static int64_t fit(pc_builder *b, pc_wide number) {
    if (number <= INT64_MAX) return (int64_t)number;
    b->has_overflow = true;
    return 0;
}

static pc_product_format of_memory(const pc_builder *b) {
    return b->model->precision == PC_PRECISION_FP16 ? PC_PRODUCT_FP16 : PC_PRODUCT_BF16;
}

static pc_operation *put(pc_builder *b, pc_operation_kind kind, const char *name, int launches) {
    assert(b->operations->count < PC_OPERATIONS_MAX);
    pc_operation *made = &b->operations->list[b->operations->count++];
    *made = (pc_operation){.kind = kind,
                           .role = b->is_backward ? PC_GEMM_INPUT_GRADIENT : PC_GEMM_FORWARD,
                           .name = name,
                           .precision = b->model->precision,
                           .format = of_memory(b),
                           .batch = 1,
                           .launches = launches,
                           .repeat = b->repeat};
    return made;
}

/* ---- matrix work ---- */

static void put_gemm(pc_builder *b, const char *name, pc_gemm_role role, int64_t batch, int64_t m, int64_t n, int64_t k,
                     pc_wide counted, pc_wide bytes) {
    pc_operation *made = put(b, PC_OPERATION_GEMM, name, 1);
    made->role = role;
    made->batch = batch;
    made->m = m;
    made->n = n;
    made->k = k;
    made->flops = fit(b, 2 * (pc_wide)batch * m * n * k);
    made->model_flops = b->is_again ? 0 : fit(b, counted);
    made->bytes = fit(b, bytes);
}

static void put_matrix(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role, int64_t m, int64_t n, int64_t k) {
    bool adds = role == PC_GEMM_WEIGHT_GRADIENT && b->sums_apart == 0;
    pc_wide read = pc_low_bytes(b, role, (pc_wide)m * k) + pc_low_bytes(b, role, (pc_wide)k * n);
    pc_wide written = (adds ? 2 * b->gradient_bytes : 2) * (pc_wide)m * n;
    put_gemm(b, matrix->name, role, 1, m, n, k, 2 * (pc_wide)b->slice.tokens * matrix->counted, read + written);
    pc_operation *made = &b->operations->list[b->operations->count - 1];
    made->format = pc_low_format(b, role);
    made->splits_accumulator =
        role != PC_GEMM_FORWARD && pc_product_format_is_low(made->format) && b->low->splits_accumulator;
}

void pc_add_forward(pc_builder *b, const pc_matrix *matrix) {
    pc_add_weight_cast(b, matrix, PC_GEMM_FORWARD);
    put_matrix(b, matrix, PC_GEMM_FORWARD, b->slice.tokens, matrix->outputs, matrix->inputs);
}

void pc_add_input_gradient(pc_builder *b, const pc_matrix *matrix) {
    pc_add_weight_cast(b, matrix, PC_GEMM_INPUT_GRADIENT);
    put_matrix(b, matrix, PC_GEMM_INPUT_GRADIENT, b->slice.tokens, matrix->inputs, matrix->outputs);
}

/* Reads the product's 16 bits and the sum, and writes the sum, in all microbatches but the first: a pass is the mean of
 * them. */
static void add_gradient_sum(pc_builder *b, const pc_matrix *matrix) {
    pc_wide bytes = (2 + 2 * b->gradient_bytes) * (pc_wide)matrix->inputs * matrix->outputs;
    pc_operation *made = put(b, PC_OPERATION_ELEMENTWISE, "gradient_sum", 1);
    made->role = PC_GEMM_WEIGHT_GRADIENT;
    made->function = "add";
    made->bytes = fit(b, bytes * (b->sums_apart - 1) / b->sums_apart);
}

void pc_add_weight_gradient(pc_builder *b, const pc_matrix *matrix) {
    if (pc_matrix_is_frozen(b, matrix)) return;
    pc_add_weight_gradient_casts(b, matrix);
    put_matrix(b, matrix, PC_GEMM_WEIGHT_GRADIENT, matrix->outputs, matrix->inputs, b->slice.tokens);
    if (b->sums_apart > 1) add_gradient_sum(b, matrix);
}

void pc_add_batched(pc_builder *b, const char *name, pc_gemm_role role, int64_t m, int64_t n, int64_t k) {
    pc_wide batch = b->slice.attention, elements = (pc_wide)m * k + (pc_wide)k * n + (pc_wide)m * n;
    put_gemm(b, name, role, b->slice.attention, m, n, k, 2 * batch * m * n * k, 2 * batch * elements);
}

void pc_add_flash(pc_builder *b, pc_gemm_role role, int products, int counted, int tensors, int kv_tensors,
                  int launches) {
    const pc_slice *x = &b->slice;
    pc_wide product = 2 * (pc_wide)x->attention * x->sequence * x->sequence * x->head_dim;
    pc_operation *made = put(b, PC_OPERATION_ATTENTION, "attention", launches);
    made->role = role;
    made->batch = x->attention;
    made->m = made->n = x->sequence;
    made->k = x->head_dim;
    made->flops = fit(b, products * product);
    made->model_flops = b->is_again ? 0 : fit(b, counted * product);
    made->bytes = fit(b, 2 * (pc_wide)x->tokens * ((pc_wide)tensors * x->query + (pc_wide)kv_tensors * x->key));
    made->is_causal = true;
}

/* ---- memory work ---- */

void pc_add_kernel(pc_builder *b, pc_operation_kind kind, const char *name, const char *function, pc_wide elements,
                   int bytes, int launches) {
    pc_operation *made = put(b, kind, name, launches);
    made->function = function;
    made->bytes = fit(b, elements * bytes);
}

static const char *norm_of(const pc_builder *b) {
    return b->model->norm == PC_NORM_RMS ? "rms_norm" : "layer_norm";
}

static bool is_eager_rms(const pc_builder *b) {
    return b->is_eager && b->model->norm == PC_NORM_RMS;
}

/* Reads and writes. */
void pc_add_norm(pc_builder *b, const char *name) {
    if (is_eager_rms(b)) return pc_add_eager_norm(b, name);
    pc_add_kernel(b, PC_OPERATION_NORM, name, norm_of(b), (pc_wide)b->slice.norm_tokens * b->slice.hidden, 2 + 2, 1);
}

/* One kernel reads gradient and input and writes the input's gradient; two read both again and sum for scale and shift,
 * which are so few that they are B's work. */
void pc_add_norm_backward(pc_builder *b, const char *name) {
    bool is_frozen = b->slice.frozen & (int32_t)PC_FROZEN_LAYERS;
    if (is_eager_rms(b)) return pc_add_eager_norm_backward(b, name);
    pc_add_kernel(b, PC_OPERATION_NORM, name, norm_of(b), (pc_wide)b->slice.norm_tokens * b->slice.hidden,
                  is_frozen ? 6 : 6 + 4, is_frozen ? 1 : 3);
}

/* The first of its kernels stands for all. */
void pc_add_graph(pc_builder *b, pc_graphs graph, int first) {
    if (!(b->slice.graphs & (int32_t)graph)) return;
    for (int i = first; i < b->operations->count; i++) b->operations->list[i].launches = i == first;
}

/* ---- collectives ---- */

void pc_add_collective(pc_builder *b, pc_operation_kind kind, const char *name, pc_wide bytes, bool can_overlap) {
    if (!b->slice.is_cut) return;
    pc_operation *made = put(b, kind, name, 1);
    made->size_bytes = fit(b, bytes);
    made->can_overlap = can_overlap;
}

void pc_add_gather(pc_builder *b, const char *name, bool can_overlap) {
    if (!b->slice.is_sequence_cut) return;
    pc_add_collective(b, PC_OPERATION_ALL_GATHER, name, 2 * (pc_wide)b->slice.tokens * b->slice.hidden, can_overlap);
}

void pc_add_reduction(pc_builder *b, const char *name, bool can_overlap) {
    pc_operation_kind kind = b->slice.is_sequence_cut ? PC_OPERATION_REDUCE_SCATTER : PC_OPERATION_ALL_REDUCE;
    pc_add_collective(b, kind, name, 2 * (pc_wide)b->slice.tokens * b->slice.hidden, can_overlap);
}

/* The gather runs beside the input's GEMM, the reduction beside the weights' GEMM; where W is a pass of its own, the
 * gather runs beside another matrix, and nothing hides the reduction; nor beside a frozen matrix, which gathers
 * nothing.
 */
void pc_add_column_backward(pc_builder *b, const pc_matrix *matrix, pc_backward passes) {
    bool adds = passes.w && !pc_matrix_is_frozen(b, matrix);
    pc_add_adapter_backward(b, matrix, passes);
    if (adds) pc_add_low_gather(b, matrix->name, PC_GEMM_WEIGHT_GRADIENT, true);
    if (passes.b) pc_add_input_gradient(b, matrix);
    if (passes.b) pc_add_reduction(b, matrix->name, adds);
    if (adds) pc_add_weight_gradient(b, matrix);
}
