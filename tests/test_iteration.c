/* Iterations by hand: one GPU, what fits and what does not, what cannot be, and what each choice changes. */
#include "tests/support.h"

#include "models/training/iteration.h"
#include "models/training/outline.h"
#include "models/workload/memory.h"
#include "models/workload/operation.h"
#include "tests/iteration_example.h"

#include <math.h>

static double seconds_of(const pc_iteration_spec *spec) {
    pc_iteration iteration = run_spec(spec);
    double seconds = iteration.iteration_s;
    pc_iteration_free(&iteration);
    return seconds;
}

/* ---- one GPU ---- */

/* A microsecond and a femtosecond a FLOP, whatever the kernel. */
static pc_estimate simple_kernel(const void *self, const pc_operation *operation) {
    (void)self;
    double seconds = 1e-6 + (double)operation->flops * 1e-15;
    return (pc_estimate){seconds, seconds / 10};
}

static pc_iteration_spec lone_spec(void) {
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = spec.cut.pp = spec.cut.dp = 1;
    spec.cut.sequence_parallel = false;
    return spec;
}

/* m microbatches of F and BW, and the step: nothing else, for nothing communicates. */
static double sum_of_operations(const pc_iteration_spec *spec, double *launches) {
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_BW};
    pc_part part = pc_cut_part(&spec->model, &spec->cut, 1, 0);
    pc_operations list;
    double sum = 0;
    *launches = 0;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pc_pass_operations(&spec->model, &spec->cut, &part, kinds[k], false, &list, NULL), PC_OK);
        for (int i = 0; i < list.count; i++) {
            sum += (double)list.list[i].repeat * simple_kernel(NULL, &list.list[i]).seconds;
            *launches += (double)list.list[i].repeat * list.list[i].launches;
        }
    }
    *launches *= (double)spec->cut.microbatches;
    return sum * (double)spec->cut.microbatches;
}

static pc_iteration run_simple(const pc_iteration_spec *spec, double launch_s) {
    pc_iteration iteration;
    pc_cost_model cost = {NULL, simple_kernel, launch_s};
    pc_error error = {0};
    if (pc_iteration_run(spec, &cost, true, &iteration, &error)) fail_msg("%s", error.message);
    assert_int_equal(iteration.status, PC_RUN_OK);
    return iteration;
}

static void test_one_gpu_is_the_sum_of_its_operations(void **state) {
    (void)state;
    pc_iteration_spec spec = lone_spec();
    double launches, sum = sum_of_operations(&spec, &launches), step_s = 1e-6;
    pc_iteration iteration = run_simple(&spec, 0);
    check_within(iteration.iteration_s, sum + step_s, 1e-9);
    check_within(iteration.standard_error_s, sum / 10, 1e-9);
    assert_true(iteration.exposed.tp == 0 && iteration.exposed.pp == 0 && iteration.exposed.dp == 0);
    check_within(iteration.exposed.optimizer, step_s, 1e-9);
    assert_true(iteration.exposed.bubble < 1e-9);
    pc_iteration_free(&iteration);
    spec.pass_overhead = 0.25;
    spec.overhead_ps = 3000000000;
    iteration = run_simple(&spec, 0);
    check_within(iteration.iteration_s, 1.25 * sum + step_s + 3e-3, 1e-9);
    pc_iteration_free(&iteration);
}

/* A host that takes a millisecond a launch is slower than any kernel: 4 launches make the step. */
static void test_launches_bound_a_pass(void **state) {
    (void)state;
    pc_iteration_spec spec = lone_spec();
    double launches;
    sum_of_operations(&spec, &launches);
    pc_iteration iteration = run_simple(&spec, 1e-3);
    check_within(iteration.iteration_s, (launches + 4) * 1e-3, 1e-9);
    pc_iteration_free(&iteration);
}

/* MFU counts the papers' model FLOPs over the peak; without recomputation GPT with a materialised attention matrix does
 * no other matrix work. With all of it recomputed it does F again, of the layers: 4/3 of their FLOPs. */
