/* A batch: every run once, at any number of threads; none waits for another; errors end it; pieces that come late. */
#include "tests/batch_example.h"

#include <sys/resource.h>
#include <time.h>

static void assert_all_taken(const example_runs *runs, int64_t count) {
    assert_int_equal(runs->taken, count);
    assert_int_equal(runs->made, count);
    assert_int_equal(runs->sum, count * (count - 1) / 2);
    assert_int_equal(runs->wrong, 0);
}

static void test_every_run_once(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 31, 32, 33, 500, 3000};
    static const int jobs[] = {1, 2, 3, 8};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
            example_runs runs = example_runs_default();
            unsigned char seen[3000] = {0};
            runs.seen = seen;
            assert_int_equal(pc_batch_run(counts[c], jobs[j], example_source, example_sink, &runs, NULL), PC_OK);
            assert_all_taken(&runs, counts[c]);
        }
}

/* Others go on beside a slow run, and nobody waits for it: when it ends all others were handed over, though they are
 * many times what a thread holds. The first run takes 0.5 s, the 999 others no time. */
static pc_code take_in_order_of_time(void *context, const pc_run_spec *spec, const pc_run_row *row,
                                     const pc_run_detail *detail, pc_error *error) {
    example_runs *runs = context;
    if (row->run == 0) assert_int_equal(runs->taken, 999);
    return example_sink(context, spec, row, detail, error);
}

static void test_slow_runs(void **state) {
    (void)state;
    example_runs runs = example_runs_default();
    runs.slow = 1000000;
    runs.slow_us = 500000;
    assert_int_equal(pc_batch_run(1000, 4, example_source, take_in_order_of_time, &runs, NULL), PC_OK);
    assert_all_taken(&runs, 1000);
}

static void test_slow_sink(void **state) {
    (void)state;
    example_runs runs = example_runs_default();
    runs.sink_us = 100;
    assert_int_equal(pc_batch_run(600, 2, example_source, example_sink, &runs, NULL), PC_OK);
    assert_all_taken(&runs, 600);
}

/* Of two that fail the first by index is told, also where the other was there before; what stands before it was handed
 * over, and of what is behind it what was under way. */
static void test_the_first_error_by_index(void **state) {
    (void)state;
    for (int jobs = 1; jobs <= 8; jobs *= 2) {
        pc_error error = {0};
        example_runs runs = example_runs_default();
        runs.bad_source = 100;
        runs.bad_run = 101;
        runs.slow = 100;
        runs.slow_us = 5000;
        assert_int_equal(pc_batch_run(10000, jobs, example_source, example_sink, &runs, &error), PC_ERROR_INPUT);
        assert_string_equal(error.message, "source of 100");
        assert_in_range(runs.taken, 100, 10000 - 1);
        assert_int_equal(runs.wrong, 0);
        assert_true(runs.made < 10000); /* it ended there */
    }
}

