/* The replay against an independent longest path, a plain recount of memory, and published numbers. */
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/longest_path.h"
#include "tests/memory_limits.h"
#include "tests/random_schedule.h"

#include <math.h>

/* ---- random schedules ---- */

static bool has_recompute(const pc_schedule *s, int stage, pc_pass of) {
    bool found = false;
    for (int64_t i = s->offsets[stage]; i < s->offsets[stage + 1]; i++)
        found |= s->passes[i].kind == PC_PASS_R && s->passes[i].chunk == of.chunk &&
                 s->passes[i].microbatch == of.microbatch;
    return found;
}

static int64_t recount_peak(const pc_schedule *s, const pc_costs *costs, int stage) {
    int64_t level = 0, peak = 0;
    for (int64_t i = s->offsets[stage]; i < s->offsets[stage + 1]; i++) {
        int64_t cell = (int64_t)stage * s->chunks + s->passes[i].chunk;
        int64_t whole = costs->activation_bytes[cell], by_b = costs->activation_b_bytes[cell];
        bool in_b = costs->recomputes_in_b, is_kept = in_b || has_recompute(s, stage, s->passes[i]);
        int64_t kept = is_kept ? costs->activation_kept_bytes[cell] : whole;
        if (s->passes[i].kind == PC_PASS_F) level += kept;
        if (s->passes[i].kind == PC_PASS_R || (s->passes[i].kind == PC_PASS_B && in_b)) level += whole - kept;
        if (level > peak) peak = level;
        if (s->passes[i].kind == PC_PASS_B) level -= by_b;
        if (s->passes[i].kind == PC_PASS_W) level -= whole - by_b;
        if (s->passes[i].kind == PC_PASS_BW) level -= in_b ? kept : whole;
    }
    assert_int_equal(level, 0);
    return peak;
}

/* The busiest stage's passes, recomputation aside. */
static pc_time recount_work(const pc_schedule *s, const pc_costs *costs) {
    pc_time most = 0;
    for (int d = 0; d < s->devices; d++) {
        pc_time work = 0;
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
            int64_t cell = (int64_t)d * s->chunks + s->passes[i].chunk;
            if (s->passes[i].kind != PC_PASS_R) work += costs->duration_ps[cell * PC_PASS_KINDS + s->passes[i].kind];
        }
        if (work > most) most = work;
    }
    return most;
}

static void check_rate(double rate, pc_time work, pc_time whole) {
    double expected = whole > 0 ? 1.0 - (double)work / (double)whole : 0.0;
    assert_true(fabs(rate - expected) < 1e-12);
}

static void check_peaks(const pc_schedule *s, const pc_costs *costs, const pc_replay *replay) {
    int64_t peaks[16], most = 0;
    assert_int_equal(pc_schedule_peaks(s, costs, peaks, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++) {
        assert_int_equal(peaks[d], recount_peak(s, costs, d));
        assert_int_equal(replay->device_peak_bytes[d], peaks[d]);
        if (peaks[d] > most) most = peaks[d];
    }
    assert_int_equal(replay->peak_bytes, most);
}

static void compare(const pc_schedule *s, const pc_costs *costs, const pc_replay *replay) {
    int64_t passes = s->offsets[s->devices];
    pc_time *start = calloc((size_t)passes, sizeof *start), *end = calloc((size_t)passes, sizeof *end);
    pc_time span = 0, makespan = 0;
    assert_true(longest_path(s, costs, start, end));
    assert_int_equal(replay->trace.pass_count, passes);
    for (int64_t i = 0; i < passes; i++) {
        assert_int_equal(replay->trace.pass_start_ps[i], start[i]);
        assert_int_equal(replay->trace.pass_end_ps[i], end[i]);
    }
    for (int d = 0; d < s->devices; d++) {
        pc_time last = end[s->offsets[d + 1] - 1], whole = last - start[s->offsets[d]];
        if (whole > span) span = whole;
        if (last > makespan) makespan = last;
    }
    check_peaks(s, costs, replay);
    check_rate(replay->bubble_rate_span, recount_work(s, costs), span);
    check_rate(replay->bubble_rate_makespan, recount_work(s, costs), makespan);
    assert_int_equal(replay->span_ps, span);
    assert_int_equal(replay->makespan_ps, makespan);
    free(start);
    free(end);
}

/* Level rows: ascending times in each device, the last one zero, the highest the peak. */
static void check_levels(const pc_replay *replay) {
    const pc_replay_trace *trace = &replay->trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        bool is_last = i + 1 == trace->level_count || trace->level_device[i + 1] != trace->level_device[i];
        assert_true(trace->level_bytes[i] <= replay->device_peak_bytes[trace->level_device[i]]);
        if (is_last)
            assert_int_equal(trace->level_bytes[i], 0);
        else
            assert_true(trace->level_time_ps[i] <= trace->level_time_ps[i + 1]);
    }
}

