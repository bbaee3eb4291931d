/* Pairs of passes that run together beside ZeRO 3, and where stages wait for what they send: what a pair takes against
 * sums over the same costs without pairs, its units against a recount, and iterations that must come out alike. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/training/units.h"
#include "tests/iteration_example.h"

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

/* Something random whose schedule has pairs, with room enough. */
static pc_iteration_spec draw_spec(test_random *random) {
    static const char *const names[] = {"1f1b-interleaved-overlap", "dualpipe", "dualpipe-v"};
    static const int tps[] = {1, 2, 4};
    pc_iteration_spec spec = random_spec(random);
    spec.generator = pc_generator_find(names[test_between(random, 0, 2)]);
    spec.cut.chunks = 2;
    spec.cut.slices = 0;
    spec.cut.tp = tps[test_between(random, 0, 2)];
    spec.cut.sequence_parallel = spec.cut.tp > 1;
    spec.cut.pp = toss(random) ? 2 : 4;
    spec.cut.dp = toss(random) ? 2 : 4;
    spec.cut.microbatches = spec.cut.pp * 2 * test_between(random, 1, 2);
    spec.cut.zero = (int)test_between(random, 0, 3);
    spec.unit = PC_UNIT_BUCKET;
    spec.overlap_slowdown = toss(random) ? 0 : 0.25;
    spec.overlaps_pairs = true;
    spec.delays_weights = toss(random);
    return spec;
}

static pc_costs costs_of(const pc_iteration_spec *spec) {
    pc_costs costs;
    pc_error error = {0};
    if (pc_iteration_costs(spec, NULL, &costs, &error)) fail_msg("%s", error.message);
    return costs;
}

static pc_time longer(pc_time a, pc_time b) {
    return a > b ? a : b;
}

/* Of a pair of chunks on a device, an index into costs. */
typedef struct pair_at {
    int64_t pair, f, back;
} pair_at;

static pair_at index_of(const pc_costs *costs, int d, int f, int back) {
    return (pair_at){
        pc_costs_pair_index(costs, d, (pc_pass){1, (int16_t)f, PC_PASS_F}, (pc_pass){0, (int16_t)back, PC_PASS_BW}),
        pc_costs_index(costs, d, f) * PC_PASS_KINDS + PC_PASS_F,
        pc_costs_index(costs, d, back) * PC_PASS_KINDS + PC_PASS_BW};
}

/* Costs with nothing of data parallelism within passes say what the pair's kernels take, k. Costs where its collectives
 * overlap nothing have g of each pass on top. Where all overlap, both passes' g go beside the pair: k + s g, or g. ZeRO
 * 2's are then behind the passes. */
static void check_beside(const pc_iteration_spec *spec, long *beside, long *longer_than_kernels) {
    pc_iteration_spec other = *spec;
    other.overlaps_p2p = true;
    other.cut.zero = 0;
    pc_costs alone = costs_of(&other);
    other.cut.zero = spec->cut.zero;
    other.overlaps_gradients = other.overlaps_parameters = false;
    pc_costs on_top = costs_of(&other);
    other.overlaps_gradients = other.overlaps_parameters = true;
    pc_costs overlapped = costs_of(&other);
    for (int d = 0; d < alone.devices; d++)
        for (int c = 0; c < alone.chunks * alone.chunks; c++) {
            pair_at at = index_of(&alone, d, c / alone.chunks, c % alone.chunks);
            pc_time k = alone.pair_ps[at.pair], g = on_top.duration_ps[at.f] - alone.duration_ps[at.f] +
                                                    on_top.duration_ps[at.back] - alone.duration_ps[at.back];
            assert_true(spec->cut.zero >= 2 ? g >= 0 : g == 0);
            assert_int_equal(on_top.pair_ps[at.pair], k + g);
            pc_time hidden = spec->cut.zero == 3 ? g : 0;
            pc_time slowed = k + (pc_time)(spec->overlap_slowdown * (double)hidden);
            assert_int_equal(overlapped.pair_ps[at.pair], longer(slowed, hidden));
            *beside += hidden > 0;
            *longer_than_kernels += hidden > slowed;
        }
    pc_costs_free(&alone);
    pc_costs_free(&on_top);
    pc_costs_free(&overlapped);
}

