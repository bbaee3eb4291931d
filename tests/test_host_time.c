/* What the host takes for a pass of an eager program, by algebra and by a count of a layer's operations. */
#include "models/training/host_time.h"

#include "models/cost/roofline.h"
#include "models/training/pass_costs.h"
#include "sweep/run_profiles.h"
#include "tests/scenario_files.h"

#include <math.h>

/* Microseconds, so that sums of them tell how often each was counted. */
static const double module_s = 1000e-6, expert_s = 20e-6, launch_s = 5e-6;

static void assert_near(double got, double expected) {
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected) + 1e-15)) fail_msg("%.12g, not %.12g", got, expected);
}

/* ---- one operation ---- */

static void test_an_operation(void **state) {
    (void)state;
    pc_iteration_spec spec = {.counts_modules = true, .machine.gpu = {.module_s = module_s, .expert_s = expert_s}};
    pc_outline outline = {.spec = &spec, .cost = {.launch_s = launch_s}};
    pc_operation plain = {.launches = 3}, grouped = {.launches = 16, .is_by_expert = true}, none = {.launches = 0};
    pc_operation within = {.launches = 2, .is_within = true};
    assert_near(pc_host_operation_s(&outline, &plain, 0), module_s + 2 * launch_s);
    assert_near(pc_host_operation_s(&outline, &grouped, 0), module_s + 15 * expert_s);
    assert_near(pc_host_operation_s(&outline, &within, 0), 2 * launch_s);
    assert_near(pc_host_operation_s(&outline, &none, 1), 0);
    assert_near(pc_host_operation_s(&outline, &plain, 1), 1 + 2 * launch_s);
    spec.machine.gpu.module_s = spec.machine.gpu.expert_s = 1e-6; /* nothing is faster than a launch */
    assert_near(pc_host_operation_s(&outline, &grouped, 0), 16 * launch_s);
    spec.machine.gpu.module_s = module_s;
    spec.counts_modules = false;
    assert_near(pc_host_operation_s(&outline, &grouped, 0), 16 * launch_s);
    spec.counts_modules = true;
    outline.cost.launch_s = 0; /* a captured iteration */
    assert_near(pc_host_operation_s(&outline, &grouped, 0), 0);
}

/* ---- a layer ---- */

static const char *const format = "scenario: host\n"
                                  "title: layers of 128 experts, 16 a rank\n"
                                  "setting:\n"
                                  "  model: {from: qwen3-30b-a3b, layers: %d, precision: %s}\n"
                                  "  machine: dgx-b200\n"
                                  "  gpus: 8\n"
                                  "  ep: 8\n"
                                  "  microbatches: 4\n"
                                  "  moe_token_dispatcher_type: flex\n"
                                  "  moe_flex_dispatcher_backend: hybridep\n"
                                  "  host_modules: true\n"
                                  "%s";

typedef struct host {
    double f_s, bw_s;             /* of the passes */
    double f_kernel_s, f_compute; /* F's */
} host;

static host of(int layers, const char *precision, const char *more, double module) {
    char text[1024];
    pc_error error = {0};
    pc_outline outline;
    pc_operations f, bw;
    snprintf(text, sizeof text, format, layers, precision, more);
    pc_scenario *scenario = load_text(text);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_gpu *gpu = &spec.iteration.machine.gpu;
    gpu->module_s = module, gpu->expert_s = expert_s, gpu->launch_s = launch_s;
    const pc_cost_model cost = pc_roofline(gpu);
    if (pc_outline_make(&spec.iteration, &cost, &outline, &error)) fail_msg("%s", error.message);
    const pc_part *part = &outline.part_costs[0].part;
    const pc_pass_cost *pass = &outline.part_costs[0].pass[PC_PASS_F];
    assert_int_equal(pc_pass_operations(&spec.iteration.model, &outline.cut, part, PC_PASS_F, false, &f, NULL), PC_OK);
    assert_int_equal(pc_pass_operations(&spec.iteration.model, &outline.cut, part, PC_PASS_BW, false, &bw, NULL),
                     PC_OK);
    host found = {pc_host_pass_s(&outline, &f), pc_host_pass_s(&outline, &bw), pass->kernel_s, pass->compute_s};
    pc_outline_free(&outline);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    return found;
}

