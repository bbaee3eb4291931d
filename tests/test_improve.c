/* Improved orders: at random schedules and costs, against the longest path; optima by algebra; what is refused. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/improve.h"
#include "tests/longest_path.h"
#include "tests/memory_limits.h"
#include "tests/random_schedule.h"

/* ---- what a schedule comes to ---- */

typedef struct outcome {
    pc_time span, makespan;
    int64_t peak[TEST_LIMITED_MAX];
} outcome;

static outcome outcome_of(const pc_schedule *s, const pc_costs *costs) {
    size_t count = (size_t)s->offsets[s->devices];
    pc_time *start = calloc(count, sizeof *start), *end = calloc(count, sizeof *end);
    outcome made = {0};
    assert_true(longest_path(s, costs, start, end));
    for (int d = 0; d < s->devices; d++) {
        pc_time last = end[s->offsets[d + 1] - 1], span = last - start[s->offsets[d]];
        if (span > made.span) made.span = span;
        if (last > made.makespan) made.makespan = last;
    }
    assert_int_equal(pc_schedule_peaks(s, costs, made.peak, NULL), PC_OK);
    free(start);
    free(end);
    return made;
}

static bool is_same(const pc_schedule *a, const pc_schedule *b) {
    int64_t count = a->offsets[a->devices];
    return count == b->offsets[b->devices] && memcmp(a->passes, b->passes, (size_t)count * sizeof *a->passes) == 0;
}

/* The order without its R. */
static void drop_recomputes(pc_schedule *s) {
    int64_t kept = 0;
    for (int d = 0; d < s->devices; d++) {
        int64_t i = s->offsets[d];
        s->offsets[d] = kept;
        for (int64_t end = s->offsets[d + 1]; i < end; i++)
            if (s->passes[i].kind != PC_PASS_R) s->passes[kept++] = s->passes[i];
    }
    s->offsets[s->devices] = kept;
}

/* One that can be improved: another one is drawn where this has two replicas, or slices. Of one chunk all placements
 * are a line.
 */
static void draw_schedule(test_random *random, pc_schedule *s) {
    random_schedule(random, 5, 6, 3, s);
    while (!pc_placement_is_plain(s->placement)) {
        pc_schedule_free(s);
        random_schedule(random, 5, 6, 3, s);
    }
    drop_recomputes(s);
    if (s->chunks == 1) s->placement = PC_PLACEMENT_LINEAR;
}

/* ---- at random ---- */

static void assert_legal(const pc_schedule *given, const pc_schedule *improved) {
    assert_int_equal(pc_schedule_check(improved, NULL), PC_OK);
    assert_string_equal(improved->name, given->name);
    assert_int_equal(improved->devices, given->devices);
    assert_int_equal(improved->microbatches, given->microbatches);
    assert_int_equal(improved->chunks, given->chunks);
    assert_int_equal(improved->placement, given->placement);
    if (pc_schedule_has(given, PC_PASS_W)) return;
    assert_false(pc_schedule_has(improved, PC_PASS_B));
}

static void assert_same_with_threads(const pc_improve_request *request, const pc_schedule *improved) {
    pc_improve_request more = *request;
    pc_schedule other;
    pc_improvement about;
    more.threads = 3;
    assert_int_equal(pc_schedule_improve(&more, &other, &about, NULL), PC_OK);
    assert_true(is_same(improved, &other));
    pc_improvement_free(&about);
    pc_schedule_free(&other);
}