/* Where stages wait for what they send, a pass has its message on top. A pair has the longer one of both. */
static void check_waits(const pc_iteration_spec *spec, long *waits) {
    pc_iteration_spec other = *spec;
    other.overlaps_p2p = true;
    pc_costs goes_on = costs_of(&other);
    other.overlaps_p2p = false;
    pc_costs waiting = costs_of(&other);
    for (int d = 0; d < goes_on.devices; d++)
        for (int c = 0; c < goes_on.chunks * goes_on.chunks; c++) {
            pair_at at = index_of(&goes_on, d, c / goes_on.chunks, c % goes_on.chunks);
            pc_time of_f = waiting.duration_ps[at.f] - goes_on.duration_ps[at.f];
            pc_time of_back = waiting.duration_ps[at.back] - goes_on.duration_ps[at.back];
            assert_int_equal(waiting.pair_ps[at.pair], goes_on.pair_ps[at.pair] + longer(of_f, of_back));
            *waits += of_f > 0 && of_back > 0;
        }
    pc_costs_free(&goes_on);
    pc_costs_free(&waiting);
}

static void test_what_a_pair_takes(void **state) {
    (void)state;
    test_random random = {501};
    long beside = 0, longer_than_kernels = 0, waits = 0;
    for (long i = 0; i < test_cases(60, 1000); i++) {
        pc_iteration_spec spec = draw_spec(&random);
        if (i % 4 == 0) spec.machine.network.bandwidth_bytes_per_s /= 20;
        check_beside(&spec, &beside, &longer_than_kernels);
        check_waits(&spec, &waits);
    }
    print_message("%ld pairs with gathers beside them, %ld shorter than these; %ld wait for two messages\n", beside,
                  longer_than_kernels, waits);
    assert_true(test_saw(beside, 20) && test_saw(longer_than_kernels, 5) && test_saw(waits, 20));
}

/* ---- units ---- */

enum { UNITS_MAX = 16 };

static pc_time draw_time(test_random *random, int chance) {
    return test_between(random, 0, chance) ? test_between(random, 0, 1000) : 0;
}

static pc_unit_step draw_step(test_random *random, bool reduces) {
    pc_unit_step step = {.kernels_ps = draw_time(random, 4), .gather_ps = draw_time(random, 3)};
    if (!reduces) return step;
    step.copy_ps = draw_time(random, 1) / 10;
    step.reduce_ps = draw_time(random, 3);
    step.replicate_ps = draw_time(random, 1);
    return step;
}

static pc_units draw_units(test_random *random, bool reduces) {
    pc_units units = {.count = (int)test_between(random, 0, UNITS_MAX - 2)};
    units.odd = units.count > 0 ? (int)test_between(random, 0, units.count - 1) : 0;
    units.before = draw_step(random, reduces);
    units.each = draw_step(random, reduces);
    units.other = draw_step(random, reduces);
    units.behind = draw_step(random, reduces);
    return units;
}

/* The recurrence of units.h, of both passes' units in the order in which they are next: one's j-th of n comes before
 * the other's i-th of m where j m <= i n. G waits for the kernels behind which it was issued. Without slowdown. */
static pc_time recount_both(const pc_units *passes, const pc_unit_rules *rules) {
    pc_time gathered[2][2 * UNITS_MAX + 32] = {{0}}, wire = 0, other_wire = 0, kernels = 0;
    int64_t count[2] = {pc_units_steps(&passes[0]), pc_units_steps(&passes[1])}, done[2] = {0}, asked[2] = {0};
    for (int p = 0; p < 2; p++)
        for (; asked[p] <= rules->prefetch; asked[p]++)
            if (asked[p] < count[p] && pc_units_step(&passes[p], (int)asked[p]).gather_ps > 0)
                gathered[p][asked[p]] = wire += pc_units_step(&passes[p], (int)asked[p]).gather_ps;
    while (done[0] < count[0] || done[1] < count[1]) {
        int p = done[1] < count[1] && (done[0] == count[0] || done[0] * count[1] > done[1] * count[0]);
        pc_unit_step step = pc_units_step(&passes[p], (int)done[p]);
        kernels = longer(kernels, gathered[p][done[p]++]) + step.kernels_ps;
        pc_time over = kernels;
        if (step.reduce_ps > 0) over = wire = longer(wire, kernels + step.copy_ps) + step.reduce_ps;
        pc_time *next_wire = rules->replicates_beside ? &other_wire : &wire;
        if (step.replicate_ps > 0) over = *next_wire = longer(*next_wire, over) + step.replicate_ps;
        if (rules->waits_for_reduce) kernels = over;
        pc_time gather = asked[p] < count[p] ? pc_units_step(&passes[p], (int)asked[p]).gather_ps : 0;
        if (gather > 0) gathered[p][asked[p]] = wire = longer(wire, kernels) + gather;
        asked[p]++;
    }
    return longer(kernels, longer(wire, other_wire));
}

