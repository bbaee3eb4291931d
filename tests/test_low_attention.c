/* Attention in 8 bits, and kernels that cast or add by themselves: bytes, formats and memory by algebra, what context
 * parallelism sends, and what is refused. */
#include "tests/random_frozen.h"
#include "tests/random_fused.h"
#include "tests/random_model.h"

#include <string.h>

/* Llama 3 8B on one rank, 2 x 4,096 tokens: q = 4096, key = 1024, h = 4096, f = 14336. */
static const wide tokens = 8192, q = 4096, qkv = 6144, h = 4096, f = 14336;

static pc_model example(pc_scaling scaling, pc_cut *cut) {
    pc_model model = llama3(8);
    model.low = (pc_low_precision){.name = "example",
                                   .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8},
                                   .scaling = scaling,
                                   .weights = PC_LOW_WEIGHTS_HELD,
                                   .copies = 1,
                                   .gathers_parameters = true,
                                   .keeps_inputs = true};
    *cut = (pc_cut){
        .tp = 1, .pp = 1, .dp = 1, .chunks = 1, .zero = 1, .microbatch_size = 2, .microbatches = 1, .seq_len = 4096};
    return model;
}

static pc_operations pass_of(const pc_model *model, const pc_cut *cut, pc_pass_kind kind) {
    const pc_part layer = {.layers = 1};
    pc_operations list;
    pc_error error = {0};
    if (pc_pass_operations(model, cut, &layer, kind, false, &list, &error)) fail_msg("%s", error.message);
    return list;
}

/* Bytes of the operations of this name and function; -1: there is none. */
static wide bytes_of(const pc_operations *list, const char *name, const char *function) {
    wide sum = -1;
    for (int i = 0; i < list->count; i++) {
        const pc_operation *x = &list->list[i];
        bool is_it = strcmp(x->name, name) == 0 && (!function || (x->function && strcmp(x->function, function) == 0));
        if (is_it) sum = (sum < 0 ? 0 : sum) + x->bytes + x->size_bytes;
    }
    return sum;
}

static const pc_operation *attention_of(const pc_operations *list) {
    for (int i = 0; i < list->count; i++)
        if (list->list[i].kind == PC_OPERATION_ATTENTION) return &list->list[i];
    return NULL;
}

/* Queries, keys and values are laid together, 4 bytes, and cast, 3; attention reads and writes a byte in place of two,
 * and its output is cast back, 3. B casts the gradient and casts back three. All else is as it was. */
static void test_casts(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(PC_SCALING_DELAYED, &cut);
    for (int kind = PC_PASS_F; kind <= PC_PASS_B; kind += PC_PASS_B - PC_PASS_F) {
        bool is_f = kind == PC_PASS_F;
        cut.attention_is_low = false;
        pc_operations wide_list = pass_of(&model, &cut, (pc_pass_kind)kind);
        pc_operation_sums before = pc_operations_sum(&wide_list);
        cut.attention_is_low = true;
        pc_operations list = pass_of(&model, &cut, (pc_pass_kind)kind);
        pc_operation_sums sums = pc_operations_sum(&list);
        const pc_operation *was = attention_of(&wide_list), *is = attention_of(&list);
        assert_int_equal(was->format, PC_PRODUCT_BF16);
        assert_int_equal(is->format, PC_PRODUCT_FP8);
        assert_int_equal(2 * is->bytes, was->bytes);
        assert_int_equal(is->flops, was->flops);
        assert_wide_equal(bytes_of(&list, "attention_inputs", "copy"), is_f ? 4 * tokens * qkv : -1);
        assert_wide_equal(bytes_of(&list, "attention_inputs", "cast"), 3 * tokens * qkv);
        assert_wide_equal(bytes_of(&list, "attention_context", "cast"), 3 * tokens * q);
        wide added = (is_f ? 7 : 3) * tokens * qkv + 3 * tokens * q;
        assert_wide_equal((wide)sums.bytes - before.bytes, added - is->bytes);
    }
}

/* A scale of the tensor itself reads it once more; then the output comes in 16 bits. */
static void test_current_scaling(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(PC_SCALING_CURRENT, &cut);
    cut.attention_is_low = true;
    pc_operations forward = pass_of(&model, &cut, PC_PASS_F), backward = pass_of(&model, &cut, PC_PASS_B);
    assert_wide_equal(bytes_of(&forward, "attention_inputs", "amax"), 2 * tokens * qkv);
    assert_wide_equal(bytes_of(&forward, "attention_context", NULL), -1);
    assert_wide_equal(bytes_of(&backward, "attention_context", "amax"), 2 * tokens * q);
    assert_wide_equal(bytes_of(&backward, "attention_context", "cast"), 3 * tokens * q);
}

