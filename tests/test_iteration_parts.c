/* Iterations part by part: what is in costs, in exposed times and in bytes, by algebra. */
#include "tests/support.h"

#include "models/training/finish.h"
#include "models/training/iteration.h"
#include "models/training/outline.h"
#include "models/training/outline_memo.h"
#include "models/workload/memory.h"
#include "models/workload/operation.h"
#include "tests/iteration_example.h"

static pc_costs costs_of(const pc_iteration_spec *spec) {
    pc_costs costs;
    pc_error error = {0};
    if (pc_iteration_costs(spec, NULL, &costs, &error)) fail_msg("%s", error.message);
    return costs;
}

/* ---- passes ---- */

/* A schedule with R recomputes all of the layers unless it is told what: as many FLOPs as 1F1B with full recomputation,
 * a pass of R where that one's BW is longer, and on one GPU the same time. */
static void test_a_schedule_that_recomputes(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.machine.gpu.launch_s = 0; /* of R and BW each the larger of kernels and launches counts */
    spec.cut.pp = 1;
    spec.generator = pc_generator_find("1f1b-r");
    pc_iteration apart = run_spec(&spec);
    pc_costs with_r = costs_of(&spec);
    spec.generator = pc_generator_find("1f1b");
    spec.cut.recompute = PC_RECOMPUTE_FULL;
    pc_iteration together = run_spec(&spec);
    pc_costs without = costs_of(&spec);
    check_within(apart.hardware_flops, together.hardware_flops, 1e-12);
    assert_true(apart.hardware_flops > 1.25 * apart.model_flops);
    check_within(apart.iteration_s, together.iteration_s, 1e-9);
    pc_time r = pc_costs_duration(&with_r, 0, 0, PC_PASS_R), bw = pc_costs_duration(&with_r, 0, 0, PC_PASS_BW);
    check_within((double)(r + bw), (double)pc_costs_duration(&without, 0, 0, PC_PASS_BW), 1e-9);
    assert_int_equal(with_r.activation_kept_bytes[0], without.activation_bytes[0]);
    check_within(apart.sent.tp_bytes, together.sent.tp_bytes, 1e-12);
    pc_costs_free(&with_r);
    pc_costs_free(&without);
    pc_iteration_free(&apart);
    pc_iteration_free(&together);
}

/* Nothing of a forward pass can run beside its collectives; of BW the gathering for W and the sum of B's gradients. */
static void test_what_overlaps_in_a_pass(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = 8;
    pc_costs hidden = costs_of(&spec);
    spec.overlaps_tp = false;
    pc_costs shown = costs_of(&spec);
    assert_int_equal(pc_costs_duration(&hidden, 1, 0, PC_PASS_F), pc_costs_duration(&shown, 1, 0, PC_PASS_F));
    assert_true(pc_costs_duration(&hidden, 1, 0, PC_PASS_BW) < pc_costs_duration(&shown, 1, 0, PC_PASS_BW));
    pc_costs_free(&hidden);
    pc_costs_free(&shown);
}

/* ZeRO 3 with one of both overlapped: F gathers alone, BW gathers and reduces. */
static void test_zero_3_by_halves(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_time f[4], bw[4];
    spec.cut.zero = 3;
    for (int i = 0; i < 4; i++) {
        spec.overlaps_parameters = i & 1;
        spec.overlaps_gradients = i & 2;
        pc_costs costs = costs_of(&spec);
        f[i] = pc_costs_duration(&costs, 1, 0, PC_PASS_F);
        bw[i] = pc_costs_duration(&costs, 1, 0, PC_PASS_BW);
        pc_costs_free(&costs);
    }
    spec.cut.dp = 1;
    pc_costs alone = costs_of(&spec);
    pc_time f_alone = pc_costs_duration(&alone, 1, 0, PC_PASS_F),
            bw_alone = pc_costs_duration(&alone, 1, 0, PC_PASS_BW);
    pc_time gather = f[0] - f_alone, reduce = bw[0] - bw_alone - gather;
    assert_true(gather > 0 && reduce > gather);
    assert_int_equal(f[1], f_alone > gather ? f_alone : gather);
    assert_int_equal(f[2], f[0]);
    assert_int_equal(f[3], f[1]);
    assert_int_equal(bw[1], (bw_alone > gather ? bw_alone : gather) + reduce);
    assert_int_equal(bw[2], (bw_alone > reduce ? bw_alone : reduce) + gather);
    assert_int_equal(bw[3], bw_alone > gather + reduce ? bw_alone : gather + reduce);
    pc_costs_free(&alone);
}

