/* Multi-token prediction as Megatron-LM has it (megatron/core/transformer/multi_token_prediction.py). The next token's
 * embedding and the hidden state, a norm of each, go side by side through a product of 2h x h, cut by columns. The
 * layer behind it, like the model's last one, and the head stand with the part's. */
#include "models/workload/operations_private.h"

static pc_matrix make_projection(const pc_slice *x) {
    int64_t columns = x->hidden / x->ranks;
    return (pc_matrix){.name = "mtp_projection",
                       .inputs = 2 * x->hidden,
                       .outputs = columns,
                       .counted = 2 * (pc_wide)x->hidden * columns,
                       .is_column = true,
                       .target = PC_LORA_NONE,
                       .is_local = true,
                       .rows = x->tokens,
                       .is_wide = true};
}

/* Of both halves of the input; what comes out is gathered along columns, and cut along the sequence again. */
static void move(pc_builder *b, pc_operation_kind kind, pc_wide columns) {
    if (b->slice.is_sequence_cut)
        pc_add_collective(b, kind, "mtp_projection", 2 * (pc_wide)b->slice.tokens * columns, false);
}

void pc_add_mtp_forward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_matrix projection = make_projection(x);
    pc_add_embedding_rows(b);
    pc_add_norm(b, "mtp_norm");
    pc_add_norm(b, "mtp_norm");
    move(b, PC_OPERATION_ALL_GATHER, 2 * (pc_wide)x->hidden);
    pc_add_forward(b, &projection);
    move(b, PC_OPERATION_ALL_GATHER, x->hidden);
}

void pc_add_mtp_backward(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_matrix projection = make_projection(x);
    if (passes.b) {
        move(b, PC_OPERATION_REDUCE_SCATTER, x->hidden);
        pc_add_input_gradient(b, &projection);
        move(b, PC_OPERATION_REDUCE_SCATTER, 2 * (pc_wide)x->hidden);
    }
    if (passes.w) pc_add_weight_gradient(b, &projection);
    if (!passes.b) return;
    pc_add_norm_backward(b, "mtp_norm");
    pc_add_norm_backward(b, "mtp_norm");
    pc_add_embedding_rows_backward(b);
}