/* The output's matrix takes what attention puts out; the matrix in front of it hands over what no rotation changes. */
static void test_multi_head(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(PC_SCALING_DELAYED, &cut);
    cut.attention_is_low = cut.attention_hands_low = true;
    for (int learned = 0; learned < 2; learned++) {
        if (learned) model.positions = PC_POSITIONS_LEARNED;
        pc_operations forward = pass_of(&model, &cut, PC_PASS_F), backward = pass_of(&model, &cut, PC_PASS_B);
        assert_wide_equal(bytes_of(&forward, "attention_inputs", NULL), learned ? -1 : 7 * tokens * qkv);
        assert_wide_equal(bytes_of(&forward, "attention_context", NULL), -1);
        assert_wide_equal(bytes_of(&forward, "attention_output", "cast"), -1);
        assert_wide_equal(bytes_of(&backward, "attention_context", NULL), -1);
        assert_wide_equal(bytes_of(&backward, "attention_inputs", NULL), learned ? -1 : 3 * tokens * qkv);
        assert_wide_equal(bytes_of(&backward, "qkv", "cast"), learned ? -1 : 3 * tokens * qkv);
    }
}

/* Kept are queries, keys, values and the context, a byte a number in place of two. Nothing changes in layers of 16
 * bits. */
static void test_memory(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(PC_SCALING_DELAYED, &cut);
    const pc_pass_forms forms = {.splits = true};
    pc_part_activation before, after;
    for (int wide_layers = 0; wide_layers < 2; wide_layers++) {
        const pc_part layer = {.layers = 1, .wide_layers = wide_layers};
        cut.attention_is_low = false;
        assert_int_equal(pc_part_activations(&model, &cut, &layer, forms, &before, NULL), PC_OK);
        cut.attention_is_low = true;
        assert_int_equal(pc_part_activations(&model, &cut, &layer, forms, &after, NULL), PC_OK);
        assert_wide_equal(before.taken - after.taken, wide_layers ? 0 : tokens * (qkv + q));
    }
}

/* Heads are exchanged, and keys go round, in bytes: half of what 16 bits send. */
static void test_context(void **state) {
    (void)state;
    static const pc_cp_comm kinds[] = {PC_CP_P2P, PC_CP_A2A, PC_CP_A2A_P2P};
    for (int i = 0; i < 3; i++)
        for (int kind = PC_PASS_F; kind <= PC_PASS_B; kind += PC_PASS_B - PC_PASS_F) {
            pc_cut cut;
            pc_model model = example(PC_SCALING_DELAYED, &cut);
            cut.cp = 4;
            cut.cp_comm = kinds[i];
            cut.cp_a2a = 2;
            pc_operations wide_list = pass_of(&model, &cut, (pc_pass_kind)kind);
            cut.attention_is_low = true;
            pc_operations list = pass_of(&model, &cut, (pc_pass_kind)kind);
            assert_true(pc_operations_sum(&list).collective_bytes > 0);
            assert_int_equal(2 * pc_operations_sum(&list).collective_bytes,
                             pc_operations_sum(&wide_list).collective_bytes);
        }
}

/* The activation writes a byte in place of two, and its gradient likewise: casts of 3 bytes are gone. Adapters of qkv
 * and proj: a scale of 4 and a sum of 6 bytes an output, 4 and 6 on the way back, become 2 that products read. */
static void test_fuser(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(PC_SCALING_DELAYED, &cut);
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_QKV | PC_LORA_PROJ};
    pc_operations f0 = pass_of(&model, &cut, PC_PASS_F), b0 = pass_of(&model, &cut, PC_PASS_B);
    cut.fuses_operations = true;
    pc_operations f1 = pass_of(&model, &cut, PC_PASS_F), b1 = pass_of(&model, &cut, PC_PASS_B);
    assert_wide_equal(bytes_of(&f0, "mlp_down", "cast"), 3 * tokens * f);
    assert_wide_equal(bytes_of(&f1, "mlp_down", "cast"), -1);
    assert_wide_equal(bytes_of(&f0, "activation", NULL) - bytes_of(&f1, "activation", NULL), tokens * f);
    assert_wide_equal(bytes_of(&b0, "mlp_up", "cast"), 3 * tokens * 2 * f);
    assert_wide_equal(bytes_of(&b1, "mlp_up", "cast"), -1);
    assert_wide_equal(bytes_of(&b0, "activation", NULL) - bytes_of(&b1, "activation", NULL), tokens * 2 * f);
    assert_wide_equal(bytes_of(&f0, "lora", NULL), 10 * tokens * (qkv + h));
    assert_wide_equal(bytes_of(&f1, "lora", NULL), -1);
    assert_wide_equal(bytes_of(&f1, "lora_b", NULL) - bytes_of(&f0, "lora_b", NULL), 2 * tokens * (qkv + h));
    assert_wide_equal(bytes_of(&b0, "lora", NULL), 4 * tokens * (qkv + h) + 6 * tokens * (h + q));
    assert_wide_equal(bytes_of(&b1, "lora", NULL), -1);
    assert_wide_equal(bytes_of(&b1, "qkv", NULL) - bytes_of(&b0, "qkv", NULL), 2 * tokens * h);
    assert_wide_equal(bytes_of(&b1, "attention_output", NULL) - bytes_of(&b0, "attention_output", NULL),
                      2 * tokens * q);
    cut.tp = 2; /* its products of cut matrices do not add */
    b1 = pass_of(&model, &cut, PC_PASS_B);
    assert_true(bytes_of(&b1, "lora", "add") > 0);
    cut.fuses_operations = false, cut.compiles = true; /* whoever reads does */
    b1 = pass_of(&model, &cut, PC_PASS_B);
    assert_wide_equal(bytes_of(&b1, "lora", "add"), -1);
    assert_wide_equal(bytes_of(&b1, "lora", "residual"), -1);
}

