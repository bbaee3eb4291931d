/* What PyTorch and Megatron-LM run: their orders, pass by pass, and the closed forms of the schedules that come from
 * there. */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

/* ---- closed forms ---- */

/* Of the passes of a chunk; a BW takes b + w, and every chunk holds 1. */
typedef struct pass_times {
    pc_time f, b, w;
} pass_times;

/* Every schedule that these tests make has passed the checker. */
static pc_code generate(const char *name, pc_making making, int p, int m, int v, pc_schedule *schedule,
                        pc_error *error) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, v, &costs, NULL), PC_OK); /* which these orders do not look at */
    pc_generate_request request = {
        .devices = p, .microbatches = m, .chunks = v, .costs = &costs, .threads = 1, .making = making};
    pc_code code = pc_generate(pc_generator_find(name), &request, schedule, NULL, error);
    pc_costs_free(&costs);
    if (!code && pc_schedule_check(schedule, error)) fail_msg("%s: %s", name, error->message);
    return code;
}

static pc_replay replay_of(const char *name, pc_making making, int p, int m, int v, pass_times times) {
    pc_costs costs;
    pc_replay replay;
    pc_schedule schedule;
    pc_error error = {0};
    const pc_time all[PC_PASS_KINDS] = {times.f, times.b, times.w, times.b + times.w, 0};
    if (generate(name, making, p, m, v, &schedule, &error)) fail_msg("%s", error.message);
    assert_int_equal(pc_costs_create(p, v, &costs, NULL), PC_OK);
    for (int i = 0; i < p * v; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = all[kind];
        costs.activation_bytes[i] = 1;
    }
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
    return replay;
}

/* The worst stage idles so long, and every stage holds so many chunks at most. */
static void check_made_form(const char *name, pc_making making, int p, int m, int v, pass_times times, pc_time idle,
                            int64_t held) {
    pc_replay replay = replay_of(name, making, p, m, v, times);
    pc_time found = replay.span_ps - (pc_time)m * v * (times.f + times.b + times.w);
    if (found != idle)
        fail_msg("%s: p=%d m=%d v=%d, %d,%d,%d: idles %d, expected %d", name, p, m, v, (int)times.f, (int)times.b,
                 (int)times.w, (int)found, (int)idle);
    for (int d = 0; d < p; d++) assert_int_equal(replay.device_peak_bytes[d], held);
    pc_replay_free(&replay);
}

static void check_form(const char *name, int p, int m, int v, pass_times times, pc_time idle, int64_t held) {
    check_made_form(name, PC_MAKING_COSTS, p, m, v, times, idle, held);
}

/* Chunk by chunk n = max(m, p) F pass before the next chunk's are there, all F in (v-1) n + m + p-1 of them, and the
 * backward passes, the mirror image, in as many: of these mv are work. */
static void test_looped_bfs(void **state) {
    static const pass_times times[] = {{1, 1, 1}, {3, 4, 2}, {5, 1, 1}, {1, 5, 9}};
    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 3 * p; m++)
            for (int v = 1; v <= 4; v++)
                for (size_t t = 0; t < sizeof times / sizeof *times; t++) {
                    pc_time each = times[t].f + times[t].b + times[t].w;
                    check_form("looped-bfs", p, m, v, times[t], ((v - 1) * pc_max(p - m, 0) + p - 1) * each, m * v);
                }
}

/* F = B = W = 1, m >= p, groups of n. When the last stage starts its first B, the first one has done the warm-up and
 * one F more, p + (v-1)n of them. The last one has done p-1 fewer but began p-1 later. That B takes p to be through, in
 * which the first stage waits for p-1. From then on it does F, B and W in turn. Every stage holds its warm-up, p-1-d +
 * (v-1)n, one F more, and d whose W is still to come. */
static void test_zb_interleaved(void **state) {
    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int m = p; m <= 5 * p; m++)
            for (int v = 1; v <= 4; v++) {
                int n = p;
                while (m % n != 0 && m % n < p) n++;
                check_form("zb-interleaved", p, m, v, (pass_times){1, 1, 1}, p - 1, p + (v - 1) * n);
            }
}

