/* The queue against the plainest queue there is: an array that is searched for its least element. */
#include "tests/support.h"

#include "engine/queue.h"

typedef struct entry {
    pc_time time;
    uint16_t priority;
    uint64_t sequence;
    pc_event_handle handle;
} entry;

typedef struct model {
    pc_queue *queue;
    entry *entries;
    size_t count;
    uint64_t sequence;
} model;

static bool comes_before(const entry *a, const entry *b) {
    if (a->time != b->time) return a->time < b->time;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

static void push(model *m, pc_time time, uint16_t priority) {
    pc_event event = {7, (uint32_t)priority, m->sequence};
    entry e = {time, priority, m->sequence++, {0, 0}};
    assert_true(pc_queue_push(m->queue, time, priority, &event, &e.handle));
    m->entries[m->count++] = e;
}

static entry take_least(model *m) {
    size_t least = 0;
    for (size_t i = 1; i < m->count; i++)
        if (comes_before(&m->entries[i], &m->entries[least])) least = i;
    entry e = m->entries[least];
    m->entries[least] = m->entries[--m->count];
    return e;
}

static pc_time pop(model *m) {
    pc_event event;
    pc_time time, next;
    entry expected = take_least(m);
    assert_true(pc_queue_next_time(m->queue, &next));
    assert_true(pc_queue_pop(m->queue, &time, &event));
    assert_int_equal(next, time);
    assert_int_equal(time, expected.time);
    assert_int_equal(event.data, expected.sequence);
    assert_int_equal(event.kind, 7);
    assert_false(pc_queue_cancel(m->queue, expected.handle));
    return time;
}

static void cancel(model *m, size_t i) {
    assert_true(pc_queue_cancel(m->queue, m->entries[i].handle));
    assert_false(pc_queue_cancel(m->queue, m->entries[i].handle));
    m->entries[i] = m->entries[--m->count];
}

/* Delays of several shapes: all equal, few values, small, wide, and clusters of clusters, which need rungs on rungs. */
static pc_time draw_delay(test_random *random, int shape) {
    switch (shape) {
    case 0:
        return 0;
    case 1:
        return test_between(random, 0, 3);
    case 2:
        return test_between(random, 0, 1000);
    case 3:
        return test_between(random, 0, INT64_C(1) << 45);
    case 4:
        return INT64_C(1) << test_between(random, 0, 45);
    default:
        return (INT64_C(1) << 44) + test_between(random, 0, 1) * (INT64_C(1) << 43) + test_between(random, 0, 9);
    }
}

static void run_random_program(test_random *random, size_t size, int shape) {
    model m = {.entries = calloc(size + 1, sizeof *m.entries)};
    pc_time now = 0;
    assert_int_equal(pc_queue_create((size_t)test_between(random, 0, 200), &m.queue, NULL), PC_OK);
    for (size_t step = 0; step < 6 * size; step++) {
        int64_t what = test_between(random, 0, 9);
        bool grows = step < 2 * size ? what < 7 : what < 4;
        if (grows && m.count < size)
            push(&m, now + draw_delay(random, shape), (uint16_t)test_between(random, 0, 2));
        else if (what == 9 && m.count > 0)
            cancel(&m, (size_t)test_between(random, 0, (int64_t)m.count - 1));
        else if (m.count > 0)
            now = pop(&m);
        assert_int_equal(pc_queue_size(m.queue), m.count);
        if (step % 64 == 0) pc_queue_check(m.queue);
    }
    while (m.count > 0) pop(&m);
    pc_queue_check(m.queue);
    pc_event event;
    assert_false(pc_queue_pop(m.queue, &now, &event));
    pc_queue_free(m.queue);
    free(m.entries);
}

static void test_agrees_with_plain_queue(void **state) {
    (void)state;
    test_random random = {1};
    for (long i = 0; i < test_cases(60, 2000); i++)
        run_random_program(&random, (size_t)test_between(&random, 1, i % 10 == 0 ? 2000 : 300), (int)(i % 6));
}

/* An event may be pushed before the time of the last one popped: the queue has no clock. */
static void test_takes_events_from_the_past(void **state) {
    (void)state;
    model m = {.entries = calloc(1000, sizeof *m.entries)};
    assert_int_equal(pc_queue_create(0, &m.queue, NULL), PC_OK);
    for (int i = 0; i < 500; i++) push(&m, 1000 + 17 * i, 0);
    for (int i = 0; i < 100; i++) pop(&m);
    for (int i = 0; i < 100; i++) push(&m, 10 * i, 1);
    pc_queue_check(m.queue);
    while (m.count > 0) pop(&m);
    pc_queue_free(m.queue);
    free(m.entries);
}

/* So many events that the first rung outgrows the cache. Events are pushed at or after the last popped time, so they
 * must leave in ascending order of (time, sequence), each once. */
static void test_many_events(void **state) {
    (void)state;
    enum { PENDING = 60000, HOLDS = 3 * PENDING };
    test_random random = {2};
    pc_queue *queue;
    pc_event event = {0};
    pc_time now = 0, time;
    uint64_t pushed = 0, last = 0, sum = 0;
    assert_int_equal(pc_queue_create(0, &queue, NULL), PC_OK);
    for (int i = 0; i < PENDING + HOLDS; i++) {
        if (i >= PENDING) {
            assert_true(pc_queue_pop(queue, &time, &event));
            assert_true(time > now || (time == now && event.data > last) || i == PENDING);
            now = time;
            last = event.data;
            sum += event.data;
        }
        event.data = pushed++;
        assert_true(pc_queue_push(queue, now + test_between(&random, 0, 1 << 20), 0, &event, NULL));
        if (i % 20000 == 0) pc_queue_check(queue);
    }
    while (pc_queue_pop(queue, &time, &event)) {
        assert_true(time > now || (time == now && event.data > last));
        now = time;
        last = event.data;
        sum += event.data;
    }
    assert_int_equal(sum, pushed * (pushed - 1) / 2);
    pc_queue_free(queue);
}

/* A clear in the middle of many events, some of them on their way into the first rung, leaves nothing behind. */
static void test_clear_of_many(void **state) {
    (void)state;
    enum { PENDING = 60000 };
    test_random random = {10};
    pc_queue *queue;
    pc_event event = {1, 0, 0};
    pc_time time;
    assert_int_equal(pc_queue_create(PENDING, &queue, NULL), PC_OK);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PENDING; i++)
            assert_true(pc_queue_push(queue, test_between(&random, 0, 1 << 20), 0, &event, NULL));
        for (int i = 0; i < 1000; i++) {
            assert_true(pc_queue_pop(queue, &time, &event));
            assert_true(pc_queue_push(queue, time + test_between(&random, 0, 1 << 20), 0, &event, NULL));
        }
        pc_queue_clear(queue);
        pc_queue_check(queue);
        assert_false(pc_queue_pop(queue, &time, &event));
    }
    pc_queue_free(queue);
}

