/* Hybrid sharding: ZeRO's state shared by groups of replicas, gradients reduced in a group and then over groups. */
#include "tests/iteration_example.h"

#include <math.h>
#include <string.h>

static void check_near(double value, double expected, double tolerance) {
    if (fabs(value - expected) > tolerance * fabs(expected)) fail_msg("%.12g; expected %.12g", value, expected);
}

/* 8 replicas of the example, in groups of `group`. */
static pc_iteration_spec spec_of(int zero, int group) {
    pc_iteration_spec spec = example_spec();
    spec.model.is_tied = false;
    spec.cut.zero = zero;
    spec.cut.shard_group = group;
    return spec;
}

static double parameters_of(const pc_iteration *x) {
    double sum = 0;
    for (int d = 0; d < 4; d++) sum += (double)x->memory[d].parameters / 2;
    return sum;
}

/* A group holds everything once: a rank an n-th of 12 bytes a parameter. */
static void test_memory(void **state) {
    (void)state;
    static const int groups[] = {1, 2, 4, 8, 0};
    for (int i = 0; i < 5; i++) {
        pc_iteration_spec spec = spec_of(1, groups[i]);
        pc_iteration x = run_spec(&spec);
        int64_t ranks = groups[i] ? groups[i] : 8;
        for (int d = 0; d < 4; d++)
            assert_int_equal(x.memory[d].optimizer, (12 * x.memory[d].parameters / 2 + ranks - 1) / ranks);
        pc_iteration_free(&x);
    }
}

/* Of P parameters, gradients of 4 bytes and groups of n: reduce-scatter 4 P (n-1)/n, all-reduce of an n-th over 8/n
 * groups 2 (8/n - 1)/(8/n) 4 P/n, all-gather 2 P (n-1)/n. */
static void test_bytes(void **state) {
    (void)state;
    for (int n = 1; n <= 8; n *= 2) {
        pc_iteration_spec spec = spec_of(1, n);
        pc_iteration x = run_spec(&spec);
        double p = parameters_of(&x) / 4, groups = 8.0 / n;
        double expected = (4 * p + 2 * p) * (n - 1) / n + 2 * (groups - 1) / groups * 4 * p / n;
        check_near(x.sent.dp_bytes, expected, 1e-9);
        pc_iteration_free(&x);
    }
}

/* A group of all replicas is none; groups of one are ZeRO 0, but for what the step knows. */
static void test_ends(void **state) {
    (void)state;
    for (int zero = 1; zero <= 3; zero++) {
        pc_iteration_spec all = spec_of(zero, 8), none = spec_of(zero, 0);
        pc_iteration x = run_spec(&all), y = run_spec(&none);
        assert_true(x.iteration_s == y.iteration_s && x.memory[1].peak_bytes == y.memory[1].peak_bytes);
        pc_iteration_free(&x);
        pc_iteration_free(&y);
    }
    pc_iteration_spec ones = spec_of(1, 1), plain = spec_of(0, 0);
    pc_iteration x = run_spec(&ones), y = run_spec(&plain);
    assert_true(x.sent.dp_bytes == y.sent.dp_bytes && x.iteration_s == y.iteration_s);
    assert_int_equal(x.memory[1].peak_bytes, y.memory[1].peak_bytes);
    pc_iteration_free(&x);
    pc_iteration_free(&y);
}

/* In groups that a node holds, gathers stay in the node. */
static void test_gathers_in_a_node(void **state) {
    (void)state;
    pc_iteration_spec whole = spec_of(3, 0), groups = spec_of(3, 4);
    whole.overlaps_parameters = groups.overlaps_parameters = false; /* so that passes show what gathers take */
    pc_costs a, b;
    assert_int_equal(pc_iteration_costs(&whole, NULL, &a, NULL), PC_OK);
    assert_int_equal(pc_iteration_costs(&groups, NULL, &b, NULL), PC_OK);
    assert_true(pc_costs_duration(&b, 1, 0, PC_PASS_F) < pc_costs_duration(&a, 1, 0, PC_PASS_F));
    pc_costs_free(&a);
    pc_costs_free(&b);
}

