/* What is on the host: copies beside passes and within them, state and its step, by algebra. */
#include "tests/support.h"

#include "models/schedule/copy_levels.h"
#include "models/schedule/timing.h"
#include "models/training/outline.h"
#include "models/workload/offload_check.h"
#include "models/workload/offload_choice.h"
#include "models/workload/saved.h"
#include "tests/iteration_example.h"

#include <math.h>

/* ---- copies beside passes ---- */

/* F of 10 and BW of 20 ps of four microbatches, all F first. */
static void make_four(pc_time copy_ps, pc_schedule *schedule, pc_costs *costs) {
    const int64_t count = 8;
    assert_int_equal(pc_schedule_create("four", 1, 4, 1, PC_PLACEMENT_LINEAR, &count, schedule, NULL), PC_OK);
    for (int16_t i = 0; i < 4; i++) {
        schedule->passes[i] = (pc_pass){i, 0, PC_PASS_F};
        schedule->passes[4 + i] = (pc_pass){i, 0, PC_PASS_BW};
    }
    assert_int_equal(pc_costs_create(1, 1, costs, NULL), PC_OK);
    costs->duration_ps[PC_PASS_F] = 10;
    costs->duration_ps[PC_PASS_BW] = 20;
    costs->activation_bytes[0] = costs->activation_kept_bytes[0] = 1;
    assert_int_equal(pc_costs_add_copies(costs, NULL), PC_OK);
    costs->copies.out_ps[0] = costs->copies.back_ps[0] = copy_ps;
    costs->copies.bytes[0] = 8;
}

/* Copies of 15 ps leave at 25, 40, 55, 70. The first one back begins behind F of microbatch 2, at 30, and makes its
 * backward pass wait from 40 to 45; the others hide. One of 10 hides behind an F. Copies of 50 leave at 60, 110, 160,
 * 210, and are back 50 later: the last pass ends at 260 + 20. Two passes ahead copies of 15 begin at 25, when they have
 * left, and all hide; of those of 20 the first one is back at 50. */
