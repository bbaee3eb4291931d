/* Vocabulary parallelism: what its schedules hold and idle, what S and T are of the head, and where parameters are. */
#include "tests/random_model.h"
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/workload/memory.h"
#include "models/workload/operation.h"

static pc_schedule make_schedule(const char *name, int p, int m) {
    pc_schedule schedule;
    pc_error error = {0};
    if (pc_schedule_generate(pc_generator_find(name), p, m, 0, &schedule, &error)) fail_msg("%s", error.message);
    return schedule;
}

/* A chunk's F, B and W take `cell` each, BW two; S and T take as they are given. */
static pc_costs make_costs(const pc_schedule *schedule, pc_time cell, pc_time s, pc_time t) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(schedule->devices, schedule->chunks, &costs, NULL), PC_OK);
    for (int i = 0; i < schedule->devices * schedule->chunks; i++) {
        pc_time *times = costs.duration_ps + (ptrdiff_t)i * PC_PASS_KINDS;
        times[PC_PASS_F] = times[PC_PASS_B] = times[PC_PASS_W] = cell;
        times[PC_PASS_BW] = 2 * cell;
        times[PC_PASS_S] = s;
        times[PC_PASS_T] = t;
        costs.activation_bytes[i] = 1;
    }
    return costs;
}

static pc_replay replay_of(const pc_schedule *schedule, const pc_costs *costs, pc_engine_mode engine) {
    const pc_replay_options how = {.engine = engine};
    pc_replay replay;
    pc_error error = {0};
    if (pc_replay_run(schedule, costs, &how, &replay, &error)) fail_msg("%s", error.message);
    return replay;
}

/* Stage d of 1F1B holds p - d microbatches, for it goes back behind as many F. Every barrier puts that off by one. */
static void test_1f1b_holds_one_more_a_barrier(void **state) {
    (void)state;
    const char *const names[] = {"1f1b-vocab-2", "1f1b-vocab-1"};
    for (int barriers = 1; barriers <= 2; barriers++)
        for (int p = 1; p <= 12; p++)
            for (int m = 1; m <= 3 * p + 2; m += p) {
                pc_schedule schedule = make_schedule(names[barriers - 1], p, m);
                pc_costs costs = make_costs(&schedule, 10, 3, 4);
                pc_replay replay = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
                assert_int_equal((int)schedule.barriers, barriers);
                assert_int_equal((int)pc_schedule_find_barriers(&schedule), m > 0 ? barriers : 0);
                for (int d = 0; d < p; d++) assert_int_equal(replay.device_peak_bytes[d], pc_min(m, p - d + barriers));
                pc_replay_free(&replay);
                pc_costs_free(&costs);
                pc_schedule_free(&schedule);
            }
}

/* V-Half holds p + 2 chunks (p even) or p + 1 on the fullest stage; a barrier adds a microbatch, which is two. */
static void test_v_half_holds_one_more_a_barrier(void **state) {
    (void)state;
    const char *const names[] = {"v-half-vocab-2", "v-half-vocab-1"};
    for (int barriers = 1; barriers <= 2; barriers++)
        for (int p = 2; p <= 16; p++) {
            pc_schedule schedule = make_schedule(names[barriers - 1], p, 4 * p);
            pc_costs costs = make_costs(&schedule, 1, 0, 0);
            pc_replay replay = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
            assert_in_range(replay.peak_bytes, 1, p + (p % 2 == 0 ? 2 : 1) + 2 * barriers);
            pc_replay_free(&replay);
            pc_costs_free(&costs);
            pc_schedule_free(&schedule);
        }
}

/* In the middle no stage idles: another p microbatches take p(F + B + W + S + T), F, B and W of all chunks, also where
 * collectives take a part of an interval. */
static void test_nothing_idles_in_the_middle(void **state) {
    (void)state;
    const char *const names[] = {"1f1b-vocab-1", "1f1b-vocab-2", "v-half-vocab-1", "v-half-vocab-2"};
    const pc_time vocab[][2] = {{5, 5}, {10, 10}, {20, 25}, {4, 9}};
    for (size_t n = 0; n < 4; n++)
        for (int p = 2; p <= 10; p++)
            for (size_t k = 0; k < 4; k++) {
                pc_time makespan[2];
                for (int twice = 0; twice < 2; twice++) {
                    pc_schedule schedule = make_schedule(names[n], p, (twice ? 9 : 8) * p);
                    pc_costs costs = make_costs(&schedule, n < 2 ? 10 : 5, vocab[k][0], vocab[k][1]);
                    costs.vocab = (pc_vocab_costs){.broadcast_ps = 2, .exchange_ps = 2, .reduce_ps = 2};
                    pc_replay replay = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
                    makespan[twice] = replay.makespan_ps;
                    pc_replay_free(&replay);
                    pc_costs_free(&costs);
                    pc_schedule_free(&schedule);
                }
                assert_int_equal(makespan[1] - makespan[0], p * (30 + vocab[k][0] + vocab[k][1]));
            }
}

/* One stage, one microbatch, every pass behind the one before: F, S, then C1; with two barriers T, C2, BW; with one BW,
 * and T behind it, which C1 does not hold up again. */
