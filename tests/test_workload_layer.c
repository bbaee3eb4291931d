/* What the passes of a layer and of the model's ends are, operation by operation, worked out by hand; and which
 * collectives passes have. */
#include "tests/expected_operations.h"

/* ---- one layer ---- */

static const pc_part layers = {.layers = 3};

static void test_forward_of_a_layer(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    const expected_operation with_sequence[] = {
        norm("norm", 24 * 32 * 4),
        gather("qkv", 48 * 32 * 2, false),
        gemm("qkv", 1, 48, 48, 32, 2 * (48 * 32 + 32 * 48 + 48 * 48)),
        kernel("qkv_bias", 48 * 48 * 4),
        gemm("scores", 6, 16, 16, 8, 2 * 6 * (16 * 8 + 8 * 16 + 16 * 16)),
        kernel("softmax", 6 * 16 * 16 * 4),
        kernel("attention_dropout", 6 * 16 * 16 * 5),
        gemm("values", 6, 16, 8, 16, 2 * 6 * (16 * 16 + 16 * 8 + 16 * 8)),
        kernel("attention_order", 48 * 16 * 4),
        gemm("attention_output", 1, 48, 32, 16, 2 * (48 * 16 + 16 * 32 + 48 * 32)),
        scatter("attention_output", 48 * 32 * 2, false),
        kernel("residual", 24 * 32 * 7),
        norm("norm", 24 * 32 * 4),
        gather("mlp_up", 48 * 32 * 2, false),
        gemm("mlp_up", 1, 48, 64, 32, 2 * (48 * 32 + 32 * 64 + 48 * 64)),
        kernel("activation", 48 * 64 * 4),
        gemm("mlp_down", 1, 48, 32, 64, 2 * (48 * 64 + 64 * 32 + 48 * 32)),
        scatter("mlp_down", 48 * 32 * 2, false),
        kernel("residual", 24 * 32 * 7),
    };
    check_pass(&model, &cut, &layers, PC_PASS_F, with_sequence, LENGTH(with_sequence));
}

/* The same without sequence parallelism, dropout and biases, in flash, with rotary positions and a gate, and one head
 * of keys and values, which both ranks hold: 16 + 2 * 8 columns. */
static void test_forward_of_a_llama_layer(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    model.has_bias = model.has_dropout = cut.sequence_parallel = false;
    model.attention = PC_ATTENTION_FLASH;
    model.positions = PC_POSITIONS_ROTARY;
    model.mlp = PC_MLP_SWIGLU;
    model.kv_heads = 1;
    const expected_operation expected[] = {
        norm("norm", 48 * 32 * 4),
        gemm("qkv", 1, 48, 32, 32, 2 * (48 * 32 + 32 * 32 + 48 * 32)),
        kernel("rotary", 48 * (16 + 8) * 4),
        attention("attention", 6, 16, 16, 8, 2 * 48 * (2 * 16 + 2 * 8)),
        gemm("attention_output", 1, 48, 32, 16, 2 * (48 * 16 + 16 * 32 + 48 * 32)),
        all_reduce("attention_output", 48 * 32 * 2, false),
        kernel("residual", 48 * 32 * 6),
        norm("norm", 48 * 32 * 4),
        gemm("mlp_up", 1, 48, 128, 32, 2 * (48 * 32 + 32 * 128 + 48 * 128)),
        kernel("activation", 48 * 64 * (4 + 2)),
        gemm("mlp_down", 1, 48, 32, 64, 2 * (48 * 64 + 64 * 32 + 48 * 32)),
        all_reduce("mlp_down", 48 * 32 * 2, false),
        kernel("residual", 48 * 32 * 6),
    };
    check_pass(&model, &cut, &layers, PC_PASS_F, expected, LENGTH(expected));
}

/* W: dW = G'X, outputs x inputs over the tokens, added to 4-byte gradients: 2(tokens)(in + out) + 8 in out. What was
 * cut along the sequence is gathered once more. */
static void test_weights_of_a_layer(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    const expected_operation expected[] = {
        gemm("mlp_down", 1, 32, 64, 48, 2 * 48 * (64 + 32) + 8 * 64 * 32),
        gather("mlp_up", 48 * 32 * 2, true),
        gemm("mlp_up", 1, 64, 32, 48, 2 * 48 * (32 + 64) + 8 * 64 * 32),
        gemm("attention_output", 1, 32, 16, 48, 2 * 48 * (16 + 32) + 8 * 16 * 32),
        gather("qkv", 48 * 32 * 2, true),
        gemm("qkv", 1, 48, 32, 48, 2 * 48 * (32 + 48) + 8 * 32 * 48),
        kernel("qkv_bias", 48 * 48 * 2),
    };
    check_pass(&model, &cut, &layers, PC_PASS_W, expected, LENGTH(expected));
}

