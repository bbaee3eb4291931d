/* program_lines.h: a program built line by line, and run both ways. */
#ifndef PC_TESTS_PROGRAM_LINES_H
#define PC_TESTS_PROGRAM_LINES_H

#include "tests/program_fixture.h"

static inline int32_t add_processor(fixture *x, pc_processor_order order) {
    int32_t number;
    assert_int_equal(pc_program_add_processor(x->program, order, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_link(fixture *x, pc_time latency_ps, double bytes_per_ps) {
    int32_t number;
    pc_link link = {latency_ps, bytes_per_ps * 1e12, false};
    assert_int_equal(pc_program_add_link(x->program, &link, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_unshared_link(fixture *x, pc_time latency_ps, double bytes_per_ps) {
    int32_t number;
    pc_link link = {latency_ps, bytes_per_ps * 1e12, true};
    assert_int_equal(pc_program_add_link(x->program, &link, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_route(fixture *x, const int32_t *links, int32_t count) {
    int32_t number;
    assert_int_equal(pc_program_add_route(x->program, links, count, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_task(fixture *x, int32_t processor, pc_time duration_ps) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = processor;
    task.duration_ps = duration_ps;
    assert_int_equal(pc_program_add_task(x->program, &task, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_flow(fixture *x, int32_t route, int64_t bytes) {
    pc_task task = pc_task_default();
    int32_t number;
    task.route = route;
    task.flow_bytes = bytes;
    assert_int_equal(pc_program_add_task(x->program, &task, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_memory(fixture *x, int64_t capacity_bytes, pc_memory_policy policy) {
    int32_t memory;
    assert_int_equal(pc_program_add_memory(x->program, capacity_bytes, policy, &memory, NULL), PC_OK);
    return memory;
}

/* On a processor, too. */
static inline int32_t add_pass(fixture *x, int32_t processor, int32_t memory, pc_time duration_ps, int64_t take,
                               int64_t give) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = processor;
    task.memory = memory;
    task.duration_ps = duration_ps;
    task.take_bytes = take;
    task.give_bytes = give;
    assert_int_equal(pc_program_add_task(x->program, &task, &number, NULL), PC_OK);
    return number;
}

static inline int32_t add_memory_task(fixture *x, int32_t memory, pc_time duration_ps, int64_t take, int64_t give) {
    return add_pass(x, PC_NO_RESOURCE, memory, duration_ps, take, give);
}

static inline void add_edge(fixture *x, int32_t from, int32_t to, pc_time delay_ps) {
    assert_int_equal(pc_program_add_edge(x->program, from, to, delay_ps, NULL), PC_OK);
}

static inline void run_as(fixture *x, bool every_event) {
    pc_simulation_options options = {.with_trace = true, .every_event = every_event};
    pc_error error = {0};
    if (pc_program_seal(x->program, &error) ||
        pc_simulation_run(x->simulation, x->program, &options, &x->result, &error))
        fail_msg("%s", error.message);
}

/* Event by event, and with no more events than are needed. */
static inline void run(fixture *x) {
    run_as(x, true);
    pc_simulation_result by_events = x->result;
    run_as(x, false);
    assert_int_equal(x->result.outcome, by_events.outcome);
    assert_int_equal(x->result.time_ps, by_events.time_ps);
    assert_true(x->result.trace_hash == by_events.trace_hash);
    assert_true(x->result.event_count <= by_events.event_count);
}

static inline void check_task(const fixture *x, int32_t task, pc_time start, pc_time end) {
    assert_int_equal(x->result.start_ps[task], start);
    assert_int_equal(x->result.end_ps[task], end);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
