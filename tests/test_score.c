/* Measured runs: what a row says, by which names, and its forecast. */
#include "scenarios/library.h"
#include "scenarios/written_names.h"
#include "sweep/score.h"
#include "tests/score_table.h"

/* ---- tables ---- */

static void check_refused(const folder *at, const char *text, const char *what) {
    pc_error error = {0};
    pc_measured measured;
    char bad[512] = "";
    write_table(at, text);
    assert_int_equal(pc_measured_read(at->file, note_bad, bad, &measured, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, what)) fail_msg("%s; expected %s", error.message, what);
    pc_measured_free(&measured);
}

static void test_reading(void **state) {
    const folder *at = *state;
    pc_measured m;
    char bad[512] = "";
    read_table(at,
               "\xef\xbb\xbf"
               "model,system,gpus,note\r\n\"a, b\",x,8,\"two\nlines\"\r\n\r\nmodel,system,gpus,note\r\nc,y\r\n"
               "d,\"z\"z,8,\r\ne,w,1,\r\n",
               bad, &m);
    assert_int_equal(m.row_count, 2);
    assert_string_equal(m.cell[0], "a, b");
    assert_string_equal(m.cell[3], "two\nlines");
    assert_int_equal(m.line[1], 8);
    assert_string_equal(bad, "m.csv:6: 2 fields; expected 4, as in the header\n"
                             "m.csv:7: a quote that does not end its field; expected \"...\"\n");
    assert_true(m.is_known[0] && !m.is_known[3]);
    pc_measured_free(&m);
    check_refused(at, "", "empty");
    check_refused(at, "\n\n", "empty");
    check_refused(at, "model,gpus\n", "no column 'system'");
    check_refused(at, "model,system,gpu\n", "no column 'gpus' (did you mean gpu?)");
    check_refused(at, "model,system,gpus,Model\n", "the column 'Model' twice");
}

/* ---- names ---- */

/* Every name of names.csv leads somewhere, and none stands twice. */
static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < pc_written_name_count; i++) {
        const pc_written_name *row = &pc_written_names[i];
        pc_library_kind kind = row->kind == PC_WRITTEN_MODEL ? PC_LIBRARY_MODELS : PC_LIBRARY_MACHINES;
        bool is_file = row->kind == PC_WRITTEN_MODEL || (row->kind == PC_WRITTEN_MACHINE && row->name[0]);
        if (is_file && !pc_library_find(kind, row->name)) fail_msg("%s: no file", row->name);
        if (pc_written_find(row->kind, row->squeezed) != row) fail_msg("%s: twice", row->squeezed);
    }
}

#define HEADER                                                                                                         \
    "framework,task,model,system,gpus,precision,gbs,mbs,seq,fsdp_shard,tp,pp,cp,vp,ep,ga,zero,recompute,schedule,"     \
    "variant,tokens_per_s_per_gpu,step_s,memory_gib\n"

static pc_measured_run run_of(const folder *at, const char *row) {
    char text[1024], bad[512] = "";
    pc_measured m;
    pc_measured_run run;
    pc_error error = {0};
    snprintf(text, sizeof text, HEADER "%s\n", row);
    read_table(at, text, bad, &m);
    assert_string_equal(bad, "");
    if (pc_measured_run_of(&m, 0, &run, &error)) fail_msg("%s", error.message);
    pc_measured_free(&m);
    return run;
}

static void check_names(const folder *at, const char *model, const char *system, const char *own_model,
                        const char *own_machine, const char *missing) {
    char row[512];
    snprintf(row, sizeof row, "NeMo,Pre-Training,%s,%s,64,BF16,128,1,4096,,4,4,1,5,,,,,,,100,,", model, system);
    pc_measured_run run = run_of(at, row);
    assert_string_equal(run.model, own_model);
    assert_string_equal(run.machine, own_machine);
    assert_string_equal(run.missing, missing);
}

