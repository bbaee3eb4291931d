/* Kernels are those of an eager Megatron: bias and activation are one, bias, dropout and residual are one, scale, mask
 * and softmax are one; copies where a tensor changes its order. Those of torch without a compiler are told apart where
 * they differ. */
#include "models/workload/operations_private.h"

static pc_matrix make_qkv(const pc_slice *slice) {
    return (pc_matrix){.name = "qkv",
                       .inputs = slice->hidden,
                       .outputs = slice->qkv,
                       .counted = slice->counted_qkv,
                       .is_column = true,
                       .target = PC_LORA_QKV};
}

static pc_matrix make_output(const pc_slice *slice) {
    return (pc_matrix){.name = "attention_output",
                       .inputs = slice->output,
                       .outputs = slice->hidden,
                       .counted = (pc_wide)slice->output * slice->hidden,
                       .is_column = false,
                       .target = PC_LORA_PROJ};
}

static pc_matrix make_up(const pc_slice *slice) {
    return (pc_matrix){.name = "mlp_up",
                       .inputs = slice->hidden,
                       .outputs = slice->up,
                       .counted = (pc_wide)slice->hidden * slice->up,
                       .is_column = true,
                       .target = PC_LORA_FC1};
}

static pc_matrix make_down(const pc_slice *slice) {
    return (pc_matrix){.name = "mlp_down",
                       .inputs = slice->ffn,
                       .outputs = slice->hidden,
                       .counted = (pc_wide)slice->ffn * slice->hidden,
                       .is_column = false,
                       .target = PC_LORA_FC2};
}

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, int bytes, int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, bytes, launches);
}

static pc_wide score_count(const pc_slice *slice) {
    return (pc_wide)slice->attention * slice->sequence * slice->sequence;
}

/* ---- attention itself ---- */

/* Eager: the scale, 2 + 2, and the mask, 2 + 2, are kernels of their own, on either way. */
static void add_softmax(pc_builder *b, int bytes) {
    int more = b->is_eager ? 2 : 0;
    add(b, "softmax", "softmax", score_count(&b->slice), bytes + more * (2 + 2), 1 + more);
}

/* Fused, division, tanh and product are one kernel; eagerly three, and on the way back the gradient times the tanh's,
 * which reads what F kept. Flash attention caps scores as it makes them. */
static void add_score_cap(pc_builder *b) {
    int back = b->is_backward ? 2 : 0;
    if (b->model->attn_logit_softcapping == 0) return;
    add(b, "attention_softcap", "softcap", score_count(&b->slice), 2 + 2 + back + (b->is_eager ? 2 * (2 + 2) : 0),
        b->is_eager ? 3 : 1);
}

/* Of b->repeat layers that see the same. */
static void add_scores_forward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    const pc_flash_block whole = pc_whole_flash(x);
    if (x->context > 1) return pc_add_context_forward(b);
    if (b->model->attention == PC_ATTENTION_FLASH) return pc_add_flash_block(b, PC_GEMM_FORWARD, &whole);
    pc_add_batched(b, "scores", PC_GEMM_FORWARD, x->sequence, x->sequence, x->head_dim);
    add_score_cap(b);
    add_softmax(b, 2 + 2);
    if (b->model->has_dropout) add(b, "attention_dropout", "dropout", score_count(x), 2 + 2 + 1, 1);
    pc_add_batched(b, "values", PC_GEMM_FORWARD, x->sequence, x->value_dim, x->sequence);
    add(b, "attention_order", "copy", (pc_wide)x->tokens * x->output, 2 + 2, 1);
}

/* Where the sequence is cut into slices, a slice's backward pass has gradients of all keys and values so far. The last
 * slice's are the sums to which each one before adds its own: two are read, one is written. */
static void add_to_earlier(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_wide seen = (pc_wide)x->keys_before + x->tokens;
    if (x->has_later) add(b, "key_value_sum", "add", 2 * seen * x->key, 2 + 2 + 2, 2);
}

