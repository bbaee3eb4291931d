/* A stage's passes on the emulated device beside the same simulated: order, times by a fake clock, memory to the byte.
 */
#include "tests/support.h"

#include "calib/device/replay_private.h"
#include "engine/alloc.h"
#include "models/training/iteration.h"
#include "tests/emulated/emulated.h"
#include "tests/iteration_example.h"

#include <math.h>

/* ---- what is replayed ---- */

enum { TOKENS = 4 };

/* Of two layers a part, small enough for emulated threads; GPT's kind, or Llama's with two ranks of TP. */
static pc_iteration_spec tiny(const char *schedule, int stages, bool is_llama) {
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find(schedule);
    assert_non_null(spec.generator);
    int parts = stages * spec.generator->chunks_default;
    spec.model.layers = 2 * parts;
    spec.model.hidden = 32;
    spec.model.ffn_hidden = is_llama ? 96 : 128;
    spec.model.heads = spec.model.kv_heads = is_llama ? 8 : 2;
    spec.model.head_dim = is_llama ? 8 : 16;
    spec.model.vocab = 64;
    spec.model.vocab_multiple = 1;
    if (is_llama) {
        spec.model.kv_heads = 2;
        spec.model.norm = PC_NORM_RMS;
        spec.model.mlp = PC_MLP_SWIGLU;
        spec.model.positions = PC_POSITIONS_ROTARY;
        spec.model.has_bias = spec.model.has_dropout = spec.model.is_tied = false;
    }
    spec.cut = (pc_cut){.tp = is_llama ? 2 : 1,
                        .pp = stages,
                        .dp = 1,
                        .chunks = spec.generator->chunks_default,
                        .microbatch_size = 1,
                        .microbatches = stages + 2,
                        .seq_len = TOKENS};
    return spec;
}

static pc_replay_request ask(const pc_iteration_spec *spec, int stage) {
    pc_replay_request request = pc_replay_request_default();
    request.spec = spec;
    request.scenario = "tiny";
    request.stage = stage;
    request.warm_ups = 1;
    request.repeats = 1;
    return request;
}

static pc_device *open_device(void) {
    pc_error error = {0};
    pc_device *device;
    if (pc_device_open(0, &device, &error)) fail_msg("%s", error.message);
    return device;
}

static pc_replay_stage stage_of(const pc_replay_request *request) {
    pc_error error = {0};
    pc_replay_stage stage;
    if (pc_replay_stage_make(request, &stage, &error)) fail_msg("%s", error.message);
    return stage;
}

static pc_replay_outcome replay(pc_device *device, const pc_replay_request *request) {
    pc_error error = {0};
    pc_replay_outcome outcome;
    if (pc_replay_with_device(device, request, &outcome, &error)) fail_msg("%s", error.message);
    return outcome;
}

