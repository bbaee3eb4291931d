/* Configurations of DeepSpeed as the part of a setting that they are; and a recipe of NeMo. */
#include "engine/alloc.h"
#include "scenarios/import/import.h"
#include "tests/support.h"

static void expect(pc_import_format format, const char *text, const char *const *lines, size_t count) {
    pc_error error = {0};
    pc_import_text made = {{.data = NULL}, {.data = NULL}};
    if (pc_import_bytes(format, "ds.json", text, strlen(text), &made, &error)) fail_msg("%s", error.message);
    for (size_t i = 0; i < count; i++)
        if (!strstr(made.scenario.data, lines[i])) fail_msg("no %s in\n%s", lines[i], made.scenario.data);
    pc_import_text_free(&made);
}

#define EXPECT(format, text, ...)                                                                                      \
    do {                                                                                                               \
        static const char *const lines[] = {__VA_ARGS__};                                                              \
        expect(format, text, lines, sizeof lines / sizeof *lines);                                                     \
    } while (0)

static void test_deepspeed(void **state) {
    (void)state;
    /* 5e8 elements of 2 bytes are 1000 MB. */
    EXPECT(PC_IMPORT_DEEPSPEED,
           "{\"train_micro_batch_size_per_gpu\":4,\"gradient_accumulation_steps\":8,\"zero_optimization\":{\"stage\":3,"
           "\"reduce_bucket_size\":5e8,\"offload_param\":{\"device\":\"cpu\"}},\"fp16\":{\"enabled\":true},\"odd\":1}",
           "microbatch_size: 4 ", "microbatches: 8 ", "zero: 3 ", "bucket: 1000 MB ", "offload: parameters ",
           "precision: fp16 ", "gradients: true ", "not known here: odd");
    EXPECT(PC_IMPORT_DEEPSPEED,
           "{\"train_batch_size\":256,\"gradient_accumulation_steps\":\"auto\",\"zero_optimization\":{\"stage\":1},"
           "\"data_types\":{\"grad_accum_dtype\":\"fp32\"},\"sequence_parallel_size\":4}",
           "global_batch: 256 ", "zero: 1 ", "gradient_bytes: 4 ", "gradients: false ", "cp: 4 ", "cp_comm_type: a2a ",
           "gradient_accumulation_steps is auto");
}

static void test_recipe(void **state) {
    (void)state;
    EXPECT(PC_IMPORT_NEMO,
           "model:\n  num_layers: 8\n  hidden_size: 64\n  num_attention_heads: 8\n  num_query_groups: 2\n"
           "  seq_length: 128\n  recompute_granularity: full\n  recompute_method: uniform\n  recompute_num_layers: 1\n"
           "  tensor_model_parallel_size: 2\n  num_moe_experts: null\n  bf16: true\n"
           "trainer: {num_nodes: 2, devices: 4}\ndata:\n  micro_batch_size: 1\n  global_batch_size: 16\n"
           "ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true}\n",
           "kv_heads: 2 ", "tp: 2 ", "gpus: 8 ", "zero: 1 ", "gradients: true ", "recompute: full ", "dropout: false ");
    EXPECT(PC_IMPORT_NEMO,
           "{\"a\": {\"num_layers\": 8, \"hidden_size\": 64, \"cuda_graph_scope\": [\"attn\"], "
           "\"cuda_graph_impl\": \"local\"}}",
           "layers: 8 ", "cuda_graph_scope: attn ");
}

