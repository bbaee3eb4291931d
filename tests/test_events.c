/* A whole iteration on the engine, event by event, is the shortcut's, bit for bit: over every named schedule, closed
 * and over flows, replicas folded and expanded, whatever is sharded, overlaps or fits. And what the engine saw of it
 * agrees with itself. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/training/outline.h"
#include "tests/iteration_example.h"
#include "tests/iteration_experts.h"
#include "tests/random_frozen.h"
#include "tests/same_replay.h"

#include <math.h>

/* ---- settings ---- */

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

/* Searches take their time: a third as often as the others. */
static void draw_schedule(test_random *random, pc_iteration_spec *spec) {
    int count;
    const pc_generator *all = pc_generators(&count);
    do spec->generator = &all[test_between(random, 0, count - 1)];
    while (spec->generator->searches && test_between(random, 0, 2) > 0);
    spec->cut.chunks = spec->generator->chunks_default;
}

/* Iterations of bad days: slow GPUs, bad links, noise. */
static void draw_bad_days(test_random *random, pc_iteration_spec *spec) {
    int64_t gpus = (int64_t)spec->cut.tp * spec->cut.pp * spec->cut.dp;
    spec->jitter = toss(random) ? 0 : 0.1;
    spec->bad_days = (pc_bad_days){.samples = test_between(random, 1, 3),
                                   .gpu_jitter = toss(random) ? 0 : 0.05,
                                   .link_jitter = toss(random) ? 0 : 0.3,
                                   .slow_gpus = test_between(random, 0, gpus < 3 ? gpus : 3),
                                   .slow_factor = 1.5,
                                   .bad_links = test_between(random, 0, gpus < 3 ? gpus : 3),
                                   .bad_factor = 0.25};
}

/* What ZeRO 3 has of units: some in a unit or ahead, kept or not, reduced by every microbatch or the last. */
static void draw_units(test_random *random, pc_iteration_spec *spec) {
    spec->fsdp_prefetch = (int)test_between(random, 0, 3);
    spec->unit_layers = test_between(random, 0, 3);
    spec->fsdp_version = (pc_fsdp_version)test_between(random, 0, 2);
    if (spec->cut.zero != 3 || spec->unit != PC_UNIT_LAYER) return;
    spec->reshard_after_forward = (pc_reshard)test_between(random, 0, 2);
    spec->gradient_sync = (pc_gradient_sync)test_between(random, 0, 2);
}

/* Over links from a tenth of what passes need to ten times as much; with activations where the schedule can. */
static void draw_offload(test_random *own, pc_iteration_spec *spec) {
    static const int32_t kinds[] = {PC_OFFLOAD_FINE_GRAINED, PC_OFFLOAD_SELECTIVE, PC_OFFLOAD_FULL, PC_OFFLOAD_TENSORS,
                                    0};
    if (!toss(own)) return;
    spec->machine.host_link_bytes_per_s = 1e9 * (double)test_between(own, 2, 200);
    spec->machine.host_memory_bytes_per_s = 1e9 * (double)test_between(own, 100, 1000);
    spec->machine.host_link_gpus = (int32_t)test_between(own, 0, 2);
    bool can = !spec->generator->recomputes && !spec->generator->adapts;
    if (can) spec->cut.offload.kinds = kinds[test_between(own, 0, 4)];
    if (can && spec->cut.offload.kinds) spec->cut.recompute = toss(own) ? PC_RECOMPUTE_NONE : PC_RECOMPUTE_SELECTIVE;
    if (spec->cut.offload.kinds == PC_OFFLOAD_FINE_GRAINED)
        spec->cut.offload.modules = (int32_t)test_between(own, 1, 31) & 0x1f;
    if (toss(own)) spec->cut.offload.kinds |= PC_OFFLOAD_OPTIMIZER;
    spec->cut.offload.fraction = (double)test_between(own, 0, 4) / 4;
    spec->cut.offload.optimizer_fraction = (double)test_between(own, 0, 4) / 4;
    spec->cut.offload.overlaps_copies = toss(own);
    if (spec->cut.zero == 3 && spec->cut.dp > 1 && toss(own)) spec->cut.offload.kinds |= PC_OFFLOAD_PARAMETERS;
}