/* The same times given make the same replay. */
static void check_from_times(const pc_schedule *s, const pc_costs *costs, const pc_replay *replay) {
    pc_replay again;
    const pc_replay_trace *trace = &replay->trace;
    assert_int_equal(pc_replay_from_times(s, costs, trace->pass_start_ps, trace->pass_end_ps, NULL, true, &again, NULL),
                     PC_OK);
    assert_true(again.trace_hash == replay->trace_hash);
    assert_int_equal(again.span_ps, replay->span_ps);
    assert_int_equal(again.makespan_ps, replay->makespan_ps);
    assert_int_equal(again.peak_bytes, replay->peak_bytes);
    assert_memory_equal(&again.bubble_rate_span, &replay->bubble_rate_span, sizeof(double));
    assert_int_equal(again.trace.level_count, trace->level_count);
    for (int d = 0; d < s->devices; d++) assert_int_equal(again.device_busy_ps[d], replay->device_busy_ps[d]);
    for (int64_t i = 0; i < trace->level_count; i++) {
        assert_int_equal(again.trace.level_bytes[i], trace->level_bytes[i]);
        assert_int_equal(again.trace.level_time_ps[i], trace->level_time_ps[i]);
    }
    pc_replay_free(&again);
}

static void test_agrees_with_longest_path(void **state) {
    (void)state;
    test_random random = {3};
    for (long i = 0; i < test_cases(3000, 20000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        pc_replay replay;
        pc_error error = {0};
        random_schedule(&random, 6, 5, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        random_hops_and_ready(&random, &costs);
        if (pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, &error))
            fail_msg("%s", error.message);
        compare(&schedule, &costs, &replay);
        check_levels(&replay);
        check_from_times(&schedule, &costs, &replay);
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    test_count("schedules.compared", test_cases(3000, 20000));
}

/* Two passes of a stage exchanged at random: either it still runs, and then both ways agree, or the checker and the
 * longest path both find that it cannot. */
static void test_agrees_on_what_cannot_run(void **state) {
    (void)state;
    test_random random = {4};
    int refused = 0;
    for (long i = 0; i < test_cases(1000, 20000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        pc_error error = {0};
        random_schedule(&random, 4, 4, 2, &schedule);
        random_costs(&random, &schedule, &costs);
        int64_t last = schedule.offsets[1] - 1, a = test_between(&random, 0, last), b = test_between(&random, 0, last);
        pc_pass kept = schedule.passes[a];
        schedule.passes[a] = schedule.passes[b];
        schedule.passes[b] = kept;
        pc_time *start = calloc((size_t)schedule.offsets[schedule.devices], sizeof *start);
        pc_time *end = calloc((size_t)schedule.offsets[schedule.devices], sizeof *end);
        for (int64_t k = 0; k < (int64_t)schedule.devices * schedule.chunks * PC_PASS_KINDS; k++)
            costs.duration_ps[k]++; /* a cycle of passes that take no time would not show */
        bool can_run = longest_path(&schedule, &costs, start, end);
        assert_int_equal(pc_schedule_check(&schedule, &error) == PC_OK, can_run);
        if (!can_run) assert_non_null(strstr(error.message, "deadlock"));
        refused += !can_run;
        free(start);
        free(end);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(refused > 0);
}

/* ---- published numbers ---- */

typedef struct published {
    int devices, microbatches;
    double f_ms, b_ms, w_ms, comm_ms;
    double bubble_1f1b, bubble_zb_h1, bubble_zb_h2;
} published;

/* 'Zero Bubble Pipeline Parallelism' (arXiv 2401.10241), tables 5 and 6. */
static const published zero_bubble[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, .2431, .1585, .1083},
    {8, 32, 18.513, 18.086, 9.331, 0.626, .1985, .1242, .0837},
    {8, 64, 18.546, 18.097, 9.321, 0.762, .1240, .0674, .0444},
    {8, 24, 29.718, 29.444, 19.927, 0.527, .2347, .1323, .0698},
    {8, 32, 29.802, 29.428, 19.53, 0.577, .1898, .1045, .0559},
    {8, 64, 29.935, 29.621, 19.388, 0.535, .1091, .0554, .0294},
    {16, 48, 11.347, 11.248, 8.132, 0.377, .2552, .1397, .0672},
    {16, 64, 11.307, 11.254, 8.101, 0.379, .2082, .1088, .0516},
    {16, 128, 11.325, 11.308, 8.109, 0.378, .1251, .0576, .0266},
    {32, 96, 10.419, 10.207, 7.715, 0.408, .2646, .1421, .0641},
    {32, 128, 10.408, 10.204, 7.703, 0.408, .2168, .1106, .0490},
    {32, 256, 10.402, 10.248, 7.698, 0.46, .1352, .0594, .0257},
};

static void fill_costs(const double ms[PC_PASS_KINDS], double comm_ms, pc_costs *costs) {
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs->duration_ps[i * PC_PASS_KINDS + kind] = llround(ms[kind] * 1e9 / costs->chunks);
        costs->activation_bytes[i] = 1;
    }
    costs->transfer.delay_ps = llround(comm_ms * 1e9);
}

static pc_replay replay_named(const char *name, int p, int m, int v, const double ms[PC_PASS_KINDS], double comm_ms) {
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    pc_error error = {0};
    if (pc_schedule_generate(pc_generator_find(name), p, m, v, &schedule, &error)) fail_msg("%s", error.message);
    assert_int_equal(pc_costs_create(p, schedule.chunks, &costs, NULL), PC_OK);
    fill_costs(ms, comm_ms, &costs);
    if (pc_replay_run(&schedule, &costs, NULL, &replay, &error)) fail_msg("%s", error.message);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
    return replay;
}

static void check_bubble(const published *row, const char *name, double expected) {
    const double ms[PC_PASS_KINDS] = {row->f_ms, row->b_ms, row->w_ms, row->b_ms + row->w_ms, 0.0};
    pc_replay replay = replay_named(name, row->devices, row->microbatches, 0, ms, row->comm_ms);
    assert_int_equal(lround(replay.bubble_rate_span * 1e4), lround(expected * 1e4));
    pc_replay_free(&replay);
}

static void test_zero_bubble_table_5(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof zero_bubble / sizeof *zero_bubble; i++) {
        check_bubble(&zero_bubble[i], "1f1b", zero_bubble[i].bubble_1f1b);
        check_bubble(&zero_bubble[i], "zb-h1", zero_bubble[i].bubble_zb_h1);
        check_bubble(&zero_bubble[i], "zb-h2", zero_bubble[i].bubble_zb_h2);
    }
}

/* ---- closed forms ---- */

/* Idle time of the worst device at F = B = W = 1 and no transfer time, and the most microbatches that a device holds;
 * the derivations stand beside the generators (generate.c). m >= 2p. */
static void check_closed_form(const char *name, int p, int m, double idle, double peak) {
    const double ms[PC_PASS_KINDS] = {1, 1, 1, 2, 1};
    pc_replay replay = replay_named(name, p, m, 0, ms, 0.0);
    assert_int_equal(replay.span_ps, llround((3.0 * m + idle) * 1e9));
    assert_int_equal(replay.peak_bytes, (int64_t)peak);
    pc_replay_free(&replay);
}

static void test_closed_forms(void **state) {
    (void)state;
    for (int p = 1; p <= 24; p++)
        for (int m = 2 * p; m <= 4 * p; m += p) {
            check_closed_form("1f1b", p, m, 3 * (p - 1), p);  /* (p-1)(F+B+W) */
            check_closed_form("gpipe", p, m, 3 * (p - 1), m); /* the same, all held */
            check_closed_form("eager-1f1b", p, m, 3 * (p - 1), 2 * p - 1);
            check_closed_form("zb-h1", p, m, p - 1, p);     /* (p-1)(F+B-W) */
            check_closed_form("zb-h2", p, m, 0, 2 * p - 1); /* (p-1)(F+B-2W) */
        }
}

/* Interleaving divides the bubble by v: (p-1)(F+B+W)/v. Stage 0 holds 2(p-1) + (v-1)p + 1 chunks. */
static void test_interleaved_closed_form(void **state) {
    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int v = 1; v <= 5; v++) {
            const double ms[PC_PASS_KINDS] = {v, v, v, 2 * v, v}; /* a chunk takes 1 */
            int m = 3 * p;
            pc_replay replay = replay_named("1f1b-interleaved", p, m, v, ms, 0.0);
            assert_int_equal(replay.span_ps, (3LL * v * m + 3LL * (p - 1)) * 1000000000);
            int64_t held = 2 * (p - 1) + (v - 1) * p + 1;
            assert_int_equal(replay.peak_bytes, v == 1 ? p : held);
            pc_replay_free(&replay);
        }
}

