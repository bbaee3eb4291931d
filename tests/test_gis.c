/* PipeOffload's interleaved schedules, gis and gis-h, against algebra: idle time, what each stage holds, lifespans. */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/schedule/block.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

enum { GIS = 1, GIS_H = 2, P_MOST = 9, V_MOST = 5 };

static const char *name_of(int kind) {
    return kind == GIS ? "gis" : "gis-h";
}

/* Microbatches of a group: p, or p/2 rounded up. */
static int group_of(int kind, int p) {
    return (p + kind - 1) / kind;
}

/* Chunks that take one cell for each of F, B and W, and a byte a microbatch. */
static pc_costs cells(int p, int v) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, v, &costs, NULL), PC_OK);
    for (int i = 0; i < p * v; i++) {
        for (int kind = PC_PASS_F; kind <= PC_PASS_W; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = 1;
        costs.activation_bytes[i] = 1;
    }
    return costs;
}

static pc_schedule made(int kind, int p, int m, int v) {
    pc_schedule s;
    pc_error error = {0};
    if (pc_schedule_generate(pc_generator_find(name_of(kind)), p, m, v, &s, &error)) fail_msg("%s", error.message);
    if (pc_schedule_check(&s, &error)) fail_msg("%s p=%d m=%d v=%d: %s", name_of(kind), p, m, v, error.message);
    return s;
}

static pc_replay replayed(int kind, int p, int m, int v) {
    pc_costs costs = cells(p, v);
    pc_schedule s = made(kind, p, m, v);
    pc_replay replay;
    assert_int_equal(pc_replay_run(&s, &costs, NULL, &replay, NULL), PC_OK);
    pc_schedule_free(&s);
    pc_costs_free(&costs);
    return replay;
}

static void check_form(int kind, int p, int groups, int v, int64_t idle) {
    int n = group_of(kind, p), m = groups * n;
    pc_replay replay = replayed(kind, p, m, v);
    if (replay.span_ps - 3 * (int64_t)m * v != idle)
        fail_msg("%s p=%d m=%d v=%d: idles %d, expected %d", name_of(kind), p, m, v,
                 (int)(replay.span_ps - 3 * (int64_t)m * v), (int)idle);
    for (int d = 0; d < p; d++) assert_int_equal(replay.device_peak_bytes[d], (v - 1) * n + p - d);
    pc_replay_free(&replay);
}

/* Cells of a chunk. The first microbatch needs p to be through the stages, of which the first one fills n with its
 * group's F, so that it waits p-n before each chunk but the first. Then the first stage waits p-1 for F to come down,
 * and p-1 for B to come up: (p-1)(F+B)/v of a stage for GIS, whose n is p. A stage holds its warm-up, p-1-d + (v-1)n,
 * and one F more. */
static void test_idle_time_and_memory(void **state) {
    (void)state;
    for (int kind = GIS; kind <= GIS_H; kind++)
        for (int p = 1; p <= P_MOST; p++)
            for (int v = 1; v <= V_MOST; v++)
                for (int groups = 3; groups <= 7; groups += 2)
                    check_form(kind, p, groups, v, 2 * (p - 1) + (v - 1) * (p - group_of(kind, p)));
}

/* Chunk c of stage d lives 3(p-d + 2(v-1-c)n) cells: the first one longest, on every stage. */
static void test_lifespans_fall_from_chunk_to_chunk(void **state) {
    (void)state;
    for (int kind = GIS; kind <= GIS_H; kind++)
        for (int p = 1; p <= P_MOST; p++)
            for (int v = 1; v <= V_MOST; v++) {
                pc_schedule s;
                pc_block block;
                int n = group_of(kind, p);
                pc_generate_request request = {.devices = p, .microbatches = 4 * p, .chunks = v, .threads = 1};
                assert_int_equal(pc_generate(pc_generator_find(name_of(kind)), &request, &s, &block, NULL), PC_OK);
                assert_int_equal(block.microbatches, n);
                assert_true(pc_block_is_valid(&block));
                for (int i = 0; i < n * p * v; i++)
                    assert_int_equal(pc_block_lifespan(&block, i / (p * v), i / v % p, i % v),
                                     3 * (p - i / v % p + 2 * (v - 1 - i % v) * n));
                pc_block_free(&block);
                pc_schedule_free(&s);
            }
}

/* Half of interleaved 1F1B's vp + p-1 chunks or one and a half more, as (v-1) p/2 + p is for even p. */
static void test_half_of_interleaved(void **state) {
    (void)state;
    for (int p = 2; p <= 16; p += 2)
        for (int v = 2; v <= V_MOST; v++) {
            pc_replay half = replayed(GIS_H, p, 4 * p, v);
            assert_int_equal(2 * half.device_peak_bytes[0] - (v * p + p - 1), 1);
            pc_replay_free(&half);
        }
}

