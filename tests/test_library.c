/* Every model and machine of the library: loads, is named as its file, and is what the published formulas say. */
#include "scenarios/library.h"
#include "tests/random_model.h"

static pc_library_model model_of(const char *name) {
    pc_library_model loaded;
    pc_error error = {0};
    if (pc_library_load_model(name, &loaded, &error)) fail_msg("%s", error.message);
    return loaded;
}

static const pc_library_file *models(int *count) {
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MODELS, count);
    assert_true(files && *count >= 25);
    return files;
}

static bool is_gpt(const pc_model *m) {
    return m->positions == PC_POSITIONS_LEARNED && m->norm == PC_NORM_LAYER && m->mlp == PC_MLP_GELU && m->has_bias &&
           m->kv_heads == m->heads && m->ffn_hidden == 4 * m->hidden && m->head_dim * m->heads == m->hidden;
}

/* All others: rotary, with few biases or none, and without dropout. */
static bool is_rotary(const pc_model *m) {
    bool has_bias = m->has_bias && !m->has_attention_sinks; /* GPT-OSS has all */
    return m->positions == PC_POSITIONS_ROTARY && !has_bias && !m->has_dropout && m->max_positions == 0;
}

static wide query_columns(const pc_model *m) {
    return (wide)m->heads * m->head_dim;
}

static wide key_columns(const pc_model *m) {
    return (wide)m->kv_heads * m->head_dim;
}

/* Queries and output; keys and values; the MLP's two or three. */
static wide matrices_of(const pc_model *m) {
    wide of_mlp = m->mlp == PC_MLP_SWIGLU || m->mlp == PC_MLP_GEGLU ? 3 : 2;
    return 2 * m->hidden * (query_columns(m) + key_columns(m)) + of_mlp * m->hidden * m->ffn_hidden;
}

static wide norm_of(const pc_model *m) {
    if (m->norm == PC_NORM_LAYER_NO_AFFINE) return 0;
    return m->norm == PC_NORM_LAYER && m->has_norm_bias ? 2 * m->hidden : m->hidden;
}

/* What is trained on one GPU, one sequence at a time. */
static pc_cut plain_cut(const pc_library_model *loaded) {
    return (pc_cut){.tp = 1,
                    .pp = 1,
                    .dp = 1,
                    .chunks = 1,
                    .microbatch_size = 1,
                    .microbatches = 1,
                    .seq_len = loaded->seq_len,
                    .layout = PC_CUT_EVEN};
}

static void test_files(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = models(&count);
    for (int i = 0; i < count; i++) {
        pc_library_model loaded = model_of(files[i].name);
        assert_string_equal(loaded.model.name, files[i].name);
        assert_true(loaded.title[0] && strstr(files[i].text, "\nsource: "));
        assert_true(loaded.seq_len > 0 && loaded.global_batch != 0);
        if (!is_gpt(&loaded.model) && !is_rotary(&loaded.model)) fail_msg("%s: neither GPT nor rotary", files[i].name);
    }
}

/* GPT: Narayanan et al. 2021, equation 2, 12Lh^2 (1 + 13/(12h)) + (V+s)h, and the final norm's 2h; untied another Vh.
 * Others: beside the matrices two norms a layer, or four; scales of the norms of queries and keys, of a head or of all
 * columns; biases of queries, keys and values. V tokens of h go in and, if that is another matrix, out.
 */
static void test_parameters(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = models(&count);
    for (int i = 0; i < count; i++) {
        pc_library_model loaded = model_of(files[i].name);
        const pc_model *m = &loaded.model;
        pc_parameters x;
        pc_error error = {0};
        assert_int_equal(pc_model_parameters(m, 1, &x, &error), PC_OK);
        wide layers = m->layers, h = m->hidden, tokens = pc_model_padded_vocab(m, 1), of_layer = matrices_of(m);
        if (pc_model_has_experts(m)) continue; /* below, by what is published */
        of_layer += (m->norm_place == PC_NORM_SANDWICH ? 4 : 2) * norm_of(m);
        if (m->qk_norm == PC_QK_NORM_HEAD) of_layer += 2 * m->head_dim;
        if (m->qk_norm == PC_QK_NORM_FULL) of_layer += query_columns(m) + key_columns(m);
        if (m->has_qkv_bias) of_layer += query_columns(m) + 2 * key_columns(m);
        wide head = m->is_tied ? 0 : tokens * h;
        wide gpt = 12 * layers * h * h + 13 * layers * h + (tokens + m->max_positions) * h + 2 * h + head;
        assert_wide_equal(x.total, is_gpt(m) ? gpt : layers * of_layer + tokens * h + head + norm_of(m));
    }
}

