/* What no schedule can beat: never more than the shortest of all orders, and as much in the cases that have a closed
 * form. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/schedule/least_span.h"
#include "models/schedule/replay.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/instance.h"

#include <math.h>

/* ---- instances ---- */

static pc_costs equal_costs(int p, int chunks, const pc_time times[PC_PASS_KINDS], pc_time delay, int64_t bytes) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, chunks, &costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)p * chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = times[kind];
        costs.activation_bytes[i] = bytes;
    }
    costs.transfer.delay_ps = delay;
    return costs;
}

static pc_instance instance_at(const pc_costs *costs, pc_placement placement, bool splits, int m, int64_t limit) {
    pc_instance instance;
    int64_t limits[64];
    for (int d = 0; d < costs->devices; d++) limits[d] = limit;
    assert_int_equal(pc_instance_create(costs, placement, splits, m, (pc_memory_limit){limits}, &instance, NULL),
                     PC_OK);
    return instance;
}

static pc_time bound_of(const pc_instance *instance) {
    pc_time bound = -1;
    assert_int_equal(pc_instance_bound(instance, &bound, NULL), PC_OK);
    assert_true(bound >= pc_instance_least_span(instance));
    return bound;
}

static pc_time bound_at(int p, int chunks, const pc_time times[PC_PASS_KINDS], bool splits, int m, int64_t limit) {
    pc_costs costs = equal_costs(p, chunks, times, 0, 1);
    pc_instance instance = instance_at(&costs, chunks == 2 ? PC_PLACEMENT_V : PC_PLACEMENT_LINEAR, splits, m, limit);
    pc_time bound = bound_of(&instance);
    pc_instance_free(&instance);
    pc_costs_free(&costs);
    return bound;
}

/* ---- closed forms ---- */

/* Two devices with memory for two microbatches, F and BW: device 0 runs F0 and F1, and waits for F0 and BW0 of device
 * 1, of which F1 fills F: it idles BW. After its last F it waits for F and BW of device 1, of which one BW of its own
 * fills BW: it idles F. So (m+1)(F+BW), which is 1F1B's. */
static void test_1f1b(void **state) {
    (void)state;
    for (int f = 1; f <= 5; f++)
        for (int bw = 1; bw <= 7; bw++)
            for (int m = 2; m <= 9; m++) {
                const pc_time times[PC_PASS_KINDS] = {[PC_PASS_F] = f, [PC_PASS_BW] = bw};
                assert_int_equal(bound_at(2, 1, times, false, m, 2), (m + 1) * (f + bw));
            }
}

/* F = B = W = 1. With memory for p microbatches device 0 idles p-1: its first B comes p F and p-1 B after the start,
 * and p F fit before. With memory for 2p-1 of them nothing idles (ZB-H1, ZB-H2). */
static void test_zero_bubble(void **state) {
    (void)state;
    const pc_time times[PC_PASS_KINDS] = {1, 1, 1, 2};
    for (int p = 1; p <= 10; p++)
        for (int m = 2 * p; m <= 3 * p + 1; m++) {
            assert_int_equal(bound_at(p, 1, times, true, m, p), 3 * m + p - 1);
            assert_int_equal(bound_at(p, 1, times, true, m, 2 * p - 1), 3 * m);
        }
}

/* Two devices folded to a V with memory for one microbatch, all passes of a chunk 1: f and F fill it. So f of device 1
 * waits until all of the microbatch before is given back. From the start of f on device 0 it takes f and b there; b, B,
 * w, W and the next F on device 1, for a device that runs F before has no room for f; and f there. So the next f of
 * device 0 starts 8 later. The first one starts at 3; after the start of the last one come f, b, two passes of device
 * 1, B and W: 3 + 8(m-1) + 6. */
static void test_one_microbatch(void **state) {
    (void)state;
    const pc_time times[PC_PASS_KINDS] = {1, 1, 1, 2};
    for (int m = 1; m <= 12; m++) assert_int_equal(bound_at(2, 2, times, true, m, 2), 8 * m + 1);
}

/* Folded to a V, all passes of a chunk 1, memory for x chunks. On the last device, of both chunks together, no more
 * than x F fit into the 2p from its first F to its first B: it idles 2p-x. All but x of its W come before its last F,
 * and with them as many B. From there to its last B a microbatch takes 2p for its way up and down, and then p to the
 * end of device 0, which started p before. So device 0 takes 4p - 1 + (2p-x) + 2m + 2(2m-x) = 6m + 6p-3x - 1. The
 * shortest schedules known are as short (known.h). */
