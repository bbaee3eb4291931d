/* What collectives cost where nothing contends: algebra. As flows: test_network.c. */
#include "tests/support.h"

#include "models/machine/collective.h"
#include "tests/random_machine.h"

#include <math.h>

/* The plain machine: 300 GB/s into the domain, 20 GB/s a NIC, steps of 5 and 15 us. */
static const double domain_rate = 400e9 * 0.75, nic_rate = 25e9 * 0.8, domain_step_s = 5e-6, network_step_s = 15e-6;

static void check_near(double found, double expected, double tolerance) {
    if (fabs(found - expected) > tolerance * fabs(expected)) fail_msg("%.17g is not %.17g", found, expected);
}

/* The data-parallel ranks of `dp` GPUs, a GPU of every `tp`. */
static pc_group group_of(const pc_machine *machine, int tp, int dp) {
    pc_ranks ranks;
    pc_rank_order order = {{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}};
    assert_int_equal(pc_ranks_place(machine, order, (pc_rank_counts){tp, 1, dp, 1}, &ranks, NULL), PC_OK);
    return pc_group_of(machine, &ranks, PC_AXIS_DP);
}

static double seconds_of(const pc_machine *machine, int tp, int dp, pc_collective collective, pc_algorithm algorithm,
                         double size_bytes) {
    pc_group group = group_of(machine, tp, dp);
    return pc_collective_course_of(machine, &group, collective, algorithm, size_bytes).seconds;
}

static void test_nothing_costs_nothing(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    for (int collective = 0; collective < PC_COLLECTIVES; collective++)
        for (int algorithm = 0; algorithm < PC_ALGORITHMS; algorithm++) {
            pc_group one = group_of(&x, 8, 1), two = group_of(&x, 8, 2);
            pc_collective_course alone =
                pc_collective_course_of(&x, &one, (pc_collective)collective, (pc_algorithm)algorithm, 1e9);
            pc_collective_course empty =
                pc_collective_course_of(&x, &two, (pc_collective)collective, (pc_algorithm)algorithm, 0.0);
            assert_true(alone.seconds == 0.0 && alone.phase_count == 0 && alone.algorithm != PC_ALGORITHM_BEST);
            assert_true(empty.seconds == 0.0 && empty.phase_count == 0 && empty.algorithm != PC_ALGORITHM_BEST);
        }
}

/* Rings of 8 in a domain: 7 steps, 7/8 of the data; an all-reduce twice that; a broadcast all the data. An all-to-all
 * sends 1/8 of it to each of 7. */
static void test_rings_in_a_domain(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    double size = 8e8, part_s = size * 7.0 / 8.0 / domain_rate, steps_s = 7.0 * domain_step_s;
    pc_algorithm ring = PC_ALGORITHM_RING;
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_GATHER, ring, size), steps_s + part_s, 1e-12);
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_REDUCE_SCATTER, ring, size), steps_s + part_s, 1e-12);
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_TO_ALL, ring, size), steps_s + part_s, 1e-12);
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_REDUCE, ring, size), 2.0 * (steps_s + part_s), 1e-12);
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_BROADCAST, ring, size), steps_s + size / domain_rate, 1e-12);
    x.collective_call_s = 1e-5;
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_GATHER, ring, size), 1e-5 + steps_s + part_s, 1e-12);
}

/* 32 ranks on 4 nodes: 31 steps, 3 of them over the network. Eight rings leave a node by its eight NICs, 31/32 of the
 * data in all; each rank alone in its node (tp 8) has one NIC for 3/4 of it. NVIDIA's engineers report 192 GB/s of bus
 * bandwidth for DGX A100 with 8 NICs of 200 Gbit/s, 24 GB/s a NIC (github.com/NVIDIA/nccl issue 812). */
static void test_rings_across_domains(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    double size = 32e8;
    check_near(seconds_of(&x, 1, 32, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING, size),
               28.0 * domain_step_s + 3.0 * network_step_s + size * 31.0 / 32.0 / (8.0 * nic_rate), 1e-12);
    check_near(seconds_of(&x, 8, 4, PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_RING, size),
               6.0 * network_step_s + size * 2.0 * 3.0 / 4.0 / nic_rate, 1e-12);
    /* Each of 32 ranks sends 7/32 to its node and 24/32 out of it. */
    check_near(seconds_of(&x, 1, 32, PC_COLLECTIVE_ALL_TO_ALL, PC_ALGORITHM_RING, size),
               7.0 * domain_step_s + 3.0 * network_step_s + size * 24.0 / 32.0 / nic_rate, 1e-12);
    x.network = (pc_connection){.bandwidth_bytes_per_s = 25e9, .efficiency = 0.96};
    x.domain.latency_s = 0.0;
    double bus = 2.0 * 63.0 / 64.0 * size / seconds_of(&x, 1, 64, PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_RING, size);
    check_near(bus, 192e9, 1e-12);
}

