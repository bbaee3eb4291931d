/* ZeRO 1 over whole tensors: who owns what, what broadcasts take, and what an iteration makes of it. */
#include "models/training/outline.h"
#include "models/training/owners.h"
#include "models/workload/memory.h"
#include "tests/iteration_example.h"
#include "tests/random_model.h"

#include <math.h>

static void check_near(double value, double expected, double tolerance) {
    if (fabs(value - expected) > tolerance * fabs(expected)) fail_msg("%.12g; expected %.12g", value, expected);
}

/* ---- tensors ---- */

static int64_t parameters_in(const pc_tensor_sort *sorts, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) sum += sorts[i].parameters * sorts[i].count;
    return sum;
}

static int64_t tensors_in(const pc_tensor_sort *sorts, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) sum += sorts[i].count;
    return sum;
}

static void test_tensors_are_the_parameters(void **state) {
    (void)state;
    test_random random = {31};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        pc_part part = {.layers = test_between(&random, 0, 9), .has_embedding = i & 1, .has_head = i & 2};
        pc_tensor_sort sorts[PC_TENSOR_SORTS_MAX];
        int count = pc_part_tensors(&model, &cut, &part, i & 4, sorts);
        assert_true(parameters_in(sorts, count) == pc_part_parameters(&model, &cut, &part, i & 4));
    }
}

/* InternLM's layer: query, key and value; output; gate; up; down; two norms. 32 of them, embedding, norm and head. */
static void test_tensors_of_a_llama(void **state) {
    (void)state;
    pc_model model = {.layers = 32,
                      .hidden = 4096,
                      .ffn_hidden = 11008,
                      .heads = 32,
                      .kv_heads = 32,
                      .head_dim = 128,
                      .vocab = 103168,
                      .vocab_multiple = 1,
                      .positions = PC_POSITIONS_ROTARY,
                      .norm = PC_NORM_RMS,
                      .mlp = PC_MLP_SWIGLU};
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 8, .seq_len = 2048, .microbatch_size = 1};
    pc_part part = {.layers = 32, .has_embedding = true, .has_head = true};
    pc_tensor_sort sorts[PC_TENSOR_SORTS_MAX];
    int count = pc_part_tensors(&model, &cut, &part, false, sorts);
    assert_int_equal(tensors_in(sorts, count), 32 * 7 + 3);
    assert_int_equal(parameters_in(sorts, count),
                     32 * (INT64_C(4) * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096) + 2 * INT64_C(103168) * 4096 + 4096);
}

/* ---- owners ---- */

/* Nodes of 4 ranks; a step takes `domain` or `network` seconds, and bytes what a link's rate says. */
static pc_machine machine_of(void) {
    pc_iteration_spec spec = example_spec();
    spec.machine.domain.fast_latency_s = spec.machine.network.fast_latency_s = 0;
    return spec.machine;
}

static pc_group group_of(const pc_machine *machine, int ranks) {
    pc_ranks placed;
    pc_rank_order order = pc_iteration_spec_default().order;
    assert_int_equal(pc_ranks_place(machine, order, (pc_rank_counts){2, 1, ranks, 1}, &placed, NULL), PC_OK);
    return pc_group_of(machine, &placed, PC_AXIS_DP);
}

static pc_owners owners_of(int ranks, const pc_tensor_sort *sorts, int count) {
    pc_machine machine = machine_of();
    pc_group group = group_of(&machine, ranks);
    pc_owners owners;
    assert_int_equal(pc_owners_of(&machine, &group, sorts, count, 2, &owners, NULL), PC_OK);
    return owners;
}

static double sent_by(const pc_collective_course *course) {
    double sum = 0;
    for (int i = 0; i < course->phase_count; i++) sum += course->phase[i].domain_bytes + course->phase[i].network_bytes;
    return sum;
}

/* 6, 4, 4, 3, 3, 3 over three ranks: 6 | 4 | 4, then 3 to each of the second and third: 7 | 7, and the last to the
 * first: 9. */