static void test_v(void **state) {
    (void)state;
    const pc_time times[PC_PASS_KINDS] = {1, 1, 1, 2};
    static const int cases[][2] = {{3, 4}, {4, 4}, {4, 5}, {4, 6},  {5, 5}, {5, 6},
                                   {5, 8}, {6, 6}, {8, 8}, {8, 12}, {8, 14}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int p = cases[i][0], x = cases[i][1];
        for (int m = 2 * p; m <= 3 * p + 1; m++)
            assert_int_equal(bound_at(p, 2, times, true, m, x), 6 * m + 6 * p - 3 * x - 1);
    }
}

/* Whichever allocation fails, the bound stays as it was and nothing is lost. */
static void test_without_memory(void **state) {
    (void)state;
    const pc_time times[PC_PASS_KINDS] = {1, 1, 1, 2};
    pc_costs costs = equal_costs(3, 2, times, 0, 1);
    pc_instance instance = instance_at(&costs, PC_PLACEMENT_V, true, 4, 5);
    pc_code code = PC_ERROR_NO_MEMORY;
    pc_time bound = -1;
    for (long after = 0; code; after++) {
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_int_equal(bound, -1);
        pc_alloc_fail_after(after);
        code = pc_instance_bound(&instance, &bound, NULL);
        pc_alloc_fail_after(-1);
    }
    assert_true(bound >= 24);
    pc_instance_free(&instance);
    pc_costs_free(&costs);
}

/* ---- all orders ---- */

enum { PASSES = 18, ORDERS = 400 };

typedef struct order_list {
    int count;
    bool is_cut; /* there are more */
    pc_instance_pass pass[ORDERS][PASSES];
} order_list;

/* The type of the same device that a pass waits for, through whatever devices; PC_INSTANCE_NONE where there is none. */
static int before_on_device(const pc_instance *in, int device, int type) {
    int cell = in->cells[device * in->types + type].before;
    while (cell != PC_INSTANCE_NONE && cell / in->types != device) cell = in->cells[cell].before;
    return cell == PC_INSTANCE_NONE ? PC_INSTANCE_NONE : cell % in->types;
}

/* All orders of one device in which every type runs in turn, no pass before one of its own device that it needs, and
 * within the limit. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as PASSES */
static void list_orders(const pc_instance *in, int device, int length, int64_t level, int *done,
                        pc_instance_pass *order, order_list *list) {
    if (length == in->passes) {
        list->is_cut = list->is_cut || list->count == ORDERS;
        if (!list->is_cut) memcpy(list->pass[list->count++], order, sizeof *list->pass);
        return;
    }
    for (int type = 0; type < in->types && !list->is_cut; type++) {
        const pc_instance_cell *cell = &in->cells[device * in->types + type];
        int own = cell->own % in->types, before = before_on_device(in, device, type);
        if (done[type] == in->microbatches || (cell->own != PC_INSTANCE_NONE && done[own] <= done[type])) continue;
        if ((before != PC_INSTANCE_NONE && done[before] <= done[type]) ||
            (cell->taken > 0 && level + cell->taken > in->limit[device]))
            continue;
        order[length] = pc_instance_pass_make(type, done[type]++);
        list_orders(in, device, length + 1, level + cell->taken, done, order, list);
        done[type]--;
    }
}

#define BEFORE_ALL INT64_C(-1000000)

/* Whether a pass can be timed: *ready becomes when it can start, but for its own device. */
static bool find_ready(const pc_instance *in, const pc_time *end, int cell, int microbatch, pc_time *ready) {
    const pc_instance_cell *c = &in->cells[cell];
    const int before[] = {c->before, c->own};
    const pc_time delay[] = {c->before_delay, 0};
    for (int i = 0; i < 2; i++) {
        if (before[i] == PC_INSTANCE_NONE) continue;
        pc_time other = end[before[i] * in->microbatches + microbatch];
        if (other == INT64_MAX) return false;
        if (other + delay[i] > *ready) *ready = other + delay[i];
    }
    return true;
}