static void test_units_of_both(void **state) {
    (void)state;
    test_random random = {502};
    long gained = 0, stopped = 0;
    for (long i = 0; i < test_cases(5000, 50000); i++) {
        pc_units passes[2] = {draw_units(&random, false), draw_units(&random, true)};
        pc_unit_rules rules = {.prefetch = (int)test_between(&random, 0, 4),
                               .waits_for_reduce = toss(&random),
                               .replicates_beside = toss(&random)};
        pc_time apart = pc_units_run(&passes[0], &rules, NULL) + pc_units_run(&passes[1], &rules, NULL);
        pc_time found = pc_units_run_both(&passes[0], &passes[1], &rules), both = recount_both(passes, &rules);
        assert_int_equal(found, both < apart ? both : apart);
        gained += found < apart;
        stopped += both > apart;
    }
    print_message("%ld gain, %ld are kept apart\n", gained, stopped);
    assert_true(test_saw(gained, 100));
}

/* By hand: F has units of kernels 10 with gathers of 4, BW the same; nothing else. One ahead: the wire has F0 F1 B0 B1
 * done at 4, 8, 12, 16. F's first at 4 to 14, BW's at 14 to 24, F's second at 24 to 34, BW's second to 44. */
static void test_units_by_hand(void **state) {
    (void)state;
    pc_unit_step step = {.kernels_ps = 10, .gather_ps = 4};
    pc_units units = {.before = step, .behind = step};
    pc_unit_rules rules = {.prefetch = 1};
    assert_int_equal(pc_units_run(&units, &rules, NULL), 24);
    assert_int_equal(pc_units_run_both(&units, &units, &rules), 44);
}

/* ---- iterations ---- */

static void draw_unit_settings(test_random *random, pc_iteration_spec *spec) {
    spec->cut.zero = 3;
    spec->unit = toss(random) ? PC_UNIT_LAYER : PC_UNIT_BUCKET;
    if (spec->unit == PC_UNIT_BUCKET) return;
    spec->fsdp_prefetch = (int)test_between(random, 0, 2);
    spec->fsdp_version = (pc_fsdp_version)test_between(random, 0, 2);
    spec->reshard_after_forward = (pc_reshard)test_between(random, 0, 2);
    spec->gradient_sync = (pc_gradient_sync)test_between(random, 0, 2);
}

/* Replicas that are all alike are as one; samples of days on which nothing happens are good ones. */
static void test_expanded_and_sampled(void **state) {
    (void)state;
    test_random random = {503};
    for (long i = 0; i < test_cases(30, 600); i++) {
        pc_iteration_spec spec = draw_spec(&random);
        if (i % 3) draw_unit_settings(&random, &spec);
        pc_iteration folded = run_spec(&spec);
        spec.expands = true;
        pc_iteration expanded = run_spec(&spec);
        spec.expands = false;
        spec.bad_days = (pc_bad_days){.samples = 2, .bad_factor = 1, .slow_factor = 1};
        pc_iteration sampled = run_spec(&spec);
        assert_memory_equal(&expanded.iteration_s, &folded.iteration_s, sizeof folded.iteration_s);
        assert_true(expanded.replay.trace_hash == folded.replay.trace_hash);
        assert_memory_equal(&sampled.bad_days.good_s, &folded.iteration_s, sizeof folded.iteration_s);
        for (int k = 0; k < 2; k++) assert_true(pc_time_to_seconds(sampled.sample_ps[k]) == folded.iteration_s);
        pc_iteration_free(&folded);
        pc_iteration_free(&expanded);
        pc_iteration_free(&sampled);
    }
}

/* Bad days, each with noise, slow links and GPUs: walked and on the engine, to the picosecond. */
static void test_bad_days_on_the_engine(void **state) {
    (void)state;
    test_random random = {504};
    for (long i = 0; i < test_cases(20, 300); i++) {
        pc_iteration_spec spec = draw_spec(&random);
        if (i % 2) draw_unit_settings(&random, &spec);
        spec.jitter = toss(&random) ? 0 : 0.1;
        spec.bad_days = (pc_bad_days){.samples = 3,
                                      .link_jitter = toss(&random) ? 0 : 0.3,
                                      .bad_links = 2,
                                      .bad_factor = 0.25,
                                      .slow_gpus = 1,
                                      .slow_factor = 1.5};
        pc_iteration shortcut = run_spec(&spec);
        spec.engine = PC_ENGINE_EVENTS;
        pc_iteration events = run_spec(&spec);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(events.sample_ps[k], shortcut.sample_ps[k]);
            assert_true(pc_time_to_seconds(shortcut.sample_ps[k]) > 0);
        }
        assert_memory_equal(&events.bad_days.good_s, &shortcut.bad_days.good_s, sizeof events.bad_days.good_s);
        pc_iteration_free(&events);
        pc_iteration_free(&shortcut);
    }
}

