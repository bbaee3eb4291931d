/* What an iteration sends and computes, and what its outlines share, by algebra. */
#include "tests/support.h"

#include "models/training/iteration.h"
#include "models/training/outline.h"
#include "models/training/outline_memo.h"
#include "tests/iteration_example.h"

/* ---- bytes ---- */

/* By ring: a rank sends (n-1)/n of what is gathered or reduced and scattered. TP: eight collectives of 2sbh a layer, as
 * many in the embedding and the head as operations say; PP: of 4 stages 3 send F's and 3 B's tensor of 2sbh/t on;
 * DP: 4 bytes a parameter's gradient and 2 of itself, once with ZeRO 1. */
static void test_bytes_by_kind(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.model.is_tied = false;
    spec.cut.tp = 4;
    pc_iteration x = run_spec(&spec);
    double tensor = 2.0 * 1024 * 2048, m = 8, parameters = 0, passes = 0;
    for (int d = 0; d < 4; d++) parameters += (double)x.memory[d].parameters / 2 / 4;
    check_within(x.sent.pp_bytes, m * 2 * 3 / 4 * tensor / 4, 1e-12);
    check_within(x.sent.dp_bytes, 7.0 / 8 * (4 + 2) * parameters, 1e-12);
    pc_operations list;
    for (int d = 0; d < 4; d++)
        for (int k = 0; k < 2; k++) {
            pc_part part = pc_cut_part(&spec.model, &spec.cut, 4, d);
            assert_int_equal(
                pc_pass_operations(&spec.model, &spec.cut, &part, k ? PC_PASS_BW : PC_PASS_F, false, &list, NULL),
                PC_OK);
            for (int i = 0; i < list.count; i++) {
                bool is_twice = list.list[i].kind == PC_OPERATION_ALL_REDUCE;
                passes += (is_twice ? 2 : 1) * 3.0 / 4 * (double)list.list[i].size_bytes * (double)list.list[i].repeat;
            }
        }
    check_within(x.sent.tp_bytes, m * passes / 4, 1e-4); /* the loss is so small that it goes by trees */
    assert_true(x.sent.tp_bytes >
                m * 3 / 4 * 24.0 / 4 * 10 * tensor); /* 4 in F and 6 in BW, of 24 layers on 4 stages */
    pc_iteration_free(&x);
}

/* ZeRO 0 reduces as much as ZeRO 1 gathers and reduces, of fp32: 2(n-1)/n of 4 bytes; 2 reduces every microbatch's
 * gradients; 3 gathers twice for each. Ties add an all-reduce of 4 bytes between two of four stages, of 16-bit
 * gradients of half as much. */
static void test_bytes_of_zero_and_of_ties(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.model.is_tied = false;
    double parameters = 0, sent[4], pp = 0;
    for (spec.cut.zero = 3; spec.cut.zero >= 0; spec.cut.zero--) {
        pc_iteration x = run_spec(&spec);
        sent[spec.cut.zero] = x.sent.dp_bytes;
        pp = x.sent.pp_bytes;
        for (int d = 0; spec.cut.zero == 0 && d < 4; d++) parameters += (double)x.memory[d].parameters / 2 / 4;
        pc_iteration_free(&x);
    }
    check_within(sent[0], 7.0 / 8 * 8 * parameters, 1e-12);
    check_within(sent[1], 7.0 / 8 * 6 * parameters, 1e-12);
    check_within(sent[2], 7.0 / 8 * (8 * 4 + 2) * parameters, 1e-12);
    check_within(sent[3], 7.0 / 8 * 8 * (4 + 2 * 2) * parameters, 1e-12);
    spec.cut.zero = 1;
    spec.model.is_tied = true;
    double table = (double)pc_model_padded_vocab(&spec.model, 2) / 2 * 2048;
    for (spec.cut.gradient_bytes = 4; spec.cut.gradient_bytes > 0; spec.cut.gradient_bytes -= 2) {
        pc_iteration x = run_spec(&spec);
        check_within(x.sent.pp_bytes - pp, 2.0 / 4 * table * spec.cut.gradient_bytes, 1e-9);
        pc_iteration_free(&x);
    }
}

/* Whatever the schedule, of one placement and as many chunks; W apart, the gathering for it is W's. */
static void test_bytes_do_not_depend_on_the_schedule(void **state) {
    (void)state;
    static const char *const alike[][4] = {{"1f1b", "gpipe", "zb-h1", "eager-1f1b"},
                                           {"1f1b-interleaved", "1f1b-interleaved-low-memory", NULL, NULL},
                                           {"v-half", "v-min", "zb-v", "1f1b-v"},
                                           {"gems", "chimera", NULL, NULL}};
    test_random random = {32};
    for (long i = 0; i < test_cases(12, 200); i++) {
        pc_iteration_spec spec = random_spec(&random);
        pc_sent first = {0};
        spec.cut.zero = (int)test_between(&random, 0, 3);
        for (int k = 0; k < 4 && alike[i % 4][k]; k++) {
            spec.generator = pc_generator_find(alike[i % 4][k]);
            if (!spec.generator) fail_msg("no schedule %s", alike[i % 4][k]);
            spec.cut.chunks = spec.generator->chunks_default;
            pc_iteration x = run_spec(&spec);
            if (k == 0) first = x.sent;
            assert_true(x.sent.dp_bytes == first.dp_bytes && x.sent.pp_bytes == first.pp_bytes);
            if (x.sent.tp_bytes != 0 || first.tp_bytes != 0) check_within(x.sent.tp_bytes, first.tp_bytes, 1e-12);
            pc_iteration_free(&x);
        }
    }
}

