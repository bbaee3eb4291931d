/* Every setting that is changed changes the key of the run, labels do not: from the text of a setting to the key, for
 * each line of the table. */
#include "scenarios/run_key.h"
#include "scenarios/settings.h"
#include "tests/scenario_files.h"

enum { SETS_MAX = 24 };

/* A value that another run has. `with` stands in both runs, so that the key means something. */
typedef struct change {
    pc_key key;
    const char *value;
    const char *with[8];
} change;

static const char *const of_cluster[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.tp=2",
                                         "setting.pp=4", NULL};
static const char *const of_times[] = {"setting.schedule=1f1b",
                                       "setting.pp=2",
                                       "setting.microbatches=4",
                                       "setting.times.F=1 ms",
                                       "setting.times.B=1 ms",
                                       "setting.times.W=1 ms",
                                       NULL};

#define SAMPLED "setting.samples=10"
#define FAILING "setting.job.mtbf=1 y"
#define EXPERTS "setting.model.num_experts=8", "setting.model.moe_router_topk=2"
#define LATENT                                                                                                         \
    "setting.model.bias=false", "setting.model.qk_nope_head_dim=96", "setting.model.qk_rope_head_dim=32",              \
        "setting.model.v_head_dim=128", "setting.model.kv_lora_rank=512"

