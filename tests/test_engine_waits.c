/* Passes that wait for memory, in a schedule run by the engine: against a simulator of the test's own, and by algebra.
 */
#include "tests/support.h"

#include "models/schedule/dependencies.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/engine_check.h"
#include "tests/random_schedule.h"
#include "tests/same_replay.h"

/* ---- passes that wait, by a simulator of their own ---- */

enum { PASSES_MAX = 4096, STAGES_MAX = 16, NONE = -1 };

/* From instant to instant. Every stage does what it can: of those that it put aside the first that is ready and fits,
 * else the next of its order if that is ready. It puts aside what does not fit, and what is not ready because it waits,
 * over whatever others, for a pass that did not fit. */
typedef struct pocket {
    const pc_schedule *schedule;
    const pc_costs *costs;
    const test_limits *limits;
    pc_pass_index index;
    pc_time start[PASSES_MAX], end[PASSES_MAX]; /* -1: not yet */
    bool is_aside[PASSES_MAX], is_given[PASSES_MAX];
    pc_time asked[PASSES_MAX]; /* since when there is no room for it; -1: it did not ask */
    int64_t next[STAGES_MAX], level[STAGES_MAX], peak[STAGES_MAX];
    pc_time free_at[STAGES_MAX];
} pocket;

static pc_time ready_at(const pocket *simulated, int d, int64_t i) {
    pc_predecessor before[PC_PREDECESSORS_MAX];
    pc_pass pass = simulated->schedule->passes[i];
    pc_time ready = pass.kind == PC_PASS_F ? pc_costs_ready(simulated->costs, d, pass.chunk) : 0;
    int count = pc_pass_predecessors(&simulated->index, d, pass, before);
    for (int k = 0; k < count; k++) {
        if (simulated->start[before[k].position] < 0) return PC_TIME_MAX;
        pc_time delay = before[k].stage == d ? 0 : pc_costs_delay(simulated->costs, before[k].stage, d);
        pc_time arrival = simulated->end[before[k].position] + delay;
        if (arrival > ready) ready = arrival;
    }
    return ready;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as passes wait for each other, a few hundred here */
static bool is_held_up(const pocket *simulated, int d, int64_t i) {
    pc_predecessor before[PC_PREDECESSORS_MAX];
    int count = pc_pass_predecessors(&simulated->index, d, simulated->schedule->passes[i], before);
    for (int k = 0; k < count; k++) {
        int32_t other = before[k].position;
        if (simulated->start[other] >= 0) continue;
        if (simulated->asked[other] >= 0 || is_held_up(simulated, before[k].stage, other)) return true;
    }
    return false;
}

static int64_t taken(const pocket *simulated, int d, int64_t i) {
    pc_pass pass = simulated->schedule->passes[i];
    return pc_costs_taken(simulated->costs, d, pass, pc_pass_is_recomputed(&simulated->index, d, pass));
}

/* Starts it if there is room; else notes that it asked. */
static bool ask(pocket *simulated, int d, int64_t i, pc_time now) {
    int64_t limit = simulated->limits->bytes[d], bytes = taken(simulated, d, i);
    pc_pass pass = simulated->schedule->passes[i];
    simulated->is_aside[i] = bytes > 0 && simulated->level[d] + bytes > limit;
    if (simulated->is_aside[i]) {
        if (simulated->asked[i] < 0) simulated->asked[i] = now;
        return false;
    }
    simulated->asked[i] = -1;
    simulated->start[i] = now;
    simulated->end[i] = simulated->free_at[d] = now + pc_costs_duration(simulated->costs, d, pass.chunk, pass.kind);
    simulated->level[d] += bytes;
    if (simulated->level[d] > simulated->peak[d]) simulated->peak[d] = simulated->level[d];
    return true;
}

static void give_back(pocket *simulated, int d, pc_time now) {
    for (int64_t i = simulated->schedule->offsets[d]; i < simulated->schedule->offsets[d + 1]; i++) {
        if (simulated->is_given[i] || simulated->start[i] < 0 || simulated->end[i] > now) continue;
        simulated->is_given[i] = true;
        simulated->level[d] -= pc_costs_given(simulated->costs, d, simulated->schedule->passes[i]);
    }
}

static void try_those_aside(pocket *simulated, int d, pc_time now) {
    if (simulated->free_at[d] > now) return;
    give_back(simulated, d, now);
    for (int64_t i = simulated->schedule->offsets[d]; i < simulated->schedule->offsets[d + 1]; i++)
        if (simulated->is_aside[i] && ready_at(simulated, d, i) <= now && ask(simulated, d, i, now)) return;
}

/* Whether anything changed. */
static bool take_turn(pocket *simulated, int d, pc_time now) {
    int64_t i = simulated->next[d];
    if (simulated->free_at[d] > now || i == simulated->schedule->offsets[d + 1]) return false;
    bool is_ready = ready_at(simulated, d, i) <= now;
    if (!is_ready && !is_held_up(simulated, d, i)) return false;
    simulated->next[d]++;
    if (is_ready)
        ask(simulated, d, i, now);
    else
        simulated->is_aside[i] = true;
    return true;
}

static pc_time sooner_after(pc_time now, pc_time next, pc_time time) {
    return time > now && time < next ? time : next;
}

/* The next instant at which a stage is free, or a pass ready that is next or aside; PC_TIME_MAX: none. */
static pc_time next_instant(const pocket *simulated, pc_time now) {
    pc_time next = PC_TIME_MAX;
    for (int d = 0; d < simulated->schedule->devices; d++) {
        next = sooner_after(now, next, simulated->free_at[d]);
        for (int64_t i = simulated->schedule->offsets[d]; i < simulated->schedule->offsets[d + 1]; i++)
            if (simulated->is_aside[i] || i == simulated->next[d])
                next = sooner_after(now, next, ready_at(simulated, d, i));
    }
    return next;
}

static void simulate(const pc_schedule *s, const pc_costs *costs, const test_limits *limits, pocket *simulated) {
    memset(simulated, 0, sizeof *simulated);
    simulated->schedule = s;
    simulated->costs = costs;
    simulated->limits = limits;
    assert_true(s->offsets[s->devices] <= PASSES_MAX && s->devices <= STAGES_MAX);
    assert_int_equal(pc_pass_index_create(s, &simulated->index, NULL), PC_OK);
    for (int64_t i = 0; i < s->offsets[s->devices]; i++)
        simulated->start[i] = simulated->end[i] = simulated->asked[i] = -1;
    for (int d = 0; d < s->devices; d++) simulated->next[d] = s->offsets[d];
    for (pc_time now = 0; now < PC_TIME_MAX; now = next_instant(simulated, now)) {
        for (int d = 0; d < s->devices; d++) try_those_aside(simulated, d, now);
        for (bool has_changed = true; has_changed;) {
            has_changed = false;
            for (int d = 0; d < s->devices; d++) has_changed |= take_turn(simulated, d, now);
        }
    }
    pc_pass_index_free(&simulated->index);
}

/* Of those that wait for memory to the end, the one that asked first; NONE: all have run. */
static int64_t first_aside(const pocket *simulated) {
    int64_t first = NONE;
    for (int64_t i = 0; i < simulated->schedule->offsets[simulated->schedule->devices]; i++)
        if (simulated->asked[i] >= 0 && (first == NONE || simulated->asked[i] < simulated->asked[first])) first = i;
    return first;
}

static void compare_times(const pocket *simulated, const pc_replay *replay) {
    for (int64_t i = 0; i < replay->trace.pass_count; i++)
        if (replay->trace.pass_start_ps[i] != simulated->start[i] || replay->trace.pass_end_ps[i] != simulated->end[i])
            fail_msg("%s: pass %d: %lld to %lld; expected %lld to %lld", simulated->schedule->name, (int)i,
                     (long long)replay->trace.pass_start_ps[i], (long long)replay->trace.pass_end_ps[i],
                     (long long)simulated->start[i], (long long)simulated->end[i]);
    for (int d = 0; d < simulated->schedule->devices; d++)
        assert_int_equal(replay->device_peak_bytes[d], simulated->peak[d]);
}

/* No level is ever beyond the limit, and the totals are those of the times. */
static void check_within(const test_limits *limits, const pc_replay *replay) {
    pc_time first[STAGES_MAX], last[STAGES_MAX] = {0}, makespan = 0;
    const pc_replay_trace *trace = &replay->trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        int64_t limit = limits->bytes[trace->level_device[i]];
        assert_true(trace->level_bytes[i] >= 0 && trace->level_bytes[i] <= limit);
        bool is_same = i > 0 && trace->level_device[i - 1] == trace->level_device[i];
        assert_true(!is_same || trace->level_time_ps[i - 1] <= trace->level_time_ps[i]);
    }
    for (int d = 0; d < replay->devices; d++) first[d] = PC_TIME_MAX;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        int d = trace->pass_device[i];
        if (trace->pass_start_ps[i] < first[d]) first[d] = trace->pass_start_ps[i];
        if (trace->pass_end_ps[i] > last[d]) last[d] = trace->pass_end_ps[i];
    }
    for (int d = 0; d < replay->devices; d++) {
        assert_int_equal(replay->device_start_ps[d], first[d]);
        assert_int_equal(replay->device_end_ps[d], last[d]);
        makespan = last[d] > makespan ? last[d] : makespan;
    }
    assert_int_equal(replay->makespan_ps, makespan);
}

