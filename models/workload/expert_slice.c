#include "models/workload/expert_slice.h"

#include "engine/numbers.h"
#include "models/workload/expert_load.h"

#include <math.h>

static pc_expert_spread spread_of(const pc_model *model, const pc_cut *cut, double tokens, double quantile) {
    return (pc_expert_spread){.experts = (double)model->experts.num_experts,
                              .ranks = pc_cut_ep(cut),
                              .topk = (double)model->experts.topk,
                              .tokens = tokens,
                              .quantile = quantile,
                              .exponent = cut->moe_load_exponent};
}

bool pc_cut_expert_load_varies(const pc_model *model, const pc_cut *cut) {
    return pc_model_has_experts(model) && pc_cut_ep(cut) > 1 && cut->moe_load != PC_MOE_LOAD_BALANCED;
}

double pc_cut_expert_load(const pc_model *model, const pc_cut *cut, double tokens, double quantile) {
    const pc_expert_spread spread = spread_of(model, cut, tokens, quantile);
    const pc_known_load *known = &cut->known_load;
    if (pc_cut_ep(cut) > 1 && cut->moe_load_fullest > 0) return cut->moe_load_fullest;
    if (!pc_cut_expert_load_varies(model, cut)) return 1.0;
    if (known->tokens == tokens && quantile == 0) return known->mean;
    if (known->tokens == tokens && quantile == cut->memory_quantile) return known->held;
    if (cut->moe_load == PC_MOE_LOAD_GIVEN) return pc_expert_load_counted(cut->moe_load_counts, &spread);
    return cut->moe_load == PC_MOE_LOAD_UNIFORM ? pc_expert_load_by_chance(&spread) : pc_expert_load(&spread);
}

/* With experts, TP's ranks have the sequence cut. */
double pc_cut_expert_tokens(const pc_cut *cut) {
    int64_t tokens = cut->seq_len / pc_cut_cp(cut) * cut->microbatch_size / cut->tp;
    return (double)tokens * (double)((int64_t)pc_cut_ep(cut) * pc_cut_etp(cut));
}

pc_known_load pc_cut_find_load(const pc_model *model, const pc_cut *cut) {
    double tokens = pc_cut_expert_tokens(cut);
    return (pc_known_load){tokens, pc_cut_expert_load(model, cut, tokens, 0),
                           pc_cut_expert_load(model, cut, tokens, cut->memory_quantile)};
}

double pc_cut_mean_expert_load(const pc_model *model, const pc_cut *cut) {
    return pc_cut_expert_load(model, cut, pc_cut_expert_tokens(cut), 0);
}

double pc_cut_expert_load_drawn(const pc_model *model, const pc_cut *cut, double u) {
    const pc_expert_spread spread = spread_of(model, cut, pc_cut_expert_tokens(cut), 0);
    if (!pc_cut_expert_load_varies(model, cut)) return 1.0;
    if (cut->moe_load == PC_MOE_LOAD_GIVEN) return pc_expert_load_drawn_counted(cut->moe_load_counts, &spread, u);
    return cut->moe_load == PC_MOE_LOAD_UNIFORM ? pc_expert_load_drawn_by_chance(&spread, u)
                                                : pc_expert_load_drawn(&spread, u);
}

/* Of one expert and one rank's tokens, as Megatron-LM's get_capacity counts it. */
static int64_t capacity_of(const pc_experts *x, int64_t tokens) {
    double share = (double)tokens * (double)x->topk / (double)x->num_experts;
    return (int64_t)fmin(ceil(share * x->capacity_factor), (double)tokens);
}

/* A rank's experts get from each of `ep` ranks, and of `etp` that cut them, what those have. Where a capacity bounds
 * what an expert takes of each, the fullest rank gets that at most. */
static int64_t rows_of(const pc_model *model, const pc_cut *cut, const pc_expert_slice *slice, double quantile) {
    const pc_experts *x = &model->experts;
    int64_t sources = slice->ranks * slice->cut, mean = slice->counted;
    double load = pc_cut_expert_load(model, cut, (double)slice->tokens * (double)sources, quantile);
    int64_t rows = load > 1.0 ? (int64_t)ceil((double)mean * load) : mean;
    if (!(x->capacity_factor > 0)) return rows;
    int64_t most = capacity_of(x, slice->tokens) * slice->experts * sources;
    return x->pads_to_capacity ? most : pc_min(rows, most);
}

pc_expert_slice pc_expert_slice_of(const pc_model *model, const pc_cut *cut, int64_t tokens) {
    const pc_experts *x = &model->experts;
    int64_t ep = pc_cut_ep(cut), etp = pc_cut_etp(cut), ups = pc_mlp_is_gated(model->mlp) ? 2 : 1;
    pc_expert_slice slice = {.experts = x->num_experts / ep,
                             .topk = x->topk,
                             .ranks = ep,
                             .cut = etp,
                             .tokens = tokens,
                             .counted = tokens * x->topk * etp,
                             .sent = tokens * x->topk,
                             .ffn = x->ffn_hidden / etp,
                             .up = ups * x->ffn_hidden / etp,
                             .shared = x->shared_ffn_hidden / cut->tp,
                             .shared_up = ups * x->shared_ffn_hidden / cut->tp,
                             .adapter_rank = cut->lora.divides_rank ? cut->lora.rank / x->topk : cut->lora.rank};
    slice.rows = rows_of(model, cut, &slice, 0.0);
    slice.held_rows = rows_of(model, cut, &slice, cut->memory_quantile);
    if (x->capacity_factor > 0) {
        int64_t most = capacity_of(x, tokens) * x->num_experts;
        slice.sent = x->pads_to_capacity ? most : pc_min(slice.sent, most);
    }
    return slice;
}
