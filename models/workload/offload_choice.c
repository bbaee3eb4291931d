#include "models/workload/offload_choice.h"

#include "models/workload/saved.h"

/* Of the layer that does not go whole: one of the model's recipe, as most are. */
static pc_wide tensors_within(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_wide most) {
    pc_slice slice = pc_slice_of_part(model, cut, part);
    bool drops_scores = part->recompute == PC_RECOMPUTE_SELECTIVE && model->attention == PC_ATTENTION_MATERIALISED;
    int32_t again = drops_scores ? (int32_t)PC_RECOMPUTES_CORE_ATTN : part->recompute_modules;
    pc_saved_list saved;
    pc_wide sum = 0;
    pc_saved_sort sort = {pc_low_precision_is_on(&model->low), part->expert_layers > 0};
    pc_layer_saved(model, &slice, sort, again, &saved);
    for (int i = 0; i < saved.count; i++) {
        const pc_saved *x = &saved.list[i];
        bool is_kept = !x->is_gradient && !x->is_again;
        if (is_kept && sum + x->bytes <= most) sum += x->bytes;
    }
    return sum;
}

void pc_offload_limit(const pc_model *model, const pc_cut *cut, const pc_part *part, int64_t most,
                      pc_part_activation *activation) {
    pc_wide all = activation->offloaded, layer = part->offloaded_layers > 0 ? all / part->offloaded_layers : 0;
    if (layer == 0 || most >= all) return;
    pc_wide chosen = most / layer * layer;
    chosen += tensors_within(model, cut, part, most - chosen);
    pc_wide by_b = activation->offloaded_b * chosen / all, rest = all - chosen, rest_b = activation->offloaded_b - by_b;
    activation->offloaded = (int64_t)chosen;
    activation->offloaded_b = (int64_t)by_b;
    activation->taken += (int64_t)rest;
    activation->kept += (int64_t)rest;
    activation->b_frees += (int64_t)rest_b;
}
