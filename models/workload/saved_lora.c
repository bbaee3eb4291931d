/* Frozen matrices: W reads neither their inputs nor their outputs' gradients. Their adapters' W does (lora.h). */
#include "models/workload/saved.h"

#include <string.h>

/* What nobody reads any more is gone. */
static void drop_for_w(pc_saved_list *saved) {
    int count = 0;
    for (int i = 0; i < saved->count; i++) {
        pc_saved tensor = saved->list[i];
        tensor.for_whom &= ~PC_FOR_W;
        if (tensor.for_whom) saved->list[count++] = tensor;
    }
    saved->count = count;
}

/* A matrix of this rank as its adapter sees it. */
typedef struct adapted {
    pc_lora_target target;
    pc_module module;
    pc_wide rows, masked; /* rows that A reads; and that this rank masks */
    int64_t inputs, outputs, rank;
    int64_t ranks;                        /* over whom it is cut */
    bool is_row;                          /* along its inputs */
    bool input_is_again, output_is_again; /* what A reads, and what it puts out, is made again */
    pc_module made_at;
    const char
        *like; /* the tensor that it reads if that is kept for another, too, and nothing is dropped; NULL: none */
} adapted;

/* A matrix with cut columns: its input is whole behind a gather, while the mask is of this rank's rows. */
static adapted column(const pc_slice *slice, pc_lora_target target, pc_module module, int64_t inputs, int64_t outputs) {
    return (adapted){.target = target,
                     .module = module,
                     .rows = slice->tokens,
                     .masked = slice->norm_tokens,
                     .inputs = inputs,
                     .outputs = outputs,
                     .rank = slice->lora.rank,
                     .ranks = slice->ranks};
}

static adapted row(const pc_slice *slice, pc_lora_target target, pc_module module, int64_t inputs) {
    return (adapted){.target = target,
                     .module = module,
                     .rows = slice->tokens,
                     .masked = slice->tokens,
                     .inputs = inputs,
                     .outputs = slice->hidden,
                     .rank = slice->lora.rank,
                     .ranks = slice->ranks,
                     .is_row = true};
}

/* What flash attention put out is there for B in 16 bits, whatever it is called. */
static bool is_context(const pc_saved *tensor) {
    return tensor->module == PC_MODULE_ATTN_PROJ || (tensor->module == PC_MODULE_CORE_ATTN && tensor->name[0] == 'c');
}

static bool shares_input(const pc_slice *slice, const adapted *x, pc_saved_list *saved) {
    if (slice->lora.dropout > 0) return false;
    for (int i = 0; i < saved->count; i++) {
        pc_saved *tensor = &saved->list[i];
        bool is_it = x->target == PC_LORA_PROJ ? is_context(tensor) : x->like && !strcmp(tensor->name, x->like);
        if (is_it && tensor->bytes == 2 * x->rows * x->inputs) return tensor->for_whom |= PC_FOR_W, true;
    }
    return false;
}

/* A's input and output; and the gradients of what A and B put out. A masked copy is kept, whatever is made again. */
static void add_adapter(const pc_slice *slice, const adapted *x, pc_saved_list *saved) {
    pc_wide low = 2 * x->rows * x->rank;
    bool drops = slice->lora.dropout > 0, is_again = x->output_is_again;
    bool input_is_again = drops ? is_again : x->input_is_again;
    int64_t columns = x->is_row ? x->outputs / x->ranks : x->outputs;
    if (!pc_lora_is_at(&slice->lora, x->target)) return;
    if (!shares_input(slice, x, saved))
        pc_saved_add_again(saved, "lora_input", x->module, 2 * x->rows * x->inputs, PC_FOR_W, input_is_again,
                           x->made_at);
    if (drops) pc_saved_add_again(saved, "lora_mask", x->module, x->masked * x->inputs, PC_FOR_B, is_again, x->made_at);
    pc_saved_add_again(saved, "lora_a_output", x->module, low, PC_FOR_W, is_again, x->made_at);
    pc_saved_add_gradient(saved, "lora_a_gradient", x->module, low);
    pc_saved_add_gradient(saved, "lora_b_gradient", x->module, 2 * x->rows * columns);
}

/* ---- which matrices ---- */

/* A norm that is one module with the matrix behind it keeps its output. */
static bool drops_norm(const pc_model *model, const pc_slice *slice, int32_t modules) {
    return modules & PC_RECOMPUTES_LAYERNORM && slice->has_norms_apart && pc_model_has_pre_norms(model);
}

/* Those that go down are whole on every rank, and see its part of the sequence, what the norm puts out, which the first
 * of them keeps for both. */
