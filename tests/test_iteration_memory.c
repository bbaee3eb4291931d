/* The memory of iterations: buffers, the step, what does not fit, by algebra. */
#include "tests/support.h"

#include "models/training/finish.h"
#include "models/training/iteration.h"
#include "models/training/pass_costs.h"
#include "tests/iteration_example.h"

static void expect_out_of_memory(const pc_iteration_spec *spec, const char *message) {
    pc_iteration x;
    pc_error error = {0};
    if (pc_iteration_run(spec, NULL, true, &x, &error)) fail_msg("%s", error.message);
    if (x.status != PC_RUN_OUT_OF_MEMORY || strncmp(x.message, message, strlen(message)) != 0)
        fail_msg("status %d, '%s'; expected out of memory and '%s'", x.status, x.message, message);
    pc_iteration_free(&x);
}

/* ---- memory ---- */

/* A middle stage of the example: 6 layers of 12h^2/t and vectors. Two tensors of the boundary each way, of 2sbh/t; with
 * sequence parallelism one gathered tensor, 2sbh; with ZeRO 2 two buckets of gradients, of a layer each; with ZeRO 3
 * two of 16-bit parameters, too. Replicas that are one have nothing to reduce. */
static void test_buffers(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    int64_t tensor = 2 * 1024 * 2048, parameters = 0;
    for (int i = 0; i < 4; i++)
        for (spec.cut.zero = 0; spec.cut.zero < 4; spec.cut.zero++) {
            int64_t wide = i / 2 ? 2 : 4;
            spec.cut.gradient_bytes = (int)wide;
            spec.cut.dp = i % 2 ? 1 : 8;
            pc_iteration x = run_spec(&spec);
            if (spec.cut.zero == 0) parameters = x.memory[1].parameters / 2;
            int64_t bucket = (parameters - 1) / 6 + 1,
                    each = spec.cut.dp == 1 ? 0 : (int64_t[]){0, 0, wide, wide + 2}[spec.cut.zero];
            int64_t buffers = 4 * tensor / 2 + tensor + 2 * bucket * each;
            if (wide == 4) assert_int_equal(x.memory[1].buffers, buffers);
            if (wide == 2) assert_true(x.memory[1].buffers >= buffers); /* see test_step_of_narrow_gradients */
            pc_iteration_free(&x);
        }
    assert_true(parameters > 6 * 12 * INT64_C(2048) * 2048 / 2);
}

/* Of each microbatch's own, 8 of them: two tensors on their way, 8 outputs and 8 gradients of them. The last stage has
 * 8 times logits of 16 bits in their place, 1,024 tokens of half the vocabulary, which is padded to 50,432; of a loss
 * in pieces, the head's input. */
static void test_buffers_of_each_microbatch(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    int64_t tensor = 2 * 1024 * 2048 / 2, logits = 2 * INT64_C(1024) * (50432 / 2);
    for (int i = 0; i < 2; i++) {
        spec.cut.cross_entropy = i ? PC_CROSS_ENTROPY_CHUNKED : PC_CROSS_ENTROPY_PLAIN;
        spec.cut.cross_entropy_chunks = i ? 4 : 0;
        spec.stage_buffers = PC_STAGE_BUFFERS_SHARED;
        pc_iteration shared = run_spec(&spec), each;
        spec.stage_buffers = PC_STAGE_BUFFERS_EACH;
        each = run_spec(&spec);
        for (int d = 0; d < 4; d++) {
            int64_t kept = d < 3 ? 2 * 8 * tensor : 8 * (i ? tensor : logits);
            assert_int_equal(each.memory[d].buffers - shared.memory[d].buffers, (2 - 4) * tensor + kept);
        }
        assert_true(each.iteration_s == shared.iteration_s);
        pc_iteration_free(&shared);
        pc_iteration_free(&each);
    }
    spec.cut.pp = 1; /* without a neighbour there is nothing to keep */
    pc_iteration each = run_spec(&spec);
    spec.stage_buffers = PC_STAGE_BUFFERS_SHARED;
    pc_iteration shared = run_spec(&spec);
    assert_int_equal(each.memory[0].buffers, shared.memory[0].buffers);
    pc_iteration_free(&shared);
    pc_iteration_free(&each);
}

