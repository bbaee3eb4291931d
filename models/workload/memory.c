#include "models/workload/memory.h"

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
static pc_wide score_bytes(const pc_model *model, const pc_slice *x) {
    if (model->attention == PC_ATTENTION_FLASH) return 0;
    return (pc_wide)(model->has_dropout ? 5 : 2) * x->attention * x->sequence * x->sequence;
}

/* On the tokens whose norms are this rank's: the inputs of two norms and of the matrices behind them, 2 bytes each, and
 * two dropout masks. On columns: queries, keys and values, the output matrix's input, the activation's input and the
 * down matrix's. W needs the inputs of four matrices and, as large as the columns that they write, the gradients of
 * two; those of the output and down matrices are there for all tokens, as B has gathered them. */
static kept layer_kept(const pc_model *model, const pc_slice *x) {
    pc_wide whole_rows = (pc_wide)x->tokens * x->hidden, rows = (pc_wide)x->norm_tokens * x->hidden;
    pc_wide columns = 2 * (pc_wide)x->tokens * (x->qkv + x->query + x->up + x->ffn);
    pc_wide scores = score_bytes(model, x);
    return (kept){.input = 2 * rows,
                  .whole = (model->has_dropout ? 10 : 8) * rows + columns + scores,
                  .scores = scores,
                  .w_needs = 2 * (2 * rows) + columns + 2 * (2 * whole_rows)};
}

/* The mask of its dropout; the table's gradient is B's work. */
static kept embedding_kept(const pc_model *model, const pc_slice *x) {
    return (kept){.whole = model->has_dropout ? (pc_wide)x->norm_tokens * x->hidden : 0};
}

/* The inputs of the final norm and of the head, and the softmax in fp32, whose gradient is 16 bits wide when W needs
 * it; fused, that gradient; in pieces, in the place of the head's input its gradient, and nothing for W. */
static kept head_kept(const pc_slice *x, pc_cross_entropy loss) {
    pc_wide rows = (pc_wide)x->norm_tokens * x->hidden, logits = (pc_wide)x->tokens * x->vocab;
    switch (loss) {
    case PC_CROSS_ENTROPY_CHUNKED:
        return (kept){.whole = 4 * rows};
    case PC_CROSS_ENTROPY_FUSED:
        return (kept){.whole = 4 * rows + 2 * logits, .w_needs = 2 * rows + 2 * logits};
    default:
        return (kept){.whole = 4 * rows + 4 * logits, .w_needs = 2 * rows + 2 * logits};
    }
}

/* What the loss works with beside what is kept: 16-bit logits in F and their gradient in B; plainly, a second fp32 copy
 * of them, too; fused, nothing; in pieces, a piece's logits and, where the sequence is cut, the gradient of all tokens
 * before it is summed over the ranks. */
static pc_wide loss_working(const pc_slice *x, pc_cross_entropy loss) {
    pc_wide logits = (pc_wide)x->loss_tokens * x->vocab, gradient = 2 * (pc_wide)x->tokens * x->hidden;
    switch (loss) {
    case PC_CROSS_ENTROPY_CHUNKED:
        return 2 * logits + (x->is_sequence_cut ? gradient : 0);
    case PC_CROSS_ENTROPY_FUSED:
        return 0;
    case PC_CROSS_ENTROPY_PLAIN:
        return 6 * logits;
    default:
        return 2 * logits;
    }
}

static pc_wide largest(pc_wide a, pc_wide b) {
    return a > b ? a : b;
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

/* What has gone of the head's when the layers below it are recomputed: in a backward pass the head comes first. Full
 * recomputation goes with B and W in one pass, which is done with the head then; else W may still need its part. */
static pc_wide gone_before_layers(const kept *head, pc_recompute recompute) {
    return recompute == PC_RECOMPUTE_FULL ? head->whole : head->whole - head->w_needs;
}

/* Of the loss, or of the layers' recomputation, whichever is more. A gathered sequence stands in one buffer, matrix
 * after matrix. */
static pc_wide working_bytes(const pc_slice *x, const pc_part *part, const kept *head, pc_cross_entropy loss,
                             pc_wide recomputed) {
    pc_wide of_head = part->has_head ? loss_working(x, loss) : 0;
    pc_wide of_layers = part->layers > 0 ? recomputed - gone_before_layers(head, part->recompute) : 0;
    pc_wide gathered = x->is_sequence_cut ? 2 * (pc_wide)x->tokens * x->hidden : 0;
    return largest(largest(of_layers, of_head), 0) + gathered;
}

pc_code pc_part_activations(const pc_model *model, const pc_cut *cut, const pc_part *part, bool has_r,
                            pc_part_activation *activation, pc_error *error) {
    pc_slice x = pc_slice_of(model, cut);
    kept layer = layer_kept(model, &x), ends[2] = {{0}};
    if (part->has_embedding) ends[0] = embedding_kept(model, &x);
    if (part->has_head) ends[1] = head_kept(&x, cut->cross_entropy);
    pc_wide left = left_by(&layer, part->recompute), taken = has_r ? layer.whole : left;
    pc_wide of_ends = ends[0].whole + ends[1].whole;
    pc_wide b_frees = part->layers * largest(taken - layer.w_needs, 0);
    for (int i = 0; i < 2; i++) b_frees += largest(ends[i].whole - ends[i].w_needs, 0);
    pc_wide sum = part->layers * taken + of_ends;
    pc_wide working = working_bytes(&x, part, &ends[1], cut->cross_entropy, has_r ? 0 : layer.whole - left);
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
    return bytes / ranks + (bytes % ranks > 0);
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