/* Of b->repeat layers that see the same. */
static void add_scores_backward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_gemm_role role = PC_GEMM_INPUT_GRADIENT;
    const pc_flash_block whole = pc_whole_flash(x);
    if (x->context > 1) return pc_add_context_backward(b);
    if (b->model->attention == PC_ATTENTION_FLASH) {
        pc_add_flash_block(b, role, &whole);
        add_to_earlier(b);
        return;
    }
    pc_add_batched(b, "values", role, x->sequence, x->sequence, x->value_dim); /* to the softmax */
    pc_add_batched(b, "values", role, x->sequence, x->value_dim, x->sequence); /* to the values */
    if (b->model->has_dropout) add(b, "attention_dropout", "dropout", score_count(x), 2 + 1 + 2, 1);
    add_softmax(b, 2 + 2 + 2);
    add_score_cap(b);
    pc_add_batched(b, "scores", role, x->sequence, x->head_dim, x->sequence); /* to the queries */
    pc_add_batched(b, "scores", role, x->sequence, x->head_dim, x->sequence); /* to the keys */
}

/* Layers with a window, then those that see all. */
static void add_sights(pc_builder *b, void (*add_scores)(pc_builder *b)) {
    const int64_t all = b->repeat, count[] = {b->local, all - b->local};
    const pc_sight *const sights[] = {&b->slice.local, &b->slice.full};
    for (int i = 0; i < 2; i++) {
        b->repeat = count[i];
        b->sight = sights[i];
        if (count[i] > 0) add_scores(b);
    }
    b->repeat = all;
}

static void add_attention_forward(pc_builder *b) {
    pc_add_low_attention_inputs(b);
    add_sights(b, add_scores_forward);
    pc_add_low_attention_output(b);
}

static void add_attention_backward(pc_builder *b) {
    pc_add_low_attention_gradient(b);
    add_sights(b, add_scores_backward);
    pc_add_low_attention_input_gradients(b);
}

/* With what else happens to queries and keys before or behind attention. */
static void add_rotary(pc_builder *b) {
    bool is_rotary = b->model->positions == PC_POSITIONS_ROTARY;
    if (b->is_eager && is_rotary) pc_add_eager_rotary(b);
    if (b->is_eager) return pc_add_eager_heads(b);
    if (is_rotary && b->model->scales_rotary) return pc_add_scaled_rotary(b);
    if (is_rotary) add(b, "rotary", "rotary", (pc_wide)b->slice.tokens * (b->slice.query + b->slice.key), 2 + 2, 2);
}

void pc_add_attention_again(pc_builder *b) {
    add_attention_forward(b);
}

/* ---- what stands between matrices ---- */

static pc_wide norm_elements(const pc_slice *slice) {
    return (pc_wide)slice->norm_tokens * slice->hidden;
}

/* Adds to the residual what comes, with its bias and after dropout, which eagerly reads and writes by itself. */
static void add_residual(pc_builder *b) {
    int mask = b->model->has_dropout ? 1 : 0, apart = b->is_eager ? mask : 0;
    add(b, "residual", "residual", norm_elements(&b->slice), 2 + 2 + 2 + mask + apart * (2 + 2), 1 + apart);
}

static bool has_bias_gradients(const pc_builder *b) {
    return b->model->has_bias && !(b->slice.frozen & (int32_t)PC_FROZEN_LAYERS);
}

/* Masks the gradient, and sums it for the bias. */
static void add_residual_backward(pc_builder *b) {
    int mask = b->model->has_dropout ? 1 : 0, sum = has_bias_gradients(b) ? 1 : 0;
    if (mask || sum)
        add(b, "residual", mask ? "residual" : "bias_gradient", norm_elements(&b->slice), mask * (2 + 1 + 2) + sum * 2,
            mask + sum);
}

/* The norms in front of a half, and behind it. */
static void add_pre_norm(pc_builder *b) {
    if (pc_model_has_pre_norms(b->model)) pc_add_norm(b, "norm");
}

static void add_post_norm(pc_builder *b) {
    if (pc_model_has_post_norms(b->model)) pc_add_norm(b, "post_norm");
}

/* What makes a half's input. */
static pc_maker maker_of_input(const pc_builder *b) {
    return pc_model_has_pre_norms(b->model) ? PC_MAKER_NORM : PC_MAKER_OTHER;
}

