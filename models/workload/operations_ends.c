/* The embedding and the head, both cut along the vocabulary (Shoeybi et al. 2019, arXiv 1909.08053, section 3).
 * Launches are about those of an eager Megatron, where a lookup or a loss over a cut vocabulary is a chain of small
 * kernels. */
#include "models/workload/operations_private.h"

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, int bytes, int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, bytes, launches);
}

/* ---- the embedding ---- */

/* Cut, tokens of other ranks' rows are masked before the lookup and their rows set to zero behind it. */
void pc_add_embedding_rows(pc_builder *b) {
    const pc_slice *x = &b->slice;
    add(b, "embedding", "embedding", (pc_wide)x->tokens * x->hidden, 2 + 2, x->is_cut ? 8 : 1);
    pc_add_reduction(b, "embedding", false);
}

void pc_add_embedding_forward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_wide elements = (pc_wide)x->norm_tokens * x->hidden;
    if (b->vocab_barriers == 0) pc_add_embedding_rows(b);
    if (b->model->positions == PC_POSITIONS_LEARNED) add(b, "positions", "add", elements, 2 + 2 + 2, 2);
    if (b->model->has_dropout) add(b, "embedding_dropout", "dropout", elements, 2 + 2 + 1, 1);
}

/* Its table is a weight, but its gradient no matrix product that could wait: B's work. The gradient is written as a
 * whole table of 16 bits (zeroed, added to) and that is added to the one that is held. */
void pc_add_embedding_rows_backward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_add_gather(b, "embedding", false);
    add(b, "embedding", "embedding", (pc_wide)x->tokens * x->hidden, 2 + 2, 8);
    add(b, "embedding_sum", "add", (pc_wide)x->vocab * x->hidden, 2 + 2 + 2 * b->gradient_bytes, 2);
}

void pc_add_embedding_backward(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_wide elements = (pc_wide)x->norm_tokens * x->hidden;
    if (!passes.b || b->slice.frozen & (int32_t)PC_FROZEN_EMBEDDING) return;
    if (b->model->has_dropout) add(b, "embedding_dropout", "dropout", elements, 2 + 1 + 2, 1);
    if (b->model->positions == PC_POSITIONS_LEARNED) add(b, "positions", "add", elements, 2, 2);
    if (b->vocab_barriers == 0) pc_add_embedding_rows_backward(b);
}

/* ---- the head and the loss ---- */

static pc_matrix make_head(const pc_slice *slice) {
    return (pc_matrix){.name = "head",
                       .inputs = slice->hidden,
                       .outputs = slice->vocab,
                       .counted = (pc_wide)slice->hidden * slice->vocab,
                       .is_column = true,
                       .target = 0};
}

/* Over the logits: to fp32; the largest; less that; exponentials; their sum; over that. Between, each rank's largest,
 * sum and logit of the target are exchanged, 4 bytes a token. In place or not moves the same. */
static void add_loss_by_steps(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_wide logits = (pc_wide)x->tokens * x->vocab;
    add(b, "logits", "copy", logits, 2 + 4, 1);
    for (int i = 0; i < 3; i++) pc_add_collective(b, PC_OPERATION_ALL_REDUCE, "loss", 4 * (pc_wide)x->tokens, false);
    add(b, "loss", "cross_entropy", logits, 4 + 8 + 8 + 4 + 8, 14);
}

/* To fp32; the logarithm of the softmax, which reads that three times and writes it; one number a token of that, and
 * their mean. Over a cut vocabulary the steps are those above. */
static void add_torch_loss(pc_builder *b) {
    pc_wide logits = (pc_wide)b->slice.tokens * b->slice.vocab;
    if (b->slice.is_cut) return add_loss_by_steps(b);
    add(b, "logits", "copy", logits, 2 + 4, 1);
    add(b, "loss", "cross_entropy", logits, 4 + 4 + 4 + 4, 3);
}

/* One kernel reads the logits, one reads them again and writes their gradient in their place. Between, every rank gets
 * the three numbers a token of all ranks. */
static void add_fused_loss(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_add_collective(b, PC_OPERATION_ALL_GATHER, "loss", (pc_wide)3 * 4 * x->tokens * x->ranks, false);
    add(b, "loss", "cross_entropy", (pc_wide)x->tokens * x->vocab, 2 + 2 + 2, 2);
}

/* Two reductions that read the logits; over a cut vocabulary the ranks exchange what they find, and the target's. */
static void add_compiled_loss(pc_builder *b) {
    const pc_slice *x = &b->slice;
    for (int i = 0; i < 3 && x->is_cut; i++)
        pc_add_collective(b, PC_OPERATION_ALL_REDUCE, "loss", 4 * (pc_wide)x->tokens, false);
    add(b, "loss", "cross_entropy", (pc_wide)x->tokens * x->vocab, 2 + 2, 2);
}

/* Division, tanh and product in one kernel, or three; the way back reads what F wrote. */
static void add_logit_cap(pc_builder *b) {
    int back = b->is_backward ? 2 : 0, more = b->is_eager ? 2 : 0;
    if (!pc_caps_logits_apart(b->model, b->cross_entropy)) return;
    add(b, "logit_softcap", "softcap", (pc_wide)b->slice.tokens * b->slice.vocab, 2 + 2 + back + more * (2 + 2),
        1 + more);
}

/* ---- the loss in pieces ---- */

