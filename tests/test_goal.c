/* What searches minimise. What follows the passes is counted by hand, and at random orders in a second way. Answers are
 * compared with all orders of small instances, and with those for the span. And what a memo keeps apart, orders that
 * are judged over links, and iterations. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/search/links.h"
#include "models/schedule/search/objective.h"
#include "models/schedule/search/reorder.h"
#include "models/training/outline.h"
#include "models/training/tails.h"
#include "tests/iteration_example.h"
#include "tests/longest_path.h"

enum { DEVICES_MOST = 8, CELLS_MOST = 2 * DEVICES_MOST };

/* ---- costs with tails ---- */

typedef struct example {
    pc_costs costs;
    pc_time stream[CELLS_MOST], after[CELLS_MOST], own[DEVICES_MOST];
    int64_t limit[DEVICES_MOST];
    pc_tails tails;
    const pc_generator *generator;
    int microbatches;
} example;

static void draw_tails(test_random *random, example *e, int64_t longest) {
    for (int i = 0; i < e->costs.devices * e->costs.chunks; i++) {
        e->stream[i] = test_between(random, 0, longest);
        e->after[i] = test_between(random, 0, longest);
        e->costs.ready_ps[i] = test_between(random, 0, 2) * test_between(random, 0, longest);
    }
    for (int d = 0; d < e->costs.devices; d++) e->own[d] = test_between(random, 0, longest / 2);
    e->tails = (pc_tails){e->stream, e->after, e->own, test_between(random, 0, 2) == 0};
}

static void draw_example(test_random *random, const char *name, int devices, int microbatches, example *e) {
    memset(e, 0, sizeof *e);
    e->generator = pc_generator_find(name);
    e->microbatches = microbatches;
    assert_int_equal(pc_costs_create(devices, e->generator->chunks_default, &e->costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_ready(&e->costs, NULL), PC_OK);
    bool is_uniform = test_between(random, 0, 1);
    for (int i = 0; i < devices * e->costs.chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            e->costs.duration_ps[i * PC_PASS_KINDS + kind] =
                is_uniform && i > 0 ? e->costs.duration_ps[kind] : test_between(random, 1, 20);
        e->costs.activation_bytes[i] = 12;
        e->costs.activation_b_bytes[i] = test_between(random, 0, 1) * 4;
    }
    e->costs.transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 9);
    for (int d = 0; d < devices; d++)
        e->limit[d] = test_between(random, 0, 1) ? PC_NO_LIMIT : 12 * e->costs.chunks + 12 * test_between(random, 0, 6);
    draw_tails(random, e, 60);
}

static void free_example(example *e) {
    pc_costs_free(&e->costs);
}

static pc_schedule generate(const example *e, pc_goal goal, const pc_costs *costs, pc_search_memo *memo) {
    const pc_generate_request request = {.devices = costs->devices,
                                         .microbatches = e->microbatches,
                                         .costs = costs,
                                         .memory_limit = {(int64_t *)e->limit},
                                         .threads = 1,
                                         .goal = goal,
                                         .tails = &e->tails,
                                         .memo = memo};
    pc_error error = {0};
    pc_schedule schedule;
    if (pc_generate(e->generator, &request, &schedule, NULL, &error)) fail_msg("%s", error.message);
    return schedule;
}

/* ---- a second way to count ---- */

typedef struct counted {
    pc_time span, makespan, iteration;
} counted;

/* Of a device: chunks in the order of their ends wait for the network, in a plain loop over what is left. */
static pc_time count_device(const example *e, const pc_schedule *s, const pc_time *start, const pc_time *end, int d) {
    int chunks = s->chunks;
    pc_time last[2] = {0}, begin = INT64_MAX, network = 0;
    bool is_done[2] = {false}, is_begun[2] = {false};
    for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
        int c = s->passes[i].chunk;
        pc_time before = start[i] - e->costs.ready_ps[d * chunks + c];
        if (!is_begun[c] && before < begin) begin = before;
        is_begun[c] = true;
        if (s->passes[i].kind == PC_PASS_W || s->passes[i].kind == PC_PASS_BW) last[c] = end[i];
    }
    for (int n = 0; n < chunks; n++) {
        int next = is_done[0] ? 1 : 0;
        for (int c = next + 1; c < chunks; c++)
            if (!is_done[c] && last[c] < last[next]) next = c;
        is_done[next] = true;
        pc_time queued = network + e->stream[d * chunks + next], alone = last[next] + e->after[d * chunks + next];
        network = queued > alone ? queued : alone;
    }
    pc_time stage_end = end[s->offsets[d + 1] - 1];
    return (network > stage_end ? network : stage_end) + e->own[d] - (e->tails.from_begin ? begin : 0);
}

