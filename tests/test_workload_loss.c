/* What a loss is, operation by operation: plain, fused, compiled and in chunks. */
#include "tests/expected_operations.h"

static const pc_part head_alone = {.has_head = true};

/* Plainly the same moves as in place. */
static void test_plain_loss(void **state) {
    (void)state;
    pc_cut cut;
    pc_operations in_place, plain;
    pc_model model = small_gpt(&cut);
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        cut.cross_entropy = PC_CROSS_ENTROPY_IN_PLACE;
        assert_int_equal(pc_pass_operations(&model, &cut, &head_alone, kind, false, &in_place, NULL), PC_OK);
        cut.cross_entropy = PC_CROSS_ENTROPY_PLAIN;
        assert_int_equal(pc_pass_operations(&model, &cut, &head_alone, kind, false, &plain, NULL), PC_OK);
        assert_int_equal(plain.count, in_place.count);
        for (int i = 0; i < plain.count; i++) assert_int_equal(plain.list[i].bytes, in_place.list[i].bytes);
    }
}

/* 6 bytes a logit in F and 4 in B, and one exchange of three numbers a token of each of two ranks. */
static void test_fused_loss(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    const expected_operation forward[] = {
        norm("final_norm", 24 * 32 * 4),
        gather("head", 48 * 32 * 2, false),
        gemm("head", 1, 48, 50, 32, 2 * (48 * 32 + 32 * 50 + 48 * 50)),
        gather("loss", 2 * 48 * 12, false),
        kernel("loss", 48 * 50 * 6),
    };
    const expected_operation backward[] = {
        kernel("loss", 48 * 50 * 4),
        gather("head", 48 * 32 * 2, true),
        gemm("head", 1, 48, 32, 50, 2 * (48 * 32 + 32 * 50 + 48 * 50)),
        scatter("head", 48 * 32 * 2, true),
        gemm("head", 1, 50, 32, 48, 2 * 48 * (32 + 50) + 8 * 32 * 50),
        norm("final_norm", 24 * 32 * 10),
    };
    cut.cross_entropy = PC_CROSS_ENTROPY_FUSED;
    check_pass(&model, &cut, &head_alone, PC_PASS_F, forward, LENGTH(forward));
    check_pass(&model, &cut, &head_alone, PC_PASS_BW, backward, LENGTH(backward));
}

/* torch.compile's loss reads the logits twice in F, and in B reads them and writes their gradient: 4 bytes each. */
static void test_a_compiled_loss(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    pc_operation_sums sums[2][2]; /* [fused, compiled][forward, backward] */
    model.vocab_multiple = 1;
    cut.tp = 1;
    cut.sequence_parallel = false;
    for (int i = 0; i < 2; i++) {
        cut.cross_entropy = i ? PC_CROSS_ENTROPY_COMPILED : PC_CROSS_ENTROPY_FUSED;
        sums[i][0] = sums_of(&model, &cut, &head_alone, PC_PASS_F, false);
        sums[i][1] = sums_of(&model, &cut, &head_alone, PC_PASS_B, false);
    }
    assert_int_equal(sums[0][0].bytes - sums[1][0].bytes, 48 * 100 * (6 - 4));
    assert_int_equal(sums[0][1].bytes, sums[1][1].bytes);
    assert_true(sums[0][0].flops == sums[1][0].flops);
}

/* What a piece of so many tokens does, over 50 columns and 32 of hidden size: logits, loss, both gradients. */
static void put_piece(expected_operation *list, int64_t tokens, int64_t times) {
    const expected_operation piece[] = {
        gemm("head", 1, tokens, 50, 32, 2 * (tokens * 32 + 32 * 50 + tokens * 50)),
        gather("loss", 2 * tokens * 12, false),
        kernel("loss", tokens * 50 * 6),
        gemm("head", 1, tokens, 32, 50, 2 * (tokens * 32 + 32 * 50 + tokens * 50)),
        gemm("head", 1, 50, 32, tokens, 2 * tokens * (32 + 50) + 8 * 32 * 50),
    };
    for (int i = 0; i < LENGTH(piece); i++) {
        list[i] = piece[i];
        list[i].repeat = times;
    }
}

/* Five pieces of 48 tokens: four of 10 and one of 8. F does all three products of each; B scales the gradient of the
 * head's input; W has nothing to do. */