/* From the start of a device's first pass to the end of its last one, as far as one follows from the other: the least
 * span of this device in these orders, whenever the other devices start. INT64_MAX where nothing can run. */
static pc_time span_of(const pc_instance *in, const pc_instance_pass *const *order, int device) {
    pc_time end[3 * PASSES], free[3];
    int next[3] = {0}, p = in->devices;
    for (int i = 0; i < p * in->passes; i++) end[i] = INT64_MAX;
    for (int d = 0; d < p; d++) free[d] = d == device ? 0 : BEFORE_ALL;
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (int d = 0; d < p; d++)
            for (; next[d] < in->passes; next[d]++) {
                pc_instance_pass pass = order[d][next[d]];
                int cell = d * in->types + pc_instance_pass_type(pass), microbatch = pc_instance_pass_microbatch(pass);
                pc_time ready = free[d];
                if (!find_ready(in, end, cell, microbatch, &ready)) break;
                free[d] = end[cell * in->microbatches + microbatch] = ready + in->cells[cell].duration;
                goes_on = true;
            }
    }
    for (int d = 0; d < p; d++)
        if (next[d] < in->passes) return INT64_MAX;
    return free[device];
}

/* No schedule has less than the least, over all orders, of the longest span of its devices; INT64_MAX where there are
 * too many to try, or none can run. *count becomes their number. */
static pc_time least_of_all(const pc_instance *in, int64_t *count) {
    static order_list lists[3];
    const pc_instance_pass *order[3];
    pc_time least = INT64_MAX;
    *count = 1;
    for (int d = 0; d < in->devices; d++) {
        int done[PASSES] = {0};
        pc_instance_pass passes[PASSES];
        lists[d].count = lists[d].is_cut = 0;
        list_orders(in, d, 0, 0, done, passes, &lists[d]);
        *count *= lists[d].is_cut ? 0 : lists[d].count;
    }
    if (*count > 30000) *count = 0;
    for (int64_t i = 0; i < *count; i++) {
        int64_t rest = i;
        pc_time longest = 0;
        for (int d = 0; d < in->devices; rest /= lists[d++].count) order[d] = lists[d].pass[rest % lists[d].count];
        for (int d = 0; d < in->devices && longest < least; d++) {
            pc_time span = span_of(in, order, d);
            if (span > longest) longest = span;
        }
        if (longest < least) least = longest;
    }
    return least;
}

/* Up to 3 devices, 3 microbatches and 3 chunks (of 2 devices), of any times (0 too), memory that B gives back in part,
 * limits from the least that one microbatch needs, device by device. */
static pc_instance draw_instance(test_random *random, pc_costs *costs) {
    static const pc_placement two[] = {PC_PLACEMENT_V, PC_PLACEMENT_INTERLEAVED};
    int p = (int)test_between(random, 1, 3), chunks = (int)test_between(random, 1, p == 2 ? 3 : 2);
    bool splits = test_between(random, 0, 2) > 0;
    int m = (int)test_between(random, 1, chunks == 1 || (chunks == 3 && !splits) ? 3 : 2);
    bool is_equal = test_between(random, 0, 2) == 0, gives = test_between(random, 0, 1);
    int64_t limits[3];
    pc_instance instance;
    assert_int_equal(pc_costs_create(p, chunks, costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)p * chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs->duration_ps[i * PC_PASS_KINDS + kind] = is_equal ? 2 : test_between(random, 0, 9);
        costs->activation_bytes[i] = is_equal ? 4 : test_between(random, 0, 9);
        costs->activation_b_bytes[i] = gives ? test_between(random, 0, costs->activation_bytes[i]) : 0;
    }
    costs->transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 8);
    for (int d = 0; d < p; d++) {
        limits[d] = 0;
        for (int c = 0; c < chunks; c++) limits[d] += costs->activation_bytes[d * chunks + c];
        limits[d] += test_between(random, 0, 12);
    }
    pc_placement placement = chunks == 1 ? PC_PLACEMENT_LINEAR : two[test_between(random, 0, 1)];
    assert_int_equal(pc_instance_create(costs, placement, splits, m, (pc_memory_limit){limits}, &instance, NULL),
                     PC_OK);
    return instance;
}

