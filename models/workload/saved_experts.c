/* What latent attention and experts keep from F for the backward pass. */
#include "models/workload/saved.h"

/* ---- latents ---- */

/* One tensor stands for both matrices that read the hidden states. The norms' inputs are B's, their outputs W's. */
void pc_saved_add_latents(const pc_slice *slice, pc_product_format format, int32_t modules, pc_saved_list *saved) {
    pc_wide tokens = slice->norm_tokens, q_rank = slice->mla.q_lora_rank, kv_rank = slice->mla.kv_lora_rank;
    bool drops_norm = modules & PC_RECOMPUTES_LAYERNORM;
    pc_saved_add_again(saved, "latent_down_input", PC_MODULE_QKV, pc_saved_operand(format, tokens * slice->hidden),
                       PC_FOR_W, drops_norm, PC_MODULE_QKV);
    pc_saved_add(saved, "q_norm_input", PC_MODULE_QK_NORM, 2 * tokens * q_rank, PC_FOR_B);
    pc_saved_add(saved, "kv_norm_input", PC_MODULE_QK_NORM, 2 * tokens * kv_rank, PC_FOR_B);
    pc_saved_add(saved, "q_up_input", PC_MODULE_QK_NORM, pc_saved_operand(format, tokens * q_rank), PC_FOR_W);
    pc_saved_add(saved, "kv_up_input", PC_MODULE_QK_NORM, pc_saved_operand(format, tokens * kv_rank), PC_FOR_W);
}

void pc_saved_add_latent_gradients(const pc_slice *slice, pc_product_format format, pc_saved_list *saved) {
    pc_wide tokens = slice->tokens, own = slice->norm_tokens;
    pc_wide down = slice->mla.q_lora_rank + slice->mla.kv_lora_rank + slice->mla.qk_rope_head_dim;
    pc_saved_add_gradient(saved, "latent_down_gradient", PC_MODULE_QKV, pc_saved_operand(format, own * down));
    pc_saved_add_gradient(saved, "q_up_gradient", PC_MODULE_QK_NORM, pc_saved_operand(format, tokens * slice->query));
    pc_saved_add_gradient(saved, "kv_up_gradient", PC_MODULE_QK_NORM,
                          pc_saved_operand(format, tokens * slice->latent_up));
}

/* ---- experts ---- */

/* What of the half is made again, and from where on: a module's tensors come back when the backward pass reaches its
 * last product. */
typedef struct dropped {
    bool norm, all, act, shared;
} dropped;

static dropped dropped_of(const pc_model *model, int32_t modules) {
    bool all = modules & PC_RECOMPUTES_MOE;
    return (dropped){.norm = modules & PC_RECOMPUTES_LAYERNORM && pc_model_has_pre_norms(model),
                     .all = all,
                     .act = all || modules & PC_RECOMPUTES_MOE_ACT,
                     .shared = all || modules & PC_RECOMPUTES_SHARED_EXPERTS};
}

/* Of a number that an activation reads. */
static int act_bytes(const pc_slice *slice) {
    return slice->stores_low_input ? 1 : 2;
}

/* Their first product reads in few bits what the router reads in 16, another copy of it. */
static void add_shared(const pc_slice *slice, pc_product_format format, const dropped *drops, pc_saved_list *saved) {
    const pc_expert_slice *x = &slice->experts;
    pc_wide rows = (pc_wide)x->tokens * slice->hidden, tokens = slice->tokens;
    bool is_again = drops->shared;
    if (x->shared == 0) return;
    if (pc_product_format_is_low(format))
        pc_saved_add_again(saved, "shared_up_input", PC_MODULE_MLP_UP, pc_saved_operand(format, rows), PC_FOR_W,
                           is_again || drops->norm, PC_MODULE_MLP_DOWN);
    pc_saved_add_again(saved, "shared_act_input", PC_MODULE_MLP_ACT, act_bytes(slice) * tokens * x->shared_up, PC_FOR_B,
                       is_again, PC_MODULE_MLP_DOWN);
    pc_saved_add_again(saved, "shared_down_input", PC_MODULE_MLP_DOWN, pc_saved_operand(format, tokens * x->shared),
                       PC_FOR_W, is_again, PC_MODULE_MLP_DOWN);
}