static counted count(const example *e, const pc_schedule *s, bool with_ready) {
    size_t passes = (size_t)s->offsets[s->devices];
    pc_time *start = calloc(passes, sizeof *start), *end = calloc(passes, sizeof *end);
    pc_costs costs = e->costs;
    counted made = {0};
    if (!with_ready) costs.ready_ps = NULL;
    assert_true(longest_path(s, &costs, start, end));
    for (int d = 0; d < s->devices; d++) {
        pc_time stage_end = end[s->offsets[d + 1] - 1], of_device = stage_end - start[s->offsets[d]];
        pc_time whole = count_device(e, s, start, end, d);
        if (of_device > made.span) made.span = of_device;
        if (stage_end > made.makespan) made.makespan = stage_end;
        if (whole > made.iteration) made.iteration = whole;
    }
    free(start);
    free(end);
    return made;
}

/* ---- by hand ---- */

/* Chunks end at 100 and 80, take 30 and 20 of the network, and last 25 and 15 alone. Chunk 1 first: through at max(20,
 * 80
 * + 15) = 95; then chunk 0: max(95 + 30, 100 + 25) = 125, behind the last pass at 100; 7 more are 132. From where the
 * device begins, at 10, 122. To come to 132 again chunk 0 may end at 125 - 25 = 100, and chunk 1 must leave 30 to it:
 * 125 - 30 - 15 = 80. Without tails the makespan. */
static void test_what_follows(void **state) {
    (void)state;
    const pc_time stream[] = {30, 20}, after[] = {25, 15}, own[] = {7};
    pc_tails tails = {stream, after, own, false};
    pc_objective objective = {NULL, &tails};
    pc_instance instance = {.devices = 1, .chunks = 2, .types = 6, .objective = &objective};
    pc_device_ends ends = {.begin = 10, .end = 100, .chunk_end = {100, 80}};
    assert_int_equal(pc_objective_value(&instance, 0, &ends), 132);
    pc_device_ends latest = ends;
    pc_objective_latest(&instance, 0, 132, &latest);
    assert_true(latest.end == 125 && latest.chunk_end[0] == 100 && latest.chunk_end[1] == 80);
    tails.from_begin = true;
    assert_int_equal(pc_objective_value(&instance, 0, &ends), 122);
    objective.tails = NULL;
    assert_int_equal(pc_objective_value(&instance, 0, &ends), 100);
    assert_null(pc_objective_make(PC_GOAL_SPAN, NULL, &tails, &objective));
}

/* Two devices, F = B = W = 10, two microbatches, the gradients of the second take 30, which only it has. Its last W
 * cannot end before the F of the first is over, 10, and it has worked 2 30: 70, and 100 with them. That is reached, for
 * the first device then has its last B from 60 on at the latest, and a W behind it at 70. */
