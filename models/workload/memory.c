#include "models/workload/memory.h"

#include "engine/numbers.h"
#include "models/workload/slice.h"

/* ---- activations ---- */

/* What one layer, or an end of the model, keeps of a microbatch. */
typedef struct kept {
    pc_wide input;   /* the layer's own input */
    pc_wide whole;   /* with nothing recomputed */
    pc_wide scores;  /* of that, what selective recomputation leaves out */
    pc_wide w_needs; /* inputs and output gradients of matrices */
} kept;

/* softmax and, where there is dropout, its mask and what it leaves: 2 or 5 bytes a score */
static pc_wide score_bytes(const pc_model *model, const pc_slice *slice) {
    if (model->attention == PC_ATTENTION_FLASH) return 0;
    return (pc_wide)(model->has_dropout ? 5 : 2) * slice->attention * slice->sequence * slice->sequence;
}

/* On the tokens whose norms are this rank's: the inputs of two norms and of the matrices behind them, 2 bytes each, and
 * two dropout masks. On columns: queries, keys and values, the output matrix's input, the activation's input and the
 * down matrix's. W needs the inputs of four matrices and, as large as the columns that they write, the gradients of
 * two; those of the output and down matrices are there for all tokens, as B has gathered them. */
static kept layer_kept(const pc_model *model, const pc_slice *slice) {
    pc_wide whole_rows = (pc_wide)slice->tokens * slice->hidden, rows = (pc_wide)slice->norm_tokens * slice->hidden;
    pc_wide columns = 2 * (pc_wide)slice->tokens * (slice->qkv + slice->query + slice->up + slice->ffn);
    pc_wide scores = score_bytes(model, slice);
    return (kept){.input = 2 * rows,
                  .whole = (model->has_dropout ? 10 : 8) * rows + columns + scores,
                  .scores = scores,
                  .w_needs = 2 * (2 * rows) + columns + 2 * (2 * whole_rows)};
}

/* The mask of its dropout; the table's gradient is B's work. */
static kept embedding_kept(const pc_model *model, const pc_slice *slice) {
    return (kept){.whole = model->has_dropout ? (pc_wide)slice->norm_tokens * slice->hidden : 0};
}

/* The inputs of the final norm and of the head, and the softmax in fp32, whose gradient is 16 bits wide when W needs
 * it. Of a fused loss it is that gradient instead. In pieces the head's input has its gradient in its place, and there
 * is nothing for W. */
static kept head_kept(const pc_slice *slice, pc_cross_entropy loss) {
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden, logits = (pc_wide)slice->tokens * slice->vocab;
    switch (loss) {
    case PC_CROSS_ENTROPY_CHUNKED:
        return (kept){.whole = 4 * rows};
    case PC_CROSS_ENTROPY_FUSED:
        return (kept){.whole = 4 * rows + 2 * logits, .w_needs = 2 * rows + 2 * logits};
    default:
        return (kept){.whole = 4 * rows + 4 * logits, .w_needs = 2 * rows + 2 * logits};
    }
}

/* What the loss works with beside what is kept: 16-bit logits in F and their gradient in B. The plain loss has a second
 * fp32 copy of them, too; the fused one has nothing. In pieces it is a piece's logits and, if the sequence is cut, the
 * gradient of all tokens before it is summed over the ranks. */
static pc_wide loss_working(const pc_slice *slice, pc_cross_entropy loss) {
    pc_wide logits = (pc_wide)slice->loss_tokens * slice->vocab, gradient = 2 * (pc_wide)slice->tokens * slice->hidden;
    switch (loss) {
    case PC_CROSS_ENTROPY_CHUNKED:
        return 2 * logits + (slice->is_sequence_cut ? gradient : 0);
    case PC_CROSS_ENTROPY_FUSED:
        return 0;
    case PC_CROSS_ENTROPY_PLAIN:
        return 6 * logits;
    default:
        return 2 * logits;
    }
}

/* What F keeps of a layer where `recompute` follows. */
static pc_wide left_by(const kept *layer, pc_recompute recompute) {
    switch (recompute) {
    case PC_RECOMPUTE_FULL:
        return layer->input;
    case PC_RECOMPUTE_SELECTIVE:
        return layer->whole - layer->scores;
    default:
        return layer->whole;
    }
}

/* Whether B makes whole layers again, and leaves W of each what it needs. */
static bool recomputes_for_w(const pc_part *part, pc_pass_forms forms) {
    return part->recompute == PC_RECOMPUTE_FULL && forms.splits && !forms.has_r;
}

/* What W finds of a layer that F kept, or B made again, whole. */
static pc_wide left_for_w(const kept *layer) {
    return layer->w_needs < layer->whole ? layer->w_needs : layer->whole;
}

