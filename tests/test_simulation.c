/* The engine's tasks and resources: cases worked out by hand, and max-min shares against their definition. */
#include "tests/program_fixture.h"

#include "engine/engine.h"
#include "engine/maxmin.h"

#include <math.h>

/* ---- a program built line by line ---- */

static int32_t add_processor(fixture *x, pc_processor_order order) {
    int32_t number;
    assert_int_equal(pc_program_add_processor(x->program, order, &number, NULL), PC_OK);
    return number;
}

static int32_t add_link(fixture *x, pc_time latency_ps, double bytes_per_ps) {
    int32_t number;
    pc_link link = {latency_ps, bytes_per_ps * 1e12, false};
    assert_int_equal(pc_program_add_link(x->program, &link, &number, NULL), PC_OK);
    return number;
}

static int32_t add_unshared_link(fixture *x, pc_time latency_ps, double bytes_per_ps) {
    int32_t number;
    pc_link link = {latency_ps, bytes_per_ps * 1e12, true};
    assert_int_equal(pc_program_add_link(x->program, &link, &number, NULL), PC_OK);
    return number;
}

static int32_t add_route(fixture *x, const int32_t *links, int32_t count) {
    int32_t number;
    assert_int_equal(pc_program_add_route(x->program, links, count, &number, NULL), PC_OK);
    return number;
}

static int32_t add_task(fixture *x, int32_t processor, pc_time duration_ps) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = processor;
    task.duration_ps = duration_ps;
    assert_int_equal(pc_program_add_task(x->program, &task, &number, NULL), PC_OK);
    return number;
}

static int32_t add_flow(fixture *x, int32_t route, int64_t bytes) {
    pc_task task = pc_task_default();
    int32_t number;
    task.route = route;
    task.flow_bytes = bytes;
    assert_int_equal(pc_program_add_task(x->program, &task, &number, NULL), PC_OK);
    return number;
}

static int32_t add_memory(fixture *x, int64_t capacity_bytes, pc_memory_policy policy) {
    int32_t memory;
    assert_int_equal(pc_program_add_memory(x->program, capacity_bytes, policy, &memory, NULL), PC_OK);
    return memory;
}

/* On a processor, too. */
static int32_t add_pass(fixture *x, int32_t processor, int32_t memory, pc_time duration_ps, int64_t take,
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

static int32_t add_memory_task(fixture *x, int32_t memory, pc_time duration_ps, int64_t take, int64_t give) {
    return add_pass(x, PC_NO_RESOURCE, memory, duration_ps, take, give);
}

static void add_edge(fixture *x, int32_t from, int32_t to, pc_time delay_ps) {
    assert_int_equal(pc_program_add_edge(x->program, from, to, delay_ps, NULL), PC_OK);
}

static void run_as(fixture *x, bool every_event) {
    pc_simulation_options options = {.with_trace = true, .every_event = every_event};
    pc_error error = {0};
    if (pc_program_seal(x->program, &error) ||
        pc_simulation_run(x->simulation, x->program, &options, &x->result, &error))
        fail_msg("%s", error.message);
}

/* Event by event, and with no more events than are needed. */
static void run(fixture *x) {
    run_as(x, true);
    pc_simulation_result by_events = x->result;
    run_as(x, false);
    assert_int_equal(x->result.outcome, by_events.outcome);
    assert_int_equal(x->result.time_ps, by_events.time_ps);
    assert_true(x->result.trace_hash == by_events.trace_hash);
    assert_true(x->result.event_count <= by_events.event_count);
}

static void check_task(const fixture *x, int32_t task, pc_time start, pc_time end) {
    assert_int_equal(x->result.start_ps[task], start);
    assert_int_equal(x->result.end_ps[task], end);
}

/* ---- processors ---- */

/* In order: b (ready at 0) waits behind a, which waits for c on another processor. */
static void test_in_order(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER), q = add_processor(x, PC_PROCESSOR_IN_ORDER);
    int32_t a = add_task(x, p, 5), b = add_task(x, p, 2), c = add_task(x, q, 10);
    add_edge(x, c, a, 3);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    check_task(x, c, 0, 10);
    check_task(x, a, 13, 18);
    check_task(x, b, 18, 20);
    assert_int_equal(x->result.ready_ps[a], 13);
    assert_int_equal(x->result.ready_ps[b], 0);
}

