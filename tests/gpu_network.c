#include "tests/gpu_network.h"

#include "engine/alloc.h"
#include "engine/index.h"
#include "engine/numbers.h"
#include "engine/simtime.h"
#include "models/machine/shares.h"

#include <inttypes.h>

/* ---- links ---- */

struct pc_network {
    pc_machine machine;
    int64_t gpus;
    pc_program *program;
    /* The first of each sort; then out of and into each in turn. PC_NO_RESOURCE: there are none. */
    int32_t gpu_links, nic_links, leaf_links;
    pc_index routes; /* by from * gpus + to: their numbers in the program */
};

typedef enum way { OUT, INTO, WAYS } way;

/* Adds `count` pairs of links, and writes the number of the first. */
static pc_code add_links(pc_program *program, int64_t count, double bytes_per_s, int32_t *first, pc_error *error) {
    const pc_link link = {0, bytes_per_s, false};
    for (int64_t i = 0; i < count * WAYS; i++) {
        int32_t number;
        pc_code code = pc_program_add_link(program, &link, &number, error);
        if (code) return code;
        if (i == 0) *first = number;
    }
    return PC_OK;
}

static pc_code add_all_links(pc_network *network, pc_error *error) {
    const pc_machine *machine = &network->machine;
    int64_t gpus = network->gpus, leaf = pc_leaf_gpus(machine);
    pc_code code = PC_OK;
    if (machine->domain_gpus > 1)
        code = add_links(network->program, gpus, pc_domain_rate(machine), &network->gpu_links, error);
    if (!code && gpus > machine->domain_gpus)
        code = add_links(network->program, pc_divide_up(gpus, pc_nic_group_gpus(machine)), pc_nic_group_rate(machine),
                         &network->nic_links, error);
    if (!code && leaf > 0 && gpus > leaf)
        code =
            add_links(network->program, pc_divide_up(gpus, leaf), pc_leaf_rate(machine), &network->leaf_links, error);
    return code;
}

static pc_code check_gpus(const pc_machine *machine, int64_t gpus, pc_error *error) {
    int64_t room = (int64_t)machine->nodes * machine->gpus_per_node;
    if (gpus > 0 && gpus <= INT32_MAX && (room == 0 || gpus <= room)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "network: %" PRId64 " GPUs; expected 1 to %" PRId64, gpus,
                        room > 0 ? room : INT32_MAX);
}

pc_code pc_network_create(const pc_machine *machine, int64_t gpus, pc_program *program, pc_network **network,
                          pc_error *error) {
    pc_code code = check_gpus(machine, gpus, error);
    if (code) return code;
    pc_network *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_machine seen;
    *made = (pc_network){.machine = *pc_machine_of_job(machine, gpus, &seen),
                         .gpus = gpus,
                         .program = program,
                         .gpu_links = PC_NO_RESOURCE,
                         .nic_links = PC_NO_RESOURCE,
                         .leaf_links = PC_NO_RESOURCE};
    code = add_all_links(made, error);
    if (code) {
        pc_network_free(made);
        return code;
    }
    *network = made;
    return PC_OK;
}

void pc_network_free(pc_network *network) {
    if (!network) return;
    pc_index_free(&network->routes);
    pc_free(network);
}

/* ---- routes ---- */

static int64_t domain_of(const pc_network *network, int64_t gpu) {
    return gpu / network->machine.domain_gpus;
}

/* 0 if one switch joins all. */
static int64_t leaf_of(const pc_network *network, int64_t gpu) {
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): pc_machine_check asks for one and more */
    return network->leaf_links == PC_NO_RESOURCE ? 0 : gpu / pc_leaf_gpus(&network->machine);
}

static int32_t link_of(int32_t first, int64_t index, way direction) {
    return first + (int32_t)(index * WAYS) + (int32_t)direction;
}

static int32_t list_links(const pc_network *network, int64_t from, int64_t to, int32_t links[4]) {
    int32_t count = 0, nic_gpus = pc_nic_group_gpus(&network->machine);
    if (domain_of(network, from) == domain_of(network, to)) {
        links[count++] = link_of(network->gpu_links, from, OUT);
        links[count++] = link_of(network->gpu_links, to, INTO);
        return count;
    }
    links[count++] = link_of(network->nic_links, from / nic_gpus, OUT);
    if (leaf_of(network, from) != leaf_of(network, to)) {
        links[count++] = link_of(network->leaf_links, leaf_of(network, from), OUT);
        links[count++] = link_of(network->leaf_links, leaf_of(network, to), INTO);
    }
    links[count++] = link_of(network->nic_links, to / nic_gpus, INTO);
    return count;
}

