/* What a model's parts hold: activations equal to the published formulas to the last byte, and what stands all the
 * time.
 */
#include "models/workload/activation_memory.h"
#include "models/workload/slice.h"
#include "tests/random_frozen.h"
#include "tests/random_model.h"

static pc_part_activation activation_of(const pc_model *model, const pc_cut *cut, const pc_part *part, bool has_r) {
    pc_part_activation activation;
    pc_error error = {0};
    if (pc_part_activations(model, cut, part, (pc_pass_forms){.has_r = has_r}, &activation, &error))
        fail_msg("%s", error.message);
    return activation;
}

/* ---- a layer of GPT ---- */

/* Korthikanti et al. 2022, table 2, times t: TP alone sbh(10t + 24) + 5as^2b, with sequence parallelism
 * 34sbh + 5as^2b; selective without the last; full 2sbh, which table 2 leaves whole, and which is cut where the
 * sequence is. A flash kernel keeps what selective recomputation keeps. */
static void test_table_2(void **state) {
    (void)state;
    test_random random = {1};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        pc_part part = {.layers = test_between(&random, 1, 50)};
        wide t = cut.tp, sb = cut.seq_len * cut.microbatch_size, layers = part.layers;
        wide sbh = layers * sb * model.hidden, scores = layers * 5 * model.heads * cut.seq_len * sb;
        wide linear = cut.sequence_parallel ? 34 * sbh : (10 * t + 24) * sbh;
        assert_wide_equal(t * activation_of(&model, &cut, &part, false).taken, linear + scores);
        part.recompute = PC_RECOMPUTE_SELECTIVE;
        assert_wide_equal(t * activation_of(&model, &cut, &part, false).taken, linear);
        part.recompute = PC_RECOMPUTE_FULL;
        assert_wide_equal(t * activation_of(&model, &cut, &part, false).taken,
                          2 * sbh * (cut.sequence_parallel ? 1 : t));
        part.recompute = PC_RECOMPUTE_NONE;
        model.attention = PC_ATTENTION_FLASH;
        assert_wide_equal(t * activation_of(&model, &cut, &part, false).taken, linear);
    }
}

/* 'Zero Bubble', table 1: W frees 32sbh, B the other 2sbh and 5as^2b. With TP the inputs of two matrices and the output
 * gradients of two are whole: 8sbh + 24sbh/t; with sequence parallelism the inputs are cut. Never negative, as it
 * would be with that and without scores. */
static void test_split_of_b_and_w(void **state) {
    (void)state;
    test_random random = {2};
    int none_freed = 0;
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        pc_part part = {.layers = 1, .recompute = (pc_recompute)(i % 2)}; /* none or selective */
        wide t = cut.tp, sb = cut.seq_len * cut.microbatch_size, sbh = sb * model.hidden;
        wide scores = part.recompute ? 0 : 5 * model.heads * cut.seq_len * sb;
        wide w = cut.sequence_parallel ? 28 * sbh + 4 * sbh * t : 24 * sbh + 8 * sbh * t;
        pc_part_activation x = activation_of(&model, &cut, &part, false);
        if (t == 1) assert_wide_equal(x.taken - x.b_frees, 32 * sbh);
        if (t == 1) assert_wide_equal(x.b_frees, 2 * sbh + scores);
        if (t * x.taken >= w) assert_wide_equal(t * (x.taken - x.b_frees), w);
        if (t * x.taken < w) assert_int_equal(x.b_frees, 0);
        none_freed += x.b_frees == 0;
    }
    assert_true(none_freed > 0);
}

/* The older formulas, which scenarios without a cluster use. */
static void test_agrees_with_activation_h(void **state) {
    (void)state;
    test_random random = {3};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        int64_t whole, of_b, input;
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        pc_part part = {.layers = 1, .recompute = PC_RECOMPUTE_FULL};
        pc_shape shape = {1, model.hidden, model.heads, cut.seq_len, cut.microbatch_size};
        cut.tp = 1;
        pc_part_activation x = activation_of(&model, &cut, &part, true);
        assert_true(pc_activation_bytes_per_layer(&shape, &whole));
        assert_true(pc_activation_b_bytes_per_layer(&shape, &of_b));
        assert_true(pc_activation_input_bytes_per_layer(&shape, &input));
        assert_true(x.taken == whole && x.b_frees == of_b && x.kept == input);
        assert_true(activation_of(&model, &cut, &part, false).taken == input);
        assert_true(activation_of(&model, &cut, &part, false).working == whole - input);
    }
}

