/* Experts of a config.json: how many, how wide, in which layers, and how tokens come to them. */
#include "scenarios/import/hf_private.h"

#include <inttypes.h>
#include <string.h>

/* "dense" or 0: no experts. */
static bool has_experts(const pc_node *kind) {
    return strcmp(pc_foreign_text(kind), "dense") != 0 && strcmp(pc_foreign_text(kind), "0") != 0;
}

/* Layers in front that have none, of a list of all. */
static void set_first_dense(pc_hf_reader *r, const pc_node *list) {
    int64_t first = 0, layers = 0, with = 0;
    for (const pc_node *kind = pc_node_first(list); kind < pc_node_end(list); kind = pc_node_end(kind)) {
        if (has_experts(kind))
            with++;
        else if (with == 0)
            first++;
        layers++;
    }
    pc_imported_set_number(r->import, "model.first_k_dense_replace", list->key, first);
    if (first + with != layers)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "%" PRId64 " layers without experts behind others (%s)",
                         layers - first - with, list->key);
}

/* Qwen's and Llama 4's step s: layers s, 2s, ... of 1, 2, ... have experts. */
static pc_code take_step(pc_hf_reader *r, const pc_node *node) {
    int64_t step;
    pc_code code = pc_hf_count(r, node, 1, &step);
    if (code || step == 1) return code;
    pc_imported_set_number(r->import, "model.first_k_dense_replace", node->key, step - 1);
    pc_imported_set_number(r->import, "model.moe_layer_freq", node->key, step);
    return PC_OK;
}

static pc_code take_layers_with_experts(pc_hf_reader *r) {
    const pc_node *list = pc_foreign_find(r->text, "mlp_layer_types"),
                  *freq = pc_foreign_find(r->text, "moe_layer_freq");
    const pc_node *step = pc_foreign_find(r->text, "decoder_sparse_step|interleave_moe_layer_step");
    const pc_node *dense = pc_foreign_find(r->text, "mlp_only_layers");
    if (!list && freq && freq->kind == PC_NODE_LIST) list = freq;
    pc_code code = pc_hf_take_count(r, "model.first_k_dense_replace", "first_k_dense_replace|moe_layer_start_index");
    if (!code && list && list->kind == PC_NODE_LIST)
        set_first_dense(r, list);
    else if (!code && freq)
        code = pc_hf_take_count(r, "model.moe_layer_freq", "moe_layer_freq");
    if (!code && step) code = take_step(r, step);
    if (!code && dense && dense->count > 0)
        pc_imported_set_number(r->import, "model.first_k_dense_replace", dense->key, dense->count);
    return code;
}

static pc_code take_shared_experts(pc_hf_reader *r) {
    int64_t shared = 0, width = pc_imported_number(r->import, "model.moe_ffn_hidden_size", 0);
    const pc_node *count =
        pc_foreign_find(r->text, "n_shared_experts|num_shared_experts|moe_num_shared_experts|num_shared_expert");
    const char *key = "model.moe_shared_expert_intermediate_size";
    pc_code code = pc_hf_take_count(r, key,
                                    "shared_expert_intermediate_size|moe_shared_expert_intermediate_size|"
                                    "shared_intermediate_size");
    if (code || pc_imported_number(r->import, key, 0) > 0) return code;
    pc_imported_clear(r->import, key);
    if (pc_foreign_find(r->text, "intermediate_size_mlp")) /* Llama 4: one, as wide as the routed ones */
        pc_imported_set_number(r->import, key, "intermediate_size", width);
    else if (pc_hf_says(r, "enable_moe_block"))
        pc_imported_set_number(r->import, key, "enable_moe_block",
                               pc_imported_number(r->import, "model.ffn_hidden", 0));
    else if (count && !(code = pc_foreign_count(&r->tree, count, 0, INT16_MAX, &shared, r->error)) && shared > 0)
        pc_imported_set_number(r->import, key, count->key, shared * width);
    return code;
}

static pc_code take_router(pc_hf_reader *r) {
    const pc_node *score =
        pc_foreign_find(r->text, "scoring_func|moe_router_activation_func|moe_router_score_function");
    const pc_node *bias =
        pc_foreign_find(r->text, "use_routing_bias|moe_router_enable_expert_bias|moe_use_aux_free|use_expert_bias");
    int64_t groups = 0;
    const pc_node *group = pc_foreign_find(r->text, "n_group|num_expert_group");
    if (strcmp(pc_foreign_text(score), "sigmoid") == 0 || strcmp(pc_foreign_text(score), "softmax") == 0)
        pc_imported_set(r->import, "model.moe_router_score_function", score->key, score->text);
    if (strcmp(pc_foreign_text(pc_hf_find(r, "topk_method")), "noaux_tc") == 0)
        pc_imported_set(r->import, "model.moe_router_bias", "topk_method", "true");
    pc_code code = bias ? pc_hf_take_switch(r, "model.moe_router_bias", bias->key, false) : PC_OK;
    if (!code && group) code = pc_hf_count(r, group, 0, &groups);
    if (code || groups <= 1) return code;
    pc_imported_set_number(r->import, "model.moe_router_num_groups", group->key, groups);
    return pc_hf_need_count(r, "model.moe_router_group_topk", "topk_group");
}

pc_code pc_hf_take_experts(pc_hf_reader *r) {
    static const char *const of_experts[] = {"model.moe_router_score_function", "model.moe_router_bias",
                                             "model.moe_shared_expert_gate"};
    pc_code code = pc_hf_take_count(r, "model.num_experts",
                                    "num_experts|num_local_experts|n_routed_experts|moe_num_experts|"
                                    "ffn_config.moe_num_experts");
    if (code || pc_imported_number(r->import, "model.num_experts", 0) <= 1) {
        pc_imported_clear(r->import, "model.num_experts");
        for (int i = 0; i < 3; i++) pc_imported_clear(r->import, of_experts[i]);
        return code;
    }
    code = pc_hf_need_count(r, "model.moe_router_topk",
                            "num_experts_per_tok|experts_per_token|num_experts_per_token|top_k_experts|moe_topk|moe_k|"
                            "moe_top_k|num_selected_experts|ffn_config.moe_top_k");
    if (!code)
        code = pc_hf_need_count(
            r, "model.moe_ffn_hidden_size",
            "moe_intermediate_size|expert_ffn_hidden_size|ffn_config.ffn_hidden_size|intermediate_size");
    if (!code) code = take_shared_experts(r);
    if (!code) code = take_layers_with_experts(r);
    return code ? code : take_router(r);
}
