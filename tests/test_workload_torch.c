/* What recomputation by torch's policies makes again, and what torch runs without a compiler, operation by operation.
 */
#include "tests/expected_operations.h"

static const pc_part layers = {.layers = 3};

/* ---- recomputation ---- */

/* On two ranks a layer of Llama: 16 columns of queries, 8 of keys and of values, 64 of gate and of up. */
static pc_model small_llama(pc_cut *cut) {
    pc_model model = small_gpt(cut);
    model.has_bias = model.has_dropout = cut->sequence_parallel = false;
    model.attention = PC_ATTENTION_FLASH;
    model.positions = PC_POSITIONS_ROTARY;
    model.norm = PC_NORM_RMS;
    model.mlp = PC_MLP_SWIGLU;
    model.kv_heads = 1;
    return model;
}

/* The output product whose sum is all-reduced is made again, for the norm behind it; with sequence parallelism its
 * scattered sum is kept, and nobody reads the product. */
static void test_torchtitans_op(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_llama(&cut);
    const pc_part part = {.layers = 3, .recompute = PC_RECOMPUTE_OP};
    const expected_operation whole[] = {
        norm("norm", 48 * 32 * 4),
        gemm("key", 1, 48, 8, 32, 2 * (48 * 32 + 32 * 8 + 48 * 8)),
        kernel("rotary", 48 * (16 + 8) * 4),
        gemm("attention_output", 1, 48, 32, 16, 2 * (48 * 16 + 16 * 32 + 48 * 32)),
        all_reduce("attention_output", 48 * 32 * 2, false),
        kernel("residual", 48 * 32 * 6),
        norm("norm", 48 * 32 * 4),
        gemm("up", 1, 48, 64, 32, 2 * (48 * 32 + 32 * 64 + 48 * 64)),
        kernel("activation", 48 * (128 + 64) * 2),
    };
    const expected_operation scattered[] = {
        norm("norm", 24 * 32 * 4),
        gather("qkv", 48 * 32 * 2, false),
        gemm("key", 1, 48, 8, 32, 2 * (48 * 32 + 32 * 8 + 48 * 8)),
        kernel("rotary", 48 * (16 + 8) * 4),
        kernel("residual", 24 * 32 * 6),
        norm("norm", 24 * 32 * 4),
        gather("mlp_up", 48 * 32 * 2, false),
        gemm("up", 1, 48, 64, 32, 2 * (48 * 32 + 32 * 64 + 48 * 64)),
        kernel("activation", 48 * (128 + 64) * 2),
    };
    check_pass(&model, &cut, &part, PC_PASS_R, whole, LENGTH(whole));
    cut.sequence_parallel = true;
    check_pass(&model, &cut, &part, PC_PASS_R, scattered, LENGTH(scattered));
}

/* Eagerly an operator runs for its result to be found in store: the product, but not the kept sum of it. Keys and
 * values are copied for both heads. */
static void test_torchtitans_op_eagerly(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_llama(&cut);
    const pc_part part = {.layers = 3, .recompute = PC_RECOMPUTE_OP};
    const expected_operation expected[] = {
        norm("norm", 24 * 32 * 36),
        gather("qkv", 48 * 32 * 2, false),
        gemm("key", 1, 48, 8, 32, 2 * (48 * 32 + 32 * 8 + 48 * 8)),
        kernel("rotary", 48 * (16 + 8) * 20),
        kernel("repeat_kv", 48 * (16 + 8) * 4),
        gemm("attention_output", 1, 48, 32, 16, 2 * (48 * 16 + 16 * 32 + 48 * 32)),
        kernel("residual", 24 * 32 * 6),
        norm("norm", 24 * 32 * 36),
        gather("mlp_up", 48 * 32 * 2, false),
        gemm("up", 1, 48, 64, 32, 2 * (48 * 32 + 32 * 64 + 48 * 64)),
        kernel("activation", 48 * 64 * 10),
    };
    cut.sequence_parallel = true;
    cut.kernels = PC_KERNELS_EAGER;
    check_pass(&model, &cut, &part, PC_PASS_R, expected, LENGTH(expected));
}

/* MaxText: all products kept, what is left are norms, attention and activation; of the output product alone, queries,
 * keys and values are one product again, and so are gate and up. */
static void test_remat_policies(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_llama(&cut);
    pc_part part = {.layers = 3, .recompute = PC_RECOMPUTE_MINIMAL};
    const expected_operation minimal[] = {
        norm("norm", 48 * 32 * 4),          attention("attention", 6, 16, 16, 8, 2 * 48 * (2 * 16 + 2 * 8)),
        kernel("residual", 48 * 32 * 6),    norm("norm", 48 * 32 * 4),
        kernel("activation", 48 * 192 * 2),
    };
    const expected_operation with_context[] = {minimal[0], minimal[2], minimal[3], minimal[4]};
    const expected_operation output[] = {
        minimal[0],
        gemm("qkv", 1, 48, 32, 32, 2 * (48 * 32 + 32 * 32 + 48 * 32)),
        kernel("rotary", 48 * (16 + 8) * 4),
        minimal[1],
        minimal[2],
        minimal[3],
        gemm("mlp_up", 1, 48, 128, 32, 2 * (48 * 32 + 32 * 128 + 48 * 128)),
        minimal[4],
    };
    check_pass(&model, &cut, &part, PC_PASS_R, minimal, LENGTH(minimal));
    part.recompute = PC_RECOMPUTE_MINIMAL_WITH_CONTEXT;
    check_pass(&model, &cut, &part, PC_PASS_R, with_context, LENGTH(with_context));
    part.recompute = PC_RECOMPUTE_SAVE_OUT_PROJ;
    check_pass(&model, &cut, &part, PC_PASS_R, output, LENGTH(output));
}