static void test_one_slow_network(void **state) {
    (void)state;
    example e = {.generator = pc_generator_find("zb-1p"), .microbatches = 2};
    assert_int_equal(pc_costs_create(2, 1, &e.costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_ready(&e.costs, NULL), PC_OK);
    for (int i = 0; i < 2 * PC_PASS_KINDS; i++) e.costs.duration_ps[i] = 10;
    e.costs.activation_bytes[0] = e.costs.activation_bytes[1] = 1;
    e.limit[0] = e.limit[1] = PC_NO_LIMIT;
    e.stream[1] = e.after[1] = 30;
    e.tails = (pc_tails){e.stream, e.after, e.own, false};
    pc_schedule schedule = generate(&e, PC_GOAL_ITERATION, &e.costs, NULL);
    assert_int_equal(count(&e, &schedule, true).iteration, 100);
    pc_schedule_free(&schedule);
    free_example(&e);
}

/* ---- orders at random ---- */

static pc_instance make_instance(const example *e, const pc_objective *objective) {
    pc_instance instance;
    assert_int_equal(pc_instance_create(&e->costs, e->generator->placement, e->generator->splits, e->microbatches,
                                        (pc_memory_limit){NULL}, &instance, NULL),
                     PC_OK);
    instance.objective = objective;
    return instance;
}

/* Any order that can run. */
static void draw_order(test_random *random, const pc_instance *x, pc_instance_order *order) {
    int done[6 * DEVICES_MOST] = {0}, filled[DEVICES_MOST] = {0};
    for (int64_t left = x->devices * x->passes; left > 0;) {
        int i = (int)test_between(random, 0, x->devices * x->types - 1), d = i / x->types;
        const pc_instance_cell *cell = &x->cells[i];
        bool is_ready = done[i] < x->microbatches && (cell->before < 0 || done[cell->before] > done[i]) &&
                        (cell->own < 0 || done[cell->own] > done[i]);
        if (!is_ready) continue;
        order->pass[d * x->passes + filled[d]++] = pc_instance_pass_make(i % x->types, done[i]++);
        left--;
    }
}

static counted count_order(const example *e, const pc_instance *instance, const pc_instance_order *order) {
    pc_schedule schedule;
    assert_int_equal(pc_instance_to_schedule(instance, order, "drawn", &schedule, NULL), PC_OK);
    counted made = count(e, &schedule, true);
    pc_schedule_free(&schedule);
    return made;
}

static const char *const names[] = {"zb-1p", "zb-2p", "v-min", "v-half", "v-zb", "1f1b-v", "zb-two-thirds"};
enum { NAMES = sizeof names / sizeof *names };

static void draw_any(test_random *random, int most, example *e) {
    int p = (int)test_between(random, 2, most), m = (int)test_between(random, 1, 2 * most);
    draw_example(random, names[test_between(random, 0, NAMES - 1)], p, m, e);
}

/* Squeezed, it comes to what the longest path and the second way say; swept, to no more, and to what they say. */
static void test_sweeps_count_what_follows(void **state) {
    (void)state;
    test_random random = {71};
    for (long i = 0, cases = test_cases(200, 1000); i < cases; i++) {
        example e;
        draw_any(&random, 5, &e);
        pc_objective objective = {e.costs.ready_ps, &e.tails};
        pc_instance instance = make_instance(&e, &objective);
        pc_instance_order order;
        pc_reorder *room;
        assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
        assert_int_equal(pc_reorder_create(&instance, &room, NULL), PC_OK);
        draw_order(&random, &instance, &order);
        assert_true(pc_reorder_squeeze(room, &order));
        pc_time before = order.span;
        assert_int_equal(before, count_order(&e, &instance, &order).iteration);
        pc_reorder_improve(room, 6, (int)test_between(&random, 0, 9), 0, &order);
        assert_true(order.span <= before && order.span >= pc_objective_least(&instance));
        assert_int_equal(order.span, count_order(&e, &instance, &order).iteration);
        pc_reorder_free(room);
        pc_instance_order_free(&order);
        pc_instance_free(&instance);
        free_example(&e);
    }
}

/* An order of its own, squeezed and swept. */
static pc_instance_order sweep(const pc_instance *instance, const pc_instance_order *from, int way) {
    pc_instance_order order;
    pc_reorder *room;
    assert_int_equal(pc_instance_order_create(instance, &order, NULL), PC_OK);
    assert_int_equal(pc_reorder_create(instance, &room, NULL), PC_OK);
    pc_instance_order_copy(instance, from, &order);
    assert_true(pc_reorder_squeeze(room, &order));
    pc_reorder_improve(room, 6, way, 0, &order);
    pc_reorder_free(room);
    return order;
}

/* What counts from a device's own beginning, without anything that follows, is the span: sweeps do the same. */
static void test_the_span_is_one_of_them(void **state) {
    (void)state;
    static const pc_time none[CELLS_MOST];
    const pc_tails tails = {none, none, none, true};
    const pc_objective objective = {NULL, &tails};
    test_random random = {72};
    for (long i = 0, cases = test_cases(100, 400); i < cases; i++) {
        example e;
        draw_any(&random, 5, &e);
        pc_instance plain = make_instance(&e, NULL), other = make_instance(&e, &objective);
        pc_instance_order order;
        int way = (int)test_between(&random, 0, 9);
        assert_int_equal(pc_instance_order_create(&plain, &order, NULL), PC_OK);
        draw_order(&random, &plain, &order);
        pc_instance_order a = sweep(&plain, &order, way), b = sweep(&other, &order, way);
        assert_true(a.span == b.span && a.makespan == b.makespan);
        assert_memory_equal(a.pass, b.pass, (size_t)(plain.devices * plain.passes) * sizeof *a.pass);
        pc_instance_order_free(&a);
        pc_instance_order_free(&b);
        pc_instance_order_free(&order);
        pc_instance_free(&plain);
        pc_instance_free(&other);
        free_example(&e);
    }
}

/* ---- all orders of small instances ---- */

typedef struct all_orders {
    const pc_instance *instance;
    pc_reorder *room;
    pc_instance_order order, trial;
    pc_time least;
} all_orders;

static void try_orders(all_orders *x, int device, int64_t filled, int *done);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are passes */
static void try_next(all_orders *x, int device) {
    int done[6] = {0};
    if (device < x->instance->devices) {
        try_orders(x, device, 0, done);
        return;
    }
    pc_instance_order_copy(x->instance, &x->order, &x->trial);
    if (pc_reorder_squeeze(x->room, &x->trial) && x->trial.span < x->least) x->least = x->trial.span;
}

/* Of each chunk F before B before W, microbatch for microbatch; what waits for other devices squeezing finds. */
/* NOLINTNEXTLINE(misc-no-recursion): likewise */
static void try_orders(all_orders *x, int device, int64_t filled, int *done) {
    const pc_instance *instance = x->instance;
    if (filled == instance->passes) {
        try_next(x, device + 1);
        return;
    }
    for (int type = 0; type < instance->types; type++) {
        bool is_first = type < instance->chunks;
        bool is_ready = done[type] < instance->microbatches && (is_first || done[type - instance->chunks] > done[type]);
        if (!is_ready) continue;
        x->order.pass[device * instance->passes + filled] = pc_instance_pass_make(type, done[type]++);
        try_orders(x, device, filled + 1, done);
        done[type]--;
    }
}

static pc_time least_of_all(const example *e, const pc_objective *objective) {
    pc_instance instance = make_instance(e, objective);
    all_orders x = {.instance = &instance, .least = INT64_MAX};
    for (int d = 0; d < instance.devices; d++) /* the name's, which the request's limits are not below */
        instance.limit[d] = e->limit[d] == PC_NO_LIMIT ? INT64_MAX / 4 : e->limit[d];
    assert_int_equal(pc_reorder_create(&instance, &x.room, NULL), PC_OK);
    assert_int_equal(pc_instance_order_create(&instance, &x.order, NULL), PC_OK);
    assert_int_equal(pc_instance_order_create(&instance, &x.trial, NULL), PC_OK);
    try_next(&x, 0);
    pc_instance_order_free(&x.order);
    pc_instance_order_free(&x.trial);
    pc_reorder_free(x.room);
    pc_instance_free(&instance);
    return x.least;
}

/* Of all orders none is better than what is found, in all but a few: searches are local. */
static void test_small_ones_are_optimal(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int devices, microbatches;
    } shapes[] = {{"zb-2p", 2, 3}, {"zb-2p", 3, 2}, {"v-zb", 2, 1}};
    test_random random = {73};
    long missed = 0, cases = test_cases(45, 600);
    for (long i = 0; i < cases; i++) {
        example e;
        draw_example(&random, shapes[i % 3].name, shapes[i % 3].devices, shapes[i % 3].microbatches, &e);
        for (int d = 0; d < e.costs.devices; d++)
            e.limit[d] = 12 * e.costs.chunks * test_between(&random, 1, e.microbatches);
        pc_objective objective;
        pc_goal goal = test_between(&random, 0, 3) ? PC_GOAL_ITERATION : PC_GOAL_MAKESPAN;
        pc_time least = least_of_all(&e, pc_objective_make(goal, &e.costs, &e.tails, &objective));
        pc_schedule schedule = generate(&e, goal, &e.costs, NULL);
        counted found = count(&e, &schedule, goal == PC_GOAL_ITERATION);
        pc_time value = goal == PC_GOAL_ITERATION ? found.iteration : found.makespan;
        assert_true(value >= least);
        missed += value > least;
        pc_schedule_free(&schedule);
        free_example(&e);
    }
    if (missed * 50 > cases) fail_msg("%ld of %ld are not optimal; expected one in 50 at most", missed, cases);
}

