/* Iterations whose schedule has pairs of passes that run together: what they gain, and what refuses them. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/training/iteration.h"
#include "tests/iteration_example.h"
#include "tests/iteration_experts.h"

#include <math.h>

static pc_iteration_spec spec_of(const char *schedule, int tp, bool overlaps) {
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find(schedule);
    spec.cut.chunks = spec.generator->chunks_default;
    spec.cut.tp = tp;
    spec.cut.microbatches = 16;
    spec.overlaps_pairs = overlaps;
    return spec;
}

static pc_iteration run(const char *schedule, int tp, bool overlaps) {
    pc_iteration_spec spec = spec_of(schedule, tp, overlaps);
    return run_spec(&spec);
}

/* Each F of a pair ends with its BW. Without communication in passes a device is as busy as without pairs; with it,
 * less so, by what is hidden: no more than all of it. */
static void test_hides_communication_alone(void **state) {
    (void)state;
    static const char *const names[] = {"1f1b-interleaved-overlap", "dualpipe", "dualpipe-v"};
    for (int n = 0; n < 3; n++)
        for (int tp = 1; tp <= 2; tp++) {
            pc_iteration apart = run(names[n], tp, false), together = run(names[n], tp, true);
            for (int d = 0; d < apart.devices; d++) {
                pc_time less = apart.replay.device_busy_ps[d] - together.replay.device_busy_ps[d];
                if (tp == 1) assert_int_equal(less, 0);
                if (tp > 1) assert_true(less > 0);
                assert_true(pc_time_to_seconds(less) <= 1.01 * apart.exposed.tp);
            }
            if (tp > 1) assert_true(together.exposed.tp < apart.exposed.tp);
            if (tp > 1 && n > 0) assert_true(together.iteration_s < apart.iteration_s);
            assert_true(together.exposed.bubble >= 0);
            pc_iteration_free(&together);
            pc_iteration_free(&apart);
        }
}

static void check_near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-12 * expected)) fail_msg("%.15g; expected %.15g", found, expected);
}

/* A backward pass of these schedules is either one BW or a B and a W: all in all they do the work of 1F1B and send the
 * same inside passes. A microbatch crosses p - 1 borders of stages there and back; in a V, whose turn is on one stage,
 * 2 (p - 1). The gradient of a tied embedding would come on top. */
static void test_backward_passes_count_once(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        double borders;
    } cases[] = {{"zb-v", 2}, {"dualpipe-v", 2}, {"dualpipe", 1}};
    for (int n = 0; n < 3; n++) {
        pc_iteration_spec of_one = spec_of("1f1b", 2, false), of_other = spec_of(cases[n].schedule, 2, false);
        of_one.model.is_tied = of_other.model.is_tied = false;
        pc_iteration one = run_spec(&of_one), other = run_spec(&of_other);
        check_near(other.hardware_flops, one.hardware_flops);
        check_near(other.sent.tp_bytes, one.sent.tp_bytes);
        check_near(other.sent.pp_bytes, cases[n].borders * one.sent.pp_bytes);
        pc_iteration_free(&other);
        pc_iteration_free(&one);
    }
}

/* The bubble is what is left of the iteration beside work and communication. Counted twice, the backward passes would
 * leave none, and the error of a sum would be half as much again, where it is that of ZB-V's passes. */
static void test_bubble_is_left(void **state) {
    (void)state;
    pc_iteration x = run("dualpipe-v", 2, false);
    pc_iteration zb = run("zb-v", 2, false);
    assert_true(x.exposed.bubble > 0);
    assert_true(x.standard_error_s < 1.1 * zb.standard_error_s);
    pc_iteration_free(&zb);
    pc_iteration_free(&x);
}

/* Kernels that slow down beside communication hide less of it. */
static void test_slowdown(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of("dualpipe-v", 2, true);
    pc_iteration before = run_spec(&spec);
    spec.overlap_slowdown = 0.3;
    pc_iteration slowed = run_spec(&spec);
    assert_true(slowed.replay.device_busy_ps[1] > before.replay.device_busy_ps[1]);
    pc_iteration_free(&slowed);
    pc_iteration_free(&before);
}

/* ZeRO 2 with reductions behind each backward pass, over links that are slow on some days: a pair hides the same of its
 * passes then, and the engine finds the same days. */
static void test_reductions_of_bad_days(void **state) {
    (void)state;
    static const char *const names[] = {"1f1b-interleaved-overlap", "dualpipe", "dualpipe-v"};
    for (int n = 0; n < 3; n++) {
        pc_iteration_spec spec = spec_of(names[n], 2, true);
        spec.cut.zero = 2;
        spec.overlaps_gradients = false;
        spec.jitter = 0.1;
        spec.bad_days =
            (pc_bad_days){.samples = 3, .link_jitter = 0.3, .bad_links = 2, .bad_factor = 0.25, .slow_factor = 1};
        pc_iteration shortcut = run_spec(&spec);
        spec.engine = PC_ENGINE_EVENTS;
        pc_iteration events = run_spec(&spec);
        for (int i = 0; i < 3; i++) {
            assert_true(pc_time_to_seconds(shortcut.sample_ps[i]) > shortcut.bad_days.good_s);
            assert_int_equal(events.sample_ps[i], shortcut.sample_ps[i]);
        }
        pc_iteration_free(&events);
        pc_iteration_free(&shortcut);
    }
}

