/* Times found ahead against times found event by event: a program in which every processor has its order and nothing
 * takes memory runs the first way, the same one with a task that has a memory beside it the second. And tasks of
 * several flows. */
#include "tests/program_fixture.h"

enum { PROCESSORS = 4, LINKS = 5, ROUTES = 8 };

static void run_as(fixture *test, pc_simulation_options options) {
    pc_error error = {0};
    if (pc_program_seal(test->program, &error) ||
        pc_simulation_run(test->simulation, test->program, &options, &test->result, &error))
        fail_msg("%s", error.message);
}

static void run(fixture *test, bool with_trace) {
    run_as(test, (pc_simulation_options){.with_trace = with_trace});
}

static int32_t add_task(fixture *test, pc_task task) {
    int32_t number;
    assert_int_equal(pc_program_add_task(test->program, &task, &number, NULL), PC_OK);
    return number;
}

static pc_task on_processor(int32_t processor, pc_time duration_ps) {
    pc_task task = pc_task_default();
    task.processor = processor;
    task.duration_ps = duration_ps;
    return task;
}

static pc_task over_route(int32_t route, int64_t bytes, bool is_part) {
    pc_task task = pc_task_default();
    task.route = route;
    task.flow_bytes = bytes;
    task.is_part = is_part;
    return task;
}

/* One byte a picosecond. */
static int32_t add_route_of_one(fixture *test, pc_time latency_ps) {
    pc_link link = {latency_ps, 1e12, false};
    int32_t number, route;
    assert_int_equal(pc_program_add_link(test->program, &link, &number, NULL), PC_OK);
    assert_int_equal(pc_program_add_route(test->program, &number, 1, &route, NULL), PC_OK);
    return route;
}

/* ---- either way the same ---- */

/* Round numbers, so that much happens at one instant; and any, so that what is left of a flow is a fraction. */
static pc_time draw_time(test_random *random, bool is_round) {
    return is_round ? 1000 * test_between(random, 0, 4) : test_between(random, 0, 1000003);
}

static void draw_resources(fixture *test, test_random *random, bool is_round) {
    int32_t number, links[2];
    for (int i = 0; i < PROCESSORS; i++)
        assert_int_equal(pc_program_add_processor(test->program, PC_PROCESSOR_IN_ORDER, &number, NULL), PC_OK);
    for (int i = 0; i < LINKS; i++) {
        pc_time latency = test_between(random, 0, 1) * (is_round ? 1000 : test_between(random, 1, 5000));
        pc_link link = {latency, (double)test_between(random, 1, is_round ? 3 : 9) * 1e12,
                        test_between(random, 0, 3) == 0};
        assert_int_equal(pc_program_add_link(test->program, &link, &number, NULL), PC_OK);
    }
    for (int i = 0; i < ROUTES; i++) {
        links[0] = (int32_t)test_between(random, 0, LINKS - 1);
        links[1] = (links[0] + (int32_t)test_between(random, 1, LINKS - 1)) % LINKS;
        int count = (int)test_between(random, 1, 2);
        assert_int_equal(pc_program_add_route(test->program, links, count, &number, NULL), PC_OK);
    }
}

static pc_task draw_task(test_random *random, bool is_round, bool can_be_part) {
    bool is_flow = test_between(random, 0, 1);
    bool is_part = is_flow && can_be_part && test_between(random, 0, 1);
    int32_t processor = (int32_t)test_between(random, -1, PROCESSORS - 1);
    if (!is_flow) return on_processor(processor, draw_time(random, is_round));
    int64_t bytes = is_round ? 1000 * test_between(random, 0, 6) : test_between(random, 1, 9000017);
    if (!is_round && test_between(random, 0, 9) == 0) bytes = 0;
    pc_task task = over_route((int32_t)test_between(random, 0, ROUTES - 1), bytes, is_part);
    if (!is_part) task.processor = processor;
    return task;
}

enum { TASKS = 40 };

/* Tasks wait for earlier ones, so that nothing locks up. Returns their number. */
static int32_t draw_tasks(fixture *test, test_random *random, bool is_round) {
    int32_t count = (int32_t)test_between(random, 1, TASKS);
    bool can_be_part = false, is_part[TASKS];
    for (int32_t t = 0; t < count; t++) {
        pc_task task = draw_task(random, is_round, can_be_part);
        add_task(test, task);
        can_be_part = task.route != PC_NO_RESOURCE;
        is_part[t] = task.is_part;
        for (int64_t k = test_between(random, 0, 2); k > 0 && t > 0 && !task.is_part; k--) {
            int32_t from = (int32_t)test_between(random, 0, t - 1);
            pc_time delay = test_between(random, 0, 1) * draw_time(random, is_round);
            if (!is_part[from]) assert_int_equal(pc_program_add_edge(test->program, from, t, delay, NULL), PC_OK);
        }
    }
    return count;
}

