#include "models/workload/cut.h"

#include "engine/numbers.h"
#include "models/workload/layout.h"

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

/* The number of layers that `part` gives its kind; 0 where it gives none. */
static pc_recomputation numbered(const pc_cut *cut, int part) {
    pc_recompute kind = cut->recompute_of_part ? cut->recompute_of_part[part] : cut->recompute;
    return (pc_recomputation){kind, pc_recompute_has_layers(kind) ? cut->recompute_layers : 0};
}

static pc_code refuse_layers(pc_recomputation asked, int64_t most, pc_error *error) {
    char text[PC_RECOMPUTATION_SIZE];
    pc_recomputation_write(asked, text);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "recompute %s with %" PRId64 " layers a part of the model at most; expected a number from 1 to "
                        "it, or %s",
                        text, most, asked.kind == PC_RECOMPUTE_EVERY ? "none" : "full");
}

/* A number beyond the layers of every part that it is for says nothing. */
static pc_code check_recomputation(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    pc_recomputation asked = {PC_RECOMPUTE_NONE, 0};
    int64_t most = 0;
    if (!cut->recompute_of_part && !pc_recompute_has_layers(cut->recompute)) return PC_OK;
    for (int part = 0; part < parts; part++) {
        pc_recomputation here = numbered(cut, part);
        if (!pc_recompute_has_layers(here.kind)) continue;
        asked = here;
        most = pc_max(most, layers_of(model, cut, parts, part));
    }
    bool is_fine = asked.kind == PC_RECOMPUTE_NONE || (asked.layers >= 1 && asked.layers <= most);
    return is_fine ? PC_OK : refuse_layers(asked, most, error);
}

/* As Megatron-LM, which refuses both (megatron/core/transformer/transformer_config.py). */
static pc_code check_offload(const pc_model *model, const pc_cut *cut, pc_error *error) {
    if (cut->offload_layers == 0) return PC_OK;
    if (cut->offload_layers < 0 || cut->offload_layers > model->layers)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "activation_offload_layers %" PRId64 " of %" PRId64 " layers; expected 0 to all of them",
                            cut->offload_layers, model->layers);
    bool recomputes = cut->recompute_of_part || cut->recompute != PC_RECOMPUTE_NONE;
    if (cut->pp == 1 && cut->chunks <= 1 && !recomputes) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "activation_offload_layers %" PRId64 " beside %s; expected neither pipeline nor recomputation "
                        "with it",
                        cut->offload_layers, recomputes ? "recompute" : "pp or chunks over 1");
}

/* ---- what a recipe asks of dimensions ---- */

/* Every product's rows and inner dimension, in all three roles: tokens, and both sides of the rank's matrices. */
static pc_code check_multiples(const pc_model *model, const pc_cut *cut, pc_error *error) {
    int64_t t = cut->tp, kv_heads = model->kv_heads < t ? 1 : model->kv_heads / t, multiple = 1;
    int64_t columns = (model->heads / t + 2 * kv_heads) * model->head_dim;
    const struct {
        const char *what;
        int64_t size;
    } sizes[] = {{"seq_len x microbatch_size", cut->seq_len * cut->microbatch_size},
                 {"hidden", model->hidden},
                 {"columns of query, key and value", columns},
                 {"columns of the queries", model->heads / t * model->head_dim},
                 {"ffn_hidden / tp", model->ffn_hidden / t}};
    for (int i = 0; i < PC_LOW_PRODUCTS; i++)
        multiple = pc_max(multiple, pc_product_format_multiple(model->low.product[i]));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size % multiple != 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "precision %s: %" PRId64 " %s; expected a multiple of %" PRId64 ", another tp, or bf16",
                                model->low.name, sizes[i].size, sizes[i].what, multiple);
    return PC_OK;
}

static pc_code check_low_precision(const pc_model *model, const pc_cut *cut, pc_error *error) {
    const pc_low_precision *low = &model->low;
    if (!pc_low_precision_is_on(low)) return PC_OK;
    if (low->bf16_first < 0 || low->bf16_last < 0)
        return pc_error_set(error, PC_ERROR_INPUT, "precision %s: %d layers in 16 bits; expected 0 or more", low->name,
                            (int)(low->bf16_first < 0 ? low->bf16_first : low->bf16_last));
    if (low->copies < 1 || low->copies > 2)
        return pc_error_set(error, PC_ERROR_INPUT, "precision %s: %d copies; expected 1 or 2", low->name,
                            (int)low->copies);
    return check_multiples(model, cut, error);
}

pc_code pc_cut_check(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    pc_code code;
    if ((code = pc_model_check(model, error))) return code;
    if (parts < 1 || parts > PC_PARTS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%d model parts; expected 1 to %d", parts, PC_PARTS_MAX);
    if ((code = check_sizes(cut, error))) return code;
    if ((code = check_tensor(model, cut, error))) return code;
    if ((code = check_products(model, cut, error))) return code;
    if ((code = check_low_precision(model, cut, error))) return code;
    if ((code = check_layout(model, cut, parts, error))) return code;
    code = check_offload(model, cut, error);
    return code ? code : check_recomputation(model, cut, parts, error);
}

pc_code pc_cut_check_layout(const pc_model *model, const pc_cut *cut, int parts, pc_error *error) {
    return check_layout(model, cut, parts, error);
}

/* ---- layers that a recipe leaves in 16 bits ---- */

/* Of layers `first` to `first + count - 1` those among the model's first and last. */
static int64_t count_wide(const pc_model *model, int64_t first, int64_t count) {
    int64_t begin = pc_min(model->low.bf16_first, model->layers);
    int64_t end = pc_max(model->layers - model->low.bf16_last, begin);
    return pc_max(pc_min(begin, first + count) - first, 0) + pc_max(first + count - pc_max(end, first), 0);
}

static int64_t wide_layers(const pc_model *model, const pc_cut *cut, int parts, int part) {
    int64_t first = 0;
    bool has_any = pc_low_precision_is_on(&model->low) && (model->low.bf16_first > 0 || model->low.bf16_last > 0);
    if (!has_any) return 0;
    for (int i = 0; i < part; i++) first += layers_of(model, cut, parts, i);
    return count_wide(model, first, layers_of(model, cut, parts, part));
}

pc_part pc_cut_part(const pc_model *model, const pc_cut *cut, int parts, int part) {
    pc_recomputation recomputation = numbered(cut, part);
    return (pc_part){.layers = layers_of(model, cut, parts, part),
                     .wide_layers = wide_layers(model, cut, parts, part),
                     .has_embedding = part == 0,
                     .has_head = part == parts - 1,
                     .has_vocab = part < cut->vocab_stages,
                     .recompute = recomputation.kind,
                     .recompute_layers = recomputation.layers};
}
