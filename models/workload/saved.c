#include "models/workload/saved.h"

#include <assert.h>

void pc_saved_add(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes, int for_whom) {
    assert(saved->count < PC_SAVED_MAX);
    if (bytes > 0) saved->list[saved->count++] = (pc_saved){name, module, bytes, for_whom, false, false, module};
}

/* One that is dropped if `is_again`, and made when the backward pass comes to `made_at`. */
void pc_saved_add_again(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes, int for_whom,
                        bool is_again, pc_module made_at) {
    int count = saved->count;
    pc_saved_add(saved, name, module, bytes, for_whom);
    if (saved->count == count) return;
    saved->list[count].is_again = is_again;
    saved->list[count].made_at = made_at;
}

void pc_saved_add_gradient(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes) {
    assert(saved->count < PC_SAVED_MAX);
    saved->list[saved->count++] = (pc_saved){name, module, bytes, PC_FOR_W, true, false, module};
}

/* Inputs of matrices and gradients of their outputs, as their product of weights' gradients reads them. */
pc_wide pc_saved_operand(pc_product_format format, pc_wide elements) {
    return (elements * pc_product_format_bytes_of_32(format) + 31) / 32;
}

/* The format in which operands wait for W. */
static pc_product_format operand_format(const pc_model *model, bool is_low) {
    bool keeps_few = is_low && model->low.keeps_inputs && pc_product_format_is_low(model->low.product[2]);
    return keeps_few ? model->low.product[2] : PC_PRODUCT_BF16;
}

/* The input of a matrix with cut columns: a rank's tokens, or all, in the bits in which they are gathered. */
static pc_wide column_input(const pc_model *model, const pc_slice *slice, bool is_low, pc_product_format format) {
    if (!slice->keeps_gathered) return pc_saved_operand(format, (pc_wide)slice->norm_tokens * slice->hidden);
    bool is_few = is_low && model->low.gathers_activations;
    return pc_saved_operand(is_few ? model->low.product[0] : PC_PRODUCT_BF16, (pc_wide)slice->tokens * slice->hidden);
}

pc_wide pc_score_bytes(const pc_model *model, const pc_slice *slice) {
    if (model->attention == PC_ATTENTION_FLASH) return 0;
    int each = (model->has_dropout ? 5 : 2) + (model->attn_logit_softcapping > 0 ? 2 : 0);
    return (pc_wide)each * slice->attention * slice->sequence * slice->sequence;
}

