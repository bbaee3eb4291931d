#include "models/workload/operations_private.h"

#include "engine/numbers.h"
#include "models/workload/attention.h"
#include "models/workload/memory.h"

#include <string.h>

/* ---- passes ---- */

/* Layers of a kind, of few bits or of 16, are one group. Those of `all` that are of 16 bits are as many as their part
 * of the model's share asks for, rounded up. */
typedef struct layer_groups {
    int64_t low, wide;
} layer_groups;

static layer_groups groups_of(const pc_builder *b, const pc_part *part, int64_t all) {
    if (!pc_low_precision_is_on(&b->model->low)) return (layer_groups){0, all};
    if (part->layers == 0 || part->wide_layers == 0) return (layer_groups){all, 0};
    int64_t wide = pc_divide_up(part->wide_layers * all, part->layers);
    return (layer_groups){all - wide, wide};
}

/* Of `all` layers those whose attention has a window, likewise. Which group they are in is all the same: attention is
 * of 16 bits in both. */
static int64_t local_of(const pc_part *part, int64_t all) {
    if (part->layers == 0 || part->local_layers == 0) return 0;
    return pc_divide_up(part->local_layers * all, part->layers);
}

/* And those with experts. */
static int64_t experts_of(const pc_part *part, int64_t all) {
    if (part->expert_layers == 0) return 0;
    return pc_divide_up(part->expert_layers * all, part->layers);
}

typedef void add_layers(pc_builder *b, const void *how);

static void add_groups(pc_builder *b, const pc_part *part, int64_t all, add_layers *add, const void *how) {
    layer_groups groups = groups_of(b, part, all);
    int64_t local = local_of(part, all), experts = experts_of(part, all);
    b->repeat = groups.low;
    b->experts = pc_min(experts, groups.low);
    b->local = pc_min(local, groups.low);
    b->low = &b->model->low;
    if (groups.low > 0) add(b, how);
    b->repeat = groups.wide;
    b->local = local - b->local;
    b->experts = experts - b->experts;
    b->low = NULL;
    if (groups.wide > 0) add(b, how);
    b->repeat = 1;
    b->local = b->experts = 0;
}

static void add_layer_forward(pc_builder *b, const void *how) {
    (void)how;
    pc_add_layer_forward(b);
}

static void add_layer_backward(pc_builder *b, const void *how) {
    const pc_backward *passes = how;
    pc_add_layer_backward(b, *passes);
}

/* Each layer of multi-token prediction has the head once more. NULL: forward. */
static void add_heads(pc_builder *b, const pc_part *part, const pc_backward *passes) {
    b->repeat = 1 + part->mtp_heads;
    if (passes)
        pc_add_head_backward(b, *passes);
    else
        pc_add_head_forward(b);
    b->repeat = 1;
}

static void add_mtp(pc_builder *b, const pc_part *part, const pc_backward *passes) {
    if (part->mtp_layers == 0) return;
    b->repeat = part->mtp_layers;
    if (passes)
        pc_add_mtp_backward(b, *passes);
    else
        pc_add_mtp_forward(b);
    b->repeat = 1;
}

static void add_forward(pc_builder *b, const pc_part *part) {
    if (part->has_embedding) pc_add_embedding_forward(b);
    add_groups(b, part, part->layers, add_layer_forward, NULL);
    add_mtp(b, part, NULL);
    if (part->has_head) add_heads(b, part, NULL);
}

static void add_layer_again(pc_builder *b, const void *how) {
    const pc_part *part = how;
    pc_recompute kind = part->recompute;
    if (kind == PC_RECOMPUTE_SELECTIVE) {
        if (b->model->attention == PC_ATTENTION_MATERIALISED) pc_add_attention_again(b);
    } else if (pc_recompute_is_policy(kind)) {
        pc_add_policy_again(b, pc_recompute_kept(b->model, kind));
    } else if (kind == PC_RECOMPUTE_MODULES) {
        pc_add_modules_again(b, part->recompute_modules);
    } else {
        pc_add_layer_forward(b);
    }
}

/* What the part's recomputation asks for, of the layers that it asks it for. */
static void add_recomputation(pc_builder *b, const pc_part *part) {
    bool is_backward = b->is_backward;
    int64_t layers = pc_recomputed_layers(pc_part_recomputation(part), part->layers);
    b->is_backward = false;
    b->is_again = true;
    add_groups(b, part, layers, add_layer_again, part);
    b->is_again = false;
    b->is_backward = is_backward;
}