/* The gradients of the two ways around meet behind the norm's. */
static void add_norm_and_sum_backward(pc_builder *b) {
    if (pc_model_has_pre_norms(b->model)) pc_add_norm_backward(b, "norm");
    add(b, "residual_sum", "add", norm_elements(&b->slice), 2 + 2 + 2, 1);
}

/* The kernel that was measured: what a gated kind and what any other takes goes by bytes alone. */
static const char *activation_of(const pc_builder *b) {
    return pc_mlp_is_gated(b->model->mlp) ? "swiglu" : "gelu";
}

/* Whether torch without a compiler has no kernel of its own for it. */
static bool add_eager_activation(pc_builder *b) {
    bool is_gated = pc_mlp_is_gated(b->model->mlp), is_squared = b->model->mlp == PC_MLP_SQUARED_RELU;
    if (!b->is_eager || !(is_gated || is_squared)) return false;
    if (is_gated) pc_add_eager_gated(b);
    if (is_squared) pc_add_eager_squared_relu(b);
    return true;
}

/* To 8 bits in F, from them in B: a kernel of its own, as megatron.core.fusions.fused_bias_swiglu has it. */
static void add_input_cast(pc_builder *b) {
    if (b->slice.stores_low_input) add(b, "activation_input", "cast", (pc_wide)b->slice.tokens * b->slice.up, 2 + 1, 1);
}

/* Reads the columns of `up` and writes those of `ffn`. */
static void add_activation(pc_builder *b) {
    const pc_slice *x = &b->slice;
    if (add_eager_activation(b)) return;
    add_input_cast(b);
    add(b, "activation", activation_of(b), (pc_wide)x->tokens * (x->up + x->ffn), 2, 1);
}

/* Reads the gradient of the output and the input, writes the input's gradient; a second kernel sums that for the bias.
 */
static void add_activation_backward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    bool is_done = add_eager_activation(b);
    if (is_done && has_bias_gradients(b) && !pc_mlp_is_gated(b->model->mlp))
        add(b, "activation", "bias_gradient", (pc_wide)x->tokens * x->up, 2, 1);
    if (is_done) return;
    add_input_cast(b);
    int sum = has_bias_gradients(b) ? 1 : 0;
    add(b, "activation", activation_of(b), (pc_wide)x->tokens * (x->ffn + (2 + sum) * (pc_wide)x->up), 2, 1 + sum);
}

/* ---- halves of a layer ---- */

/* With the order that attention wants; eagerly the products add it. */
static void add_qkv_bias(pc_builder *b, int64_t columns) {
    if (pc_model_has_qkv_bias(b->model) && !b->is_eager)
        add(b, "qkv_bias", "copy", (pc_wide)b->slice.tokens * columns, 2 + 2, 1);
}

static void add_qkv(pc_builder *b) {
    pc_matrix qkv = make_qkv(&b->slice);
    pc_add_input_cast(b, &qkv, maker_of_input(b));
    pc_add_low_gather(b, "qkv", PC_GEMM_FORWARD, false);
    pc_add_forward(b, &qkv);
    pc_add_adapter_forward(b, &qkv);
    add_qkv_bias(b, b->slice.qkv);
    pc_add_qk_norm(b);
    add_rotary(b);
}

static void add_attention_half(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_matrix output = make_output(x);
    add_pre_norm(b);
    if (pc_model_is_latent(b->model))
        pc_add_latent_forward(b, maker_of_input(b));
    else
        add_qkv(b);
    add_attention_forward(b);
    if (!pc_attention_hands_over(b)) pc_add_input_cast(b, &output, PC_MAKER_OTHER);
    pc_add_forward(b, &output);
    pc_add_reduction(b, "attention_output", false);
    pc_add_adapter_forward(b, &output);
    add_post_norm(b);
    add_residual(b);
}

/* From what the norm puts out, which is cast behind it or by itself, to what is added to the residual. */
static void add_mlp(pc_builder *b, pc_maker maker) {
    pc_matrix up = make_up(&b->slice), down = make_down(&b->slice);
    pc_add_input_cast(b, &up, maker);
    pc_add_low_gather(b, "mlp_up", PC_GEMM_FORWARD, false);
    pc_add_forward(b, &up);
    pc_add_adapter_forward(b, &up);
    add_activation(b);
    pc_add_input_cast(b, &down, PC_MAKER_ACTIVATION);
    pc_add_forward(b, &down);
    pc_add_reduction(b, "mlp_down", false);
    pc_add_adapter_forward(b, &down);
}