static void test_rates(void **state) {
    (void)state;
    pc_iteration_spec spec = lone_spec();
    spec.model.attention = PC_ATTENTION_MATERIALISED;
    pc_iteration x = run_simple(&spec, 0);
    double flops = 8 * pc_model_flops_per_sequence(&spec.model, 1, 1024);
    double layers = flops * (1 + 1024.0 / (6 * 2048)) /
                    (1 + 1024.0 / (6 * 2048) + (double)pc_model_padded_vocab(&spec.model, 1) / (12.0 * 24 * 2048));
    assert_true(x.sequences == 8);
    check_within(x.model_flops, flops, 1e-12);
    check_within(x.hardware_flops, flops, 1e-12);
    check_within(x.mfu, flops / x.iteration_s / 300e12, 1e-12);
    check_within(x.tflops_per_gpu, flops / x.iteration_s / 1e12, 1e-12);
    pc_iteration_free(&x);
    spec.cut.recompute = PC_RECOMPUTE_FULL;
    x = run_simple(&spec, 0);
    check_within(x.model_flops, flops, 1e-12);
    check_within(x.hardware_flops, flops + layers / 3, 1e-12);
    check_within(x.hfu / x.mfu, x.hardware_flops / flops, 1e-12);
    pc_iteration_free(&x);
}

/* ---- memory ---- */

static void expect_status(const pc_iteration_spec *spec, pc_run_status status, const char *message) {
    pc_iteration iteration;
    pc_error error = {0};
    if (pc_iteration_run(spec, NULL, true, &iteration, &error)) fail_msg("%s", error.message);
    if (iteration.status != status || !strstr(iteration.message, message))
        fail_msg("status %d, '%s'; expected %d and '%s'", iteration.status, iteration.message, status, message);
    assert_true(isnan(iteration.iteration_s));
    pc_iteration_free(&iteration);
}

/* The first of 4 stages under 1F1B holds 4 microbatches. One byte less than all that it holds is too little; the fourth
 * F is the one that does not fit, and starts when three are over. */
static void test_out_of_memory(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration x = run_spec(&spec);
    const pc_device_memory first = x.memory[0];
    char message[96];
    assert_int_equal(first.capacity_bytes, INT64_C(77) << 30);
    assert_int_equal(first.peak_bytes,
                     first.parameters + first.gradients + first.optimizer + first.buffers + first.activations);
    double fourth_s = 0;
    int count = 0;
    for (int64_t i = 0; i < x.replay.trace.pass_count; i++)
        if (x.replay.trace.pass_device[i] == 0 && x.replay.trace.pass[i].kind == PC_PASS_F && ++count == 4)
            fourth_s = (double)x.replay.trace.pass_start_ps[i] / 1e12;
    check_within((double)first.peak_ps / 1e12, fourth_s, 1e-12);
    spec.memory_limit_bytes = first.peak_bytes;
    pc_iteration_free(&x);
    x = run_spec(&spec);
    assert_int_equal(x.memory[0].capacity_bytes, first.peak_bytes);
    pc_iteration_free(&x);
    spec.memory_limit_bytes--;
    snprintf(message, sizeof message, "stage 0: activations at %.4g s: %.4g GiB in all of", fourth_s,
             (double)first.peak_bytes / 1073741824);
    expect_status(&spec, PC_RUN_OUT_OF_MEMORY, message);
}

/* Weights 2, gradients 4, optimizer state 12 bytes over 8 ranks, a parameter; on the last stage, whose logits are large
 * buffers, more is held all the time than on any other. */
static void test_too_small_for_the_state(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration x = run_spec(&spec);
    const pc_device_memory last = x.memory[3];
    int64_t parameters = last.parameters / 2;
    pc_iteration_free(&x);
    assert_int_equal(last.gradients, 4 * parameters);
    assert_true(last.optimizer >= 12 * parameters / 8 && last.optimizer <= 12 * parameters / 8 + 12);
    spec.memory_limit_bytes = 2 * parameters - 1;
    expect_status(&spec, PC_RUN_OUT_OF_MEMORY, "stage 3: parameters at the start: ");
    spec.memory_limit_bytes = 6 * parameters - 1;
    expect_status(&spec, PC_RUN_OUT_OF_MEMORY, "stage 3: gradients at the start: ");
    spec.memory_limit_bytes = 6 * parameters;
    expect_status(&spec, PC_RUN_OUT_OF_MEMORY, "stage 3: optimizer at the start: ");
    spec.memory_limit_bytes = 6 * parameters + last.optimizer;
    expect_status(&spec, PC_RUN_OUT_OF_MEMORY, "stage 3: buffers at the start: ");
}