static void test_one_stage(void **state) {
    (void)state;
    for (int barriers = 1; barriers <= 2; barriers++) {
        pc_schedule schedule = make_schedule(barriers == 1 ? "1f1b-vocab-2" : "1f1b-vocab-1", 1, 1);
        pc_costs costs = make_costs(&schedule, 10, 3, 4);
        costs.vocab = (pc_vocab_costs){.broadcast_ps = 100, .exchange_ps = 7, .reduce_ps = 5, .held_bytes = 6};
        for (pc_engine_mode engine = PC_ENGINE_AUTO; engine <= PC_ENGINE_EVENTS; engine++) {
            pc_replay replay = replay_of(&schedule, &costs, engine);
            assert_int_equal(replay.makespan_ps, 10 + 3 + 7 + 20 + 4 + (barriers == 2 ? 5 : 0));
            assert_int_equal(replay.peak_bytes, 1 + 6);
            pc_replay_free(&replay);
        }
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
}

/* The input of S comes by a broadcast: on p stages of one microbatch that is p F, the broadcast and S. */
static void test_broadcast(void **state) {
    (void)state;
    pc_schedule schedule = make_schedule("1f1b-vocab-1", 4, 1);
    pc_costs costs = make_costs(&schedule, 10, 3, 4);
    costs.vocab.broadcast_ps = 100;
    pc_replay replay = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
    assert_int_equal(replay.makespan_ps, 4 * 10 + 100 + 3 + 4 + 4 * 20);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* What is no order: S or T missing on a stage, or T before S. */
static void test_bad_orders(void **state) {
    (void)state;
    pc_error error = {0};
    pc_schedule schedule = make_schedule("1f1b-vocab-2", 2, 1); /* F S B T on stage 1 */
    int64_t at = schedule.offsets[1];
    assert_int_equal(schedule.passes[at + 1].kind, PC_PASS_S);
    pc_pass s = schedule.passes[at + 1];
    schedule.passes[at + 1] = schedule.passes[at + 3];
    schedule.passes[at + 3] = s;
    assert_int_equal(pc_schedule_check(&schedule, &error), PC_ERROR_INPUT);
    schedule.barriers = PC_BARRIERS_NONE;
    assert_int_equal(pc_schedule_check(&schedule, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "there is S; expected S and T once on every stage"));
    pc_schedule_free(&schedule);
}

/* ---- costs ---- */

static pc_cut whole_of(const pc_cut *cut) {
    pc_cut whole = *cut;
    whole.vocab_stages = whole.vocab_barriers = 0;
    return whole;
}

static int64_t flops_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind) {
    pc_operations operations;
    assert_int_equal(pc_pass_operations(model, cut, part, kind, false, &operations, NULL), PC_OK);
    return pc_operations_sum(&operations).flops;
}

/* Of a model whose vocabulary divides: S and T of all stages have the head's FLOPs, with one barrier as with two, and
 * the stages the parameters of both ends. */
static void test_slices_add_up(void **state) {
    (void)state;
    test_random random = {24};
    for (long i = 0; i < test_cases(200, 1000); i++) {
        pc_model model = random_gpt(&random);
        pc_cut cut = random_cut(&random, &model);
        int p = (int)test_between(&random, 2, 8);
        cut.cross_entropy = PC_CROSS_ENTROPY_FUSED;
        cut.recompute = PC_RECOMPUTE_NONE;
        cut.layout = PC_CUT_EVEN;
        cut.pp = cut.vocab_stages = p;
        cut.vocab_barriers = (int)test_between(&random, 1, 2);
        model.layers = p * test_between(&random, 1, 4);
        model.vocab_multiple = 2 * p;
        pc_cut whole = whole_of(&cut);
        int64_t flops = 0, parameters = 0, passes = 0, expected = 0;
        for (int part = 0; part < p; part++) {
            pc_part mine = pc_cut_part(&model, &cut, p, part), theirs = pc_cut_part(&model, &whole, p, part);
            assert_true(mine.has_vocab && !theirs.has_vocab);
            flops += flops_of(&model, &cut, &mine, PC_PASS_S) + flops_of(&model, &cut, &mine, PC_PASS_T);
            flops += flops_of(&model, &cut, &mine, PC_PASS_F) + flops_of(&model, &cut, &mine, PC_PASS_BW);
            passes += flops_of(&model, &whole, &theirs, PC_PASS_F) + flops_of(&model, &whole, &theirs, PC_PASS_BW);
            parameters += pc_part_parameters(&model, &cut, &mine, false);
            expected += pc_part_parameters(&model, &whole, &theirs, model.is_tied && part == p - 1);
        }
        assert_int_equal(flops, passes);
        assert_int_equal(parameters, expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_1f1b_holds_one_more_a_barrier),
        cmocka_unit_test(test_v_half_holds_one_more_a_barrier),
        cmocka_unit_test(test_nothing_idles_in_the_middle),
        cmocka_unit_test(test_one_stage),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_bad_orders),
        cmocka_unit_test(test_slices_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