static const char *const schedules[] = {"1f1b", "zb-1p", "v-half"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* ---- order and times ---- */

/* A clock that gives every kind of pass its own time, longer in every repetition, and notes the launches between its
 * marks. */
typedef struct fake {
    pc_device *device;
    const pc_replay_stage *stage;
    int marks; /* so far, of all iterations */
    double now;
    int64_t *launches; /* by mark */
} fake;

static double duration(int kind, int iteration) {
    return (kind + 1) * (1 + 0.5 * iteration);
}

/* A second passes between passes. */
static double mark(void *self, int number) {
    fake *device = self;
    int64_t of_iteration = 2 * device->stage->pass_count;
    int iteration = (int)(device->marks / of_iteration);
    assert_int_equal(number, device->marks % of_iteration);
    device->now += number % 2 ? duration(device->stage->pass[number / 2].kind, iteration) : 1;
    device->launches[number] = pc_emulated_launches(device->device);
    device->marks++;
    return device->now;
}

/* The steps of a pass in each of its layers: the device ran this kind of pass. */
static void check_launches(const fake *device) {
    pc_layer *layer = pc_alloc(1, sizeof *layer);
    assert_non_null(layer);
    assert_int_equal(pc_replay_layer(device->stage, layer, NULL), PC_OK);
    const int64_t f = layer->f.count, b = layer->b.count, w = layer->w.count;
    const int64_t steps[PC_PASS_KINDS] = {[PC_PASS_F] = f, [PC_PASS_B] = b, [PC_PASS_W] = w, [PC_PASS_BW] = b + w};
    assert_true(f != b && b != w && f != w);
    for (int64_t i = 0; i < device->stage->pass_count; i++) {
        int64_t launches = device->launches[2 * i + 1] - device->launches[2 * i];
        assert_true(launches >= 2 * steps[device->stage->pass[i].kind]);
        assert_int_equal(launches % 2, 0);
        for (int64_t j = 0; j < i; j++)
            if (device->stage->pass[j].kind == device->stage->pass[i].kind)
                assert_int_equal(launches, device->launches[2 * j + 1] - device->launches[2 * j]);
    }
    pc_free(layer);
}

/* With repetitions of factors 1 (warm-up), 1.5, 2 and 2.5: the busy time is the median, the passes' the mean: both 2.
 */
static void check_times(const pc_replay_stage *stage, const pc_replay_outcome *outcome) {
    double busy = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < stage->pass_count; i++) busy += 2 * (stage->pass[i].kind + 1);
    assert_true(fabs(outcome->report.measured_s - busy) < 1e-9);
    for (int i = 0; i < outcome->report.pass_kind_count; i++) {
        const pc_replay_pass_report *x = &outcome->report.pass[i];
        int kind = 0;
        while (strcmp(x->kind, pc_pass_kind_name((pc_pass_kind)kind)) != 0) kind++;
        assert_true(fabs(x->measured_s - 2 * (kind + 1)) < 1e-9);
        count += x->count;
    }
    assert_int_equal(count, stage->pass_count);
    assert_int_equal(outcome->report.passes, stage->pass_count);
}

static void check_clock(const char *schedule, int stages, int number) {
    pc_iteration_spec spec = tiny(schedule, stages, false);
    pc_replay_request request = ask(&spec, number);
    request.repeats = 3;
    pc_replay_stage stage = stage_of(&request);
    fake device = {.device = open_device(), .stage = &stage};
    device.launches = pc_alloc(2 * (size_t)stage.pass_count, sizeof *device.launches);
    assert_non_null(device.launches);
    pc_emulated_set_clock(device.device, (pc_emulated_clock){.mark = mark, .self = &device});
    pc_replay_outcome outcome = replay(device.device, &request);
    assert_int_equal(device.marks, 4 * 2 * stage.pass_count);
    check_times(&stage, &outcome);
    check_launches(&device);
    pc_free(device.launches);
    pc_device_close(device.device);
    pc_replay_stage_free(&stage);
}

static void test_passes_run_in_order(void **state) {
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) check_clock(schedules[i], 2, i % 2);
}

/* 1F1B of p stages and m microbatches on stage d: p - d - 1 F, then F and BW in turn, then the rest. */
static void test_the_order_is_the_schedules(void **state) {
    (void)state;
    pc_iteration_spec spec = tiny("1f1b", 4, false);
    pc_replay_request request = ask(&spec, 1);
    pc_replay_stage stage = stage_of(&request);
    const int p = 4, d = 1, m = 6, ahead = p - d - 1;
    assert_int_equal(stage.pass_count, 2 * m);
    for (int i = 0, f = 0, b = 0; i < 2 * m; i++) {
        bool is_f = f < m && f - b <= ahead;
        assert_int_equal(stage.pass[i].kind, is_f ? PC_PASS_F : PC_PASS_BW);
        assert_int_equal(stage.pass[i].microbatch, is_f ? f : b);
        *(is_f ? &f : &b) += 1;
    }
    pc_replay_stage_free(&stage);
}

