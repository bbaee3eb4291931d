/* Pairs of passes that run together: closed and on the engine against a plain fixed point, and what is refused. */
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/random_schedule.h"
#include "tests/same_replay.h"

/* ---- a plain fixed point ---- */

static pc_time arrival_of(const pc_pass_index *index, const pc_costs *costs, int stage, int64_t i, const pc_time *end) {
    const pc_schedule *s = index->schedule;
    pc_predecessor before[PC_PREDECESSORS_MAX];
    pc_time latest = s->passes[i].kind == PC_PASS_F ? pc_costs_ready(costs, stage, s->passes[i].chunk) : 0;
    int count = pc_pass_predecessors(index, stage, s->passes[i], before);
    for (int k = 0; k < count; k++) {
        bool is_sent = before[k].stage != stage;
        pc_pass other = s->passes[before[k].position];
        pc_time delay = is_sent ? pc_costs_delay(costs, before[k].stage, stage) : 0;
        if (pc_pass_is_of_vocab(other, s->passes[i])) delay = pc_costs_vocab_ps(costs, other, before[k].stage, stage);
        pc_time time = end[before[k].position] + delay;
        if (time > latest) latest = time;
    }
    return latest;
}

static pc_time alone(const pc_schedule *s, const pc_costs *costs, int stage, int64_t i) {
    return pc_costs_duration(costs, stage, s->passes[i].chunk, s->passes[i].kind);
}

/* Start and end of every pass, both of a pair alike; from zero up until nothing moves. */
static void find_times(const pc_schedule *s, const pc_costs *costs, pc_time *start, pc_time *end) {
    pc_pass_index index;
    assert_int_equal(pc_pass_index_create(s, &index, NULL), PC_OK);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < s->devices; d++)
            for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
                bool is_pair = s->pairs && s->pairs[i];
                pc_time from = i > s->offsets[d] ? end[i - 1] : 0, own = arrival_of(&index, costs, d, i, end);
                pc_time other = is_pair ? arrival_of(&index, costs, d, i + 1, end) : 0;
                pc_time begin = from > own ? from : own, lasts = alone(s, costs, d, i);
                if (other > begin) begin = other;
                if (is_pair) {
                    pc_time given = costs->pair_ps[pc_costs_pair_index(costs, d, s->passes[i], s->passes[i + 1])];
                    lasts = given < 0 ? lasts + alone(s, costs, d, i + 1) : given;
                    start[i + 1] = begin;
                    end[i + 1] = begin + lasts;
                }
                moved |= start[i] != begin || end[i] != begin + lasts;
                start[i] = begin;
                end[i] = begin + lasts;
                if (is_pair) i++;
            }
    }
    pc_pass_index_free(&index);
}

/* ---- random schedules ---- */