static const struct {
    const char *name;
    double billions, within;
} sizes[] = {
    {"gpt3-1.3b", 1.3, 0.02},
    {"gpt3-2.7b", 2.7, 0.02},
    {"gpt3-6.7b", 6.7, 0.02},
    {"gpt3-13b", 13, 0.02},
    {"gpt3-175b", 175, 0.01},
    {"mt-nlg-530b", 530, 0.001},
    {"megatron-1.7b", 1.7, 0.03},
    {"megatron-3.6b", 3.6, 0.02},
    {"megatron-7.5b", 7.5, 0.01},
    {"megatron-18.4b", 18.4, 0.01},
    {"megatron-39.1b", 39.1, 0.001},
    {"megatron-76.1b", 76.1, 0.001},
    {"megatron-145.6b", 145.6, 0.001},
    {"megatron-310.1b", 310.1, 0.001},
    {"megatron-529.6b", 529.6, 0.001},
    {"megatron-1t", 1008, 0.001},
    {"korthikanti-22b", 22, 0.01},
    {"korthikanti-175b", 175, 0.01},
    {"cm-9.6b", 9.6, 0.02},
    {"cm-21b", 21, 0.02},
    {"cm-38.5b", 38.5, 0.02},
    {"cm-98.5b", 98.5, 0.02},
    {"mpt-125m", 0.125311488, 0},
    {"mpt-350m", 0.355985408, 0},
    {"mpt-760m", 0.760470528, 0},
    {"mpt-1b", 1.315950592, 0},
    {"mpt-3b", 2.651837440, 0},
    {"mpt-7b", 6.658859008, 0},
    {"mpt-13b", 12.853954560, 0},
    {"mpt-30b", 29.975214080, 0},
    {"mpt-70b", 64.862437376, 0},
    {"internlm-7b", 7, 0.05},
    {"internlm-20b", 20, 0.01},
    {"llama2-7b", 6.738415616, 0},
    {"llama2-13b", 13.015864320, 0},
    {"llama2-70b", 68.976648192, 0},
    {"nemo-gpt3-5b", 5, 0.04},
    {"nemo-gpt3-20b", 20, 0.02},
    {"llama3.1-8b", 8.030261248, 0},
    {"llama3.1-70b", 70.553706496, 0},
    {"llama3.1-405b", 405.8533888, 0},
    {"llama3.3-70b", 70.553706496, 0},
    {"llama3.2-1b", 1.2358144, 0},
    {"llama3.2-3b", 3.212749824, 0},
    {"qwen2.5-0.5b", 0.494032768, 0},
    {"qwen2.5-1.5b", 1.543714304, 0},
    {"qwen2.5-3b", 3.085938688, 0},
    {"qwen2.5-7b", 7.615616512, 0},
    {"qwen2.5-14b", 14.770033664, 0},
    {"qwen2.5-32b", 32.763876352, 0},
    {"qwen2.5-72b", 72.706203648, 0},
    {"qwen3-0.6b", 0.59604992, 0},
    {"qwen3-1.7b", 1.720574976, 0},
    {"qwen3-4b", 4.022468096, 0},
    {"qwen3-8b", 8.19073536, 0},
    {"qwen3-14b", 14.7683072, 0},
    {"qwen3-32b", 32.762123264, 0},
    {"nemotron4-15b", 15, 0.05},
    {"nemotron3-8b", 8.5, 0.01},
    {"nemotron3-22b", 22, 0.05},
    {"nemotron4-340b", 340, 0.05},
    {"gemma2-2b", 2.614341888, 0},
    {"gemma2-9b", 9.241705984, 0},
    {"gemma2-27b", 27.22712832, 0},
    {"gemma3-1b", 0.999885952, 0},
    {"gemma3-4b", 3.880263168, 0},
    {"gemma3-12b", 11.766034176, 0},
    {"gemma3-27b", 27.009346304, 0},
    {"mistral-7b", 7.241732096, 0},
    {"mistral-nemo-12b", 12.2477824, 0},
    {"mistral-small-24b", 23.5724032, 0},
    {"olmo-1b", 1.176764416, 0},
    {"olmo-7b", 6.888095744, 0},
    {"olmo2-1b", 1.484916736, 0},
    {"olmo2-7b", 7.298617344, 0},
    {"olmo2-13b", 13.7161984, 0},
    {"olmo2-32b", 32.234279936, 0},
    {"phi3-mini", 3.821079552, 0},
    {"phi3-medium", 13.96023808, 0},
    {"phi4", 14.6595072, 0},
    {"yi-6b", 6.06103552, 0},
    {"yi-34b", 34.388917248, 0},
    {"llama3-8b", 8.030261248, 0},
    {"llama3-70b", 70.553706496, 0},
    {"llama3-405b", 405.8533888, 0},
    {"mixtral-8x7b", 46.702792704, 0},
    {"mixtral-8x22b", 140.620634112, 0},
    {"deepseek-v2", 235.74143488, 0},
    {"deepseek-v2-lite", 15.706484224, 0},
    {"deepseek-v3", 671.0264192, 0},
    {"qwen3-30b-a3b", 30.532122624, 0},
    {"qwen3-235b-a22b", 235.09363456, 0},
    {"gpt-oss-20b", 20.914757184, 0},
    {"gpt-oss-120b", 116.829156672, 0},
    {"llama4-scout", 109, 0.02},
    {"llama4-maverick", 400, 0.01},
    {"kimi-k2", 1026.408232448, 0},
    {"glm-4.5", 355, 0.01},
    {"glm-4.5-air", 106, 0.01},
    {"moonlight-16b-a3b", 15.96, 0.001},
    {"grok-1", 314, 0.01},
    {"dbrx", 131.59652352, 0},
};

