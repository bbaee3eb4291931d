/* DualPipe and DualPipeV: the published steps (github.com/deepseek-ai/DualPipe), bubble and memory (its README). */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

static pc_schedule generate(const char *name, int p, int m) {
    pc_schedule schedule;
    pc_error error = {0};
    if (pc_schedule_generate(pc_generator_find(name), p, m, 2, &schedule, &error)) fail_msg("%s", error.message);
    if (pc_schedule_check(&schedule, &error)) fail_msg("%s %d %d: %s", name, p, m, error.message);
    return schedule;
}

#include <stdlib.h>
#include <unistd.h>

/* ---- steps ---- */

/* The passes of a stage one by one; a step is a word of them: f and F are F of phase 0 and 1; x and X its F together
 * with BW of the other phase; b, B, i, I: BW and B of phases 0 and 1; w: W. */
typedef struct reader {
    const pc_schedule *schedule;
    int64_t next;
    int phase_of_chunk[2], done[2][2]; /* by phase: F, backward passes */
} reader;

static pc_pass take(reader *x, pc_pass_kind kind, int phase) {
    pc_pass pass = x->schedule->passes[x->next++];
    assert_int_equal(pass.kind, kind);
    if (phase >= 0) assert_int_equal(x->phase_of_chunk[pass.chunk], phase);
    return pass;
}

/* Microbatches of a phase come in their order. */
static void take_in_order(reader *x, pc_pass_kind kind, int phase) {
    pc_pass pass = take(x, kind, phase);
    int count = x->done[phase][kind != PC_PASS_F]++;
    bool has_replicas = x->schedule->placement == PC_PLACEMENT_BIDIRECTIONAL;
    assert_int_equal(pass.microbatch, has_replicas ? 2 * count + pass.chunk : count);
}

static void read_step(reader *x, char letter) {
    bool is_pair = letter == 'x' || letter == 'X';
    assert_int_equal(pc_schedule_pairs_at(x->schedule, x->next), is_pair);
    switch (letter) {
    case 'f':
    case 'F':
        take_in_order(x, PC_PASS_F, letter == 'F');
        break;
    case 'x':
    case 'X':
        take_in_order(x, PC_PASS_F, letter == 'X');
        take_in_order(x, PC_PASS_BW, letter != 'X');
        break;
    case 'b':
    case 'B':
        take_in_order(x, PC_PASS_BW, letter == 'B');
        break;
    case 'i':
    case 'I':
        take_in_order(x, PC_PASS_B, letter == 'I');
        break;
    default:
        take(x, PC_PASS_W, -1);
    }
}

static void read_steps(reader *x, int times, const char *word) {
    for (int i = 0; i < times; i++)
        for (const char *letter = word; *letter; letter++) read_step(x, *letter);
}

/* The eight steps, of half = p/2 pairs of stages (DualPipe) or p stages (DualPipeV), `rank` from the ends (0) to the
 * turn, and n microbatches of a phase. */
static void read_stage(reader *x, int half, int rank, int n) {
    int to_turn = half - rank - 1, steady = n - 2 * half + rank + 1, whole = (rank + 1) / 2;
    read_steps(x, 2 * to_turn, "f");
    read_steps(x, rank + 1, "fF");
    read_steps(x, to_turn, "IwF");
    read_steps(x, steady > 0 && to_turn == 0, "fBX"); /* the first at the turn does not overlap */
    read_steps(x, steady - (steady > 0 && to_turn == 0), "xX");
    read_steps(x, to_turn, "BX");
    read_steps(x, whole, "Bb"); /* of rank+1 times two, the second half leaves its W for later */
    read_steps(x, rank % 2 == 0, "Bi");
    read_steps(x, rank + 1 - whole - (rank % 2 == 0), "Ii");
    read_steps(x, to_turn, "wi");
    read_steps(x, rank + 1, "w");
}

static void check_steps(const char *name, int p, int m) {
    pc_schedule schedule = generate(name, p, m);
    bool has_replicas = schedule.placement == PC_PLACEMENT_BIDIRECTIONAL;
    for (int d = 0; d < p; d++) {
        bool is_behind = has_replicas && d >= p / 2;
        reader x = {.schedule = &schedule, .next = schedule.offsets[d], .phase_of_chunk = {is_behind, !is_behind}};
        read_stage(&x, has_replicas ? p / 2 : p, has_replicas ? pc_min(d, p - 1 - d) : d, has_replicas ? m / 2 : m);
        assert_int_equal(x.next, schedule.offsets[d + 1]);
    }
    pc_schedule_free(&schedule);
}

static void test_published_steps(void **state) {
    (void)state;
    for (int p = 1; p <= 16; p++)
        for (int m = 2 * p; m <= 4 * p; m++) {
            check_steps("dualpipe-v", p, m);
            if (p % 2 == 0 && m % 2 == 0) check_steps("dualpipe", p, m);
        }
}

