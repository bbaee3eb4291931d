#include "models/workload/tensors.h"

#include "models/workload/memory.h"
#include "models/workload/slice.h"

#include <assert.h>

typedef struct list {
    pc_tensor_sort *sorts;
    int count;
} list;

static void add_sort(list *x, pc_tensor_sort sort) {
    assert(x->count < PC_TENSOR_SORTS_MAX);
    if (sort.parameters > 0 && sort.count > 0) x->sorts[x->count++] = sort;
}

static void add(list *x, int64_t parameters, int64_t count) {
    add_sort(x, (pc_tensor_sort){.parameters = parameters, .count = count});
}

static void add_matrix(list *x, int64_t rows, int64_t columns, int64_t key_columns, int64_t count) {
    add_sort(x, (pc_tensor_sort){.parameters = rows * columns,
                                 .count = count,
                                 .rows = rows,
                                 .columns = columns,
                                 .key_columns = key_columns,
                                 .is_in_layer = true});
}

static void add_table(list *x, int64_t rows, int64_t columns) {
    add_sort(x, (pc_tensor_sort){.parameters = rows * columns, .count = 1, .rows = rows, .columns = columns});
}

/* Down to the latents and up again; queries without a latent come from the hidden states. */
static void add_latents(list *x, const pc_slice *slice, int64_t layers) {
    const pc_mla *mla = &slice->mla;
    int64_t h = slice->hidden, q_rank = mla->q_lora_rank;
    if (q_rank > 0) add_matrix(x, h, q_rank, 0, layers);
    add_matrix(x, q_rank > 0 ? q_rank : h, slice->query, 0, layers);
    add_matrix(x, h, mla->kv_lora_rank + mla->qk_rope_head_dim, 0, layers);
    add_matrix(x, mla->kv_lora_rank, slice->latent_up, 0, layers);
}

static void add_attention(list *x, const pc_model *model, const pc_slice *slice, int64_t layers) {
    if (pc_model_is_latent(model))
        add_latents(x, slice, layers);
    else
        add_matrix(x, slice->hidden, slice->qkv, slice->key, layers);
    add_matrix(x, slice->hidden, slice->output, 0, layers);
}

static void add_mlp(list *x, const pc_model *model, int64_t hidden, int64_t ffn, int64_t count) {
    int64_t ups = pc_mlp_is_gated(model->mlp) ? 2 : 1;
    if (ffn > 0) add_matrix(x, hidden, ffn, 0, (ups + 1) * count);
}

/* Every expert's matrices are tensors of their own. */
static void add_experts(list *x, const pc_model *model, const pc_slice *slice, int64_t layers) {
    const pc_expert_slice *e = &slice->experts;
    int64_t h = slice->hidden, all = model->experts.num_experts;
    int first = x->count;
    add_mlp(x, model, h, e->ffn, layers * e->experts);
    if (model->has_bias) add(x, e->up + h, layers * e->experts);
    for (int i = first; i < x->count; i++) x->sorts[i].is_expert = true;
    add_mlp(x, model, h, e->shared, layers);
    add_matrix(x, h, all, 0, layers);
    if (model->experts.has_router_bias) add(x, all, layers);
    if (model->experts.has_shared_gate) add(x, h, layers);
}

static void add_matrices(list *x, const pc_model *model, const pc_slice *slice, const pc_part *part) {
    int64_t h = slice->hidden, ups = pc_mlp_is_gated(model->mlp) ? 2 : 1, dense = part->layers - part->expert_layers;
    add_attention(x, model, slice, part->layers);
    add_matrix(x, h, slice->up / ups, 0, ups * dense);
    add_matrix(x, h, slice->ffn, 0, dense);
    if (part->expert_layers > 0) add_experts(x, model, slice, part->expert_layers);
    add_matrix(x, h, 2 * h / slice->ranks, 0, part->mtp_layers);
}

/* Of columns, cut as they are; of rows, whole on every rank. */
static void add_biases(list *x, const pc_model *model, const pc_slice *slice, const pc_part *part) {
    int64_t ups = pc_mlp_is_gated(model->mlp) ? 2 : 1, dense = part->layers - part->expert_layers;
    if (pc_model_has_qkv_bias(model)) add(x, slice->qkv, part->layers);
    if (model->has_attention_sinks) add(x, slice->query / slice->head_dim, part->layers);
    if (!model->has_bias) return;
    add(x, slice->up / ups, ups * dense);
    add(x, slice->hidden, part->layers + dense);
}

/* A scale and, of layer norms with biases, a shift. */
static void add_norms(list *x, const pc_model *model, int64_t norms) {
    add(x, model->hidden, norms * (pc_model_norm_parameters(model) / model->hidden));
}

/* A scale of the queries' norm and one of the keys'. */
static void add_qk_norms(list *x, const pc_model *model, int64_t layers) {
    bool is_full = model->qk_norm == PC_QK_NORM_FULL;
    if (model->qk_norm == PC_QK_NORM_NONE) return;
    add(x, is_full ? model->heads * model->head_dim : model->head_dim, layers);
    add(x, is_full ? model->kv_heads * model->head_dim : model->head_dim, layers);
}

static void add_latent_norms(list *x, const pc_model *model, int64_t layers) {
    int64_t each = pc_model_norm_parameters(model) / model->hidden;
    add(x, model->mla.q_lora_rank, each * layers);
    add(x, model->mla.kv_lora_rank, each * layers);
}

int pc_part_tensors(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding,
                    pc_tensor_sort sorts[PC_TENSOR_SORTS_MAX]) {
    if (part->slice > 0) return 0;
    pc_slice slice = pc_slice_of(model, cut);
    bool has_table = model->is_tied && (part->has_embedding || shares_embedding);
    list x = {sorts, 0};
    int64_t norms = pc_model_layer_norms(model) * part->layers + 3 * part->mtp_layers + (part->has_head ? 1 : 0);
    add_matrices(&x, model, &slice, part);
    add_biases(&x, model, &slice, part);
    add_norms(&x, model, norms);
    add_latent_norms(&x, model, part->layers);
    add_qk_norms(&x, model, part->layers);
    if (part->has_vocab) add_table(&x, slice.vocab, slice.hidden);
    if (part->has_vocab && !model->is_tied) add_table(&x, slice.vocab, slice.hidden);
    if (part->has_embedding && cut->vocab_stages == 0) add_table(&x, slice.vocab, slice.hidden);
    if (pc_part_copies_embedding(model, cut, part, shares_embedding)) add_table(&x, slice.vocab, slice.hidden);
    if (part->has_embedding && model->positions == PC_POSITIONS_LEARNED)
        add_table(&x, model->max_positions, slice.hidden);
    if (part->has_head && !has_table && cut->vocab_stages == 0) add_table(&x, slice.vocab, slice.hidden);
    return x.count;
}