/* What a run came to. Loads: of every link, the one after all that happened at an instant, where it changed. */
enum { LOADS_MAX = 64 * TASKS };

typedef struct report {
    pc_time start[TASKS], end[TASKS], ready[TASKS], last;
    int32_t load_count, load_link[LOADS_MAX];
    pc_time load_time[LOADS_MAX];
    double load[LOADS_MAX];
} report;

static void note_loads(const pc_load_trace *loads, report *r) {
    r->load_count = 0;
    for (int32_t link = 0; link < LINKS; link++) {
        double before = 0;
        for (int64_t i = 0; i < loads->count; i++) {
            if (loads->link[i] != link) continue;
            bool is_last = true;
            for (int64_t k = i + 1; k < loads->count && loads->time_ps[k] == loads->time_ps[i]; k++)
                is_last &= loads->link[k] != link;
            if (!is_last || loads->bytes_per_s[i] == before) continue;
            assert_true(r->load_count < LOADS_MAX);
            r->load_link[r->load_count] = link;
            r->load_time[r->load_count] = loads->time_ps[i];
            r->load[r->load_count++] = before = loads->bytes_per_s[i];
        }
    }
}

static void note(const fixture *test, int32_t count, report *r) {
    size_t size = (size_t)count * sizeof(pc_time);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    memcpy(r->start, test->result.start_ps, size);
    memcpy(r->end, test->result.end_ps, size);
    memcpy(r->ready, test->result.ready_ps, size);
    r->last = test->result.time_ps;
    note_loads(&test->result.loads, r);
}

static void compare(long number, int32_t count, const report *found, const report *expected) {
    for (int32_t t = 0; t < count; t++)
        if (found->start[t] != expected->start[t] || found->end[t] != expected->end[t] ||
            found->ready[t] != expected->ready[t])
            fail_msg("case %ld: task %d ready at %lld, from %lld to %lld; expected %lld, %lld to %lld", number, (int)t,
                     (long long)found->ready[t], (long long)found->start[t], (long long)found->end[t],
                     (long long)expected->ready[t], (long long)expected->start[t], (long long)expected->end[t]);
    assert_int_equal(found->last, expected->last);
}

static void compare_loads(long number, const report *found, const report *expected) {
    for (int32_t i = 0; i < found->load_count && i < expected->load_count; i++)
        if (found->load_link[i] != expected->load_link[i] || found->load_time[i] != expected->load_time[i] ||
            found->load[i] != expected->load[i])
            fail_msg("case %ld, load %d: link %d at %lld: %.17g; expected link %d at %lld: %.17g", number, (int)i,
                     (int)found->load_link[i], (long long)found->load_time[i], found->load[i],
                     (int)expected->load_link[i], (long long)expected->load_time[i], expected->load[i]);
    assert_int_equal(found->load_count, expected->load_count);
}