static void add_latents(const pc_slice *slice, int32_t modules, pc_saved_list *saved) {
    const pc_mla *mla = &slice->mla;
    bool has_latent = mla->q_lora_rank > 0;
    adapted q = column(slice, PC_LORA_Q_PROJ, PC_MODULE_QKV, slice->hidden, slice->query),
            q_down = column(slice, PC_LORA_Q_DOWN, PC_MODULE_QKV, slice->hidden, mla->q_lora_rank),
            q_up = column(slice, PC_LORA_Q_UP, PC_MODULE_QK_NORM, mla->q_lora_rank, slice->query),
            kv_down =
                column(slice, PC_LORA_KV_DOWN, PC_MODULE_QKV, slice->hidden, mla->kv_lora_rank + mla->qk_rope_head_dim),
            kv_up = column(slice, PC_LORA_KV_UP, PC_MODULE_QK_NORM, mla->kv_lora_rank, slice->latent_up);
    q_down.rows = kv_down.rows = slice->norm_tokens;
    q.input_is_again = q_down.input_is_again = kv_down.input_is_again = modules & PC_RECOMPUTES_LAYERNORM;
    q.output_is_again = q_up.output_is_again = kv_up.output_is_again = modules & PC_RECOMPUTES_MLA_UP_PROJ;
    q.made_at = q_down.made_at = kv_down.made_at = PC_MODULE_QKV;
    q_up.made_at = kv_up.made_at = PC_MODULE_CORE_ATTN;
    kv_down.like = "lora_input";
    if (!has_latent) add_adapter(slice, &q, saved);
    if (has_latent) add_adapter(slice, &q_down, saved);
    if (has_latent) add_adapter(slice, &q_up, saved);
    add_adapter(slice, &kv_down, saved);
    add_adapter(slice, &kv_up, saved);
}

static void add_attention(const pc_model *model, const pc_slice *slice, int32_t modules, pc_saved_list *saved) {
    adapted qkv = column(slice, PC_LORA_QKV, PC_MODULE_QKV, slice->hidden, slice->qkv);
    const adapted output = row(slice, PC_LORA_PROJ, PC_MODULE_ATTN_PROJ, slice->output);
    qkv.input_is_again = drops_norm(model, slice, modules);
    qkv.made_at = PC_MODULE_QKV;
    if (pc_model_is_latent(model))
        add_latents(slice, modules, saved);
    else
        add_adapter(slice, &qkv, saved);
    add_adapter(slice, &output, saved);
}

/* One that is made again begins with its input, if a norm apart has put that out. */
static void add_mlp(const pc_model *model, const pc_slice *slice, int32_t modules, pc_saved_list *saved) {
    bool is_again = modules & PC_RECOMPUTES_MLP;
    adapted up = column(slice, PC_LORA_FC1, PC_MODULE_MLP_UP, slice->hidden, slice->up),
            down = row(slice, PC_LORA_FC2, PC_MODULE_MLP_DOWN, slice->ffn);
    up.made_at = is_again ? PC_MODULE_MLP_DOWN : PC_MODULE_MLP_UP;
    down.made_at = PC_MODULE_MLP_DOWN;
    up.like = "mlp_up_input";
    up.input_is_again = is_again || drops_norm(model, slice, modules);
    down.input_is_again = up.output_is_again = down.output_is_again = is_again;
    add_adapter(slice, &up, saved);
    add_adapter(slice, &down, saved);
}

/* Routed ones' rows are all here, and etp cuts them. */
static void add_routed(const pc_slice *slice, int32_t modules, pc_saved_list *saved) {
    const pc_expert_slice *e = &slice->experts;
    adapted up = column(slice, PC_LORA_FC1, PC_MODULE_MLP_UP, slice->hidden, e->up),
            down = row(slice, PC_LORA_FC2, PC_MODULE_MLP_DOWN, e->ffn);
    up.rows = up.masked = down.rows = down.masked = e->held_rows;
    up.ranks = down.ranks = e->cut;
    up.rank = down.rank = e->adapter_rank;
    up.made_at = down.made_at = PC_MODULE_MLP_DOWN;
    up.output_is_again = down.output_is_again = up.input_is_again = modules & PC_RECOMPUTES_MOE;
    down.input_is_again = modules & (PC_RECOMPUTES_MOE | PC_RECOMPUTES_MOE_ACT);
    add_adapter(slice, &up, saved);
    add_adapter(slice, &down, saved);
}

/* Their first matrix reads what the norm puts out, which is there where they are made again, unless TP cuts it. */
static void add_shared(const pc_model *model, const pc_slice *slice, int32_t modules, pc_saved_list *saved) {
    const pc_expert_slice *e = &slice->experts;
    bool is_again = modules & (PC_RECOMPUTES_MOE | PC_RECOMPUTES_SHARED_EXPERTS);
    bool is_dropped = modules & PC_RECOMPUTES_LAYERNORM && pc_model_has_pre_norms(model);
    adapted up = column(slice, PC_LORA_FC1, PC_MODULE_MLP_UP, slice->hidden, e->shared_up),
            down = row(slice, PC_LORA_FC2, PC_MODULE_MLP_DOWN, e->shared);
    if (e->shared == 0) return;
    up.made_at = down.made_at = PC_MODULE_MLP_DOWN;
    up.like = "router_input";
    up.input_is_again = is_again || is_dropped;
    down.input_is_again = up.output_is_again = down.output_is_again = is_again;
    add_adapter(slice, &up, saved);
    add_adapter(slice, &down, saved);
}

void pc_saved_freeze(const pc_model *model, const pc_slice *slice, bool has_experts, int32_t modules,
                     pc_saved_list *saved) {
    if (!(slice->frozen & (int32_t)PC_FROZEN_LAYERS)) return;
    drop_for_w(saved);
    add_attention(model, slice, modules, saved);
    if (!has_experts) return add_mlp(model, slice, modules, saved);
    add_routed(slice, modules, saved);
    add_shared(model, slice, modules, saved);
}