static void add_dense_half(pc_builder *b) {
    add_pre_norm(b);
    add_mlp(b, maker_of_input(b));
    add_post_norm(b);
    add_residual(b);
}

static void add_experts_half(pc_builder *b) {
    add_pre_norm(b);
    pc_add_experts_forward(b, maker_of_input(b));
    add_post_norm(b);
    add_residual(b);
}

/* A half of layers that are dense, then of those with experts. */
typedef void add_half(pc_builder *b, const void *how);

static void add_sorts(pc_builder *b, add_half *dense, add_half *experts, const void *how) {
    const int64_t all = b->repeat;
    b->repeat = all - b->experts;
    if (b->repeat > 0) dense(b, how);
    b->repeat = b->experts;
    if (b->repeat > 0) experts(b, how);
    b->repeat = all;
}

static void add_dense_mlp_half(pc_builder *b, const void *how) {
    (void)how;
    add_dense_half(b);
}

static void add_expert_mlp_half(pc_builder *b, const void *how) {
    (void)how;
    add_experts_half(b);
}

static void add_mlp_half(pc_builder *b) {
    add_sorts(b, add_dense_mlp_half, add_expert_mlp_half, NULL);
}

/* The matrix that ends a half; the gradient is gathered in B and stays for W. */
static void add_row_backward(pc_builder *b, const pc_matrix *matrix, pc_backward passes) {
    if (passes.b) add_residual_backward(b);
    if (passes.b && pc_model_has_post_norms(b->model)) pc_add_norm_backward(b, "post_norm");
    if (passes.b) pc_add_gradient_cast(b, matrix, PC_MAKER_OTHER);
    if (passes.b) pc_add_low_gather(b, matrix->name, PC_GEMM_INPUT_GRADIENT, false);
    if (passes.b) pc_add_input_gradient(b, matrix);
    pc_add_adapter_backward(b, matrix, passes);
    if (passes.w) pc_add_weight_gradient(b, matrix);
}

static void add_dense_backward(pc_builder *b, pc_backward passes) {
    pc_matrix up = make_up(&b->slice), down = make_down(&b->slice);
    add_row_backward(b, &down, passes);
    if (passes.b) add_activation_backward(b);
    if (passes.b) pc_add_gradient_cast(b, &up, PC_MAKER_ACTIVATION);
    pc_add_column_backward(b, &up, passes);
    if (passes.b && b->is_eager) pc_add_eager_input_sums(b, "mlp_up", pc_mlp_is_gated(b->model->mlp) ? 1 : 0);
    if (passes.b) add_norm_and_sum_backward(b);
}

/* What add_row_backward has in front of a product. */
static void add_experts_backward(pc_builder *b, pc_backward passes) {
    if (passes.b) add_residual_backward(b);
    if (passes.b && pc_model_has_post_norms(b->model)) pc_add_norm_backward(b, "post_norm");
    pc_add_experts_backward(b, passes);
    if (passes.b) add_norm_and_sum_backward(b);
}

static void add_dense_mlp_backward(pc_builder *b, const void *how) {
    const pc_backward *passes = how;
    add_dense_backward(b, *passes);
}

static void add_expert_mlp_backward(pc_builder *b, const void *how) {
    const pc_backward *passes = how;
    add_experts_backward(b, *passes);
}

static void add_mlp_backward(pc_builder *b, pc_backward passes) {
    add_sorts(b, add_dense_mlp_backward, add_expert_mlp_backward, &passes);
}

static void add_qkv_backward(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_matrix qkv = make_qkv(x);
    if (passes.b) {
        add_rotary(b);
        pc_add_qk_norm_backward(b);
        if (!b->is_eager) add(b, "qkv_order", "copy", (pc_wide)x->tokens * x->qkv, 2 + 2, 1); /* three become one */
    }
    if (passes.b && !pc_attention_gives_low_gradient(b)) pc_add_gradient_cast(b, &qkv, PC_MAKER_OTHER);
    pc_add_column_backward(b, &qkv, passes);
    if (passes.b && b->is_eager) pc_add_eager_input_sums(b, "qkv", 2);
    if (passes.w && pc_model_has_qkv_bias(b->model) && !(b->slice.frozen & (int32_t)PC_FROZEN_LAYERS))
        add(b, "qkv_bias", "bias_gradient", (pc_wide)x->tokens * x->qkv, 2, 1);
}