static void test_all_orders(void **state) {
    (void)state;
    test_random random = {41};
    int64_t tried = 0, equal = 0, count;
    for (int64_t i = 0; i < test_cases(3000, 6000); i++) {
        pc_costs costs;
        pc_instance instance = draw_instance(&random, &costs);
        pc_time least = least_of_all(&instance, &count), bound = bound_of(&instance);
        if (count > 0) {
            if (bound > least)
                fail_msg("case %d: p %d, m %d, %d chunks: bound %d, but %d can be", (int)i, instance.devices,
                         instance.microbatches, instance.chunks, (int)bound, (int)least);
            tried++;
            equal += bound == least;
        }
        pc_instance_free(&instance);
        pc_costs_free(&costs);
    }
    print_message("%d instances of which all orders were tried: the bound is the shortest one's span in %d\n",
                  (int)tried, (int)equal);
    assert_true(tried > 0);
}

/* The span of what the search for this placement gives, within the instance's own limits. */
static pc_time searched_span(const pc_instance *in, const pc_costs *costs) {
    static const char *const names[] = {
        [PC_PLACEMENT_V] = "v-adaptive", [PC_PLACEMENT_INTERLEAVED] = "interleaved-adaptive"};
    pc_generate_request request = {.devices = in->devices,
                                   .microbatches = in->microbatches,
                                   .chunks = in->chunks,
                                   .costs = costs,
                                   .memory_limit = {in->limit},
                                   .threads = 1};
    pc_schedule schedule;
    pc_replay replay;
    pc_error error = {0};
    if (pc_generate(pc_generator_find(names[in->placement]), &request, &schedule, NULL, &error))
        fail_msg("%s", error.message);
    assert_int_equal(pc_replay_run(&schedule, costs, NULL, &replay, NULL), PC_OK);
    pc_time span = replay.span_ps;
    pc_replay_free(&replay);
    pc_schedule_free(&schedule);
    return span;
}

static bool takes_memory(const pc_costs *costs) {
    bool takes = false;
    for (int i = 0; i < costs->devices * costs->chunks; i++) takes = takes || costs->activation_bytes[i] > 0;
    return takes;
}

/* Searches over two chunks and three give nothing shorter than the shortest of all orders; and nothing longer in nearly
 * all cases. */
static void test_searched_against_all_orders(void **state) {
    (void)state;
    test_random random = {47};
    int64_t tried[4] = {0}, equal[4] = {0}, count, cases = test_cases(3000, 6000);
    for (int64_t i = 0; i < cases; i++) {
        pc_costs costs;
        pc_instance instance = draw_instance(&random, &costs);
        bool is_asked = instance.splits && instance.chunks > 1 && takes_memory(&costs);
        pc_time least = is_asked ? least_of_all(&instance, &count) : 0;
        if (is_asked && count > 0) {
            pc_time span = searched_span(&instance, &costs);
            assert_true(span >= least);
            tried[instance.chunks]++;
            equal[instance.chunks] += span == least;
        }
        pc_instance_free(&instance);
        pc_costs_free(&costs);
    }
    for (int chunks = 2; chunks <= 3; chunks++) {
        print_message("%d chunks: the shortest of all orders in %d of %d\n", chunks, (int)equal[chunks],
                      (int)tried[chunks]);
        assert_true(test_saw(tried[chunks], cases / 100));
        assert_true(50 * equal[chunks] >= 49 * tried[chunks]);
    }
}

/* ---- schedules ---- */

/* F, B and W of their own on every device and chunk, BW as long as both. */
static pc_costs draw_costs(test_random *random, const pc_generator *generator, int p, int chunks) {
    pc_costs costs;
    bool is_equal = test_between(random, 0, 1);
    const pc_time equal[] = {test_between(random, 1, 30), test_between(random, 1, 30), test_between(random, 1, 30)};
    assert_int_equal(pc_costs_create(p, chunks, &costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)p * chunks; i++) {
        pc_time times[PC_PASS_KINDS] = {0}; /* of S and T none */
        for (int kind = 0; kind < 3; kind++) times[kind] = is_equal ? equal[kind] : test_between(random, 1, 30);
        times[PC_PASS_BW] = times[PC_PASS_B] + times[PC_PASS_W];
        times[PC_PASS_R] = times[PC_PASS_F];
        memcpy(costs.duration_ps + i * PC_PASS_KINDS, times, sizeof times);
        costs.activation_bytes[i] = 4;
        costs.activation_kept_bytes[i] = generator->recomputes ? 1 : 4;
    }
    costs.transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 10);
    return costs;
}

