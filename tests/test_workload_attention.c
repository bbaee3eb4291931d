/* What layers have beside GPT's and Llama's: windows, chunks, documents, norms of queries and keys and behind halves,
 * activations, biases and soft caps. Numbers worked out by hand, and sums over random models. */
#include "models/workload/attention.h"
#include "tests/random_model.h"

#define LENGTH(list) ((int)(sizeof(list) / sizeof *(list)))

/* h = 32 in 4 heads of 8, 2 of keys and values, f = 64; s = 16, b = 3: 48 tokens on one rank. */
static pc_model small(pc_cut *cut) {
    pc_model model = small_gpt(cut);
    model.has_bias = model.has_dropout = cut->sequence_parallel = false;
    model.positions = PC_POSITIONS_ROTARY;
    model.norm = PC_NORM_RMS;
    model.mlp = PC_MLP_SWIGLU;
    model.attention = PC_ATTENTION_FLASH;
    model.kv_heads = 2;
    model.ffn_hidden = 64;
    cut->tp = 1;
    return model;
}

/* ---- which keys a query sees ---- */

static void check_sight(const pc_model *model, int64_t sequence, bool is_local, int64_t length, int64_t window) {
    pc_sight sight = pc_model_sight(model, sequence, is_local);
    assert_int_equal(sight.length, length);
    assert_int_equal(sight.window, window);
}

/* Documents of 4 tokens, half of them 2 and half 6 long: (4 + 36) / 2 = 20, and 20 / 4 = 5. Chunks of 6 in 16: 6, 6 and
 * 4, whose squares are 88, and 88 / 16 = 5.5, to whole tokens 6. */
static void test_sights(void **state) {
    (void)state;
    pc_model none = {.layers = 12}, window = {.layers = 12, .sliding_window = 5}, chunk = {.attention_chunk_size = 6},
             packed = {.document_length = 4}, mixed = {.document_length = 4, .document_length_square = 20};
    check_sight(&none, 16, true, 16, 0);
    check_sight(&window, 16, true, 16, 5);
    check_sight(&window, 16, false, 16, 0);
    check_sight(&window, 5, true, 5, 0);
    check_sight(&chunk, 16, true, 6, 0);
    check_sight(&chunk, 6, true, 6, 0);
    check_sight(&packed, 16, false, 4, 0);
    check_sight(&mixed, 16, false, 5, 0);
    mixed.sliding_window = 3;
    check_sight(&mixed, 16, true, 5, 3);
    assert_false(pc_model_is_mixed(&window, 5));
    assert_true(pc_model_is_mixed(&window, 6));
}

/* Every sixth layer sees all: of 12 the sixth and the twelfth; of layers 4 to 6, from 0, number 5. */
static void test_local_layers(void **state) {
    (void)state;
    pc_model model = {.layers = 12, .sliding_window = 5, .sliding_window_pattern = 6};
    assert_int_equal(pc_model_local_layers(&model, 0, 12), 10);
    assert_int_equal(pc_model_local_layers(&model, 0, 5), 5);
    assert_int_equal(pc_model_local_layers(&model, 4, 3), 2);
    assert_int_equal(pc_model_local_layers(&model, 6, 6), 5);
    model.sliding_window_pattern = 0;
    assert_int_equal(pc_model_local_layers(&model, 4, 3), 3);
    model.sliding_window = 0;
    assert_int_equal(pc_model_local_layers(&model, 0, 12), 0);
}

/* Over any parts, as many as in the model. */
static void test_parts_have_them_all(void **state) {
    (void)state;
    test_random random = {41};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_traits(&random, &cut, &model);
        int parts = (int)test_between(&random, 2, 8);
        int64_t sum = 0;
        cut.layout = i % 2 ? PC_CUT_ENDS : PC_CUT_EVEN;
        model.layers = parts * test_between(&random, 2, 20) - (i % 2 ? 2 : 0);
        for (int p = 0; p < parts; p++) sum += pc_cut_part(&model, &cut, parts, p).local_layers;
        bool is_mixed = pc_model_is_mixed(&model, cut.seq_len);
        assert_int_equal(sum, is_mixed ? pc_model_local_layers(&model, 0, model.layers) : 0);
    }
}

/* ---- the kernels of a layer ---- */

typedef struct expected {
    const char *name;
    int64_t bytes, repeat;
} expected;

static void check_pass(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind,
                       const expected *list, int count) {
    pc_operations found;
    pc_error error = {0};
    if (pc_pass_operations(model, cut, part, kind, false, &found, &error)) fail_msg("%s", error.message);
    for (int i = 0; i < count && i < found.count; i++) {
        assert_string_equal(found.list[i].name, list[i].name);
        if (found.list[i].bytes != list[i].bytes || found.list[i].repeat != list[i].repeat)
            fail_msg("%s: %lld bytes, %lld times", list[i].name, (long long)found.list[i].bytes,
                     (long long)found.list[i].repeat);
    }
    assert_int_equal(found.count, count);
}

