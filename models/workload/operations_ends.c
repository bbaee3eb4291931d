/* The embedding and the head, both cut along the vocabulary (Shoeybi et al. 2019, arXiv 1909.08053, section 3).
 * Launches are about those of an eager Megatron, where a lookup or a loss over a cut vocabulary is a chain of small
 * kernels. */
#include "models/workload/operations_private.h"

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, int bytes, int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, bytes, launches);
}

/* ---- the embedding ---- */

/* Cut, tokens of other ranks' rows are masked before the lookup and their rows set to zero behind it. */
void pc_add_embedding_forward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_wide elements = (pc_wide)x->norm_tokens * x->hidden;
    add(b, "embedding", "embedding", (pc_wide)x->tokens * x->hidden, 2 + 2, x->is_cut ? 8 : 1);
    pc_add_reduction(b, "embedding", false);
    if (b->model->positions == PC_POSITIONS_LEARNED) add(b, "positions", "add", elements, 2 + 2 + 2, 2);
    if (b->model->has_dropout) add(b, "embedding_dropout", "dropout", elements, 2 + 2 + 1, 1);
}

/* Its table is a weight, but its gradient no matrix product that could wait: B's work. The gradient is written as a
 * whole table of 16 bits (zeroed, added to) and that is added to the one that is held. */
void pc_add_embedding_backward(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_wide elements = (pc_wide)x->norm_tokens * x->hidden;
    if (!passes.b) return;
    if (b->model->has_dropout) add(b, "embedding_dropout", "dropout", elements, 2 + 1 + 2, 1);
    if (b->model->positions == PC_POSITIONS_LEARNED) add(b, "positions", "add", elements, 2, 2);
    pc_add_gather(b, "embedding", false);
    add(b, "embedding", "embedding", (pc_wide)x->tokens * x->hidden, 2 + 2, 8);
    add(b, "embedding_sum", "add", (pc_wide)x->vocab * x->hidden, 2 + 2 + 2 * b->gradient_bytes, 2);
}

/* ---- the head and the loss ---- */

static pc_matrix make_head(const pc_slice *x) {
    return (pc_matrix){"head", x->hidden, x->vocab, (pc_wide)x->hidden * x->vocab};
}

/* Over the logits: to fp32; the largest; less that; exponentials; their sum; over that. Between, each rank's largest,
 * sum and logit of the target are exchanged, 4 bytes a token. */
static void add_loss(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_wide logits = (pc_wide)x->tokens * x->vocab;
    add(b, "logits", "copy", logits, 2 + 4, 1);
    for (int i = 0; i < 3; i++) pc_add_collective(b, PC_OPERATION_ALL_REDUCE, "loss", 4 * (pc_wide)x->tokens, false);
    add(b, "loss", "cross_entropy", logits, 4 + 8 + 8 + 4 + 8, 14);
}

void pc_add_head_forward(pc_builder *b) {
    pc_matrix head = make_head(&b->slice);
    pc_add_norm(b, "final_norm");
    pc_add_gather(b, "head", false);
    pc_add_forward(b, &head);
    add_loss(b);
}

void pc_add_head_backward(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_matrix head = make_head(x);
    if (passes.b) add(b, "loss", "cross_entropy", (pc_wide)x->tokens * x->vocab, 4 + 4 + 4 + 2, 6);
    pc_add_column_backward(b, &head, passes);
    if (passes.b) pc_add_norm_backward(b, "final_norm");
}
