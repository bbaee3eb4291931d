/* Machines, orders of ranks, and how groups and stages lie: the closed forms against counts over all GPUs. */
#include "tests/support.h"

#include "models/machine/collective.h"
#include "models/machine/machine.h"
#include "models/machine/ranks.h"
#include "models/machine/shares.h"
#include "tests/random_machine.h"

#include <math.h>

/* ---- what a machine may be ---- */

static void check_refused(const pc_machine *machine, const char *words) {
    pc_error error = {0};
    assert_int_equal(pc_machine_check(machine, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("'%s' is not in '%s'", words, error.message);
    assert_non_null(strstr(error.message, "expected"));
}

static void test_machines_are_checked(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    assert_int_equal(pc_machine_check(&x, NULL), PC_OK);
    x.gpu.matrix_flops_per_s = 0.0;
    check_refused(&x, "gpu: matrix: 0; expected a number above zero");
    x = plain_machine(), x.gpu.gemm_efficiency = 1.2;
    check_refused(&x, "gpu: gemm_efficiency: 1.2; expected a fraction above 0 and up to 1");
    x = plain_machine(), x.gpu.memory_reserved_bytes = x.gpu.memory_bytes;
    check_refused(&x, "gpu: reserved: ");
    x = plain_machine(), x.domain.bandwidth_bytes_per_s = -1.0;
    check_refused(&x, "domain: bandwidth");
    x = plain_machine(), x.network.latency_s = NAN;
    check_refused(&x, "network: latency");
    x = plain_machine(), x.network.fast_latency_s = 1e-6;
    check_refused(&x, "network: fast_efficiency: 0; expected a fraction above 0");
    x = plain_machine(), x.domain_gpus = 12;
    check_refused(&x, "domain_gpus: 12; expected a multiple or a divisor of the 8");
    x = plain_machine(), x.domain_gpus = 32, x.leaf_nodes = 6;
    check_refused(&x, "leaf_nodes: 6");
    x = plain_machine(), x.domain_gpus = 32, x.segment_gpus = 12;
    check_refused(&x, "segment_gpus: 12; expected whole nodes of 8 GPUs, at most the 32 of a domain");
    x = plain_machine(), x.segment_gpus = 16;
    check_refused(&x, "segment_gpus: 16; expected whole nodes");
    x = plain_machine(), x.leaf_nodes = 4, x.oversubscription = 0.0;
    check_refused(&x, "oversubscription");
    x = plain_machine(), x.gpus_per_node = 0;
    check_refused(&x, "gpus_per_node");
}

/* A machine of one domain needs no network, and one whose GPUs stand alone no domain. */
static void test_unused_connections_may_be_missing(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    x.nics_per_node = 0;
    check_refused(&x, "nics_per_node: 0; expected one or more");
    x.nodes = 1;
    x.network = (pc_connection){0};
    assert_int_equal(pc_machine_check(&x, NULL), PC_OK);
    x = plain_machine();
    x.domain_gpus = 1;
    x.domain = (pc_connection){0};
    assert_int_equal(pc_machine_check(&x, NULL), PC_OK);
}

static void test_random_machines_are_sound(void **state) {
    (void)state;
    test_random random = {5};
    for (int i = 0; i < 1000; i++) {
        pc_machine x = random_machine(&random);
        pc_error error = {0};
        if (pc_machine_check(&x, &error)) fail_msg("%s", error.message);
    }
}

/* ---- orders and places ---- */

static void test_orders_are_read_and_written(void **state) {
    (void)state;
    static const char *const good[] = {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"};
    static const char *const bad[] = {"", "tp", "tp-dp", "tp-dp-dp", "tp-dp-pp-", "tp_dp_pp", "tp-dp-xp", "TP-DP-PP"};
    pc_rank_order order;
    char text[16];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(pc_rank_order_parse(good[i], &order, NULL), PC_OK);
        pc_rank_order_write(order, text);
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pc_rank_order_parse(bad[i], &order, NULL), PC_ERROR_INPUT);
}

/* tp 2, pp 3, dp 5 in the order tp, dp, pp: strides 1, 2*5 and 2. */
static void test_ranks_are_placed(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    pc_rank_order order = {{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}};
    pc_ranks ranks;
    pc_error error = {0};
    assert_int_equal(pc_ranks_place(&x, order, (pc_rank_counts){2, 3, 5, 1}, &ranks, NULL), PC_OK);
    assert_int_equal(ranks.stride[PC_AXIS_TP], 1);
    assert_int_equal(ranks.stride[PC_AXIS_DP], 2);
    assert_int_equal(ranks.stride[PC_AXIS_PP], 10);
    assert_int_equal(pc_ranks_gpu(&ranks, 1, 0, 2, 4), 1 + 20 + 8);
    x.nodes = 3;
    assert_int_equal(pc_ranks_place(&x, order, (pc_rank_counts){8, 3, 1, 1}, &ranks, NULL), PC_OK);
    assert_int_equal(pc_ranks_place(&x, order, (pc_rank_counts){5, 5, 1, 1}, &ranks, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "ranks: tp 5 x pp 5 x dp 1 are 25 GPUs; expected at most the 24 that plain has");
    assert_int_equal(pc_ranks_place(&x, order, (pc_rank_counts){0, 1, 1, 1}, &ranks, NULL), PC_ERROR_INPUT);
    x.nodes = 0;
    assert_int_equal(pc_ranks_place(&x, order, (pc_rank_counts){1 << 30, 1 << 30, 1 << 30, 1}, &ranks, NULL),
                     PC_ERROR_INPUT);
}

/* ---- groups ---- */

enum { MOST_GPUS = 512 };

static int64_t count_gpus(const pc_ranks *ranks) {
    return (int64_t)ranks->count[PC_AXIS_TP] * ranks->count[PC_AXIS_PP] * ranks->count[PC_AXIS_DP];
}

/* Whether the GPU is the first of its group on the axis. */
static bool is_first(const pc_ranks *ranks, pc_axis axis, int64_t gpu) {
    return gpu / ranks->stride[axis] % ranks->count[axis] == 0;
}

/* How the group that begins at `first` lies in cells: its cells, and the least of its ranks in one. */
static void count_cells(const pc_ranks *ranks, pc_axis axis, int64_t first, int64_t cell, int *cells, int *least) {
    int here = 0, n = ranks->count[axis];
    *cells = 0;
    *least = n;
    for (int k = 0; k < n; k++) {
        int64_t gpu = first + k * ranks->stride[axis], next = gpu + ranks->stride[axis];
        here++;
        if (k + 1 < n && next / cell == gpu / cell) continue;
        ++*cells;
        if (here < *least) *least = here;
        here = 0;
    }
}

/* The most rings of the axis that leave any one cell. */
static int count_rings_out(const pc_ranks *ranks, pc_axis axis, int64_t cell) {
    static int out[MOST_GPUS + 1];
    int most = 0;
    memset(out, 0, sizeof out);
    for (int64_t gpu = 0; gpu < count_gpus(ranks); gpu++) {
        int64_t block = ranks->stride[axis] * ranks->count[axis];
        int64_t next = gpu / block * block + (gpu % block + ranks->stride[axis]) % block;
        if (next / cell != gpu / cell && ++out[gpu / cell] > most) most = out[gpu / cell];
    }
    return most;
}

static pc_group count_group(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis) {
    int n = ranks->count[axis], cells, least;
    int64_t leaf = pc_leaf_gpus(machine);
    pc_group group = {.ranks = n, .in_domain = n, .domains = 1, .in_leaf = n};
    for (int64_t gpu = 0; gpu < count_gpus(ranks); gpu++) {
        if (!is_first(ranks, axis, gpu)) continue;
        count_cells(ranks, axis, gpu, machine->domain_gpus, &cells, &least);
        if (cells > group.domains) group.domains = cells;
        if (least < group.in_domain) group.in_domain = least;
        if (leaf == 0) continue;
        count_cells(ranks, axis, gpu, leaf, &cells, &least);
        if (cells > 1) group.crosses_leaves = true;
        if (least < group.in_leaf) group.in_leaf = least;
    }
    if (group.domains == 1) return group;
    double nics = machine->nics_per_node * machine->network.bandwidth_bytes_per_s * machine->network.efficiency;
    group.nic_bytes_per_s = nics / machine->gpus_per_node;
    group.crosses_nics = group.in_domain > 1 && ranks->stride[axis] >= pc_nic_group_gpus(machine);
    if (group.crosses_nics && machine->nic_crossing_efficiency > 0.0)
        group.nic_bytes_per_s *= machine->nic_crossing_efficiency;
    if (!group.crosses_leaves) return group;
    double uplinks = machine->leaf_nodes * nics / machine->oversubscription;
    double of_ring = uplinks / count_rings_out(ranks, axis, leaf) / group.in_domain;
    group.uplink_bytes_per_s = uplinks / (double)leaf;
    if (of_ring < group.nic_bytes_per_s) group.nic_bytes_per_s = of_ring;
    return group;
}

static void check_near(double found, double expected, double tolerance) {
    if (fabs(found - expected) > tolerance * fabs(expected)) fail_msg("%.17g is not %.17g", found, expected);
}

static void check_group(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis) {
    pc_group found = pc_group_of(machine, ranks, axis), expected = count_group(machine, ranks, axis);
    assert_int_equal(found.ranks, expected.ranks);
    assert_int_equal(found.in_domain, expected.in_domain);
    assert_int_equal(found.domains, expected.domains);
    assert_int_equal(found.in_leaf, expected.in_leaf);
    assert_int_equal(found.crosses_leaves, expected.crosses_leaves);
    assert_int_equal(found.crosses_nics, expected.crosses_nics);
    check_near(found.nic_bytes_per_s, expected.nic_bytes_per_s, 1e-12);
    check_near(found.uplink_bytes_per_s, expected.uplink_bytes_per_s, 1e-12);
}

static void test_groups_are_as_counted(void **state) {
    (void)state;
    test_random random = {21};
    int crossing = 0, over_leaves = 0;
    for (long i = 0; i < test_cases(3000, 15000); i++) {
        pc_machine machine = random_machine(&random);
        pc_ranks ranks = random_ranks(&random, &machine, MOST_GPUS);
        for (int axis = 0; axis < PC_AXES; axis++) {
            check_group(&machine, &ranks, (pc_axis)axis);
            pc_group group = pc_group_of(&machine, &ranks, (pc_axis)axis);
            crossing += group.domains > 1;
            over_leaves += group.crosses_leaves;
        }
    }
    assert_true(crossing > 0 && over_leaves > 0);
}

/* Eight GPUs a node, tp 4, dp 4, pp 2: a tensor group has half a domain to itself and one beside it. The data group of
 * each tensor rank has two ranks in a node and so 2 of 8 NICs, with three others beside it. */
static void test_groups_share_nics(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    pc_ranks ranks;
    assert_int_equal(pc_ranks_place(&x, (pc_rank_order){{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}},
                                    (pc_rank_counts){4, 2, 4, 1}, &ranks, NULL),
                     PC_OK);
    pc_group tp = pc_group_of(&x, &ranks, PC_AXIS_TP), dp = pc_group_of(&x, &ranks, PC_AXIS_DP);
    assert_int_equal(tp.in_domain, 4);
    assert_int_equal(tp.groups_beside, 1);
    assert_true(tp.nic_bytes_per_s == 0.0);
    assert_int_equal(dp.in_domain, 2);
    assert_int_equal(dp.domains, 2);
    assert_int_equal(dp.groups_beside, 3);
    check_near(dp.nic_bytes_per_s, 25e9 * 0.8, 1e-12);
    x.nics_per_node = 4;
    check_near(pc_group_of(&x, &ranks, PC_AXIS_DP).nic_bytes_per_s, 25e9 * 0.8 / 2.0, 1e-12);
}

/* ---- segments ---- */

/* 18 nodes of 4 a domain, of which larger jobs get 16: 128 GPUs are two domains of 64, so that a group of 8 with a
 * stride of 8 stays inside. In domains of 72 its GPUs 64 to 120 lie in two, one of them with a single rank. Jobs that
 * fit into a domain, fill whole ones, or are no whole number of segments have domains of 72. */
static void test_jobs_take_segments(void **state) {
    (void)state;
    static const struct {
        int32_t gpus, nodes, domain, leaf_nodes;
    } cases[] = {{64, 0, 72, 144},  {72, 0, 72, 144},   {128, 0, 64, 128},  {144, 0, 72, 144}, {100, 0, 72, 144},
                 {576, 0, 72, 144}, {128, 36, 64, 128}, {192, 52, 64, 128}, {192, 48, 72, 144}};
    pc_machine x = plain_machine(), seen;
    x.gpus_per_node = 4, x.domain_gpus = 72, x.segment_gpus = 64, x.leaf_nodes = 144, x.oversubscription = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        x.nodes = cases[i].nodes;
        const pc_machine *found = pc_machine_of_job(&x, cases[i].gpus, &seen);
        assert_int_equal(found->domain_gpus, cases[i].domain);
        assert_int_equal(found->leaf_nodes, cases[i].leaf_nodes);
        assert_true((found == &x) == (cases[i].domain == 72));
    }
    const pc_rank_order order = {{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}};
    pc_ranks ranks;
    x.nodes = 0;
    assert_int_equal(pc_ranks_place(&x, order, (pc_rank_counts){8, 2, 8, 1}, &ranks, NULL), PC_OK);
    assert_int_equal(pc_group_of(&x, &ranks, PC_AXIS_DP).domains, 1);
    x.segment_gpus = 0;
    pc_group whole = pc_group_of(&x, &ranks, PC_AXIS_DP);
    assert_int_equal(whole.domains, 2);
    assert_int_equal(whole.in_domain, 1);
}

/* A job in segments is a job on a machine whose domains are as large. */
static void test_segments_are_smaller_domains(void **state) {
    (void)state;
    test_random random = {31};
    int taken = 0;
    for (long i = 0; i < test_cases(1000, 5000); i++) {
        pc_machine machine = random_machine(&random), seen;
        machine.segment_gpus = machine.gpus_per_node;
        if (machine.domain_gpus <= machine.gpus_per_node) continue;
        pc_ranks ranks = random_ranks(&random, &machine, MOST_GPUS);
        if (pc_machine_of_job(&machine, count_gpus(&ranks), &seen) == &machine) continue;
        taken++;
        pc_machine smaller = machine;
        smaller.leaf_nodes = machine.leaf_nodes / (machine.domain_gpus / machine.gpus_per_node);
        smaller.domain_gpus = machine.segment_gpus;
        smaller.segment_gpus = 0;
        for (int axis = 0; axis < PC_AXES; axis++) {
            pc_group found = pc_group_of(&machine, &ranks, (pc_axis)axis);
            pc_group expected = pc_group_of(&smaller, &ranks, (pc_axis)axis);
            assert_int_equal(found.in_domain, expected.in_domain);
            assert_int_equal(found.domains, expected.domains);
            assert_int_equal(found.in_leaf, expected.in_leaf);
            assert_int_equal(found.groups_beside, expected.groups_beside);
            assert_true(found.nic_bytes_per_s == expected.nic_bytes_per_s);
            assert_true(found.uplink_bytes_per_s == expected.uplink_bytes_per_s);
        }
        for (int stage = 0; stage + 1 < ranks.count[PC_AXIS_PP]; stage++) {
            pc_hop found = pc_hop_between(&machine, &ranks, stage, stage + 1);
            pc_hop expected = pc_hop_between(&smaller, &ranks, stage, stage + 1);
            assert_true(found.bytes_per_s == expected.bytes_per_s && found.in_domain == expected.in_domain &&
                        found.crosses_leaves == expected.crosses_leaves);
        }
    }
    assert_true(test_saw(taken, 1));
}

/* ---- hops ---- */

/* The largest count of the stage's messages over one of a sort of links, of those that leave a cell of `unlike` GPUs:
 * as links of `size` GPUs each, out of them or into them. */
static int count_messages(const pc_ranks *ranks, int from, int to, int64_t size, int64_t unlike) {
    static int out[MOST_GPUS + 1], into[MOST_GPUS + 1];
    int most = 0;
    memset(out, 0, sizeof out);
    memset(into, 0, sizeof into);
    for (int tp = 0; tp < ranks->count[PC_AXIS_TP]; tp++)
        for (int dp = 0; dp < ranks->count[PC_AXIS_DP]; dp++) {
            int64_t a = pc_ranks_gpu(ranks, tp, 0, from, dp), b = pc_ranks_gpu(ranks, tp, 0, to, dp);
            if (a / unlike == b / unlike) continue;
            if (++out[a / size] > most) most = out[a / size];
            if (++into[b / size] > most) most = into[b / size];
        }
    return most;
}

static void check_hop(const pc_machine *machine, const pc_ranks *ranks, int from, int to) {
    pc_hop hop = pc_hop_between(machine, ranks, from, to);
    int64_t leaf = pc_leaf_gpus(machine), nic_gpus = pc_nic_group_gpus(machine);
    int through_nics = count_messages(ranks, from, to, nic_gpus, machine->domain_gpus);
    assert_int_equal(hop.in_domain, through_nics == 0);
    if (hop.in_domain) {
        check_near(hop.bytes_per_s, pc_domain_rate(machine), 1e-12);
        assert_true(hop.latency_s == machine->domain.latency_s);
        return;
    }
    int through_leaf = leaf == 0 ? 0 : count_messages(ranks, from, to, leaf, leaf);
    double expected = pc_nic_group_rate(machine) / through_nics;
    assert_int_equal(hop.crosses_leaves, through_leaf > 0);
    if (through_leaf > 0 && pc_leaf_rate(machine) / through_leaf < expected)
        expected = pc_leaf_rate(machine) / through_leaf;
    check_near(hop.bytes_per_s, expected, 1e-12);
    check_near(hop.latency_s, machine->network.latency_s + (through_leaf > 0 ? machine->switch_latency_s : 0.0), 1e-12);
}

static void test_hops_are_as_counted(void **state) {
    (void)state;
    test_random random = {22};
    for (long i = 0; i < test_cases(3000, 15000); i++) {
        pc_machine machine = random_machine(&random);
        pc_ranks ranks = random_ranks(&random, &machine, MOST_GPUS);
        int p = ranks.count[PC_AXIS_PP];
        for (int stage = 0; stage < p; stage++) {
            check_hop(&machine, &ranks, stage, (stage + 1) % p);
            check_hop(&machine, &ranks, (stage + 1) % p, stage);
        }
    }
}

/* Latency and bytes over the rate; the fast protocol where messages are small. */
static void test_messages(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    x.network.fast_latency_s = 4e-6;
    x.network.fast_efficiency = 0.4;
    pc_hop near = {true, false, 300e9, 5e-6}, far = {false, true, 10e9, 16e-6};
    check_near(pc_message_seconds(&x, &near, 3e9), 5e-6 + 0.01, 1e-12);
    check_near(pc_message_seconds(&x, &far, 1e9), 16e-6 + 0.1, 1e-12);
    check_near(pc_message_seconds(&x, &far, 1e3), 16e-6 - 15e-6 + 4e-6 + 1e3 / 5e9, 1e-12);
    assert_true(pc_message_seconds(&x, &far, 0.0) == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines_are_checked),
        cmocka_unit_test(test_unused_connections_may_be_missing),
        cmocka_unit_test(test_random_machines_are_sound),
        cmocka_unit_test(test_orders_are_read_and_written),
        cmocka_unit_test(test_ranks_are_placed),
        cmocka_unit_test(test_groups_are_as_counted),
        cmocka_unit_test(test_groups_share_nics),
        cmocka_unit_test(test_jobs_take_segments),
        cmocka_unit_test(test_segments_are_smaller_domains),
        cmocka_unit_test(test_hops_are_as_counted),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
