/* Samples of models with experts: how unevenly tokens choose differs from sample to sample. Every layer's fullest rank
 * decides, for all that share out its experts. */
#include "tests/drawn_example.h"
#include "tests/iteration_example.h"

#include "engine/numbers.h"
#include "models/workload/expert_load.h"
#include "models/workload/expert_slice.h"

#include <math.h>

/* 32 experts, of which the first has twice as many tokens as the others. */
static double tokens[32];
static pc_expert_counts counts;

static int make_counts(void **state) {
    (void)state;
    for (int i = 0; i < 32; i++) tokens[i] = i ? 1 : 2;
    return pc_expert_counts_make(tokens, 1, 32, &counts, NULL);
}

static int free_counts(void **state) {
    (void)state;
    pc_expert_counts_free(&counts);
    return 0;
}

/* They are on eight ranks, all layers with experts. */
static pc_iteration_spec mixture_spec(pc_moe_load load) {
    pc_iteration_spec spec = example_spec();
    spec.model.experts = (pc_experts){.num_experts = 32, .topk = 2, .ffn_hidden = 4096};
    spec.cut.ep = 8;
    spec.cut.etp = 1;
    spec.cut.dispatcher = PC_DISPATCHER_ALLTOALL;
    spec.cut.moe_load = load;
    spec.cut.moe_load_exponent = 1.1;
    spec.cut.moe_load_counts = load == PC_MOE_LOAD_GIVEN ? &counts : NULL;
    spec.bad_days.samples = 6;
    spec.memory_limit_bytes = INT64_C(1) << 40;
    return spec;
}

/* ---- the distribution ---- */

static double mean_drawn(const pc_expert_spread *spread, double draw(const pc_expert_spread *, double)) {
    enum { STEPS = 2000 };
    double sum = 0;
    for (int i = 0; i < STEPS; i++) sum += draw(spread, (i + 0.5) / STEPS);
    return sum / STEPS;
}

/* What is drawn has the mean that is expected: of a power law but for what limits each draw; by
 * chance within what Blom's quantile is off, a fiftieth of the deviation of one rank. */
static void test_means(void **state) {
    (void)state;
    static const double ranks[] = {4, 8, 32};
    for (int i = 0; i < 3; i++) {
        pc_expert_spread x = {.experts = 128, .ranks = ranks[i], .topk = 4, .tokens = 4096, .exponent = 1.1};
        double power = pc_expert_load(&x) - 1, chance = pc_expert_load_by_chance(&x) - 1;
        assert_true(fabs(mean_drawn(&x, pc_expert_load_drawn) - 1 - power) < 0.03 * power);
        assert_true(fabs(mean_drawn(&x, pc_expert_load_drawn_by_chance) - 1 - chance) < 0.03 * chance);
        assert_true(pc_expert_load_drawn(&x, 0.1) < pc_expert_load_drawn(&x, 0.9));
        assert_true(pc_expert_load_drawn_by_chance(&x, 0.1) < pc_expert_load_drawn_by_chance(&x, 0.9));
    }
    pc_expert_spread alone = {.experts = 8, .ranks = 1, .topk = 2, .tokens = 64, .exponent = 1.1};
    assert_true(pc_expert_load_drawn(&alone, 0.5) == 1 && pc_expert_load_drawn_by_chance(&alone, 0.5) == 1);
}

/* ---- samples ---- */

/* One stage, whose experts all replicas share out: a sample is the iteration whose fullest rank has what was drawn.
 * Times are a line between two loads, and products come in whole tiles: up to 4% apart. */
static void test_a_sample_has_its_load(void **state) {
    (void)state;
    for (int load = PC_MOE_LOAD_UNIFORM; load <= PC_MOE_LOAD_GIVEN; load++) {
        pc_iteration_spec spec = mixture_spec((pc_moe_load)load), other = spec;
        drawn parts;
        spec.cut.pp = other.cut.pp = 1;
        spec.cut.dp = other.cut.dp = 4;
        pc_iteration iteration = run_spec(&spec);
        open_drawn(&spec, &parts);
        other.bad_days.samples = 0;
        for (int i = 0; i < 6; i++) {
            pc_conditions_draw(&parts.base, i, &parts.rng, &parts.conditions);
            for (int r = 1; r < 4; r++)
                assert_true(parts.conditions.load[r] == parts.conditions.load[0]); /* one group */
            other.cut.moe_load_fullest = parts.conditions.load[0];
            pc_iteration expected = run_spec(&other);
            double found_s = (double)iteration.sample_ps[i] / 1e12;
            if (fabs(found_s / expected.iteration_s - 1) > 0.04)
                fail_msg("load %g: %g s; expected %g", parts.conditions.load[0], found_s, expected.iteration_s);
            pc_iteration_free(&expected);
        }
        assert_true(iteration.sample_ps[0] != iteration.sample_ps[1]);
        close_drawn(&parts);
        pc_iteration_free(&iteration);
    }
}

