#include "engine/numbers.h"
#include "models/workload/expert_reach.h"
#include "models/workload/experts_check.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

/* ---- which layers ---- */

/* Of layers 0 to `end` - 1. */
static int64_t before(const pc_experts *x, int64_t end) {
    int64_t every = x->layer_freq > 1 ? x->layer_freq : 1;
    return end > x->first_dense ? pc_divide_up(end - x->first_dense, every) : 0;
}

int64_t pc_model_expert_layers(const pc_model *model, int64_t first, int64_t count) {
    const pc_experts *x = &model->experts;
    return x->num_experts > 0 ? before(x, first + count) - before(x, first) : 0;
}

/* ---- what cannot be ---- */

static pc_code check_range(const char *key, int64_t size, int64_t least, pc_error *error) {
    if (size >= least && size <= INT32_MAX) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s is %" PRId64 "; expected %" PRId64 " to %d", key, size, least,
                        INT32_MAX);
}

static pc_code check_none(const pc_experts *x, pc_error *error) {
    bool has_any = x->topk || x->ffn_hidden || x->shared_ffn_hidden || x->first_dense || x->layer_freq ||
                   x->router_groups || x->router_group_topk || x->has_router_bias || x->has_shared_gate ||
                   x->pads_to_capacity || x->capacity_factor != 0;
    if (!has_any) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "num_experts is 0 beside other keys of experts; expected 1 or more");
}

static pc_code check_capacity(const pc_experts *x, pc_error *error) {
    if (!(x->capacity_factor >= 0) || !isfinite(x->capacity_factor))
        return pc_error_set(error, PC_ERROR_INPUT, "moe_expert_capacity_factor is %g; expected 0, for none, or more",
                            x->capacity_factor);
    if (x->pads_to_capacity && x->capacity_factor == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_pad_expert_input_to_capacity without a capacity; expected moe_expert_capacity_factor");
    return PC_OK;
}

/* Megatron-LM asks the same of moe_router_num_groups and moe_router_group_topk. */
static pc_code check_groups(const pc_experts *x, pc_error *error) {
    int64_t groups = x->router_groups, chosen = x->router_group_topk;
    if (groups == 0 && chosen == 0) return PC_OK;
    if (groups < 1 || groups > PC_ROUTING_GROUPS_MAX || x->num_experts % groups)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_router_num_groups is %" PRId64 "; expected a divisor of the %" PRId64
                            " of num_experts, up to %d",
                            groups, x->num_experts, PC_ROUTING_GROUPS_MAX);
    if (chosen < 1 || chosen > groups)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_router_group_topk is %" PRId64 "; expected 1 to the %" PRId64
                            " of moe_router_num_groups",
                            chosen, groups);
    if (x->topk > x->num_experts / groups * chosen)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_router_topk is %" PRId64 " of %" PRId64 " groups with %" PRId64
                            " experts each; expected no more than these have",
                            x->topk, chosen, x->num_experts / groups);
    return PC_OK;
}

pc_code pc_experts_check(const pc_experts *x, pc_error *error) {
    pc_code code;
    if (x->num_experts == 0) return check_none(x, error);
    if ((code = check_range("num_experts", x->num_experts, 1, error))) return code;
    if ((code = check_range("moe_ffn_hidden_size", x->ffn_hidden, 1, error))) return code;
    if ((code = check_range("moe_shared_expert_intermediate_size", x->shared_ffn_hidden, 0, error))) return code;
    if ((code = check_range("first_k_dense_replace", x->first_dense, 0, error))) return code;
    if ((code = check_range("moe_layer_freq", x->layer_freq, 0, error))) return code;
    if (x->topk < 1 || x->topk > x->num_experts)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_router_topk is %" PRId64 "; expected 1 to the %" PRId64 " of num_experts", x->topk,
                            x->num_experts);
    if (x->has_shared_gate && x->shared_ffn_hidden == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_shared_expert_gate without shared experts; expected "
                            "moe_shared_expert_intermediate_size");
    pc_code of_groups = check_groups(x, error);
    return of_groups ? of_groups : check_capacity(x, error);
}

