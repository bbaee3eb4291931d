/* Multi-latent attention as Megatron-LM trains it (megatron/core/transformer/multi_latent_attention.py): keys and
 * values are made of their latents before attention, not absorbed into its products. The matrices that go down to the
 * latents, and their norms, stand whole on every rank of tensor parallelism and see its part of the sequence; those
 * that go up are cut by columns, and gather the latents. */
#include "models/workload/operations_private.h"

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, int bytes, int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, bytes, launches);
}

/* Whole on every rank, which count a t-th of it each: over the tokens of norms, or where these are all, over all. */
static pc_matrix make_down(const pc_slice *x, const char *name, int64_t outputs, pc_lora_target target) {
    return (pc_matrix){.name = name,
                       .inputs = x->hidden,
                       .outputs = outputs,
                       .counted = (pc_wide)(x->hidden / x->ranks) * outputs,
                       .target = target,
                       .is_local = true,
                       .rows = x->norm_tokens};
}

static pc_matrix make_up(const char *name, int64_t inputs, int64_t outputs, pc_lora_target target) {
    return (pc_matrix){.name = name,
                       .inputs = inputs,
                       .outputs = outputs,
                       .counted = (pc_wide)inputs * outputs,
                       .is_column = true,
                       .target = target};
}

static pc_matrix query_down(const pc_slice *x) {
    return make_down(x, "q_down", x->mla.q_lora_rank, PC_LORA_Q_DOWN);
}

static pc_matrix query_up(const pc_slice *x) {
    if (x->mla.q_lora_rank > 0) return make_up("q_up", x->mla.q_lora_rank, x->query, PC_LORA_Q_UP);
    return make_up("q", x->hidden, x->query, PC_LORA_Q_PROJ);
}

static pc_matrix key_down(const pc_slice *x) {
    return make_down(x, "kv_down", x->mla.kv_lora_rank + x->mla.qk_rope_head_dim, PC_LORA_KV_DOWN);
}

static pc_matrix key_up(const pc_slice *x) {
    return make_up("kv_up", x->mla.kv_lora_rank, x->latent_up, PC_LORA_KV_UP);
}

/* ---- what tensor parallelism moves ---- */

/* Latents of all tokens, beside them the keys' rotated part. */
static pc_wide latent_bytes(const pc_slice *x, const pc_matrix *up) {
    bool is_key = up->inputs == x->mla.kv_lora_rank && up->outputs == x->latent_up;
    return 2 * (pc_wide)x->tokens * (up->inputs + (is_key ? x->mla.qk_rope_head_dim : 0));
}

static void gather(pc_builder *b, const pc_matrix *up, bool can_overlap) {
    if (!b->slice.is_sequence_cut) return;
    pc_add_collective(b, PC_OPERATION_ALL_GATHER, up->name, latent_bytes(&b->slice, up), can_overlap);
}

static void reduce(pc_builder *b, const pc_matrix *up, bool can_overlap) {
    pc_operation_kind kind = b->slice.is_sequence_cut ? PC_OPERATION_REDUCE_SCATTER : PC_OPERATION_ALL_REDUCE;
    pc_add_collective(b, kind, up->name, latent_bytes(&b->slice, up), can_overlap);
}

/* ---- kernels between matrices ---- */

static void norm(pc_builder *b, const char *name, int64_t columns) {
    const char *function = b->model->norm == PC_NORM_RMS ? "rms_norm" : "layer_norm";
    pc_wide elements = (pc_wide)b->slice.norm_tokens * columns;
    if (!b->is_backward) return pc_add_kernel(b, PC_OPERATION_NORM, name, function, elements, 2 + 2, 1);
    int sums = b->slice.frozen & (int32_t)PC_FROZEN_LAYERS ? 0 : 1;
    pc_add_kernel(b, PC_OPERATION_NORM, name, function, elements, 6 + 4 * sums, 1 + 2 * sums);
}

/* Queries are rotated where they stand. Of the keys all heads' parts without positions and the one that is rotated
 * become keys; values are cut off. One kernel each (Megatron's apply_rope_fusion), the same way back. */