/* As the papers call them: the number in a model's name, in billions, where some count a table once that stands twice.
 * Exact ones are those of the published weights, as huggingface.co shows them beside each model: total parameters of
 * its safetensors files; of Gemma 3 from 4B on, less those of images: 416,866,032 of the vision tower, and 1,152 (h +
 * 1) between both. Of MPT it is what MosaicML prints beside its measurements, at 2,048 tokens. */
static void test_names_say_the_size(void **state) {
    (void)state;
    int count;
    models(&count);
    assert_int_equal(count, sizeof sizes / sizeof sizes[0]);
    for (int i = 0; i < count; i++) {
        pc_library_model loaded = model_of(sizes[i].name);
        pc_parameters x;
        pc_error error = {0};
        assert_int_equal(pc_model_parameters(&loaded.model, 1, &x, &error), PC_OK);
        double off = (double)(x.total - x.mtp) / 1e9 / sizes[i].billions - 1;
        if (off < 0) off = -off;
        if (off > sizes[i].within + 1e-12) fail_msg("%s has %g parameters", sizes[i].name, (double)x.total);
    }
}

/* Parameters that a token goes through, in billions, as the reports say them; beside it what of embedding and head
 * those leave out: nothing, the embedding, or both. DeepSeek-V3's of README_WEIGHTS.md, with its layer of multi-token
 * prediction: 11.5 without the embedding and head that it shares. Kimi K2's report has 1.04 T for what the weights
 * count as 1.026; xAI says that a quarter of Grok-1's weights are active on a token. */