static void add_backward(pc_builder *b, const pc_part *part, pc_backward passes, bool has_r) {
    b->is_backward = true;
    if (part->has_head) add_heads(b, part, &passes);
    add_mtp(b, part, &passes);
    if (passes.b && !has_r) add_recomputation(b, part);
    add_groups(b, part, part->layers, add_layer_backward, &passes);
    if (part->has_embedding) pc_add_embedding_backward(b, passes);
}

static void add_pass(pc_builder *b, const pc_part *part, pc_pass_kind kind, bool has_r) {
    switch (kind) {
    case PC_PASS_F:
        add_forward(b, part);
        break;
    case PC_PASS_R:
        add_recomputation(b, part);
        break;
    case PC_PASS_S:
        if (part->has_vocab) pc_add_vocab_s(b);
        break;
    case PC_PASS_T:
        if (part->has_vocab) pc_add_vocab_t(b);
        break;
    default:
        add_backward(b, part, (pc_backward){.b = kind != PC_PASS_W, .w = kind != PC_PASS_B}, has_r);
    }
}

/* ---- sums ---- */

typedef struct wide_sums {
    pc_wide flops, model_flops, bytes, collective_bytes, launches;
} wide_sums;

static wide_sums sum_of(const pc_operations *operations) {
    wide_sums sums = {0};
    for (int i = 0; i < operations->count; i++) {
        const pc_operation *x = &operations->list[i];
        sums.flops += (pc_wide)x->flops * x->repeat;
        sums.model_flops += (pc_wide)x->model_flops * x->repeat;
        sums.bytes += (pc_wide)x->bytes * x->repeat;
        sums.collective_bytes += (pc_wide)x->size_bytes * x->repeat;
        sums.launches += (pc_wide)x->launches * x->repeat;
    }
    return sums;
}

/* Model FLOPs are at most FLOPs, and launches far fewer than bytes. */
static bool fits(const pc_operations *operations) {
    wide_sums sums = sum_of(operations);
    return sums.flops <= INT64_MAX && sums.bytes <= INT64_MAX && sums.collective_bytes <= INT64_MAX;
}

pc_operation_sums pc_operations_sum(const pc_operations *operations) {
    wide_sums sums = sum_of(operations);
    return (pc_operation_sums){.flops = (int64_t)sums.flops,
                               .model_flops = (int64_t)sums.model_flops,
                               .bytes = (int64_t)sums.bytes,
                               .collective_bytes = (int64_t)sums.collective_bytes,
                               .launches = (int64_t)sums.launches};
}

/* In a graph of the whole iteration kernels follow each other as in one of a half (pc_add_graph), and no pass begins a
 * graph. */
static void capture_all(pc_operations *operations) {
    for (int i = 0; i < operations->count; i++) operations->list[i].launches = 0;
}

pc_code pc_pass_operations(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind, bool has_r,
                           pc_operations *operations, pc_error *error) {
    pc_operations made;
    pc_builder b = {.model = model,
                    .slice = pc_slice_of_part(model, cut, part),
                    .vocab_barriers = cut->vocab_barriers,
                    .cross_entropy = cut->cross_entropy,
                    .dispatcher = cut->dispatcher,
                    .fp8_dispatch = cut->fp8_dispatch,
                    .overlaps_shared = cut->overlaps_shared,
                    .gradient_bytes = pc_cut_gradient_bytes(cut),
                    .gathers_low_weights = pc_cut_gathers_low_weights(model, cut),
                    .casts_over = pc_cut_casts_over(model, cut),
                    .sums_apart = pc_cut_sums_apart(cut),
                    .is_eager = cut->kernels == PC_KERNELS_EAGER,
                    .operations = &made,
                    .repeat = 1};
    made.count = 0; /* the rest is written as it is added */
    add_pass(&b, part, kind, has_r);
    if (cut->graphs & (int32_t)PC_GRAPHS_ITERATION) capture_all(&made);
    if (b.has_overflow || !fits(&made))
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "operations: pass %s has 2^63 FLOPs or bytes and more; expected fewer tokens or a smaller model",
            pc_pass_kind_name(kind));
    operations->count = made.count;
    memcpy(operations->list, made.list, (size_t)made.count * sizeof *made.list);
    return PC_OK;
}

/* ---- the whole model ---- */