static void test_greedy_by_hand(void **state) {
    (void)state;
    const pc_tensor_sort sorts[] = {
        {.parameters = 3000, .count = 3}, {.parameters = 6000, .count = 1}, {.parameters = 4000, .count = 2}};
    pc_owners owners = owners_of(3, sorts, 3);
    assert_true(owners.count == 3 && owners.fullest == 9000);
    check_near(sent_by(&owners.course), 2 * 23000, 1e-12);
}

/* Broadcasts of 9000, 7000 and 7000 parameters along a ring of three in a node: two steps each, and 46,000 bytes. */
static void test_broadcasts_by_hand(void **state) {
    (void)state;
    const pc_tensor_sort sorts[] = {
        {.parameters = 3000, .count = 3}, {.parameters = 6000, .count = 1}, {.parameters = 4000, .count = 2}};
    pc_machine machine = machine_of();
    double step_s = machine.domain.latency_s, rate = machine.domain.bandwidth_bytes_per_s * machine.domain.efficiency;
    check_near(owners_of(3, sorts, 3).course.seconds, 3 * (machine.collective_call_s + 2 * step_s) + 46000 / rate,
               1e-12);
}

static void test_one_rank_broadcasts_nothing(void **state) {
    (void)state;
    const pc_tensor_sort sorts[] = {{.parameters = 3000, .count = 3}, {.parameters = 6000, .count = 1}};
    pc_owners owners = owners_of(1, sorts, 2);
    assert_true(owners.count == 1 && owners.fullest == 15000);
    assert_true(owners.course.phase_count == 0 && owners.course.seconds == 0);
}

/* From as many ranks as tensors on, each is a broadcast of its own: over nodes of 4, a ring of n has n/4 - 1 steps
 * through the network if it does not close. The fullest rank has the largest tensor. */
static void test_more_ranks_than_tensors(void **state) {
    (void)state;
    const pc_tensor_sort sorts[] = {{.parameters = 3000000, .count = 3}, {.parameters = 6000000, .count = 1}};
    pc_machine machine = machine_of();
    for (int ranks = 4; ranks <= 64; ranks *= 2) {
        pc_owners owners = owners_of(ranks, sorts, 2);
        int others = ranks / 4 - 1;
        double out = others, in = ranks - 1 - others;
        double latency_s = machine.collective_call_s + in * machine.domain.latency_s + out * machine.network.latency_s;
        assert_true(owners.count == 4 && owners.fullest == 6000000);
        check_near(owners.course.phase[0].latency_s, 4 * latency_s, 1e-12);
        check_near(sent_by(&owners.course), 2 * 15e6, 1e-12);
    }
}

/* Whoever has what, all of it is sent, by as many owners as there can be; nobody has less than the largest tensor or
 * more than an even share and the largest tensor. */
static void test_any_tensors(void **state) {
    (void)state;
    test_random random = {11};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_tensor_sort sorts[4];
        int count = (int)test_between(&random, 1, 4), ranks = (int)test_between(&random, 2, 40);
        int64_t largest = 0;
        for (int k = 0; k < count; k++) {
            sorts[k] =
                (pc_tensor_sort){.parameters = test_between(&random, 1, 100000), .count = test_between(&random, 1, 30)};
            if (sorts[k].parameters > largest) largest = sorts[k].parameters;
        }
        int64_t sum = parameters_in(sorts, count), tensors = tensors_in(sorts, count);
        pc_owners owners = owners_of(ranks, sorts, count);
        assert_true(owners.count == (tensors < ranks ? tensors : ranks));
        assert_true(owners.fullest >= largest && owners.fullest * ranks >= sum);
        assert_true((owners.fullest - largest) * ranks <= sum);
        check_near(sent_by(&owners.course), 2.0 * (double)sum, 1e-9);
    }
}