static void test_models_and_machines(void **state) {
    const folder *at = *state;
    check_names(at, "LLAMA3-70B", "DGX-H100", "llama3-70b", "dgx-h100", "");
    check_names(at, "Llama 3.1 70b 24.09 BF16", "H100", "llama3-70b", "dgx-h100", "");
    check_names(at, "llama31_405b", "h100_80gb", "llama3-405b", "dgx-h100", "");
    check_names(at, "GPT3 1.3B", "H100", "gpt3-1.3b", "dgx-h100", "");
    check_names(at, "GPT3-13B", "H100", "gpt3-13b", "dgx-h100", "");
    check_names(at, "MPT-70b", "A100-SXM4-80GB", "mpt-70b", "dgx-a100", "");
    check_names(at, "InternLM-7B", "A100-SXM4-80GB 4x100Gb RoCE", "internlm-7b", "a100-roce-100g", "");
    check_names(at, "GPT3-20B", "a100_40gb", "nemo-gpt3-20b", "dgx-a100-40gb", "");
    check_names(at, "NEMOTRON4-340B", "DGX-GB200", "nemotron4-340b", "gb200-nvl72", "");
    check_names(at, "gpt3-175b", "NVIDIA H100-SXM5-80GB 16x8", "gpt3-175b", "dgx-h100", "");
    check_names(at, "gpt3-175b", "NVIDIA Blackwell GPU (B200-SXM-180GB) 2x8", "gpt3-175b", "dgx-b200", "");
    check_names(at, "gpt3-175b", "H100 96GB HBM2e 500W 8/host 400Gb/s/GPU", "gpt3-175b", "grand-teton", "");
    check_names(at, "gpt3-175b", "H100 PCIe", "gpt3-175b", "", "machine");
    check_names(at, "gpt3-175b", "GB300", "gpt3-175b", "gb300-nvl72", "");
    check_names(at, "gpt3-175b", "NVIDIA Blackwell Ultra GPU (B300-SXM-270GB)", "gpt3-175b", "dgx-b300", "");
    check_names(at, "gpt3-175b", "GB400", "gpt3-175b", "", "machine");
    check_names(at, "DeepSeek V3 671B", "H100", "deepseek-v3", "dgx-h100", "");
    check_names(at, "deepseekv3_671b", "H100", "deepseek-v3", "dgx-h100", "");
    check_names(at, "Qwen3_30B_a3B", "H100", "qwen3-30b-a3b", "dgx-h100", "");
    check_names(at, "DeepSeekV4 Flash", "H100", "", "dgx-h100", "sparse attention");
    check_names(at, "Nemotron_3_Nano", "H100", "", "dgx-h100", "mamba");
    check_names(at, "my-own", "mine", "", "", "model shape;machine");
    check_names(at, "./my-own.yaml", "sub/mine.yaml", "./my-own.yaml", "sub/mine.yaml", "");
    check_names(at, "llama2_70b_lora", "H100", "llama2-70b", "dgx-h100", "");
    check_names(at, "Llama3 70b Finetuning SFT BF16", "H100", "llama3-70b", "dgx-h100", "");
    check_names(at, "Maxtext LLama2 70b BF16", "H100", "llama2-70b", "dgx-h100", "remat");
}

static void check_missing(const folder *at, const char *row, const char *missing) {
    assert_string_equal(run_of(at, row).missing, missing);
}