/* Flash attention's backward pass reads its output, which is the next matrix's input where that is kept in 16 bits. */
static void add_attention(const pc_model *model, const pc_slice *slice, pc_product_format format, bool attends_low,
                          pc_wide input_bytes, int32_t modules, pc_saved_list *saved) {
    bool drops_core = modules & PC_RECOMPUTES_CORE_ATTN;
    bool drops_norm = modules & PC_RECOMPUTES_LAYERNORM && slice->has_norms_apart && pc_model_has_pre_norms(model);
    bool drops_heads = pc_model_is_latent(model) && modules & PC_RECOMPUTES_MLA_UP_PROJ;
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden, output = (pc_wide)slice->tokens * slice->output;
    bool reads_output = model->attention == PC_ATTENTION_FLASH, is_few = pc_product_format_is_low(format);
    bool has_own = is_few || attends_low;
    int bytes = attends_low ? 1 : 2;
    if (pc_model_has_pre_norms(model)) pc_saved_add(saved, "attn_norm_input", PC_MODULE_ATTN_NORM, 2 * rows, PC_FOR_B);
    if (pc_model_is_latent(model))
        pc_saved_add_latents(slice, format, modules, saved);
    else
        pc_saved_add_again(saved, "qkv_input", PC_MODULE_QKV, input_bytes, PC_FOR_W, drops_norm, PC_MODULE_QKV);
    if (model->qk_norm != PC_QK_NORM_NONE)
        pc_saved_add(saved, "qk_norm_input", PC_MODULE_QK_NORM,
                     2 * (pc_wide)slice->tokens * (slice->query + slice->key), PC_FOR_B);
    pc_saved_add_again(saved, "query_key_value", PC_MODULE_CORE_ATTN, bytes * (pc_wide)slice->tokens * slice->qkv,
                       PC_FOR_B, drops_heads, PC_MODULE_CORE_ATTN);
    pc_saved_add_again(saved, "scores", PC_MODULE_CORE_ATTN, pc_score_bytes(model, slice), PC_FOR_B, drops_core,
                       PC_MODULE_CORE_ATTN);
    if (has_own && reads_output)
        pc_saved_add_again(saved, "context", PC_MODULE_CORE_ATTN, bytes * output, PC_FOR_B, drops_core,
                           PC_MODULE_CORE_ATTN);
    else if (drops_core && reads_output)
        pc_saved_add_again(saved, "context_again", PC_MODULE_CORE_ATTN, 2 * output, PC_FOR_B, true,
                           PC_MODULE_CORE_ATTN);
    pc_saved_add(saved, "attn_proj_input", PC_MODULE_ATTN_PROJ, pc_saved_operand(format, output),
                 PC_FOR_W | (!has_own && reads_output ? PC_FOR_B : 0));
    if (pc_model_has_post_norms(model))
        pc_saved_add(saved, "attn_post_norm_input", PC_MODULE_ATTN_POST_NORM, 2 * rows, PC_FOR_B);
    if (model->has_dropout) pc_saved_add(saved, "attn_mask", PC_MODULE_ATTN_RESIDUAL, rows, PC_FOR_B);
}

/* An MLP that is made again keeps its input, which a norm apart has put out in 16 bits, unless that is dropped, too; a
 * norm that is one with it is made again from its own. */
static void add_mlp(const pc_model *model, const pc_slice *slice, pc_product_format format, pc_wide input_bytes,
                    int32_t modules, pc_saved_list *saved) {
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden, tokens = slice->tokens;
    bool is_again = modules & PC_RECOMPUTES_MLP, is_apart = slice->has_norms_apart;
    bool drops_norm = modules & PC_RECOMPUTES_LAYERNORM && is_apart && pc_model_has_pre_norms(model),
         is_few = pc_product_format_is_low(format);
    bool keeps_input = is_again && is_apart && !drops_norm;
    pc_module begin = is_again ? PC_MODULE_MLP_DOWN : PC_MODULE_MLP_UP;
    if (pc_model_has_pre_norms(model)) pc_saved_add(saved, "mlp_norm_input", PC_MODULE_MLP_NORM, 2 * rows, PC_FOR_B);
    if (keeps_input && is_few) pc_saved_add(saved, "mlp_input", PC_MODULE_MLP_UP, 2 * rows, PC_FOR_B);
    pc_saved_add_again(saved, "mlp_up_input", PC_MODULE_MLP_UP, input_bytes,
                       PC_FOR_W | (keeps_input && !is_few ? PC_FOR_B : 0),
                       drops_norm || (is_again && !(keeps_input && !is_few)), begin);
    pc_saved_add_again(saved, "mlp_act_input", PC_MODULE_MLP_ACT,
                       (slice->stores_low_input ? 1 : 2) * tokens * slice->up, PC_FOR_B, is_again, begin);
    pc_saved_add_again(saved, "mlp_down_input", PC_MODULE_MLP_DOWN, pc_saved_operand(format, tokens * slice->ffn),
                       PC_FOR_W, is_again, begin);
    if (pc_model_has_post_norms(model))
        pc_saved_add(saved, "mlp_post_norm_input", PC_MODULE_MLP_POST_NORM, 2 * rows, PC_FOR_B);
    if (model->has_dropout) pc_saved_add(saved, "mlp_mask", PC_MODULE_MLP_RESIDUAL, rows, PC_FOR_B);
}