static bool same_order(const pc_schedule *a, const pc_schedule *b) {
    int64_t passes = a->offsets[a->devices];
    return passes == b->offsets[b->devices] && memcmp(a->passes, b->passes, (size_t)passes * sizeof *a->passes) == 0;
}

static void test_one_chunk_is_zb_h1(void **state) {
    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 20; m++) {
            pc_schedule one, h1;
            assert_int_equal(pc_schedule_generate(pc_generator_find("zb-interleaved"), p, m, 1, &one, NULL), PC_OK);
            assert_int_equal(pc_schedule_generate(pc_generator_find("zb-h1"), p, m, 1, &h1, NULL), PC_OK);
            assert_true(same_order(&one, &h1));
            pc_schedule_free(&one);
            pc_schedule_free(&h1);
        }
}

/* b <= f <= b+w: the last stage begins (p-1) f late and then works on; where b > w the B that are alone at the end come
 * up by b a stage while there are W of w to do. Every stage holds 2p chunks when its first backward pass comes, and one
 * more when its middle begins. */
static void test_dualpipe_v(void **state) {
    static const pass_times times[] = {{1, 1, 1},    {2, 1, 1},    {1, 1, 5}, {10, 11, 12},
                                       {12, 11, 10}, {20, 12, 10}, {4, 4, 1}};
    (void)state;
    for (int p = 1; p <= 9; p++)
        for (int m = 2 * p; m <= 6 * p; m += p == 1 ? 1 : p / 2)
            for (size_t t = 0; t < sizeof times / sizeof *times; t++) {
                pass_times x = times[t];
                if (x.b > x.f) continue;
                check_form("dualpipe-v", p, m, 2, x, (p - 1) * (x.f + pc_max(x.b - x.w, 0)), 2 * p + 1);
            }
}

/* Of a stage's 2m backward passes 2p-1-d are split: p-1-d at the start and p at the end. */
static void test_dualpipe_v_mixes(void **state) {
    (void)state;
    for (int p = 1; p <= 9; p++) {
        pc_schedule schedule;
        assert_int_equal(pc_schedule_generate(pc_generator_find("dualpipe-v"), p, 3 * p, 2, &schedule, NULL), PC_OK);
        for (int d = 0; d < p; d++) {
            int count[PC_PASS_KINDS] = {0};
            for (int64_t i = schedule.offsets[d]; i < schedule.offsets[d + 1]; i++) count[schedule.passes[i].kind]++;
            assert_int_equal(count[PC_PASS_B], 2 * p - 1 - d);
            assert_int_equal(count[PC_PASS_W], 2 * p - 1 - d);
            assert_int_equal(count[PC_PASS_BW], 6 * p - (2 * p - 1 - d));
        }
        pc_schedule_free(&schedule);
    }
    assert_true(pc_generator_has_kind(pc_generator_find("dualpipe-v"), PC_PASS_BW));
    assert_true(pc_generator_has_kind(pc_generator_find("dualpipe-v"), PC_PASS_W));
    assert_false(pc_generator_has_kind(pc_generator_find("zb-interleaved"), PC_PASS_BW));
}

/* ZBVZeroBubble for F = B = W: no stage waits once it has begun, so that the span is 6m; each holds 2p chunks, and
 * fewer where there are fewer, 2m. */
static void test_torch_zb_v(void **state) {
    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int m = 2 * p; m <= 6 * p; m++)
            check_made_form("zb-v", PC_MAKING_TORCH, p, m, 2, (pass_times){1, 1, 1}, 0, 2 * p);
}

/* Interleaved 1F1B with one F more: the same bubble, p-1 passes of a chunk each way, and 2(p-1) + (v-1)p + 2 chunks. */
static void test_interleaved_overlap(void **state) {
    (void)state;
    for (int p = 2; p <= 8; p++)
        for (int v = 2; v <= 4; v++)
            for (int k = 2; k <= 4; k++) {
                pc_replay replay =
                    replay_of("1f1b-interleaved-overlap", PC_MAKING_MEGATRON, p, k * p, v, (pass_times){3, 4, 2});
                assert_int_equal(replay.span_ps, 9 * (k * p * v + p - 1));
                assert_int_equal(replay.peak_bytes, 2 * (p - 1) + (v - 1) * p + 2);
                pc_replay_free(&replay);
            }
}

