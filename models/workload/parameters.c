/* How many parameters a model has, and one rank of it. */
#include "engine/numbers.h"
#include "models/workload/memory.h"
#include "models/workload/slice.h"

/* Scales of a norm, and its shifts, a column. */
static pc_wide norm_factor(const pc_model *model) {
    return model->hidden > 0 ? pc_model_norm_parameters(model) / model->hidden : 0;
}

/* ---- attention and MLP of one layer, as a rank has them ---- */

/* Query, key and value; output. */
static pc_wide attention_matrices(const pc_model *model, const pc_slice *x) {
    pc_wide h = x->hidden, query = x->query, output = h * x->output;
    const pc_mla *mla = &x->mla;
    if (!pc_model_is_latent(model)) return h * x->qkv + output;
    pc_wide queries = mla->q_lora_rank > 0 ? mla->q_lora_rank * (h + query) : h * query;
    pc_wide keys = h * (mla->kv_lora_rank + mla->qk_rope_head_dim) + (pc_wide)mla->kv_lora_rank * x->latent_up;
    return queries + keys + output;
}

static pc_wide attention_biases(const pc_model *model, const pc_slice *x) {
    pc_wide sinks = model->has_attention_sinks ? x->query / x->head_dim : 0;
    return (pc_model_has_qkv_bias(model) ? x->qkv : 0) + sinks;
}

/* Of the layer, of queries and keys, and of latents; and the bias behind attention. */
static pc_wide attention_replicated(const pc_model *model, const pc_slice *x) {
    pc_wide of_latents = norm_factor(model) * (x->mla.q_lora_rank + x->mla.kv_lora_rank);
    pc_wide norms = pc_model_layer_norms(model) * (pc_wide)pc_model_norm_parameters(model);
    return norms + pc_model_qk_norm_parameters(model) + of_latents + (model->has_bias ? x->hidden : 0);
}

static pc_wide mlp_matrices(const pc_slice *x) {
    return (pc_wide)x->hidden * (x->up + x->ffn);
}

/* Of this rank's routed experts, with their biases. */
static pc_wide routed_experts(const pc_model *model, const pc_slice *x) {
    const pc_expert_slice *e = &x->experts;
    pc_wide biases = model->has_bias ? e->up + x->hidden : 0;
    return e->experts * ((pc_wide)x->hidden * (e->up + e->ffn) + biases);
}

/* Shared ones and their gate; the router, which every rank has whole. */
static pc_wide beside_experts(const pc_model *model, const pc_slice *x) {
    const pc_expert_slice *e = &x->experts;
    pc_wide h = x->hidden, shared = h * (e->shared_up + e->shared) + (model->experts.has_shared_gate ? h : 0);
    pc_wide router = model->experts.num_experts * (h + (model->experts.has_router_bias ? 1 : 0));
    return shared + router;
}

static pc_wide dense_mlp(const pc_model *model, const pc_slice *x) {
    return mlp_matrices(x) + (model->has_bias ? x->up + x->hidden : 0);
}

static pc_wide attention_of(const pc_model *model, const pc_slice *x) {
    return attention_matrices(model, x) + attention_biases(model, x) + attention_replicated(model, x);
}

/* Beside the layer: the projection of hidden state and next token's embedding, a norm of each, and the one in front of
 * the head. */
static pc_wide beside_mtp_layer(const pc_model *model, const pc_slice *x) {
    return 2 * (pc_wide)x->hidden * x->hidden / x->ranks + 3 * (pc_wide)pc_model_norm_parameters(model);
}

/* ---- adapters of one layer, as a rank has them ---- */

/* A t-th of r(in + out), where this rank has `inputs` and `outputs`: of one with cut columns, with cut rows, and of one
 * that is whole. */
static pc_wide column_adapter(const pc_lora *lora, pc_lora_target target, int64_t inputs, int64_t outputs,
                              int64_t ranks) {
    if (!pc_lora_is_at(lora, target)) return 0;
    return (pc_wide)inputs * (lora->rank / ranks) + (pc_wide)lora->rank * outputs;
}

static pc_wide row_adapter(const pc_lora *lora, pc_lora_target target, int64_t inputs, int64_t outputs, int64_t ranks) {
    return column_adapter(lora, target, outputs, inputs, ranks);
}

static pc_wide whole_adapter(const pc_lora *lora, pc_lora_target target, int64_t inputs, int64_t outputs) {
    return column_adapter(lora, target, inputs, outputs, 1);
}

static pc_wide latent_adapters(const pc_slice *x) {
    const pc_mla *mla = &x->mla;
    const pc_lora *lora = &x->lora;
    int64_t h = x->hidden, q_rank = mla->q_lora_rank, kv_rank = mla->kv_lora_rank;
    pc_wide queries = column_adapter(lora, PC_LORA_Q_PROJ, h, x->query, x->ranks);
    if (q_rank > 0)
        queries = whole_adapter(lora, PC_LORA_Q_DOWN, h, q_rank) +
                  column_adapter(lora, PC_LORA_Q_UP, q_rank, x->query, x->ranks);
    return queries + whole_adapter(lora, PC_LORA_KV_DOWN, h, kv_rank + mla->qk_rope_head_dim) +
           column_adapter(lora, PC_LORA_KV_UP, kv_rank, x->latent_up, x->ranks);
}

