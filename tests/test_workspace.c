/* What libraries keep beside a run's own tensors: gradients that nobody reads, by algebra. */
#include "tests/support.h"

#include "models/training/outline.h"
#include "models/workload/dummy_wgrad.h"
#include "tests/iteration_example.h"

/* Llama 3 70B on 4 ranks: 64 heads and 8 of keys of 128, 28,672 of SwiGLU, a vocabulary of 128,256. */
static pc_model llama(void) {
    pc_model model = example_spec().model;
    model.hidden = 8192;
    model.heads = 64;
    model.kv_heads = 8;
    model.head_dim = 128;
    model.ffn_hidden = 28672;
    model.mlp = PC_MLP_SWIGLU;
    model.vocab = 128256;
    return model;
}

static pc_cut with_dummies(int tp) {
    pc_cut cut = example_spec().cut;
    cut.tp = tp;
    cut.dummy_wgrad = true;
    return cut;
}

/* 16 bits for each shape: query, key and value; output; gate and up; down; and the head. */
static void test_shapes(void **state) {
    (void)state;
    pc_model model = llama();
    pc_cut cut = with_dummies(4);
    const int64_t h = 8192, layer = 2 * h * ((64 + 2 * 8) * 128 + 64 * 128 + 3 * 28672) / 4,
                  head = 2 * h * pc_model_padded_vocab(&model, 4) / 4;
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &cut, true, false), layer);
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &cut, false, true), head);
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &cut, true, true), layer + head);
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &cut, false, false), 0);
}

/* With an MLP of 3h and no gate its first matrix is as large as that of query, key and value: one serves both. On one
 * rank an MLP of h has the output matrix's shape twice. */
static void test_equal_shapes(void **state) {
    (void)state;
    pc_model model = llama();
    pc_cut cut = with_dummies(2), whole = with_dummies(1);
    const int64_t h = 8192;
    model.kv_heads = 64;
    model.mlp = PC_MLP_GELU;
    model.ffn_hidden = 3 * h;
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &cut, true, false), 2 * (3 + 1 + 3) * h * h / 2);
    model.ffn_hidden = h;
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &whole, true, false), 2 * (3 + 1) * h * h);
}

/* What has no gradient has no dummy of it, nor has what a kernel of its own adds up. */
static void test_without(void **state) {
    (void)state;
    pc_model model = llama();
    pc_cut cut = with_dummies(4), off = cut, separate = cut, adapters = cut, head = cut;
    off.dummy_wgrad = false;
    separate.gradient_accumulation = PC_GRADIENT_ACCUMULATION_SEPARATE;
    adapters.lora.rank = 16;
    head.frozen = PC_FROZEN_HEAD;
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &off, true, true), 0);
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &separate, true, true), 0);
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &adapters, true, true), 0);
    assert_int_equal(pc_dummy_wgrad_bytes(&model, &head, true, true), pc_dummy_wgrad_bytes(&model, &cut, true, false));
}

/* Every stage has those of layers, 12h^2/t in all, the last one the head's, too. They are there all the time, and times
 * are as without; not with FSDP's units. */
static void test_iterations(void **state) {
    (void)state;
    const int64_t layer = 2 * 12 * INT64_C(2048) * 2048 / 2;
    for (int zero = 1; zero <= 3; zero += 2) {
        pc_iteration_spec spec = example_spec();
        spec.cut.zero = zero;
        spec.unit = zero == 3 ? PC_UNIT_LAYER : PC_UNIT_BUCKET;
        pc_iteration x = run_spec(&spec);
        spec.cut.dummy_wgrad = true;
        pc_iteration y = run_spec(&spec);
        assert_true(x.iteration_s == y.iteration_s);
        for (int d = 0; d < 4; d++) {
            int64_t head = d == 3 ? 2 * INT64_C(2048) * pc_model_padded_vocab(&spec.model, 2) / 2 : 0;
            int64_t more = zero == 3 ? 0 : layer + head;
            assert_int_equal(y.memory[d].buffers - x.memory[d].buffers, more);
            assert_int_equal(y.memory[d].peak_bytes - x.memory[d].peak_bytes, more);
        }
        assert_int_equal(y.memory[0].kinds[PC_MEMORY_WORKSPACE], zero == 3 ? 0 : layer);
        assert_int_equal(y.memory[0].kinds[PC_MEMORY_GATHERED], x.memory[0].kinds[PC_MEMORY_GATHERED]);
        pc_iteration_free(&x);
        pc_iteration_free(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_equal_shapes),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
