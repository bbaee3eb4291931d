/* config.json of Hugging Face as a model: its keys by all their names, what architectures have by themselves, what is
 * refused, and, where ../shared is there, published numbers of parameters.
 */
#include "engine/alloc.h"
#include "scenarios/import/hf.h"
#include "scenarios/import/import.h"
#include "scenarios/library.h"
#include "tests/support.h"

#include <math.h>
#include <unistd.h>

static pc_code import(const char *json, pc_imported *made, pc_error *error) {
    pc_source source;
    assert_int_equal(pc_source_from_text("config.json", json, &source, error), PC_OK);
    pc_code code = pc_import_hf(&source, made, error);
    pc_source_free(&source);
    return code;
}

/* "layers: 2, hidden: 64" of what became of a text. */
static void expect(const char *json, const char *const (*wanted)[2], size_t count) {
    pc_error error = {0};
    pc_imported made = {.count = 0};
    if (import(json, &made, &error)) fail_msg("%s", error.message);
    for (size_t i = 0; i < count; i++) {
        char key[64];
        snprintf(key, sizeof key, "model.%s", wanted[i][0]);
        const char *value = pc_imported_get(&made, key);
        if (!wanted[i][1] && value) fail_msg("%s is %s; expected nothing", key, value);
        if (wanted[i][1] && !value) fail_msg("%s is not set; expected %s", key, wanted[i][1]);
        if (wanted[i][1]) assert_string_equal(value, wanted[i][1]);
    }
    pc_imported_free(&made);
}

#define EXPECT(json, ...)                                                                                              \
    do {                                                                                                               \
        static const char *const wanted[][2] = {__VA_ARGS__};                                                          \
        expect(json, wanted, sizeof wanted / sizeof *wanted);                                                          \
    } while (0)