/* ---- answers ---- */

static void check_limits(const example *e, const pc_schedule *schedule) {
    const pc_replay_options how = {.memory_limit = {(int64_t *)e->limit}};
    pc_replay replay;
    assert_int_equal(pc_replay_run(schedule, &e->costs, &how, &replay, NULL), PC_OK);
    assert_false(replay.out_of_memory);
    pc_replay_free(&replay);
}

/* For its own goal each is at least as good as those for the others; with one memo for all, they are the same. */
static void test_no_goal_is_beaten(void **state) {
    (void)state;
    test_random random = {74};
    long better = 0;
    for (long i = 0, cases = test_cases(8, 50); i < cases; i++) {
        example e;
        pc_search_memo *memo;
        counted of[PC_GOALS];
        draw_any(&random, 4, &e);
        assert_int_equal(pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &memo, NULL), PC_OK);
        for (pc_goal goal = 0; goal < PC_GOALS; goal++) {
            pc_schedule schedule = generate(&e, goal, &e.costs, memo), again = generate(&e, goal, &e.costs, NULL);
            size_t passes = (size_t)schedule.offsets[schedule.devices];
            assert_memory_equal(schedule.passes, again.passes, passes * sizeof *again.passes);
            check_limits(&e, &schedule);
            of[goal] = count(&e, &schedule, goal == PC_GOAL_ITERATION);
            if (goal != PC_GOAL_ITERATION) of[goal].iteration = count(&e, &schedule, true).iteration;
            pc_schedule_free(&schedule);
            pc_schedule_free(&again);
        }
        assert_true(of[PC_GOAL_MAKESPAN].makespan <= of[PC_GOAL_SPAN].makespan);
        assert_true(of[PC_GOAL_ITERATION].iteration <= of[PC_GOAL_SPAN].iteration);
        better += of[PC_GOAL_ITERATION].iteration < of[PC_GOAL_SPAN].iteration;
        e.own[0] += 100; /* other tails, another answer of the memo */
        pc_schedule schedule = generate(&e, PC_GOAL_ITERATION, &e.costs, memo),
                    again = generate(&e, PC_GOAL_ITERATION, &e.costs, NULL);
        assert_memory_equal(schedule.passes, again.passes,
                            (size_t)schedule.offsets[schedule.devices] * sizeof *again.passes);
        pc_schedule_free(&schedule);
        pc_schedule_free(&again);
        pc_search_memo_free(memo);
        free_example(&e);
    }
    assert_true(better > 0);
}