static void refuse(pc_import_format format, const char *text, const char *message) {
    pc_error error = {0};
    pc_import_text made = {{.data = NULL}, {.data = NULL}};
    assert_int_equal(pc_import_bytes(format, "ds.json", text, strlen(text), &made, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
    pc_import_text_free(&made);
}

static void test_refused(void **state) {
    static const char *const wrong[][2] = {
        {"{\"zero_optimization\":\n{\"stage\":4}}",
         "ds.json:2: zero_optimization.stage: 4; expected a whole number, 0 to 3"},
        {"{\n\"zero_optimization\":3}", "ds.json:2: zero_optimization: 3; expected a mapping such as {\"stage\": 3}"},
        {"{\"bf16\":true}", "ds.json:1: bf16: true; expected a mapping such as {\"enabled\": true}"},
        {"{\"bf16\":{\"enabled\":true},\n\"fp16\":{\"enabled\":true}}",
         "ds.json:2: fp16.enabled: true beside bf16.enabled; expected one of them"},
        {"{\"bf16\":{\"enabled\":\"x\"}}", "ds.json:1: bf16.enabled: x; expected true or false"},
        {"{\"zero_optimization\":{\"stage\":2,\"offload_optimizer\":{\"device\":\"gpu\"}}}",
         "ds.json:1: zero_optimization.offload_optimizer.device: gpu; expected cpu, nvme or none"},
        {"{\"train_micro_batch_size_per_gpu\":3,\"gradient_accumulation_steps\":7,\n\"train_batch_size\":100}",
         "ds.json:2: train_batch_size: 100; expected a multiple of 21, train_micro_batch_size_per_gpu x "
         "gradient_accumulation_steps (3 x 7)"},
        {"{\"train_micro_batch_size_per_gpu\":3,\"train_batch_size\":100}",
         "ds.json:1: train_batch_size: 100; expected a multiple of train_micro_batch_size_per_gpu, 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refuse(PC_IMPORT_DEEPSPEED, wrong[i][0], wrong[i][1]);
}

/* 128 = 2 x 4 x 16. */
static void test_notes(void **state) {
    (void)state;
    EXPECT(PC_IMPORT_DEEPSPEED,
           "{\"train_micro_batch_size_per_gpu\":2,\"gradient_accumulation_steps\":4,\"train_batch_size\":128,"
           "\"bf16\":{\"enabled\":true},\"fp16\":{\"enabled\":\"auto\"},\"pipeline\":{\"stages\":4},"
           "\"zero_optimization\":{\"stge\":3}}",
           "16 replicas", "(128 = 2 x", "pipeline.stages", "zero_optimization.stge", "precision: bf16");
}

/* Files of one program that are given as another's. */
static void test_sorts(void **state) {
    static const char deepspeed[] = "{\"train_batch_size\":8,\"bf16\":{\"enabled\":true},\"scheduler\":{\"lr\":1}}";
    static const char recipe[] = "{\"model\":{\"num_layers\":8,\"tensor_model_parallel_size\":2}}";
    static const char is_deepspeed[] =
        "ds.json: no argument of Megatron-LM that says anything of time or memory; expected such as num-layers or "
        "tensor-model-parallel-size: it looks like a configuration of DeepSpeed (pipecast import deepspeed reads it)";
    (void)state;
    refuse(PC_IMPORT_NEMO, deepspeed, is_deepspeed);
    refuse(PC_IMPORT_MEGATRON, deepspeed, is_deepspeed);
    refuse(PC_IMPORT_DEEPSPEED, recipe,
           "ds.json: no key of DeepSpeed; expected such as train_batch_size or zero_optimization: it looks like a "
           "recipe of NeMo or arguments of Megatron-LM (pipecast import nemo or megatron reads them)");
    refuse(PC_IMPORT_DEEPSPEED, "{\"a\":1}",
           "ds.json: no key of DeepSpeed; expected such as train_batch_size or zero_optimization");
}

static void test_memory(void **state) {
    (void)state;
    static const char text[] =
        "{\"train_batch_size\":8,\"zero_optimization\":{\"stage\":3},\"odd\":1,\"scheduler\":{\"a\":1}}";
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long i = 0; code == PC_ERROR_NO_MEMORY; i++) {
        pc_error error = {0};
        pc_import_text made = {{.data = NULL}, {.data = NULL}};
        pc_alloc_fail_after(i);
        code = pc_import_bytes(PC_IMPORT_DEEPSPEED, "ds.json", text, strlen(text), &made, &error);
        pc_alloc_fail_after(-1);
        pc_import_text_free(&made);
        assert_true(i < 1000);
    }
    assert_int_equal(code, PC_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deepspeed), cmocka_unit_test(test_recipe), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_notes),     cmocka_unit_test(test_sorts),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