/* Products: 2 bytes of inputs, weights and outputs. Norms: 4 bytes an element, and 10 back, over 48 x 32 numbers, or of
 * queries and keys over 48 x (32 + 16). Of 5 layers two see all. */
static void test_gemma_layer(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small(&cut);
    const pc_part part = {.layers = 5, .local_layers = 3};
    enum { ROWS = 48 * 32, QK = 48 * 48, FLASH = 2 * 48 * (2 * 32 + 2 * 16) };
    const expected forward[] = {{"norm", 4 * ROWS, 5},
                                {"qkv", 2 * (48 * 32 + 32 * 64 + 48 * 64), 5},
                                {"qk_norm", 4 * QK, 5},
                                {"rotary", 4 * QK, 5},
                                {"attention", FLASH, 3},
                                {"attention", FLASH, 2},
                                {"attention_output", 2 * (48 * 32 + 32 * 32 + 48 * 32), 5},
                                {"post_norm", 4 * ROWS, 5},
                                {"residual", 6 * ROWS, 5},
                                {"norm", 4 * ROWS, 5},
                                {"mlp_up", 2 * (48 * 32 + 32 * 128 + 48 * 128), 5},
                                {"activation", 2 * 48 * (128 + 64), 5},
                                {"mlp_down", 2 * (48 * 64 + 64 * 32 + 48 * 32), 5},
                                {"post_norm", 4 * ROWS, 5},
                                {"residual", 6 * ROWS, 5}};
    const expected backward[] = {{"post_norm", 10 * ROWS, 5},
                                 {"mlp_down", 2 * (48 * 32 + 64 * 32 + 48 * 64), 5},
                                 {"activation", 2 * 48 * (64 + 2 * 128), 5},
                                 {"mlp_up", 2 * (48 * 32 + 32 * 128 + 48 * 128), 5},
                                 {"norm", 10 * ROWS, 5},
                                 {"residual_sum", 6 * ROWS, 5},
                                 {"post_norm", 10 * ROWS, 5},
                                 {"attention_output", 2 * (48 * 32 + 32 * 32 + 48 * 32), 5},
                                 {"attention", 2 * FLASH, 3},
                                 {"attention", 2 * FLASH, 2},
                                 {"rotary", 4 * QK, 5},
                                 {"qk_norm", 10 * QK, 5},
                                 {"qkv_order", 4 * 48 * 64, 5},
                                 {"qkv", 2 * (48 * 32 + 32 * 64 + 48 * 64), 5},
                                 {"norm", 10 * ROWS, 5},
                                 {"residual_sum", 6 * ROWS, 5}};
    model.mlp = PC_MLP_GEGLU;
    model.norm_place = PC_NORM_SANDWICH;
    model.qk_norm = PC_QK_NORM_HEAD;
    model.sliding_window = 4;
    model.sliding_window_pattern = 2;
    check_pass(&model, &cut, &part, PC_PASS_F, forward, LENGTH(forward));
    check_pass(&model, &cut, &part, PC_PASS_B, backward, LENGTH(backward));
}

