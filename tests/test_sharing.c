/* Links that flows share, against a direct solution: water that rises alike in all flows until a link is full, from one
 * instant at which a flow comes or goes to the next. Slow, in long doubles, and nothing of the engine's. */
#include "tests/program_fixture.h"

#include "engine/maxmin.h"

#include <math.h>

enum { FLOWS = 64, LINKS = 24, ROUTE = 5, MOST_AWAY_PS = 20 };

typedef struct network {
    int32_t flows, links;
    int32_t hops[FLOWS], route[FLOWS][ROUTE];
    double capacity[LINKS]; /* bytes a picosecond */
    pc_time latency[LINKS];
    int64_t bytes[FLOWS];
    int32_t after[FLOWS]; /* the flow that must have ended, or -1 */
    pc_time wait[FLOWS];  /* since that, or since the beginning */
} network;

/* ---- random networks ---- */

static bool crosses(const network *n, int32_t flow, int32_t link) {
    for (int32_t i = 0; i < n->hops[flow]; i++)
        if (n->route[flow][i] == link) return true;
    return false;
}

static void draw_route(test_random *random, network *n, int32_t flow) {
    int64_t wanted = test_between(random, 1, n->links < ROUTE ? n->links : ROUTE);
    n->hops[flow] = 0;
    while (n->hops[flow] < wanted) {
        int32_t link = (int32_t)test_between(random, 0, n->links - 1);
        if (!crosses(n, flow, link)) n->route[flow][n->hops[flow]++] = link;
    }
}

/* Some of round numbers, so that many flows are alike and end at once. A picosecond is little of any flow's time. */
static void draw_network(test_random *random, network *n) {
    bool is_round = test_between(random, 0, 3) == 0;
    n->flows = (int32_t)test_between(random, 1, FLOWS);
    n->links = (int32_t)test_between(random, 1, LINKS);
    for (int32_t l = 0; l < n->links; l++) {
        int64_t rate = is_round ? 10 * test_between(random, 1, 3) : test_between(random, 5, 400);
        n->capacity[l] = (double)rate * 1e-3;
        n->latency[l] = test_between(random, 0, 1) * test_between(random, 1, 5000000);
    }
    for (int32_t f = 0; f < n->flows; f++) {
        int64_t size = is_round ? 100 * test_between(random, 1, 3) : test_between(random, 1, 999);
        draw_route(random, n, f);
        n->bytes[f] = 1000000 * size;
        n->after[f] = f == 0 || test_between(random, 0, 2) ? -1 : (int32_t)test_between(random, 0, f - 1);
        n->wait[f] = (is_round ? 5000 : 1) * test_between(random, 0, is_round ? 4 : 40000) * 1000000;
    }
}

/* ---- the direct solution ---- */

/* Raises the rates of the flows under way, all alike, by what the link that has least room for each of its flows can
 * take; those that cross a full link stay where they are, the others go on. */
static void fill(const network *n, const bool *is_under_way, long double *rate) {
    long double left[LINKS];
    bool rises[FLOWS];
    for (int32_t l = 0; l < n->links; l++) left[l] = n->capacity[l];
    for (int32_t f = 0; f < n->flows; f++) {
        rises[f] = is_under_way[f];
        rate[f] = 0;
    }
    for (;;) {
        int32_t rising[LINKS] = {0};
        long double step = INFINITY;
        for (int32_t f = 0; f < n->flows; f++)
            for (int32_t i = 0; rises[f] && i < n->hops[f]; i++) rising[n->route[f][i]]++;
        for (int32_t l = 0; l < n->links; l++)
            if (rising[l] > 0 && left[l] / rising[l] < step) step = left[l] / rising[l];
        if (isinf(step)) return;
        for (int32_t l = 0; l < n->links; l++) left[l] -= step * rising[l];
        for (int32_t f = 0; f < n->flows; f++) {
            if (!rises[f]) continue;
            rate[f] += step;
            for (int32_t i = 0; i < n->hops[f]; i++)
                if (left[n->route[f][i]] <= 1e-15L * n->capacity[n->route[f][i]]) rises[f] = false;
        }
    }
}

typedef struct journey {
    bool is_under_way, is_done;
    long double begin, end, left; /* picoseconds, bytes; begin: INFINITY while it is not known */
} journey;

/* A flow's bytes begin when what it waits for is over, and its latency. */
static void set_begin(const network *n, const journey *journeys, int32_t flow, long double *begin) {
    long double start = n->wait[flow];
    if (n->after[flow] >= 0) start += journeys[n->after[flow]].end;
    for (int32_t i = 0; i < n->hops[flow]; i++) start += n->latency[n->route[flow][i]];
    *begin = start;
}

/* The next instant at which a flow comes or goes. */
static long double next_instant(const network *n, const journey *journeys, const long double *rate, long double now) {
    long double next = INFINITY;
    for (int32_t f = 0; f < n->flows; f++) {
        const journey *j = &journeys[f];
        long double own = j->is_done ? INFINITY : j->is_under_way ? now + j->left / rate[f] : j->begin;
        if (own < next) next = own;
    }
    return next;
}

