#include "models/workload/cut.h"

#include "engine/numbers.h"
#include "models/workload/attention.h"
#include "models/workload/experts_check.h"
#include "models/workload/layout.h"
#include "models/workload/lora_base.h"
#include "models/workload/low_attention.h"
#include "models/workload/low_precision_check.h"
#include "models/workload/offload_check.h"
#include "models/workload/sequence_slices.h"

#include <inttypes.h>
#include <stddef.h>

__extension__ typedef __int128 wide;

/* Limits under which no product of sizes in this room leaves 128 bits, and neither a layer's input nor what Adam needs
 * for all parameters 64. */
static const int64_t tokens_max = INT64_C(1) << 40, input_max = INT64_C(1) << 60, parameters_max = INT64_C(1) << 56;

/* ---- sizes ---- */

static pc_code check_sizes(const pc_cut *cut, pc_error *error) {
    const struct {
        const char *key;
        int64_t size;
    } sizes[] = {{"tp", cut->tp},
                 {"pp", cut->pp},
                 {"dp", cut->dp},
                 {"cp", pc_cut_cp(cut)},
                 {"chunks", cut->chunks},
                 {"microbatch_size", cut->microbatch_size},
                 {"microbatches", cut->microbatches},
                 {"seq_len", cut->seq_len}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size < 1 || sizes[i].size > INT32_MAX)
            return pc_error_set(error, PC_ERROR_INPUT, "%s %" PRId64 "; expected 1 to %d", sizes[i].key, sizes[i].size,
                                INT32_MAX);
    if ((wide)cut->tp * cut->pp * cut->dp > INT32_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "tp %d * pp %d * dp %d; expected up to %d GPUs", cut->tp, cut->pp,
                            cut->dp, INT32_MAX);
    if ((wide)cut->tp * cut->pp * cut->dp * pc_cut_cp(cut) > INT32_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "tp %d * cp %d * pp %d * dp %d; expected up to %d GPUs", cut->tp,
                            cut->cp, cut->pp, cut->dp, INT32_MAX);
    if (cut->seq_len * cut->microbatch_size > tokens_max)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "seq_len %" PRId64 " * microbatch_size %" PRId64 "; expected up to 2^40 tokens",
                            cut->seq_len, cut->microbatch_size);
    if (cut->zero < 0 || cut->zero > 3)
        return pc_error_set(error, PC_ERROR_INPUT, "zero %d; expected 0 to 3", cut->zero);
    if (cut->cross_entropy_chunks < 0)
        return pc_error_set(error, PC_ERROR_INPUT, "cross_entropy_chunks %d; expected at least 1",
                            cut->cross_entropy_chunks);
    return PC_OK;
}

/* The model's attention has either linear_qkv or the matrices of latents, of queries one or two. Who names all of them
 * means those that are there. */
static pc_code check_targets(const pc_model *model, const pc_lora *lora, pc_error *error) {
    int32_t latents = PC_LORA_KV_DOWN | PC_LORA_KV_UP;
    int32_t of_queries = model->mla.q_lora_rank > 0 ? PC_LORA_Q_DOWN | PC_LORA_Q_UP : PC_LORA_Q_PROJ;
    int32_t attention = pc_model_is_latent(model) ? latents | of_queries : (int32_t)PC_LORA_QKV;
    int32_t there = attention | (int32_t)PC_LORA_PROJ | (int32_t)PC_LORA_MLP;
    if (lora->rank == 0 || lora->targets == (int32_t)PC_LORA_ALL || !(lora->targets & ~there)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "lora.targets: a matrix that the model's attention has not; expected %s",
                        !pc_model_is_latent(model) ? "of it linear_qkv and linear_proj"
                        : model->mla.q_lora_rank > 0
                            ? "of it linear_q_down_proj, linear_q_up_proj, linear_kv_down_proj, "
                              "linear_kv_up_proj and linear_proj"
                            : "of it linear_q_proj, linear_kv_down_proj, linear_kv_up_proj and linear_proj");
}

