/* A layer's experts as Megatron-LM runs them (megatron/core/transformer/moe: router.py, token_dispatcher.py,
 * moe_utils.py, experts.py, shared_experts.py), with its fused kernels.
 *
 * The router's product reads 16 bits and writes fp32; scores and the choice of topk follow in fp32. Tokens are copied
 * to rows in the order of their experts (permute), of which each expert multiplies its own in one grouped product.
 * Probabilities scale the activation, so that the way back from rows to tokens (unpermute) is a sum of topk rows. The
 * alltoall dispatcher permutes before it sends and sorts what comes by experts, where a rank has several; the others
 * permute what has come. With experts that are cut, all ranks of the cut get the rows of each, and add up theirs.
 *
 * Shared experts come before the routed ones' way. With moe_shared_expert_overlap their first product and what follows
 * it run beside the dispatch, the second one beside the combine; backward the other way round (shared_experts.py). What
 * tensor parallelism moves for them stays in front and behind. */
#include "engine/numbers.h"
#include "models/workload/operations_private.h"

/* In bytes a logit. Scores: read and written; the choice: read, a probability and a mark written. */
enum { PADDED_ROWS = 32 };
enum { ROUTER_BYTES = 4 + 4 + 4 + 4 + 1, ROUTER_BACK_BYTES = 4 + 4 + 4, ROUTER_LAUNCHES = 4 };

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, int bytes, int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, bytes, launches);
}

static bool is_frozen(const pc_builder *b) {
    return b->slice.frozen & (int32_t)PC_FROZEN_LAYERS;
}

/* ---- matrices ---- */

static pc_matrix make_router(const pc_slice *x, int64_t experts) {
    return (pc_matrix){.name = "router",
                       .inputs = x->hidden,
                       .outputs = experts,
                       .target = PC_LORA_NONE,
                       .is_local = true,
                       .rows = x->experts.tokens,
                       .is_wide = true};
}

/* Whether a dispatch brings rows as the products read them: with a scale for every 128 numbers. Rows of other recipes
 * are counted as if they had come in 16 bits. */
static bool comes_low(const pc_builder *b, pc_gemm_role role) {
    return b->low && b->fp8_dispatch && b->slice.experts.ranks > 1 && b->low->keeps_inputs &&
           pc_low_format(b, role) == PC_PRODUCT_FP8_BLOCK;
}

static pc_matrix make_grouped(const pc_slice *x, const char *name, int64_t inputs, int64_t outputs, bool is_up) {
    return (pc_matrix){.name = name,
                       .inputs = inputs,
                       .outputs = outputs,
                       .counted = (pc_wide)inputs * outputs,
                       .target = is_up ? PC_LORA_FC1 : PC_LORA_FC2,
                       .is_local = true,
                       .rows = x->experts.rows,
                       .groups = x->experts.experts,
                       .counted_rows = x->experts.counted};
}

static pc_matrix expert_up(const pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_matrix up = make_grouped(x, "expert_up", x->hidden, x->experts.up, true);
    up.input_is_low = comes_low(b, PC_GEMM_FORWARD);
    return up;
}

static pc_matrix expert_down(const pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_matrix down = make_grouped(x, "expert_down", x->experts.ffn, x->hidden, false);
    down.gradient_is_low = comes_low(b, PC_GEMM_INPUT_GRADIENT);
    return down;
}

static pc_matrix shared_up(const pc_slice *x) {
    return (pc_matrix){.name = "shared_up",
                       .inputs = x->hidden,
                       .outputs = x->experts.shared_up,
                       .counted = (pc_wide)x->hidden * x->experts.shared_up,
                       .is_column = true,
                       .target = PC_LORA_FC1};
}

static pc_matrix shared_down(const pc_slice *x) {
    return (pc_matrix){.name = "shared_down",
                       .inputs = x->experts.shared,
                       .outputs = x->hidden,
                       .counted = (pc_wide)x->experts.shared * x->hidden,
                       .target = PC_LORA_FC2};
}

/* ---- what moves tokens ---- */

/* Tokens of this rank, or of all that cut an expert where these have been gathered before. */
static int64_t dispatched_tokens(const pc_builder *b) {
    const pc_expert_slice *e = &b->slice.experts;
    return b->dispatcher == PC_DISPATCHER_ALLGATHER ? e->tokens * e->cut : e->tokens;
}

/* Half of the shared experts' work, which may run beside an exchange; NULL: nothing does. */
typedef void shared_half(pc_builder *b, pc_backward passes);

