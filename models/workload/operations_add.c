#include "models/workload/operations_private.h"

#include "engine/numbers.h"

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

/* Its products' FLOPs are those of its rows; each group has the mean of them, rounded up. */
static void group(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role) {
    pc_operation *made = &b->operations->list[b->operations->count - 1];
    int64_t mean = pc_divide_up(matrix->rows, matrix->groups);
    made->kind = PC_OPERATION_GROUPED_GEMM;
    made->batch = matrix->groups;
    made->rows = matrix->rows;
    made->launches = pc_grouped_launches(b, matrix);
    made->is_by_expert = true;
    *(role == PC_GEMM_WEIGHT_GRADIENT ? &made->k : &made->m) = mean;
    made->flops = fit(b, 2 * (pc_wide)matrix->rows * matrix->inputs * matrix->outputs);
}

/* m x n x k of one matrix; weights and their gradients count for every group. */
static void put_matrix(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role, int64_t m, int64_t n, int64_t k) {
    bool is_weights = role == PC_GEMM_WEIGHT_GRADIENT, adds = is_weights && b->sums_apart == 0;
    pc_wide groups = matrix->groups > 0 ? matrix->groups : 1, rows = (pc_wide)m * k, weights = groups * k * n;
    const pc_low_precision *low = b->low;
    int64_t counted = matrix->counted_rows > 0 ? matrix->counted_rows : b->slice.tokens;
    if (matrix->is_wide) b->low = NULL;
    pc_wide read = pc_low_bytes(b, role, rows) + pc_low_bytes(b, role, is_weights ? (pc_wide)k * n : weights);
    pc_wide written = (adds ? 2 * b->gradient_bytes : 2) * (is_weights ? groups : 1) * (pc_wide)m * n;
    if (role == PC_GEMM_INPUT_GRADIENT && pc_adapter_adds(b, matrix)) read += 2 * (pc_wide)m * n;
    put_gemm(b, matrix->name, role, 1, m, n, k, 2 * (pc_wide)counted * matrix->counted, read + written);
    if (matrix->groups > 0) group(b, matrix, role);
    pc_operation *made = &b->operations->list[b->operations->count - 1];
    made->format = pc_low_format(b, role);
    made->splits_accumulator =
        role != PC_GEMM_FORWARD && pc_product_format_is_low(made->format) && b->low->splits_accumulator;
    b->low = low;
}

void pc_add_forward(pc_builder *b, const pc_matrix *matrix) {
    pc_add_weight_cast(b, matrix, PC_GEMM_FORWARD);
    put_matrix(b, matrix, PC_GEMM_FORWARD, pc_matrix_rows(b, matrix), matrix->outputs, matrix->inputs);
}

void pc_add_input_gradient(pc_builder *b, const pc_matrix *matrix) {
    pc_add_weight_cast(b, matrix, PC_GEMM_INPUT_GRADIENT);
    put_matrix(b, matrix, PC_GEMM_INPUT_GRADIENT, pc_matrix_rows(b, matrix), matrix->inputs, matrix->outputs);
}

/* Reads the product's 16 bits and the sum, and writes the sum, in all microbatches but the first: a pass is the mean of
 * them. */
static void add_gradient_sum(pc_builder *b, const pc_matrix *matrix) {
    pc_wide bytes = (2 + 2 * b->gradient_bytes) * pc_matrix_weights(matrix);
    pc_operation *made = put(b, PC_OPERATION_ELEMENTWISE, "gradient_sum", 1);
    made->role = PC_GEMM_WEIGHT_GRADIENT;
    made->function = "add";
    made->bytes = fit(b, bytes * (b->sums_apart - 1) / b->sums_apart);
}

void pc_add_weight_gradient(pc_builder *b, const pc_matrix *matrix) {
    if (pc_matrix_is_frozen(b, matrix)) return;
    pc_add_weight_gradient_casts(b, matrix);
    put_matrix(b, matrix, PC_GEMM_WEIGHT_GRADIENT, matrix->outputs, matrix->inputs, pc_matrix_rows(b, matrix));
    if (b->sums_apart > 1) add_gradient_sum(b, matrix);
}

void pc_add_batched(pc_builder *b, const char *name, pc_gemm_role role, int64_t m, int64_t n, int64_t k) {
    const pc_slice *x = &b->slice;
    pc_wide batch = x->attention, elements = (pc_wide)m * k + (pc_wide)k * n + (pc_wide)m * n;
    int64_t width = m == n ? k : n; /* the one that is no sequence */
    pc_wide counted = 2 * batch * x->sequence * pc_sight_keys(*b->sight) * width;
    put_gemm(b, name, role, x->attention, m, n, k, counted, 2 * batch * elements);
}

pc_flash_block pc_whole_flash(const pc_slice *slice) {
    return (pc_flash_block){.heads = slice->attention,
                            .queries = slice->sequence,
                            .keys = slice->keys,
                            .read = (slice->keys + slice->sequence) / 2};
}