/* The run stood still when the last pass had ended, or when this one asked. */
static void check_standstill(const pocket *simulated, const pc_replay *replay) {
    int64_t first = first_aside(simulated);
    pc_time last = simulated->asked[first];
    for (int64_t i = 0; i < simulated->schedule->offsets[simulated->schedule->devices]; i++)
        last = simulated->end[i] > last ? simulated->end[i] : last;
    const pc_out_of_memory *oom = &replay->oom;
    pc_pass pass = simulated->schedule->passes[first];
    int d = pc_stage_of_position(simulated->schedule, first);
    assert_int_equal(oom->device, d);
    assert_memory_equal(&oom->pass, &pass, sizeof pass);
    assert_int_equal(oom->requested_bytes, taken(simulated, d, first));
    assert_int_equal(oom->level_bytes, simulated->level[d]);
    assert_int_equal(oom->capacity_bytes, simulated->limits->bytes[d]);
    assert_true(oom->level_bytes + oom->requested_bytes > oom->capacity_bytes);
    assert_int_equal(oom->time_ps, last);
}

/* Returns whether it got through. */
static bool judge_waiting(const pc_schedule *s, const pc_costs *costs, const test_limits *limits) {
    static pocket simulated;
    simulate(s, costs, limits, &simulated);
    pc_replay replay = replay_of(s, costs, limits, PC_ENGINE_AUTO, true),
              by_events = replay_of(s, costs, limits, PC_ENGINE_EVENTS, true);
    bool is_done = first_aside(&simulated) == NONE;
    assert_int_equal(replay.out_of_memory, !is_done);
    assert_int_equal(pc_pass_index_create(s, &simulated.index, NULL), PC_OK);
    check_same_replay(&replay, &by_events);
    if (is_done) {
        compare_times(&simulated, &replay);
        check_within(limits, &replay);
        check_engine_trace(s, costs, limits, &by_events);
    } else {
        check_standstill(&simulated, &replay);
    }
    pc_pass_index_free(&simulated.index);
    pc_replay_free(&replay);
    pc_replay_free(&by_events);
    return is_done;
}

