/* Optimizers: what each holds and moves, Muon's products, what is refused, and what an iteration makes of it. */
#include "models/cost/roofline.h"
#include "models/training/outline.h"
#include "models/workload/muon.h"
#include "tests/iteration_example.h"
#include "tests/random_model.h"

/* ---- what they hold ---- */

/* Of 1,024 parameters laid end to end: master weights 4 each; Adam two moments of 4, SGD one; in 8 bits two of 1, and a
 * scale of 4 bytes for each 256 of either. */
static void test_state(void **state) {
    (void)state;
    static const int64_t moments[] = {8192, 4096, 4096, 2 * 1024 + 2 * 4 * 4, 8192};
    for (int kind = PC_OPTIMIZER_ADAM; kind <= PC_OPTIMIZER_MUON; kind++) {
        pc_optimizer x = {.kind = (pc_optimizer_kind)kind};
        assert_int_equal(pc_optimizer_moment_bytes(&x, 1024), moments[kind]);
        assert_int_equal(pc_optimizer_state_bytes(&x, 1024), 4096 + moments[kind]);
    }
    pc_optimizer odd = {.kind = PC_OPTIMIZER_ADAM_8BIT};
    assert_int_equal(pc_optimizer_moment_bytes(&odd, 257), 2 * (257 + 2 * 4));
}

/* Transformer Engine's Adam. 12 bytes of state in fp32. With narrower moments the master weight is the 16 bits that the
 * bf16 weight lacks: 2 + 2 + 2; 4 with all as small as can be. The step has an fp32 copy of each that is narrower: two,
 * or all three. It moves of a moment in bf16 6 + 8 + 6 + 4, in fp16 6 + 8 + 8 + 4 + 8 + 6, in fp8 5 + 8 + 4 + 5, of a
 * remainder 4 and of the weight beside it 2; and a gradient and the new weight. */
static void test_state_in_few_bits(void **state) {
    (void)state;
    pc_optimizer bf16 = {.exp_avg = PC_STATE_BF16, .exp_avg_sq = PC_STATE_FP16};
    pc_optimizer least = {.main_params = PC_MAIN_PARAMS_FP16, .exp_avg = PC_STATE_FP8, .exp_avg_sq = PC_STATE_FP8};
    pc_optimizer plain = {.kind = PC_OPTIMIZER_ADAM};
    assert_int_equal(pc_optimizer_state_bytes(&bf16, 1000), 6000);
    assert_int_equal(pc_optimizer_state_bytes(&least, 1000), 4000);
    assert_int_equal(pc_optimizer_copied_bytes(&plain), 0);
    assert_int_equal(pc_optimizer_copied_bytes(&bf16), 8);
    assert_int_equal(pc_optimizer_copied_bytes(&least), 12);
    assert_int_equal(pc_optimizer_moved_bytes(&bf16, false, 4), 4 + 6 + 24 + 40 + 2);
    assert_int_equal(pc_optimizer_moved_bytes(&least, false, 2), 2 + 40 + 2 * 22 + 2);
}

/* A matrix of 300 x 500, and a vector: Adafactor has 800 numbers of the one, and as many as it has of the other. */
static void test_state_of_tensors(void **state) {
    (void)state;
    pc_optimizer factored = {.kind = PC_OPTIMIZER_ADAFACTOR}, muon = {.kind = PC_OPTIMIZER_MUON};
    assert_int_equal(pc_optimizer_tensor_bytes(&factored, 150000, 300, 500, true), 600000 + 3200);
    assert_int_equal(pc_optimizer_tensor_bytes(&factored, 150000, 300, 500, false), 600000 + 3200);
    assert_int_equal(pc_optimizer_tensor_bytes(&factored, 500, 0, 0, false), 4000);
    assert_int_equal(pc_optimizer_tensor_bytes(&muon, 150000, 300, 500, true), 8 * 150000);
    assert_int_equal(pc_optimizer_tensor_bytes(&muon, 150000, 300, 500, false), 12 * 150000);
    assert_int_equal(pc_optimizer_tensor_bytes(&muon, 500, 0, 0, false), 6000);
}

/* ---- what their steps move ---- */

static void test_moved(void **state) {
    (void)state;
    static const int fused[] = {30, 22, 22, 18, 30}, separate[] = {94, 50, 70, 18, 94};
    for (int kind = PC_OPTIMIZER_ADAM; kind <= PC_OPTIMIZER_MUON; kind++) {
        pc_optimizer x = {.kind = (pc_optimizer_kind)kind};
        assert_int_equal(pc_optimizer_moved_bytes(&x, false, 4), fused[kind]);
        assert_int_equal(pc_optimizer_moved_bytes(&x, true, 4), separate[kind]);
        bool is_factored = kind == PC_OPTIMIZER_ADAFACTOR;
        assert_int_equal(pc_optimizer_moved_bytes(&x, false, 2), fused[kind] - (is_factored ? 6 : 2));
    }
}

