/* Collectives and messages as flows over a machine's links, on the engine, against their closed costs. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "engine/program_internal.h"
#include "engine/simulation.h"
#include "models/machine/collective.h"
#include "models/machine/shares.h"
#include "tests/gpu_network.h"
#include "tests/random_machine.h"

#include <math.h>

/* The plain machine: 300 GB/s into the domain, 20 GB/s a NIC. */
static const double domain_rate = 400e9 * 0.75, nic_rate = 25e9 * 0.8;

static void check_near(double found, double expected, double tolerance) {
    if (fabs(found - expected) > tolerance * fabs(expected)) fail_msg("%.17g is not %.17g", found, expected);
}

/* ---- a cluster of its own ---- */

enum { MOST_GPUS = 32 };

typedef struct cluster {
    pc_program *program;
    pc_network *network;
    pc_simulation *simulation;
    pc_simulation_result result;
} cluster;

static void open_cluster(cluster *joined, const pc_machine *machine, int64_t gpus) {
    assert_int_equal(pc_program_create(&joined->program, NULL), PC_OK);
    assert_int_equal(pc_network_create(machine, gpus, joined->program, &joined->network, NULL), PC_OK);
    assert_int_equal(pc_simulation_create(&joined->simulation, NULL), PC_OK);
}

static void run_cluster(cluster *joined) {
    assert_int_equal(pc_program_seal(joined->program, NULL), PC_OK);
    assert_int_equal(pc_simulation_run(joined->simulation, joined->program,
                                       &(pc_simulation_options){.with_trace = true}, &joined->result, NULL),
                     PC_OK);
    assert_int_equal(joined->result.outcome, PC_OUTCOME_DONE);
}

static void close_cluster(cluster *joined) {
    pc_simulation_free(joined->simulation);
    pc_network_free(joined->network);
    pc_program_free(joined->program);
}

/* What is asked of all groups of an axis at once. */
typedef struct asked {
    pc_collective collective;
    pc_algorithm algorithm;
    double size_bytes;
} asked;

static int64_t count_gpus(const pc_ranks *ranks) {
    return (int64_t)ranks->count[PC_AXIS_TP] * ranks->count[PC_AXIS_PP] * ranks->count[PC_AXIS_DP];
}

/* Adds the collective of every group of the axis, each after the tasks `after` of its GPUs; writes the tasks by GPU. */
static void add_groups(cluster *joined, const pc_ranks *ranks, pc_axis axis, asked what, const int32_t *after,
                       int32_t *done) {
    int64_t gpus[MOST_GPUS], stride = ranks->stride[axis];
    int32_t before[MOST_GPUS], behind[MOST_GPUS], n = ranks->count[axis];
    for (int64_t first = 0; first < count_gpus(ranks); first++) {
        if (first / stride % n != 0) continue;
        for (int k = 0; k < n; k++) {
            gpus[k] = first + k * stride;
            before[k] = after[gpus[k]];
        }
        pc_error error = {0};
        if (pc_network_add_collective(joined->network, gpus, n, what.collective, what.algorithm, what.size_bytes,
                                      before, behind, &error))
            fail_msg("%s", error.message);
        for (int k = 0; k < n; k++) done[gpus[k]] = behind[k];
    }
}

/* Links carry what their flows are, no more than they can at any time. */
static void check_loads(const cluster *joined) {
    const pc_program *program = joined->program;
    const pc_load_trace *loads = &joined->result.loads;
    double *carried = calloc((size_t)program->link_count + 1, sizeof *carried);
    double *load = calloc((size_t)program->link_count + 1, sizeof *load);
    double *since = calloc((size_t)program->link_count + 1, sizeof *since);
    for (int64_t i = 0; i < loads->count; i++) {
        int32_t link = loads->link[i];
        double now = pc_time_to_seconds(loads->time_ps[i]), most = program->links[link].bandwidth_bytes_per_s;
        if (loads->bytes_per_s[i] > most * (1.0 + 1e-9)) fail_msg("%g over %g", loads->bytes_per_s[i], most);
        carried[link] += load[link] * (now - since[link]);
        load[link] = loads->bytes_per_s[i];
        since[link] = now;
    }
    for (int32_t task = 0; task < program->task_count; task++) {
        int32_t route = program->tasks[task].route;
        if (route == PC_NO_RESOURCE) continue;
        for (int32_t i = program->route_offset[route]; i < program->route_offset[route + 1]; i++)
            carried[program->route_links[i]] -= (double)program->tasks[task].flow_bytes;
    }
    for (int32_t link = 0; link < program->link_count; link++) {
        double most = program->links[link].bandwidth_bytes_per_s;
        if (fabs(carried[link]) > 1.0 + most * 1e-9 || load[link] != 0.0)
            fail_msg("link %d: %g bytes too many", (int)link, carried[link]);
    }
    free(carried);
    free(load);
    free(since);
}

