#include "tests/iteration_example.h"

#include "tests/random_frozen.h"
#include "tests/random_fused.h"
#include "tests/random_model.h"

static const pc_model model = {.name = "small",
                               .layers = 24,
                               .hidden = 2048,
                               .ffn_hidden = 8192,
                               .heads = 16,
                               .kv_heads = 16,
                               .head_dim = 128,
                               .vocab = 50257,
                               .vocab_multiple = 128,
                               .max_positions = 2048,
                               .positions = PC_POSITIONS_LEARNED,
                               .attention = PC_ATTENTION_FLASH,
                               .is_tied = true,
                               .has_bias = true,
                               .has_dropout = true};

static const pc_gpu gpu = {.name = "gpu",
                           .matrix_flops_per_s = 300e12,
                           .vector_flops_per_s = 20e12,
                           .memory_bytes_per_s = 2000e9,
                           .memory_bytes = INT64_C(80) << 30,
                           .memory_reserved_bytes = INT64_C(3) << 30,
                           .l2_bytes = INT64_C(40) << 20,
                           .processors = 100,
                           .tile_m = 128,
                           .tile_n = 256,
                           .gemm_efficiency = 0.8,
                           .gemm_ramp_k = 100,
                           .attention_efficiency = 0.6,
                           .attention_backward = 1.3,
                           .memory_efficiency = 0.8,
                           .kernel_s = 2e-6,
                           .launch_s = 5e-6,
                           .estimated_error = 0.05};

pc_iteration_spec example_spec(void) {
    pc_iteration_spec spec = pc_iteration_spec_default();
    spec.bucket_bytes = INT64_MAX; /* tests that want buckets say so */
    spec.model = model;
    spec.machine = (pc_machine){.name = "cluster",
                                .gpu = gpu,
                                .gpus_per_node = 8,
                                .domain_gpus = 8,
                                .nics_per_node = 8,
                                .domain = {300e9, 0.8, 3e-6, 1e-6, 0.3},
                                .network = {25e9, 0.9, 6e-6, 3e-6, 0.3},
                                .oversubscription = 1,
                                .collective_call_s = 1e-5};
    spec.generator = pc_generator_find("1f1b");
    spec.network = PC_NETWORK_CLOSED;
    spec.cut = (pc_cut){.tp = 2,
                        .pp = 4,
                        .dp = 8,
                        .chunks = 1,
                        .sequence_parallel = true,
                        .zero = 1,
                        .microbatch_size = 1,
                        .microbatches = 8,
                        .seq_len = 1024};
    return spec;
}

static int draw(test_random *random, int count, const int *choices) {
    return choices[test_between(random, 0, count - 1)];
}

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

static void draw_schedule(test_random *random, pc_iteration_spec *spec) {
    static const char *const names[] = {"1f1b",  "gpipe", "1f1b-interleaved", "zb-h1",
                                        "zb-h2", "gems",  "chimera",          "eager-1f1b"};
    spec->generator = pc_generator_find(names[test_between(random, 0, 7)]);
    spec->cut.chunks = spec->generator->chunks_default;
}

static void draw_order(test_random *random, pc_rank_order *order) {
    for (int i = PC_AXES - 1; i > 0; i--) {
        int k = (int)test_between(random, 0, i);
        pc_axis other = order->axis[k];
        order->axis[k] = order->axis[i];
        order->axis[i] = other;
    }
}

/* Half of the time none; what the heads allow. */
static void draw_context(test_random *random, pc_cut *cut) {
    static const int cps[] = {1, 1, 2, 4}, tps[] = {1, 2};
    cut->cp = draw(random, 4, cps);
    cut->cp_comm = (pc_cp_comm)test_between(random, 0, 3);
    if (cut->cp_comm == PC_CP_A2A && cut->cp > 2) cut->cp = 2;
    cut->cp_a2a = draw(random, 2, tps);
}

pc_iteration_spec random_spec(test_random *random) {
    static const int tps[] = {1, 2, 4, 8}, pps[] = {1, 2, 4, 6}, dps[] = {1, 2, 8, 16};
    pc_iteration_spec spec = example_spec();
    draw_schedule(random, &spec);
    draw_order(random, &spec.order);
    spec.cut.tp = draw(random, 4, tps);
    spec.cut.pp = draw(random, 4, pps);
    spec.cut.dp = draw(random, 4, dps);
    spec.cut.sequence_parallel = spec.cut.tp > 1 && toss(random);
    spec.cut.zero = toss(random);
    spec.cut.microbatch_size = test_between(random, 1, 2);
    spec.cut.microbatches = spec.cut.pp * 2 * test_between(random, 1, 2);
    spec.model.attention = toss(random) ? PC_ATTENTION_FLASH : PC_ATTENTION_MATERIALISED;
    if (spec.model.attention == PC_ATTENTION_FLASH) draw_context(random, &spec.cut);
    spec.model.is_tied = toss(random);
    spec.overlaps_tp = false; /* the recount adds up passes one operation after the other */
    spec.overlaps_gradients = toss(random);
    spec.overlaps_parameters = toss(random);
    spec.overlaps_p2p = toss(random);
    spec.scatters_boundary = toss(random);
    spec.bucket_bytes = toss(random) ? 0 : test_between(random, 20, 100) * 1000000;
    spec.step = toss(random) ? PC_STEP_NORM : PC_STEP_POST_VALIDATION;
    spec.pass_overhead = toss(random) ? 0 : 0.1;
    spec.machine.speed_variation = toss(random) ? 0 : 0.02;
    spec.memory_limit_bytes = INT64_C(1) << 40;
    spec.cut.cross_entropy = (pc_cross_entropy)test_between(random, 0, 3);
    spec.cut.cross_entropy_chunks = (int)test_between(random, 0, 9);
    test_random buffers = *random;
    test_draw(&buffers); /* the first says whether there are traits */
    spec.stage_buffers = (pc_stage_buffers)toss(&buffers);
    spec.cut.tp_inputs = (pc_tp_inputs)toss(&buffers);
    spec.cut.loss_buffers = (pc_loss_buffers)toss(&buffers);
    test_random traits = *random; /* what is drawn behind a spec stays what it was */
    if (toss(&traits)) random_traits(&traits, &spec.cut, &spec.model);
    if (spec.model.qk_norm == PC_QK_NORM_FULL) spec.model.qk_norm = PC_QK_NORM_HEAD; /* tests change tp */
    random_frozen(random, &spec.model, &spec.cut);
    random_fused(random, &spec.model, &spec.cut);
    return spec;
}

void drop_latencies(pc_machine *machine) {
    machine->gpu.kernel_s = machine->gpu.launch_s = 0;
    machine->domain.latency_s = machine->domain.fast_latency_s = 0;
    machine->network.latency_s = machine->network.fast_latency_s = 0;
    machine->collective_call_s = machine->switch_latency_s = machine->in_switch_latency_s = 0;
}

pc_iteration run_spec(const pc_iteration_spec *spec) {
    pc_iteration iteration;
    pc_error error = {0};
    if (pc_iteration_run(spec, NULL, true, &iteration, &error)) fail_msg("%s", error.message);
    if (iteration.status) fail_msg("%s", iteration.message);
    return iteration;
}

void check_infeasible(const pc_iteration_spec *spec, const char *message) {
    pc_iteration x;
    pc_error error = {0};
    assert_int_equal(pc_iteration_run(spec, NULL, false, &x, &error), PC_OK);
    assert_int_equal(x.status, PC_RUN_INFEASIBLE);
    assert_string_equal(x.message, message);
    pc_iteration_free(&x);
}