static void test_backward_of_a_layer(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    cut.sequence_parallel = false;
    const expected_operation expected[] = {
        kernel("residual", 48 * 32 * 7),
        gemm("mlp_down", 1, 48, 64, 32, 2 * (48 * 64 + 64 * 32 + 48 * 32)),
        gemm("mlp_down", 1, 32, 64, 48, 2 * 48 * (64 + 32) + 8 * 64 * 32),
        kernel("activation", 48 * 64 * 8),
        gemm("mlp_up", 1, 48, 32, 64, 2 * (48 * 32 + 32 * 64 + 48 * 64)),
        all_reduce("mlp_up", 48 * 32 * 2, true),
        gemm("mlp_up", 1, 64, 32, 48, 2 * 48 * (32 + 64) + 8 * 64 * 32),
        norm("norm", 48 * 32 * 10),
        kernel("residual_sum", 48 * 32 * 6),
        kernel("residual", 48 * 32 * 7),
        gemm("attention_output", 1, 48, 16, 32, 2 * (48 * 16 + 16 * 32 + 48 * 32)),
        gemm("attention_output", 1, 32, 16, 48, 2 * 48 * (16 + 32) + 8 * 16 * 32),
        gemm("values", 6, 16, 16, 8, 2 * 6 * (16 * 8 + 8 * 16 + 16 * 16)),
        gemm("values", 6, 16, 8, 16, 2 * 6 * (16 * 16 + 16 * 8 + 16 * 8)),
        kernel("attention_dropout", 6 * 16 * 16 * 5),
        kernel("softmax", 6 * 16 * 16 * 6),
        gemm("scores", 6, 16, 8, 16, 2 * 6 * (16 * 16 + 16 * 8 + 16 * 8)),
        gemm("scores", 6, 16, 8, 16, 2 * 6 * (16 * 16 + 16 * 8 + 16 * 8)),
        kernel("qkv_order", 48 * 48 * 4),
        gemm("qkv", 1, 48, 32, 48, 2 * (48 * 32 + 32 * 48 + 48 * 48)),
        all_reduce("qkv", 48 * 32 * 2, true),
        gemm("qkv", 1, 48, 32, 48, 2 * 48 * (32 + 48) + 8 * 32 * 48),
        kernel("qkv_bias", 48 * 48 * 2),
        norm("norm", 48 * 32 * 10),
        kernel("residual_sum", 48 * 32 * 6),
    };
    check_pass(&model, &cut, &layers, PC_PASS_BW, expected, LENGTH(expected));
}

/* Gradients of 2 bytes: a W reads and writes 4 bytes an element of its matrix in place of 8, and so does the sum of the
 * embedding's table, 2 + 2 + 4. */
static void test_narrow_gradients(void **state) {
    (void)state;
    static const pc_part layer = {.layers = 3}, end = {.has_embedding = true};
    pc_cut cut;
    pc_operations whole, narrow;
    pc_model model = small_gpt(&cut);
    for (int kind = PC_PASS_F; kind < PC_PASS_KINDS; kind++) {
        cut.gradient_bytes = 0;
        assert_int_equal(pc_pass_operations(&model, &cut, &layer, (pc_pass_kind)kind, false, &whole, NULL), PC_OK);
        cut.gradient_bytes = 2;
        assert_int_equal(pc_pass_operations(&model, &cut, &layer, (pc_pass_kind)kind, false, &narrow, NULL), PC_OK);
        for (int i = 0; i < whole.count; i++) {
            const pc_operation *x = &whole.list[i];
            bool is_w = x->kind == PC_OPERATION_GEMM && x->role == PC_GEMM_WEIGHT_GRADIENT;
            assert_int_equal(x->bytes - narrow.list[i].bytes, is_w ? 4 * x->m * x->n : 0);
        }
    }
    assert_int_equal(pc_pass_operations(&model, &cut, &end, PC_PASS_B, false, &narrow, NULL), PC_OK);
    assert_int_equal(narrow.list[narrow.count - 1].bytes, 50 * 32 * 8);
}

/* Sums apart: each W's product writes 2 bytes an element, and a kernel behind it reads these and the sum and writes it,
 * 2 + 2g, in three microbatches of four. One microbatch has nothing to add to. */
