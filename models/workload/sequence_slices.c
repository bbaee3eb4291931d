#include "models/workload/sequence_slices.h"

#include "engine/numbers.h"
#include "models/workload/attention.h"

#include <inttypes.h>
#include <math.h>

int64_t pc_sequence_granule(const pc_cut *cut) {
    return cut->sequence_parallel ? cut->tp : 1;
}

/* ---- where they are cut ---- */

/* FLOPs of t tokens are linear t + quadratic t^2. */
typedef struct work {
    double linear, quadratic;
} work;

/* Twice the matrices' elements a token; and a token meets half of the others, in two products of 2 d a head. */
static work work_of(const pc_model *model) {
    double h = (double)model->hidden, f = (double)model->ffn_hidden, query = (double)(model->heads * model->head_dim);
    double key = (double)(model->kv_heads * model->head_dim), mlp = pc_mlp_is_gated(model->mlp) ? 3.0 : 2.0;
    return (work){2.0 * h * (2.0 * query + 2.0 * key + mlp * f), 2.0 * query};
}

double pc_sequence_flops(const pc_model *model, int64_t tokens) {
    work x = work_of(model);
    return (x.linear + x.quadratic * (double)tokens) * (double)tokens;
}

/* The tokens of so many FLOPs: the root of quadratic t^2 + linear t = flops that is not negative, in the form that does
 * not cancel. */
static double tokens_of(work x, double flops) {
    return 2.0 * flops / (x.linear + sqrt(x.linear * x.linear + 4.0 * x.quadratic * flops));
}

static int64_t even_cut(int64_t granules, int64_t slices, int64_t index) {
    return granules / slices * index + pc_min(granules % slices, index);
}

/* No slice is empty: each leaves a granule for every one before it and behind it. */
static int64_t cut_by_flops(const pc_model *model, const pc_cut *cut, int64_t granules, int64_t slices, int64_t index) {
    int64_t granule = pc_sequence_granule(cut);
    double share = pc_sequence_flops(model, cut->seq_len) * (double)index / (double)slices;
    int64_t nearest = llround(tokens_of(work_of(model), share) / (double)granule);
    return pc_min(pc_max(nearest, index), granules - (slices - index));
}

/* Granules before slice `index`; all, before the one behind the last. */
static int64_t granules_before(const pc_model *model, const pc_cut *cut, int64_t index) {
    int64_t granules = cut->seq_len / pc_sequence_granule(cut), slices = pc_cut_slices(cut);
    if (index == slices) return granules;
    return cut->sequence_split == PC_SEQUENCE_SPLIT_FLOPS ? cut_by_flops(model, cut, granules, slices, index)
                                                          : even_cut(granules, slices, index);
}

pc_sequence_slice pc_sequence_slice_of(const pc_model *model, const pc_cut *cut, int index) {
    int64_t slices = pc_cut_slices(cut), granule = pc_sequence_granule(cut);
    if (slices == 1) return (pc_sequence_slice){0, cut->seq_len};
    int64_t start = granule * granules_before(model, cut, index);
    int64_t end = index + 1 == slices ? cut->seq_len : granule * granules_before(model, cut, index + 1);
    return (pc_sequence_slice){start, end - start};
}

/* ---- what does not go with them ---- */

static pc_code refuse_few_bits(const pc_model *model, int64_t multiple, int64_t tokens, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "precision %s: a sequence slice of %" PRId64 " tokens; expected a multiple of %" PRId64
                        ", as sequence_split even of other sequence_slices gives, or bf16",
                        model->low.name, tokens, multiple);
}

/* Products of few bits want tokens in multiples, of every slice. */
static pc_code check_multiples(const pc_model *model, const pc_cut *cut, pc_error *error) {
    int64_t multiple = 1;
    if (!pc_low_precision_is_on(&model->low)) return PC_OK;
    for (int i = 0; i < PC_LOW_PRODUCTS; i++)
        multiple = pc_max(multiple, pc_product_format_multiple(model->low.product[i]));
    for (int i = 0; i < pc_cut_slices(cut); i++) {
        int64_t tokens = pc_sequence_slice_of(model, cut, i).tokens * cut->microbatch_size;
        if (tokens % multiple != 0) return refuse_few_bits(model, multiple, tokens, error);
    }
    return PC_OK;
}

static bool sees_all(const pc_model *model, const pc_cut *cut) {
    pc_sight full = pc_model_sight(model, cut->seq_len, false), local = pc_model_sight(model, cut->seq_len, true);
    return full.length == cut->seq_len && full.window == 0 && local.length == cut->seq_len && local.window == 0;
}

pc_code pc_sequence_slices_check(const pc_model *model, const pc_cut *cut, pc_error *error) {
    int slices = pc_cut_slices(cut);
    if (slices == 1) return PC_OK;
    if (cut->seq_len / pc_sequence_granule(cut) < slices)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sequence_slices %d of seq_len %" PRId64 " in steps of %" PRId64
                            " tokens; expected at most one a step",
                            slices, cut->seq_len, pc_sequence_granule(cut));
    if (model->attention != PC_ATTENTION_FLASH)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sequence_slices %d with attention materialised; expected attention flash, which skips "
                            "what the mask hides",
                            slices);
    if (pc_cut_cp(cut) > 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sequence_slices %d with cp %d, which cut the sequence twice; expected cp 1", slices,
                            pc_cut_cp(cut));
    if (cut->zero >= 2 && cut->dp > 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sequence_slices %d with zero %d, which reduces gradients behind every pass; expected zero "
                            "0 or 1",
                            slices, cut->zero);
    if (!sees_all(model, cut))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sequence_slices %d with a sliding window, chunks or documents; expected a model whose "
                            "queries see all keys before them",
                            slices);
    if (cut->offload_layers > 0 || cut->offload.kinds & PC_OFFLOAD_ACTIVATIONS)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sequence_slices %d with activations on the host: later slices read the keys and values of "
                            "earlier ones; expected offload and activation_offload_layers to leave activations",
                            slices);
    return check_multiples(model, cut, error);
}