static void test_what_is_missing(void **state) {
    const folder *at = *state;
    check_missing(at, ",,gpt3-175b,H100,64,FP8-CS,128,1,2048,,4,4,1,,,,,,,,100,,", "");
    check_missing(at, ",,gpt3-175b,H100,64,fp8_mx,128,1,2048,,4,4,2,,8,,,,,,100,,", "");
    check_missing(at, ",,gpt3-175b,H100,64,int3,128,1,2048,,4,4,1,,,,,,,,100,,", "precision");
    check_missing(at, ",,gpt3-175b,H100,64,,128,,2048,,4,4,1,,,,,,,,100,,", "mbs");
    check_missing(at, "NeMo,,gpt3-175b,H100,64,,128,,16384,,4,4,2,,,,,,,,100,,", "");
    check_missing(at, "NeMo,,gpt3-175b,H100,64,,128,,8192,,4,4,2,,,,,,,,100,,", "mbs");
    check_missing(at, ",,gpt3-175b,H100,,,,1,,,4,4,1,,,,,,,,100,,", "gpus;gbs;seq");
    check_missing(at, ",SFT,gpt3-175b,H100,64,,128,1,2048,,4,4,1,,,,,,,,100,,", "");
    check_missing(at, ",,gpt3-175b,H100,64,,128,1,2048,,4,4,1,,,,,selective mamba_act,,,100,,", "recompute modules");
    check_missing(at, ",,gpt3-175b,H100,64,,128,1,2048,,4,4,1,,,,,,see elsewhere,,100,,", "schedule");
    check_missing(at, ",,gpt3-175b,H100,64,,128,1,2048,,4,4,1,,,,,,Interleaved 1F1B,,100,,", "vp");
    check_missing(at, ",,gpt3-175b,H100,64,,128,1,2048,2,4,4,1,,,,,,,,100,,", "");
    check_missing(at, ",,gpt3-175b,H100,64,,128,1,2048,,4,4,1,,,,1 group=2,,,,100,,", "");
    check_missing(at, ",,gpt3-175b,H100,64,,128,1,2048,,4,4,1,,,,1 group=4,,,,100,,", "");
    check_missing(at, ",,gpt3-175b,H100,64,,128,1,2048,,4,4,1,,,,1 group=DP,,,,100,,", "");
}

/* The case that becomes of a table's first row. */
static void write_case(const folder *at, const char *text, const pc_measured *conditions, int64_t condition,
                       char found[1024]) {
    pc_measured m;
    pc_measured_run run;
    pc_error error = {0};
    pc_text yaml = {0};
    char bad[512] = "";
    read_table(at, text, bad, &m);
    assert_string_equal(bad, "");
    if (pc_measured_run_of(&m, 0, &run, &error)) fail_msg("%s", error.message);
    run.conditions = conditions;
    run.condition = condition;
    pc_measured_add_case(&m, 0, &run, &yaml);
    snprintf(found, 1024, "%s", yaml.data);
    pc_text_free(&yaml);
    pc_measured_free(&m);
}

static void check_has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("%s: no %s", text, part);
}

/* What a program trains that says LoRA: MLPerf's, Megatron-Bridge's, and anybody's. A recomputation that is printed
 * counts before the program's. */
static void test_adapters(void **state) {
    const folder *at = *state;
    char found[1024];
    write_case(at, HEADER ",LoRA,llama2-70b,H100,8,,8,1,8192,,1,1,1,,,,,,,,100,,\n", NULL, 0, found);
    check_has(found, "\"lora\": {\"rank\": \"16\"}");
    write_case(at, HEADER "Megatron-Bridge,peft,llama2-70b,H100,8,,8,1,8192,,1,1,1,,,,,,,,100,,\n", NULL, 0, found);
    check_has(found, "\"targets\": \"linear_qkv\"");
    write_case(at, HEADER "NeMo AutoModel,LoRA,llama2-70b,H100,8,,8,1,8192,,1,1,1,,,,,,,,100,,\n", NULL, 0, found);
    check_has(found, "\"recompute\": \"full\"");
    write_case(at, HEADER "NeMo AutoModel,LoRA,llama2-70b,H100,8,,8,1,8192,,1,1,1,,,,,none,,,100,,\n", NULL, 0, found);
    check_has(found, "\"recompute\": \"none\"");
    write_case(
        at, "model,task,release,system,gpus,gbs,mbs,seq\nllama2_70b_lora,LoRA,MLPerf Training v5.1,H200,8,8,1,8192\n",
        NULL, 0, found);
    check_has(found, "\"targets\": \"linear_qkv,linear_proj\", \"dropout\": \"0.1\"");
    assert_null(strstr(found, "fp8_dot_product_attention"));
    write_case(at,
               "model,task,release,system,gpus,gbs,mbs,seq,precision\n"
               "llama2_70b_lora,LoRA,MLPerf Training v5.1,B200,8,8,1,8192,FP8\n",
               NULL, 0, found);
    check_has(found, "\"precision\": \"fp8-delayed\"");
    check_has(found, "\"fp8_dot_product_attention\": \"true\", \"use_transformer_engine_op_fuser\": \"true\"");
}