/* Behind halves only: a norm fewer in front, and as many in all. */
static void test_reordered_norms(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small(&cut), pre = model;
    const pc_part part = {.layers = 2};
    model.norm_place = PC_NORM_REORDERED;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        pc_operation_sums x = sums_of(&model, &cut, &part, (pc_pass_kind)kind, false),
                          y = sums_of(&pre, &cut, &part, (pc_pass_kind)kind, false);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static pc_operation attention_of(const pc_model *model, const pc_cut *cut, pc_pass_kind kind, int64_t local) {
    const pc_part part = {.layers = 1, .local_layers = local};
    pc_operations list;
    pc_error error = {0};
    if (pc_pass_operations(model, cut, &part, kind, false, &list, &error)) fail_msg("%s", error.message);
    for (int i = 0; i < list.count; i++)
        if (list.list[i].kind == PC_OPERATION_ATTENTION) return list.list[i];
    fail_msg("no attention");
    return list.list[0];
}

/* 12 heads and sequences, 16 queries, 4 FLOPs a key and column of 8, 10 in B of which 8 count: of 16 keys, of 5, and of
 * documents that are 4 or 5 long; 16 / 5 of these a sequence make 38.4, which is rounded up. */
static void test_flops_of_windows_and_documents(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small(&cut);
    model.sliding_window = 5;
    pc_operation all = attention_of(&model, &cut, PC_PASS_F, 0), some = attention_of(&model, &cut, PC_PASS_F, 1),
                 back = attention_of(&model, &cut, PC_PASS_B, 1);
    assert_int_equal(all.flops, 12 * 16 * 16 * 4 * 8);
    assert_int_equal(some.flops, 12 * 16 * 5 * 4 * 8);
    assert_int_equal(back.flops, 12 * 16 * 5 * 10 * 8);
    assert_int_equal(back.model_flops, 12 * 16 * 5 * 8 * 8);
    assert_true(all.window == 0 && some.window == 5 && some.m == 16 && some.n == 16 && some.batch == 12);
    model.sliding_window = 0;
    model.document_length = 4;
    pc_operation packed = attention_of(&model, &cut, PC_PASS_F, 0);
    assert_true(packed.batch == 48 && packed.m == 4 && packed.n == 4 && packed.flops == 12 * 16 * 4 * 4 * 8);
    model.document_length_square = 20;
    packed = attention_of(&model, &cut, PC_PASS_F, 0);
    assert_true(packed.batch == 39 && packed.m == 5 && packed.n == 5 && packed.flops == 12 * 16 * 5 * 4 * 8);
}

/* Materialised, all scores are computed whatever counts. */
static void test_materialised(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small(&cut), plain;
    const pc_part part = {.layers = 4, .local_layers = 2};
    model.attention = PC_ATTENTION_MATERIALISED;
    plain = model;
    model.sliding_window = 4;
    pc_operation_sums x = sums_of(&model, &cut, &part, PC_PASS_F, false),
                      y = sums_of(&plain, &cut, &part, PC_PASS_F, false);
    assert_int_equal(x.flops, y.flops);
    assert_int_equal(x.bytes, y.bytes);
    assert_int_equal(y.model_flops - x.model_flops, 2 * 12 * 16 * (16 - 4) * 4 * 8);
    model.attn_logit_softcapping = 50; /* 4 bytes a score; back 6 */
    assert_int_equal(sums_of(&model, &cut, &part, PC_PASS_F, false).bytes - x.bytes, 4 * 12 * 16 * 16 * 4);
    pc_operation_sums b = sums_of(&plain, &cut, &part, PC_PASS_B, false);
    assert_int_equal(sums_of(&model, &cut, &part, PC_PASS_B, false).bytes - b.bytes, 4 * 12 * 16 * 16 * 6);
}

/* Of every model, all passes' model FLOPs are what the closed form says: six a token and element of a matrix, and
 * twelve a query, key that counts and column. */
static void test_closed_form(void **state) {
    (void)state;
    test_random random = {42};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_traits(&random, &cut, &model);
        pc_part part = whole_part(&model, &cut);
        pc_operation_sums f = sums_of(&model, &cut, &part, PC_PASS_F, false),
                          bw = sums_of(&model, &cut, &part, PC_PASS_BW, false);
        double found = pc_model_flops_per_sequence(&model, cut.tp, cut.seq_len) * (double)cut.microbatch_size;
        double sum = ((double)f.model_flops + (double)bw.model_flops) * cut.tp;
        assert_true(found / sum - 1 < 1e-12 && found / sum - 1 > -1e-12);
    }
}

/* ---- a policy of recomputation ---- */

static int count_of(const pc_model *model, const pc_cut *cut, pc_recompute recompute, const char *name) {
    const pc_part part = {.layers = 1, .recompute = recompute};
    pc_operations list;
    int count = 0;
    assert_int_equal(pc_pass_operations(model, cut, &part, PC_PASS_R, true, &list, NULL), PC_OK);
    for (int i = 0; i < list.count; i++) count += strcmp(list.list[i].name, name) == 0;
    return count;
}

/* MINIMAL keeps all products, queries and keys as rotated: their norm needs them as the product left them. A norm
 * behind the MLP reads the last product, which SAVE_QKV_PROJ leaves out. */
static void test_policies(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small(&cut);
    assert_int_equal(count_of(&model, &cut, PC_RECOMPUTE_MINIMAL, "qkv"), 0);
    assert_int_equal(count_of(&model, &cut, PC_RECOMPUTE_SAVE_QKV_PROJ, "mlp_down"), 0);
    model.qk_norm = PC_QK_NORM_HEAD;
    model.norm_place = PC_NORM_SANDWICH;
    assert_int_equal(count_of(&model, &cut, PC_RECOMPUTE_MINIMAL, "qkv"), 1);
    assert_int_equal(count_of(&model, &cut, PC_RECOMPUTE_MINIMAL, "qk_norm"), 1);
    assert_int_equal(count_of(&model, &cut, PC_RECOMPUTE_MINIMAL, "mlp_down"), 0);
    assert_int_equal(count_of(&model, &cut, PC_RECOMPUTE_MINIMAL, "post_norm"), 2);
    assert_int_equal(count_of(&model, &cut, PC_RECOMPUTE_SAVE_QKV_PROJ, "mlp_down"), 1);
}

