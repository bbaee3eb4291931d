/* Full recomputation where B and W are passes of their own: F keeps a layer's input, B makes the rest again before it
 * is at it, and what W needs of that lives until W. By hand, against a recount, in searches, and in iterations.
 */
#include "tests/support.h"

#include "models/schedule/block.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/timing.h"
#include "models/training/iteration.h"
#include "models/workload/memory.h"
#include "tests/iteration_example.h"
#include "tests/memory_limits.h"
#include "tests/random_model.h"
#include "tests/searched.h"

#include <math.h>

/* ---- by hand ---- */

/* What F keeps, all that W and B need together, and what of it B gives back. */
enum { KEPT = 2, WHOLE = 34, BY_B = 9, LEFT = WHOLE - BY_B };

static pc_costs make_costs(int p, int chunks) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, chunks, &costs, NULL), PC_OK);
    for (int i = 0; i < p * chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = 10;
        costs.activation_bytes[i] = WHOLE;
        costs.activation_b_bytes[i] = BY_B;
        costs.activation_kept_bytes[i] = KEPT;
    }
    costs.recomputes_in_b = true;
    return costs;
}

/* By all who say what a device holds at most: the check, the timing, the replay by paths, by events, and over links. */
static void expect_peaks(const pc_schedule *schedule, pc_costs *costs, const int64_t *expected) {
    int64_t peaks[16];
    pc_timing *timing = NULL;
    pc_timing_result timed;
    assert_int_equal(pc_schedule_peaks(schedule, costs, peaks, NULL), PC_OK);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run(timing, schedule, costs, &timed, NULL), PC_OK);
    for (int way = 0; way < 3; way++) {
        const pc_replay_options options = {.engine = way == 1 ? PC_ENGINE_EVENTS : PC_ENGINE_AUTO};
        pc_replay replay;
        if (way == 2) costs->transfer = (pc_transfer){PC_TRANSFER_LINK, 0, 1, 1e12, 5};
        assert_int_equal(pc_replay_run(schedule, costs, &options, &replay, NULL), PC_OK);
        for (int d = 0; d < schedule->devices; d++) {
            assert_int_equal(peaks[d], expected[d]);
            assert_int_equal(timed.stages[d].peak_bytes, expected[d]);
            assert_int_equal(replay.device_peak_bytes[d], expected[d]);
        }
        pc_replay_free(&replay);
    }
    costs->transfer = (pc_transfer){.mode = PC_TRANSFER_DELAY};
    pc_timing_free(timing);
}

/* Device d of ZB-H1 runs w = p-1-d F first, then rounds of F, B and, from the d-th on, W. In round d, when F runs out
 * nowhere yet (p <= m), B starts with w kept inputs of the F ahead of it, d microbatches whose W are still to come, and
 * its own. That is w K + d L + A, for K what F keeps, A all and L what B leaves. No F has as much: the F before it has
 * (w+1) K + d L, and A >= K. Where nothing is recomputed the same moment has (w + 1) A + d L. */
static void test_zb_h1(void **state) {
    (void)state;
    for (int p = 1; p <= 9; p++)
        for (int m = p; m <= 3 * p; m++) {
            int64_t expected[16], unrecomputed[16];
            pc_schedule schedule;
            pc_costs costs = make_costs(p, 1);
            for (int d = 0; d < p; d++) {
                expected[d] = (p - 1 - d) * KEPT + d * LEFT + WHOLE;
                unrecomputed[d] = (p - d) * WHOLE + d * LEFT;
            }
            assert_int_equal(pc_schedule_generate(pc_generator_find("zb-h1"), p, m, 0, &schedule, NULL), PC_OK);
            expect_peaks(&schedule, &costs, expected);
            costs.recomputes_in_b = false;
            expect_peaks(&schedule, &costs, unrecomputed);
            pc_costs_free(&costs);
            pc_schedule_free(&schedule);
        }
}

