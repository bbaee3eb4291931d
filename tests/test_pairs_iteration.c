/* Iterations whose schedule has pairs of passes that run together: what they gain, and what refuses them. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/training/iteration.h"
#include "tests/iteration_example.h"

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
    spec = spec_of("dualpipe", 2, true);
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    expect_refused(&spec, "overlap.moe_expert_parallel_comm beside granularity operations; expected passes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hides_communication_alone),
        cmocka_unit_test(test_backward_passes_count_once),
        cmocka_unit_test(test_bubble_is_left),
        cmocka_unit_test(test_slowdown),
        cmocka_unit_test(test_reductions_of_bad_days),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