/* Within what it holds: no longer, and no device with more memory. */
static void check_own_memory(const pc_schedule *given, const pc_costs *costs) {
    const pc_improve_request request = {.schedule = given, .costs = costs, .threads = 1};
    outcome before = outcome_of(given, costs);
    pc_schedule improved;
    pc_improvement about;
    assert_int_equal(pc_schedule_improve(&request, &improved, &about, NULL), PC_OK);
    assert_legal(given, &improved);
    outcome after = outcome_of(&improved, costs);
    assert_true(after.span <= before.span);
    assert_true(after.span < before.span || after.makespan <= before.makespan);
    for (int d = 0; d < given->devices; d++) {
        assert_true(after.peak[d] <= before.peak[d]);
        assert_int_equal(about.peak_before_bytes[d], before.peak[d]);
    }
    assert_true(about.bound_ps <= after.span);
    assert_int_equal(about.span_before_ps, before.span);
    assert_int_equal(about.makespan_before_ps, before.makespan);
    assert_int_equal(about.is_changed, !is_same(given, &improved));
    assert_same_with_threads(&request, &improved);
    pc_improvement_free(&about);
    pc_schedule_free(&improved);
}

/* Within a limit, of which some devices have none: it is kept, or said to be too small. */
static void check_limit(test_random *random, const pc_schedule *given, const pc_costs *costs) {
    test_limits limits;
    outcome before = outcome_of(given, costs);
    for (int d = 0; d < given->devices; d++)
        limits.bytes[d] =
            test_between(random, 0, 4) ? before.peak[d] * test_between(random, 50, 150) / 100 : PC_NO_LIMIT;
    const pc_improve_request request = {
        .schedule = given, .costs = costs, .memory_limit = test_limit(&limits), .threads = 1};
    pc_schedule improved;
    pc_improvement about;
    pc_error error = {0};
    if (pc_schedule_improve(&request, &improved, &about, &error)) {
        assert_true(strstr(error.message, "expected") != NULL);
        return;
    }
    assert_legal(given, &improved);
    outcome after = outcome_of(&improved, costs);
    for (int d = 0; d < given->devices; d++) assert_true(after.peak[d] <= limits.bytes[d]);
    assert_true(about.bound_ps <= after.span);
    pc_improvement_free(&about);
    pc_schedule_free(&improved);
}

static void test_random_schedules(void **state) {
    (void)state;
    test_random random = {81};
    for (long i = 0, cases = test_cases(30, 150); i < cases; i++) {
        pc_schedule given;
        pc_costs costs;
        draw_schedule(&random, &given);
        random_costs(&random, &given, &costs);
        random_hops_and_ready(&random, &costs);
        check_own_memory(&given, &costs);
        check_limit(&random, &given, &costs);
        pc_costs_free(&costs);
        pc_schedule_free(&given);
    }
}

/* ---- by algebra ---- */

static pc_costs times_of(int devices, int chunks, pc_time f, pc_time b, pc_time w) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(devices, chunks, &costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)devices * chunks; i++) {
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_F] = f;
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_B] = b;
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_W] = w;
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = b + w;
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_R] = f;
        costs.activation_bytes[i] = 1;
    }
    return costs;
}

static pc_schedule named(const char *name, int p, int m, int chunks) {
    pc_schedule s;
    assert_int_equal(pc_schedule_generate(pc_generator_find(name), p, m, chunks, &s, NULL), PC_OK);
    return s;
}

static pc_schedule improve(const pc_schedule *given, const pc_costs *costs, pc_memory_limit limit,
                           pc_improvement *about) {
    const pc_improve_request request = {.schedule = given, .costs = costs, .memory_limit = limit, .threads = 2};
    pc_schedule improved;
    assert_int_equal(pc_schedule_improve(&request, &improved, about, NULL), PC_OK);
    return improved;
}

/* Passes of each stage in the order of kinds, all microbatches of one kind before the next kind; of every kind in
 * `falling` (a bit each) the last microbatch first. */
static pc_schedule kind_by_kind(int p, int m, const int *kinds, int count, int falling) {
    int64_t lengths[TEST_LIMITED_MAX];
    pc_schedule s;
    for (int d = 0; d < p; d++) lengths[d] = (int64_t)count * m;
    assert_int_equal(pc_schedule_create("by kind", p, m, 1, PC_PLACEMENT_LINEAR, lengths, &s, NULL), PC_OK);
    for (int64_t i = 0; i < s.offsets[p]; i++) {
        int kind = kinds[i / m % count], k = (int)(i % m);
        s.passes[i] = (pc_pass){falling & 1 << kind ? m - 1 - k : k, 0, (int16_t)kind};
    }
    return s;
}