/* "F0 f0 b0": upper case the first chunk. */
static int read_order(const char *text, pc_pass *passes) {
    int count = 0;
    for (const char *at = text; *at; at++) {
        if (*at == ' ') continue;
        bool is_second = *at >= 'a';
        char kind = (char)(is_second ? *at - 'a' + 'A' : *at);
        passes[count++] = (pc_pass){.microbatch = atoi(at + 1),
                                    .chunk = is_second,
                                    .kind = kind == 'F'   ? PC_PASS_F
                                            : kind == 'B' ? PC_PASS_B
                                                          : PC_PASS_W};
        while (at[1] >= '0' && at[1] <= '9') at++;
    }
    return count;
}

/* V-Half on three devices, in its middle:
 * device 0: F3 w1 f2 b2 B1 W1, again and again. Before F3 the inputs of F1 and F2 are kept, and b1 waits for its W:
 *   2K + L. At b2: F1, F2, F3 kept, and its own: 3K + A. At B1: F2, F3 kept, b2 waits for its W, and its own:
 *   2K + L + A, which is more, for L > K.
 * device 1: f2 F3 B1 W1 b2 w2. Before f2 F1 and F2 are kept. At B1: F2, F3, f2 kept, and its own: 3K + A. At b2: F2, F3
 *   kept, and its own: 2K + A.
 * device 2: F2 w0 f2 b1 B1 W1. Before F2 F1 and f1 are kept, and b0 waits for its W. At b1: F1, F2, f2 kept, and its
 * own: 3K + A. At B1: F2, f2 kept, b1 waits, and its own: 2K + L + A. */
