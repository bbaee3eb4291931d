/* A schedule run by the engine, event by event: the same as over longest paths, to the last bit, for every named
 * schedule; what the engine says of links, flows, memory and queues; and passes that wait for memory, against a
 * simulator of the test's own. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/random_schedule.h"
#include "tests/refusals.h"
#include "tests/same_replay.h"

static pc_replay replay_of(const pc_schedule *schedule, const pc_costs *costs, pc_engine_mode engine, bool waits) {
    const pc_replay_options options = {.with_trace = true, .engine = engine, .waits_for_memory = waits};
    pc_replay replay;
    pc_error error = {0};
    if (pc_replay_run(schedule, costs, &options, &replay, &error)) fail_msg("%s: %s", schedule->name, error.message);
    return replay;
}

/* ---- the two ways ---- */

/* What must hold of any run that was done, however it was done. */
typedef struct expectation {
    pc_engine_way way;
    bool out_of_memory;
} expectation;

static void expect(const pc_replay *replay, expectation x) {
    assert_int_equal(replay->way, x.way);
    assert_int_equal(replay->out_of_memory, x.out_of_memory);
    assert_int_equal(replay->engine.event_count > 0, x.way == PC_WAY_EVENTS);
    assert_int_equal(replay->engine.queue_count > 0, x.way == PC_WAY_EVENTS && !x.out_of_memory);
}

static bool is_too_small(const pc_schedule *s, const pc_costs *costs) {
    int64_t peaks[16];
    assert_int_equal(pc_schedule_peaks(s, costs, peaks, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++)
        if (costs->memory_capacity_bytes[d] > 0 && peaks[d] > costs->memory_capacity_bytes[d]) return true;
    return false;
}

/* Longest paths where they can be, and every event; and passes that might wait, and need not. Returns whether it fit.
 */
static bool judge(const pc_schedule *s, const pc_costs *costs) {
    bool is_full = is_too_small(s, costs), has_paths = costs->transfer.mode == PC_TRANSFER_DELAY && !is_full;
    pc_engine_way usual = has_paths ? PC_WAY_PATHS : PC_WAY_EVENTS;
    pc_replay paths = replay_of(s, costs, PC_ENGINE_AUTO, false);
    pc_replay events = replay_of(s, costs, PC_ENGINE_EVENTS, false);
    expect(&paths, (expectation){usual, is_full});
    expect(&events, (expectation){PC_WAY_EVENTS, is_full});
    check_same_replay(&paths, &events);
    if (!is_full) {
        pc_replay waits = replay_of(s, costs, PC_ENGINE_AUTO, true);
        pc_replay waits_by_events = replay_of(s, costs, PC_ENGINE_EVENTS, true);
        expect(&waits, (expectation){usual, false});
        expect(&waits_by_events, (expectation){PC_WAY_EVENTS, false});
        check_same_replay(&waits, &events);
        check_same_replay(&waits_by_events, &events);
        pc_replay_free(&waits);
        pc_replay_free(&waits_by_events);
    }
    pc_replay_free(&paths);
    pc_replay_free(&events);
    return !is_full;
}

/* One byte a picosecond, or a third of one, so that times are rounded. */
static void over_links(test_random *random, pc_costs *costs) {
    costs->transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                    .latency_ps = test_between(random, 0, 5),
                                    .bandwidth_bytes_per_s = test_between(random, 0, 1) ? 1e12 : 1e12 / 3,
                                    .size_bytes = test_between(random, 0, 30)};
}

