/* A microbatch cut along its sequence: where it is cut, and what slices do and hold; together what the whole does and
 * holds. */
#include "tests/random_frozen.h"
#include "tests/random_model.h"

#include "models/workload/sequence_slices.h"

#include <math.h>
#include <string.h>

static pc_model flash_model(test_random *random) {
    pc_model model = random_model(random);
    model.attention = PC_ATTENTION_FLASH;
    if (model.mlp == PC_MLP_SWIGLU && model.layers % 2) model.mlp = PC_MLP_GEGLU;
    return model;
}

static pc_cut cut_of(test_random *random, const pc_model *model) {
    pc_cut cut = random_cut(random, model);
    int64_t granules = cut.seq_len / pc_sequence_granule(&cut);
    cut.slices = (int)test_between(random, 1, granules < 9 ? granules : 9);
    cut.sequence_split = test_between(random, 0, 1) ? PC_SEQUENCE_SPLIT_FLOPS : PC_SEQUENCE_SPLIT_EVEN;
    return cut;
}

/* ---- where ---- */

/* FLOPs of tokens a to b of a sequence: every matrix for each of them; and each meets those before it and half of their
 * own, in two products of 2 a head's width. */
static double flops_between(const pc_model *model, int64_t a, int64_t b) {
    bool has_gate = model->mlp == PC_MLP_SWIGLU || model->mlp == PC_MLP_GEGLU;
    double mlp = has_gate ? 3 : 2, tokens = (double)(b - a), met = (double)(a + b) / 2;
    double columns = (double)(model->heads * model->head_dim), keys = (double)(model->kv_heads * model->head_dim);
    double matrices = (double)model->hidden * (2 * columns + 2 * keys + mlp * (double)model->ffn_hidden);
    return 2 * matrices * tokens + 4 * columns * tokens * met;
}

static void test_cuts(void **state) {
    (void)state;
    test_random random = {31};
    for (long i = 0; i < test_cases(2000, 20000); i++) {
        pc_model model = flash_model(&random);
        pc_cut cut = cut_of(&random, &model);
        int64_t granule = cut.sequence_parallel ? cut.tp : 1, end = 0, least = INT64_MAX, most = 0;
        double share = flops_between(&model, 0, cut.seq_len) / pc_cut_slices(&cut);
        for (int k = 0; k < pc_cut_slices(&cut); k++) {
            pc_sequence_slice x = pc_sequence_slice_of(&model, &cut, k);
            assert_int_equal(x.start, end);
            assert_true(x.tokens >= granule);
            assert_int_equal(x.tokens % granule, 0);
            end = x.start + x.tokens;
            least = x.tokens < least ? x.tokens : least;
            most = x.tokens > most ? x.tokens : most;
            double off = fabs(flops_between(&model, x.start, end) - share);
            double room = flops_between(&model, end, end + granule); /* of a granule at its end */
            if (cut.sequence_split == PC_SEQUENCE_SPLIT_FLOPS && x.tokens > granule)
                assert_true(off <= room * (1 + 1e-9));
        }
        assert_int_equal(end, cut.seq_len);
        if (cut.sequence_split == PC_SEQUENCE_SPLIT_EVEN) assert_true(most - least <= granule);
    }
}

/* GPT, h = a d, f = 4h: 24 h^2 t + 2 h t^2. Of s = 12 h tokens half of that is done where t/s (1 + t/s) = 1: at
 * (sqrt 5 - 1) / 2 of them, 474.7 of 768. */
static void test_golden_cut(void **state) {
    (void)state;
    test_random random = {1};
    pc_model model = random_gpt(&random);
    model.attention = PC_ATTENTION_FLASH;
    model.hidden = 64;
    model.ffn_hidden = 256;
    model.heads = model.kv_heads = 8;
    model.head_dim = 8;
    pc_cut cut = {.tp = 1, .slices = 2, .sequence_split = PC_SEQUENCE_SPLIT_FLOPS, .seq_len = 768};
    assert_int_equal(pc_sequence_slice_of(&model, &cut, 0).tokens, 475);
    assert_int_equal(pc_sequence_slice_of(&model, &cut, 1).tokens, 293);
    cut.tp = 8; /* the nearest multiple of 8 */
    cut.sequence_parallel = true;
    assert_int_equal(pc_sequence_slice_of(&model, &cut, 0).tokens, 472);
    cut.sequence_split = PC_SEQUENCE_SPLIT_EVEN;
    cut.slices = 5; /* 96 granules: 20, 19, 19, 19, 19 */
    assert_int_equal(pc_sequence_slice_of(&model, &cut, 0).tokens, 160);
    assert_int_equal(pc_sequence_slice_of(&model, &cut, 4).tokens, 152);
}

