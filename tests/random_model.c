#include "tests/random_model.h"

pc_model random_gpt(test_random *random) {
    pc_model model = {.name = "gpt",
                      .layers = test_between(random, 1, 120),
                      .heads = 8 * test_between(random, 1, 20),
                      .head_dim = 8 * test_between(random, 1, 20),
                      .vocab = 8 * test_between(random, 1, 20000),
                      .vocab_multiple = 1,
                      .max_positions = 1 << 16,
                      .positions = PC_POSITIONS_LEARNED,
                      .norm = PC_NORM_LAYER,
                      .mlp = PC_MLP_GELU,
                      .attention = PC_ATTENTION_MATERIALISED,
                      .is_tied = true,
                      .has_bias = true,
                      .has_dropout = true};
    model.hidden = model.heads * model.head_dim;
    model.ffn_hidden = 4 * model.hidden;
    model.kv_heads = model.heads;
    return model;
}

static bool coin(test_random *random) {
    return test_between(random, 0, 1);
}

pc_model random_model(test_random *random) {
    static const int64_t groups[] = {1, 2, 4, 8};
    pc_model model = random_gpt(random);
    model.hidden = 8 * test_between(random, 1, 2000);
    model.ffn_hidden = 8 * test_between(random, 1, 5000);
    model.kv_heads = groups[test_between(random, 0, 3)];
    if (coin(random)) model.kv_heads = model.heads;
    model.vocab = test_between(random, 1, 200000);
    model.vocab_multiple = test_between(random, 1, 128);
    model.positions = coin(random) ? PC_POSITIONS_LEARNED : PC_POSITIONS_ROTARY;
    model.norm = coin(random) ? PC_NORM_LAYER : PC_NORM_RMS;
    model.mlp = coin(random) ? PC_MLP_GELU : PC_MLP_SWIGLU;
    model.attention = coin(random) ? PC_ATTENTION_MATERIALISED : PC_ATTENTION_FLASH;
    model.is_tied = coin(random);
    model.has_bias = coin(random);
    model.has_dropout = coin(random);
    return model;
}

pc_cut random_cut(test_random *random, const pc_model *model) {
    pc_error error = {0};
    int tp = 1 << test_between(random, 0, 3);
    pc_cut cut = {.tp = tp,
                  .pp = 1,
                  .dp = 1,
                  .chunks = 1,
                  .sequence_parallel = coin(random),
                  .zero = 1,
                  .microbatch_size = test_between(random, 1, 8),
                  .microbatches = 1,
                  .seq_len = 8 * test_between(random, 1, 1024)};
    if (pc_cut_check(model, &cut, 1, &error)) fail_msg("%s", error.message);
    return cut;
}

/* None, or which keys local layers see. */
static void draw_window(test_random *random, int64_t sequence, pc_model *model) {
    int64_t size = test_between(random, 1, 2 * sequence), kind = test_between(random, 0, 2);
    if (kind == 1) model->sliding_window = size;
    if (kind == 2) model->attention_chunk_size = size;
    if (kind > 0) model->sliding_window_pattern = coin(random) ? 0 : test_between(random, 1, 7);
}

static void draw_documents(test_random *random, int64_t sequence, pc_model *model) {
    int64_t mean = test_between(random, 1, sequence);
    if (coin(random)) return;
    model->document_length = mean;
    if (coin(random)) model->document_length_square = test_between(random, mean * mean, mean * sequence);
}

void random_traits(test_random *random, const pc_cut *cut, pc_model *model) {
    pc_error error = {0};
    model->mlp = (pc_mlp)test_between(random, PC_MLP_GELU, PC_MLP_GEGLU);
    model->norm = (pc_norm)test_between(random, PC_NORM_LAYER, PC_NORM_LAYER_NO_AFFINE);
    model->norm_place = (pc_norm_place)test_between(random, PC_NORM_PRE, PC_NORM_SANDWICH);
    model->qk_norm =
        (pc_qk_norm)test_between(random, PC_QK_NORM_NONE, cut->tp == 1 ? PC_QK_NORM_FULL : PC_QK_NORM_HEAD);
    model->has_qkv_bias = coin(random);
    model->has_norm_bias = coin(random);
    model->attn_logit_softcapping = coin(random) ? 0 : 50;
    model->final_logit_softcapping = coin(random) ? 0 : 30;
    bool has_ring = cut->cp > 1 && cut->cp_comm != PC_CP_ALL_GATHER && cut->cp_comm != PC_CP_A2A;
    if (!has_ring) draw_window(random, cut->seq_len, model);
    draw_documents(random, cut->seq_len, model);
    if (pc_model_check(model, &error)) fail_msg("%s", error.message);
}