static pc_code check_latent_heads(const pc_model *model, pc_error *error) {
    const pc_mla *mla = &model->mla;
    if (model->kv_heads != model->heads)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "kv_heads %" PRId64 " with latent attention; expected %" PRId64 ", as many as heads",
                            model->kv_heads, model->heads);
    if (model->head_dim != mla->qk_nope_head_dim + mla->qk_rope_head_dim)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "head_dim %" PRId64 " with latent attention; expected %" PRId64
                            ", qk_nope_head_dim and qk_rope_head_dim together",
                            model->head_dim, mla->qk_nope_head_dim + mla->qk_rope_head_dim);
    if (model->has_bias || model->has_qkv_bias || model->qk_norm != PC_QK_NORM_NONE)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "biases or qk_norm with latent attention, whose norms are the latents'; expected bias and "
                            "qkv_bias false, and qk_norm none");
    return PC_OK;
}

pc_code pc_mla_check(const pc_model *model, pc_error *error) {
    const pc_mla *x = &model->mla;
    pc_code code;
    if (x->kv_lora_rank == 0) {
        bool has_any = x->q_lora_rank || x->qk_nope_head_dim || x->qk_rope_head_dim || x->v_head_dim;
        if (!has_any) return PC_OK;
        return pc_error_set(error, PC_ERROR_INPUT,
                            "kv_lora_rank is 0 beside other keys of latent attention; expected 1 or more");
    }
    if ((code = check_range("kv_lora_rank", x->kv_lora_rank, 1, error))) return code;
    if ((code = check_range("q_lora_rank", x->q_lora_rank, 0, error))) return code;
    if ((code = check_range("qk_nope_head_dim", x->qk_nope_head_dim, 1, error))) return code;
    if ((code = check_range("qk_rope_head_dim", x->qk_rope_head_dim, 1, error))) return code;
    if ((code = check_range("v_head_dim", x->v_head_dim, 1, error))) return code;
    return check_latent_heads(model, error);
}

/* ---- what a cut cannot have ---- */

static pc_code check_ranks(const pc_model *model, const pc_cut *cut, pc_error *error) {
    int64_t ep = pc_cut_ep(cut), etp = pc_cut_etp(cut), all = (int64_t)pc_cut_replicas(cut) * cut->tp;
    if (cut->ep < 0 || cut->etp < 0)
        return pc_error_set(error, PC_ERROR_INPUT, "%s %d; expected at least 1", cut->ep < 0 ? "ep" : "etp",
                            cut->ep < 0 ? cut->ep : cut->etp);
    if (model->experts.num_experts % ep)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "ep %" PRId64 " does not divide %" PRId64 " experts; expected a divisor", ep,
                            model->experts.num_experts);
    if (all % (ep * etp) && etp == 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "ep %" PRId64 " does not divide tp * cp * dp %" PRId64 "; expected a divisor", ep, all);
    if (all % (ep * etp) && cut->etp == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "etp %" PRId64 " (as tp) * ep %" PRId64 " does not divide tp * cp * dp %" PRId64
                            "; expected a divisor%s",
                            etp, ep, all, all % ep ? "" : ", or etp 1");
    if (all % (ep * etp))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "etp %" PRId64 " * ep %" PRId64 " does not divide tp * cp * dp %" PRId64
                            "; expected a divisor",
                            etp, ep, all);
    if (model->experts.ffn_hidden % etp)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "etp %" PRId64 " does not divide moe_ffn_hidden_size %" PRId64 "; expected a divisor", etp,
                            model->experts.ffn_hidden);
    return PC_OK;
}

/* As Megatron-LM: experts under tensor parallelism take tokens from sequence parallelism. */
static pc_code check_parallel(const pc_model *model, const pc_cut *cut, pc_error *error) {
    if (cut->tp > 1 && !cut->sequence_parallel)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "tp %d with experts without sequence parallelism; expected sequence_parallel", cut->tp);
    if (model->experts.shared_ffn_hidden % cut->tp)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "tp %d does not divide moe_shared_expert_intermediate_size %" PRId64 "; expected a divisor",
                            cut->tp, model->experts.shared_ffn_hidden);
    return PC_OK;
}