/* Beside gathers and reductions of c kernels of k get as far as (1 - s) c: max(c, k + s c). With s = 1 that is k + c,
 * which says what c is. */
static void test_zero_3_slows_kernels(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    static const int kinds[] = {PC_PASS_F, PC_PASS_BW};
    static const double slowdowns[] = {0, 0.125, 0.5, 1};
    pc_costs at[4];
    spec.cut.zero = 3;
    for (int i = 0; i < 4; i++) {
        spec.overlap_slowdown = slowdowns[i];
        at[i] = costs_of(&spec);
    }
    spec.cut.dp = 1;
    pc_costs alone = costs_of(&spec); /* nothing to be slow beside */
    for (int j = 0; j < 2; j++) {
        pc_time kernels = pc_costs_duration(&alone, 1, 0, kinds[j]);
        pc_time beside = pc_costs_duration(&at[3], 1, 0, kinds[j]) - kernels;
        assert_true(beside > 0);
        for (int i = 0; i < 4; i++) {
            pc_time slowed = kernels + (pc_time)(slowdowns[i] * (double)beside);
            assert_int_equal(pc_costs_duration(&at[i], 1, 0, kinds[j]), slowed > beside ? slowed : beside);
        }
    }
    for (int i = 0; i < 4; i++) pc_costs_free(&at[i]);
    pc_costs_free(&alone);
}

static double seconds_at(pc_iteration_spec spec, double slowdown) {
    spec.overlap_slowdown = slowdown;
    pc_iteration iteration = run_spec(&spec);
    double seconds = iteration.iteration_s;
    pc_iteration_free(&iteration);
    return seconds;
}

/* On one stage that hides its collectives of c behind passes that last longer, the iteration is s c longer; with s = 1,
 * which says what c is, by c. The first bucket of parameters and the last one of gradients are beside no pass: of one
 * bucket nothing is. What does not overlap slows nothing. */
static void test_earlier_zero_slows_kernels(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.pp = 1;
    spec.cut.microbatch_size = 8;
    for (int zero = 0; zero <= 2; zero++) {
        spec.cut.zero = zero;
        spec.bucket_bytes = 700000000; /* of 2.6 GB */
        spec.overlaps_gradients = spec.overlaps_parameters = true;
        double none = seconds_at(spec, 0), beside = seconds_at(spec, 1) - none;
        assert_true(beside > 0);
        spec.bucket_bytes = INT64_MAX;
        if (zero != 2) assert_true(seconds_at(spec, 1) == seconds_at(spec, 0));
        spec.bucket_bytes = 700000000;
        check_within(seconds_at(spec, 0.125) - none, 0.125 * beside, 1e-8);
        check_within(seconds_at(spec, 0.25) - none, 0.25 * beside, 1e-8);
        spec.overlaps_gradients = false;
        double parameters = seconds_at(spec, 1) - seconds_at(spec, 0);
        assert_true(zero == 0 ? parameters == 0 : parameters > 0 && parameters < beside);
        spec.overlaps_parameters = false;
        if (zero != 2) assert_true(seconds_at(spec, 1) == seconds_at(spec, 0));
    }
}

/* Kernels of k that are over before the collectives lose no more than k s / (1 - s): on a thin network of 1 MB/s all
 * that is lost is known from the passes. */
static void test_no_more_is_lost_than_kernels_last(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.pp = 1;
    spec.cut.zero = 0;
    spec.bucket_bytes = 700000000;
    spec.machine.network.bandwidth_bytes_per_s = 1e6;
    spec.machine.gpus_per_node = spec.machine.domain_gpus = spec.machine.nics_per_node = 2;
    pc_costs costs = costs_of(&spec);
    double kernels = pc_time_to_seconds(pc_costs_duration(&costs, 0, 0, PC_PASS_BW));
    check_within(seconds_at(spec, 0.5) - seconds_at(spec, 0), kernels, 1e-6);
    check_within(seconds_at(spec, 0.25) - seconds_at(spec, 0), kernels / 3, 1e-6);
    pc_costs_free(&costs);
}

/* Of all schedules, over closed costs and over flows, folded and expanded: a larger slowdown makes no iteration
 * shorter, and none is lost where nothing is shared. GPUs of context parallelism share their gradients as replicas do.
 */
