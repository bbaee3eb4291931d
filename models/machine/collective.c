#include "models/machine/collective.h"

#include "engine/numbers.h"
#include "models/machine/shares.h"
#include "models/machine/transfer_model.h"

#include <stddef.h>

/* ---- phases ---- */

/* What a phase asks for: steps one after the other, and bytes of a rank. */
typedef struct work {
    double domain_steps, network_steps;
    double domain_bytes, network_bytes;
    double network_rate; /* bulk protocol */
    bool in_switch;
    bool crosses_nics;
    bool is_direct; /* messages from rank to rank: libraries send them by the bulk protocol, but for the smallest */
} work;

/* A protocol of a connection: what a step takes, and what part of the bandwidth it reaches. */
typedef struct protocol {
    double latency_s, efficiency;
} protocol;

static protocol bulk_of(const pc_connection *connection) {
    return (protocol){connection->latency_s, connection->efficiency};
}

/* The bulk one where there is no other. */
static protocol fast_of(const pc_connection *connection) {
    return connection->fast_latency_s > 0.0 ? (protocol){connection->fast_latency_s, connection->fast_efficiency}
                                            : bulk_of(connection);
}

static protocol in_switch_of(const pc_machine *machine) {
    double latency_s = machine->in_switch_latency_s, efficiency = machine->in_switch_efficiency;
    return (protocol){latency_s > 0.0 ? latency_s : 2.0 * machine->domain.latency_s,
                      efficiency > 0.0 ? efficiency : machine->domain.efficiency};
}

static double seconds_of_bytes(const pc_collective_phase *phase) {
    double domain_s = phase->domain_bytes > 0.0 ? phase->domain_bytes / phase->domain_bytes_per_s : 0.0;
    double network_s = phase->network_bytes > 0.0 ? phase->network_bytes / phase->network_bytes_per_s : 0.0;
    return pc_max(domain_s, network_s);
}

static double seconds_of(const pc_collective_phase *phase) {
    return phase->latency_s + seconds_of_bytes(phase);
}

static pc_collective_phase phase_by(const pc_machine *machine, const work *load, protocol domain, protocol network) {
    double more_domain = load->domain_bytes > 0.0 ? machine->domain.efficiency / domain.efficiency : 1.0;
    double more_network = load->network_bytes > 0.0 ? machine->network.efficiency / network.efficiency : 1.0;
    return (pc_collective_phase){
        .latency_s = load->domain_steps * domain.latency_s + load->network_steps * network.latency_s,
        .domain_bytes = load->domain_bytes,
        .network_bytes = load->network_bytes,
        .domain_bytes_per_s = machine->domain.bandwidth_bytes_per_s * domain.efficiency,
        .network_bytes_per_s = load->network_rate / more_network,
        .domain_wire_bytes = load->domain_bytes * more_domain,
        .network_wire_bytes =
            load->network_bytes * more_network / (load->crosses_nics ? pc_nic_crossing(machine) : 1.0),
    };
}

/* By the faster protocol, where there is a choice. */
static pc_collective_phase phase_of(const pc_machine *machine, const pc_group *group, const work *load) {
    double between_leaves_s = group->crosses_leaves ? machine->switch_latency_s : 0.0;
    protocol bulk = bulk_of(&machine->network), fast = fast_of(&machine->network);
    bulk.latency_s += between_leaves_s;
    fast.latency_s += between_leaves_s;
    if (load->in_switch) return phase_by(machine, load, in_switch_of(machine), bulk);
    pc_collective_phase by_bulk = phase_by(machine, load, bulk_of(&machine->domain), bulk);
    pc_collective_phase by_fast = phase_by(machine, load, fast_of(&machine->domain), fast);
    return seconds_of(&by_fast) < seconds_of(&by_bulk) && !load->is_direct ? by_fast : by_bulk;
}

/* ---- what the algorithms do ---- */

/* The ranks of a group as numbers: n in all, q in each of d domains. */
typedef struct shape {
    double n, q, d;
    double domain_levels, network_levels; /* of a binary tree over q, over d */
} shape;

static double count_levels(int32_t leaves) {
    int levels = 0;
    while ((INT64_C(1) << levels) < leaves) levels++;
    return levels;
}

static shape shape_of(const pc_group *group) {
    return (shape){group->ranks, group->in_domain, group->domains, count_levels(group->in_domain),
                   count_levels(group->domains)};
}

static double ring_steps(pc_collective collective, double ranks) {
    return collective == PC_COLLECTIVE_ALL_REDUCE ? 2.0 * (ranks - 1.0) : ranks - 1.0;
}