/* Adapters are cut over TP, and a tied matrix is trained as a whole or not at all. */
static pc_code check_frozen(const pc_model *model, const pc_cut *cut, pc_error *error) {
    const pc_lora *lora = &cut->lora;
    int32_t ends = PC_FROZEN_EMBEDDING | PC_FROZEN_HEAD, frozen = pc_cut_frozen(cut);
    if (lora->rank < 0)
        return pc_error_set(error, PC_ERROR_INPUT, "lora.rank %d; expected at least 1, or 0 for no adapters",
                            (int)lora->rank);
    if (lora->rank > 0 && !(lora->targets & (int32_t)PC_LORA_ALL))
        return pc_error_set(error, PC_ERROR_INPUT, "lora: rank %d and no targets; expected one matrix at least",
                            (int)lora->rank);
    if (lora->rank % cut->tp != 0)
        return pc_error_set(error, PC_ERROR_INPUT, "tp %d does not divide lora.rank %d; expected a multiple of tp",
                            cut->tp, (int)lora->rank);
    if (frozen & ~(int32_t)(lora->rank > 0 ? PC_FROZEN_ALL : ends))
        return pc_error_set(error, PC_ERROR_INPUT, "frozen: layers without adapters; expected lora.rank with them");
    if (model->is_tied && (frozen & ends) != 0 && (frozen & ends) != ends)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "frozen: one end of a model whose head is the embedding's matrix; expected both or none");
    if (frozen && pc_cut_gives_tensors(cut))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "zero_partition tensor with frozen parameters; expected zero_partition even");
    return check_targets(model, lora, error);
}

/* The kernel that has it is the fused one of gated activations. */
static pc_code check_input_store(const pc_model *model, const pc_cut *cut, pc_error *error) {
    if (!cut->stores_low_input || (pc_mlp_is_gated(model->mlp) && cut->kernels == PC_KERNELS_FUSED)) return PC_OK;
    return pc_error_set(
        error, PC_ERROR_INPUT,
        "activation_func_fp8_input_store with an MLP that is not gated, or with kernels eager; expected "
        "swiglu or geglu, and fused kernels");
}

static pc_code check_fuser(const pc_cut *cut, pc_error *error) {
    if (cut->kernels == PC_KERNELS_FUSED || !(cut->fuses_operations || cut->compiles)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s with kernels eager; expected fused kernels",
                        cut->compiles ? "compile" : "use_transformer_engine_op_fuser");
}

static pc_code check_products(const pc_model *model, const pc_cut *cut, pc_error *error) {
    pc_parameters parameters;
    if ((wide)cut->seq_len * cut->microbatch_size * model->hidden > input_max)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "seq_len %" PRId64 " * microbatch_size %" PRId64 " * hidden %" PRId64
                            "; expected up to 2^60",
                            cut->seq_len, cut->microbatch_size, model->hidden);
    pc_code code = pc_model_parameters(model, cut->tp, &parameters, error);
    if (code) return code;
    if (parameters.total > parameters_max)
        return pc_error_set(error, PC_ERROR_INPUT, "model: %" PRId64 " parameters; expected up to 2^56",
                            parameters.total);
    return PC_OK;
}

/* ---- tensor and sequence parallelism ---- */

static pc_code check_divides(int tp, int64_t size, const char *what, pc_error *error) {
    if (size % tp == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "tp %d does not divide %s %" PRId64 "; expected a divisor", tp, what,
                        size);
}

static pc_code check_tensor(const pc_model *model, const pc_cut *cut, pc_error *error) {
    pc_code code;
    if (model->heads % cut->tp != 0)
        return pc_error_set(error, PC_ERROR_INPUT, "tp %d does not divide %" PRId64 " heads; expected a divisor",
                            cut->tp, model->heads);
    if (model->kv_heads % cut->tp != 0 && cut->tp % model->kv_heads != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "tp %d does not divide %" PRId64 " kv_heads; expected a divisor, or a multiple of them",
                            cut->tp, model->kv_heads);
    if ((code = check_divides(cut->tp, model->ffn_hidden, "ffn_hidden", error))) return code;
    if ((code = check_divides(cut->tp, model->hidden, "hidden", error))) return code;
    if (cut->sequence_parallel && cut->seq_len % cut->tp != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "tp %d does not divide seq_len %" PRId64
                            "; expected a divisor, for sequence parallelism cuts it",
                            cut->tp, cut->seq_len);
    if (model->positions == PC_POSITIONS_LEARNED && cut->seq_len > model->max_positions)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "seq_len %" PRId64 "; expected up to max_positions %" PRId64
                            ", the table of learned positions",
                            cut->seq_len, model->max_positions);
    return PC_OK;
}