/* The same for any number of microbatches of at least p. Fewer are one group, and none of them comes back to the first
 * stage before all have left it. The last one ends m-1 passes of a chunk behind the first one, which goes through vp
 * parts and back without a wait: (vp + m-1)(F + BW) of a chunk. */
static void test_interleaved_closed_form_of_any_microbatches(void **state) {
    (void)state;
    for (int p = 2; p <= 7; p++)
        for (int v = 2; v <= 4; v++)
            for (int m = 1; m <= 4 * p; m++) {
                const double ms[PC_PASS_KINDS] = {v, v, v, 2 * v, v}; /* a chunk takes 1 */
                pc_replay replay = replay_named("1f1b-interleaved", p, m, v, ms, 0.0);
                int64_t chunks = m < p ? v * p + m - 1 : v * m + p - 1;
                if (replay.span_ps != 3 * chunks * 1000000000)
                    fail_msg("p=%d m=%d v=%d: %g", p, m, v, (double)replay.span_ps / 1e9);
                pc_replay_free(&replay);
            }
}

/* ---- links ---- */

/* Two stages, one microbatch, F = 3, BW = 5, and a link of latency 2 and 4 bytes/ps for 12 bytes: F 0-3, there by
 * 3 + 2 + 3 = 8, F 8-11, BW 11-16, back by 16 + 5 = 21, BW 21-26. */