/* Over closed costs to wait for messages is never faster than to go on, and pairs gain by hiding: no device is longer
 * busy than without them. Over flows, by passes and by operations, nothing is faster than by closed costs, but for
 * rounding, and for the order in which ZeRO 2 reduces: closed, the last microbatch's gradients behind all others. */
static void test_order_of_ways(void **state) {
    (void)state;
    test_random random = {505};
    for (long i = 0; i < test_cases(30, 600); i++) {
        pc_iteration_spec spec = draw_spec(&random);
        if (i % 2) draw_unit_settings(&random, &spec);
        spec.overlaps_p2p = true;
        pc_iteration goes_on = run_spec(&spec);
        spec.overlaps_p2p = false;
        pc_iteration waits = run_spec(&spec);
        assert_true(goes_on.iteration_s <= waits.iteration_s);
        spec.network = PC_NETWORK_FLOWS;
        spec.granularity = i % 3 ? PC_GRANULARITY_OPERATIONS : PC_GRANULARITY_PASS;
        pc_iteration flows = run_spec(&spec);
        if (spec.cut.zero != 2) assert_true(flows.iteration_s >= 0.999 * waits.iteration_s);
        spec.network = PC_NETWORK_CLOSED;
        spec.granularity = PC_GRANULARITY_PASS;
        spec.overlaps_pairs = spec.delays_weights = false;
        pc_iteration apart = run_spec(&spec);
        for (int d = 0; d < apart.devices; d++)
            assert_true(waits.replay.device_busy_ps[d] <= apart.replay.device_busy_ps[d]);
        pc_iteration_free(&goes_on);
        pc_iteration_free(&waits);
        pc_iteration_free(&flows);
        pc_iteration_free(&apart);
    }
}

/* Two passes gather at once, so that twice as much stands beside the state: of buckets, of 16-bit parameters. */
static void test_memory_of_two_gathers(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("dualpipe");
    spec.cut.chunks = 2;
    spec.cut.zero = 3;
    spec.cut.microbatches = 16;
    spec.unit = PC_UNIT_BUCKET;
    pc_iteration apart = run_spec(&spec);
    spec.overlaps_pairs = true;
    pc_iteration together = run_spec(&spec);
    for (int d = 0; d < 4; d++) {
        int64_t more = together.memory[d].buffers - apart.memory[d].buffers;
        assert_true(more > 0);
        assert_true(together.memory[d].kinds[PC_MEMORY_GATHERED] - apart.memory[d].kinds[PC_MEMORY_GATHERED] == more);
    }
    /* A bucket is a layer of a chunk's 6: one at work and one on its way, 2 bytes a parameter. Of 12 h^2 + 13 h a rank
     * of two has half of the matrices, and of the biases of those that are cut by columns (3 h and 4 h). */
    int64_t h = 2048, layer = 12 * h * h / 2 + (3 * h + 4 * h) / 2 + 6 * h;
    assert_int_equal(together.memory[1].buffers - apart.memory[1].buffers, 2 * 2 * layer);
    pc_iteration_free(&apart);
    pc_iteration_free(&together);
}

/* ---- activations on the host ---- */

enum { RUNS_MAX = 4096 };

/* A device's passes, a pair as one: its place in the trace, and when it starts and ends. */
typedef struct runs {
    int count;
    int64_t first[RUNS_MAX];
    pc_time start_ps[RUNS_MAX], end_ps[RUNS_MAX];
    bool is_pair[RUNS_MAX];
} runs;

static void find_runs(const pc_replay_trace *trace, int device, runs *found) {
    found->count = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (trace->pass_device[i] != device) continue;
        bool is_pair = i + 1 < trace->pass_count && trace->pass_device[i + 1] == device &&
                       trace->pass[i].kind == PC_PASS_F && trace->pass_start_ps[i] == trace->pass_start_ps[i + 1] &&
                       trace->pass_end_ps[i] > trace->pass_start_ps[i];
        assert_true(found->count < RUNS_MAX);
        found->first[found->count] = i;
        found->start_ps[found->count] = trace->pass_start_ps[i];
        found->end_ps[found->count] = trace->pass_end_ps[i];
        found->is_pair[found->count++] = is_pair;
        i += is_pair;
    }
}

