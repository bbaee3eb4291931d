/* A whole iteration on the engine, event by event, is the shortcut's, bit for bit: over every named schedule, closed
 * and over flows, replicas folded and expanded, whatever is sharded, overlaps or fits. And what the engine saw of it
 * agrees with itself. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/training/outline.h"
#include "tests/iteration_example.h"
#include "tests/random_iteration.h"
#include "tests/same_replay.h"

#include <math.h>

/* A room in which some stages' activations fit and others' may not: between what is held all the time and the peak, of
 * the stage that holds most. */
static void tighten(test_random *random, const pc_iteration *iteration, pc_iteration_spec *spec) {
    int64_t fixed = 0, peak = 0;
    for (int d = 0; d < iteration->devices; d++) {
        const pc_device_memory *m = &iteration->memory[d];
        int64_t held = m->peak_bytes - m->activations;
        if (held > fixed) fixed = held;
        if (m->peak_bytes > peak) peak = m->peak_bytes;
    }
    spec->memory_limit_bytes = fixed + (int64_t)((double)(peak - fixed) * (double)test_between(random, 20, 105) / 100);
}

/* ---- equality ---- */

static pc_iteration run(const pc_iteration_spec *spec, pc_engine_mode engine) {
    pc_iteration_spec asked = *spec;
    pc_iteration iteration;
    pc_error error = {0};
    asked.engine = engine;
    if (pc_iteration_run(&asked, NULL, true, &iteration, &error)) fail_msg("%s", error.message);
    return iteration;
}

static void same_number(double a, double b, const char *what) {
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bit for bit is what is asked */
    if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b))) fail_msg("%s: %.17g; expected %.17g", what, a, b);
}

static void same_memory(const pc_iteration *a, const pc_iteration *b) {
    assert_int_equal(a->devices, b->devices);
    for (int d = 0; d < b->devices; d++) {
        const pc_device_memory *x = &a->memory[d], *y = &b->memory[d];
        assert_int_equal(x->peak_bytes, y->peak_bytes);
        assert_int_equal(x->peak_ps, y->peak_ps);
        assert_int_equal(x->activations, y->activations);
        assert_int_equal(x->buffers, y->buffers);
    }
}

static void same_exposed(const pc_exposed *a, const pc_exposed *b) {
    same_number(a->tp, b->tp, "tp");
    same_number(a->pp, b->pp, "pp");
    same_number(a->dp, b->dp, "dp");
    same_number(a->cp, b->cp, "cp");
    same_number(a->ep, b->ep, "ep");
    same_number(a->optimizer, b->optimizer, "optimizer");
    same_number(a->bubble, b->bubble, "bubble");
}

static void same_iteration(const pc_iteration *a, const pc_iteration *b) {
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->message, b->message);
    same_number(a->iteration_s, b->iteration_s, "iteration");
    if (b->status != PC_RUN_INFEASIBLE) same_memory(a, b);
    if (b->status) return;
    same_exposed(&a->exposed, &b->exposed);
    same_number(a->link_utilisation_max, b->link_utilisation_max, "utilisation");
    same_number(a->standard_error_s, b->standard_error_s, "error");
    same_number(a->mfu, b->mfu, "mfu");
    same_number(a->bad_days.good_s, b->bad_days.good_s, "good day");
    check_column(a->sample_ps, b->sample_ps, b->bad_days.samples, sizeof *b->sample_ps);
    assert_true(a->replay.trace_hash == b->replay.trace_hash);
    check_same_trace(&a->replay.trace, &b->replay.trace);
}

/* ---- what the engine saw ---- */

/* Of what a device takes at one instant, for a pass and for a copy back, the engine may have either first: then the
 * level behind both counts. */
static bool is_between(const pc_engine_trace *seen, int64_t row, bool has_copies) {
    bool is_last = row + 1 == seen->memory_count || seen->memory_device[row + 1] != seen->memory_device[row] ||
                   seen->memory_time_ps[row + 1] != seen->memory_time_ps[row];
    return has_copies && !is_last;
}