/* The most that is held of a layer, but for what a pass needs while it is at that layer. */
static pc_wide taken_by(const kept *layer, const pc_part *part, pc_pass_forms forms) {
    if (forms.has_r) return layer->whole;
    return recomputes_for_w(part, forms) ? left_for_w(layer) : left_by(layer, part->recompute);
}

/* What one layer's recomputation needs beside, less what has gone of the head's then: in a backward pass the head comes
 * first. A BW that recomputes whole layers is done with it; else W may still need its part. */
static pc_wide layer_working(const kept *layer, const kept *head, const pc_part *part, bool is_for_w) {
    bool is_done = part->recompute == PC_RECOMPUTE_FULL && !is_for_w;
    pc_wide left = is_for_w ? left_for_w(layer) : left_by(layer, part->recompute);
    return layer->whole - left - (is_done ? head->whole : head->whole - head->w_needs);
}

static pc_wide layers_working(const kept *layer, const kept *head, const pc_part *part, pc_pass_forms forms) {
    if (part->layers == 0) return 0;
    if (forms.has_r) return 0;
    bool is_for_w = recomputes_for_w(part, forms);
    pc_wide needed = layer_working(layer, head, part, is_for_w);
    return is_for_w && forms.mixes ? pc_max(needed, layer_working(layer, head, part, false)) : needed;
}

/* Of the loss, or of the layers' recomputation, whichever is more. A gathered sequence stands in one buffer, matrix
 * after matrix. */
static pc_wide working_bytes(const pc_slice *slice, const pc_part *part, pc_cross_entropy loss, pc_wide of_layers) {
    pc_wide of_head = part->has_head ? loss_working(slice, loss) : 0;
    pc_wide gathered = slice->is_sequence_cut ? 2 * (pc_wide)slice->tokens * slice->hidden : 0;
    return pc_max(pc_max(of_layers, of_head), 0) + gathered;
}

pc_code pc_part_activations(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_forms forms,
                            pc_part_activation *activation, pc_error *error) {
    pc_slice x = pc_slice_of(model, cut);
    kept layer = layer_kept(model, &x), ends[2] = {{0}};
    if (part->has_embedding) ends[0] = embedding_kept(model, &x);
    if (part->has_head) ends[1] = head_kept(&x, cut->cross_entropy);
    pc_wide left = left_by(&layer, part->recompute), taken = taken_by(&layer, part, forms);
    pc_wide of_ends = ends[0].whole + ends[1].whole;
    pc_wide b_frees = part->layers * pc_max(taken - layer.w_needs, 0);
    for (int i = 0; i < 2; i++) b_frees += pc_max(ends[i].whole - ends[i].w_needs, 0);
    pc_wide sum = part->layers * taken + of_ends;
    pc_wide working = working_bytes(&x, part, cut->cross_entropy, layers_working(&layer, &ends[1], part, forms));
    if (sum > INT64_MAX || working > INT64_MAX)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "activations: 2^63 bytes and more; expected fewer tokens or a smaller model");
    *activation = (pc_part_activation){.taken = (int64_t)sum,
                                       .b_frees = (int64_t)b_frees,
                                       .kept = (int64_t)(part->layers * left + of_ends),
                                       .working = (int64_t)working};
    return PC_OK;
}

/* ---- what stands all the time ---- */

int64_t pc_part_parameters(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding) {
    pc_slice x = pc_slice_of(model, cut);
    int64_t h = x.hidden, table = x.vocab * h, bias = model->has_bias ? 1 : 0;
    int64_t norm = model->norm == PC_NORM_LAYER ? h + bias * h : h;
    int64_t matrices = h * (x.qkv + x.query + x.up + x.ffn) + bias * (x.qkv + x.up);
    int64_t sum = part->layers * (matrices + 2 * norm + bias * 2 * h);
    if (part->has_embedding) sum += table;
    if (part->has_embedding && model->positions == PC_POSITIONS_LEARNED) sum += model->max_positions * h;
    if (part->has_head) sum += norm;
    bool has_table = model->is_tied && (part->has_embedding || shares_embedding);
    return part->has_head && !has_table ? sum + table : sum;
}

static int64_t shard(int64_t bytes, int64_t ranks) {
    return pc_divide_up(bytes, ranks);
}

pc_state_bytes pc_state_of(const pc_cut *cut, int64_t parameters) {
    return (pc_state_bytes){.parameters = shard(2 * parameters, cut->zero >= 3 ? cut->dp : 1),
                            .gradients = shard(pc_cut_gradient_bytes(cut) * parameters, cut->zero >= 2 ? cut->dp : 1),
                            .optimizer = shard(12 * parameters, cut->zero >= 1 ? cut->dp : 1)};
}

int64_t pc_boundary_bytes(const pc_model *model, const pc_cut *cut, bool is_scattered) {
    bool is_cut = is_scattered || cut->sequence_parallel;
    int64_t bytes = 2 * cut->seq_len * cut->microbatch_size * model->hidden;
    return is_cut ? bytes / cut->tp : bytes;
}