/* Ahead; event by event; and so with a memory beside, without which starts need no events. */
static void test_same_times(void **state) {
    fixture *test = *state;
    test_random random = {7};
    static report ahead, by_events, beside_memory;
    for (long i = 0; i < test_cases(4000, 50000); i++) {
        bool is_round = i % 2;
        int32_t memory;
        pc_program_clear(test->program);
        draw_resources(test, &random, is_round);
        int32_t count = draw_tasks(test, &random, is_round);
        run(test, true);
        note(test, count, &ahead);
        run_as(test, (pc_simulation_options){.with_trace = true, .every_event = true});
        note(test, count, &by_events);
        compare(i, count, &by_events, &ahead);
        compare_loads(i, &by_events, &ahead);
        run(test, false);
        note(test, count, &by_events);
        compare(i, count, &by_events, &ahead);
        assert_int_equal(pc_program_add_memory(test->program, 1, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
        pc_task beside = pc_task_default();
        beside.memory = memory;
        add_task(test, beside);
        run(test, true);
        note(test, count, &beside_memory);
        compare(i, count, &beside_memory, &ahead);
        compare_loads(i, &beside_memory, &ahead);
    }
}

/* What is found ahead needs no events: two for a flow, none for a task. */
static void test_events(void **state) {
    fixture *test = *state;
    int32_t route = add_route_of_one(test, 0), processor, before = -1;
    assert_int_equal(pc_program_add_processor(test->program, PC_PROCESSOR_IN_ORDER, &processor, NULL), PC_OK);
    for (int i = 0; i < 10; i++) {
        int32_t task = add_task(test, i % 2 ? over_route(route, 100, false) : on_processor(processor, 100));
        if (before >= 0) assert_int_equal(pc_program_add_edge(test->program, before, task, 0, NULL), PC_OK);
        before = task;
    }
    run(test, false);
    assert_int_equal(test->result.time_ps, 1000);
    assert_int_equal(test->result.event_count, 2 * 5);
}

/* b waits for a, and stands before it on the processor: both are left, and so is c behind them. */
static void test_deadlock(void **state) {
    fixture *test = *state;
    int32_t processor;
    assert_int_equal(pc_program_add_processor(test->program, PC_PROCESSOR_IN_ORDER, &processor, NULL), PC_OK);
    int32_t done = add_task(test, on_processor(processor, 5)), b = add_task(test, on_processor(processor, 1));
    int32_t a = add_task(test, on_processor(processor, 1));
    assert_int_equal(pc_program_add_edge(test->program, a, b, 0, NULL), PC_OK);
    run(test, false);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DEADLOCK);
    assert_int_equal(test->result.task, b);
    assert_int_equal(test->result.time_ps, 5);
    assert_int_equal(test->result.end_ps[done], 5);
    assert_int_equal(test->result.start_ps[a], -1);
}

static void test_runs_over(void **state) {
    fixture *test = *state;
    pc_error error = {0};
    int32_t first = add_task(test, on_processor(PC_NO_RESOURCE, PC_TIME_MAX - 1));
    int32_t second = add_task(test, on_processor(PC_NO_RESOURCE, 1));
    assert_int_equal(pc_program_add_edge(test->program, first, second, 0, NULL), PC_OK);
    run(test, false);
    assert_int_equal(test->result.time_ps, PC_TIME_MAX);
    assert_int_equal(pc_program_add_edge(test->program, first, second, 1, NULL), PC_OK);
    assert_int_equal(pc_program_seal(test->program, NULL), PC_OK);
    assert_int_equal(pc_simulation_run(test->simulation, test->program, NULL, &test->result, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "runs over"));
}

/* ---- parts ---- */

/* 300 bytes over one link and 500 over another, after a latency of 7 of the first: what waits for them starts at 507.
 * A flow of 100 on the second link halves its rate until 207; then 400 are left. */
static void test_parts(void **state) {
    fixture *test = *state;
    int32_t a = add_route_of_one(test, 7), b = add_route_of_one(test, 0);
    int32_t task = add_task(test, over_route(a, 300, false)), part = add_task(test, over_route(b, 500, true));
    int32_t behind = add_task(test, on_processor(PC_NO_RESOURCE, 1));
    assert_int_equal(pc_program_add_edge(test->program, task, behind, 0, NULL), PC_OK);
    run(test, false);
    assert_int_equal(test->result.start_ps[task], 0);
    assert_int_equal(test->result.start_ps[part], 0);
    assert_int_equal(test->result.end_ps[task], 507);
    assert_int_equal(test->result.end_ps[part], 507);
    assert_int_equal(test->result.start_ps[behind], 507);
    int32_t late = add_task(test, on_processor(PC_NO_RESOURCE, 7)), beside = add_task(test, over_route(b, 100, false));
    assert_int_equal(pc_program_add_edge(test->program, late, beside, 0, NULL), PC_OK);
    run(test, true);
    assert_int_equal(test->result.end_ps[beside], 207);
    assert_int_equal(test->result.end_ps[task], 607);
}

static void expect_refused(fixture *test, pc_task first, pc_task second, int from, int to) {
    pc_error error = {0};
    pc_program_clear(test->program);
    add_route_of_one(test, 0);
    add_task(test, first);
    add_task(test, second);
    if (from >= 0) assert_int_equal(pc_program_add_edge(test->program, from, to, 0, NULL), PC_OK);
    assert_int_equal(pc_program_seal(test->program, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "a part; expected"));
}

static void test_bad_parts(void **state) {
    fixture *test = *state;
    pc_task flow = over_route(0, 1, false), part = over_route(0, 1, true), plain = on_processor(PC_NO_RESOURCE, 1);
    pc_task without_route = plain;
    without_route.is_part = true;
    expect_refused(test, part, flow, -1, -1);
    expect_refused(test, plain, part, -1, -1);
    expect_refused(test, flow, without_route, -1, -1);
    expect_refused(test, flow, part, 0, 1);
    expect_refused(test, flow, part, 1, 0);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_same_times), WITH_FIXTURE(test_events), WITH_FIXTURE(test_deadlock),
        WITH_FIXTURE(test_runs_over),  WITH_FIXTURE(test_parts),  WITH_FIXTURE(test_bad_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