/* What stands last in the list has the kernels of `half` beside it. */
static void put_beside(pc_builder *b, shared_half *half, pc_backward passes) {
    pc_operations *operations = b->operations;
    int exchange = operations->count - 1;
    half(b, passes);
    operations->list[exchange].can_overlap = true;
    operations->list[exchange].beside = operations->count - 1 - exchange;
}

/* Nothing where one rank has all experts, but what would run beside it. */
static void move(pc_builder *b, pc_operation_kind kind, const char *name, shared_half *half, pc_backward passes) {
    const pc_expert_slice *e = &b->slice.experts;
    if (e->ranks == 1 && half) half(b, passes);
    if (e->ranks == 1) return;
    pc_wide bytes = 2 * (pc_wide)dispatched_tokens(b) * e->topk * b->slice.hidden;
    pc_add_context_collective(b, PC_GROUP_EP, kind, name, bytes, false);
    pc_operation *made = &b->operations->list[b->operations->count - 1];
    made->batch = e->experts * e->ranks;
    made->m = dispatched_tokens(b);
    made->n = e->topk;
    made->k = b->slice.hidden;
    made->rows = e->rows;
    if (half) put_beside(b, half, passes);
}

/* All that cut an expert get what each of them has: its tokens before the dispatcher, or its rows behind it. */
static void gather_rows(pc_builder *b, pc_operation_kind kind, const char *name, bool is_before) {
    const pc_expert_slice *e = &b->slice.experts;
    bool gathers_tokens = b->dispatcher == PC_DISPATCHER_ALLGATHER;
    if (e->cut == 1 || gathers_tokens != is_before) return;
    pc_wide elements = (pc_wide)(gathers_tokens ? e->tokens * e->cut : e->rows) * b->slice.hidden;
    pc_add_context_collective(b, PC_GROUP_ETP, kind, name, 2 * elements, false);
}

/* Reads tokens and writes rows, or the other way round. Where rows are of few tokens, they are what is read. */
static pc_wide copied(const pc_builder *b, int64_t tokens, int64_t rows) {
    return ((pc_wide)pc_min(tokens, rows) + rows) * b->slice.hidden;
}

static void copy_rows(pc_builder *b, const char *name, int64_t tokens, int64_t rows) {
    add(b, name, "permute", copied(b, tokens, rows), 2, 1);
}

/* Of what was dispatched, which may be of 8 bits. */
static void copy_dispatched(pc_builder *b, int64_t tokens, int64_t rows) {
    pc_gemm_role role = b->is_backward ? PC_GEMM_INPUT_GRADIENT : PC_GEMM_FORWARD;
    if (!comes_low(b, role)) return copy_rows(b, "permute", tokens, rows);
    add(b, "permute", "permute", pc_low_bytes(b, role, copied(b, tokens, rows)), 1, 1);
}

static bool permutes_first(const pc_builder *b) {
    return b->dispatcher == PC_DISPATCHER_ALLTOALL && b->slice.experts.ranks > 1;
}

/* From tokens to rows: F's way in, and B's way back from the sum. */
static void scatter(pc_builder *b, pc_operation_kind kind, const char *name, shared_half *half, pc_backward passes) {
    const pc_expert_slice *e = &b->slice.experts;
    bool is_first = permutes_first(b);
    if (is_first) copy_rows(b, "permute", e->tokens, e->sent);
    gather_rows(b, PC_OPERATION_ALL_GATHER, name, true);
    move(b, kind, name, half, passes);
    gather_rows(b, PC_OPERATION_ALL_GATHER, name, false);
    if (!is_first) copy_dispatched(b, e->tokens * e->cut * e->ranks, e->rows);
    if (is_first && e->experts > 1) copy_rows(b, "sort", e->rows, e->rows);
}

/* Products in few bits take multiples of 16 or 32 rows of an expert: TEGroupedMLP copies rows to places with room
 * between experts, and back behind the products (fp8_padding, fp8_unpadding). HybridEP leaves the room as it brings
 * them (pad_multiple of token_dispatcher.py's _HybridEPManager). The operation fuser takes them as they are, and where
 * every expert has its capacity, a multiple of 32, nothing is copied. */
static void pad_rows(pc_builder *b, const char *name) {
    const pc_expert_slice *e = &b->slice.experts;
    bool is_low = pc_product_format_is_low(pc_low_format(b, b->is_backward ? PC_GEMM_INPUT_GRADIENT : PC_GEMM_FORWARD));
    bool is_even = b->model->experts.pads_to_capacity && e->rows % (PADDED_ROWS * e->experts) == 0;
    bool comes_padded = b->dispatcher == PC_DISPATCHER_HYBRIDEP && e->ranks > 1;
    if (is_low && !is_even && !comes_padded && !b->slice.fuses_operations) copy_rows(b, name, e->rows, e->rows);
}

