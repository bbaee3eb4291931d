/* Transfers over links, each of which carries one after the other. They are compared by hand, with longest paths, and
 * with what must hold whatever the schedule: twice the times are twice the iteration, and a little more is no more than
 * a little longer. Where transfers shared a link evenly it did not hold. Of two that meet, with starts that move by x,
 * the first may end 3 x elsewhere, and so on from pass to pass. A picosecond grew to 2% of an iteration of 40
 * microbatches. */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/longest_path.h"
#include "tests/random_schedule.h"

#include <math.h>

static pc_replay replay_of(const pc_schedule *schedule, const pc_costs *costs, bool with_trace) {
    pc_replay replay;
    pc_error error = {0};
    if (pc_replay_run(schedule, costs, &(pc_replay_options){.with_trace = with_trace}, &replay, &error))
        fail_msg("%s", error.message);
    return replay;
}

static pc_time makespan(const pc_schedule *schedule, const pc_costs *costs) {
    pc_replay replay = replay_of(schedule, costs, false);
    pc_time makespan_ps = replay.makespan_ps;
    pc_replay_free(&replay);
    return makespan_ps;
}

/* ---- by hand ---- */

/* Two stages, 1F1B, two microbatches, F = 1, BW = 2, transfers of latency 1 that fill the link for 10. F0 ends at 1 and
 * is there at 1 + 1 + 10 = 12; F1 ends at 2 and goes when the link is free: there at 22. Stage 1: F0 12-13, BW0 13-15,
 * F1 22-23, BW1 23-25. Back: 15 + 1 + 10 = 26, and behind that 36. Stage 0: BW0 26-28, BW1 36-38. */
static void test_one_after_the_other(void **state) {
    (void)state;
    static const pc_time start[] = {0, 1, 26, 36, 12, 13, 22, 23}, arrival[] = {26, 36, 12, 22};
    pc_schedule schedule;
    pc_costs costs;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 2, 2, 0, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(2, 1, &costs, NULL), PC_OK);
    for (int d = 0; d < 2; d++) {
        costs.duration_ps[d * PC_PASS_KINDS + PC_PASS_F] = 1;
        costs.duration_ps[d * PC_PASS_KINDS + PC_PASS_BW] = 2;
    }
    costs.transfer =
        (pc_transfer){.mode = PC_TRANSFER_LINK, .latency_ps = 1, .bandwidth_bytes_per_s = 1e12, .size_bytes = 10};
    pc_replay replay = replay_of(&schedule, &costs, true);
    assert_int_equal(replay.makespan_ps, 38);
    assert_memory_equal(replay.trace.pass_start_ps, start, sizeof start);
    assert_int_equal(replay.trace.transfer_count, 4);
    assert_memory_equal(replay.trace.transfer_end_ps, arrival, sizeof arrival);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

static void test_a_transfer_that_cannot_be_timed(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    pc_replay replay;
    pc_error error = {0};
    assert_int_equal(pc_schedule_generate(pc_generator_find("gpipe"), 2, 2, 0, &schedule, NULL), PC_OK);
    random_costs(&(test_random){1}, &schedule, &costs);
    costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK, .bandwidth_bytes_per_s = 1, .size_bytes = 10000000};
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "transfer: 1 bytes/s for 10000000 bytes; expected more than zero, and less than "
                                       "106 days for them");
    costs.transfer.bandwidth_bytes_per_s = 0;
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_ERROR_INPUT);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* ---- against longest paths ---- */

/* What each pass sends, by position, and to whom: from the trace, whose rows are in the order of those who wait. */
typedef struct sending {
    int64_t receiver; /* -1: none */
    int to;
} sending;

static int64_t find_pass(const pc_schedule *s, int device, int microbatch, int chunk, int kind) {
    for (int64_t i = s->offsets[device]; i < s->offsets[device + 1]; i++) {
        pc_pass x = s->passes[i];
        if (x.microbatch == microbatch && x.chunk == chunk && x.kind == kind) return i;
    }
    return -1;
}

/* By the model: F goes to the part behind, a backward pass to the part before. */
static sending sending_of(const pc_schedule *s, int device, pc_pass pass) {
    bool is_f = pass.kind == PC_PASS_F;
    int part = pc_placement_part(s->placement, s->devices, device, pass.chunk) + (is_f ? 1 : -1);
    sending none = {-1, -1};
    if (!is_f && pass.kind != PC_PASS_B && pass.kind != PC_PASS_BW) return none;
    if (part < 0 || part == pc_placement_parts(s->placement, s->devices, s->chunks)) return none;
    int to = pc_placement_stage(s->placement, s->devices, part, pass.chunk);
    int slices = pc_placement_slices(s->placement, s->chunks); /* it stays the same one */
    int chunk = pc_placement_chunk(s->placement, s->devices, part, pass.chunk) + pass.chunk % slices;
    if (to == device) return none;
    int64_t receiver = find_pass(s, to, pass.microbatch, chunk, is_f ? PC_PASS_F : PC_PASS_B);
    if (receiver < 0) receiver = find_pass(s, to, pass.microbatch, chunk, PC_PASS_BW);
    return (sending){receiver, to};
}

