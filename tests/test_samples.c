/* Iterations of bad days: by algebra, by other machines that must be equal, and by what must not show. */
#include "tests/iteration_example.h"

#include "engine/alloc.h"
#include "models/training/outline.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

static pc_time good_ps(const pc_iteration *iteration) {
    return llrint(iteration->bad_days.good_s * 1e12);
}

/* The iteration by closed costs, in whole picoseconds. */
static pc_time closed_ps(const pc_iteration_spec *spec) {
    pc_iteration_spec good = *spec;
    good.bad_days = (pc_bad_days){.samples = 0};
    good.jitter = 0;
    good.network = PC_NETWORK_CLOSED;
    pc_iteration iteration = run_spec(&good);
    pc_time time = llrint(iteration.iteration_s * 1e12);
    pc_iteration_free(&iteration);
    return time;
}

/* Runs the spec and expects all its samples to take so long, up to `within` picoseconds. */
static void expect_samples(const pc_iteration_spec *spec, pc_time expected_ps, pc_time within) {
    pc_iteration iteration = run_spec(spec);
    assert_int_equal(iteration.bad_days.samples, spec->bad_days.samples);
    for (int64_t i = 0; i < iteration.bad_days.samples; i++)
        if (llabs(iteration.sample_ps[i] - expected_ps) > within)
            fail_msg("sample %ld: %ld ps, expected %ld", (long)i, (long)iteration.sample_ps[i], (long)expected_ps);
    pc_iteration_free(&iteration);
}

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

static pc_iteration_spec any_spec(test_random *random) {
    pc_iteration_spec spec = random_spec(random);
    spec.overlaps_tp = toss(random);
    if (spec.cut.dp > 1 && toss(random)) spec.cut.zero = (int)test_between(random, 2, 3);
    spec.bad_days.samples = 2;
    return spec;
}

/* ---- where nothing happens ---- */

/* Without noise a sample is the closed iteration. That holds for replicas that are alike, timed once, and for replicas
 * timed each for itself with factors that are always 1. It holds for slow GPUs that are as fast as others, and for bad
 * links that are good.
 */
static void test_nothing_happens(void **state) {
    (void)state;
    static const double ones[] = {1, 1, 1};
    test_random random = {11};
    for (long i = 0; i < test_cases(60, 300); i++) {
        pc_iteration_spec spec = any_spec(&random);
        pc_time expected = closed_ps(&spec);
        expect_samples(&spec, expected, 0);
        spec.bad_days.passes = (pc_empirical){ones, 3};
        expect_samples(&spec, expected, 0);
        spec.bad_days.slow_gpus = 1;
        spec.bad_days.has_slow_stage = toss(&random);
        spec.bad_days.slow_factor = 1;
        spec.bad_days.bad_links = 1;
        spec.bad_days.bad_factor = 1;
        spec.bad_days.other_nodes = toss(&random);
        spec.bad_days.other_gpu = spec.machine.gpu;
        expect_samples(&spec, expected, 0);
        spec.bad_days.link_jitter = 1e-9;
        expect_samples(&spec, expected, expected / 100000000 + 100);
        pc_iteration iteration = run_spec(&spec);
        assert_int_equal(good_ps(&iteration), expected);
        pc_iteration_free(&iteration);
    }
}

/* The good day is the same with samples and without, over flows, too; its samples go by closed costs. */
static void test_the_good_day_stays(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.machine.speed_variation = 0.02;
    pc_time closed = closed_ps(&spec);
    spec.network = PC_NETWORK_FLOWS;
    pc_iteration without = run_spec(&spec);
    assert_true(isnan(without.bad_days.good_s) && !without.sample_ps && without.bad_days.samples == 0);
    spec.bad_days = (pc_bad_days){.samples = 3, .slow_gpus = 1, .slow_factor = 1.5};
    spec.jitter = 0.1;
    pc_iteration with = run_spec(&spec);
    assert_true(with.iteration_s == without.iteration_s);
    assert_true(with.exposed.bubble == without.exposed.bubble && with.exposed.dp == without.exposed.dp);
    assert_true(with.replay.trace_hash == without.replay.trace_hash);
    assert_int_equal(good_ps(&with), closed);
    assert_true(good_ps(&with) != llrint(with.iteration_s * 1e12));
    pc_iteration_free(&with);
    spec.bad_days.gpu_jitter = 0.01; /* in place of the variation */
    with = run_spec(&spec);
    spec.machine.speed_variation = 0;
    assert_int_equal(good_ps(&with), closed_ps(&spec));
    pc_iteration_free(&with);
    pc_iteration_free(&without);
}

/* ---- other machines ---- */

/* Where every node has the other GPU, or every link is bad, the sample is the iteration on a machine of that GPU or
 * network. Where every GPU is slow, it is that of passes with as much overhead, and a longer step. */
