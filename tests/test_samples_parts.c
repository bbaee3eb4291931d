/* Parts of samples, each recomputed from what was drawn for it: streams, factors, conditions, and what of a bad link or
 * a slow share shows where. */
#include "tests/drawn_example.h"
#include "tests/iteration_example.h"

#include "engine/numbers.h"
#include "models/training/outline.h"

#include <gsl/gsl_rng.h>
#include <math.h>

/* ---- what is drawn ---- */

static double first_number(gsl_rng *rng, int64_t sample, pc_drawn what, int64_t replica, int stage) {
    pc_draws_begin(rng, 1, sample, what, replica, stage);
    return gsl_rng_uniform(rng);
}

/* 4 samples of 3 things of 4 replicas of 4 stages: two streams that are the same one begin with the same number. Of 192
 * numbers of 32 bits two are equal by chance once in 200,000 seeds. */
static void test_streams_differ(void **state) {
    (void)state;
    enum { STREAMS = 4 * 3 * 4 * 4 };
    double first[STREAMS];
    gsl_rng rng;
    assert_int_equal(pc_draws_open(&rng, NULL), PC_OK);
    for (int i = 0; i < STREAMS; i++) first[i] = first_number(&rng, i / 48, i / 16 % 3, i / 4 % 4, i % 4);
    for (int i = 0; i < STREAMS; i++)
        for (int k = 0; k < i; k++)
            if (first[i] == first[k]) fail_msg("streams %d and %d", k, i);
    pc_draws_close(&rng);
}

/* Quantiles 1, 2, 4 at 0, 1/2, 1: the factor of u is 1 + 2 u up to the median, and 4 u behind it. */
static void test_factors_between_quantiles(void **state) {
    (void)state;
    static const double quantiles[] = {1, 2, 4};
    const pc_empirical x = {quantiles, 3};
    gsl_rng rng;
    assert_int_equal(pc_draws_open(&rng, NULL), PC_OK);
    for (int i = 0; i < 1000; i++) {
        double u = first_number(&rng, i, PC_DRAWN_PASSES, 0, 0);
        pc_draws_begin(&rng, 1, i, PC_DRAWN_PASSES, 0, 0);
        double found = pc_empirical_draw(&x, &rng), expected = u < 0.5 ? 1 + 2 * u : 4 * u;
        assert_true(fabs(found - expected) < 1e-12);
    }
    pc_draws_close(&rng);
}

/* ---- a sample's conditions ---- */

/* The given slow stage is slow in the first replica and in no other. */
static void test_the_slow_stage_is_one(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    drawn parts;
    spec.bad_days = (pc_bad_days){.samples = 1, .has_slow_stage = true, .slow_stage = 2, .slow_factor = 1.5};
    open_drawn(&spec, &parts);
    pc_conditions_draw(&parts.base, 0, &parts.rng, &parts.conditions);
    for (int group = 0; group < spec.cut.dp * spec.cut.pp; group++)
        assert_true(parts.conditions.slowness[group] == (group == 2 ? 1.5 : 1));
    close_drawn(&parts);
}

/* ---- one microbatch, from end to end ---- */

/* Stages of a node each, one microbatch, gradients behind the passes, one bucket a stage. */
static pc_iteration_spec one_microbatch(int pp, int dp) {
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = 8 / dp;
    spec.cut.pp = pp;
    spec.cut.dp = dp;
    spec.cut.zero = 0;
    spec.cut.microbatches = 1;
    spec.cut.sequence_parallel = false;
    spec.model.is_tied = true;
    spec.overlaps_gradients = false;
    spec.overlaps_p2p = true;
    spec.memory_limit_bytes = INT64_C(1) << 40;
    return spec;
}

static pc_time pass_ps(const pc_costs *costs, int device, pc_pass_kind kind) {
    return pc_costs_duration(costs, device, 0, kind);
}