/* Norms over all heads read what other ranks have; no program is known to exchange it. */
static pc_code check_qk_norm(const pc_model *model, const pc_cut *cut, pc_error *error) {
    if (model->qk_norm != PC_QK_NORM_FULL || cut->tp == 1) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "tp %d with qk_norm full, whose norms are over all heads; expected tp 1, or qk_norm head",
                        cut->tp);
}

/* E[l^2] is at most s E[l] where no length is over s. */
static pc_code check_documents(const pc_model *model, const pc_cut *cut, pc_error *error) {
    int64_t mean = model->document_length;
    if (mean > cut->seq_len)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "document_length %" PRId64 " with seq_len %" PRId64 "; expected at most a sequence", mean,
                            cut->seq_len);
    if (model->document_length_square > mean * cut->seq_len)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "document_length_square %" PRId64 " with document_length %" PRId64 " and seq_len %" PRId64
                            "; expected at most their product, for no document is longer than a sequence",
                            model->document_length_square, mean, cut->seq_len);
    return PC_OK;
}

/* ---- context parallelism ---- */

static int64_t kv_heads_of_rank(const pc_model *model, const pc_cut *cut) {
    return model->kv_heads < cut->tp ? 1 : model->kv_heads / cut->tp;
}

const char *pc_cp_comm_name(pc_cp_comm comm) {
    static const char *const names[] = {
        [PC_CP_P2P] = "p2p", [PC_CP_ALL_GATHER] = "all_gather", [PC_CP_A2A] = "a2a", [PC_CP_A2A_P2P] = "a2a+p2p"};
    return names[comm];
}

int pc_cut_most_exchange(const pc_model *model, const pc_cut *cut, int most) {
    int64_t heads = model->heads / cut->tp, kv_heads = kv_heads_of_rank(model, cut);
    int found = 1, cp = pc_cut_cp(cut);
    for (int ranks = 2; ranks <= cp && ranks <= most && ranks <= kv_heads; ranks++)
        if (cp % ranks == 0 && heads % ranks == 0 && kv_heads % ranks == 0) found = ranks;
    return found;
}

int pc_cut_exchange(const pc_model *model, const pc_cut *cut) {
    int cp = pc_cut_cp(cut);
    if (cut->cp_comm == PC_CP_A2A) return cp;
    if (cut->cp_comm != PC_CP_A2A_P2P || cp == 1) return 1;
    return cut->cp_a2a > 0 ? cut->cp_a2a : pc_cut_most_exchange(model, cut, cp);
}

/* As Transformer Engine asserts: a head is one rank's, keys and values are not repeated. */
static pc_code check_exchange(const pc_model *model, const pc_cut *cut, pc_error *error) {
    int64_t heads = model->heads / cut->tp, kv_heads = kv_heads_of_rank(model, cut), ranks;
    bool is_nested = cut->cp_comm == PC_CP_A2A_P2P;
    if (is_nested && cut->cp_a2a > 0 && cut->cp % cut->cp_a2a)
        return pc_error_set(error, PC_ERROR_INPUT, "cp_a2a %d does not divide cp %d; expected a divisor", cut->cp_a2a,
                            cut->cp);
    ranks = pc_cut_exchange(model, cut);
    if (heads % ranks == 0 && kv_heads % ranks == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s %" PRId64 " does not divide %" PRId64 " heads and %" PRId64
                        " kv_heads of a rank; expected a divisor of both, or cp_comm_type %s",
                        is_nested ? "cp_a2a" : "cp with cp_comm_type a2a,", ranks, heads, kv_heads,
                        is_nested ? "p2p" : "p2p or a2a+p2p");
}

