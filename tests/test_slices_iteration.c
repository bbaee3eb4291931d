/* Iterations whose microbatches are cut along their sequence: against a recount from operations up, and against 1F1B.
 */
#include "tests/support.h"

#include "engine/alloc.h"
#include "tests/iteration_example.h"
#include "tests/iteration_recount.h"

#include <math.h>
#include <string.h>

static void check_near(double found, double expected, double relative, const pc_iteration_spec *spec) {
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%.12g; expected %.12g (%s, %d slices, tp %d pp %d dp %d, zero %d)", found, expected,
             spec->generator->name, spec->cut.chunks, spec->cut.tp, spec->cut.pp, spec->cut.dp, spec->cut.zero);
}

static pc_iteration_spec draw_spec(test_random *random) {
    static const char *const names[] = {"seq-1f1b", "seq-gpipe", "seq-zb-h1", "seq-1f1b-interleaved",
                                        "seq-zb-interleaved"};
    pc_iteration_spec spec = random_spec(random);
    spec.generator = pc_generator_find(names[test_between(random, 0, 4)]);
    spec.cut.chunks = (int)test_between(random, 1, 6);
    if (pc_generator_has_sliced_parts(spec.generator)) {
        int parts = (int)test_between(random, 1, 3);
        spec.cut.slices = (int)test_between(random, 1, 3);
        spec.cut.chunks = parts * spec.cut.slices;
        spec.cut.layout = PC_CUT_EVEN;
        spec.model.layers = (int64_t)parts * spec.cut.pp * test_between(random, 1, 3);
    }
    spec.cut.sequence_split = test_between(random, 0, 1) ? PC_SEQUENCE_SPLIT_FLOPS : PC_SEQUENCE_SPLIT_EVEN;
    spec.model.attention = PC_ATTENTION_FLASH;
    spec.cut.cp = spec.cut.cp_a2a = 0; /* slices cut the sequence already */
    spec.model.sliding_window = spec.model.attention_chunk_size = spec.model.sliding_window_pattern =
        0; /* whose slices are refused */
    spec.model.document_length = spec.model.document_length_square = 0;
    return spec;
}

static void test_agrees_with_a_recount(void **state) {
    (void)state;
    test_random random = {51};
    for (long i = 0; i < test_cases(60, 800); i++) {
        pc_iteration_spec spec = draw_spec(&random);
        spec.machine.gpu.launch_s *= (double)test_between(&random, 0, 12);
        pc_iteration iteration = run_spec(&spec);
        check_near(iteration.iteration_s, recount_iteration(&spec), 1e-7, &spec);
        pc_iteration_free(&iteration);
    }
}

/* Parameters, state and FLOPs are those of whole microbatches. */
static void test_sums_are_those_of_1f1b(void **state) {
    (void)state;
    test_random random = {52};
    for (long i = 0; i < test_cases(40, 400); i++) {
        pc_iteration_spec spec = draw_spec(&random), whole = spec;
        bool has_parts = spec.cut.slices > 0 && spec.cut.chunks > spec.cut.slices;
        whole.generator = pc_generator_find(has_parts ? "1f1b-interleaved" : "1f1b");
        whole.cut.chunks = has_parts ? spec.cut.chunks / spec.cut.slices : 1;
        pc_iteration a = run_spec(&spec), b = run_spec(&whole);
        check_near(a.hardware_flops, b.hardware_flops, 1e-12, &spec);
        check_near(a.model_flops, b.model_flops, 0, &spec);
        check_near(a.sent.dp_bytes, b.sent.dp_bytes, 0, &spec);
        for (int d = 0; d < a.devices; d++) {
            assert_int_equal(a.memory[d].parameters, b.memory[d].parameters);
            assert_int_equal(a.memory[d].gradients, b.memory[d].gradients);
            assert_int_equal(a.memory[d].optimizer, b.memory[d].optimizer);
        }
        pc_iteration_free(&a);
        pc_iteration_free(&b);
    }
}

/* 1F1B holds p - d microbatches on stage d; slices that are k-ths of them p - d + k-1. */
static void test_memory_against_1f1b(void **state) {
    (void)state;
    for (int k = 1; k <= 8; k *= 2) {
        pc_iteration_spec spec = example_spec(), whole = spec;
        int p = spec.cut.pp;
        spec.model.attention = whole.model.attention = PC_ATTENTION_FLASH;
        spec.generator = pc_generator_find("seq-1f1b");
        spec.cut.chunks = k;
        pc_iteration a = run_spec(&spec), b = run_spec(&whole);
        for (int d = 0; d < p; d++)
            assert_int_equal((int64_t)(p - d) * k * a.memory[d].activations,
                             (int64_t)(p - d + k - 1) * b.memory[d].activations);
        pc_iteration_free(&a);
        pc_iteration_free(&b);
    }
}

/* Interleaved 1F1B over v parts holds 2(p-1-d) + (v-1)p + 1 of them on stage d; slices that are k-ths of these, where k
 * divides p, 2(p-1-d) + (v-1)p + k. */
static void test_memory_of_parts(void **state) {
    (void)state;
    for (int k = 1; k <= 4; k *= 2) {
        pc_iteration_spec spec = example_spec(), whole;
        int p = spec.cut.pp, v = 2;
        spec.model.attention = PC_ATTENTION_FLASH;
        spec.model.layers = (int64_t)p * v * 2;
        spec.cut.layout = PC_CUT_EVEN;
        spec.cut.microbatches = 4 * p;
        whole = spec;
        whole.generator = pc_generator_find("1f1b-interleaved");
        whole.cut.chunks = v;
        spec.generator = pc_generator_find("seq-1f1b-interleaved");
        spec.cut.chunks = v * k;
        spec.cut.slices = k;
        pc_iteration a = run_spec(&spec), b = run_spec(&whole);
        assert_int_equal(p % k, 0);
        for (int d = 1; d + 1 < p; d++) { /* whose parts are alike */
            int first = 2 * (p - 1 - d) + (v - 1) * p;
            assert_int_equal((int64_t)(first + 1) * k * a.memory[d].activations,
                             (int64_t)(first + k) * b.memory[d].activations);
        }
        assert_true(k == 1 || a.exposed.bubble < b.exposed.bubble);
        pc_iteration_free(&a);
        pc_iteration_free(&b);
    }
}

/* Of slices that all take as long the bubble would be a k-th. Kernels of few tokens and causal attention, of
 * which the last slice has most, make it more. */
static void test_bubble_against_1f1b(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec(), whole = spec;
    spec.model.attention = whole.model.attention = PC_ATTENTION_FLASH;
    drop_latencies(&spec.machine);
    drop_latencies(&whole.machine);
    spec.generator = pc_generator_find("seq-1f1b");
    spec.cut.chunks = 4;
    pc_iteration a = run_spec(&spec), b = run_spec(&whole);
    assert_true(a.exposed.bubble > 0.25 * b.exposed.bubble);
    assert_true(a.exposed.bubble < 0.5 * b.exposed.bubble);
    pc_iteration_free(&a);
    pc_iteration_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_a_recount), cmocka_unit_test(test_sums_are_those_of_1f1b),
        cmocka_unit_test(test_memory_against_1f1b),   cmocka_unit_test(test_memory_of_parts),
        cmocka_unit_test(test_bubble_against_1f1b),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
