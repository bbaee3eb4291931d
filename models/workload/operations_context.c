/* Attention where every rank of context parallelism has its pieces of the sequence, as Transformer Engine does it
 * (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py). Of 2 cp pieces in a row, rank i has
 * i and 2 cp - 1 - i, so that all have as much of the causal mask.
 *
 * Ring of n (AttnFuncWithCPAndKVP2P), n steps. In the first a rank attends to its own keys, behind the causal mask. In
 * each other one to those of another rank: all of its queries to the first half of the keys, if they come from before
 * it, or the second half of its queries to all of them. Either has half the scores; of either some rank has one in
 * every step, and all go at the pace of the one with fewer queries, whose kernel has fewer blocks. The next keys and
 * values come meanwhile. Backward goes round the other way and ends with the own keys, to which their gradient then
 * comes, of as many bits as keys have: first keys and values are sent, then both with their gradients, at last those
 * alone. Outputs of steps are merged by their sums; gradients of queries and keys are added step by step; both of three
 * quarters of a tensor, the mean of all and half.
 *
 * Gathered (AttnFuncWithCPAndKVAllGather; 'The Llama 3 Herd of Models', arXiv 2407.21783, section 3.3.2): nothing hides
 * the gather; keys and values are put in order, and each of the two pieces of queries has a kernel. Backward gathers
 * again, and scatters what it adds up.
 *
 * Exchange over a ranks (AttnFuncWithCPAndQKVOA2A; DeepSpeed Ulysses, arXiv 2309.14509): before attention every rank
 * gets all their tokens of an a-th of the heads, behind it the tokens come back. Each tensor is copied on either side.
 *
 * Steps of all layers stand in the list as one operation of so many more repeats. */
#include "models/workload/operations_private.h"

static const char *const name_of_keys = "context_keys";

static void add(pc_builder *b, const char *name, const char *function, pc_wide elements, int bytes, int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, elements, bytes, launches);
}

static pc_wide queries_of(const pc_slice *x) {
    return (pc_wide)x->tokens * x->query;
}

static pc_wide keys_of(const pc_slice *x) {
    return (pc_wide)x->tokens * x->key;
}

/* Values, and what comes of them; both are narrower than keys and queries with latent attention. */
static pc_wide values_of(const pc_slice *x) {
    return (pc_wide)x->tokens * x->value;
}

static pc_wide outputs_of(const pc_slice *x) {
    return (pc_wide)x->tokens * x->output;
}

/* ---- exchange of heads ---- */

static void exchange(pc_builder *b, const char *name, pc_wide elements) {
    if (b->slice.exchange == 1) return;
    pc_add_context_collective(b, PC_GROUP_CP_A2A, PC_OPERATION_ALL_TO_ALL, name, 2 * elements, false);
    add(b, name, "copy", elements, 2 * (2 + 2), 2);
}

static void exchange_inputs(pc_builder *b) {
    exchange(b, "context_queries", queries_of(&b->slice));
    exchange(b, name_of_keys, keys_of(&b->slice));
    exchange(b, "context_values", values_of(&b->slice));
}

static void exchange_outputs(pc_builder *b) {
    exchange(b, "context_output", outputs_of(&b->slice));
}

/* ---- ring ---- */

/* Of a rank of the ring, with an exchange's share of the heads: its own keys, or another rank's. */
static pc_flash_block block_of(const pc_slice *x, bool is_own) {
    int64_t length = x->sequence / x->ring;
    return (pc_flash_block){.heads = x->attention / x->exchange,
                            .queries = is_own ? length : length / 2,
                            .keys = length,
                            .is_below = !is_own};
}

/* `steps` of every layer: attention, and beside it so many tensors of keys to the next rank. */
static void add_steps(pc_builder *b, pc_gemm_role role, bool is_own, int64_t steps, int tensors) {
    int64_t repeat = b->repeat;
    pc_flash_block block = block_of(&b->slice, is_own);
    if (steps == 0) return;
    b->repeat = repeat * steps;
    if (tensors > 0)
        pc_add_context_collective(b, PC_GROUP_CP_RING, PC_OPERATION_RING, name_of_keys,
                                  tensors * (keys_of(&b->slice) + values_of(&b->slice)), true);
    pc_add_flash_block(b, role, &block);
    b->repeat = repeat;
}