/* And back. */
static void collect(pc_builder *b, pc_operation_kind kind, const char *name, shared_half *half, pc_backward passes) {
    const pc_expert_slice *e = &b->slice.experts;
    bool is_last = permutes_first(b);
    if (is_last && e->experts > 1) copy_rows(b, "sort", e->rows, e->rows);
    if (!is_last) copy_rows(b, "unpermute", e->tokens * e->cut * e->ranks, e->rows);
    gather_rows(b, PC_OPERATION_REDUCE_SCATTER, name, false);
    move(b, kind, name, half, passes);
    gather_rows(b, PC_OPERATION_REDUCE_SCATTER, name, true);
    if (is_last) copy_rows(b, "unpermute", e->tokens, e->sent);
}

/* ---- kernels between products ---- */

static const char *activation_of(const pc_builder *b) {
    return pc_mlp_is_gated(b->model->mlp) ? "swiglu" : "gelu";
}

/* To 8 bits in F and from them in B (weighted_bias_swiglu_impl); within the activation's kernel where that casts. */
static void cast_activation(pc_builder *b, pc_wide elements) {
    bool is_fused = b->low && b->low->fuses_activation;
    if (b->slice.stores_low_input && !is_fused && !b->is_again)
        add(b, "expert_activation_input", "cast", elements, 2 + 1, 1);
}

static void activate(pc_builder *b, const char *name, pc_wide rows, int64_t up, int64_t ffn) {
    pc_wide elements = b->is_backward ? rows * (ffn + 2 * (pc_wide)up) : rows * (up + ffn);
    cast_activation(b, rows * up);
    add(b, name, activation_of(b), elements, 2, 1);
}

/* Gate and linear part are cut off and joined again, one operator each, in front of the fused activation
 * (megatron/core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl): 2 + 2, and 2 + 2. Back: of the cut, its
 * input and both gradients, 2 + 2 + 2; of the halves, 2 + 2. The operation fuser does it in its activation. */
static bool clamps(const pc_builder *b) {
    return b->model->experts.activation_clamp > 0 && !b->slice.fuses_operations;
}

static void clamp(pc_builder *b) {
    const pc_expert_slice *e = &b->slice.experts;
    if (clamps(b)) add(b, "expert_clamp", "copy", (pc_wide)e->rows * e->up, b->is_backward ? 6 + 4 : 4 + 4, 3);
}

static void activate_experts(pc_builder *b) {
    const pc_expert_slice *e = &b->slice.experts;
    if (!b->is_backward) clamp(b);
    activate(b, "expert_activation", e->rows, e->up, e->ffn);
    if (b->is_backward) clamp(b);
}

/* The last product's bias, times a row's probability, is added by TEGroupedMLP expert by expert, by torch's operators:
 * t + b * p, what comes of all experts joined (megatron/core/transformer/moe/experts.py, _apply_bias). DeepEP's
 * probabilities have 32 bits (token_dispatcher.py), and with them all of it: 4; 2 + 4 + 4; joined, 4 + 4; to 16 bits,
 * 4 + 2. Others have the logits' 16 (moe_router_dtype is none): 2; 2 + 2 + 2; 2 + 2.
 * Back: the gradient to 32 bits, 2 + 4, and of each expert to 16, 4 + 2; times p and summed over rows for b, times b
 * and summed over columns for p, (4 + 4 + 4) each; joined, 2 + 2. In 16 bits: (2 + 2 + 2) each, and 2 + 2.
 * A frozen bias has no gradient: of each expert a product and a sum less. */
static void add_expert_bias(pc_builder *b) {
    const pc_expert_slice *e = &b->slice.experts;
    bool is_wide = b->dispatcher == PC_DISPATCHER_DEEPEP || b->dispatcher == PC_DISPATCHER_HYBRIDEP;
    int gradients = is_frozen(b) ? 1 : 2;
    int forward = is_wide ? 4 + 10 + 8 + 6 : 2 + 6 + 4,
        backward = is_wide ? 6 + 6 + gradients * 12 + 4 : gradients * 6 + 4;
    int each = b->is_backward ? (is_wide ? 1 : 0) + 2 * gradients : 2, all = is_wide ? 2 : 1;
    if (!b->model->has_bias || b->slice.fuses_operations) return;
    add(b, "expert_bias", "add", (pc_wide)e->rows * b->slice.hidden, b->is_backward ? backward : forward,
        each * (int)e->experts + all);
    b->operations->list[b->operations->count - 1].is_by_expert = true;
}