/* First come: the same program, and b need not wait. */
static void test_first_come(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_FIRST_COME), q = add_processor(x, PC_PROCESSOR_IN_ORDER);
    int32_t a = add_task(x, p, 5), b = add_task(x, p, 2), c = add_task(x, q, 10), d = add_task(x, p, 20);
    int32_t e = add_task(x, p, 1);
    add_edge(x, c, a, 3);
    add_edge(x, c, e, 2);
    run(x);
    check_task(x, b, 0, 2);
    check_task(x, d, 2, 22);
    check_task(x, e, 22, 23); /* ready at 12, before a's 13 */
    check_task(x, a, 23, 28);
}

static void test_deadlock(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER);
    int32_t a = add_task(x, p, 1), b = add_task(x, p, 1);
    add_edge(x, b, a, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DEADLOCK);
    assert_int_equal(x->result.task, a);
}

/* A task without resources, zero durations, and an empty program are all in order. */
static void test_trivial_programs(void **state) {
    fixture *x = *state;
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    pc_program_clear(x->program);
    int32_t a = add_task(x, PC_NO_RESOURCE, 0), b = add_task(x, PC_NO_RESOURCE, 4);
    add_edge(x, a, b, 0);
    run(x);
    check_task(x, a, 0, 0);
    check_task(x, b, 0, 4);
}

/* ---- memory ---- */