/* How a program runs experts, where its row does not say: by release, else by program; nothing without ranks that share
 * them out. What the row says counts first. */
static void test_experts(void **state) {
    const folder *at = *state;
    char found[1024];
    write_case(at,
               "model,framework,release,system,gpus,gbs,mbs,seq,ep\n"
               "deepseek-v3,Megatron-Bridge,NeMo 25.09,H100,64,64,1,4096,8\n",
               NULL, 0, found);
    assert_null(strstr(found, "moe_token_dispatcher_type"));
    const char *flex = "\"moe_token_dispatcher_type\": \"flex\"", *etp = "\"etp\": \"1\"";
    write_case(at, HEADER "Megatron-Bridge,,deepseek-v3,H100,64,,64,1,4096,,2,4,1,,8,,,,,,100,,\n", NULL, 0, found);
    check_has(found, "\"ep\": \"8\"");
    check_has(found, flex);
    check_has(found, etp);
    write_case(at, HEADER "Megatron-Bridge,,deepseek-v3,H100,64,,64,1,4096,,2,4,1,,1,,,,,,100,,\n", NULL, 0, found);
    assert_true(!strstr(found, flex) && !strstr(found, "etp") && !strstr(found, "\"ep\""));
    write_case(at, HEADER "NeMo,,grok-1,H100,64,,64,1,4096,,2,4,1,,8,,,,,ETP=2,100,,\n", NULL, 0, found);
    check_has(found, "\"etp\": \"2\"");
    write_case(at,
               "model,framework,system,gpus,gbs,mbs,seq,ep,etp,moe_flex_dispatcher_backend\n"
               "deepseek-v3,Megatron-Bridge,H100,64,64,1,4096,8,2,deepep\n",
               NULL, 0, found);
    check_has(found, flex);
    check_has(found, "\"etp\": \"2\"");
    check_has(found, "\"moe_flex_dispatcher_backend\": \"deepep\"");
    write_case(at,
               "model,framework,system,gpus,gbs,mbs,seq,ep,moe_token_dispatcher_type,moe_hybridep_num_sms\n"
               "deepseek-v3,Megatron-Bridge,H100,64,64,1,4096,8,alltoall,32\n",
               NULL, 0, found);
    assert_true(!strstr(found, "moe_flex_dispatcher_backend") && !strstr(found, "moe_hybridep_num_sms"));
}

#define RECIPES                                                                                                        \
    "model,task,system,num_gpus,precision,tensor_model_parallel_size,pipeline_model_parallel_size,"                    \
    "virtual_pipeline_model_parallel_size,micro_batch_size,cuda_graph_impl,cuda_graph_scope,overlap_grad_reduce\n"

static int64_t join(const folder *at, const char *recipes, const char *row, int64_t *condition, char found[1024]) {
    pc_measured conditions;
    char bad[512] = "";
    pc_measured_run run = run_of(at, row);
    read_table(at, recipes, bad, &conditions);
    assert_string_equal(bad, "");
    int64_t count = pc_measured_condition_of(&conditions, &run, condition);
    char text[1024];
    snprintf(text, sizeof text, HEADER "%s\n", row);
    found[0] = '\0';
    if (*condition >= 0) write_case(at, text, &conditions, *condition, found);
    pc_measured_free(&conditions);
    return count;
}

/* By model, machine, precision, task and cut, however each table calls them; as many GPUs before others; several that
 * differ are none; and a recipe that does not say its cut is nobody's. */
