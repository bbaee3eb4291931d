/* What stands beside a matrix that has an adapter, kernel by kernel: dropout, A, B, the scale, and a sum (lora.h). A
 * column's input is gathered already, for the matrix; so A's gradient of it, this rank's part, is added before the
 * matrix's own reduction. Rows of experts are gathered and summed up by what dispatches them. */
#include "models/workload/operations_private.h"

/* A and B as this rank has them. */
typedef struct adapter {
    pc_matrix down, up;
    int64_t rank;
    int64_t ranks;           /* over whom both are cut: TP's, or those of experts; 1: they are whole */
    int64_t rows;            /* that A reads, all of them behind a gather */
    pc_wide inputs, outputs; /* elements on this rank that are dropped, and that are scaled and added */
    bool is_column, is_routed;
} adapter;

/* Of a matrix that is whole on every rank, and has this one's rows. */
static bool is_duplicated(const pc_matrix *matrix) {
    return matrix->is_local && matrix->groups == 0;
}

static int64_t ranks_of(const pc_builder *b, const pc_matrix *matrix) {
    if (matrix->groups > 0) return b->slice.experts.cut;
    return is_duplicated(matrix) ? 1 : b->slice.ranks;
}

static pc_wide whole_outputs(const pc_builder *b, const pc_matrix *matrix, const adapter *x) {
    const pc_model *model = b->model;
    bool is_qkv = matrix->target == PC_LORA_QKV;
    if (is_qkv) return (pc_wide)(model->heads + 2 * model->kv_heads) * model->head_dim;
    return x->is_column ? (pc_wide)matrix->outputs * x->ranks : (pc_wide)matrix->outputs;
}

/* Over the rows of the matrix that it stands beside: expert by expert, or all in one. */
static pc_matrix make(const pc_builder *b, const pc_matrix *matrix, const char *name, int64_t inputs, int64_t outputs,
                      pc_wide counted) {
    return (pc_matrix){.name = name,
                       .inputs = inputs,
                       .outputs = outputs,
                       .counted = counted,
                       .target = matrix->target,
                       .is_local = matrix->is_local,
                       .rows = matrix->rows,
                       .groups = b->slice.lora.shares_experts ? 0 : matrix->groups,
                       .counted_rows = matrix->counted_rows,
                       .is_one_kernel = true};
}

/* A row's B has a t-th of the columns, whose product is gathered; a column's A likewise. Where all ranks have the
 * whole, each counts a t-th. */
static adapter adapter_of(const pc_builder *b, const pc_matrix *matrix) {
    const pc_slice *slice = &b->slice;
    bool is_routed = matrix->groups > 0;
    adapter x = {.rank = is_routed ? slice->experts.adapter_rank : slice->lora.rank,
                 .ranks = ranks_of(b, matrix),
                 .rows = pc_matrix_rows(b, matrix),
                 .is_routed = is_routed,
                 .is_column = is_routed ? matrix->target == PC_LORA_FC1 : matrix->is_column || is_duplicated(matrix)};
    int64_t part = x.rank / x.ranks, counted = is_duplicated(matrix) ? x.rank / slice->ranks : part;
    int64_t own = matrix->is_local ? x.rows : slice->norm_tokens;
    pc_wide all_inputs = (pc_wide)matrix->inputs * (x.is_column ? 1 : x.ranks);
    x.down = make(b, matrix, "lora_a", matrix->inputs, x.is_column ? part : x.rank, all_inputs * counted);
    x.up = make(b, matrix, "lora_b", x.rank, x.is_column ? matrix->outputs : matrix->outputs / x.ranks,
                whole_outputs(b, matrix, &x) * counted);
    x.inputs = (pc_wide)(x.is_column ? own : x.rows) * matrix->inputs;
    x.outputs = (pc_wide)(x.is_column ? x.rows : own) * matrix->outputs;
    return x;
}

static void add(pc_builder *b, const char *function, pc_wide elements, int bytes) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, "lora", function, elements, bytes, 1);
}