static void check_schedule(const pc_generator *generator, test_random *random) {
    int p = (int)test_between(random, 1, 5), chunks = generator->chunks_default;
    int64_t limit[64];
    pc_costs costs = draw_costs(random, generator, p, chunks);
    pc_generate_request request = {.devices = p, .microbatches = test_between(random, 1, 14), .costs = &costs};
    pc_schedule schedule;
    pc_replay replay;
    pc_time least;
    for (int d = 0; d < p; d++) limit[d] = 4 * chunks * test_between(random, 1, 2 * p);
    if (test_between(random, 0, 1)) request.memory_limit = (pc_memory_limit){limit};
    if (pc_generate(generator, &request, &schedule, NULL, NULL) == PC_OK) {
        int64_t allowed[64];
        pc_error error = {0};
        if (pc_replay_run(&schedule, &costs, NULL, &replay, &error)) fail_msg("%s: %s", schedule.name, error.message);
        pc_least_span_limits(generator, &request, &replay, allowed);
        for (int d = 0; d < p; d++) assert_true(allowed[d] >= replay.device_peak_bytes[d]);
        assert_int_equal(pc_schedule_least_span(&schedule, &costs, (pc_memory_limit){allowed}, &least, NULL), PC_OK);
        assert_int_equal(least == PC_TIME_NOT_GIVEN, generator->recomputes || generator->barriers != PC_BARRIERS_NONE ||
                                                         generator->placement == PC_PLACEMENT_BIDIRECTIONAL);
        if (least > replay.span_ps)
            fail_msg("%s: p %d, m %d: bound %d of a span of %d", schedule.name, p, schedule.microbatches, (int)least,
                     (int)replay.span_ps);
        pc_replay_free(&replay);
        pc_schedule_free(&schedule);
    }
    pc_costs_free(&costs);
}

/* No named schedule is shorter than its own bound. */
static void test_named(void **state) {
    (void)state;
    test_random random = {43};
    int count;
    const pc_generator *all = pc_generators(&count);
    for (long i = 0; i < test_cases(2, 20); i++)
        for (int g = 0; g < count; g++) check_schedule(&all[g], &random);
}

/* Microbatches of a BW that is shorter than B and W could beat what is known of B and W. */
static void test_short_bw(void **state) {
    (void)state;
    const pc_time times[PC_PASS_KINDS] = {1, 1, 1, 1};
    const int64_t limit[] = {2};
    static const pc_pass passes[] = {
        {0, 0, PC_PASS_F}, {0, 0, PC_PASS_B}, {0, 0, PC_PASS_W}, {1, 0, PC_PASS_F}, {1, 0, PC_PASS_BW}};
    pc_costs costs = equal_costs(1, 1, times, 0, 1);
    pc_schedule schedule;
    pc_time least;
    assert_int_equal(pc_schedule_create("mixed", 1, 2, 1, PC_PLACEMENT_LINEAR, (const int64_t[]){5}, &schedule, NULL),
                     PC_OK);
    memcpy(schedule.passes, passes, sizeof passes);
    assert_int_equal(pc_schedule_least_span(&schedule, &costs, (pc_memory_limit){limit}, &least, NULL), PC_OK);
    assert_int_equal(least, PC_TIME_NOT_GIVEN);
    costs.duration_ps[PC_PASS_BW] = 2;
    assert_int_equal(pc_schedule_least_span(&schedule, &costs, (pc_memory_limit){limit}, &least, NULL), PC_OK);
    assert_int_equal(least, 6);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
}

/* Chunks of different lengths: that the memory for f1 of device 1 comes from one of two BW does not say which, and the
 * one that can start first (BW of chunk 0, 15) is not the shorter one (4). A schedule of span 154. */
