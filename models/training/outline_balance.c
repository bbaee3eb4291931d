#include "models/training/outline_balance.h"

#include "engine/alloc.h"
#include "models/training/outline_memo.h"
#include "models/training/pass_costs.h"
#include "models/workload/layout.h"

/* Every stage has two parts of the model there, the same as the one across. */
pc_code pc_outline_check_balanced(const pc_iteration_spec *spec, pc_error *error) {
    bool has_two = spec->generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
    if (!pc_layout_is_balanced(spec->cut.layout) || !has_two) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "layout %s with %s, whose stages hold parts of two replicas; expected layout even, ends, "
                        "own or a list",
                        pc_layout_name(spec->cut.layout), spec->generator->name);
}

/* What a microbatch takes in all passes of a part, seconds. */
static pc_code find_part_s(const pc_outline *outline, pc_collective_memo *memo, const pc_part *part, double *seconds,
                           pc_error *error) {
    pc_part_cost cost = {.part = *part};
    pc_code code = PC_OK;
    *seconds = 0;
    for (; !code && cost.part.slice < pc_cut_slices(&outline->cut); cost.part.slice++) {
        code = outline->memo ? pc_outline_memo_find_part(outline, &cost, error)
                             : pc_part_cost_make(outline, memo, &cost, error);
        for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
            if (pc_outline_has_kind(outline->spec->generator, (pc_pass_kind)kind))
                *seconds += pc_pass_alone_s(&cost.pass[kind]);
    }
    return code;
}

/* Layers of multi-token prediction are the head's. */
static pc_part head_of(const pc_model *model, const pc_part *all) {
    pc_part head = *all;
    head.layers = all->mtp_layers;
    head.expert_layers = all->mtp_layers * pc_model_expert_layers(model, model->layers - 1, 1);
    head.wide_layers = head.local_layers = head.offloaded_layers = 0;
    head.has_embedding = false;
    return head;
}

/* Layers that differ count as the model's mean one. */
static pc_code find_layout_times(const pc_outline *outline, pc_layout_times *times, pc_error *error) {
    const pc_model *model = &outline->spec->model;
    pc_collective_memo memo = {.outline = outline};
    pc_cut cut = outline->cut;
    cut.layout = PC_CUT_EVEN;
    pc_part all = pc_cut_part(model, &cut, 1, 0), embedding = all, head = head_of(model, &all);
    all.has_embedding = all.has_head = false;
    all.layers -= head.layers;
    all.expert_layers -= head.expert_layers;
    all.mtp_layers = all.mtp_heads = 0;
    embedding.layers = embedding.expert_layers = embedding.mtp_layers = embedding.mtp_heads = 0;
    embedding.wide_layers = embedding.local_layers = embedding.offloaded_layers = 0;
    embedding.has_head = false;
    pc_code code = find_part_s(outline, &memo, &all, &times->layer_s, error);
    times->layer_s /= (double)model->layers;
    if (!code) code = find_part_s(outline, &memo, &embedding, &times->embedding_s, error);
    return code ? code : find_part_s(outline, &memo, &head, &times->head_s, error);
}

pc_code pc_outline_dealing(const pc_outline *outline, pc_layer_dealing *dealing, pc_error *error) {
    for (int i = 0; i < outline->parts; i++)
        dealing->stage_of_part[i] = pc_placement_stage(outline->placement, outline->devices, i, 0);
    return find_layout_times(outline, &dealing->times, error);
}

pc_code pc_outline_balance(pc_outline *outline, pc_error *error) {
    pc_layer_dealing dealing;
    if (!pc_layout_is_balanced(outline->cut.layout)) return PC_OK;
    outline->layers_of_part = pc_alloc((size_t)outline->parts, sizeof *outline->layers_of_part);
    if (!outline->layers_of_part) return pc_error_no_memory(error);
    pc_code code = pc_outline_dealing(outline, &dealing, error);
    if (code) return code;
    pc_layout_balance(outline->spec->model.layers, outline->parts, outline->devices, dealing.stage_of_part,
                      &dealing.times, NULL, outline->layers_of_part);
    outline->cut.layout = PC_CUT_LISTED;
    outline->cut.layers_of_part = outline->layers_of_part;
    return PC_OK;
}