/* rows x `columns` of 2 bytes: whole on all ranks behind it. */
static void add_exchange(pc_builder *b, const adapter *x, pc_operation_kind kind, int64_t columns) {
    pc_wide bytes = 2 * (pc_wide)x->rows * columns;
    if (x->ranks == 1) return;
    if (x->is_routed) return pc_add_context_collective(b, PC_GROUP_ETP, kind, "lora", bytes, false);
    pc_add_collective(b, kind, "lora", bytes, false);
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

/* Others scale and add in place of kernels of their own, and read 2 bytes more: products (te.ops:
 * ForwardLinearScaleAdd, BackwardLinearScale, BackwardLinearAdd), not with TP, nor of routed experts; or, compiled, the
 * kernels behind, which are counted likewise. */
static bool adds_in_products(const pc_builder *b, const pc_matrix *matrix) {
    bool can_fuse = b->slice.ranks == 1 && matrix->groups == 0;
    return b->slice.compiles || (b->slice.fuses_operations && can_fuse);
}

bool pc_adapter_adds(const pc_builder *b, const pc_matrix *matrix) {
    return adds_in_products(b, matrix) && pc_lora_is_at(&b->slice.lora, matrix->target) &&
           pc_matrix_is_frozen(b, matrix);
}

/* B's product stands last in the list: it, or who reads what it puts out, reads what it is added to. */
static void read_sum(pc_builder *b, pc_wide elements) {
    b->operations->list[b->operations->count - 1].bytes += (int64_t)(2 * elements);
}

static void add_scaled_output(pc_builder *b, pc_wide elements) {
    add(b, "residual", elements, 2 + 2);
    add(b, "add", elements, 2 + 2 + 2);
}

/* Rows of all experts are joined to one tensor, where each has its own adapter (torch.cat of grouped_inputs). */
static void join_rows(pc_builder *b, const adapter *x) {
    if (x->down.groups > 1) add(b, "copy", (pc_wide)x->rows * x->down.inputs, 2 + 2);
}

void pc_add_adapter_forward(pc_builder *b, const pc_matrix *matrix) {
    if (!pc_lora_is_at(&b->slice.lora, matrix->target)) return;
    adapter x = adapter_of(b, matrix);
    bool is_fused = adds_in_products(b, matrix);
    if (b->slice.lora.dropout > 0) add(b, "dropout", x.inputs, 2 + 2 + 1);
    join_rows(b, &x);
    add_product(b, &x.down, PC_GEMM_FORWARD);
    add_exchange(b, &x, x.is_column ? PC_OPERATION_ALL_GATHER : PC_OPERATION_ALL_REDUCE, x.rank);
    add_product(b, &x.up, PC_GEMM_FORWARD);
    if (is_fused) read_sum(b, x.outputs);
    if (!x.is_column) add_exchange(b, &x, PC_OPERATION_ALL_GATHER, matrix->outputs);
    if (!is_fused) add_scaled_output(b, x.outputs);
}

/* The gradient of what B reads is a sum over the ranks in both. A row's output was scattered along the sequence: its
 * gradient is gathered; that of experts is. */
static void add_input_gradients(pc_builder *b, const pc_matrix *matrix, const adapter *x) {
    bool is_fused = adds_in_products(b, matrix), is_scattered = !x->is_routed && b->slice.is_sequence_cut;
    if (!is_fused) add(b, "residual", x->outputs, 2 + 2);
    if (!x->is_column && is_scattered) add_exchange(b, x, PC_OPERATION_ALL_GATHER, matrix->outputs);
    add_product(b, &x->up, PC_GEMM_INPUT_GRADIENT);
    add_exchange(b, x, PC_OPERATION_ALL_REDUCE, x->rank);
    add_product(b, &x->down, PC_GEMM_INPUT_GRADIENT);
    if (b->slice.lora.dropout > 0) add(b, "dropout", x->inputs, 2 + 1 + 2);
    if (!is_fused) add(b, "add", (pc_wide)x->rows * matrix->inputs, 2 + 2 + 2);
}

void pc_add_adapter_backward(pc_builder *b, const pc_matrix *matrix, pc_backward passes) {
    if (!pc_lora_is_at(&b->slice.lora, matrix->target)) return;
    adapter x = adapter_of(b, matrix);
    if (passes.b) add_input_gradients(b, matrix, &x);
    if (passes.w) add_product(b, &x.up, PC_GEMM_WEIGHT_GRADIENT);
    if (passes.w) add_product(b, &x.down, PC_GEMM_WEIGHT_GRADIENT);
}