/* ---- what they do and hold ---- */

/* FLOPs, and the model's of them, are the whole's. */
static void test_flops_of_all(void **state) {
    (void)state;
    test_random random = {32};
    for (long i = 0; i < test_cases(300, 3000); i++) {
        pc_model model = flash_model(&random);
        pc_cut cut = cut_of(&random, &model), whole = cut;
        pc_part part = whole_part(&model, &cut);
        part.recompute = (pc_recompute)(i % 2 ? PC_RECOMPUTE_FULL : PC_RECOMPUTE_NONE);
        whole.slices = 0;
        for (int kind = 0; kind < PC_PASS_R; kind++) {
            pc_operation_sums expected = sums_of(&model, &whole, &part, (pc_pass_kind)kind, false), sum = {0};
            for (part.slice = 0; part.slice < pc_cut_slices(&cut); part.slice++) {
                pc_operation_sums x = sums_of(&model, &cut, &part, (pc_pass_kind)kind, false);
                sum.flops += x.flops;
                sum.model_flops += x.model_flops;
            }
            part.slice = 0;
            assert_int_equal(sum.flops, expected.flops);
            assert_int_equal(sum.model_flops, expected.model_flops);
        }
    }
}

/* A slice of 256 queries behind 512 tokens: 2 * 512 + 256 keys, of which the mask hides half; keys and values of 768
 * tokens are read, and their gradients added to what later slices have left. */
static void test_attention_of_a_slice(void **state) {
    (void)state;
    test_random random = {3};
    pc_model model = random_gpt(&random);
    pc_operations f, b;
    model.attention = PC_ATTENTION_FLASH;
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 1, .microbatch_size = 3, .microbatches = 1, .seq_len = 1024, .slices = 4};
    pc_part part = {.layers = 1, .slice = 2};
    int64_t query = model.heads * model.head_dim;
    assert_int_equal(pc_pass_operations(&model, &cut, &part, PC_PASS_F, false, &f, NULL), PC_OK);
    assert_int_equal(pc_pass_operations(&model, &cut, &part, PC_PASS_B, false, &b, NULL), PC_OK);
    int seen = 0, sums = 0;
    for (int i = 0; i < f.count; i++)
        if (f.list[i].kind == PC_OPERATION_ATTENTION) {
            seen++;
            assert_int_equal(f.list[i].m, 256);
            assert_int_equal(f.list[i].n, 1280);
            assert_int_equal(f.list[i].flops, 4 * 3 * query * 256 * 1280);
            assert_int_equal(f.list[i].bytes, 2 * 3 * query * (2 * 256 + 2 * 768));
        }
    for (int i = 0; i < b.count; i++)
        if (strcmp(b.list[i].name, "key_value_sum") == 0) {
            sums++;
            assert_int_equal(b.list[i].bytes, 6 * 2 * 3 * 768 * query);
        }
    assert_int_equal(seen, 1);
    assert_int_equal(sums, 1);
    part.slice = 3; /* the first whose B runs: its gradients are the sums */
    assert_int_equal(pc_pass_operations(&model, &cut, &part, PC_PASS_B, false, &b, NULL), PC_OK);
    for (int i = 0; i < b.count; i++) assert_string_not_equal(b.list[i].name, "key_value_sum");
}

static pc_part_activation activation_of(const pc_model *model, const pc_cut *cut, const pc_part *part) {
    pc_part_activation activation;
    pc_error error = {0};
    if (pc_part_activations(model, cut, part, (pc_pass_forms){0}, &activation, &error)) fail_msg("%s", error.message);
    return activation;
}

/* Nothing recomputed: together the whole's. All recomputed: beside it keys and values, 4 bytes a column, of all slices
 * but the last. While a slice's B runs the gradients of those before it stand, as many bytes. */