static pc_wide attention_adapters(const pc_model *model, const pc_slice *x) {
    pc_wide output = row_adapter(&x->lora, PC_LORA_PROJ, x->output, x->hidden, x->ranks);
    if (pc_model_is_latent(model)) return latent_adapters(x) + output;
    return column_adapter(&x->lora, PC_LORA_QKV, x->hidden, x->qkv, x->ranks) + output;
}

static pc_wide pair_adapters(const pc_lora *lora, int64_t hidden, int64_t up, int64_t ffn, int64_t ranks) {
    if (ffn == 0) return 0;
    return column_adapter(lora, PC_LORA_FC1, hidden, up, ranks) + row_adapter(lora, PC_LORA_FC2, ffn, hidden, ranks);
}

static pc_wide dense_adapters(const pc_slice *x) {
    return pair_adapters(&x->lora, x->hidden, x->up, x->ffn, x->ranks);
}

static pc_wide shared_adapters(const pc_slice *x) {
    return pair_adapters(&x->lora, x->hidden, x->experts.shared_up, x->experts.shared, x->ranks);
}

/* Beside one routed expert. */
static pc_wide expert_adapters(const pc_slice *x) {
    const pc_expert_slice *e = &x->experts;
    pc_lora lora = x->lora;
    lora.rank = (int32_t)e->adapter_rank;
    return pair_adapters(&lora, x->hidden, e->up, e->ffn, e->cut);
}

static pc_wide routed_adapters(const pc_slice *x) {
    return (x->lora.shares_experts ? 1 : x->experts.experts) * expert_adapters(x);
}

/* What a token's products are with: of as many routed experts as it goes to. */
static pc_wide active_adapters(const pc_model *model, const pc_slice *x, bool has_experts) {
    pc_wide attention = attention_adapters(model, x);
    if (!has_experts) return attention + dense_adapters(x);
    return attention + x->experts.topk * expert_adapters(x) + shared_adapters(x);
}

int64_t pc_layer_adapters(const pc_model *model, const pc_cut *cut, bool has_experts) {
    pc_slice x = pc_slice_of(model, cut);
    return (int64_t)active_adapters(model, &x, has_experts);
}

static int64_t part_adapters(const pc_model *model, const pc_slice *x, const pc_part *part) {
    int64_t dense = part->layers - part->expert_layers;
    pc_wide sum = part->layers * attention_adapters(model, x) + dense * dense_adapters(x);
    if (part->expert_layers > 0) sum += part->expert_layers * (routed_adapters(x) + shared_adapters(x));
    return (int64_t)sum;
}

/* ---- the whole model ---- */

static pc_slice whole_of(const pc_model *model) {
    const pc_cut cut = {.tp = 1, .pp = 1, .dp = 1, .chunks = 1, .seq_len = 1, .microbatch_size = 1};
    return pc_slice_of(model, &cut);
}

/* Of the model's layers without those of multi-token prediction: what a token goes through is as much less as there are
 * experts that it does not go to. */
static pc_wide idle_experts(const pc_model *model, const pc_slice *x) {
    if (!pc_model_has_experts(model)) return 0;
    pc_wide idle = model->experts.num_experts - model->experts.topk, each = routed_experts(model, x);
    return pc_model_expert_layers(model, 0, model->layers) * (each / model->experts.num_experts * idle);
}

pc_code pc_model_parameters(const pc_model *model, int tp, pc_parameters *parameters, pc_error *error) {
    const pc_slice x = whole_of(model);
    pc_wide h = model->hidden, norm = pc_model_norm_parameters(model), embedding = pc_model_padded_vocab(model, tp) * h;
    pc_wide positions = model->positions == PC_POSITIONS_LEARNED ? model->max_positions * h : 0;
    pc_wide biases = model->has_bias ? x.up : 0,
            matrices = attention_matrices(model, &x) + mlp_matrices(&x) + biases + attention_biases(model, &x);
    pc_wide replicated = attention_replicated(model, &x) + (model->has_bias ? h : 0);
    pc_wide with_experts = pc_model_has_experts(model)
                               ? attention_of(model, &x) + routed_experts(model, &x) + beside_experts(model, &x)
                               : 0;
    pc_wide head = model->is_tied ? 0 : embedding, expert_layers = pc_model_expert_layers(model, 0, model->layers);
    bool is_last = pc_model_expert_layers(model, model->layers - 1, 1) > 0;
    pc_wide last = is_last ? with_experts : matrices + replicated;
    pc_wide mtp = model->mtp_layers * (last + beside_mtp_layer(model, &x));
    pc_wide layers = (model->layers - expert_layers) * (matrices + replicated) + expert_layers * with_experts;
    pc_wide total = layers + embedding + positions + norm + head + mtp;
    if (total > INT64_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "model: 2^63 parameters and more; expected smaller dimensions");
    *parameters = (pc_parameters){.layer_matrix = (int64_t)matrices,
                                  .layer_replicated = (int64_t)replicated,
                                  .expert_layer = (int64_t)with_experts,
                                  .embedding = (int64_t)embedding,
                                  .positions = (int64_t)positions,
                                  .final_norm = (int64_t)norm,
                                  .head = (int64_t)head,
                                  .mtp = (int64_t)mtp,
                                  .active = (int64_t)(total - mtp - idle_experts(model, &x)),
                                  .total = (int64_t)total};
    return PC_OK;
}

