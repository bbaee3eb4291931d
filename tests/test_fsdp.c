/* ZeRO 3 as torch's FSDP runs it: the recurrence over units, by algebra; what is sent, held and refused. */
#include "tests/iteration_example.h"

#include "models/training/units.h"

#include <math.h>

static void check_near(double value, double expected, double tolerance) {
    if (fabs(value - expected) > tolerance * fabs(expected)) fail_msg("%.12g; expected %.12g", value, expected);
}

/* ---- the recurrence ---- */

/* L equal layers of kernels c, gathers g, reductions r; a root that gathers `root`; a head of kernels h. */
static pc_units forward(int layers, pc_time c, pc_time g, pc_time root, pc_time h) {
    pc_unit_step layer = {.kernels_ps = c, .gather_ps = g};
    return (pc_units){.before = {.gather_ps = root},
                      .each = layer,
                      .other = layer,
                      .behind = {.kernels_ps = h},
                      .count = layers,
                      .odd = layers - 1};
}

static pc_units backward(int layers, pc_time c, pc_time g, pc_time r, pc_time root, pc_time h) {
    pc_unit_step layer = {.kernels_ps = c, .gather_ps = g, .reduce_ps = r};
    return (pc_units){.before = {.kernels_ps = h},
                      .each = layer,
                      .other = layer,
                      .behind = {.reduce_ps = root},
                      .count = layers,
                      .odd = 0};
}

static pc_time run_units(pc_units units, int prefetch, double slowdown) {
    pc_unit_rules rules = {.prefetch = prefetch, .slowdown = slowdown};
    return pc_units_run(&units, &rules, NULL);
}

/* Bound by kernels: only the root's gather and the first layer's show, and behind them nothing. Bound by the network:
 * all gathers, and the last layer's kernels. */
static void test_forward(void **state) {
    (void)state;
    for (int p = 1; p <= 3; p++) {
        assert_int_equal(run_units(forward(10, 100, 60, 70, 30), p, 0), 70 + 60 + 10 * 100 + 30);
        assert_int_equal(run_units(forward(10, 100, 170, 70, 30), p, 0), 70 + 10 * 170 + 100 + 30);
    }
    assert_int_equal(run_units(forward(10, 100, 60, 70, 30), 0, 0), 70 + 10 * (60 + 100) + 30);
    assert_int_equal(run_units(forward(0, 100, 60, 70, 30), 1, 0), 70 + 30);
}

/* Bound by kernels: the head hides the first gather; behind the last kernels come the last layer's reduction and the
 * root's. Bound by the network: the wire has all, but for the head's share of the first gathers, the kernels before the
 * last reduction, and a gather that waits for what the wire waits for. */
static void test_backward(void **state) {
    (void)state;
    assert_int_equal(run_units(backward(10, 200, 60, 80, 70, 90), 1, 0), 90 + 10 * 200 + 80 + 70);
    assert_int_equal(run_units(backward(10, 200, 60, 80, 70, 0), 1, 0), 60 + 10 * 200 + 80 + 70);
    assert_int_equal(run_units(backward(1, 200, 60, 80, 70, 0), 1, 0), 60 + 200 + 80 + 70);
    /* g = 100, c = 10, r = 100: G1 to 100, G2 at 0 + C of the head: to 200; R1 (ready 110) to 300, G3 to 400, R2 (210)
     * to 500, ... the wire is never idle: 10 gathers, 10 reductions, and the root's. */
    assert_int_equal(run_units(backward(10, 10, 100, 100, 70, 0), 1, 0), 20 * 100 + 70);
    /* One layer gathered at a time, one reduced: all in a row. */
    pc_units one = backward(10, 10, 100, 100, 70, 5);
    pc_unit_rules rules = {.prefetch = 0, .waits_for_reduce = true};
    assert_int_equal(pc_units_run(&one, &rules, NULL), 5 + 10 * (100 + 10 + 100) + 70);
}

/* A gather ahead of more than one unit needs memory, and helps where units differ. Of two units ahead the third gather
 * begins with the pass, of one when the first kernels are over. */