/* A schedule that searches gets the limit and keeps it, down to one microbatch; below that nothing fits. */
static void test_searches_keep_the_limit(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("v-adaptive");
    spec.cut.chunks = 2;
    spec.cut.microbatches = 12;
    spec.cut.microbatch_size = 4;
    spec.cut.pp = 6;
    pc_iteration free_run = run_spec(&spec);
    int64_t fixed = free_run.memory[0].peak_bytes - free_run.memory[0].activations;
    spec.memory_limit_bytes = fixed + free_run.memory[0].activations / 2;
    pc_iteration limited = run_spec(&spec);
    for (int d = 0; d < 6; d++) assert_true(limited.memory[d].peak_bytes <= spec.memory_limit_bytes);
    assert_true(limited.iteration_s > free_run.iteration_s);
    spec.memory_limit_bytes = fixed + free_run.memory[0].activations / 12;
    expect_status(&spec, PC_RUN_OUT_OF_MEMORY, "stage 0: activations of one microbatch: ");
    pc_iteration_free(&free_run);
    pc_iteration_free(&limited);
}

/* Multi-token prediction's copy of the embedding exchanges its gradient with the first stage, as the head of a tied
 * model does. They are as many bytes, between the same two stages, or with the stage that a list places it on. */
static void test_prediction_exchanges_its_embedding(void **state) {
    (void)state;
    static const int32_t layers[] = {7, 7, 7, 3};
    pc_iteration_spec spec = example_spec();
    pc_outline tied, copied, listed, frozen;
    assert_int_equal(pc_outline_make(&spec, NULL, &tied, NULL), PC_OK);
    spec.model.is_tied = false;
    spec.model.mtp_layers = 1;
    assert_int_equal(pc_outline_make(&spec, NULL, &copied, NULL), PC_OK);
    assert_int_equal(copied.tied_stage, 3);
    assert_true(tied.tied_ps > 0);
    assert_int_equal(copied.tied_ps, tied.tied_ps);
    assert_true(copied.tied_bytes == tied.tied_bytes);
    pc_iteration_spec other = spec;
    other.cut.frozen = PC_FROZEN_EMBEDDING;
    assert_int_equal(pc_outline_make(&other, NULL, &frozen, NULL), PC_OK);
    assert_int_equal(frozen.tied_ps, 0);
    other = spec;
    other.cut.layout = PC_CUT_LISTED;
    other.cut.layers_of_part = layers;
    other.cut.mtp_listed = other.cut.mtp_ahead = 1;
    assert_int_equal(pc_outline_make(&other, NULL, &listed, NULL), PC_OK);
    assert_int_equal(listed.tied_stage, 2);
    assert_true(listed.tied_ps > 0);
    pc_outline_free(&tied);
    pc_outline_free(&copied);
    pc_outline_free(&frozen);
    pc_outline_free(&listed);
}

/* Folded, the first and the last part are on stage 0, which then holds the tied matrix once, and both ends' work. */
static void test_a_folded_model(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("v-half");
    spec.cut.chunks = 2;
    spec.cut.layout = PC_CUT_LISTED;
    static const int32_t layers[] = {3, 3, 3, 3, 3, 3, 3, 3};
    spec.cut.layers_of_part = layers;
    pc_iteration tied = run_spec(&spec);
    spec.model.is_tied = false;
    pc_iteration untied = run_spec(&spec);
    int64_t matrix = pc_model_padded_vocab(&spec.model, 2) / 2 * 2048;
    assert_int_equal(untied.memory[0].parameters - tied.memory[0].parameters, 2 * matrix);
    assert_int_equal(untied.memory[1].parameters, tied.memory[1].parameters);
    assert_true(tied.replay.device_busy_ps[0] > tied.replay.device_busy_ps[1]);
    assert_int_equal(tied.replay.device_busy_ps[1], tied.replay.device_busy_ps[3]);
    pc_iteration_free(&tied);
    pc_iteration_free(&untied);
}

/* A share of the state is a GPU's own, gradients from ZeRO 2 on, parameters with ZeRO 3. */
static void test_zero(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_device_memory held[4];
    for (int zero = 0; zero < 4; zero++) {
        spec.cut.zero = zero;
        pc_iteration x = run_spec(&spec);
        held[zero] = x.memory[1];
        pc_iteration_free(&x);
    }
    check_within((double)held[1].optimizer, (double)held[0].optimizer / 8, 1e-6);
    assert_int_equal(held[1].gradients, held[0].gradients);
    check_within((double)held[2].gradients, (double)held[0].gradients / 8, 1e-6);
    assert_int_equal(held[2].parameters, held[0].parameters);
    check_within((double)held[3].parameters, (double)held[0].parameters / 8, 1e-6);
    assert_true(held[2].buffers > held[1].buffers && held[3].buffers > held[2].buffers);
}

