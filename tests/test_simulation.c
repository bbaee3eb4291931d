/* The engine's tasks, processors and memories: cases worked out by hand. */
#include "tests/program_lines.h"

#include "engine/engine.h"

#include <math.h>

/* ---- processors ---- */

/* In order: b (ready at 0) waits behind a, which waits for c on another processor. */
static void test_in_order(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER), q = add_processor(test, PC_PROCESSOR_IN_ORDER);
    int32_t a = add_task(test, p, 5), b = add_task(test, p, 2), c = add_task(test, q, 10);
    add_edge(test, c, a, 3);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    check_task(test, c, 0, 10);
    check_task(test, a, 13, 18);
    check_task(test, b, 18, 20);
    assert_int_equal(test->result.ready_ps[a], 13);
    assert_int_equal(test->result.ready_ps[b], 0);
}

/* First come: the same program, and b need not wait. */
static void test_first_come(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_FIRST_COME), q = add_processor(test, PC_PROCESSOR_IN_ORDER);
    int32_t a = add_task(test, p, 5), b = add_task(test, p, 2), c = add_task(test, q, 10), d = add_task(test, p, 20);
    int32_t e = add_task(test, p, 1);
    add_edge(test, c, a, 3);
    add_edge(test, c, e, 2);
    run(test);
    check_task(test, b, 0, 2);
    check_task(test, d, 2, 22);
    check_task(test, e, 22, 23); /* ready at 12, before a's 13 */
    check_task(test, a, 23, 28);
}

static void test_deadlock(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER);
    int32_t a = add_task(test, p, 1), b = add_task(test, p, 1);
    add_edge(test, b, a, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DEADLOCK);
    assert_int_equal(test->result.task, a);
}

/* A task without resources, zero durations, and an empty program are all in order. */
static void test_trivial_programs(void **state) {
    fixture *test = *state;
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    pc_program_clear(test->program);
    int32_t a = add_task(test, PC_NO_RESOURCE, 0), b = add_task(test, PC_NO_RESOURCE, 4);
    add_edge(test, a, b, 0);
    run(test);
    check_task(test, a, 0, 0);
    check_task(test, b, 0, 4);
}

/* ---- memory ---- */