static void refuse(const char *json, const char *message) {
    pc_error error = {0};
    pc_imported made = {.count = 0};
    assert_int_equal(import(json, &made, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
    pc_imported_free(&made);
}

#define SMALL "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":8,\"vocab_size\":1000"
#define LLAMA "{\"model_type\":\"llama\"," SMALL ",\"intermediate_size\":128"

static void test_dense(void **state) {
    (void)state;
    EXPECT(LLAMA ",\"num_key_value_heads\":2,\"tie_word_embeddings\":true,\"torch_dtype\":\"float16\"}",
           {"layers", "4"}, {"hidden", "64"}, {"heads", "8"}, {"kv_heads", "2"}, {"ffn_hidden", "128"},
           {"vocab", "1000"}, {"vocab_multiple", "128"}, {"tied", "true"}, {"mlp", "swiglu"}, {"norm", "rmsnorm"},
           {"positions", "rotary"}, {"precision", "fp16"}, {"dropout", "false"}, {"seq_len", "4096"}, {"bias", "false"},
           {"head_dim", NULL}, {"num_experts", NULL}, {"mtp_num_layers", NULL});
    EXPECT(LLAMA ",\"max_position_embeddings\":2048,\"attention_dropout\":0.1}", {"seq_len", "2048"},
           {"dropout", "true"}, {"tied", "false"});
    EXPECT("{\"model_type\":\"gpt2\",\"n_layer\":4,\"n_embd\":64,\"n_head\":8,\"vocab_size\":1000,\"n_positions\":512,"
           "\"n_inner\":null,\"activation_function\":\"gelu_new\"}",
           {"ffn_hidden", "256"}, {"mlp", "gelu"}, {"positions", "learned"}, {"max_positions", "512"},
           {"seq_len", "512"}, {"bias", "true"}, {"tied", "true"});
    EXPECT("{\"model_type\":\"qwen2\"," SMALL ",\"intermediate_size\":128}", {"qkv_bias", "true"});
    EXPECT("{\"model_type\":\"qwen3\"," SMALL ",\"intermediate_size\":128,\"head_dim\":16}", {"qk_norm", "head"},
           {"head_dim", "16"});
    EXPECT("{\"model_type\":\"gemma2\"," SMALL ",\"intermediate_size\":128,\"sliding_window\":512,"
           "\"hidden_activation\":\"gelu_pytorch_tanh\",\"final_logit_softcapping\":30.0}",
           {"mlp", "geglu"}, {"norm_place", "sandwich"}, {"sliding_window", "512"}, {"sliding_window_pattern", "2"},
           {"final_logit_softcapping", "30"});
    EXPECT("{\"model_type\":\"falcon\",\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":8,"
           "\"vocab_size\":1000,\"multi_query\":true}",
           {"kv_heads", "1"}, {"ffn_hidden", "256"});
}

static void test_windows(void **state) {
    (void)state;
    /* Layers 2 and 4 of 4 see all: every second. */
    EXPECT(LLAMA ",\"sliding_window\":128,\"layer_types\":[\"sliding_attention\",\"full_attention\","
                 "\"sliding_attention\",\"full_attention\"]}",
           {"sliding_window", "128"}, {"sliding_window_pattern", "2"});
    EXPECT(LLAMA ",\"sliding_window\":128,\"layer_types\":[\"full_attention\",\"full_attention\"]}",
           {"sliding_window", NULL});
    EXPECT(LLAMA ",\"sliding_window\":128,\"use_sliding_window\":false}", {"sliding_window", NULL});
    EXPECT(LLAMA ",\"sliding_window\":4096,\"max_position_embeddings\":4096}", {"sliding_window", NULL});
    EXPECT(LLAMA ",\"sliding_window\":null}", {"sliding_window", NULL});
    EXPECT(LLAMA ",\"attention_chunk_size\":64}", {"attention_chunk_size", "64"});
}

#define MOE                                                                                                            \
    "{\"model_type\":\"qwen3_moe\"," SMALL ",\"intermediate_size\":128,\"num_experts\":16,\"num_experts_per_tok\":2"

static void test_experts(void **state) {
    (void)state;
    EXPECT(MOE ",\"moe_intermediate_size\":32,\"decoder_sparse_step\":1,\"mlp_only_layers\":[]}", {"num_experts", "16"},
           {"moe_router_topk", "2"}, {"moe_ffn_hidden_size", "32"}, {"first_k_dense_replace", NULL},
           {"moe_shared_expert_intermediate_size", NULL});
    /* Step 2: layers 2 and 4 of 4 have experts: one dense in front, then every second. */
    EXPECT(MOE ",\"moe_intermediate_size\":32,\"decoder_sparse_step\":2}", {"first_k_dense_replace", "1"},
           {"moe_layer_freq", "2"});
    EXPECT(MOE ",\"moe_intermediate_size\":32,\"n_shared_experts\":3}", {"moe_shared_expert_intermediate_size", "96"});
    EXPECT(MOE ",\"moe_layer_freq\":[0,1,1,1]}", {"first_k_dense_replace", "1"}, {"moe_ffn_hidden_size", "128"});
    EXPECT(
        "{\"model_type\":\"deepseek_v3\"," SMALL ",\"intermediate_size\":128,\"n_routed_experts\":16,"
        "\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,\"n_shared_experts\":1,\"first_k_dense_replace\":1,"
        "\"moe_layer_freq\":1,\"n_group\":4,\"topk_group\":2,\"scoring_func\":\"sigmoid\",\"topk_method\":\"noaux_tc\","
        "\"kv_lora_rank\":16,\"q_lora_rank\":null,\"qk_nope_head_dim\":8,\"qk_rope_head_dim\":4,\"v_head_dim\":8,"
        "\"num_key_value_heads\":8,\"num_nextn_predict_layers\":1}",
        {"kv_lora_rank", "16"}, {"q_lora_rank", NULL}, {"kv_heads", NULL}, {"moe_router_num_groups", "4"},
        {"moe_router_group_topk", "2"}, {"moe_router_score_function", "sigmoid"}, {"moe_router_bias", "true"},
        {"mtp_num_layers", "1"}, {"first_k_dense_replace", "1"});
    EXPECT("{\"model_type\":\"llama4_text\"," SMALL ",\"intermediate_size\":32,\"intermediate_size_mlp\":128,"
           "\"num_local_experts\":16,\"num_experts_per_tok\":1,\"interleave_moe_layer_step\":2}",
           {"ffn_hidden", "128"}, {"moe_ffn_hidden_size", "32"}, {"moe_shared_expert_intermediate_size", "32"});
}

/* Of wrappers the text model; of JSON what libyaml would not take. */
static void test_json(void **state) {
    (void)state;
    EXPECT("{\"model_type\":\"qwen3_vl\",\"tie_word_embeddings\":true,\"vision_config\":{\"depth\":27},\"text_config\":"
           "{\"model_type\":\"qwen3_vl_text\"," SMALL ",\"intermediate_size\":128}}",
           {"qk_norm", "head"}, {"tied", "true"});
    EXPECT("{\t\"pad\" : \"\\ud83d\\ude00 \\\\ud83d\",\r\n\t\"model_type\":\"llama\"," SMALL
           ",\"intermediate_size\":128,\"a\\/b\":1e-3}",
           {"layers", "4"});
    EXPECT("{\"model_type\":\"new\"," SMALL ",\"intermediate_size\":128}", {"mlp", "swiglu"});
}

/* What is left out is said, and said once. */
static void test_notes(void **state) {
    static const char beside[] = "attention and MLP side by side are taken one after the other";
    static const char indexer[] =
        "sparse attention by an indexer (index_topk) is taken as full attention, without the indexer";
    pc_error error = {0};
    pc_imported made = {.count = 0};
    (void)state;
    assert_int_equal(import("{\"model_type\":\"falcon\"," SMALL ",\"parallel_attn\":true}", &made, &error), PC_OK);
    assert_string_equal(made.notes[PC_IMPORT_NOT_MODELLED].data, beside);
    pc_imported_free(&made);
    assert_int_equal(import("{\"model_type\":\"deepseek_v32\"," SMALL ",\"intermediate_size\":128}", &made, &error),
                     PC_OK);
    assert_string_equal(made.notes[PC_IMPORT_NOT_MODELLED].data, indexer);
    pc_imported_free(&made);
    assert_int_equal(import("{\"model_type\":\"opt\"," SMALL ",\"word_embed_proj_dim\":64}", &made, &error), PC_OK);
    pc_imported_free(&made);
}

static void test_refused(void **state) {
    (void)state;
    refuse("{\"architectures\":[\"MambaForCausalLM\"],\"model_type\":\"mamba\",\n\"state_size\":16}",
           "config.json:2: state_size: MambaForCausalLM: layers of a state-space model (Mamba) are not modelled; "
           "expected a decoder of attention with MLPs or experts");
    refuse(LLAMA ",\"layer_types\":[\"linear_attention\"]}",
           "config.json:1: layer_types: llama: layers of linear_attention are not modelled; expected a decoder of "
           "attention with MLPs or experts");
    refuse(
        "{\"model_type\":\"bert\",\"type_vocab_size\":2," SMALL "}",
        "config.json:1: type_vocab_size: bert: an encoder that reads both ways is not modelled; expected a decoder of "
        "attention with MLPs or experts");
    refuse("{\"architectures\":[\"EsmForMaskedLM\"]," SMALL "}",
           "config.json:1: architectures: EsmForMaskedLM: an encoder that reads both ways is not modelled; expected a "
           "decoder of attention with MLPs or experts");
    refuse("{\"model_type\":\"modernbert\"," SMALL "}",
           "config.json:1: model_type: modernbert: an encoder that reads both ways is not modelled; expected a decoder "
           "of attention with MLPs or experts");
    refuse("{\"architectures\":[\"T5ForConditionalGeneration\"],\"model_type\":\"t5\"," SMALL "}",
           "config.json:1: model_type: T5ForConditionalGeneration: an encoder with a decoder, or attention across, is "
           "not modelled; expected a decoder of attention with MLPs or experts");
    refuse("{\"architectures\":[\"LlamaForSequenceClassification\"],\"model_type\":\"llama\"," SMALL "}",
           "config.json:1: architectures: LlamaForSequenceClassification: a head of classes in place of words is not "
           "modelled; expected a decoder of attention with MLPs or experts");
    refuse(
        "{\"architectures\":[\"NemotronHForCausalLM\"]," SMALL ",\n\"hybrid_override_pattern\":\"M-M*\"}",
        "config.json:2: hybrid_override_pattern: NemotronHForCausalLM: layers of a state-space model (Mamba) are not "
        "modelled; expected a decoder of attention with MLPs or experts");
    refuse(
        "{\"architectures\":[\"JambaForCausalLM\"]," SMALL ",\n\"attn_layer_period\":8}",
        "config.json:2: attn_layer_period: JambaForCausalLM: layers of a state-space model (Mamba) are not modelled; "
        "expected a decoder of attention with MLPs or experts");
    refuse("{\"model_type\":\"opt\"," SMALL ",\"word_embed_proj_dim\":32}",
           "config.json:1: word_embed_proj_dim: opt: embeddings of another width than the model's are not modelled; "
           "expected a decoder of attention with MLPs or experts");
    refuse(LLAMA ",\n\"num_key_value_heads\":5}",
           "config.json:2: num_key_value_heads: kv_heads 5 do not divide 8 heads; expected a divisor");
    refuse("{\"model_type\":\"mixtral\"," SMALL ",\"intermediate_size\":128,\"num_local_experts\":8,"
           "\n\"num_experts_per_tok\":9}",
           "config.json:2: num_experts_per_tok: moe_router_topk is 9; expected 1 to the 8 of num_experts");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":4,\"hidden_size\":65,\n\"num_attention_heads\":8,"
           "\"vocab_size\":1000,\"intermediate_size\":128}",
           "config.json:2: num_attention_heads: 8 heads do not divide hidden 65; expected a divisor, or head_dim");
    refuse("{}", "config.json:1: num_hidden_layers: missing; expected it, as a decoder of no architecture has it");
    refuse("[]", "config.json:1: no mapping of keys; expected a config.json of Hugging Face");
    refuse("{\"a\":1,\"a\":2}", "config.json:1: a: twice in one mapping; expected every key once");
    refuse("{\"num_hidden_layers\":-3}",
           "config.json:1: num_hidden_layers: -3; expected a whole number, 1 to 2147483647");
    refuse("{\"num_hidden_layers\":[3]}",
           "config.json:1: num_hidden_layers: a list or mapping; expected a whole number, 1 to 2147483647");
    refuse("{\"num_hidden_layers\":1e3}",
           "config.json:1: num_hidden_layers: 1e3; expected a whole number, 1 to 2147483647");
}

/* The whole text, for every allocation that fails; and a scenario of it that is none but that. */
static void test_memory(void **state) {
    (void)state;
    static const char json[] = LLAMA ",\"sliding_window\":128,\"odd_key\":3,\"quantization_config\":{\"bits\":4}}";
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long i = 0; code == PC_ERROR_NO_MEMORY; i++) {
        pc_error error = {0};
        pc_import_text made = {{.data = NULL}, {.data = NULL}};
        pc_alloc_fail_after(i);
        code = pc_import_bytes(PC_IMPORT_HF, "some/llama/config.json", json, strlen(json), &made, &error);
        pc_alloc_fail_after(-1);
        if (!code) {
            assert_non_null(strstr(made.scenario.data, "scenario: llama\nsetting:\n  model:\n"));
            assert_non_null(strstr(made.notes.data, "odd_key"));
            assert_non_null(strstr(made.notes.data, "quantization_config"));
        }
        pc_import_text_free(&made);
        assert_true(i < 1000);
    }
    assert_int_equal(code, PC_OK);
}

