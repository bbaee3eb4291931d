/* Dispatch and combine of tokens: algebra on the plain machine, 300 GB/s into a domain of 8 and 20 GB/s a NIC. */
#include "models/cost/dispatch.h"
#include "models/machine/transfer_model.h"
#include "tests/random_machine.h"

#include <math.h>

static const double domain_rate = 400e9 * 0.75, nic_rate = 25e9 * 0.8;

static void check_near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected))) fail_msg("%.17g is not %.17g", found, expected);
}

/* `ep` neighbours. */
static pc_group group_of(const pc_machine *machine, int ep) {
    pc_rank_order order;
    pc_ranks ranks, experts;
    assert_int_equal(pc_rank_order_parse("tp-cp-dp-pp", &order, NULL), PC_OK);
    assert_int_equal(pc_ranks_place(machine, order, (pc_rank_counts){1, 1, ep, 1}, &ranks, NULL), PC_OK);
    assert_int_equal(pc_ranks_place_experts(&ranks, order, 1, ep, &experts, NULL), PC_OK);
    return pc_group_of(machine, &experts, (pc_axis)PC_AXIS_EP);
}

static pc_dispatch plain_dispatch(pc_dispatcher dispatcher) {
    return (pc_dispatch){.dispatcher = dispatcher,
                         .tokens = 4096,
                         .token_bytes = 8192,
                         .routing = {.experts = 64, .topk = 6},
                         .load = 1};
}

static pc_collective_course course_of(int ep, const pc_dispatch *what) {
    pc_machine machine = plain_machine();
    pc_group group = group_of(&machine, ep);
    return pc_dispatch_course(&machine, &group, what);
}

/* ---- collectives ---- */

/* All pairs of a rank, 4096 * 6 rows of 8 KiB, 7 of 8 of them to others in 7 steps of 5 us. Both ways. */
static void pairs_in_a_domain(void **state) {
    (void)state;
    pc_dispatch x = plain_dispatch(PC_DISPATCHER_ALLTOALL);
    double bytes = 4096.0 * 6 * 8192;
    for (int i = 0; i < 2; i++, x.is_combine = true)
        check_near(course_of(8, &x).seconds, 7 * 5e-6 + bytes * 7 / 8 / domain_rate);
    x.load = 2; /* the fullest gets twice as much */
    check_near(course_of(8, &x).seconds, 7 * 5e-6 + 2 * bytes * 7 / 8 / domain_rate);
}

/* Over 16 ranks on 2 nodes half of the rows leave. */
static void pairs_between_nodes(void **state) {
    (void)state;
    pc_dispatch x = plain_dispatch(PC_DISPATCHER_ALLTOALL);
    check_near(course_of(16, &x).seconds, 7 * 5e-6 + 15e-6 + 4096.0 * 6 * 8192 / 2 / nic_rate);
}

/* 7 other ranks' rows come, each once, whatever is chosen. */
static void all_gather_brings_all(void **state) {
    (void)state;
    pc_dispatch x = plain_dispatch(PC_DISPATCHER_ALLGATHER);
    double expected = 7 * 5e-6 + 4096.0 * 8192 * 7 / domain_rate;
    x.load = 3;
    check_near(course_of(8, &x).seconds, expected);
    x.is_combine = true;
    check_near(course_of(8, &x).seconds, expected);
}

/* ---- once to each rank ---- */

/* A token of 6 of 64 experts reaches 8 (1 - C(56,6)/C(64,6)) of 8 ranks, 7 of 8 of them others. */
static void once_to_each_rank(void **state) {
    (void)state;
    pc_dispatch x = plain_dispatch(PC_DISPATCHER_DEEPEP);
    double missed = 56.0 / 64 * 55 / 63 * 54 / 62 * 53 / 61 * 52 / 60 * 51 / 59, reached = 8 * (1 - missed);
    check_near(course_of(8, &x).seconds, 5e-6 + 4096.0 * 8192 * reached * 7 / 8 / domain_rate);
    assert_true(reached < 6);
    pc_dispatch pairs = plain_dispatch(PC_DISPATCHER_ALLTOALL);
    assert_true(course_of(8, &x).phase[0].domain_bytes < course_of(8, &pairs).phase[0].domain_bytes);
    x.load = 100; /* no rank gets more than all tokens of all */
    check_near(course_of(8, &x).phase[0].domain_bytes, 4096.0 * 8192 * 7);
}

/* On 4 nodes of 8, a group each, of which a token chooses 1: one message leaves, 3 times of 4. It goes on to the ranks
 * there: 6 of 16 experts on 8 ranks of 2 experts. */