/* ---- one part on one rank ---- */

int64_t pc_part_experts(const pc_model *model, const pc_cut *cut, const pc_part *part) {
    if (part->slice > 0 || part->expert_layers == 0) return 0;
    pc_slice x = pc_slice_of(model, cut);
    return (int64_t)(part->expert_layers * (routed_experts(model, &x) + routed_adapters(&x)));
}

int64_t pc_part_experts_trained(const pc_model *model, const pc_cut *cut, const pc_part *part) {
    pc_slice x = pc_slice_of(model, cut);
    if (!(x.frozen & (int32_t)PC_FROZEN_LAYERS)) return pc_part_experts(model, cut, part);
    return part->slice > 0 ? 0 : (int64_t)(part->expert_layers * routed_adapters(&x));
}

static pc_wide part_layers(const pc_model *model, const pc_slice *x, const pc_part *part) {
    pc_wide sum = part->layers * attention_of(model, x) + (part->layers - part->expert_layers) * dense_mlp(model, x);
    if (part->expert_layers > 0) sum += part->expert_layers * (routed_experts(model, x) + beside_experts(model, x));
    if (part->mtp_layers > 0) sum += part->mtp_layers * beside_mtp_layer(model, x);
    return sum;
}

bool pc_part_copies_embedding(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding) {
    bool has_own = part->has_head && (model->is_tied || shares_embedding);
    return part->mtp_layers > 0 && !part->has_embedding && cut->vocab_stages == 0 && !has_own;
}

int64_t pc_part_parameters(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding) {
    if (part->slice > 0) return 0;
    pc_slice x = pc_slice_of(model, cut);
    int64_t table = x.vocab * x.hidden;
    int64_t sum = (int64_t)part_layers(model, &x, part);
    if (part->has_vocab) sum += model->is_tied ? table : 2 * table;
    if (part->has_embedding && cut->vocab_stages == 0) sum += table;
    if (part->has_embedding && model->positions == PC_POSITIONS_LEARNED) sum += model->max_positions * x.hidden;
    if (part->has_head) sum += pc_model_norm_parameters(model);
    if (pc_part_copies_embedding(model, cut, part, shares_embedding)) sum += table;
    bool has_table = (model->is_tied && (part->has_embedding || shares_embedding)) || cut->vocab_stages > 0;
    sum += part_adapters(model, &x, part);
    return part->has_head && !has_table ? sum + table : sum;
}

int64_t pc_part_trained(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding) {
    if (part->slice > 0) return 0;
    pc_slice x = pc_slice_of(model, cut);
    int64_t table = x.vocab * x.hidden, all = pc_part_parameters(model, cut, part, shares_embedding);
    bool has_table = model->is_tied && (part->has_embedding || shares_embedding);
    if (x.frozen & (int32_t)PC_FROZEN_LAYERS) return part_adapters(model, &x, part);
    bool is_copy = pc_part_copies_embedding(model, cut, part, shares_embedding);
    if (is_copy && x.frozen & (int32_t)PC_FROZEN_EMBEDDING) all -= table;
    if (part->has_embedding && x.frozen & (int32_t)PC_FROZEN_EMBEDDING) {
        all -= table;
        if (model->positions == PC_POSITIONS_LEARNED) all -= model->max_positions * x.hidden;
    }
    return part->has_head && !has_table && x.frozen & (int32_t)PC_FROZEN_HEAD ? all - table : all;
}

/* Routers stay in 16 bits. */
int64_t pc_part_low_weights(const pc_model *model, const pc_cut *cut, const pc_part *part) {
    bool is_nf4 = cut->lora.base == PC_LORA_BASE_NF4;
    if (!(pc_low_precision_is_on(&model->low) || is_nf4) || part->slice > 0 || part->layers == 0) return 0;
    pc_slice x = pc_slice_of(model, cut);
    int64_t low = part->layers - part->wide_layers, experts = pc_divide_up(part->expert_layers * low, part->layers);
    pc_wide shared = (pc_wide)x.hidden * (x.experts.shared_up + x.experts.shared);
    pc_wide routed = x.experts.experts * ((pc_wide)x.hidden * (x.experts.up + x.experts.ffn));
    return (int64_t)(low * attention_matrices(model, &x) + (low - experts) * mlp_matrices(&x) +
                     experts * (shared + routed));
}
