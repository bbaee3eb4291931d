/* A model's parameters, its FLOPs and how it is cut: equal to the published formulas, to the last digit. */
#include "tests/random_frozen.h"
#include "tests/random_fused.h"
#include "tests/random_model.h"

static pc_parameters parameters_of(const pc_model *model, int tp) {
    pc_parameters parameters;
    pc_error error = {0};
    if (pc_model_parameters(model, tp, &parameters, &error)) fail_msg("%s", error.message);
    return parameters;
}

/* ---- parameters ---- */

/* Narayanan et al. 2021, equation 2, times 12Lh out: 12Lh^2 + 13Lh + (V+s)h; and the final norm's 2h, which it leaves
 * out. A layer: four matrices of 3h^2, h^2, 4h^2, 4h^2 with biases of 3h, h, 4h, h, and two norms of 2h. */
static void test_gpt_parameters(void **state) {
    (void)state;
    test_random random = {1};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_gpt(&random);
        wide layers = model.layers, h = model.hidden;
        pc_parameters x = parameters_of(&model, 8);
        assert_wide_equal(x.total,
                          12 * layers * h * h + 13 * layers * h + (model.vocab + model.max_positions) * h + 2 * h);
        assert_wide_equal(x.layer_matrix, 12 * h * h + 7 * h);
        assert_wide_equal(x.layer_replicated, 6 * h);
        model.is_tied = false;
        assert_wide_equal(parameters_of(&model, 8).total, x.total + model.vocab * h);
    }
}

/* GPT-3 with 8 ranks: 50257 tokens become 51200, a multiple of 1024. 12*96*12288^2 + 13*96*12288 + 53250*12288. */
static void test_gpt3(void **state) {
    (void)state;
    test_random random = {2};
    pc_model model = random_gpt(&random);
    model.layers = 96;
    model.hidden = 12288;
    model.ffn_hidden = 4 * 12288;
    model.heads = model.kv_heads = 96;
    model.head_dim = 128;
    model.vocab = 50257;
    model.vocab_multiple = 128;
    model.max_positions = 2048;
    assert_int_equal(pc_model_padded_vocab(&model, 8), 51200);
    assert_int_equal(pc_model_padded_vocab(&model, 1), 50304);
    assert_true(parameters_of(&model, 8).total == INT64_C(174615846912));
}

/* As the published weights have them. */
static void test_llama_parameters(void **state) {
    (void)state;
    pc_model small = llama3(8), middle = llama3(70), large = llama3(405);
    assert_true(parameters_of(&small, 1).total == INT64_C(8030261248));
    assert_true(parameters_of(&middle, 1).total == INT64_C(70553706496));
    assert_true(parameters_of(&large, 1).total == INT64_C(405853388800));
}

/* Over all ranks stands what is cut once, and the rest t times. Where key and value heads are r times fewer than ranks,
 * their 2kd columns and biases stand r times. Of a tied table there is a second one, where the ends are apart. */
static void test_parts_add_up(void **state) {
    (void)state;
    test_random random = {3};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        int parts = (int)test_between(&random, 1, 6);
        bool shares = test_between(&random, 0, 1);
        random_traits(&random, &cut, &model);
        model.layers = parts * test_between(&random, 1, 20);
        pc_parameters x = parameters_of(&model, cut.tp);
        wide sum = 0, key_columns = model.kv_heads * model.head_dim;
        for (int p = 0; p < parts; p++) {
            pc_part part = pc_cut_part(&model, &cut, parts, p);
            sum += pc_part_parameters(&model, &cut, &part, shares);
        }
        wide copies = model.kv_heads < cut.tp ? cut.tp / model.kv_heads - 1 : 0;
        wide again = copies * 2 * key_columns * (model.hidden + (model.has_bias || model.has_qkv_bias ? 1 : 0));
        wide everywhere = model.layers * x.layer_replicated + x.positions + x.final_norm;
        wide second = model.is_tied && parts > 1 && !shares ? x.embedding : 0;
        assert_wide_equal(sum * cut.tp, x.total + (cut.tp - 1) * everywhere + model.layers * again + second);
    }
}

/* ---- FLOPs ---- */

typedef struct totals {
    wide flops, model_flops, bytes, collective_bytes, launches;
} totals;

