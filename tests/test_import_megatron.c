/* Megatron-LM's arguments as a setting: from scripts, logs and YAML; what several of them say together; what is
 * refused; and, where ../shared is there, all 112 of its files.
 */
#include "engine/alloc.h"
#include "scenarios/import/import.h"
#include "scenarios/import/megatron.h"
#include "scenarios/scenario.h"
#include "tests/support.h"

#include <dirent.h>
#include <unistd.h>

static pc_code import(const char *text, pc_imported *made, pc_error *error) {
    pc_source source;
    assert_int_equal(pc_source_from_text("train.sh", text, &source, error), PC_OK);
    pc_code code = pc_import_megatron(&source, made, error);
    pc_source_free(&source);
    return code;
}

static void expect(const char *text, const char *const (*wanted)[2], size_t count) {
    pc_error error = {0};
    pc_imported made = {.count = 0};
    if (import(text, &made, &error)) fail_msg("%s", error.message);
    for (size_t i = 0; i < count; i++) {
        const char *value = pc_imported_get(&made, wanted[i][0]);
        if (!wanted[i][1] && value) fail_msg("%s is %s; expected nothing", wanted[i][0], value);
        if (wanted[i][1] && !value) fail_msg("%s is not set; expected %s", wanted[i][0], wanted[i][1]);
        if (wanted[i][1]) assert_string_equal(value, wanted[i][1]);
    }
    pc_imported_free(&made);
}

#define EXPECT(text, ...)                                                                                              \
    do {                                                                                                               \
        static const char *const wanted[][2] = {__VA_ARGS__};                                                          \
        expect(text, wanted, sizeof wanted / sizeof *wanted);                                                          \
    } while (0)