/* Bytes over each hop of a ring of so many ranks. */
static double ring_bytes(pc_collective collective, double ranks, double size_bytes) {
    return collective == PC_COLLECTIVE_BROADCAST ? size_bytes : ring_steps(collective, ranks) / ranks * size_bytes;
}

/* Bytes that one of so many ranks sends in two trees. An inner rank of one tree sends half the data to its parent and
 * to both children, and as a leaf of the other half to its parent: twice the data. The busiest of 2 or 3 ranks has less
 * to send, which libraries do not turn into time: two nodes of A100 with 4 NICs of 25 GB/s reach 86 and 91 GB/s of bus
 * bandwidth, not twice that (github.com/NVIDIA/nccl-tests, issues 175 and 100). */
static double tree_bytes(pc_collective collective, double ranks, double size_bytes) {
    if (ranks < 2.0) return 0.0;
    return collective == PC_COLLECTIVE_BROADCAST ? size_bytes : 2.0 * size_bytes;
}

/* The same where switches reduce, and GPUs send on what comes out of them: there it is so (H100: 470 GB/s of bus
 * bandwidth on two nodes of 8 NICs of 50 GB/s; github.com/NVIDIA/nccl, issue 2409). */
static double tree_bytes_in_switch(double ranks, double size_bytes) {
    if (ranks < 2.0) return 0.0;
    return ranks < 4.0 ? ranks / 2.0 * size_bytes : 2.0 * size_bytes;
}

static double tree_steps(pc_collective collective, double levels) {
    return collective == PC_COLLECTIVE_BROADCAST ? levels : 2.0 * levels;
}

static work ring_work(const pc_group *group, const shape *form, pc_collective collective, double size_bytes) {
    double bytes = ring_bytes(collective, form->n, size_bytes), network_steps = ring_steps(collective, form->d);
    bool leaves = group->domains > 1;
    return (work){.domain_steps = ring_steps(collective, form->n) - network_steps,
                  .network_steps = network_steps,
                  .domain_bytes = leaves ? bytes * (form->q - 1.0) / form->q : bytes,
                  .network_bytes = leaves ? bytes / form->q : 0.0,
                  .network_rate = group->nic_bytes_per_s,
                  .crosses_nics = group->crosses_nics};
}

/* The rate at which the bytes of an all-to-all leave their domains: NICs, or the leaves' uplinks. */
double pc_scatter_rate(const pc_machine *machine, const pc_group *group) {
    if (group->domains < 2) return 0.0;
    double rate = pc_nic_share(machine);
    if (!group->crosses_leaves) return rate;
    double of_uplinks = group->uplink_bytes_per_s * (group->ranks - group->in_domain) / (group->ranks - group->in_leaf);
    return of_uplinks < rate ? of_uplinks : rate;
}

static work scatter_work(const pc_machine *machine, const pc_group *group, const shape *form, double size_bytes) {
    return (work){.domain_steps = form->q - 1.0,
                  .network_steps = form->d - 1.0,
                  .domain_bytes = size_bytes / form->n * (form->q - 1.0),
                  .network_bytes = size_bytes / form->n * (form->n - form->q),
                  .network_rate = pc_scatter_rate(machine, group),
                  .is_direct = true};
}

static work tree_work(const pc_group *group, const shape *form, pc_collective collective, double size_bytes) {
    return (work){.domain_steps = tree_steps(collective, form->domain_levels),
                  .network_steps = tree_steps(collective, form->network_levels),
                  .domain_bytes = tree_bytes(collective, form->q, size_bytes),
                  .network_bytes = tree_bytes(collective, form->d, size_bytes) / form->q,
                  .network_rate = group->nic_bytes_per_s,
                  .crosses_nics = group->crosses_nics};
}

/* Reduced in the switch and sent to all by it, a part by each rank; across domains, trees of such parts. */
static work in_switch_work(const pc_group *group, const shape *form, double size_bytes) {
    return (work){.domain_steps = 1.0,
                  .network_steps = tree_steps(PC_COLLECTIVE_ALL_REDUCE, form->network_levels),
                  .domain_bytes = (form->q + 1.0) / form->q * size_bytes,
                  .network_bytes = tree_bytes_in_switch(form->d, size_bytes) / form->q,
                  .network_rate = group->nic_bytes_per_s,
                  .crosses_nics = group->crosses_nics,
                  .in_switch = true};
}

/* ---- courses ---- */

static void add_phase(pc_collective_course *course, const pc_machine *machine, const pc_group *group,
                      const work *load) {
    pc_collective_phase phase = phase_of(machine, group, load);
    if (course->phase_count == 0) phase.latency_s += machine->collective_call_s;
    course->phase[course->phase_count++] = phase;
    course->seconds += seconds_of(&phase);
}