/* torch's list has products without a bias: if only those of queries, keys and values have one, of output, gate, up and
 * down the first and the third. */
static void test_op_policy(void **state) {
    (void)state;
    pc_model model = {.mlp = PC_MLP_SWIGLU, .has_qkv_bias = true, .attention = PC_ATTENTION_FLASH};
    int kept = PC_KEEPS_CONTEXT | PC_KEEPS_REDUCED;
    assert_int_equal(pc_recompute_kept(&model, PC_RECOMPUTE_OP), kept | PC_KEEPS_OUTPUT | PC_KEEPS_UP);
    model.mlp = PC_MLP_SQUARED_RELU;
    assert_int_equal(pc_recompute_kept(&model, PC_RECOMPUTE_OP), kept | PC_KEEPS_OUTPUT | PC_KEEPS_DOWN);
}

/* ---- memory ---- */

static int64_t taken_by(const pc_model *model, const pc_cut *cut, bool has_head) {
    const pc_part part = {.layers = has_head ? 0 : 1, .has_head = has_head};
    pc_part_activation x;
    pc_error error = {0};
    if (pc_part_activations(model, cut, &part, (pc_pass_forms){0}, &x, &error)) fail_msg("%s", error.message);
    return x.taken;
}

/* Norms keep their inputs, 2 bytes a number: of queries and keys 48 x 48, behind two halves 2 x 48 x 32; if there are
 * none in front, the matrices' inputs are the layer's own. Capped scores and logits stand beside what they become. */
static void test_memory(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small(&cut), other = model;
    int64_t plain = taken_by(&model, &cut, false);
    other.qk_norm = PC_QK_NORM_HEAD;
    assert_int_equal(taken_by(&other, &cut, false) - plain, 2 * 48 * 48);
    other = model;
    other.norm_place = PC_NORM_SANDWICH;
    assert_int_equal(taken_by(&other, &cut, false) - plain, 2 * 2 * 48 * 32);
    other.norm_place = PC_NORM_REORDERED;
    assert_int_equal(taken_by(&other, &cut, false), plain);
    other = model;
    other.attn_logit_softcapping = 50;
    assert_int_equal(taken_by(&other, &cut, false), plain);
    model.attention = other.attention = PC_ATTENTION_MATERIALISED;
    assert_int_equal(taken_by(&other, &cut, false) - taken_by(&model, &cut, false), 2 * 12 * 16 * 16);
    other.final_logit_softcapping = 30;
    assert_int_equal(taken_by(&other, &cut, true) - taken_by(&model, &cut, true), 2 * 48 * 100);
    cut.cross_entropy = PC_CROSS_ENTROPY_COMPILED;
    assert_int_equal(taken_by(&other, &cut, true), taken_by(&model, &cut, true));
}

/* ---- refusals ---- */

static void check_refused(const pc_model *model, const pc_cut *cut, const char *text) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, text)) fail_msg("%s", error.message);
}

static void test_refusals(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small(&cut), other = model;
    other.sliding_window = other.attention_chunk_size = 4;
    check_refused(&other, &cut, "sliding_window 4 beside attention_chunk_size 4; expected one of them");
    other = model;
    other.sliding_window_pattern = 6;
    check_refused(&other, &cut, "sliding_window_pattern is 6 without a window; expected sliding_window or");
    other.sliding_window = -1;
    check_refused(&other, &cut, "sliding_window is -1; expected 0 to");
    other = model;
    other.document_length_square = 9;
    check_refused(&other, &cut, "document_length_square is 9 without document_length; expected the mean");
    other.document_length = 4;
    check_refused(&other, &cut, "with document_length 4; expected at least 16, the mean's square");
    other.document_length_square = 65;
    check_refused(&other, &cut, "expected at most their product");
    other.document_length = 17;
    other.document_length_square = 0;
    check_refused(&other, &cut, "document_length 17 with seq_len 16; expected at most a sequence");
    other = model;
    other.qk_norm = PC_QK_NORM_FULL;
    cut.tp = 2;
    check_refused(&other, &cut, "tp 2 with qk_norm full, whose norms are over all heads; expected tp 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sights),
        cmocka_unit_test(test_local_layers),
        cmocka_unit_test(test_parts_have_them_all),
        cmocka_unit_test(test_gemma_layer),
        cmocka_unit_test(test_reordered_norms),
        cmocka_unit_test(test_flops_of_windows_and_documents),
        cmocka_unit_test(test_materialised),
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_op_policy),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