/* GPipe with B and W apart, p = m = 2: device 0 runs F0, F1, waits for B0 until F, F, F, B of device 1 are over, and
 * ends 3F + 3B + 2W after its start. Within the same memory device 1 can run B0 before F1. B0 of device 0 comes then
 * after F, F, B at the earliest, whatever is done, and device 0 has only 2F to do before it. It idles for B, and that
 * is all, where W0 fills the wait for B1 (W >= F): 2(F+B+W) + B. */
static void test_gpipe_of_two(void **state) {
    (void)state;
    static const int kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W};
    static const pc_time times[][3] = {{1, 1, 1}, {3, 4, 5}, {10, 3, 12}, {7, 20, 7}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        pc_time f = times[i][0], b = times[i][1], w = times[i][2];
        pc_schedule given = kind_by_kind(2, 2, kinds, 3, 0);
        pc_costs costs = times_of(2, 1, f, b, w);
        pc_improvement about;
        pc_schedule improved = improve(&given, &costs, (pc_memory_limit){NULL}, &about);
        assert_int_equal(about.span_before_ps, 3 * f + 3 * b + 2 * w);
        assert_int_equal(outcome_of(&improved, &costs).span, 2 * f + 3 * b + 2 * w);
        assert_int_equal(about.bound_ps, 2 * f + 3 * b + 2 * w);
        pc_improvement_free(&about);
        pc_schedule_free(&improved);
        pc_schedule_free(&given);
        pc_costs_free(&costs);
    }
}

/* 1F1B idles (p-1)(F+BW), and no order of whole backward passes in its memory less: device 0 is through with its p F
 * p(F+BW) after its start, less what p-1 F fill of it, and so on. It stays as it is, pass by pass. GPipe is as short in
 * more memory, and in 1F1B's it is 1F1B that it becomes. */
static void test_1f1b_is_optimal(void **state) {
    (void)state;
    for (int p = 1; p <= 8; p++) {
        pc_schedule given = named("1f1b", p, 2 * p, 1), gpipe = named("gpipe", p, 2 * p, 1);
        pc_costs costs = times_of(p, 1, 3, 4, 2);
        test_limits limits = test_limit_all(p);
        pc_improvement about;
        pc_schedule improved = improve(&given, &costs, (pc_memory_limit){NULL}, &about);
        assert_true(is_same(&given, &improved));
        assert_false(about.is_changed);
        assert_int_equal(about.bound_ps, (3 * p - 1) * 9);
        assert_int_equal(about.span_before_ps, about.bound_ps);
        pc_improvement_free(&about);
        pc_schedule_free(&improved);
        improved = improve(&gpipe, &costs, test_limit(&limits), &about);
        assert_int_equal(outcome_of(&improved, &costs).span, (3 * p - 1) * 9);
        assert_int_equal(about.bound_ps, (3 * p - 1) * 9);
        pc_improvement_free(&about);
        pc_schedule_free(&improved);
        pc_schedule_free(&given);
        pc_schedule_free(&gpipe);
        pc_costs_free(&costs);
    }
}

/* Backward passes that begin with the last microbatch cost GPipe nothing: what a device holds, and when, stays. So does
 * its span, (m+p-1)(F+BW), which is least. Of microbatches out of turn on one device alone as well. */