/* As torch's fully_shard: a layer at work and one on its way, gathered, and the ends all the time. And a buffer
 * each of what is gathered, 2 bytes, and of what is reduced, 4 or 2, as large as the largest unit, or as two layers. A
 * middle stage has no ends; the first has the embedding and positions, 50,304/2 x 2,048 and 1,024 x 2,048 in the
 * example. Of less than ZeRO 3 buffers are as they are. */
static void test_buffers_of_units(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.reshard_after_forward = PC_RESHARD_ALWAYS;
    int64_t tensor = 2 * 1024 * 2048;
    for (int wide = 2; wide <= 4; wide += 2) {
        spec.cut.gradient_bytes = wide;
        spec.unit = PC_UNIT_BUCKET;
        spec.cut.zero = 0;
        pc_iteration x = run_spec(&spec);
        int64_t layer = x.memory[1].parameters / 2 / 6, ends = x.memory[0].parameters / 2 - 6 * layer;
        int64_t larger = ends > 2 * layer ? ends : 2 * layer;
        pc_iteration_free(&x);
        spec.unit = PC_UNIT_LAYER;
        spec.cut.zero = 3;
        x = run_spec(&spec);
        assert_int_equal(x.memory[1].buffers, 4 * tensor / 2 + tensor + (2 * (2 + 2) + wide * 2) * layer);
        assert_int_equal(x.memory[0].buffers,
                         4 * tensor / 2 + tensor + 2 * (ends + 2 * layer + larger) + wide * larger);
        pc_iteration_free(&x);
        for (spec.cut.zero = 0; spec.cut.zero < 3; spec.cut.zero++) {
            pc_iteration y = run_spec(&spec), z;
            spec.unit = PC_UNIT_BUCKET;
            z = run_spec(&spec);
            spec.unit = PC_UNIT_LAYER;
            assert_int_equal(y.memory[0].buffers, z.memory[0].buffers);
            pc_iteration_free(&y);
            pc_iteration_free(&z);
        }
    }
}

/* Of a middle stage of n = 6 layers the matrices, of w = 12h^2/t each, come in 8 bits: 2w less than in 16 for two
 * layers; and where products of gradients read them transposed, w more for the one at work. Megatron-FSDP's share of an
 * eighth has them in 8 bits, too: nw/8 less. Blocks, which are no transpositions, are shared in both copies. */
static void test_units_of_few_bits(void **state) {
    (void)state;
    static const pc_scaling scalings[] = {PC_SCALING_CURRENT, PC_SCALING_CURRENT, PC_SCALING_BLOCK};
    static const int copies[] = {1, 2, 2}, shared[] = {1, 1, 0}, transposed[] = {0, 1, 0};
    const int64_t w = 12 * INT64_C(2048) * 2048 / 2;
    for (int i = 0; i < 6; i++) {
        pc_iteration_spec spec = example_spec();
        spec.reshard_after_forward = PC_RESHARD_ALWAYS;
        spec.unit = PC_UNIT_LAYER;
        spec.cut.zero = 3;
        spec.fsdp_version = i < 3 ? PC_FSDP_MEGATRON : PC_FSDP_1;
        for (int role = 0; role < PC_LOW_PRODUCTS; role++) spec.model.low.product[role] = PC_PRODUCT_FP8;
        spec.model.low.scaling = scalings[i % 3];
        spec.model.low.weights = PC_LOW_WEIGHTS_HELD;
        spec.model.low.copies = copies[i % 3];
        pc_iteration wide = run_spec(&spec);
        spec.model.low.gathers_parameters = true;
        pc_iteration few = run_spec(&spec);
        const pc_device_memory *x = &wide.memory[1], *y = &few.memory[1];
        assert_int_equal(x->buffers - y->buffers, (2 - transposed[i % 3]) * w);
        assert_int_equal(x->parameters - y->parameters, i < 3 ? shared[i] * 6 * w / 8 : 0);
        assert_int_equal(x->gradients + x->optimizer, y->gradients + y->optimizer);
        pc_iteration_free(&wide);
        pc_iteration_free(&few);
    }
}

