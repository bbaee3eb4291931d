#include "models/workload/slice.h"

#include "engine/numbers.h"

static int64_t loss_tokens(const pc_cut *cut, int64_t tokens) {
    if (cut->cross_entropy != PC_CROSS_ENTROPY_CHUNKED) return tokens;
    int64_t pieces = cut->cross_entropy_chunks > 0 ? cut->cross_entropy_chunks : PC_CROSS_ENTROPY_CHUNKS;
    return pc_divide_up(tokens, pieces);
}

pc_slice pc_slice_of(const pc_model *model, const pc_cut *cut) {
    int64_t t = cut->tp, heads = model->heads / t, kv_heads = model->kv_heads < t ? 1 : model->kv_heads / t;
    bool is_sequence_cut = t > 1 && cut->sequence_parallel;
    pc_slice slice = {.ranks = t,
                      .sequence = cut->seq_len,
                      .tokens = cut->seq_len * cut->microbatch_size,
                      .hidden = model->hidden,
                      .head_dim = model->head_dim,
                      .attention = heads * cut->microbatch_size,
                      .query = heads * model->head_dim,
                      .key = kv_heads * model->head_dim,
                      .ffn = model->ffn_hidden / t,
                      .vocab = pc_model_padded_vocab(model, cut->tp) / t,
                      .is_cut = t > 1,
                      .is_sequence_cut = is_sequence_cut};
    /* To a multiple of twice the stages, as the paper's program pads it. */
    if (cut->vocab_stages > 0) slice.vocab = 2 * pc_divide_up(slice.vocab, 2 * (int64_t)cut->vocab_stages);
    slice.loss_tokens = loss_tokens(cut, slice.tokens);
    slice.norm_tokens = is_sequence_cut ? slice.tokens / t : slice.tokens;
    slice.qkv = slice.query + 2 * slice.key;
    slice.up = model->mlp == PC_MLP_SWIGLU ? 2 * slice.ffn : slice.ffn;
    slice.counted_qkv =
        (pc_wide)(model->hidden / t) * ((model->heads + 2 * (pc_wide)model->kv_heads) * model->head_dim);
    return slice;
}