/* GPT-3: 5as/h = 80, so 114sbh/t a layer with sequence parallelism, and 70% of that goes with selective recomputation
 * (Korthikanti et al. 2022, section 5). */
static void test_gpt3_layer(void **state) {
    (void)state;
    test_random random = {4};
    pc_model model = random_gpt(&random);
    model.hidden = 12288;
    model.ffn_hidden = 4 * 12288;
    model.heads = model.kv_heads = 96;
    model.head_dim = 128;
    pc_cut cut = random_cut(&random, &model);
    cut.tp = 8;
    cut.sequence_parallel = true;
    cut.seq_len = 2048;
    cut.microbatch_size = 1;
    pc_part part = {.layers = 1};
    assert_true(activation_of(&model, &cut, &part, false).taken == INT64_C(114) * 2048 * 12288 / 8);
    part.recompute = PC_RECOMPUTE_SELECTIVE;
    assert_true(activation_of(&model, &cut, &part, false).taken == INT64_C(34) * 2048 * 12288 / 8);
    assert_true(activation_of(&model, &cut, &part, false).working == INT64_C(80) * 2048 * 12288 / 8 + 2 * 2048 * 12288);
}

/* ---- the ends ---- */

/* Korthikanti et al. 2022, section 4.3, with one stage: sbh/t of the embedding's dropout and 4sbh/t (1 + V/h) of norm,
 * head and loss, whatever the layers recompute. Beside it the loss works with 16-bit logits; plainly with a second fp32
 * copy, too. */
static void test_ends(void **state) {
    (void)state;
    test_random random = {5};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        cut.cross_entropy = i % 2 ? PC_CROSS_ENTROPY_PLAIN : PC_CROSS_ENTROPY_IN_PLACE;
        pc_part first = {.has_embedding = true}, last = {.has_head = true};
        first.recompute = last.recompute = (pc_recompute)test_between(&random, 0, 2);
        wide t = cut.tp, sb = cut.seq_len * cut.microbatch_size, rows = sb * model.hidden;
        wide logits = sb * model.vocab;
        if (!cut.sequence_parallel) rows *= t;
        pc_part_activation x = activation_of(&model, &cut, &first, false);
        pc_part_activation y = activation_of(&model, &cut, &last, false);
        assert_wide_equal(t * x.taken, rows);
        assert_wide_equal(t * x.b_frees, rows);
        assert_wide_equal(t * y.taken, 4 * rows + 4 * logits);
        assert_wide_equal(t * y.b_frees, 2 * rows + 2 * logits);
        wide gathered = cut.sequence_parallel && t > 1 ? 2 * sb * model.hidden : 0;
        assert_wide_equal(x.working, gathered);
        assert_wide_equal(t * (y.working - gathered), (i % 2 ? 6 : 2) * logits);
    }
}

/* Fused: 16-bit logits from the head on, in whose place the gradient comes to stand; W needs it and the head's input.
 * In n pieces: the logits of one, of ceil(sb/n) tokens. What is left of the head are the inputs of the norm and, in the
 * place of its own, its gradient, all of which B gives back. Where the sequence is cut, that gradient is there for all
 * tokens before it is summed. */