static void test_unequal_chunks(void **state) {
    (void)state;
    static const pc_time durations[3][2][2] = {{{16, 8}, {1, 16}}, {{14, 15}, {7, 4}}, {{4, 11}, {0, 15}}};
    static const int64_t bytes[3][2] = {{23, 9}, {9, 10}, {16, 7}}, limit[] = {96, 29, 42};
    pc_costs costs;
    pc_instance instance;
    assert_int_equal(pc_costs_create(3, 2, &costs, NULL), PC_OK);
    for (int i = 0; i < 6; i++) {
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_F] = durations[i / 2][i % 2][0];
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = durations[i / 2][i % 2][1];
        costs.activation_bytes[i] = bytes[i / 2][i % 2];
    }
    assert_int_equal(pc_instance_create(&costs, PC_PLACEMENT_V, false, 2, (pc_memory_limit){limit}, &instance, NULL),
                     PC_OK);
    assert_true(bound_of(&instance) <= 154);
    pc_instance_free(&instance);
    pc_costs_free(&costs);
}

/* ---- the best spans that are known ---- */

typedef struct known_row {
    char name[32];
    int p, m, is_proved;
    double f, b, w, comm, limit, span;
} known_row;

static bool read_row(const char *line, known_row *row) {
    return sscanf(line, "%31[^,],%d,%d,%lf,%lf,%lf,%lf,%lf,%*f,%lf,%*f,%d", row->name, &row->p, &row->m, &row->f,
                  &row->b, &row->w, &row->comm, &row->limit, &row->span, &row->is_proved) == 10;
}

/* A unit of the row is 1000 ticks, a microbatch of a stage 1000 bytes. */
static pc_time bound_of_row(const known_row *row) {
    int chunks = row->name[0] == 'v' ? 2 : 1;
    const pc_time times[PC_PASS_KINDS] = {[PC_PASS_F] = llround(row->f * 1000 / chunks),
                                          [PC_PASS_B] = llround(row->b * 1000 / chunks),
                                          [PC_PASS_W] = llround(row->w * 1000 / chunks)};
    pc_costs costs = equal_costs(row->p, chunks, times, llround(row->comm * 1000), 1000 / chunks);
    pc_instance instance = instance_at(&costs, chunks == 2 ? PC_PLACEMENT_V : PC_PLACEMENT_LINEAR, true, row->m,
                                       llround(row->limit * 1000));
    pc_time bound = bound_of(&instance);
    pc_instance_free(&instance);
    pc_costs_free(&costs);
    return bound;
}

/* The mean and the worst gap of a family of rows. */
typedef struct gaps {
    char name[32];
    int count, equal;
    double sum, worst;
} gaps;

static void count_gap(gaps *of, const known_row *row, double gap) {
    int i = 0;
    while (of[i].count && strcmp(of[i].name, row->name) != 0) i++;
    snprintf(of[i].name, sizeof of[i].name, "%s", row->name);
    of[i].count++;
    of[i].equal += gap == 0;
    of[i].sum += gap;
    if (gap > of[i].worst) of[i].worst = gap;
}

/* No bound is above a span that was found, and those of one chunk that constraint programming proved are met. Prints
 * what docs/schedules-compared.md has of the bound, family by family. */
static void test_known_spans(void **state) {
    (void)state;
    char line[512], path[4096];
    const char *root = getenv("PC_SOURCE_ROOT");
    gaps of[8] = {{.count = 0}};
    known_row row;
    snprintf(path, sizeof path, "%s/../shared/data/schedules/optimal_small.csv", root ? root : ".");
    FILE *file = fopen(path, "r");
    if (!file) {
        print_message("skipped: %s is not there\n", path);
        skip();
    }
    while (fgets(line, sizeof line, file)) {
        if (!read_row(line, &row)) continue;
        pc_time bound = bound_of_row(&row), span = llround(row.span * 1000);
        if (bound > span || (row.name[0] == 'z' && row.is_proved && bound < span))
            fail_msg("%s: bound %.9g", line, (double)bound / 1000);
        count_gap(of, &row, (double)span / (double)bound - 1);
    }
    fclose(file);
    assert_true(of[0].count > 0);
    for (int i = 0; i < 8 && of[i].count; i++)
        print_message("%s: %d rows, %d equal, mean gap %.2f%%, worst %.2f%%\n", of[i].name, of[i].count, of[i].equal,
                      100 * of[i].sum / of[i].count, 100 * of[i].worst);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_1f1b),
        cmocka_unit_test(test_zero_bubble),
        cmocka_unit_test(test_one_microbatch),
        cmocka_unit_test(test_v),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_short_bw),
        cmocka_unit_test(test_unequal_chunks),
        cmocka_unit_test(test_known_spans),
        cmocka_unit_test(test_searched_against_all_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