/* Every link's transfers in the order of its sender's passes, each when it is ready and the one before is through. */
static void find_delays(const pc_schedule *s, const pc_costs *costs, const pc_time *end, pc_time *delay) {
    pc_time filled = (pc_time)((double)costs->transfer.size_bytes / costs->transfer.bandwidth_bytes_per_s * 1e12 + 0.5);
    for (int d = 0; d < s->devices; d++) {
        pc_time free_at[16] = {0};
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
            sending x = sending_of(s, d, s->passes[i]);
            if (x.receiver < 0) continue;
            pc_time ready = end[i] + costs->transfer.latency_ps;
            free_at[x.to] = (ready > free_at[x.to] ? ready : free_at[x.to]) + filled;
            delay[x.receiver] = free_at[x.to] - end[i];
        }
    }
}

/* Longest paths with delays, and delays from the ends that come of them, until nothing changes. */
static void path_over_links(const pc_schedule *s, const pc_costs *costs, pc_time *start, pc_time *end) {
    size_t passes = (size_t)s->offsets[s->devices];
    pc_time *duration = calloc(passes, sizeof *duration), *delay = calloc(passes, sizeof *delay);
    pc_time *before = calloc(passes, sizeof *before);
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++)
            duration[i] = pc_costs_duration(costs, d, s->passes[i].chunk, s->passes[i].kind);
    for (size_t round = 0; round < passes + 2; round++) {
        assert_true(longest_path_each(s, costs, duration, delay, start, end));
        memcpy(before, delay, passes * sizeof *delay);
        find_delays(s, costs, end, delay);
        if (memcmp(before, delay, passes * sizeof *delay) == 0) break;
    }
    assert_memory_equal(before, delay, passes * sizeof *delay);
    free(duration);
    free(delay);
    free(before);
}