/* Of a V the first and the last part, embedding and head, take longer and are on device 0. */
static void lengthen_ends(test_random *random, example *e) {
    for (int chunk = 0; chunk < e->costs.chunks; chunk++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            e->costs.duration_ps[chunk * PC_PASS_KINDS + kind] += test_between(random, 0, 12);
}

static pc_time span_within(example *e, const int64_t *limit) {
    memcpy(e->limit, limit, sizeof e->limit);
    pc_schedule schedule = generate(e, PC_GOAL_SPAN, &e->costs, NULL);
    check_limits(e, &schedule);
    pc_time span = count(e, &schedule, false).span;
    pc_schedule_free(&schedule);
    return span;
}

/* Within limits of their own, which they keep, devices that differ take no longer than with the smallest of them
 * everywhere; some take less. */
static void test_limits_by_device(void **state) {
    (void)state;
    test_random random = {80};
    long better = 0;
    for (long i = 0, cases = test_cases(20, 50); i < cases; i++) {
        example e;
        int64_t own[DEVICES_MOST] = {0}, least[DEVICES_MOST];
        int p = (int)test_between(&random, 2, 4);
        draw_example(&random, "v-adaptive", p, (int)test_between(&random, 2, 8), &e);
        lengthen_ends(&random, &e);
        for (int d = 0; d < p; d++) own[d] = 12 * test_between(&random, 2, 2 * p);
        for (int d = 0; d < DEVICES_MOST; d++) least[d] = own[0];
        for (int d = 1; d < p; d++)
            for (int other = 0; other < DEVICES_MOST; other++)
                if (own[d] < least[other]) least[other] = own[d];
        pc_time by_device = span_within(&e, own), everywhere = span_within(&e, least);
        assert_true(by_device <= everywhere);
        better += by_device < everywhere;
        free_example(&e);
    }
    assert_true(better > 0);
}

/* ---- over links ---- */

static void draw_links(test_random *random, example *e) {
    e->costs.transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                      .latency_ps = test_between(random, 0, 5),
                                      .bandwidth_bytes_per_s = 1e12,
                                      .size_bytes = test_between(random, 1, 30)};
}