static void test_everywhere(void **state) {
    (void)state;
    test_random random = {12};
    for (long i = 0; i < test_cases(60, 300); i++) {
        pc_iteration_spec spec = any_spec(&random), other = spec;
        int64_t gpus = (int64_t)spec.cut.tp * spec.cut.pp * pc_cut_replicas(&spec.cut);
        other.machine.gpu.matrix_flops_per_s *= 0.7;
        other.machine.gpu.memory_bytes_per_s *= toss(&random) ? 0.5 : 2;
        other.machine.gpu.launch_s = 1e-5;
        spec.bad_days.other_nodes = (gpus + 7) / 8;
        spec.bad_days.other_gpu = other.machine.gpu;
        expect_samples(&spec, closed_ps(&other), 0);
        other = spec;
        spec.bad_days.bad_links = gpus;
        spec.bad_days.bad_factor = 0.25;
        other.machine.gpu = spec.bad_days.other_gpu;
        other.machine.network.bandwidth_bytes_per_s *= 0.25;
        expect_samples(&spec, closed_ps(&other), 0);
    }
}

static pc_time longest_step(const pc_iteration_spec *spec) {
    pc_outline outline;
    pc_time longest = 0;
    assert_int_equal(pc_outline_make(spec, NULL, &outline, NULL), PC_OK);
    for (int d = 0; d < outline.devices; d++)
        if (outline.device[d].step_ps > longest) longest = outline.device[d].step_ps;
    pc_outline_free(&outline);
    return longest;
}

static void test_all_are_slow(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec(), slower = spec;
    slower.pass_overhead = 0.5;
    spec.bad_days = (pc_bad_days){.samples = 2, .slow_gpus = 64, .slow_factor = 1.5};
    expect_samples(&spec, closed_ps(&slower) + longest_step(&spec) / 2, 100);
    spec.bad_days.has_slow_stage = true; /* none is slow twice */
    expect_samples(&spec, closed_ps(&slower) + longest_step(&spec) / 2, 100);
}

/* The slower GPU's time counts where a tensor group has both kinds; a faster one in some of it changes nothing. */
static void test_groups_of_both_kinds(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec(), slow = spec;
    spec.cut.tp = 16; /* two nodes */
    spec.cut.pp = 1;
    spec.cut.dp = 2;
    spec.bad_days.samples = 1;
    spec.bad_days.other_nodes = 1;
    spec.bad_days.other_gpu = spec.machine.gpu;
    spec.bad_days.other_gpu.matrix_flops_per_s *= 2;
    expect_samples(&spec, closed_ps(&spec), 0);
    slow = spec;
    slow.machine.gpu.matrix_flops_per_s *= 0.5;
    spec.bad_days.other_gpu = slow.machine.gpu;
    expect_samples(&spec, closed_ps(&slow), 0);
}

/* ---- one slow stage, one bad link ---- */

static pc_time pass_ps(const pc_costs *costs, int device, pc_pass_kind kind) {
    return pc_costs_duration(costs, device, 0, kind);
}

/* Two replicas, gradients reduced behind all passes, every stage's step apart. The last of p stages takes f times as
 * long in one replica: at work without a pause from when the first F has come down to it, m f (F + B) long. That of its
 * last microbatch comes up to stage 0 again, each stage done a transfer and a B behind the one before it. Then each
 * stage reduces its gradients, with the loss behind the last one's, all wait for the norm, and the slowest step is the
 * slow stage's, or another's. */
static void test_a_slow_last_stage(void **state) {
    (void)state;
    enum { SLOWNESS = 4 };
    pc_iteration_spec spec = example_spec();
    pc_outline outline;
    pc_costs costs;
    spec.cut.dp = 2;
    spec.cut.zero = 0;
    spec.model.is_tied = false;
    spec.overlaps_gradients = false;
    int last = spec.cut.pp - 1;
    assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
    assert_int_equal(pc_outline_costs(&outline, 0, &costs, NULL), PC_OK);
    pc_time now =
        SLOWNESS * spec.cut.microbatches * (pass_ps(&costs, last, PC_PASS_F) + pass_ps(&costs, last, PC_PASS_BW));
    for (int d = 0; d < last; d++) now += pass_ps(&costs, d, PC_PASS_F) + outline.device[d].hop_ps;
    pc_time end = 0, step = 0;
    for (int d = last; d >= 0; d--) {
        if (d < last) now += outline.device[d].hop_ps + pass_ps(&costs, d, PC_PASS_BW);
        pc_time done =
            now + outline.chunks_of[d].buckets * outline.chunks_of[d].reduce_ps + (d == last ? outline.loss_ps : 0);
        pc_time own = outline.device[d].step_ps * (d == last ? SLOWNESS : 1);
        end = done > end ? done : end;
        step = own > step ? own : step;
    }
    spec.bad_days = (pc_bad_days){.samples = 2, .has_slow_stage = true, .slow_stage = last, .slow_factor = SLOWNESS};
    expect_samples(&spec, end + outline.norm_ps + step, 0);
    pc_costs_free(&costs);
    pc_outline_free(&outline);
}

/* A slow GPU at a random place makes its stage slow in its replica, whichever that is. A sample is one of those with a
 * given slow stage, each of the p as often: 200 samples of 4 stages have 50 each, 4 standard deviations of 6.1. */