/* Heads of the keys are as many fewer than the queries' as their columns are. */
static pc_wide flash_numbers(const pc_slice *x, const pc_flash_block *block, int tensors) {
    pc_wide of_queries = (pc_wide)block->heads * block->queries * x->head_dim;
    int64_t read = block->read > 0 ? block->read : block->keys;
    pc_wide of_keys = (pc_wide)block->heads * read * x->head_dim * x->key / x->query;
    if (x->value == x->key) return (pc_wide)tensors * (of_queries + of_keys);
    pc_wide both = (of_queries + of_keys) / x->head_dim; /* half of the tensors are as wide as values */
    return (pc_wide)tensors * both * (x->head_dim + x->value_dim) / 2;
}

/* What a document, or a chunk, has of a piece of the sequence: ranks of context parallelism cut each likewise. */
static int64_t of_document(int64_t tokens, int64_t length, int64_t sequence) {
    return pc_divide_up(tokens * length, sequence);
}

void pc_add_flash_block(pc_builder *b, pc_gemm_role role, const pc_flash_block *block) {
    const bool is_forward = role == PC_GEMM_FORWARD;
    const int products = is_forward ? 2 : 5, counted = is_forward ? 2 : 4, tensors = is_forward ? 2 : 4;
    const pc_sight *sight = b->sight;
    int64_t s = b->slice.sequence;
    pc_wide scores = (pc_wide)block->queries * block->keys * pc_sight_keys(*sight) / s * (block->is_below ? 2 : 1);
    /* Of five products three are as wide as queries, of four and two half. */
    int64_t wide = b->slice.head_dim, narrow = b->slice.value_dim;
    pc_wide product = 2 * (pc_wide)block->heads * scores * wide, rest = 2 * (pc_wide)block->heads * scores * narrow;
    pc_operation *made = put(b, PC_OPERATION_ATTENTION, "attention", is_forward ? 1 : 3);
    made->role = role;
    made->batch = fit(b, ((pc_wide)block->heads * s + sight->length - 1) / sight->length);
    made->m = of_document(block->queries, sight->length, s);
    made->n = of_document(block->keys, sight->length, s);
    made->window = sight->window;
    made->k = b->slice.head_dim;
    made->value_dim = narrow == wide ? 0 : narrow;
    made->flops = fit(b, (products + 1) / 2 * product + products / 2 * rest);
    made->model_flops = b->is_again ? 0 : fit(b, counted / 2 * (product + rest));
    made->bytes = fit(b, pc_attention_bytes(b, flash_numbers(&b->slice, block, tensors)));
    if (pc_attends_low(b)) made->format = PC_PRODUCT_FP8;
    made->is_below = block->is_below;
    made->is_causal = !block->is_below;
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
static void add_norms(pc_builder *b, const char *name, pc_wide elements, int count) {
    if (is_eager_rms(b)) return pc_add_eager_norm(b, name, elements, count);
    pc_add_kernel(b, PC_OPERATION_NORM, name, norm_of(b), elements, 2 + 2, count);
}

/* One kernel reads gradient and input and writes the input's gradient; two read both again and sum for scale and shift,
 * which are so few that they are B's work. */
static void add_norms_backward(pc_builder *b, const char *name, pc_wide elements, int count) {
    bool is_frozen = b->slice.frozen & (int32_t)PC_FROZEN_LAYERS;
    int sums = is_frozen || b->model->norm == PC_NORM_LAYER_NO_AFFINE ? 0 : 1;
    if (is_eager_rms(b)) return pc_add_eager_norm_backward(b, name, elements, count);
    pc_add_kernel(b, PC_OPERATION_NORM, name, norm_of(b), elements, 6 + 4 * sums, (1 + 2 * sums) * count);
}

void pc_add_norm(pc_builder *b, const char *name) {
    add_norms(b, name, (pc_wide)b->slice.norm_tokens * b->slice.hidden, 1);
}

void pc_add_norm_backward(pc_builder *b, const char *name) {
    add_norms_backward(b, name, (pc_wide)b->slice.norm_tokens * b->slice.hidden, 1);
}

/* Of this rank's heads, whatever of the sequence is cut. */
static pc_wide qk_elements(const pc_slice *slice) {
    return (pc_wide)slice->tokens * (slice->query + slice->key);
}

void pc_add_qk_norm(pc_builder *b) {
    if (b->model->qk_norm != PC_QK_NORM_NONE) add_norms(b, "qk_norm", qk_elements(&b->slice), 2);
}

void pc_add_qk_norm_backward(pc_builder *b) {
    if (b->model->qk_norm != PC_QK_NORM_NONE) add_norms_backward(b, "qk_norm", qk_elements(&b->slice), 2);
}

/* The first of its kernels stands for all. */
void pc_add_graph(pc_builder *b, pc_graphs graph, int first) {
    if (!(b->slice.graphs & (int32_t)graph)) return;
    for (int i = first; i < b->operations->count; i++) {
        b->operations->list[i].launches = i == first;
        b->operations->list[i].is_within = false;
    }
}

/* ---- collectives ---- */

void pc_add_collective(pc_builder *b, pc_operation_kind kind, const char *name, pc_wide bytes, bool can_overlap) {
    if (!b->slice.is_cut) return;
    pc_operation *made = put(b, kind, name, 1);
    made->size_bytes = fit(b, bytes);
    made->can_overlap = can_overlap;
}

void pc_add_context_collective(pc_builder *b, pc_operation_group group, pc_operation_kind kind, const char *name,
                               pc_wide bytes, bool can_overlap) {
    pc_operation *made = put(b, kind, name, 1);
    made->group = group;
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