/* Orders of any kind, also those in which a stage sends in another order than its neighbour waits. */
static void test_agrees_with_longest_paths(void **state) {
    (void)state;
    test_random random = {61};
    for (long i = 0; i < test_cases(300, 2000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        random_schedule(&random, 6, 6, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                       .latency_ps = test_between(&random, 0, 9),
                                       .bandwidth_bytes_per_s = 1e12,
                                       .size_bytes = test_between(&random, 1, 40)};
        size_t passes = (size_t)schedule.offsets[schedule.devices];
        pc_time *start = calloc(passes, sizeof *start), *end = calloc(passes, sizeof *end);
        pc_replay replay = replay_of(&schedule, &costs, true);
        path_over_links(&schedule, &costs, start, end);
        assert_memory_equal(replay.trace.pass_start_ps, start, passes * sizeof *start);
        assert_memory_equal(replay.trace.pass_end_ps, end, passes * sizeof *end);
        free(start);
        free(end);
        pc_replay_free(&replay);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
}

/* ---- whatever the schedule ---- */

/* A named schedule, p to 8, m to 5 p, v to 4; the fixed ones, and those that are searched as for equal times. */
static void draw_named(test_random *random, pc_schedule *schedule) {
    int count;
    const pc_generator *all = pc_generators(&count), *x = &all[test_between(random, 0, count - 1)];
    int64_t p = 2 * test_between(random, 1, 4),
            m = p * test_between(random, pc_max(1, x->microbatches_min), x->searches ? 2 : 5);
    bool takes_several = x->chunks_max == 0 || x->chunks_max > x->chunks_default;
    int64_t v = takes_several ? test_between(random, x->chunks_min, 4) : 0;
    pc_error error = {0};
    if (pc_schedule_generate(x, p, m, v, schedule, &error)) fail_msg("%s", error.message);
}

/* Milliseconds, alike on all stages in one half of the cases; transfers from a twentieth to twice of an F, so that many
 * fill their links. */
static void draw_costs(test_random *random, const pc_schedule *schedule, pc_costs *costs) {
    assert_int_equal(pc_costs_create(schedule->devices, schedule->chunks, costs, NULL), PC_OK);
    bool is_even = test_between(random, 0, 1);
    for (int64_t i = 0; i < (int64_t)schedule->devices * schedule->chunks * PC_PASS_KINDS; i++) {
        bool copies = is_even && i >= PC_PASS_KINDS;
        costs->duration_ps[i] = copies ? costs->duration_ps[i - PC_PASS_KINDS] : test_between(random, 1, 8) * 500000000;
    }
    double bandwidth = 1.25e9 * (double)test_between(random, 1, 80);
    double ms = (double)costs->duration_ps[PC_PASS_F] / 1e9 * (double)test_between(random, 1, 40) / 20;
    costs->transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                    .latency_ps = test_between(random, 0, 5) * 1000000,
                                    .bandwidth_bytes_per_s = bandwidth,
                                    .size_bytes = (int64_t)(ms * 1e-3 * bandwidth)};
}

static pc_costs times(const pc_costs *costs, int64_t factor) {
    pc_costs made;
    assert_int_equal(pc_costs_create(costs->devices, costs->chunks, &made, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks * PC_PASS_KINDS; i++)
        made.duration_ps[i] = factor * costs->duration_ps[i];
    made.transfer = costs->transfer;
    made.transfer.latency_ps *= factor;
    made.transfer.size_bytes *= factor;
    return made;
}

/* A transfer's time is rounded to a picosecond, and passes are not: the iteration is off by one for each transfer on
 * its longest path at most, of which there are no more than passes. */
static void check_scales(const pc_schedule *schedule, const pc_costs *costs, int64_t factor) {
    pc_costs scaled = times(costs, factor);
    pc_time once = makespan(schedule, costs), found = makespan(schedule, &scaled);
    pc_time away = found - factor * once, most = factor * schedule->offsets[schedule->devices];
    if (away > most || away < -most || fabs((double)away) > 1e-6 * (double)found)
        fail_msg("%s, p %d, m %d, v %d: %lld times takes %.9g ms; expected %.9g", schedule->name, schedule->devices,
                 schedule->microbatches, schedule->chunks, (long long)factor, (double)found / 1e9,
                 (double)(factor * once) / 1e9);
    pc_costs_free(&scaled);
}

static void test_scaled_times_scale_the_iteration(void **state) {
    (void)state;
    test_random random = {62};
    for (long i = 0; i < test_cases(60, 2000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        draw_named(&random, &schedule);
        draw_costs(&random, &schedule, &costs);
        check_scales(&schedule, &costs, 2);
        check_scales(&schedule, &costs, 3);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
}

/* Interleaved, p 8, m 40, 4 chunks, 10 Gbit/s: F and BW of half a millisecond, transfers of 1.6 and of 2 ms. Shared
 * evenly, twice the times took 1.0% and 1.3% less or more than twice as long. */
static void test_many_transfers_under_way(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_costs costs;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b-interleaved"), 8, 40, 4, &schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(8, 4, &costs, NULL), PC_OK);
    for (int i = 0; i < 8 * 4 * PC_PASS_KINDS; i++) costs.duration_ps[i] = 500000000;
    costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK, .bandwidth_bytes_per_s = 1.25e9};
    for (int us = 0; us < 10; us++)
        for (int64_t size = 1000000; size <= 2500000; size += 500000) {
            costs.transfer.latency_ps = us * 1000000;
            costs.transfer.size_bytes = size;
            check_scales(&schedule, &costs, 2);
            check_scales(&schedule, &costs, 3);
        }
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* One pass of a stage longer by x: the longest path has it at most m times, once for every microbatch. Transfers larger
 * by a billionth: all else alike, no path is longer by more than that part of it, and roundings. Neither is shorter. */
static void test_a_little_more_is_a_little_longer(void **state) {
    (void)state;
    test_random random = {63};
    for (long i = 0; i < test_cases(60, 2000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        draw_named(&random, &schedule);
        draw_costs(&random, &schedule, &costs);
        costs.transfer.size_bytes *= 1000;
        costs.transfer.bandwidth_bytes_per_s *= 1000;
        pc_time before = makespan(&schedule, &costs), more = test_between(&random, 1, 1000);
        pc_time *longer =
            &costs.duration_ps[test_between(&random, 0, schedule.devices * schedule.chunks * PC_PASS_KINDS - 1)];
        *longer += more;
        pc_time after = makespan(&schedule, &costs);
        assert_true(after >= before && after <= before + schedule.microbatches * more);
        *longer -= more;
        costs.transfer.size_bytes += costs.transfer.size_bytes / 1000000000;
        after = makespan(&schedule, &costs);
        pc_time most = before / 1000000000 + schedule.offsets[schedule.devices];
        assert_true(after >= before && after <= before + most);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),       cmocka_unit_test(test_a_transfer_that_cannot_be_timed),
        cmocka_unit_test(test_agrees_with_longest_paths), cmocka_unit_test(test_scaled_times_scale_the_iteration),
        cmocka_unit_test(test_many_transfers_under_way),  cmocka_unit_test(test_a_little_more_is_a_little_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