static void test_prefetch(void **state) {
    (void)state;
    pc_units units = forward(4, 100, 10, 0, 0);
    pc_unit_times times[6];
    pc_unit_rules rules = {.prefetch = 1};
    pc_units_run(&units, &rules, times);
    assert_int_equal(times[1].gathered_ps, 10);
    assert_int_equal(times[2].gathered_ps, 20); /* the root has no kernels */
    assert_int_equal(times[3].gathered_ps, 110 + 10);
    rules.prefetch = 3;
    pc_units_run(&units, &rules, times);
    assert_int_equal(times[3].gathered_ps, 30);
    assert_int_equal(times[4].begin_ps, 10 + 3 * 100);
}

/* Kernels of c beside collectives of b at half speed end b/2 later, or take 2c where these last longer. */
static void test_slowdown(void **state) {
    (void)state;
    assert_int_equal(run_units(forward(2, 100, 40, 0, 0), 1, 0.5), 40 + (100 + 20) + 100);
    /* Gathers end at 300, 600 and 900: each layer's kernels run beside the next one's. */
    assert_int_equal(run_units(forward(3, 100, 300, 0, 0), 1, 0.5), 900 + 100);
    assert_int_equal(run_units(forward(3, 200, 300, 0, 0), 1, 0.5), 300 + (200 + 150) + (200 + 150) + 200);
    assert_int_equal(run_units(backward(1, 100, 40, 30, 0, 50), 1, 0.5), 50 + 20 + 100 + 30);
    assert_int_equal(run_units(forward(2, 100, 300, 0, 0), 1, 1), 600 + 100 + 100);
}

/* With copies of k the reduction comes later, the kernels behind them do not; all-reduces over groups follow on their
 * own wire, or take turns with the others. */
static void test_copies_and_groups(void **state) {
    (void)state;
    pc_units units = backward(3, 100, 10, 20, 0, 50);
    units.each.copy_ps = units.other.copy_ps = 7;
    assert_int_equal(run_units(units, 1, 0), 50 + 300 + 7 + 20);
    units.each.replicate_ps = units.other.replicate_ps = 200;
    pc_unit_rules rules = {.prefetch = 1, .replicates_beside = true};
    assert_int_equal(pc_units_run(&units, &rules, NULL), 150 + 27 + 3 * 200);
    rules.replicates_beside = false; /* the first has the second gather before it and the third behind it */
    assert_int_equal(pc_units_run(&units, &rules, NULL), 150 + 27 + 200 + 10 + 2 * 220);
}

/* In any: kernels follow each other and their gathers; it is no shorter than kernels or wire, no longer than all in a
 * row; and no shorter where anything takes longer. */
static pc_units random_units(test_random *random) {
    pc_unit_step steps[4];
    for (int i = 0; i < 4; i++)
        steps[i] =
            (pc_unit_step){test_between(random, 0, 1000), test_between(random, 0, 1000), test_between(random, 0, 50),
                           test_between(random, 0, 900), test_between(random, 0, 400)};
    int count = (int)test_between(random, 0, 12);
    return (pc_units){steps[0], steps[1], steps[2],
                      steps[3], count,    count ? (int)test_between(random, 0, count - 1) : 0};
}

static void test_random_units(void **state) {
    (void)state;
    test_random random = {5};
    for (long i = 0; i < test_cases(2000, 20000); i++) {
        pc_units units = random_units(&random);
        pc_unit_rules rules = {(int)test_between(&random, 0, PC_PREFETCH_MAX), 0, test_between(&random, 0, 1),
                               test_between(&random, 0, 1)};
        pc_unit_times times[14];
        pc_time kernels = 0, wire = 0, copies = 0, groups = 0, before = 0, whole = pc_units_run(&units, &rules, times);
        for (int j = 0; j < pc_units_steps(&units); j++) {
            pc_unit_step step = pc_units_step(&units, j);
            kernels += step.kernels_ps;
            wire += step.gather_ps + step.reduce_ps;
            copies += step.reduce_ps > 0 ? step.copy_ps : 0;
            groups += step.replicate_ps;
            assert_true(times[j].begin_ps >= before && times[j].begin_ps >= times[j].gathered_ps);
            assert_int_equal(times[j].end_ps - times[j].begin_ps, step.kernels_ps);
            before = times[j].end_ps;
        }
        assert_true(whole >= kernels && whole >= wire + (rules.replicates_beside ? 0 : groups) && whole >= groups);
        assert_true(whole <= kernels + wire + copies + groups);
        rules.slowdown = 0.3;
        assert_true(pc_units_run(&units, &rules, NULL) >= whole);
        rules.slowdown = 0;
        units.each.gather_ps += 10;
        assert_true(pc_units_run(&units, &rules, NULL) >= whole);
    }
}

