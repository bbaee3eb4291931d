#include "scenarios/cluster_check.h"

#include "scenarios/settings.h"

#include <inttypes.h>
#include <stddef.h>

/* Noise is of whole passes. */
static pc_code check_replicas(const pc_setting *setting, pc_error *error) {
    bool has_operations = pc_setting_integer(setting, PC_KEY_GRANULARITY) != PC_GRANULARITY_PASS;
    if (!pc_setting_is_on(setting, PC_KEY_EXPAND) || !has_operations) return PC_OK;
    return pc_error_blame(error, "expand", "stands beside granularity: operations; expected granularity: pass with it");
}

/* Operations are run one by one, and a collective is one of them. */
static pc_code check_pieces(const pc_setting *setting, pc_error *error) {
    bool has_operations = pc_setting_integer(setting, PC_KEY_GRANULARITY) != PC_GRANULARITY_PASS;
    if (!pc_setting_is_on(setting, PC_KEY_OVERLAP_TP_PIECES) || !has_operations) return PC_OK;
    return pc_error_blame(error, pc_key_path(PC_KEY_OVERLAP_TP_PIECES),
                          "stands beside granularity: operations; expected granularity: pass with it");
}

/* Pieces of a loss that is not computed in pieces. */
static pc_code check_loss(const pc_setting *setting, pc_error *error) {
    int64_t loss = pc_setting_integer(setting, PC_KEY_CROSS_ENTROPY);
    if (!setting->given[PC_KEY_CROSS_ENTROPY_CHUNKS] || loss == PC_CROSS_ENTROPY_CHUNKED) return PC_OK;
    return pc_error_blame(error, pc_key_path(PC_KEY_CROSS_ENTROPY_CHUNKS),
                          "stands without cross_entropy: chunked; expected both or none");
}

/* Neighbours that exchange heads, where none do so in rows. */
static pc_code check_exchange(const pc_setting *setting, pc_error *error) {
    bool is_nested = pc_setting_integer(setting, PC_KEY_CP_COMM_TYPE) == PC_CP_A2A_P2P;
    if (!setting->given[PC_KEY_CP_A2A] || is_nested) return PC_OK;
    return pc_error_blame(error, pc_key_path(PC_KEY_CP_A2A),
                          "stands without cp_comm_type: a2a+p2p; expected both or none");
}

/* Kernels that only one dispatcher has. */
static pc_code check_dispatcher(const pc_setting *setting, pc_error *error) {
    static const pc_key of_flex[] = {PC_KEY_MOE_FLEX_DISPATCHER_BACKEND, PC_KEY_MOE_FP8_DISPATCH,
                                     PC_KEY_MOE_DEEPEP_NUM_SMS, PC_KEY_MOE_HYBRIDEP_NUM_SMS};
    bool is_flex = pc_setting_integer(setting, PC_KEY_MOE_TOKEN_DISPATCHER_TYPE) == PC_DISPATCHER_DEEPEP;
    for (size_t i = 0; i < sizeof of_flex / sizeof *of_flex && !is_flex; i++)
        if (setting->given[of_flex[i]])
            return pc_error_blame(error, pc_key_path(of_flex[i]),
                                  "stands without moe_token_dispatcher_type: flex; expected both or none");
    return PC_OK;
}

/* A sweep may have other loads beside the counts. */
static pc_code check_load(const pc_setting *setting, pc_error *error) {
    bool is_given = pc_setting_integer(setting, PC_KEY_MOE_LOAD) == PC_MOE_LOAD_GIVEN;
    bool has_counts = setting->given[PC_KEY_MOE_LOAD_COUNTS];
    if (has_counts && !setting->given[PC_KEY_MOE_LOAD])
        return pc_error_blame(error, pc_key_path(PC_KEY_MOE_LOAD_COUNTS),
                              "stands without moe_load: given; expected both or none");
    if (!is_given || has_counts) return PC_OK;
    return pc_error_blame(error, pc_key_path(PC_KEY_MOE_LOAD_COUNTS), "missing; expected it with moe_load: given");
}

/* A scope of nothing; a whole iteration that this implementation cannot capture. */
static pc_code check_graphs(const pc_setting *setting, pc_error *error) {
    int64_t impl = pc_setting_integer(setting, PC_KEY_CUDA_GRAPH_IMPL);
    int64_t scope = pc_setting_whole(setting, PC_KEY_CUDA_GRAPH_SCOPE, 0);
    if (setting->given[PC_KEY_CUDA_GRAPH_SCOPE] && !setting->given[PC_KEY_CUDA_GRAPH_IMPL])
        return pc_error_blame(error, pc_key_path(PC_KEY_CUDA_GRAPH_SCOPE),
                              "stands without cuda_graph_impl; expected local or transformer_engine with it");
    if (!(scope & PC_GRAPHS_ITERATION) || impl != 2) return PC_OK;
    return pc_error_blame(error, pc_key_path(PC_KEY_CUDA_GRAPH_SCOPE),
                          "full_iteration with transformer_engine, which captures layers; expected local with it");
}

/* Adapters of nothing. */
static pc_code check_lora(const pc_setting *setting, pc_error *error) {
    static const pc_key keys[] = {PC_KEY_LORA_TARGETS, PC_KEY_LORA_DROPOUT, PC_KEY_LORA_BASE_WEIGHTS,
                                  PC_KEY_LORA_SHARE_EXPERT_ADAPTERS, PC_KEY_LORA_NORMALIZE_MOE_LORA};
    if (pc_setting_integer(setting, PC_KEY_LORA_RANK) > 0) return PC_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (setting->given[keys[i]])
            return pc_error_blame(error, pc_key_path(keys[i]), "stands without lora.rank; expected one with it");
    return PC_OK;
}

/* Whole tensors of what is cut. */
static pc_code check_partition(const pc_setting *setting, pc_error *error) {
    int64_t zero = pc_setting_whole(setting, PC_KEY_ZERO, 1);
    if (pc_setting_integer(setting, PC_KEY_ZERO_PARTITION) != PC_ZERO_PARTITION_TENSOR || zero < 2) return PC_OK;
    return pc_error_blame(error, "zero_partition",
                          "tensor stands beside zero %" PRId64 ", which cuts tensors; expected zero 1 with it", zero);
}

pc_code pc_setting_check_together(const pc_setting *setting, pc_error *error) {
    pc_code code = check_replicas(setting, error);
    if (!code) code = check_pieces(setting, error);
    if (!code) code = check_loss(setting, error);
    if (!code) code = check_exchange(setting, error);
    if (!code) code = check_dispatcher(setting, error);
    if (!code) code = check_load(setting, error);
    if (!code) code = check_partition(setting, error);
    if (!code) code = check_graphs(setting, error);
    return code ? code : check_lora(setting, error);
}