/* Levels of the replay are those of activations; the engine's all that is held, the step's bytes with it, but not what
 * CUDA graphs keep beside these. */
static void check_levels(const pc_iteration_spec *spec, const pc_iteration *iteration) {
    bool has_copies = pc_offload_is_beside_passes(&spec->cut.offload);
    const pc_engine_trace *seen = &iteration->replay.engine;
    const pc_replay_trace *trace = &iteration->replay.trace;
    int64_t row = 0, level = 0;
    for (int d = 0; d < iteration->devices; d++) {
        int64_t fixed = 0, most = 0;
        for (bool is_first = true; row < seen->memory_count && seen->memory_device[row] == d; row++, is_first = false) {
            if (is_first) fixed = seen->memory_bytes[row];
            if (seen->memory_bytes[row] > most) most = seen->memory_bytes[row];
            if (is_first || level == trace->level_count || trace->level_device[level] != d) continue;
            assert_int_equal(seen->memory_time_ps[row], trace->level_time_ps[level]);
            if (!is_between(seen, row, has_copies))
                assert_int_equal(seen->memory_bytes[row] - fixed, trace->level_bytes[level]);
            level++;
        }
        if (spec->cut.graphs == 0) assert_int_equal(most, iteration->memory[d].peak_bytes);
        assert_true(most <= iteration->memory[d].peak_bytes);
        assert_int_equal(seen->memory_capacity_bytes[d], iteration->memory[d].capacity_bytes);
    }
    assert_int_equal(row, seen->memory_count);
    assert_int_equal(level, trace->level_count);
}

static void check_flows(const pc_engine_trace *seen) {
    for (int64_t i = 0; i < seen->flow_count; i++) {
        assert_true(seen->flow_ready_ps[i] <= seen->flow_end_ps[i]);
        assert_true(seen->flow_start_ps[i] + seen->flow_alone_ps[i] <= seen->flow_end_ps[i] + 1);
        assert_true(i == 0 || seen->flow_start_ps[i - 1] <= seen->flow_start_ps[i]);
        assert_true(seen->flow_out[i] >= 0 && seen->flow_out[i] < seen->link_count);
        assert_true(seen->flow_in[i] >= 0 && seen->flow_in[i] < seen->link_count);
        if (!seen->link_shared[seen->flow_out[i]])
            assert_int_equal(seen->flow_start_ps[i] + seen->flow_alone_ps[i], seen->flow_end_ps[i]);
    }
}

/* A load over time is what went over the link. */
static void check_loads(const pc_engine_trace *seen) {
    double *carried = calloc((size_t)seen->link_count + 1, sizeof *carried);
    double *sent = calloc((size_t)seen->link_count + 1, sizeof *sent);
    double *load = calloc((size_t)seen->link_count + 1, sizeof *load);
    pc_time *since = calloc((size_t)seen->link_count + 1, sizeof *since);
    assert_true(carried && sent && load && since);
    for (int64_t i = 0; i < seen->load_count; i++) {
        int32_t l = seen->load_link[i];
        assert_true(i == 0 || seen->load_time_ps[i - 1] <= seen->load_time_ps[i]);
        carried[l] += load[l] * (double)(seen->load_time_ps[i] - since[l]) / 1e12;
        load[l] = seen->load_bytes_per_s[i];
        since[l] = seen->load_time_ps[i];
        if (seen->link_shared[l]) assert_true(load[l] <= seen->link_bytes_per_s[l] * (1 + 1e-9));
    }
    for (int64_t i = 0; i < seen->flow_count; i++) {
        sent[seen->flow_out[i]] += seen->flow_bytes[i];
        sent[seen->flow_in[i]] += seen->flow_bytes[i];
    }
    for (int64_t l = 0; l < seen->link_count; l++) {
        assert_true(load[l] == 0 && sent[l] > 0);
        if (fabs(carried[l] - sent[l]) > 1e-6 * sent[l] + 1e3) fail_msg("%g bytes; expected %g", carried[l], sent[l]);
    }
    free(carried);
    free(sent);
    free(load);
    free(since);
}