/* What comes back to the ends of attention and MLP stays as B gathered it, for all tokens. */
static void add_gradients(const pc_model *model, const pc_slice *slice, pc_product_format format, bool has_experts,
                          pc_saved_list *saved) {
    pc_wide tokens = slice->tokens, whole_rows = tokens * slice->hidden;
    if (pc_model_is_latent(model))
        pc_saved_add_latent_gradients(slice, format, saved);
    else
        pc_saved_add_gradient(saved, "qkv_gradient", PC_MODULE_QKV, pc_saved_operand(format, tokens * slice->qkv));
    pc_saved_add_gradient(saved, "attn_proj_gradient", PC_MODULE_ATTN_PROJ, pc_saved_operand(format, whole_rows));
    if (has_experts) return pc_saved_add_expert_gradients(model, slice, format, saved);
    pc_saved_add_gradient(saved, "mlp_up_gradient", PC_MODULE_MLP_UP, pc_saved_operand(format, tokens * slice->up));
    pc_saved_add_gradient(saved, "mlp_down_gradient", PC_MODULE_MLP_DOWN, pc_saved_operand(format, whole_rows));
}

void pc_layer_saved(const pc_model *model, const pc_slice *slice, pc_saved_sort sort, int32_t modules,
                    pc_saved_list *saved) {
    pc_product_format format = operand_format(model, sort.is_low);
    pc_wide input_bytes = column_input(model, slice, sort.is_low, format);
    saved->count = 0;
    add_attention(model, slice, format, sort.is_low && slice->attention_is_low, input_bytes, modules, saved);
    if (sort.has_experts)
        pc_saved_add_experts(model, slice, format, modules, saved);
    else
        add_mlp(model, slice, format, input_bytes, modules, saved);
    add_gradients(model, slice, format, sort.has_experts, saved);
    pc_saved_freeze(model, slice, sort.has_experts, modules, saved);
}

pc_wide pc_saved_by_f(const pc_saved_list *saved) {
    pc_wide sum = 0;
    for (int i = 0; i < saved->count; i++)
        if (!saved->list[i].is_gradient && !saved->list[i].is_again) sum += saved->list[i].bytes;
    return sum;
}

pc_wide pc_saved_again(const pc_saved_list *saved) {
    pc_wide sum = 0;
    for (int i = 0; i < saved->count; i++)
        if (saved->list[i].is_again) sum += saved->list[i].bytes;
    return sum;
}

pc_wide pc_saved_for_w(const pc_saved_list *saved) {
    pc_wide sum = 0;
    for (int i = 0; i < saved->count; i++)
        if (saved->list[i].for_whom & PC_FOR_W) sum += saved->list[i].bytes;
    return sum;
}

/* What the backward pass through a module begins with, over what was there: what it makes again, and what it leaves W;
 * and what is gone when it is through. */
typedef struct passage {
    pc_wide begun[PC_MODULES], ended[PC_MODULES];
} passage;

static passage passage_of(const pc_saved_list *saved, bool leaves_w) {
    passage found = {{0}, {0}};
    for (int i = 0; i < saved->count; i++) {
        const pc_saved *x = &saved->list[i];
        bool stays = x->is_gradient || (leaves_w && x->for_whom & PC_FOR_W);
        if (x->is_again) found.begun[x->made_at] += x->bytes;
        if (x->is_gradient && leaves_w) found.begun[x->module] += x->bytes;
        if (!stays) found.ended[x->module] += x->bytes;
    }
    return found;
}

pc_wide pc_saved_peak(const pc_saved_list *saved, bool leaves_w) {
    const passage of = passage_of(saved, leaves_w);
    pc_wide level = 0, peak = 0;
    for (int module = PC_MODULES - 1; module >= 0; module--) {
        level += of.begun[module];
        if (level > peak) peak = level;
        level -= of.ended[module];
    }
    return peak;
}
