/* Blocks without idle time: whether there is one, against all blocks of small instances and by algebra; that those
 * found can be repeated within the limits, whatever the costs; and that searches go on from them. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/search/seamless.h"
#include "models/schedule/steady.h"

enum { P_MAX = 16, TYPES = 6 };

typedef struct example {
    pc_costs costs;
    pc_instance instance;
    int64_t limit[P_MAX];
} example;

/* Times of a chunk; a limit in chunks, each of one byte. */
static void make_example(int p, int m, const int times[3], int delay, int chunks, example *e) {
    assert_int_equal(pc_costs_create(p, 2, &e->costs, NULL), PC_OK);
    for (int i = 0; i < 2 * p; i++) {
        for (int kind = 0; kind < 3; kind++) e->costs.duration_ps[i * PC_PASS_KINDS + kind] = times[kind];
        e->costs.activation_bytes[i] = 1;
    }
    e->costs.transfer.delay_ps = delay;
    for (int d = 0; d < p; d++) e->limit[d] = chunks;
    assert_int_equal(
        pc_instance_create(&e->costs, PC_PLACEMENT_V, true, m, (pc_memory_limit){e->limit}, &e->instance, NULL), PC_OK);
}

static void free_example(example *e) {
    pc_instance_free(&e->instance);
    pc_costs_free(&e->costs);
}

static bool finds(const pc_instance *instance) {
    pc_fitted_block block;
    assert_int_equal(pc_seamless_find(instance, pc_seamless_work(instance), PC_SEAMLESS_WHOLE, &block, NULL), PC_OK);
    pc_free(block.start);
    return block.microbatches == 1;
}

/* The fewest chunks with a block. */
static int least_chunks(int p, const int times[3], int delay) {
    for (int chunks = 2;; chunks++) {
        example e;
        make_example(p, 1, times, delay, chunks, &e);
        bool is_found = finds(&e.instance);
        free_example(&e);
        if (is_found) return chunks;
    }
}

/* ---- by algebra ---- */

/* With passes that are all as long as each other, V-Min's memory of 2 ceil((p+2)/3) chunks ('Controllable Memory',
 * section 4.2) is the least from three devices on. On average a device holds (2p+1)(F+B) + 3 W at the least, 4p+5 cells
 * of 6 on the last one, whose two B are neighbours, so that a W waits for the other B or the other B for a W. With two
 * devices 3 are enough: F0 F1 B1 W1 B0 W0 on the last, F0 . . F1 B1 . . B0 on the other. */
static void test_equal_times(void **state) {
    (void)state;
    static const int times[] = {1, 1, 1};
    for (int p = 1; p <= (int)test_part(10, P_MAX); p++) {
        int least = least_chunks(p, times, 0), of_v_min = 2 * ((p + 4) / 3);
        assert_true(6 * least >= 4 * p + 5 || p == 1);
        assert_int_equal(least, p == 1 ? 2 : p == 2 ? 3 : of_v_min);
    }
    assert_int_equal(least_chunks(2, times, 0), 3);
}

/* What a device holds over an interval T = 2(F+B+W) is on average what each chunk lives, so that x chunks are not
 * enough if x T < (2p+1)(F+B) + 4(p-1)c + 3 W. */
static void test_average_memory(void **state) {
    (void)state;
    test_random random = {9};
    for (long i = 0; i < test_cases(60, 200); i++) {
        int p = (int)test_between(&random, 2, 6), times[3], c = (int)test_between(&random, 0, 3);
        for (int kind = 0; kind < 3; kind++) times[kind] = (int)test_between(&random, 1, 9);
        int f = times[0] + times[1], interval = 2 * (f + times[2]);
        assert_true(least_chunks(p, times, c) * interval >= (2 * p + 1) * f + 4 * (p - 1) * c + 3 * times[2]);
    }
}

static bool fits_into(int p, const int times[3], int chunks) {
    example e;
    make_example(p, 1, times, 0, chunks, &e);
    bool is_found = finds(&e.instance);
    free_example(&e);
    return is_found;
}

/* What docs/searches.md says. With L and S the longer and the shorter of F and B, V-Min's memory on 8 devices is enough
 * if W >= L, or if L >= 2S and W >= L - S/2, and in no other case. V-Half's is on any number of devices if W >= L, or
 * where V-Half as published has no repeating bubble (test_steady.c): 4 L + W <= 2 (F+B+W). */