static void test_share_of_a_course(void **state) {
    (void)state;
    const pc_tensor_sort sorts[] = {{.parameters = 3000000, .count = 3}, {.parameters = 6000000, .count = 1}};
    pc_owners owners = owners_of(16, sorts, 2);
    pc_collective_course part = pc_course_share(&owners.course, 0.25);
    check_near(part.seconds, owners.course.seconds / 4, 1e-12);
    check_near(sent_by(&part), sent_by(&owners.course) / 4, 1e-12);
    assert_true(part.phase[0].network_bytes_per_s == owners.course.phase[0].network_bytes_per_s);
}

static void test_too_many_tensors(void **state) {
    (void)state;
    pc_machine machine = machine_of();
    pc_group group = group_of(&machine, 2);
    const pc_tensor_sort sort = {.parameters = 5, .count = PC_OWNED_TENSORS_MAX + INT64_C(1)};
    pc_owners owners;
    pc_error error = {0};
    assert_int_equal(pc_owners_of(&machine, &group, &sort, 1, 2, &owners, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "zero_partition tensor with over 1048576 tensors on a GPU; expected fewer");
}

/* ---- iterations ---- */

/* 8 replicas of the example, in groups of `group`. */
static pc_iteration_spec spec_of(pc_zero_partition partition, int group) {
    pc_iteration_spec spec = example_spec();
    spec.model.is_tied = false;
    spec.cut.zero_partition = partition;
    spec.cut.shard_group = group;
    return spec;
}

/* The fullest rank's state, of the second stage: six layers at TP 2. In units of 2 M parameters a layer has matrices of
 * 3, 1, 4 and 4, and small ones beside. Two ranks have 36 units each. Over eight the twelve of 4 leave four ranks with
 * 8 and four with 4; the six of 3 then make these 7, and two of them 10, which is the most: six of 1 end at 9. */
static void test_memory(void **state) {
    (void)state;
    enum { UNIT = 2 << 20 };
    static const int groups[] = {1, 2, 8};
    static const int64_t units[] = {72, 36, 10};
    for (int i = 0; i < 3; i++) {
        pc_iteration_spec spec = spec_of(PC_ZERO_PARTITION_TENSOR, groups[i]);
        pc_iteration x = run_spec(&spec);
        int64_t small = x.memory[1].parameters / 2 - 72 * (int64_t)UNIT, parameters = x.memory[1].optimizer / 12;
        assert_true(small > 0 && x.memory[1].optimizer % 12 == 0);
        assert_true(parameters >= units[i] * UNIT && parameters <= units[i] * UNIT + small);
        pc_iteration_free(&x);
    }
}

/* Of P parameters on a GPU: all-reduce of 4 P over all 8, 2 * 7/8 * 4 P, and broadcasts of 2 P, in whatever groups. */
static void test_bytes(void **state) {
    (void)state;
    for (int n = 2; n <= 8; n *= 2) {
        pc_iteration_spec spec = spec_of(PC_ZERO_PARTITION_TENSOR, n);
        pc_iteration x = run_spec(&spec);
        double p = 0;
        for (int d = 0; d < 4; d++) p += (double)x.memory[d].parameters / 2 / 4;
        check_near(x.sent.dp_bytes, 2 * 7.0 / 8 * 4 * p + 2 * p, 1e-9);
        pc_iteration_free(&x);
    }
}

/* Eight experts of 2048 x 8192 on `ep` ranks, in all layers; TP cuts none of them. */
static pc_iteration_spec folded_spec(int ep) {
    pc_iteration_spec spec = spec_of(PC_ZERO_PARTITION_TENSOR, 0);
    spec.model.has_bias = false;
    spec.model.experts = (pc_experts){.num_experts = 8, .topk = 2, .ffn_hidden = 8192};
    spec.cut.sequence_parallel = true;
    spec.cut.ep = ep;
    spec.cut.etp = 1;
    spec.cut.dispatcher = PC_DISPATCHER_ALLTOALL;
    return spec;
}

/* Folded experts go to the ranks that have the same ones: of 16 ranks 16 / ep. A stage of six layers has two matrices
 * of each of a rank's 8 / ep experts: 96 / ep in all, so that everyone has six. Others go to all 8 replicas. */
static void test_folded_experts(void **state) {
    (void)state;
    for (int ep = 2; ep <= 8; ep *= 2) {
        pc_iteration_spec spec = folded_spec(ep);
        pc_outline outline;
        assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
        const pc_device_outline *x = &outline.device[1];
        assert_int_equal(outline.experts.replicas.ranks, 16 / ep);
        assert_int_equal(x->expert_owners.fullest, 6 * INT64_C(2048) * 8192);
        assert_int_equal(x->expert_owners.most_state_bytes, 12 * x->expert_owners.fullest);
        assert_int_equal(x->fixed_optimizer, x->owners.most_state_bytes + x->expert_owners.most_state_bytes);
        pc_outline_free(&outline);
    }
}

/* All-reduce and broadcasts as in test_bytes, of experts over the 16 / ep ranks that have the same; also with Muon. */
static void test_bytes_of_folded_experts(void **state) {
    (void)state;
    for (int ep = 2; ep <= 8; ep *= 2) {
        pc_iteration_spec spec = folded_spec(ep);
        if (ep == 4) spec.cut.optimizer.kind = PC_OPTIMIZER_MUON;
        pc_iteration x = run_spec(&spec);
        double p = 0, same = 16.0 / ep, experts = 96.0 / ep * 2048 * 8192;
        for (int d = 0; d < 4; d++) p += (double)x.memory[d].parameters / 2 / 4;
        check_near(x.sent.dp_bytes,
                   2 * 7.0 / 8 * 4 * (p - experts) + 2 * (p - experts) + 2 * (same - 1) / same * 4 * experts +
                       2 * experts,
                   1e-9);
        pc_iteration_free(&x);
    }
}

/* Groups of 4 of 8 replicas share state. With TP 2 a group has 8 ranks, and every expert on 8 / ep of them; the other
 * group has the same. Of P parameters over s ranks that share them: 4 P (s - 1)/s are scattered, then 4 P / s
 * all-reduced over the two groups, and 2 P (s - 1)/s gathered; state is 12 P / s. */
static double bytes_of(double p, double s) {
    return (4 * p + 2 * p) * (s - 1) / s + 2 * 0.5 * 4 * p / s;
}

static void test_groups_of_folded_experts(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        int ep = 2 << i % 3;
        pc_iteration_spec spec = folded_spec(ep);
        spec.cut.zero_partition = PC_ZERO_PARTITION_EVEN;
        spec.cut.shard_group = 4;
        spec.network = i < 3 ? PC_NETWORK_CLOSED : PC_NETWORK_FLOWS;
        pc_iteration x = run_spec(&spec);
        double p = 0, experts = 96.0 / ep * 2048 * 8192;
        for (int d = 0; d < 4; d++) {
            double own = (double)x.memory[d].parameters / 2;
            p += own / 4;
            check_near((double)x.memory[d].optimizer, 12 * ((own - experts) / 4 + experts * ep / 8), 1e-6);
        }
        check_near(x.sent.dp_bytes, bytes_of(p - experts, 4) + bytes_of(experts, 8.0 / ep), 1e-9);
        pc_iteration_free(&x);
    }
    pc_iteration_spec all = folded_spec(4), none = all, small = all;
    pc_error error = {0};
    all.cut.zero = none.cut.zero = 3;
    all.cut.shard_group = 8;
    pc_iteration x = run_spec(&all), y = run_spec(&none);
    assert_true(x.iteration_s == y.iteration_s && x.memory[1].peak_bytes == y.memory[1].peak_bytes);
    pc_iteration_free(&x);
    pc_iteration_free(&y);
    small.cut.shard_group = 1;
    assert_int_equal(pc_outline_check(&small, &error), PC_ERROR_INPUT);
    assert_string_equal(
        error.message,
        "shard_group 1 x tp 2 with etp 1 x ep 4; expected a multiple, so that each group has all experts");
}