static int64_t count_flows(const pc_engine_trace *seen, pc_flow_sort sort) {
    int64_t count = 0;
    for (int64_t i = 0; i < seen->flow_count; i++) count += seen->flow_sort[i] == sort;
    return count;
}

/* Whether both ends of the model, on different stages if there are several, hold the tied matrix, or the embedding of
 * multi-token prediction. */
static bool tied_ends(const pc_iteration_spec *spec) {
    bool is_v = spec->generator->placement == PC_PLACEMENT_V && spec->cut.chunks % 2 == 0;
    bool is_tied = spec->model.is_tied;
    bool is_trained = !(pc_cut_frozen(&spec->cut) & (int32_t)(is_tied ? PC_FROZEN_HEAD : PC_FROZEN_EMBEDDING));
    return (is_tied || spec->model.mtp_layers > 0) && !is_v && is_trained &&
           spec->generator->barriers == PC_BARRIERS_NONE;
}

/* Whether messages between stages fill links: short ones take no longer than the latency of long ones, and are no
 * flows.
 */
static bool messages_fill(const pc_iteration_spec *spec) {
    pc_outline outline;
    bool fill = false;
    assert_int_equal(pc_outline_make(spec, NULL, &outline, NULL), PC_OK);
    for (int d = 0; spec->cut.pp > 1 && d < outline.devices; d++)
        fill = fill || outline.device[d].message_s > outline.device[d].hop.latency_s;
    pc_outline_free(&outline);
    return fill;
}

static void check_seen(const pc_iteration_spec *spec, const pc_iteration *iteration) {
    const pc_engine_trace *seen = &iteration->replay.engine;
    int replicas = spec->expands ? spec->cut.dp : 1;
    assert_int_equal(iteration->replay.way, PC_WAY_EVENTS);
    assert_int_equal(seen->queue_count, iteration->replay.trace.pass_count);
    for (int64_t i = 0; i < seen->queue_count; i++)
        assert_true(seen->queue_ready_ps[i] >= 0 &&
                    seen->queue_ready_ps[i] <= iteration->replay.trace.pass_start_ps[i]);
    assert_int_equal(seen->work_count, replicas * iteration->devices * (spec->overhead_ps > 0 ? 2 : 1));
    assert_true((int64_t)seen->event_count > 2 * replicas * seen->queue_count);
    bool has_collectives = spec->cut.tp > 1 || spec->cut.cp > 1 || spec->cut.ep > 1;
    bool has_tensor_flows = spec->granularity == PC_GRANULARITY_OPERATIONS && has_collectives;
    assert_true((count_flows(seen, PC_FLOW_TENSOR) > 0) == has_tensor_flows);
    assert_true((count_flows(seen, PC_FLOW_MESSAGE) > 0) == messages_fill(spec));
    assert_true((count_flows(seen, PC_FLOW_TIED) > 0) == (tied_ends(spec) && iteration->devices > 1));
    check_levels(spec, iteration);
    check_flows(seen);
    check_loads(seen);
}

/* ---- the tests ---- */

static pc_engine_way shortcut_of(const pc_iteration_spec *spec, const pc_iteration *iteration) {
    (void)spec;
    return isnan(iteration->link_utilisation_max) ? PC_WAY_PATHS : PC_WAY_FLOWS;
}