/* Where NICs are faster than the domain, the domain is what a ring waits for: 7/8 of its hops are inside. */
static void test_the_slower_connection_counts(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    x.network.bandwidth_bytes_per_s = 4000e9;
    x.network.latency_s = x.domain.latency_s = 0.0;
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING, 16e8),
               16e8 * 15.0 / 16.0 * 7.0 / 8.0 / domain_rate, 1e-12);
}

/* 4 nodes: 2 levels of a tree across and 3 inside, up and down. An inner rank of a tree sends twice the data. */
static void test_trees(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    double size = 1e9, steps_s = 3.0 * domain_step_s + 2.0 * network_step_s;
    check_near(seconds_of(&x, 1, 32, PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_TREE, size),
               2.0 * steps_s + 2.0 * size / (8.0 * nic_rate), 1e-12);
    check_near(seconds_of(&x, 1, 32, PC_COLLECTIVE_BROADCAST, PC_ALGORITHM_TREE, size),
               steps_s + size / (8.0 * nic_rate), 1e-12);
    check_near(seconds_of(&x, 8, 2, PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_TREE, size),
               2.0 * network_step_s + 2.0 * size / nic_rate, 1e-12);
    pc_group group = group_of(&x, 1, 32);
    assert_int_equal(pc_collective_course_of(&x, &group, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_TREE, size).algorithm,
                     PC_ALGORITHM_RING);
}

/* Two nodes of 8: reduce-scatter inside, all-reduce of an eighth across, all-gather inside. */
static void test_hierarchies(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    double size = 1e9, inside_s = 7.0 * domain_step_s + size * 7.0 / 8.0 / domain_rate;
    double across_s = network_step_s + size / 8.0 / 2.0 / nic_rate;
    pc_algorithm hierarchy = PC_ALGORITHM_HIERARCHICAL;
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_ALL_REDUCE, hierarchy, size), 2.0 * (inside_s + across_s), 1e-12);
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_ALL_GATHER, hierarchy, size), inside_s + across_s, 1e-12);
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_REDUCE_SCATTER, hierarchy, size), inside_s + across_s, 1e-12);
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_ALL_TO_ALL, hierarchy, size),
               inside_s + network_step_s + size / 2.0 / nic_rate, 1e-12);
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_BROADCAST, hierarchy, size),
               2.0 * inside_s + network_step_s + size / 8.0 / nic_rate, 1e-12);
    x.collective_call_s = 1e-4; /* it is one collective */
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_ALL_REDUCE, hierarchy, size), 1e-4 + 2.0 * (inside_s + across_s),
               1e-12);
    for (int dp = 8; dp <= 12; dp += 4) { /* one domain; domains of 8 and 4 */
        pc_group group = group_of(&x, 1, dp);
        assert_int_equal(pc_collective_course_of(&x, &group, PC_COLLECTIVE_ALL_REDUCE, hierarchy, size).algorithm,
                         PC_ALGORITHM_RING);
    }
}

/* Each of n ranks sends its data to the switch once and a sum of an n-th of it; the domain's efficiency and two steps
 * where the machine says nothing else. Two ranks are better off with a ring: 3/2 of the data against 1. */
static void test_reduction_in_the_switch(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    pc_algorithm in_switch = PC_ALGORITHM_IN_SWITCH;
    double size = 8e9, ring_s = seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_RING, size);
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_REDUCE, in_switch, size), ring_s, 1e-12);
    x.reduces_in_switch = true;
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_REDUCE, in_switch, size),
               2.0 * domain_step_s + size * 9.0 / 8.0 / domain_rate, 1e-12);
    x.in_switch_efficiency = 0.5;
    x.in_switch_latency_s = 3e-5;
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_REDUCE, in_switch, size), 3e-5 + size * 9.0 / 8.0 / (400e9 * 0.5),
               1e-12);
    pc_group two = group_of(&x, 1, 2), eight = group_of(&x, 1, 8), alone = group_of(&x, 8, 4);
    pc_algorithm best = PC_ALGORITHM_BEST;
    assert_int_equal(pc_collective_course_of(&x, &two, PC_COLLECTIVE_ALL_REDUCE, best, size).algorithm,
                     PC_ALGORITHM_RING);
    assert_int_equal(pc_collective_course_of(&x, &eight, PC_COLLECTIVE_ALL_REDUCE, best, size).algorithm, in_switch);
    assert_int_equal(pc_collective_course_of(&x, &alone, PC_COLLECTIVE_ALL_REDUCE, in_switch, size).algorithm,
                     PC_ALGORITHM_RING);
}