/* ---- by operations ---- */

/* One stage, F beside the BW before. Little meets: exchanges take turns, or else, without experts, all collectives do.
 * Gradients come behind all passes. */
static pc_iteration_spec draw_alone(test_random *random, bool has_experts) {
    pc_iteration_spec spec = random_spec(random);
    spec.generator = pc_generator_find("1f1b-interleaved-overlap");
    spec.cut.pp = spec.cut.chunks = 1;
    spec.cut.cp = spec.cut.cp_a2a = 0;
    spec.cut.dp = has_experts ? (int)test_between(random, 2, 8) & ~1 : 1;
    spec.cut.tp = has_experts ? 1 : 1 << test_between(random, 1, 3);
    spec.cut.sequence_parallel = spec.cut.tp > 1;
    spec.cut.zero = 0;
    spec.cut.microbatches = test_between(random, 2, 4);
    spec.overlaps_gradients = false;
    spec.overlaps_tp = test_between(random, 0, 1);
    spec.overlaps_pairs = true;
    spec.delays_weights = test_between(random, 0, 1);
    spec.overlap_slowdown = test_between(random, 0, 1) ? 0.2 : 0;
    spec.machine.gpu.launch_s *= (double)test_between(random, 0, 12);
    return spec;
}

static pc_time pair_saves(const pc_iteration_spec *spec) {
    pc_costs costs;
    assert_int_equal(pc_iteration_costs(spec, NULL, &costs, NULL), PC_OK);
    int64_t at = pc_costs_pair_index(&costs, 0, (pc_pass){1, 0, PC_PASS_F}, (pc_pass){0, 0, PC_PASS_BW});
    pc_time saves = costs.pair_apart_ps[at] - costs.pair_own_ps[at];
    pc_costs_free(&costs);
    return saves;
}

static void test_operations_alone_are_the_pair(void **state) {
    (void)state;
    test_random random = {61};
    long hidden = 0, folded = 0;
    for (long i = 0; i < test_cases(80, 800); i++) {
        pc_iteration_spec spec = draw_alone(&random, i % 2);
        if (i % 2) folded += random_folded_experts(&random, &spec);
        if (spec.cut.tp > 1 && i % 2) continue; /* what was folded may be cut, and then meets */
        pc_iteration passes = run_spec(&spec);
        spec.network = PC_NETWORK_FLOWS;
        spec.granularity = PC_GRANULARITY_OPERATIONS;
        pc_iteration operations = run_spec(&spec);
        /* A collective that its own pass's kernels hide is on its way longer than its turn, and may meet the next one.
         * So may one that waits with the delayed products, whose turn is among the kernels. */
        bool can_meet = spec.cut.tp > 1 && (spec.overlaps_tp || spec.delays_weights);
        double more = operations.iteration_s / passes.iteration_s - 1;
        if (more < -1e-7 || more > (can_meet ? 0.05 : 1e-7))
            fail_msg("%ld: %.12g s by operations, %.12g by passes", i, operations.iteration_s, passes.iteration_s);
        hidden += pair_saves(&spec) > 0;
        pc_iteration_free(&passes);
        pc_iteration_free(&operations);
    }
    print_message("%ld hide something, %ld with folded experts\n", hidden, folded);
    assert_true(test_saw(hidden, 20) && test_saw(folded, 5));
}

/* Every allocation is refused once: an answer, and nothing leaks (the sanitizers look). */
static void test_without_memory(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of("1f1b-interleaved-overlap", 2, true);
    spec.cut.pp = spec.cut.chunks = 1;
    spec.cut.microbatches = 2;
    spec.model.layers = 1;
    spec.delays_weights = true;
    spec.network = PC_NETWORK_FLOWS;
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    long before = pc_alloc_count();
    pc_iteration iteration = run_spec(&spec);
    pc_iteration_free(&iteration);
    long count = pc_alloc_count() - before;
    for (long i = 0; i < count; i++) {
        pc_error error = {0};
        pc_alloc_fail_after(i);
        assert_int_equal(pc_iteration_run(&spec, NULL, true, &iteration, &error), PC_ERROR_NO_MEMORY);
        pc_alloc_fail_after(-1);
    }
}

static void expect_refused(const pc_iteration_spec *spec, const char *message) {
    pc_iteration iteration;
    pc_error error = {0};
    assert_int_equal(pc_iteration_run(spec, NULL, false, &iteration, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_refused(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of("1f1b", 2, true);
    expect_refused(&spec, "overlap.moe_expert_parallel_comm beside a schedule without pairs of F and BW; expected "
                          "1f1b-interleaved-overlap, dualpipe or dualpipe-v");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hides_communication_alone),
        cmocka_unit_test(test_backward_passes_count_once),
        cmocka_unit_test(test_bubble_is_left),
        cmocka_unit_test(test_slowdown),
        cmocka_unit_test(test_reductions_of_bad_days),
        cmocka_unit_test(test_operations_alone_are_the_pair),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