static const struct {
    const char *name;
    double active, within, mtp;
    int without;
} active[] = {{"mixtral-8x7b", 12.9, 0.003, 0, 0},
              {"mixtral-8x22b", 39, 0.005, 0, 0},
              {"deepseek-v2", 21, 0.02, 0, 0},
              {"deepseek-v2-lite", 2.4, 0.025, 0, 1},
              {"deepseek-v3", 36.7, 0.003, 11.5, 1},
              {"qwen3-30b-a3b", 3.3, 0.02, 0, 0},
              {"qwen3-235b-a22b", 22, 0.01, 0, 0},
              {"gpt-oss-20b", 3.61, 0.001, 0, 1},
              {"gpt-oss-120b", 5.13, 0.001, 0, 1},
              {"llama4-scout", 17, 0.015, 0, 0},
              {"llama4-maverick", 17, 0.015, 0, 0},
              {"kimi-k2", 32.6, 0.01, 0, 0},
              {"glm-4.5", 32, 0.005, 0, 2},
              {"glm-4.5-air", 12, 0.02, 0, 2},
              {"moonlight-16b-a3b", 2.24, 0.003, 0, 2},
              {"grok-1", 78.5, 0.07, 0, 0},
              {"dbrx", 36, 0.015, 0, 0}};

static bool is_near(double number, double expected, double within) {
    return number >= expected * (1 - within) && number <= expected * (1 + within);
}

static void test_active_parameters(void **state) {
    (void)state;
    int count, with_experts = 0;
    const pc_library_file *files = models(&count);
    for (int i = 0; i < count; i++) with_experts += strstr(files[i].text, "\nnum_experts: ") != NULL;
    assert_int_equal(with_experts, sizeof active / sizeof active[0]);
    for (size_t i = 0; i < sizeof active / sizeof active[0]; i++) {
        pc_library_model loaded = model_of(active[i].name);
        pc_parameters x;
        pc_error error = {0};
        assert_int_equal(pc_model_parameters(&loaded.model, 1, &x, &error), PC_OK);
        double found = (double)(x.active - active[i].without * x.embedding) / 1e9;
        if (!is_near(found, active[i].active, active[i].within)) fail_msg("%s: %g active", active[i].name, found);
        if (active[i].mtp > 0) assert_true(is_near((double)x.mtp / 1e9, active[i].mtp, 0.01));
    }
}

/* GPT: Narayanan et al. 2021, equation 3: 72sLh^2 (1 + s/(6h) + V/(12Lh)) FLOPs a sequence, 96sLh^2 (1 + s/(6h) +
 * V/(16Lh)) where all is recomputed. Others: six FLOPs a token and element of a matrix, and 12sk a column of the
 * queries and layer of attention, whose queries see k keys: s, or a window. Hardware FLOPs of flash attention are more:
 * it recomputes the scores, 2sk. */
static void test_flops(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = models(&count);
    for (int i = 0; i < count; i++) {
        pc_library_model loaded = model_of(files[i].name);
        const pc_model *m = &loaded.model;
        pc_cut cut = plain_cut(&loaded);
        pc_part part = pc_cut_part(m, &cut, 1, 0);
        wide s = cut.seq_len, layers = m->layers, h = m->hidden, tokens = pc_model_padded_vocab(m, 1);
        if (pc_model_has_experts(m)) continue; /* test_experts.c */
        wide all = m->sliding_window == 0           ? layers
                   : m->sliding_window_pattern == 0 ? 0
                                                    : layers / m->sliding_window_pattern;
        wide window = m->sliding_window > 0 && m->sliding_window < s ? m->sliding_window : s;
        wide keys = all * s + (layers - all) * window;
        wide attention = 12 * s * keys * query_columns(m), head = 6 * s * h * tokens, matrices = matrices_of(m);
        wide expected = 6 * s * layers * matrices + attention + head;
        if (is_gpt(m)) assert_wide_equal(expected, 72 * s * layers * h * h + attention + head);
        wide again = m->attention == PC_ATTENTION_FLASH ? attention / 6 : 0;
        pc_operation_sums f = sums_of(m, &cut, &part, PC_PASS_F, false);
        pc_operation_sums bw = sums_of(m, &cut, &part, PC_PASS_BW, false);
        assert_wide_equal((wide)f.model_flops + bw.model_flops, expected);
        assert_wide_equal((wide)f.flops + bw.flops, expected + again);
        double closed = pc_model_flops_per_sequence(m, 1, cut.seq_len);
        assert_true(closed > (double)expected * (1 - 1e-14) && closed < (double)expected * (1 + 1e-14));
        part.recompute = PC_RECOMPUTE_FULL;
        bw = sums_of(m, &cut, &part, PC_PASS_BW, false);
        assert_wide_equal((wide)f.flops + bw.flops, expected + again + 2 * s * layers * matrices + attention / 3);
        assert_wide_equal((wide)f.model_flops + bw.model_flops, expected);
    }
}