pc_code pc_network_route(pc_network *network, int64_t from, int64_t to, int32_t *route, pc_error *error) {
    pc_network *x = network;
    if (from < 0 || from >= x->gpus || to < 0 || to >= x->gpus || from == to)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "network: a route from GPU %" PRId64 " to GPU %" PRId64
                            "; expected two different ones below %" PRId64,
                            from, to, x->gpus);
    pc_hash key = pc_index_key((uint64_t)(from * x->gpus + to));
    int64_t known = pc_index_find(&x->routes, key);
    if (known < 0) {
        int32_t links[4], number, count = list_links(x, from, to, links);
        pc_code code = pc_index_reserve(&x->routes, x->routes.count + 1, error);
        if (!code) code = pc_program_add_route(x->program, links, count, &number, error);
        if (code) return code;
        known = pc_index_add(&x->routes, key, number);
    }
    *route = (int32_t)known;
    return PC_OK;
}

/* ---- how the ranks of a collective lie ---- */

/* GPUs of a collective that are in one domain. */
typedef struct run {
    const int64_t *gpus;
    int32_t count;
} run;

static pc_code check_ranks(const pc_network *network, const int64_t *gpus, int32_t count, pc_error *error) {
    for (int32_t i = 0; i < count; i++)
        if (gpus[i] < (i == 0 ? 0 : gpus[i - 1] + 1) || gpus[i] >= network->gpus)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "network: rank %" PRId32 " of a collective is GPU %" PRId64
                                "; expected GPUs below %" PRId64 " in ascending order",
                                i, gpus[i], network->gpus);
    return PC_OK;
}

static int32_t cut_into_runs(const pc_network *network, const int64_t *gpus, int32_t count, run *runs) {
    int32_t run_count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (i == 0 || domain_of(network, gpus[i]) != domain_of(network, gpus[i - 1]))
            runs[run_count++] = (run){gpus + i, 0};
        runs[run_count - 1].count++;
    }
    return run_count;
}

/* The least ranks under a leaf. */
static int32_t least_in_leaf(const pc_network *network, const int64_t *gpus, int32_t count) {
    int32_t least = count;
    for (int32_t i = 0, here = 0; i < count; i++) {
        here++;
        if (i + 1 < count && leaf_of(network, gpus[i + 1]) == leaf_of(network, gpus[i])) continue;
        if (here < least) least = here;
        here = 0;
    }
    return least;
}

/* Whether two ranks of a domain have a NIC in common. */
static bool shares_nics(const pc_network *network, const int64_t *gpus, int32_t count) {
    int32_t nic_gpus = pc_nic_group_gpus(&network->machine);
    for (int32_t i = 1; i < count; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): pc_machine_check asks for one and more */
        if (gpus[i] / nic_gpus == gpus[i - 1] / nic_gpus &&
            domain_of(network, gpus[i]) == domain_of(network, gpus[i - 1]))
            return true;
    return false;
}

static pc_group group_of_runs(const pc_network *network, const int64_t *gpus, int32_t count, const run *runs,
                              int32_t run_count) {
    const pc_machine *machine = &network->machine;
    pc_group group = {.ranks = count, .in_domain = count, .domains = run_count, .in_leaf = count};
    for (int32_t i = 0; i < run_count; i++)
        if (runs[i].count < group.in_domain) group.in_domain = runs[i].count;
    if (run_count < 2) return group;
    group.nic_bytes_per_s = pc_nic_share(machine);
    group.crosses_nics = group.in_domain > 1 && !shares_nics(network, gpus, count);
    if (group.crosses_nics) group.nic_bytes_per_s *= pc_nic_crossing(machine);
    if (leaf_of(network, gpus[0]) == leaf_of(network, gpus[count - 1])) return group;
    group.in_leaf = least_in_leaf(network, gpus, count);
    group.crosses_leaves = true;
    group.uplink_bytes_per_s = pc_leaf_rate(machine) / (double)pc_leaf_gpus(machine);
    /* A leaf of groups like it, each with a ring that leaves it by the NICs of a domain. */
    double of_ring = group.uplink_bytes_per_s * group.in_leaf / group.in_domain;
    if (of_ring < group.nic_bytes_per_s) group.nic_bytes_per_s = of_ring;
    return group;
}

/* ---- tasks of a collective ---- */

/* The phase that is being added: its flows wait for `gate`, and `next`, the gate of the one after it, for them. */
typedef struct stage {
    pc_network *network;
    int32_t gate, next;
    pc_error *error;
} stage;

static pc_code add_flow(const stage *step, int64_t from, int64_t to, double bytes) {
    pc_task task = pc_task_default();
    int32_t number;
    pc_program *program = step->network->program;
    task.flow_bytes = (int64_t)(bytes + 0.5);
    pc_code code = pc_network_route(step->network, from, to, &task.route, step->error);
    if (!code) code = pc_program_add_task(program, &task, &number, step->error);
    if (!code) code = pc_program_add_edge(program, step->gate, number, 0, step->error);
    if (!code) code = pc_program_add_edge(program, number, step->next, 0, step->error);
    return code;
}

/* Every rank of a domain to the next one there. */
static pc_code add_inside(const stage *step, const run *ranks, double bytes) {
    pc_code code = PC_OK;
    for (int32_t i = 0; i < ranks->count && ranks->count > 1 && !code; i++)
        code = add_flow(step, ranks->gpus[i], ranks->gpus[(i + 1) % ranks->count], bytes);
    return code;
}