/* ---- what cannot be ---- */

static void test_infeasible(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = 3;
    expect_status(&spec, PC_RUN_INFEASIBLE, "heads");
    spec = example_spec();
    spec.cut.pp = 5;
    expect_status(&spec, PC_RUN_INFEASIBLE, "layers");
    spec = example_spec();
    spec.cut.dp = 0;
    expect_status(&spec, PC_RUN_INFEASIBLE, "dp 0; expected each to be at least 1");
    spec = example_spec();
    spec.machine.nodes = 7;
    expect_status(&spec, PC_RUN_INFEASIBLE, "64 GPUs; expected at most the 56");
    spec = example_spec();
    spec.cut.chunks = 2;
    expect_status(&spec, PC_RUN_INFEASIBLE, "1f1b: 2 chunks a device; expected 1");
    spec = example_spec();
    static const int32_t layers[] = {6, 6, 6, 6};
    static const pc_recomputation some[] = {[2] = {.kind = PC_RECOMPUTE_FULL}, [3] = {.kind = PC_RECOMPUTE_NONE}};
    spec.cut.layout = PC_CUT_LISTED;
    spec.cut.layers_of_part = layers;
    spec.cut.recompute_of_part = some;
    pc_iteration x = run_spec(&spec);
    assert_true(x.memory[2].activations < x.memory[3].activations);
    pc_iteration_free(&x);
}

static void expect_error(const pc_iteration_spec *spec, const char *message) {
    pc_iteration iteration;
    pc_costs costs;
    pc_error error = {0};
    assert_int_equal(pc_iteration_run(spec, NULL, true, &iteration, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, message)) fail_msg("'%s'; expected '%s'", error.message, message);
    assert_int_equal(pc_iteration_costs(spec, NULL, &costs, NULL), PC_ERROR_INPUT);
}

/* Billions of tasks are not begun with. */
static void test_operations_are_counted_first(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration iteration;
    pc_error error = {0};
    spec.cut.tp = 8;
    spec.cut.dp = 1;
    spec.cut.microbatches = 200000;
    spec.network = PC_NETWORK_FLOWS;
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    if (!pc_iteration_run(&spec, NULL, false, &iteration, &error)) fail_msg("%s", iteration.message);
    if (!strstr(error.message, "tasks; expected at most 16777216")) fail_msg("'%s'", error.message);
}

static void test_bad_input(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.model.hidden = 0;
    expect_error(&spec, "hidden");
    spec = example_spec();
    spec.machine.gpu.matrix_flops_per_s = -1;
    expect_error(&spec, "matrix");
    spec = example_spec();
    spec.pass_overhead = NAN;
    expect_error(&spec, "out of range");
    spec = example_spec();
    spec.jitter = 0.1;
    expect_error(&spec, "jitter 0.1 of folded replicas");
    spec.expands = true;
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    expect_error(&spec, "expanded replicas by operations");
    spec = example_spec();
    spec.pipelines_tp = true;
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    expect_error(&spec, "overlap.tp_pieces with granularity operations");
    spec = example_spec();
    spec.machine.network.bandwidth_bytes_per_s = 1e-3;
    expect_error(&spec, "expected at most 7200 s");
}

/* ---- choices ---- */

/* Blocked, every transfer is part of a pass; without transfers both are the same. What the tied embedding's gradient
 * takes between the stages that are ready last is one, too. */
static void test_transfers(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration tied = run_spec(&spec);
    spec.model.is_tied = false;
    pc_iteration overlapped = run_spec(&spec);
    spec.overlaps_p2p = false;
    pc_iteration blocked = run_spec(&spec);
    assert_true(overlapped.exposed.pp > 0);
    assert_true(blocked.exposed.pp > 1.5 * overlapped.exposed.pp);
    check_within(blocked.iteration_s - blocked.exposed.pp, overlapped.iteration_s - overlapped.exposed.pp, 1e-9);
    assert_true(tied.exposed.pp > 1.5 * overlapped.exposed.pp);
    double sum = blocked.exposed.tp + blocked.exposed.pp + blocked.exposed.dp + blocked.exposed.optimizer +
                 blocked.exposed.bubble;
    assert_true(sum < blocked.iteration_s);
    pc_iteration_free(&tied);
    pc_iteration_free(&overlapped);
    pc_iteration_free(&blocked);
}