static void add_sums(totals *t, pc_operation_sums sums) {
    t->flops += sums.flops;
    t->model_flops += sums.model_flops;
    t->bytes += sums.bytes;
    t->collective_bytes += sums.collective_bytes;
    t->launches += sums.launches;
}

/* Of all parts, the passes whose bits are in `kinds`. */
static totals whole_model(const pc_model *model, const pc_cut *cut, int parts, unsigned kinds, bool has_r) {
    totals t = {0};
    for (int p = 0; p < parts; p++) {
        pc_part part = pc_cut_part(model, cut, parts, p);
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            if (kinds >> kind & 1) add_sums(&t, sums_of(model, cut, &part, kind, has_r));
    }
    return t;
}

enum { F = 1 << PC_PASS_F, B = 1 << PC_PASS_B, W = 1 << PC_PASS_W, BW = 1 << PC_PASS_BW, R = 1 << PC_PASS_R };

/* Narayanan et al. 2021, equation 3 and its derivation, for b sequences: forward 24sLh^2 + 4s^2Lh + 2shV, backward
 * twice that; full recomputation adds the layers' forward again: 96sLh^2(1 + s/(6h) + V/(16Lh)). Selective adds the
 * attention's 4s^2Lh. */
static void test_gpt_flops(void **state) {
    (void)state;
    test_random random = {4};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        wide s = cut.seq_len, b = cut.microbatch_size, h = model.hidden, layers = model.layers, t = cut.tp;
        wide matrices = b * s * layers * h * h, attention = b * s * s * layers * h, head = b * s * h * model.vocab;
        totals f = whole_model(&model, &cut, 1, F, false), bw = whole_model(&model, &cut, 1, BW, false);
        assert_wide_equal(t * f.flops, 24 * matrices + 4 * attention + 2 * head);
        assert_wide_equal(t * bw.flops, 48 * matrices + 8 * attention + 4 * head);
        assert_wide_equal(f.model_flops, f.flops);
        assert_wide_equal(bw.model_flops, bw.flops);
        cut.recompute = PC_RECOMPUTE_SELECTIVE;
        totals selective = whole_model(&model, &cut, 1, F | BW, false);
        assert_wide_equal(t * selective.flops, 72 * matrices + 16 * attention + 6 * head);
        assert_wide_equal(selective.model_flops, f.flops + bw.flops);
        cut.recompute = PC_RECOMPUTE_FULL;
        totals full = whole_model(&model, &cut, 1, F | BW, false);
        assert_wide_equal(t * full.flops, 96 * matrices + 16 * attention + 6 * head);
        assert_wide_equal(full.model_flops, f.flops + bw.flops);
    }
}

/* Forward: every matrix once, 2 FLOPs an element and token; attention 4s^2 a column of the queries. What ranks do
 * twice, of key and value heads fewer than they are, model FLOPs do not count. Flash: 10s^2 backward, 8 of them
 * counted. */
static void test_flops_of_any_model(void **state) {
    (void)state;
    test_random random = {5};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        wide s = cut.seq_len, b = cut.microbatch_size, h = model.hidden, q = model.heads * model.head_dim, t = cut.tp;
        wide key = model.kv_heads * model.head_dim, copies = model.kv_heads < t ? t / model.kv_heads - 1 : 0;
        wide mlp = (model.mlp == PC_MLP_SWIGLU ? 3 : 2) * h * model.ffn_hidden;
        wide matrices = model.layers * (2 * h * (q + key) + mlp) + h * pc_model_padded_vocab(&model, cut.tp);
        wide attention = model.layers * b * s * s * q;
        bool is_flash = model.attention == PC_ATTENTION_FLASH;
        totals f = whole_model(&model, &cut, 1, F, false), bw = whole_model(&model, &cut, 1, BW, false);
        assert_wide_equal(t * f.model_flops, 2 * b * s * matrices + 4 * attention);
        assert_wide_equal(t * bw.model_flops, 4 * b * s * matrices + 8 * attention);
        wide twice = 2 * b * s * model.layers * copies * 2 * h * key;
        assert_wide_equal(t * (f.flops - f.model_flops), twice);
        assert_wide_equal(t * (bw.flops - bw.model_flops), 2 * twice + (is_flash ? 2 * attention : 0));
        wide sequence = t * (f.model_flops + bw.model_flops) / b;
        double found = pc_model_flops_per_sequence(&model, cut.tp, cut.seq_len), expected = (double)sequence;
        assert_true(sequence < (wide)1 << 53 ? found == expected : found / expected - 1 < 4e-16);
        assert_true(found / expected - 1 > -4e-16);
    }
}

