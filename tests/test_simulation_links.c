/* The engine's links: cases worked out by hand, and max-min shares against their definition. */
#include "tests/program_lines.h"

#include "engine/maxmin.h"

#include <math.h>

/* ---- links ---- */

/* Alone: latency 7, 100 bytes at 4 a picosecond: 32. Over a second, slower link with latency 3: 10 + 100/2. */
static void test_flow_alone(void **state) {
    fixture *test = *state;
    int32_t links[] = {add_link(test, 7, 4.0), add_link(test, 3, 2.0)};
    int32_t a = add_flow(test, add_route(test, links, 1), 100);
    int32_t b = add_flow(test, add_route(test, links, 2), 100), none = add_flow(test, 0, 0);
    add_edge(test, a, b, 0);
    add_edge(test, b, none, 0);
    run(test);
    check_task(test, a, 0, 32);
    check_task(test, b, 32, 92);
    check_task(test, none, 92, 99); /* no bytes: the latency only */
}

/* Two flows of 100 bytes on a link of 4 a picosecond, the second 10 later: 10 alone at 4 (40 done), then 2 each: the
 * first's 60 take 30, to 40; the second has 60 of its 100 by then and 40 left at 4: to 50. */
static void test_flows_share(void **state) {
    fixture *test = *state;
    int32_t link = add_link(test, 0, 4.0), route = add_route(test, &link, 1);
    int32_t a = add_flow(test, route, 100), b = add_flow(test, route, 100), clock = add_task(test, PC_NO_RESOURCE, 10);
    add_edge(test, clock, b, 0);
    run(test);
    check_task(test, a, 0, 40);
    check_task(test, b, 10, 50);
    assert_int_equal(test->result.loads.count, 2); /* full from the first's beginning to the second's end */
    assert_true(test->result.loads.bytes_per_s[0] == 4e12);
    assert_true(test->result.loads.bytes_per_s[1] == 0.0);
    assert_int_equal(test->result.loads.time_ps[1], 50);
}

/* The textbook's three flows: one over both links (capacity 2 and 6), one on each. The long one and its neighbour on
 * the tight link get 1 each, the other one the 5 that are left. All have 60 bytes: that one ends at 12, those at 60. */
static void test_flows_max_min(void **state) {
    fixture *test = *state;
    int32_t links[] = {add_link(test, 0, 2.0), add_link(test, 0, 6.0)};
    int32_t both = add_flow(test, add_route(test, links, 2), 60);
    int32_t tight = add_flow(test, add_route(test, links, 1), 60),
            wide = add_flow(test, add_route(test, links + 1, 1), 60);
    run(test);
    check_task(test, wide, 0, 12);
    check_task(test, both, 0, 60);
    check_task(test, tight, 0, 60);
}

/* Two flows of 100 bytes on an unshared link of 4 a picosecond, the second 10 later: 25 each, and 8 a picosecond go
 * over it meanwhile. A third, over it and a shared link of 6, shares that one with a fourth of 100: 3 each. */
static void test_unshared_link(void **state) {
    fixture *test = *state;
    int32_t links[] = {add_unshared_link(test, 0, 4.0), add_link(test, 0, 6.0)};
    int32_t alone = add_route(test, links, 1), both = add_route(test, links, 2), shared = add_route(test, links + 1, 1);
    int32_t a = add_flow(test, alone, 100), b = add_flow(test, alone, 100), clock = add_task(test, PC_NO_RESOURCE, 10);
    int32_t later = add_task(test, PC_NO_RESOURCE, 100), c = add_flow(test, both, 90), d = add_flow(test, shared, 120);
    add_edge(test, clock, b, 0);
    add_edge(test, later, c, 0);
    add_edge(test, later, d, 0);
    run(test);
    check_task(test, a, 0, 25);
    check_task(test, b, 10, 35);
    check_task(test, c, 100, 130);
    check_task(test, d, 100, 135); /* 90 by 130, 30 more at 6 */
    static const pc_time times[] = {0, 10, 25, 35, 100, 130};
    static const double loads[] = {4e12, 8e12, 4e12, 0, 3e12, 0};
    int64_t row = 0;
    for (int64_t i = 0; i < test->result.loads.count; i++) {
        if (test->result.loads.link[i] != links[0]) continue;
        assert_int_equal(test->result.loads.time_ps[i], times[row]);
        assert_true(test->result.loads.bytes_per_s[i] == loads[row++]);
    }
    assert_int_equal(row, 6);
}

/* An unshared link bounds what goes on over shared ones: 1 a picosecond for the first flow, 5 for the other on the
 * shared link of 6. A flow that lasts no picosecond ends all the same. */
static void test_unshared_link_bounds(void **state) {
    fixture *test = *state;
    int32_t links[] = {add_unshared_link(test, 3, 1.0), add_link(test, 0, 6.0)};
    int32_t both = add_route(test, links, 2), shared = add_route(test, links + 1, 1);
    int32_t fast[] = {add_unshared_link(test, 0, 9.0)};
    int32_t a = add_flow(test, both, 60), b = add_flow(test, shared, 60),
            c = add_flow(test, add_route(test, fast, 1), 1);
    int32_t clock = add_task(test, PC_NO_RESOURCE, 3);
    add_edge(test, clock, b, 0);
    run(test);
    check_task(test, a, 0, 63);
    check_task(test, b, 3, 15);
    check_task(test, c, 0, 0);
}