/* ---- orders ---- */

static char *next_line(FILE *file, char *line, int size) {
    if (!fgets(line, size, file)) return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

enum { LINE = 8192 };

/* The lines behind its heading are those that we write, or `refused`, and we refuse too. */
static bool check_written(FILE *file, const char *name, int p, int m, int v) {
    char theirs[LINE], ours[LINE];
    pc_schedule schedule;
    pc_error error = {0};
    pc_code code = generate(name, PC_MAKING_TORCH, p, m, v, &schedule, &error);
    if (code) {
        assert_int_equal(code, PC_ERROR_INPUT);
        assert_non_null(strstr(error.message, "; expected "));
        assert_string_equal(next_line(file, theirs, LINE), "refused");
        return false;
    }
    FILE *text = tmpfile();
    free(schedule.pairs); /* the lists have the order, pass by pass */
    schedule.pairs = NULL;
    assert_int_equal(pc_schedule_write_torch_csv(&schedule, text, NULL), PC_OK);
    rewind(text);
    for (int d = 0; d < p; d++) {
        assert_non_null(next_line(file, theirs, LINE));
        assert_non_null(next_line(text, ours, LINE));
        if (strcmp(theirs, ours) != 0)
            fail_msg("%s p=%d m=%d v=%d, rank %d:\n%s\nexpected\n%s", name, p, m, v, d, ours, theirs);
    }
    fclose(text);
    pc_schedule_free(&schedule);
    return true;
}

/* What PyTorch wrote. */
static void test_torch_orders(void **state) {
    char path[4096], line[LINE], name[64];
    const char *root = getenv("PC_SOURCE_ROOT");
    int p, m, v, same = 0, refused = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/data/torch_orders.txt", root ? root : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (next_line(file, line, LINE)) {
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%*s %63s %d %d %d", name, &p, &m, &v), 4);
        if (check_written(file, name, p, m, v))
            same++;
        else
            refused++;
    }
    fclose(file);
    assert_int_equal(same, 44);
    assert_int_equal(refused, 5);
}