/* Every start is that of the replay, event by event. */
static void test_links_are_those_of_the_replay(void **state) {
    (void)state;
    test_random random = {75};
    for (long i = 0, cases = test_cases(150, 600); i < cases; i++) {
        example e;
        draw_any(&random, 5, &e);
        draw_links(&random, &e);
        const pc_objective objective = {e.costs.ready_ps, NULL};
        pc_instance instance = make_instance(&e, &objective);
        pc_instance_order order;
        pc_stage_links *links;
        pc_schedule schedule;
        pc_replay replay;
        const pc_replay_options how = {.with_trace = true};
        assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
        draw_order(&random, &instance, &order);
        assert_int_equal(pc_stage_links_create(&instance, &e.costs.transfer, &links, NULL), PC_OK);
        pc_stage_links_squeeze(links, &order);
        assert_int_equal(pc_instance_to_schedule(&instance, &order, "drawn", &schedule, NULL), PC_OK);
        assert_int_equal(pc_replay_run(&schedule, &e.costs, &how, &replay, NULL), PC_OK);
        assert_int_equal(order.makespan, replay.makespan_ps);
        for (int64_t k = 0; k < replay.trace.pass_count; k++)
            assert_int_equal(order.start[k], replay.trace.pass_start_ps[k]);
        pc_replay_free(&replay);
        pc_schedule_free(&schedule);
        pc_stage_links_free(links);
        pc_instance_order_free(&order);
        pc_instance_free(&instance);
        free_example(&e);
    }
}

static pc_time span_over_links(const example *e, const pc_schedule *schedule) {
    pc_replay replay;
    pc_costs costs = e->costs;
    costs.ready_ps = NULL;
    assert_int_equal(pc_replay_run(schedule, &costs, NULL, &replay, NULL), PC_OK);
    pc_time span = replay.span_ps;
    pc_replay_free(&replay);
    return span;
}

/* An order that is chosen over links is never longer there than the one chosen as if every transfer were alone. */
static void test_links_choose(void **state) {
    (void)state;
    test_random random = {76};
    long better = 0, cases = test_cases(20, 100);
    for (long i = 0; i < cases; i++) {
        example e;
        draw_any(&random, 4, &e);
        draw_links(&random, &e);
        pc_costs alone = e.costs;
        alone.transfer = (pc_transfer){.mode = PC_TRANSFER_DELAY, .delay_ps = pc_costs_delay_alone(&e.costs, 0, 1)};
        pc_schedule delays = generate(&e, PC_GOAL_SPAN, &alone, NULL),
                    links = generate(&e, PC_GOAL_SPAN, &e.costs, NULL);
        pc_time by_delays = span_over_links(&e, &delays), by_links = span_over_links(&e, &links);
        assert_true(by_links <= by_delays);
        better += by_links < by_delays;
        pc_schedule_free(&delays);
        pc_schedule_free(&links);
        free_example(&e);
    }
    assert_true(better > 0);
}

/* ---- allocations ---- */

/* Every one fails once, with tails and over links; in a quick run one in 29, for each is a search anew. */
static void test_every_allocation_fails_once(void **state) {
    (void)state;
    test_random random = {79};
    example e;
    long count = 1;
    draw_example(&random, "v-min", 2, 2, &e);
    draw_links(&random, &e);
    const pc_generate_request request = {
        .devices = 2, .microbatches = 2, .costs = &e.costs, .threads = 1, .goal = PC_GOAL_ITERATION, .tails = &e.tails};
    for (long i = -1; i < count; i += i < 0 ? 1 : test_part(29, 1)) {
        pc_schedule schedule = {0};
        pc_error error = {0};
        long before = pc_alloc_count();
        pc_alloc_fail_after(i);
        pc_code code = pc_generate(e.generator, &request, &schedule, NULL, &error);
        pc_alloc_fail_after(-1);
        assert_int_equal(code, i < 0 ? PC_OK : PC_ERROR_NO_MEMORY);
        if (i < 0) count = pc_alloc_count() - before;
        if (i >= 0) assert_null(schedule.passes);
        pc_schedule_free(&schedule);
    }
    free_example(&e);
}

/* ---- iterations ---- */