static void route(pc_builder *b) {
    int bytes = b->is_backward ? ROUTER_BACK_BYTES : ROUTER_BYTES;
    add(b, "router", "softmax", (pc_wide)b->slice.experts.tokens * b->model->experts.num_experts, bytes,
        ROUTER_LAUNCHES);
}

static pc_wide own_elements(const pc_builder *b) {
    return (pc_wide)b->slice.experts.tokens * b->slice.hidden;
}

static bool has_shared(const pc_builder *b) {
    return b->model->experts.shared_ffn_hidden > 0;
}

/* Reads the input for one number a token, which scales the output; back, both are read for its gradient, too, the input
 * for that of a weight that is trained. */
static void gate_shared(pc_builder *b) {
    int backward = is_frozen(b) ? 2 + 2 + 2 + 2 : 2 + 2 + 2 + 2 + 2;
    if (!b->model->experts.has_shared_gate) return;
    add(b, "shared_gate", "residual", own_elements(b), b->is_backward ? backward : 2 + 2 + 2, 3);
}

/* ---- shared experts, in two halves ---- */

static void add_shared_first(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_matrix up = shared_up(x);
    (void)passes;
    pc_add_forward(b, &up);
    pc_add_adapter_forward(b, &up);
    activate(b, "shared_activation", x->tokens, x->experts.shared_up, x->experts.shared);
}

static void add_shared_second(pc_builder *b, pc_backward passes) {
    pc_matrix down = shared_down(&b->slice);
    (void)passes;
    pc_add_input_cast(b, &down, PC_MAKER_ACTIVATION);
    pc_add_forward(b, &down);
}

static void gather_for_shared(pc_builder *b, pc_maker maker) {
    pc_matrix up = shared_up(&b->slice);
    pc_add_input_cast(b, &up, maker);
    pc_add_low_gather(b, "shared_up", PC_GEMM_FORWARD, false);
}

static void reduce_shared(pc_builder *b) {
    pc_matrix down = shared_down(&b->slice);
    pc_add_reduction(b, "shared_down", false);
    pc_add_adapter_forward(b, &down);
    gate_shared(b);
}

/* The gradient of what shared experts put out comes first. */
static void begin_shared_backward(pc_builder *b) {
    pc_matrix down = shared_down(&b->slice);
    gate_shared(b);
    pc_add_gradient_cast(b, &down, PC_MAKER_OTHER);
    pc_add_low_gather(b, "shared_down", PC_GEMM_INPUT_GRADIENT, false);
}

static void add_shared_second_backward(pc_builder *b, pc_backward passes) {
    pc_matrix down = shared_down(&b->slice);
    if (passes.b) pc_add_input_gradient(b, &down);
    pc_add_adapter_backward(b, &down, passes);
    if (passes.w) pc_add_weight_gradient(b, &down);
}

static void activate_shared_backward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_matrix up = shared_up(x);
    activate(b, "shared_activation", x->tokens, x->experts.shared_up, x->experts.shared);
    pc_add_gradient_cast(b, &up, PC_MAKER_ACTIVATION);
}

/* The product for weights reads what is gathered; nothing is where a rank is alone, so that all are kernels. */
static void add_shared_first_backward(pc_builder *b, pc_backward passes) {
    pc_matrix up = shared_up(&b->slice);
    if (passes.b) activate_shared_backward(b);
    if (b->slice.ranks == 1) pc_add_column_backward(b, &up, passes);
}

static void end_shared_backward(pc_builder *b, pc_backward passes) {
    pc_matrix up = shared_up(&b->slice);
    if (b->slice.ranks > 1) pc_add_column_backward(b, &up, passes);
    if (passes.b) add(b, "shared_sum", "add", own_elements(b), 2 + 2 + 2, 1);
}

/* Adapters that TP cuts have collectives between their products: they are not beside others. */
static bool overlaps_shared(const pc_builder *b) {
    bool is_cut = b->slice.ranks > 1 &&
                  (pc_lora_is_at(&b->slice.lora, PC_LORA_FC1) || pc_lora_is_at(&b->slice.lora, PC_LORA_FC2));
    return has_shared(b) && b->overlaps_shared && b->dispatcher != PC_DISPATCHER_ALLGATHER && !is_cut;
}

/* ---- forward ---- */

static const pc_backward no_backward = {false, false};