/* GPT: Korthikanti et al. 2022, table 2: 34sbh + 5as^2b bytes a layer, flash without the second, 2sbh where all is
 * recomputed. */
static void test_activations(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = models(&count);
    for (int i = 0; i < count; i++) {
        pc_library_model loaded = model_of(files[i].name);
        const pc_model *m = &loaded.model;
        pc_cut cut = plain_cut(&loaded);
        pc_part part = {.layers = 1};
        pc_part_activation x;
        pc_error error = {0};
        wide sh = (wide)cut.seq_len * m->hidden;
        wide scores = m->attention == PC_ATTENTION_FLASH ? 0 : (wide)5 * m->heads * cut.seq_len * cut.seq_len;
        if (pc_model_has_experts(m)) part.expert_layers = 1;
        assert_int_equal(pc_part_activations(m, &cut, &part, (pc_pass_forms){.has_r = false}, &x, &error), PC_OK);
        /* Of these, two masks of dropout of a byte each. */
        if (is_gpt(m)) assert_wide_equal(x.taken, (m->has_dropout ? 34 : 32) * sh + scores);
        part.recompute = PC_RECOMPUTE_FULL;
        assert_int_equal(pc_part_activations(m, &cut, &part, (pc_pass_forms){.has_r = false}, &x, &error), PC_OK);
        assert_wide_equal(x.taken, 2 * sh);
    }
}

/* A step of a collective between nodes is no faster than inside, nor a NIC faster than NVLink. */
static void test_machines(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MACHINES, &count);
    assert_true(files && count >= 11);
    for (int i = 0; i < count; i++) {
        pc_library_machine loaded;
        pc_error error = {0};
        if (pc_library_load_machine(files[i].name, &loaded, &error)) fail_msg("%s", error.message);
        const pc_machine *m = &loaded.machine;
        assert_string_equal(m->name, files[i].name);
        assert_true(loaded.title[0] && strstr(files[i].text, "\nsource: "));
        assert_int_equal(pc_machine_check(m, &error), PC_OK);
        assert_true(m->domain.latency_s <= m->network.latency_s);
        double nics = m->nics_per_node * m->network.bandwidth_bytes_per_s;
        assert_true(nics <= m->gpus_per_node * m->domain.bandwidth_bytes_per_s);
        assert_true(m->gpu.estimated_error >= 0.03 && m->gpu.gemm_efficiency < 0.85);
    }
}

/* Each GPU's file names its source and that of its profile, and some machine uses it. */
static void test_gpus(void **state) {
    (void)state;
    int count, machines;
    const pc_library_file *gpus = pc_library_files(PC_LIBRARY_GPUS, &count);
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MACHINES, &machines);
    assert_true(count >= 8);
    for (int i = 0; i < count; i++) {
        char line[300];
        int users = 0;
        snprintf(line, sizeof line, "\ngpu: %s\n", gpus[i].name);
        for (int k = 0; k < machines; k++) users += strstr(files[k].text, line) != NULL;
        if (!users) fail_msg("%s: no machine has it", gpus[i].name);
        assert_true(strstr(gpus[i].text, "\nsource: ") && strstr(gpus[i].text, "\n  source: "));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_names_say_the_size),
        cmocka_unit_test(test_active_parameters),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