/* What the order of a run comes to by the second way, with the run's own tails. */
static pc_time count_iteration(const pc_outline *outline, const pc_outline_tails *made, const pc_costs *costs) {
    example e = {.costs = *costs, .tails = made->tails};
    size_t cells = (size_t)costs->devices * (size_t)costs->chunks;
    pc_time *none = calloc(cells, sizeof *none);
    pc_schedule schedule;
    memcpy(e.stream, made->tails.stream_ps, cells * sizeof *e.stream);
    memcpy(e.after, made->tails.after_ps, cells * sizeof *e.after);
    memcpy(e.own, made->tails.own_ps, (size_t)costs->devices * sizeof *e.own);
    if (!e.costs.ready_ps) e.costs.ready_ps = none;
    assert_int_equal(pc_schedule_generate(outline->spec->generator, costs->devices, outline->cut.microbatches,
                                          costs->chunks, &schedule, NULL),
                     PC_OK);
    pc_time value = count(&e, &schedule, true).iteration;
    pc_schedule_free(&schedule);
    free(none);
    return value;
}

/* All that finish.c adds to one pipeline is in the tails, but for what all stages wait for, and for what tails.h leaves
 * out. An iteration, closed, is what its order comes to, and the norm, the slowest step and the overhead. */
static void test_tails_are_those_of_iterations(void **state) {
    (void)state;
    test_random random = {77};
    long found = 0;
    for (long i = 0, cases = test_cases(150, 500); i < cases; i++) {
        pc_iteration_spec spec = random_spec(&random);
        pc_outline outline;
        pc_outline_tails made;
        pc_costs costs;
        pc_time slowest = 0;
        if (spec.model.is_tied || spec.step != PC_STEP_NORM) continue;
        pc_iteration iteration = run_spec(&spec);
        assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
        assert_int_equal(pc_outline_costs(&outline, 0, &costs, NULL), PC_OK);
        assert_int_equal(pc_outline_tails_make(&outline, &costs, &made, NULL), PC_OK);
        for (int d = 0; d < outline.devices; d++)
            if (outline.device[d].step_ps > slowest) slowest = outline.device[d].step_ps;
        pc_time whole = count_iteration(&outline, &made, &costs) + outline.norm_ps + slowest + spec.overhead_ps;
        assert_true(iteration.iteration_s == pc_time_to_seconds(whole));
        pc_outline_tails_free(&made);
        pc_costs_free(&costs);
        pc_outline_free(&outline);
        pc_iteration_free(&iteration);
        found++;
    }
    assert_true(test_saw(found, 10));
}

/* No iteration is longer for another goal; some are shorter. */
static void test_iterations_are_no_longer(void **state) {
    (void)state;
    static const pc_network_mode networks[] = {PC_NETWORK_CLOSED, PC_NETWORK_CLOSED, PC_NETWORK_AUTO};
    test_random random = {78};
    long better = 0;
    for (long i = 0, cases = test_cases(6, 30); i < cases; i++) {
        pc_iteration_spec spec = random_spec(&random);
        double seconds[PC_GOALS];
        spec.generator = pc_generator_find(names[test_between(&random, 0, 4)]);
        spec.cut.chunks = spec.generator->chunks_default;
        spec.network = networks[test_between(&random, 0, 2)];
        assert_int_equal(pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &spec.memo, NULL), PC_OK);
        for (spec.goal = 0; spec.goal < PC_GOALS; spec.goal++) {
            pc_iteration iteration = run_spec(&spec);
            seconds[spec.goal] = iteration.iteration_s;
            pc_iteration_free(&iteration);
        }
        pc_search_memo_free(spec.memo);
        assert_true(seconds[PC_GOAL_MAKESPAN] <= seconds[PC_GOAL_SPAN]);
        assert_true(seconds[PC_GOAL_ITERATION] <= seconds[PC_GOAL_SPAN]);
        better += seconds[PC_GOAL_ITERATION] < seconds[PC_GOAL_SPAN];
    }
    assert_true(better > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_one_slow_network),
        cmocka_unit_test(test_sweeps_count_what_follows),
        cmocka_unit_test(test_the_span_is_one_of_them),
        cmocka_unit_test(test_small_ones_are_optimal),
        cmocka_unit_test(test_no_goal_is_beaten),
        cmocka_unit_test(test_limits_by_device),
        cmocka_unit_test(test_links_are_those_of_the_replay),
        cmocka_unit_test(test_links_choose),
        cmocka_unit_test(test_every_allocation_fails_once),
        cmocka_unit_test(test_tails_are_those_of_iterations),
        cmocka_unit_test(test_iterations_are_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