static void test_microbatches_out_of_turn(void **state) {
    (void)state;
    static const int kinds[] = {PC_PASS_F, PC_PASS_BW};
    for (int p = 1; p <= 4; p++) {
        pc_schedule given = kind_by_kind(p, 5, kinds, 2, 1 << PC_PASS_BW);
        pc_costs costs = times_of(p, 1, 3, 4, 2);
        pc_improvement about;
        pc_schedule improved = improve(&given, &costs, (pc_memory_limit){NULL}, &about);
        assert_int_equal(outcome_of(&improved, &costs).span, (4 + p) * 9);
        assert_int_equal(about.span_before_ps, (4 + p) * 9);
        pc_improvement_free(&about);
        pc_schedule_free(&improved);
        for (int k = 0; k < 2; k++) { /* F1 before F0 on the last device: its BW, and all before it, wait for no more */
            pc_pass *pass = &given.passes[given.offsets[p - 1] + k];
            pass->microbatch = 1 - pass->microbatch;
        }
        improved = improve(&given, &costs, (pc_memory_limit){NULL}, &about);
        assert_int_equal(outcome_of(&improved, &costs).span, (4 + p) * 9);
        pc_improvement_free(&about);
        pc_schedule_free(&improved);
        pc_schedule_free(&given);
        pc_costs_free(&costs);
    }
}

/* What the named schedules find within the same limit is found from any order, one microbatch after the other too. */
static void test_named_are_tried(void **state) {
    (void)state;
    enum { P = 4, M = 8 };
    pc_schedule given = named("v-min", P, M, 2);
    pc_costs costs = times_of(P, 2, 3, 4, 2);
    for (int64_t held = 4; held <= 2 * P; held += 2) {
        test_limits limits = test_limit_all(held);
        pc_generate_request request = {
            .devices = P, .microbatches = M, .costs = &costs, .memory_limit = test_limit(&limits), .threads = 2};
        pc_schedule searched;
        assert_int_equal(pc_generate(pc_generator_find("v-adaptive"), &request, &searched, NULL, NULL), PC_OK);
        pc_improvement about;
        pc_schedule improved = improve(&given, &costs, test_limit(&limits), &about);
        assert_true(outcome_of(&improved, &costs).span <= outcome_of(&searched, &costs).span);
        pc_improvement_free(&about);
        pc_schedule_free(&improved);
        pc_schedule_free(&searched);
    }
    pc_schedule_free(&given);
    pc_costs_free(&costs);
}

/* ---- what is refused ---- */