static void test_losses_without_fp32(void **state) {
    (void)state;
    test_random random = {9};
    const pc_part last = {.has_head = true};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        int chunks = (int)test_between(&random, 0, 20), pieces = chunks ? chunks : 8;
        wide t = cut.tp, sb = cut.seq_len * cut.microbatch_size,
             rows = sb * model.hidden * (cut.sequence_parallel ? 1 : t);
        wide whole = cut.sequence_parallel && t > 1 ? 2 * sb * model.hidden : 0;
        cut.cross_entropy = PC_CROSS_ENTROPY_FUSED;
        pc_part_activation x = activation_of(&model, &cut, &last, false);
        assert_wide_equal(t * x.taken, 4 * rows + 2 * sb * model.vocab);
        assert_wide_equal(t * x.b_frees, 2 * rows);
        assert_wide_equal(x.working, whole);
        cut.cross_entropy = PC_CROSS_ENTROPY_COMPILED; /* as much from F to B; in B the gradient beside it */
        pc_part_activation y = activation_of(&model, &cut, &last, false);
        assert_true(y.taken == x.taken && y.b_frees == x.b_frees);
        assert_wide_equal(t * (y.working - whole), 2 * sb * model.vocab);
        cut.cross_entropy = PC_CROSS_ENTROPY_CHUNKED;
        cut.cross_entropy_chunks = chunks;
        x = activation_of(&model, &cut, &last, false);
        assert_wide_equal(t * x.taken, 4 * rows);
        assert_wide_equal(x.b_frees, x.taken);
        assert_wide_equal(t * (x.working - 2 * whole), 2 * ((sb + pieces - 1) / pieces) * model.vocab);
    }
}

/* A backward pass has done with the head before it recomputes a layer: 4 bytes a logit in fp32 and 4sbh make room for
 * it. Selective recomputation may go with a W of its own, which still needs 2 bytes a logit and 2sbh. */
static void test_the_head_goes_first(void **state) {
    (void)state;
    test_random random = {10};
    int rooms = 0;
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        pc_part layers = {.layers = 2, .recompute = i % 2 ? PC_RECOMPUTE_FULL : PC_RECOMPUTE_SELECTIVE}, both = layers;
        cut.sequence_parallel = false;
        both.has_head = true;
        wide t = cut.tp, sb = cut.seq_len * cut.microbatch_size, logits = sb * model.vocab,
             rows = sb * model.hidden * t;
        wide recomputed = t * activation_of(&model, &cut, &layers, false).working;
        wide less = recomputed - (i % 2 ? 4 : 2) * (rows + logits);
        assert_wide_equal(t * activation_of(&model, &cut, &both, false).working, less > 2 * logits ? less : 2 * logits);
        rooms += less > 2 * logits;
    }
    assert_true(rooms > 0);
}

/* A part is its layers and its ends; a pass works on one of them at a time. */
static void test_a_part_is_a_sum(void **state) {
    (void)state;
    test_random random = {6};
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_frozen(&random, &model, &cut);
        random_base(&random, &model, &cut);
        bool has_r = test_between(&random, 0, 1);
        cut.cross_entropy = (pc_cross_entropy)(i % 4);
        pc_part all = {.layers = test_between(&random, 1, 9), .has_embedding = true, .has_head = true};
        all.recompute = (pc_recompute)test_between(&random, 0, 2);
        pc_part first = {.has_embedding = true, .recompute = all.recompute}, last = first, layer = first;
        layer.layers = 1;
        first.has_embedding = layer.has_embedding = last.has_embedding = false;
        first.has_embedding = last.has_head = true;
        pc_part_activation sum = activation_of(&model, &cut, &all, has_r);
        pc_part_activation x = activation_of(&model, &cut, &first, has_r),
                           y = activation_of(&model, &cut, &last, has_r);
        pc_part_activation z = activation_of(&model, &cut, &layer, has_r);
        assert_wide_equal(sum.taken, x.taken + y.taken + (wide)all.layers * z.taken);
        assert_wide_equal(sum.b_frees, x.b_frees + y.b_frees + (wide)all.layers * z.b_frees);
        assert_wide_equal(sum.kept, x.kept + y.kept + (wide)all.layers * z.kept);
        wide gone = all.recompute == PC_RECOMPUTE_FULL ? y.taken : y.b_frees; /* see test_the_head_goes_first */
        wide gathered = cut.sequence_parallel && cut.tp > 1 ? 2 * cut.seq_len * cut.microbatch_size * model.hidden : 0;
        wide layers = z.working - gathered > gone ? z.working - gone : gathered;
        assert_wide_equal(sum.working, layers > y.working ? layers : y.working);
        assert_true(0 <= z.b_frees && z.b_frees <= z.taken && z.kept <= z.taken);
        assert_true(has_r || z.kept == z.taken);
        if (!has_r) continue;
        pc_part_activation without =
            activation_of(&model, &cut, &layer, false); /* R has made again what F has not kept */
        layer.recompute = PC_RECOMPUTE_NONE;
        pc_part_activation whole = activation_of(&model, &cut, &layer, false);
        assert_wide_equal(z.kept, without.taken);
        assert_wide_equal(z.taken, whole.taken);
        assert_wide_equal(z.b_frees, whole.b_frees);
        assert_wide_equal(z.working, whole.working);
        assert_wide_equal(without.working - whole.working, whole.taken - without.taken);
    }
}