/* Of two passes that take no time, what is done at one instant would depend on who is asked first. */
static void take_time(pc_costs *costs) {
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks * PC_PASS_KINDS; i++) costs->duration_ps[i]++;
}

static void test_waiting(void **state) {
    (void)state;
    test_random random = {94};
    long done = 0, too_small = 0, cases = test_cases(500, 10000);
    for (long i = 0; i < cases; i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 6, 8, 3, &s);
        draw_costs(&random, &s, &costs);
        take_time(&costs);
        test_limits limits;
        limit_memory(&random, &s, &costs, &limits);
        bool is_full = is_too_small(&s, &costs, &limits), got_through = judge_waiting(&s, &costs, &limits);
        assert_true(got_through || is_full);
        too_small += is_full;
        done += is_full && got_through;
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
    print_message("%ld too large, of which %ld got through\n", too_small, done);
    assert_true(done > too_small / 10 && done < too_small);
}

/* ---- waiting, by algebra ---- */

static void equal_costs(const pc_schedule *s, pc_costs *costs) {
    assert_int_equal(pc_costs_create(s->devices, s->chunks, costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)s->devices * s->chunks; i++) {
        costs->duration_ps[i * PC_PASS_KINDS + PC_PASS_F] = 10;
        costs->duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = 20;
        costs->activation_bytes[i] = 1;
    }
}