/* Each rank has two pieces of 2 cp, one from either end, so that all have as much of the causal mask; attention that is
 * merged from blocks needs the sums of its softmax, which flash kernels leave. */
static pc_code check_context(const pc_model *model, const pc_cut *cut, pc_error *error) {
    if (cut->cp < 0) return pc_error_set(error, PC_ERROR_INPUT, "cp %d; expected at least 1", cut->cp);
    if (pc_cut_cp(cut) == 1) return PC_OK;
    if (cut->seq_len % (2 * (int64_t)cut->cp))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "cp %d cuts seq_len %" PRId64 " into 2 x cp pieces; expected a multiple of %" PRId64,
                            cut->cp, cut->seq_len, 2 * (int64_t)cut->cp);
    if (cut->sequence_parallel && cut->seq_len / cut->cp % cut->tp)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "tp %d does not divide seq_len / cp %" PRId64
                            "; expected a divisor, for sequence parallelism cuts it",
                            cut->tp, cut->seq_len / cut->cp);
    if (model->attention != PC_ATTENTION_FLASH)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "cp %d with attention that keeps its scores; expected attention: flash, or cp 1", cut->cp);
    return check_exchange(model, cut, error);
}

/* As Transformer Engine: the kernels of a ring have no windows. */
static pc_code check_context_window(const pc_model *model, const pc_cut *cut, pc_error *error) {
    bool has_ring = pc_cut_exchange(model, cut) < pc_cut_cp(cut) && cut->cp_comm != PC_CP_ALL_GATHER;
    if (!has_ring || pc_model_local_layers(model, 0, model->layers) == 0 || !pc_model_is_mixed(model, cut->seq_len))
        return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "cp %d in a ring with %s; expected cp_comm_type a2a or all_gather, for a ring has no windows",
                        cut->cp, model->sliding_window > 0 ? "sliding_window" : "attention_chunk_size");
}

/* ---- layers over parts ---- */

static pc_code check_listed(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    int64_t sum = 0;
    if (!cut->layers_of_part)
        return pc_error_set(error, PC_ERROR_INPUT, "layout: no list; expected the layers of each of %d parts", parts);
    for (int i = 0; i < parts; i++) {
        if (cut->layers_of_part[i] < 0)
            return pc_error_set(error, PC_ERROR_INPUT, "layout: part %d has %d layers; expected 0 or more", i,
                                (int)cut->layers_of_part[i]);
        sum += cut->layers_of_part[i];
    }
    if (cut->mtp_listed > 0 && cut->mtp_listed != model->mtp_layers)
        return pc_error_set(error, PC_ERROR_INPUT, "layout: m, %d times; expected mtp_num_layers of them, %" PRId64,
                            (int)cut->mtp_listed, model->mtp_layers);
    if (sum == model->layers) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "layout: %" PRId64 " layers in %d parts; expected the model's %" PRId64,
                        sum, parts, model->layers);
}

static pc_code refuse_layout(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    char expected[PC_LAYOUT_REMEDY_SIZE];
    if (!error) return PC_ERROR_INPUT;
    pc_layout_remedy(model->layers, cut, parts, expected);
    if (cut->layout == PC_CUT_OWN && parts < 3)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "layout: embedding and head have parts of their own among %d; expected at least 3, or %s",
                            parts, expected);
    return pc_error_set(error, PC_ERROR_INPUT, "layers %" PRId64 "%s do not divide over %d model parts%s; expected %s",
                        model->layers, cut->layout == PC_CUT_ENDS ? ", embedding and head" : "", parts,
                        cut->layout == PC_CUT_OWN ? ", of which embedding and head are two" : "", expected);
}

/* Layers that differ from part to part by how they recompute have no time of their own. */
static pc_code check_balanced(const pc_cut *cut, pc_error *error) {
    bool differ = cut->recompute_of_part || pc_recompute_has_layers(cut->recompute);
    if (!pc_layout_is_balanced(cut->layout) || !differ) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "layout %s with recomputation that counts layers or parts; expected one for all layers, or "
                        "layout even, ends, own or a list",
                        pc_layout_name(cut->layout));
}