/* Writes when every flow ends. What is left of a flow at its end is rounding: far less than a byte. */
static void solve(const network *n, journey *journeys) {
    bool is_under_way[FLOWS] = {false};
    long double rate[FLOWS], now = 0;
    for (int32_t f = 0; f < n->flows; f++) {
        journeys[f] = (journey){.begin = INFINITY, .end = INFINITY, .left = n->bytes[f]};
        if (n->after[f] < 0) set_begin(n, journeys, f, &journeys[f].begin);
    }
    for (int32_t done = 0; done < n->flows;) {
        fill(n, is_under_way, rate);
        long double next = next_instant(n, journeys, rate, now);
        for (int32_t f = 0; f < n->flows; f++) {
            journey *j = &journeys[f];
            if (j->is_under_way) j->left -= rate[f] * (next - now);
            if (j->is_under_way && j->left < 1e-6L) {
                j->is_done = true;
                j->end = next;
                j->is_under_way = false;
                done++;
            }
        }
        now = next;
        for (int32_t f = 0; f < n->flows; f++) {
            journey *j = &journeys[f];
            if (isinf(j->begin) && journeys[n->after[f]].is_done) set_begin(n, journeys, f, &j->begin);
            if (!j->is_done && j->begin <= now) j->is_under_way = true;
            is_under_way[f] = j->is_under_way;
        }
    }
}

/* ---- beside each other ---- */

static void run(fixture *test, const network *n, bool with_trace) {
    int32_t number, route;
    pc_error error = {0};
    pc_program_clear(test->program);
    for (int32_t l = 0; l < n->links; l++) {
        pc_link link = {n->latency[l], n->capacity[l] * 1e12, false};
        assert_int_equal(pc_program_add_link(test->program, &link, &number, NULL), PC_OK);
    }
    for (int32_t f = 0; f < n->flows; f++) { /* a clock and a flow */
        pc_task clock = pc_task_default(), flow = pc_task_default();
        assert_int_equal(pc_program_add_route(test->program, n->route[f], n->hops[f], &route, NULL), PC_OK);
        clock.duration_ps = n->wait[f];
        flow.route = route;
        flow.flow_bytes = n->bytes[f];
        assert_int_equal(pc_program_add_task(test->program, &clock, &number, NULL), PC_OK);
        assert_int_equal(pc_program_add_task(test->program, &flow, &number, NULL), PC_OK);
        assert_int_equal(pc_program_add_edge(test->program, number - 1, number, 0, NULL), PC_OK);
        if (n->after[f] >= 0)
            assert_int_equal(pc_program_add_edge(test->program, 2 * n->after[f] + 1, number - 1, 0, NULL), PC_OK);
    }
    if (pc_program_seal(test->program, &error) ||
        pc_simulation_run(test->simulation, test->program, &(pc_simulation_options){.with_trace = with_trace},
                          &test->result, &error))
        fail_msg("%s", error.message);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
}

/* The engine rounds each end to a picosecond, and a flow that comes or goes one later shifts those it shares with; in
 * 650,000 flows no end was 10 away. */
static void test_flows_end_when_the_direct_solution_says(void **state) {
    fixture *test = *state;
    test_random random = {83};
    long cases = test_cases(200, 20000), flows = 0;
    double worst = 0;
    for (long i = 0; i < cases; i++) {
        network n;
        journey journeys[FLOWS];
        draw_network(&random, &n);
        solve(&n, journeys);
        run(test, &n, i % 2);
        for (int32_t f = 0; f < n.flows; f++) {
            double found = (double)test->result.end_ps[2 * f + 1], expected = (double)journeys[f].end;
            double away = fabs(found - expected);
            if (away > MOST_AWAY_PS)
                fail_msg("network %ld, flow %d: ends at %.17g ps; expected %.17g", i, (int)f, found, expected);
            worst = away > worst ? away : worst;
        }
        flows += n.flows;
    }
    print_message("%ld flows, at most %g ps away\n", flows, worst);
    test_count("flows.compared", flows);
}

/* The rates themselves, of all flows at once. */
static void test_rates_are_the_direct_solution(void **state) {
    (void)state;
    test_random random = {84};
    for (long i = 0; i < test_cases(1000, 20000); i++) {
        network n;
        bool all[FLOWS];
        long double expected[FLOWS];
        double rate[FLOWS], left[LINKS];
        int32_t offset[FLOWS + 1] = {0}, route[FLOWS * ROUTE], waiting[LINKS];
        draw_network(&random, &n);
        for (int32_t f = 0; f < n.flows; f++) {
            all[f] = true;
            offset[f + 1] = offset[f] + n.hops[f];
            memcpy(route + offset[f], n.route[f], (size_t)n.hops[f] * sizeof *route);
        }
        fill(&n, all, expected);
        pc_maxmin_rates(n.flows, offset, route, n.links, n.capacity, rate, left, waiting);
        for (int32_t f = 0; f < n.flows; f++)
            if (fabs(rate[f] - (double)expected[f]) > 1e-12 * (double)expected[f])
                fail_msg("network %ld, flow %d: %.17g; expected %.17g", i, (int)f, rate[f], (double)expected[f]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flows_end_when_the_direct_solution_says, set_up, tear_down),
        cmocka_unit_test(test_rates_are_the_direct_solution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