/* Whether no axis of several ranks stands between those that hold the same parameters. */
static bool are_neighbours(const pc_iteration_spec *spec) {
    const int ranks[PC_AXES] = {[PC_AXIS_TP] = spec->cut.tp,
                                [PC_AXIS_PP] = spec->cut.pp,
                                [PC_AXIS_DP] = spec->cut.dp,
                                [PC_AXIS_CP] = pc_cut_cp(&spec->cut)};
    if (spec->cut.dp == 1 || pc_cut_cp(&spec->cut) == 1) return true;
    bool is_between = false;
    for (int i = 0; i < PC_AXES; i++) {
        pc_axis axis = spec->order.axis[i];
        bool is_end = axis == PC_AXIS_DP || axis == PC_AXIS_CP;
        if (is_between && !is_end && ranks[axis] > 1) return false;
        is_between ^= is_end;
    }
    return true;
}

static void check_not_neighbours(const pc_iteration_spec *spec) {
    pc_iteration x;
    assert_int_equal(pc_iteration_run(spec, NULL, false, &x, NULL), PC_OK);
    assert_int_equal(x.status, PC_RUN_INFEASIBLE);
    assert_non_null(strstr(x.message, "a rank order in which cp and dp are no neighbours; expected another order"));
    pc_iteration_free(&x);
}

/* Longest paths and the engine give the same, to the picosecond, closed and over flows; groups of replicas that are no
 * row of ranks are refused. */
static void test_engines_agree(void **state) {
    (void)state;
    test_random random = {77};
    long cases = test_cases(100, 400), agreed = 0, refused = 0;
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = random_spec(&random);
        if (spec.generator->placement == PC_PLACEMENT_BIDIRECTIONAL) continue;
        int64_t replicas = pc_cut_replicas(&spec.cut), divisor = test_between(&random, 1, replicas);
        while (replicas % divisor) divisor--;
        spec.cut.zero = (int)test_between(&random, 1, 3);
        spec.cut.shard_group = (int)divisor;
        spec.network = i % 2 ? PC_NETWORK_FLOWS : PC_NETWORK_CLOSED;
        if (!are_neighbours(&spec)) {
            check_not_neighbours(&spec);
            refused++;
            continue;
        }
        pc_iteration x = run_spec(&spec);
        spec.engine = PC_ENGINE_EVENTS;
        pc_iteration y = run_spec(&spec);
        assert_true(x.iteration_s == y.iteration_s && x.exposed.dp == y.exposed.dp);
        pc_iteration_free(&x);
        pc_iteration_free(&y);
        agreed++;
    }
    print_message("%ld agreed, %ld refused\n", agreed, refused);
    assert_true(test_saw(agreed, cases / 2) && test_saw(refused, 1));
}

/* A split axis: rows of neighbours, and one of each row, whatever stands before and behind it. */
static void test_split(void **state) {
    (void)state;
    static const char *const orders[] = {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "pp-dp-tp"};
    pc_iteration_spec spec = example_spec();
    for (int i = 0; i < 4; i++) {
        pc_rank_order order;
        pc_ranks ranks, inner, outer;
        assert_int_equal(pc_rank_order_parse(orders[i], &order, NULL), PC_OK);
        assert_int_equal(pc_ranks_place(&spec.machine, order, (pc_rank_counts){2, 4, 8, 1}, &ranks, NULL), PC_OK);
        pc_ranks_split(&ranks, PC_AXIS_DP, 4, &inner, &outer);
        assert_true(pc_ranks_gpus(&inner) == 64 && pc_ranks_gpus(&outer) == 64);
        assert_true(inner.count[PC_AXIS_DP] == 4 && inner.stride[PC_AXIS_DP] == ranks.stride[PC_AXIS_DP]);
        assert_true(outer.count[PC_AXIS_DP] == 2 && outer.stride[PC_AXIS_DP] == 4 * ranks.stride[PC_AXIS_DP]);
    }
}

static void test_refusals(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(1, 3);
    check_infeasible(&spec, "shard_group 3 with dp 8; expected a divisor of dp");
    spec = spec_of(0, 4);
    check_infeasible(&spec, "shard_group 4 with zero 0, which shards nothing; expected zero 1 to 3");
    spec = spec_of(1, 4);
    spec.generator = pc_generator_find("chimera");
    spec.cut.chunks = 2;
    check_infeasible(&spec, "shard_group 4 with chimera, whose two replicas share state; expected another schedule");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_ends),          cmocka_unit_test(test_gathers_in_a_node),
        cmocka_unit_test(test_engines_agree), cmocka_unit_test(test_split),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