/* Inside domains: rings of q ranks. */
static work inside_work(const shape *form, pc_collective collective, double size_bytes) {
    return (work){.domain_steps = form->q - 1.0,
                  .domain_bytes = ring_bytes(collective, form->q, size_bytes),
                  .is_direct = collective == PC_COLLECTIVE_ALL_TO_ALL};
}

/* Across domains: q rings or pairs of trees of d ranks side by side, each on a part of the tensor. */
static work across_work(const pc_machine *machine, const pc_group *group, const shape *form, pc_collective collective,
                        double part_bytes) {
    if (collective == PC_COLLECTIVE_ALL_TO_ALL)
        return (work){.network_steps = form->d - 1.0,
                      .network_bytes = part_bytes / form->d * (form->d - 1.0),
                      .network_rate = pc_scatter_rate(machine, group),
                      .is_direct = true};
    return (work){.network_steps = ring_steps(collective, form->d),
                  .network_bytes = ring_bytes(collective, form->d, part_bytes),
                  .network_rate = group->nic_bytes_per_s,
                  .crosses_nics = group->crosses_nics};
}

/* The collective that the ranks of a domain do before and behind the part across; PC_COLLECTIVES is none. A broadcast's
 * first scatters: as many bytes and steps as a reduce-scatter. */
static const struct sides {
    pc_collective before, behind;
} sides[PC_COLLECTIVES] = {
    [PC_COLLECTIVE_ALL_REDUCE] = {PC_COLLECTIVE_REDUCE_SCATTER, PC_COLLECTIVE_ALL_GATHER},
    [PC_COLLECTIVE_ALL_GATHER] = {PC_COLLECTIVES, PC_COLLECTIVE_ALL_GATHER},
    [PC_COLLECTIVE_REDUCE_SCATTER] = {PC_COLLECTIVE_REDUCE_SCATTER, PC_COLLECTIVES},
    [PC_COLLECTIVE_ALL_TO_ALL] = {PC_COLLECTIVE_ALL_TO_ALL, PC_COLLECTIVES},
    [PC_COLLECTIVE_BROADCAST] = {PC_COLLECTIVE_REDUCE_SCATTER, PC_COLLECTIVE_ALL_GATHER},
};

static pc_collective_course course_hierarchy(const pc_machine *machine, const pc_group *group, const shape *form,
                                             pc_collective collective, double size_bytes) {
    pc_collective_course course = {.algorithm = PC_ALGORITHM_HIERARCHICAL};
    /* All that a rank has goes on in an all-to-all; of the others each rank of a domain takes a part on. */
    double part_bytes = collective == PC_COLLECTIVE_ALL_TO_ALL ? size_bytes : size_bytes / form->q;
    work across = across_work(machine, group, form, collective, part_bytes);
    if (sides[collective].before != PC_COLLECTIVES) {
        work before = inside_work(form, sides[collective].before, size_bytes);
        add_phase(&course, machine, group, &before);
    }
    add_phase(&course, machine, group, &across);
    if (sides[collective].behind != PC_COLLECTIVES) {
        work behind = inside_work(form, sides[collective].behind, size_bytes);
        add_phase(&course, machine, group, &behind);
    }
    return course;
}

static bool has_algorithm(const pc_machine *machine, const pc_group *group, pc_collective collective,
                          pc_algorithm algorithm) {
    bool reduces = collective == PC_COLLECTIVE_ALL_REDUCE, spreads = collective == PC_COLLECTIVE_BROADCAST;
    switch (algorithm) {
    case PC_ALGORITHM_TREE:
        return reduces || spreads;
    case PC_ALGORITHM_IN_SWITCH:
        return reduces && machine->reduces_in_switch && group->in_domain > 1;
    case PC_ALGORITHM_HIERARCHICAL:
        return group->domains > 1 && group->in_domain > 1 && (int64_t)group->domains * group->in_domain == group->ranks;
    default:
        return algorithm == PC_ALGORITHM_RING;
    }
}

static pc_collective_course course_by(const pc_machine *machine, const pc_group *group, pc_collective collective,
                                      pc_algorithm algorithm, double size_bytes) {
    shape x = shape_of(group);
    if (algorithm == PC_ALGORITHM_HIERARCHICAL) return course_hierarchy(machine, group, &x, collective, size_bytes);
    pc_collective_course course = {.algorithm = algorithm};
    work load = algorithm == PC_ALGORITHM_TREE           ? tree_work(group, &x, collective, size_bytes)
                : algorithm == PC_ALGORITHM_IN_SWITCH    ? in_switch_work(group, &x, size_bytes)
                : collective == PC_COLLECTIVE_ALL_TO_ALL ? scatter_work(machine, group, &x, size_bytes)
                                                         : ring_work(group, &x, collective, size_bytes);
    add_phase(&course, machine, group, &load);
    return course;
}