/* After a clear the sequence starts anew, and handles from before name nothing. */
static void test_clear(void **state) {
    (void)state;
    pc_queue *queue;
    pc_event event = {1, 2, 3};
    pc_event_handle handle;
    assert_int_equal(pc_queue_create(0, &queue, NULL), PC_OK);
    for (int i = 0; i < 1000; i++) assert_true(pc_queue_push(queue, i * 1000, 0, &event, &handle));
    pc_queue_clear(queue);
    pc_queue_check(queue);
    assert_int_equal(pc_queue_size(queue), 0);
    assert_false(pc_queue_cancel(queue, handle));
    pc_queue_free(queue);
}

/* A caller that cancels what it pushed and pushes anew, far ahead, for ever: the queue does not grow, and keeps its
 * order. */
static void test_cancelled_events_take_no_memory(void **state) {
    (void)state;
    pc_queue *queue;
    pc_event event = {1, 0, 0};
    pc_event_handle handles[100];
    pc_time time, last = 0;
    test_random random = {9};
    assert_int_equal(pc_queue_create(300, &queue, NULL), PC_OK);
    size_t bytes = pc_queue_bytes(queue);
    for (int i = 0; i < 100; i++)
        assert_true(pc_queue_push(queue, test_between(&random, 0, 1 << 20), 0, &event, &handles[i]));
    for (int k = 0; k < 100000; k++) {
        int i = (int)test_between(&random, 0, 99);
        assert_true(pc_queue_cancel(queue, handles[i]));
        assert_true(pc_queue_push(queue, test_between(&random, 0, 1 << 20), 0, &event, &handles[i]));
        if (k % 1000 == 0) pc_queue_check(queue);
    }
    assert_int_equal(pc_queue_bytes(queue), bytes);
    for (int i = 0; i < 100; i++, last = time) {
        assert_true(pc_queue_pop(queue, &time, &event));
        assert_true(time >= last);
    }
    assert_int_equal(pc_queue_size(queue), 0);
    pc_queue_free(queue);
}

/* The order is by time, then priority, then sequence: 3 x 2 x 2 events pushed in the opposite order. */
static void test_total_order(void **state) {
    (void)state;
    pc_queue *queue;
    pc_event event = {0};
    pc_time time;
    assert_int_equal(pc_queue_create(0, &queue, NULL), PC_OK);
    for (int t = 2; t >= 0; t--)
        for (int priority = 1; priority >= 0; priority--)
            for (uint32_t sequence = 0; sequence < 2; sequence++) {
                event.target = (uint32_t)(100 * t + 10 * priority) + sequence;
                assert_true(pc_queue_push(queue, t, (uint16_t)priority, &event, NULL));
            }
    static const uint32_t expected[] = {0, 1, 10, 11, 100, 101, 110, 111, 200, 201, 210, 211};
    for (int i = 0; i < 12; i++) {
        assert_true(pc_queue_pop(queue, &time, &event));
        assert_int_equal(event.target, expected[i]);
        assert_int_equal(time, expected[i] / 100);
    }
    pc_queue_free(queue);
}

/* 40 bytes a node, 8 of places, a sixth of a cache line: the bar of the engine is 64 bytes an event. */
static void test_bytes(void **state) {
    (void)state;
    pc_queue *queue;
    assert_int_equal(pc_queue_create(1000000, &queue, NULL), PC_OK);
    assert_true(pc_queue_bytes(queue) <= 64000000);
    pc_queue_free(queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_plain_queue),
        cmocka_unit_test(test_takes_events_from_the_past),
        cmocka_unit_test(test_many_events),
        cmocka_unit_test(test_clear_of_many),
        cmocka_unit_test(test_clear),
        cmocka_unit_test(test_cancelled_events_take_no_memory),
        cmocka_unit_test(test_total_order),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