/* What is held of gradients of 2 bytes, by ZeRO; and of the step, which copies the rank's share of them to fp32 (2
 * read, 4 written), does what it does with fp32 ones (42) and zeroes all that is held. The copy, 4 bytes, is there when
 * activations and working memory are not: where it needs more than those had, buffers have the difference. */
static void test_step_of_narrow_gradients(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    const pc_gpu *gpu = &spec.machine.gpu;
    int more = 0;
    spec.cut.microbatches = 1;
    for (spec.cut.zero = 0; spec.cut.zero < 4; spec.cut.zero++) {
        pc_outline outline[2];
        pc_iteration x[2];
        for (int i = 0; i < 2; i++) {
            spec.cut.gradient_bytes = i ? 2 : 4;
            assert_int_equal(pc_outline_make(&spec, NULL, &outline[i], NULL), PC_OK);
            x[i] = run_spec(&spec);
        }
        int64_t all = outline[0].device[1].parameter_count, share = spec.cut.zero ? (all + 7) / 8 : all;
        int64_t held = spec.cut.zero >= 2 ? (all + 7) / 8 : all;
        for (int i = 0; i < 2; i++) {
            int64_t wide = i ? 2 : 4, ranks = spec.cut.zero >= 2 ? 8 : 1;
            assert_int_equal(x[i].memory[1].gradients, (wide * all + ranks - 1) / ranks);
            double bytes = (double)((i ? 48 : 42) * share + wide * held);
            double seconds = (i ? 5 : 4) * gpu->kernel_s + bytes / (gpu->memory_bytes_per_s * gpu->memory_efficiency);
            check_within((double)outline[i].device[1].step_ps / 1e12, seconds, 1e-6);
        }
        int64_t working = 2 * 1024 * 2048, activations = x[1].memory[1].activations;
        int64_t rest = 4 * share - working - activations, zero = spec.cut.zero >= 2 ? 2 * 2 * ((all - 1) / 6 + 1) : 0;
        more += rest > 0;
        assert_int_equal(x[1].memory[1].buffers - x[0].memory[1].buffers, (rest > 0 ? rest : 0) - zero);
        assert_int_equal(activations, x[0].memory[1].activations);
        for (int i = 0; i < 2; i++) pc_outline_free(&outline[i]);
        for (int i = 0; i < 2; i++) pc_iteration_free(&x[i]);
    }
    assert_int_equal(more, 1); /* ZeRO 0 alone: the whole of the gradients, beside one microbatch */
}

/* A run in which all fits but that copy says so; with one byte more it fits, and the peak is the step's. */
static void test_no_room_for_the_step(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.zero = 0;
    spec.cut.microbatches = 1;
    spec.cut.gradient_bytes = 2;
    pc_iteration x = run_spec(&spec);
    int fullest = 0;
    for (int d = 1; d < 4; d++)
        if (x.memory[d].peak_bytes > x.memory[fullest].peak_bytes) fullest = d;
    int64_t peak = x.memory[fullest].peak_bytes, parameters = x.memory[fullest].parameters / 2;
    char message[64];
    snprintf(message, sizeof message, "stage %d: gradients in fp32 at the step: ", fullest);
    assert_true(peak > 20 * parameters && peak - x.memory[fullest].activations > 16 * parameters);
    pc_iteration_free(&x);
    spec.memory_limit_bytes = peak;
    x = run_spec(&spec);
    pc_iteration_free(&x);
    spec.memory_limit_bytes = peak - 1;
    expect_out_of_memory(&spec, message);
}

/* Of chunks on a stage the largest counts, whichever it is: folded, both ends are on stage 0, and the larger parts are
 * the first or the last. */
