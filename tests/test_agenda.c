/* Which runs of a sweep are to be done: a pure question of keys. */
#include "sweep/agenda.h"
#include "tests/refusals.h"

static pc_run_key key(uint64_t number) {
    return (pc_run_key){number * 77, number};
}

static void keys_of(const int *numbers, int count, pc_run_key *keys) {
    for (int i = 0; i < count; i++) keys[i] = key((uint64_t)numbers[i]);
}

enum { RUNS = 7 };

/* Runs 5 3 5 8 3 9 8; there are results of 3, 1, 3 and 9. The first 5 and the first 8 are to be done. */
static void the_first_of_each_key_is_done(void **state) {
    (void)state;
    const int run_numbers[RUNS] = {5, 3, 5, 8, 3, 9, 8}, result_numbers[] = {3, 1, 3, 9};
    const int64_t places[RUNS] = {-1, 0, -1, -1, 0, 3, -1};
    pc_run_key runs[RUNS], results[4];
    pc_agenda agenda;
    keys_of(run_numbers, RUNS, runs);
    keys_of(result_numbers, 4, results);
    assert_int_equal(pc_agenda_make(runs, RUNS, results, 4, &agenda, NULL), PC_OK);
    assert_int_equal(agenda.count, RUNS);
    assert_memory_equal(agenda.place, places, sizeof places);
    assert_int_equal(agenda.to_do_count, 2);
    assert_int_equal(agenda.to_do[0], 0);
    assert_int_equal(agenda.to_do[1], 3);
    assert_int_equal(agenda.done_count, 3);
    pc_agenda_free(&agenda);
}

static void nothing_is_a_plan_too(void **state) {
    (void)state;
    pc_agenda agenda;
    assert_int_equal(pc_agenda_make(NULL, 0, NULL, 0, &agenda, NULL), PC_OK);
    assert_int_equal(agenda.count + agenda.to_do_count + agenda.done_count, 0);
    pc_agenda_free(&agenda);
    pc_agenda_free(&(pc_agenda){0});
}

/* Keys that differ in one half alone are not one. */
static void both_halves_count(void **state) {
    (void)state;
    const pc_run_key runs[] = {{1, 2}, {1, 3}, {2, 2}}, results[] = {{3, 2}, {1, 4}};
    pc_agenda agenda;
    assert_int_equal(pc_agenda_make(runs, 3, results, 2, &agenda, NULL), PC_OK);
    assert_int_equal(agenda.to_do_count, 3);
    pc_agenda_free(&agenda);
}

/* Random lists beside the same answered by looking at every pair. */
static void random_lists_are_planned_right(void **state) {
    (void)state;
    enum { CASES = 200, MOST = 60 };
    srand(7);
    for (int c = 0; c < CASES; c++) {
        int run_count = rand() % MOST, result_count = rand() % MOST, range = 1 + rand() % MOST;
        pc_run_key runs[MOST], results[MOST];
        for (int i = 0; i < run_count; i++) runs[i] = key((uint64_t)(rand() % range));
        for (int i = 0; i < result_count; i++) results[i] = key((uint64_t)(rand() % range));
        pc_agenda agenda;
        assert_int_equal(pc_agenda_make(runs, run_count, results, result_count, &agenda, NULL), PC_OK);
        int64_t to_do = 0;
        for (int i = 0; i < run_count; i++) {
            int64_t place = -1, first = 0;
            while (!pc_run_key_equal(runs[first], runs[i])) first++;
            for (int k = result_count - 1; k >= 0; k--)
                if (pc_run_key_equal(results[k], runs[i])) place = k;
            assert_int_equal(agenda.place[i], place);
            if (place >= 0 || first < i) continue;
            assert_int_equal(agenda.to_do[to_do], i);
            to_do++;
        }
        assert_int_equal(agenda.to_do_count, to_do);
        pc_agenda_free(&agenda);
    }
}

static void refused_allocations_are_reported(void **state) {
    (void)state;
    pc_run_key runs[] = {{1, 2}, {1, 3}};
    for (refusals x = {.most = 10}; next_refusal(&x);) {
        pc_agenda agenda = {0};
        x.code = pc_agenda_make(runs, 2, NULL, 0, &agenda, NULL);
        pc_agenda_free(&agenda);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_each_key_is_done),
        cmocka_unit_test(nothing_is_a_plan_too),
        cmocka_unit_test(both_halves_count),
        cmocka_unit_test(random_lists_are_planned_right),
        cmocka_unit_test(refused_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
