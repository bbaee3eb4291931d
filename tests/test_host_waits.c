/* What a pass loses because the host waits for counts of tokens, against sums of its operations. */
#include "models/training/host_waits.h"

#include "models/cost/roofline.h"
#include "models/training/pass_costs.h"
#include "sweep/run_profiles.h"
#include "tests/scenario_files.h"

#include <math.h>

static const char *const format = "scenario: waits\n"
                                  "title: four layers of experts\n"
                                  "setting:\n"
                                  "  model: {from: %s, layers: 4}\n"
                                  "  machine: dgx-h100\n"
                                  "  gpus: 8\n"
                                  "  ep: %d\n"
                                  "  microbatches: 1\n"
                                  "%s";

typedef struct waits {
    double f_s, bw_s;  /* of the passes */
    double f_lost_s;   /* what F's time is beyond its kernels and exchanges */
    double last_s;     /* what comes of all operations behind the wait, if the host decides */
    double kernel_s;   /* F's */
    double launched_s; /* F's launches */
} waits;

/* Of every layer: the copy of the counts, then each operation's call and its further kernels, less what the GPU has
 * done before the last one. */
static double host_decides(const pc_outline *outline, const pc_operations *f) {
    const pc_gpu *gpu = &outline->spec->machine.gpu;
    double host_s = gpu->kernel_s + gpu->launch_s, before_s = 0, done_s = 0;
    bool is_behind = false;
    for (int i = 0; i < f->count; i++) {
        const pc_operation *x = &f->list[i];
        if (x->kind == PC_OPERATION_DISPATCH) is_behind = true;
        if (!is_behind || x->repeat != 4) continue;
        before_s = done_s;
        host_s += gpu->call_s + (x->launches - 1) * gpu->launch_s;
        done_s += pc_operation_is_collective(x) ? pc_outline_course(outline, x).seconds
                                                : outline->cost.kernel(outline->cost.self, x).seconds;
    }
    return is_behind ? 4 * (host_s - before_s) : 0;
}

static waits of(const char *model, int ep, const char *more, double call_s) {
    char text[1024];
    pc_error error = {0};
    pc_outline outline;
    pc_operations f, bw;
    snprintf(text, sizeof text, format, model, ep, more);
    pc_scenario *scenario = load_text(text);
    pc_run_spec spec = spec_of(scenario, 0);
    if (call_s > 0) spec.iteration.machine.gpu.call_s = call_s;
    const pc_cost_model cost = pc_roofline(&spec.iteration.machine.gpu);
    if (pc_outline_make(&spec.iteration, &cost, &outline, &error)) fail_msg("%s", error.message);
    const pc_part *part = &outline.part_costs[0].part;
    const pc_pass_cost *pass = &outline.part_costs[0].pass[PC_PASS_F];
    assert_int_equal(pc_pass_operations(&spec.iteration.model, &outline.cut, part, PC_PASS_F, false, &f, NULL), PC_OK);
    assert_int_equal(pc_pass_operations(&spec.iteration.model, &outline.cut, part, PC_PASS_BW, false, &bw, NULL),
                     PC_OK);
    waits found = {.f_s = pc_host_waits_s(&outline, &f),
                   .bw_s = pc_host_waits_s(&outline, &bw),
                   .f_lost_s = pass->compute_s - pass->kernel_s,
                   .last_s = host_decides(&outline, &f),
                   .kernel_s = pass->kernel_s,
                   .launched_s = pc_cost_pass(&outline.cost, &f).launch_bound_s};
    pc_outline_free(&outline);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    return found;
}

static void assert_near(double got, double expected) {
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected) + 1e-15)) fail_msg("%.12g, not %.12g", got, expected);
}

/* A host that takes 10 ms a call: nothing that the GPU does is as long, so the last operation decides. */
static void test_slow_host(void **state) {
    (void)state;
    static const char *const dispatchers[] = {"", "  moe_token_dispatcher_type: allgather\n",
                                              "  moe_token_dispatcher_type: flex\n"};
    for (size_t i = 0; i < sizeof dispatchers / sizeof *dispatchers; i++) {
        waits found = of("mixtral-8x7b", 8, dispatchers[i], 1e-2);
        assert_true(found.last_s > 4 * 1e-2);
        assert_near(found.f_s, found.last_s);
        assert_near(found.f_lost_s, found.f_s);
    }
}

/* A host as fast as can be: what is lost is the wait itself, the copy and the first operation's call, four times. */
static void test_fast_host(void **state) {
    (void)state;
    waits found = of("mixtral-8x7b", 8, "", 5e-6);
    assert_near(found.f_s, 4 * (3e-6 + 5e-6 + 5e-6));
    assert_near(found.f_lost_s, fmax(found.f_s, found.launched_s - found.kernel_s));
}

/* B finds the counts, but where it makes experts again; layers without experts, whole iterations that are captured and
 * capacities that are filled up have none to wait for; nor does a rank that has all experts send any. */
static void test_who_waits(void **state) {
    (void)state;
    assert_near(of("mixtral-8x7b", 8, "", 1e-2).bw_s, 0);
    waits again = of("mixtral-8x7b", 8, "  recompute: selective\n  recompute_modules: [moe]\n", 1e-2);
    assert_true(again.bw_s > 0.5 * again.f_s);
    assert_near(of("llama3-8b", 1, "", 1e-2).f_s, 0);
    assert_near(of("mixtral-8x7b", 8, "  cuda_graph_impl: full_iteration\n", 1e-2).f_s, 0);
    assert_near(
        of("mixtral-8x7b, moe_expert_capacity_factor: 1, moe_pad_expert_input_to_capacity: true", 8, "", 1e-2).f_s, 0);
    assert_near(of("mixtral-8x7b", 1, "  zero: 3\n", 1e-2).f_s, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slow_host), cmocka_unit_test(test_fast_host),
                                       cmocka_unit_test(test_who_waits)};
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
