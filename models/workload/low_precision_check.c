#include "models/workload/low_precision_check.h"

#include "engine/numbers.h"

#include <inttypes.h>

typedef struct side {
    const char *what;
    int64_t size;
} side;

enum { SIDES_MAX = 16 };
typedef struct side_list {
    side list[SIDES_MAX];
    int count;
} side_list;

static void add(side_list *sides, const char *what, int64_t size) {
    sides->list[sides->count++] = (side){what, size};
}

/* Latents are whole on every rank, and heads are cut. */
static void add_attention(const pc_model *model, int64_t t, side_list *sides) {
    const pc_mla *mla = &model->mla;
    int64_t kv_heads = model->kv_heads < t ? 1 : model->kv_heads / t, heads = model->heads / t;
    bool is_latent = pc_model_is_latent(model);
    if (!is_latent) add(sides, "columns of query, key and value", (heads + 2 * kv_heads) * model->head_dim);
    add(sides, "columns of the queries", heads * model->head_dim);
    if (!is_latent) return;
    add(sides, "q_lora_rank", mla->q_lora_rank);
    add(sides, "kv_lora_rank", mla->kv_lora_rank);
    add(sides, "kv_lora_rank + qk_rope_head_dim", mla->kv_lora_rank + mla->qk_rope_head_dim);
    add(sides, "columns of the latents' keys and values", heads * (mla->qk_nope_head_dim + mla->v_head_dim));
    add(sides, "columns of the values", heads * mla->v_head_dim);
}

/* Rows of an expert are as they come, and padded (Megatron-LM's moe_router_padding_for_quantization). */
static void add_mlps(const pc_model *model, const pc_cut *cut, side_list *sides) {
    int64_t with_experts = pc_model_expert_layers(model, 0, model->layers);
    if (with_experts < model->layers) add(sides, "ffn_hidden / tp", model->ffn_hidden / cut->tp);
    if (with_experts == 0) return;
    add(sides, "moe_ffn_hidden_size / etp", model->experts.ffn_hidden / pc_cut_etp(cut));
    add(sides, "moe_shared_expert_intermediate_size / tp", model->experts.shared_ffn_hidden / cut->tp);
}

/* Every product's rows and inner dimension, in all three roles: tokens, and both sides of the rank's matrices. */
static pc_code check_multiples(const pc_model *model, const pc_cut *cut, pc_error *error) {
    side_list sides = {.count = 0};
    int64_t multiple = 1;
    add(&sides, cut->cp > 1 ? "seq_len / cp x microbatch_size" : "seq_len x microbatch_size",
        cut->seq_len / pc_cut_cp(cut) * cut->microbatch_size);
    add(&sides, "hidden", model->hidden);
    add_attention(model, cut->tp, &sides);
    add_mlps(model, cut, &sides);
    for (int i = 0; i < PC_LOW_PRODUCTS; i++)
        multiple = pc_max(multiple, pc_product_format_multiple(model->low.product[i]));
    for (int i = 0; i < sides.count; i++)
        if (sides.list[i].size % multiple != 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "precision %s: %" PRId64 " %s; expected a multiple of %" PRId64 ", another tp, or bf16",
                                model->low.name, sides.list[i].size, sides.list[i].what, multiple);
    return PC_OK;
}

pc_code pc_low_precision_check_cut(const pc_model *model, const pc_cut *cut, pc_error *error) {
    const pc_low_precision *low = &model->low;
    if (!pc_low_precision_is_on(low)) return PC_OK;
    if (low->bf16_first < 0 || low->bf16_last < 0)
        return pc_error_set(error, PC_ERROR_INPUT, "precision %s: %d layers in 16 bits; expected 0 or more", low->name,
                            (int)(low->bf16_first < 0 ? low->bf16_first : low->bf16_last));
    if (low->copies < 1 || low->copies > 2)
        return pc_error_set(error, PC_ERROR_INPUT, "precision %s: %d copies; expected 1 or 2", low->name,
                            (int)low->copies);
    return check_multiples(model, cut, error);
}