/* `times` pieces of so many tokens: of each the logits, the loss, and both gradients of the head. */
static void add_pieces(pc_builder *b, int64_t tokens, int64_t times) {
    pc_matrix head = make_head(&b->slice);
    int64_t all = b->slice.tokens, repeat = b->repeat;
    if (tokens == 0) return;
    b->slice.tokens = tokens;
    b->repeat = times;
    pc_add_forward(b, &head);
    add_fused_loss(b);
    pc_add_input_gradient(b, &head);
    pc_add_weight_gradient(b, &head);
    b->slice.tokens = all;
    b->repeat = repeat;
}

/* Equal pieces, and what is left over; the input's gradient is summed once, when it is whole. */
static void add_chunked_head(pc_builder *b) {
    int64_t piece = b->slice.loss_tokens, count = b->slice.tokens / piece;
    add_pieces(b, piece, count);
    add_pieces(b, b->slice.tokens - count * piece, 1);
    pc_add_reduction(b, "head", false);
}

/* ---- the head ---- */

/* The logits and the loss, of the matrix's input. */
static void add_logits(pc_builder *b) {
    pc_matrix head = make_head(&b->slice);
    pc_add_forward(b, &head);
    add_logit_cap(b);
    if (b->cross_entropy == PC_CROSS_ENTROPY_FUSED)
        add_fused_loss(b);
    else if (b->cross_entropy == PC_CROSS_ENTROPY_TORCH)
        add_torch_loss(b);
    else if (b->cross_entropy == PC_CROSS_ENTROPY_COMPILED)
        add_compiled_loss(b);
    else
        add_loss_by_steps(b);
}

void pc_add_head_forward(pc_builder *b) {
    pc_add_norm(b, "final_norm");
    if (b->vocab_barriers > 0) return;
    pc_add_gather(b, "head", false);
    if (b->cross_entropy == PC_CROSS_ENTROPY_CHUNKED)
        add_chunked_head(b);
    else
        add_logits(b);
}

/* By steps: the target's share, times the gradient of the loss, in fp32, and to 16 bits. Fused: times that gradient; in
 * pieces, it is the gradient of the head's input that is multiplied. Compiled: logits in, gradient out. Torch's: zeros,
 * 4, with a number a token; from them and the kept logarithms the gradient, which reads one of them twice and writes, 4
 * x 4; to 16 bits, 4 + 2. Over a cut vocabulary zeros, exponentials, 8, their sum, 12, a product, 8, and 16 bits. */
static void add_loss_backward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_wide logits = (pc_wide)x->tokens * x->vocab;
    if (b->cross_entropy == PC_CROSS_ENTROPY_CHUNKED)
        add(b, "loss", "copy", (pc_wide)x->norm_tokens * x->hidden, 2 + 2, 1);
    else if (b->cross_entropy == PC_CROSS_ENTROPY_FUSED || b->cross_entropy == PC_CROSS_ENTROPY_COMPILED)
        add(b, "loss", "cross_entropy", logits, 2 + 2, 1);
    else if (b->cross_entropy == PC_CROSS_ENTROPY_TORCH && x->is_cut)
        add(b, "loss", "cross_entropy", logits, 4 + 8 + 12 + 8 + 4 + 2, 6);
    else if (b->cross_entropy == PC_CROSS_ENTROPY_TORCH)
        add(b, "loss", "cross_entropy", logits, 4 + 4 * 4 + 4 + 2, 4);
    else
        add(b, "loss", "cross_entropy", logits, 4 + 4 + 4 + 2, 6);
}

void pc_add_head_backward(pc_builder *b, pc_backward passes) {
    pc_matrix head = make_head(&b->slice);
    bool is_whole = b->vocab_barriers == 0;
    if (passes.b && is_whole) {
        add_loss_backward(b);
        add_logit_cap(b);
    }
    if (b->cross_entropy != PC_CROSS_ENTROPY_CHUNKED && is_whole) pc_add_column_backward(b, &head, passes);
    if (passes.b) pc_add_norm_backward(b, "final_norm");
}

/* ---- both, in slices over the stages ---- */

/* Yeung et al. 2024 (arXiv 2411.05288), algorithms 1 and 2. S: logits of the slice and their local softmax; the slice's
 * share of the embedding, for a microbatch to come. With one barrier the gradient of the input, too: of the softmax
 * before it is scaled, and of the targets, which is a lookup of their rows. */
void pc_add_vocab_s(pc_builder *b) {
    pc_matrix head = make_head(&b->slice);
    pc_wide elements = (pc_wide)b->slice.tokens * b->slice.hidden;
    add(b, "embedding", "embedding", elements, 2 + 2, 8);
    pc_add_gather(b, "head", false);
    add_logits(b);
    if (b->vocab_barriers > 1) return;
    b->is_backward = true;
    add_logit_cap(b);
    pc_add_column_backward(b, &head, (pc_backward){.b = true});
    add(b, "targets", "embedding", elements, 2 + 2, 8);
}

/* T: the softmax scaled by what all slices have found, and what is left of the gradients; and the embedding's. */
void pc_add_vocab_t(pc_builder *b) {
    pc_matrix head = make_head(&b->slice);
    b->is_backward = true;
    add_loss_backward(b);
    add_logit_cap(b);
    pc_add_column_backward(b, &head, (pc_backward){.b = b->vocab_barriers > 1, .w = true});
    pc_add_embedding_rows_backward(b);
}