static void add_shared_forward(pc_builder *b, pc_maker maker) {
    gather_for_shared(b, maker);
    add_shared_first(b, no_backward);
    add_shared_second(b, no_backward);
    reduce_shared(b);
}

static void add_routed_forward(pc_builder *b, bool overlaps) {
    const pc_slice *x = &b->slice;
    pc_matrix router = make_router(x, b->model->experts.num_experts), up = expert_up(b), down = expert_down(b);
    int first = b->operations->count;
    pc_add_forward(b, &router);
    route(b);
    pc_add_graph(b, PC_GRAPHS_ROUTER, first);
    scatter(b, PC_OPERATION_DISPATCH, "dispatch", overlaps ? add_shared_first : NULL, no_backward);
    pad_rows(b, "padding");
    pc_add_input_cast(b, &up, PC_MAKER_OTHER);
    pc_add_forward(b, &up);
    pc_add_adapter_forward(b, &up);
    activate_experts(b);
    pc_add_input_cast(b, &down, PC_MAKER_ACTIVATION);
    pc_add_forward(b, &down);
    pc_add_adapter_forward(b, &down);
    add_expert_bias(b);
    pad_rows(b, "unpadding");
    collect(b, PC_OPERATION_COMBINE, "combine", overlaps ? add_shared_second : NULL, no_backward);
}

void pc_add_experts_forward(pc_builder *b, pc_maker maker) {
    bool overlaps = overlaps_shared(b);
    if (has_shared(b) && !overlaps) add_shared_forward(b, maker);
    if (overlaps) gather_for_shared(b, maker);
    add_routed_forward(b, overlaps);
    if (overlaps) reduce_shared(b);
    if (has_shared(b)) add(b, "shared_sum", "add", own_elements(b), 2 + 2 + 2, 1);
}

/* ---- backward ---- */

static void add_grouped_backward(pc_builder *b, const pc_matrix *matrix, pc_maker maker, pc_backward passes) {
    if (passes.b) pc_add_gradient_cast(b, matrix, maker);
    pc_add_adapter_backward(b, matrix, passes);
    if (passes.b) pc_add_input_gradient(b, matrix);
    if (passes.w) pc_add_weight_gradient(b, matrix);
}

static void add_shared_backward(pc_builder *b, pc_backward passes) {
    if (passes.b) begin_shared_backward(b);
    add_shared_second_backward(b, passes);
    add_shared_first_backward(b, passes);
    end_shared_backward(b, passes);
}

/* Products for weights alone have no exchange beside them. */
void pc_add_experts_backward(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_matrix router = make_router(x, b->model->experts.num_experts), up = expert_up(b), down = expert_down(b);
    bool overlaps = overlaps_shared(b) && passes.b;
    if (overlaps) begin_shared_backward(b);
    if (passes.b) scatter(b, PC_OPERATION_DISPATCH, "combine", overlaps ? add_shared_second_backward : NULL, passes);
    if (passes.b) pad_rows(b, "unpadding");
    if (passes.b) add_expert_bias(b);
    add_grouped_backward(b, &down, PC_MAKER_OTHER, passes);
    if (passes.b) activate_experts(b);
    add_grouped_backward(b, &up, PC_MAKER_ACTIVATION, passes);
    if (passes.b) pad_rows(b, "padding");
    if (passes.b) collect(b, PC_OPERATION_COMBINE, "dispatch", overlaps ? add_shared_first_backward : NULL, passes);
    int first = b->operations->count;
    if (passes.b) route(b);
    if (passes.b) pc_add_input_gradient(b, &router);
    if (passes.w) pc_add_weight_gradient(b, &router);
    pc_add_graph(b, PC_GRAPHS_ROUTER, first);
    if (passes.b) add(b, "router_sum", "add", own_elements(b), 2 + 2 + 2, 1);
    if (overlaps) end_shared_backward(b, passes);
    if (has_shared(b) && !overlaps) add_shared_backward(b, passes);
}

/* ---- modules ---- */

void pc_add_experts_again(pc_builder *b, int32_t modules) {
    pc_matrix down = expert_down(b);
    if (modules & PC_RECOMPUTES_MOE) return pc_add_experts_forward(b, PC_MAKER_OTHER);
    if (modules & PC_RECOMPUTES_MOE_ACT) {
        activate_experts(b);
        pc_add_input_cast(b, &down, PC_MAKER_ACTIVATION);
    }
    if (modules & PC_RECOMPUTES_SHARED_EXPERTS && has_shared(b)) add_shared_forward(b, PC_MAKER_OTHER);
}