/* ---- other models ---- */

/* Llama, a layer, no dropout, flash, 16-bit numbers. On tokens: two norms' inputs and two matrices' inputs, 8h. On
 * columns: 2(a + 2k)d of queries, keys and values, 2ad into the output matrix, 4f of gate and up, 2f of their product.
 * All of it is what W needs, the inputs of norms being as large as the gradients behind the two halves: B frees nothing
 * on one rank. */
static void test_llama_layer(void **state) {
    (void)state;
    test_random random = {7};
    static const int sizes[] = {8, 70, 405};
    for (int i = 0; i < 3; i++) {
        pc_model model = llama3(sizes[i]);
        pc_cut cut = random_cut(&random, &model);
        pc_part part = {.layers = 1};
        wide sb = cut.seq_len * cut.microbatch_size, query = model.heads * model.head_dim;
        wide columns = 2 * (query + 2 * 8 * 128) + 2 * query + 6 * model.ffn_hidden;
        cut.sequence_parallel = true;
        assert_wide_equal(cut.tp * activation_of(&model, &cut, &part, false).taken, sb * (8 * model.hidden + columns));
        cut.sequence_parallel = false;
        assert_wide_equal(cut.tp * activation_of(&model, &cut, &part, false).taken,
                          sb * (8 * cut.tp * model.hidden + columns));
        assert_int_equal(activation_of(&model, &cut, &part, false).b_frees, 0);
        part.recompute = PC_RECOMPUTE_SELECTIVE; /* flash: nothing to recompute */
        assert_int_equal(activation_of(&model, &cut, &part, false).working, 0);
    }
}

/* Without dropout a GPT layer keeps no masks: 2sbh less, and 2as^2b of the 5. One head of keys and values on four
 * ranks: each has h/4 + 2d columns of what had 3h/4. */
static void test_without_dropout_and_with_one_key_head(void **state) {
    (void)state;
    test_random random = {8};
    pc_model model = random_gpt(&random);
    pc_cut cut = random_cut(&random, &model);
    pc_part part = {.layers = 1};
    cut.tp = 4;
    cut.sequence_parallel = false;
    wide sb = cut.seq_len * cut.microbatch_size, scores = sb * cut.seq_len * model.heads / 4;
    wide whole = activation_of(&model, &cut, &part, false).taken;
    model.has_dropout = false;
    assert_wide_equal(whole - activation_of(&model, &cut, &part, false).taken, 2 * sb * model.hidden + 3 * scores);
    model.has_dropout = true;
    model.kv_heads = 1;
    assert_wide_equal(whole - activation_of(&model, &cut, &part, false).taken,
                      2 * sb * 2 * (model.hidden / 4 - model.head_dim));
}

/* ---- some layers, or some of a layer ---- */

static pc_part_activation layers_of(const pc_model *model, const pc_cut *cut, int64_t layers, pc_recompute recompute,
                                    int64_t n, pc_pass_forms forms) {
    const pc_part part = {.layers = layers, .recompute = recompute, .recompute_layers = (int32_t)n};
    pc_part_activation activation;
    assert_int_equal(pc_part_activations(model, cut, &part, forms, &activation, NULL), PC_OK);
    return activation;
}

/* Of L layers, each w whole and i with its input alone: the first n recomputed, n i + (L - n) w; every n-th,
 * floor(L/n) i + (L - floor(L/n)) w; in groups of n, ceil(L/n) i. A BW recomputes a layer, w - i beside that, when the
 * layers behind it have gone, so only if none is. A group of r = L - n (ceil(L/n) - 1) layers, r w - i, and, that one's
 * input gone, one of n: n w - 2i. R makes all again that F has not kept, and has L w. */
