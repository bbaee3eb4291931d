/* Frozen matrices: W reads neither their inputs nor their outputs' gradients. Their adapters' W does (lora.h). */
#include "models/workload/saved.h"

#include <assert.h>

static void add(pc_saved_list *saved, const char *name, pc_module module, pc_wide bytes, int for_whom,
                bool is_gradient) {
    assert(saved->count < PC_SAVED_MAX);
    saved->list[saved->count++] =
        (pc_saved){.name = name, .module = module, .bytes = bytes, .for_whom = for_whom, .is_gradient = is_gradient};
}

/* What nobody reads any more is gone. */
static void drop_for_w(pc_saved_list *saved) {
    int count = 0;
    for (int i = 0; i < saved->count; i++) {
        pc_saved tensor = saved->list[i];
        tensor.for_whom &= ~PC_FOR_W;
        if (tensor.for_whom) saved->list[count++] = tensor;
    }
    saved->count = count;
}

/* A matrix of this rank as its adapter sees it. */
typedef struct adapted {
    pc_lora_target target;
    pc_module module;
    int64_t inputs, outputs;
    bool is_column;
} adapted;

/* What flash attention put out is there for B in 16 bits, and A reads the same if nothing is dropped. */
static bool shares_context(const pc_slice *slice, const adapted *x, pc_saved_list *saved) {
    if (x->target != PC_LORA_PROJ || slice->lora.dropout > 0) return false;
    for (int i = 0; i < saved->count; i++) {
        pc_saved *tensor = &saved->list[i];
        pc_wide bytes = 2 * (pc_wide)slice->tokens * slice->query;
        bool is_it =
            tensor->module == PC_MODULE_ATTN_PROJ || (tensor->module == PC_MODULE_CORE_ATTN && tensor->name[0] == 'c');
        if (is_it && tensor->bytes == bytes) return tensor->for_whom |= PC_FOR_W, true;
    }
    return false;
}

/* A's input, which a cut sequence has whole behind its gather, while the mask is of this rank's rows; what A puts out;
 * and the gradients of what A and B put out. */
static void add_adapter(const pc_slice *slice, const adapted *x, pc_saved_list *saved) {
    pc_wide tokens = slice->tokens, low = 2 * tokens * slice->lora.rank;
    pc_wide dropped = x->is_column ? (pc_wide)slice->norm_tokens * x->inputs : tokens * x->inputs;
    int64_t columns = x->is_column ? x->outputs : x->outputs / slice->ranks;
    if (!shares_context(slice, x, saved)) add(saved, "lora_input", x->module, 2 * tokens * x->inputs, PC_FOR_W, false);
    if (slice->lora.dropout > 0) add(saved, "lora_mask", x->module, dropped, PC_FOR_B, false);
    add(saved, "lora_a_output", x->module, low, PC_FOR_W, false);
    add(saved, "lora_a_gradient", x->module, low, PC_FOR_W, true);
    add(saved, "lora_b_gradient", x->module, 2 * tokens * columns, PC_FOR_W, true);
}

void pc_saved_freeze(const pc_slice *slice, pc_saved_list *saved) {
    const adapted matrices[] = {{PC_LORA_QKV, PC_MODULE_QKV, slice->hidden, slice->qkv, true},
                                {PC_LORA_PROJ, PC_MODULE_ATTN_PROJ, slice->query, slice->hidden, false},
                                {PC_LORA_FC1, PC_MODULE_MLP_UP, slice->hidden, slice->up, true},
                                {PC_LORA_FC2, PC_MODULE_MLP_DOWN, slice->ffn, slice->hidden, false}};
    if (!(slice->frozen & (int32_t)PC_FROZEN_LAYERS)) return;
    drop_for_w(saved);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        if (pc_lora_is_at(&slice->lora, matrices[i].target)) add_adapter(slice, &matrices[i], saved);
}