/* Returns what came of it. */
static pc_run_status compare(const pc_iteration_spec *spec) {
    pc_iteration shortcut = run(spec, PC_ENGINE_AUTO), events = run(spec, PC_ENGINE_EVENTS);
    pc_run_status status = shortcut.status;
    same_iteration(&events, &shortcut);
    bool has_begun = events.devices > 0 && events.memory[0].activations > 0; /* or not even the state fits */
    assert_int_equal(events.replay.way, has_begun ? PC_WAY_EVENTS : PC_WAY_PATHS);
    if (!status) {
        assert_int_equal(shortcut.replay.way, shortcut_of(spec, &shortcut));
        assert_int_equal(shortcut.replay.engine.link_count + shortcut.replay.engine.queue_count, 0);
        check_seen(spec, &events);
    }
    pc_iteration_free(&shortcut);
    pc_iteration_free(&events);
    return status;
}

static void print_spec(const pc_iteration_spec *spec) {
    if (!getenv("PC_TEST_SAY")) return;
    print_message(
        "%s p%d m%ld t%d d%d zero %d net %d ops %d expand %d jitter %g samples %ld p2p %d grad %d par %d step %d "
        "bucket %ld limit %ld\n",
        spec->generator->name, spec->cut.pp, (long)spec->cut.microbatches, spec->cut.tp, spec->cut.dp, spec->cut.zero,
        spec->network, spec->granularity, spec->expands, spec->jitter, (long)spec->bad_days.samples, spec->overlaps_p2p,
        spec->overlaps_gradients, spec->overlaps_parameters, spec->step, (long)spec->bucket_bytes,
        (long)spec->memory_limit_bytes);
}

static void test_events_are_the_shortcut(void **state) {
    (void)state;
    test_random random = {2019};
    long cases = test_cases(60, 300), done[3] = {0}, pairs = 0;
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = random_iteration(&random);
        pairs += spec.overlaps_pairs;
        print_spec(&spec);
        done[compare(&spec)]++;
        if (i % 3) continue;
        pc_iteration roomy = run(&spec, PC_ENGINE_AUTO);
        if (!roomy.status) {
            tighten(&random, &roomy, &spec);
            done[compare(&spec)]++;
        }
        pc_iteration_free(&roomy);
    }
    print_message("%ld fit, %ld do not, %ld cannot be; %ld with pairs\n", done[0], done[1], done[2], pairs);
    assert_true(done[PC_RUN_OK] > cases / 2);
    test_count("iterations, shortcut and events", done[0] + done[1]);
}

static void test_pairs_are_the_shortcut(void **state) {
    (void)state;
    test_random random = {412};
    long cases = test_cases(60, 300), done[3] = {0}, copies = 0;
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = random_iteration(&random);
        random_pairs(&random, &spec);
        copies += pc_offload_is_beside_passes(&spec.cut.offload);
        print_spec(&spec);
        done[compare(&spec)]++;
    }
    print_message("%ld fit, %ld do not, %ld cannot be; %ld with copies\n", done[0], done[1], done[2], copies);
    assert_true(done[PC_RUN_OK] > cases / 2 && test_saw(copies, 5));
}

/* ---- passes that wait for memory ---- */

/* F and BW that ran together. */
static void mark_pairs(const pc_replay_trace *trace, pc_schedule *schedule) {
    assert_int_equal(pc_schedule_add_pairs(schedule, NULL), PC_OK);
    for (int64_t i = 0; i + 1 < trace->pass_count; i++)
        schedule->pairs[i] = trace->pass_device[i] == trace->pass_device[i + 1] && trace->pass[i].kind == PC_PASS_F &&
                             trace->pass[i + 1].kind == PC_PASS_BW &&
                             trace->pass_start_ps[i] == trace->pass_start_ps[i + 1];
}

/* A walk over the order in which passes ran is possible, fits, and is nowhere later: a device may have waited for a
 * pass which it then passed over, since by then that one waited for memory on another. */