/* Of all steps but the first: reads the sum and what comes to it, writes the sum. */
static void add_sums(pc_builder *b, const char *name, pc_wide elements, int launches) {
    int64_t repeat = b->repeat;
    b->repeat = repeat * (b->slice.ring - 1);
    add(b, name, "add", 3 * elements / 4, 2 + 2 + 2, launches);
    b->repeat = repeat;
}

/* Keys and values become one tensor before. A merge has a kernel for the sums of the softmax, too. */
static void add_ring_forward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    add(b, name_of_keys, "copy", keys_of(x) + values_of(x), 2 + 2, 1);
    add_steps(b, PC_GEMM_FORWARD, true, 1, 2);
    add_steps(b, PC_GEMM_FORWARD, false, x->ring - 2, 2);
    add_steps(b, PC_GEMM_FORWARD, false, 1, 0);
    add(b, "context_merge", "copy", outputs_of(x), 2 + 2, 1);
    add_sums(b, "context_merge", outputs_of(x), 2);
}

static void add_ring_backward(pc_builder *b) {
    const pc_slice *x = &b->slice;
    add_steps(b, PC_GEMM_INPUT_GRADIENT, false, 1, 2);
    add_steps(b, PC_GEMM_INPUT_GRADIENT, false, x->ring - 2, 4);
    add_steps(b, PC_GEMM_INPUT_GRADIENT, true, 1, 2);
    add_sums(b, "context_gradients", queries_of(x) + keys_of(x) + values_of(x), 2);
}

/* ---- gathered keys ---- */

/* Keys and values, or their gradients, of all ranks: a collective and a copy of each. */
static void add_whole_keys(pc_builder *b, pc_operation_kind kind) {
    for (int i = 0; i < 2; i++) {
        pc_wide whole = b->slice.context * (i == 0 ? keys_of(&b->slice) : values_of(&b->slice));
        pc_add_context_collective(b, PC_GROUP_CP, kind, i == 0 ? name_of_keys : "context_values", 2 * whole, false);
        add(b, i == 0 ? name_of_keys : "context_values", "copy", whole, 2 + 2, 1);
    }
}

/* Two pieces of queries as one kernel of both, which has a launch more for each that it has. */
static void add_gathered(pc_builder *b, pc_gemm_role role) {
    const pc_slice *x = &b->slice;
    const pc_flash_block block = {.heads = x->attention, .queries = x->sequence / x->context, .keys = x->sequence};
    pc_add_flash_block(b, role, &block);
    b->operations->list[b->operations->count - 1].launches *= 2;
}

/* ---- both ways ---- */

void pc_add_context_forward(pc_builder *b) {
    if (b->slice.gathers_keys) {
        add_whole_keys(b, PC_OPERATION_ALL_GATHER);
        return add_gathered(b, PC_GEMM_FORWARD);
    }
    exchange_inputs(b);
    if (b->slice.ring > 1) {
        add_ring_forward(b);
    } else {
        const pc_flash_block whole = block_of(&b->slice, true);
        pc_add_flash_block(b, PC_GEMM_FORWARD, &whole);
    }
    exchange_outputs(b);
}

void pc_add_context_backward(pc_builder *b) {
    if (b->slice.gathers_keys) {
        add_whole_keys(b, PC_OPERATION_ALL_GATHER);
        add_gathered(b, PC_GEMM_INPUT_GRADIENT);
        return add_whole_keys(b, PC_OPERATION_REDUCE_SCATTER);
    }
    exchange_outputs(b);
    if (b->slice.ring > 1) {
        add_ring_backward(b);
    } else {
        const pc_flash_block whole = block_of(&b->slice, true);
        pc_add_flash_block(b, PC_GEMM_INPUT_GRADIENT, &whole);
    }
    exchange_inputs(b);
}