static void test_slowdown_never_gains(void **state) {
    (void)state;
    test_random random = {47};
    static const double slowdowns[] = {0, 0.1, 0.3, 0.9, 1};
    int longer = 0, longer_by_cp = 0;
    for (long i = 0; i < test_cases(40, 300); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.cut.zero = test_between(&random, 0, 2);
        if (test_between(&random, 0, 1)) spec.network = PC_NETWORK_FLOWS;
        spec.expands = test_between(&random, 0, 3) == 0;
        double before = 0, first = 0;
        for (int k = 0; k < 5; k++) {
            double now = seconds_at(spec, slowdowns[k]);
            if (now < before * (1 - 1e-12)) fail_msg("case %ld: %.17g after %.17g", i, now, before);
            if (k == 0) first = now;
            before = now;
        }
        longer += before > first;
        longer_by_cp += before > first && spec.cut.dp == 1 && spec.cut.cp > 1;
        bool shares = pc_cut_replicas(&spec.cut) > 1 || spec.generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
        if (!shares) assert_true(before == first);
    }
    assert_true(test_saw(longer, 1));
    assert_true(test_saw(longer_by_cp, 1));
}

/* ---- transfers and parameters ---- */

/* Two stages a node: the hops between nodes are slower, and that is what searches see. */
static void test_hops(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = 4;
    spec.cut.dp = 1;
    pc_costs line = costs_of(&spec);
    assert_true(line.hop_delay_ps[0] < line.hop_delay_ps[1] && line.hop_delay_ps[0] == line.hop_delay_ps[2]);
    assert_int_equal(line.transfer.delay_ps, line.hop_delay_ps[1]);
    pc_costs_free(&line);
}

/* With ZeRO 1 and 2 parameters are gathered before the first F, chunk by chunk in the order of their parts: on a stage
 * of the second half of two replicas that is the second chunk first. Not overlapped, all wait for all. */
static void test_parameters_come_in_the_order_of_parts(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("chimera");
    spec.cut.chunks = 2;
    for (spec.cut.zero = 1; spec.cut.zero < 3; spec.cut.zero++) {
        spec.overlaps_parameters = true;
        pc_costs costs = costs_of(&spec);
        assert_true(pc_costs_ready(&costs, 0, 0) > 0 && pc_costs_ready(&costs, 0, 0) < pc_costs_ready(&costs, 0, 1));
        assert_true(pc_costs_ready(&costs, 3, 1) > 0 && pc_costs_ready(&costs, 3, 1) < pc_costs_ready(&costs, 3, 0));
        pc_time all = pc_costs_ready(&costs, 0, 1);
        pc_costs_free(&costs);
        spec.overlaps_parameters = false;
        costs = costs_of(&spec);
        assert_int_equal(pc_costs_ready(&costs, 0, 0), pc_costs_ready(&costs, 0, 1));
        assert_true(spec.cut.zero == 2 || pc_costs_ready(&costs, 0, 0) == all);
        pc_costs_free(&costs);
    }
}

static int64_t room_of(const pc_iteration_spec *spec, int device) {
    pc_outline outline;
    assert_int_equal(pc_outline_make(spec, NULL, &outline, NULL), PC_OK);
    int64_t room = pc_outline_room(&outline, device);
    pc_outline_free(&outline);
    return room;
}

/* What is left for activations; nothing is 0 bytes, also where more is held than there is. */
static void test_room_for_activations(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration x = run_spec(&spec);
    int64_t held = x.memory[3].peak_bytes - x.memory[3].activations;
    pc_iteration_free(&x);
    spec.memory_limit_bytes = held + 4096;
    assert_int_equal(room_of(&spec, 3), 4096);
    for (int less = 0; less < 2; less++) {
        spec.memory_limit_bytes = held - less;
        assert_int_equal(room_of(&spec, 3), 0);
    }
}

/* ---- exposed times ---- */

/* Whole matrices of attention, nothing recomputed: the hardware does the model's FLOPs and no others, on all GPUs; and
 * as many with two replicas in a pipeline as with one. */