static void test_v_half(void **state) {
    (void)state;
    static const char *const orders[] = {
        "F0 F1 F2 f0 b0 w0 f1 b1 B0 W0 F3 w1 f2 b2 B1 W1 F4 w2 f3 b3 B2 W2 F5 w3 f4 b4 B3 W3 w4 f5 b5 B4 W4 w5 B5 W5",
        "F0 F1 F2 f0 b0 w0 f1 B0 W0 b1 w1 f2 F3 B1 W1 b2 w2 f3 F4 B2 W2 b3 w3 f4 F5 B3 W3 b4 w4 f5 B4 W4 b5 w5 B5 W5",
        "F0 f0 F1 f1 b0 B0 W0 F2 w0 f2 b1 B1 W1 F3 w1 f3 b2 B2 W2 F4 w2 f4 b3 B3 W3 F5 w3 f5 b4 B4 W4 w4 b5 B5 W5 w5"};
    static const int64_t lengths[] = {36, 36, 36};
    static const int64_t expected[] = {2 * KEPT + LEFT + WHOLE, 3 * KEPT + WHOLE, 2 * KEPT + LEFT + WHOLE};
    pc_schedule schedule;
    pc_costs costs = make_costs(3, 2);
    assert_int_equal(pc_schedule_create("v-half", 3, 6, 2, PC_PLACEMENT_V, lengths, &schedule, NULL), PC_OK);
    for (int d = 0; d < 3; d++) assert_int_equal(read_order(orders[d], schedule.passes + schedule.offsets[d]), 36);
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    expect_peaks(&schedule, &costs, expected);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* One stage, F0 F1 B0 W0 B1 W1: 2, 4, 36, 4 less.. The trace has each change, and what does not fit is a B. */
static void test_levels(void **state) {
    (void)state;
    static const int64_t lengths[] = {6};
    static const int64_t levels[] = {KEPT, 2 * KEPT, KEPT + WHOLE, KEPT + LEFT, KEPT, WHOLE, LEFT, 0};
    pc_schedule schedule;
    pc_replay replay;
    pc_costs costs = make_costs(1, 1);
    assert_int_equal(pc_schedule_create("short", 1, 2, 1, PC_PLACEMENT_LINEAR, lengths, &schedule, NULL), PC_OK);
    assert_int_equal(read_order("F0 F1 B0 W0 B1 W1", schedule.passes), 6);
    assert_int_equal(pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, NULL), PC_OK);
    assert_int_equal(replay.trace.level_count, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(replay.trace.level_bytes[i], levels[i]);
    pc_replay_free(&replay);
    const pc_replay_options limited = {.memory_limit = {(int64_t[]){KEPT + WHOLE - 1}}};
    assert_int_equal(pc_replay_run(&schedule, &costs, &limited, &replay, NULL), PC_OK);
    assert_true(replay.out_of_memory);
    assert_int_equal(replay.oom.pass.kind, PC_PASS_B);
    assert_int_equal(replay.oom.requested_bytes, WHOLE - KEPT);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* ---- searches ---- */

static const char *const split_names[] = {"zb-1p",  "zb-2p", "zb-two-thirds", "v-min",
                                          "v-half", "v-zb",  "zb-v",          "v-adaptive"};

static void draw_costs(test_random *random, pc_costs *costs) {
    for (int i = 0; i < costs->devices * costs->chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs->duration_ps[i * PC_PASS_KINDS + kind] = test_between(random, 1, 20);
        costs->activation_bytes[i] = test_between(random, 1, 100);
        costs->activation_b_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
        costs->activation_kept_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
    }
    costs->recomputes_in_b = true;
}

/* In time, from the intervals in which each microbatch of a chunk holds what it holds: [F, B) K, [B, end of B) A, [end
 * of B, end of W) L. The most, which is at the start of a pass. */
static int64_t recount_peak(const pc_schedule *s, const pc_costs *costs, const pc_timing_result *timed, int device) {
    pc_time of[3][2][64][2]; /* [F, B, W][chunk][microbatch][start, end] */
    int64_t peak = 0;
    for (int64_t i = s->offsets[device]; i < s->offsets[device + 1]; i++) {
        pc_pass pass = s->passes[i];
        of[pass.kind][pass.chunk][pass.microbatch][0] = timed->start_ps[i];
        of[pass.kind][pass.chunk][pass.microbatch][1] = timed->end_ps[i];
    }
    for (int64_t i = s->offsets[device]; i < s->offsets[device + 1]; i++) {
        pc_time t = timed->start_ps[i];
        int64_t level = 0;
        for (int c = 0; c < s->chunks; c++)
            for (int m = 0; m < s->microbatches; m++) {
                int64_t at = (int64_t)device * s->chunks + c, all = costs->activation_bytes[at];
                pc_time f = of[0][c][m][0], b = of[1][c][m][0], after_b = of[1][c][m][1], w = of[2][c][m][1];
                if (t >= f && t < b) level += costs->activation_kept_bytes[at];
                if (t >= b && t < after_b) level += all;
                if (t >= after_b && t < w) level += all - costs->activation_b_bytes[at];
            }
        if (level > peak) peak = level;
    }
    return peak;
}

/* One microbatch by hand: inputs of all chunks; then from the last chunk back each whole, beside the inputs before it.
 */
static int64_t least_room(const pc_costs *costs, int device) {
    int64_t least = 0, inputs = 0;
    for (int c = 0; c < costs->chunks; c++) inputs += costs->activation_kept_bytes[device * costs->chunks + c];
    least = inputs;
    for (int c = costs->chunks - 1; c >= 0; c--) {
        inputs -= costs->activation_kept_bytes[device * costs->chunks + c];
        int64_t level = inputs + costs->activation_bytes[device * costs->chunks + c];
        if (level > least) least = level;
    }
    return least;
}

/* Microbatches of a stage under way, in chunks: from the start of F to the end of W. */
static int64_t most_chunks(const pc_schedule *s, int device) {
    int64_t level = 0, most = 0;
    for (int64_t i = s->offsets[device]; i < s->offsets[device + 1]; i++) {
        if (s->passes[i].kind == PC_PASS_F && ++level > most) most = level;
        if (s->passes[i].kind == PC_PASS_W) level--;
    }
    return most;
}

static void check_search(test_random *random, const char *name) {
    const pc_generator *generator = pc_generator_find(name);
    int p = (int)test_between(random, 1, 5), m = (int)test_between(random, 1, 14);
    bool is_limited = test_between(random, 0, 2) > 0;
    pc_schedule schedule;
    pc_costs costs;
    pc_error error = {0};
    pc_timing *timing = NULL;
    pc_timing_result timed;
    assert_int_equal(pc_costs_create(p, generator->chunks_default, &costs, NULL), PC_OK);
    draw_costs(random, &costs);
    test_limits limits = test_limit_all(PC_NO_LIMIT);
    for (int d = 0; d < p; d++) {
        int64_t least = least_room(&costs, d);
        assert_int_equal(pc_generator_least_memory(generator, &costs, d), least);
        if (is_limited) limits.bytes[d] = least + test_between(random, 0, 2) * test_between(random, 0, 300);
    }
    pc_generate_request request = {
        .devices = p, .microbatches = m, .costs = &costs, .memory_limit = test_limit(&limits), .threads = 1};
    if (pc_generate(generator, &request, &schedule, NULL, &error))
        fail_msg("%s p %d m %d: %s", name, p, m, error.message);
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run(timing, &schedule, &costs, &timed, NULL), PC_OK);
    for (int d = 0; d < p; d++) {
        int64_t peak = recount_peak(&schedule, &costs, &timed, d), most = searched_microbatches(name, p) * costs.chunks;
        assert_int_equal(timed.stages[d].peak_bytes, peak);
        assert_true(peak <= limits.bytes[d]);
        if (!is_limited) assert_true(most_chunks(&schedule, d) <= most);
    }
    pc_timing_free(timing);
    pc_schedule_free(&schedule);
    /* A byte less than one microbatch needs is refused. */
    limits.bytes[p - 1] = least_room(&costs, p - 1) - 1;
    if (limits.bytes[p - 1] >= 0)
        assert_int_equal(pc_generate(generator, &request, &schedule, NULL, NULL), PC_ERROR_INPUT);
    pc_costs_free(&costs);
}

static void test_searches(void **state) {
    (void)state;
    test_random random = {1907};
    for (long i = 0; i < test_cases(16, 100); i++) check_search(&random, split_names[i % 8]);
}

/* ---- a model's parts ---- */

static pc_part_activation activation_of(const pc_model *model, const pc_cut *cut, const pc_part *part,
                                        pc_pass_forms forms) {
    pc_part_activation activation;
    pc_error error = {0};
    if (pc_part_activations(model, cut, part, forms, &activation, &error)) fail_msg("%s", error.message);
    return activation;
}

/* Of layers: F keeps what it keeps beside a BW; from B on there is what W finds where nothing is recomputed; and the
 * rest of one layer comes beside that while B is at it. Ends are as they are, for they are not recomputed; the layers
 * come when B is done with its part of the head. */
static void test_parts(void **state) {
    (void)state;
    test_random random = {11};
    const pc_pass_forms split = {.splits = true}, whole = {.splits = false};
    int more = 0;
    for (long i = 0; i < test_cases(50, 300); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        cut.cross_entropy = (pc_cross_entropy)(i % 4);
        pc_part part = {.layers = test_between(&random, 1, 9), .has_head = i % 2}, plain = part, head = part,
                layer = {.layers = 1};
        part.recompute = PC_RECOMPUTE_FULL;
        head.layers = 0;
        pc_part_activation x = activation_of(&model, &cut, &part, split), y = activation_of(&model, &cut, &part, whole);
        pc_part_activation z = activation_of(&model, &cut, &plain, split),
                           h = activation_of(&model, &cut, &head, split);
        pc_part_activation one = activation_of(&model, &cut, &layer, split);
        assert_int_equal(x.kept, y.taken);
        assert_int_equal(x.taken - x.b_frees, z.taken - z.b_frees);
        assert_int_equal(x.b_frees, h.b_frees);
        assert_true(x.kept <= x.taken && x.taken <= z.taken);
        int64_t gathered =
            cut.sequence_parallel && cut.tp > 1 ? 2 * cut.seq_len * cut.microbatch_size * model.hidden : 0;
        int64_t rest = one.b_frees - h.b_frees, of_head = h.working - gathered;
        if (rest < of_head) rest = of_head;
        assert_int_equal(x.working, (rest > 0 ? rest : 0) + gathered);
        more += x.working > gathered;
        /* Selective recomputation and none are as before. */
        part.recompute = (pc_recompute)(i % 2);
        x = activation_of(&model, &cut, &part, split);
        y = activation_of(&model, &cut, &part, whole);
        assert_memory_equal(&x, &y, sizeof x);
    }
    assert_true(more > 0);
}

/* BW beside B and W: a BW works with all of a layer but its input. */
static void test_mixed_parts(void **state) {
    (void)state;
    test_random random = {12};
    const pc_pass_forms split = {.splits = true}, mixed = {.splits = true, .mixes = true}, whole = {.splits = false};
    for (long i = 0; i < test_cases(50, 100); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        pc_part part = {.layers = 3, .has_head = i % 2, .recompute = PC_RECOMPUTE_FULL};
        pc_part_activation x = activation_of(&model, &cut, &part, mixed), y = activation_of(&model, &cut, &part, split);
        pc_part_activation z = activation_of(&model, &cut, &part, whole);
        assert_true(x.taken == y.taken && x.kept == y.kept && x.b_frees == y.b_frees);
        assert_int_equal(x.working, y.working > z.working ? y.working : z.working);
    }
}

/* ---- iterations ---- */

static void check_near(double found, double expected) {
    if (fabs(found - expected) > 1e-9 * fabs(expected)) fail_msg("%.12g; expected %.12g", found, expected);
}

static pc_costs costs_of(pc_iteration_spec *spec, const char *name, pc_recompute recompute) {
    pc_costs costs;
    pc_error error = {0};
    spec->generator = pc_generator_find(name);
    spec->cut.recompute = recompute;
    if (pc_iteration_costs(spec, NULL, &costs, &error)) fail_msg("%s", error.message);
    return costs;
}

/* B takes longer by an F again, R of 1F1B-R; F and W take what they do. As many FLOPs and bytes on links as with 1F1B.
 * The memory of every stage is that of test_zb_h1, of its own K, A and L. */
static void test_iteration(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.machine.gpu.launch_s = 0; /* of passes apart each the larger of kernels and launches counts */
    pc_costs full = costs_of(&spec, "zb-h1", PC_RECOMPUTE_FULL), none = costs_of(&spec, "zb-h1", PC_RECOMPUTE_NONE);
    pc_costs with_r = costs_of(&spec, "1f1b-r", PC_RECOMPUTE_FULL);
    assert_true(full.recomputes_in_b && !none.recomputes_in_b && !with_r.recomputes_in_b);
    for (int d = 0; d < 4; d++) {
        check_near((double)pc_costs_duration(&full, d, 0, PC_PASS_B),
                   (double)(pc_costs_duration(&none, d, 0, PC_PASS_B) + pc_costs_duration(&with_r, d, 0, PC_PASS_R)));
        assert_int_equal(pc_costs_duration(&full, d, 0, PC_PASS_W), pc_costs_duration(&none, d, 0, PC_PASS_W));
        assert_int_equal(pc_costs_duration(&full, d, 0, PC_PASS_F), pc_costs_duration(&none, d, 0, PC_PASS_F));
        assert_int_equal(full.activation_kept_bytes[d], with_r.activation_kept_bytes[d]);
    }
    spec.cut.recompute = PC_RECOMPUTE_FULL;
    spec.generator = pc_generator_find("zb-h1");
    pc_iteration apart = run_spec(&spec);
    for (int d = 0; d < 4; d++) {
        int64_t left = full.activation_bytes[d] - full.activation_b_bytes[d];
        assert_int_equal(apart.memory[d].activations,
                         (3 - d) * full.activation_kept_bytes[d] + d * left + full.activation_bytes[d]);
    }
    spec.generator = pc_generator_find("1f1b");
    pc_iteration together = run_spec(&spec);
    check_near(apart.hardware_flops, together.hardware_flops);
    check_near(apart.sent.tp_bytes, together.sent.tp_bytes);
    assert_true(apart.memory[3].activations > together.memory[3].activations);
    pc_iteration_free(&apart);
    pc_iteration_free(&together);
    pc_costs_free(&full);
    pc_costs_free(&none);
    pc_costs_free(&with_r);
}

/* Of a list each part has its own: those that recompute nothing take all with F. Flows and closed costs hold the same.
 */
static void test_lists(void **state) {
    (void)state;
    static const pc_recompute some[] = {PC_RECOMPUTE_NONE, PC_RECOMPUTE_FULL, PC_RECOMPUTE_SELECTIVE,
                                        PC_RECOMPUTE_FULL};
    pc_iteration_spec spec = example_spec();
    pc_costs costs;
    spec.generator = pc_generator_find("zb-h1");
    spec.cut.recompute_of_part = some;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &costs, NULL), PC_OK);
    for (int d = 0; d < 4; d++) {
        assert_int_equal(costs.activation_kept_bytes[d] < costs.activation_bytes[d], some[d] == PC_RECOMPUTE_FULL);
        assert_int_equal(pc_costs_taken(&costs, d, (pc_pass){.kind = PC_PASS_B}, false) > 0,
                         some[d] == PC_RECOMPUTE_FULL);
    }
    pc_iteration closed = run_spec(&spec);
    spec.network = PC_NETWORK_FLOWS;
    pc_iteration flows = run_spec(&spec);
    for (int d = 0; d < 4; d++) assert_int_equal(closed.memory[d].peak_bytes, flows.memory[d].peak_bytes);
    pc_iteration_free(&closed);
    pc_iteration_free(&flows);
    pc_costs_free(&costs);
}

