/* Every allocation of a replay fails once: the answer is "out of memory", nothing leaks (the sanitizers look), and the
 * same call works afterwards. And the messages of errors. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "engine/error.h"
#include "engine/queue.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

static pc_code replay_once(pc_transfer_mode mode, pc_error *error) {
    pc_schedule schedule = {0};
    pc_costs costs = {0};
    pc_replay replay = {0};
    pc_code code = pc_schedule_generate(pc_generator_find("zb-h1"), 3, 5, 0, &schedule, error);
    if (!code) code = pc_costs_create(3, 1, &costs, error);
    for (int i = 0; !code && i < 3 * PC_PASS_KINDS; i++) costs.duration_ps[i] = 1000;
    costs.transfer =
        (pc_transfer){.mode = mode, .delay_ps = 10, .latency_ps = 10, .bandwidth_bytes_per_s = 1e12, .size_bytes = 500};
    if (!code) code = pc_replay_run(&schedule, &costs, &(pc_replay_options){.with_trace = true}, &replay, error);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
    return code;
}

static void sweep(pc_transfer_mode mode) {
    pc_error error = {0};
    long before = pc_alloc_count();
    assert_int_equal(replay_once(mode, &error), PC_OK);
    long count = pc_alloc_count() - before;
    assert_true(count > 20);
    for (long i = 0; i < count; i++) {
        pc_alloc_fail_after(i);
        assert_int_equal(replay_once(mode, &error), PC_ERROR_NO_MEMORY);
        assert_string_equal(error.message, "out of memory: the allocation was refused");
    }
    pc_alloc_fail_after(-1);
    assert_int_equal(replay_once(mode, &error), PC_OK);
}

static void test_every_allocation_fails_once(void **state) {
    (void)state;
    sweep(PC_TRANSFER_DELAY);
    sweep(PC_TRANSFER_LINK);
}

/* A queue that cannot grow refuses the push and keeps what it has. */
static void test_queue_without_memory(void **state) {
    (void)state;
    pc_queue *queue;
    pc_event event = {1, 0, 0};
    pc_time time;
    size_t refused = 0;
    assert_int_equal(pc_queue_create(0, &queue, NULL), PC_OK);
    for (int i = 0; i < 400; i++) {
        if (i % 3 == 0) pc_alloc_fail_after(i % 4);
        refused += !pc_queue_push(queue, i % 7, 0, &event, NULL);
        pc_alloc_fail_after(-1);
        pc_queue_check(queue);
    }
    assert_true(refused > 0);
    assert_int_equal(pc_queue_size(queue), 400 - refused);
    while (pc_queue_pop(queue, &time, &event)) refused++;
    assert_int_equal(refused, 400);
    pc_queue_free(queue);
}

static void test_sizes_that_overflow(void **state) {
    (void)state;
    assert_null(pc_alloc(SIZE_MAX, 2));
    assert_null(pc_alloc(SIZE_MAX / 2, 3));
    assert_null(pc_realloc(NULL, SIZE_MAX, 1));
    assert_null(pc_alloc_aligned(64, SIZE_MAX / 4, 4));
    void *nothing = pc_alloc(0, 0);
    assert_non_null(nothing);
    pc_free(nothing);
}

/* One line, whatever the strings in it hold; never more than its room. */
static void test_error_messages(void **state) {
    (void)state;
    pc_error error = {0};
    assert_int_equal(pc_error_set(&error, PC_ERROR_INPUT, "%s: no", "a\nb\x1b[1m"), PC_ERROR_INPUT);
    assert_string_equal(error.message, "a?b?[1m: no");
    pc_error_prefix(&error, "%s", "file");
    assert_int_equal(error.code, PC_ERROR_INPUT);
    assert_string_equal(error.message, "file: a?b?[1m: no");
    char longest[3 * PC_ERROR_MESSAGE_SIZE];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    pc_error_set(&error, PC_ERROR_INPUT, "%s", longest);
    pc_error_prefix(&error, "%s", longest);
    assert_int_equal(strlen(error.message), PC_ERROR_MESSAGE_SIZE - 1);
    assert_int_equal(pc_error_set(NULL, PC_ERROR_IO, "unheard"), PC_ERROR_IO);
    pc_error_prefix(NULL, "unheard");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_fails_once),
        cmocka_unit_test(test_queue_without_memory),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_error_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