static void draw_slices(test_random *own, pc_iteration_spec *spec) {
    spec->cut.chunks = (int)test_between(own, 1, 4);
    if (pc_generator_has_sliced_parts(spec->generator)) spec->cut.slices = (int)test_between(own, 1, 3);
    if (spec->cut.slices > 0) spec->cut.chunks = spec->cut.slices * (int)test_between(own, 1, 2);
    spec->cut.sequence_split = (pc_sequence_split)toss(own);
    spec->cut.zero %= 2;
    spec->cut.cp = spec->cut.cp_a2a = 0;
    spec->model.attention = PC_ATTENTION_FLASH;
    spec->model.sliding_window = spec->model.attention_chunk_size = spec->model.sliding_window_pattern = 0;
    spec->model.document_length = spec->model.document_length_square = 0;
    spec->cut.offload.kinds &= ~PC_OFFLOAD_ACTIVATIONS;
}

/* Of what was drawn apart and cannot be together, one goes; other tests ask for the refusals. */
static void settle(pc_iteration_spec *spec) {
    pc_cut *cut = &spec->cut;
    if (spec->generator->barriers != PC_BARRIERS_NONE) {
        cut->lora = (pc_lora){0};
        cut->frozen = 0;
        if (cut->zero == 3) cut->zero = 2;
        if (cut->cross_entropy == PC_CROSS_ENTROPY_CHUNKED) cut->cross_entropy = PC_CROSS_ENTROPY_FUSED;
    }
    if (cut->kernels == PC_KERNELS_EAGER) cut->fuses_operations = cut->compiles = false;
    if (pc_cut_frozen(cut)) cut->zero_partition = PC_ZERO_PARTITION_EVEN;
    if (!(cut->offload.kinds & PC_OFFLOAD_FINE_GRAINED)) cut->offload.modules = 0;
    if (cut->zero < 3) cut->offload.kinds &= ~PC_OFFLOAD_PARAMETERS;
}

/* What exchanges hide behind: kernels of pairs, some of them delayed, or else shared experts. */
static void draw_overlaps(test_random *random, pc_iteration_spec *spec) {
    bool has_shared = spec->model.experts.shared_ffn_hidden > 0 && spec->cut.dispatcher != PC_DISPATCHER_ALLGATHER;
    bool runs_again = spec->cut.recompute_modules & PC_RECOMPUTES_SHARED_EXPERTS;
    spec->delays_weights = spec->overlaps_pairs && toss(random);
    spec->cut.overlaps_shared = has_shared && !runs_again && !spec->overlaps_pairs && toss(random);
}