/* ---- bubble and memory ---- */

/* Times of a chunk: F, B, W, and F with BW together. */
typedef struct times {
    pc_time f, b, w, both;
} times;

static pc_replay replay_at(const pc_schedule *schedule, times x, bool has_pairs, pc_engine_mode engine) {
    pc_costs costs;
    pc_replay replay;
    pc_error error = {0};
    assert_int_equal(pc_costs_create(schedule->devices, 2, &costs, NULL), PC_OK);
    if (has_pairs) assert_int_equal(pc_costs_add_pairs(&costs, NULL), PC_OK);
    for (int64_t i = 0; i < 2 * (int64_t)schedule->devices; i++) {
        pc_time *duration_ps = &costs.duration_ps[i * PC_PASS_KINDS];
        duration_ps[PC_PASS_F] = x.f;
        /* cppcheck-suppress objectIndex ; duration_ps is an array */
        duration_ps[PC_PASS_B] = x.b;
        /* cppcheck-suppress objectIndex ; likewise */
        duration_ps[PC_PASS_W] = x.w;
        /* cppcheck-suppress objectIndex ; likewise */
        duration_ps[PC_PASS_BW] = x.b + x.w;
        costs.activation_bytes[i] = 1;
        costs.activation_b_bytes[i] = 0;
    }
    for (int64_t i = 0; has_pairs && i < 8 * (int64_t)schedule->devices; i++) costs.pair_ps[i] = x.both;
    if (pc_replay_run(schedule, &costs, &(pc_replay_options){.engine = engine, .with_trace = true}, &replay, &error))
        fail_msg("%s", error.message);
    pc_costs_free(&costs);
    return replay;
}

/* What the most idle stage idles; and that the engine agrees. */
static pc_time most_idle(const pc_schedule *schedule, times x) {
    pc_replay replay = replay_at(schedule, x, true, PC_ENGINE_AUTO);
    pc_replay events = replay_at(schedule, x, true, PC_ENGINE_EVENTS);
    pc_time most = 0;
    assert_int_equal(replay.makespan_ps, events.makespan_ps);
    for (int d = 0; d < schedule->devices; d++) most = pc_max(most, replay.makespan_ps - replay.device_busy_ps[d]);
    pc_replay_free(&events);
    pc_replay_free(&replay);
    return most;
}

/* The README's table has (p/2-1)(F&B + B - 3W), where B is the whole backward pass: with F as long as the pass for the
 * input alone, that is what the most idle stage idles, however long F&B is. Where F is longer its time stands in place
 * of that pass's: (p/2-1)(F&B + F - 2W). DualPipeV has the bubble of twice the devices. */
static void test_published_bubble(void **state) {
    (void)state;
    static const times equal[] = {{10, 10, 10, 30}, {10, 10, 10, 21}, {10, 10, 7, 27}, {10, 10, 7, 22}};
    static const times others[] = {{14, 10, 9, 30}, {14, 10, 5, 24}, {20, 14, 12, 40}, {11, 10, 10, 31}};
    for (int p = 2; p <= 16; p += 2)
        for (int m = 2 * p; m <= 4 * p; m += p)
            for (int k = 0; k < 4; k++) {
                times x = equal[k], y = others[k];
                pc_schedule two = generate("dualpipe", p, m), v = generate("dualpipe-v", p / 2, m);
                assert_int_equal(most_idle(&two, x), (p / 2 - 1) * (x.both + (x.b + x.w) - 3 * x.w));
                assert_int_equal(most_idle(&two, y), (p / 2 - 1) * (y.both + y.f - 2 * y.w));
                assert_int_equal(most_idle(&v, x), (p / 2 - 1) * (x.both + (x.b + x.w) - 3 * x.w));
                assert_int_equal(most_idle(&v, y), (p / 2 - 1) * (y.both + y.f - 2 * y.w));
                pc_schedule_free(&v);
                pc_schedule_free(&two);
            }
}

/* Every stage holds p+1 of its p parts' microbatches; of DualPipeV, 2p+1 chunks. */
static void test_published_memory(void **state) {
    (void)state;
    for (int p = 2; p <= 16; p += 2) {
        pc_schedule two = generate("dualpipe", p, 3 * p), v = generate("dualpipe-v", p, 3 * p);
        pc_replay of_two = replay_at(&two, (times){10, 10, 10, 24}, true, PC_ENGINE_AUTO);
        pc_replay of_v = replay_at(&v, (times){10, 10, 10, 24}, true, PC_ENGINE_AUTO);
        for (int d = 0; d < p; d++) {
            assert_int_equal(of_two.device_peak_bytes[d], p + 1);
            assert_int_equal(of_v.device_peak_bytes[d], 2 * p + 1);
        }
        pc_replay_free(&of_two);
        pc_replay_free(&of_v);
        pc_schedule_free(&two);
        pc_schedule_free(&v);
    }
}