static void test_where_it_goes_away(void **state) {
    (void)state;
    test_random random = {12};
    for (long i = 0; i < test_cases(60, 200); i++) {
        int p = (int)test_between(&random, 2, 10), times[3];
        for (int kind = 0; kind < 3; kind++) times[kind] = 2 * (int)test_between(&random, 1, 9);
        int l = times[0] > times[1] ? times[0] : times[1], s = times[0] + times[1] - l, w = times[2];
        assert_int_equal(fits_into(8, times, 8), w >= l || (l >= 2 * s && 2 * w >= 2 * l - s));
        if (w >= l || 2 * l <= 2 * s + w) assert_true(fits_into(p, times, 2 * ((p + 2) / 2)));
    }
}

/* ---- all blocks of two devices ---- */

/* A block under construction: starts of [device][type] in the order of the way, then the W. */
typedef struct trial {
    const pc_instance *instance;
    int interval, chunks;
    int start[2][TYPES];
    bool taken[2][128];
} trial;

static const struct {
    int device, type;
} way[] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 3}, {1, 3}, {1, 2}, {0, 2}, {0, 4}, {0, 5}, {1, 4}, {1, 5}};
enum { WAY = 12, WAY_OF_W = 8 };

static const pc_instance_cell *cell_at(const trial *t, int step) {
    return &t->instance->cells[way[step].device * TYPES + way[step].type];
}

/* Cell by cell of the interval, over as many as anything lives. */
static bool is_within(const trial *t) {
    for (int d = 0; d < 2; d++)
        for (int at = 0; at < t->interval; at++) {
            int held = 0;
            for (int turn = 0; turn < 32; turn++)
                for (int chunk = 0; chunk < 2; chunk++) {
                    int now = at + turn * t->interval, w = t->start[d][4 + chunk];
                    int end = w + (int)t->instance->cells[d * TYPES + 4 + chunk].duration;
                    held += t->start[d][chunk] <= now && now < end;
                }
            if (held > t->chunks) return false;
        }
    return true;
}