/* Whatever is recomputed, split or not: all parts do what the whole does, a B and a W what a BW does, and R with the B
 * and the W behind it too. */
static void test_passes_and_parts_add_up(void **state) {
    (void)state;
    test_random random = {6};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_frozen(&random, &model, &cut);
        random_base(&random, &model, &cut);
        int parts = (int)test_between(&random, 1, 6);
        if (i % 2) random_traits(&random, &cut, &model);
        model.layers = parts * test_between(&random, 1, 20);
        cut.recompute = (pc_recompute)test_between(&random, 0, PC_RECOMPUTE_KINDS - 1);
        cut.recompute_modules = (int32_t)test_between(&random, 1, PC_RECOMPUTES_ALL);
        if (cut.recompute == PC_RECOMPUTE_BLOCK) cut.recompute = PC_RECOMPUTE_FULL; /* of each part */
        cut.recompute_layers = 1;
        cut.kernels = (pc_kernels)test_between(&random, 0, 1);
        cut.cross_entropy = (pc_cross_entropy)test_between(&random, 0, 4);
        random_recipe(&random, &model, &cut);
        random_fused(&random, &model, &cut);
        totals whole = whole_model(&model, &cut, 1, F | BW, false);
        totals of_parts = whole_model(&model, &cut, parts, F | BW, false);
        totals split = whole_model(&model, &cut, parts, F | B | W, false);
        totals with_r = whole_model(&model, &cut, parts, F | R | B | W, true);
        totals with_r_unsplit = whole_model(&model, &cut, parts, F | R | BW, true);
        assert_memory_equal(&of_parts, &whole, sizeof whole);
        assert_memory_equal(&split, &whole, sizeof whole);
        assert_memory_equal(&with_r, &whole, sizeof whole);
        assert_memory_equal(&with_r_unsplit, &whole, sizeof whole);
    }
}

/* Every operation's own numbers agree with each other. */
static void test_operations_are_sound(void **state) {
    (void)state;
    test_random random = {7};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_frozen(&random, &model, &cut);
        random_base(&random, &model, &cut);
        cut.recompute = (pc_recompute)test_between(&random, 0, PC_RECOMPUTE_KINDS - 1);
        cut.recompute_modules = (int32_t)test_between(&random, 1, PC_RECOMPUTES_ALL);
        cut.recompute_layers = cut.recompute == PC_RECOMPUTE_BLOCK ? (int32_t)model.layers : 1;
        cut.kernels = (pc_kernels)test_between(&random, 0, 1);
        random_recipe(&random, &model, &cut);
        random_fused(&random, &model, &cut);
        pc_part part = pc_cut_part(&model, &cut, 1, 0);
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            pc_operations list;
            assert_int_equal(pc_pass_operations(&model, &cut, &part, kind, false, &list, NULL), PC_OK);
            for (int k = 0; k < list.count; k++) {
                const pc_operation *x = &list.list[k];
                bool is_collective = x->kind >= PC_OPERATION_ALL_REDUCE;
                wide product = (wide)x->batch * x->m * x->n * x->k;
                assert_non_null(x->name);
                assert_true(x->launches > 0 && x->batch > 0 && (x->repeat == 1 || x->repeat == model.layers));
                assert_true(x->model_flops <= x->flops);
                assert_true(is_collective ? cut.tp > 1 && x->size_bytes > 0 && !x->bytes && !x->flops : x->bytes > 0);
                if (x->kind == PC_OPERATION_GEMM) assert_wide_equal(x->flops, 2 * product);
                if (x->kind == PC_OPERATION_ATTENTION)
                    assert_wide_equal(x->flops, (x->role == PC_GEMM_FORWARD ? 4 : 10) * product);
                assert_true(x->kind != PC_OPERATION_NORM || (!x->flops && !x->m));
            }
        }
    }
}

/* ---- cuts ---- */