static int64_t most_bytes(const pc_iteration *iteration) {
    int64_t most = 0;
    for (int d = 0; d < iteration->devices; d++) most = pc_max(most, iteration->memory[d].peak_bytes);
    return most;
}

/* The first rank has 5 of 33 tokens, 8 x 5/33 times the mean; chance adds less than a hundredth. An iteration is that
 * of this load, and memory with a quantile has room for more. */
static void test_counted(void **state) {
    (void)state;
    pc_iteration_spec spec = mixture_spec(PC_MOE_LOAD_GIVEN), other = mixture_spec(PC_MOE_LOAD_BALANCED);
    spec.bad_days.samples = other.bad_days.samples = 0;
    double load = pc_cut_mean_expert_load(&spec.model, &spec.cut);
    assert_true(load > 40.0 / 33.0 - 1e-9 && load < 1.01 * 40.0 / 33.0);
    other.cut.moe_load_fullest = load;
    pc_iteration found = run_spec(&spec), expected = run_spec(&other);
    assert_true(found.iteration_s == expected.iteration_s);
    assert_true(most_bytes(&found) == most_bytes(&expected));
    spec.cut.memory_quantile = 0.99;
    pc_iteration cautious = run_spec(&spec);
    assert_true(cautious.iteration_s == expected.iteration_s);
    assert_true(most_bytes(&cautious) > most_bytes(&expected));
    pc_iteration_free(&found);
    pc_iteration_free(&expected);
    pc_iteration_free(&cautious);
}

/* Loads of one layer are farther apart than means over 24 of them; and groups of different replicas are drawn each for
 * itself. */
static void test_layers_and_groups(void **state) {
    (void)state;
    pc_iteration_spec spec = mixture_spec(PC_MOE_LOAD_POWER);
    double squares[2] = {0};
    for (int i = 0; i < 2; i++) {
        drawn parts;
        spec.cut.pp = 1;
        spec.cut.dp = 8; /* two groups of 8 ranks */
        spec.model.experts.first_dense = i ? 23 : 0;
        open_drawn(&spec, &parts);
        int differ = 0;
        for (int k = 0; k < 100; k++) {
            pc_conditions_draw(&parts.base, k, &parts.rng, &parts.conditions);
            double off = parts.conditions.load[0] - parts.base.mean_load;
            squares[i] += off * off;
            assert_true(parts.conditions.load[0] == parts.conditions.load[3]);
            differ += parts.conditions.load[0] != parts.conditions.load[4];
        }
        assert_true(differ > 95); /* none has less than the mean: some have as much */
        close_drawn(&parts);
    }
    double ratio = squares[1] / squares[0]; /* of variances: 24 */
    if (ratio < 12 || ratio > 48) fail_msg("%g; expected 24", ratio);
}

/* Balanced experts, and those that a rank has all of, are alike in all samples. */
static void test_no_load_no_difference(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        pc_iteration_spec spec = mixture_spec(i ? PC_MOE_LOAD_POWER : PC_MOE_LOAD_BALANCED);
        if (i) spec.cut.ep = 1;
        pc_iteration iteration = run_spec(&spec);
        pc_time good_ps = llrint(iteration.bad_days.good_s * 1e12);
        for (int k = 0; k < 6; k++) assert_int_equal(iteration.sample_ps[k], good_ps);
        pc_iteration_free(&iteration);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_a_sample_has_its_load),
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_layers_and_groups),
        cmocka_unit_test(test_no_load_no_difference),
    };
    return cmocka_run_group_tests(tests, make_counts, free_counts);
}