/* ---- iterations ---- */

/* Of 8 replicas with sharded parameters; on one stage, or on the example's four. */
static pc_iteration_spec spec_of(int pp) {
    pc_iteration_spec spec = example_spec();
    spec.model.is_tied = false;
    spec.cut.zero = 3;
    spec.cut.pp = pp;
    spec.unit = PC_UNIT_LAYER;
    spec.memory_limit_bytes = INT64_C(1) << 40;
    return spec;
}

static int64_t parameters_of(const pc_iteration_spec *spec) {
    pc_iteration_spec plain = *spec;
    plain.cut.zero = 0;
    plain.reshard_after_forward = PC_RESHARD_DEFAULT;
    plain.gradient_sync = PC_GRADIENT_SYNC_DEFAULT;
    pc_iteration x = run_spec(&plain);
    int64_t sum = 0;
    for (int d = 0; d < x.devices; d++) sum += x.memory[d].parameters / 2;
    pc_iteration_free(&x);
    return sum;
}

/* Embedding and head of one of `ranks`, the vocabulary padded to 128 for each; positions, and the last norm. */
static int64_t ends_of(const pc_model *model, int64_t ranks) {
    int64_t rows = (model->vocab + 128 * ranks - 1) / (128 * ranks) * 128;
    return (2 * rows + model->max_positions + 2) * model->hidden;
}

/* Of P parameters, E of them at the ends, m microbatches and 8 ranks: F gathers all, B the layers again, every B
 * reduces. Kept, F's gathers serve B; synchronised at last, one reduction serves all. */
static void test_sent(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(1);
    double p = (double)parameters_of(&spec), e = (double)ends_of(&spec.model, 2), m = 8, part = 7.0 / 8;
    for (int i = 0; i < 4; i++) {
        spec.reshard_after_forward = i & 1 ? PC_RESHARD_NEVER : PC_RESHARD_ALWAYS;
        spec.gradient_sync = i & 2 ? PC_GRADIENT_SYNC_LAST : PC_GRADIENT_SYNC_EVERY;
        pc_iteration x = run_spec(&spec);
        double gathered = 2 * m * (i & 1 ? p : 2 * p - e), reduced = 4 * p * (i & 2 ? 1 : m);
        check_near(x.sent.dp_bytes, part * (gathered + reduced), 1e-4);
        pc_iteration_free(&x);
    }
}

/* As torch runs pipelines: one gather and one reduction an iteration, as ZeRO 1. */
static void test_pipelines(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(4);
    double p = (double)parameters_of(&spec) / 4;
    pc_iteration x = run_spec(&spec);
    check_near(x.sent.dp_bytes, 7.0 / 8 * (2 + 4) * p, 1e-9);
    /* Reductions overlap nothing: each behind the stage's last pass. */
    spec.overlaps_gradients = false;
    pc_iteration y = run_spec(&spec);
    assert_true(x.iteration_s == y.iteration_s);
    pc_iteration_free(&y);
    spec.overlaps_gradients = true;
    spec.gradient_sync = PC_GRADIENT_SYNC_EVERY;
    spec.reshard_after_forward = PC_RESHARD_ALWAYS;
    y = run_spec(&spec);
    assert_true(y.sent.dp_bytes > 7 * x.sent.dp_bytes);
    pc_iteration_free(&y);
    pc_iteration_free(&x);
}

/* What is gathered: the ends, and as many units as are ahead, and the one at work; or all. FSDP2's buffers are as large
 * as all these units, or the ends. Gradients are whole where only the last microbatch reduces them. */