static pc_iteration_spec draw_spec(test_random *random) {
    pc_iteration_spec spec = random_spec(random);
    draw_schedule(random, &spec);
    static const int pps[] = {1, 2, 3, 4};
    spec.cut.pp = pps[test_between(random, 0, 3)];
    bool has_halves = spec.generator->mixes && spec.generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
    if (has_halves) spec.cut.pp += spec.cut.pp % 2;
    if (spec.cut.dp > 8) spec.cut.dp = 3;
    spec.cut.microbatches = spec.cut.pp * 2 * test_between(random, 1, 2);
    spec.cut.zero = (int)test_between(random, 0, 3);
    spec.cut.gradient_bytes = toss(random) ? 4 : 2;
    spec.cut.recompute = (pc_recompute)test_between(random, 0, PC_RECOMPUTE_KINDS - 1);
    spec.cut.recompute_modules = (int32_t)test_between(random, 1, PC_RECOMPUTES_ALL);
    spec.cut.recompute_layers = 1;
    spec.cut.kernels = (pc_kernels)test_between(random, 0, 1);
    spec.unit = (pc_unit)test_between(random, 0, 1);
    spec.network = toss(random) ? PC_NETWORK_CLOSED : toss(random) ? PC_NETWORK_FLOWS : PC_NETWORK_AUTO;
    spec.expands = spec.cut.dp > 1 && test_between(random, 0, 3) == 0;
    if (spec.expands) spec.jitter = toss(random) ? 0 : 0.2;
    spec.seed = test_draw(random);
    test_random own = {spec.seed}; /* so that all else is drawn as without it */
    if (toss(&own)) spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    if (toss(&own)) spec.cut.gradient_accumulation = PC_GRADIENT_ACCUMULATION_SEPARATE;
    spec.cut.dummy_wgrad = spec.cut.seq_len % 3 > 0;
    draw_units(&own, &spec);
    draw_offload(&own, &spec);
    if (pc_placement_has_slices(spec.generator->placement)) draw_slices(&own, &spec);
    settle(&spec);
    random_base(&own, &spec.model, &spec.cut);
    bool can_have_muon = spec.cut.zero < 2 && !pc_cut_frozen(&spec.cut) && spec.cut.offload.kinds == 0;
    if (can_have_muon && toss(&own)) {
        spec.cut.optimizer.kind = PC_OPTIMIZER_MUON;
        spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    }
    spec.cut.graphs = (int32_t)test_between(&own, 0, PC_GRAPHS_ITERATION);
    spec.overlaps_tp = toss(random);
    spec.overhead_ps = toss(random) ? 0 : 123456789;
    spec.machine.leaf_nodes = (int32_t)test_between(random, 0, 2);
    spec.machine.oversubscription = 2;
    if (toss(random)) spec.overlap_slowdown = 0.25;
    if (toss(random) && spec.cut.zero > 0 && spec.generator->placement != PC_PLACEMENT_BIDIRECTIONAL)
        spec.cut.shard_group = spec.cut.dp % 2 == 0 ? spec.cut.dp / 2 : 1;
    if (!spec.expands && test_between(random, 0, 5) == 0) spec.granularity = PC_GRANULARITY_OPERATIONS;
    if (test_between(random, 0, 7) == 0) draw_bad_days(random, &spec);
    bool can_pair = pc_generator_pairs(spec.generator, spec.cut.pp, spec.cut.chunks) &&
                    spec.granularity == PC_GRANULARITY_PASS && !pc_offload_is_beside_passes(&spec.cut.offload);
    spec.overlaps_pairs = can_pair && toss(&own);
    test_random experts = {spec.seed};
    random_folded_experts(&experts, &spec);
    draw_overlaps(&own, &spec);
    return spec;
}

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