/* ---- what is counted and not computed ---- */

/* Of a layer flash attention counts, for a sequence, 4 s^2 A forward and twice that backward, A = heads * head_dim, and
 * runs half a forward's more. A causal mask leaves s (s + 1) / 2 scores of s^2. */
static void test_masked_flops(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = 1; /* or padding of the vocabulary grows */
    spec.cut.sequence_parallel = false;
    double s = (double)spec.cut.seq_len, of_scores = 4 * s * s * 2048 * 24, part = (s - 1) / (2 * s);
    double model = pc_model_flops_per_sequence(&spec.model, 1, spec.cut.seq_len);
    pc_masked_flops masked;
    assert_int_equal(pc_iteration_masked_flops(&spec, &masked, NULL), PC_OK);
    assert_float_equal(masked.of_model, 3 * of_scores * part / model, 1e-12);
    assert_float_equal(masked.of_hardware, 3.5 * of_scores * part / (model + of_scores / 2), 1e-12);
    spec.cut.recompute = PC_RECOMPUTE_FULL; /* forward once more, but for embedding and head */
    double again = of_scores + 24.0 * s * 2 * (4 * 2048.0 * 2048 + 2 * 2048.0 * 8192);
    assert_int_equal(pc_iteration_masked_flops(&spec, &masked, NULL), PC_OK);
    assert_float_equal(masked.of_model, 3 * of_scores * part / model, 1e-12);
    assert_float_equal(masked.of_hardware, 4.5 * of_scores * part / (model + of_scores / 2 + again), 1e-12);
    spec.model.attention = PC_ATTENTION_MATERIALISED;
    assert_int_equal(pc_iteration_masked_flops(&spec, &masked, NULL), PC_OK);
    assert_true(masked.of_model == 0 && masked.of_hardware == 0);
    pc_error error = {0};
    spec.cut.tp = 3;
    assert_int_equal(pc_iteration_masked_flops(&spec, &masked, &error), PC_ERROR_INPUT);
}

/* ---- what outlines share ---- */

static double forward_of(const pc_iteration_spec *spec, pc_outline_memo *memo) {
    pc_outline outline;
    if (pc_outline_make_with(spec, NULL, memo, &outline, NULL)) fail();
    double seconds = pc_outline_part(&outline, 1, 0)->pass[PC_PASS_F].kernel_s;
    pc_outline_free(&outline);
    return seconds;
}

static pc_iteration_spec spec_of_few_bits(pc_low_weights weights) {
    pc_iteration_spec spec = example_spec();
    spec.machine.gpu.matrix_fp8_flops_per_s = 600e12;
    spec.model.low = (pc_low_precision){.product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8},
                                        .scaling = PC_SCALING_DELAYED,
                                        .weights = weights,
                                        .copies = 1,
                                        .gathers_parameters = weights == PC_LOW_WEIGHTS_EACH};
    return spec;
}

/* Casts that the first of m microbatches makes count an m-th in each pass: what a memo has of other m is no answer. Nor
 * is what it has of other ZeRO, where ZeRO 3 gathers few bits, which no pass casts then; but over one replica, which
 * gathers nothing. */
static void test_a_memo_knows_what_casts_depend_on(void **state) {
    (void)state;
    pc_outline_memo *memo[2];
    pc_iteration_spec once = spec_of_few_bits(PC_LOW_WEIGHTS_CACHED), each = spec_of_few_bits(PC_LOW_WEIGHTS_EACH);
    for (int i = 0; i < 2; i++) assert_int_equal(pc_outline_memo_create(&memo[i], NULL), PC_OK);
    for (int m = 4; m <= 16; m *= 2) {
        once.cut.microbatches = m;
        assert_true(forward_of(&once, memo[0]) == forward_of(&once, NULL));
    }
    for (each.cut.zero = 0; each.cut.zero < 4; each.cut.zero++)
        assert_true(forward_of(&each, memo[1]) == forward_of(&each, NULL));
    each.cut.zero = 1;
    double casts = forward_of(&each, NULL);
    each.cut.zero = 3;
    assert_true(forward_of(&each, NULL) < casts);
    each.cut.dp = 1;
    assert_true(forward_of(&each, NULL) == casts);
    for (int i = 0; i < 2; i++) pc_outline_memo_free(memo[i]);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_by_kind),
        cmocka_unit_test(test_bytes_of_zero_and_of_ties),
        cmocka_unit_test(test_bytes_do_not_depend_on_the_schedule),
        cmocka_unit_test(test_masked_flops),
        cmocka_unit_test(test_a_memo_knows_what_casts_depend_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