static void test_transfer_over_a_link(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 2, 1, 0, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(2, 1, &costs, NULL), PC_OK);
    for (int d = 0; d < 2; d++) {
        costs.duration_ps[d * PC_PASS_KINDS + PC_PASS_F] = 3;
        costs.duration_ps[d * PC_PASS_KINDS + PC_PASS_BW] = 5;
    }
    costs.transfer =
        (pc_transfer){.mode = PC_TRANSFER_LINK, .latency_ps = 2, .bandwidth_bytes_per_s = 4e12, .size_bytes = 12};
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    assert_int_equal(replay.makespan_ps, 26);
    assert_int_equal(replay.device_start_ps[1], 8);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* A link that is never shared gives what a delay of latency + size / bandwidth gives. Every pass is longer than a
 * transfer, so that each stage sends one tensor at a time each way; but the two ways overlap, and must not share a
 * link. */
static void test_a_link_alone_is_a_delay(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    pc_replay by_link, by_delay;
    assert_int_equal(pc_schedule_generate(pc_generator_find("zb-h1"), 5, 12, 0, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(5, 1, &costs, NULL), PC_OK);
    const double ms[PC_PASS_KINDS] = {20, 19, 18, 0, 0};
    fill_costs(ms, 0.0, &costs);
    costs.transfer = (pc_transfer){
        .mode = PC_TRANSFER_LINK, .latency_ps = 1000000, .bandwidth_bytes_per_s = 1e9, .size_bytes = 17000000};
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &by_link, NULL), PC_OK);
    costs.transfer = (pc_transfer){.mode = PC_TRANSFER_DELAY, .delay_ps = 1000000 + 17000000000};
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &by_delay, NULL), PC_OK);
    assert_int_equal(by_link.makespan_ps, by_delay.makespan_ps);
    assert_int_equal(by_link.span_ps, by_delay.span_ps);
    pc_replay_free(&by_link);
    pc_replay_free(&by_delay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* ---- memory, and what is missing ---- */

/* Some devices without a limit, the others each with about as much as its order needs. */
static void limit_memory(test_random *random, const pc_schedule *s, const pc_costs *costs, test_limits *limits) {
    for (int d = 0; d < s->devices; d++) {
        int64_t near = recount_peak(s, costs, d) + test_between(random, -5, 40);
        limits->bytes[d] = near >= 0 && test_between(random, 0, 2) ? near : PC_NO_LIMIT;
    }
}

static bool is_too_small(const pc_schedule *s, const pc_costs *costs, const test_limits *limits, int stage) {
    return recount_peak(s, costs, stage) > limits->bytes[stage];
}

/* A replay ends early where, and only where, some device is too small for its own order; and such a one is named. */
static void check_fit(const pc_schedule *s, const pc_costs *costs, const test_limits *limits, const pc_replay *replay) {
    const pc_out_of_memory *oom = &replay->oom;
    bool fits = true;
    for (int d = 0; d < s->devices; d++) fits &= !is_too_small(s, costs, limits, d);
    assert_int_equal(replay->out_of_memory, !fits);
    if (fits) {
        compare(s, costs, replay);
        return;
    }
    assert_true(is_too_small(s, costs, limits, oom->device));
    assert_int_equal(oom->capacity_bytes, limits->bytes[oom->device]);
    assert_true(oom->level_bytes <= oom->capacity_bytes);
    assert_true(oom->requested_bytes > oom->capacity_bytes - oom->level_bytes);
}

static void test_devices_of_different_memory(void **state) {
    (void)state;
    test_random random = {5};
    int ended_early = 0, fitted = 0;
    for (long i = 0; i < test_cases(1000, 20000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        pc_replay replay;
        random_schedule(&random, 6, 5, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        test_limits limits;
        limit_memory(&random, &schedule, &costs, &limits);
        const pc_replay_options options = {.with_trace = true, .memory_limit = test_limit(&limits)};
        assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
        check_fit(&schedule, &costs, &limits, &replay);
        ended_early += replay.out_of_memory;
        fitted += !replay.out_of_memory;
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(ended_early > 0 && fitted > 0);
}

/* 1F1B on 4 stages holds 4 - d microbatches on stage d; with room for 3 on stage 0 its fourth F, of microbatch 3, does
 * not fit: at time 3 F, with 3 taken. */
static void test_out_of_memory(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 4, 8, 0, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(4, 1, &costs, NULL), PC_OK);
    const double ms[PC_PASS_KINDS] = {1, 1, 1, 2, 1};
    fill_costs(ms, 0.0, &costs);
    int64_t limit_bytes[] = {4, 3, 2, 1};
    const pc_replay_options options = {.memory_limit = {limit_bytes}};
    assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
    assert_false(replay.out_of_memory);
    pc_replay_free(&replay);
    limit_bytes[0] = 3;
    assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
    assert_true(replay.out_of_memory);
    assert_int_equal(replay.oom.device, 0);
    assert_int_equal(replay.oom.pass.microbatch, 3);
    assert_int_equal(replay.oom.pass.kind, PC_PASS_F);
    assert_int_equal(replay.oom.time_ps, 3000000000);
    assert_int_equal(replay.oom.level_bytes, 3);
    assert_int_equal(replay.oom.requested_bytes, 1);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* A limit of no bytes is one: the first F, of 1 byte, finds 0 of 0 free. No limit is none, on one device or on all; and
 * what takes nothing fits into no bytes. A limit below zero is refused. */
static void test_limit_of_no_bytes(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    pc_error error = {0};
    const double ms[PC_PASS_KINDS] = {1, 1, 1, 2, 1};
    int64_t limit_bytes[] = {PC_NO_LIMIT, 0};
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 2, 2, 0, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(2, 1, &costs, NULL), PC_OK);
    fill_costs(ms, 0.0, &costs);
    for (int engine = PC_ENGINE_AUTO; engine <= PC_ENGINE_EVENTS; engine++) {
        pc_replay_options options = {.engine = (pc_engine_mode)engine, .memory_limit = {limit_bytes}};
        assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
        assert_true(replay.out_of_memory);
        assert_int_equal(replay.oom.device, 1);
        assert_int_equal(replay.oom.time_ps, 1000000000);
        assert_true(replay.oom.capacity_bytes == 0 && replay.oom.level_bytes == 0 && replay.oom.requested_bytes == 1);
        pc_replay_free(&replay);
        options.memory_limit.device_bytes = NULL;
        assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
        assert_false(replay.out_of_memory);
        pc_replay_free(&replay);
        costs.activation_bytes[1] = 0;
        options.memory_limit.device_bytes = limit_bytes;
        assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, NULL), PC_OK);
        assert_false(replay.out_of_memory);
        pc_replay_free(&replay);
        costs.activation_bytes[1] = 1;
        limit_bytes[1] = -4;
        assert_int_equal(pc_replay_run(&schedule, &costs, &options, &replay, &error), PC_ERROR_INPUT);
        assert_string_equal(error.message, "memory limit: device 1: -4 bytes; expected none below zero");
        limit_bytes[1] = 0;
    }
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

static void test_missing_time(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    pc_error error;
    assert_int_equal(pc_schedule_generate(pc_generator_find("zb-h1"), 2, 2, 0, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(2, 1, &costs, NULL), PC_OK);
    for (int d = 0; d < 2; d++) costs.duration_ps[d * PC_PASS_KINDS + PC_PASS_F] = 1;
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "zb-h1: the time of B of chunk 0 on device 0 is not given; expected one, for the "
                        "schedule has such passes");
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* Times that do not fit into the clock are an error, not a wrap. */
static void test_time_runs_over(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    pc_error error;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 2, 4, 0, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(2, 1, &costs, NULL), PC_OK);
    for (int i = 0; i < 2 * PC_PASS_KINDS; i++) costs.duration_ps[i] = PC_TIME_MAX / 3;
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "runs over"));
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_longest_path),
        cmocka_unit_test(test_agrees_on_what_cannot_run),
        cmocka_unit_test(test_zero_bubble_table_5),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_interleaved_closed_form),
        cmocka_unit_test(test_interleaved_closed_form_of_any_microbatches),
        cmocka_unit_test(test_transfer_over_a_link),
        cmocka_unit_test(test_a_link_alone_is_a_delay),
        cmocka_unit_test(test_devices_of_different_memory),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_limit_of_no_bytes),
        cmocka_unit_test(test_missing_time),
        cmocka_unit_test(test_time_runs_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