static void refuse(const pc_schedule *s, const pc_costs *costs, pc_memory_limit limit, const char *message) {
    const pc_improve_request request = {.schedule = s, .costs = costs, .memory_limit = limit, .threads = 1};
    pc_schedule improved = {0};
    pc_improvement about = {0};
    pc_error error = {0};
    assert_int_equal(pc_schedule_improve(&request, &improved, &about, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
    assert_null(improved.passes);
    assert_null(about.peak_before_bytes);
}

static void test_refused(void **state) {
    (void)state;
    pc_schedule recomputing = named("1f1b-r", 2, 3, 1), two_ways = named("chimera", 2, 4, 2);
    pc_schedule many = named("1f1b-interleaved", 2, 2, 86), plain = named("zb-h1", 2, 3, 1);
    pc_costs one = times_of(2, 1, 1, 1, 1), two = times_of(2, 2, 1, 1, 1), most = times_of(2, 86, 1, 1, 1);
    test_limits none = test_limit_all(0);
    refuse(&recomputing, &one, (pc_memory_limit){NULL},
           "1f1b-r recomputes; expected a schedule of F, B, W and BW alone, where it is to be improved");
    refuse(&two_ways, &two, (pc_memory_limit){NULL},
           "chimera has two replicas; expected placement linear, interleaved or v, where it is to be improved");
    refuse(&many, &most, (pc_memory_limit){NULL},
           "1f1b-interleaved has 86 chunks a device; expected at most 85, where it is to be improved");
    refuse(&plain, &one, test_limit(&none),
           "zb-h1: device 0 has 0 bytes for activations; expected at least 1, which one microbatch takes");
    pc_schedule_free(&plain);
    pc_schedule_free(&many);
    pc_schedule_free(&two_ways);
    pc_schedule_free(&recomputing);
    pc_costs_free(&one);
    pc_costs_free(&two);
    pc_costs_free(&most);
}

/* On device 0 B and W, on device 1 BW: its B and W become known where the order is improved, and must have times. */
static void test_mixed(void **state) {
    (void)state;
    static const int kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W};
    enum { M = 3 };
    const int64_t lengths[] = {3 * M, 2 * M};
    pc_schedule apart = kind_by_kind(2, M, kinds, 3, 0), mixed;
    pc_costs costs = times_of(2, 1, 3, 4, 2);
    assert_int_equal(pc_schedule_create("mixed", 2, M, 1, PC_PLACEMENT_LINEAR, lengths, &mixed, NULL), PC_OK);
    memcpy(mixed.passes, apart.passes, 3 * M * sizeof *mixed.passes);
    for (int i = 0; i < M; i++) {
        mixed.passes[3 * M + i] = (pc_pass){i, 0, PC_PASS_F};
        mixed.passes[4 * M + i] = (pc_pass){i, 0, PC_PASS_BW};
    }
    pc_improvement about;
    pc_schedule improved = improve(&mixed, &costs, (pc_memory_limit){NULL}, &about);
    assert_true(about.is_changed);
    assert_false(pc_schedule_has(&improved, PC_PASS_BW));
    assert_true(about.bound_ps != PC_TIME_NOT_GIVEN);
    pc_improvement_free(&about);
    pc_schedule_free(&improved);
    costs.duration_ps[PC_PASS_KINDS + PC_PASS_BW] =
        5; /* less than B and W: what is apart has a bound, a mixture none */
    improved = improve(&mixed, &costs, (pc_memory_limit){NULL}, &about);
    assert_int_equal(about.bound_ps, PC_TIME_NOT_GIVEN);
    pc_improvement_free(&about);
    pc_schedule_free(&improved);
    costs.duration_ps[PC_PASS_KINDS + PC_PASS_W] = PC_TIME_NOT_GIVEN;
    refuse(&mixed, &costs, (pc_memory_limit){NULL},
           "mixed: the time of W of chunk 0 on device 1 is not given; expected one, for the order is improved at it");
    pc_schedule_free(&mixed);
    pc_schedule_free(&apart);
    pc_costs_free(&costs);
}

/* ---- allocations ---- */

/* Every one fails once; in a quick run one in 29. What is written on success only is not written then. */
static void sweep_allocations(const pc_schedule *given, const pc_costs *costs) {
    const pc_improve_request request = {.schedule = given, .costs = costs, .threads = 1};
    long count = 1;
    for (long i = -1; i < count; i += i < 0 ? 1 : test_part(29, 3)) {
        pc_schedule improved = {0};
        pc_improvement about = {0};
        pc_error error = {0};
        long before = pc_alloc_count();
        pc_alloc_fail_after(i);
        pc_code code = pc_schedule_improve(&request, &improved, &about, &error);
        pc_alloc_fail_after(-1);
        if (i < 0) {
            assert_int_equal(code, PC_OK);
            count = pc_alloc_count() - before;
            assert_true(count > 20);
        } else {
            assert_int_equal(code, PC_ERROR_NO_MEMORY);
            assert_string_equal(error.message, "out of memory: the allocation was refused");
            assert_null(improved.passes);
            assert_null(about.peak_before_bytes);
        }
        pc_schedule_free(&improved);
        pc_improvement_free(&about);
    }
}

static void test_every_allocation_fails_once(void **state) {
    (void)state;
    static const int kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W};
    pc_schedule linear = kind_by_kind(2, 3, kinds, 3, 0), folded = named("v-min", 2, 2, 2);
    pc_costs costs = times_of(2, 1, 3, 4, 2), two = times_of(2, 2, 3, 4, 2);
    two.recomputes_in_b = true;
    sweep_allocations(&linear, &costs);
    sweep_allocations(&folded, &two);
    pc_schedule_free(&linear);
    pc_schedule_free(&folded);
    pc_costs_free(&costs);
    pc_costs_free(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_schedules),
        cmocka_unit_test(test_gpipe_of_two),
        cmocka_unit_test(test_1f1b_is_optimal),
        cmocka_unit_test(test_microbatches_out_of_turn),
        cmocka_unit_test(test_named_are_tried),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