static void test_flops_of_all_gpus(void **state) {
    (void)state;
    static const char *const names[] = {"1f1b", "gems", "chimera", "zb-h1", "1f1b-interleaved"};
    for (int i = 0; i < 5; i++) {
        pc_iteration_spec spec = example_spec();
        spec.generator = pc_generator_find(names[i]);
        spec.cut.chunks = spec.generator->chunks_default;
        spec.model.attention = PC_ATTENTION_MATERIALISED;
        pc_iteration x = run_spec(&spec);
        check_within(x.hardware_flops, x.model_flops, 1e-12);
        pc_iteration_free(&x);
    }
}

/* By closed costs, for over flows the first F may wait for its parameters on its way. */
static pc_time longest_busy(const pc_iteration_spec *spec) {
    pc_iteration_spec closed = *spec;
    closed.network = PC_NETWORK_CLOSED;
    pc_iteration x = run_spec(&closed);
    pc_time busy = 0;
    for (int d = 0; d < x.devices; d++)
        if (x.replay.device_busy_ps[d] > busy) busy = x.replay.device_busy_ps[d];
    pc_iteration_free(&x);
    return busy;
}

/* What is left of the iteration beside the passes of the busiest stage, other kinds and the overhead is the bubble. */
static void check_sum(const pc_iteration_spec *spec) {
    pc_iteration x = run_spec(spec);
    const pc_exposed *e = &x.exposed;
    pc_time busy = longest_busy(spec);
    double sum = (double)busy / 1e12 + e->pp + e->dp + e->optimizer + e->bubble + (double)spec->overhead_ps / 1e12;
    assert_true(e->tp >= 0 && e->cp >= 0 && e->tp + e->cp < (double)busy / 1e12);
    assert_true(e->pp >= 0 && e->dp >= 0 && e->optimizer > 0 && e->bubble >= 0);
    if (e->bubble > 0)
        check_within(sum, x.iteration_s, 1e-7);
    else
        assert_true(sum > x.iteration_s * (1 - 1e-7));
    /* No launches: the kernels' error is a twentieth of their time, over the bubble, too. */
    double kernels = (double)busy / 1e12 - e->tp - e->cp;
    check_within(x.standard_error_s, 0.05 * (kernels + e->bubble), 1e-7);
    pc_iteration_free(&x);
}

static void test_exposed_times_add_up(void **state) {
    (void)state;
    test_random random = {31};
    for (long i = 0; i < test_cases(60, 200); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.machine.gpu.launch_s = 0;
        spec.overlaps_p2p = true; /* or transfers would be in the passes' times */
        spec.overhead_ps = test_between(&random, 0, 1) ? 0 : 70000000000;
        spec.network = test_between(&random, 0, 1) ? PC_NETWORK_FLOWS : PC_NETWORK_CLOSED;
        check_sum(&spec);
    }
}

/* The last stages wait while the first ones work: unequal parts. */
static void test_the_busiest_stage_counts(void **state) {
    (void)state;
    static const int32_t layers[] = {3, 3, 15, 3};
    pc_iteration_spec spec = example_spec();
    spec.machine.gpu.launch_s = 0;
    spec.cut.layout = PC_CUT_LISTED;
    spec.cut.layers_of_part = layers;
    check_sum(&spec);
}

static void test_the_norm_is_waited_for_or_not(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration waits = run_spec(&spec);
    spec.step = PC_STEP_POST_VALIDATION;
    pc_iteration goes_on = run_spec(&spec);
    spec.machine.network.latency_s = spec.machine.network.fast_latency_s = 1e-3; /* of the norm and of nothing else */
    pc_iteration slower = run_spec(&spec);
    assert_true(goes_on.exposed.optimizer < waits.exposed.optimizer);
    assert_true(slower.exposed.optimizer == goes_on.exposed.optimizer);
    pc_iteration_free(&waits);
    pc_iteration_free(&goes_on);
    pc_iteration_free(&slower);
}

/* What flows take longer is data parallelism's. */
static void test_meeting_is_exposed(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration closed = run_spec(&spec);
    spec.network = PC_NETWORK_FLOWS;
    pc_iteration flows = run_spec(&spec);
    assert_true(flows.iteration_s > closed.iteration_s);
    check_within(flows.exposed.dp - closed.exposed.dp, flows.iteration_s - closed.iteration_s, 1e-6);
    assert_true(flows.exposed.pp == closed.exposed.pp && flows.exposed.tp == closed.exposed.tp);
    pc_iteration_free(&closed);
    pc_iteration_free(&flows);
}