/* The middle stages have layers alone: a pass is simulated at what an iteration says, TP's collectives apart. */
static void test_simulated_times_are_the_iterations(void **state) {
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) {
        pc_iteration_spec spec = tiny(schedules[i], 4, false);
        pc_replay_request request = ask(&spec, 2);
        pc_replay_stage stage = stage_of(&request);
        pc_costs costs;
        assert_int_equal(pc_iteration_costs(&spec, NULL, &costs, NULL), PC_OK);
        for (int64_t n = 0; n < stage.pass_count; n++) {
            pc_pass pass = stage.pass[n];
            double expected = pc_time_to_seconds(pc_costs_duration(&costs, 2, pass.chunk, pass.kind));
            assert_true(fabs(stage.chunk[pass.chunk].pass_s[pass.kind] - expected) <= 1e-12);
        }
        assert_string_equal(stage.left_out, "");
        assert_true(stage.is_roofline);
        pc_costs_free(&costs);
        pc_replay_stage_free(&stage);
    }
}

/* ---- memory ---- */

/* The most between passes and within them, in bytes. F takes what is simulated, and its layers' vectors. At the start
 * of a B there is one gradient more, 2 s b h, beside what F left. It is the first that it makes (the mask's, with
 * dropout), or the one that it was sent and that W needs. */
typedef struct levels {
    int64_t held, peak;
} levels;

static levels climb(const pc_replay_stage *stage, int64_t of_a_layer, int64_t gradient) {
    levels found = {0, 0};
    int64_t level = 0;
    for (int64_t i = 0; i < stage->pass_count; i++) {
        pc_pass pass = stage->pass[i];
        const pc_part_activation *x = &stage->chunk[pass.chunk].activation;
        int64_t vectors = stage->chunk[pass.chunk].layers * of_a_layer;
        bool is_b = pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW;
        if (is_b && level + gradient > found.peak) found.peak = level + gradient;
        if (pass.kind == PC_PASS_F) level += x->taken + vectors;
        if (pass.kind == PC_PASS_B) level -= x->b_frees + vectors;
        if (pass.kind == PC_PASS_W) level -= x->taken - x->b_frees;
        if (pass.kind == PC_PASS_BW) level -= x->taken + vectors;
        if (level > found.held) found.held = level;
        if (level > found.peak) found.peak = level;
    }
    assert_int_equal(level, 0);
    return found;
}

static void check_memory(const char *schedule, int stages, int number, bool is_llama) {
    pc_iteration_spec spec = tiny(schedule, stages, is_llama);
    pc_replay_request request = ask(&spec, number);
    pc_replay_stage stage = stage_of(&request);
    pc_device *device = open_device();
    pc_replay_outcome x = replay(device, &request);
    const int64_t tokens = TOKENS, h = 32, heads = is_llama ? 4 : 2;
    int64_t vectors = 4 * tokens * (heads + (is_llama ? 2 : 4));
    levels expected = climb(&stage, vectors, 2 * tokens * h);
    assert_int_equal(x.held_activations, expected.held);
    assert_int_equal(x.measured_activations, expected.peak);
    assert_int_equal(x.simulated_activations + x.vector_bytes, expected.held);
    assert_int_equal(x.measured_state, x.simulated_state);
    assert_int_equal(x.report.measured_peak_bytes, x.measured_state + x.measured_activations);
    assert_int_equal(x.report.simulated_peak_bytes, x.simulated_state + x.simulated_activations);
    assert_int_equal(pc_emulated_allocations(device), 0);
    pc_device_close(device);
    pc_replay_stage_free(&stage);
}

static void test_memory_is_the_simulated_one(void **state) {
    (void)state;
    check_memory("1f1b", 4, 0, false);
    check_memory("1f1b", 2, 0, true);
    check_memory("zb-1p", 3, 1, false);
    check_memory("v-half", 2, 1, true);
    check_memory("v-half", 3, 0, false);
    check_memory("chimera", 2, 1, false);
}