static void test_layouts(void **state) {
    (void)state;
    static const int32_t listed[] = {0, 5, 3, 4};
    static const pc_recomputation recompute[] = {{.kind = PC_RECOMPUTE_NONE},
                                                 {.kind = PC_RECOMPUTE_FULL},
                                                 {.kind = PC_RECOMPUTE_SELECTIVE},
                                                 {.kind = PC_RECOMPUTE_NONE}};
    static const int64_t expected[4][4] = {{3, 3, 3, 3}, {3, 4, 4, 3}, {0, 6, 6, 0}, {0, 5, 3, 4}};
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    cut.recompute = PC_RECOMPUTE_FULL;
    for (int layout = PC_CUT_EVEN; layout <= PC_CUT_LISTED; layout++) {
        pc_error error = {0};
        model.layers = layout == PC_CUT_ENDS ? 14 : 12;
        cut.layout = (pc_cut_layout)layout;
        cut.layers_of_part = layout == PC_CUT_LISTED ? listed : NULL;
        if (pc_cut_check(&model, &cut, 4, &error)) fail_msg("%s", error.message);
        for (int p = 0; p < 4; p++) {
            pc_part part = pc_cut_part(&model, &cut, 4, p);
            assert_int_equal(part.layers, expected[layout][p]);
            assert_int_equal(part.has_embedding, p == 0);
            assert_int_equal(part.has_head, p == 3);
            assert_int_equal(part.recompute, PC_RECOMPUTE_FULL);
        }
    }
    cut.recompute_of_part = recompute;
    for (int p = 0; p < 4; p++) assert_int_equal(pc_cut_part(&model, &cut, 4, p).recompute, recompute[p].kind);
    cut.layout = PC_CUT_ENDS; /* one part has both ends and all layers */
    assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK);
    assert_int_equal(pc_cut_part(&model, &cut, 1, 0).layers, model.layers);
}

/* A fault of a small GPT (4 heads, h 32, f 128, 12 layers, 16 tokens, TP 2, SP, 4 parts), and what is said. */
static void expect_refusal(void (*damage)(pc_model *, pc_cut *), int parts, const char *words) {
    pc_error error = {0};
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    model.layers = 12;
    assert_int_equal(pc_cut_check(&model, &cut, 4, NULL), PC_OK);
    damage(&model, &cut);
    assert_int_equal(pc_cut_check(&model, &cut, parts, &error), PC_ERROR_INPUT);
    if (strcmp(error.message, words) != 0) fail_msg("'%s' is not '%s'", error.message, words);
}

static const int32_t wrong_sum[] = {3, 3, 3, 2}, negative[] = {3, -1, 5, 5};

#define DAMAGE(name, statement)                                                                                        \
    static void name(pc_model *model, pc_cut *cut) {                                                                   \
        (void)model, (void)cut;                                                                                        \
        statement;                                                                                                     \
    }
DAMAGE(no_layers, model->layers = 0)
DAMAGE(large_hidden, model->hidden = INT64_C(1) << 31)
DAMAGE(large_heads, model->head_dim = INT64_C(1) << 30)
DAMAGE(odd_kv_heads, model->kv_heads = 3)
DAMAGE(no_table, model->max_positions = 0)
DAMAGE(negative_table, model->max_positions = -5)
DAMAGE(nothing, )
DAMAGE(no_dp, cut->dp = 0)
DAMAGE(many_gpus, cut->dp = 1 << 30)
DAMAGE(no_tokens, cut->seq_len = 0)
DAMAGE(many_tokens, cut->seq_len = cut->microbatch_size = 1 << 21; model->max_positions = 1 << 21)
DAMAGE(large_input, cut->seq_len = cut->microbatch_size = 1 << 20; model->max_positions = model->hidden = 1 << 21)
DAMAGE(zero_4, cut->zero = 4)
DAMAGE(tp_8, cut->tp = 8)
DAMAGE(kv_heads_6, model->heads = 12; model->kv_heads = 6; cut->tp = 4)
DAMAGE(odd_ffn, model->ffn_hidden = 127)
DAMAGE(odd_hidden, model->hidden = 33)
DAMAGE(odd_sequence, cut->seq_len = 15)
DAMAGE(long_sequence, model->max_positions = 15)
DAMAGE(ends_12, cut->layout = PC_CUT_ENDS)
DAMAGE(own_12, cut->layout = PC_CUT_OWN)
DAMAGE(no_list, cut->layout = PC_CUT_LISTED)
DAMAGE(sum_11, cut->layout = PC_CUT_LISTED; cut->layers_of_part = wrong_sum)
DAMAGE(minus_1, cut->layout = PC_CUT_LISTED; cut->layers_of_part = negative)
DAMAGE(large_ffn, model->ffn_hidden = 1 << 30; model->hidden = 1 << 24)
DAMAGE(many_parameters, model->ffn_hidden = model->hidden = 1 << 30)