/* Half of a pipeline cannot be odd, nor its two ways differ. */
static void test_refused(void **state) {
    (void)state;
    static const struct {
        int p, m;
        const char *message;
    } wrong[] = {
        {3, 12, "dualpipe: 3 devices, 12 microbatches; expected an even number of both, or schedule dualpipe-v"},
        {4, 11, "dualpipe: 4 devices, 11 microbatches; expected an even number of both, or schedule dualpipe-v"},
        {4, 6, "dualpipe: 6 microbatches on 4 devices; expected at least 8, 2 a device"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pc_error error = {0};
        pc_schedule schedule;
        assert_int_equal(
            pc_schedule_generate(pc_generator_find("dualpipe"), wrong[i].p, wrong[i].m, 2, &schedule, &error),
            PC_ERROR_INPUT);
        assert_string_equal(error.message, wrong[i].message);
    }
}

/* Interleaved 1F1B with the F that Megatron's overlap has more first: all F behind the warm-up are of pairs. */
static void test_interleaved_pairs(void **state) {
    (void)state;
    const pc_generator *overlap = pc_generator_find("1f1b-interleaved-overlap");
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 3 * p; m++)
            for (int v = 2; v <= 4; v++) {
                pc_schedule schedule;
                pc_error error = {0};
                assert_int_equal(pc_schedule_generate(overlap, p, m, v, &schedule, NULL), PC_OK);
                if (pc_schedule_check(&schedule, &error)) fail_msg("%d %d %d: %s", p, m, v, error.message);
                for (int d = 0; d < p; d++) {
                    int pairs = 0, group = m < p ? m : p, warm_up = 2 * (p - 1 - d) + (v - 1) * group + 1;
                    for (int64_t i = schedule.offsets[d]; i < schedule.offsets[d + 1]; i++) pairs += schedule.pairs[i];
                    if (m % p == 0 || m < p) assert_int_equal(pairs, pc_max(m * v - warm_up, 0));
                }
                pc_schedule_free(&schedule);
            }
}

/* One stage of one chunk: each F but the first beside the BW of the microbatch before. */
static void test_pairs_of_one_stage(void **state) {
    (void)state;
    pc_schedule schedule;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b-interleaved-overlap"), 1, 4, 1, &schedule, NULL),
                     PC_OK);
    const pc_pass_kind kinds[] = {PC_PASS_F,  PC_PASS_F, PC_PASS_BW, PC_PASS_F,
                                  PC_PASS_BW, PC_PASS_F, PC_PASS_BW, PC_PASS_BW};
    const int microbatches[] = {0, 1, 0, 2, 1, 3, 2, 3};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(schedule.passes[i].kind, kinds[i]);
        assert_int_equal(schedule.passes[i].microbatch, microbatches[i]);
        assert_int_equal(schedule.pairs[i], i % 2 == 1 && i < 7);
    }
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    pc_schedule_free(&schedule);
}

/* To PyTorch's cells and back: pairs stay pairs. */
static void test_csv_keeps_pairs(void **state) {
    (void)state;
    pc_schedule schedule = generate("dualpipe-v", 2, 5), again;
    pc_error error = {0};
    char path[] = "/tmp/pairsXXXXXX.csv", line[512];
    int file = mkstemps(path, 4);
    assert_true(file >= 0);
    FILE *stream = fdopen(file, "w+");
    assert_int_equal(pc_schedule_write_torch_csv(&schedule, stream, &error), PC_OK);
    rewind(stream);
    assert_non_null(fgets(line, sizeof line, stream));
    assert_string_equal(line,
                        "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,"
                        "(0F4;3B2)OVERLAP_F_B,(3F3;0B1)OVERLAP_F_B,3B3,(3F4;0B2)OVERLAP_F_B,3B4,0I3,0W3,0I4,0W4\n");
    fclose(stream);
    if (pc_schedule_read_torch_csv(path, &again, &error)) fail_msg("%s", error.message);
    assert_int_equal(again.offsets[2], schedule.offsets[2]);
    assert_non_null(again.pairs);
    assert_memory_equal(again.passes, schedule.passes, (size_t)schedule.offsets[2] * sizeof *schedule.passes);
    assert_memory_equal(again.pairs, schedule.pairs, (size_t)schedule.offsets[2]);
    remove(path);
    pc_schedule_free(&again);
    pc_schedule_free(&schedule);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_steps),   cmocka_unit_test(test_published_bubble),
        cmocka_unit_test(test_published_memory),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_interleaved_pairs), cmocka_unit_test(test_pairs_of_one_stage),
        cmocka_unit_test(test_csv_keeps_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