/* A part without layers ends its backward pass when it begins; the parts beside it on the stage have gradients yet. */
static void test_an_empty_part(void **state) {
    (void)state;
    static const int32_t layers[] = {6, 6, 6, 6, 0, 0, 0, 0}, halves[] = {3, 3, 3, 3, 3, 3, 3, 3};
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("1f1b-interleaved");
    spec.cut.chunks = 2;
    spec.cut.layout = PC_CUT_LISTED;
    spec.overlaps_gradients = spec.overlaps_parameters = false;
    double dp[2];
    for (int i = 0; i < 2; i++) {
        spec.cut.layers_of_part = i ? halves : layers;
        pc_iteration x = run_spec(&spec);
        dp[i] = x.exposed.dp;
        assert_int_equal(x.memory[1].gradients, 2 * x.memory[1].parameters);
        pc_iteration_free(&x);
    }
    check_within(dp[0], dp[1], 0.05); /* in one piece or in two */
}

/* Chunks whose last passes end at once are all reduced, one after the other. */
static void test_chunks_that_end_at_once(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_outline outline;
    pc_pipeline_ends ends;
    pc_time backlog[4] = {0}, done[4];
    spec.generator = pc_generator_find("1f1b-interleaved");
    spec.cut.chunks = 3;
    spec.cut.layout = PC_CUT_EVEN;
    assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
    assert_int_equal(pc_ends_create(4, 3, &ends, NULL), PC_OK);
    for (int i = 0; i < 12; i++) ends.last_start_ps[i] = ends.last_end_ps[i] = ends.stage_end_ps[i / 3] = 1000000;
    pc_outline_reduce_gradients(&outline, 0, &ends, backlog, done);
    for (int d = 0; d < 4; d++) {
        pc_time sum = 1000000;
        for (int c = 0; c < 3; c++)
            sum += outline.chunks_of[3 * d + c].buckets * outline.chunks_of[3 * d + c].reduce_ps;
        assert_int_equal(done[d], sum);
    }
    pc_outline_reduce_gradients(&outline, PC_WITHOUT_DATA_PARALLEL, &ends, backlog, done);
    assert_int_equal(done[2], 1000000);
    pc_ends_free(&ends);
    pc_outline_free(&outline);
}

/* By default a bucket is 40 million gradients, whatever their size: of 4 bytes 160 MB, of 2 bytes 80 MB; a chunk of P
 * parameters has P/40e6 of them, rounded up. A given size is of bytes. A middle stage has 6 layers of 12h^2/2 and
 * vectors, 151 million parameters: 4 buckets. */
static void test_bucket_by_default(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_outline outline;
    for (spec.cut.gradient_bytes = 2; spec.cut.gradient_bytes <= 4; spec.cut.gradient_bytes += 2) {
        const int64_t sizes[] = {0, INT64_C(40000000) * spec.cut.gradient_bytes, 160000000};
        for (int i = 0; i < 3; i++) {
            spec.bucket_bytes = sizes[i];
            assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
            int64_t parameters = outline.part_costs[outline.chunks_of[1].sort].parameters;
            assert_int_equal((parameters + 39999999) / 40000000, 4);
            assert_int_equal(outline.chunks_of[1].buckets, i < 2 ? 4 : spec.cut.gradient_bytes);
            pc_outline_free(&outline);
        }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_schedule_that_recomputes),
        cmocka_unit_test(test_what_overlaps_in_a_pass),
        cmocka_unit_test(test_zero_3_by_halves),
        cmocka_unit_test(test_zero_3_slows_kernels),
        cmocka_unit_test(test_earlier_zero_slows_kernels),
        cmocka_unit_test(test_no_more_is_lost_than_kernels_last),
        cmocka_unit_test(test_slowdown_never_gains),
        cmocka_unit_test(test_hops),
        cmocka_unit_test(test_parameters_come_in_the_order_of_parts),
        cmocka_unit_test(test_room_for_activations),
        cmocka_unit_test(test_flops_of_all_gpus),
        cmocka_unit_test(test_exposed_times_add_up),
        cmocka_unit_test(test_the_busiest_stage_counts),
        cmocka_unit_test(test_the_norm_is_waited_for_or_not),
        cmocka_unit_test(test_meeting_is_exposed),
        cmocka_unit_test(test_an_empty_part),
        cmocka_unit_test(test_chunks_that_end_at_once),
        cmocka_unit_test(test_bucket_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