static void test_buffers_of_unequal_chunks(void **state) {
    (void)state;
    static const int32_t front[] = {5, 5, 5, 5, 1, 1, 1, 1}, back[] = {1, 1, 1, 1, 5, 5, 5, 5};
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("v-half");
    spec.cut.chunks = 2;
    spec.cut.zero = 2;
    spec.cut.layout = PC_CUT_LISTED;
    spec.bucket_bytes = 1 << 20;
    int64_t buffers[2][2];
    for (int i = 0; i < 2; i++) {
        spec.cut.layers_of_part = i ? back : front;
        pc_iteration x = run_spec(&spec);
        buffers[i][0] = x.memory[0].buffers;
        buffers[i][1] = x.memory[1].buffers;
        pc_iteration_free(&x);
    }
    assert_int_equal(buffers[0][1], buffers[1][1]);
    /* The logits of the last part are stage 0's working memory, of 2sbV/t, beside one gathered tensor. */
    int64_t tensor = 2 * 1024 * 2048, logits = 2 * 1024 * pc_model_padded_vocab(&spec.model, 2) / 2;
    assert_true(buffers[0][0] >= 4 * tensor / 2 + logits + tensor);
    spec.cut.zero = 2;
    spec.bucket_bytes = INT64_MAX;
    for (int i = 0; i < 2; i++) { /* a layer a bucket: those of five and of one are alike */
        spec.cut.layers_of_part = i ? back : front;
        pc_iteration x = run_spec(&spec);
        buffers[i][1] = x.memory[2].buffers;
        pc_iteration_free(&x);
    }
    assert_int_equal(buffers[0][1], buffers[1][1]);
}

/* Two replicas in one pipeline: each stage holds two parts, and shares their optimizer state with the stage across as
 * well as with its own replicas. */
static void test_two_replicas_share_their_state(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.model.is_tied = false;
    spec.cut.chunks = 1;
    pc_iteration one = run_spec(&spec);
    spec.generator = pc_generator_find("gems");
    spec.cut.chunks = 2;
    pc_iteration two = run_spec(&spec);
    assert_int_equal(two.memory[0].parameters, one.memory[0].parameters + one.memory[3].parameters);
    check_within((double)two.memory[0].optimizer, 6.0 * (double)two.memory[0].parameters / 16, 1e-6);
    check_within((double)one.memory[0].optimizer, 6.0 * (double)one.memory[0].parameters / 8, 1e-6);
    assert_int_equal(two.memory[3].buffers,
                     two.memory[0].buffers); /* the head is its first chunk's, not its second's */
    pc_iteration_free(&one);
    pc_iteration_free(&two);
}

/* Two of the first stage's four microbatches fit: the third is told, and not the last one. */
static void test_when_it_is_too_much(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration x = run_spec(&spec);
    const pc_device_memory *first = &x.memory[0];
    int64_t fixed = first->peak_bytes - first->activations;
    int count = 0;
    char message[64] = "";
    for (int64_t i = 0; i < x.replay.trace.pass_count && count < 3; i++)
        if (x.replay.trace.pass_device[i] == 0 && x.replay.trace.pass[i].kind == PC_PASS_F && ++count == 3)
            snprintf(message, sizeof message,
                     "stage 0: activations at %.4g s: ", (double)x.replay.trace.pass_start_ps[i] / 1e12);
    spec.memory_limit_bytes = fixed + first->activations / 4 * 2;
    expect_out_of_memory(&spec, message);
    pc_iteration_free(&x);
}

