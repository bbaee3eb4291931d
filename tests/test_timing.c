/* The walk over the orders against the engine: the same replay to the last bit, and the same words where there is none.
 * What is right at all is for test_replay.c. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/timing.h"
#include "tests/longest_path.h"
#include "tests/memory_limits.h"
#include "tests/random_schedule.h"
#include "tests/same_replay.h"

static pc_replay_options options_of(pc_engine_mode engine, const test_limits *limits) {
    return (pc_replay_options){.with_trace = true, .engine = engine, .memory_limit = test_limit(limits)};
}

/* ---- the workspace beside them ---- */

/* What the workspace says of a schedule that runs, the times where memory is too small included. */
static void check_timing(const pc_schedule *s, const pc_costs *costs, const test_limits *limits, const pc_replay *judge,
                         const pc_timing_result *found) {
    int64_t peaks[16];
    assert_int_equal(pc_timing_exceeds(found->stages, s->devices, test_limit(limits)), judge->out_of_memory);
    assert_false(pc_timing_exceeds(found->stages, s->devices, (pc_memory_limit){NULL}));
    assert_int_equal(pc_schedule_peaks(s, costs, peaks, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++) assert_int_equal(found->stages[d].peak_bytes, peaks[d]);
    if (judge->out_of_memory) {
        pc_replay without_limit;
        assert_int_equal(
            pc_replay_run(s, costs, &(pc_replay_options){.engine = PC_ENGINE_EVENTS}, &without_limit, NULL), PC_OK);
        assert_int_equal(found->totals.makespan_ps, without_limit.makespan_ps);
        pc_replay_free(&without_limit);
        return;
    }
    assert_int_equal(found->totals.span_ps, judge->span_ps);
    assert_int_equal(found->totals.makespan_ps, judge->makespan_ps);
    assert_int_equal(found->totals.peak_bytes, judge->peak_bytes);
    check_column(found->start_ps, judge->trace.pass_start_ps, judge->trace.pass_count, sizeof(pc_time));
    check_column(found->end_ps, judge->trace.pass_end_ps, judge->trace.pass_count, sizeof(pc_time));
}

/* A faulty schedule is told in the checker's words; faulty costs in whichever. */
static void check_refusal(const pc_schedule *s, pc_code found, const pc_error *why) {
    pc_error checked;
    assert_int_equal(found, PC_ERROR_INPUT);
    if (pc_schedule_check(s, &checked) && !strstr(why->message, "costs: ") && !strstr(why->message, "runs over"))
        assert_string_equal(why->message, checked.message);
}

/* Both ways, and the workspace that all cases share. Returns what the judge returns. */
static pc_code judge(pc_timing *timing, const pc_schedule *s, const pc_costs *costs, const test_limits *limits) {
    const pc_replay_options events = options_of(PC_ENGINE_EVENTS, limits), paths = options_of(PC_ENGINE_AUTO, limits);
    pc_replay by_engine, by_paths;
    pc_timing_result result;
    pc_error engine_error = {0}, paths_error = {0}, timing_error = {0};
    pc_code expected = pc_replay_run(s, costs, &events, &by_engine, &engine_error);
    assert_int_equal(pc_replay_run(s, costs, &paths, &by_paths, &paths_error), expected);
    pc_code found = pc_timing_run(timing, s, costs, &result, &timing_error);
    if (expected) {
        assert_string_equal(paths_error.message, engine_error.message);
        check_refusal(s, found, &timing_error);
        return expected;
    }
    if (found) fail_msg("%s", timing_error.message);
    check_same_replay(&by_paths, &by_engine);
    check_timing(s, costs, limits, &by_engine, &result);
    pc_replay_free(&by_engine);
    pc_replay_free(&by_paths);
    return PC_OK;
}

static bool is_too_small(const pc_schedule *s, const pc_costs *costs, const test_limits *limits) {
    int64_t peaks[16];
    assert_int_equal(pc_schedule_peaks(s, costs, peaks, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++)
        if (peaks[d] > limits->bytes[d]) return true;
    return false;
}

/* Some devices without a limit, the others each with its own; now and then of no bytes. */
static void limit_memory(test_random *random, int devices, test_limits *limits) {
    for (int d = 0; d < devices; d++)
        limits->bytes[d] = test_between(random, 0, 1) ? test_between(random, 0, 20) * 30 : PC_NO_LIMIT;
}

static void test_agrees_with_the_engine(void **state) {
    (void)state;
    test_random random = {11};
    pc_timing *timing;
    int did_not_fit = 0;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (long i = 0; i < test_cases(2000, 20000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        random_schedule(&random, 6, 5, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        random_hops_and_ready(&random, &costs);
        test_limits limits = test_limit_all(PC_NO_LIMIT);
        if (test_between(&random, 0, 1)) limit_memory(&random, schedule.devices, &limits);
        did_not_fit += is_too_small(&schedule, &costs, &limits);
        assert_int_equal(judge(timing, &schedule, &costs, &limits), PC_OK);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(did_not_fit > 0);
    pc_timing_free(timing);
}

/* ---- what is wrong ---- */

/* A pass of some stage once more, anywhere in that stage's order. */
static void add_pass(test_random *random, pc_schedule *s) {
    int64_t stage = test_between(random, 0, s->devices - 1), first = s->offsets[stage], last = s->offsets[stage + 1];
    int64_t from = test_between(random, first, last - 1), to = test_between(random, first, last), lengths[16];
    pc_schedule longer;
    for (int d = 0; d < s->devices; d++) lengths[d] = s->offsets[d + 1] - s->offsets[d] + (d == stage);
    assert_int_equal(
        pc_schedule_create(s->name, s->devices, s->microbatches, s->chunks, s->placement, lengths, &longer, NULL),
        PC_OK);
    for (int64_t i = 0; i < s->offsets[s->devices]; i++) longer.passes[i + (i >= to)] = s->passes[i];
    longer.passes[to] = s->passes[from];
    pc_schedule_free(s);
    *s = longer;
}

/* One pass exchanged with another of its stage, overwritten by another of any stage, changed in one of its numbers, or
 * there once more; or a placement that the order was not made for. */
static void damage_schedule(test_random *random, pc_schedule *s) {
    int64_t passes = s->offsets[s->devices], stage = test_between(random, 0, s->devices - 1);
    pc_pass *a = &s->passes[test_between(random, s->offsets[stage], s->offsets[stage + 1] - 1)];
    pc_pass *b = &s->passes[test_between(random, s->offsets[stage], s->offsets[stage + 1] - 1)], kept = *a;
    switch (test_between(random, 0, 7)) {
    case 0:
    case 1:
        *a = *b;
        *b = kept;
        break;
    case 2:
        *a = s->passes[test_between(random, 0, passes - 1)];
        break;
    case 3:
        a->microbatch = (int32_t)test_between(random, -1, s->microbatches);
        break;
    case 4:
        a->chunk = (int16_t)test_between(random, -1, s->chunks);
        break;
    case 5:
        a->kind = (int16_t)test_between(random, -1, PC_PASS_KINDS);
        break;
    case 6:
        add_pass(random, s);
        break;
    default:
        s->placement = (pc_placement)test_between(random, 0, PC_PLACEMENTS - 1);
    }
}

/* A time or a size that is missing, negative, or so large that sums may or may not run over. */
static void damage_costs(test_random *random, pc_costs *costs, test_limits *limits) {
    int64_t cells = (int64_t)costs->devices * costs->chunks, i = test_between(random, 0, cells - 1);
    const int64_t odd[] = {-1, -2, 0, INT64_MAX, INT64_MAX / 2, INT64_MAX / 7, INT64_MAX / 20 - 5};
    int64_t number = odd[test_between(random, 0, (int)(sizeof odd / sizeof *odd) - 1)];
    int64_t *const where[] = {&costs->duration_ps[i * PC_PASS_KINDS + test_between(random, 0, PC_PASS_KINDS - 1)],
                              &costs->activation_bytes[i],
                              &costs->activation_b_bytes[i],
                              &costs->activation_kept_bytes[i],
                              &limits->bytes[test_between(random, 0, costs->devices - 1)],
                              &costs->transfer.delay_ps,
                              costs->hop_delay_ps ? &costs->hop_delay_ps[i / costs->chunks] : NULL,
                              costs->ready_ps ? &costs->ready_ps[i] : NULL};
    int64_t which = test_between(random, 0, 8);
    if (which < 8 && where[which])
        *where[which] = number;
    else
        for (int64_t k = 0; k < cells * PC_PASS_KINDS; k++) costs->duration_ps[k] = number;
}

/* As judge, for costs that the workspace alone may refuse: the two replays agree all the same. */
static pc_code judge_replays(const pc_schedule *s, const pc_costs *costs, const test_limits *limits) {
    const pc_replay_options events = options_of(PC_ENGINE_EVENTS, limits), paths = options_of(PC_ENGINE_AUTO, limits);
    pc_replay by_engine = {0}, by_paths = {0};
    pc_error engine_error = {0}, paths_error = {0};
    pc_code expected = pc_replay_run(s, costs, &events, &by_engine, &engine_error);
    assert_int_equal(pc_replay_run(s, costs, &paths, &by_paths, &paths_error), expected);
    assert_string_equal(paths_error.message, engine_error.message);
    check_same_replay(&by_paths, &by_engine);
    pc_replay_free(&by_engine);
    pc_replay_free(&by_paths);
    return expected;
}

static void test_same_words_for_damaged_schedules(void **state) {
    (void)state;
    test_random random = {12};
    pc_timing *timing;
    int refused = 0, accepted = 0;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (long i = 0; i < test_cases(2000, 20000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        random_schedule(&random, 4, 4, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        damage_schedule(&random, &schedule);
        const test_limits none = test_limit_all(PC_NO_LIMIT);
        if (judge(timing, &schedule, &costs, &none))
            refused++;
        else
            accepted++;
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(refused > 0 && accepted > 0);
    pc_timing_free(timing);
}

static void test_same_words_for_damaged_costs(void **state) {
    (void)state;
    test_random random = {13};
    int refused = 0, accepted = 0;
    for (long i = 0; i < test_cases(2000, 20000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        random_schedule(&random, 4, 4, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        random_hops_and_ready(&random, &costs);
        test_limits limits = test_limit_all(PC_NO_LIMIT);
        damage_costs(&random, &costs, &limits);
        if (test_between(&random, 0, 2) == 0) damage_schedule(&random, &schedule);
        if (judge_replays(&schedule, &costs, &limits))
            refused++;
        else
            accepted++;
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(refused > 0 && accepted > 0);
}

static void expect_refusal(pc_timing *timing, const pc_schedule *s, const pc_costs *costs, const char *words) {
    pc_timing_result result;
    pc_error error = {0};
    assert_int_equal(pc_timing_run(timing, s, costs, &result, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("'%s' is not in '%s'", words, error.message);
}

/* What only the workspace says, for the replay asks the engine. */
static void test_refusals(void **state) {
    (void)state;
    pc_schedule s;
    pc_costs costs;
    pc_timing *timing;
    test_random random = {14};
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_schedule_generate(pc_generator_find("zb-h1"), 3, 4, 0, &s, NULL), PC_OK);
    random_costs(&random, &s, &costs);
    costs.duration_ps[PC_PASS_B] = -2;
    expect_refusal(timing, &s, &costs, "costs: a negative time");
    costs.duration_ps[PC_PASS_B] = PC_TIME_NOT_GIVEN;
    expect_refusal(timing, &s, &costs, "zb-h1: the time of B of chunk 0 on device 0 is not given");
    costs.duration_ps[PC_PASS_B] = PC_TIME_MAX - 1;
    expect_refusal(timing, &s, &costs, "simulated time: runs over");
    costs.duration_ps[PC_PASS_B] = 1;
    costs.activation_bytes[1] = INT64_MAX / 4 + 1; /* four microbatches of it are one byte too many */
    expect_refusal(timing, &s, &costs, "costs: activations of device 1");
    costs.activation_bytes[1] = costs.activation_b_bytes[1] - 1;
    expect_refusal(timing, &s, &costs, "costs: activations of device 1");
    assert_int_equal(pc_costs_add_ready(&costs, NULL), PC_OK);
    costs.ready_ps[1] = -6;
    expect_refusal(timing, &s, &costs, "costs: device 1: chunk 0 ready at -6 ps");
    assert_int_equal(pc_costs_add_hop_delays(&costs, NULL), PC_OK);
    costs.hop_delay_ps[1] = -5;
    expect_refusal(timing, &s, &costs, "costs: device 1: a delay to the next of -5 ps");
    costs.transfer.delay_ps = -3;
    expect_refusal(timing, &s, &costs, "costs: a delay of -3 ps");
    costs.transfer.mode = PC_TRANSFER_LINK;
    expect_refusal(timing, &s, &costs, "costs: transfers over links");
    costs.devices = 2;
    expect_refusal(timing, &s, &costs, "costs: for 2 devices and 1 chunks; expected the schedule's 3 devices");
    pc_costs_free(&costs);
    pc_schedule_free(&s);
    pc_timing_free(timing);
}

/* ---- a time of its own for every pass ---- */

/* Whether the pass waits for one of another stage: F for the part before its own, a backward pass for the one behind.
 */
static bool waits_for_other_stage(const pc_schedule *s, int d, pc_pass pass) {
    int part = pc_placement_part(s->placement, s->devices, d, pass.chunk);
    bool is_backward = pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW;
    if (pass.kind != PC_PASS_F && !is_backward) return false;
    part += is_backward ? 1 : -1;
    if (part < 0 || part == pc_placement_parts(s->placement, s->devices, s->chunks)) return false;
    return pc_placement_stage(s->placement, s->devices, part, pass.microbatch) != d;
}

static void check_each(test_random *random, pc_timing *timing, const pc_schedule *s, const pc_costs *costs) {
    int64_t passes = s->offsets[s->devices];
    pc_time *block = pc_alloc(4 * (size_t)passes, sizeof *block), *delay = block + passes;
    pc_timing_result found;
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
            block[i] = test_between(random, 0, 1000);
            delay[i] = waits_for_other_stage(s, d, s->passes[i]) ? test_between(random, 0, 500) : 0;
        }
    assert_true(longest_path_each(s, costs, block, delay, block + 2 * passes, block + 3 * passes));
    assert_int_equal(pc_timing_run_each(timing, s, costs, block, delay, &found, NULL), PC_OK);
    check_column(found.start_ps, block + 2 * passes, passes, sizeof *block);
    check_column(found.end_ps, block + 3 * passes, passes, sizeof *block);
    assert_int_equal(found.totals.peak_bytes, 0);
    pc_free(block);
}

/* Against the longest path, which shares no code with the walk. */
static void test_every_pass_and_transfer_for_itself(void **state) {
    (void)state;
    test_random random = {17};
    pc_timing *timing;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_schedule s;
        pc_costs costs;
        random_schedule(&random, 4, 5, 3, &s);
        random_costs(&random, &s, &costs);
        random_hops_and_ready(&random, &costs);
        check_each(&random, timing, &s, &costs);
        pc_costs_free(&costs);
        pc_schedule_free(&s);
    }
    pc_timing_free(timing);
}

/* ---- the workspace's memory ---- */

static pc_code time_once(pc_timing *timing, int devices, int microbatches, pc_time *makespan, pc_error *error) {
    pc_schedule s;
    pc_costs costs;
    pc_timing_result result;
    test_random random = {15};
    assert_int_equal(pc_schedule_generate(pc_generator_find("zb-h1"), devices, microbatches, 0, &s, NULL), PC_OK);
    random_costs(&random, &s, &costs);
    long before = pc_alloc_count();
    pc_code code = pc_timing_run(timing, &s, &costs, &result, error);
    if (!code) *makespan = result.totals.makespan_ps;
    assert_true(code || devices == 7 || pc_alloc_count() == before); /* none for what is no larger than 7 x 20 */
    pc_costs_free(&costs);
    pc_schedule_free(&s);
    return code;
}

static void test_a_workspace_is_reused(void **state) {
    (void)state;
    pc_timing *timing;
    pc_time first, again;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(time_once(timing, 7, 20, &first, NULL), PC_OK);
    assert_int_equal(time_once(timing, 2, 3, &again, NULL), PC_OK);
    assert_int_equal(time_once(timing, 4, 20, &again, NULL), PC_OK);
    assert_int_equal(time_once(timing, 7, 20, &again, NULL), PC_OK);
    assert_int_equal(again, first);
    pc_timing_free(timing);
}

/* Each of its eight buffers is refused once; the next run is as if nothing had been. */
static void test_without_memory(void **state) {
    (void)state;
    pc_schedule s;
    pc_costs costs;
    pc_timing *timing;
    pc_timing_result result;
    test_random random = {16};
    assert_int_equal(pc_schedule_generate(pc_generator_find("zb-h1"), 3, 5, 0, &s, NULL), PC_OK);
    random_costs(&random, &s, &costs);
    pc_alloc_fail_after(0);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_ERROR_NO_MEMORY);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int i = 0; i < 8; i++) {
        pc_alloc_fail_after(i);
        assert_int_equal(pc_timing_run(timing, &s, &costs, &result, NULL), PC_ERROR_NO_MEMORY);
        pc_alloc_fail_after(-1);
        assert_int_equal(pc_timing_run(timing, &s, &costs, &result, NULL), PC_OK);
        pc_timing_free(timing);
        assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    }
    pc_costs_free(&costs);
    pc_schedule_free(&s);
    pc_timing_free(timing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_the_engine),
        cmocka_unit_test(test_same_words_for_damaged_schedules),
        cmocka_unit_test(test_same_words_for_damaged_costs),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_workspace_is_reused),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_every_pass_and_transfer_for_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
