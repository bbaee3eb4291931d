#include "tests/random_machine.h"

double random_thousandths(test_random *random, int64_t least, int64_t most) {
    return (double)test_between(random, least, most) / 1000.0;
}

static pc_connection random_connection(test_random *random, double least_bandwidth, double most_latency_s) {
    pc_connection x = {.bandwidth_bytes_per_s = least_bandwidth * random_thousandths(random, 1000, 4000),
                       .efficiency = random_thousandths(random, 500, 1000),
                       .latency_s = most_latency_s * random_thousandths(random, 0, 1000)};
    if (test_between(random, 0, 1) == 0) return x;
    x.fast_latency_s = x.latency_s * random_thousandths(random, 100, 700);
    x.fast_efficiency = x.efficiency * random_thousandths(random, 200, 900);
    return x;
}

pc_machine random_machine(test_random *random) {
    static const int32_t nodes_of_gpus[] = {1, 2, 4, 8, 8, 8, 6};
    pc_machine x = plain_machine();
    x.gpus_per_node = nodes_of_gpus[test_between(random, 0, 6)];
    x.domain_gpus = x.gpus_per_node;
    int64_t kind = test_between(random, 0, 5);
    if (kind == 0) x.domain_gpus *= (int32_t)test_between(random, 2, 4);
    if (kind == 1 && x.gpus_per_node % 2 == 0) x.domain_gpus /= 2;
    x.nics_per_node = (int32_t)test_between(random, 1, 2 * x.gpus_per_node);
    if (test_between(random, 0, 1)) x.nics_per_node = x.gpus_per_node;
    x.network = random_connection(random, 10e9, 20e-6);
    x.domain = random_connection(random, 100e9, x.network.latency_s);
    if (x.domain.fast_latency_s > x.network.fast_latency_s && x.network.fast_latency_s > 0.0)
        x.domain.fast_latency_s = x.network.fast_latency_s;
    if (test_between(random, 0, 1)) {
        int32_t domain_nodes = x.domain_gpus > x.gpus_per_node ? x.domain_gpus / x.gpus_per_node : 1;
        x.leaf_nodes = domain_nodes * (int32_t)test_between(random, 1, 4);
        x.oversubscription = random_thousandths(random, 1000, 8000);
        x.switch_latency_s = 1e-6;
    }
    if (x.leaf_nodes == 0) x.nic_crossing_efficiency = random_thousandths(random, 0, 2) * 400.0;
    x.reduces_in_switch = test_between(random, 0, 1);
    x.in_switch_efficiency = random_thousandths(random, 0, 2) * 300.0;
    x.collective_call_s = 1e-6 * random_thousandths(random, 0, 10000);
    return x;
}

static int random_count(test_random *random, int64_t most) {
    int64_t power = INT64_C(1) << test_between(random, 0, 6);
    int64_t any = test_between(random, 1, 12);
    int64_t count = test_between(random, 0, 3) ? power : any;
    return (int)(count < most ? count : most);
}

pc_ranks random_ranks(test_random *random, const pc_machine *machine, int64_t most) {
    static const char *const orders[] = {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"};
    pc_rank_order order;
    pc_ranks ranks;
    int first = random_count(random, most), second = random_count(random, most / first);
    int third = random_count(random, most / first / second);
    assert_int_equal(pc_rank_order_parse(orders[test_between(random, 0, 5)], &order, NULL), PC_OK);
    assert_int_equal(pc_ranks_place(machine, order, (pc_rank_counts){first, second, third, 1}, &ranks, NULL), PC_OK);
    return ranks;
}
