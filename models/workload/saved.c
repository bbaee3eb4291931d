#include "models/workload/saved.h"

#include <assert.h>

static void add(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes, int for_whom) {
    assert(saved->count < PC_SAVED_MAX);
    if (bytes > 0) saved->list[saved->count++] = (pc_saved){name, module, bytes, for_whom, false};
}

static void add_gradient(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes) {
    assert(saved->count < PC_SAVED_MAX);
    saved->list[saved->count++] = (pc_saved){name, module, bytes, PC_FOR_W, true};
}

/* Inputs of matrices and gradients of their outputs, as their product of weights' gradients reads them. */
static pc_wide operand_bytes(pc_product_format format, pc_wide elements) {
    return (elements * pc_product_format_bytes_of_32(format) + 31) / 32;
}

/* The format in which operands wait for W. */
static pc_product_format operand_format(const pc_model *model, bool is_low) {
    bool keeps_few = is_low && model->low.keeps_inputs && pc_product_format_is_low(model->low.product[2]);
    return keeps_few ? model->low.product[2] : PC_PRODUCT_BF16;
}

pc_wide pc_score_bytes(const pc_model *model, const pc_slice *slice) {
    if (model->attention == PC_ATTENTION_FLASH) return 0;
    return (pc_wide)(model->has_dropout ? 5 : 2) * slice->attention * slice->sequence * slice->sequence;
}

/* Flash attention's backward pass reads its output, which is the next matrix's input where that is kept in 16 bits. */
static void add_attention(const pc_model *model, const pc_slice *slice, pc_product_format format,
                          pc_saved_list *saved) {
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden, query = (pc_wide)slice->tokens * slice->query;
    bool reads_output = model->attention == PC_ATTENTION_FLASH, is_few = pc_product_format_is_low(format);
    add(saved, "attn_norm_input", PC_MODULE_ATTN_NORM, 2 * rows, PC_FOR_B);
    add(saved, "qkv_input", PC_MODULE_QKV, operand_bytes(format, rows), PC_FOR_W);
    add(saved, "query_key_value", PC_MODULE_CORE_ATTN, 2 * (pc_wide)slice->tokens * slice->qkv, PC_FOR_B);
    add(saved, "scores", PC_MODULE_CORE_ATTN, pc_score_bytes(model, slice), PC_FOR_B);
    if (is_few && reads_output) add(saved, "context", PC_MODULE_CORE_ATTN, 2 * query, PC_FOR_B);
    add(saved, "attn_proj_input", PC_MODULE_ATTN_PROJ, operand_bytes(format, query),
        PC_FOR_W | (!is_few && reads_output ? PC_FOR_B : 0));
    if (model->has_dropout) add(saved, "attn_mask", PC_MODULE_ATTN_RESIDUAL, rows, PC_FOR_B);
}

static void add_mlp(const pc_model *model, const pc_slice *slice, pc_product_format format, pc_saved_list *saved) {
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden, tokens = slice->tokens;
    add(saved, "mlp_norm_input", PC_MODULE_MLP_NORM, 2 * rows, PC_FOR_B);
    add(saved, "mlp_up_input", PC_MODULE_MLP_UP, operand_bytes(format, rows), PC_FOR_W);
    add(saved, "mlp_act_input", PC_MODULE_MLP_ACT, 2 * tokens * slice->up, PC_FOR_B);
    add(saved, "mlp_down_input", PC_MODULE_MLP_DOWN, operand_bytes(format, tokens * slice->ffn), PC_FOR_W);
    if (model->has_dropout) add(saved, "mlp_mask", PC_MODULE_MLP_RESIDUAL, rows, PC_FOR_B);
}

/* What comes back to the ends of attention and MLP stays as B gathered it, for all tokens. */
static void add_gradients(const pc_slice *slice, pc_product_format format, pc_saved_list *saved) {
    pc_wide tokens = slice->tokens, whole_rows = tokens * slice->hidden;
    add_gradient(saved, "qkv_gradient", PC_MODULE_QKV, operand_bytes(format, tokens * slice->qkv));
    add_gradient(saved, "attn_proj_gradient", PC_MODULE_ATTN_PROJ, operand_bytes(format, whole_rows));
    add_gradient(saved, "mlp_up_gradient", PC_MODULE_MLP_UP, operand_bytes(format, tokens * slice->up));
    add_gradient(saved, "mlp_down_gradient", PC_MODULE_MLP_DOWN, operand_bytes(format, whole_rows));
}

void pc_layer_saved(const pc_model *model, const pc_slice *slice, bool is_low, pc_saved_list *saved) {
    pc_product_format format = operand_format(model, is_low);
    saved->count = 0;
    add_attention(model, slice, format, saved);
    add_mlp(model, slice, format, saved);
    add_gradients(slice, format, saved);
    pc_saved_freeze(slice, saved);
}

pc_wide pc_saved_by_f(const pc_saved_list *saved) {
    pc_wide sum = 0;
    for (int i = 0; i < saved->count; i++)
        if (!saved->list[i].is_gradient) sum += saved->list[i].bytes;
    return sum;
}

pc_wide pc_saved_for_w(const pc_saved_list *saved) {
    pc_wide sum = 0;
    for (int i = 0; i < saved->count; i++)
        if (saved->list[i].for_whom & PC_FOR_W) sum += saved->list[i].bytes;
    return sum;
}