static void expect_refused(const char *name, pc_making making, int p, int m, int v, const char *message) {
    pc_schedule schedule;
    pc_error error = {0};
    assert_int_equal(generate(name, making, p, m, v, &schedule, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_refused_shapes(void **state) {
    (void)state;
    expect_refused("1f1b", PC_MAKING_TORCH, 4, 3, 1,
                   "1f1b: making torch: 3 microbatches on 4 devices; expected at least one a device, as PyTorch does");
    expect_refused("1f1b-interleaved", PC_MAKING_TORCH, 4, 9, 2,
                   "1f1b-interleaved: making torch: 9 microbatches on 4 devices; expected a multiple of 2, PyTorch's "
                   "number of rounds");
    expect_refused("zb-interleaved", PC_MAKING_TORCH, 4, 13, 2,
                   "zb-interleaved: making torch: 13 microbatches on 4 devices; expected a multiple of 3, PyTorch's "
                   "number of rounds");
    expect_refused(
        "1f1b-interleaved", PC_MAKING_TORCH, 4, 8, 1,
        "1f1b-interleaved: making torch: 1 chunk a device; expected at least 2, as PyTorch's order of one is "
        "eager-1f1b");
    expect_refused("1f1b-interleaved", PC_MAKING_MEGATRON, 4, 3, 2,
                   "1f1b-interleaved: making megatron: 3 microbatches on 4 devices; expected at least one a device, as "
                   "Megatron-LM does");
    expect_refused("1f1b-interleaved", PC_MAKING_MEGATRON, 1, 8, 2,
                   "1f1b-interleaved: making megatron: 2 chunks on one device; expected at least 2 devices, as "
                   "Megatron-LM does");
    expect_refused(
        "zb-v", PC_MAKING_MEGATRON, 4, 8, 2,
        "zb-v: making megatron: nobody gives such an order of it; expected costs, equal, published or torch");
}

/* ---- Megatron-LM ---- */

/* Its table of (microbatch, chunk), group after group: within a group chunk after chunk. */
static int make_table(int m, int v, int group, pc_pass *table) {
    int count = 0;
    for (int first = 0; first < m; first += group)
        for (int chunk = 0; chunk < v; chunk++)
            for (int i = first; i < m && i < first + group; i++)
                table[count++] = (pc_pass){.microbatch = i, .chunk = (int16_t)chunk};
    return count;
}

/* The order that its two loops run: the warm-up of min(2(p-1-d) + (v-1)n, mv) F, or p-1-d where there is one chunk,
 * then F and BW in turn, then BW; BW by the same table, chunks reversed. */
static void check_megatron(int p, int m, int v, int group, bool overlaps) {
    pc_pass table[512];
    pc_schedule schedule;
    pc_error error = {0};
    const char *name = v == 1 ? "1f1b" : overlaps ? "1f1b-interleaved-overlap" : "1f1b-interleaved";
    int total = make_table(m, v, group, table);
    if (generate(name, PC_MAKING_MEGATRON, p, m, v, &schedule, &error)) fail_msg("%s", error.message);
    for (int d = 0; d < p; d++) {
        int warm_up = v == 1 ? p - 1 - d : 2 * (p - 1 - d) + (v - 1) * group + overlaps;
        const pc_pass *at = schedule.passes + schedule.offsets[d];
        if (warm_up > total) warm_up = total;
        for (int k = 0; k < total + warm_up; k++) {
            if (k < total) {
                assert_int_equal(at->kind, PC_PASS_F);
                assert_int_equal(at->microbatch, table[k].microbatch);
                assert_int_equal(at++->chunk, table[k].chunk);
            }
            if (k < warm_up) continue;
            assert_int_equal(at->kind, PC_PASS_BW);
            assert_int_equal(at->microbatch, table[k - warm_up].microbatch);
            assert_int_equal(at++->chunk, v - 1 - table[k - warm_up].chunk);
        }
        assert_ptr_equal(at, schedule.passes + schedule.offsets[d + 1]);
    }
    pc_schedule_free(&schedule);
}

/* microbatch_group_size_per_vp_stage: p where p divides m or leaves p or more, which is Megatron-LM's own default; else
 * the least that it takes. */
static void test_megatron_orders(void **state) {
    (void)state;
    for (int p = 2; p <= 8; p++)
        for (int m = p; m <= 5 * p; m++)
            for (int v = 1; v <= 4; v++) {
                int group = p;
                while (m % group > 0 && m % group < p) group++;
                check_megatron(p, m, v, group, false);
                if (v > 1) check_megatron(p, m, v, group, true); /* of expert communication */
            }
}

/* ---- names ---- */

/* Frameworks' own words find ours. */
static void test_hints(void **state) {
    static const char *const words[][2] = {{"ScheduleGPipe", "gpipe"},
                                           {"Schedule1F1B", "1f1b"},
                                           {"ScheduleInterleaved1F1B", "1f1b-interleaved"},
                                           {"Interleaved1F1B", "1f1b-interleaved"},
                                           {"ScheduleLoopedBFS", "looped-bfs"},
                                           {"LoopedBFS", "looped-bfs"},
                                           {"ScheduleInterleavedZeroBubble", "zb-interleaved"},
                                           {"InterleavedZeroBubble", "zb-interleaved"},
                                           {"ScheduleZBVZeroBubble", "zb-v"},
                                           {"ZBVZeroBubble", "zb-v"},
                                           {"ScheduleDualPipeV", "dualpipe-v"},
                                           {"DualPipeV", "dualpipe-v"}};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[PC_NEAREST_TEXT], expected[64];
        snprintf(expected, sizeof expected, " (did you mean %s?)", words[i][1]);
        assert_string_equal(pc_generator_hint(words[i][0], text), expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looped_bfs),
        cmocka_unit_test(test_zb_interleaved),
        cmocka_unit_test(test_one_chunk_is_zb_h1),
        cmocka_unit_test(test_dualpipe_v),
        cmocka_unit_test(test_dualpipe_v_mixes),
        cmocka_unit_test(test_torch_zb_v),
        cmocka_unit_test(test_interleaved_overlap),
        cmocka_unit_test(test_torch_orders),
        cmocka_unit_test(test_refused_shapes),
        cmocka_unit_test(test_megatron_orders),
        cmocka_unit_test(test_hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