static void test_gradients_summed_apart(void **state) {
    (void)state;
    static const pc_part layer = {.layers = 3};
    for (int g = 2; g <= 4; g += 2)
        for (int m = 1; m <= 4; m += 3) {
            pc_cut cut;
            pc_operations fused, apart;
            pc_model model = small_gpt(&cut);
            cut.gradient_bytes = g;
            cut.microbatches = m;
            assert_int_equal(pc_pass_operations(&model, &cut, &layer, PC_PASS_BW, false, &fused, NULL), PC_OK);
            cut.gradient_accumulation = PC_GRADIENT_ACCUMULATION_SEPARATE;
            assert_int_equal(pc_pass_operations(&model, &cut, &layer, PC_PASS_BW, false, &apart, NULL), PC_OK);
            int sums = 0;
            for (int i = 0; i < fused.count; i++) {
                const pc_operation *x = &fused.list[i], *y = &apart.list[i + sums];
                bool is_w = x->kind == PC_OPERATION_GEMM && x->role == PC_GEMM_WEIGHT_GRADIENT;
                assert_int_equal(x->bytes - y->bytes, is_w ? (2 * g - 2) * x->m * x->n : 0);
                if (!is_w || m == 1) continue;
                const pc_operation *sum = &apart.list[i + ++sums];
                assert_true(sum->kind == PC_OPERATION_ELEMENTWISE && sum->role == PC_GEMM_WEIGHT_GRADIENT);
                assert_int_equal(sum->bytes, (2 + 2 * g) * x->m * x->n * 3 / 4);
            }
            assert_int_equal(apart.count, fused.count + (m == 1 ? 0 : 4));
        }
}

/* ---- the ends ---- */

static const pc_part ends = {.has_embedding = true, .has_head = true};

/* 50 columns of the vocabulary of 100 a rank; over the logits the loss reads and writes 32 bytes each. */
static void test_forward_of_the_ends(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    const expected_operation expected[] = {
        kernel("embedding", 48 * 32 * 4),
        scatter("embedding", 48 * 32 * 2, false),
        kernel("positions", 24 * 32 * 6),
        kernel("embedding_dropout", 24 * 32 * 5),
        norm("final_norm", 24 * 32 * 4),
        gather("head", 48 * 32 * 2, false),
        gemm("head", 1, 48, 50, 32, 2 * (48 * 32 + 32 * 50 + 48 * 50)),
        kernel("logits", 48 * 50 * 6),
        all_reduce("loss", 48 * 4, false),
        all_reduce("loss", 48 * 4, false),
        all_reduce("loss", 48 * 4, false),
        kernel("loss", 48 * 50 * 32),
    };
    check_pass(&model, &cut, &ends, PC_PASS_F, expected, LENGTH(expected));
}

/* The head first; the table's gradient is B's. */
static void test_backward_of_the_ends(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    const expected_operation both[] = {
        kernel("loss", 48 * 50 * 14),
        gather("head", 48 * 32 * 2, true),
        gemm("head", 1, 48, 32, 50, 2 * (48 * 32 + 32 * 50 + 48 * 50)),
        scatter("head", 48 * 32 * 2, true),
        gemm("head", 1, 50, 32, 48, 2 * 48 * (32 + 50) + 8 * 32 * 50),
        norm("final_norm", 24 * 32 * 10),
        kernel("embedding_dropout", 24 * 32 * 5),
        kernel("positions", 24 * 32 * 2),
        gather("embedding", 48 * 32 * 2, false),
        kernel("embedding", 48 * 32 * 4),
        kernel("embedding_sum", 50 * 32 * 12),
    };
    const expected_operation w[] = {both[1], both[4]};
    check_pass(&model, &cut, &ends, PC_PASS_BW, both, LENGTH(both));
    check_pass(&model, &cut, &ends, PC_PASS_W, w, LENGTH(w));
    check_pass(&model, &cut, &ends, PC_PASS_R, NULL, 0);
}

/* ---- collectives ---- */

/* How many of a kind in a pass, with repeats; `overlapping`: of those that may overlap. */
static int64_t count_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind,
                        pc_operation_kind what, bool overlapping) {
    pc_operations list;
    int64_t count = 0;
    assert_int_equal(pc_pass_operations(model, cut, part, kind, false, &list, NULL), PC_OK);
    for (int i = 0; i < list.count; i++) {
        const pc_operation *x = &list.list[i];
        if (x->kind == what && (!overlapping || x->can_overlap)) count += x->repeat;
    }
    return count;
}

/* A layer and pass of two all-reduces, which B hides behind W's products only where those are of the same pass; in
 * their stead two gathers and two scatters, and two gathers more for W. Full recomputation repeats those of F. The
 * ends: one sum behind the lookup; three of the loss; the head's input is gathered in F and for W, its gradient summed
 * in B. */