/* Given back at 4 is there for what starts at 4: 6 + 4 of 10, then 6 gone and 6 taken again. */
static void test_memory(void **state) {
    fixture *x = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(x->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t late = add_memory_task(x, memory, 1, 6, 6), first = add_memory_task(x, memory, 4, 6, 6);
    add_memory_task(x, memory, 9, 4, 4);
    int32_t clock = add_task(x, PC_NO_RESOURCE, 4);
    add_edge(x, clock, late, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    check_task(x, first, 0, 4);
    check_task(x, late, 4, 5);
    assert_int_equal(x->result.peak_bytes[memory], 10);
    assert_int_equal(x->result.levels.count, 6);
    static const int64_t levels[] = {6, 10, 4, 10, 4, 0};
    for (int i = 0; i < 6; i++) assert_int_equal(x->result.levels.level_bytes[i], levels[i]);
}

/* The same where the start of the task that waits was noted long before: its delay runs from 0, and what gives back at
 * 4 was begun later. */
static void test_memory_given_back_at_the_same_instant(void **state) {
    fixture *x = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(x->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t first = add_task(x, PC_NO_RESOURCE, 0), late = add_memory_task(x, memory, 1, 10, 10);
    add_edge(x, first, late, 4);
    int32_t clock = add_task(x, PC_NO_RESOURCE, 1);
    add_edge(x, clock, add_memory_task(x, memory, 3, 10, 10), 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    check_task(x, late, 4, 5);
}

/* A task that gives back what nobody took is the program's fault. */
static void test_gives_back_too_much(void **state) {
    fixture *x = *state;
    int32_t memory;
    pc_error error = {0};
    assert_int_equal(pc_program_add_memory(x->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    add_memory_task(x, memory, 1, 3, 4);
    assert_int_equal(pc_program_seal(x->program, NULL), PC_OK);
    assert_int_equal(pc_simulation_run(x->simulation, x->program, NULL, &x->result, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "task 0: gives back more bytes than its memory holds; expected at most those");
}

/* A task that had not started when the memory ran out, though its start was known, has none. */
static void test_no_start_after_out_of_memory(void **state) {
    fixture *x = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(x->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t first = add_task(x, PC_NO_RESOURCE, 1), later = add_task(x, PC_NO_RESOURCE, 5);
    add_edge(x, first, later, 100);
    int32_t big = add_memory_task(x, memory, 1, 11, 11);
    add_edge(x, first, big, 1);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    check_task(x, first, 0, 1);
    check_task(x, later, -1, -1);
}

/* Two ask for too much at one instant: that which is added first is told of, though it gets to ask last, and what fits
 * at that instant has started. */
static void test_out_of_memory_at_one_instant(void **state) {
    fixture *x = *state;
    int32_t memory = add_memory(x, 10, PC_MEMORY_FAIL), other = add_memory(x, 10, PC_MEMORY_FAIL);
    int32_t first = add_memory_task(x, memory, 4, 11, 0);
    add_memory_task(x, other, 4, 12, 0);
    int32_t clock = add_task(x, PC_NO_RESOURCE, 0), fits = add_memory_task(x, other, 4, 3, 0);
    add_edge(x, clock, first, 0);
    add_edge(x, clock, fits, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(x->result.task, first);
    assert_int_equal(x->result.time_ps, 0);
    assert_int_equal(x->result.peak_bytes[other], 3);
    check_task(x, fits, 0, -1);
}

static void test_out_of_memory(void **state) {
    fixture *x = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(x->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t a = add_memory_task(x, memory, 4, 6, 0), b = add_memory_task(x, memory, 4, 5, 0);
    add_edge(x, a, b, 1);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(x->result.task, b);
    assert_int_equal(x->result.time_ps, 5);
    assert_int_equal(x->result.level_bytes, 6);
}

/* The same program goes on where a level beyond the capacity is but noted: 6 of 10 from 0 on, 11 from 5. */
static void test_memory_is_overdrawn(void **state) {
    fixture *x = *state;
    int32_t memory = add_memory(x, 10, PC_MEMORY_NOTE), other = add_memory(x, 10, PC_MEMORY_NOTE);
    int32_t a = add_memory_task(x, memory, 4, 6, 0), b = add_memory_task(x, memory, 4, 5, 5);
    int32_t c = add_memory_task(x, memory, 1, 5, 0);
    add_memory_task(x, other, 1, 10, 10);
    add_edge(x, a, b, 1);
    add_edge(x, b, c, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    check_task(x, b, 5, 9);
    check_task(x, c, 9, 10);
    assert_int_equal(x->result.overdrawn_ps[memory], 5);
    assert_int_equal(x->result.overdrawn_ps[other], -1);
    assert_int_equal(x->result.peak_bytes[memory], 11);
    pc_program_clear(x->program); /* what no number can hold ends even that */
    memory = add_memory(x, 10, PC_MEMORY_NOTE);
    a = add_memory_task(x, memory, 1, INT64_MAX, 0);
    b = add_memory_task(x, memory, 1, 1, 0);
    add_edge(x, a, b, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(x->result.task, b);
}

/* Four forward passes of 1 and their backward passes of 2, GPipe's order, each pass taking 4 of 8: f0 and f1 fit; f2
 * and f3 are put aside, and b0 is next. What it gives back is f2's at once, though b1 is ready, too; then b1's f3's. */
static void test_waits_for_memory(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER), memory = add_memory(x, 8, PC_MEMORY_WAIT), f[4], b[4];
    for (int i = 0; i < 4; i++) f[i] = add_pass(x, p, memory, 1, 4, 0);
    for (int i = 0; i < 4; i++) b[i] = add_pass(x, p, memory, 2, 0, 4);
    for (int i = 0; i < 4; i++) add_edge(x, f[i], b[i], 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    check_task(x, f[0], 0, 1);
    check_task(x, f[1], 1, 2);
    check_task(x, b[0], 2, 4);
    check_task(x, f[2], 4, 5);
    check_task(x, b[1], 5, 7);
    check_task(x, f[3], 7, 8);
    check_task(x, b[2], 8, 10);
    check_task(x, b[3], 10, 12);
    assert_int_equal(x->result.ready_ps[f[3]], 0);
    assert_int_equal(x->result.peak_bytes[memory], 8);
    assert_int_equal(x->result.time_ps, 12);
}

/* The next one of the order that is not ready keeps the processor waiting, until what was put aside can go: a holds 6
 * of 10 to 5, b wants 6; c waits for a clock at 20, and d, ready at 0, behind it. */
static void test_order_stands_behind_what_waits(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER), memory = add_memory(x, 10, PC_MEMORY_WAIT);
    int32_t a = add_memory_task(x, memory, 5, 6, 6), b = add_pass(x, p, memory, 30, 6, 6);
    int32_t c = add_task(x, p, 1), d = add_task(x, p, 1), clock = add_task(x, PC_NO_RESOURCE, 0);
    add_edge(x, clock, c, 20);
    run(x);
    check_task(x, a, 0, 5);
    check_task(x, b, 5, 35);
    check_task(x, c, 35, 36);
    check_task(x, d, 36, 37);
    assert_int_equal(x->result.ready_ps[c], 20);
}

/* Stages a and b; b's second task waits for a's second, which waits for memory that only b's third task, through a's
 * third, gives back. a: 10 of 10 at 0 to 1, then 10 more asked at 1. b: 1 to 2; then passes over what is held up, 2
 * to 3. So a's third, 3 to 4, gives back; its second 4 to 5; b's second 5 to 6. */
static void test_passes_over_what_is_held_up(void **state) {
    fixture *x = *state;
    int32_t a = add_processor(x, PC_PROCESSOR_IN_ORDER), b = add_processor(x, PC_PROCESSOR_IN_ORDER);
    int32_t memory = add_memory(x, 10, PC_MEMORY_WAIT);
    int32_t a0 = add_pass(x, a, memory, 1, 10, 0), a1 = add_pass(x, a, memory, 1, 10, 10);
    int32_t a2 = add_pass(x, a, memory, 1, 0, 10), b0 = add_task(x, b, 1), b1 = add_task(x, b, 1);
    int32_t b2 = add_task(x, b, 1), message = add_task(x, PC_NO_RESOURCE, 0);
    add_edge(x, a0, b0, 0);
    add_edge(x, a1, message, 0); /* through another one */
    add_edge(x, message, b1, 0);
    add_edge(x, b0, b2, 0);
    add_edge(x, b2, a2, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    check_task(x, b0, 1, 2);
    check_task(x, b2, 2, 3);
    check_task(x, a2, 3, 4);
    check_task(x, a1, 4, 5);
    check_task(x, b1, 5, 6);
}

/* What goes on with a task that is put aside comes with it, and nothing in between: at 1 the second pass, of 1 + 2,
 * asks in vain; the third, 1 to 2, gives back; then both pieces, 2 to 3 to 5, and only then the last, which was ready
 * at 0. */
static void test_pieces_stay_together(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER), memory = add_memory(x, 10, PC_MEMORY_WAIT), piece;
    pc_task task = pc_task_default();
    add_pass(x, p, memory, 1, 10, 0);
    int32_t whole = add_pass(x, p, memory, 1, 10, 0);
    task.processor = p;
    task.memory = memory;
    task.duration_ps = 2;
    task.give_bytes = 10;
    task.goes_on = true;
    assert_int_equal(pc_program_add_task(x->program, &task, &piece, NULL), PC_OK);
    int32_t gives = add_pass(x, p, memory, 1, 0, 10), last = add_task(x, p, 1);
    run(x);
    check_task(x, gives, 1, 2);
    check_task(x, whole, 2, 3);
    check_task(x, piece, 3, 5);
    check_task(x, last, 5, 6);
}

/* Two processors, one first come, that wait for one memory; and a task that waits for it without a processor. All ask
 * at 1 for 6 of 10, of which 8 are held to 4: in the order of their asking, one after the other, each for 2. The second
 * processor does what takes nothing meanwhile. */
static void test_one_memory_of_many(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER), q = add_processor(x, PC_PROCESSOR_FIRST_COME);
    int32_t memory = add_memory(x, 10, PC_MEMORY_WAIT), clock = add_task(x, PC_NO_RESOURCE, 1);
    add_memory_task(x, memory, 4, 8, 8);
    int32_t a = add_pass(x, p, memory, 2, 6, 6), b = add_pass(x, q, memory, 2, 6, 6), c = add_task(x, q, 1);
    int32_t d = add_memory_task(x, memory, 2, 6, 6), asking[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) add_edge(x, clock, asking[i], 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
    check_task(x, c, 1, 2);
    check_task(x, a, 4, 6);
    check_task(x, b, 6, 8);
    check_task(x, d, 8, 10);
}

/* A processor whose tasks wait for two memories takes up the one that was put aside first, where both have room. */
static void test_many_memories_of_one(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER);
    int32_t m = add_memory(x, 10, PC_MEMORY_WAIT), n = add_memory(x, 10, PC_MEMORY_WAIT);
    add_memory_task(x, m, 4, 8, 8);
    add_memory_task(x, n, 5, 8, 8);
    int32_t a = add_pass(x, p, n, 2, 6, 6), b = add_pass(x, p, m, 2, 6, 6), c = add_task(x, p, 6);
    run(x);
    check_task(x, c, 0, 6);
    check_task(x, a, 6, 8);
    check_task(x, b, 8, 10);
}

/* f1 waits for what b0 gives back, and b0 for f1: nothing goes on after 3, when 4 of 6 are taken. What nobody can hold
 * is found when it is asked for. A circle is still one, where nobody waits for memory. */
static void test_waits_for_ever(void **state) {
    fixture *x = *state;
    int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER), memory = add_memory(x, 6, PC_MEMORY_WAIT);
    add_pass(x, p, memory, 3, 4, 0);
    int32_t f1 = add_pass(x, p, memory, 3, 4, 0), b0 = add_pass(x, p, memory, 3, 0, 4);
    add_edge(x, f1, b0, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(x->result.task, f1);
    assert_int_equal(x->result.time_ps, 3);
    assert_int_equal(x->result.level_bytes, 4);
    check_task(x, f1, -1, -1);
    assert_int_equal(x->result.ready_ps[f1], 0);
    assert_int_equal(x->result.ready_ps[b0], -1);
    pc_program_clear(x->program);
    memory = add_memory(x, 6, PC_MEMORY_WAIT);
    int32_t a = add_memory_task(x, memory, 1, 2, 2), b = add_memory_task(x, memory, 1, 2, 2);
    add_edge(x, a, b, 0);
    add_edge(x, b, a, 0);
    run(x);
    assert_int_equal(x->result.outcome, PC_OUTCOME_DEADLOCK);
}

/* ---- links ---- */

/* Alone: latency 7, 100 bytes at 4 a picosecond: 32. Over a second, slower link with latency 3: 10 + 100/2. */
static void test_flow_alone(void **state) {
    fixture *x = *state;
    int32_t links[] = {add_link(x, 7, 4.0), add_link(x, 3, 2.0)};
    int32_t a = add_flow(x, add_route(x, links, 1), 100);
    int32_t b = add_flow(x, add_route(x, links, 2), 100), none = add_flow(x, 0, 0);
    add_edge(x, a, b, 0);
    add_edge(x, b, none, 0);
    run(x);
    check_task(x, a, 0, 32);
    check_task(x, b, 32, 92);
    check_task(x, none, 92, 99); /* no bytes: the latency only */
}

/* Two flows of 100 bytes on a link of 4 a picosecond, the second 10 later: 10 alone at 4 (40 done), then 2 each: the
 * first's 60 take 30, to 40; the second has 60 of its 100 by then and 40 left at 4: to 50. */
static void test_flows_share(void **state) {
    fixture *x = *state;
    int32_t link = add_link(x, 0, 4.0), route = add_route(x, &link, 1);
    int32_t a = add_flow(x, route, 100), b = add_flow(x, route, 100), clock = add_task(x, PC_NO_RESOURCE, 10);
    add_edge(x, clock, b, 0);
    run(x);
    check_task(x, a, 0, 40);
    check_task(x, b, 10, 50);
    assert_int_equal(x->result.loads.count, 2); /* full from the first's beginning to the second's end */
    assert_true(x->result.loads.bytes_per_s[0] == 4e12);
    assert_true(x->result.loads.bytes_per_s[1] == 0.0);
    assert_int_equal(x->result.loads.time_ps[1], 50);
}

/* The textbook's three flows: one over both links (capacity 2 and 6), one on each. The long one and its neighbour on
 * the tight link get 1 each, the other one the 5 that are left. All have 60 bytes: that one ends at 12, those at 60. */
static void test_flows_max_min(void **state) {
    fixture *x = *state;
    int32_t links[] = {add_link(x, 0, 2.0), add_link(x, 0, 6.0)};
    int32_t both = add_flow(x, add_route(x, links, 2), 60);
    int32_t tight = add_flow(x, add_route(x, links, 1), 60), wide = add_flow(x, add_route(x, links + 1, 1), 60);
    run(x);
    check_task(x, wide, 0, 12);
    check_task(x, both, 0, 60);
    check_task(x, tight, 0, 60);
}

/* Two flows of 100 bytes on an unshared link of 4 a picosecond, the second 10 later: 25 each, and 8 a picosecond go
 * over it meanwhile. A third, over it and a shared link of 6, shares that one with a fourth of 100: 3 each. */
static void test_unshared_link(void **state) {
    fixture *x = *state;
    int32_t links[] = {add_unshared_link(x, 0, 4.0), add_link(x, 0, 6.0)};
    int32_t alone = add_route(x, links, 1), both = add_route(x, links, 2), shared = add_route(x, links + 1, 1);
    int32_t a = add_flow(x, alone, 100), b = add_flow(x, alone, 100), clock = add_task(x, PC_NO_RESOURCE, 10);
    int32_t later = add_task(x, PC_NO_RESOURCE, 100), c = add_flow(x, both, 90), d = add_flow(x, shared, 120);
    add_edge(x, clock, b, 0);
    add_edge(x, later, c, 0);
    add_edge(x, later, d, 0);
    run(x);
    check_task(x, a, 0, 25);
    check_task(x, b, 10, 35);
    check_task(x, c, 100, 130);
    check_task(x, d, 100, 135); /* 90 by 130, 30 more at 6 */
    static const pc_time times[] = {0, 10, 25, 35, 100, 130};
    static const double loads[] = {4e12, 8e12, 4e12, 0, 3e12, 0};
    int64_t row = 0;
    for (int64_t i = 0; i < x->result.loads.count; i++) {
        if (x->result.loads.link[i] != links[0]) continue;
        assert_int_equal(x->result.loads.time_ps[i], times[row]);
        assert_true(x->result.loads.bytes_per_s[i] == loads[row++]);
    }
    assert_int_equal(row, 6);
}

/* An unshared link bounds what goes on over shared ones: 1 a picosecond for the first flow, 5 for the other on the
 * shared link of 6. A flow that lasts no picosecond ends all the same. */
static void test_unshared_link_bounds(void **state) {
    fixture *x = *state;
    int32_t links[] = {add_unshared_link(x, 3, 1.0), add_link(x, 0, 6.0)};
    int32_t both = add_route(x, links, 2), shared = add_route(x, links + 1, 1);
    int32_t fast[] = {add_unshared_link(x, 0, 9.0)};
    int32_t a = add_flow(x, both, 60), b = add_flow(x, shared, 60), c = add_flow(x, add_route(x, fast, 1), 1);
    int32_t clock = add_task(x, PC_NO_RESOURCE, 3);
    add_edge(x, clock, b, 0);
    run(x);
    check_task(x, a, 0, 63);
    check_task(x, b, 3, 15);
    check_task(x, c, 0, 0);
}

/* ---- max-min shares against their definition ---- */

enum { FLOWS_MAX = 12, LINKS_MAX = 8 };

typedef struct network {
    int32_t flow_count, link_count, offset[FLOWS_MAX + 1], route[FLOWS_MAX * LINKS_MAX];
    double capacity[LINKS_MAX], rate[FLOWS_MAX];
} network;

static void draw_network(test_random *random, network *n) {
    n->flow_count = (int32_t)test_between(random, 1, FLOWS_MAX);
    n->link_count = (int32_t)test_between(random, 1, LINKS_MAX);
    n->offset[0] = 0;
    for (int32_t l = 0; l < n->link_count; l++) n->capacity[l] = (double)test_between(random, 1, 50);
    for (int32_t f = 0; f < n->flow_count; f++) {
        int32_t end = n->offset[f];
        for (int32_t l = 0; l < n->link_count; l++)
            if (test_between(random, 0, 2) == 0) n->route[end++] = l;
        if (end == n->offset[f]) n->route[end++] = (int32_t)test_between(random, 0, n->link_count - 1);
        n->offset[f + 1] = end;
    }
}

static double load_of(const network *n, int32_t link) {
    double load = 0.0;
    for (int32_t f = 0; f < n->flow_count; f++)
        for (int32_t i = n->offset[f]; i < n->offset[f + 1]; i++)
            if (n->route[i] == link) load += n->rate[f];
    return load;
}

static bool is_largest_on(const network *n, int32_t flow, int32_t link) {
    for (int32_t f = 0; f < n->flow_count; f++)
        for (int32_t i = n->offset[f]; i < n->offset[f + 1]; i++)
            if (n->route[i] == link && n->rate[f] > n->rate[flow] * (1 + 1e-9)) return false;
    return true;
}

/* Rates are max-min fair exactly where no link is overloaded and every flow has a bottleneck: a full link on which none
 * gets more than it does (Bertsekas and Gallager, section 6.5.2). The solution is unique. */
static void test_max_min_conditions(void **state) {
    (void)state;
    test_random random = {5};
    for (long k = 0; k < test_cases(5000); k++) {
        network n;
        double left[LINKS_MAX];
        int32_t waiting[LINKS_MAX];
        draw_network(&random, &n);
        pc_maxmin_rates(n.flow_count, n.offset, n.route, n.link_count, n.capacity, n.rate, left, waiting);
        for (int32_t l = 0; l < n.link_count; l++) assert_true(load_of(&n, l) <= n.capacity[l] * (1 + 1e-9));
        for (int32_t f = 0; f < n.flow_count; f++) {
            bool has_bottleneck = false;
            for (int32_t i = n.offset[f]; i < n.offset[f + 1]; i++)
                has_bottleneck |=
                    load_of(&n, n.route[i]) >= n.capacity[n.route[i]] * (1 - 1e-9) && is_largest_on(&n, f, n.route[i]);
            assert_true(has_bottleneck);
        }
    }
}

/* Random flows at random times: every link's load stays within its capacity, all bytes arrive, and the integral of the
 * loads is the bytes that went over the link. */
static void test_flows_conserve_bytes(void **state) {
    fixture *x = *state;
    test_random random = {6};
    for (long k = 0; k < test_cases(300); k++) {
        network n;
        double sent[LINKS_MAX] = {0}, carried[LINKS_MAX] = {0}, load[LINKS_MAX] = {0}, since[LINKS_MAX] = {0};
        draw_network(&random, &n);
        pc_program_clear(x->program);
        for (int32_t l = 0; l < n.link_count; l++) add_link(x, 0, n.capacity[l]);
        for (int32_t f = 0; f < n.flow_count; f++) {
            int64_t bytes = test_between(&random, 0, 1000000);
            int32_t route = add_route(x, n.route + n.offset[f], n.offset[f + 1] - n.offset[f]);
            int32_t clock = add_task(x, PC_NO_RESOURCE, test_between(&random, 0, 20000));
            add_edge(x, clock, add_flow(x, route, bytes), 0);
            for (int32_t i = n.offset[f]; i < n.offset[f + 1]; i++) sent[n.route[i]] += (double)bytes;
        }
        run(x);
        assert_int_equal(x->result.outcome, PC_OUTCOME_DONE);
        for (int64_t i = 0; i < x->result.loads.count; i++) {
            int32_t l = x->result.loads.link[i];
            carried[l] += load[l] * ((double)x->result.loads.time_ps[i] - since[l]);
            since[l] = (double)x->result.loads.time_ps[i];
            load[l] = x->result.loads.bytes_per_s[i] * 1e-12;
            assert_true(load[l] <= n.capacity[l] * (1 + 1e-9));
        }
        for (int32_t l = 0; l < n.link_count; l++) { /* each end is rounded to a picosecond */
            assert_true(fabs(load[l]) < 1e-9);
            assert_true(fabs(carried[l] - sent[l]) <= n.capacity[l] * 2 * FLOWS_MAX);
        }
    }
}

/* ---- determinism, reuse, bad programs ---- */

/* The hash does not depend on what the simulation ran before, and tells one picosecond. */
static void test_hash(void **state) {
    fixture *x = *state;
    uint64_t hashes[3];
    for (int k = 0; k < 3; k++) {
        pc_program_clear(x->program);
        int32_t p = add_processor(x, PC_PROCESSOR_IN_ORDER);
        add_task(x, p, 5);
        add_task(x, p, k == 1 ? 6 : 5);
        run(x);
        hashes[k] = x->result.trace_hash;
    }
    assert_true(hashes[0] == hashes[2]);
    assert_true(hashes[0] != hashes[1]);
}

/* Starts count too: 0 to 5, and 2 to 5. */
static void test_hash_of_starts(void **state) {
    fixture *x = *state;
    uint64_t hashes[2];
    for (int k = 0; k < 2; k++) {
        pc_program_clear(x->program);
        int32_t first = add_task(x, PC_NO_RESOURCE, 0);
        add_edge(x, first, add_task(x, PC_NO_RESOURCE, 5 - 2 * k), 2 * k);
        run(x);
        assert_int_equal(x->result.end_ps[1], 5);
        hashes[k] = x->result.trace_hash;
    }
    assert_true(hashes[0] != hashes[1]);
}

static void expect_refused(fixture *x, const char *words) {
    pc_error error = {0};
    assert_int_equal(pc_program_seal(x->program, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("%s", error.message);
    pc_program_clear(x->program);
}

static void test_bad_programs(void **state) {
    fixture *x = *state;
    pc_error error = {0};
    add_task(x, 3, 1);
    expect_refused(x, "task 0");
    add_task(x, PC_NO_RESOURCE, -1);
    expect_refused(x, "task 0");
    add_edge(x, add_task(x, PC_NO_RESOURCE, 1), 7, 0);
    expect_refused(x, "edge 0: from task 0 to task 7");
    pc_link link = {0, 0.0, false};
    int32_t number;
    assert_int_equal(pc_program_add_link(x->program, &link, &number, &error), PC_ERROR_INPUT);
    link.bandwidth_bytes_per_s = INFINITY;
    assert_int_equal(pc_program_add_link(x->program, &link, &number, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_program_seal(x->program, NULL), PC_OK);
    add_task(x, PC_NO_RESOURCE, 1); /* which breaks the seal */
    assert_int_equal(pc_program_add_route(x->program, NULL, 0, &number, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_program_add_memory(x->program, -1, PC_MEMORY_FAIL, &number, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_simulation_run(x->simulation, x->program, NULL, &x->result, &error), PC_ERROR_INPUT);
}

/* ---- the engine below ---- */

static void count_event(pc_engine *engine, const pc_event *event, void *context) {
    int *count = context;
    if (++*count == 3) pc_engine_stop(engine);
    pc_engine_post(engine, (pc_time)event->data, 0, event, NULL);
}

/* An event every 10: three, then stop; on to 55: at 40 and 50; the next is pending. */
static void test_engine_run_until(void **state) {
    (void)state;
    pc_engine *engine;
    int count = 0;
    pc_event event = {0, 0, 10};
    assert_int_equal(pc_engine_create(0, &engine, NULL), PC_OK);
    pc_engine_set_handler(engine, 0, count_event, &count);
    pc_engine_post(engine, 10, 0, &event, NULL);
    assert_int_equal(pc_engine_run(engine, PC_TIME_MAX, NULL), PC_OK);
    assert_int_equal(count, 3);
    assert_int_equal(pc_engine_now(engine), 30);
    assert_int_equal(pc_engine_run(engine, 55, NULL), PC_OK);
    assert_int_equal(count, 5);
    assert_int_equal(pc_engine_now(engine), 50);
    assert_int_equal(pc_engine_run(engine, 60, NULL), PC_OK); /* an event at `until` is handled */
    assert_int_equal(count, 6);
    assert_int_equal(pc_engine_event_count(engine), 6);
    pc_engine_free(engine);
}

static void test_engine_time_runs_over(void **state) {
    (void)state;
    pc_engine *engine;
    int count = 10;
    pc_error error = {0};
    pc_event event = {0, 0, (uint64_t)(PC_TIME_MAX / 2 + 2)};
    assert_int_equal(pc_engine_create(0, &engine, NULL), PC_OK);
    pc_engine_set_handler(engine, 0, count_event, &count);
    pc_engine_post(engine, 0, 0, &event, NULL);
    assert_int_equal(pc_engine_run(engine, PC_TIME_MAX, &error), PC_ERROR_INPUT);
    assert_int_equal(count, 12);
    pc_engine_clear(engine); /* a fault does not outlive it */
    assert_int_equal(pc_engine_run(engine, PC_TIME_MAX, &error), PC_OK);
    pc_engine_free(engine);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_in_order),
        WITH_FIXTURE(test_first_come),
        WITH_FIXTURE(test_deadlock),
        WITH_FIXTURE(test_trivial_programs),
        WITH_FIXTURE(test_memory),
        WITH_FIXTURE(test_memory_given_back_at_the_same_instant),
        WITH_FIXTURE(test_gives_back_too_much),
        WITH_FIXTURE(test_out_of_memory),
        WITH_FIXTURE(test_out_of_memory_at_one_instant),
        WITH_FIXTURE(test_no_start_after_out_of_memory),
        WITH_FIXTURE(test_memory_is_overdrawn),
        WITH_FIXTURE(test_waits_for_memory),
        WITH_FIXTURE(test_order_stands_behind_what_waits),
        WITH_FIXTURE(test_passes_over_what_is_held_up),
        WITH_FIXTURE(test_pieces_stay_together),
        WITH_FIXTURE(test_one_memory_of_many),
        WITH_FIXTURE(test_many_memories_of_one),
        WITH_FIXTURE(test_waits_for_ever),
        WITH_FIXTURE(test_flow_alone),
        WITH_FIXTURE(test_flows_share),
        WITH_FIXTURE(test_flows_max_min),
        WITH_FIXTURE(test_unshared_link),
        WITH_FIXTURE(test_unshared_link_bounds),
        cmocka_unit_test(test_max_min_conditions),
        WITH_FIXTURE(test_flows_conserve_bytes),
        WITH_FIXTURE(test_hash),
        WITH_FIXTURE(test_hash_of_starts),
        WITH_FIXTURE(test_bad_programs),
        cmocka_unit_test(test_engine_run_until),
        cmocka_unit_test(test_engine_time_runs_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