static int64_t most_bytes(const pc_iteration *iteration) {
    int64_t most = 0;
    for (int d = 0; d < iteration->devices; d++)
        if (iteration->memory[d].peak_bytes > most) most = iteration->memory[d].peak_bytes;
    return most;
}

/* The limit is the user's where the schedule adapts: it takes what there is, down to what one microbatch needs. */
static void test_adapts(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find("v-adaptive");
    spec.cut.chunks = 2;
    spec.cut.dp = 1;
    spec.cut.recompute = PC_RECOMPUTE_FULL;
    pc_iteration unlimited = run_spec(&spec);
    int64_t all = most_bytes(&unlimited), fixed = all;
    for (int d = 0; d < 4; d++)
        if (unlimited.memory[d].peak_bytes == all) fixed -= unlimited.memory[d].activations;
    int fitted = 0, refused = 0;
    for (int tenth = 9; tenth > 0; tenth--) {
        pc_iteration iteration;
        spec.memory_limit_bytes = fixed + (all - fixed) / 10 * tenth;
        assert_int_equal(pc_iteration_run(&spec, NULL, false, &iteration, NULL), PC_OK);
        if (iteration.status == PC_RUN_OK) {
            assert_true(most_bytes(&iteration) <= spec.memory_limit_bytes);
            fitted++;
        } else {
            assert_int_equal(iteration.status, PC_RUN_OUT_OF_MEMORY);
            assert_non_null(strstr(iteration.message, ": activations of one microbatch: "));
            refused++;
        }
        pc_iteration_free(&iteration);
    }
    assert_true(fitted > 0 && refused > 0);
    pc_iteration_free(&unlimited);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zb_h1),     cmocka_unit_test(test_v_half), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_searches),  cmocka_unit_test(test_parts),  cmocka_unit_test(test_mixed_parts),
        cmocka_unit_test(test_iteration), cmocka_unit_test(test_lists),  cmocka_unit_test(test_adapts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