static int find_run_of(const pc_replay_trace *trace, const runs *all, pc_pass_kind kind, pc_pass like) {
    for (int r = 0; r < all->count; r++)
        for (int64_t i = all->first[r]; i <= all->first[r] + all->is_pair[r]; i++)
            if (trace->pass[i].kind == (int16_t)kind && trace->pass[i].chunk == like.chunk &&
                trace->pass[i].microbatch == like.microbatch)
                return r;
    return -1;
}

/* What goes to the host goes behind its F's run, one after the other, and comes back one after the other, each no
 * earlier than 1 + ahead runs before its own, which waits for it. Of fewer than 4 runs between nothing goes. Returns
 * for how many runs it is the copy that they begin with. */
static long check_copies(const pc_replay_trace *trace, const pc_costs *costs, int device, long *of_pairs) {
    static runs all;
    static pc_time out_end_ps[RUNS_MAX][2];
    pc_time out_ps = 0, back_ps = 0;
    long waited = 0;
    find_runs(trace, device, &all);
    for (int r = 0; r < all.count; r++)
        for (int k = 0; k < (all.is_pair[r] ? 2 : 1); k++) {
            pc_pass pass = trace->pass[all.first[r] + k];
            int64_t at = pc_costs_index(costs, device, pass.chunk);
            int back = pass.kind == PC_PASS_F ? find_run_of(trace, &all, PC_PASS_BW, pass) : -1;
            if (back >= 0 && back - r >= 4 && costs->copies.bytes[at] > 0)
                out_end_ps[r][k] = out_ps = longer(out_ps, all.end_ps[r]) + costs->copies.out_ps[at];
            int f = pass.kind == PC_PASS_BW ? find_run_of(trace, &all, PC_PASS_F, pass) : -1;
            if (f < 0 || r - f < 4 || costs->copies.bytes[at] == 0) continue;
            bool is_second = trace->pass[all.first[f]].kind != PC_PASS_F ||
                             trace->pass[all.first[f]].chunk != pass.chunk ||
                             trace->pass[all.first[f]].microbatch != pass.microbatch;
            pc_time begins = longer(all.end_ps[r - 1 - costs->copies.ahead[at]], out_end_ps[f][is_second]);
            back_ps = longer(back_ps, begins) + costs->copies.back_ps[at];
            assert_true(all.start_ps[r] >= back_ps);
            waited += all.start_ps[r] == back_ps && back_ps > all.end_ps[r - 1];
            *of_pairs += all.is_pair[r];
        }
    return waited;
}

static void test_copies_of_pairs(void **state) {
    (void)state;
    static const int32_t kinds[] = {PC_OFFLOAD_SELECTIVE, PC_OFFLOAD_FULL, PC_OFFLOAD_TENSORS};
    test_random random = {506};
    long waited = 0, of_pairs = 0;
    for (long i = 0; i < test_cases(30, 500); i++) {
        pc_iteration_spec spec = draw_spec(&random);
        spec.cut.offload.kinds = kinds[i % 3];
        spec.cut.offload.fraction = 0.5;
        spec.cut.microbatches *= 2;
        spec.machine.host_link_bytes_per_s = 1e9 * (double)test_between(&random, 4, 100);
        pc_costs costs = costs_of(&spec);
        pc_iteration iteration = run_spec(&spec);
        for (int d = 0; d < iteration.devices; d++)
            waited += check_copies(&iteration.replay.trace, &costs, d, &of_pairs);
        pc_iteration_free(&iteration);
        pc_costs_free(&costs);
    }
    print_message("%ld copies back to pairs, for %ld runs waited\n", of_pairs, waited);
    assert_true(test_saw(of_pairs, 50) && test_saw(waited, 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_pair_takes),      cmocka_unit_test(test_units_of_both),
        cmocka_unit_test(test_units_by_hand),          cmocka_unit_test(test_expanded_and_sampled),
        cmocka_unit_test(test_bad_days_on_the_engine), cmocka_unit_test(test_order_of_ways),
        cmocka_unit_test(test_memory_of_two_gathers),  cmocka_unit_test(test_copies_of_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