/* Whether both ends of the model, on different stages if there are several, hold the tied matrix. */
static bool tied_ends(const pc_iteration_spec *spec) {
    bool is_v = spec->generator->placement == PC_PLACEMENT_V && spec->cut.chunks % 2 == 0;
    bool is_trained = !(pc_cut_frozen(&spec->cut) & (int32_t)PC_FROZEN_HEAD);
    return spec->model.is_tied && !is_v && is_trained && spec->generator->barriers == PC_BARRIERS_NONE;
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
    bool has_tensor_flows = spec->granularity == PC_GRANULARITY_OPERATIONS && (spec->cut.tp > 1 || spec->cut.cp > 1);
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

static void describe(const pc_iteration_spec *spec, char text[512]) {
    snprintf(text, 512,
             "%s p%d m%ld t%d d%d zero %d net %d ops %d expand %d jitter %g samples %ld p2p %d grad %d par %d step %d "
             "bucket %ld limit %ld",
             spec->generator->name, spec->cut.pp, (long)spec->cut.microbatches, spec->cut.tp, spec->cut.dp,
             spec->cut.zero, spec->network, spec->granularity, spec->expands, spec->jitter,
             (long)spec->bad_days.samples, spec->overlaps_p2p, spec->overlaps_gradients, spec->overlaps_parameters,
             spec->step, (long)spec->bucket_bytes, (long)spec->memory_limit_bytes);
}

static void test_events_are_the_shortcut(void **state) {
    (void)state;
    test_random random = {2019};
    long cases = test_cases(60, 300), done[3] = {0}, pairs = 0;
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = draw_spec(&random);
        pairs += spec.overlaps_pairs;
        char text[512];
        describe(&spec, text);
        if (getenv("PC_TEST_SAY")) print_message("%ld: %s\n", i, text);
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

/* Whatever is drawn, of a schedule with pairs that run together. */
static void force_pairs(test_random *random, pc_iteration_spec *spec) {
    static const char *const names[] = {"1f1b-interleaved-overlap", "dualpipe", "dualpipe-v"};
    spec->generator = pc_generator_find(names[test_between(random, 0, 2)]);
    spec->cut.chunks = 2;
    spec->cut.slices = 0;
    spec->cut.sequence_split = 0;
    spec->cut.pp = toss(random) ? 2 : 4;
    spec->cut.microbatches = spec->cut.pp * 2 * test_between(random, 1, 2);
    spec->cut.offload = (pc_offload){0};
    spec->cut.shard_group = 0;
    spec->granularity = PC_GRANULARITY_PASS;
    spec->overlaps_pairs = true;
    draw_overlaps(random, spec);
}

static void test_pairs_are_the_shortcut(void **state) {
    (void)state;
    test_random random = {412};
    long cases = test_cases(60, 300), done[3] = {0};
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = draw_spec(&random);
        char text[512];
        force_pairs(&random, &spec);
        describe(&spec, text);
        if (getenv("PC_TEST_SAY")) print_message("%ld: %s\n", i, text);
        done[compare(&spec)]++;
    }
    print_message("%ld fit, %ld do not, %ld cannot be\n", done[0], done[1], done[2]);
    assert_true(done[PC_RUN_OK] > cases / 2);
}

/* ---- passes that wait for memory ---- */

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
static void test_passes_wait_for_memory(void **state) {
    (void)state;
    test_random random = {77};
    long cases = test_cases(100, 300), waited = 0, stuck = 0;
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = draw_spec(&random);
        char text[512];
        spec.cut.offload.kinds &= ~PC_OFFLOAD_BESIDE_PASSES; /* which none that waits may have */
        spec.overlaps_pairs = spec.delays_weights = false;
        describe(&spec, text);
        if (getenv("PC_TEST_SAY")) print_message("%ld: %s\n", i, text);
        pc_iteration roomy = run(&spec, PC_ENGINE_AUTO);
        if (roomy.status) {
            pc_iteration_free(&roomy);
            continue;
        }
        spec.waits_for_memory = true;
        pc_iteration asked = run(&spec, PC_ENGINE_AUTO);
        same_iteration(&asked, &roomy);
        assert_int_equal(asked.replay.way, roomy.replay.way);
        pc_iteration_free(&asked);
        tighten(&random, &roomy, &spec);
        pc_iteration iteration = run(&spec, PC_ENGINE_AUTO), events = run(&spec, PC_ENGINE_EVENTS);
        same_iteration(&iteration, &events);
        if (iteration.status) {
            assert_int_equal(iteration.status, PC_RUN_OUT_OF_MEMORY);
            check_lacks(&iteration);
            stuck++;
        } else if (iteration.replay.way == PC_WAY_EVENTS) {
            check_waited(&spec, &iteration);
            waited++;
        }
        pc_iteration_free(&iteration);
        pc_iteration_free(&events);
        pc_iteration_free(&roomy);
    }
    print_message("%ld waited, %ld for ever\n", waited, stuck);
    assert_true(test_saw(waited, cases / 8 + 1) && test_saw(stuck, 1));
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