static void test_memory_of_all(void **state) {
    (void)state;
    test_random random = {33};
    for (long i = 0; i < test_cases(500, 5000); i++) {
        pc_model model = flash_model(&random);
        pc_cut cut = cut_of(&random, &model), whole = cut;
        pc_part part = {.layers = test_between(&random, 1, 9),
                        .recompute = i % 2 ? PC_RECOMPUTE_FULL : PC_RECOMPUTE_NONE};
        whole.slices = 0;
        int64_t heads = model.kv_heads < cut.tp ? 1 : model.kv_heads / cut.tp, held = 0, cached = 0, tokens = 0;
        int64_t column = 4 * heads * model.head_dim * part.layers * cut.microbatch_size; /* a token's */
        int64_t expected = activation_of(&model, &whole, &part).taken;
        for (part.slice = 0; part.slice < pc_cut_slices(&cut); part.slice++) {
            pc_part_activation x = activation_of(&model, &cut, &part);
            held += x.taken;
            assert_true(x.working >= tokens * column);
            cached = tokens * column; /* of those before the last */
            tokens += pc_sequence_slice_of(&model, &cut, part.slice).tokens;
        }
        assert_int_equal(held, expected + (part.recompute == PC_RECOMPUTE_FULL ? cached : 0));
        assert_true(part.slice == 1 ||
                    pc_part_parameters(&model, &cut, &(pc_part){.layers = 1, .slice = 1}, false) == 0);
    }
}

static pc_part_activation split_activation(const pc_model *model, const pc_cut *cut, pc_part part, pc_recompute kind) {
    pc_part_activation activation;
    part.recompute = kind;
    pc_pass_forms forms = {.splits = true};
    assert_int_equal(pc_part_activations(model, cut, &part, forms, &activation, NULL), PC_OK);
    return activation;
}

/* B and W apart, all recomputed: F keeps the input and, for later slices, keys and values; B leaves what W finds where
 * nothing is recomputed. Either may be more, of adapters and of few columns; more is taken, and nothing given twice. */
static void test_memory_of_b_and_w(void **state) {
    (void)state;
    test_random random = {34};
    long less = 0, more = 0;
    for (long i = 0; i < test_cases(500, 5000); i++) {
        pc_model model = flash_model(&random);
        pc_cut cut = cut_of(&random, &model);
        pc_part part = {.layers = test_between(&random, 1, 9)};
        random_frozen(&random, &model, &cut);
        random_base(&random, &model, &cut);
        int64_t heads = model.kv_heads < cut.tp ? 1 : model.kv_heads / cut.tp;
        for (part.slice = 0; part.slice < pc_cut_slices(&cut); part.slice++) {
            pc_part_activation none = split_activation(&model, &cut, part, PC_RECOMPUTE_NONE);
            pc_part_activation full = split_activation(&model, &cut, part, PC_RECOMPUTE_FULL);
            int64_t tokens = pc_sequence_slice_of(&model, &cut, part.slice).tokens * cut.microbatch_size;
            int64_t input = 2 * tokens / (cut.sequence_parallel ? cut.tp : 1) * model.hidden;
            int64_t keys = part.slice + 1 < pc_cut_slices(&cut) ? 4 * tokens * heads * model.head_dim : 0;
            int64_t for_w = none.taken - none.b_frees;
            assert_int_equal(full.kept, part.layers * (input + keys));
            assert_int_equal(full.taken, for_w > full.kept ? for_w : full.kept);
            assert_int_equal(full.taken - full.b_frees, for_w);
            less += for_w < full.kept;
            more += for_w > full.kept;
        }
    }
    assert_true(test_saw(less, 1) && test_saw(more, 1));
}

/* ---- what does not go with them ---- */

static void check_refused(const pc_model *model, pc_cut cut, const char *words) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, &cut, 1, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("'%s'; expected '%s'", error.message, words);
}

static void test_refusals(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut); /* 16 tokens, of which sequence parallelism cuts two at a time */
    cut.slices = 4;
    check_refused(&model, cut, "sequence_slices 4 with attention materialised; expected attention flash");
    model.attention = PC_ATTENTION_FLASH;
    assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK);
    cut.slices = 9;
    check_refused(&model, cut, "sequence_slices 9 of seq_len 16 in steps of 2 tokens; expected at most one a step");
    cut.slices = 4;
    cut.cp = 2;
    check_refused(&model, cut, "sequence_slices 4 with cp 2, which cut the sequence twice; expected cp 1");
    cut.cp = 0;
    cut.zero = 2; /* of one replica it is nothing */
    assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK);
    cut.dp = 2;
    check_refused(&model, cut, "sequence_slices 4 with zero 2, which reduces gradients behind every pass");
    cut.zero = 1;
    cut.offload_layers = 1;
    check_refused(&model, cut, "sequence_slices 4 with activations on the host");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),          cmocka_unit_test(test_golden_cut),
        cmocka_unit_test(test_flops_of_all),  cmocka_unit_test(test_attention_of_a_slice),
        cmocka_unit_test(test_memory_of_all), cmocka_unit_test(test_memory_of_b_and_w),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