/* Libraries broadcast along a ring alone (NCCL: src/graph/tuning.cc). */
static pc_collective_course best_course(const pc_machine *machine, const pc_group *group, pc_collective collective,
                                        double size_bytes) {
    static const pc_algorithm others[] = {PC_ALGORITHM_TREE, PC_ALGORITHM_IN_SWITCH};
    pc_collective_course best = course_by(machine, group, collective, PC_ALGORITHM_RING, size_bytes);
    for (size_t i = 0; i < sizeof others / sizeof *others && collective != PC_COLLECTIVE_BROADCAST; i++) {
        if (!has_algorithm(machine, group, collective, others[i])) continue;
        pc_collective_course course = course_by(machine, group, collective, others[i], size_bytes);
        if (course.seconds < best.seconds) best = course;
    }
    return best;
}

/* A course within a domain, made to last as long as was measured. Its bytes are what is left behind its latency, but
 * never faster than the link: where the whole is too short for that, of the latency a part goes. */
static void fit_to_measured(const pc_machine *machine, double seconds, pc_collective_course *course) {
    pc_collective_phase *x = &course->phase[0];
    double at_least = x->domain_bytes / machine->domain.bandwidth_bytes_per_s, bytes_s = seconds - x->latency_s;
    if (bytes_s < at_least) bytes_s = at_least;
    if (bytes_s > seconds) bytes_s = seconds;
    x->latency_s = seconds - bytes_s;
    x->domain_bytes_per_s = x->domain_bytes / bytes_s;
    x->domain_wire_bytes = bytes_s * machine->domain.bandwidth_bytes_per_s * machine->domain.efficiency;
    course->seconds = seconds;
}

pc_collective_course pc_collective_course_of(const pc_machine *machine, const pc_group *group, pc_collective collective,
                                             pc_algorithm algorithm, double size_bytes) {
    pc_collective_course best = {.algorithm = PC_ALGORITHM_RING};
    double measured_s;
    if (group->ranks < 2 || !(size_bytes > 0.0)) return best;
    if (algorithm != PC_ALGORITHM_BEST) {
        bool is_there = has_algorithm(machine, group, collective, algorithm);
        return course_by(machine, group, collective, is_there ? algorithm : PC_ALGORITHM_RING, size_bytes);
    }
    best = best_course(machine, group, collective, size_bytes);
    const pc_transfer_model *measured = machine->measured;
    bool is_measured = measured && measured->collective(measured->self, collective, group, size_bytes, &measured_s);
    if (is_measured && group->domains == 1) fit_to_measured(machine, measured_s, &best);
    return best;
}

/* ---- messages ---- */

double pc_message_seconds(const pc_machine *machine, const pc_hop *hop, double size_bytes) {
    const pc_connection *x = hop->in_domain ? &machine->domain : &machine->network;
    protocol bulk = bulk_of(x), fast = fast_of(x);
    double measured_s;
    if (!(size_bytes > 0.0)) return 0.0;
    const pc_transfer_model *measured = machine->measured;
    if (measured && measured->message(measured->self, hop, size_bytes, &measured_s)) return measured_s;
    double bulk_s = hop->latency_s + size_bytes / hop->bytes_per_s;
    double fast_s = hop->latency_s - bulk.latency_s + fast.latency_s +
                    size_bytes / (hop->bytes_per_s * (fast.efficiency / bulk.efficiency));
    return fast_s < bulk_s ? fast_s : bulk_s;
}

pc_collective_course pc_message_course(const pc_machine *machine, const pc_hop *hop, double size_bytes) {
    pc_collective_course course = {.algorithm = PC_ALGORITHM_RING};
    double seconds = pc_message_seconds(machine, hop, size_bytes), latency_s = pc_min(hop->latency_s, seconds);
    double bytes_per_s = seconds > latency_s ? size_bytes / (seconds - latency_s) : hop->bytes_per_s;
    if (!(size_bytes > 0.0)) return course;
    course.phase_count = 1;
    course.phase[0] =
        (pc_collective_phase){.latency_s = latency_s + machine->collective_call_s,
                              .domain_bytes = hop->in_domain ? size_bytes : 0.0,
                              .network_bytes = hop->in_domain ? 0.0 : size_bytes,
                              .domain_bytes_per_s = hop->in_domain ? bytes_per_s : pc_domain_rate(machine),
                              .network_bytes_per_s = hop->in_domain ? 0.0 : bytes_per_s,
                              .domain_wire_bytes = hop->in_domain ? size_bytes : 0.0,
                              .network_wire_bytes = hop->in_domain ? 0.0 : size_bytes};
    course.seconds = seconds + machine->collective_call_s;
    return course;
}