/* When every stage has done its backward pass; down[d] and up[d] are of the transfers between stages d and d + 1. */
static void go_through(const pc_costs *costs, const pc_time *down, const pc_time *up, pc_time *end) {
    pc_time now = 0;
    for (int d = 0; d < costs->devices; d++)
        now += pass_ps(costs, d, PC_PASS_F) + (d < costs->devices - 1 ? down[d] : 0);
    for (int d = costs->devices - 1; d >= 0; d--) {
        now += pass_ps(costs, d, PC_PASS_BW);
        end[d] = now;
        now += d > 0 ? up[d - 1] : 0;
    }
}

/* From when every stage has reduced its gradients: the tied embedding, the loss, the norm and the slowest step. */
static pc_time finish(const pc_outline *outline, pc_time *done, pc_time tied, pc_time loss, pc_time norm) {
    int last = outline->devices - 1;
    pc_time end = 0, step = 0;
    done[0] = done[last] = pc_max(done[0], done[last]) + tied;
    done[last] += loss;
    for (int d = 0; d <= last; d++) {
        end = pc_max(end, done[d]);
        step = pc_max(step, outline->device[d].step_ps);
    }
    return end + norm + step;
}

enum { STAGES = 4 };

/* The sample in which one link of stage `bad` is bad: its transfers and its gradients; at an end of the pipeline the
 * tied embedding; and the loss and the norm wherever it is. */
static pc_time with_bad_link(const pc_sample_base *base, const pc_costs *costs, int bad) {
    const pc_outline *good = base->outline, *worse = &base->worse;
    const pc_outline *ends = bad == 0 || bad == STAGES - 1 ? worse : good;
    pc_time hop[STAGES], done[STAGES];
    for (int d = 0; d < STAGES; d++) hop[d] = (d == bad || d + 1 == bad ? worse : good)->device[d].hop_ps;
    go_through(costs, hop, hop, done);
    for (int d = 0; d < STAGES; d++) done[d] += (d == bad ? worse : good)->chunks_of[d].reduce_ps;
    return finish(good, done, ends->tied_ps, worse->loss_ps, worse->norm_ps);
}

static void test_where_a_bad_link_shows(void **state) {
    (void)state;
    enum { SAMPLES = 40 };
    pc_iteration_spec spec = one_microbatch(STAGES, 8);
    pc_costs costs;
    drawn parts;
    int times[STAGES] = {0};
    spec.bad_days = (pc_bad_days){.samples = SAMPLES, .bad_links = 1, .bad_factor = 0.02};
    open_drawn(&spec, &parts);
    assert_int_equal(pc_outline_costs(&parts.outline, 0, &costs, NULL), PC_OK);
    assert_true(parts.outline.tied_ps < parts.base.worse.tied_ps && parts.outline.norm_ps < parts.base.worse.norm_ps);
    pc_iteration found = run_spec(&spec);
    for (int i = 0; i < SAMPLES; i++) {
        int bad = 0;
        while (bad < STAGES && with_bad_link(&parts.base, &costs, bad) != found.sample_ps[i]) bad++;
        assert_in_range(bad, 0, STAGES - 1);
        times[bad]++;
    }
    /* Every stage, or one before it that comes to the same. */
    for (int d = 0; d < STAGES; d++) {
        int like = 0;
        while (with_bad_link(&parts.base, &costs, like) != with_bad_link(&parts.base, &costs, d)) like++;
        assert_true(times[like] > 0);
    }
    assert_true(with_bad_link(&parts.base, &costs, 0) != with_bad_link(&parts.base, &costs, 1));
    pc_iteration_free(&found);
    pc_costs_free(&costs);
    close_drawn(&parts);
}

static double transfer_factor(drawn *parts, int64_t sample, int64_t replica, int stage) {
    pc_factors factors = pc_factors_lognormal(parts->base.bad_days->link_jitter);
    pc_draws_begin(&parts->rng, parts->outline.spec->seed, sample, PC_DRAWN_TRANSFERS, replica, stage);
    return pc_factors_draw(&factors, &parts->rng);
}

/* Two stages, two replicas. Each transfer has a factor, from the stream of the stage that waits for it. What stages
 * reduce has the largest share of its replicas; the embedding has the larger one of both ends, the loss that of the
 * last stage, the norm the largest. */