/* Post-validation waits neither for the slowest stage nor for the norm; what overlaps is exposed less; small buckets
 * start early; gradients of half the size take half as long. */
static void test_the_end_of_an_iteration(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    double whole = seconds_of(&spec);
    spec.step = PC_STEP_POST_VALIDATION;
    assert_true(seconds_of(&spec) < whole);
    spec.step = PC_STEP_NORM;
    spec.bucket_bytes = 40000000;
    pc_iteration buckets = run_spec(&spec);
    assert_true(buckets.iteration_s < whole);
    spec.overlaps_gradients = spec.overlaps_parameters = false;
    pc_iteration exposed = run_spec(&spec);
    assert_true(exposed.iteration_s > buckets.iteration_s && exposed.exposed.dp > buckets.exposed.dp);
    spec.cut.gradient_bytes = 2;
    assert_true(seconds_of(&spec) < exposed.iteration_s);
    pc_iteration_free(&buckets);
    pc_iteration_free(&exposed);
}

/* Megatron's all-gather of B runs beside the kernels of the same pass, which take longer. */
static void test_overlapped_tensor_parallelism(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = 8;
    spec.overlaps_tp = false;
    pc_iteration waits = run_spec(&spec);
    spec.overlaps_tp = true;
    pc_iteration overlaps = run_spec(&spec);
    assert_true(overlaps.exposed.tp < waits.exposed.tp && overlaps.exposed.tp > 0);
    assert_true(overlaps.iteration_s < waits.iteration_s);
    spec.network = PC_NETWORK_FLOWS;
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    spec.overlaps_gradients = spec.overlaps_parameters = false;
    double flows = seconds_of(&spec);
    spec.network = PC_NETWORK_CLOSED;
    check_within(flows, seconds_of(&spec), 0.02);
    pc_iteration_free(&waits);
    pc_iteration_free(&overlaps);
}

/* With ZeRO 3 exposed, each pass is longer by what it gathers and reduces; overlapped, it is the longer of the two. */
static void test_zero_3(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_costs plain, exposed, overlapped;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &plain, NULL), PC_OK);
    spec.cut.zero = 3;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &overlapped, NULL), PC_OK);
    spec.overlaps_gradients = spec.overlaps_parameters = false;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &exposed, NULL), PC_OK);
    pc_time f = pc_costs_duration(&plain, 1, 0, PC_PASS_F), bw = pc_costs_duration(&plain, 1, 0, PC_PASS_BW);
    pc_time gather = pc_costs_duration(&exposed, 1, 0, PC_PASS_F) - f;
    pc_time both = pc_costs_duration(&exposed, 1, 0, PC_PASS_BW) - bw;
    assert_true(gather > 0 && both > 2 * gather); /* fp32 gradients are twice as large */
    assert_int_equal(pc_costs_duration(&overlapped, 1, 0, PC_PASS_F), f > gather ? f : gather);
    assert_int_equal(pc_costs_duration(&overlapped, 1, 0, PC_PASS_BW), bw > both ? bw : both);
    assert_true(plain.ready_ps && !overlapped.ready_ps);
    pc_costs_free(&plain);
    pc_costs_free(&exposed);
    /* Apart, B gathers and W reduces. */
    spec.generator = pc_generator_find("zb-h1");
    assert_int_equal(pc_iteration_costs(&spec, NULL, &exposed, NULL), PC_OK);
    spec.cut.zero = 1;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &plain, NULL), PC_OK);
    pc_time b = pc_costs_duration(&plain, 1, 0, PC_PASS_B), w = pc_costs_duration(&plain, 1, 0, PC_PASS_W);
    assert_int_equal(pc_costs_duration(&exposed, 1, 0, PC_PASS_B) - b, gather);
    assert_int_equal(pc_costs_duration(&exposed, 1, 0, PC_PASS_W) - w, both - gather);
    pc_costs_free(&plain);
    pc_costs_free(&exposed);
    pc_costs_free(&overlapped);
}

/* ZeRO 2 sends every microbatch's gradients: over a network so slow that nothing else counts, as often as there are
 * microbatches. */
