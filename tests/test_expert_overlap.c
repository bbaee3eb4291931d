/* What exchanges of experts hide behind: shared experts, another replica's experts across, and who waits for whom. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/training/expand_replicas.h"
#include "models/training/host_waits.h"
#include "models/training/outline_experts.h"
#include "models/training/pass_costs.h"
#include "tests/iteration_example.h"

#include <math.h>

/* The small GPT with eight experts a layer, two for each token, and shared ones. */
static pc_iteration_spec spec_of(pc_dispatcher dispatcher, bool overlaps) {
    pc_iteration_spec spec = example_spec();
    spec.model.experts = (pc_experts){.num_experts = 8, .topk = 2, .ffn_hidden = 2048, .shared_ffn_hidden = 1024};
    spec.machine.gpu.processors = 132;
    spec.cut.tp = 1;
    spec.cut.sequence_parallel = false;
    spec.cut.dp = 16;
    spec.cut.ep = 4;
    spec.cut.etp = 1;
    spec.cut.dispatcher = dispatcher;
    spec.cut.overlaps_shared = overlaps;
    return spec;
}

static pc_outline outline_of(const pc_iteration_spec *spec) {
    pc_outline outline = {0};
    pc_error error = {0};
    if (pc_outline_check(spec, &error) || pc_outline_make(spec, NULL, &outline, &error)) fail_msg("%s", error.message);
    return outline;
}

/* ---- shared experts ---- */

static double seconds_of(const pc_outline *outline, const pc_operation *x) {
    return outline->cost.kernel(outline->cost.self, x).seconds;
}

static bool is_of_shared(const pc_operation *x) {
    return strncmp(x->name, "shared_", 7) == 0;
}

/* Each exchange c of a layer, with the shared kernels k behind it, which lose s of their speed beside it: k is over
 * after k + s c if that is c or more, and else after k / (1 - s). Adds what c and k come to over k. */
static double exposed(const pc_outline *outline, const pc_operations *made, double share) {
    double sum = 0;
    for (int i = 0; i < made->count; i++) {
        const pc_operation *x = &made->list[i];
        if (!pc_operation_is_exchange(x)) continue;
        double c = pc_outline_course(outline, x).seconds, k = 0;
        assert_true(x->can_overlap && x->beside > 0);
        for (int n = 1; n <= x->beside; n++) {
            assert_true(is_of_shared(&made->list[i + n]));
            k += seconds_of(outline, &made->list[i + n]);
        }
        double together = k / (1 - share) <= c ? c : k + share * c;
        sum += (double)x->repeat * (together - k);
    }
    return sum;
}

static void test_shared_experts_hide_exchanges(void **state) {
    (void)state;
    const struct {
        pc_dispatcher dispatcher;
        int deepep_sms, hybridep_sms;
        double share;
    } cases[] = {{PC_DISPATCHER_ALLTOALL, 24, 32, 0},
                 {PC_DISPATCHER_DEEPEP, 0, 0, 20 / 132.0},
                 {PC_DISPATCHER_DEEPEP, 24, 32, 24 / 132.0},
                 {PC_DISPATCHER_HYBRIDEP, 0, 0, 16 / 132.0},
                 {PC_DISPATCHER_HYBRIDEP, 24, 32, 32 / 132.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_iteration_spec apart = spec_of(cases[i].dispatcher, false), beside = spec_of(cases[i].dispatcher, true);
        beside.cut.deepep_sms = cases[i].deepep_sms;
        beside.cut.hybridep_sms = cases[i].hybridep_sms;
        pc_outline before = outline_of(&apart), after = outline_of(&beside);
        const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_BW};
        for (int k = 0; k < 2; k++) {
            pc_operations made;
            const pc_pass_cost *x = &before.part_costs[0].pass[kinds[k]], *y = &after.part_costs[0].pass[kinds[k]];
            assert_int_equal(
                pc_pass_operations(&beside.model, &after.cut, &after.part_costs[0].part, kinds[k], false, &made, NULL),
                PC_OK);
            /* What the GPU waits for launches hides exchanges; what it waits for counts of tokens does not. */
            double idle_s = y->compute_s - y->kernel_s - pc_host_waits_s(&after, &made);
            double expected = exposed(&after, &made, cases[i].share) - idle_s;
            if (!(fabs(y->ep_s - fmax(expected, 0)) < 1e-12)) fail_msg("%g, expected %g", y->ep_s, expected);
            assert_true(fabs(y->kernel_s - x->kernel_s) < 1e-12 && y->flops == x->flops);
            assert_true(y->ep_s < x->ep_s && y->ep_bytes == x->ep_bytes);
        }
        pc_outline_free(&after);
        pc_outline_free(&before);
    }
}