static const change changes[] = {
    {PC_KEY_MODEL_FROM, "gpt3-2.7b", {0}},
    {PC_KEY_LAYERS, "28", {0}},
    {PC_KEY_HIDDEN, "1024", {0}},
    {PC_KEY_FFN_HIDDEN, "4096", {0}},
    {PC_KEY_HEADS, "32", {0}},
    {PC_KEY_KV_HEADS, "4", {0}},
    {PC_KEY_HEAD_DIM, "64", {0}},
    {PC_KEY_VOCAB, "32000", {0}},
    {PC_KEY_VOCAB_MULTIPLE, "64", {0}},
    {PC_KEY_MAX_POSITIONS, "4096", {0}},
    {PC_KEY_POSITIONS, "rotary", {0}},
    {PC_KEY_NORM, "rmsnorm", {0}},
    {PC_KEY_NORM_PLACE, "sandwich", {0}},
    {PC_KEY_QK_NORM, "head", {0}},
    {PC_KEY_MLP, "swiglu", {0}},
    {PC_KEY_SLIDING_WINDOW, "1024", {0}},
    {PC_KEY_ATTENTION_CHUNK_SIZE, "1024", {0}},
    {PC_KEY_SLIDING_WINDOW_PATTERN, "6", {"setting.model.sliding_window=1024"}},
    {PC_KEY_DOCUMENT_LENGTH, "512", {0}},
    {PC_KEY_DOCUMENT_LENGTH_SQUARE, "300000", {"setting.model.document_length=512"}},
    {PC_KEY_ATTN_LOGIT_SOFTCAPPING, "50", {0}},
    {PC_KEY_FINAL_LOGIT_SOFTCAPPING, "30", {0}},
    {PC_KEY_NUM_EXPERTS, "16", {EXPERTS}},
    {PC_KEY_MOE_ROUTER_TOPK, "3", {EXPERTS}},
    {PC_KEY_MOE_FFN_HIDDEN_SIZE, "1024", {EXPERTS}},
    {PC_KEY_MOE_SHARED_EXPERT_INTERMEDIATE_SIZE, "1024", {EXPERTS}},
    {PC_KEY_MOE_SHARED_EXPERT_GATE, "true", {EXPERTS, "setting.model.moe_shared_expert_intermediate_size=512"}},
    {PC_KEY_FIRST_K_DENSE_REPLACE, "1", {EXPERTS}},
    {PC_KEY_MOE_LAYER_FREQ, "2", {EXPERTS}},
    {PC_KEY_MOE_ROUTER_SCORE_FUNCTION, "sigmoid", {EXPERTS}},
    {PC_KEY_MOE_ROUTER_BIAS, "true", {EXPERTS}},
    {PC_KEY_MOE_ROUTER_NUM_GROUPS,
     "2",
     {EXPERTS, "setting.model.moe_router_group_topk=2", "setting.model.moe_router_num_groups=4"}},
    {PC_KEY_MOE_ROUTER_GROUP_TOPK,
     "2",
     {EXPERTS, "setting.model.moe_router_group_topk=1", "setting.model.moe_router_num_groups=4"}},
    {PC_KEY_EP, "2", {EXPERTS}},
    {PC_KEY_ETP, "1", {EXPERTS}},
    {PC_KEY_MOE_TOKEN_DISPATCHER_TYPE, "allgather", {EXPERTS}},
    {PC_KEY_MOE_FLEX_DISPATCHER_BACKEND, "hybridep", {EXPERTS, "setting.moe_token_dispatcher_type=flex"}},
    {PC_KEY_MOE_DEEPEP_NUM_SMS, "24", {EXPERTS, "setting.moe_token_dispatcher_type=flex"}},
    {PC_KEY_MOE_HYBRIDEP_NUM_SMS,
     "24",
     {EXPERTS, "setting.moe_token_dispatcher_type=flex", "setting.moe_flex_dispatcher_backend=hybridep"}},
    {PC_KEY_MOE_FP8_DISPATCH, "true", {EXPERTS, "setting.moe_token_dispatcher_type=flex"}},
    {PC_KEY_MOE_SHARED_EXPERT_OVERLAP, "true", {EXPERTS, "setting.model.moe_shared_expert_intermediate_size=512"}},
    {PC_KEY_MOE_EXPERT_CAPACITY_FACTOR, "1.25", {EXPERTS}},
    {PC_KEY_MOE_PAD_EXPERT_INPUT_TO_CAPACITY, "true", {EXPERTS, "setting.model.moe_expert_capacity_factor=1.5"}},
    {PC_KEY_ACTIVATION_FUNC_CLAMP_VALUE, "7", {EXPERTS}},
    {PC_KEY_MOE_LOAD, "uniform", {EXPERTS}},
    {PC_KEY_MOE_LOAD_EXPONENT, "1.1", {EXPERTS}},
    {PC_KEY_MEMORY_QUANTILE, "0.5", {EXPERTS}},
    {PC_KEY_KV_LORA_RANK, "256", {LATENT}},
    {PC_KEY_Q_LORA_RANK, "256", {LATENT}},
    {PC_KEY_QK_NOPE_HEAD_DIM, "64", {LATENT}},
    {PC_KEY_QK_ROPE_HEAD_DIM, "64", {LATENT}},
    {PC_KEY_V_HEAD_DIM, "64", {LATENT}},
    {PC_KEY_ATTENTION_SINKS, "true", {0}},
    {PC_KEY_ROTARY_MSCALE, "true", {0}},
    {PC_KEY_MTP_NUM_LAYERS, "1", {0}},
    {PC_KEY_ATTENTION, "materialised", {0}},
    {PC_KEY_PRECISION, "fp16", {0}},
    {PC_KEY_TIED, "false", {0}},
    {PC_KEY_BIAS, "false", {0}},
    {PC_KEY_QKV_BIAS, "true", {0}},
    {PC_KEY_NORM_BIAS, "true", {0}},
    {PC_KEY_DROPOUT, "false", {0}},
    {PC_KEY_SEQ_LEN, "1024", {0}},
    {PC_KEY_MODEL_BATCH, "64", {0}},
    {PC_KEY_LAYOUT, "'5,6,6,7'", {0}},
    {PC_KEY_MACHINE, "dgx-h100", {0}},
    {PC_KEY_SOFTWARE, "jax", {0}}, /* by what it sets */
    {PC_KEY_ATTENTION_KERNEL, "flash-1", {0}},
    {PC_KEY_UNFUSED, "2", {0}},
    {PC_KEY_KERNELS, "eager", {0}},
    {PC_KEY_LAUNCH, "20 us", {0}},
    {PC_KEY_OVERLAP_SLOWDOWN, "0.1", {0}},
    {PC_KEY_SCHEDULE, "zb-h1", {0}},
    {PC_KEY_MAKING, "equal", {0}},
    {PC_KEY_GOAL, "makespan", {0}},
    {PC_KEY_SEARCH_EFFORT, "quick", {0}},
    {PC_KEY_GPUS, "16", {0}},
    {PC_KEY_TP, "4", {0}},
    {PC_KEY_PP, "2", {0}},
    {PC_KEY_DP, "2", {0}},
    {PC_KEY_CP, "2", {0}},
    {PC_KEY_CP_COMM_TYPE, "all_gather", {"setting.cp=2"}},
    {PC_KEY_CP_A2A, "2", {"setting.cp=4", "setting.cp_comm_type=a2a+p2p"}},
    {PC_KEY_DEVICES, "2", {0}},
    {PC_KEY_MICROBATCHES, "12", {0}},
    {PC_KEY_GLOBAL_BATCH, "24", {0}},
    {PC_KEY_MICROBATCH_SIZE, "2", {0}},
    {PC_KEY_CHUNKS, "3", {"setting.schedule=1f1b-interleaved"}},
    {PC_KEY_SEQUENCE_SLICES, "2", {"setting.schedule=seq-1f1b"}},
    {PC_KEY_SEQUENCE_SPLIT, "flops", {"setting.schedule=seq-1f1b"}},
    {PC_KEY_SEQUENCE_PARALLEL, "false", {0}},
    {PC_KEY_ZERO, "2", {0}},
    {PC_KEY_SHARD_GROUP, "2", {"setting.dp=4"}},
    {PC_KEY_ZERO_PARTITION, "tensor", {0}},
    {PC_KEY_RECOMPUTE, "full", {0}},
    {PC_KEY_RECOMPUTE, "full-block-2", {"setting.recompute=full-block-3"}},
    {PC_KEY_RECOMPUTE_MODULES, "mlp", {"setting.recompute=selective"}},
    {PC_KEY_RECOMPUTE_METHOD,
     "block",
     {"setting.recompute=full", "setting.recompute_layers=2", "setting.recompute_method=uniform"}},
    {PC_KEY_RECOMPUTE_LAYERS,
     "3",
     {"setting.recompute=full", "setting.recompute_layers=2", "setting.recompute_method=uniform"}},
    {PC_KEY_TRANSFORMER_IMPL, "local", {0}},
    {PC_KEY_ACTIVATION_FUNC_FP8_INPUT_STORE, "true", {0}},
    {PC_KEY_FP8_DOT_PRODUCT_ATTENTION, "true", {0}},
    {PC_KEY_FP8_MULTI_HEAD_ATTENTION, "true", {0}},
    {PC_KEY_USE_TRANSFORMER_ENGINE_OP_FUSER, "true", {0}},
    {PC_KEY_COMPILE, "true", {0}},
    {PC_KEY_CROSS_ENTROPY, "fused", {0}},
    {PC_KEY_CROSS_ENTROPY_CHUNKS, "4", {"setting.cross_entropy=chunked"}},
    {PC_KEY_ACTIVATION_OFFLOAD_LAYERS, "2", {0}},
    {PC_KEY_OFFLOAD, "fine-grained", {"setting.offload_modules=core_attn"}},
    {PC_KEY_OFFLOAD_MODULES, "attn_proj", {"setting.offload=fine-grained"}},
    {PC_KEY_OFFLOAD_FRACTION, "0.25", {"setting.offload=selective"}},
    {PC_KEY_OPTIMIZER_OFFLOAD_FRACTION, "0.5", {"setting.offload=optimizer"}},
    {PC_KEY_OVERLAP_OPTIMIZER_COPIES, "true", {"setting.offload=optimizer"}},
    {PC_KEY_CUDA_GRAPH_IMPL, "full_iteration", {0}},
    {PC_KEY_CUDA_GRAPH_SCOPE, "attn", {"setting.cuda_graph_impl=local"}},
    {PC_KEY_LORA_RANK, "16", {0}},
    {PC_KEY_LORA_TARGETS, "linear_qkv", {"setting.lora.rank=16"}},
    {PC_KEY_LORA_DROPOUT, "0.1", {"setting.lora.rank=16"}},
    {PC_KEY_LORA_BASE_WEIGHTS, "nf4", {"setting.lora.rank=16"}},
    {PC_KEY_LORA_SHARE_EXPERT_ADAPTERS, "false", {EXPERTS, "setting.lora.rank=16"}},
    {PC_KEY_LORA_NORMALIZE_MOE_LORA, "true", {EXPERTS, "setting.lora.rank=16"}},
    {PC_KEY_FROZEN, "'embedding,head'", {0}},
    {PC_KEY_FIRST_STAGE_LAYERS, "9", {0}},
    {PC_KEY_LAST_STAGE_LAYERS, "9", {0}},
    {PC_KEY_ACCOUNT_FOR_EMBEDDING, "true", {0}},
    {PC_KEY_ACCOUNT_FOR_LOSS, "true", {0}},
    {PC_KEY_RANK_ORDER, "tp-pp-dp", {0}},
    {PC_KEY_OVERLAP_P2P, "false", {0}},
    {PC_KEY_OVERLAP_TP, "false", {0}},
    {PC_KEY_OVERLAP_TP_PIECES, "true", {0}},
    {PC_KEY_OVERLAP_PAIRS, "true", {"setting.schedule=dualpipe-v"}},
    {PC_KEY_DELAY_WGRAD, "true", {"setting.schedule=dualpipe-v", "setting.overlap.moe_expert_parallel_comm=true"}},
    {PC_KEY_OVERLAP_GRADIENTS, "false", {0}},
    {PC_KEY_OVERLAP_PARAMETERS, "false", {0}},
    {PC_KEY_SCATTER_BOUNDARY, "false", {0}},
    {PC_KEY_STAGE_BUFFERS, "each", {0}},
    {PC_KEY_TP_INPUTS, "gathered", {0}},
    {PC_KEY_LOSS_BUFFERS, "apart", {0}},
    {PC_KEY_BUCKET, "10 MB", {0}},
    {PC_KEY_FSDP_UNIT, "layer", {0}},
    {PC_KEY_FSDP_UNIT_LAYERS, "2", {0}},
    {PC_KEY_FSDP_PREFETCH, "2", {0}},
    {PC_KEY_RESHARD_AFTER_FORWARD, "never", {0}},
    {PC_KEY_GRADIENT_SYNC, "last", {0}},
    {PC_KEY_FSDP_VERSION, "1", {0}},
    {PC_KEY_GRADIENT_BYTES, "2", {0}},
    {PC_KEY_GRADIENT_ACCUMULATION, "separate", {0}},
    {PC_KEY_DUMMY_WGRAD, "true", {0}},
    {PC_KEY_OPTIMIZER_KERNELS, "separate", {0}},
    {PC_KEY_OPTIMIZER, "muon", {0}},
    {PC_KEY_MAIN_PARAMS_DTYPE, "fp16", {0}},
    {PC_KEY_MAIN_GRADS_DTYPE, "bf16", {"setting.gradient_bytes=2"}},
    {PC_KEY_EXP_AVG_DTYPE, "bf16", {0}},
    {PC_KEY_EXP_AVG_SQ_DTYPE, "fp8", {0}},
    {PC_KEY_STEP, "post-validation", {0}},
    {PC_KEY_GRANULARITY, "operations", {0}},
    {PC_KEY_NETWORK, "flows", {0}},
    {PC_KEY_HOST_MODULES, "true", {0}},
    {PC_KEY_PASS_OVERHEAD, "0.5", {0}},
    {PC_KEY_EXPAND, "true", {0}},
    {PC_KEY_JITTER, "0.01", {SAMPLED}},
    {PC_KEY_SEED, "7", {0}},
    {PC_KEY_PRICE, "2.10/h", {0}},
    {PC_KEY_TOKENS, "15T", {0}},
    {PC_KEY_WATTS, "1275", {0}},
    {PC_KEY_SAMPLES, "10", {0}},
    {PC_KEY_GPU_JITTER, "0.01", {SAMPLED}},
    {PC_KEY_LINK_JITTER, "0.01", {SAMPLED}},
    {PC_KEY_SLOW_GPUS, "2", {SAMPLED, "setting.bad_days.slow_factor=2", "setting.bad_days.slow_stage=1"}},
    {PC_KEY_SLOW_FACTOR, "2", {SAMPLED, "setting.bad_days.slow_gpus=1", "setting.bad_days.slow_factor=3"}},
    {PC_KEY_SLOW_STAGE, "0", {SAMPLED, "setting.bad_days.slow_factor=2", "setting.bad_days.slow_gpus=1"}},
    {PC_KEY_BAD_LINKS, "2", {SAMPLED, "setting.bad_days.bad_factor=0.5", "setting.bad_days.bad_links=1"}},
    {PC_KEY_BAD_FACTOR, "0.25", {SAMPLED, "setting.bad_days.bad_factor=0.5", "setting.bad_days.bad_links=1"}},
    {PC_KEY_OTHER_GPU,
     "h100-sxm",
     {SAMPLED, "setting.bad_days.other_gpu=a100-sxm-40gb", "setting.bad_days.other_nodes=1"}},
    {PC_KEY_OTHER_NODES, "0", {SAMPLED, "setting.bad_days.other_gpu=a100-sxm-40gb", "setting.bad_days.other_nodes=1"}},
    {PC_KEY_ROBUST, "p95", {SAMPLED}},
    {PC_KEY_MTBF, "2 y", {SAMPLED}},
    {PC_KEY_CHECKPOINT, "1 min", {SAMPLED}},
    {PC_KEY_INTERVAL, "1 h", {SAMPLED}},
    {PC_KEY_RESTART, "1 min", {SAMPLED, FAILING}},
    {PC_KEY_REPAIR, "1 h", {SAMPLED, FAILING}},
    {PC_KEY_SPARE_NODES, "3", {SAMPLED, FAILING}},
    {PC_KEY_HORIZON, "60 days", {SAMPLED, FAILING}},
    {PC_KEY_MEMORY, "40 GiB", {0}},
    {PC_KEY_OUT_OF_MEMORY, "wait", {0}},
    {PC_KEY_ENGINE, "events", {0}},
    {PC_KEY_OVERHEAD, "1 ms", {0}},
    {PC_KEY_TRACE, "true", {0}},
    {PC_KEY_TIMES + PC_PASS_F, "2 ms", {0}},
    {PC_KEY_TIMES + PC_PASS_B, "2 ms", {0}},
    {PC_KEY_TIMES + PC_PASS_W, "2 ms", {0}},
    {PC_KEY_TIMES + PC_PASS_BW, "3 ms", {0}},
    {PC_KEY_TIMES + PC_PASS_R, "3 ms", {0}},
    {PC_KEY_TIMES + PC_PASS_S, "3 ms", {0}},
    {PC_KEY_TIMES + PC_PASS_T, "3 ms", {0}},
    {PC_KEY_TRANSFER_TIME, "1 us", {0}},
    {PC_KEY_TRANSFER_SIZE, "2 MB", {"setting.transfer={size: 1 MB, bandwidth: 1 GB/s}"}},
    {PC_KEY_TRANSFER_LATENCY, "1 us", {"setting.transfer={size: 1 MB, bandwidth: 1 GB/s}"}},
    {PC_KEY_TRANSFER_BANDWIDTH, "2 GB/s", {"setting.transfer={size: 1 MB, bandwidth: 1 GB/s}"}},
    {PC_KEY_ACTIVATION_SIZE, "1 GB", {0}},
    {PC_KEY_RELEASE_B, "0.5", {"setting.activation.size=1 GB"}},
    {PC_KEY_KEEP, "0.5", {"setting.activation.size=1 GB"}},
};