/* GPipe with the memory of 1F1B, which is p - d microbatches on device d: out of memory where passes fail. Where they
 * wait, the last device, which has room for one, takes F0, cannot take F1, and so runs BW0, and so on: one forward and
 * one backward pass in turn, as 1F1B does. The others are told by it: the iteration is 1F1B's, (m + p - 1) (F + BW). */
static void test_gpipe_in_the_memory_of_1f1b(void **state) {
    (void)state;
    for (int p = 2; p <= 8; p++) {
        int m = 3 * p;
        pc_schedule gpipe, one;
        pc_costs costs;
        assert_int_equal(pc_schedule_generate(pc_generator_find("gpipe"), p, m, 0, &gpipe, NULL), PC_OK);
        assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), p, m, 0, &one, NULL), PC_OK);
        test_limits limits;
        equal_costs(&gpipe, &costs);
        for (int d = 0; d < p; d++) limits.bytes[d] = p - d;
        pc_replay fails = replay_of(&gpipe, &costs, &limits, PC_ENGINE_AUTO, false);
        pc_replay waits = replay_of(&gpipe, &costs, &limits, PC_ENGINE_AUTO, true);
        pc_replay of_1f1b = replay_of(&one, &costs, &limits, PC_ENGINE_AUTO, false);
        assert_true(fails.out_of_memory);
        assert_false(waits.out_of_memory || of_1f1b.out_of_memory);
        assert_int_equal(of_1f1b.way, PC_WAY_PATHS);
        assert_int_equal(waits.way, PC_WAY_EVENTS);
        for (int d = 0; d < p; d++) assert_int_equal(waits.device_peak_bytes[d], p - d);
        assert_int_equal(waits.makespan_ps, (m + p - 1) * 30);
        assert_int_equal(of_1f1b.makespan_ps, (m + p - 1) * 30);
        pc_replay_free(&fails);
        pc_replay_free(&waits);
        pc_replay_free(&of_1f1b);
        pc_costs_free(&costs);
        pc_schedule_free(&gpipe);
        pc_schedule_free(&one);
    }
}

/* Room for one microbatch a device: each goes through alone, m p (F + BW) of them; for less than one, the first pass
 * waits for ever, and that is known at once. */
static void test_one_microbatch_and_less(void **state) {
    (void)state;
    pc_schedule s;
    pc_costs costs;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 4, 6, 0, &s, NULL), PC_OK);
    equal_costs(&s, &costs);
    const test_limits limits = test_limit_all(1);
    pc_replay replay = replay_of(&s, &costs, &limits, PC_ENGINE_EVENTS, true);
    assert_int_equal(replay.makespan_ps, 6 * 4 * 30);
    assert_int_equal(replay.peak_bytes, 1);
    pc_replay_free(&replay);
    for (int i = 0; i < 4; i++) costs.activation_bytes[i] = 2;
    replay = replay_of(&s, &costs, &limits, PC_ENGINE_AUTO, true);
    assert_true(replay.out_of_memory);
    assert_int_equal(replay.oom.device, 0);
    assert_int_equal(replay.oom.pass.microbatch, 0);
    assert_int_equal(replay.oom.time_ps, 0);
    assert_int_equal(replay.oom.level_bytes, 0);
    assert_int_equal(replay.oom.requested_bytes, 2);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&s);
}

/* Over links what is sent leaves in the order in which it is made: a pass that waits holds up none of the others. */
static void test_waiting_over_links(void **state) {
    (void)state;
    test_random random = {95};
    long done = 0;
    for (long i = 0; i < test_cases(125, 10000); i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 6, 8, 3, &s);
        draw_costs(&random, &s, &costs);
        test_limits limits;
        limit_memory(&random, &s, &costs, &limits);
        over_links(&random, &costs);
        pc_replay replay = replay_of(&s, &costs, &limits, PC_ENGINE_AUTO, true);
        if (!replay.out_of_memory) {
            check_within(&limits, &replay);
            check_engine_trace(&s, &costs, &limits, &replay);
            done += is_too_small(&s, &costs, &limits);
        }
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
    assert_true(done > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_gpipe_in_the_memory_of_1f1b),
        cmocka_unit_test(test_one_microbatch_and_less),
        cmocka_unit_test(test_waiting_over_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