static void test_a_slow_gpu_anywhere(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_time of_stage[4];
    int times[4] = {0};
    spec.bad_days = (pc_bad_days){.samples = 1, .has_slow_stage = true, .slow_factor = 1.7};
    for (int d = 0; d < 4; d++) {
        spec.bad_days.slow_stage = d;
        pc_iteration iteration = run_spec(&spec);
        of_stage[d] = iteration.sample_ps[0];
        assert_true(of_stage[d] > good_ps(&iteration));
        pc_iteration_free(&iteration);
    }
    spec.bad_days = (pc_bad_days){.samples = 200, .slow_gpus = 1, .slow_factor = 1.7};
    pc_iteration iteration = run_spec(&spec);
    for (int i = 0; i < 200; i++) {
        int found = 0;
        while (found < 4 && of_stage[found] != iteration.sample_ps[i]) found++;
        assert_in_range(found, 0, 3);
        times[found]++;
    }
    for (int d = 0; d < 4; d++)
        if (of_stage[d] != of_stage[(d + 1) % 4]) assert_in_range(times[d], 26, 124);
    pc_iteration_free(&iteration);
}

/* A bad link in a group of data parallelism makes all of its collective slow, and so does one in a group of tensor
 * parallelism that crosses nodes; none does in groups inside a node. */
static void test_a_bad_link(void **state) {
    (void)state;
    static const struct { int tp, dp; } cuts[] = {{8, 4}, {16, 1}, {8, 1}, {16, 2}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        pc_iteration_spec spec = example_spec(), other;
        spec.cut.tp = cuts[i].tp;
        spec.cut.dp = cuts[i].dp;
        spec.cut.pp = 1;
        spec.bad_days = (pc_bad_days){.samples = 3, .bad_links = 1, .bad_factor = 0.3};
        other = spec;
        other.machine.network.bandwidth_bytes_per_s *= 0.3;
        /* With both, only the replica that has it is slow in its passes, which decides all the same. */
        expect_samples(&spec, closed_ps(&other), 0);
        if (cuts[i].tp == 8 && cuts[i].dp == 1) assert_int_equal(closed_ps(&spec), closed_ps(&other));
    }
}

/* Two stages that hold each other's replica reduce gradients with each other: where either has a bad link, both wait,
 * and so do all transfers, for there are but those between the two. */
static void test_a_bad_link_of_two_pipelines(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec(), other;
    spec.generator = pc_generator_find("chimera");
    spec.cut.chunks = spec.generator->chunks_default;
    spec.cut.tp = 8;
    spec.cut.pp = 2;
    spec.cut.dp = 1;
    spec.bad_days = (pc_bad_days){.samples = 6, .bad_links = 1, .bad_factor = 0.3};
    other = spec;
    other.machine.network.bandwidth_bytes_per_s *= 0.3;
    expect_samples(&spec, closed_ps(&other), 0);
    assert_true(closed_ps(&spec) < closed_ps(&other));
}

/* Where all that leaves a node goes through uplinks of an eighth of its NICs' rate, NICs of half their rate are wide
 * enough. */
static void test_uplinks_stay(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.machine.leaf_nodes = 1;
    spec.machine.oversubscription = 8;
    pc_time good = closed_ps(&spec);
    spec.bad_days = (pc_bad_days){.samples = 2, .bad_links = 64, .bad_factor = 0.5};
    expect_samples(&spec, good, 0);
    spec.machine.oversubscription = 1;
    assert_true(closed_ps(&spec) < good);
    pc_iteration iteration = run_spec(&spec);
    assert_true(iteration.sample_ps[0] > good_ps(&iteration));
    pc_iteration_free(&iteration);
}

/* One bad link of many is no better than none and no worse than all; where a stage waits for its transfers, too. */
static void test_a_bad_link_between_stages(void **state) {
    (void)state;
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        pc_iteration_spec spec = example_spec(), other;
        spec.overlaps_p2p = overlaps;
        spec.overlaps_gradients = false;
        other = spec;
        other.machine.network.bandwidth_bytes_per_s *= 0.05;
        spec.bad_days = (pc_bad_days){.samples = 20, .bad_links = 1, .bad_factor = 0.05};
        pc_time worst = closed_ps(&other);
        pc_iteration iteration = run_spec(&spec);
        for (int i = 0; i < 20; i++)
            assert_true(iteration.sample_ps[i] > good_ps(&iteration) && iteration.sample_ps[i] < worst);
        pc_iteration_free(&iteration);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_happens),
        cmocka_unit_test(test_the_good_day_stays),
        cmocka_unit_test(test_everywhere),
        cmocka_unit_test(test_all_are_slow),
        cmocka_unit_test(test_groups_of_both_kinds),
        cmocka_unit_test(test_a_slow_last_stage),
        cmocka_unit_test(test_a_slow_gpu_anywhere),
        cmocka_unit_test(test_a_bad_link),
        cmocka_unit_test(test_a_bad_link_of_two_pipelines),
        cmocka_unit_test(test_uplinks_stay),
        cmocka_unit_test(test_a_bad_link_between_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
