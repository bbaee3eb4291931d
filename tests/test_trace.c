/* Traces: what goes between stages, on every way to a trace; the block. */
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "results/row.h"
#include "tests/iteration_example.h"
#include "tests/random_schedule.h"
#include "tests/refusals.h"
#include "tests/same_replay.h"

static const pc_replay_options on_engine_with_trace = {.with_trace = true, .engine = PC_ENGINE_EVENTS};

/* ---- what must be sent, from the definition of a pipeline ---- */

/* Where in the model a pass works. */
static int part_of(const pc_schedule *s, int stage, int chunk) {
    if (s->placement == PC_PLACEMENT_BIDIRECTIONAL) return chunk == 0 ? stage : s->devices - 1 - stage;
    if (pc_placement_has_slices(s->placement))
        return chunk / pc_placement_slices(s->placement, s->chunks) * s->devices + stage;
    bool is_upward = s->placement == PC_PLACEMENT_V && chunk % 2 == 1;
    return is_upward ? (chunk + 1) * s->devices - 1 - stage : chunk * s->devices + stage;
}

/* Whether a pass `a` makes what `b` works on: the F before, or the backward pass of the part behind. */
static bool makes(const pc_schedule *s, int from, pc_pass a, int to, pc_pass b) {
    int hop = part_of(s, to, b.chunk) - part_of(s, from, a.chunk);
    bool a_is_back = a.kind == PC_PASS_B || a.kind == PC_PASS_BW,
         b_is_back = b.kind == PC_PASS_B || b.kind == PC_PASS_BW;
    if (a.microbatch != b.microbatch) return false;
    int slices = pc_placement_slices(s->placement, s->chunks);
    if (a.chunk % slices != b.chunk % slices) return false;
    return (a.kind == PC_PASS_F && b.kind == PC_PASS_F && hop == 1) || (a_is_back && b_is_back && hop == -1);
}

static int64_t find_maker(const pc_schedule *s, const pc_replay_trace *trace, int64_t i) {
    int64_t found = -1;
    for (int64_t j = 0; j < trace->pass_count; j++)
        if (makes(s, trace->pass_device[j], trace->pass[j], trace->pass_device[i], trace->pass[i])) found = j;
    return found;
}

static bool is_row_of(const pc_replay_trace *trace, int64_t row, int64_t pass) {
    return row < trace->transfer_count && trace->transfer_to[row] == trace->pass_device[pass] &&
           memcmp(&trace->transfer_pass[row], &trace->pass[pass], sizeof(pc_pass)) == 0;
}

/* Walks passes and rows together: every pass whose input another stage makes has the next row, no other has any. */
static void check_transfers(const pc_schedule *s, const pc_replay_trace *trace) {
    int64_t row = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        int64_t maker = find_maker(s, trace, i);
        if (maker < 0 || trace->pass_device[maker] == trace->pass_device[i]) continue;
        assert_true(is_row_of(trace, row, i));
        assert_int_equal(trace->transfer_from[row], trace->pass_device[maker]);
        assert_int_equal(trace->transfer_start_ps[row], trace->pass_end_ps[maker]);
        assert_true(trace->transfer_end_ps[row] >= trace->transfer_start_ps[row]);
        assert_true(trace->transfer_end_ps[row] <= trace->pass_start_ps[i]);
        row++;
    }
    assert_int_equal(row, trace->transfer_count);
}

/* A pass starts when its stage is free, its input is there, and its chunk is ready: no later, so that an arrival that
 * is told too early shows. */
static void check_starts(const pc_costs *costs, const pc_replay_trace *trace) {
    int64_t row = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        int d = trace->pass_device[i];
        bool is_first = i == 0 || trace->pass_device[i - 1] != d;
        pc_time expected = is_first ? 0 : trace->pass_end_ps[i - 1];
        pc_time ready = trace->pass[i].kind == PC_PASS_F ? pc_costs_ready(costs, d, trace->pass[i].chunk) : 0;
        if (ready > expected) expected = ready;
        if (is_row_of(trace, row, i) && trace->transfer_end_ps[row++] > expected)
            expected = trace->transfer_end_ps[row - 1];
        assert_int_equal(trace->pass_start_ps[i], expected);
    }
}

/* ---- replays ---- */

static void check_delays(const pc_costs *costs, const pc_replay_trace *trace) {
    for (int64_t i = 0; i < trace->transfer_count; i++) {
        int from = trace->transfer_from[i], to = trace->transfer_to[i], p = costs->devices;
        pc_time delay = costs->transfer.delay_ps;
        if (costs->hop_delay_ps) delay = costs->hop_delay_ps[(from + 1) % p == to ? from : to];
        assert_int_equal(trace->transfer_end_ps[i] - trace->transfer_start_ps[i], delay);
    }
}