static pc_code check_layout(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    if (cut->layout == PC_CUT_LISTED) return check_listed(model, cut, parts, error);
    return pc_layout_divides(cut->layout, model->layers, parts) ? PC_OK : refuse_layout(model, cut, parts, error);
}

static int64_t layers_of(const pc_model *model, const pc_cut *cut, int parts, int part) {
    bool is_first = part == 0, is_last = part == parts - 1;
    switch (cut->layout) {
    case PC_CUT_ENDS:
        return (model->layers + 2) / parts - is_first - is_last;
    case PC_CUT_OWN:
        return is_first || is_last ? 0 : model->layers / (parts - 2);
    case PC_CUT_LISTED:
        return cut->layers_of_part[part];
    default:
        return model->layers / parts;
    }
}

/* ---- recomputation ---- */

/* Of the part; numbers and modules are 0 of a kind that has none. */
static pc_recomputation numbered(const pc_cut *cut, int part) {
    pc_recomputation here = cut->recompute_of_part ? cut->recompute_of_part[part] : pc_cut_recomputation(cut);
    if (!pc_recompute_has_layers(here.kind)) here.layers = 0;
    if (here.kind != PC_RECOMPUTE_MODULES) here.modules = 0;
    return here;
}

static pc_code refuse_layers(pc_recomputation asked, int64_t most, pc_error *error) {
    char text[PC_RECOMPUTATION_SIZE];
    pc_recomputation_write(asked, text);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "recompute %s with %" PRId64 " layers a part of the model at most; expected a number from 1 to "
                        "it, or %s",
                        text, most, asked.kind == PC_RECOMPUTE_EVERY ? "none" : "full");
}

static bool is_within(pc_recomputation asked, int64_t most) {
    return !pc_recompute_has_layers(asked.kind) || (asked.layers >= 1 && asked.layers <= most);
}

static pc_code check_kind(const pc_model *model, pc_recomputation asked, pc_error *error) {
    if (pc_recompute_is_policy(asked.kind) && (pc_model_has_experts(model) || pc_model_is_latent(model)))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "recompute by a policy with %s; expected none, selective, full, or modules",
                            pc_model_has_experts(model) ? "experts" : "latent attention");
    if (asked.kind != PC_RECOMPUTE_MODULES) return PC_OK;
    if (asked.modules >= 1 && asked.modules <= PC_RECOMPUTES_ALL) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "recompute_modules %d; expected a set of core_attn (1), layernorm (2), mlp (4), moe (8), "
                        "moe_act (16), shared_experts (32), mla_up_proj (64)",
                        (int)asked.modules);
}

/* A number beyond the layers of every part that it is for says nothing; part by part, beyond the largest one's. */
static pc_code check_recomputation(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    int64_t most = 0;
    pc_recomputation all = pc_cut_recomputation(cut);
    if (!cut->recompute_of_part && !pc_recompute_has_layers(all.kind)) return check_kind(model, all, error);
    for (int part = 0; part < parts; part++)
        if (pc_recompute_has_layers(numbered(cut, part).kind)) most = pc_max(most, layers_of(model, cut, parts, part));
    for (int part = 0; part < parts; part++) {
        pc_recomputation here = numbered(cut, part);
        pc_code code = check_kind(model, here, error);
        if (code) return code;
        if (!is_within(here, most)) return refuse_layers(here, most, error);
    }
    return PC_OK;
}

