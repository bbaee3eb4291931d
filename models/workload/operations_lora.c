/* What stands beside a matrix that has an adapter, kernel by kernel: dropout, A, B, the scale, and a sum (lora.h). A
 * column's input is gathered already, for the matrix; so A's gradient of it, this rank's part, is added before the
 * matrix's own reduction. */
#include "models/workload/operations_private.h"

/* A and B as this rank has them. */
typedef struct adapter {
    pc_matrix down, up;
    int64_t rank;
    pc_wide inputs, outputs; /* elements on this rank that are dropped, and that are scaled and added */
} adapter;

static pc_wide whole_outputs(const pc_builder *b, const pc_matrix *matrix) {
    const pc_model *model = b->model;
    bool is_qkv = matrix->target == PC_LORA_QKV;
    if (is_qkv) return (pc_wide)(model->heads + 2 * model->kv_heads) * model->head_dim;
    return matrix->is_column ? (pc_wide)matrix->outputs * b->slice.ranks : (pc_wide)matrix->outputs;
}

/* A row's B has a t-th of the columns, whose product is gathered; a column's A likewise. */
static adapter adapter_of(const pc_builder *b, const pc_matrix *matrix) {
    const pc_slice *x = &b->slice;
    int64_t rank = x->lora.rank, part = rank / x->ranks,
            all_inputs = matrix->inputs * (matrix->is_column ? 1 : x->ranks);
    bool is_column = matrix->is_column;
    pc_wide rows = (pc_wide)x->norm_tokens * x->hidden;
    return (adapter){.down = {.name = "lora_a", .inputs = matrix->inputs, .outputs = is_column ? part : rank, .counted = (pc_wide)all_inputs * part, .is_column = is_column, .target = matrix->target},
                     .up = {.name = "lora_b", .inputs = rank, .outputs = is_column ? matrix->outputs : matrix->outputs / x->ranks, .counted = whole_outputs(b, matrix) * part, .is_column = true, .target = matrix->target},
                     .rank = rank,
                     .inputs = is_column ? rows : (pc_wide)x->tokens * matrix->inputs,
                     .outputs = is_column ? (pc_wide)x->tokens * matrix->outputs : rows};
}

static void add(pc_builder *b, const char *function, pc_wide elements, int bytes) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, "lora", function, elements, bytes, 1);
}

/* tokens x `columns` of 2 bytes: whole on all ranks behind it. */
static void add_exchange(pc_builder *b, pc_operation_kind kind, int64_t columns) {
    pc_add_collective(b, kind, "lora", 2 * (pc_wide)b->slice.tokens * columns, false);
}

/* Adapters are of 16 bits, whatever the recipe; their weights have gradients. */
static void add_product(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role) {
    const pc_low_precision *low = b->low;
    int32_t frozen = b->slice.frozen;
    b->low = NULL;
    b->slice.frozen = 0;
    if (role == PC_GEMM_FORWARD)
        pc_add_forward(b, matrix);
    else if (role == PC_GEMM_INPUT_GRADIENT)
        pc_add_input_gradient(b, matrix);
    else
        pc_add_weight_gradient(b, matrix);
    b->slice.frozen = frozen;
    b->low = low;
}

void pc_add_adapter_forward(pc_builder *b, const pc_matrix *matrix) {
    if (!pc_lora_is_at(&b->slice.lora, matrix->target)) return;
    adapter x = adapter_of(b, matrix);
    if (b->slice.lora.dropout > 0) add(b, "dropout", x.inputs, 2 + 2 + 1);
    add_product(b, &x.down, PC_GEMM_FORWARD);
    add_exchange(b, matrix->is_column ? PC_OPERATION_ALL_GATHER : PC_OPERATION_ALL_REDUCE, x.rank);
    add_product(b, &x.up, PC_GEMM_FORWARD);
    if (!matrix->is_column) add_exchange(b, PC_OPERATION_ALL_GATHER, matrix->outputs);
    add(b, "residual", x.outputs, 2 + 2);
    add(b, "add", x.outputs, 2 + 2 + 2);
}

/* The gradient of what B reads is a sum over the ranks in both. A row's output was scattered along the sequence: its
 * gradient is gathered. */
static void add_input_gradients(pc_builder *b, const pc_matrix *matrix, const adapter *x) {
    add(b, "residual", x->outputs, 2 + 2);
    if (!matrix->is_column && b->slice.is_sequence_cut) add_exchange(b, PC_OPERATION_ALL_GATHER, matrix->outputs);
    add_product(b, &x->up, PC_GEMM_INPUT_GRADIENT);
    add_exchange(b, PC_OPERATION_ALL_REDUCE, x->rank);
    add_product(b, &x->down, PC_GEMM_INPUT_GRADIENT);
    if (b->slice.lora.dropout > 0) add(b, "dropout", x->inputs, 2 + 1 + 2);
    add(b, "add", (pc_wide)b->slice.tokens * matrix->inputs, 2 + 2 + 2);
}

void pc_add_adapter_backward(pc_builder *b, const pc_matrix *matrix, pc_backward passes) {
    if (!pc_lora_is_at(&b->slice.lora, matrix->target)) return;
    adapter x = adapter_of(b, matrix);
    if (passes.b) add_input_gradients(b, matrix, &x);
    if (passes.w) add_product(b, &x.up, PC_GEMM_WEIGHT_GRADIENT);
    if (passes.w) add_product(b, &x.down, PC_GEMM_WEIGHT_GRADIENT);
}
