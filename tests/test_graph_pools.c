/* What CUDA graphs hold for themselves, and what torch counts of it, by algebra. */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/training/outline.h"
#include "tests/iteration_example.h"

/* Of a layer of the example, in sbh/t: attention with its mask, the MLP with its, and what both norms read. */
enum { ATTENTION = 11, MLP = 19, NORMS = 4, LAYER = 34, LAYERS = 6 };
static const int64_t unit = INT64_C(1024) * 2048 / 2, sequence = INT64_C(2) * 1024 * 2048;

/* Gradients of 2 bytes that each replica steps whole: the step needs a copy of 4 bytes of each. */
static pc_iteration_spec stepping(int32_t graphs) {
    pc_iteration_spec spec = example_spec();
    spec.cut.zero = 0;
    spec.cut.gradient_bytes = 2;
    spec.cut.graphs = graphs;
    spec.machine.gpu.memory_bytes = INT64_C(1) << 40;
    return spec;
}

/* State and buffers of the second stage, which has three microbatches under way at most, and its step's copy. */
static int64_t fixed_of(int64_t *copy) {
    pc_iteration_spec spec = stepping(0);
    pc_outline outline;
    assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
    int64_t fixed = pc_outline_fixed(&outline, 1);
    *copy = 4 * outline.device[1].parameter_count;
    pc_outline_free(&outline);
    return fixed;
}

/* Beside the copy stand what the captured half keeps of three microbatches, its input and its output. Torch counts
 * these two, and while passes run the other half. The gathered sequence is not there in the step. */
static void test_halves(void **state) {
    (void)state;
    static const int32_t graphs[] = {PC_GRAPHS_ATTN, PC_GRAPHS_MLP, PC_GRAPHS_LAYER};
    static const int64_t hidden[] = {ATTENTION, MLP, ATTENTION + MLP};
    int64_t copy, fixed = fixed_of(&copy), layers = 3 * LAYERS * unit;
    for (int i = 0; i < 3; i++) {
        pc_iteration_spec spec = stepping(graphs[i]);
        pc_iteration x = run_spec(&spec);
        const pc_device_memory *m = &x.memory[1];
        int64_t step = copy - sequence, at_step = step + (hidden[i] + NORMS) * layers;
        int64_t beside = pc_max((LAYER - hidden[i]) * layers, step + NORMS * layers);
        assert_int_equal(m->activations, LAYER * layers);
        assert_true(at_step > LAYER * layers);
        assert_int_equal(m->peak_bytes, fixed + at_step);
        assert_int_equal(m->allocated_bytes, fixed + beside);
        assert_int_equal(m->parameters + m->gradients + m->optimizer + m->buffers + m->activations, m->peak_bytes);
        pc_iteration_free(&x);
    }
}

/* All that passes keep and work with stays, and torch counts none of it. */
static void test_whole_iteration(void **state) {
    (void)state;
    int64_t copy, fixed = fixed_of(&copy);
    pc_iteration_spec spec = stepping(PC_GRAPHS_ITERATION);
    pc_iteration x = run_spec(&spec);
    assert_int_equal(x.memory[1].peak_bytes, fixed + 3 * LAYERS * LAYER * unit + copy);
    assert_int_equal(x.memory[1].allocated_bytes, fixed - sequence + copy);
    pc_iteration_free(&x);
}

/* Gradients of 4 bytes need no copy: passes have the most, with graphs or without; and without torch counts all. */
static void test_without_a_copy(void **state) {
    (void)state;
    for (int graphs = 0; graphs <= PC_GRAPHS_LAYER; graphs++) {
        pc_iteration_spec spec = stepping(graphs);
        spec.cut.gradient_bytes = 4;
        pc_iteration x = run_spec(&spec);
        const pc_device_memory *m = &x.memory[1];
        assert_int_equal(m->peak_bytes, m->parameters + m->gradients + m->optimizer + m->buffers + m->activations);
        assert_int_equal(m->activations, 3 * LAYERS * LAYER * unit);
        int64_t hidden = (graphs & PC_GRAPHS_ATTN ? ATTENTION : 0) + (graphs & PC_GRAPHS_MLP ? MLP : 0);
        assert_int_equal(m->peak_bytes - m->allocated_bytes, 3 * LAYERS * hidden * unit);
        pc_iteration_free(&x);
    }
}

/* Passes fit, and so does the step, but not beside what graphs keep. */
static void test_no_room_beside_graphs(void **state) {
    (void)state;
    pc_iteration_spec spec = stepping(PC_GRAPHS_MLP);
    pc_iteration x = run_spec(&spec), y = {0};
    int64_t most = 0;
    for (int d = 0; d < x.devices; d++) most = pc_max(most, x.memory[d].peak_bytes);
    for (int engine = 0; engine < 2; engine++) {
        spec.engine = engine ? PC_ENGINE_EVENTS : PC_ENGINE_AUTO;
        spec.memory_limit_bytes = most - 1;
        assert_int_equal(pc_iteration_run(&spec, NULL, false, &y, NULL), PC_OK);
        assert_int_equal(y.status, PC_RUN_OUT_OF_MEMORY);
        assert_non_null(strstr(y.message, "gradients in fp32 beside CUDA graphs at the step"));
        pc_iteration_free(&y);
        spec.memory_limit_bytes = most;
        assert_int_equal(pc_iteration_run(&spec, NULL, false, &y, NULL), PC_OK);
        assert_int_equal(y.status, PC_RUN_OK);
        pc_iteration_free(&y);
    }
    pc_iteration_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_whole_iteration),
        cmocka_unit_test(test_without_a_copy),
        cmocka_unit_test(test_no_room_beside_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