static void test_refusals(void **state) {
    (void)state;
    expect_refusal(no_layers, 4, "model: layers is 0; expected 1 to 2147483647");
    expect_refusal(large_hidden, 4, "model: hidden is 2147483648; expected 1 to 2147483647");
    expect_refusal(large_heads, 4, "model: heads * head_dim is 4 * 1073741824; expected a product up to 2147483647");
    expect_refusal(odd_kv_heads, 4, "model: kv_heads 3 do not divide 4 heads; expected a divisor");
    expect_refusal(no_table, 4,
                   "model: positions are learned and max_positions is 0; expected the rows of their table");
    expect_refusal(negative_table, 4, "model: max_positions is -5; expected 0 to 2147483647");
    expect_refusal(nothing, 0, "0 model parts; expected 1 to 4096");
    expect_refusal(nothing, 4097, "4097 model parts; expected 1 to 4096");
    expect_refusal(nothing, 5, "layers 12 do not divide over 5 model parts; expected --layout own");
    expect_refusal(nothing, 11,
                   "layers 12 do not divide over 11 model parts; expected a list such as "
                   "--layout 'E|(tt|)*3(t|)*6L'");
    expect_refusal(no_dp, 4, "dp 0; expected 1 to 2147483647");
    expect_refusal(many_gpus, 4, "tp 2 * pp 1 * dp 1073741824; expected up to 2147483647 GPUs");
    expect_refusal(no_tokens, 4, "seq_len 0; expected 1 to 2147483647");
    expect_refusal(many_tokens, 4, "seq_len 2097152 * microbatch_size 2097152; expected up to 2^40 tokens");
    expect_refusal(large_input, 4, "seq_len 1048576 * microbatch_size 1048576 * hidden 2097152; expected up to 2^60");
    expect_refusal(zero_4, 4, "zero 4; expected 0 to 3");
    expect_refusal(tp_8, 4, "tp 8 does not divide 4 heads; expected a divisor");
    expect_refusal(kv_heads_6, 4, "tp 4 does not divide 6 kv_heads; expected a divisor, or a multiple of them");
    expect_refusal(odd_ffn, 4, "tp 2 does not divide ffn_hidden 127; expected a divisor");
    expect_refusal(odd_hidden, 4, "tp 2 does not divide hidden 33; expected a divisor");
    expect_refusal(odd_sequence, 4,
                   "tp 2 does not divide seq_len 15; expected a divisor, for sequence parallelism cuts it");
    expect_refusal(long_sequence, 4, "seq_len 16; expected up to max_positions 15, the table of learned positions");
    expect_refusal(ends_12, 4,
                   "layers 12, embedding and head do not divide over 4 model parts; expected --layout even or own");
    expect_refusal(
        own_12, 2,
        "layout: embedding and head have parts of their own among 2; expected at least 3, or --layout even or ends");
    expect_refusal(
        own_12, 7,
        "layers 12 do not divide over 7 model parts, of which embedding and head are two; expected --layout ends");
    expect_refusal(no_list, 4, "layout: no list; expected the layers of each of 4 parts");
    expect_refusal(sum_11, 4, "layout: 11 layers in 4 parts; expected the model's 12");
    expect_refusal(minus_1, 4, "layout: part 1 has -1 layers; expected 0 or more");
    /* 12 (h (4*32 + 2f) + 96 + f + 6h) + h (V + s) + 2h of V = 100 and s = 65536 */
    expect_refusal(large_ffn, 4, "model: 432346705313137792 parameters; expected up to 2^56");
    expect_refusal(many_parameters, 4, "model: 2^63 parameters and more; expected smaller dimensions");
}