/* ---- Muon ---- */

static int64_t flops_of(const pc_operations *x) {
    int64_t sum = 0;
    for (int i = 0; i < x->count; i++) sum += x->list[i].flops * x->list[i].repeat;
    return sum;
}

static int64_t newton_schulz(int64_t r, int64_t c) {
    return 5 * (4 * r * r * c + 2 * r * r * r);
}

/* Whichever side is longer. Of query, key and value three: 64 x 48, and 64 x 16 twice. */
static void test_products(void **state) {
    (void)state;
    pc_tensor_sort broad = {.parameters = 6400, .count = 1, .rows = 64, .columns = 100}, tall = broad, qkv = broad;
    pc_operations x, y, z;
    tall.rows = 100, tall.columns = 64;
    qkv.columns = 80, qkv.key_columns = 16;
    pc_muon_operations(&broad, 4, &x);
    pc_muon_operations(&tall, 4, &y);
    pc_muon_operations(&qkv, 4, &z);
    assert_int_equal(flops_of(&x), newton_schulz(64, 100));
    assert_int_equal(flops_of(&y), newton_schulz(64, 100));
    assert_int_equal(flops_of(&z), newton_schulz(48, 64) + 2 * newton_schulz(16, 64));
    assert_int_equal(x.list[0].bytes, 6400 * (4 + 8 + 2 + 2 + 4 + 2 + 8 + 2));
}

/* ---- iterations ---- */

static int64_t state_of(pc_optimizer_kind kind, int zero, int dp) {
    pc_iteration_spec spec = example_spec();
    spec.cut.optimizer.kind = kind;
    spec.cut.zero = zero;
    spec.cut.dp = dp;
    spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    pc_iteration x = run_spec(&spec);
    int64_t bytes = x.memory[1].optimizer;
    pc_iteration_free(&x);
    return bytes;
}

/* A middle stage of the example: six layers of matrices h x 3h/2, h/2 x h, h x 4h/2 and back. The rest is vectors. */
static void test_memory(void **state) {
    (void)state;
    const int64_t h = 2048, matrices = 6 * 6 * h * h;
    const int64_t sides = 6 * ((h + 3 * h / 2) + (h + h / 2) + 2 * (h + 2 * h));
    int64_t all = state_of(PC_OPTIMIZER_ADAM, 0, 8) / 12, vectors = all - matrices;
    assert_true(vectors > 0 && vectors < matrices / 100);
    assert_int_equal(state_of(PC_OPTIMIZER_SGD, 0, 8), 8 * all);
    assert_int_equal(state_of(PC_OPTIMIZER_ADAM_8BIT, 0, 8), 6 * all + 8 * ((all + 255) / 256));
    assert_int_equal(state_of(PC_OPTIMIZER_ADAFACTOR, 0, 8), 4 * (matrices + sides) + 8 * vectors);
    assert_int_equal(state_of(PC_OPTIMIZER_MUON, 0, 8), 8 * matrices + 12 * vectors);
    assert_int_equal(state_of(PC_OPTIMIZER_MUON, 1, 1), 8 * matrices + 12 * vectors);
    assert_true(state_of(PC_OPTIMIZER_MUON, 1, 8) < 8 * matrices / 4);
}

/* One rank has nobody to share with: its blocks are cut as without ZeRO, whatever ZeRO and its partition are. */
static void test_memory_of_one_rank(void **state) {
    (void)state;
    int64_t expected = 0;
    for (int zero = 0; zero <= 3; zero++)
        for (int partition = PC_ZERO_PARTITION_EVEN; partition <= PC_ZERO_PARTITION_TENSOR; partition++) {
            pc_iteration_spec spec = example_spec();
            spec.model.ffn_hidden = 8200; /* biases of 4100: no whole number of blocks */
            spec.cut.optimizer.kind = PC_OPTIMIZER_ADAM_8BIT;
            spec.cut.zero = zero;
            spec.cut.zero_partition = (pc_zero_partition)partition;
            spec.cut.dp = 1;
            pc_iteration x = run_spec(&spec);
            if (zero == 0) expected = x.memory[1].optimizer;
            assert_int_equal(x.memory[1].optimizer, expected);
            pc_iteration_free(&x);
        }
}

