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
        cmocka_unit_test(test_slowdown),
        cmocka_unit_test(test_reductions_of_bad_days),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