static void test_zero_2(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.machine.network.bandwidth_bytes_per_s = 1e9;
    spec.cut.pp = 1;
    spec.cut.tp = 8;
    spec.cut.zero = 2;
    spec.cut.microbatches = 4;
    double four = seconds_of(&spec);
    spec.network = PC_NETWORK_FLOWS;
    check_within(seconds_of(&spec), four, 0.01);
    spec.network = PC_NETWORK_CLOSED;
    spec.cut.microbatches = 8;
    double eight = seconds_of(&spec);
    spec.cut.microbatches = 12;
    check_within(seconds_of(&spec) - eight, eight - four, 0.01);
    spec.cut.zero = 1;
    assert_true(seconds_of(&spec) < eight / 2);
}

/* AUTO looks for what can meet: gradients on their way while others send to the next stage. */
static void test_auto(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.network = PC_NETWORK_AUTO;
    pc_iteration x = run_spec(&spec);
    assert_true(x.link_utilisation_max > 0);
    pc_iteration_free(&x);
    spec.overlaps_gradients = spec.overlaps_parameters = false;
    x = run_spec(&spec);
    assert_true(isnan(x.link_utilisation_max));
    pc_iteration_free(&x);
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    x = run_spec(&spec);
    assert_true(x.link_utilisation_max > 0);
    pc_iteration_free(&x);
    spec = example_spec();
    spec.network = PC_NETWORK_AUTO;
    spec.cut.pp = 1; /* no stage sends to another */
    x = run_spec(&spec);
    assert_true(isnan(x.link_utilisation_max));
    pc_iteration_free(&x);
}

/* Equal replicas, expanded, take as long as one; noise only makes it longer, the more the more there are. */
static void test_expanded(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration folded = run_spec(&spec);
    spec.expands = true;
    assert_true(seconds_of(&spec) == folded.iteration_s);
    spec.jitter = 0.05;
    pc_iteration noisy = run_spec(&spec);
    assert_true(noisy.iteration_s > folded.iteration_s && noisy.iteration_s == seconds_of(&spec));
    assert_true(noisy.exposed.dp == folded.exposed.dp && noisy.exposed.bubble > folded.exposed.bubble);
    spec.seed = 1;
    assert_true(noisy.iteration_s != seconds_of(&spec));
    pc_iteration_free(&folded);
    pc_iteration_free(&noisy);
}

/* Two stages of one microbatch: F, transfer, F, BW, transfer, BW, whether the sender or the receiver waits. Noise is of
 * the stages' own work, and the same draws: the iteration is the same to the picosecond, with any of it. */
static void test_waits_have_no_noise(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.pp = 2;
    spec.cut.dp = 1;
    spec.cut.microbatches = 1;
    spec.expands = true;
    spec.jitter = 0.3;
    for (spec.seed = 0; spec.seed < 20; spec.seed++) {
        spec.overlaps_p2p = true;
        double delayed = seconds_of(&spec);
        spec.overlaps_p2p = false;
        assert_true(seconds_of(&spec) == delayed);
    }
}

/* One stage of one microbatch, nothing beside passes: noise makes F and BW of the latest replica longer by N. ZeRO 3
 * has F + G and BW + G + Q in place of F, BW and a reduction behind them: N is the same but for the rounding of two
 * passes. */
static void test_collectives_in_passes_have_no_noise(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.pp = 1;
    spec.cut.dp = 4;
    spec.cut.microbatches = 1;
    spec.overlaps_gradients = spec.overlaps_parameters = false;
    spec.expands = true;
    for (spec.seed = 0; spec.seed < 20; spec.seed++) {
        double longer[2];
        for (int i = 0; i < 2; i++) {
            spec.cut.zero = 3 * i;
            spec.jitter = 0;
            double calm = seconds_of(&spec);
            spec.jitter = 0.3;
            longer[i] = seconds_of(&spec) - calm;
        }
        assert_true(fabs(longer[1] - longer[0]) <= 2.1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prediction_exchanges_its_embedding),
        cmocka_unit_test(test_one_gpu_is_the_sum_of_its_operations),
        cmocka_unit_test(test_launches_bound_a_pass),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_too_small_for_the_state),
        cmocka_unit_test(test_searches_keep_the_limit),
        cmocka_unit_test(test_a_folded_model),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_infeasible),
        cmocka_unit_test(test_operations_are_counted_first),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_the_end_of_an_iteration),
        cmocka_unit_test(test_overlapped_tensor_parallelism),
        cmocka_unit_test(test_zero_3),
        cmocka_unit_test(test_zero_2),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_expanded),
        cmocka_unit_test(test_waits_have_no_noise),
        cmocka_unit_test(test_collectives_in_passes_have_no_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