static pc_time with_shares(drawn *parts, const pc_costs *costs, int64_t sample) {
    const pc_outline *outline = &parts->outline;
    const double *share = parts->conditions.share;
    pc_time done[2] = {0, 0};
    pc_conditions_draw(&parts->base, sample, &parts->rng, &parts->conditions);
    for (int64_t r = 0; r < 2; r++) {
        pc_time end[2], down, up;
        down = pc_time_drawn((double)outline->device[pc_outline_hop(outline, 0, 1)].hop_ps *
                             transfer_factor(parts, sample, r, 1));
        up = pc_time_drawn((double)outline->device[pc_outline_hop(outline, 1, 0)].hop_ps *
                           transfer_factor(parts, sample, r, 0));
        go_through(costs, &down, &up, end);
        for (int d = 0; d < 2; d++) done[d] = pc_max(done[d], end[d]);
    }
    for (int d = 0; d < 2; d++) done[d] += pc_time_drawn((double)outline->chunks_of[d].reduce_ps * share[d]);
    double largest = fmax(share[0], share[1]);
    return finish(outline, done, pc_time_drawn((double)outline->tied_ps * largest),
                  pc_time_drawn((double)outline->loss_ps * share[1]),
                  pc_time_drawn((double)outline->norm_ps * largest));
}

static void test_whose_share_counts(void **state) {
    (void)state;
    enum { SAMPLES = 20 };
    pc_iteration_spec spec = one_microbatch(2, 2);
    pc_costs costs;
    drawn parts;
    spec.bad_days = (pc_bad_days){.samples = SAMPLES, .link_jitter = 0.4};
    open_drawn(&spec, &parts);
    assert_int_equal(pc_outline_costs(&parts.outline, 0, &costs, NULL), PC_OK);
    assert_true(parts.outline.tied_ps > 0 && parts.outline.loss_ps > 0 && parts.outline.norm_ps > 0);
    pc_iteration found = run_spec(&spec);
    for (int i = 0; i < SAMPLES; i++) assert_int_equal(found.sample_ps[i], with_shares(&parts, &costs, i));
    pc_iteration_free(&found);
    pc_costs_free(&costs);
    close_drawn(&parts);
}

/* ---- two stages that hold each other's replica ---- */

/* The first stage is so slow that it is the last to reduce gradients; in a node of its own, or beside the other one in
 * a node in which transfers take no time. */
static pc_iteration_spec two_pipelines(bool in_one_node) {
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("chimera");
    spec.cut.chunks = spec.generator->chunks_default;
    spec.cut.tp = in_one_node ? 4 : 8;
    spec.cut.pp = 2;
    spec.cut.dp = in_one_node ? 2 : 1;
    spec.cut.zero = 0;
    spec.model.is_tied = false;
    spec.overlaps_gradients = false;
    spec.memory_limit_bytes = INT64_C(1) << 40;
    if (in_one_node) {
        spec.order = (pc_rank_order){{PC_AXIS_TP, PC_AXIS_PP, PC_AXIS_DP}};
        spec.machine.domain.latency_s = spec.machine.domain.fast_latency_s = 0;
        spec.machine.domain.bandwidth_bytes_per_s = 1e30;
        spec.machine.collective_call_s = 0;
    }
    spec.bad_days = (pc_bad_days){.samples = 1, .has_slow_stage = true, .slow_stage = 0, .slow_factor = 3};
    return spec;
}

/* It waits for the other's bad link as for its own: both make all transfers bad, and the reduction of both. */
static void test_a_bad_link_of_the_partner(void **state) {
    (void)state;
    enum { SAMPLES = 20 };
    pc_iteration_spec spec = two_pipelines(false);
    spec.bad_days.samples = SAMPLES;
    spec.bad_days.bad_links = 1;
    spec.bad_days.bad_factor = 0.3;
    pc_iteration x = run_spec(&spec);
    for (int i = 1; i < SAMPLES; i++) assert_int_equal(x.sample_ps[i], x.sample_ps[0]);
    pc_iteration_free(&x);
}