/* One replica, and ZeRO 0, have nothing to divide; ZeRO 2 and 3 cut tensors. */
static void test_nothing_to_divide(void **state) {
    (void)state;
    for (int zero = 0; zero <= 3; zero++) {
        pc_iteration_spec tensor = spec_of(PC_ZERO_PARTITION_TENSOR, 0);
        tensor.cut.zero = zero;
        if (zero == 1) tensor.cut.dp = 1;
        pc_iteration_spec even = tensor;
        even.cut.zero_partition = PC_ZERO_PARTITION_EVEN;
        pc_iteration x = run_spec(&tensor), y = run_spec(&even);
        assert_true(x.iteration_s == y.iteration_s && x.sent.dp_bytes == y.sent.dp_bytes);
        assert_true(x.memory[1].peak_bytes == y.memory[1].peak_bytes);
        pc_iteration_free(&x);
        pc_iteration_free(&y);
    }
}

/* More replicas, more owners, longer rings: broadcasts take longer, where gathers of so many bytes hardly do. */
static void test_grows_with_replicas(void **state) {
    (void)state;
    double before = 0;
    for (int dp = 8; dp <= 256; dp *= 2) {
        double wait[2];
        for (int i = 0; i < 2; i++) {
            pc_iteration_spec spec = spec_of(i ? PC_ZERO_PARTITION_TENSOR : PC_ZERO_PARTITION_EVEN, 0);
            spec.cut.dp = dp;
            spec.overlaps_parameters = false;
            pc_iteration x = run_spec(&spec);
            wait[i] = x.exposed.dp;
            pc_iteration_free(&x);
        }
        assert_true(wait[1] > wait[0] && wait[1] - wait[0] > before);
        before = wait[1] - wait[0];
    }
}