/* Of a middle stage the simulated peak is the iteration's own. */
static void check_simulated_memory(const char *schedule) {
    pc_iteration_spec spec = tiny(schedule, 4, false);
    pc_iteration iteration = run_spec(&spec);
    pc_replay_request request = ask(&spec, 1);
    pc_replay_stage stage = stage_of(&request);
    int64_t taken[2], b_frees[2], parameters = 0;
    assert_in_range(stage.chunks, 1, 2);
    for (int c = 0; c < stage.chunks; c++) {
        taken[c] = stage.chunk[c].activation.taken;
        b_frees[c] = stage.chunk[c].activation.b_frees;
        parameters += stage.chunk[c].parameters;
    }
    assert_int_equal(pc_replay_stage_peak(&stage, taken, b_frees), iteration.replay.device_peak_bytes[1]);
    assert_int_equal(6 * parameters, iteration.memory[1].parameters + iteration.memory[1].gradients);
    pc_replay_stage_free(&stage);
    pc_iteration_free(&iteration);
}

static void test_simulated_memory_is_the_iterations(void **state) {
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) check_simulated_memory(schedules[i]);
}

/* With room for all but the last byte of the peak. */
static void test_a_device_that_is_too_small(void **state) {
    (void)state;
    pc_iteration_spec spec = tiny("zb-1p", 2, false);
    pc_replay_request request = ask(&spec, 0);
    pc_device *device = open_device();
    pc_replay_outcome x = replay(device, &request);
    pc_error error = {0};
    int64_t all = x.measured_state + x.working_bytes + x.measured_activations;
    pc_emulated_set_memory(device, all);
    x = replay(device, &request);
    pc_emulated_set_memory(device, all - 1);
    assert_int_equal(pc_replay_with_device(device, &request, &x, NULL), PC_ERROR_NO_MEMORY); /* nobody asks why */
    assert_int_equal(pc_replay_with_device(device, &request, &x, &error), PC_ERROR_NO_MEMORY);
    const char *expected = "replay: stage 0: B of microbatch 0, chunk 0, layer 1: down_gradient, 256 bytes: ";
    if (strncmp(error.message, expected, strlen(expected)) != 0) fail_msg("%s", error.message);
    assert_int_equal(pc_emulated_allocations(device), 0);
    pc_emulated_set_memory(device, x.measured_state / 2);
    assert_int_equal(pc_replay_with_device(device, &request, &x, &error), PC_ERROR_NO_MEMORY);
    assert_int_equal(pc_replay_with_device(device, &request, &x, NULL), PC_ERROR_NO_MEMORY);
    assert_int_equal(pc_emulated_allocations(device), 0);
    pc_device_close(device);
}

/* Every allocation of the host refused in turn, as far as the first pass. */
static void test_a_host_that_is_too_small(void **state) {
    (void)state;
    pc_iteration_spec spec = tiny("1f1b", 2, false);
    pc_replay_request request = ask(&spec, 1);
    pc_device *device = open_device();
    pc_replay_outcome x;
    for (long i = 0; i < 60; i++) {
        pc_alloc_fail_after(i);
        pc_code code = pc_replay_with_device(device, &request, &x, NULL);
        pc_alloc_fail_after(-1);
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_int_equal(pc_emulated_allocations(device), 0);
    }
    pc_device_close(device);
}

/* ---- what is left out, and what cannot be ---- */