/* Across nodes, trees of the parts that switches reduce: an inner node of many sends twice its part of an eighth, each
 * of two half of that, the one between two others three quarters. */
static void test_switches_across_domains(void **state) {
    (void)state;
    static const double sent[] = {0, 0, 1.0, 1.5, 2.0, 2.0};
    pc_machine x = plain_machine();
    x.reduces_in_switch = true;
    x.domain.latency_s = x.network.latency_s = 0.0;
    for (int nodes = 2; nodes <= 5; nodes++)
        check_near(seconds_of(&x, 1, 8 * nodes, PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_IN_SWITCH, 8e9),
                   sent[nodes] * 1e9 / nic_rate, 1e-12);
}

/* A protocol of a fifth of the latency and half the rate: better for small sizes, and half the link's time is its own.
 */
static void test_protocols(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    x.domain.fast_latency_s = 1e-6;
    x.domain.fast_efficiency = 0.375;
    double small = 8e3, large = 8e9;
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING, small), 7e-6 + 7e3 / 150e9, 1e-12);
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING, large),
               7.0 * domain_step_s + 7e9 / domain_rate, 1e-12);
    pc_group group = group_of(&x, 1, 8);
    pc_collective_course course =
        pc_collective_course_of(&x, &group, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING, small);
    check_near(course.phase[0].domain_bytes, 7e3, 1e-12);
    check_near(course.phase[0].domain_wire_bytes, 14e3, 1e-12);
    /* Messages from rank to rank keep to the bulk one. */
    check_near(seconds_of(&x, 1, 8, PC_COLLECTIVE_ALL_TO_ALL, PC_ALGORITHM_RING, small),
               7.0 * domain_step_s + 7e3 / domain_rate, 1e-12);
}

/* 4 NICs for 8 GPUs: a ring of every second GPU has no two with a NIC in common, one of all GPUs has, and one of a GPU
 * a node comes and goes by the same. An all-to-all is no ring. */
static void test_rings_that_cross_nics(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    double size = 1e9;
    x.nics_per_node = 4;
    x.nic_crossing_efficiency = 0.25;
    x.domain.latency_s = x.network.latency_s = 0.0;
    pc_algorithm ring = PC_ALGORITHM_RING;
    check_near(seconds_of(&x, 1, 16, PC_COLLECTIVE_ALL_GATHER, ring, size), size * 15.0 / 16.0 / (4.0 * nic_rate),
               1e-12);
    check_near(seconds_of(&x, 2, 8, PC_COLLECTIVE_ALL_GATHER, ring, size), size * 7.0 / 8.0 / (2.0 * nic_rate * 0.25),
               1e-12);
    check_near(seconds_of(&x, 8, 2, PC_COLLECTIVE_ALL_GATHER, ring, size), size / 2.0 / (nic_rate / 2.0), 1e-12);
    check_near(seconds_of(&x, 2, 8, PC_COLLECTIVE_ALL_TO_ALL, ring, size), size / 2.0 / (nic_rate / 2.0), 1e-12);
}

/* 8 nodes, 2 a leaf. Eight rings of a GPU a node each leave every leaf once: 8 * 3/4 V in 4-fold oversubscribed uplinks
 * of 16/4 NICs, so that a ring gets half a NIC. In an all-to-all a rank sends 6/7 of what leaves its node out of its
 * leaf, where it has a quarter of a NIC. */
static void test_oversubscribed_leaves(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    double size = 8e9;
    x.leaf_nodes = 2;
    x.oversubscription = 4.0;
    x.network.latency_s = 0.0;
    x.switch_latency_s = 1e-6;
    check_near(seconds_of(&x, 8, 8, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING, size),
               7e-6 + size * 7.0 / 8.0 / (nic_rate / 2.0), 1e-12);
    check_near(seconds_of(&x, 8, 8, PC_COLLECTIVE_ALL_TO_ALL, PC_ALGORITHM_RING, size),
               7e-6 + size * 6.0 / 8.0 / (nic_rate / 4.0), 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_costs_nothing),
        cmocka_unit_test(test_rings_in_a_domain),
        cmocka_unit_test(test_rings_across_domains),
        cmocka_unit_test(test_the_slower_connection_counts),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_hierarchies),
        cmocka_unit_test(test_reduction_in_the_switch),
        cmocka_unit_test(test_switches_across_domains),
        cmocka_unit_test(test_protocols),
        cmocka_unit_test(test_rings_that_cross_nics),
        cmocka_unit_test(test_oversubscribed_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