static void add_attention_half_backward(pc_builder *b, pc_backward passes) {
    pc_matrix output = make_output(&b->slice);
    add_row_backward(b, &output, passes);
    if (passes.b) add_attention_backward(b);
    if (pc_model_is_latent(b->model))
        pc_add_latent_backward(b, passes);
    else
        add_qkv_backward(b, passes);
    if (passes.b) add_norm_and_sum_backward(b);
}

void pc_add_layer_forward(pc_builder *b) {
    int first = b->operations->count;
    add_attention_half(b);
    pc_add_graph(b, PC_GRAPHS_ATTN, first);
    first = b->operations->count;
    add_mlp_half(b);
    pc_add_graph(b, PC_GRAPHS_MLP, first);
}

void pc_add_layer_backward(pc_builder *b, pc_backward passes) {
    int first = b->operations->count;
    add_mlp_backward(b, passes);
    pc_add_graph(b, PC_GRAPHS_MLP, first);
    first = b->operations->count;
    add_attention_half_backward(b, passes);
    pc_add_graph(b, PC_GRAPHS_ATTN, first);
}

/* ---- modules ---- */

/* With the cast behind it: what waits for W in few bits is made from the norm's output. */
static void add_norm_again(pc_builder *b, const pc_matrix *matrix) {
    add_pre_norm(b);
    pc_add_input_cast(b, matrix, maker_of_input(b));
}

/* The MLP begins with the norm where both are one module, or where the norm's output has been dropped. */
static void add_mlp_again(pc_builder *b, bool has_norm) {
    if (has_norm) add_pre_norm(b);
    add_mlp(b, has_norm ? maker_of_input(b) : PC_MAKER_OTHER);
}

static bool drops_norms(const pc_builder *b, int32_t modules) {
    return modules & PC_RECOMPUTES_LAYERNORM && b->slice.has_norms_apart && pc_model_has_pre_norms(b->model);
}

static void add_dense_again(pc_builder *b, const void *how) {
    const int32_t *modules = how;
    pc_matrix up = make_up(&b->slice);
    bool has_norm = drops_norms(b, *modules);
    if (*modules & PC_RECOMPUTES_MLP)
        add_mlp_again(b, has_norm || !b->slice.has_norms_apart);
    else if (has_norm)
        add_norm_again(b, &up);
}

/* The norm in front of experts is a module of its own in either implementation, for the router and others read it. */
static void add_experts_again(pc_builder *b, const void *how) {
    const int32_t *modules = how;
    if (*modules & PC_RECOMPUTES_LAYERNORM) add_pre_norm(b);
    pc_add_experts_again(b, *modules);
}

void pc_add_modules_again(pc_builder *b, int32_t modules) {
    pc_matrix qkv = make_qkv(&b->slice);
    bool is_latent = pc_model_is_latent(b->model);
    add_sorts(b, add_dense_again, add_experts_again, &modules);
    if (modules & PC_RECOMPUTES_MLA_UP_PROJ && is_latent) pc_add_latent_up_again(b);
    if (modules & PC_RECOMPUTES_CORE_ATTN) add_attention_forward(b);
    if (is_latent && modules & PC_RECOMPUTES_LAYERNORM && pc_model_has_pre_norms(b->model)) add_pre_norm(b);
    if (!is_latent && drops_norms(b, modules)) add_norm_again(b, &qkv);
}

/* ---- what a policy leaves out ---- */

/* `columns` of a matrix that is not kept. */
static void add_columns_again(pc_builder *b, const char *name, int64_t columns) {
    pc_matrix matrix = {
        .name = name, .inputs = b->slice.hidden, .outputs = columns, .is_column = true, .target = PC_LORA_QKV};
    if (columns > 0) pc_add_forward(b, &matrix);
}