/* Longest paths and the engine give the same, to the picosecond, closed and over flows. */
static void test_engines_agree(void **state) {
    (void)state;
    test_random random = {78};
    for (long i = 0; i < test_cases(40, 400); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.cut.lora.rank = spec.cut.frozen = 0; /* tensors are given to ranks of what is trained whole */
        spec.cut.zero = 1;
        spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
        if (i % 3 == 0 && spec.cut.dp % 2 == 0 && spec.generator->placement != PC_PLACEMENT_BIDIRECTIONAL)
            spec.cut.shard_group = spec.cut.dp / 2;
        if (spec.cut.shard_group > 0) spec.order = example_spec().order; /* cp and dp are neighbours */
        spec.network = i % 2 ? PC_NETWORK_FLOWS : PC_NETWORK_CLOSED;
        pc_iteration x = run_spec(&spec);
        spec.engine = PC_ENGINE_EVENTS;
        pc_iteration y = run_spec(&spec);
        assert_true(x.iteration_s == y.iteration_s && x.exposed.dp == y.exposed.dp);
        pc_iteration_free(&x);
        pc_iteration_free(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_are_the_parameters),
        cmocka_unit_test(test_tensors_of_a_llama),
        cmocka_unit_test(test_greedy_by_hand),
        cmocka_unit_test(test_broadcasts_by_hand),
        cmocka_unit_test(test_one_rank_broadcasts_nothing),
        cmocka_unit_test(test_more_ranks_than_tensors),
        cmocka_unit_test(test_any_tensors),
        cmocka_unit_test(test_share_of_a_course),
        cmocka_unit_test(test_too_many_tensors),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_folded_experts),
        cmocka_unit_test(test_bytes_of_folded_experts),
        cmocka_unit_test(test_groups_of_folded_experts),
        cmocka_unit_test(test_nothing_to_divide),
        cmocka_unit_test(test_grows_with_replicas),
        cmocka_unit_test(test_engines_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