/* The bytes of all flows over the links of a sort, out and into. */
static double sum_bytes(const pc_program *program, double bytes_per_s) {
    double sum = 0.0;
    for (int32_t task = 0; task < program->task_count; task++) {
        int32_t route = program->tasks[task].route;
        if (route == PC_NO_RESOURCE) continue;
        int32_t first = program->route_links[program->route_offset[route]];
        if (program->links[first].bandwidth_bytes_per_s == bytes_per_s) sum += (double)program->tasks[task].flow_bytes;
    }
    return sum;
}

/* The time of the collective in all groups at once. */
static double time_groups(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis, asked what) {
    cluster joined;
    int32_t nothing[MOST_GPUS], done[MOST_GPUS];
    memset(nothing, 0xff, sizeof nothing); /* PC_NO_RESOURCE */
    open_cluster(&joined, machine, count_gpus(ranks));
    add_groups(&joined, ranks, axis, what, nothing, done);
    run_cluster(&joined);
    check_loads(&joined);
    double seconds = pc_time_to_seconds(joined.result.time_ps);
    for (int64_t gpu = 0; gpu < count_gpus(ranks); gpu++)
        assert_true(joined.result.end_ps[done[gpu]] <= joined.result.time_ps);
    close_cluster(&joined);
    return seconds;
}

static bool divides(int64_t a, int64_t b) {
    return a % b == 0 || b % a == 0;
}

/* Whether all groups lie alike in cells of the size, and no cell is half used: then the worst group is every group. */
static bool is_even(const pc_ranks *ranks, pc_axis axis, int64_t cell) {
    int64_t stride = ranks->stride[axis], block = stride * ranks->count[axis], gpus = count_gpus(ranks);
    return cell == 0 || gpus <= cell || (gpus % cell == 0 && divides(cell, stride) && divides(cell, block));
}

static double random_size(test_random *random) {
    return (double)(INT64_C(1) << test_between(random, 10, 32)) * random_thousandths(random, 500, 1000);
}

typedef struct tally {
    int even, uneven, across, over_leaves;
} tally;

/* Ranks and an axis on which they are more than one. */
static pc_axis random_axis(test_random *random, const pc_machine *machine, pc_ranks *ranks) {
    pc_axis axis;
    do {
        *ranks = random_ranks(random, machine, MOST_GPUS);
        axis = (pc_axis)test_between(random, 0, PC_AXES - 1);
    } while (ranks->count[axis] < 2);
    return axis;
}

/* No latencies, and so one protocol. */
static void drop_latencies(pc_machine *machine) {
    machine->domain.latency_s = machine->domain.fast_latency_s = machine->network.latency_s =
        machine->network.fast_latency_s = 0.0;
    machine->collective_call_s = machine->switch_latency_s = machine->in_switch_latency_s = 0.0;
}

/* Where groups lie in several ways, the closed cost is of bytes as those have them whose NICs have most to do. One of
 * them may have more steps of one sort and fewer of the other; there latencies are left out. Two things can still take
 * longer. Flows of unlike sizes that share a link fairly are not done as soon as they could be. A group that stays in a
 * domain has more to do there than one that leaves it, which counts where domains are slow. Of 4000 cases 7 took more
 * than 1.15 times the closed cost, and the worst 1.26 times. */
