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

static void test_refused(void **state) {
    (void)state;
    pc_error error = {0};
    pc_import_text made = {{.data = NULL}, {.data = NULL}};
    static const char text[] = "{\"zero_optimization\":\n{\"stage\":4}}";
    assert_int_equal(pc_import_bytes(PC_IMPORT_DEEPSPEED, "ds.json", text, strlen(text), &made, &error),
                     PC_ERROR_INPUT);
    assert_string_equal(error.message, "ds.json:2: zero_optimization.stage: 4; expected a whole number, 0 to 3");
    pc_import_text_free(&made);
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
        cmocka_unit_test(test_deepspeed),
        cmocka_unit_test(test_recipe),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