/* A share of what the order needs: about as often enough as not. */
static void limit_memory(test_random *random, const pc_schedule *s, pc_costs *costs) {
    int64_t peaks[16];
    assert_int_equal(pc_schedule_peaks(s, costs, peaks, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++)
        costs->memory_capacity_bytes[d] =
            test_between(random, 0, s->devices) ? peaks[d] + 1 : test_between(random, peaks[d] / 2, peaks[d]);
}

static void draw_costs(test_random *random, const pc_schedule *shape, pc_costs *costs) {
    random_costs(random, shape, costs);
    random_hops_and_ready(random, costs);
}

/* All shapes that the generator makes of p devices, with few microbatches and more; searched for the costs that they
 * are replayed at, or for equal ones. */
static long judge_named(const pc_generator *generator, test_random *random, int devices, long *full) {
    long judged = 0;
    for (int k = 0; k < 3; k++) {
        int microbatches = k == 0 ? 1 : k == 1 ? devices : 2 * devices + 1;
        int64_t no_passes[16] = {0};
        pc_schedule shape = {.devices = devices, .chunks = generator->chunks_default, .offsets = no_passes}, s;
        pc_costs costs;
        draw_costs(random, &shape, &costs);
        if (generator->recomputes) costs.recomputes_in_b = false; /* R do it */
        pc_generate_request request = {.devices = devices,
                                       .microbatches = microbatches,
                                       .chunks = shape.chunks,
                                       .costs = &costs,
                                       .threads = 1,
                                       .plans_equal = test_between(random, 0, 1)};
        if (pc_generate(generator, &request, &s, NULL, NULL) == PC_OK) {
            judge(&s, &costs);
            limit_memory(random, &s, &costs);
            *full += !judge(&s, &costs);
            over_links(random, &costs);
            judge(&s, &costs);
            judged++;
            pc_schedule_free(&s);
        }
        pc_costs_free(&costs);
    }
    return judged;
}

static void test_named_schedules(void **state) {
    (void)state;
    test_random random = {91};
    int count, most = (int)test_part(8, 5);
    const pc_generator *generators = pc_generators(&count);
    long full = 0, judged = 0;
    for (int g = 0; g < count; g++) {
        long of_this = 0;
        for (int devices = 1; devices <= most; devices++)
            of_this += judge_named(&generators[g], &random, devices, &full);
        if (of_this < 2) fail_msg("%s: %ld shapes", generators[g].name, of_this);
        judged += of_this;
    }
    assert_true(full > judged / 20 && full < judged);
}

static void test_random_schedules(void **state) {
    (void)state;
    test_random random = {92};
    long full = 0, cases = test_cases(1000);
    for (long i = 0; i < cases; i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 8, 6, 3, &s);
        draw_costs(&random, &s, &costs);
        if (test_between(&random, 0, 1)) limit_memory(&random, &s, &costs);
        if (test_between(&random, 0, 2) == 0) over_links(&random, &costs);
        full += !judge(&s, &costs);
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
    assert_true(full > 0 && full < cases);
}

/* ---- what the engine saw ---- */

/* The loads of a link rise to its bandwidth and fall to nothing, each at its own instant, and carry what its flows say.
 */
static void check_link(const pc_engine_trace *x, int32_t link) {
    bool is_full = false;
    pc_time since = 0, carried = 0, filled = 0;
    for (int64_t i = 0; i < x->load_count; i++) {
        if (x->load_link[i] != link) continue;
        if (is_full) carried += x->load_time_ps[i] - since;
        is_full = !is_full;
        assert_true(x->load_bytes_per_s[i] == (is_full ? x->link_bytes_per_s[link] : 0.0));
        assert_true(is_full ? since == 0 || x->load_time_ps[i] > since : x->load_time_ps[i] > since);
        since = x->load_time_ps[i];
    }
    assert_false(is_full);
    for (int64_t i = 0; i < x->flow_count; i++)
        if (x->flow_out[i] == link) filled += x->flow_end_ps[i] - x->flow_start_ps[i];
    int64_t flows = 0;
    for (int64_t i = 0; i < x->flow_count; i++) flows += x->flow_out[i] == link;
    assert_true(flows > 0);
    assert_int_equal(x->link_sort[link], PC_LINK_STAGES);
    assert_true(x->link_shared[link] && !x->link_is_in[link] && x->link_replica[link] == 0);
    assert_true(carried <= filled);
}

static void check_flows(const pc_engine_trace *x, const pc_costs *costs, const pc_replay_trace *trace) {
    bool has_links = costs->transfer.mode == PC_TRANSFER_LINK;
    int64_t waited = 0, longer = 0;
    assert_int_equal(x->flow_count, trace->transfer_count);
    for (int64_t i = 0; i < x->flow_count; i++) {
        assert_true(i == 0 || x->flow_start_ps[i - 1] <= x->flow_start_ps[i]);
        assert_int_equal(x->flow_sort[i], PC_FLOW_MESSAGE);
        assert_int_equal(x->flow_end_ps[i] - x->flow_start_ps[i], x->flow_alone_ps[i]);
        assert_true(x->flow_start_ps[i] >= x->flow_ready_ps[i]);
        assert_int_equal(x->flow_in[i], -1);
        waited += x->flow_start_ps[i] - x->flow_ready_ps[i];
        if (!has_links) {
            assert_true(x->flow_out[i] == -1 && x->flow_bytes[i] == 0 && x->flow_start_ps[i] == x->flow_ready_ps[i]);
            continue;
        }
        assert_int_equal(x->link_device[x->flow_out[i]], x->flow_from[i]);
        assert_int_equal(x->link_peer[x->flow_out[i]], x->flow_to[i]);
        assert_true(x->flow_bytes[i] == (double)costs->transfer.size_bytes);
    }
    for (int64_t i = 0; i < trace->transfer_count; i++)
        longer += trace->transfer_end_ps[i] - trace->transfer_start_ps[i];
    for (int64_t i = 0; i < x->flow_count; i++) longer -= x->flow_alone_ps[i];
    assert_int_equal(waited, longer);
}

static void check_engine_trace(const pc_schedule *s, const pc_costs *costs, const pc_replay *replay) {
    const pc_engine_trace *x = &replay->engine;
    check_flows(x, costs, &replay->trace);
    for (int32_t link = 0; link < x->link_count; link++) check_link(x, link);
    for (int64_t i = 1; i < x->load_count; i++) assert_true(x->load_time_ps[i - 1] <= x->load_time_ps[i]);
    if (costs->transfer.mode == PC_TRANSFER_DELAY) assert_true(x->link_count == 0 && x->load_count == 0);
    assert_int_equal(x->queue_count, s->offsets[s->devices]);
    for (int64_t i = 0; i < x->queue_count; i++) {
        assert_true(x->queue_ready_ps[i] >= 0 && x->queue_ready_ps[i] <= replay->trace.pass_start_ps[i]);
        if (replay->trace.pass[i].kind == PC_PASS_F && costs->ready_ps)
            assert_true(x->queue_ready_ps[i] >=
                        pc_costs_ready(costs, replay->trace.pass_device[i], replay->trace.pass[i].chunk));
    }
    assert_int_equal(x->memory_count, replay->trace.level_count);
    assert_int_equal(x->devices, s->devices);
    for (int d = 0; d < s->devices; d++) assert_int_equal(x->memory_capacity_bytes[d], costs->memory_capacity_bytes[d]);
    assert_int_equal(x->work_count, 0);
}

static void test_engine_traces(void **state) {
    (void)state;
    test_random random = {93};
    for (long i = 0; i < test_cases(500); i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 6, 6, 3, &s);
        draw_costs(&random, &s, &costs);
        if (i % 2) over_links(&random, &costs);
        pc_replay replay = replay_of(&s, &costs, PC_ENGINE_EVENTS, false);
        check_engine_trace(&s, &costs, &replay);
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
}

static void two_stages(pc_schedule *schedule, pc_costs *costs) {
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 2, 2, 0, schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(2, 1, costs, NULL), PC_OK);
    for (int d = 0; d < 2; d++) {
        costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_F] = 1;
        costs->duration_ps[d * PC_PASS_KINDS + PC_PASS_BW] = 2;
        costs->activation_bytes[d] = 6;
    }
}