/* ---- published numbers of parameters ---- */

/* Columns file, published_billions and counts: "main" leaves layers of multi-token prediction out. Where basis is
 * "computed", nobody was found who published the number; it is ours, kept against change. */
static const char *source_root(void) {
    const char *root = getenv("PC_SOURCE_ROOT");
    return root ? root : ".";
}

static void check_published(const char *line, long *count) {
    char file[128], counts[16], path[512];
    double published;
    pc_library_model loaded;
    pc_parameters parameters;
    pc_error error = {0};
    assert_int_equal(sscanf(line, "%127[^,],%lf,%15[^,],", file, &published, counts), 3);
    snprintf(path, sizeof path, "%s/../shared/data/imports/hf/%s.json", source_root(), file);
    if (pc_library_load_model(path, &loaded, &error)) fail_msg("%s", error.message);
    assert_string_equal(loaded.model.name, file);
    assert_int_equal(pc_model_parameters(&loaded.model, 1, &parameters, &error), PC_OK);
    double ours = (double)(parameters.total - (strcmp(counts, "main") == 0 ? parameters.mtp : 0)) / 1e9;
    if (fabs(ours / published - 1) > 0.005) fail_msg("%s: %.2f B; published.csv has %.2f B", file, ours, published);
    *count += 1;
}

static void test_published(void **state) {
    (void)state;
    char path[512], line[512];
    long count = 0;
    snprintf(path, sizeof path, "%s/../shared/data/imports/hf", source_root());
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    snprintf(path, sizeof path, "%s/tests/data/imports/published.csv", source_root());
    FILE *table = fopen(path, "r");
    assert_non_null(table);
    assert_non_null(fgets(line, sizeof line, table));
    while (fgets(line, sizeof line, table)) check_published(line, &count);
    fclose(table);
    assert_int_equal(count, 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),  cmocka_unit_test(test_windows),   cmocka_unit_test(test_experts),
        cmocka_unit_test(test_json),   cmocka_unit_test(test_notes),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