static void check_agreement(test_random *random, tally *seen) {
    pc_machine machine = random_machine(random);
    pc_ranks ranks;
    pc_axis axis = random_axis(random, &machine, &ranks);
    asked what = {(pc_collective)test_between(random, 0, PC_COLLECTIVES - 1),
                  (pc_algorithm)test_between(random, 0, PC_ALGORITHMS - 1), random_size(random)};
    bool even = is_even(&ranks, axis, machine.domain_gpus) && is_even(&ranks, axis, machine.gpus_per_node) &&
                is_even(&ranks, axis, pc_leaf_gpus(&machine));
    if (!even) drop_latencies(&machine);
    if (!even) machine.nic_crossing_efficiency = 0.0; /* one group's ring may cross and another's not */
    pc_group group = pc_group_of(&machine, &ranks, axis);
    pc_collective_course course =
        pc_collective_course_of(&machine, &group, what.collective, what.algorithm, what.size_bytes);
    double seconds = time_groups(&machine, &ranks, axis, what), ratio = seconds / course.seconds;
    if (ratio > (even ? 1.02 : 1.5) || (even && ratio < 0.98))
        fail_msg("collective %d by %d of %g bytes, %d ranks, %d in each of %d domains%s: %g s on the engine, %g closed",
                 (int)what.collective, (int)what.algorithm, what.size_bytes, (int)group.ranks, (int)group.in_domain,
                 (int)group.domains, even ? "" : ", uneven", seconds, course.seconds);
    seen->even += even;
    seen->uneven += !even;
    seen->across += group.domains > 1;
    seen->over_leaves += group.crosses_leaves;
}

static void test_flows_agree_with_closed_costs(void **state) {
    (void)state;
    test_random random = {31};
    tally seen = {0};
    for (long i = 0; i < test_cases(400, 2000); i++) check_agreement(&random, &seen);
    assert_true(seen.even > 0 && seen.uneven > 0 && seen.across > 0 && seen.over_leaves > 0);
}

/* Every rank sends what its course says into its domain and out of it. */
static void test_flows_carry_what_plans_say(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    pc_rank_order order = {{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}};
    machine.reduces_in_switch = true;
    machine.domain.fast_latency_s = machine.network.fast_latency_s = 1e-6;
    machine.domain.fast_efficiency = machine.network.fast_efficiency = 0.25;
    for (int i = 0; i < PC_COLLECTIVES * PC_ALGORITHMS * 2; i++) {
        asked what = {(pc_collective)(i / 2 % PC_COLLECTIVES), (pc_algorithm)(i / 2 / PC_COLLECTIVES),
                      i % 2 ? 1 << 28 : 1 << 18};
        int32_t nothing[MOST_GPUS], done[MOST_GPUS];
        double into_domain = 0.0, out_of_it = 0.0;
        cluster joined;
        pc_ranks ranks;
        assert_int_equal(pc_ranks_place(&machine, order, (pc_rank_counts){2, 1, 16, 1}, &ranks, NULL), PC_OK);
        pc_group group = pc_group_of(&machine, &ranks, PC_AXIS_DP);
        pc_collective_course course =
            pc_collective_course_of(&machine, &group, what.collective, what.algorithm, what.size_bytes);
        for (int k = 0; k < course.phase_count; k++) {
            into_domain += 32.0 * course.phase[k].domain_wire_bytes;
            out_of_it += 32.0 * course.phase[k].network_wire_bytes;
        }
        memset(nothing, 0xff, sizeof nothing);
        open_cluster(&joined, &machine, 32);
        add_groups(&joined, &ranks, PC_AXIS_DP, what, nothing, done);
        double flows = pc_program_task_count(joined.program); /* each rounded to a byte */
        assert_true(fabs(sum_bytes(joined.program, domain_rate) - into_domain) <= flows);
        assert_true(fabs(sum_bytes(joined.program, nic_rate) - out_of_it) <= flows);
        close_cluster(&joined);
    }
}

/* ---- beside each other, and one after the other ---- */

/* All 16 ranks' data over a NIC each, twice at once and twice in turn. Without latencies sharing takes as long as
 * waiting. */
static void test_what_meets_shares(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    pc_ranks ranks;
    asked what = {PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING, 1e8};
    int32_t nothing[MOST_GPUS], first[MOST_GPUS], second[MOST_GPUS];
    memset(nothing, 0xff, sizeof nothing);
    drop_latencies(&machine);
    assert_int_equal(pc_ranks_place(&machine, (pc_rank_order){{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}},
                                    (pc_rank_counts){8, 1, 2, 1}, &ranks, NULL),
                     PC_OK);
    double alone = time_groups(&machine, &ranks, PC_AXIS_DP, what);
    check_near(alone, 1e8 / 2.0 / nic_rate, 1e-9);
    for (int in_turn = 0; in_turn < 2; in_turn++) {
        cluster joined;
        open_cluster(&joined, &machine, 16);
        add_groups(&joined, &ranks, PC_AXIS_DP, what, nothing, first);
        add_groups(&joined, &ranks, PC_AXIS_DP, what, in_turn ? first : nothing, second);
        run_cluster(&joined);
        check_loads(&joined);
        check_near(pc_time_to_seconds(joined.result.end_ps[first[3]]), in_turn ? alone : 2.0 * alone, 1e-9);
        check_near(pc_time_to_seconds(joined.result.end_ps[second[3]]), 2.0 * alone, 1e-9);
        close_cluster(&joined);
    }
}