/* From one domain to another, every rank of the one sending as much, and every one of the other getting as much: rank i
 * of p has the bytes from i/p to (i+1)/p on both sides. */
static pc_code add_across(const stage *step, const run *from, const run *to, double bytes) {
    int64_t whole = (int64_t)from->count * to->count, at = 0;
    while (at < whole) {
        int64_t sender = at / to->count, receiver = at / from->count;
        int64_t sender_end = (sender + 1) * to->count, receiver_end = (receiver + 1) * from->count;
        int64_t end = sender_end < receiver_end ? sender_end : receiver_end;
        pc_code code =
            add_flow(step, from->gpus[sender], to->gpus[receiver], bytes * (double)(end - at) / (double)whole);
        if (code) return code;
        at = end;
    }
    return PC_OK;
}

static pc_code add_flows(const stage *step, pc_collective collective, const pc_group *group, const run *runs,
                         const pc_collective_phase *phase) {
    int32_t count = group->domains;
    pc_code code = PC_OK;
    for (int32_t i = 0; i < count && phase->domain_bytes > 0.0 && !code; i++)
        code = add_inside(step, &runs[i], phase->domain_wire_bytes);
    if (!(phase->network_bytes > 0.0) || code) return code;
    if (collective != PC_COLLECTIVE_ALL_TO_ALL) { /* from each domain to the next */
        double bytes = phase->network_wire_bytes * group->in_domain;
        for (int32_t i = 0; i < count && !code; i++) code = add_across(step, &runs[i], &runs[(i + 1) % count], bytes);
        return code;
    }
    double pair_bytes = phase->network_wire_bytes / (group->ranks - group->in_domain); /* from one rank to another */
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; j < count && !code; j++)
            if (i != j) code = add_across(step, &runs[i], &runs[j], pair_bytes * runs[i].count * runs[j].count);
    return code;
}

/* A task that lasts `seconds` and holds nothing. */
static pc_code add_gate(pc_program *program, double seconds, int32_t *number, pc_error *error) {
    pc_task task = pc_task_default();
    if (!pc_time_from_seconds(seconds, &task.duration_ps))
        return pc_error_set(error, PC_ERROR_INPUT, "network: a latency of %g s; expected less than 106 days", seconds);
    return pc_program_add_task(program, &task, number, error);
}

/* Writes the task with which all is done. */
static pc_code add_course(pc_network *network, const pc_collective_course *course, pc_collective collective,
                          const pc_group *group, const run *runs, const stage *before, int32_t *done) {
    pc_error *error = before->error;
    stage x = *before;
    pc_code code = PC_OK;
    for (int i = 0; i < course->phase_count && !code; i++) {
        double latency_s = i + 1 < course->phase_count ? course->phase[i + 1].latency_s : 0.0;
        code = add_gate(network->program, latency_s, &x.next, error);
        if (!code) code = add_flows(&x, collective, group, runs, &course->phase[i]);
        x.gate = x.next;
    }
    *done = x.gate;
    return code;
}

static pc_code add_collective(pc_network *network, const run *runs, const pc_group *group, pc_collective collective,
                              pc_algorithm algorithm, double size_bytes, const int32_t *after, int32_t *done,
                              pc_error *error) {
    pc_collective_course course = pc_collective_course_of(&network->machine, group, collective, algorithm, size_bytes);
    stage first = {network, PC_NO_RESOURCE, PC_NO_RESOURCE, error};
    double latency_s = course.phase_count > 0 ? course.phase[0].latency_s : 0.0;
    pc_code code = add_gate(network->program, latency_s, &first.gate, error);
    for (int32_t i = 0; i < group->ranks && !code; i++)
        if (after[i] != PC_NO_RESOURCE) code = pc_program_add_edge(network->program, after[i], first.gate, 0, error);
    int32_t last = first.gate;
    if (!code) code = add_course(network, &course, collective, group, runs, &first, &last);
    for (int32_t i = 0; i < group->ranks && !code; i++) done[i] = last;
    return code;
}

pc_code pc_network_add_collective(pc_network *network, const int64_t *gpus, int32_t count, pc_collective collective,
                                  pc_algorithm algorithm, double size_bytes, const int32_t *after, int32_t *done,
                                  pc_error *error) {
    static const double most_bytes = 1e18;
    if (!(size_bytes >= 0.0 && size_bytes <= most_bytes))
        return pc_error_set(error, PC_ERROR_INPUT, "network: a collective of %g bytes; expected 0 to %g", size_bytes,
                            most_bytes);
    pc_code code = check_ranks(network, gpus, count, error);
    if (code) return code;
    run *runs = pc_alloc((size_t)(count > 0 ? count : 0), sizeof *runs);
    if (!runs) return pc_error_no_memory(error);
    int32_t run_count = cut_into_runs(network, gpus, count, runs);
    pc_group group = group_of_runs(network, gpus, count, runs, run_count);
    code = add_collective(network, runs, &group, collective, algorithm, size_bytes, after, done, error);
    pc_free(runs);
    return code;
}