static void check_refused(const pc_model *model, const pc_cut *cut, const char *expected) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, expected)) fail_msg("'%s' not in '%s'", expected, error.message);
}

static void test_refusals(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(PC_SCALING_DELAYED, &cut), other = model;
    pc_error error = {0};
    cut.attention_is_low = true;
    if (pc_cut_check(&model, &cut, 1, &error)) fail_msg("%s", error.message);
    other.low = (pc_low_precision){0};
    check_refused(&other, &cut, "beside products in 16 bits; expected a precision of 8 or 4 bits");
    other = model, other.attention = PC_ATTENTION_MATERIALISED;
    check_refused(&other, &cut, "expected attention: flash");
    other = model, other.sliding_window = 1024;
    check_refused(&other, &cut, "with windows, chunks or capped scores; expected full attention");
    pc_cut gathered = cut;
    gathered.cp = 2, gathered.cp_comm = PC_CP_ALL_GATHER;
    check_refused(&model, &gathered, "with cp_comm_type all_gather; expected p2p");
    cut.attention_is_low = false, cut.attention_hands_low = true;
    check_refused(&model, &cut, "fp8_multi_head_attention without fp8_dot_product_attention; expected both");
    cut.attention_hands_low = false, cut.fuses_operations = true, cut.kernels = PC_KERNELS_EAGER;
    check_refused(&model, &cut, "use_transformer_engine_op_fuser with kernels eager; expected fused kernels");
    cut.fuses_operations = false, cut.compiles = true;
    check_refused(&model, &cut, "compile with kernels eager; expected fused kernels");
}

/* Whatever is drawn: a B and a W do what a BW does, FLOPs are those of 16 bits, and memory is at most theirs. */
static void test_sums(void **state) {
    (void)state;
    test_random random = {31};
    int low = 0, fused = 0;
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model), plain;
        random_frozen(&random, &model, &cut);
        random_base(&random, &model, &cut);
        random_recipe(&random, &model, &cut);
        plain = cut;
        random_fused(&random, &model, &cut);
        low += cut.attention_is_low, fused += cut.fuses_operations;
        pc_part part = whole_part(&model, &cut);
        pc_operation_sums b = sums_of(&model, &cut, &part, PC_PASS_B, false),
                          w = sums_of(&model, &cut, &part, PC_PASS_W, false),
                          bw = sums_of(&model, &cut, &part, PC_PASS_BW, false),
                          as_plain = sums_of(&model, &plain, &part, PC_PASS_BW, false);
        assert_wide_equal((wide)b.bytes + w.bytes, bw.bytes);
        assert_wide_equal((wide)b.flops + w.flops, bw.flops);
        assert_wide_equal(bw.flops, as_plain.flops);
        assert_wide_equal(bw.model_flops, as_plain.model_flops);
        assert_true(bw.collective_bytes <= as_plain.collective_bytes);
        pc_part_activation x, y;
        const pc_pass_forms forms = {.splits = true};
        assert_int_equal(pc_part_activations(&model, &cut, &part, forms, &x, NULL), PC_OK);
        assert_int_equal(pc_part_activations(&model, &plain, &part, forms, &y, NULL), PC_OK);
        assert_true(x.b_frees <= x.taken && x.taken > 0 && y.taken > 0);
    }
    assert_true(test_saw(low, 10) && test_saw(fused, 50));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_casts),      cmocka_unit_test(test_current_scaling),
                                       cmocka_unit_test(test_multi_head), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_context),    cmocka_unit_test(test_fuser),
                                       cmocka_unit_test(test_refusals),   cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