static void test_memory(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(1);
    int64_t p = parameters_of(&spec);
    spec.fsdp_version = PC_FSDP_1;
    spec.fsdp_prefetch = 0;
    pc_iteration x = run_spec(&spec);
    spec.fsdp_prefetch = 3;
    pc_iteration y = run_spec(&spec);
    spec.unit_layers = 2;
    pc_iteration z = run_spec(&spec);
    int64_t layer = (p - ends_of(&spec.model, 2)) / 24;
    check_near((double)(z.memory[0].buffers - y.memory[0].buffers),
               2.0 * 4 * (double)layer + 4.0 * (8 * (double)layer) -
                   4.0 * fmax(4 * (double)layer, (double)ends_of(&spec.model, 2)),
               1e-3);
    assert_true(y.memory[0].buffers > x.memory[0].buffers);
    spec.unit_layers = 0;
    spec.fsdp_prefetch = 0;
    spec.reshard_after_forward = PC_RESHARD_NEVER;
    pc_iteration kept = run_spec(&spec);
    check_near((double)(kept.memory[0].buffers - x.memory[0].buffers), 2.0 * 23 * (double)layer, 1e-3);
    assert_int_equal(kept.memory[0].parameters, (4 * p + 7) / 8);
    assert_int_equal(kept.memory[0].gradients, (4 * p + 7) / 8);
    assert_int_equal(kept.memory[0].optimizer, p);
    spec.gradient_sync = PC_GRADIENT_SYNC_LAST;
    pc_iteration last = run_spec(&spec);
    assert_int_equal(last.memory[0].gradients - kept.memory[0].gradients, 2 * p);
    pc_iteration_free(&last);
    spec.fsdp_version = PC_FSDP_2;
    last = run_spec(&spec);
    assert_int_equal(last.memory[0].gradients - kept.memory[0].gradients, 4 * p);
    pc_iteration_free(&last);
    spec.gradient_sync = PC_GRADIENT_SYNC_EVERY;
    spec.fsdp_version = PC_FSDP_MEGATRON;
    last = run_spec(&spec);
    assert_int_equal(last.memory[0].parameters, (2 * p + 7) / 8);
    assert_int_equal(last.memory[0].optimizer, (12 * p + 7) / 8);
    assert_int_equal(last.memory[0].buffers, kept.memory[0].buffers);
    pc_iteration_free(&x);
    pc_iteration_free(&y);
    pc_iteration_free(&z);
    pc_iteration_free(&kept);
    pc_iteration_free(&last);
}

/* On a network so thin that nothing hides: an iteration takes what the wire takes. On none at all only the root's
 * gradients show, which FSDP1 casts and divides behind each backward pass: 14 bytes each, at memory speed. */
static void test_thin_network(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(1);
    spec.cut.tp = 1;
    spec.cut.sequence_parallel = false;
    spec.cut.dp = 64;
    drop_latencies(&spec.machine);
    spec.machine.network.bandwidth_bytes_per_s = 1e9;
    pc_iteration x = run_spec(&spec);
    assert_true(x.exposed.dp > 0.9 * x.iteration_s);
    pc_iteration_free(&x);
    spec.machine.network.bandwidth_bytes_per_s = spec.machine.domain.bandwidth_bytes_per_s = 1e18;
    spec.fsdp_version = PC_FSDP_1;
    x = run_spec(&spec);
    check_near(x.exposed.dp, 8 * 14.0 * (double)ends_of(&spec.model, 1) / (2000e9 * 0.8), 1e-3);
    pc_iteration_free(&x);
}

/* ---- on the engine ---- */

static pc_iteration_spec random_sharded(test_random *random) {
    pc_iteration_spec spec = random_spec(random);
    spec.cut.zero = 3;
    if (spec.cut.dp == 1) spec.cut.dp = 4;
    spec.unit = PC_UNIT_LAYER;
    spec.unit_layers = test_between(random, 0, 3);
    spec.fsdp_prefetch = (int)test_between(random, 0, 3);
    spec.fsdp_version = (pc_fsdp_version)test_between(random, 0, 2);
    spec.reshard_after_forward = (pc_reshard)test_between(random, 0, 2);
    spec.gradient_sync = (pc_gradient_sync)test_between(random, 0, 2);
    spec.overlap_slowdown = test_between(random, 0, 1) ? 0.3 : 0;
    spec.machine.network.bandwidth_bytes_per_s = (double)test_between(random, 1, 40) * 1e9;
    bool is_hybrid = test_between(random, 0, 1) && spec.generator->placement != PC_PLACEMENT_BIDIRECTIONAL;
    spec.cut.shard_group = is_hybrid ? spec.cut.dp / 2 : 0;
    if (is_hybrid) spec.order = example_spec().order; /* in which cp and dp are neighbours */
    return spec;
}

