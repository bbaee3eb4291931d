#include "models/workload/slice.h"

#include "engine/numbers.h"
#include "models/workload/expert_slice.h"
#include "models/workload/sequence_slices.h"

static int64_t loss_tokens(const pc_cut *cut, int64_t tokens) {
    if (cut->cross_entropy != PC_CROSS_ENTROPY_CHUNKED) return tokens;
    int64_t pieces = cut->cross_entropy_chunks > 0 ? cut->cross_entropy_chunks : PC_CROSS_ENTROPY_CHUNKS;
    return pc_divide_up(tokens, pieces);
}

/* Of sequences that begin behind `start` tokens. */
static pc_slice make(const pc_model *model, const pc_cut *cut, int64_t start, int64_t sequence) {
    int64_t t = cut->tp, heads = model->heads / t, kv_heads = model->kv_heads < t ? 1 : model->kv_heads / t;
    bool is_sequence_cut = t > 1 && cut->sequence_parallel;
    int64_t cp = pc_cut_cp(cut), exchange = pc_cut_exchange(model, cut);
    bool has_later = start + sequence < cut->seq_len;
    bool gathers_keys = cp > 1 && cut->cp_comm == PC_CP_ALL_GATHER;
    pc_slice slice = {.ranks = t,
                      .sequence = sequence,
                      .keys = 2 * start + sequence,
                      .keys_before = start * cut->microbatch_size,
                      .has_later = has_later,
                      .context = cp,
                      .exchange = exchange,
                      .ring = gathers_keys ? 1 : cp / exchange,
                      .gathers_keys = gathers_keys,
                      .tokens = sequence / cp * cut->microbatch_size,
                      .hidden = model->hidden,
                      .head_dim = model->head_dim,
                      .value_dim = pc_model_value_dim(model),
                      .attention = heads * cut->microbatch_size,
                      .full = pc_model_sight(model, sequence, false),
                      .local = pc_model_sight(model, sequence, true),
                      .query = heads * model->head_dim,
                      .key = kv_heads * model->head_dim,
                      .ffn = model->ffn_hidden / t,
                      .vocab = pc_model_padded_vocab(model, cut->tp) / t,
                      .is_cut = t > 1,
                      .is_sequence_cut = is_sequence_cut,
                      .keeps_gathered = is_sequence_cut && cut->tp_inputs == PC_TP_INPUTS_GATHERED,
                      .has_norms_apart =
                          cut->transformer_impl == PC_TRANSFORMER_LOCAL || cut->kernels == PC_KERNELS_EAGER,
                      .stores_low_input = cut->stores_low_input,
                      .attention_is_low = cut->attention_is_low,
                      .attention_hands_low = cut->attention_hands_low,
                      .fuses_operations = cut->fuses_operations,
                      .compiles = cut->compiles,
                      .lora = cut->lora,
                      .mla = model->mla,
                      .value = kv_heads * pc_model_value_dim(model),
                      .output = heads * pc_model_value_dim(model),
                      .frozen = pc_cut_frozen(cut),
                      .graphs = cut->graphs};
    /* To a multiple of twice the stages, as the paper's program pads it. */
    if (cut->vocab_stages > 0) slice.vocab = 2 * pc_divide_up(slice.vocab, 2 * (int64_t)cut->vocab_stages);
    slice.loss_tokens = loss_tokens(cut, slice.tokens);
    slice.norm_tokens = is_sequence_cut ? slice.tokens / t : slice.tokens;
    slice.qkv = slice.query + slice.key + slice.value;
    slice.latent_up = pc_model_is_latent(model) ? kv_heads * (model->mla.qk_nope_head_dim + model->mla.v_head_dim) : 0;
    slice.up = pc_mlp_is_gated(model->mlp) ? 2 * slice.ffn : slice.ffn;
    if (pc_model_has_experts(model)) slice.experts = pc_expert_slice_of(model, cut, slice.norm_tokens);
    slice.counted_qkv =
        (pc_wide)(model->hidden / t) * ((model->heads + 2 * (pc_wide)model->kv_heads) * model->head_dim);
    return slice;
}

pc_slice pc_slice_of(const pc_model *model, const pc_cut *cut) {
    return make(model, cut, 0, cut->seq_len);
}

pc_slice pc_slice_of_part(const pc_model *model, const pc_cut *cut, const pc_part *part) {
    pc_sequence_slice slice = pc_sequence_slice_of(model, cut, part->slice);
    return make(model, cut, slice.start, slice.tokens);
}
