/* What the passes of a layer and of the model's ends are, operation by operation, worked out by hand; and which
 * collectives passes have. */
#include "tests/random_model.h"

/* ---- what is expected ---- */

typedef struct expected_operation {
    pc_operation_kind kind;
    const char *name;
    int64_t batch, m, n, k;
    int64_t bytes; /* of a collective, its size */
    bool can_overlap;
    int64_t repeat; /* 0: the part's layers */
} expected_operation;

static expected_operation matrix_work(pc_operation_kind kind, const char *name, int64_t batch, int64_t m, int64_t n,
                                      int64_t k, int64_t bytes) {
    return (expected_operation){kind, name, batch, m, n, k, bytes, false, 0};
}

static expected_operation gemm(const char *name, int64_t batch, int64_t m, int64_t n, int64_t k, int64_t bytes) {
    return matrix_work(PC_OPERATION_GEMM, name, batch, m, n, k, bytes);
}

static expected_operation attention(const char *name, int64_t batch, int64_t m, int64_t n, int64_t k, int64_t bytes) {
    return matrix_work(PC_OPERATION_ATTENTION, name, batch, m, n, k, bytes);
}

static expected_operation norm(const char *name, int64_t bytes) {
    return matrix_work(PC_OPERATION_NORM, name, 1, 0, 0, 0, bytes);
}

static expected_operation kernel(const char *name, int64_t bytes) {
    return matrix_work(PC_OPERATION_ELEMENTWISE, name, 1, 0, 0, 0, bytes);
}

static expected_operation all_reduce(const char *name, int64_t bytes, bool can_overlap) {
    return (expected_operation){PC_OPERATION_ALL_REDUCE, name, 1, 0, 0, 0, bytes, can_overlap, 0};
}

static expected_operation gather(const char *name, int64_t bytes, bool can_overlap) {
    return (expected_operation){PC_OPERATION_ALL_GATHER, name, 1, 0, 0, 0, bytes, can_overlap, 0};
}

static expected_operation scatter(const char *name, int64_t bytes, bool can_overlap) {
    return (expected_operation){PC_OPERATION_REDUCE_SCATTER, name, 1, 0, 0, 0, bytes, can_overlap, 0};
}

static void check_pass(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind,
                       const expected_operation *expected, int count) {
    pc_operations list;
    assert_int_equal(pc_pass_operations(model, cut, part, kind, false, &list, NULL), PC_OK);
    for (int i = 0; i < list.count && i < count; i++) {
        const pc_operation *x = &list.list[i];
        const expected_operation *e = &expected[i];
        assert_string_equal(x->name, e->name);
        assert_int_equal(x->kind, e->kind);
        assert_int_equal(x->batch, e->batch);
        assert_int_equal(x->m, e->m);
        assert_int_equal(x->n, e->n);
        assert_int_equal(x->k, e->k);
        assert_int_equal(x->kind >= PC_OPERATION_ALL_REDUCE ? x->size_bytes : x->bytes, e->bytes);
        assert_int_equal(x->can_overlap, e->can_overlap);
        assert_int_equal(x->repeat, e->repeat ? e->repeat : part->layers > 0 ? part->layers : 1);
    }
    assert_int_equal(list.count, count);
}

#define LENGTH(list) (int)(sizeof(list) / sizeof *(list))

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

/* ---- other losses ---- */

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
        cmocka_unit_test(test_rows_say_what_they_compute),
        cmocka_unit_test(test_forward_of_a_layer),
        cmocka_unit_test(test_forward_of_a_llama_layer),
        cmocka_unit_test(test_weights_of_a_layer),
        cmocka_unit_test(test_backward_of_a_layer),
        cmocka_unit_test(test_forward_of_the_ends),
        cmocka_unit_test(test_torchtitans_op),
        cmocka_unit_test(test_torchtitans_op_eagerly),
        cmocka_unit_test(test_remat_policies),
        cmocka_unit_test(test_some_layers),
        cmocka_unit_test(test_eager_layer),
        cmocka_unit_test(test_eager_gpt),
        cmocka_unit_test(test_torchs_loss),
        cmocka_unit_test(test_a_compiled_loss),
        cmocka_unit_test(test_plain_loss),
        cmocka_unit_test(test_fused_loss),
        cmocka_unit_test(test_chunked_loss),
        cmocka_unit_test(test_losses_have_the_same_flops),
        cmocka_unit_test(test_narrow_gradients),
        cmocka_unit_test(test_gradients_summed_apart),
        cmocka_unit_test(test_backward_of_the_ends),
        cmocka_unit_test(test_collectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