/* Of L layers n more forward ones: the first n of them, L/n, or all in whatever groups. Model FLOPs stay. */
static void test_some_layers(void **state) {
    (void)state;
    test_random random = {13};
    static const pc_recompute kinds[] = {PC_RECOMPUTE_BLOCK, PC_RECOMPUTE_EVERY, PC_RECOMPUTE_UNIFORM};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        random_traits(&random, &cut, &model);
        pc_part part = {.layers = test_between(&random, 1, 9)}, layer = {.layers = 1};
        int64_t n = test_between(&random, 1, part.layers);
        const int64_t again[] = {n, part.layers / n, part.layers};
        pc_operation_sums none = sums_of(&model, &cut, &part, PC_PASS_BW, false),
                          forward = sums_of(&model, &cut, &layer, PC_PASS_F, false);
        part.recompute = kinds[i % 3];
        part.recompute_layers = (int32_t)n;
        pc_operation_sums some = sums_of(&model, &cut, &part, PC_PASS_BW, false);
        assert_wide_equal(some.flops, none.flops + (wide)again[i % 3] * forward.flops);
        assert_wide_equal(some.bytes, none.bytes + (wide)again[i % 3] * forward.bytes);
        assert_wide_equal(some.collective_bytes, none.collective_bytes + (wide)again[i % 3] * forward.collective_bytes);
        assert_int_equal(some.model_flops, none.model_flops);
    }
}

/* ---- torch without a compiler ---- */

/* Bytes an element as in operations_eager.c, kernel by kernel: norms 36 and back 92, rotation 20, the activation 10 and
 * back 18 an element of its output; the gradients of an input of n matrices are n - 1 sums of 6. */
static void test_eager_layer(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_llama(&cut);
    const expected_operation forward[] = {
        norm("norm", 48 * 32 * 36),
        gemm("qkv", 1, 48, 32, 32, 2 * (48 * 32 + 32 * 32 + 48 * 32)),
        kernel("rotary", 48 * (16 + 8) * 20),
        kernel("repeat_kv", 48 * (16 + 8) * 4),
        attention("attention", 6, 16, 16, 8, 2 * 48 * (2 * 16 + 2 * 8)),
        gemm("attention_output", 1, 48, 32, 16, 2 * (48 * 16 + 16 * 32 + 48 * 32)),
        all_reduce("attention_output", 48 * 32 * 2, false),
        kernel("residual", 48 * 32 * 6),
        norm("norm", 48 * 32 * 36),
        gemm("mlp_up", 1, 48, 128, 32, 2 * (48 * 32 + 32 * 128 + 48 * 128)),
        kernel("activation", 48 * 64 * 10),
        gemm("mlp_down", 1, 48, 32, 64, 2 * (48 * 64 + 64 * 32 + 48 * 32)),
        all_reduce("mlp_down", 48 * 32 * 2, false),
        kernel("residual", 48 * 32 * 6),
    };
    const expected_operation backward[] = {
        gemm("mlp_down", 1, 48, 64, 32, 2 * (48 * 64 + 64 * 32 + 48 * 32)),
        kernel("activation", 48 * 64 * 18),
        gemm("mlp_up", 1, 48, 32, 128, 2 * (48 * 32 + 32 * 128 + 48 * 128)),
        all_reduce("mlp_up", 48 * 32 * 2, false),
        kernel("mlp_up", 48 * 32 * 6),
        norm("norm", 48 * 32 * 92),
        kernel("residual_sum", 48 * 32 * 6),
        gemm("attention_output", 1, 48, 16, 32, 2 * (48 * 16 + 16 * 32 + 48 * 32)),
        attention("attention", 6, 16, 16, 8, 2 * 48 * (4 * 16 + 4 * 8)),
        kernel("rotary", 48 * (16 + 8) * 20),
        kernel("repeat_kv", 48 * (16 + 8) * 4),
        gemm("qkv", 1, 48, 32, 32, 2 * (48 * 32 + 32 * 32 + 48 * 32)),
        all_reduce("qkv", 48 * 32 * 2, false),
        kernel("qkv", 48 * 32 * 2 * 6),
        norm("norm", 48 * 32 * 92),
        kernel("residual_sum", 48 * 32 * 6),
    };
    cut.kernels = PC_KERNELS_EAGER;
    check_pass(&model, &cut, &layers, PC_PASS_F, forward, LENGTH(forward));
    check_pass(&model, &cut, &layers, PC_PASS_B, backward, LENGTH(backward));
}