/* Launches of a kind of pass, one after another, are all of its time: the emulated clock stands still between them. */
static void check_kernels(const pc_replay_outcome *outcome, const pc_replay_kernel *kernel) {
    int64_t seen = 0;
    for (int i = 0; i < outcome->report.pass_kind_count; i++) {
        const pc_replay_pass_report *pass = &outcome->report.pass[i];
        double seconds = 0;
        for (int32_t j = 0; j < outcome->kernel_count; j++) {
            if (strcmp(kernel[j].pass, pass->kind) != 0) continue;
            seconds += kernel[j].measured_s * (double)kernel[j].count;
            assert_int_equal(kernel[j].count % pass->count, 0); /* in every layer of every one */
            assert_true(isnan(kernel[j].fitted_s));             /* without a profile */
            seen++;
        }
        double of_passes = pass->measured_s * (double)pass->count;
        assert_true(fabs(seconds - of_passes) < 1e-9 * of_passes);
    }
    assert_int_equal(seen, outcome->kernel_count);
}

static void test_kernels_are_their_passes(void **state) {
    (void)state;
    pc_replay_kernel *kernel = pc_alloc(PC_REPLAY_KERNELS, sizeof *kernel);
    assert_non_null(kernel);
    for (int i = 0; i < SCHEDULES; i++) {
        pc_iteration_spec spec = tiny(schedules[i], 2, i == 1);
        pc_device *device = open_device();
        pc_replay_request request = ask(&spec, 1);
        pc_replay_outcome without = replay(device, &request);
        assert_int_equal(without.kernel_count, 0);
        request.kernel = kernel;
        pc_replay_outcome outcome = replay(device, &request);
        assert_true(outcome.kernel_count > 10);
        check_kernels(&outcome, kernel);
        assert_int_equal(outcome.measured_activations, without.measured_activations);
        pc_device_close(device);
    }
    pc_free(kernel);
}

static void test_what_is_left_out_is_said(void **state) {
    (void)state;
    pc_iteration_spec spec = tiny("v-half", 2, true);
    spec.cut.sequence_parallel = true;
    spec.model.attention = PC_ATTENTION_MATERIALISED;
    pc_replay_request request = ask(&spec, 0);
    pc_replay_stage stage = stage_of(&request);
    assert_string_equal(stage.left_out, "collectives of tensor parallelism; sequence parallelism (norms are of all "
                                        "tokens); the attention matrix (flash attention instead); the embedding; the "
                                        "head and the loss");
    pc_replay_stage_free(&stage);
}

static void check_refused(const pc_replay_request *request, const char *words) {
    pc_error error = {0};
    pc_replay_stage stage;
    assert_int_equal(pc_replay_stage_make(request, &stage, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("%s", error.message);
    assert_int_equal(pc_replay_check(request, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("%s", error.message);
}

static void test_what_cannot_be(void **state) {
    (void)state;
    pc_iteration_spec spec = tiny("1f1b", 4, false), other = spec;
    pc_replay_request request = ask(&spec, 3);
    assert_int_equal(pc_replay_check(&request, NULL), PC_OK);
    request = ask(&spec, 4);
    check_refused(&request, "stage 4; expected 0 to 3");
    request = ask(&spec, 0);
    request.repeats = 0;
    check_refused(&request, "1 warm-ups and 0 repeats; expected 1 and more");
    request = ask(&other, 0);
    other.cut.recompute = PC_RECOMPUTE_FULL;
    check_refused(&request, "1f1b with recomputation; expected");
    other = spec;
    other.memory_limit_bytes = 1;
    check_refused(&request, "the scenario's run is no schedule that could be run: stage");
    other = spec;
    other.cut.layout = PC_CUT_OWN;
    check_refused(&request, "stage 0 has no layers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_run_in_order),
        cmocka_unit_test(test_the_order_is_the_schedules),
        cmocka_unit_test(test_simulated_times_are_the_iterations),
        cmocka_unit_test(test_memory_is_the_simulated_one),
        cmocka_unit_test(test_simulated_memory_is_the_iterations),
        cmocka_unit_test(test_a_device_that_is_too_small),
        cmocka_unit_test(test_a_host_that_is_too_small),
        cmocka_unit_test(test_kernels_are_their_passes),
        cmocka_unit_test(test_what_is_left_out_is_said),
        cmocka_unit_test(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