static void test_times_of_copies(void **state) {
    (void)state;
    const struct {
        pc_time copy_ps, first_ps, end_ps;
        int32_t ahead;
    } cases[] = {{15, 45, 125, 1}, {10, 40, 120, 1}, {11, 41, 121, 1}, {50, 110, 280, 1},
                 {0, 40, 120, 1},  {15, 40, 120, 2}, {20, 50, 130, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_schedule schedule;
        pc_costs costs;
        pc_timing *timing;
        pc_timing_result result;
        make_four(cases[i].copy_ps, &schedule, &costs);
        costs.copies.ahead[0] = cases[i].ahead;
        assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
        assert_int_equal(pc_timing_run(timing, &schedule, &costs, &result, NULL), PC_OK);
        assert_int_equal(result.start_ps[4], cases[i].first_ps);
        assert_int_equal(result.end_ps[7], cases[i].end_ps);
        pc_timing_free(timing);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
}

/* Of 9 bytes a microbatch 8 go. F of 0 to 2 make 27; 8 leave at 25; at 30 F of 3 takes 9 and the first ones come back:
 * 36, as at 45. All four are on the host between their F and their backward passes. */
static void test_levels_of_copies(void **state) {
    (void)state;
    const pc_time times[] = {0, 10, 20, 25, 30, 30, 40, 45, 55, 65, 65, 70, 85, 85, 105, 125};
    const int64_t levels[] = {9, 18, 27, 19, 28, 36, 28, 36, 28, 19, 27, 19, 10, 18, 9, 0};
    pc_schedule schedule;
    pc_costs costs;
    pc_timing *timing;
    pc_timing_result result;
    pc_copy_levels found;
    make_four(15, &schedule, &costs);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run(timing, &schedule, &costs, &result, NULL), PC_OK);
    assert_int_equal(pc_copy_levels_make(&schedule, &costs, result.start_ps, result.end_ps, &found, NULL), PC_OK);
    assert_int_equal(found.count, sizeof times / sizeof *times);
    for (int64_t i = 0; i < found.count; i++) {
        assert_int_equal(found.time_ps[i], times[i]);
        assert_int_equal(found.level_bytes[i], levels[i]);
    }
    assert_int_equal(found.peak_bytes[0], 36);
    assert_int_equal(found.host_bytes[0], 32);
    pc_copy_levels_free(&found);
    pc_timing_free(timing);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* ---- activations of iterations ---- */

static const int64_t layer = INT64_C(34) * 1024 * 2048 / 2;

static pc_iteration_spec offloading(int32_t kinds, double link) {
    pc_iteration_spec spec = example_spec();
    spec.cut.offload.kinds = kinds;
    spec.cut.offload.fraction = 0.5;
    spec.cut.offload.optimizer_fraction = 1;
    spec.machine.host_link_bytes_per_s = link;
    spec.machine.host_memory_bytes_per_s = 400e9;
    return spec;
}

/* A first stage of 1F1B holds four microbatches. Over a fast link three of them at most: of the pass at work, of the
 * one before it, on its way out, and of the one behind it, on its way back. Of the others the embedding's mask stays.
 * The last stage, whose backward pass follows F at once, sends nothing. Nothing waits. */
static void test_full_offload(void **state) {
    (void)state;
    pc_iteration_spec none = offloading(0, 1e12), full = offloading(PC_OFFLOAD_FULL, 1e12);
    pc_iteration x = run_spec(&none), y = run_spec(&full);
    assert_true(x.iteration_s == y.iteration_s);
    assert_int_equal(x.memory[0].activations - y.memory[0].activations, 6 * layer);
    assert_int_equal(y.memory[0].host_bytes, 4 * 6 * layer);
    assert_int_equal(x.memory[3].activations, y.memory[3].activations);
    assert_int_equal(y.memory[3].host_bytes, 0);
    assert_int_equal(x.memory[0].host_bytes, 0);
    pc_iteration_free(&x);
    pc_iteration_free(&y);
}

/* Half of six layers; and of two chunks a device the first one. */
static void test_selective_offload(void **state) {
    (void)state;
    pc_iteration_spec selective = offloading(PC_OFFLOAD_SELECTIVE, 1e12);
    pc_iteration x = run_spec(&selective);
    assert_int_equal(x.memory[0].host_bytes, 4 * 3 * layer);
    pc_iteration_free(&x);
    selective.generator = pc_generator_find("1f1b-interleaved");
    selective.cut.chunks = 2;
    pc_outline made;
    assert_int_equal(pc_outline_make(&selective, NULL, &made, NULL), PC_OK);
    for (int d = 0; d < 4; d++) {
        assert_int_equal(pc_outline_part(&made, d, 0)->activation.offloaded, 3 * layer);
        assert_int_equal(pc_outline_part(&made, d, 1)->activation.offloaded, 0);
    }
    pc_outline_free(&made);
}

/* Of v chunks the first v times the fraction, and of the one where that ends so much of its layers, rounded up. */
static void test_layers_of_a_fraction(void **state) {
    (void)state;
    const struct {
        double fraction;
        int chunks;
        int64_t layers, expected[3];
    } cases[] = {{0.5, 3, 4, {4, 2, 0}},  {0.5, 3, 1, {1, 1, 0}},   {0.5, 2, 3, {3, 0, 0}}, {0.5, 1, 5, {3}},
                 {0, 2, 4, {0, 0}},       {1, 3, 7, {7, 7, 7}},     {0.25, 2, 4, {2, 0}},   {0.75, 2, 4, {4, 2}},
                 {0.1, 3, 10, {3, 0, 0}}, {0.7, 3, 10, {10, 10, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int part = 0; part < 4 * cases[i].chunks; part++) {
            pc_cut cut = {.pp = 4, .offload = {.kinds = PC_OFFLOAD_SELECTIVE, .fraction = cases[i].fraction}};
            assert_int_equal(pc_offloaded_layers(&cut, 4 * cases[i].chunks, part, cases[i].layers),
                             cases[i].expected[part / 4]);
        }
}

static void check_same(const pc_iteration *x, const pc_iteration *y) {
    assert_true(x->iteration_s == y->iteration_s);
    for (int d = 0; d < 4; d++) {
        assert_int_equal(x->memory[d].activations, y->memory[d].activations);
        assert_int_equal(x->memory[d].host_bytes, y->memory[d].host_bytes);
    }
}

/* All of it is `full`, and none of it is as without. */
static void test_ends_of_the_fraction(void **state) {
    static const char *const names[] = {"1f1b-interleaved", "gis", "gis-h", "zb-interleaved"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        int32_t kind = i % 2 ? PC_OFFLOAD_FULL : 0;
        pc_iteration_spec spec = offloading(PC_OFFLOAD_SELECTIVE, 20e9), other = offloading(kind, 20e9);
        spec.cut.offload.fraction = i % 2;
        spec.cut.chunks = other.cut.chunks = 2;
        spec.generator = other.generator = pc_generator_find(names[i / 2]);
        pc_iteration x = run_spec(&spec), y = run_spec(&other);
        check_same(&x, &y);
        pc_iteration_free(&x);
        pc_iteration_free(&y);
    }
}

/* A copy of so many of a stage's shortest passes hides behind so many, and behind no more than a round has. */
static void check_ahead(const char *name, double passes, int32_t expected) {
    pc_iteration_spec spec = offloading(PC_OFFLOAD_FULL, 1e12);
    pc_outline made;
    pc_costs costs;
    spec.generator = pc_generator_find(name);
    assert_int_equal(pc_outline_make(&spec, NULL, &made, NULL), PC_OK);
    double shortest = HUGE_VAL;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (pc_generator_has_kind(spec.generator, (pc_pass_kind)kind))
            shortest = fmin(shortest, pc_outline_pass_s(&made, 1, (pc_pass){0, 0, (int16_t)kind}));
    pc_outline_free(&made);
    spec.machine.host_link_bytes_per_s = 6.0 * (double)layer / (passes * shortest);
    assert_int_equal(pc_outline_make(&spec, NULL, &made, NULL), PC_OK);
    assert_int_equal(pc_outline_costs(&made, 0, &costs, NULL), PC_OK);
    assert_int_equal(costs.copies.ahead[1], expected);
    pc_costs_free(&costs);
    pc_outline_free(&made);
}

static void test_passes_ahead(void **state) {
    (void)state;
    check_ahead("1f1b", 0.9, 1);
    check_ahead("1f1b", 1.1, 2);
    check_ahead("1f1b", 5, 2);
    check_ahead("zb-h1", 1.9, 2);
    check_ahead("zb-h1", 2.1, 3);
    check_ahead("zb-h1", 5, 3);
}

/* PipeOffload over a fast link, of two chunks of three layers a stage. `held` chunks of what stays are there at most,
 * and of what goes no more than three: of the pass at work, on the way out, on the way back. Masks of the
 * embedding and what B leaves for W are less than a tenth of a chunk. It costs no time. */
static void check_pipeoffload(const char *name, double fraction, int64_t all, int64_t held) {
    pc_iteration_spec none = offloading(0, 1e12), part = offloading(PC_OFFLOAD_SELECTIVE, 1e12);
    part.cut.offload.fraction = fraction;
    none.cut.chunks = part.cut.chunks = 2;
    none.generator = part.generator = pc_generator_find(name);
    pc_iteration x = run_spec(&none), y = run_spec(&part);
    int64_t gone = x.memory[0].activations - y.memory[0].activations, chunk = 3 * layer;
    assert_true(gone <= (all - held) * chunk + chunk / 10 && gone >= (all - held - 3) * chunk);
    assert_true(x.iteration_s == y.iteration_s);
    pc_iteration_free(&x);
    pc_iteration_free(&y);
}

/* Stage 0 of 4. In groups of n it holds n + 4 chunks, of the last one alone min(n, 4). Microbatch by microbatch it
 * holds one more, and of the last chunk two, which live four slots of two. */
static void test_pipeoffload(void **state) {
    (void)state;
    check_pipeoffload("gis", 0.5, 8, 4);
    check_pipeoffload("gis", 1, 8, 0);
    check_pipeoffload("gis-h", 0.5, 6, 2);
    check_pipeoffload("gis-h", 1, 6, 0);
    check_pipeoffload("gis-uniform", 0.5, 9, 2);
    check_pipeoffload("gis-uniform", 1, 9, 0);
    check_pipeoffload("gis-h-uniform", 0.5, 7, 2);
}

/* A slow link sets the pace: the first stage sends all eight microbatches, one after the other, behind its first F. */
static void test_slow_link(void **state) {
    (void)state;
    pc_iteration_spec full = offloading(PC_OFFLOAD_FULL, 1e9);
    const double copy_s = 6.0 * (double)layer / 1e9;
    pc_iteration x = run_spec(&full), y;
    assert_true(x.iteration_s > 8 * copy_s && x.iteration_s < 12 * copy_s);
    full.machine.host_link_gpus = 2;
    y = run_spec(&full);
    assert_true(y.iteration_s > 16 * copy_s && y.iteration_s < 24 * copy_s);
    pc_iteration_free(&x);
    pc_iteration_free(&y);
}

/* Of a layer the input of the norm, 2sbh/t, queries, keys and values, 6sbh/t, and the context, 2sbh/t. All stages hold
 * less by that, and two layers' are on their way; W, where it is apart, finds them there again. */
static void test_fine_grained(void **state) {
    (void)state;
    const int64_t unit = INT64_C(1024) * 2048 / 2;
    static const char *const names[] = {"attn_norm",           "core_attn",  "attn_proj",
                                        "attn_norm+core_attn", "qkv_linear", "mlp_norm"};
    const int64_t units[] = {2, 6, 2, 8, 2, 2}, held[] = {4, 3, 2, 1};
    for (int i = 0; i < 6; i++) {
        pc_iteration_spec none = offloading(0, 1e15), fine = offloading(PC_OFFLOAD_FINE_GRAINED, 1e15);
        assert_int_equal(pc_offload_modules_parse(names[i], &fine.cut.offload.modules, NULL), PC_OK);
        pc_iteration x = run_spec(&none), y = run_spec(&fine);
        assert_true(x.iteration_s == y.iteration_s);
        for (int d = 0; d < 4; d++) {
            assert_int_equal(x.memory[d].activations - y.memory[d].activations, held[d] * 6 * units[i] * unit);
            if (d < 3) assert_int_equal(y.memory[d].buffers - x.memory[d].buffers, 2 * units[i] * unit);
            assert_int_equal(y.memory[d].host_bytes, held[d] * 6 * units[i] * unit);
        }
        pc_iteration_free(&x);
        pc_iteration_free(&y);
    }
}

/* F and BW take no less than their copies; W is left alone. */
static void test_time_within_passes(void **state) {
    (void)state;
    pc_iteration_spec fine = offloading(PC_OFFLOAD_FINE_GRAINED, 1e9);
    fine.cut.offload.modules = 1 << PC_MODULE_CORE_ATTN;
    pc_outline made;
    assert_int_equal(pc_outline_make(&fine, NULL, &made, NULL), PC_OK);
    double bytes = 6.0 * 6 * 1024 * 2048 / 2;
    check_within(made.part_costs[0].pass[PC_PASS_F].compute_s, bytes / 1e9, 1e-12);
    check_within(made.part_costs[0].pass[PC_PASS_BW].compute_s, bytes / 1e9, 1e-12);
    pc_outline_free(&made);
    pc_iteration_spec none = offloading(0, 1e9);
    pc_outline whole;
    fine.generator = none.generator = pc_generator_find("zb-h1");
    assert_int_equal(pc_outline_make(&fine, NULL, &made, NULL), PC_OK);
    assert_int_equal(pc_outline_make(&none, NULL, &whole, NULL), PC_OK);
    check_within(made.part_costs[0].pass[PC_PASS_B].compute_s, bytes / 1e9, 1e-12);
    assert_true(made.part_costs[0].pass[PC_PASS_W].compute_s < bytes / 1e9);
    assert_int_equal(made.part_costs[0].activation.taken, whole.part_costs[0].activation.taken);
    assert_int_equal(made.part_costs[0].activation.kept, whole.part_costs[0].activation.kept - (int64_t)bytes);
    pc_outline_free(&whole);
    pc_outline_free(&made);
}

/* ---- state ---- */

static double step_s(const pc_iteration_spec *spec, pc_device_outline *device) {
    pc_outline made;
    assert_int_equal(pc_outline_make(spec, NULL, &made, NULL), PC_OK);
    *device = made.device[1];
    pc_outline_free(&made);
    return (double)device->step_ps / 1e12;
}

/* A rank steps n parameters, an eighth of its stage's. The host has 16 bytes of each; gradients of 4 bytes go there,
 * the CPU moves 30, over an eighth of 400 GB/s, and weights of 2 come back. The GPU saves Adam's 30. */
static void test_optimizer_on_the_host(void **state) {
    (void)state;
    pc_iteration_spec none = offloading(0, 50e9), all = offloading(PC_OFFLOAD_OPTIMIZER, 50e9), half = all,
                      beside = all;
    pc_device_outline a, b, c, d;
    half.cut.offload.optimizer_fraction = 0.5;
    beside.cut.offload.overlaps_copies = true;
    double none_s = step_s(&none, &a), all_s = step_s(&all, &b), half_s = step_s(&half, &c),
           beside_s = step_s(&beside, &d);
    int64_t stepped = (a.parameter_count + 7) / 8;
    double n = (double)stepped, gpu_s = 30 / (2000e9 * 0.8);
    check_within(all_s - none_s, n * (6 / 50e9 + 30 / 50e9 - gpu_s), 1e-6);
    check_within(half_s - none_s, n / 2 * (6 / 50e9 + 30 / 50e9 - gpu_s), 1e-5);
    check_within(beside_s - none_s, n * (30 / 50e9 - gpu_s), 1e-6);
    assert_int_equal(b.fixed_optimizer, 0);
    check_within((double)c.fixed_optimizer, (double)a.fixed_optimizer / 2, 1e-6);
    assert_int_equal(b.host_bytes, 16 * (int64_t)n);
    assert_int_equal(b.fixed_parameters, a.fixed_parameters);
}

/* ZeRO 3's shares are on the host: nothing is left but buffers, each gather waits for its share, and each reduction
 * ends with it there. */
static void test_parameters_on_the_host(void **state) {
    (void)state;
    pc_iteration_spec none = offloading(0, 50e9), all = offloading(PC_OFFLOAD_PARAMETERS, 50e9);
    none.cut.zero = all.cut.zero = 3;
    pc_outline x, y;
    assert_int_equal(pc_outline_make(&none, NULL, &x, NULL), PC_OK);
    assert_int_equal(pc_outline_make(&all, NULL, &y, NULL), PC_OK);
    const pc_device_outline *a = &x.device[1], *b = &y.device[1];
    assert_int_equal(b->fixed_parameters + b->fixed_gradients + b->fixed_optimizer, 0);
    assert_int_equal(b->host_bytes, a->fixed_parameters + a->fixed_gradients + a->fixed_optimizer);
    double share = (double)a->parameter_count / 8 / 50e9;
    check_within((double)(y.chunks_of[1].gather_ps - x.chunks_of[1].gather_ps) * y.chunks_of[1].buckets / 1e12,
                 2 * share, 1e-6);
    check_within((double)(y.chunks_of[1].reduce_ps - x.chunks_of[1].reduce_ps) * y.chunks_of[1].buckets / 1e12,
                 4 * share, 1e-6);
    pc_outline_free(&x);
    pc_outline_free(&y);
}

/* ---- the host's room ---- */

static void test_host_memory(void **state) {
    (void)state;
    pc_iteration x;
    pc_iteration_spec spec = offloading(PC_OFFLOAD_FULL, 1e12);
    spec.machine.host_memory_bytes = 8 * 4 * 6 * layer;
    x = run_spec(&spec);
    pc_iteration_free(&x);
    spec.machine.host_memory_bytes -= 8;
    assert_int_equal(pc_iteration_run(&spec, NULL, false, &x, NULL), PC_OK);
    assert_int_equal(x.status, PC_RUN_OUT_OF_MEMORY);
    assert_int_equal(strncmp(x.message, "stage 0: host memory: ", 22), 0);
    pc_iteration_free(&x);
}

/* ---- what cannot be ---- */

static void expect_refusal(const pc_iteration_spec *spec, const char *message) {
    pc_iteration x = {0};
    pc_error error = {0};
    pc_code code = pc_iteration_run(spec, NULL, false, &x, &error);
    if (!code) assert_int_equal(x.status, PC_RUN_INFEASIBLE);
    assert_string_equal(code ? error.message : x.message, message);
    pc_iteration_free(&x);
}

/* ---- tensor by tensor ---- */

/* In units of s*b*h/t, which norms and dropout are cut by, too, a layer's tensors in the order of F are 2 2 6 2 1 2 2 8
 * 8 1, 34 in all. Of two layers' 45 the second keeps what is behind 2 + 2 + 6 and the mask's 1; a byte less leaves the
 * mask. Of 43 it leaves the 6, and takes 2, 2, 2, 1 and 2. */
static void test_tensors_that_fit(void **state) {
    (void)state;
    const int64_t unit = layer / 34;
    const int64_t cases[][2] = {{0, 0},          {unit - 1, 0},     {unit, 1},        {2 * unit - 1, 1},
                                {2 * unit, 2},   {34 * unit, 34},   {45 * unit, 45},  {45 * unit - 1, 44},
                                {43 * unit, 43}, {204 * unit, 204}, {999 * unit, 204}};
    pc_iteration_spec spec = offloading(PC_OFFLOAD_TENSORS, 1e15);
    pc_outline made;
    assert_int_equal(pc_outline_make(&spec, NULL, &made, NULL), PC_OK);
    const pc_part_cost *whole = pc_outline_part(&made, 1, 0);
    assert_int_equal(whole->activation.offloaded, 6 * layer);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_part_activation x = whole->activation;
        int64_t stays = 6 * layer - cases[i][1] * unit;
        pc_offload_limit(&spec.model, &made.cut, &whole->part, cases[i][0], &x);
        assert_int_equal(6 * layer - x.offloaded, stays);
        assert_int_equal(x.taken - whole->activation.taken, stays);
        assert_int_equal(x.kept - whole->activation.kept, stays);
        assert_int_equal(x.offloaded_b + x.b_frees, whole->activation.offloaded_b + whole->activation.b_frees);
    }
    pc_outline_free(&made);
}

/* A link takes k times as long for all bytes of a part as its backward pass. For k up to 1 all go. For 1.7 it carries
 * 120 units of the 204: three layers, and of the next one 2, 2, 6, 2, 1, 2, 2 and 1. Nothing waits; at k = 3.4 all of
 * them would. Over one that carries no mask none go. The last stage's backward pass follows F. */
static void test_tensors_hide(void **state) {
    (void)state;
    pc_iteration_spec none = offloading(0, 1e12), part = offloading(PC_OFFLOAD_TENSORS, 1e12);
    pc_outline made;
    pc_iteration x = run_spec(&none);
    assert_int_equal(pc_outline_make(&none, NULL, &made, NULL), PC_OK);
    const pc_part_cost *between = pc_outline_part(&made, 1, 0);
    double seconds = between->pass[PC_PASS_BW].compute_s + between->pass[PC_PASS_BW].tp_s;
    pc_outline_free(&made);
    const double slower[] = {0.3, 1.7, 1e4};
    const int64_t units[] = {204, 120, 0};
    for (int i = 0; i < 3; i++) {
        part.machine.host_link_bytes_per_s = 6.0 * (double)layer / (slower[i] * seconds) * (1 + 1e-9);
        pc_iteration y = run_spec(&part);
        assert_int_equal(y.memory[1].host_bytes, 3 * units[i] * (layer / 34));
        assert_int_equal(y.memory[3].host_bytes, 0);
        assert_true(y.iteration_s == x.iteration_s);
        assert_true(y.memory[0].activations <= x.memory[0].activations);
        if (i == 0) assert_true(y.memory[0].activations < x.memory[0].activations);
        if (units[i] == 0) assert_int_equal(y.memory[0].activations, x.memory[0].activations);
        pc_iteration_free(&y);
    }
    part.machine.host_link_bytes_per_s = 6.0 * (double)layer / (3.4 * seconds);
    part.cut.offload.kinds = PC_OFFLOAD_FULL;
    pc_iteration all = run_spec(&part);
    assert_true(all.iteration_s > 1.1 * x.iteration_s);
    pc_iteration_free(&all);
    pc_iteration_free(&x);
}

static void test_refusals(void **state) {
    (void)state;
    pc_iteration_spec spec = offloading(PC_OFFLOAD_FULL | PC_OFFLOAD_SELECTIVE, 50e9);
    expect_refusal(&spec,
                   "offload of activations in several ways; expected one of fine-grained, selective, full and tensors");
    spec = offloading(PC_OFFLOAD_FULL, 0);
    expect_refusal(&spec, "offload on machine cluster, which has no host_link; expected a machine that has one");
    spec = offloading(PC_OFFLOAD_OPTIMIZER, 50e9);
    spec.machine.host_memory_bytes_per_s = 0;
    expect_refusal(&spec,
                   "offload on machine cluster, which has no host_memory_bandwidth; expected a machine that has one");
    spec = offloading(PC_OFFLOAD_FULL, 50e9);
    spec.cut.recompute = PC_RECOMPUTE_FULL;
    expect_refusal(&spec, "offload of activations beside recompute of whole layers or by a policy, which leaves little "
                          "to offload; expected recompute none, selective or by modules");
    spec = offloading(PC_OFFLOAD_FINE_GRAINED, 50e9);
    expect_refusal(&spec, "offload fine-grained without offload_modules; expected some, such as core_attn+attn_proj");
    spec = offloading(0, 50e9);
    spec.cut.offload.modules = 1 << PC_MODULE_ATTN_NORM;
    expect_refusal(&spec, "offload_modules without offload fine-grained, which they are for; expected both");
    spec = offloading(PC_OFFLOAD_SELECTIVE, 50e9);
    spec.cut.offload.fraction = 1.5;
    expect_refusal(&spec, "offload_fraction 1.5; expected 0 to 1, of a device's chunks");
    spec = offloading(PC_OFFLOAD_PARAMETERS, 50e9);
    expect_refusal(&spec, "offload parameters with zero 1 and dp 8; expected zero 3 and dp over 1, whose shares go to "
                          "the host");
    spec = offloading(PC_OFFLOAD_FULL, 50e9);
    spec.waits_for_memory = true;
    expect_refusal(&spec, "offload beside passes with out_of_memory: wait, which goes by the memory that is left; "
                          "expected out_of_memory: fail, or offload fine-grained");
    spec = offloading(PC_OFFLOAD_FULL, 50e9);
    spec.generator = pc_generator_find("1f1b-r");
    expect_refusal(&spec, "offload of activations with 1f1b-r, which recomputes them; expected another schedule");
}

static void test_words(void **state) {
    (void)state;
    int32_t bits;
    pc_error error;
    assert_int_equal(pc_offload_parse("none", &bits, NULL), PC_OK);
    assert_int_equal(bits, 0);
    assert_int_equal(pc_offload_parse("full+optimizer", &bits, NULL), PC_OK);
    assert_int_equal(bits, PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER);
    assert_int_equal(pc_offload_parse("full+", &bits, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_offload_parse("half", &bits, &error), PC_ERROR_INPUT);
    assert_int_equal(strncmp(error.message, "half: unknown kind of offload; expected none, or of", 51), 0);
    assert_int_equal(pc_offload_modules_parse("core_attn+moe_act", &bits, &error), PC_ERROR_INPUT);
    assert_int_equal(strncmp(error.message, "moe_act: a module of experts, which dense models have not; ", 59), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_of_copies),
        cmocka_unit_test(test_levels_of_copies),
        cmocka_unit_test(test_full_offload),
        cmocka_unit_test(test_selective_offload),
        cmocka_unit_test(test_layers_of_a_fraction),
        cmocka_unit_test(test_ends_of_the_fraction),
        cmocka_unit_test(test_passes_ahead),
        cmocka_unit_test(test_pipeoffload),
        cmocka_unit_test(test_slow_link),
        cmocka_unit_test(test_fine_grained),
        cmocka_unit_test(test_time_within_passes),
        cmocka_unit_test(test_optimizer_on_the_host),
        cmocka_unit_test(test_parameters_on_the_host),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_tensors_that_fit),
        cmocka_unit_test(test_tensors_hide),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