static void refuse(const char *text, const char *message) {
    pc_error error = {0};
    pc_imported made = {.count = 0};
    assert_int_equal(import(text, &made, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
    pc_imported_free(&made);
}

#define EXPERTS "--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 4 "
#define MODEL   " --num-layers 8 --hidden-size 64 --num-attention-heads 8 --seq-length 128 --micro-batch-size 2 "

static void test_scripts(void **state) {
    (void)state;
    EXPECT("#!/bin/bash\n# --num-layers 99\nTP=4\nexport PP=2\nNODES=${NODES:-2}\n"
           "GPT_ARGS=(\n  --num-layers 8\n  --hidden-size=64 # wide\n  --num-attention-heads 8\n  --seq-length 128\n"
           "  --swiglu\n)\nOTHER=\"\n  --micro-batch-size 2 \\\n  --global-batch-size 64\n\"\n"
           "torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py \"${GPT_ARGS[@]}\" $OTHER \\\n"
           "  --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP --bf16\n",
           {"model.layers", "8"}, {"model.hidden", "64"}, {"model.mlp", "swiglu"}, {"microbatch_size", "2"},
           {"global_batch", "64"}, {"tp", "4"}, {"pp", "2"}, {"gpus", "16"}, {"model.precision", "bf16"});
    EXPECT("python pretrain_gpt.py" MODEL "--recompute-granularity selective --recompute-modules core_attn mlp --bf16",
           {"recompute", "selective"}, {"recompute_modules", "core_attn,mlp"}, {"gpus", "8"});
}

/* 4 x 16 and 2 x 2; what would be a command or a loop is no number. */
static void test_shell(void **state) {
    (void)state;
    EXPECT("WORLD_SIZE=16\nPP=$((2*2))\nGBS=$(( (WORLD_SIZE + 2) * 4 - 8 ))\nx" MODEL
           "--pipeline-model-parallel-size $PP --global-batch-size $((${WORLD_SIZE}*4)) --bf16\n"
           "y --train-iters 1 --tensor-model-parallel-size \"$(( 7 % 4 - 17 / 16 ))\"\n",
           {"pp", "4"}, {"global_batch", "64"}, {"tp", "2"}, {"model.precision", "bf16"});
    refuse("x" MODEL "--global-batch-size $((WORLD_SIZE*4))",
           "train.sh:1: global-batch-size: $((WORLD_SIZE*4)); expected a whole number, 1 or more: commands of a shell "
           "are not run, and only whole numbers are worked out");
    refuse("N=0\nx" MODEL "--global-batch-size $((4 / N))",
           "train.sh:2: global-batch-size: $((4 / N)); expected a whole number, 1 or more: commands of a shell are not "
           "run, and only whole numbers are worked out");
    refuse("x" MODEL "--tensor-model-parallel-size $(nproc --all)",
           "train.sh:1: tensor-model-parallel-size: $(nproc --all); expected a whole number, 1 or more: commands of a "
           "shell are not run, and only whole numbers are worked out");
    refuse("x" MODEL "--tensor-model-parallel-size `nproc --all`",
           "train.sh:1: tensor-model-parallel-size: `nproc --all`; expected a whole number, 1 or more: commands of a "
           "shell are not run, and only whole numbers are worked out");
    refuse("for TP in 1 2; do\nx" MODEL "--tensor-model-parallel-size $TP\ndone",
           "train.sh:2: tensor-model-parallel-size: $TP; expected a whole number, 1 or more: the script does not set "
           "the variable, and loops are not run");
}

static void test_logs(void **state) {
    (void)state;
    EXPECT("0: noise\n0: ------------------------ arguments ------------------------\n"
           "0:   num_layers ...................................... 8\n"
           "0:   hidden_size ..................................... 64\n"
           "0:   num_attention_heads ............................. 8\n"
           "0:   seq_length ...................................... 128\n"
           "0:   add_bias_linear ................................. False\n"
           "0:   group_query_attention ........................... True\n"
           "0:   num_query_groups ................................ 2\n"
           "0:   num_experts ..................................... None\n"
           "0:   moe_router_topk ................................. 2\n"
           "0:   padded_vocab_size ............................... 1024\n"
           "0:   vocab_size ...................................... None\n"
           "0:   rope_fusion ..................................... True\n"
           "0:   sequence_parallel ............................... True\n"
           "0:   tensor_model_parallel_size ...................... 2\n"
           "0:   world_size ...................................... 32\n"
           "0: -------------------- end of arguments ---------------------\n0:  other ..... 3\n",
           {"model.layers", "8"}, {"model.bias", "false"}, {"model.kv_heads", "2"}, {"model.num_experts", NULL},
           {"model.moe_router_topk", NULL}, {"model.vocab", "1024"}, {"model.vocab_multiple", "1"}, {"gpus", "32"},
           {"sequence_parallel", "true"}, {"tp", "2"});
}

static void test_yaml(void **state) {
    (void)state;
    EXPECT("ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 64\n  --num-attention-heads: 8\n"
           "  --seq-length: 128\n  --swiglu: true\n  --untie-embeddings-and-output-weights: false\n",
           {"model.layers", "8"}, {"model.mlp", "swiglu"}, {"model.tied", "true"}, {"model.ffn_hidden", "128"});
    /* Of 4 x 64 two thirds are 170, of which 128 is whole 64. */
    EXPECT("trainer:\n  num_nodes: 2\n  devices: 4\n  strategy:\n    tensor_model_parallel_size: 2\n"
           "data:\n  micro_batch_size: 1\n  global_batch_size: 16\n",
           {"tp", "2"}, {"gpus", "8"}, {"global_batch", "16"}, {"model.layers", NULL});
}

static void test_rules(void **state) {
    (void)state;
    /* Without a word of any of it: Megatron-LM's defaults. */
    EXPECT("x" MODEL, {"model.dropout", "true"}, {"model.positions", "learned"}, {"model.tied", "true"},
           {"model.bias", "true"}, {"model.norm", "layernorm"}, {"model.ffn_hidden", "256"}, {"zero", "0"},
           {"overlap.gradients", "false"}, {"sequence_parallel", "false"}, {"model.vocab", "50257"});
    EXPECT("x" MODEL "--attention-dropout 0 --hidden-dropout 0.0 --use-distributed-optimizer --overlap-grad-reduce",
           {"model.dropout", "false"}, {"zero", "1"}, {"overlap.gradients", "true"}, {"overlap.parameters", "false"});
    /* 8 layers over 2 stages, 2 a chunk: 2 chunks. */
    EXPECT("x" MODEL
           "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 --global-batch-size 16",
           {"chunks", "2"}, {"schedule", "1f1b-interleaved"});
    /* Three layers, five times one, and m with L: 1 + 4 + 1 parts over 2 stages. */
    EXPECT("x" MODEL "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(t|)*4tmL' "
           "--global-batch-size 16",
           {"chunks", "3"}, {"model.layout", "Et*3|(t|)*4tL"});
    /* As many m as layers of multi-token prediction stay. */
    EXPECT("x" MODEL "--pipeline-model-parallel-size 3 --pipeline-model-parallel-layout 'Et*4|(t|)*3tm|L' "
           "--mtp-num-layers 1 --global-batch-size 16",
           {"chunks", "2"}, {"pp", "3"}, {"model.layout", "Et*4|(t|)*3tm|L"});
    EXPECT("x" MODEL
           "--num-experts 8 --moe-router-topk 2 --moe-layer-freq ([0]*1+[1]*7) --expert-model-parallel-size 4",
           {"model.num_experts", "8"}, {"model.first_k_dense_replace", "1"}, {"ep", "4"},
           {"moe_token_dispatcher_type", "allgather"});
    /* The backend's own processors count; without flex none do. */
    EXPECT("x" MODEL EXPERTS "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
           "--moe-hybridep-num-sms 32 --moe-deepep-num-sms 24",
           {"moe_hybridep_num_sms", "32"}, {"moe_deepep_num_sms", NULL});
    EXPECT("x" MODEL EXPERTS "--moe-token-dispatcher-type flex --moe-flex-dispatcher-num-sms 24",
           {"moe_deepep_num_sms", "24"}, {"moe_hybridep_num_sms", NULL});
    EXPECT("x" MODEL EXPERTS "--moe-token-dispatcher-type alltoall --moe-deepep-num-sms 20 --moe-hybridep-num-sms 16",
           {"moe_deepep_num_sms", NULL}, {"moe_hybridep_num_sms", NULL});
    EXPECT("x" MODEL "--multi-latent-attention --q-lora-rank 16 --qk-layernorm --kv-channels 8",
           {"model.kv_lora_rank", "32"}, {"model.q_lora_rank", "16"}, {"model.qk_nope_head_dim", "128"},
           {"model.head_dim", NULL}, {"model.qk_norm", NULL});
    EXPECT("x" MODEL "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --bf16 "
           "--fp8-format hybrid --fp8-recipe blockwise",
           {"zero", "3"}, {"fsdp_unit", "layer"}, {"fsdp_version", "megatron"}, {"model.precision", "fp8-blockwise"});
    EXPECT("x" MODEL "--recompute-granularity full --recompute-method block --recompute-num-layers 3 "
           "--attention-backend unfused --transformer-impl local",
           {"recompute", "full"}, {"recompute_method", "block"}, {"recompute_layers", "3"},
           {"model.attention", "materialised"});
    /* Weight gradients wait in pairs of passes, which need chunks. */
    EXPECT("x" MODEL "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 --num-experts 8 "
           "--expert-model-parallel-size 2 --global-batch-size 16 --overlap-moe-expert-parallel-comm "
           "--delay-wgrad-compute",
           {"schedule", "1f1b-interleaved-overlap"}, {"overlap.delay_wgrad_compute", "true"});
    EXPECT("x" MODEL "--delay-wgrad-compute", {"overlap.delay_wgrad_compute", NULL});
    EXPECT("x" MODEL "--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --cuda-graph-impl local "
           "--cuda-graph-scope attn",
           {"offload", "optimizer"}, {"optimizer_offload_fraction", "0.5"}, {"cuda_graph_impl", "local"},
           {"cuda_graph_scope", "attn"});
}

static void test_notes(void **state) {
    (void)state;
    pc_error error = {0};
    pc_imported made = {.count = 0};
    assert_int_equal(import("x" MODEL "--deterministic-mode --new-thing 3 --lr 0.1 --no-rope-fusion", &made, &error),
                     PC_OK);
    assert_non_null(strstr(made.notes[PC_IMPORT_NOT_MODELLED].data, "deterministic-mode"));
    assert_non_null(strstr(made.notes[PC_IMPORT_NOT_MODELLED].data, "no-rope-fusion"));
    assert_string_equal(made.notes[PC_IMPORT_UNKNOWN].data, "new-thing");
    assert_non_null(strstr(made.notes[PC_IMPORT_NO_EFFECT].data, "numbers of the optimizer"));
    pc_imported_free(&made);
}

static void test_refused(void **state) {
    (void)state;
    refuse("echo hello\n",
           "train.sh: no arguments; expected options of a command line, a log's block of arguments, or YAML");
    refuse("\n x --num-layers eight\n", "train.sh:2: num-layers: eight; expected a whole number, 1 or more");
    refuse("x" MODEL "--moe-layer-freq ([0]*1+[2]*7) --num-experts 2",
           "train.sh:1: moe-layer-freq: [0]*1+[2]*7; expected a number, or a pattern such as ([0]*3+[1]*58)");
    refuse("x" MODEL "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et*3|t*3|t*2L",
           "train.sh:1: pipeline-model-parallel-layout: Et*3|t*3|t*2L; expected a layout such as Et*7|t*7mL, with "
           "parts for "
           "all stages");
    refuse("{\n\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 8}",
           "train.sh:2: architectures: a config.json of Hugging Face; expected arguments of Megatron-LM "
           "(pipecast import hf reads it)");
    refuse("MODEL_ARGS:\n  - [", "train.sh:3: not YAML: did not find expected node content while parsing a flow node; "
                                 "expected one YAML document in UTF-8");
}

/* What Megatron-LM would refuse is refused, and what it has and we do not is said. */
static void test_values(void **state) {
    static const char *const refused[][2] = {
        {"--recompute-granularity fulll", "recompute-granularity: fulll; expected full or selective"},
        {"--recompute-granularity full --recompute-method x", "recompute-method: x; expected uniform or block"},
        {"--optimizer x", "optimizer: x; expected adam, sgd, muon, dist_muon, adamw, fused_adam, "
                          "distributed_fused_adam, adaptive_muon, lion or soap"},
        {"--fp8-recipe x", "fp8-recipe: x; expected delayed, tensorwise, blockwise, mxfp8 or custom"},
        {"--fp8-format x", "fp8-format: x; expected e4m3, hybrid, true or false"},
        {"--moe-token-dispatcher-type x",
         "moe-token-dispatcher-type: x; expected allgather, alltoall, flex or alltoall_seq"},
        {"--attention-backend x", "attention-backend: x; expected flash, fused, unfused, local or auto"},
        {"--data-parallel-sharding-strategy x",
         "data-parallel-sharding-strategy: x; expected no_shard, optim, optim_grads or optim_grads_params"},
        {"--position-embedding-type x",
         "position-embedding-type: x; expected learned_absolute, rope, yarn, mrope, none, relative or alibi"},
        {"--bf16 x", "bf16: x; expected true or false, or nothing behind it"},
        {"--swiglu x", "swiglu: x; expected true or false, or nothing behind it"},
        {"--micro-batch-size 2 4", "micro-batch-size: 2 4; expected a whole number, 1 or more"},
        {"--micro-batch-size [2,4]", "micro-batch-size: [2,4]; expected a whole number, 1 or more"},
        {"--kv-channels 0", "kv-channels: 0; expected a whole number, 1 or more"},
        {"--group-query-attention --num-query-groups 0", "num-query-groups: 0; expected a whole number, 1 or more"},
        {"--hidden-dropout 5", "hidden-dropout: 5; expected a fraction, 0 to 1"},
        {"--attention-dropout x", "attention-dropout: x; expected a fraction, 0 to 1"},
        {"--optimizer-cpu-offload --optimizer-offload-fraction 5",
         "optimizer-offload-fraction: 5; expected a fraction, 0 to 1"},
        {"--num-experts 4 --moe-expert-capacity-factor x",
         "moe-expert-capacity-factor: x; expected a factor such as 1.25, or -1 for no limit"},
    };
    (void)state;
    refuse("x" MODEL "\\\n--group-query-attention --num-query-groups 5",
           "train.sh:2: num-query-groups: kv_heads 5 do not divide 8 heads; expected a divisor");
    refuse("x" MODEL "\\\n--num-experts 8 \\\n--moe-router-topk 9",
           "train.sh:3: moe-router-topk: moe_router_topk is 9; expected 1 to the 8 of num_experts");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[512], message[512];
        snprintf(text, sizeof text, "x" MODEL "\\\n%s", refused[i][0]);
        snprintf(message, sizeof message, "train.sh:2: %s", refused[i][1]);
        refuse(text, message);
    }
    /* What stands behind a flag or number of a command line and is not its own; as logs have it; of a list the first.
     */
    EXPECT("torchrun --nnodes 2 --nproc_per_node 4 train.py" MODEL "--bf16 2>&1 | tee log", {"model.precision", "bf16"},
           {"gpus", "8"});
    EXPECT("x --num-layers 8 --hidden-size 64 --num-attention-heads 8 --seq-length 128 --micro-batch-size 2 > out 4\n",
           {"microbatch_size", "2"});
    EXPECT("x" MODEL "--attention-backend AttnBackend.unfused --use-precision-aware-optimizer "
           "--exp-avg-dtype torch.bfloat16 --bf16 no --fp16 yes",
           {"model.attention", "materialised"}, {"exp_avg_dtype", "bf16"}, {"model.precision", "fp16"});
    EXPECT("x" MODEL "--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2",
           {"cp_a2a", "2"});
}

static void test_values_noted(void **state) {
    pc_error error = {0};
    pc_imported made = {.count = 0};
    (void)state;
    assert_int_equal(import("x" MODEL "--optimizer lion --fp8-recipe custom --num-query-groups 3", &made, &error),
                     PC_OK);
    assert_non_null(strstr(made.notes[PC_IMPORT_NOT_MODELLED].data, "optimizer lion"));
    assert_non_null(strstr(made.notes[PC_IMPORT_NOT_MODELLED].data, "fp8-recipe custom"));
    assert_non_null(strstr(made.notes[PC_IMPORT_ASSUMED].data, "num-query-groups 3 means nothing without"));
    assert_null(pc_imported_get(&made, "model.kv_heads"));
    pc_imported_free(&made);
}

static void test_memory(void **state) {
    (void)state;
    static const char text[] =
        "A=1\nx" MODEL "--vocab-size $A --recompute-granularity selective --recompute-modules mlp "
        "--odd 1 --deterministic-mode\n";
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long i = 0; code == PC_ERROR_NO_MEMORY; i++) {
        pc_error error = {0};
        pc_import_text made = {{.data = NULL}, {.data = NULL}};
        pc_alloc_fail_after(i);
        code = pc_import_bytes(PC_IMPORT_MEGATRON, "some/train.sh", text, strlen(text), &made, &error);
        pc_alloc_fail_after(-1);
        if (!code) assert_non_null(strstr(made.scenario.data, "scenario: train\nsetting:\n"));
        pc_import_text_free(&made);
        assert_true(i < 2000);
    }
    assert_int_equal(code, PC_OK);
}