static void test_conditions(void **state) {
    const folder *at = *state;
    static const char row[] = "Megatron-Bridge,Pre-Training,LLAMA3-70B,DGX-H100,64,FP8,128,1,8192,,4,4,1,5,,,,,,,100,,";
    static const char lora[] = "Megatron-Bridge,LoRA,LLAMA3-70B,DGX-H100,8,FP8,32,1,4096,,2,4,1,20,,,,,,,100,,";
    char found[1024];
    int64_t condition;
    static const char one[] = RECIPES "llama3_70b,pretrain,h100,64,fp8cs,4,4,5,1,local,['full_iteration'],False\n"
                                      "llama3_70b,pretrain,h100,128,fp8cs,4,4,5,1,none,[],True\n"
                                      "llama3_70b,pretrain,h100,64,bf16,4,4,5,1,none,[],True\n"
                                      "llama3_70b,pretrain,h100,64,fp8cs,,,,1,none,[],True\n"
                                      "llama3_70b,peft,h100,8,fp8cs,2,4,20,1,transformer_engine,['attn'  'mlp'],\n";
    assert_int_equal(join(at, one, row, &condition, found), 2);
    assert_int_equal(condition, 0);
    check_has(found, "\"cuda_graph_impl\": \"local\"");
    check_has(found, "\"cuda_graph_scope\": \"['full_iteration']\"");
    check_has(found, "\"overlap\": {\"gradients\": \"false\"}");
    assert_int_equal(join(at, one, lora, &condition, found), 1);
    check_has(found, "\"cuda_graph_scope\": \"['attn'  'mlp']\"");
    assert_null(strstr(found, "overlap"));
    static const char two[] = RECIPES "llama3_70b,pretrain,h100,32,fp8cs,4,4,5,1,local,[],False\n"
                                      "llama3_70b,pretrain,h100,128,fp8cs,4,4,5,1,none,[],True\n";
    assert_int_equal(join(at, two, row, &condition, found), 2);
    assert_int_equal(condition, -1);
    assert_int_equal(join(at, two, lora, &condition, found), 0);
    assert_int_equal(condition, -1);
}