/* What is not cut need not divide. */
static void test_an_odd_sequence(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    cut.seq_len = 15;
    cut.sequence_parallel = false;
    assert_int_equal(pc_cut_check(&model, &cut, 3, NULL), PC_OK);
}

/* 2^40 tokens are a cut that stands; a pass over them is not one that can be counted. */
static void test_overflow(void **state) {
    (void)state;
    pc_error error = {0};
    pc_operations list = {.count = 7};
    pc_part_activation activation = {.taken = 7};
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    model.max_positions = cut.seq_len = cut.microbatch_size = 1 << 20;
    model.layers = 1;
    pc_part part = whole_part(&model, &cut);
    assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK);
    assert_int_equal(pc_pass_operations(&model, &cut, &part, PC_PASS_B, false, &list, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "operations: pass B has 2^63 FLOPs or bytes and more; expected fewer tokens or a "
                        "smaller model");
    assert_int_equal(list.count, 7);
    model.head_dim = 1 << 20; /* 2^40 tokens of some 2^23 columns */
    assert_int_equal(pc_part_activations(&model, &cut, &part, (pc_pass_forms){.has_r = false}, &activation, &error),
                     PC_ERROR_INPUT);
    assert_string_equal(error.message, "activations: 2^63 bytes and more; expected fewer tokens or a smaller model");
    assert_int_equal(activation.taken, 7);
}

/* The part that has multi-token prediction holds a copy of the embedding, unless it is the first one, or the
 * last one of a tied model. */
static int64_t copies(const pc_model *model, int place) {
    bool has_own = place == 0 || (model->is_tied && place == 3);
    return has_own ? 0 : pc_model_padded_vocab(model, 1) * model->hidden;
}

/* Wherever a list places multi-token prediction, the model is the same but for copies: its layers, projections and
 * norms are in that part, its heads and losses in the last. */
static void check_predictions_move(bool is_tied) {
    int32_t list[4] = {3, 3, 2, 0};
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    model.is_tied = is_tied;
    cut.tp = 1;
    model.layers = 8;
    model.mtp_layers = 2;
    cut.layout = PC_CUT_LISTED;
    cut.layers_of_part = list;
    cut.mtp_listed = 2;
    totals expected = whole_model(&model, &cut, 4, F | BW, false);
    wide parameters[2] = {0}, kept[2] = {0};
    for (cut.mtp_ahead = 0; cut.mtp_ahead < 4; cut.mtp_ahead++) {
        int place = 3 - cut.mtp_ahead, now = cut.mtp_ahead > 0;
        assert_int_equal(pc_cut_check(&model, &cut, 4, NULL), PC_OK);
        parameters[now] = kept[now] = 0;
        for (int p = 0; p < 4; p++) {
            pc_part part = pc_cut_part(&model, &cut, 4, p);
            pc_part_activation activation;
            assert_int_equal(part.mtp_layers, p == place ? 2 : 0);
            assert_int_equal(part.layers, list[p] + part.mtp_layers);
            assert_int_equal(part.mtp_heads, p == 3 ? 2 : 0);
            assert_int_equal(
                pc_part_activations(&model, &cut, &part, (pc_pass_forms){.has_r = false}, &activation, NULL), PC_OK);
            parameters[now] += pc_part_parameters(&model, &cut, &part, false);
            kept[now] += activation.taken;
        }
        parameters[now] -= copies(&model, place);
        totals moved = whole_model(&model, &cut, 4, F | BW, false);
        assert_memory_equal(&moved, &expected, sizeof moved);
        assert_true(!now || (parameters[0] == parameters[1] && kept[0] == kept[1]));
    }
    cut.mtp_listed = 1;
    pc_error error = {0};
    assert_int_equal(pc_cut_check(&model, &cut, 4, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "layout: m, 1 times; expected mtp_num_layers of them, 2");
}

static void test_predictions_move(void **state) {
    (void)state;
    check_predictions_move(true);
    check_predictions_move(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt_parameters),
        cmocka_unit_test(test_gpt3),
        cmocka_unit_test(test_llama_parameters),
        cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_gpt_flops),
        cmocka_unit_test(test_flops_of_any_model),
        cmocka_unit_test(test_passes_and_parts_add_up),
        cmocka_unit_test(test_operations_are_sound),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_predictions_move),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_an_odd_sequence),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