static void expect_refused(const pc_iteration_spec *spec, const char *message) {
    pc_error error = {0};
    assert_int_equal(pc_outline_check(spec, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_refusals(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(PC_DISPATCHER_ALLGATHER, true);
    expect_refused(&spec, "moe_shared_expert_overlap with dispatcher allgather; expected alltoall or flex");
    spec = spec_of(PC_DISPATCHER_ALLTOALL, true);
    spec.model.experts.shared_ffn_hidden = 0;
    expect_refused(&spec, "moe_shared_expert_overlap with a model without shared experts; expected "
                          "moe_shared_expert_intermediate_size");
    spec = spec_of(PC_DISPATCHER_ALLTOALL, true);
    spec.cut.recompute = PC_RECOMPUTE_MODULES;
    spec.cut.recompute_modules = PC_RECOMPUTES_SHARED_EXPERTS;
    expect_refused(&spec, "moe_shared_expert_overlap with recompute_modules shared_experts; expected one of the two");
}

/* ---- two replicas in a pipeline ---- */

/* Four of 16 replicas share experts, so that four have the same ones, and with two ways through the pipeline eight. */
static void test_replicas_across(void **state) {
    (void)state;
    pc_iteration_spec one = spec_of(PC_DISPATCHER_ALLTOALL, false), two = one;
    two.generator = pc_generator_find("dualpipe");
    two.cut.chunks = 2;
    pc_outline before = outline_of(&one), after = outline_of(&two);
    assert_int_equal(before.experts.replicas.ranks, 4);
    assert_int_equal(after.experts.replicas.ranks, 8);
    assert_int_equal(after.experts.ep.ranks, 4);
    assert_int_equal(after.dp.ranks, 2 * before.dp.ranks);
    pc_outline_free(&after);
    pc_outline_free(&before);
    pc_iteration iteration = run_spec(&two);
    assert_true(iteration.exposed.ep > 0);
    pc_iteration_free(&iteration);
}

/* ---- who waits for whom ---- */

static void test_replicas_in_step(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(PC_DISPATCHER_ALLTOALL, false);
    const struct {
        int tp, cp, ep, etp, in_step;
    } cases[] = {{1, 1, 4, 1, 4}, {2, 1, 4, 1, 2}, {4, 1, 4, 1, 1}, {1, 2, 8, 1, 4}, {2, 1, 4, 2, 4}, {2, 1, 3, 1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spec.cut.tp = cases[i].tp;
        spec.cut.cp = cases[i].cp;
        spec.cut.ep = cases[i].ep;
        spec.cut.etp = cases[i].etp;
        assert_int_equal(pc_cut_replicas_in_step(&spec.model, &spec.cut), cases[i].in_step);
    }
    spec.model.experts.num_experts = 0;
    assert_int_equal(pc_cut_replicas_in_step(&spec.model, &spec.cut), 1);
}

/* Drawn alone, each replica has its own times; with experts over four of them each pass has the longest of four. */
static void test_passes_take_the_longest_in_step(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(PC_DISPATCHER_ALLTOALL, false);
    pc_outline outline = outline_of(&spec);
    pc_schedule schedule;
    pc_costs costs;
    assert_int_equal(pc_schedule_generate(spec.generator, spec.cut.pp, spec.cut.microbatches, 1, &schedule, NULL),
                     PC_OK);
    assert_int_equal(pc_outline_costs(&outline, 0, &costs, NULL), PC_OK);
    int64_t passes = schedule.offsets[schedule.devices];
    pc_expansion how = {.replicas = 16, .jitter = 0.1, .seed = 5};
    pc_time *alone = calloc(16 * (size_t)passes, sizeof *alone),
            *in_step = calloc(16 * (size_t)passes, sizeof *in_step);
    assert_int_equal(pc_expand_draw(&schedule, &costs, &how, alone, NULL), PC_OK);
    how.outline = &outline;
    assert_int_equal(pc_expand_draw(&schedule, &costs, &how, in_step, NULL), PC_OK);
    for (int r = 0; r < 16; r++)
        for (int64_t i = 0; i < passes; i++) {
            pc_time longest = 0;
            for (int k = 0; k < 4; k++) {
                pc_time other = alone[(r / 4 * 4 + k) * passes + i];
                if (other > longest) longest = other;
            }
            assert_int_equal(in_step[r * passes + i], longest);
        }
    free(in_step);
    free(alone);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
    pc_outline_free(&outline);
}

/* One slow GPU slows the four replicas that share experts with it, and no more than the slowest alone would. */
static void test_samples_in_step(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(PC_DISPATCHER_ALLTOALL, false);
    spec.bad_days = (pc_bad_days){.samples = 20, .gpu_jitter = 0.05, .slow_factor = 1};
    pc_iteration in_step = run_spec(&spec);
    spec.engine = PC_ENGINE_EVENTS;
    pc_iteration events = run_spec(&spec);
    for (int i = 0; i < 20; i++) assert_int_equal(in_step.sample_ps[i], events.sample_ps[i]);
    assert_true(in_step.bad_days.iteration_mean_s > in_step.bad_days.good_s);
    pc_iteration_free(&events);
    pc_iteration_free(&in_step);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_experts_hide_exchanges),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_replicas_across),
        cmocka_unit_test(test_replicas_in_step),
        cmocka_unit_test(test_passes_take_the_longest_in_step),
        cmocka_unit_test(test_samples_in_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