/* ---- max-min shares against their definition ---- */

enum { FLOWS_MAX = 12, LINKS_MAX = 8 };

typedef struct network {
    int32_t flow_count, link_count, offset[FLOWS_MAX + 1], route[FLOWS_MAX * LINKS_MAX];
    double capacity[LINKS_MAX], rate[FLOWS_MAX];
} network;

static void draw_network(test_random *random, network *n) {
    n->flow_count = (int32_t)test_between(random, 1, FLOWS_MAX);
    n->link_count = (int32_t)test_between(random, 1, LINKS_MAX);
    n->offset[0] = 0;
    for (int32_t l = 0; l < n->link_count; l++) n->capacity[l] = (double)test_between(random, 1, 50);
    for (int32_t f = 0; f < n->flow_count; f++) {
        int32_t end = n->offset[f];
        for (int32_t l = 0; l < n->link_count; l++)
            if (test_between(random, 0, 2) == 0) n->route[end++] = l;
        if (end == n->offset[f]) n->route[end++] = (int32_t)test_between(random, 0, n->link_count - 1);
        n->offset[f + 1] = end;
    }
}

static double load_of(const network *n, int32_t link) {
    double load = 0.0;
    for (int32_t f = 0; f < n->flow_count; f++)
        for (int32_t i = n->offset[f]; i < n->offset[f + 1]; i++)
            if (n->route[i] == link) load += n->rate[f];
    return load;
}

static bool is_largest_on(const network *n, int32_t flow, int32_t link) {
    for (int32_t f = 0; f < n->flow_count; f++)
        for (int32_t i = n->offset[f]; i < n->offset[f + 1]; i++)
            if (n->route[i] == link && n->rate[f] > n->rate[flow] * (1 + 1e-9)) return false;
    return true;
}

/* Rates are max-min fair exactly where no link is overloaded and every flow has a bottleneck: a full link on which none
 * gets more than it does (Bertsekas and Gallager, section 6.5.2). The solution is unique. */
static void test_max_min_conditions(void **state) {
    (void)state;
    test_random random = {5};
    for (long k = 0; k < test_cases(5000, 20000); k++) {
        network n;
        double left[LINKS_MAX];
        int32_t waiting[LINKS_MAX];
        draw_network(&random, &n);
        pc_maxmin_rates(n.flow_count, n.offset, n.route, n.link_count, n.capacity, n.rate, left, waiting);
        for (int32_t l = 0; l < n.link_count; l++) assert_true(load_of(&n, l) <= n.capacity[l] * (1 + 1e-9));
        for (int32_t f = 0; f < n.flow_count; f++) {
            bool has_bottleneck = false;
            for (int32_t i = n.offset[f]; i < n.offset[f + 1]; i++)
                has_bottleneck |=
                    load_of(&n, n.route[i]) >= n.capacity[n.route[i]] * (1 - 1e-9) && is_largest_on(&n, f, n.route[i]);
            assert_true(has_bottleneck);
        }
    }
}

/* Random flows at random times: every link's load stays within its capacity, all bytes arrive, and the integral of the
 * loads is the bytes that went over the link. */
static void test_flows_conserve_bytes(void **state) {
    fixture *test = *state;
    test_random random = {6};
    for (long k = 0; k < test_cases(300, 20000); k++) {
        network n;
        double sent[LINKS_MAX] = {0}, carried[LINKS_MAX] = {0}, load[LINKS_MAX] = {0}, since[LINKS_MAX] = {0};
        draw_network(&random, &n);
        pc_program_clear(test->program);
        for (int32_t l = 0; l < n.link_count; l++) add_link(test, 0, n.capacity[l]);
        for (int32_t f = 0; f < n.flow_count; f++) {
            int64_t bytes = test_between(&random, 0, 1000000);
            int32_t route = add_route(test, n.route + n.offset[f], n.offset[f + 1] - n.offset[f]);
            int32_t clock = add_task(test, PC_NO_RESOURCE, test_between(&random, 0, 20000));
            add_edge(test, clock, add_flow(test, route, bytes), 0);
            for (int32_t i = n.offset[f]; i < n.offset[f + 1]; i++) sent[n.route[i]] += (double)bytes;
        }
        run(test);
        assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
        for (int64_t i = 0; i < test->result.loads.count; i++) {
            int32_t l = test->result.loads.link[i];
            carried[l] += load[l] * ((double)test->result.loads.time_ps[i] - since[l]);
            since[l] = (double)test->result.loads.time_ps[i];
            load[l] = test->result.loads.bytes_per_s[i] * 1e-12;
            assert_true(load[l] <= n.capacity[l] * (1 + 1e-9));
        }
        for (int32_t l = 0; l < n.link_count; l++) { /* each end is rounded to a picosecond */
            assert_true(fabs(load[l]) < 1e-9);
            assert_true(fabs(carried[l] - sent[l]) <= n.capacity[l] * 2 * FLOWS_MAX);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_flow_alone),           WITH_FIXTURE(test_flows_share),
        WITH_FIXTURE(test_flows_max_min),        WITH_FIXTURE(test_unshared_link),
        WITH_FIXTURE(test_unshared_link_bounds), cmocka_unit_test(test_max_min_conditions),
        WITH_FIXTURE(test_flows_conserve_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