/* FSDP's shards are fp32 weights and gradients: beside them moments alone. */
static void test_memory_of_shards(void **state) {
    (void)state;
    static const pc_optimizer_kind kinds[] = {PC_OPTIMIZER_ADAM, PC_OPTIMIZER_SGD, PC_OPTIMIZER_ADAM_8BIT};
    for (int i = 0; i < 3; i++) {
        pc_iteration_spec spec = example_spec();
        spec.cut.zero = 3;
        spec.unit = PC_UNIT_LAYER;
        spec.cut.optimizer.kind = kinds[i];
        pc_iteration x = run_spec(&spec);
        double share = (double)x.memory[1].parameters / 4;
        check_within((double)x.memory[1].optimizer, share * (8.0 / (1 << i)) * (i < 2 ? 1 : 1 + 4.0 / 256), 1e-4);
        pc_iteration_free(&x);
    }
}

static double step_of(const pc_iteration_spec *spec) {
    pc_outline outline;
    assert_int_equal(pc_outline_make(spec, NULL, &outline, NULL), PC_OK);
    double seconds = (double)outline.device[1].step_ps / 1e12;
    pc_outline_free(&outline);
    return seconds;
}

/* SGD moves 8 bytes a parameter less than Adam, bf16 moments 2 * 16 more and the remainder 2 less; gradients of 2 bytes
 * that are not copied save the copy's 6, and 2 of each of four readings or writings. */
static void test_steps(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    double adam_s = step_of(&spec), rate = spec.machine.gpu.memory_bytes_per_s * spec.machine.gpu.memory_efficiency;
    double share = (double)state_of(PC_OPTIMIZER_ADAM, 0, 8) / 12 / 8;
    spec.cut.optimizer.kind = PC_OPTIMIZER_SGD;
    check_within(adam_s - step_of(&spec), 8 * share / rate, 1e-6);
    spec.cut.optimizer = (pc_optimizer){.exp_avg = PC_STATE_BF16, .exp_avg_sq = PC_STATE_BF16};
    check_within(step_of(&spec) - adam_s, 30 * share / rate, 1e-6);
    spec = example_spec();
    spec.cut.gradient_bytes = 2;
    double copied_s = step_of(&spec), kernel_s = spec.machine.gpu.kernel_s;
    spec.cut.optimizer.main_grads = PC_MAIN_GRADS_BF16; /* and a remainder */
    check_within(copied_s - step_of(&spec), (14 + 2) * share / rate + kernel_s, 1e-6);
}

/* Without ZeRO a rank's products are those of all its layers; what is beside them is as fast as memory. Over eight
 * ranks nobody has more than the most of a layer's six or so more than an eighth. */
static void test_step_of_muon(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    drop_latencies(&spec.machine);
    spec.machine.gpu.launch_s = spec.machine.gpu.kernel_s = 0;
    spec.cut.zero = 0;
    double adam_s = step_of(&spec);
    spec.cut.optimizer.kind = PC_OPTIMIZER_MUON;
    double all_s = step_of(&spec);
    const int64_t h = 2048;
    double flops = 6.0 * (double)(3 * newton_schulz(h / 2, h) + newton_schulz(h / 2, h) + 2 * newton_schulz(h, 2 * h));
    double least_s = flops / (spec.machine.gpu.matrix_flops_per_s * spec.machine.gpu.gemm_efficiency);
    assert_true(all_s - adam_s > least_s && all_s - adam_s < 2 * least_s);
    spec.cut.zero = 1;
    spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    assert_true(step_of(&spec) > all_s / 8 && step_of(&spec) < all_s / 3);
    spec.cut.dp = 1;
    check_within(step_of(&spec), all_s, 1e-9);
}

static pc_device_outline stage_of(const pc_iteration_spec *spec) {
    pc_outline outline;
    assert_int_equal(pc_outline_make(spec, NULL, &outline, NULL), PC_OK);
    pc_device_outline held = outline.device[1];
    pc_outline_free(&outline);
    return held;
}

/* Of P parameters that a rank steps: with one moment in bf16 a remainder of 2 bytes, 2 and 4 of state, and a copy of 4
 * in the step; with both 4 bytes of moments and a copy of 8. Beside weights that are held in 8 bits the master weight
 * is whole. */
