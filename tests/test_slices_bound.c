/* The bound of schedules of slices: below every order of tiny pipelines, all of them tried, and of random ones; and
 * reached by those that are known to be the shortest. */
#include "tests/random_schedule.h"
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/least_span.h"
#include "models/schedule/replay.h"
#include "models/schedule/timing.h"

#include <string.h>

static pc_time bound_of(const pc_schedule *schedule, const pc_costs *costs, const int64_t *limit) {
    pc_time least = 0;
    assert_int_equal(pc_schedule_least_span(schedule, costs, (pc_memory_limit){limit}, &least, NULL), PC_OK);
    return least;
}

/* The bound in the memory that this order takes. */
static pc_time bound_in_its_memory(const pc_schedule *schedule, const pc_costs *costs, const pc_timing_result *found) {
    int64_t limit[8];
    for (int d = 0; d < schedule->devices; d++) limit[d] = found->stages[d].peak_bytes;
    return bound_of(schedule, costs, limit);
}

/* ---- every order of a tiny pipeline ---- */

enum { PASSES_MAX = 16, ORDERS_MAX = 10000 };

/* All orders of one stage, in which passes of a microbatch stand as the model has them. */
typedef struct orders {
    pc_pass pass[PASSES_MAX];
    int count, slices;
    int (*order)[PASSES_MAX]; /* indices into `pass` */
    int found;
} orders;

static bool is_back(pc_pass pass) {
    return pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW;
}

/* Whether `a` must stand before `b` on the stage. */
static bool precedes(const orders *x, pc_pass a, pc_pass b) {
    int part_a = a.chunk / x->slices, part_b = b.chunk / x->slices;
    int slice_a = a.chunk % x->slices, slice_b = b.chunk % x->slices;
    if (a.microbatch != b.microbatch) return false;
    if (b.kind == PC_PASS_W) return a.kind == PC_PASS_B && a.chunk == b.chunk;
    if (a.kind == PC_PASS_F && b.kind == PC_PASS_F) return a.chunk != b.chunk && part_a <= part_b && slice_a <= slice_b;
    if (is_back(a) && is_back(b)) return a.chunk != b.chunk && part_a >= part_b && slice_a >= slice_b;
    return a.kind == PC_PASS_F && is_back(b);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are passes */
static void extend(orders *x, int *order, int length, unsigned used) {
    if (length == x->count) {
        assert_true(x->found < ORDERS_MAX);
        memcpy(x->order[x->found++], order, (size_t)length * sizeof *order);
        return;
    }
    for (int i = 0; i < x->count; i++) {
        bool can = !(used >> i & 1);
        for (int k = 0; can && k < x->count; k++) can = used >> k & 1 || !precedes(x, x->pass[k], x->pass[i]);
        order[length] = i;
        if (can) extend(x, order, length + 1, used | 1U << i);
    }
}

static void find_orders(orders *x, int m, int chunks, int slices, bool splits) {
    int order[PASSES_MAX];
    *x = (orders){.slices = slices, .order = calloc(ORDERS_MAX, sizeof *x->order)};
    for (int i = 0; i < m; i++)
        for (int c = 0; c < chunks; c++) {
            x->pass[x->count++] = (pc_pass){i, (int16_t)c, PC_PASS_F};
            x->pass[x->count++] = (pc_pass){i, (int16_t)c, splits ? PC_PASS_B : PC_PASS_BW};
            if (splits) x->pass[x->count++] = (pc_pass){i, (int16_t)c, PC_PASS_W};
        }
    extend(x, order, 0, 0);
}

/* What all orders came to: how many ran, and how near the bound of its own memory the nearest of them is. */
typedef struct tried {
    long ran, reached;
} tried;

static void try_one(const pc_schedule *schedule, const pc_costs *costs, pc_timing *timing, tried *seen) {
    pc_timing_result found;
    if (pc_timing_run(timing, schedule, costs, &found, NULL)) return; /* it waits in a circle */
    pc_time bound = bound_in_its_memory(schedule, costs, &found);
    assert_true(bound > 0 && bound <= found.totals.span_ps);
    seen->ran++;
    seen->reached += bound == found.totals.span_ps;
}

/* Two stages; all pairs of their orders. */
static void try_all(int m, int chunks, int slices, bool splits, const pc_costs *costs, int stages, tried *seen) {
    orders all;
    pc_schedule schedule;
    pc_timing *timing;
    find_orders(&all, m, chunks, slices, splits);
    const int64_t lengths[] = {all.count, all.count};
    assert_int_equal(
        pc_schedule_create("x", stages, m, chunks, PC_PLACEMENT_OF_SLICES(slices), lengths, &schedule, NULL), PC_OK);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int a = 0; a < all.found; a++)
        for (int b = 0; b < (stages > 1 ? all.found : 1); b++) {
            for (int i = 0; i < all.count; i++) {
                schedule.passes[i] = all.pass[all.order[a][i]];
                if (stages > 1) schedule.passes[all.count + i] = all.pass[all.order[b][i]];
            }
            try_one(&schedule, costs, timing, seen);
        }
    pc_timing_free(timing);
    pc_schedule_free(&schedule);
    free(all.order);
}