/* A message of a rank and the collective of its data-parallel group meet on the rank's NIC: with as many bytes each
 * they both take twice as long; inside the domain they do not meet. */
static void test_messages_meet_collectives(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    int64_t gpus[2] = {0, 8};
    int32_t nothing[2] = {PC_NO_RESOURCE, PC_NO_RESOURCE}, done[2], message[2];
    cluster joined;
    drop_latencies(&machine);
    open_cluster(&joined, &machine, 24);
    assert_int_equal(pc_network_add_collective(joined.network, gpus, 2, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING,
                                               2e8, nothing, done, NULL),
                     PC_OK);
    for (int i = 0; i < 2; i++) {
        pc_task task = pc_task_default();
        task.flow_bytes = 100000000;
        assert_int_equal(pc_network_route(joined.network, 0, i == 0 ? 16 : 1, &task.route, NULL), PC_OK);
        assert_int_equal(pc_program_add_task(joined.program, &task, &message[i], NULL), PC_OK);
    }
    run_cluster(&joined);
    check_loads(&joined);
    check_near(pc_time_to_seconds(joined.result.end_ps[message[0]]), 2e8 / nic_rate, 1e-9);
    check_near(pc_time_to_seconds(joined.result.end_ps[message[1]]), 1e8 / domain_rate, 1e-9);
    check_near(pc_time_to_seconds(joined.result.end_ps[done[0]]), 2e8 / nic_rate, 1e-9);
    close_cluster(&joined);
}

/* One rank on a node and two on another: V = 2/3 of the data goes from the one to the two by halves, each at half of
 * its NIC's rate. A message of V/2 into the first of the two has the other half of that one's NIC, and both end with V.
 */
static void test_uneven_domains(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    int64_t gpus[3] = {0, 8, 9};
    int32_t nothing[3] = {PC_NO_RESOURCE, PC_NO_RESOURCE, PC_NO_RESOURCE}, done[3], message;
    pc_task task = pc_task_default();
    cluster joined;
    drop_latencies(&machine);
    open_cluster(&joined, &machine, 24);
    assert_int_equal(pc_network_add_collective(joined.network, gpus, 3, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING,
                                               3e8, nothing, done, NULL),
                     PC_OK);
    task.flow_bytes = 100000000;
    assert_int_equal(pc_network_route(joined.network, 16, 8, &task.route, NULL), PC_OK);
    assert_int_equal(pc_program_add_task(joined.program, &task, &message, NULL), PC_OK);
    run_cluster(&joined);
    check_loads(&joined);
    check_near(pc_time_to_seconds(joined.result.end_ps[done[0]]), 2e8 / nic_rate, 1e-9);
    check_near(pc_time_to_seconds(joined.result.end_ps[message]), 2e8 / nic_rate, 1e-9);
    close_cluster(&joined);
}

/* Four ranks that come after 1, 2, 4 and 3 s: nobody is done before the last has come and all is sent. */
static void test_late_ranks_are_waited_for(void **state) {
    (void)state;
    static const int64_t arrival_s[4] = {1, 2, 4, 3};
    pc_machine machine = plain_machine();
    int64_t gpus[4] = {0, 1, 8, 9};
    int32_t after[4], done[4];
    cluster joined;
    drop_latencies(&machine);
    open_cluster(&joined, &machine, 16);
    for (int i = 0; i < 4; i++) {
        pc_task task = pc_task_default();
        task.duration_ps = arrival_s[i] * PC_PICOSECONDS_PER_SECOND;
        assert_int_equal(pc_program_add_task(joined.program, &task, &after[i], NULL), PC_OK);
    }
    assert_int_equal(pc_network_add_collective(joined.network, gpus, 4, PC_COLLECTIVE_ALL_GATHER, PC_ALGORITHM_RING,
                                               8e10, after, done, NULL),
                     PC_OK);
    run_cluster(&joined);
    for (int i = 0; i < 4; i++)
        check_near(pc_time_to_seconds(joined.result.end_ps[done[i]]), 4.0 + 8e10 * 3.0 / 4.0 / (2.0 * nic_rate), 1e-9);
    close_cluster(&joined);
}