/* Given back at 4 is there for what starts at 4: 6 + 4 of 10, then 6 gone and 6 taken again. */
static void test_memory(void **state) {
    fixture *test = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(test->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t late = add_memory_task(test, memory, 1, 6, 6), first = add_memory_task(test, memory, 4, 6, 6);
    add_memory_task(test, memory, 9, 4, 4);
    int32_t clock = add_task(test, PC_NO_RESOURCE, 4);
    add_edge(test, clock, late, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    check_task(test, first, 0, 4);
    check_task(test, late, 4, 5);
    assert_int_equal(test->result.peak_bytes[memory], 10);
    assert_int_equal(test->result.levels.count, 6);
    static const int64_t levels[] = {6, 10, 4, 10, 4, 0};
    for (int i = 0; i < 6; i++) assert_int_equal(test->result.levels.level_bytes[i], levels[i]);
}

/* The same where the start of the task that waits was noted long before: its delay runs from 0, and what gives back at
 * 4 was begun later. */
static void test_memory_given_back_at_the_same_instant(void **state) {
    fixture *test = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(test->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t first = add_task(test, PC_NO_RESOURCE, 0), late = add_memory_task(test, memory, 1, 10, 10);
    add_edge(test, first, late, 4);
    int32_t clock = add_task(test, PC_NO_RESOURCE, 1);
    add_edge(test, clock, add_memory_task(test, memory, 3, 10, 10), 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    check_task(test, late, 4, 5);
}

/* A task that gives back what nobody took is the program's fault. */
static void test_gives_back_too_much(void **state) {
    fixture *test = *state;
    int32_t memory;
    pc_error error = {0};
    assert_int_equal(pc_program_add_memory(test->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    add_memory_task(test, memory, 1, 3, 4);
    assert_int_equal(pc_program_seal(test->program, NULL), PC_OK);
    assert_int_equal(pc_simulation_run(test->simulation, test->program, NULL, &test->result, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "task 0: gives back more bytes than its memory holds; expected at most those");
}

/* A task that had not started when the memory ran out, though its start was known, has none. */
static void test_no_start_after_out_of_memory(void **state) {
    fixture *test = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(test->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t first = add_task(test, PC_NO_RESOURCE, 1), later = add_task(test, PC_NO_RESOURCE, 5);
    add_edge(test, first, later, 100);
    int32_t big = add_memory_task(test, memory, 1, 11, 11);
    add_edge(test, first, big, 1);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    check_task(test, first, 0, 1);
    check_task(test, later, -1, -1);
}

/* Two ask for too much at one instant: that which is added first is told of, though it gets to ask last, and what fits
 * at that instant has started. */
static void test_out_of_memory_at_one_instant(void **state) {
    fixture *test = *state;
    int32_t memory = add_memory(test, 10, PC_MEMORY_FAIL), other = add_memory(test, 10, PC_MEMORY_FAIL);
    int32_t first = add_memory_task(test, memory, 4, 11, 0);
    add_memory_task(test, other, 4, 12, 0);
    int32_t clock = add_task(test, PC_NO_RESOURCE, 0), fits = add_memory_task(test, other, 4, 3, 0);
    add_edge(test, clock, first, 0);
    add_edge(test, clock, fits, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(test->result.task, first);
    assert_int_equal(test->result.time_ps, 0);
    assert_int_equal(test->result.peak_bytes[other], 3);
    check_task(test, fits, 0, -1);
}

static void test_out_of_memory(void **state) {
    fixture *test = *state;
    int32_t memory;
    assert_int_equal(pc_program_add_memory(test->program, 10, PC_MEMORY_FAIL, &memory, NULL), PC_OK);
    int32_t a = add_memory_task(test, memory, 4, 6, 0), b = add_memory_task(test, memory, 4, 5, 0);
    add_edge(test, a, b, 1);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(test->result.task, b);
    assert_int_equal(test->result.time_ps, 5);
    assert_int_equal(test->result.level_bytes, 6);
}

/* The same program goes on where a level beyond the capacity is but noted: 6 of 10 from 0 on, 11 from 5. */
static void test_memory_is_overdrawn(void **state) {
    fixture *test = *state;
    int32_t memory = add_memory(test, 10, PC_MEMORY_NOTE), other = add_memory(test, 10, PC_MEMORY_NOTE);
    int32_t a = add_memory_task(test, memory, 4, 6, 0), b = add_memory_task(test, memory, 4, 5, 5);
    int32_t c = add_memory_task(test, memory, 1, 5, 0);
    add_memory_task(test, other, 1, 10, 10);
    add_edge(test, a, b, 1);
    add_edge(test, b, c, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    check_task(test, b, 5, 9);
    check_task(test, c, 9, 10);
    assert_int_equal(test->result.overdrawn_ps[memory], 5);
    assert_int_equal(test->result.overdrawn_ps[other], -1);
    assert_int_equal(test->result.peak_bytes[memory], 11);
    pc_program_clear(test->program); /* what no number can hold ends even that */
    memory = add_memory(test, 10, PC_MEMORY_NOTE);
    a = add_memory_task(test, memory, 1, INT64_MAX, 0);
    b = add_memory_task(test, memory, 1, 1, 0);
    add_edge(test, a, b, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(test->result.task, b);
}

/* Four forward passes of 1 and their backward passes of 2, GPipe's order, each pass taking 4 of 8: f0 and f1 fit; f2
 * and f3 are put aside, and b0 is next. What it gives back is f2's at once, though b1 is ready, too; then b1's f3's. */
static void test_waits_for_memory(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER), memory = add_memory(test, 8, PC_MEMORY_WAIT), f[4], b[4];
    for (int i = 0; i < 4; i++) f[i] = add_pass(test, p, memory, 1, 4, 0);
    for (int i = 0; i < 4; i++) b[i] = add_pass(test, p, memory, 2, 0, 4);
    for (int i = 0; i < 4; i++) add_edge(test, f[i], b[i], 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    check_task(test, f[0], 0, 1);
    check_task(test, f[1], 1, 2);
    check_task(test, b[0], 2, 4);
    check_task(test, f[2], 4, 5);
    check_task(test, b[1], 5, 7);
    check_task(test, f[3], 7, 8);
    check_task(test, b[2], 8, 10);
    check_task(test, b[3], 10, 12);
    assert_int_equal(test->result.ready_ps[f[3]], 0);
    assert_int_equal(test->result.peak_bytes[memory], 8);
    assert_int_equal(test->result.time_ps, 12);
}

/* The next one of the order that is not ready keeps the processor waiting, until what was put aside can go: a holds 6
 * of 10 to 5, b wants 6; c waits for a clock at 20, and d, ready at 0, behind it. */
static void test_order_stands_behind_what_waits(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER), memory = add_memory(test, 10, PC_MEMORY_WAIT);
    int32_t a = add_memory_task(test, memory, 5, 6, 6), b = add_pass(test, p, memory, 30, 6, 6);
    int32_t c = add_task(test, p, 1), d = add_task(test, p, 1), clock = add_task(test, PC_NO_RESOURCE, 0);
    add_edge(test, clock, c, 20);
    run(test);
    check_task(test, a, 0, 5);
    check_task(test, b, 5, 35);
    check_task(test, c, 35, 36);
    check_task(test, d, 36, 37);
    assert_int_equal(test->result.ready_ps[c], 20);
}

/* Stages a and b; b's second task waits for a's second. That waits for memory that only b's third task, through a's
 * third, gives back. a: 10 of 10 at 0 to 1, then 10 more asked at 1. b: 1 to 2; then passes over what is held up, 2 to
 * 3. So a's third, 3 to 4, gives back; its second 4 to 5; b's second 5 to 6. */
static void test_passes_over_what_is_held_up(void **state) {
    fixture *test = *state;
    int32_t a = add_processor(test, PC_PROCESSOR_IN_ORDER), b = add_processor(test, PC_PROCESSOR_IN_ORDER);
    int32_t memory = add_memory(test, 10, PC_MEMORY_WAIT);
    int32_t a0 = add_pass(test, a, memory, 1, 10, 0), a1 = add_pass(test, a, memory, 1, 10, 10);
    int32_t a2 = add_pass(test, a, memory, 1, 0, 10), b0 = add_task(test, b, 1), b1 = add_task(test, b, 1);
    int32_t b2 = add_task(test, b, 1), message = add_task(test, PC_NO_RESOURCE, 0);
    add_edge(test, a0, b0, 0);
    add_edge(test, a1, message, 0); /* through another one */
    add_edge(test, message, b1, 0);
    add_edge(test, b0, b2, 0);
    add_edge(test, b2, a2, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    check_task(test, b0, 1, 2);
    check_task(test, b2, 2, 3);
    check_task(test, a2, 3, 4);
    check_task(test, a1, 4, 5);
    check_task(test, b1, 5, 6);
}

/* What goes on with a task that is put aside comes with it, and nothing in between. At 1 the second pass, of 1 + 2,
 * asks in vain; the third, 1 to 2, gives back. Then come both pieces, 2 to 3 to 5, and only then the last, which was
 * ready at 0. */
static void test_pieces_stay_together(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER), memory = add_memory(test, 10, PC_MEMORY_WAIT), piece;
    pc_task task = pc_task_default();
    add_pass(test, p, memory, 1, 10, 0);
    int32_t whole = add_pass(test, p, memory, 1, 10, 0);
    task.processor = p;
    task.memory = memory;
    task.duration_ps = 2;
    task.give_bytes = 10;
    task.goes_on = true;
    assert_int_equal(pc_program_add_task(test->program, &task, &piece, NULL), PC_OK);
    int32_t gives = add_pass(test, p, memory, 1, 0, 10), last = add_task(test, p, 1);
    run(test);
    check_task(test, gives, 1, 2);
    check_task(test, whole, 2, 3);
    check_task(test, piece, 3, 5);
    check_task(test, last, 5, 6);
}

/* Two processors, one first come, that wait for one memory; and a task that waits for it without a processor. All ask
 * at 1 for 6 of 10, of which 8 are held to 4: in the order of their asking, one after the other, each for 2. The second
 * processor does what takes nothing meanwhile. */
static void test_one_memory_of_many(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER), q = add_processor(test, PC_PROCESSOR_FIRST_COME);
    int32_t memory = add_memory(test, 10, PC_MEMORY_WAIT), clock = add_task(test, PC_NO_RESOURCE, 1);
    add_memory_task(test, memory, 4, 8, 8);
    int32_t a = add_pass(test, p, memory, 2, 6, 6), b = add_pass(test, q, memory, 2, 6, 6), c = add_task(test, q, 1);
    int32_t d = add_memory_task(test, memory, 2, 6, 6), asking[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) add_edge(test, clock, asking[i], 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    check_task(test, c, 1, 2);
    check_task(test, a, 4, 6);
    check_task(test, b, 6, 8);
    check_task(test, d, 8, 10);
}

/* A processor whose tasks wait for two memories takes up the one that was put aside first, where both have room. */
static void test_many_memories_of_one(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER);
    int32_t m = add_memory(test, 10, PC_MEMORY_WAIT), n = add_memory(test, 10, PC_MEMORY_WAIT);
    add_memory_task(test, m, 4, 8, 8);
    add_memory_task(test, n, 5, 8, 8);
    int32_t a = add_pass(test, p, n, 2, 6, 6), b = add_pass(test, p, m, 2, 6, 6), c = add_task(test, p, 6);
    run(test);
    check_task(test, c, 0, 6);
    check_task(test, a, 6, 8);
    check_task(test, b, 8, 10);
}

/* f1 waits for what b0 gives back, and b0 for f1: nothing goes on after 3, when 4 of 6 are taken. What nobody can hold
 * is found when it is asked for. A circle is still one, where nobody waits for memory. */
static void test_waits_for_ever(void **state) {
    fixture *test = *state;
    int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER), memory = add_memory(test, 6, PC_MEMORY_WAIT);
    add_pass(test, p, memory, 3, 4, 0);
    int32_t f1 = add_pass(test, p, memory, 3, 4, 0), b0 = add_pass(test, p, memory, 3, 0, 4);
    add_edge(test, f1, b0, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(test->result.task, f1);
    assert_int_equal(test->result.time_ps, 3);
    assert_int_equal(test->result.level_bytes, 4);
    check_task(test, f1, -1, -1);
    assert_int_equal(test->result.ready_ps[f1], 0);
    assert_int_equal(test->result.ready_ps[b0], -1);
    pc_program_clear(test->program);
    memory = add_memory(test, 6, PC_MEMORY_WAIT);
    int32_t a = add_memory_task(test, memory, 1, 2, 2), b = add_memory_task(test, memory, 1, 2, 2);
    add_edge(test, a, b, 0);
    add_edge(test, b, a, 0);
    run(test);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DEADLOCK);
}

/* ---- determinism, reuse, bad programs ---- */

/* The hash does not depend on what the simulation ran before, and tells one picosecond. */
static void test_hash(void **state) {
    fixture *test = *state;
    uint64_t hashes[3];
    for (int k = 0; k < 3; k++) {
        pc_program_clear(test->program);
        int32_t p = add_processor(test, PC_PROCESSOR_IN_ORDER);
        add_task(test, p, 5);
        add_task(test, p, k == 1 ? 6 : 5);
        run(test);
        hashes[k] = test->result.trace_hash;
    }
    assert_true(hashes[0] == hashes[2]);
    assert_true(hashes[0] != hashes[1]);
}

/* Starts count too: 0 to 5, and 2 to 5. */
static void test_hash_of_starts(void **state) {
    fixture *test = *state;
    uint64_t hashes[2];
    for (int k = 0; k < 2; k++) {
        pc_program_clear(test->program);
        int32_t first = add_task(test, PC_NO_RESOURCE, 0);
        add_edge(test, first, add_task(test, PC_NO_RESOURCE, 5 - 2 * k), 2 * k);
        run(test);
        assert_int_equal(test->result.end_ps[1], 5);
        hashes[k] = test->result.trace_hash;
    }
    assert_true(hashes[0] != hashes[1]);
}

static void expect_refused(fixture *test, const char *words) {
    pc_error error = {0};
    assert_int_equal(pc_program_seal(test->program, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("%s", error.message);
    pc_program_clear(test->program);
}

static void test_bad_programs(void **state) {
    fixture *test = *state;
    pc_error error = {0};
    add_task(test, 3, 1);
    expect_refused(test, "task 0");
    add_task(test, PC_NO_RESOURCE, -1);
    expect_refused(test, "task 0");
    add_edge(test, add_task(test, PC_NO_RESOURCE, 1), 7, 0);
    expect_refused(test, "edge 0: from task 0 to task 7");
    pc_link link = {0, 0.0, false};
    int32_t number;
    assert_int_equal(pc_program_add_link(test->program, &link, &number, &error), PC_ERROR_INPUT);
    link.bandwidth_bytes_per_s = INFINITY;
    assert_int_equal(pc_program_add_link(test->program, &link, &number, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_program_seal(test->program, NULL), PC_OK);
    add_task(test, PC_NO_RESOURCE, 1); /* which breaks the seal */
    assert_int_equal(pc_program_add_route(test->program, NULL, 0, &number, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_program_add_memory(test->program, -1, PC_MEMORY_FAIL, &number, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_simulation_run(test->simulation, test->program, NULL, &test->result, &error), PC_ERROR_INPUT);
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
        WITH_FIXTURE(test_hash),
        WITH_FIXTURE(test_hash_of_starts),
        WITH_FIXTURE(test_bad_programs),
        cmocka_unit_test(test_engine_run_until),
        cmocka_unit_test(test_engine_time_runs_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