static void nodes_get_one_message(void **state) {
    (void)state;
    pc_dispatch x = plain_dispatch(PC_DISPATCHER_DEEPEP);
    x.routing.groups = 4;
    x.routing.group_topk = 1;
    pc_collective_course course = course_of(32, &x);
    double missed = 14.0 / 16 * 13 / 15 * 12 / 14 * 11 / 13 * 10 / 12 * 9 / 11, reached = 8 * (1 - missed);
    check_near(course.phase[0].network_bytes, 4096.0 * 8192 * 3 / 4);
    check_near(course.phase[0].domain_bytes, 4096.0 * 8192 * reached * 7 / 8);
    check_near(course.seconds, 5e-6 + 15e-6 + 4096.0 * 8192 * 3 / 4 / nic_rate);
    x.routing.group_topk = 4; /* all: to more nodes */
    assert_true(course_of(32, &x).phase[0].network_bytes > 2 * course.phase[0].network_bytes);
}

static void alone_nothing_goes(void **state) {
    (void)state;
    for (int d = 0; d <= PC_DISPATCHER_HYBRIDEP; d++) {
        pc_dispatch x = plain_dispatch((pc_dispatcher)d);
        assert_int_equal(course_of(1, &x).phase_count, 0);
        x.tokens = 0;
        assert_int_equal(course_of(8, &x).phase_count, 0);
    }
}

/* ---- what was measured ---- */

static bool measured_exchange(const void *self, const pc_group *group, const pc_exchange *exchange, double *seconds) {
    (void)group;
    *seconds = *(const double *)self * (exchange->is_combine ? 2 : 1);
    return true;
}

static bool no_collective(const void *self, pc_collective collective, const pc_group *group, double size_bytes,
                          double *seconds) {
    (void)self, (void)collective, (void)group, (void)size_bytes, (void)seconds;
    return false;
}

/* DeepEP's course lasts as long as was measured, longer or shorter than the closed cost; its links are never faster
 * than their bandwidth. The others' stays. */
static void measured_ones_last_so_long(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    for (int ep = 8; ep <= 32; ep *= 4) {
        pc_group group = group_of(&machine, ep);
        pc_dispatch x = plain_dispatch(PC_DISPATCHER_DEEPEP), hybrid = plain_dispatch(PC_DISPATCHER_HYBRIDEP);
        machine.measured = NULL;
        double closed_s = pc_dispatch_course(&machine, &group, &x).seconds;
        for (double times = 0.1; times < 20; times *= 1.7) {
            double seconds = closed_s * times;
            pc_transfer_model model = {.self = &seconds, .collective = no_collective, .exchange = measured_exchange};
            machine.measured = &model;
            x.is_combine = !x.is_combine;
            pc_collective_course course = pc_dispatch_course(&machine, &group, &x);
            check_near(course.seconds, seconds * (x.is_combine ? 2 : 1));
            const pc_collective_phase *p = &course.phase[0];
            double least = fmax(p->domain_bytes / machine.domain.bandwidth_bytes_per_s,
                                p->network_bytes / machine.network.bandwidth_bytes_per_s);
            assert_true(course.seconds - p->latency_s >= fmin(least, course.seconds) * (1 - 1e-12));
            assert_true(p->latency_s >= 0);
            check_near(pc_dispatch_course(&machine, &group, &hybrid).seconds, closed_s);
        }
    }
}

/* ---- numbers ---- */

/* 7168 numbers: 14336 bytes, or 7168 and 56 scales of 4. DeepEP's 20 of 132 SMs leave 112. */
static void numbers_of_kernels(void **state) {
    (void)state;
    check_near(pc_dispatched_bytes(7168, false), 14336);
    check_near(pc_dispatched_bytes(7168, true), 7168 + 224);
    check_near(pc_stretch_beside(132, pc_dispatch_processors(PC_DISPATCHER_DEEPEP)), 132.0 / 112);
    check_near(pc_stretch_beside(132, pc_dispatch_processors(PC_DISPATCHER_ALLTOALL)), 1);
    check_near(pc_stretch_beside(10, 20), 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_in_a_domain),          cmocka_unit_test(pairs_between_nodes),
        cmocka_unit_test(all_gather_brings_all),      cmocka_unit_test(once_to_each_rank),
        cmocka_unit_test(nodes_get_one_message),      cmocka_unit_test(alone_nothing_goes),
        cmocka_unit_test(measured_ones_last_so_long), cmocka_unit_test(numbers_of_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