/* No token goes to an expert twice. Shares of counts may be off in their last digits. */
static pc_code check_counts(const pc_experts *x, const pc_expert_counts *counts, pc_error *error) {
    if (!counts) return pc_error_set(error, PC_ERROR_INPUT, "moe_load given without counts; expected moe_load_counts");
    if (counts->experts != x->num_experts)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_load_counts has %" PRId64 " experts a layer; expected the %" PRId64 " of num_experts",
                            counts->experts, x->num_experts);
    if (counts->largest * (double)x->topk <= 1 + 1e-6) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "moe_load_counts: expert %" PRId64 " of layer %" PRId64
                        " has %.4g of its choices; expected at most %.4g, for moe_router_topk is %" PRId64
                        " and no token goes to an expert twice",
                        counts->largest_expert, counts->largest_layer, counts->largest, 1 / (double)x->topk, x->topk);
}

static pc_code check_load(const pc_model *model, const pc_cut *cut, pc_error *error) {
    if (cut->moe_load == PC_MOE_LOAD_GIVEN) return check_counts(&model->experts, cut->moe_load_counts, error);
    if (cut->moe_load == PC_MOE_LOAD_POWER && !(cut->moe_load_exponent > 0 && isfinite(cut->moe_load_exponent)))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "moe_load power with moe_load_exponent %g; expected one over 0, such as 1.2",
                            cut->moe_load_exponent);
    return PC_OK;
}

/* Their adapters are cut as they are, over etp, and read 16 bits. */
static pc_code check_adapters(const pc_model *model, const pc_cut *cut, pc_error *error) {
    int64_t etp = pc_cut_etp(cut), topk = cut->lora.divides_rank ? model->experts.topk : 1;
    if (cut->lora.rank == 0 || !(cut->lora.targets & (int32_t)PC_LORA_MLP)) return PC_OK;
    if (topk > 1 && cut->lora.rank % (topk * etp))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "lora.normalize_moe_lora with lora.rank %" PRId32 ", moe_router_topk %" PRId64
                            " and etp %" PRId64 "; expected a rank that both divide, one after the other",
                            cut->lora.rank, topk, etp);
    if (cut->lora.rank % etp || model->hidden % etp)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "etp %" PRId64 " does not divide lora.rank %" PRId32 " and hidden %" PRId64
                            "; expected a divisor of both",
                            etp, cut->lora.rank, model->hidden);
    if (!cut->fp8_dispatch) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "moe_fp8_dispatch with adapters of experts, which read 16 bits; expected moe_fp8_dispatch "
                        "false, or lora.targets without linear_fc1 and linear_fc2");
}

/* What nobody has, or nothing here says what it takes. */
static pc_code check_beside(const pc_model *model, const pc_cut *cut, pc_error *error) {
    const char *what = pc_model_has_experts(model) ? "experts" : "latent attention";
    if (cut->slices > 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "a schedule of sequence slices with %s; expected one of whole microbatches", what);
    return PC_OK;
}

pc_code pc_experts_check_cut(const pc_model *model, const pc_cut *cut, pc_error *error) {
    bool has_experts = pc_model_has_experts(model);
    pc_code code = PC_OK;
    if (!has_experts && (cut->ep > 1 || cut->etp > 1))
        return pc_error_set(error, PC_ERROR_INPUT, "%s %d of a model without experts; expected 1",
                            cut->ep > 1 ? "ep" : "etp", cut->ep > 1 ? cut->ep : cut->etp);
    if (model->mtp_layers > 0 && cut->vocab_stages > 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "mtp_num_layers with a vocabulary over all stages; expected another schedule");
    if (!has_experts && !pc_model_is_latent(model)) return PC_OK;
    if (has_experts) code = check_ranks(model, cut, error);
    if (!code && has_experts) code = check_parallel(model, cut, error);
    if (!code && has_experts) code = check_load(model, cut, error);
    if (!code && has_experts) code = check_adapters(model, cut, error);
    return code ? code : check_beside(model, cut, error);
}
