#include "models/cost/dispatch.h"

#include "engine/numbers.h"
#include "models/machine/shares.h"
#include "models/machine/transfer_model.h"

/* ---- by collectives ---- */

static pc_collective_course by_collective(const pc_machine *machine, const pc_group *group, const pc_dispatch *what) {
    double bytes = what->tokens * what->token_bytes;
    if (what->dispatcher == PC_DISPATCHER_ALLTOALL)
        return pc_collective_course_of(machine, group, PC_COLLECTIVE_ALL_TO_ALL, PC_ALGORITHM_BEST,
                                       what->load * what->routing.topk * bytes);
    return pc_collective_course_of(machine, group,
                                   what->is_combine ? PC_COLLECTIVE_REDUCE_SCATTER : PC_COLLECTIVE_ALL_GATHER,
                                   PC_ALGORITHM_BEST, group->ranks * bytes);
}

/* ---- once to each rank ---- */

/* To how many ranks a token goes; the fullest gets `load` times as many, but each token of each rank at most once. */
static double ranks_reached(const pc_group *group, const pc_dispatch *what) {
    return pc_min(what->load * pc_expert_reached(&what->routing, group->ranks), (double)group->ranks);
}

/* Experts of a domain: those of its ranks in a row. */
static double domains_reached(const pc_group *group, const pc_dispatch *what) {
    return pc_expert_reached(&what->routing, group->domains);
}

static pc_collective_phase forwarded(const pc_machine *machine, const pc_group *group, const pc_dispatch *what) {
    double bytes = what->tokens * what->token_bytes, q = group->in_domain, d = group->domains;
    double into_domain = bytes * ranks_reached(group, what) * (q - 1.0) / q;
    double out_of_it = d > 1.0 ? bytes * domains_reached(group, what) * (d - 1.0) / d : 0.0;
    double between_s = d > 1.0 ? machine->network.latency_s : 0.0;
    if (group->crosses_leaves) between_s += machine->switch_latency_s;
    return (pc_collective_phase){.latency_s = machine->collective_call_s + machine->domain.latency_s + between_s,
                                 .domain_bytes = into_domain,
                                 .network_bytes = out_of_it,
                                 .domain_bytes_per_s = pc_domain_rate(machine),
                                 .network_bytes_per_s = pc_scatter_rate(machine, group),
                                 .domain_wire_bytes = into_domain,
                                 .network_wire_bytes = out_of_it};
}

static double divide(double bytes, double bytes_per_s) {
    return bytes > 0.0 ? bytes / bytes_per_s : 0.0;
}

/* Bytes over a link are at most as long under way as the whole, and what decides is so as long. */
static double rate_to_last(double bytes, double rate, double longest_s, double wanted_s) {
    double now_s = divide(bytes, rate);
    bool decides = now_s >= longest_s || now_s > wanted_s;
    return bytes > 0.0 && wanted_s > 0.0 && decides ? bytes / wanted_s : rate;
}

/* Made to last `seconds`. No link is faster than its bandwidth: where the whole is too short for that, of the latency a
 * part goes. */
static void fit_to_measured(const pc_machine *machine, double seconds, pc_collective_phase *x) {
    double domain_s = divide(x->domain_bytes, x->domain_bytes_per_s);
    double network_s = divide(x->network_bytes, x->network_bytes_per_s);
    double longest_s = pc_max(domain_s, network_s);
    double at_least = pc_max(domain_s * machine->domain.efficiency, network_s * machine->network.efficiency);
    double bytes_s = pc_min(pc_max(seconds - x->latency_s, at_least), seconds);
    x->latency_s = seconds - bytes_s;
    x->domain_bytes_per_s = rate_to_last(x->domain_bytes, x->domain_bytes_per_s, longest_s, bytes_s);
    x->network_bytes_per_s = rate_to_last(x->network_bytes, x->network_bytes_per_s, longest_s, bytes_s);
    x->domain_wire_bytes = divide(x->domain_bytes, x->domain_bytes_per_s) * pc_domain_rate(machine);
    x->network_wire_bytes = divide(x->network_bytes, x->network_bytes_per_s) * pc_nic_share(machine);
}

static bool is_measured(const pc_machine *machine, const pc_group *group, const pc_dispatch *what, double *seconds) {
    const pc_transfer_model *measured = machine->measured;
    const pc_exchange exchange = {.tokens = what->tokens,
                                  .token_bytes = what->token_bytes,
                                  .ranks_reached = ranks_reached(group, what),
                                  .domains_reached = domains_reached(group, what),
                                  .is_combine = what->is_combine};
    return what->dispatcher == PC_DISPATCHER_DEEPEP && measured &&
           measured->exchange(measured->self, group, &exchange, seconds);
}

static pc_collective_course by_forwarding(const pc_machine *machine, const pc_group *group, const pc_dispatch *what) {
    pc_collective_course course = {.algorithm = PC_ALGORITHM_RING};
    double measured_s;
    if (group->ranks < 2 || !(what->tokens * what->token_bytes > 0.0)) return course;
    pc_collective_phase *x = &course.phase[0];
    course.phase_count = 1;
    *x = forwarded(machine, group, what);
    if (is_measured(machine, group, what, &measured_s)) fit_to_measured(machine, measured_s, x);
    course.seconds = x->latency_s + pc_max(divide(x->domain_bytes, x->domain_bytes_per_s),
                                           divide(x->network_bytes, x->network_bytes_per_s));
    return course;
}

/* ---- all of them ---- */

pc_collective_course pc_dispatch_course(const pc_machine *machine, const pc_group *group, const pc_dispatch *what) {
    bool is_collective = what->dispatcher == PC_DISPATCHER_ALLGATHER || what->dispatcher == PC_DISPATCHER_ALLTOALL;
    return is_collective ? by_collective(machine, group, what) : by_forwarding(machine, group, what);
}

int pc_dispatch_processors(pc_dispatcher dispatcher) {
    return dispatcher == PC_DISPATCHER_DEEPEP     ? PC_DEEPEP_SMS
           : dispatcher == PC_DISPATCHER_HYBRIDEP ? PC_HYBRIDEP_SMS
                                                  : 0;
}

double pc_stretch_beside(int all, int taken) {
    int left = all - taken;
    return (double)all / (left > 1 ? left : 1);
}

double pc_dispatched_bytes(double hidden, bool is_fp8) {
    enum { NUMBERS_A_SCALE = 128, SCALE_BYTES = 4 };
    return is_fp8 ? hidden + hidden / NUMBERS_A_SCALE * SCALE_BYTES : 2.0 * hidden;
}