static void check_order_that_ran(const pc_iteration_spec *spec, const pc_iteration *iteration) {
    const pc_replay_trace *trace = &iteration->replay.trace;
    int64_t counts[64] = {0};
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    pc_error error = {0};
    for (int64_t i = 0; i < trace->pass_count; i++) counts[trace->pass_device[i]]++;
    pc_placement placement = pc_generator_placement(spec->generator, spec->cut.chunks, spec->cut.slices);
    assert_int_equal(pc_schedule_create("ran", spec->cut.pp, (int)spec->cut.microbatches, spec->cut.chunks, placement,
                                        counts, &schedule, NULL),
                     PC_OK);
    schedule.barriers = spec->generator->barriers;
    memcpy(schedule.passes, trace->pass, (size_t)trace->pass_count * sizeof *trace->pass);
    if (spec->overlaps_pairs) mark_pairs(trace, &schedule);
    assert_int_equal(pc_iteration_costs(spec, NULL, &costs, NULL), PC_OK);
    const pc_replay_options with_trace = {.with_trace = true};
    if (pc_replay_run(&schedule, &costs, &with_trace, &replay, &error)) fail_msg("%s", error.message);
    assert_false(replay.out_of_memory);
    for (int64_t i = 0; i < trace->pass_count; i++)
        assert_true(replay.trace.pass_start_ps[i] <= trace->pass_start_ps[i]);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

static void check_waited(const pc_iteration_spec *spec, const pc_iteration *iteration) {
    for (int d = 0; d < iteration->devices; d++)
        assert_true(iteration->memory[d].peak_bytes <= iteration->memory[d].capacity_bytes);
    check_levels(spec, iteration);
    check_flows(&iteration->replay.engine);
    check_loads(&iteration->replay.engine);
    if (isnan(iteration->link_utilisation_max) && !spec->expands) check_order_that_ran(spec, iteration);
}

/* What a pass waits for in vain is in the result: some stage needs more than it has. */
static void check_lacks(const pc_iteration *iteration) {
    bool lacks = false;
    for (int d = 0; d < iteration->devices; d++)
        lacks |= iteration->memory[d].peak_bytes > iteration->memory[d].capacity_bytes;
    assert_true(lacks || !strstr(iteration->message, " waits for "));
}

/* What fits is as if nobody could wait. What does not ends in an order that fits, or says which pass waits for ever;
 * whichever way it was to be run. */
static void check_waiting(test_random *random, pc_iteration_spec spec, long *waited, long *stuck) {
    spec.cut.offload.kinds &= ~PC_OFFLOAD_BESIDE_PASSES; /* which none that waits may have */
    print_spec(&spec);
    pc_iteration roomy = run(&spec, PC_ENGINE_AUTO);
    if (!roomy.status) {
        spec.waits_for_memory = true;
        pc_iteration asked = run(&spec, PC_ENGINE_AUTO);
        same_iteration(&asked, &roomy);
        assert_int_equal(asked.replay.way, roomy.replay.way);
        pc_iteration_free(&asked);
        tighten(random, &roomy, &spec);
        pc_iteration iteration = run(&spec, PC_ENGINE_AUTO), events = run(&spec, PC_ENGINE_EVENTS);
        same_iteration(&iteration, &events);
        if (iteration.status) {
            assert_int_equal(iteration.status, PC_RUN_OUT_OF_MEMORY);
            check_lacks(&iteration);
            ++*stuck;
        } else if (iteration.replay.way == PC_WAY_EVENTS) {
            check_waited(&spec, &iteration);
            ++*waited;
        }
        pc_iteration_free(&iteration);
        pc_iteration_free(&events);
    }
    pc_iteration_free(&roomy);
}

static void test_passes_wait_for_memory(void **state) {
    (void)state;
    test_random random = {77};
    long cases = test_cases(100, 300), waited = 0, stuck = 0, pairs_waited = 0;
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = random_iteration(&random);
        spec.overlaps_pairs = spec.delays_weights = false;
        check_waiting(&random, spec, &waited, &stuck);
    }
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = random_iteration(&random);
        random_pairs(&random, &spec);
        check_waiting(&random, spec, &pairs_waited, &stuck);
    }
    print_message("%ld waited, %ld with pairs, %ld for ever\n", waited, pairs_waited, stuck);
    assert_true(test_saw(waited, cases / 8 + 1) && test_saw(pairs_waited, 4) && test_saw(stuck, 1));
}