static void test_chunked_loss(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    expected_operation forward[13] = {norm("final_norm", 24 * 32 * 4), gather("head", 48 * 32 * 2, false)};
    const expected_operation backward[] = {kernel("loss", 24 * 32 * 4), norm("final_norm", 24 * 32 * 10)};
    put_piece(&forward[2], 10, 4);
    put_piece(&forward[7], 8, 1);
    forward[12] = scatter("head", 48 * 32 * 2, false);
    cut.cross_entropy = PC_CROSS_ENTROPY_CHUNKED;
    cut.cross_entropy_chunks = 5;
    check_pass(&model, &cut, &head_alone, PC_PASS_F, forward, 13);
    check_pass(&model, &cut, &head_alone, PC_PASS_B, backward, 2);
    check_pass(&model, &cut, &head_alone, PC_PASS_BW, backward, 2);
    check_pass(&model, &cut, &head_alone, PC_PASS_W, NULL, 0);
    cut.cross_entropy_chunks = 0; /* eight of 6 tokens each */
    put_piece(&forward[2], 6, 8);
    forward[7] = forward[12];
    check_pass(&model, &cut, &head_alone, PC_PASS_F, forward, 8);
}

/* However the loss is computed, and in however many pieces, more than there are tokens, too: the same products. */
static void test_losses_have_the_same_flops(void **state) {
    (void)state;
    test_random random = {11};
    for (long i = 0; i < test_cases(500, 2500); i++) {
        static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_BW, PC_PASS_B, PC_PASS_W};
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        int64_t flops[2] = {0}, model_flops[2] = {0};
        for (int k = 0; k < 2; k++) {
            cut.cross_entropy = k ? (pc_cross_entropy)test_between(&random, 1, 3) : PC_CROSS_ENTROPY_IN_PLACE;
            cut.cross_entropy_chunks = (int)test_between(&random, 0, i % 3 ? 9 : INT32_MAX);
            for (int n = 0; n < 4; n++) {
                pc_operation_sums sums = sums_of(&model, &cut, &head_alone, kinds[n], false);
                int times = n == 0 ? 2 : 1; /* F with BW, and F with B and W */
                flops[k] += times * sums.flops;
                model_flops[k] += times * sums.model_flops;
            }
        }
        assert_true(flops[0] == flops[1] && model_flops[0] == model_flops[1] && flops[0] == model_flops[0]);
    }
}

/* On one rank 22 bytes a logit in F and 26 in B; over a cut vocabulary F is the plain loss's, and B has 38 for its 14.
 */
static void test_torchs_loss(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    model.vocab_multiple = 1;
    cut.tp = 1;
    cut.sequence_parallel = false;
    cut.cross_entropy = PC_CROSS_ENTROPY_TORCH;
    const expected_operation forward[] = {
        norm("final_norm", 48 * 32 * 4),
        gemm("head", 1, 48, 100, 32, 2 * (48 * 32 + 32 * 100 + 48 * 100)),
        kernel("logits", 48 * 100 * 6),
        kernel("loss", 48 * 100 * 16),
    };
    const expected_operation backward[] = {
        kernel("loss", 48 * 100 * 26),
        gemm("head", 1, 48, 32, 100, 2 * (48 * 32 + 32 * 100 + 48 * 100)),
        norm("final_norm", 48 * 32 * 10),
    };
    check_pass(&model, &cut, &head_alone, PC_PASS_F, forward, LENGTH(forward));
    check_pass(&model, &cut, &head_alone, PC_PASS_B, backward, LENGTH(backward));
    pc_cut plain = cut;
    plain.cross_entropy = PC_CROSS_ENTROPY_PLAIN;
    cut.tp = plain.tp = 2;
    pc_operation_sums x = sums_of(&model, &cut, &head_alone, PC_PASS_F, false),
                      y = sums_of(&model, &plain, &head_alone, PC_PASS_F, false);
    assert_memory_equal(&x, &y, sizeof x);
    x = sums_of(&model, &cut, &head_alone, PC_PASS_BW, false);
    y = sums_of(&model, &plain, &head_alone, PC_PASS_BW, false);
    assert_int_equal(x.bytes - y.bytes, 24 * 48 * 50);
    assert_true(x.flops == y.flops && x.collective_bytes == y.collective_bytes && x.launches == y.launches);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_loss),
        cmocka_unit_test(test_fused_loss),
        cmocka_unit_test(test_a_compiled_loss),
        cmocka_unit_test(test_chunked_loss),
        cmocka_unit_test(test_losses_have_the_same_flops),
        cmocka_unit_test(test_torchs_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
