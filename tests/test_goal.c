/* What searches minimise. What follows the passes is counted by hand, and at random orders in a second way; and the
 * best of small instances are compared with all their orders. */
#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/schedule/search/objective.h"
#include "models/schedule/search/reorder.h"
#include "tests/goal_example.h"
#include "tests/longest_path.h"

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
    goal_example e = {.generator = pc_generator_find("zb-1p"), .microbatches = 2};
    assert_int_equal(pc_costs_create(2, 1, &e.costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_ready(&e.costs, NULL), PC_OK);
    for (int i = 0; i < 2 * PC_PASS_KINDS; i++) e.costs.duration_ps[i] = 10;
    e.costs.activation_bytes[0] = e.costs.activation_bytes[1] = 1;
    e.limit[0] = e.limit[1] = PC_NO_LIMIT;
    e.stream[1] = e.after[1] = 30;
    e.tails = (pc_tails){e.stream, e.after, e.own, false};
    pc_schedule schedule = goal_example_schedule(&e, PC_GOAL_ITERATION, &e.costs, NULL);
    assert_int_equal(goal_count(&e, &schedule, true).iteration, 100);
    pc_schedule_free(&schedule);
    goal_example_free(&e);
}

/* ---- orders at random ---- */

static goal_counted count_order(const goal_example *e, const pc_instance *instance, const pc_instance_order *order) {
    pc_schedule schedule;
    assert_int_equal(pc_instance_to_schedule(instance, order, "drawn", &schedule, NULL), PC_OK);
    goal_counted made = goal_count(e, &schedule, true);
    pc_schedule_free(&schedule);
    return made;
}

/* Squeezed, it comes to what the longest path and the second way say; swept, to no more, and to what they say. */
static void test_sweeps_count_what_follows(void **state) {
    (void)state;
    test_random random = {71};
    for (long i = 0, cases = test_cases(200, 1000); i < cases; i++) {
        goal_example e;
        goal_example_any(&random, 5, &e);
        pc_objective objective = {e.costs.ready_ps, &e.tails};
        pc_instance instance = goal_example_instance(&e, &objective);
        pc_instance_order order;
        pc_reorder *room;
        assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
        assert_int_equal(pc_reorder_create(&instance, &room, NULL), PC_OK);
        goal_example_order(&random, &instance, &order);
        assert_true(pc_reorder_squeeze(room, &order));
        pc_time before = order.span;
        assert_int_equal(before, count_order(&e, &instance, &order).iteration);
        pc_reorder_improve(room, 6, (int)test_between(&random, 0, 9), 0, &order);
        assert_true(order.span <= before && order.span >= pc_objective_least(&instance));
        assert_int_equal(order.span, count_order(&e, &instance, &order).iteration);
        pc_reorder_free(room);
        pc_instance_order_free(&order);
        pc_instance_free(&instance);
        goal_example_free(&e);
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
    static const pc_time none[GOAL_CELLS_MOST];
    const pc_tails tails = {none, none, none, true};
    const pc_objective objective = {NULL, &tails};
    test_random random = {72};
    for (long i = 0, cases = test_cases(100, 400); i < cases; i++) {
        goal_example e;
        goal_example_any(&random, 5, &e);
        pc_instance plain = goal_example_instance(&e, NULL), other = goal_example_instance(&e, &objective);
        pc_instance_order order;
        int way = (int)test_between(&random, 0, 9);
        assert_int_equal(pc_instance_order_create(&plain, &order, NULL), PC_OK);
        goal_example_order(&random, &plain, &order);
        pc_instance_order a = sweep(&plain, &order, way), b = sweep(&other, &order, way);
        assert_true(a.span == b.span && a.makespan == b.makespan);
        assert_memory_equal(a.pass, b.pass, (size_t)(plain.devices * plain.passes) * sizeof *a.pass);
        pc_instance_order_free(&a);
        pc_instance_order_free(&b);
        pc_instance_order_free(&order);
        pc_instance_free(&plain);
        pc_instance_free(&other);
        goal_example_free(&e);
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

static pc_time least_of_all(const goal_example *e, const pc_objective *objective) {
    pc_instance instance = goal_example_instance(e, objective);
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
        goal_example e;
        goal_example_draw(&random, shapes[i % 3].name, shapes[i % 3].devices, shapes[i % 3].microbatches, &e);
        for (int d = 0; d < e.costs.devices; d++)
            e.limit[d] = 12 * e.costs.chunks * test_between(&random, 1, e.microbatches);
        pc_objective objective;
        pc_goal goal = test_between(&random, 0, 3) ? PC_GOAL_ITERATION : PC_GOAL_MAKESPAN;
        pc_time least = least_of_all(&e, pc_objective_make(goal, &e.costs, &e.tails, &objective));
        pc_schedule schedule = goal_example_schedule(&e, goal, &e.costs, NULL);
        goal_counted found = goal_count(&e, &schedule, goal == PC_GOAL_ITERATION);
        pc_time value = goal == PC_GOAL_ITERATION ? found.iteration : found.makespan;
        assert_true(value >= least);
        missed += value > least;
        pc_schedule_free(&schedule);
        goal_example_free(&e);
    }
    if (missed * 50 > cases) fail_msg("%ld of %ld are not optimal; expected one in 50 at most", missed, cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_one_slow_network),
        cmocka_unit_test(test_sweeps_count_what_follows),
        cmocka_unit_test(test_the_span_is_one_of_them),
        cmocka_unit_test(test_small_ones_are_optimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