/* The router's scores, fp32. Rows of experts: the first product's input; what it puts out, for the activation; and what
 * that puts out. Rows behind the last product are summed up at once, for their probabilities are in the activation. */
static void add_routed(const pc_model *model, const pc_slice *slice, pc_product_format format, const dropped *drops,
                       pc_saved_list *saved) {
    const pc_expert_slice *x = &slice->experts;
    pc_wide rows = x->held_rows;
    bool clamps = model->experts.activation_clamp > 0 && !slice->fuses_operations;
    pc_saved_add_again(saved, "router_scores", PC_MODULE_MLP_UP, 4 * (pc_wide)x->tokens * model->experts.num_experts,
                       PC_FOR_B, drops->all, PC_MODULE_MLP_DOWN);
    pc_saved_add_again(saved, "expert_up_input", PC_MODULE_MLP_UP, pc_saved_operand(format, rows * slice->hidden),
                       PC_FOR_W, drops->all, PC_MODULE_MLP_DOWN);
    pc_saved_add_again(saved, "expert_act_input", PC_MODULE_MLP_ACT, (clamps ? 2 : act_bytes(slice)) * rows * x->up,
                       PC_FOR_B, drops->all, PC_MODULE_MLP_DOWN);
    if (clamps) /* a copy that is cut off, beside what it was */
        pc_saved_add_again(saved, "expert_act_clamped", PC_MODULE_MLP_ACT, act_bytes(slice) * rows * x->up, PC_FOR_B,
                           drops->act, PC_MODULE_MLP_DOWN);
    pc_saved_add_again(saved, "expert_down_input", PC_MODULE_MLP_DOWN, pc_saved_operand(format, rows * x->ffn),
                       PC_FOR_W, drops->act, PC_MODULE_MLP_DOWN);
}

/* The norm is a module of its own, whatever implements layers: the router, shared experts and permutation read it; and
 * what is made again of these. */
void pc_saved_add_experts(const pc_model *model, const pc_slice *slice, pc_product_format format, int32_t modules,
                          pc_saved_list *saved) {
    const dropped drops = dropped_of(model, modules);
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden;
    pc_module begin = drops.all ? PC_MODULE_MLP_DOWN : PC_MODULE_MLP_UP;
    if (pc_model_has_pre_norms(model)) pc_saved_add(saved, "mlp_norm_input", PC_MODULE_MLP_NORM, 2 * rows, PC_FOR_B);
    pc_saved_add_again(saved, "router_input", PC_MODULE_MLP_UP, 2 * rows, PC_FOR_W | (drops.shared ? PC_FOR_B : 0),
                       drops.norm, begin);
    add_routed(model, slice, format, &drops, saved);
    add_shared(slice, format, &drops, saved);
    if (pc_model_has_post_norms(model))
        pc_saved_add(saved, "mlp_post_norm_input", PC_MODULE_MLP_POST_NORM, 2 * rows, PC_FOR_B);
    if (model->has_dropout) pc_saved_add(saved, "mlp_mask", PC_MODULE_MLP_RESIDUAL, rows, PC_FOR_B);
}

void pc_saved_add_expert_gradients(const pc_model *model, const pc_slice *slice, pc_product_format format,
                                   pc_saved_list *saved) {
    const pc_expert_slice *x = &slice->experts;
    pc_wide rows = x->held_rows, tokens = slice->tokens, whole_rows = tokens * slice->hidden;
    pc_saved_add_gradient(saved, "router_gradient", PC_MODULE_MLP_UP,
                          2 * (pc_wide)x->tokens * model->experts.num_experts);
    pc_saved_add_gradient(saved, "expert_up_gradient", PC_MODULE_MLP_UP, pc_saved_operand(format, rows * x->up));
    pc_saved_add_gradient(saved, "expert_down_gradient", PC_MODULE_MLP_DOWN,
                          pc_saved_operand(format, rows * slice->hidden));
    if (x->shared == 0) return;
    pc_saved_add_gradient(saved, "shared_up_gradient", PC_MODULE_MLP_UP,
                          pc_saved_operand(format, tokens * x->shared_up));
    pc_saved_add_gradient(saved, "shared_down_gradient", PC_MODULE_MLP_DOWN, pc_saved_operand(format, whole_rows));
}