/* Two stages, 1F1B, two microbatches, F = 1, BW = 2, transfers of latency 1 that fill the link for 10: see
 * test_links.c. To stage 1: F0's leaves at 1 and fills the link from 2 to 12; F1's could leave at 2, and leaves at 11,
 * so that its bytes follow at 12: the link is full from 2 to 22. Back: BW0's leaves at 15 and fills from 16 to 26,
 * BW1's at 25, from 26 to 36. Stage 0's BW0 could run at 26, its BW1 at 36; stage 1's F1 at 22. */
static void test_links_by_hand(void **state) {
    (void)state;
    static const pc_time flow_ready[] = {1, 2, 15, 25}, flow_start[] = {1, 11, 15, 25}, flow_end[] = {12, 22, 26, 36};
    static const pc_time load_time[] = {2, 16, 22, 36}, queue_ready[] = {0, 0, 26, 36, 12, 13, 22, 23};
    static const int32_t load_link[] = {1, 0, 1, 0}, microbatch[] = {0, 1, 0, 1};
    static const double load[] = {1e12, 1e12, 0, 0};
    pc_schedule schedule;
    pc_costs costs;
    two_stages(&schedule, &costs);
    costs.transfer =
        (pc_transfer){.mode = PC_TRANSFER_LINK, .latency_ps = 1, .bandwidth_bytes_per_s = 1e12, .size_bytes = 10};
    costs.memory_capacity_bytes[0] = 12;
    pc_replay replay = replay_of(&schedule, &costs, PC_ENGINE_EVENTS, false);
    const pc_engine_trace *x = &replay.engine;
    assert_int_equal(x->link_count, 2);
    assert_int_equal(x->link_device[1], 0); /* in the order of those who wait: stage 0's come first */
    assert_int_equal(x->link_peer[1], 1);
    assert_int_equal(x->flow_count, 4);
    assert_memory_equal(x->flow_ready_ps, flow_ready, sizeof flow_ready);
    assert_memory_equal(x->flow_start_ps, flow_start, sizeof flow_start);
    assert_memory_equal(x->flow_end_ps, flow_end, sizeof flow_end);
    assert_memory_equal(x->flow_microbatch, microbatch, sizeof microbatch);
    assert_int_equal(x->load_count, 4);
    assert_memory_equal(x->load_time_ps, load_time, sizeof load_time);
    assert_memory_equal(x->load_link, load_link, sizeof load_link);
    assert_memory_equal(x->load_bytes_per_s, load, sizeof load);
    assert_memory_equal(x->queue_ready_ps, queue_ready, sizeof queue_ready);
    assert_int_equal(x->memory_capacity_bytes[0], 12);
    assert_int_equal(x->memory_capacity_bytes[1], 0);
    assert_int_equal(x->event_count, 2 * (8 + 4)); /* a start and an end of every pass and every transfer */
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

static void test_allocations_refused(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    two_stages(&schedule, &costs);
    costs.memory_capacity_bytes[0] = 6;
    for (int k = 0; k < 2; k++) {
        const pc_replay_options options = {.with_trace = true, .engine = PC_ENGINE_EVENTS, .waits_for_memory = true};
        pc_replay replay = {0};
        if (k)
            costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK, .bandwidth_bytes_per_s = 1e12, .size_bytes = 10};
        for (refusals x = {.most = 300}; next_refusal(&x);)
            x.code = pc_replay_run(&schedule, &costs, &options, &replay, NULL);
        assert_false(replay.out_of_memory);
        pc_replay_free(&replay);
    }
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* ---- passes that wait, by a simulator of their own ---- */

enum { PASSES_MAX = 4096, STAGES_MAX = 16, NONE = -1 };

/* From instant to instant. Every stage does what it can: of those that it put aside the first that is ready and fits,
 * else the next of its order if that is ready. It puts aside what does not fit, and what is not ready because it waits,
 * over whatever others, for a pass that did not fit. */
typedef struct pocket {
    const pc_schedule *schedule;
    const pc_costs *costs;
    pc_pass_index index;
    pc_time start[PASSES_MAX], end[PASSES_MAX]; /* -1: not yet */
    bool is_aside[PASSES_MAX], is_given[PASSES_MAX];
    pc_time asked[PASSES_MAX]; /* since when there is no room for it; -1: it did not ask */
    int64_t next[STAGES_MAX], level[STAGES_MAX], peak[STAGES_MAX];
    pc_time free_at[STAGES_MAX];
} pocket;

static pc_time ready_at(const pocket *x, int d, int64_t i) {
    pc_predecessor before[PC_PREDECESSORS_MAX];
    pc_pass pass = x->schedule->passes[i];
    pc_time ready = pass.kind == PC_PASS_F ? pc_costs_ready(x->costs, d, pass.chunk) : 0;
    int count = pc_pass_predecessors(&x->index, d, pass, before);
    for (int k = 0; k < count; k++) {
        if (x->start[before[k].position] < 0) return PC_TIME_MAX;
        pc_time delay = before[k].stage == d ? 0 : pc_costs_delay(x->costs, before[k].stage, d);
        pc_time arrival = x->end[before[k].position] + delay;
        if (arrival > ready) ready = arrival;
    }
    return ready;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as passes wait for each other, a few hundred here */
static bool is_held_up(const pocket *x, int d, int64_t i) {
    pc_predecessor before[PC_PREDECESSORS_MAX];
    int count = pc_pass_predecessors(&x->index, d, x->schedule->passes[i], before);
    for (int k = 0; k < count; k++) {
        int32_t other = before[k].position;
        if (x->start[other] >= 0) continue;
        if (x->asked[other] >= 0 || is_held_up(x, before[k].stage, other)) return true;
    }
    return false;
}

static int64_t taken(const pocket *x, int d, int64_t i) {
    pc_pass pass = x->schedule->passes[i];
    return pc_costs_taken(x->costs, d, pass, pc_pass_is_recomputed(&x->index, d, pass));
}

/* Starts it if there is room; else notes that it asked. */
static bool ask(pocket *x, int d, int64_t i, pc_time now) {
    int64_t capacity = x->costs->memory_capacity_bytes[d], bytes = taken(x, d, i);
    pc_pass pass = x->schedule->passes[i];
    x->is_aside[i] = capacity > 0 && bytes > 0 && x->level[d] + bytes > capacity;
    if (x->is_aside[i]) {
        if (x->asked[i] < 0) x->asked[i] = now;
        return false;
    }
    x->asked[i] = -1;
    x->start[i] = now;
    x->end[i] = x->free_at[d] = now + pc_costs_duration(x->costs, d, pass.chunk, pass.kind);
    x->level[d] += bytes;
    if (x->level[d] > x->peak[d]) x->peak[d] = x->level[d];
    return true;
}

static void give_back(pocket *x, int d, pc_time now) {
    for (int64_t i = x->schedule->offsets[d]; i < x->schedule->offsets[d + 1]; i++) {
        if (x->is_given[i] || x->start[i] < 0 || x->end[i] > now) continue;
        x->is_given[i] = true;
        x->level[d] -= pc_costs_given(x->costs, d, x->schedule->passes[i]);
    }
}

static void try_those_aside(pocket *x, int d, pc_time now) {
    if (x->free_at[d] > now) return;
    give_back(x, d, now);
    for (int64_t i = x->schedule->offsets[d]; i < x->schedule->offsets[d + 1]; i++)
        if (x->is_aside[i] && ready_at(x, d, i) <= now && ask(x, d, i, now)) return;
}

/* Whether anything changed. */
static bool take_turn(pocket *x, int d, pc_time now) {
    int64_t i = x->next[d];
    if (x->free_at[d] > now || i == x->schedule->offsets[d + 1]) return false;
    bool is_ready = ready_at(x, d, i) <= now;
    if (!is_ready && !is_held_up(x, d, i)) return false;
    x->next[d]++;
    if (is_ready)
        ask(x, d, i, now);
    else
        x->is_aside[i] = true;
    return true;
}

static pc_time sooner_after(pc_time now, pc_time next, pc_time time) {
    return time > now && time < next ? time : next;
}

/* The next instant at which a stage is free, or a pass ready that is next or aside; PC_TIME_MAX: none. */
static pc_time next_instant(const pocket *x, pc_time now) {
    pc_time next = PC_TIME_MAX;
    for (int d = 0; d < x->schedule->devices; d++) {
        next = sooner_after(now, next, x->free_at[d]);
        for (int64_t i = x->schedule->offsets[d]; i < x->schedule->offsets[d + 1]; i++)
            if (x->is_aside[i] || i == x->next[d]) next = sooner_after(now, next, ready_at(x, d, i));
    }
    return next;
}

static void simulate(const pc_schedule *s, const pc_costs *costs, pocket *x) {
    memset(x, 0, sizeof *x);
    x->schedule = s;
    x->costs = costs;
    assert_true(s->offsets[s->devices] <= PASSES_MAX && s->devices <= STAGES_MAX);
    assert_int_equal(pc_pass_index_create(s, &x->index, NULL), PC_OK);
    for (int64_t i = 0; i < s->offsets[s->devices]; i++) x->start[i] = x->end[i] = x->asked[i] = -1;
    for (int d = 0; d < s->devices; d++) x->next[d] = s->offsets[d];
    for (pc_time now = 0; now < PC_TIME_MAX; now = next_instant(x, now)) {
        for (int d = 0; d < s->devices; d++) try_those_aside(x, d, now);
        for (bool has_changed = true; has_changed;) {
            has_changed = false;
            for (int d = 0; d < s->devices; d++) has_changed |= take_turn(x, d, now);
        }
    }
    pc_pass_index_free(&x->index);
}

/* Of those that wait for memory to the end, the one that asked first; NONE: all have run. */
static int64_t first_aside(const pocket *x) {
    int64_t first = NONE;
    for (int64_t i = 0; i < x->schedule->offsets[x->schedule->devices]; i++)
        if (x->asked[i] >= 0 && (first == NONE || x->asked[i] < x->asked[first])) first = i;
    return first;
}

static void compare_times(const pocket *x, const pc_replay *replay) {
    for (int64_t i = 0; i < replay->trace.pass_count; i++)
        if (replay->trace.pass_start_ps[i] != x->start[i] || replay->trace.pass_end_ps[i] != x->end[i])
            fail_msg("%s: pass %d: %lld to %lld; expected %lld to %lld", x->schedule->name, (int)i,
                     (long long)replay->trace.pass_start_ps[i], (long long)replay->trace.pass_end_ps[i],
                     (long long)x->start[i], (long long)x->end[i]);
    for (int d = 0; d < x->schedule->devices; d++) assert_int_equal(replay->device_peak_bytes[d], x->peak[d]);
}

/* No level is ever beyond the capacity, and the totals are those of the times. */
static void check_within(const pc_costs *costs, const pc_replay *replay) {
    pc_time first[STAGES_MAX], last[STAGES_MAX] = {0}, makespan = 0;
    const pc_replay_trace *trace = &replay->trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        int64_t capacity = costs->memory_capacity_bytes[trace->level_device[i]];
        assert_true(trace->level_bytes[i] >= 0 && (capacity == 0 || trace->level_bytes[i] <= capacity));
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
static void check_standstill(const pocket *x, const pc_replay *replay) {
    int64_t first = first_aside(x);
    pc_time last = x->asked[first];
    for (int64_t i = 0; i < x->schedule->offsets[x->schedule->devices]; i++) last = x->end[i] > last ? x->end[i] : last;
    const pc_out_of_memory *oom = &replay->oom;
    pc_pass pass = x->schedule->passes[first];
    int d = pc_stage_of_position(x->schedule, first);
    assert_int_equal(oom->device, d);
    assert_memory_equal(&oom->pass, &pass, sizeof pass);
    assert_int_equal(oom->requested_bytes, taken(x, d, first));
    assert_int_equal(oom->level_bytes, x->level[d]);
    assert_int_equal(oom->capacity_bytes, x->costs->memory_capacity_bytes[d]);
    assert_true(oom->level_bytes + oom->requested_bytes > oom->capacity_bytes);
    assert_int_equal(oom->time_ps, last);
}

/* Returns whether it got through. */
static bool judge_waiting(const pc_schedule *s, const pc_costs *costs) {
    static pocket x;
    simulate(s, costs, &x);
    pc_replay replay = replay_of(s, costs, PC_ENGINE_AUTO, true),
              by_events = replay_of(s, costs, PC_ENGINE_EVENTS, true);
    bool is_done = first_aside(&x) == NONE;
    assert_int_equal(replay.out_of_memory, !is_done);
    assert_int_equal(pc_pass_index_create(s, &x.index, NULL), PC_OK);
    check_same_replay(&replay, &by_events);
    if (is_done) {
        compare_times(&x, &replay);
        check_within(costs, &replay);
        check_engine_trace(s, costs, &by_events);
    } else {
        check_standstill(&x, &replay);
    }
    pc_pass_index_free(&x.index);
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
    long done = 0, too_small = 0, cases = test_cases(2000);
    for (long i = 0; i < cases; i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 6, 8, 3, &s);
        draw_costs(&random, &s, &costs);
        take_time(&costs);
        limit_memory(&random, &s, &costs);
        bool is_full = is_too_small(&s, &costs), got_through = judge_waiting(&s, &costs);
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

static void equal_costs(const pc_schedule *s, pc_costs *costs, int64_t capacity) {
    assert_int_equal(pc_costs_create(s->devices, s->chunks, costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)s->devices * s->chunks; i++) {
        costs->duration_ps[i * PC_PASS_KINDS + PC_PASS_F] = 10;
        costs->duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = 20;
        costs->activation_bytes[i] = 1;
    }
    for (int d = 0; d < s->devices; d++) costs->memory_capacity_bytes[d] = capacity ? capacity : s->devices - d;
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
        equal_costs(&gpipe, &costs, 0);
        pc_replay fails = replay_of(&gpipe, &costs, PC_ENGINE_AUTO, false);
        pc_replay waits = replay_of(&gpipe, &costs, PC_ENGINE_AUTO, true);
        pc_replay of_1f1b = replay_of(&one, &costs, PC_ENGINE_AUTO, false);
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
    equal_costs(&s, &costs, 1);
    pc_replay replay = replay_of(&s, &costs, PC_ENGINE_EVENTS, true);
    assert_int_equal(replay.makespan_ps, 6 * 4 * 30);
    assert_int_equal(replay.peak_bytes, 1);
    pc_replay_free(&replay);
    for (int i = 0; i < 4; i++) costs.activation_bytes[i] = 2;
    replay = replay_of(&s, &costs, PC_ENGINE_AUTO, true);
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
    for (long i = 0; i < test_cases(500); i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 6, 8, 3, &s);
        draw_costs(&random, &s, &costs);
        limit_memory(&random, &s, &costs);
        over_links(&random, &costs);
        pc_replay replay = replay_of(&s, &costs, PC_ENGINE_AUTO, true);
        if (!replay.out_of_memory) {
            check_within(&costs, &replay);
            check_engine_trace(&s, &costs, &replay);
            done += is_too_small(&s, &costs);
        }
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
    assert_true(done > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_schedules),
        cmocka_unit_test(test_random_schedules),
        cmocka_unit_test(test_engine_traces),
        cmocka_unit_test(test_links_by_hand),
        cmocka_unit_test(test_allocations_refused),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_gpipe_in_the_memory_of_1f1b),
        cmocka_unit_test(test_one_microbatch_and_less),
        cmocka_unit_test(test_waiting_over_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