static void order(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_wide rotated = (pc_wide)x->tokens * (x->query / x->head_dim) * x->mla.qk_rope_head_dim;
    pc_wide read = (pc_wide)x->tokens * (x->latent_up + x->mla.qk_rope_head_dim),
            written = (pc_wide)x->tokens * (x->key + x->value);
    add(b, "rotary", "rotary", rotated, 2 + 2, 1);
    add(b, "key_order", "copy", read + written, 2, 1);
}

/* ---- passes ---- */

static void add_up(pc_builder *b, const pc_matrix *up) {
    pc_add_input_cast(b, up, PC_MAKER_NORM);
    gather(b, up, false);
    pc_add_forward(b, up);
    pc_add_adapter_forward(b, up);
}

static void add_down(pc_builder *b, const pc_matrix *down) {
    pc_add_forward(b, down);
    pc_add_adapter_forward(b, down);
}

void pc_add_latent_up_again(pc_builder *b) {
    const pc_slice *x = &b->slice;
    pc_matrix q_up = query_up(x), kv_up = key_up(x);
    add_up(b, &q_up);
    add_up(b, &kv_up);
    order(b);
}

/* Both read the same, perhaps beside an adapter of either. */
static void cast_hidden(pc_builder *b, const pc_matrix *keys, const pc_matrix *queries, pc_maker maker) {
    pc_matrix either = *keys;
    if (!pc_lora_is_at(&b->slice.lora, keys->target)) either.target = queries->target;
    pc_add_input_cast(b, &either, maker);
}

void pc_add_latent_forward(pc_builder *b, pc_maker maker) {
    const pc_slice *x = &b->slice;
    pc_matrix q_down = query_down(x), kv_down = key_down(x), q_up = query_up(x), kv_up = key_up(x);
    bool has_latent = x->mla.q_lora_rank > 0;
    cast_hidden(b, &kv_down, has_latent ? &q_down : &q_up, maker);
    if (has_latent) {
        add_down(b, &q_down);
        norm(b, "q_norm", x->mla.q_lora_rank);
        pc_add_input_cast(b, &q_up, PC_MAKER_NORM);
    }
    gather(b, &q_up, false);
    pc_add_forward(b, &q_up);
    pc_add_adapter_forward(b, &q_up);
    add_down(b, &kv_down);
    norm(b, "kv_norm", x->mla.kv_lora_rank);
    add_up(b, &kv_up);
    order(b);
}

/* As pc_add_column_backward. */
static void add_up_backward(pc_builder *b, const pc_matrix *up, pc_backward passes) {
    bool adds = passes.w && !pc_matrix_is_frozen(b, up);
    if (passes.b) pc_add_gradient_cast(b, up, PC_MAKER_OTHER);
    pc_add_adapter_backward(b, up, passes);
    if (adds) gather(b, up, true);
    if (passes.b) pc_add_input_gradient(b, up);
    if (passes.b) reduce(b, up, adds);
    if (adds) pc_add_weight_gradient(b, up);
}

static void add_down_backward(pc_builder *b, const pc_matrix *down, pc_backward passes) {
    if (passes.b) pc_add_gradient_cast(b, down, PC_MAKER_OTHER);
    pc_add_adapter_backward(b, down, passes);
    if (passes.b) pc_add_input_gradient(b, down);
    if (passes.w) pc_add_weight_gradient(b, down);
}

void pc_add_latent_backward(pc_builder *b, pc_backward passes) {
    const pc_slice *x = &b->slice;
    pc_matrix q_down = query_down(x), kv_down = key_down(x), q_up = query_up(x), kv_up = key_up(x);
    if (passes.b) order(b);
    add_up_backward(b, &kv_up, passes);
    if (passes.b) norm(b, "kv_norm", x->mla.kv_lora_rank);
    add_down_backward(b, &kv_down, passes);
    add_up_backward(b, &q_up, passes);
    if (x->mla.q_lora_rank > 0) {
        if (passes.b) norm(b, "q_norm", x->mla.q_lora_rank);
        add_down_backward(b, &q_down, passes);
    }
    if (passes.b) add(b, "latent_sum", "add", (pc_wide)x->norm_tokens * x->hidden, 2 + 2 + 2, 1);
}