static const pc_key labels[] = {PC_KEY_MODEL_NAME};

static pc_run_key key_of(const char *const *first, const char *const *with, const char *last) {
    const char *sets[SETS_MAX];
    int count = 0;
    for (; *first; first++) sets[count++] = *first;
    for (; *with; with++) sets[count++] = *with;
    if (last) sets[count++] = last;
    pc_scenario *scenario = load_with(NULL, sets, count);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_key key = pc_run_key_of(&spec);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    return key;
}

/* Whether the key of the run with the value is another than without it. */
static bool counts(const change *of, const char *const *first) {
    char set[128];
    snprintf(set, sizeof set, "setting.%s=%s", pc_key_path(of->key), of->value);
    return !pc_run_key_equal(key_of(first, of->with, NULL), key_of(first, of->with, set));
}

static void test_every_setting_counts(void **state) {
    (void)state;
    bool is_tried[PC_KEYS] = {false};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *path = pc_key_path(changes[i].key);
        bool is_of_times = pc_key_is_of_times(changes[i].key);
        if (!counts(&changes[i], is_of_times ? of_times : of_cluster)) fail_msg("%s: is not in the key", path);
        is_tried[changes[i].key] = true;
    }
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        if (counts(&(change){labels[i], "another", {0}}, of_cluster))
            fail_msg("%s: in the key", pc_key_path(labels[i]));
        is_tried[labels[i]] = true;
    }
    is_tried[PC_KEY_PASS_TIMES] = true;      /* by the times in the file, which are the run's: test_pass_times.c */
    is_tried[PC_KEY_MOE_LOAD_COUNTS] = true; /* by the counts in the file: test_run_key.c */
    is_tried[PC_KEY_PROFILE] = true; /* by what is in the file, once that has been read: pc_run_spec.profile_hash */
    for (pc_key key = 0; key < PC_KEYS; key++)
        if (!is_tried[key]) fail_msg("%s: a line of `changes` is missing", pc_key_path(key));
}

/* Those that runs of both sorts have, where times are given. */
static void test_both_sorts_of_runs(void **state) {
    (void)state;
    static const pc_key both[] = {PC_KEY_MAKING, PC_KEY_GOAL,    PC_KEY_OUT_OF_MEMORY,   PC_KEY_ENGINE, PC_KEY_OVERHEAD,
                                  PC_KEY_TRACE,  PC_KEY_SEQ_LEN, PC_KEY_MICROBATCH_SIZE, PC_KEY_MEMORY};
    int found = 0;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
            if (changes[k].key != both[i]) continue;
            found++;
            if (!counts(&changes[k], of_times)) fail_msg("%s: is not in the key", pc_key_path(both[i]));
        }
    assert_int_equal(found, sizeof both / sizeof *both);
    assert_false(counts(&(change){PC_KEY_MACHINE, "dgx-h100", {0}}, of_times)); /* a label there */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_setting_counts),
        cmocka_unit_test(test_both_sorts_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
