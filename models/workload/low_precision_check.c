#include "models/workload/low_precision_check.h"

#include "engine/numbers.h"

#include <inttypes.h>

typedef struct side {
    const char *what;
    int64_t size;
    bool is_gathered; /* ranks gather it in few bits */
} side;

enum { SIDES_MAX = 16 };
typedef struct side_list {
    side list[SIDES_MAX];
    int count;
} side_list;

static void add(side_list *sides, const char *what, int64_t size) {
    sides->list[sides->count++] = (side){what, size, false};
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

/* What sequence parallelism gathers in few bits: a rank's tokens, of all columns. */
static void add_gathered(const pc_model *model, const pc_cut *cut, int64_t tokens, side_list *sides) {
    if (!model->low.gathers_activations || !cut->sequence_parallel || cut->tp < 2) return;
    sides->list[sides->count++] = (side){"tokens of a rank, which tp gathers", tokens / cut->tp, true};
    sides->list[sides->count++] = (side){"hidden, which tp gathers", model->hidden, true};
}

/* Both multiples of a recipe, the largest of its products'. */
typedef struct multiples {
    int64_t each, gathered;
} multiples;

static multiples multiples_of(const pc_low_precision *low) {
    multiples found = {1, 1};
    for (int i = 0; i < PC_LOW_PRODUCTS; i++) {
        found.each = pc_max(found.each, pc_product_format_multiple(low->product[i]));
        found.gathered = pc_max(found.gathered, pc_product_format_gathered_multiple(low->product[i]));
    }
    return found;
}

/* Every product's rows and inner dimension, in all three roles: tokens, and both sides of the rank's matrices. */
static pc_code check_multiples(const pc_model *model, const pc_cut *cut, pc_error *error) {
    side_list sides = {.count = 0};
    multiples of = multiples_of(&model->low);
    int64_t tokens = cut->seq_len / pc_cut_cp(cut) * cut->microbatch_size;
    add(&sides, cut->cp > 1 ? "seq_len / cp x microbatch_size" : "seq_len x microbatch_size", tokens);
    add(&sides, "hidden", model->hidden);
    add_attention(model, cut->tp, &sides);
    add_mlps(model, cut, &sides);
    add_gathered(model, cut, tokens, &sides);
    for (int i = 0; i < sides.count; i++) {
        int64_t multiple = sides.list[i].is_gathered ? of.gathered : of.each;
        if (sides.list[i].size % multiple != 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "precision %s: %" PRId64 " %s; expected a multiple of %" PRId64 ", another tp, or bf16",
                                model->low.name, sides.list[i].size, sides.list[i].what, multiple);
    }
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