/* One stage, two microbatches, forward first, and room for the activations of one: the second F waits for the first
 * backward pass, and a device that does one pass after the other takes no longer for that. */
static void test_a_stage_that_waits_is_as_fast(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("gpipe");
    spec.cut.pp = 1;
    spec.cut.dp = 1;
    spec.cut.microbatches = 2;
    spec.memory_limit_bytes = INT64_C(1) << 40;
    pc_iteration roomy = run(&spec, PC_ENGINE_AUTO);
    int64_t one = roomy.memory[0].activations / 2;
    spec.memory_limit_bytes = roomy.memory[0].peak_bytes - one;
    spec.waits_for_memory = true;
    pc_iteration iteration = run(&spec, PC_ENGINE_AUTO);
    assert_int_equal(iteration.status, PC_RUN_OK);
    assert_int_equal(iteration.replay.way, PC_WAY_EVENTS);
    assert_int_equal(iteration.memory[0].activations, one);
    same_number(iteration.iteration_s, roomy.iteration_s, "iteration");
    const pc_pass expected[] = {{0, 0, PC_PASS_F}, {0, 0, PC_PASS_BW}, {1, 0, PC_PASS_F}, {1, 0, PC_PASS_BW}};
    assert_memory_equal(iteration.replay.trace.pass, expected, sizeof expected);
    assert_int_equal(iteration.replay.engine.queue_ready_ps[2], 0);
    pc_iteration_free(&iteration);
    spec.memory_limit_bytes -= one;
    iteration = run(&spec, PC_ENGINE_AUTO);
    assert_int_equal(iteration.status, PC_RUN_OUT_OF_MEMORY);
    assert_non_null(strstr(iteration.message, "stage 0: activations of one microbatch: "));
    assert_int_equal(iteration.memory[0].peak_bytes, roomy.memory[0].peak_bytes - one); /* the first microbatch's */
    assert_int_equal(iteration.memory[0].activations, one);
    pc_iteration_free(&iteration);
    pc_iteration_free(&roomy);
}

/* ---- a lack of memory of ours ---- */

static long fail_each_allocation(const pc_iteration_spec *spec) {
    for (long i = 0;; i++) {
        pc_iteration iteration;
        pc_error error = {0};
        pc_alloc_fail_after(i);
        pc_code code = pc_iteration_run(spec, NULL, true, &iteration, &error);
        pc_alloc_fail_after(-1);
        if (!code) {
            pc_iteration_free(&iteration);
            return i;
        }
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
    }
}

static void test_a_lack_of_memory_is_said(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.engine = PC_ENGINE_EVENTS;
    spec.step = PC_STEP_POST_VALIDATION;
    spec.cut.microbatches = spec.cut.pp = 2;
    spec.cut.dp = 2;
    assert_true(fail_each_allocation(&spec) > 100);
    spec.waits_for_memory = true;
    spec.network = PC_NETWORK_FLOWS;
    spec.expands = true;
    spec.overlaps_p2p = false;
    assert_true(fail_each_allocation(&spec) > 100);
    spec.expands = false;
    spec.network = PC_NETWORK_CLOSED;
    spec.jitter = 0.1;
    spec.bad_days = (pc_bad_days){.samples = 1, .link_jitter = 0.1};
    assert_true(fail_each_allocation(&spec) > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_are_the_shortcut),  cmocka_unit_test(test_pairs_are_the_shortcut),
        cmocka_unit_test(test_passes_wait_for_memory),   cmocka_unit_test(test_a_stage_that_waits_is_as_fast),
        cmocka_unit_test(test_a_lack_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