pc_code pc_cut_check(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    pc_code code;
    if ((code = pc_model_check(model, error))) return code;
    if (parts < 1 || parts > PC_PARTS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%d model parts; expected 1 to %d", parts, PC_PARTS_MAX);
    if ((code = check_sizes(cut, error))) return code;
    if ((code = check_tensor(model, cut, error))) return code;
    if ((code = check_qk_norm(model, cut, error))) return code;
    if ((code = check_documents(model, cut, error))) return code;
    if ((code = check_context(model, cut, error))) return code;
    if ((code = check_context_window(model, cut, error))) return code;
    if ((code = pc_experts_check_cut(model, cut, error))) return code;
    if ((code = check_frozen(model, cut, error))) return code;
    if ((code = check_input_store(model, cut, error))) return code;
    if ((code = check_fuser(cut, error))) return code;
    if ((code = pc_lora_base_check(model, cut, error))) return code;
    if ((code = pc_low_attention_check(model, cut, error))) return code;
    if ((code = check_products(model, cut, error))) return code;
    if ((code = pc_low_precision_check_cut(model, cut, error))) return code;
    if ((code = check_layout(model, cut, parts, error))) return code;
    if ((code = pc_sequence_slices_check(model, cut, error))) return code;
    code = pc_offload_check(model, cut, error);
    if (!code) code = check_balanced(cut, error);
    return code ? code : check_recomputation(model, cut, parts, error);
}

/* ---- layers that a recipe leaves in 16 bits ---- */

/* Of layers `first` to `first + count - 1` those among the model's first and last. */
static int64_t count_wide(const pc_model *model, int64_t first, int64_t count) {
    int64_t begin = pc_min(model->low.bf16_first, model->layers);
    int64_t end = pc_max(model->layers - model->low.bf16_last, begin);
    return pc_max(pc_min(begin, first + count) - first, 0) + pc_max(first + count - pc_max(end, first), 0);
}

static int64_t first_layer(const pc_model *model, const pc_cut *cut, int parts, int part) {
    int64_t first = 0;
    for (int i = 0; i < part; i++) first += layers_of(model, cut, parts, i);
    return first;
}

static int64_t wide_layers(const pc_model *model, const pc_cut *cut, int parts, int part) {
    bool has_any = pc_low_precision_is_on(&model->low) && (model->low.bf16_first > 0 || model->low.bf16_last > 0);
    if (!has_any) return 0;
    return count_wide(model, first_layer(model, cut, parts, part), layers_of(model, cut, parts, part));
}

/* ---- layers with a window ---- */

static int64_t local_layers(const pc_model *model, const pc_cut *cut, int parts, int part) {
    if (!pc_model_is_mixed(model, cut->seq_len)) return 0;
    int64_t first = model->sliding_window_pattern > 0 ? first_layer(model, cut, parts, part) : 0;
    return pc_model_local_layers(model, first, layers_of(model, cut, parts, part));
}

/* ---- layers with experts, and of multi-token prediction ---- */

/* Those of multi-token prediction are as the model's last one is. */
static int64_t expert_layers(const pc_model *model, const pc_cut *cut, int parts, int part, int64_t mtp_layers) {
    if (!pc_model_has_experts(model)) return 0;
    int64_t first = first_layer(model, cut, parts, part);
    return pc_model_expert_layers(model, first, layers_of(model, cut, parts, part)) +
           mtp_layers * pc_model_expert_layers(model, model->layers - 1, 1);
}

pc_part pc_cut_part(const pc_model *model, const pc_cut *cut, int parts, int part) {
    pc_recomputation recomputation = numbered(cut, part);
    bool is_last = part == parts - 1;
    int64_t mtp_layers = part == parts - 1 - cut->mtp_ahead ? model->mtp_layers : 0;
    int64_t layers = layers_of(model, cut, parts, part) + mtp_layers;
    return (pc_part){.layers = layers,
                     .expert_layers = expert_layers(model, cut, parts, part, mtp_layers),
                     .mtp_layers = mtp_layers,
                     .mtp_heads = is_last ? model->mtp_layers : 0,
                     .wide_layers = wide_layers(model, cut, parts, part),
                     .local_layers = local_layers(model, cut, parts, part),
                     .has_embedding = part == 0,
                     .has_head = is_last,
                     .has_vocab = part < cut->vocab_stages,
                     .recompute = recomputation.kind,
                     .recompute_layers = recomputation.layers,
                     .recompute_modules = recomputation.modules,
                     .offloaded_layers = pc_offloaded_layers(cut, parts, part, layers)};
}