/* Told is the stage that lacks most, not the first one: the second, of many layers. */
static void test_which_stage_lacks_most(void **state) {
    (void)state;
    static const int32_t layers[] = {4, 12, 4, 4}, folded[] = {2, 4, 3, 3, 2, 2, 4, 4};
    pc_iteration_spec spec = example_spec();
    spec.cut.layout = PC_CUT_LISTED;
    spec.cut.layers_of_part = layers;
    spec.cut.microbatch_size = 4;
    pc_iteration x = run_spec(&spec);
    int64_t first = x.memory[0].peak_bytes, second = x.memory[1].peak_bytes;
    assert_true(second > first);
    spec.memory_limit_bytes = first - 1;
    expect_out_of_memory(&spec, "stage 1: activations at ");
    pc_iteration_free(&x);
    spec.generator = pc_generator_find("v-adaptive");
    spec.cut.chunks = 2;
    spec.cut.layers_of_part = folded;
    spec.cut.microbatch_size = 16;
    spec.model.vocab = 1000; /* so that stage 0 does not hold large logits */
    spec.memory_limit_bytes = PC_NO_LIMIT;
    x = run_spec(&spec);
    int64_t most = 0;
    int fullest = 0;
    for (int d = 0; d < 4; d++) {
        int64_t fixed = x.memory[d].peak_bytes - x.memory[d].activations;
        if (fixed > most) most = fixed;
    }
    pc_iteration_free(&x);
    spec.memory_limit_bytes = most + 1;
    x = (pc_iteration){0};
    pc_error error = {0};
    assert_int_equal(pc_iteration_run(&spec, NULL, false, &x, &error), PC_OK);
    assert_int_equal(x.status, PC_RUN_OUT_OF_MEMORY);
    assert_int_equal(sscanf(x.message, "stage %d: activations of one microbatch", &fullest), 1);
    assert_int_equal(fullest, 1);
    pc_iteration_free(&x);
}

/* A schedule that is what its name says is not made another by a limit: it does not fit. */
static void test_limits_do_not_change_schedules(void **state) {
    (void)state;
    static const char *const names[] = {"v-half", "zb-2p", "zb-v"};
    for (int i = 0; i < 3; i++) {
        pc_iteration_spec spec = example_spec();
        spec.generator = pc_generator_find(names[i]);
        spec.cut.chunks = spec.generator->chunks_default;
        pc_iteration x = run_spec(&spec);
        spec.memory_limit_bytes = x.memory[0].peak_bytes - x.memory[0].activations / 2;
        for (int d = 1; d < 4; d++) {
            int64_t fixed = x.memory[d].peak_bytes - x.memory[d].activations;
            if (fixed > spec.memory_limit_bytes) spec.memory_limit_bytes = fixed + 1;
        }
        pc_iteration_free(&x);
        expect_out_of_memory(&spec, "stage ");
    }
}

/* Adam by separate kernels moves 94 bytes a parameter, of which 4 are the gradient's, where a fused one moves 30; and
 * it needs ten launches for one. */
static void test_step_by_separate_kernels(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    const pc_gpu *gpu = &spec.machine.gpu;
    for (spec.cut.gradient_bytes = 2; spec.cut.gradient_bytes <= 4; spec.cut.gradient_bytes += 2) {
        pc_outline fused, separate;
        spec.optimizer_kernels = PC_OPTIMIZER_FUSED;
        assert_int_equal(pc_outline_make(&spec, NULL, &fused, NULL), PC_OK);
        spec.optimizer_kernels = PC_OPTIMIZER_SEPARATE;
        assert_int_equal(pc_outline_make(&spec, NULL, &separate, NULL), PC_OK);
        int64_t share_count = (fused.device[1].parameter_count + 7) / 8; /* of whole parameters */
        double share = (double)share_count;
        double seconds = 9 * gpu->kernel_s + 64 * share / (gpu->memory_bytes_per_s * gpu->memory_efficiency);
        check_within((double)(separate.device[1].step_ps - fused.device[1].step_ps) / 1e12, seconds, 1e-6);
        pc_outline_free(&fused);
        pc_outline_free(&separate);
    }
}

/* ---- what is on the host ---- */

static pc_iteration_spec offloading(int64_t layers, double bytes_per_s) {
    pc_iteration_spec spec = example_spec();
    spec.cut.pp = 1;
    spec.cut.offload_layers = layers;
    spec.machine.host_link_bytes_per_s = bytes_per_s;
    return spec;
}

/* Layers of 34sbh/t: 10 of 24 are on the host, and one on its way beside the 14 that stay; of all 24 one is at work and
 * one on its way. */