static void draw_latent(test_random *random, pc_model *model) {
    model->mla = (pc_mla){.q_lora_rank = coin(random) ? 0 : 8 * test_between(random, 1, 200),
                          .kv_lora_rank = 8 * test_between(random, 1, 100),
                          .qk_nope_head_dim = 8 * test_between(random, 1, 20),
                          .qk_rope_head_dim = 8 * test_between(random, 1, 10),
                          .v_head_dim = 8 * test_between(random, 1, 20)};
    model->head_dim = model->mla.qk_nope_head_dim + model->mla.qk_rope_head_dim;
    model->kv_heads = model->heads;
    model->has_bias = model->has_qkv_bias = false;
    model->qk_norm = PC_QK_NORM_NONE;
}

void random_experts(test_random *random, pc_model *model, pc_cut *cut) {
    pc_error error = {0};
    int64_t experts = 1 << test_between(random, 0, 7);
    model->experts = (pc_experts){.num_experts = experts,
                                  .topk = test_between(random, 1, experts),
                                  .ffn_hidden = 8 * test_between(random, 1, 500),
                                  .shared_ffn_hidden = coin(random) ? 0 : 8 * test_between(random, 1, 500),
                                  .first_dense = coin(random) ? 0 : test_between(random, 0, model->layers),
                                  .layer_freq = test_between(random, 0, 3),
                                  .score = (pc_router_score)test_between(random, 0, PC_ROUTER_SIGMOID),
                                  .has_router_bias = coin(random)};
    model->experts.has_shared_gate = model->experts.shared_ffn_hidden > 0 && coin(random);
    if (coin(random)) model->experts.capacity_factor = 0.25 * (double)test_between(random, 1, 8);
    model->experts.pads_to_capacity = model->experts.capacity_factor > 0 && coin(random);
    model->mtp_layers = coin(random) ? 0 : test_between(random, 1, 3);
    model->has_attention_sinks = coin(random);
    test_random own = {random->state ^ 61}; /* what came later leaves the others' draws as they are */
    model->scales_rotary = coin(&own);
    if (coin(&own)) model->experts.activation_clamp = 7;
    if (coin(random)) draw_latent(random, model);
    if (cut->tp > 1) cut->sequence_parallel = true;
    cut->etp = coin(random) ? 0 : 1;
    cut->dispatcher = (pc_dispatcher)test_between(random, 0, PC_DISPATCHER_HYBRIDEP);
    if (pc_cut_check(model, cut, 1, &error)) fail_msg("%s", error.message);
}

pc_model small_gpt(pc_cut *cut) {
    test_random random = {8};
    pc_model model = random_gpt(&random);
    model.layers = 3;
    model.hidden = 32;
    model.ffn_hidden = 128;
    model.heads = model.kv_heads = 4;
    model.head_dim = 8;
    model.vocab = 100;
    *cut = random_cut(&random, &model);
    cut->tp = 2;
    cut->sequence_parallel = true;
    cut->seq_len = 16;
    cut->microbatch_size = 3;
    return model;
}

pc_model llama3(int billions) {
    pc_model model = {.layers = 32,
                      .hidden = 4096,
                      .ffn_hidden = 14336,
                      .heads = 32,
                      .kv_heads = 8,
                      .head_dim = 128,
                      .vocab = 128256,
                      .vocab_multiple = 1,
                      .positions = PC_POSITIONS_ROTARY,
                      .norm = PC_NORM_RMS,
                      .mlp = PC_MLP_SWIGLU,
                      .attention = PC_ATTENTION_FLASH};
    if (billions == 8) return model;
    bool is_largest = billions == 405;
    model.layers = is_largest ? 126 : 80;
    model.hidden = is_largest ? 16384 : 8192;
    model.ffn_hidden = is_largest ? 53248 : 28672;
    model.heads = is_largest ? 128 : 64;
    return model;
}

pc_part whole_part(const pc_model *model, const pc_cut *cut) {
    return pc_cut_part(model, cut, 1, 0);
}

pc_operation_sums sums_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind,
                          bool has_r) {
    pc_operations operations;
    pc_error error = {0};
    if (pc_pass_operations(model, cut, part, kind, has_r, &operations, &error)) fail_msg("%s", error.message);
    return pc_operations_sum(&operations);
}

void check_wide(wide a, wide b, const char *what, const char *file, int line) {
    if (a == b) return;
    print_error("%s: %.17g and %.17g, %.6g apart\n", what, (double)a, (double)b, (double)(a - b));
    _fail(file, line);
}