static pc_time ps_of(const pc_iteration_spec *spec) {
    pc_iteration x = run_spec(spec);
    pc_time ps = (pc_time)llround(x.iteration_s * 1e12);
    pc_iteration_free(&x);
    return ps;
}

/* As tasks and flows a pass takes what the recurrence says, to the picosecond; over flows that meet none, too. What
 * meets other traffic takes no less. */
static void test_engine(void **state) {
    (void)state;
    test_random random = {91};
    for (long i = 0; i < test_cases(80, 800); i++) {
        pc_iteration_spec spec = random_sharded(&random);
        if (i % 2) spec.cut.pp = 1, spec.generator = pc_generator_find("1f1b"), spec.cut.chunks = 1;
        pc_time closed = ps_of(&spec);
        spec.engine = PC_ENGINE_EVENTS;
        assert_int_equal(ps_of(&spec), closed);
        spec.network = PC_NETWORK_FLOWS;
        pc_time over_flows = ps_of(&spec);
        spec.engine = PC_ENGINE_AUTO;
        assert_int_equal(ps_of(&spec), over_flows);
        bool is_alone = spec.cut.pp == 1 && spec.gradient_sync != PC_GRADIENT_SYNC_LAST;
        if (is_alone)
            assert_int_equal(over_flows, closed);
        else
            assert_true(over_flows > closed - closed / 1000);
    }
}

/* Gathers of passes and messages between stages share the NICs: with flows an iteration takes longer. */
static void test_meets(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(4);
    spec.reshard_after_forward = PC_RESHARD_ALWAYS;
    spec.gradient_sync = PC_GRADIENT_SYNC_EVERY;
    spec.cut.dp = 8;
    spec.machine.network.bandwidth_bytes_per_s = 2e9;
    pc_time closed = ps_of(&spec);
    spec.network = PC_NETWORK_FLOWS;
    assert_true(ps_of(&spec) > closed);
    spec.network = PC_NETWORK_AUTO;
    assert_true(ps_of(&spec) > closed);
}

/* All wire, gradients as wide as parameters: F gathers L layers and the root; BW gathers the layers, reduces them and
 * the root, which is kept from F. What is kept of the layers, too, is not gathered. */
static void test_passes_on_a_thin_network(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(1);
    spec.cut.tp = 1;
    spec.cut.sequence_parallel = false;
    spec.cut.dp = 64;
    spec.cut.gradient_bytes = 2;
    drop_latencies(&spec.machine);
    spec.machine.network.bandwidth_bytes_per_s = 1e8;
    double p = (double)parameters_of(&spec), ends = (double)ends_of(&spec.model, 1);
    pc_costs costs;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &costs, NULL), PC_OK);
    double f = (double)pc_costs_duration(&costs, 0, 0, PC_PASS_F),
           bw = (double)pc_costs_duration(&costs, 0, 0, PC_PASS_BW);
    check_near(bw / f, (2 * p - ends) / p, 1e-3);
    pc_costs_free(&costs);
    spec.reshard_after_forward = PC_RESHARD_NEVER;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &costs, NULL), PC_OK);
    check_near((double)pc_costs_duration(&costs, 0, 0, PC_PASS_BW), f, 1e-3);
    pc_costs_free(&costs);
}

static void test_refusals(void **state) {
    (void)state;
    pc_iteration_spec spec = spec_of(1);
    spec.unit = PC_UNIT_BUCKET;
    spec.reshard_after_forward = PC_RESHARD_NEVER;
    check_infeasible(&spec,
                     "reshard_after_forward with fsdp_unit bucket, which gathers for every pass; expected fsdp_unit: "
                     "layer");
    spec.reshard_after_forward = PC_RESHARD_DEFAULT;
    spec.gradient_sync = PC_GRADIENT_SYNC_LAST;
    check_infeasible(&spec,
                     "gradient_sync with fsdp_unit bucket, which reduces in every backward pass; expected fsdp_unit: "
                     "layer");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_slowdown),
        cmocka_unit_test(test_copies_and_groups),
        cmocka_unit_test(test_random_units),
        cmocka_unit_test(test_sent),
        cmocka_unit_test(test_pipelines),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_thin_network),
        cmocka_unit_test(test_engine),
        cmocka_unit_test(test_meets),
        cmocka_unit_test(test_passes_on_a_thin_network),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