static void test_offloaded_layers(void **state) {
    (void)state;
    const int64_t layer = INT64_C(34) * 1024 * 2048 / 2, counts[] = {1, 10, 23, 24};
    pc_iteration_spec none = offloading(0, 50e9);
    pc_iteration x = run_spec(&none);
    for (int i = 0; i < 4; i++) {
        pc_iteration_spec some = offloading(counts[i], 50e9);
        pc_iteration y = run_spec(&some);
        assert_int_equal(x.memory[0].activations - y.memory[0].activations, counts[i] * layer);
        assert_int_equal(y.memory[0].buffers - x.memory[0].buffers, (counts[i] < 24 ? 1 : 2) * layer);
        pc_iteration_free(&y);
    }
    pc_iteration_free(&x);
}

/* A slow link sets the pace of F and of BW, 340sbh/t bytes each; a fast one changes nothing. */
static void test_time_of_offloading(void **state) {
    (void)state;
    const double bytes = 10.0 * 34 * 1024 * 2048 / 2;
    pc_iteration_spec specs[3] = {offloading(0, 1e9), offloading(10, 1e9), offloading(10, 1e15)};
    pc_outline made[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pc_outline_make(&specs[i], NULL, &made[i], NULL), PC_OK);
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        const pc_pass_cost *x = &made[0].part_costs[0].pass[kind], *slow = &made[1].part_costs[0].pass[kind],
                           *fast = &made[2].part_costs[0].pass[kind];
        if (kind != PC_PASS_F && kind != PC_PASS_BW) continue;
        assert_true(x->compute_s < bytes / 1e9);
        check_within(slow->compute_s, bytes / 1e9, 1e-12);
        assert_true(fast->compute_s == x->compute_s && fast->tp_s == x->tp_s);
    }
    for (int i = 0; i < 3; i++) pc_outline_free(&made[i]);
}

static void expect_infeasible(const pc_iteration_spec *spec, const char *message) {
    pc_iteration x = {0};
    pc_error error = {0};
    pc_code code = pc_iteration_run(spec, NULL, false, &x, &error);
    assert_string_equal(code ? error.message : x.message, message);
    pc_iteration_free(&x);
}

static void test_offloading_that_cannot_be(void **state) {
    (void)state;
    pc_iteration_spec spec = offloading(25, 50e9);
    expect_infeasible(&spec, "activation_offload_layers 25 of 24 layers; expected 0 to all of them");
    spec = offloading(10, 0);
    expect_infeasible(&spec, "activation_offload_layers on machine cluster, which has no host_link; expected a machine "
                             "that has one");
    spec = offloading(10, 50e9);
    spec.cut.pp = 2;
    expect_infeasible(&spec, "activation_offload_layers 10 beside pp or chunks over 1; expected neither pipeline nor "
                             "recomputation with it, or offload fine-grained");
    spec = offloading(10, 50e9);
    spec.cut.recompute = PC_RECOMPUTE_FULL;
    expect_infeasible(&spec, "activation_offload_layers 10 beside recompute; expected neither pipeline nor "
                             "recomputation with it, or offload fine-grained");
    spec = offloading(10, 50e9);
    spec.generator = pc_generator_find("zb-h1");
    expect_infeasible(&spec,
                      "activation_offload_layers with a schedule that has W apart; expected one without, as 1f1b");
}

/* On 2 ranks with sequence parallelism a layer's F has four collectives of c beside products: each adds max(c, g) +
 * min(c, g)/2 - g. Slow links: c is far more than any g, and what is hidden is g - g/2. */