static void test_delays(void **state) {
    (void)state;
    test_random random = {31};
    for (long i = 0; i < test_cases(300, 3000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        pc_replay replay, on_engine, again;
        random_schedule(&random, 6, 5, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        random_hops_and_ready(&random, &costs);
        assert_int_equal(pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, NULL),
                         PC_OK);
        assert_int_equal(pc_replay_run(&schedule, &costs, &on_engine_with_trace, &on_engine, NULL), PC_OK);
        const pc_replay_trace *trace = &replay.trace;
        assert_int_equal(
            pc_replay_from_times(&schedule, &costs, trace->pass_start_ps, trace->pass_end_ps, NULL, true, &again, NULL),
            PC_OK);
        check_transfers(&schedule, trace);
        check_delays(&costs, trace);
        check_starts(&costs, trace);
        check_same_transfers(trace, &on_engine.trace);
        check_same_transfers(trace, &again.trace);
        pc_replay_free(&replay);
        pc_replay_free(&on_engine);
        pc_replay_free(&again);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
}

/* Over a link a transfer takes the latency and its bytes at full bandwidth, at least: one byte a picosecond. */
static void test_links(void **state) {
    (void)state;
    test_random random = {32};
    int64_t longer = 0;
    for (long i = 0; i < test_cases(300, 3000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        pc_replay replay;
        random_schedule(&random, 6, 5, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                       .latency_ps = test_between(&random, 0, 5),
                                       .bandwidth_bytes_per_s = 1e12,
                                       .size_bytes = test_between(&random, 0, 30)};
        assert_int_equal(pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, NULL),
                         PC_OK);
        const pc_replay_trace *trace = &replay.trace;
        check_transfers(&schedule, trace);
        check_starts(&costs, trace);
        for (int64_t k = 0; k < trace->transfer_count; k++) {
            pc_time took = trace->transfer_end_ps[k] - trace->transfer_start_ps[k];
            assert_true(took >= costs.transfer.latency_ps + costs.transfer.size_bytes);
            longer += took > costs.transfer.latency_ps + costs.transfer.size_bytes;
        }
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(longer > 0); /* some met */
}

static int64_t count_of(const char *name, int devices, int microbatches) {
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    const pc_generator *generator = pc_generator_find(name);
    int chunks = generator->chunks_default;
    assert_int_equal(pc_costs_create(devices, chunks, &costs, NULL), PC_OK);
    for (int i = 0; i < devices * chunks * PC_PASS_KINDS; i++)
        costs.duration_ps[i] = i % PC_PASS_KINDS == PC_PASS_BW ? 2 : 1;
    pc_generate_request request = {
        .devices = devices, .microbatches = microbatches, .chunks = chunks, .costs = &costs, .threads = 1};
    assert_int_equal(pc_generate(generator, &request, &schedule, NULL, NULL), PC_OK);
    assert_int_equal(pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, NULL), PC_OK);
    check_transfers(&schedule, &replay.trace);
    int64_t count = replay.trace.transfer_count;
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
    return count;
}

/* Each microbatch goes over every border between parts of different stages, there and back. 1F1B: p parts. Two chunks
 * interleaved: 2p parts, all borders count. V: 2p parts, and at the fold none. Replicas: p parts each. */
static void test_counts(void **state) {
    (void)state;
    assert_int_equal(count_of("1f1b", 4, 8), 2 * 3 * 8);
    assert_int_equal(count_of("zb-h1", 7, 9), 2 * 6 * 9);
    assert_int_equal(count_of("1f1b-interleaved", 4, 8), 2 * 7 * 8);
    assert_int_equal(count_of("v-half", 4, 8), 2 * 6 * 8);
    assert_int_equal(count_of("chimera", 4, 8), 2 * 3 * 8);
    assert_int_equal(count_of("1f1b", 1, 8), 0);
}

static void test_no_trace_no_transfers(void **state) {
    (void)state;
    test_random random = {33};
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    random_schedule(&random, 6, 5, 3, &schedule);
    random_costs(&random, &schedule, &costs);
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    assert_int_equal(replay.trace.transfer_count, 0);
    assert_null(replay.trace.transfer_from);
    pc_replay_free(&replay);
    for (refusals x = {.most = 200}; next_refusal(&x);)
        x.code = pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, NULL);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* ---- iterations ---- */

static pc_schedule shape_of(const pc_iteration_spec *spec) {
    return (pc_schedule){.devices = (int)spec->cut.pp,
                         .microbatches = (int)spec->cut.microbatches,
                         .chunks = (int)spec->cut.chunks,
                         .placement = spec->generator->placement};
}

static void test_iterations(void **state) {
    (void)state;
    test_random random = {34};
    for (long i = 0; i < test_cases(40, 3000); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.network = test_between(&random, 0, 1) ? PC_NETWORK_FLOWS : PC_NETWORK_CLOSED;
        pc_schedule shape = shape_of(&spec);
        pc_iteration iteration = run_spec(&spec);
        check_transfers(&shape, &iteration.replay.trace);
        pc_iteration_free(&iteration);
    }
}

/* Over flows: passes wait for nothing but messages, so that starts tell when they came. Returns how many took longer
 * than what `costs`, the closed ones, say; none takes less. */
static int64_t check_messages(const pc_iteration_spec *spec, const pc_costs *costs) {
    enum { ROUNDING_PS = 4 }; /* the pieces of a message are rounded for themselves */
    int64_t longer = 0;
    pc_iteration iteration = run_spec(spec);
    const pc_replay_trace *trace = &iteration.replay.trace;
    assert_int_equal(trace->transfer_count, 2 * 3 * 8);
    check_starts(costs, trace);
    for (int64_t k = 0; k < trace->transfer_count; k++) {
        pc_time took = trace->transfer_end_ps[k] - trace->transfer_start_ps[k];
        pc_time alone = pc_costs_delay(costs, trace->transfer_from[k], trace->transfer_to[k]);
        assert_true(alone > 0 && took >= alone - ROUNDING_PS);
        longer += took > alone + ROUNDING_PS;
    }
    pc_iteration_free(&iteration);
    return longer;
}

/* With no data parallelism messages are alone on their links and take what closed costs say, the gathering of a
 * scattered tensor with them, which makes it another time. With it, and no parameters to wait for, some meet the
 * reduction of gradients. */
static void test_messages(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_time delay[2];
    spec.network = PC_NETWORK_FLOWS;
    spec.cut.sequence_parallel = false;
    spec.cut.zero = 0;
    spec.bucket_bytes = 10000000;
    for (int scatters = 0; scatters < 2; scatters++) {
        pc_costs costs;
        spec.scatters_boundary = scatters;
        spec.cut.dp = 1;
        assert_int_equal(pc_iteration_costs(&spec, NULL, &costs, NULL), PC_OK);
        delay[scatters] = costs.hop_delay_ps[0];
        assert_int_equal(check_messages(&spec, &costs), 0);
        spec.cut.dp = 8;
        assert_true(check_messages(&spec, &costs) > 0);
        pc_costs_free(&costs);
    }
    assert_int_not_equal(delay[0], delay[1]);
}

/* ---- blocks ---- */

/* The block comes with a trace alone, and asking for it changes nothing. */
static void check_block(pc_run_spec *spec) {
    pc_run_row row, plain;
    pc_run_detail detail;
    spec->trace = false;
    assert_int_equal(pc_run_row_make(spec, NULL, &plain, &detail, NULL), PC_OK);
    assert_int_equal(plain.status, PC_RUN_OK);
    assert_int_equal(detail.block.devices, 0);
    pc_run_detail_free(&detail);
    spec->trace = true;
    assert_int_equal(pc_run_row_make(spec, NULL, &row, &detail, NULL), PC_OK);
    assert_true(row.trace_hash == plain.trace_hash);
    assert_int_equal(detail.block.devices, spec->devices);
    assert_int_equal(detail.block.chunks, spec->chunks);
    assert_true(pc_block_is_valid(&detail.block));
    pc_run_detail_free(&detail);
}

static void test_blocks_of_given_times(void **state) {
    (void)state;
    pc_run_spec spec = pc_run_spec_default();
    spec.devices = 4;
    spec.microbatches = 8;
    for (int chunks = 1; chunks < 3; chunks++) {
        spec.chunks = chunks;
        assert_int_equal(pc_costs_create(4, chunks, &spec.costs, NULL), PC_OK);
        for (int i = 0; i < 4 * chunks * PC_PASS_KINDS; i++)
            spec.costs.duration_ps[i] = i % PC_PASS_KINDS == PC_PASS_BW ? 2 : 1;
        spec.generator = pc_generator_find(chunks == 1 ? "zb-h1" : "v-half");
        check_block(&spec);
        pc_costs_free(&spec.costs);
    }
}

static void test_blocks_of_clusters(void **state) {
    (void)state;
    pc_run_spec spec = pc_run_spec_default();
    spec.is_cluster = true;
    spec.iteration = example_spec();
    spec.devices = 4;
    spec.chunks = 1;
    spec.gpus = 64;
    spec.microbatches = 8;
    spec.microbatch_size = 1;
    spec.seq_len = 1024;
    spec.generator = spec.iteration.generator = pc_generator_find("zb-h1");
    check_block(&spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_no_trace_no_transfers),
        cmocka_unit_test(test_iterations),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_blocks_of_given_times),
        cmocka_unit_test(test_blocks_of_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