/* Marks what may be marked, in one of two places each, and takes all back where that locks. */
static int mark_pairs(test_random *random, pc_schedule *s) {
    int made = 0;
    assert_int_equal(pc_schedule_add_pairs(s, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i + 1 < s->offsets[d + 1]; i++) {
            pc_pass f = s->passes[i], back = s->passes[i + 1];
            bool is_back = back.kind == PC_PASS_B || back.kind == PC_PASS_BW;
            if (f.kind != PC_PASS_F || !is_back || (f.chunk == back.chunk && f.microbatch == back.microbatch)) continue;
            if (test_draw(random) % 2) continue;
            s->pairs[i] = 1;
            if (pc_schedule_check(s, NULL)) s->pairs[i] = 0;
            made += s->pairs[i];
        }
    return made;
}

/* An F that R makes again takes less than a pair could share: costs share layers in schedules without R alone. */
static void draw_pair_times(test_random *random, const pc_schedule *s, pc_costs *costs) {
    bool shares = !pc_schedule_has(s, PC_PASS_R);
    assert_int_equal(pc_costs_add_pairs(costs, NULL), PC_OK);
    for (int64_t i = 0; i < 2 * (int64_t)costs->devices * costs->chunks * costs->chunks; i++)
        if (test_draw(random) % 4) costs->pair_ps[i] = (pc_time)(test_draw(random) % 3000);
    for (int i = 0; i < costs->devices * costs->chunks; i++)
        if (test_draw(random) % 3 && shares) costs->pair_layer_bytes[i] = (int64_t)(test_draw(random) % 60);
}

static void compare(const pc_schedule *s, const pc_costs *costs, const pc_replay *replay) {
    size_t passes = (size_t)s->offsets[s->devices];
    pc_time *start = calloc(passes, sizeof *start), *end = calloc(passes, sizeof *end);
    find_times(s, costs, start, end);
    for (size_t i = 0; i < passes; i++) {
        assert_int_equal(replay->trace.pass_start_ps[i], start[i]);
        assert_int_equal(replay->trace.pass_end_ps[i], end[i]);
    }
    free(start);
    free(end);
}

static pc_replay replay_of(const pc_schedule *s, const pc_costs *costs, pc_engine_mode engine) {
    pc_replay replay;
    pc_error error = {0};
    if (pc_replay_run(s, costs, &(pc_replay_options){.with_trace = true, .engine = engine}, &replay, &error))
        fail_msg("%s", error.message);
    return replay;
}

static void test_closed_is_events_is_the_fixed_point(void **state) {
    (void)state;
    test_random random = {17};
    int made = 0;
    for (long i = 0; i < test_cases(2000, 20000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        random_schedule(&random, 6, 5, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        random_hops_and_ready(&random, &costs);
        made += mark_pairs(&random, &schedule);
        draw_pair_times(&random, &schedule, &costs);
        pc_replay closed = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
        pc_replay events = replay_of(&schedule, &costs, PC_ENGINE_EVENTS);
        compare(&schedule, &costs, &closed);
        check_same_replay(&closed, &events);
        for (int d = 0; d < schedule.devices; d++) assert_int_equal(closed.device_busy_ps[d], events.device_busy_ps[d]);
        pc_replay_free(&events);
        pc_replay_free(&closed);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(test_saw(made, 501));
}

/* Over links so fast that a transfer fills them for no time, it is the latency's delay; where nothing is given of
 * pairs, the marks change nothing. */
static void test_links_and_marks_alone(void **state) {
    (void)state;
    test_random random = {18};
    for (long i = 0; i < test_cases(500, 5000); i++) {
        pc_schedule schedule;
        pc_costs costs;
        random_schedule(&random, 6, 5, 3, &schedule);
        random_costs(&random, &schedule, &costs);
        pc_replay before = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
        mark_pairs(&random, &schedule);
        pc_replay after = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
        check_same_replay(&before, &after);
        draw_pair_times(&random, &schedule, &costs);
        pc_replay delays = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
        costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                       .latency_ps = costs.transfer.delay_ps,
                                       .bandwidth_bytes_per_s = 1e18,
                                       .size_bytes = 0};
        pc_replay links = replay_of(&schedule, &costs, PC_ENGINE_AUTO);
        assert_int_equal(links.makespan_ps, delays.makespan_ps);
        assert_int_equal(links.span_ps, delays.span_ps);
        for (int64_t k = 0; k < links.trace.pass_count; k++)
            assert_int_equal(links.trace.pass_end_ps[k], delays.trace.pass_end_ps[k]);
        pc_replay_free(&links);
        pc_replay_free(&delays);
        pc_replay_free(&after);
        pc_replay_free(&before);
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
}

/* ---- what is refused ---- */

static void expect_fault(pc_schedule *s, int64_t position, const char *message) {
    pc_error error = {0};
    s->pairs[position] = 1;
    assert_int_equal(pc_schedule_check(s, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
    s->pairs[position] = 0;
}

static void test_what_is_no_pair(void **state) {
    (void)state;
    pc_schedule s;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b"), 2, 3, 1, &s, NULL), PC_OK);
    assert_int_equal(pc_schedule_add_pairs(&s, NULL), PC_OK);
    /* F0 F1 BW0 F2 BW1 BW2 | F0 BW0 F1 BW1 F2 BW2 */
    expect_fault(
        &s, 0,
        "schedule: stage 0, place 0: begins a pair; expected F, and behind it B or BW of another microbatch or "
        "chunk");
    expect_fault(
        &s, 5,
        "schedule: stage 0, place 5: begins a pair; expected F, and behind it B or BW of another microbatch or "
        "chunk");
    expect_fault(
        &s, 6,
        "schedule: stage 1, place 0: begins a pair; expected F, and behind it B or BW of another microbatch or "
        "chunk");
    /* F1 of stage 1 needs that of stage 0, which as one of a pair waits for BW0 of stage 1: that stands before it. */
    s.pairs[1] = 1;
    assert_int_equal(pc_schedule_check(&s, NULL), PC_OK);
    pc_schedule_free(&s);
    /* With one microbatch more first, F2 and BW0 of stage 0 run together; F2 of stage 1 stands before BW0: a circle. */
    assert_int_equal(pc_schedule_generate(pc_generator_find("gpipe"), 2, 2, 1, &s, NULL), PC_OK);
    assert_int_equal(pc_schedule_add_pairs(&s, NULL), PC_OK);
    expect_fault(&s, 1,
                 "schedule: deadlock: stage 0, place 1: F1 waits for BW0 of stage 1, place 2, which waits in turn; "
                 "expected an order in which every pass finds its input done");
    pc_schedule_free(&s);
}

/* ---- memory ---- */

/* F takes 100 in layers of 10 while BW gives back 100: 10 more than before or after. Of 60 for 100 it is 40 and the
 * layer. Where nothing is said of layers each has its own. */
static void test_shares_memory(void **state) {
    (void)state;
    pc_schedule s;
    pc_costs costs;
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b-interleaved-overlap"), 1, 3, 1, &s, NULL), PC_OK);
    assert_int_equal(pc_costs_create(1, 1, &costs, NULL), PC_OK);
    costs.activation_bytes[0] = 100;
    int64_t peak;
    assert_int_equal(pc_schedule_peaks(&s, &costs, &peak, NULL), PC_OK);
    assert_int_equal(peak, 200);
    assert_int_equal(pc_costs_add_pairs(&costs, NULL), PC_OK);
    assert_int_equal(pc_schedule_peaks(&s, &costs, &peak, NULL), PC_OK);
    assert_int_equal(peak, 200);
    costs.pair_layer_bytes[0] = 10;
    assert_int_equal(pc_costs_taken_at(&costs, &s, 0, 0, false), 100); /* the first F is in no pair */
    assert_int_equal(pc_costs_taken_at(&costs, &s, 0, 1, false), 10);
    assert_int_equal(pc_costs_given_at(&costs, &s, 0, 2), 10);
    assert_int_equal(pc_costs_given_at(&costs, &s, 0, 5), 100);
    assert_int_equal(pc_schedule_peaks(&s, &costs, &peak, NULL), PC_OK);
    assert_int_equal(peak, 110);
    pc_costs_free(&costs);
    pc_schedule_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_is_events_is_the_fixed_point),
        cmocka_unit_test(test_links_and_marks_alone),
        cmocka_unit_test(test_what_is_no_pair),
        cmocka_unit_test(test_shares_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
