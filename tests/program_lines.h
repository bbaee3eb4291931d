/* program_lines.h: a program built line by line, and run both ways. */
#ifndef PC_TESTS_PROGRAM_LINES_H
#define PC_TESTS_PROGRAM_LINES_H

#include "tests/program_fixture.h"

static inline int32_t add_processor(fixture *test, pc_processor_order order) {
    int32_t number;
    assert_int_equal(pc_program_add_processor(test->program, order, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_link(fixture *test, pc_time latency_ps, double bytes_per_ps) {
    int32_t number;
    pc_link link = {latency_ps, bytes_per_ps * 1e12, false};
    assert_int_equal(pc_program_add_link(test->program, &link, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_unshared_link(fixture *test, pc_time latency_ps, double bytes_per_ps) {
    int32_t number;
    pc_link link = {latency_ps, bytes_per_ps * 1e12, true};
    assert_int_equal(pc_program_add_link(test->program, &link, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_route(fixture *test, const int32_t *links, int32_t count) {
    int32_t number;
    assert_int_equal(pc_program_add_route(test->program, links, count, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_task(fixture *test, int32_t processor, pc_time duration_ps) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = processor;
    task.duration_ps = duration_ps;
    assert_int_equal(pc_program_add_task(test->program, &task, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_flow(fixture *test, int32_t route, int64_t bytes) {
    pc_task task = pc_task_default();
    int32_t number;
    task.route = route;
    task.flow_bytes = bytes;
    assert_int_equal(pc_program_add_task(test->program, &task, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_memory(fixture *test, int64_t capacity_bytes, pc_memory_policy policy) {
    int32_t memory;
    assert_int_equal(pc_program_add_memory(test->program, capacity_bytes, policy, &memory, NULL), PC_OK);
    return memory;
}

/* On a processor, too. */
static inline int32_t add_pass(fixture *test, int32_t processor, int32_t memory, pc_time duration_ps, int64_t take,
                               int64_t give) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = processor;
    task.memory = memory;
    task.duration_ps = duration_ps;
    task.take_bytes = take;
    task.give_bytes = give;
    assert_int_equal(pc_program_add_task(test->program, &task, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_memory_task(fixture *test, int32_t memory, pc_time duration_ps, int64_t take, int64_t give) {
    return add_pass(test, PC_NO_RESOURCE, memory, duration_ps, take, give);
}

static inline void add_edge(fixture *test, int32_t from, int32_t to, pc_time delay_ps) {
    assert_int_equal(pc_program_add_edge(test->program, from, to, delay_ps, NULL), PC_OK);
}

static inline void run_as(fixture *test, bool every_event) {
    pc_simulation_options options = {.with_trace = true, .every_event = every_event};
    pc_error error = {0};
    if (pc_program_seal(test->program, &error) ||
        pc_simulation_run(test->simulation, test->program, &options, &test->result, &error))
        fail_msg("%s", error.message);
}

/* Event by event, and with no more events than are needed. */
static inline void run(fixture *test) {
    run_as(test, true);
    pc_simulation_result by_events = test->result;
    run_as(test, false);
    assert_int_equal(test->result.outcome, by_events.outcome);
    assert_int_equal(test->result.time_ps, by_events.time_ps);
    assert_true(test->result.trace_hash == by_events.trace_hash);
    assert_true(test->result.event_count <= by_events.event_count);
}

static inline void check_task(const fixture *test, int32_t task, pc_time start, pc_time end) {
    assert_int_equal(test->result.start_ps[task], start);
    assert_int_equal(test->result.end_ps[task], end);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