static void test_collectives(void **state) {
    (void)state;
    static const struct {
        pc_pass_kind kind;
        int whole, whole_overlap, gather, gather_overlap, scatter, scatter_overlap; /* a layer */
        int end_whole, end_gather, end_scatter;                                     /* with sequence parallelism */
    } cases[] = {{PC_PASS_F, 2, 0, 2, 0, 2, 0, 3, 1, 1},
                 {PC_PASS_B, 2, 0, 2, 0, 2, 0, 0, 1, 1},
                 {PC_PASS_W, 0, 0, 2, 2, 0, 0, 0, 1, 0},
                 {PC_PASS_BW, 2, 2, 4, 2, 2, 2, 0, 2, 1},
                 {PC_PASS_R, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    pc_part layer = {.layers = 5}, whole = {.layers = 0, .has_embedding = true, .has_head = true};
    for (int i = 0; i < LENGTH(cases); i++) {
        pc_pass_kind kind = cases[i].kind;
        cut.sequence_parallel = false;
        assert_int_equal(count_of(&model, &cut, &layer, kind, PC_OPERATION_ALL_REDUCE, false), 5 * cases[i].whole);
        assert_int_equal(count_of(&model, &cut, &layer, kind, PC_OPERATION_ALL_REDUCE, true),
                         5 * cases[i].whole_overlap);
        cut.sequence_parallel = true;
        assert_int_equal(count_of(&model, &cut, &layer, kind, PC_OPERATION_ALL_REDUCE, false), 0);
        assert_int_equal(count_of(&model, &cut, &layer, kind, PC_OPERATION_ALL_GATHER, false), 5 * cases[i].gather);
        assert_int_equal(count_of(&model, &cut, &layer, kind, PC_OPERATION_ALL_GATHER, true),
                         5 * cases[i].gather_overlap);
        assert_int_equal(count_of(&model, &cut, &layer, kind, PC_OPERATION_REDUCE_SCATTER, false),
                         5 * cases[i].scatter);
        assert_int_equal(count_of(&model, &cut, &layer, kind, PC_OPERATION_REDUCE_SCATTER, true),
                         5 * cases[i].scatter_overlap);
        assert_int_equal(count_of(&model, &cut, &whole, kind, PC_OPERATION_ALL_REDUCE, false), cases[i].end_whole);
        assert_int_equal(count_of(&model, &cut, &whole, kind, PC_OPERATION_ALL_GATHER, false), cases[i].end_gather);
        assert_int_equal(count_of(&model, &cut, &whole, kind, PC_OPERATION_REDUCE_SCATTER, false),
                         cases[i].end_scatter);
    }
    layer.recompute = PC_RECOMPUTE_FULL;
    assert_int_equal(count_of(&model, &cut, &layer, PC_PASS_B, PC_OPERATION_ALL_GATHER, false), 5 * 4);
    assert_int_equal(count_of(&model, &cut, &layer, PC_PASS_W, PC_OPERATION_ALL_GATHER, false), 5 * 2);
    assert_int_equal(count_of(&model, &cut, &layer, PC_PASS_R, PC_OPERATION_REDUCE_SCATTER, false), 5 * 2);
}

/* ---- what measured costs go by ---- */

/* Rows of F, and of what is recomputed, are forward ones, those of B and BW are not; each says what it computes. */
static void test_rows_say_what_they_compute(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        pc_operations list;
        pc_part part = {.layers = 2, .has_embedding = true, .has_head = true};
        model.precision = kind % 2 ? PC_PRECISION_FP16 : PC_PRECISION_BF16;
        assert_int_equal(pc_pass_operations(&model, &cut, &part, (pc_pass_kind)kind, false, &list, NULL), PC_OK);
        for (int i = 0; i < list.count; i++) {
            const pc_operation *x = &list.list[i];
            bool is_rows = x->kind == PC_OPERATION_NORM || x->kind == PC_OPERATION_ELEMENTWISE;
            assert_int_equal(x->precision, model.precision);
            assert_int_equal(x->function != NULL, is_rows);
            if (is_rows) assert_int_equal(x->role, kind == PC_PASS_F ? PC_GEMM_FORWARD : PC_GEMM_INPUT_GRADIENT);
        }
        part.recompute = PC_RECOMPUTE_FULL;
        assert_int_equal(pc_pass_operations(&model, &cut, &part, PC_PASS_BW, false, &list, NULL), PC_OK);
        int forward = 0;
        for (int i = 0; i < list.count; i++)
            forward += list.list[i].kind == PC_OPERATION_NORM && list.list[i].role == PC_GEMM_FORWARD;
        assert_int_equal(forward, 2); /* of a layer's recomputation */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_of_a_layer),  cmocka_unit_test(test_forward_of_a_llama_layer),
        cmocka_unit_test(test_weights_of_a_layer),  cmocka_unit_test(test_backward_of_a_layer),
        cmocka_unit_test(test_narrow_gradients),    cmocka_unit_test(test_gradients_summed_apart),
        cmocka_unit_test(test_forward_of_the_ends), cmocka_unit_test(test_backward_of_the_ends),
        cmocka_unit_test(test_collectives),         cmocka_unit_test(test_rows_say_what_they_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
