/* What stands beside attention of 8 bits (low_attention.h). Delayed scaling casts in one reading of the tensor; where
 * scales come from the tensor itself, it is read once more before, and the output comes in 16 bits. */
#include "models/workload/low_attention.h"
#include "models/workload/operations_private.h"

bool pc_attends_low(const pc_builder *b) {
    return b->low && b->slice.attention_is_low;
}

pc_wide pc_attention_bytes(const pc_builder *b, pc_wide elements) {
    return (pc_attends_low(b) ? 1 : 2) * elements;
}

bool pc_attention_hands_over(const pc_builder *b) {
    return pc_attends_low(b) && b->slice.attention_hands_low;
}

static bool hands_over_inputs(const pc_builder *b) {
    return pc_attention_hands_over(b) && !pc_low_attention_is_apart(b->model);
}

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, int bytes, int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, bytes, launches);
    b->operations->list[b->operations->count - 1].format = PC_PRODUCT_FP8;
}

static pc_wide of_inputs(const pc_builder *b) {
    return (pc_wide)b->slice.tokens * b->slice.qkv;
}

static pc_wide of_output(const pc_builder *b) {
    return (pc_wide)b->slice.tokens * b->slice.query;
}

static void add_cast(pc_builder *b, const char *name, pc_wide elements) {
    if (pc_low_precision_needs_amax(b->low)) add(b, name, "amax", elements, 2, 1);
    add(b, name, "cast", elements, 2 + 1, 1);
}

void pc_add_low_attention_inputs(pc_builder *b) {
    if (!pc_attends_low(b) || hands_over_inputs(b)) return;
    add(b, "attention_inputs", "copy", of_inputs(b), 2 + 2, 1);
    add_cast(b, "attention_inputs", of_inputs(b));
}

void pc_add_low_attention_output(pc_builder *b) {
    bool is_wide = b->low && pc_low_precision_needs_amax(b->low);
    if (!pc_attends_low(b) || pc_attention_hands_over(b) || is_wide) return;
    add(b, "attention_context", "cast", of_output(b), 1 + 2, 1);
}

void pc_add_low_attention_gradient(pc_builder *b) {
    if (pc_attends_low(b) && !pc_attention_hands_over(b)) add_cast(b, "attention_context", of_output(b));
}

void pc_add_low_attention_input_gradients(pc_builder *b) {
    if (pc_attends_low(b) && !hands_over_inputs(b)) add(b, "attention_inputs", "cast", of_inputs(b), 1 + 2, 3);
}

bool pc_attention_gives_low_gradient(const pc_builder *b) {
    return hands_over_inputs(b);
}