/* ---- the files of ../shared ---- */

/* Imports, knows all its arguments, and is a scenario; of NeMo's tests two say no model. */
static long check_file(const char *path, long *without_model) {
    pc_error error = {0};
    pc_scenario *scenario = NULL;
    pc_import_text made = {{.data = NULL}, {.data = NULL}};
    if (pc_import_file(PC_IMPORT_MEGATRON, path, &made, &error)) fail_msg("%s", error.message);
    if (strstr(made.notes.data, "not known here")) fail_msg("%s: %s", path, made.notes.data);
    pc_scenario_options options = {.text = made.scenario.data};
    pc_code code = pc_scenario_load_with(path, &options, &scenario, &error);
    bool has_model = !strstr(made.notes.data, "no model");
    if (has_model && code) fail_msg("%s", error.message);
    *without_model += !has_model;
    pc_scenario_free(scenario);
    pc_import_text_free(&made);
    return 1;
}

static void test_files(void **state) {
    (void)state;
    const char *root = getenv("PC_SOURCE_ROOT");
    char folder[256], path[512];
    long count = 0, without_model = 0;
    snprintf(folder, sizeof folder, "%s/../shared/data/imports/megatron", root ? root : ".");
    DIR *files = opendir(folder);
    if (!files) {
        print_message("skipped: no %s\n", folder);
        skip();
    }
    for (struct dirent *file; (file = readdir(files));) {
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        if (strstr(file->d_name, ".yaml")) count += check_file(path, &without_model);
    }
    closedir(files);
    assert_int_equal(count, 112);
    assert_int_equal(without_model, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts), cmocka_unit_test(test_shell),        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_yaml),    cmocka_unit_test(test_rules),        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_memory),       cmocka_unit_test(test_files),
        cmocka_unit_test(test_values),  cmocka_unit_test(test_values_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