static void test_some_layers(void **state) {
    (void)state;
    test_random random = {20};
    const pc_pass_forms together = {0}, with_r = {.has_r = true};
    static const pc_recompute kinds[] = {PC_RECOMPUTE_BLOCK, PC_RECOMPUTE_EVERY, PC_RECOMPUTE_UNIFORM};
    for (long i = 0; i < test_cases(600, 3000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        int64_t L = test_between(&random, 1, 12), n = test_between(&random, 1, L), groups = (L + n - 1) / n;
        wide w = layers_of(&model, &cut, 1, PC_RECOMPUTE_NONE, 0, together).taken;
        wide input = layers_of(&model, &cut, 1, PC_RECOMPUTE_FULL, 0, together).taken, r = L - n * (groups - 1);
        wide gathered = layers_of(&model, &cut, 1, PC_RECOMPUTE_NONE, 0, together).working;
        const wide kept[] = {n * input + (L - n) * w, L / n * input + (L - L / n) * w, groups * input};
        const wide more[] = {n == L ? w - input : 0, L % n ? 0 : w - input, r * w - input};
        pc_recompute kind = kinds[i % 3];
        wide working = more[i % 3];
        if (kind == PC_RECOMPUTE_UNIFORM && groups > 1 && n * w - 2 * input > working) working = n * w - 2 * input;
        pc_part_activation x = layers_of(&model, &cut, L, kind, n, together);
        assert_wide_equal(x.taken, kept[i % 3]);
        assert_wide_equal(x.kept, x.taken);
        assert_wide_equal(x.working, working + gathered);
        x = layers_of(&model, &cut, L, kind, n, with_r);
        assert_wide_equal(x.taken, L * w);
        assert_wide_equal(x.kept, kept[i % 3]);
        assert_wide_equal(x.working, gathered);
    }
}

/* B and W apart: B leaves W of a recomputed layer what W finds of one that is not, and of all layers as much is left
 * behind B. The rest of a group of layers that B makes again at once is beside it. */
static void test_some_layers_apart(void **state) {
    (void)state;
    test_random random = {21};
    const pc_pass_forms apart = {.splits = true};
    static const pc_recompute kinds[] = {PC_RECOMPUTE_BLOCK, PC_RECOMPUTE_EVERY, PC_RECOMPUTE_UNIFORM};
    int more = 0;
    for (long i = 0; i < test_cases(600, 3000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        int64_t L = test_between(&random, 1, 12), n = test_between(&random, 1, L);
        pc_recompute kind = kinds[i % 3];
        pc_part_activation one = layers_of(&model, &cut, 1, PC_RECOMPUTE_NONE, 0, apart);
        wide left = one.taken - one.b_frees, gathered = one.working;
        wide again = kind == PC_RECOMPUTE_BLOCK ? n : kind == PC_RECOMPUTE_EVERY ? L / n : L;
        pc_part_activation x = layers_of(&model, &cut, L, kind, n, apart);
        assert_wide_equal(x.taken, again * left + (L - again) * one.taken);
        assert_wide_equal(x.taken - x.b_frees, L * left);
        assert_wide_equal(x.kept, layers_of(&model, &cut, L, kind, n, (pc_pass_forms){0}).kept);
        wide rest = one.b_frees; /* of a layer; those behind the last that is recomputed have given back as much */
        wide behind = kind == PC_RECOMPUTE_BLOCK ? L - n : kind == PC_RECOMPUTE_EVERY ? L % n : 0;
        wide at_once = kind == PC_RECOMPUTE_UNIFORM ? n : behind > 0 ? 0 : 1;
        assert_wide_equal(x.working, at_once * rest + gathered);
        more += x.working > gathered;
    }
    assert_true(more > 0);
}

/* Llama 3 8B, 2 sequences of 8,192 tokens, bf16, of one layer: the input and, of the seven products, query, value, gate
 * and down, and what attention puts out. In MiB: 16,384 x 4,096 x 2 bytes are 128 (input, query, attention), 1,024
 * columns 32 (value), 14,336 columns 448 (gate): 864. Down, 128 more, is kept where every operator's output is
 * (eager), though nobody reads it: 992. Whole, it is 4 x 128 + 6,144 columns, 192, + 128 + 3 x 448: 2,176. */
static void test_torchtitans_op(void **state) {
    (void)state;
    const pc_pass_forms together = {0}, with_r = {.has_r = true};
    const int64_t mib = 1 << 20;
    pc_model model = llama3(8);
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 2, .microbatches = 1, .seq_len = 8192};
    assert_int_equal(layers_of(&model, &cut, 1, PC_RECOMPUTE_NONE, 0, together).taken, 2176 * mib);
    assert_int_equal(layers_of(&model, &cut, 32, PC_RECOMPUTE_OP, 0, together).taken, 32 * 864 * mib);
    assert_int_equal(layers_of(&model, &cut, 32, PC_RECOMPUTE_OP, 0, together).working, (2176 - 864) * mib);
    assert_int_equal(layers_of(&model, &cut, 32, PC_RECOMPUTE_OP, 0, with_r).taken, 32 * 2176 * mib);
    cut.kernels = PC_KERNELS_EAGER;
    assert_int_equal(layers_of(&model, &cut, 32, PC_RECOMPUTE_OP, 0, together).taken, 32 * 992 * mib);
    assert_int_equal(layers_of(&model, &cut, 32, PC_RECOMPUTE_OP, 0, together).working, (2176 - 864) * mib);
    assert_int_equal(layers_of(&model, &cut, 32, PC_RECOMPUTE_OP, 0, with_r).taken, 32 * (2176 + 128) * mib);
}

/* What each policy keeps, in columns of all tokens: i and o for h of the norms' tokens (input, and the output product),
 * q, k, f as in the model, over t. With the sequence cut, `op` keeps what the reduce-scatters put out; eagerly also
 * that behind down, and down itself for all tokens. Scores in memory are no output that a policy could keep. */
static void test_policies(void **state) {
    (void)state;
    test_random random = {22};
    static const struct {
        pc_recompute kind;
        int inputs, queries, keys, context, mlp;
    } policies[] = {{PC_RECOMPUTE_MINIMAL_WITH_CONTEXT, 2, 1, 2, 1, 2},
                    {PC_RECOMPUTE_MINIMAL, 2, 1, 2, 0, 2},
                    {PC_RECOMPUTE_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP, 2, 1, 2, 1, 0},
                    {PC_RECOMPUTE_SAVE_DOT_EXCEPT_MLPWI, 2, 1, 2, 0, 0},
                    {PC_RECOMPUTE_SAVE_DOT_EXCEPT_MLP, 2, 1, 2, 0, 0},
                    {PC_RECOMPUTE_SAVE_QKV_PROJ, 1, 1, 2, 0, 0},
                    {PC_RECOMPUTE_SAVE_OUT_PROJ, 2, 0, 0, 0, 0},
                    {PC_RECOMPUTE_OP, 1, 1, 1, 1, 1}};
    for (long i = 0; i < test_cases(800, 4000); i++) {
        int p = (int)(i % 8);
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        pc_pass_forms together = {0};
        bool is_op = policies[p].kind == PC_RECOMPUTE_OP, is_flash = model.attention == PC_ATTENTION_FLASH;
        bool is_cut = cut.sequence_parallel && cut.tp > 1, is_gated = model.mlp == PC_MLP_SWIGLU;
        wide t = cut.tp, sb = cut.seq_len * cut.microbatch_size, rows = sb * model.hidden / (is_cut ? t : 1);
        wide query = model.heads * model.head_dim / t,
             key = (model.kv_heads < t ? 1 : model.kv_heads / t) * model.head_dim, ffn = model.ffn_hidden / t;
        wide columns = policies[p].queries * query + policies[p].keys * key +
                       (policies[p].mlp > 1 && !is_gated ? 1 : policies[p].mlp) * ffn;
        if (is_op && model.has_bias) columns = 0;
        if (is_flash) columns += policies[p].context * query;
        wide kept = 2 * (policies[p].inputs + (is_op && is_cut)) * rows + 2 * sb * columns;
        assert_wide_equal(layers_of(&model, &cut, 3, policies[p].kind, 0, together).taken, 3 * kept);
        cut.kernels = PC_KERNELS_EAGER;
        bool has_down = is_op ? is_gated && !model.has_bias : p < 2 || p == 3;
        wide unread = (has_down ? 2 * sb * model.hidden : 0) + (is_op && is_cut ? 2 * rows : 0);
        assert_wide_equal(layers_of(&model, &cut, 3, policies[p].kind, 0, together).taken, 3 * (kept + unread));
    }
}

/* B and W apart, W needs of a layer what it needs of a whole one, or more than that is kept. */
static void test_policies_apart(void **state) {
    (void)state;
    test_random random = {23};
    const pc_pass_forms apart = {.splits = true};
    for (long i = 0; i < test_cases(400, 2000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_traits(&random, &cut, &model);
        pc_recompute kind = (pc_recompute)test_between(&random, PC_RECOMPUTE_OP, PC_RECOMPUTE_SAVE_OUT_PROJ);
        pc_part_activation x = layers_of(&model, &cut, 4, kind, 0, apart),
                           one = layers_of(&model, &cut, 1, PC_RECOMPUTE_NONE, 0, apart);
        assert_wide_equal(x.taken - x.b_frees, 4 * (wide)(one.taken - one.b_frees));
        assert_true(x.kept <= x.taken && x.taken <= 4 * one.taken);
    }
}

/* PyTorch's own loss keeps the logarithm of the softmax, 4 bytes a logit; in B the fp32 gradient of that and the one
 * made of it stand beside: 12. */
static void test_torchs_loss(void **state) {
    (void)state;
    test_random random = {24};
    const pc_part last = {.has_head = true};
    pc_model model = random_gpt(&random);
    pc_cut cut = random_cut(&random, &model);
    cut.tp = 1;
    wide sb = cut.seq_len * cut.microbatch_size;
    cut.cross_entropy = PC_CROSS_ENTROPY_TORCH;
    pc_part_activation x = activation_of(&model, &cut, &last, false);
    assert_wide_equal(x.taken, 4 * sb * model.hidden + 4 * sb * model.vocab);
    assert_wide_equal(x.working, 8 * sb * model.vocab);
}

/* loss_parallel over a cut vocabulary: zeros, or what becomes of them, exponentials and their sum, fp32, beside the
 * logarithms kept: 16 bytes a logit of the rank. */
static void test_torchs_loss_in_parallel(void **state) {
    (void)state;
    test_random random = {25};
    const pc_part last = {.has_head = true};
    pc_model model = random_gpt(&random);
    pc_cut cut = random_cut(&random, &model);
    cut.tp = 2, cut.cp = 1;
    model.vocab = 2 * 640, model.vocab_multiple = 1;
    cut.sequence_parallel = false;
    wide sb = cut.seq_len * cut.microbatch_size;
    cut.cross_entropy = PC_CROSS_ENTROPY_TORCH;
    pc_part_activation x = activation_of(&model, &cut, &last, false);
    assert_wide_equal(x.taken, 4 * sb * model.hidden + 4 * sb * 640);
    assert_wide_equal(x.working, 12 * sb * 640);
}

/* ---- what stands all the time ---- */

/* Rajbhandari et al. 2020: each of the three over the ranks from its stage on; here 2, 4 and 12 bytes a parameter. */
static void test_zero(void **state) {
    (void)state;
    for (int zero = 0; zero <= 3; zero++) {
        pc_cut cut = {.dp = 5, .zero = zero};
        pc_state_bytes x = pc_state_of(&cut, 1000), y = pc_state_of(&cut, 7);
        assert_int_equal(x.optimizer, zero >= 1 ? 2400 : 12000);
        assert_int_equal(x.gradients, zero >= 2 ? 800 : 4000);
        assert_int_equal(x.parameters, zero >= 3 ? 400 : 2000);
        assert_int_equal(y.optimizer, zero >= 1 ? 17 : 84); /* 16.8 */
        assert_int_equal(y.gradients, zero >= 2 ? 6 : 28);  /* 5.6 */
        assert_int_equal(y.parameters, zero >= 3 ? 3 : 14); /* 2.8 */
    }
}

/* Gradients are held as wide as they are sent: of 2 bytes half of what fp32 ones take, rounded up, and nothing else
 * changes; a size that is not said is 4. */
static void test_zero_of_narrow_gradients(void **state) {
    (void)state;
    for (int zero = 0; zero <= 3; zero++) {
        pc_cut unsaid = {.dp = 5, .zero = zero}, whole = unsaid, narrow = unsaid;
        whole.gradient_bytes = 4;
        narrow.gradient_bytes = 2;
        pc_state_bytes x = pc_state_of(&unsaid, 7), y = pc_state_of(&whole, 7), z = pc_state_of(&narrow, 7);
        assert_int_equal(x.gradients, y.gradients);
        assert_int_equal(z.gradients, zero >= 2 ? 3 : 14); /* 2.8 */
        assert_true(z.optimizer == y.optimizer && z.parameters == y.parameters);
    }
}

static void test_boundary(void **state) {
    (void)state;
    pc_model model = {.hidden = 96};
    pc_cut cut = {.tp = 4, .seq_len = 128, .microbatch_size = 3};
    assert_int_equal(pc_boundary_bytes(&model, &cut, false), 2 * 128 * 3 * 96);
    assert_int_equal(pc_boundary_bytes(&model, &cut, true), 2 * 128 * 3 * 96 / 4);
    cut.sequence_parallel = true;
    assert_int_equal(pc_boundary_bytes(&model, &cut, false), 2 * 128 * 3 * 96 / 4);
}

/* Of t tokens a rank, where e ranks share experts out and c cut one, an all-gather has t e c rows of h in 16 bits. An
 * all-to-all has the rows that the rank's own tokens make. Both have beside them the rows of its experts. These and a
 * gathered sequence, whichever is more, are there in turn. Layers without experts dispatch nothing, nor does one rank.
 */
static void test_dispatched_tokens(void **state) {
    (void)state;
    test_random random = {31};
    long exchanged = 0;
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_experts(&random, &model, &cut);
        pc_part part = {.layers = 3, .expert_layers = 2}, dense = {.layers = 3};
        const pc_slice slice = pc_slice_of(&model, &cut);
        const pc_expert_slice x = slice.experts;
        cut.dispatcher = PC_DISPATCHER_DEEPEP;
        int64_t without = activation_of(&model, &cut, &part, false).working;
        int64_t of_dense = activation_of(&model, &cut, &dense, false).working;
        wide gathered = cut.tp > 1 && cut.sequence_parallel ? 2 * (wide)slice.tokens * model.hidden : 0;
        if (cut.tp_inputs == PC_TP_INPUTS_GATHERED) gathered *= 2;
        for (int d = 0; d < 2; d++) {
            cut.dispatcher = d ? PC_DISPATCHER_ALLTOALL : PC_DISPATCHER_ALLGATHER;
            wide came = d ? (x.ranks > 1 ? x.sent : 0) : (x.ranks * x.cut > 1 ? (wide)x.tokens * x.ranks * x.cut : 0);
            wide rows = came > 0 ? 2 * (came + x.held_rows) * model.hidden : 0;
            wide more = rows > gathered ? rows - gathered : 0;
            assert_wide_equal(activation_of(&model, &cut, &part, false).working - without, more);
            assert_wide_equal(activation_of(&model, &cut, &dense, false).working, of_dense);
            exchanged += more > 0;
        }
    }
    assert_true(test_saw(exchanged, 21));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_2),
        cmocka_unit_test(test_split_of_b_and_w),
        cmocka_unit_test(test_agrees_with_activation_h),
        cmocka_unit_test(test_gpt3_layer),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_losses_without_fp32),
        cmocka_unit_test(test_the_head_goes_first),
        cmocka_unit_test(test_a_part_is_a_sum),
        cmocka_unit_test(test_llama_layer),
        cmocka_unit_test(test_without_dropout_and_with_one_key_head),
        cmocka_unit_test(test_some_layers),
        cmocka_unit_test(test_some_layers_apart),
        cmocka_unit_test(test_torchtitans_op),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_policies_apart),
        cmocka_unit_test(test_torchs_loss),
        cmocka_unit_test(test_torchs_loss_in_parallel),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_zero_of_narrow_gradients),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_dispatched_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