static void test_a_sink_that_fails(void **state) {
    (void)state;
    pc_error error = {0};
    example_runs runs = example_runs_default();
    runs.bad_sink = 40;
    assert_int_equal(pc_batch_run(1 << 20, 3, example_source, example_sink, &runs, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "sink of 40");
    assert_true(runs.taken < 10000); /* nothing after it, and not much before */
}

/* A sink that refuses the first result, but not before the third run, which fails, is under way. */
typedef struct refusal {
    atomic_bool has_third;
    atomic_int calls;
} refusal;

static pc_code three_of_which_one_fails(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels,
                                        pc_error *error) {
    refusal *x = context;
    example_runs runs = example_runs_default();
    if (index == 2) {
        x->has_third = true;
        runs.bad_source = 2;
    }
    return example_source(&runs, index, spec, labels, error);
}

static pc_code refuse(void *context, const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail,
                      pc_error *error) {
    refusal *x = context;
    (void)spec;
    (void)row;
    (void)detail;
    x->calls++;
    while (!x->has_third) usleep(100);
    return pc_error_set(error, PC_ERROR_IO, "refused");
}

/* Neither is it called again, though another result is there, nor does an error of a run, which is known later, count
 * instead of its own. */
static void test_a_sink_that_fails_is_the_end(void **state) {
    (void)state;
    pc_error error = {0};
    refusal x = {0};
    assert_int_equal(pc_batch_run(3, 1, three_of_which_one_fails, refuse, &x, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "refused");
    assert_int_equal(x.calls, 1);
}

/* ---- pieces ---- */

typedef struct feeder {
    const pc_batch_piece *pieces; /* behind the last: a count of PC_BATCH_NO_MORE */
    int next;
    int late;  /* calls with nothing under way, of which each says "later", before each piece */
    int times; /* that it was said so */
    int64_t fails_at;
    bool saw_idle, saw_no_room;
} feeder;

static pc_code feed(void *context, const pc_batch_state *state, pc_batch_piece *piece, pc_error *error) {
    feeder *f = context;
    bool is_idle = state->idle == state->jobs && state->unclaimed == 0;
    f->saw_idle |= is_idle;
    f->saw_no_room |= !state->has_room;
    if (f->next == f->fails_at) return pc_error_set(error, PC_ERROR_IO, "feed %d", f->next);
    if (!state->has_room || f->times < f->late) {
        f->times += is_idle;
        return PC_OK;
    }
    f->times = 0;
    *piece = f->pieces[f->next++];
    return PC_OK;
}

/* 0 to 4, 7, 1000 to 1999: sums 10, 7 and 1000 * 1499.5. */
static const pc_batch_piece three_pieces[] = {{0, 5}, {7, 1}, {1000, 1000}, {0, PC_BATCH_NO_MORE}};

static void test_pieces(void **state) {
    (void)state;
    for (int jobs = 1; jobs <= 8; jobs *= 2)
        for (int late = 0; late < 4; late += 3) {
            example_runs runs = example_runs_default();
            feeder f = {.pieces = three_pieces, .late = late, .fails_at = -1};
            assert_int_equal(pc_batch_run_fed(feed, &f, jobs, example_source, example_sink, &runs, NULL), PC_OK);
            assert_int_equal(runs.taken, 1006);
            assert_int_equal(runs.sum, 10 + 7 + 1499500);
            assert_int_equal(runs.wrong, 0);
            if (late) assert_true(f.saw_idle);
        }
}

/* While runs go on and there is no room for another piece the feed is called all the same: rank 0 answers others then.
 */
static void test_the_feed_is_called_meanwhile(void **state) {
    (void)state;
    static const pc_batch_piece pieces[] = {{0, 20}, {20, 20}, {40, 20}, {0, PC_BATCH_NO_MORE}};
    example_runs runs = example_runs_default();
    runs.slow = 1;
    runs.slow_us = 2000;
    feeder f = {.pieces = pieces, .fails_at = -1};
    assert_int_equal(pc_batch_run_fed(feed, &f, 2, example_source, example_sink, &runs, NULL), PC_OK);
    assert_int_equal(runs.taken, 60);
    assert_true(f.saw_no_room);
}

static void test_a_feed_that_fails(void **state) {
    (void)state;
    pc_error error = {0};
    example_runs runs = example_runs_default();
    feeder f = {.pieces = three_pieces, .fails_at = 1, .late = 2};
    assert_int_equal(pc_batch_run_fed(feed, &f, 2, example_source, example_sink, &runs, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "feed 1");
    assert_true(runs.taken <= 5);
}

/* A batch that waits takes no core: 0.3 s of sleep in every thread cost a small part of that. */
static void test_waiting_costs_nothing(void **state) {
    (void)state;
    struct rusage before, after;
    example_runs runs = example_runs_default();
    runs.slow = 1;
    runs.slow_us = 300000;
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(pc_batch_run(2, 2, example_source, example_sink, &runs, NULL), PC_OK);
    getrusage(RUSAGE_SELF, &after);
    double seconds = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                     (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                     1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                     1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    assert_true(seconds < 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_run_once),
        cmocka_unit_test(test_slow_runs),
        cmocka_unit_test(test_slow_sink),
        cmocka_unit_test(test_the_first_error_by_index),
        cmocka_unit_test(test_a_sink_that_fails),
        cmocka_unit_test(test_a_sink_that_fails_is_the_end),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_the_feed_is_called_meanwhile),
        cmocka_unit_test(test_a_feed_that_fails),
        cmocka_unit_test(test_waiting_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
