#include "models/workload/tensors.h"

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

static void add_matrices(list *x, const pc_model *model, const pc_slice *slice, int64_t layers) {
    int64_t h = slice->hidden, ups = pc_mlp_is_gated(model->mlp) ? 2 : 1;
    add_matrix(x, h, slice->qkv, slice->key, layers);
    add_matrix(x, h, slice->query, 0, layers);
    add_matrix(x, h, slice->up / ups, 0, ups * layers);
    add_matrix(x, h, slice->ffn, 0, layers);
}

/* Of columns, cut as they are; of rows, whole on every rank. */
static void add_biases(list *x, const pc_model *model, const pc_slice *slice, int64_t layers) {
    int64_t ups = pc_mlp_is_gated(model->mlp) ? 2 : 1;
    if (pc_model_has_qkv_bias(model)) add(x, slice->qkv, layers);
    if (!model->has_bias) return;
    add(x, slice->up / ups, ups * layers);
    add(x, slice->hidden, 2 * layers);
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

int pc_part_tensors(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding,
                    pc_tensor_sort sorts[PC_TENSOR_SORTS_MAX]) {
    if (part->slice > 0) return 0;
    pc_slice slice = pc_slice_of(model, cut);
    bool has_table = model->is_tied && (part->has_embedding || shares_embedding);
    list x = {sorts, 0};
    add_matrices(&x, model, &slice, part->layers);
    add_biases(&x, model, &slice, part->layers);
    add_norms(&x, model, pc_model_layer_norms(model) * part->layers + (part->has_head ? 1 : 0));
    add_qk_norms(&x, model, part->layers);
    if (part->has_vocab) add_table(&x, slice.vocab, slice.hidden);
    if (part->has_vocab && !model->is_tied) add_table(&x, slice.vocab, slice.hidden);
    if (part->has_embedding && cut->vocab_stages == 0) add_table(&x, slice.vocab, slice.hidden);
    if (part->has_embedding && model->positions == PC_POSITIONS_LEARNED)
        add_table(&x, model->max_positions, slice.hidden);
    if (part->has_head && !has_table && cut->vocab_stages == 0) add_table(&x, slice.vocab, slice.hidden);
    return x.count;
}