/* ---- microbatch by microbatch ---- */

static int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Slots from the first chunk to this one, as the authors' generator has them. */
static int64_t place(int64_t chunk, int64_t v, int64_t n) {
    return chunk * n + chunk / (v / gcd(v, n));
}

static void check_uniform(int kind, int p, int v) {
    pc_schedule s;
    pc_block block;
    pc_costs costs = cells(p, v);
    int n = group_of(kind, p);
    int64_t lives = 0;
    pc_generate_request request = {.devices = p, .microbatches = 6 * p, .chunks = v, .threads = 1};
    const pc_generator *generator = pc_generator_find(kind == GIS ? "gis-uniform" : "gis-h-uniform");
    assert_int_equal(pc_generate(generator, &request, &s, &block, NULL), PC_OK);
    assert_int_equal(pc_schedule_check(&s, NULL), PC_OK);
    assert_true(pc_block_is_valid(&block) && block.interval == 3 * v);
    for (int c = 0; c < v; c++) {
        int64_t life = 3 * (place(v - 1, v, n) + p + place(v - 1 - c, v, n) - place(c, v, n));
        assert_int_equal(pc_block_lifespan(&block, 0, 0, c), life);
        if (c >= v / 2) lives += life;
    }
    for (int c = 0; c < v / 2; c++) costs.activation_bytes[c] = 0; /* of stage 0, on the host */
    int64_t held = pc_block_peak(&block, &costs, 0, 6 * p);
    assert_true(held >= lives / (3 * v) && held <= lives / (3 * v) + (v + 1) / 2 + 1);
    pc_costs_free(&costs);
    pc_block_free(&block);
    pc_schedule_free(&s);
}

/* Lifespans by the slots of chunks. Without the first half of the chunks, stage 0 holds what the lives of the others
 * take of an interval, and less than one microbatch more of each. That is 4 chunks of gis' 16 for p 8 and v 2. */
static void test_uniform_is_better_than_linear(void **state) {
    (void)state;
    for (int kind = GIS; kind <= GIS_H; kind++)
        for (int p = 1; p <= P_MOST; p++)
            for (int v = 1; v <= V_MOST + 3; v++) check_uniform(kind, p, v);
}

/* ---- any shape ---- */

/* A last group of fewer microbatches is the whole one's order without what is not there: no stage holds more, and any
 * p, m and v run. */
static void test_any_shape(void **state) {
    (void)state;
    test_random random = {24};
    for (long i = 0; i < test_cases(300, 3000); i++) {
        int kind = (int)test_between(&random, GIS, GIS_H), p = (int)test_between(&random, 1, 12);
        int v = (int)test_between(&random, 1, 6), m = (int)test_between(&random, 1, 5 * p);
        int n = group_of(kind, p), whole = (int)pc_round_up(m, n);
        pc_replay few = replayed(kind, p, m, v), all = replayed(kind, p, whole, v);
        for (int d = 0; d < p; d++) {
            assert_true(few.device_peak_bytes[d] <= pc_min(m * v, (v - 1) * n + p - d));
            assert_true(few.device_peak_bytes[d] <= all.device_peak_bytes[d]);
        }
        assert_true(few.span_ps <= all.span_ps);
        pc_replay_free(&few);
        pc_replay_free(&all);
    }
}

/* p = 4, v = 2, groups of 2: stage 1 of gis-h warms up with 2 + 2 F; then F, B, W in turn. */
static void test_an_order(void **state) {
    static const char expected[] = "F00F10F01F11F20B01W01F30B11W11F21B00W00F31B10W10";
    char text[sizeof expected];
    (void)state;
    pc_schedule s = made(GIS_H, 4, 8, 2);
    for (int k = 0; k < 16; k++) {
        const pc_pass *pass = &s.passes[s.offsets[1] + k];
        char kind = pass->kind == PC_PASS_F ? 'F' : pass->kind == PC_PASS_B ? 'B' : 'W';
        text[3 * k] = kind;
        text[3 * k + 1] = (char)('0' + pass->microbatch);
        text[3 * k + 2] = (char)('0' + pass->chunk);
    }
    text[48] = '\0';
    assert_string_equal(text, expected);
    pc_schedule_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_time_and_memory),
        cmocka_unit_test(test_lifespans_fall_from_chunk_to_chunk),
        cmocka_unit_test(test_half_of_interleaved),
        cmocka_unit_test(test_uniform_is_better_than_linear),
        cmocka_unit_test(test_any_shape),
        cmocka_unit_test(test_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