/* Beside the sample without jitter both stages' collectives have the larger share of the two, and so has the norm. */
static void test_a_share_of_the_partner(void **state) {
    (void)state;
    enum { SAMPLES = 20 };
    pc_iteration_spec spec = two_pipelines(true);
    pc_iteration without = run_spec(&spec);
    drawn parts;
    spec.bad_days.samples = SAMPLES;
    spec.bad_days.link_jitter = 0.3;
    pc_iteration with = run_spec(&spec);
    open_drawn(&spec, &parts);
    assert_int_equal(parts.outline.device[0].hop_ps, 0);
    for (int i = 0; i < SAMPLES; i++) {
        pc_conditions_draw(&parts.base, i, &parts.rng, &parts.conditions);
        double share = fmax(parts.conditions.share[0], parts.conditions.share[1]);
        pc_time more = pc_time_drawn((double)parts.outline.norm_ps * share) - parts.outline.norm_ps;
        for (int c = 0; c < parts.outline.chunks; c++) {
            const pc_chunk_outline *chunk = &parts.outline.chunks_of[c];
            more += chunk->buckets * (pc_time_drawn((double)chunk->reduce_ps * share) - chunk->reduce_ps);
        }
        assert_int_equal(with.sample_ps[i] - without.sample_ps[0], more);
    }
    close_drawn(&parts);
    pc_iteration_free(&with);
    pc_iteration_free(&without);
}

/* ---- over replicas, and over samples ---- */

/* One stage, two replicas, the first slow: it decides all, as if both were, while ZeRO 2 reduces beside its passes;
 * also over a network so slow that reductions wait for each other. */
static void test_the_slow_replicas_stream(void **state) {
    (void)state;
    for (int microbatches = 1; microbatches <= 8; microbatches++) {
        pc_iteration_spec spec = one_microbatch(1, 2), both;
        spec.cut.tp = 8; /* a node each */
        spec.cut.zero = 2;
        spec.cut.microbatches = microbatches;
        if (microbatches % 2 == 0) spec.machine.network.bandwidth_bytes_per_s *= 0.02;
        spec.overlaps_gradients = true;
        spec.bad_days = (pc_bad_days){.samples = 1, .has_slow_stage = true, .slow_factor = 1.5};
        both = spec;
        both.bad_days = (pc_bad_days){.samples = 1, .slow_gpus = 16, .slow_factor = 1.5};
        pc_iteration a = run_spec(&spec), b = run_spec(&both);
        assert_int_equal(a.sample_ps[0], b.sample_ps[0]);
        assert_true(a.sample_ps[0] > llrint(a.bad_days.good_s * 1e12));
        pc_iteration_free(&a);
        pc_iteration_free(&b);
    }
}

/* Of two numbers a and b: their mean, and its standard error |a - b| / 2; of one number there is none. */
static void test_error_of_two(void **state) {
    (void)state;
    pc_iteration_spec spec = one_microbatch(2, 2);
    spec.jitter = 0.2;
    spec.bad_days.samples = 2;
    pc_iteration x = run_spec(&spec);
    double a = pc_time_to_seconds(x.sample_ps[0]), b = pc_time_to_seconds(x.sample_ps[1]);
    assert_true(a != b && fabs(x.bad_days.iteration_mean_s / ((a + b) / 2) - 1) < 1e-12);
    assert_true(fabs(x.bad_days.iteration_mean_error_s / (fabs(a - b) / 2) - 1) < 1e-9);
    pc_iteration_free(&x);
    spec.bad_days.samples = 1;
    x = run_spec(&spec);
    assert_true(isnan(x.bad_days.iteration_mean_error_s) && x.bad_days.iteration_mean_s == a);
    pc_iteration_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_differ),         cmocka_unit_test(test_factors_between_quantiles),
        cmocka_unit_test(test_the_slow_stage_is_one),  cmocka_unit_test(test_where_a_bad_link_shows),
        cmocka_unit_test(test_whose_share_counts),     cmocka_unit_test(test_a_bad_link_of_the_partner),
        cmocka_unit_test(test_a_share_of_the_partner), cmocka_unit_test(test_the_slow_replicas_stream),
        cmocka_unit_test(test_error_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