static void test_doubled_bandwidths_halve_times(void **state) {
    (void)state;
    test_random random = {41};
    for (long i = 0; i < test_cases(100, 500); i++) {
        pc_machine machine = random_machine(&random);
        pc_ranks ranks;
        pc_axis axis = random_axis(&random, &machine, &ranks);
        asked what = {(pc_collective)test_between(&random, 0, PC_COLLECTIVES - 1),
                      (pc_algorithm)test_between(&random, 0, PC_ALGORITHMS - 1), 1e9};
        drop_latencies(&machine);
        double before = time_groups(&machine, &ranks, axis, what);
        machine.domain.bandwidth_bytes_per_s *= 2.0;
        machine.network.bandwidth_bytes_per_s *= 2.0;
        check_near(time_groups(&machine, &ranks, axis, what), before / 2.0, 1e-8);
    }
}

/* ---- what is refused ---- */

static void test_networks_refuse(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    pc_network *network;
    int64_t twice[2] = {3, 3}, beyond[2] = {3, 16}, good[2] = {3, 12};
    int32_t route, nothing[2] = {PC_NO_RESOURCE, PC_NO_RESOURCE}, done[2];
    pc_program *program;
    cluster joined;
    pc_collective gather = PC_COLLECTIVE_ALL_GATHER;
    open_cluster(&joined, &machine, 16);
    assert_int_equal(pc_network_route(joined.network, 3, 3, &route, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_network_route(joined.network, 3, 16, &route, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_network_route(joined.network, -1, 3, &route, NULL), PC_ERROR_INPUT);
    assert_int_equal(
        pc_network_add_collective(joined.network, twice, 2, gather, PC_ALGORITHM_BEST, 1e6, nothing, done, NULL),
        PC_ERROR_INPUT);
    assert_int_equal(
        pc_network_add_collective(joined.network, beyond, 2, gather, PC_ALGORITHM_BEST, 1e6, nothing, done, NULL),
        PC_ERROR_INPUT);
    assert_int_equal(
        pc_network_add_collective(joined.network, good, 2, gather, PC_ALGORITHM_BEST, NAN, nothing, done, NULL),
        PC_ERROR_INPUT);
    assert_int_equal(
        pc_network_add_collective(joined.network, good, 2, gather, PC_ALGORITHM_BEST, -1.0, nothing, done, NULL),
        PC_ERROR_INPUT);
    close_cluster(&joined);
    machine.nodes = 2;
    assert_int_equal(pc_program_create(&program, NULL), PC_OK);
    assert_int_equal(pc_network_create(&machine, 17, program, &network, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_network_create(&machine, 0, program, &network, NULL), PC_ERROR_INPUT);
    pc_program_free(program);
}

/* Builds a network with a collective; whatever allocation fails, it is said and nothing is lost. */
static pc_code build_once(const pc_machine *machine) {
    int64_t gpus[16];
    int32_t nothing[16], done[16];
    pc_program *program = NULL;
    pc_network *network = NULL;
    for (int i = 0; i < 16; i++) gpus[i] = i, nothing[i] = PC_NO_RESOURCE;
    pc_code code = pc_program_create(&program, NULL);
    if (!code) code = pc_network_create(machine, 16, program, &network, NULL);
    if (!code)
        code = pc_network_add_collective(network, gpus, 16, PC_COLLECTIVE_ALL_TO_ALL, PC_ALGORITHM_BEST, 1e6, nothing,
                                         done, NULL);
    pc_network_free(network);
    pc_program_free(program);
    return code;
}

static void test_failed_allocations(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    machine.domain_gpus = 2;
    long before = pc_alloc_count();
    assert_int_equal(build_once(&machine), PC_OK);
    long count = pc_alloc_count() - before;
    for (long i = 0; i < count; i++) {
        pc_alloc_fail_after(i);
        assert_int_equal(build_once(&machine), PC_ERROR_NO_MEMORY);
    }
    pc_alloc_fail_after(-1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flows_agree_with_closed_costs),
        cmocka_unit_test(test_flows_carry_what_plans_say),
        cmocka_unit_test(test_what_meets_shares),
        cmocka_unit_test(test_messages_meet_collectives),
        cmocka_unit_test(test_uneven_domains),
        cmocka_unit_test(test_late_ranks_are_waited_for),
        cmocka_unit_test(test_doubled_bandwidths_halve_times),
        cmocka_unit_test(test_networks_refuse),
        cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