static bool mark(trial *t, int step, int start, bool taken) {
    for (int k = 0; k < cell_at(t, step)->duration; k++) {
        bool *cell = &t->taken[way[step].device][(start + k) % t->interval];
        if (taken && *cell) {
            for (int back = 0; back < k; back++) t->taken[way[step].device][(start + back) % t->interval] = false;
            return false;
        }
        *cell = taken;
    }
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the way is long */
static bool try_step(trial *t, int step) {
    if (step == WAY) return is_within(t);
    int device = way[step].device, type = way[step].type, ready = 0;
    if (step >= WAY_OF_W)
        ready = t->start[device][type - 2] + (int)t->instance->cells[device * TYPES + type - 2].duration;
    else if (step > 0)
        ready = t->start[way[step - 1].device][way[step - 1].type] + (int)cell_at(t, step - 1)->duration +
                (int)cell_at(t, step)->before_delay;
    /* The first chunk of device 0 alone lives for longer than memory allows. */
    int last = step == 0 ? 0 : t->chunks * t->interval;
    for (int start = ready; start <= last; start++) {
        if (!mark(t, step, start, true)) continue;
        t->start[device][type] = start;
        bool is_found = try_step(t, step + 1);
        mark(t, step, start, false);
        if (is_found) return true;
        if (step >= WAY_OF_W && start >= ready + t->interval) break;
    }
    return false;
}

static void test_all_blocks(void **state) {
    (void)state;
    test_random random = {10};
    int found = 0, cases = 0;
    for (long i = 0; i < test_cases(40, 150); i++, cases++) {
        int times[3], c = (int)test_between(&random, 0, 1), chunks = (int)test_between(&random, 2, 4);
        for (int kind = 0; kind < 3; kind++) times[kind] = (int)test_between(&random, 1, 3);
        example e;
        make_example(2, 1, times, c, chunks, &e);
        trial t = {.instance = &e.instance, .chunks = chunks, .interval = (int)pc_seamless_work(&e.instance)};
        bool is_there = try_step(&t, 0);
        assert_int_equal(finds(&e.instance), is_there);
        found += is_there;
        free_example(&e);
    }
    assert_true(found > cases / 10 && found < cases * 9 / 10);
}

/* ---- what is found ---- */

static void draw_example(test_random *random, example *e) {
    int p = (int)test_between(random, 1, 6);
    assert_int_equal(pc_costs_create(p, 2, &e->costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_hop_delays(&e->costs, NULL), PC_OK);
    for (int i = 0; i < 2 * p; i++) {
        for (int kind = 0; kind < 3; kind++)
            e->costs.duration_ps[i * PC_PASS_KINDS + kind] = test_between(random, 10, 13);
        e->costs.activation_bytes[i] = test_between(random, 1, 9);
        e->costs.activation_b_bytes[i] = test_between(random, 0, e->costs.activation_bytes[i]);
    }
    for (int d = 0; d < p; d++) e->costs.hop_delay_ps[d] = test_between(random, 0, 4);
    for (int d = 0; d < p; d++) e->limit[d] = test_between(random, 20, 80);
    assert_int_equal(
        pc_instance_create(&e->costs, PC_PLACEMENT_V, true, 9, (pc_memory_limit){e->limit}, &e->instance, NULL), PC_OK);
}

/* Repeated and squeezed it keeps every limit (pc_reorder_squeeze), and ends no later than the block would. */
static void check_block(const pc_instance *instance, const pc_fitted_block *block) {
    pc_instance_order order;
    pc_reorder *room;
    int cells = instance->devices * TYPES;
    pc_time last = 0;
    for (int i = 0; i < cells; i++) {
        pc_time end = block->start[i] + instance->cells[i].duration;
        const pc_instance_cell *cell = &instance->cells[i];
        if (cell->before >= 0)
            assert_true(block->start[i] >=
                        block->start[cell->before] + instance->cells[cell->before].duration + cell->before_delay);
        if (end > last) last = end;
    }
    assert_int_equal(pc_instance_order_create(instance, &order, NULL), PC_OK);
    assert_int_equal(pc_reorder_create(instance, &room, NULL), PC_OK);
    pc_fitted_repeat(block, instance, &order);
    assert_true(pc_reorder_squeeze(room, &order));
    assert_true(order.makespan <= (instance->microbatches - 1) * block->interval + last);
    pc_reorder_free(room);
    pc_instance_order_free(&order);
}

static void test_blocks_of_any_costs(void **state) {
    (void)state;
    test_random random = {11};
    int found = 0;
    for (long i = 0; i < test_cases(100, 300); i++) {
        example e;
        draw_example(&random, &e);
        pc_fitted_block block;
        pc_time interval = pc_seamless_work(&e.instance) + test_between(&random, -1, 20);
        assert_int_equal(pc_seamless_find(&e.instance, interval, PC_SEAMLESS_QUICK, &block, NULL), PC_OK);
        if (block.microbatches) {
            assert_int_equal(block.interval, interval);
            assert_true(interval >= pc_seamless_work(&e.instance));
            check_block(&e.instance, &block);
            found++;
        }
        pc_free(block.start);
        free_example(&e);
    }
    assert_true(test_saw(found, 20));
}

/* ---- searches ---- */

/* 11 chunks, where V-Min's own rule wants 12: on 16 devices, times 1, 1 and 2, there is a block without idle time, but
 * not among those of cells that are alike. Without it 96 microbatches idled 14 times a stage's work, and more with
 * more. */
static void test_search_goes_on(void **state) {
    (void)state;
    static const int times[] = {1, 1, 2};
    example e;
    pc_schedule schedule;
    pc_steady steady;
    make_example(16, 1, times, 0, 11, &e);
    const pc_generate_request request = {
        .devices = 16, .microbatches = 96, .costs = &e.costs, .memory_limit = {e.limit}, .searches_once = true};
    assert_int_equal(pc_generate(pc_generator_find("v-adaptive"), &request, &schedule, NULL, NULL), PC_OK);
    assert_int_equal(pc_steady_find(&schedule, &e.costs, &steady, NULL), PC_OK);
    assert_true(steady.microbatches > 0);
    assert_float_equal(pc_steady_bubble_rate(&steady), 0, 0);
    pc_steady_free(&steady);
    pc_schedule_free(&schedule);
    free_example(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_times),         cmocka_unit_test(test_average_memory),
        cmocka_unit_test(test_where_it_goes_away),  cmocka_unit_test(test_all_blocks),
        cmocka_unit_test(test_blocks_of_any_costs), cmocka_unit_test(test_search_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