static void test_collectives_in_pieces(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_outline whole, pieces;
    pc_operations operations;
    double hidden_s = 0;
    spec.machine.domain.bandwidth_bytes_per_s = 1e9;
    assert_int_equal(pc_outline_make(&spec, NULL, &whole, NULL), PC_OK);
    spec.pipelines_tp = true;
    assert_int_equal(pc_outline_make(&spec, NULL, &pieces, NULL), PC_OK);
    const pc_part_cost *x = pc_outline_part(&whole, 1, 0), *y = pc_outline_part(&pieces, 1, 0);
    assert_int_equal(pc_pass_operations(&spec.model, &whole.cut, &x->part, PC_PASS_F, false, &operations, NULL), PC_OK);
    for (int i = 0; i < operations.count; i++)
        if (operations.list[i].kind == PC_OPERATION_GEMM)
            hidden_s +=
                (double)operations.list[i].repeat * whole.cost.kernel(whole.cost.self, &operations.list[i]).seconds / 2;
    check_within(x->pass[PC_PASS_F].tp_s - y->pass[PC_PASS_F].tp_s, hidden_s, 1e-9);
    assert_true(x->pass[PC_PASS_F].compute_s == y->pass[PC_PASS_F].compute_s);
    pc_outline_free(&whole);
    pc_outline_free(&pieces);
}

/* Gaps between a pass's kernels, which are launched one by one. */
static double gaps_s(const pc_outline *outline, pc_pass_kind kind) {
    pc_operations list;
    double launches = 0;
    assert_int_equal(pc_pass_operations(&outline->spec->model, &outline->cut, &outline->part_costs[0].part, kind, false,
                                        &list, NULL),
                     PC_OK);
    for (int i = 0; i < list.count; i++)
        if (!pc_operation_is_collective(&list.list[i])) launches += (double)list.list[i].repeat * list.list[i].launches;
    return launches * outline->spec->machine.gpu.kernel_s;
}

/* A slow host sets the pace of passes, unless it launches them as one. Kernels of a graph follow each other without
 * gaps, whatever it captures: one of all has none, one of each half of a layer those of the ends, and one for each. */
static void test_cuda_graphs(void **state) {
    (void)state;
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_BW};
    pc_iteration_spec spec = example_spec();
    pc_outline launched, halves, captured;
    spec.machine.gpu.launch_s = 1e-3;
    assert_int_equal(pc_outline_make(&spec, NULL, &launched, NULL), PC_OK);
    spec.cut.graphs = PC_GRAPHS_LAYER;
    assert_int_equal(pc_outline_make(&spec, NULL, &halves, NULL), PC_OK);
    spec.cut.graphs = PC_GRAPHS_ITERATION;
    assert_int_equal(pc_outline_make(&spec, NULL, &captured, NULL), PC_OK);
    assert_true(spec.machine.gpu.kernel_s > 0);
    for (int k = 0; k < 2; k++) {
        const pc_pass_cost *x = &launched.part_costs[0].pass[kinds[k]], *y = &captured.part_costs[0].pass[kinds[k]];
        const pc_pass_cost *half = &halves.part_costs[0].pass[kinds[k]];
        assert_true(x->compute_s > x->kernel_s && y->compute_s == y->kernel_s);
        check_within(x->kernel_s - y->kernel_s, gaps_s(&launched, kinds[k]), 1e-9);
        check_within(half->kernel_s - y->kernel_s, gaps_s(&halves, kinds[k]), 1e-9);
        assert_true(y->kernel_s < half->kernel_s);
    }
    assert_true(captured.device[0].step_ps < launched.device[0].step_ps);
    pc_outline_free(&launched);
    pc_outline_free(&halves);
    pc_outline_free(&captured);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_buffers_of_each_microbatch),
        cmocka_unit_test(test_buffers_of_units),
        cmocka_unit_test(test_units_of_few_bits),
        cmocka_unit_test(test_step_of_narrow_gradients),
        cmocka_unit_test(test_step_by_separate_kernels),
        cmocka_unit_test(test_offloaded_layers),
        cmocka_unit_test(test_time_of_offloading),
        cmocka_unit_test(test_offloading_that_cannot_be),
        cmocka_unit_test(test_cuda_graphs),
        cmocka_unit_test(test_collectives_in_pieces),
        cmocka_unit_test(test_no_room_for_the_step),
        cmocka_unit_test(test_buffers_of_unequal_chunks),
        cmocka_unit_test(test_two_replicas_share_their_state),
        cmocka_unit_test(test_when_it_is_too_much),
        cmocka_unit_test(test_which_stage_lacks_most),
        cmocka_unit_test(test_limits_do_not_change_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
