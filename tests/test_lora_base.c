/* Frozen matrices held in 4 bits, or in a recipe's few bits alone: bytes by algebra, what passes make of them, and what
 * is refused. */
#include "tests/random_model.h"

#include "models/workload/lora_base.h"

#include <string.h>

/* Half a byte, a byte for 64, and 4 for 64 x 256 of them. */
static void test_bytes(void **state) {
    (void)state;
    assert_int_equal(pc_nf4_bytes(64 * 256), 32 * 256 + 256 + 4);
    assert_int_equal(pc_nf4_bytes(1), 1 + 1 + 4);
    assert_int_equal(pc_nf4_bytes(0), 0);
}

static pc_model example(pc_cut *cut) {
    *cut = (pc_cut){.tp = 2, .pp = 1, .dp = 1, .chunks = 1, .zero = 1, .microbatch_size = 1, .microbatches = 1};
    cut->seq_len = 4096;
    cut->lora = (pc_lora){.rank = 16, .targets = PC_LORA_QKV};
    return llama3(8);
}

static wide sum_of_casts(const pc_model *model, const pc_cut *cut, pc_pass_kind kind, int *count) {
    const pc_part layer = {.layers = 1};
    pc_operations list;
    wide sum = 0;
    pc_error error = {0};
    if (pc_pass_operations(model, cut, &layer, kind, false, &list, &error)) fail_msg("%s", error.message);
    *count = 0;
    for (int i = 0; i < list.count; i++) {
        const pc_operation *x = &list.list[i];
        if (!x->function || strcmp(x->function, "cast") != 0) continue;
        sum += x->bytes;
        ++*count;
    }
    return sum;
}

/* Four matrices in F, and in B: 2 bytes are written and nf4's read of each of their h(qkv + q) + 3hf elements, a half
 * on each rank. W reads none. Adapters are of 16 bits anyway. */
static void test_passes(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(&cut);
    const wide h = 4096, q = 4096, qkv = 6144, f = 14336;
    const wide matrices[] = {h * qkv / 2, h * q / 2, h * f, h * f / 2};
    wide expected = 0;
    int count;
    for (int i = 0; i < 4; i++) expected += 2 * matrices[i] + pc_nf4_bytes((int64_t)matrices[i]);
    assert_wide_equal(sum_of_casts(&model, &cut, PC_PASS_F, &count), 0);
    cut.lora.base = PC_LORA_BASE_NF4;
    for (int kind = PC_PASS_F; kind <= PC_PASS_B; kind += PC_PASS_B - PC_PASS_F) {
        assert_wide_equal(sum_of_casts(&model, &cut, (pc_pass_kind)kind, &count), expected);
        assert_int_equal(count, 4);
    }
    assert_wide_equal(sum_of_casts(&model, &cut, PC_PASS_W, &count), 0);
    assert_int_equal(pc_lora_base_workspace(&model, &cut), 2 * h * f / 2);
    const pc_part layers = {.layers = 3, .has_head = true};
    wide sum = 0;
    for (int i = 0; i < 4; i++) sum += 3 * matrices[i];
    assert_wide_equal(pc_part_low_weights(&model, &cut, &layers), sum);
}

static void check_refused(const pc_model *model, const pc_cut *cut, const char *expected) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, expected)) fail_msg("'%s' not in '%s'", expected, error.message);
}

static void test_refusals(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = example(&cut), low = model;
    pc_error error = {0};
    low.low = (pc_low_precision){.name = "low",
                                 .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8},
                                 .weights = PC_LOW_WEIGHTS_CACHED,
                                 .copies = 2};
    cut.lora.base = PC_LORA_BASE_PRE_QUANTIZED;
    if (pc_cut_check(&low, &cut, 1, &error)) fail_msg("%s", error.message);
    check_refused(&model, &cut,
                  "pre-quantized without a recipe that holds or caches weights of few bits; expected one");
    low.low.weights = PC_LOW_WEIGHTS_EACH;
    check_refused(&low, &cut, "pre-quantized without a recipe that holds or caches");
    cut.lora.base = PC_LORA_BASE_NF4;
    if (pc_cut_check(&model, &cut, 1, &error)) fail_msg("%s", error.message);
    check_refused(&low, &cut, "nf4 beside products of few bits; expected precision bf16 or fp16");
    cut.zero = 3;
    check_refused(&model, &cut, "nf4 with zero 3; expected zero 0 to 2");
    cut.zero = 1, cut.lora.rank = 0;
    check_refused(&model, &cut, "without lora.rank; expected adapters beside frozen matrices");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_passes),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