/* Queries, keys and values are three matrices to a policy, one where none of them is kept. */
static void add_qkv_again(pc_builder *b, int kept) {
    const pc_slice *x = &b->slice;
    int64_t query = kept & PC_KEEPS_QUERY ? 0 : x->query, key = kept & PC_KEEPS_KEY ? 0 : x->key,
            value = kept & PC_KEEPS_VALUE ? 0 : x->key;
    bool is_whole = query && key && value;
    pc_matrix whole = make_qkv(x);
    if (!query && !key && !value) return;
    pc_add_low_gather(b, "qkv", PC_GEMM_FORWARD, false);
    add_columns_again(b, "qkv", is_whole ? x->qkv : query);
    add_columns_again(b, "key", is_whole ? 0 : key);
    add_columns_again(b, "value", is_whole ? 0 : value);
    pc_add_adapter_forward(b, &whole);
    add_qkv_bias(b, query + key + value);
}

/* Where what is reduced is kept, the product itself is for nothing; eagerly it runs all the same. */
static void add_output_again(pc_builder *b, int kept) {
    pc_matrix output = make_output(&b->slice);
    bool is_reduced = kept & PC_KEEPS_REDUCED && b->slice.is_sequence_cut;
    if (kept & PC_KEEPS_OUTPUT || (is_reduced && !b->is_eager)) return;
    pc_add_input_cast(b, &output, PC_MAKER_OTHER);
    pc_add_forward(b, &output);
    if (!is_reduced) pc_add_reduction(b, "attention_output", false);
    pc_add_adapter_forward(b, &output);
}

static void add_up_again(pc_builder *b, int kept) {
    const pc_slice *x = &b->slice;
    int64_t gate = kept & PC_KEEPS_GATE ? 0 : x->ffn, up = x->up - x->ffn;
    pc_matrix whole = make_up(x);
    if (kept & PC_KEEPS_UP) up = 0;
    if (!gate && !up) return;
    pc_add_low_gather(b, "mlp_up", PC_GEMM_FORWARD, false);
    add_columns_again(b, gate ? "mlp_up" : "up", gate + up);
    pc_add_adapter_forward(b, &whole);
}

/* The norms of queries and keys read what the product put out: where queries and keys are kept as the rotation leaves
 * them, the product runs again. */
static void add_queries_again(pc_builder *b, int kept) {
    bool is_rotated = kept & PC_KEEPS_ROTATED, has_norm = b->model->qk_norm != PC_QK_NORM_NONE;
    add_qkv_again(b, is_rotated && has_norm ? kept & ~(PC_KEEPS_QUERY | PC_KEEPS_KEY) : kept);
    pc_add_qk_norm(b);
    if (!is_rotated) return add_rotary(b);
    if (b->is_eager) pc_add_eager_heads(b);
}

/* Only a norm behind the MLP reads the last product. */
static void add_down_again(pc_builder *b, int kept) {
    pc_matrix down = make_down(&b->slice);
    bool is_reduced = kept & PC_KEEPS_REDUCED && b->slice.is_sequence_cut;
    if (!pc_model_has_post_norms(b->model)) return;
    if (!(kept & PC_KEEPS_DOWN) && (!is_reduced || b->is_eager)) pc_add_forward(b, &down);
    if (!(kept & PC_KEEPS_DOWN) && !is_reduced) pc_add_reduction(b, "mlp_down", false);
    add_post_norm(b);
}

/* Norms, residuals, rotation and activation are made again: W needs them, or the next product does. Nobody reads the
 * last product, unless a norm does, and the residual behind it, and no program makes them (torch stops before, XLA
 * drops them). */
void pc_add_policy_again(pc_builder *b, int kept) {
    pc_matrix qkv = make_qkv(&b->slice), up = make_up(&b->slice), down = make_down(&b->slice);
    add_pre_norm(b);
    pc_add_input_cast(b, &qkv, maker_of_input(b));
    add_queries_again(b, kept);
    if (!(kept & PC_KEEPS_CONTEXT)) add_attention_forward(b);
    add_output_again(b, kept);
    add_post_norm(b);
    add_residual(b);
    add_pre_norm(b);
    pc_add_input_cast(b, &up, maker_of_input(b));
    add_up_again(b, kept);
    add_activation(b);
    pc_add_input_cast(b, &down, PC_MAKER_ACTIVATION);
    add_down_again(b, kept);
}