/* What a word means depends on who says it: the most special row of the names. */
static void test_recipes(void **state) {
    (void)state;
    static const struct {
        pc_written_speaker who;
        const char *word, *expected;
    } cases[] = {{{"NeMo", "v25.04", "dgx-h100"}, "FP8", "fp8-delayed"},
                 {{"Megatron-Bridge", "NeMo 26.04", "gb200-nvl72"}, "FP8", "fp8-current"},
                 {{"NVIDIA NGC Pytorch 25.04", "MLPerf Training v5.1", "dgx-b200"}, "FP8", "fp8-current"},
                 {{"", "", ""}, "fp8", "fp8-delayed"},
                 {{"llm-foundry FSDP", "", "dgx-h100"}, "amp_fp8", "fp8-delayed"},
                 {{"Megatron-Bridge", "NeMo 25.09", "dgx-b200"}, "FP8-CS", "fp8-current"},
                 {{"", "", ""}, "fp8_cs", "fp8-current"},
                 {{"", "", ""}, "FP8-SC", "fp8-blockwise"},
                 {{"", "", ""}, "fp8mx", "mxfp8"},
                 {{"", "", ""}, "FP8 tensorwise", "fp8-tensorwise"},
                 {{"", "", ""}, "FP8 rowwise", "fp8-rowwise"},
                 {{"NeMo", "", ""}, "NVFP4", "nvfp4"},
                 {{"NeMo", "", ""}, "bfloat16", "bf16"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pc_written_name *found = pc_written_find_said(PC_WRITTEN_PRECISION, cases[i].who, cases[i].word);
        assert_non_null(found);
        assert_string_equal(found->name, cases[i].expected);
        assert_non_null(pc_library_find(PC_LIBRARY_PRECISIONS, found->name));
    }
    assert_null(pc_written_find_said(PC_WRITTEN_PRECISION, (pc_written_speaker){"NeMo", "", "dgx-h100"}, "int3"));
}

/* Megatron's words, torchtitan's, MaxText's, and the names of `recompute` itself. "selective" is Megatron's, but in a
 * row of torchtitan it is what its Llama configurations have. */
static void test_recomputation(void **state) {
    const folder *at = *state;
    static const struct {
        const char *program, *cell, *expected;
    } cases[] = {{"Megatron-LM", "selective", "selective"},
                 {"torchtitan", "selective", "selective-op"},
                 {"torchtitan", "full", "full"},
                 {"", "selective op", "selective-op"},
                 {"", "op", "selective-op"},
                 {"torchtitan", "selective 2", "selective-2"},
                 {"NeMo", "uniform 1", "full-uniform-1"},
                 {"NeMo", "full uniform 4", "full-uniform-4"},
                 {"NeMo", "block 5", "full-block-5"},
                 {"NeMo", "full-block-12", "full-block-12"},
                 {"Megatron-Bridge", "selective core_attn", "selective:core_attn"},
                 {"Megatron-Bridge", "selective mlp+core_attn", "selective:core_attn+mlp"},
                 {"", "modules mlp", "selective:mlp"},
                 {"", "core_attn", "selective:core_attn"},
                 {"MaxText", "minimal", "minimal"},
                 {"MaxText", "minimal_flash", "minimal_with_context"},
                 {"MaxText", "save_dot_except_mlp", "save_dot_except_mlp"},
                 {"", "", "none"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char row[512];
        snprintf(row, sizeof row, "%s,,llama3-8b,H100,64,,128,1,2048,,1,1,1,,,,3,%s,,,100,,", cases[i].program,
                 cases[i].cell);
        pc_measured_run run = run_of(at, row);
        assert_string_equal(run.recompute, cases[i].expected);
        assert_string_equal(run.missing, "");
    }
    static const char *const unknown[] = {"block", "block 0",           "uniform 1x", "selective mop",
                                          "op 2",  "minimal_offloaded", "block N"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char row[512];
        snprintf(row, sizeof row, ",,llama3-8b,H100,64,,128,1,2048,,1,1,1,,,,3,%s,,,100,,", unknown[i]);
        check_missing(at, row, "recompute modules");
    }
    pc_measured_run run;
    check_missing(at, "MaxText,,llama3-8b,H100,64,,128,1,2048,,1,1,1,,,,3,,,,100,,", "remat");
    /* Asynchronous TP needs the compiler, and what it is compared with has it. */
    static const char *const compiled[] = {"vanilla TP", "2D", "2D+AsyncTP"};
    for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++) {
        char row[512];
        snprintf(row, sizeof row, "torchtitan,,llama3-8b,H100,64,,128,1,2048,,8,1,1,,,,3,full,,%s,100,,", compiled[i]);
        run = run_of(at, row);
        assert_string_equal(run.software, "torchtitan-compiled");
    }
    run = run_of(at, "torchtitan,,llama3-8b,H100,64,,128,1,2048,,1,1,1,,,,3,full,,FSDP,100,,");
    assert_string_equal(run.software, "torch-eager");
}

/* GB of 10^9 bytes, as torch counts them; where both are given GiB count. */
static void test_allocated_memory(void **state) {
    const folder *at = *state;
    pc_measured m;
    pc_measured_run run;
    char bad[64] = "";
    read_table(at,
               "model,system,gpus,gbs,mbs,seq,memory_gib,memory_allocated_gb\n"
               "llama3-8b,H100,8,8,1,2048,,53.6870912\n"
               "llama3-8b,H100,8,8,1,2048,60,53.6870912\n",
               bad, &m);
    assert_int_equal(pc_measured_run_of(&m, 0, &run, NULL), PC_OK);
    assert_true(run.is_allocated && run.memory_gib == 50.0);
    assert_int_equal(pc_measured_run_of(&m, 1, &run, NULL), PC_OK);
    assert_true(!run.is_allocated && run.memory_gib == 60.0);
    pc_measured_free(&m);
}

/* 64 GPUs, tp 4, pp 4: 4 replicas. */
static void test_settings(void **state) {
    const folder *at = *state;
    pc_measured_run run = run_of(at, ",,gpt3-175b,H100,64,fp16,128,,2048,4,4,4,1,6,,8.0,,full,,layers=48,100,,70.5");
    assert_int_equal(run.zero, 3);
    assert_int_equal(run.microbatch_size, 4); /* 128 = 8 microbatches x 4 x 4 replicas */
    assert_string_equal(run.schedule, "1f1b-interleaved");
    assert_int_equal(run.chunks, 6);
    assert_int_equal(run.layers, 48);
    assert_string_equal(run.recompute, "full");
    assert_string_equal(run.precision, "fp16");
    assert_true(run.memory_gib == 70.5);
    /* 128 sequences of 2,048 tokens at 64 x 100 tokens a second */
    assert_true(run.step_s == 128.0 * 2048.0 / 6400.0);
    run = run_of(at, ",,gpt3-175b,H100,64,,128,1,2048,0,4,1,1,6,,,,,,,100,5.5,N/A");
    assert_int_equal(run.zero, 1);
    assert_string_equal(run.schedule, "1f1b"); /* one stage has no chunks */
    assert_true(run.step_s == 5.5 && isnan(run.memory_gib));
    assert_int_equal(run_of(at, ",,gpt3-175b,H100,64,,128,1,2048,,1,1,1,,,,fsdp,,,,100,,").zero, 3);
    assert_int_equal(run_of(at, ",,gpt3-175b,H100,64,,128,1,2048,,1,1,1,,,,2,,,,100,,").zero, 2);
    assert_string_equal(run_of(at, ",,gpt3-175b,H100,64,,128,1,2048,,1,4,1,,,,,,zb-h1,,100,,").schedule, "zb-h1");
}

static void check_bad(const folder *at, const char *row, const char *what) {
    char text[1024], bad[512] = "";
    pc_measured m;
    pc_measured_run run;
    pc_error error = {0};
    snprintf(text, sizeof text, HEADER "%s\n", row);
    read_table(at, text, bad, &m);
    assert_int_equal(pc_measured_run_of(&m, 0, &run, &error), PC_ERROR_INPUT);
    assert_string_equal(strrchr(error.message, '/') + 1, what);
    pc_measured_free(&m);
}

static void test_bad_cells(void **state) {
    const folder *at = *state;
    check_bad(at, ",,a,H100,eight,,128,1,2048,,4,4,1,,,,,,,,100,,",
              "m.csv:2: gpus: 'eight'; expected a whole number above zero");
    check_bad(at, ",,a,H100,8.5,,128,1,2048,,4,4,1,,,,,,,,100,,",
              "m.csv:2: gpus: '8.5'; expected a whole number above zero");
    check_bad(at, ",,a,H100,8,,0,1,2048,,4,4,1,,,,,,,,100,,", "m.csv:2: gbs: '0'; expected a whole number above zero");
    check_bad(at, ",,a,H100,8,,128,local 32,2048,,4,4,1,,,,,,,,100,,",
              "m.csv:2: mbs: 'local 32'; expected a whole number above zero");
    check_bad(at, ",,a,H100,8,,128,1,2048,,4,4,1,,,,seven,,,,100,,",
              "m.csv:2: zero: 'seven'; expected 0 to 3, or fsdp");
    check_bad(at, ",,a,H100,8,,128,1,2048,,4,4,1,,,,,,,,-3,,",
              "m.csv:2: tokens_per_s_per_gpu: '-3'; expected a number above zero");
    check_bad(at, ",,a,H100,8,,128,1,2048,,4,4,1,,,,,,,,,1e999,",
              "m.csv:2: step_s: '1e999'; expected a number above zero");
}

/* ---- forecasts ---- */

/* A row is forecast as the run that it says; what does not fit has the time of one that does; what contradicts itself
 * is infeasible, a name that leads nowhere a row that cannot be read. One of them leaves the others as they are. */
static void test_forecasts(void **state) {
    static const char text[] = "model,system,gpus,gbs,mbs,seq,tp,pp,step_s,setting.memory,setting.overlap.tp\n"
                               "gpt3-13b,dgx-a100,64,512,1,2048,8,2,10,,\n"
                               "gpt3-13b,dgx-a100,64,512,1,2048,8,2,10,1 GiB,\n"
                               "gpt3-13b,dgx-a100,65,512,1,2048,8,2,10,,\n"
                               "gpt3-13b,./none.yaml,64,512,1,2048,8,2,10,,\n"
                               "gpt3-13b,dgx-a100,64,512,1,2048,8,2,10,,maybe\n"
                               "gpt3-13b,dgx-a100,64,512,1,2048,8,2,20,,true\n";
    char bad[2048] = "";
    pc_measured m;
    pc_score score;
    pc_error error = {0};
    read_table(*state, text, bad, &m);
    pc_score_sink sink = {.context = bad, .say = note_bad};
    if (pc_score_run(&(pc_score_request){.measured = &m, .jobs = 2}, &sink, &score, &error))
        fail_msg("%s", error.message);
    assert_int_equal(score.count, 4);
    assert_int_equal(score.rows[0].status, PC_SCORE_OK);
    assert_int_equal(score.rows[1].status, PC_SCORE_OUT_OF_MEMORY);
    assert_true(score.rows[1].forecast_s == score.rows[0].forecast_s && score.rows[0].forecast_s > 0.0);
    assert_int_equal(score.rows[2].status, PC_SCORE_INFEASIBLE);
    assert_non_null(strstr(score.rows[2].message, "65"));
    assert_true(isnan(score.rows[2].forecast_s) && isnan(score.rows[2].error));
    check_near(score.rows[3].error, score.rows[0].forecast_s / 20.0 - 1.0);
    assert_non_null(strstr(bad, "none.yaml: No such file"));
    assert_non_null(strstr(bad, "m.csv:6: overlap.tp: maybe"));
    free_score(&m, &score);
}

/* A set that is wrong for all is one error. */
static void test_sets(void **state) {
    char bad[64] = "";
    pc_measured m;
    pc_score score;
    pc_error error = {0};
    const char *set = "setting.nonsense=1";
    read_table(*state, "model,system,gpus,gbs,mbs,seq\ngpt3-13b,dgx-a100,64,512,1,2048\n", bad, &m);
    pc_score_request request = {.measured = &m, .sets = &set, .set_count = 1, .jobs = 1};
    assert_int_equal(pc_score_run(&request, NULL, &score, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "--set setting.nonsense=1"));
    pc_measured_free(&m);
}

/* Any one allocation may fail: no row is then half done. */
static void test_without_memory(void **state) {
    const folder *at = *state;
    write_table(
        at,
        "model,system,gpus,gbs,mbs,seq,step_s\ngpt3-1.3b,dgx-a100,8,64,1,2048,1\ngpt3-1.3b,dgx-a100,8,64,8,2048,1\n");
    const char *by = "model";
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long after = 0; code == PC_ERROR_NO_MEMORY; after += test_part(7, 1)) {
        pc_measured m;
        pc_score score = {0};
        pc_error error = {0};
        char bad[64] = "";
        pc_alloc_fail_after(after);
        code = pc_measured_read(at->file, note_bad, bad, &m, &error);
        if (!code) code = pc_score_run(&(pc_score_request){.measured = &m, .jobs = 1}, NULL, &score, &error);
        if (!code) code = pc_score_sum_up(&score, &by, 1, &error);
        pc_alloc_fail_after(-1);
        free_score(&m, &score);
        if (code && code != PC_ERROR_NO_MEMORY) fail_msg("%s", error.message);
    }
    assert_int_equal(code, PC_OK);
}

int main(void) {
    static char name[] = "m.csv";
#define IN_FOLDER(test) cmocka_unit_test_prestate_setup_teardown(test, make_folder, remove_folder, name)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_reading),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_recipes),
        IN_FOLDER(test_adapters),
        IN_FOLDER(test_experts),
        IN_FOLDER(test_conditions),
        IN_FOLDER(test_models_and_machines),
        IN_FOLDER(test_what_is_missing),
        IN_FOLDER(test_recomputation),
        IN_FOLDER(test_allocated_memory),
        IN_FOLDER(test_settings),
        IN_FOLDER(test_bad_cells),
        IN_FOLDER(test_forecasts),
        IN_FOLDER(test_sets),
        IN_FOLDER(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