static void test_copies_in_the_step(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.dp = 1;
    int64_t count = stage_of(&spec).fixed_optimizer / 12;
    spec.cut.optimizer.exp_avg = PC_STATE_BF16;
    pc_device_outline one = stage_of(&spec);
    spec.cut.optimizer.exp_avg_sq = PC_STATE_BF16;
    pc_device_outline both = stage_of(&spec);
    assert_int_equal(one.fixed_optimizer, 8 * count);
    assert_int_equal(both.fixed_optimizer, 6 * count);
    assert_true(one.step_bytes > 0);
    assert_int_equal(both.step_bytes - one.step_bytes, 4 * count);
    spec.machine.gpu.matrix_fp8_flops_per_s = 2 * spec.machine.gpu.matrix_flops_per_s;
    spec.model.low = (pc_low_precision){.weights = PC_LOW_WEIGHTS_HELD, .scaling = PC_SCALING_DELAYED, .copies = 1};
    for (int i = 0; i < PC_LOW_PRODUCTS; i++) spec.model.low.product[i] = PC_PRODUCT_FP8;
    assert_int_equal(stage_of(&spec).fixed_optimizer, 8 * count);
}

/* ---- what cannot be ---- */

static void expect_refused(pc_cut cut, bool is_separate, bool has_shards, const char *message) {
    pc_error error;
    assert_int_equal(pc_optimizer_check(&cut, is_separate, has_shards, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_refused(void **state) {
    (void)state;
    pc_cut muon = {.zero = 2, .optimizer = {.kind = PC_OPTIMIZER_MUON}}, narrow = {.optimizer.exp_avg = PC_STATE_BF16};
    expect_refused(muon, false, false, "optimizer muon with zero 2, which cuts matrices; expected zero 0 or 1");
    muon.zero = 1;
    expect_refused(muon, false, false,
                   "optimizer muon with zero_partition even, which cuts matrices; expected zero_partition tensor");
    expect_refused(narrow, false, false, "optimizer with a dtype other than fp32, and zero 0; expected zero 1 to 3");
    narrow.zero = 1;
    assert_int_equal(pc_optimizer_check(&narrow, false, false, NULL), PC_OK);
    expect_refused(narrow, true, false,
                   "optimizer with a dtype other than fp32, and optimizer_kernels separate; expected fused");
    expect_refused(narrow, false, true,
                   "optimizer with a dtype other than fp32, and torch's FSDP, whose shards are fp32; expected fp32, or "
                   "fsdp_version megatron");
    narrow.optimizer.main_grads = PC_MAIN_GRADS_BF16;
    expect_refused(narrow, false, false,
                   "optimizer with a dtype other than fp32, and gradient_bytes 4 cannot have main_grads_dtype bf16; "
                   "expected gradient_bytes 2");
    narrow.offload.kinds = PC_OFFLOAD_OPTIMIZER;
    expect_refused(narrow, false, false,
                   "offload of the optimizer with optimizer adam in few bits; expected adam in fp32, which the host "
                   "steps");
    narrow.offload.kinds = 0;
    muon.frozen = PC_FROZEN_EMBEDDING;
    expect_refused(muon, false, false, "optimizer muon with frozen parameters; expected adam, sgd or adam-8bit");
    narrow.optimizer.kind = PC_OPTIMIZER_SGD;
    expect_refused(narrow, false, false,
                   "optimizer sgd with a dtype other than fp32 of its state or gradients; expected adam, or fp32");
}

/* ---- any ---- */

/* Longest paths and the engine give the same, to the picosecond, closed and over flows; memory is the sum of kinds. */
static void test_engines_agree(void **state) {
    (void)state;
    test_random random = {97};
    for (long i = 0; i < test_cases(40, 400); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.cut.optimizer.kind = (pc_optimizer_kind)(i % 5);
        spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
        if (pc_cut_frozen(&spec.cut)) spec.cut.zero_partition = PC_ZERO_PARTITION_EVEN;
        if (pc_cut_frozen(&spec.cut)) spec.cut.optimizer.kind = PC_OPTIMIZER_SGD;
        if (pc_optimizer_takes_tensors(&spec.cut.optimizer) && spec.cut.zero > 1) spec.cut.zero = (int)(i % 2);
        spec.network = i % 2 ? PC_NETWORK_FLOWS : PC_NETWORK_CLOSED;
        pc_iteration x = run_spec(&spec);
        spec.engine = PC_ENGINE_EVENTS;
        pc_iteration y = run_spec(&spec);
        assert_true(x.iteration_s == y.iteration_s && x.exposed.optimizer == y.exposed.optimizer);
        for (int d = 0; d < x.devices; d++) {
            assert_true(x.memory[d].peak_bytes == y.memory[d].peak_bytes);
            assert_true(x.memory[d].optimizer > 0);
        }
        pc_iteration_free(&x);
        pc_iteration_free(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_state_in_few_bits),
        cmocka_unit_test(test_state_of_tensors),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_of_one_rank),
        cmocka_unit_test(test_memory_of_shards),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_step_of_muon),
        cmocka_unit_test(test_copies_in_the_step),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_engines_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