/* Products of attention in one layer, of the whole model's matrices. */
static double attention_products(const pc_model *model) {
    double h = (double)model->hidden, heads = (double)model->heads, query = heads * (double)model->head_dim;
    double key = (double)(model->kv_heads * model->head_dim), rank = (double)model->mla.kv_lora_rank;
    double q_rank = (double)model->mla.q_lora_rank, output = heads * (double)pc_model_value_dim(model);
    if (!pc_model_is_latent(model)) return 2.0 * h * (query + key);
    double up = heads * (double)(model->mla.qk_nope_head_dim + model->mla.v_head_dim);
    double queries = q_rank > 0.0 ? q_rank * (h + query) : h * query;
    return queries + h * (rank + (double)model->mla.qk_rope_head_dim) + rank * up + output * h;
}

/* Of the MLP, or of the experts that a token goes to; the router's own is not counted, as Megatron-LM does not. */
static double mlp_products(const pc_model *model, bool has_experts) {
    double h = (double)model->hidden, matrices = pc_mlp_is_gated(model->mlp) ? 3.0 : 2.0;
    const pc_experts *x = &model->experts;
    if (!has_experts) return matrices * h * (double)model->ffn_hidden;
    return matrices * h * ((double)x->topk * (double)x->ffn_hidden + (double)x->shared_ffn_hidden);
}

/* Forward, 2 FLOPs a multiplication, and backward twice that. Of attention to k keys 2 k of queries' and values'
 * columns together. */
double pc_model_flops_per_sequence(const pc_model *model, int tp, int64_t seq_len) {
    double s = (double)seq_len, h = (double)model->hidden, mtp = (double)model->mtp_layers;
    double columns = (double)model->heads * (double)(model->head_dim + pc_model_value_dim(model));
    int64_t local = pc_model_local_layers(model, 0, model->layers),
            experts = pc_model_expert_layers(model, 0, model->layers);
    bool is_last = pc_model_expert_layers(model, model->layers - 1, 1) > 0;
    double local_keys = (double)pc_sight_keys(pc_model_sight(model, seq_len, true)),
           full_keys = (double)pc_sight_keys(pc_model_sight(model, seq_len, false));
    double keys = (double)local * local_keys + ((double)(model->layers - local) + mtp) * full_keys;
    double layers = ((double)model->layers + mtp) * attention_products(model) + columns * keys;
    layers += (double)(model->layers - experts) * mlp_products(model, false);
    if (experts > 0) layers += (double)experts * mlp_products(model, true);
    if (mtp > 0) layers += mtp * (mlp_products(model, is_last) + 2.0 * h * h);
    return 6.0 * s * (layers + (1.0 + mtp) * h * (double)pc_model_padded_vocab(model, tp));
}

/* What layers of one sort have more, frozen beside adapters, of so many tokens: these, and no gradients of their
 * matrices. */
static double frozen_layers(const pc_model *model, const pc_cut *cut, double tokens, bool has_experts) {
    pc_cut whole = *cut;
    whole.tp = whole.etp = 1;
    whole.ep = 0;
    if (!(tokens > 0)) return 0;
    double adapters = (double)pc_layer_adapters(model, &whole, has_experts);
    return tokens * (6.0 * adapters - 2.0 * (attention_products(model) + mlp_products(model, has_experts)));
}

double pc_cut_flops_per_sequence(const pc_model *model, const pc_cut *cut) {
    double s = (double)cut->seq_len, all = pc_model_flops_per_sequence(model, cut->tp, cut->seq_len);
    double h = (double)model->hidden, mtp = (double)model->mtp_layers;
    int64_t experts = pc_model_expert_layers(model, 0, model->layers),
            again = model->mtp_layers * pc_model_expert_layers(model, model->layers - 1, 1);
    int32_t frozen = pc_cut_frozen(cut);
    if (frozen & (int32_t)PC_FROZEN_LAYERS) {
        double mixed = (double)(experts + again), dense = (double)model->layers + mtp - mixed;
        all += frozen_layers(model, cut, s * dense, false) + frozen_layers(model, cut, s * mixed, true);
        all -= 2.0 * s * mtp * 2.0 * h * h;
    }
    if (frozen & (int32_t)PC_FROZEN_HEAD)
        all -= 2.0 * s * (1.0 + mtp) * h * (double)pc_model_padded_vocab(model, cut->tp);
    return all;
}