/* Of GPT's kernels scale and mask stand alone, 8 bytes a score more each way, and dropout, 4; products add their
 * biases, and three gradients need no order. Fused kernels and eager ones have the same products and collectives. */
static void test_eager_gpt(void **state) {
    (void)state;
    pc_cut cut, eager;
    pc_model model = small_gpt(&cut);
    eager = cut;
    eager.kernels = PC_KERNELS_EAGER;
    pc_operation_sums f[] = {sums_of(&model, &cut, &layers, PC_PASS_F, false),
                             sums_of(&model, &eager, &layers, PC_PASS_F, false)},
                      b[] = {sums_of(&model, &cut, &layers, PC_PASS_BW, false),
                             sums_of(&model, &eager, &layers, PC_PASS_BW, false)};
    assert_int_equal(f[1].bytes - f[0].bytes, 3 * (6 * 16 * 16 * 8 + 2 * 24 * 32 * 4 - 48 * 48 * 4));
    assert_int_equal(b[1].bytes - b[0].bytes, 3 * (6 * 16 * 16 * 8 - 48 * 48 * 4 + 48 * 32 * 2 * 6));
    assert_true(f[0].flops == f[1].flops && b[0].flops == b[1].flops);
    assert_true(f[0].collective_bytes == f[1].collective_bytes && b[0].collective_bytes == b[1].collective_bytes);
}

/* ---- memory ---- */

static pc_part_activation activation_of(const pc_model *model, const pc_cut *cut, const pc_part *part) {
    pc_part_activation x;
    assert_int_equal(pc_part_activations(model, cut, part, (pc_pass_forms){.has_r = false}, &x, NULL), PC_OK);
    return x;
}

/* Of 48 tokens on two ranks the inputs of two matrices are 2 x 32 bytes a token, of all tokens in place of 24; and a
 * second tensor of all tokens stands in a pass. Where layers are made again one layer's inputs do so, too. Without
 * sequence parallelism all is whole anyway. */
static void test_gathered_inputs(void **state) {
    (void)state;
    pc_cut cut, gathered;
    pc_model model = small_llama(&cut);
    const pc_part full = {.layers = 3, .recompute = PC_RECOMPUTE_FULL};
    const int64_t all = 2 * 48 * 32;
    for (int i = 0; i < 2; i++) {
        cut.sequence_parallel = i == 1;
        gathered = cut;
        gathered.tp_inputs = PC_TP_INPUTS_GATHERED;
        pc_part_activation x = activation_of(&model, &cut, &layers), y = activation_of(&model, &gathered, &layers);
        assert_int_equal(y.taken - x.taken, i * 3 * 2 * (all - all / 2));
        assert_int_equal(y.working - x.working, i * all);
        x = activation_of(&model, &cut, &full);
        y = activation_of(&model, &gathered, &full);
        assert_int_equal(y.taken, x.taken);
        assert_int_equal(y.working - x.working, i * (all + 2 * (all - all / 2)));
    }
}

/* 48 tokens of gate, up and their product, 64 columns each of 16 bits: as far as F drops them they stand beside a loss
 * whose logits of fp32 are more. A policy that keeps a product keeps its columns. */
static void test_loss_apart(void **state) {
    (void)state;
    pc_cut cut, apart;
    pc_model model = small_llama(&cut);
    const struct {
        pc_recompute recompute;
        int vocab, columns;
    } rows[] = {{PC_RECOMPUTE_NONE, 1024, 0},
                {PC_RECOMPUTE_FULL, 1024, 3 * 64},
                {PC_RECOMPUTE_OP, 1024, 3 * 64 - 64},
                {PC_RECOMPUTE_FULL, 64, 0}};
    cut.cross_entropy = PC_CROSS_ENTROPY_TORCH;
    apart = cut;
    apart.loss_buffers = PC_LOSS_BUFFERS_APART;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const pc_part part = {.layers = 3, .has_head = true, .recompute = rows[i].recompute};
        model.vocab = rows[i].vocab;
        pc_part_activation x = activation_of(&model, &cut, &part), y = activation_of(&model, &apart, &part);
        assert_int_equal(y.reserved, 2 * 48 * rows[i].columns);
        assert_int_equal(y.working - x.working, y.reserved);
        assert_int_equal(x.reserved, 0);
        assert_int_equal(y.taken, x.taken);
    }
    const pc_part without_head = {.layers = 3, .recompute = PC_RECOMPUTE_FULL};
    assert_int_equal(activation_of(&model, &apart, &without_head).reserved, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchtitans_op),  cmocka_unit_test(test_torchtitans_op_eagerly),
        cmocka_unit_test(test_remat_policies),  cmocka_unit_test(test_some_layers),
        cmocka_unit_test(test_eager_layer),     cmocka_unit_test(test_eager_gpt),
        cmocka_unit_test(test_gathered_inputs), cmocka_unit_test(test_loss_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