static void make_costs(int p, int chunks, const int *times, pc_costs *costs) {
    assert_int_equal(pc_costs_create(p, chunks, costs, NULL), PC_OK);
    for (int i = 0; i < p * chunks; i++) {
        pc_time *x = &costs->duration_ps[i * PC_PASS_KINDS];
        int step = i % chunks;
        x[PC_PASS_F] = times[0] + step * times[3];
        x[PC_PASS_B] = times[1] + step * times[3];
        x[PC_PASS_W] = times[2];
        x[PC_PASS_BW] = x[PC_PASS_B] + x[PC_PASS_W];
        costs->activation_bytes[i] = 4 + step * times[3];
        costs->activation_b_bytes[i] = 1;
    }
    costs->transfer.delay_ps = times[4];
}

static void test_all_orders(void **state) {
    (void)state;
    static const int times[][5] = {{10, 10, 10, 0, 0}, {10, 14, 9, 0, 3}, {5, 8, 2, 3, 1}, {7, 3, 11, 2, 20}};
    static const int shapes[][4] = {{2, 2, 2, 0}, {1, 4, 2, 0}, {1, 2, 2, 1}, {1, 3, 3, 1}, {1, 4, 1, 0}, {2, 2, 1, 0}};
    for (size_t t = 0; t < sizeof times / sizeof *times; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const int *shape = shapes[s];
            tried seen = {0, 0};
            pc_costs costs;
            make_costs(2, shape[1], times[t], &costs);
            try_all(shape[0], shape[1], shape[2], shape[3], &costs, 2, &seen);
            assert_true(seen.ran > 0);
            pc_costs_free(&costs);
        }
}

/* One stage never waits: every order is as long as its work, and the bound says so. */
static void test_one_stage(void **state) {
    (void)state;
    static const int times[] = {5, 8, 2, 3, 1};
    tried seen = {0, 0};
    pc_costs costs;
    make_costs(1, 2, times, &costs);
    try_all(2, 2, 2, false, &costs, 1, &seen);
    assert_int_equal(seen.ran, 70); /* two chains of four passes */
    assert_int_equal(seen.reached, seen.ran);
    pc_costs_free(&costs);
}

/* ---- random ones ---- */

static bool is_mixed(const pc_schedule *schedule) {
    return pc_schedule_has(schedule, PC_PASS_W) && pc_schedule_has(schedule, PC_PASS_BW);
}

static void test_random_schedules(void **state) {
    (void)state;
    test_random random = {20240603};
    pc_timing *timing;
    int cut = 0;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    for (int i = 0; i < 20000; i++) {
        pc_schedule schedule;
        pc_costs costs;
        pc_timing_result found;
        random_schedule(&random, 4, 4, 6, &schedule);
        random_costs(&random, &schedule, &costs);
        bool has_slices = pc_placement_has_slices(schedule.placement) && !pc_schedule_has(&schedule, PC_PASS_R);
        if (has_slices) {
            for (int c = 0; c < schedule.devices * schedule.chunks; c++) { /* a BW is no shorter than both */
                pc_time *x = &costs.duration_ps[c * PC_PASS_KINDS];
                /* cppcheck-suppress objectIndex ; duration_ps is an array */
                x[PC_PASS_BW] = x[PC_PASS_B] + x[PC_PASS_W] + x[PC_PASS_BW] / 4;
            }
            assert_int_equal(pc_timing_run(timing, &schedule, &costs, &found, NULL), PC_OK);
            pc_time bound = bound_in_its_memory(&schedule, &costs, &found);
            bool is_known = !costs.recomputes_in_b || !is_mixed(&schedule);
            assert_int_equal(bound != PC_TIME_NOT_GIVEN, is_known);
            if (bound > found.totals.span_ps)
                fail_msg("case %d: bound %lld, span %lld", i, (long long)bound, (long long)found.totals.span_ps);
            cut++;
        }
        pc_costs_free(&costs);
        pc_schedule_free(&schedule);
    }
    assert_true(cut > 200);
    pc_timing_free(timing);
}

/* ---- what is the shortest ---- */

/* Seq1F1B of equal slices: in its memory, p+k-1 slices on stage 0, that one waits (p-1) b before its first backward
 * pass and (p-1) f behind its last F. Interleaved likewise. GPipe of as much memory as it likes is not proved. */
static void check_reached(const char *name, int p, int m, int v, int k) {
    static const int times[] = {10, 17, 0, 0, 0};
    pc_generate_request request = {.devices = p, .microbatches = m, .chunks = v * k, .slices = k};
    pc_schedule schedule;
    pc_replay replay;
    pc_costs costs;
    make_costs(p, v * k, times, &costs);
    assert_int_equal(pc_generate(pc_generator_find(name), &request, &schedule, NULL, NULL), PC_OK);
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    assert_int_equal(bound_of(&schedule, &costs, replay.device_peak_bytes), (m * v * k + p - 1) * 27);
    assert_int_equal(replay.span_ps, (m * v * k + p - 1) * 27);
    pc_replay_free(&replay);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
}

static void test_reached(void **state) {
    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int k = 1; k <= 4; k++) check_reached("seq-1f1b", p, 2 * p + 1, 1, k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_one_stage),
        cmocka_unit_test(test_random_schedules),
        cmocka_unit_test(test_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