/* Both ways through one of four layers more than two have. */
static host layer(const char *precision, const char *more) {
    host two = of(2, precision, more, module_s), four = of(4, precision, more, module_s);
    return (host){.f_s = (four.f_s - two.f_s) / 2, .bw_s = (four.bw_s - two.bw_s) / 2};
}

/* F in 16 bits: norm; query, key and value; their norms; rotation; attention; output; residual; norm; router; scores;
 * dispatch; permute; up; activation; down; unpermute; combine; residual. Further launches: a norm, a rotation, three of
 * scores. Further experts: 15 of each product.
 * In MXFP8 a cast in front of each of the four products, two of them by expert. */
static void test_counts_forward(void **state) {
    (void)state;
    assert_near(layer("bf16", "").f_s, 18 * module_s + 2 * 15 * expert_s + 5 * launch_s);
    assert_near(layer("mxfp8", "").f_s, 22 * module_s + 4 * 15 * expert_s + 5 * launch_s);
}

/* B and W of experts in 16 bits: combine; permute; down for input and weights; activation; up for both; unpermute;
 * dispatch; scores; router for both; their sum; norm; residual's sum. Of attention: output for both; attention;
 * rotation; norms of queries and keys; the order of gradients; query, key and value for both; norm; residual's sum.
 * Further launches: three of scores, two of each of two norms, two of attention, one of rotation, five of two norms. */
static void test_counts_backward(void **state) {
    (void)state;
    assert_near(layer("bf16", "").bw_s, 25 * module_s + 4 * 15 * expert_s + 15 * launch_s);
    assert_near(layer("mxfp8", "").bw_s, 29 * module_s + 6 * 15 * expert_s + 15 * launch_s);
}

/* What finds the largest number of a tensor belongs to its cast: launches alone, of two plain and 2 x 16 in F. */
static void test_amax_is_no_module(void **state) {
    (void)state;
    host rows = layer("fp8-current", ""), blocks = layer("mxfp8", "");
    assert_near(rows.f_s - blocks.f_s, (2 + 2 * 16) * launch_s);
}

/* A graph is one operation. F: the seven of attention's half up to the residual are one, with a further norm and a
 * further rotation; the router's product and its scores are one, with three further launches. B and W: three are. */
static void test_graphs(void **state) {
    (void)state;
    static const char *const attn = "  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: [attn]\n";
    static const char *const router = "  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: [moe_router]\n";
    static const char *const both =
        "  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: [attn, moe_router, moe_preprocess]\n";
    double f_s = layer("bf16", "").f_s, bw_s = layer("bf16", "").bw_s;
    assert_near(f_s - layer("bf16", attn).f_s, 6 * module_s + 2 * launch_s);
    assert_near(f_s - layer("bf16", router).f_s, 1 * module_s + 3 * launch_s);
    assert_near(f_s - layer("bf16", both).f_s, 7 * module_s + 5 * launch_s);
    assert_near(bw_s - layer("bf16", router).bw_s, 2 * module_s + 3 * launch_s);
    assert_near(of(4, "bf16", "  cuda_graph_impl: full_iteration\n", module_s).f_s, 0);
}

/* A pass is as long as its host where that is slower, and as its kernels where they are. */
static void test_the_longer_counts(void **state) {
    (void)state;
    host slow = of(4, "bf16", "", 10e-3), fast = of(4, "bf16", "", 1e-6);
    assert_true(slow.f_s > slow.f_kernel_s);
    assert_near(slow.f_compute, slow.f_s);
    assert_true(fast.f_s < fast.f_kernel_s && fast.f_compute >= fast.f_kernel_s && fast.f_compute < slow.f_compute);
    assert_near(slow.f_kernel_s, fast.f_kernel_s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_operation),    cmocka_unit_test(test_counts_forward),
        cmocka_unit_test(test_counts_backward), cmocka_unit_test(test_amax_is_no_module),
        cmocka_unit_test(test_graphs),          cmocka_unit_test(test_the_longer_counts)};
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
